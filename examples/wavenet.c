/* SPDX-License-Identifier: MIT */
/*
 * The dilated stack of a WaveNet (van den Oord et al. 2016), after Chainer's wavenet: causal convolutions that lie ever
 * farther apart tell the next of a sound's quantized samples from those before it. The sound is made up: two tones, one
 * of which comes and goes. wavenet [ITERATIONS]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { LEVELS = 32, LENGTH = 128, ROWS = 4, CHANNELS = 16, BLOCKS = 5 };

/* Samples (ROWS, LENGTH + 1) as numbers of levels. */
static tn_array *sound(void)
{
    int64_t level[ROWS * (LENGTH + 1)];
    for (int row = 0; row < ROWS; row++) {
        double phase = rand() % 1000;
        for (int i = 0; i <= LENGTH; i++) {
            double at = phase + i, y = 0.6 * sin(at * 0.2) + 0.35 * sin(at * 0.5) * (sin(at * 0.02) > 0);
            level[row * (LENGTH + 1) + i] = (int64_t)floor((y + 1) / 2 * LEVELS);
        }
    }
    return tn_from_host(level, TN_SHAPE(ROWS, LENGTH + 1), TN_INT64);
}

/* tanh of one half of the channels times sigmoid of the other one, through 1 x 1, added to x and to *skip. */
static tn_array *block(tn_layer *net, int i, tn_array *x, tn_array **skip)
{
    char name[16];
    snprintf(name, sizeof name, "dilated%d", i);
    const int64_t before[3][2] = {[2] = {1 << i, 0}};
    tn_array *y = tn_forward(tn_layer_child(net, name), tn_pad(x, before));
    tn_array *a = tn_slice_axis(y, 1, 0, CHANNELS, 1), *b = tn_slice_axis(y, 1, CHANNELS, 2 * CHANNELS, 1);
    snprintf(name, sizeof name, "mixed%d", i);
    y = tn_forward(tn_layer_child(net, name), tn_multiply(tn_tanh(a), tn_sigmoid(b)));
    *skip = *skip ? tn_add(*skip, y) : y;
    return tn_add(x, y);
}

static tn_array *scores(tn_layer *net, const tn_array *levels, void *user)
{
    (void)user;
    tn_array *x = tn_swapaxes(tn_forward(tn_layer_child(net, "in"), levels), 1, 2), *skip = NULL;
    for (int i = 0; i < BLOCKS; i++)
        x = block(net, i, x, &skip);
    return tn_forward(tn_layer_child(net, "out"), tn_relu(skip));
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    double last = 0;
    srand(6);
    tn_layer *net = tn_layer_new("wavenet", scores, NULL, NULL);
    tn_layer_add(net, "in", tn_embedding(LEVELS, CHANNELS));
    for (int i = 0; i < BLOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "dilated%d", i);
        tn_layer_add(net, name, tn_conv1d(2 * CHANNELS, TN_SHAPE(2), .dilation = TN_SHAPE(1 << i)));
        snprintf(name, sizeof name, "mixed%d", i);
        tn_layer_add(net, name, tn_conv1d(CHANNELS, TN_SHAPE(1)));
    }
    tn_layer_add(net, "out", tn_conv1d(LEVELS, TN_SHAPE(1)));
    TN_SCOPE tn_forward(net, tn_zeros(TN_SHAPE(1, LENGTH), .dtype = TN_INT64)); /* the sizes are inferred */
    tn_optimizer *adam = tn_adam(net, .lr = 0.01);
    for (int i = 0; i < iterations && tn_ok(); i++)
        TN_SCOPE {
            tn_array *all = sound(), *t = tn_slice_axis(all, 1, 1, LENGTH + 1, 1);
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, tn_slice_axis(all, 1, 0, LENGTH, 1)), t);
            if (tn_backward(loss) != TN_OK || tn_step(adam) != TN_OK)
                break;
            last = tn_item(loss);
            if (i % 20 == 19)
                printf("iteration %d, loss %.3f\n", i + 1, last);
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    return tn_ok() && last < log(LEVELS) / 2 ? 0 : 1; /* evenly guessed: log LEVELS */
}
