/* SPDX-License-Identifier: MIT */
/*
 * Translation by an encoder and a decoder, after Chainer's seq2seq: one LSTM reads sentences of several lengths,
 * another one writes what they mean, beginning with the state that the first one ended with. The language is made up:
 * its sentences mean themselves read backwards. seq2seq [ITERATIONS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { WORDS = 8, END = 0, MOST = 5, ROWS = 64, UNITS = 64 };

typedef struct pairs {
    int64_t source[MOST * ROWS], in[(MOST + 1) * ROWS], out[(MOST + 1) * ROWS], length[ROWS];
} pairs;

/* Sources (MOST, ROWS); targets behind END, and with END behind them, (MOST + 1, ROWS); -1 beyond that. */
static void write_pairs(pairs *p)
{
    for (int row = 0; row < ROWS; row++) {
        int64_t length = p->length[row] = 1 + rand() % MOST;
        for (int i = 0; i < MOST; i++)
            p->source[i * ROWS + row] = i < length ? 1 + rand() % (WORDS - 1) : END;
        p->in[row] = END;
        for (int i = 0; i <= MOST; i++) {
            int64_t word = i < length ? p->source[(length - 1 - i) * ROWS + row] : END;
            p->out[i * ROWS + row] = i <= length ? word : -1;
            if (i < MOST)
                p->in[(i + 1) * ROWS + row] = word;
        }
    }
}

/* Scores (steps, ROWS, WORDS) of the words behind `in`; the state goes on in *h and *c. */
static tn_array *decode(tn_layer *net, const tn_array *in, tn_array **h, tn_array **c)
{
    tn_array *y;
    tn_forward_all(tn_layer_child(net, "decoder"), TN_ARRAYS(tn_forward(tn_layer_child(net, "words"), in), *h, *c),
                   TN_RESULTS(&y, h, c));
    return tn_forward(tn_layer_child(net, "out"), y);
}

static void encode(tn_layer *net, const tn_array *source, const tn_array *lengths, tn_array **h, tn_array **c)
{
    tn_array *x = tn_forward(tn_layer_child(net, "words"), source), *y;
    const tn_array *in[] = {x, NULL, NULL, lengths};
    tn_array **const out[] = {&y, h, c};
    tn_forward_all(tn_layer_child(net, "encoder"), 4, in, 3, out);
}

/* Sources, their lengths, targets but their last words: the scores of targets but their first. */
static tn_status forward(tn_layer *net, const tn_flow *flow, void *user)
{
    (void)user;
    tn_array *h, *c;
    encode(net, flow->in[0], flow->in[1], &h, &c);
    flow->out[0] = decode(net, flow->in[2], &h, &c);
    return TN_OK;
}

static tn_array *sources(const pairs *p) { return tn_from_host(p->source, TN_SHAPE(MOST, ROWS), TN_INT64); }
static tn_array *lengths_of(const pairs *p) { return tn_from_host(p->length, TN_SHAPE(ROWS), TN_INT64); }

/* The share of sentences that are translated without a mistake, word by word. */
static double translate(tn_layer *net)
{
    static pairs p;
    double right = 0;
    write_pairs(&p);
    TN_NO_GRAD TN_SCOPE {
        tn_array *h, *c, *word = tn_zeros(TN_SHAPE(1, ROWS), .dtype = TN_INT64), *fine = tn_ones(TN_SHAPE(1, ROWS));
        tn_array *t = tn_from_host(p.out, TN_SHAPE(MOST + 1, ROWS), TN_INT64);
        encode(net, sources(&p), lengths_of(&p), &h, &c);
        for (int i = 0; i <= MOST; i++) {
            word = tn_argmax(decode(net, word, &h, &c), .axis = TN_AXES(2));
            tn_array *wanted = tn_slice_axis(t, 0, i, i + 1, 1);
            fine = tn_where(tn_logical_or(tn_equal(word, wanted), tn_less(wanted, 0)), fine, 0);
        }
        right = tn_item(tn_mean(fine));
    }
    return right;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 400;
    static pairs p;
    double right = 0;
    srand(4);
    tn_layer *net = tn_flow_layer("seq2seq", forward, NULL, NULL, .inputs = 3);
    tn_layer_add(net, "words", tn_embedding(WORDS, UNITS));
    tn_layer_add(net, "encoder", tn_lstm(UNITS, .in = UNITS));
    tn_layer_add(net, "decoder", tn_lstm(UNITS, .in = UNITS));
    tn_layer_add(net, "out", tn_linear(WORDS, .in = UNITS));
    tn_optimizer *adam = tn_adam(net, .lr = 0.01);
    for (int i = 0; i < iterations && tn_ok(); i++) {
        double now = 0;
        write_pairs(&p);
        TN_SCOPE {
            tn_array *in = tn_from_host(p.in, TN_SHAPE(MOST + 1, ROWS), TN_INT64);
            tn_array *t = tn_from_host(p.out, TN_SHAPE(MOST + 1, ROWS), TN_INT64);
            tn_array *y = tn_forward(net, sources(&p), lengths_of(&p), in);
            tn_array *loss = tn_softmax_cross_entropy(y, t, .ignore_index = -1, .axis = 2);
            if (tn_backward(loss) == TN_OK && tn_step(adam) == TN_OK)
                now = tn_item(loss);
        }
        if (i % 100 == 99) {
            right = translate(net);
            printf("iteration %d, loss %.3f, translated %.3f\n", i + 1, now, right);
        }
    }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    return tn_ok() && right > 0.3 ? 0 : 1;
}
