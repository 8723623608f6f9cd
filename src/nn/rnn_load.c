/* SPDX-License-Identifier: MIT */
/*
 * Weights of recurrent layers as Chainer's files have them. Its matrices are (out, in); gates are matrices of their
 * own, or rows that take turns unit by unit.
 */
#include "nn/rnn.h"

#include <tanso/array.h>

typedef tn__rnn rnn;

enum { MOST_GATES = 4 };

/* What is asked for: of which layer and direction, of x or of h, weights or biases. */
typedef struct wanted {
    const rnn *net;
    const tn_archive *archive;
    const char *before;
    int at;
    bool of_h, bias;
} wanted;

static tn_array *find(const wanted *w, char *name)
{
    if (!name)
        return tn__fail_memory("layer_load", 32), tn__failed_array();
    tn_array *found = tn_archive_find(w->archive, name);
    tn__free(name);
    return found;
}

/* One behind the other, gate after gate, as ours are; NULL if the file lacks the first. */
static tn_array *joined(const wanted *w, int count, tn_array *const *gates)
{
    if (!gates[0])
        return NULL;
    for (int i = 0; i < count; i++) {
        if (!gates[i]) {
            tn__fail(TN_ERR_NAME, "layer_load", "'%s' lacks some of the gates' weights in the file", w->before);
            return tn__failed_array();
        }
    }
    tn_array *all = tn_concatenate(count, (const tn_array *const *)gates, 0);
    return w->bias ? all : tn_transpose(all, (tn_axes){0});
}

/* NStepLSTM's and its like: "0/w0" ..., the state's behind x's; layers and directions take turns. */
static tn_array *of_n_step(const wanted *w)
{
    int gates = tn__rnn_rows[w->net->kind].gates, first = w->of_h ? gates : 0;
    tn_array *gate[MOST_GATES];
    for (int i = 0; i < gates; i++)
        gate[i] = find(w, tn__format("%s%d/%c%d", w->before, w->at, w->bias ? 'b' : 'w', first + i));
    return joined(w, gates, gate);
}

/* LSTM's: rows of candidate, input, forget, output of each unit. The state's product has no bias. */
static tn_array *of_lstm(const wanted *w)
{
    static const int row[] = {1, 2, 0, 3}; /* of input, forget, candidate, output */
    int64_t units = w->net->units;
    if (w->of_h && w->bias) {
        tn_array *other = find(w, tn__format("%supward/b", w->before));
        return other ? tn_zeros_like(other) : NULL;
    }
    tn_array *all = find(w, tn__format("%s%s/%c", w->before, w->of_h ? "lateral" : "upward", w->bias ? 'b' : 'W'));
    if (!all || tn_is_error(all))
        return all;
    tn_array *gate[MOST_GATES];
    for (int i = 0; i < MOST_GATES; i++)
        gate[i] = tn_slice_axis(all, 0, row[i], 4 * units, 4);
    return joined(w, MOST_GATES, gate);
}

/* StatefulGRU's: h' = (1 - z) h + z n there, so that its z is our 1 - z, the sigmoid of the negative sum. */
static tn_array *of_gru(const wanted *w)
{
    static const char *const ends[] = {"_r", "_z", ""};
    tn_array *gate[MOST_GATES];
    for (int i = 0; i < 3; i++)
        gate[i] = find(w, tn__format("%s%c%s/%c", w->before, w->of_h ? 'U' : 'W', ends[i], w->bias ? 'b' : 'W'));
    if (gate[1])
        gate[1] = tn_negative(gate[1]);
    return joined(w, 3, gate);
}

tn_array *tn__rnn_from_chainer(const tn_layer *layer, const tn__slot *slot, const tn_archive *archive,
                               const char *before)
{
    const rnn *net = layer->user.data;
    int i = (int)(slot - layer->slots), which = i % net->per;
    bool of_h = which == net->place[TN__RNN_U] || which == net->place[TN__RNN_C];
    bool bias = which == net->place[TN__RNN_B] || which == net->place[TN__RNN_C];
    if (which == net->place[TN__RNN_P] || i >= net->layers * net->directions * net->per)
        return NULL;
    wanted w = {net, archive, before, i / net->per, of_h, bias};
    if (net->kind == TN_RNN_GRU_BEFORE)
        return of_gru(&w);
    tn_array *stored = of_n_step(&w);
    return stored || net->kind != TN_RNN_LSTM || w.at > 0 ? stored : of_lstm(&w);
}
