/* SPDX-License-Identifier: MIT */
/*
 * Rows about one training step of networks other than the small ones of training.c, on inputs that lie on the device:
 * forward, backward, Adam. A transformer's block, small and usual; a recurrent network; wide layers; an embedding.
 */
#include <math.h>

#include "measure.h"

typedef struct network network;

typedef struct step_row {
    const char *row, *work;
    tn_array *(*loss)(const network *n);
    void (*make)(network *n, const struct step_row *row);
    int64_t batch, time, width, heads; /* a network's own meaning of each */
    double operations;
    bool small; /* for a CPU, too */
} step_row;

struct network {
    const step_row *row;
    tn_device device;
    tn_layer *layer[9];
    int count;
    tn_layer *all; /* owns them */
    tn_optimizer *optimizer;
    tn_array *x, *t;
};

/* There before anything is timed. */
static tn_array *given(tn_array *x)
{
    (void)!tn_eval(x); /* a failure is latched, and the row says so */
    return tn_own(x);
}

static tn_array *input(const network *n, tn_shape shape)
{
    return given(tn_random_normal(shape, .device = n->device));
}

static tn_array *labels(const network *n, tn_shape shape, int64_t below)
{
    return given(tn_random_integers(0, below, shape, .device = n->device));
}

/* ---- a transformer's block, normalized first: attention of `heads`, then 4 times as wide a layer ---- */

enum { NORM1, QUERY, KEY, VALUE, OUT, NORM2, UP, DOWN };

static void make_block(network *n, const step_row *row)
{
    for (int i = NORM1; i <= DOWN; i++)
        n->layer[n->count++] = i == NORM1 || i == NORM2 ? tn_layer_norm(row->width, 1e-5)
                                                        : tn_linear(i == UP ? 4 * row->width : row->width);
    n->x = input(n, TN_SHAPE(row->batch, row->time, row->width));
}

static tn_array *heads_of(const network *n, tn_array *x)
{
    const step_row *r = n->row;
    return tn_swapaxes(tn_reshape(x, TN_SHAPE(r->batch, r->time, r->heads, r->width / r->heads)), 1, 2);
}

static tn_array *block(const network *n)
{
    const step_row *r = n->row;
    tn_layer *const *l = n->layer;
    tn_array *h = tn_forward(l[NORM1], n->x);
    tn_array *q = heads_of(n, tn_forward(l[QUERY], h)), *k = heads_of(n, tn_forward(l[KEY], h)),
             *v = heads_of(n, tn_forward(l[VALUE], h));
    double scale = 1 / sqrt((double)(r->width / r->heads));
    tn_array *weights = tn_softmax(tn_multiply(tn_matmul(q, tn_swapaxes(k, 2, 3)), scale), -1);
    tn_array *mixed = tn_reshape(tn_swapaxes(tn_matmul(weights, v), 1, 2), TN_SHAPE(r->batch, r->time, r->width));
    tn_array *y = tn_add(n->x, tn_forward(l[OUT], mixed));
    tn_array *wide = tn_gelu(tn_forward(l[UP], tn_forward(l[NORM2], y)));
    return tn_mean(tn_square(tn_add(y, tn_forward(l[DOWN], wide))));
}

/* Products of an element of a minibatch: 12 width^2 in layers, 2 time width in attention; thrice with backward. */
#define BLOCK(batch, time, width) (6.0 * (batch) * (time) * (12.0 * (width) * (width) + 2.0 * (time) * (width)))

/* ---- a recurrent network: h = tanh(x W + h U), `time` times ---- */

static void make_recurrent(network *n, const step_row *row)
{
    n->layer[n->count++] = tn_linear(row->width);
    n->layer[n->count++] = tn_linear(row->width, .in = row->width, .no_bias = true);
    n->x = input(n, TN_SHAPE(row->time, row->batch, row->width));
}

