/* SPDX-License-Identifier: MIT */
/*
 * Sentences told apart by convolutions over their words (Kim 2014), after Chainer's text_classification: windows of
 * three, four and five words look for phrases, the largest answer of each counts wherever in the sentence it was. The
 * sentences are made up: random words with a phrase of one of four kinds somewhere. text_classification [ITERATIONS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { WORDS = 50, KINDS = 4, PHRASE = 3, LENGTH = 20, ROWS = 64, UNITS = 16, CHANNELS = 16 };

static void write_sentences(int64_t *words, int64_t *kinds)
{
    for (int row = 0; row < ROWS; row++) {
        int at = rand() % (LENGTH - PHRASE + 1);
        kinds[row] = rand() % KINDS;
        for (int i = 0; i < LENGTH; i++)
            words[row * LENGTH + i] = rand() % WORDS;
        for (int i = 0; i < PHRASE; i++) /* the same words in four orders: a bag of them would not tell */
            words[row * LENGTH + at + i] = kinds[row] < 3 ? (kinds[row] + i) % PHRASE : PHRASE - 1 - i;
    }
}

/* Words (ROWS, LENGTH) to scores (ROWS, KINDS). */
static tn_array *scores(tn_layer *net, const tn_array *words, void *user)
{
    (void)user;
    tn_array *x = tn_swapaxes(tn_forward(tn_layer_child(net, "words"), words), 1, 2), *all[3];
    static const char *const names[] = {"three", "four", "five"};
    for (int i = 0; i < 3; i++)
        all[i] = tn_global_max_pool(tn_relu(tn_forward(tn_layer_child(net, names[i]), x)));
    return tn_forward(tn_layer_child(net, "out"), tn_concatenate(TN_ARRAYS(all[0], all[1], all[2]), 1));
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    int64_t words[ROWS * LENGTH], kinds[ROWS];
    double right = 0;
    srand(9);
    tn_layer *net = tn_layer_new("text", scores, NULL, NULL);
    tn_layer_add(net, "words", tn_embedding(WORDS, UNITS));
    tn_layer_add(net, "three", tn_conv1d(CHANNELS, TN_SHAPE(3), .in = UNITS));
    tn_layer_add(net, "four", tn_conv1d(CHANNELS, TN_SHAPE(4), .in = UNITS));
    tn_layer_add(net, "five", tn_conv1d(CHANNELS, TN_SHAPE(5), .in = UNITS));
    tn_layer_add(net, "out", tn_sequential(tn_dropout(0.2), tn_linear(KINDS, .in = 3 * CHANNELS)));
    tn_optimizer *adam = tn_adam(net, .lr = 0.01);
    for (int i = 0; i < iterations && tn_ok(); i++)
        TN_SCOPE {
            write_sentences(words, kinds);
            tn_array *t = tn_from_host(kinds, TN_SHAPE(ROWS), TN_INT64);
            tn_array *y = tn_forward(net, tn_from_host(words, TN_SHAPE(ROWS, LENGTH), TN_INT64));
            tn_array *loss = tn_softmax_cross_entropy(y, t);
            if (tn_backward(loss) != TN_OK || tn_step(adam) != TN_OK)
                break;
            right += (tn_item(tn_accuracy(y, t)) - right) / 20; /* of the last few */
            if (i % 50 == 49)
                printf("iteration %d, loss %.3f, right %.3f\n", i + 1, tn_item(loss), right);
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    return tn_ok() && right > 0.7 ? 0 : 1;
}
