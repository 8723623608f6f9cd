/* SPDX-License-Identifier: MIT */
/*
 * A language model of characters: an LSTM reads a text, made up here, and then writes one of its own. Many places of
 * the text are read at once, a stretch at a time; the state goes on from stretch to stretch and the gradient does not
 * (truncated backpropagation through time). char_lstm [STRETCHES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso.h>

enum { LENGTH = 1 << 14, ROWS = 16, STEPS = 24, UNITS = 64 };
static const char letters[] = " abcdefghijklmnopqrstuvwxyz.";
enum { LETTERS = sizeof letters - 1 };

/* "the cat sees a dog. a bird hears the mouse. ..." as numbers of letters. */
static void write_text(int64_t *text)
{
    static const char *const words[3][4] = {
        {"the ", "a ", "one ", "that "}, {"cat", "dog", "bird", "mouse"}, {" sees ", " hears ", " likes ", " finds "}};
    static const int order[] = {0, 1, 2, 0, 1};
    char line[64];
    int at = LENGTH;
    for (int i = 0; i < LENGTH; i++) {
        if (at >= (int)strlen(line) || i == 0) {
            line[0] = 0;
            for (int k = 0; k < 5; k++)
                strcat(line, words[order[k]][rand() % 4]);
            strcat(line, ". ");
            at = 0;
        }
        text[i] = strchr(letters, line[at++]) - letters;
    }
}

/* Characters (STEPS + 1, ROWS) from `start` on of each of the rows that the text is cut into. */
static tn_array *stretch(const int64_t *text, int start)
{
    int64_t part[(STEPS + 1) * ROWS];
    for (int i = 0; i <= STEPS; i++) {
        for (int row = 0; row < ROWS; row++)
            part[i * ROWS + row] = text[(row * (LENGTH / ROWS) + start + i) % LENGTH];
    }
    return tn_from_host(part, TN_SHAPE(STEPS + 1, ROWS), TN_INT64);
}

static double learn(tn_layer *net, tn_optimizer *adam, const int64_t *text, int start)
{
    double loss_now = 0;
    TN_SCOPE {
        tn_array *all = stretch(text, start);
        tn_array *x = tn_slice_axis(all, 0, 0, STEPS, 1), *t = tn_slice_axis(all, 0, 1, STEPS + 1, 1);
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, x), t, .axis = -1);
        if (tn_backward(loss) == TN_OK && tn_step(adam) == TN_OK && tn_layer_detach_state(net) == TN_OK)
            loss_now = tn_item(loss);
    }
    return loss_now;
}

/* Each character is drawn by the chances that the network gives it after those before. */
static void write_some(tn_layer *net, int count)
{
    int64_t letter = 0;
    tn_layer_train(net, false);
    tn_layer_reset_state(net);
    TN_NO_GRAD {
        for (int i = 0; i < count && tn_ok(); i++)
            TN_SCOPE {
                tn_array *y = tn_forward(net, tn_full(TN_SHAPE(1, 1), (double)letter, .dtype = TN_INT64));
                letter = (int64_t)tn_item(tn_sample(tn_dist_categorical(y), TN_FIT, NULL));
                putchar(letters[letter]);
            }
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    int stretches = argc > 1 ? atoi(argv[1]) : 400;
    static int64_t text[LENGTH];
    srand(3);
    write_text(text);
    tn_layer *net = tn_sequential(tn_embedding(LETTERS, 16), tn_lstm(UNITS, .in = 16, .stateful = true),
                                  tn_linear(LETTERS, .in = UNITS));
    tn_optimizer *adam = tn_adam(net, .lr = 0.01);
    double first = 0, last = 0;
    for (int i = 0; i < stretches && tn_ok(); i++) {
        last = learn(net, adam, text, i * STEPS);
        first = i == 0 ? last : first;
        if (i % 50 == 49)
            printf("%d: loss %.3f\n", i + 1, last);
    }
    write_some(net, 80);
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    return tn_ok() && last < first / 2 ? 0 : 1;
}