static tn_array *recurrent(const network *n)
{
    tn_array *h = tn_tanh(tn_forward(n->layer[0], tn_index(n->x, 0)));
    for (int64_t i = 1; i < n->row->time; i++)
        h = tn_tanh(tn_add(tn_forward(n->layer[0], tn_index(n->x, i)), tn_forward(n->layer[1], h)));
    return tn_mean(tn_square(h));
}

/* ---- wide layers: width, four times that twice, 10 ---- */

static void make_wide(network *n, const step_row *row)
{
    n->layer[n->count++] = tn_linear(4 * row->width);
    n->layer[n->count++] = tn_relu_layer();
    n->layer[n->count++] = tn_linear(4 * row->width);
    n->layer[n->count++] = tn_relu_layer();
    n->layer[n->count++] = tn_linear(10);
    n->x = input(n, TN_SHAPE(row->batch, row->width));
    n->t = labels(n, TN_SHAPE(row->batch), 10);
}

static tn_array *wide(const network *n)
{
    tn_array *h = n->x;
    for (int i = 0; i < n->count; i++)
        h = tn_forward(n->layer[i], h);
    return tn_softmax_cross_entropy(h, n->t);
}

/* ---- words: the mean of `time` rows of a table, then 10 ---- */

enum { WORDS = 30000 };

static void make_words(network *n, const step_row *row)
{
    n->layer[n->count++] = tn_embedding(WORDS, row->width);
    n->layer[n->count++] = tn_linear(10);
    n->x = labels(n, TN_SHAPE(row->batch, row->time), WORDS);
    n->t = labels(n, TN_SHAPE(row->batch), 10);
}

static tn_array *words(const network *n)
{
    tn_array *mean = tn_mean(tn_forward(n->layer[0], n->x), .axis = TN_AXES(1));
    return tn_softmax_cross_entropy(tn_forward(n->layer[1], mean), n->t);
}

/* ---- the rows ---- */

static const step_row rows[] = {
    {"block-256", "a transformer's block, 8 x 128 x 256, 4 heads", block, make_block, 8, 128, 256, 4,
     BLOCK(8, 128, 256), true},
    {"block-768", "a transformer's block, 16 x 512 x 768, 12 heads", block, make_block, 16, 512, 768, 12,
     BLOCK(16, 512, 768), false},
    {"recurrent", "a recurrent network, 20 steps of 64 x 256", recurrent, make_recurrent, 64, 20, 256, 0,
     6.0 * 20 * 64 * 2 * 256 * 256, true},
    {"wide", "layers 1024-4096-4096-10, relu, batch 4096", wide, make_wide, 4096, 0, 1024, 0,
     2.0 * 4096 * (2.0 * 1024 * 4096 + 3.0 * 4096 * 4096 + 3.0 * 4096 * 10), false},
    {"words", "a table of 30000 x 256, means of 16 rows, 10 classes, batch 4096", words, make_words, 4096, 16, 256, 0,
     0, false},
};

static void step(void *context, bool last)
{
    network *n = context;
    TN_SCOPE {
        tn_array *loss = n->row->loss(n);
        if (tn_backward(loss) == TN_OK && tn_step(n->optimizer) == TN_OK && last)
            settle(n->x);
    }
}

static void row_run(const bench *b, const step_row *row)
{
    network n = {.row = row, .device = b->device};
    if ((b->device.kind == TN_DEVICE_CPU && !row->small) || !wanted(b, row->row))
        return;
    TN_SCOPE row->make(&n, row);
    n.all = tn_sequential_of(n.count, n.layer);
    tn_layer_to(n.all, b->device);
    n.optimizer = tn_adam(n.all, .lr = 0.0001);
    timing t = measure(b, step, &n, 5e-3);
    report(b, (row_facts){.row = row->row, .work = row->work, .operations = row->operations}, t);
    tn_optimizer_free(n.optimizer);
    tn_layer_free(n.all);
    tn_free(n.x);
    tn_free(n.t);
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    tn_seed(1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        row_run(&b, &rows[i]);
    return 0;
}
