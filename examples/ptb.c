/* SPDX-License-Identifier: MIT */
/*
 * A language model of words, after Chainer's ptb: two LSTM layers read twenty places of a text at once, 35 words at a
 * time; the state goes on and the gradient does not (truncated backpropagation through time). ptb [made-up | ptb
 * [ITERATIONS]]: of a text in which each word has three followers, or of the Penn Treebank.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso.h>

enum { ROWS = 20, BPTT = 35, FEW = 60, LENGTH = ROWS * 350 };

/* The words (n) of a text. */
static tn_array *text_of(const char *name)
{
    static int64_t words[LENGTH];
    if (strcmp(name, "ptb") == 0)
        return tn_ptb_words("train");
    for (int i = 1; i < LENGTH; i++)
        words[i] = (words[i - 1] * 7 + 3 * (rand() % 3) + 1) % FEW;
    return tn_from_host(words, TN_SHAPE(LENGTH), TN_INT64);
}

/* The text cut into ROWS pieces, side by side: (n / ROWS, ROWS). */
static tn_array *in_rows(tn_array *text)
{
    int64_t each = tn_dim(text, 0) / ROWS;
    tn_array *rows = tn_reshape(tn_slice_axis(text, 0, 0, each * ROWS, 1), TN_SHAPE(ROWS, each));
    return tn_transpose(rows, (tn_axes){0});
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "made-up";
    int iterations = argc > 2 ? atoi(argv[2]) : 200;
    double perplexity = INFINITY;
    srand(12);
    tn_array *rows = NULL;
    int64_t words = 0;
    TN_SCOPE {
        rows = tn_keep(in_rows(text_of(name)));
        words = (int64_t)tn_item(tn_max(rows)) + 1;
    }
    int64_t units = words > FEW ? 650 : 40, steps = tn_dim(rows, 0);
    tn_layer *net = tn_sequential(tn_embedding(words, units), tn_dropout(words > FEW ? 0.5 : 0.1),
                                  tn_lstm(units, .layers = 2, .dropout = words > FEW ? 0.5 : 0.1, .in = units,
                                          .stateful = true),
                                  tn_linear(words, .in = units));
    tn_optimizer *adam = tn_adam(net, .lr = words > FEW ? 1e-3 : 1e-2, .clip_norm = 5);
    for (int64_t i = 0, at = 0; i < iterations && tn_ok(); i++, at += BPTT)
        TN_SCOPE {
            if (at + BPTT >= steps) { /* the next epoch */
                at = 0;
                tn_layer_reset_state(net);
            }
            tn_array *x = tn_slice_axis(rows, 0, at, at + BPTT, 1);
            tn_array *t = tn_slice_axis(rows, 0, at + 1, at + BPTT + 1, 1);
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, x), t, .axis = 2);
            if (tn_backward(loss) != TN_OK || tn_step(adam) != TN_OK || tn_layer_detach_state(net) != TN_OK)
                break;
            perplexity = exp(tn_item(loss));
            if (i % 20 == 19)
                printf("iteration %lld, perplexity %.2f\n", (long long)i + 1, perplexity);
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    tn_free(rows);
    return tn_ok() && perplexity < (double)words / 6 ? 0 : 1; /* three followers: 3 at best */
}
