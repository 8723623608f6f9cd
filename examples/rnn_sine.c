/* SPDX-License-Identifier: MIT */
/*
 * A recurrent network learns to tell the next point of a sine with noise from those before it, one point at a time, by
 * truncated backpropagation: after DeZero's step 59 and, with a second argument, its step 60, an LSTM.
 * rnn_sine [EPOCHS [lstm]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { POINTS = 300, BPTT = 30 };

/* One pass over the curve; the mean loss. The state goes on from stretch to stretch, the gradient does not. */
static double epoch(tn_layer *net, tn_optimizer *adam, const float *curve)
{
    double sum = 0;
    tn_layer_reset_state(net);
    for (int start = 0; start + BPTT < POINTS; start += BPTT)
        TN_SCOPE {
            tn_array *loss = tn_scalar(0);
            for (int i = start; i < start + BPTT; i++) {
                tn_array *x = tn_full(TN_SHAPE(1, 1), curve[i]), *t = tn_full(TN_SHAPE(1, 1), curve[i + 1]);
                loss = tn_add(loss, tn_mean_squared_error(tn_forward(net, x), t));
            }
            if (tn_backward(loss) != TN_OK || tn_step(adam) != TN_OK || tn_layer_detach_state(net) != TN_OK)
                return NAN;
            sum += tn_item(loss);
        }
    return sum / (POINTS - BPTT);
}

int main(int argc, char **argv)
{
    int epochs = argc > 1 ? atoi(argv[1]) : 100;
    float curve[POINTS];
    srand(7);
    for (int i = 0; i < POINTS; i++)
        curve[i] = (float)(sin(4 * M_PI * i / POINTS) + 0.1 * ((double)rand() / RAND_MAX - 0.5));
    tn_layer *net = tn_sequential(tn_rnn_step(argc > 2 ? TN_RNN_LSTM : TN_RNN_TANH, 32), tn_linear(1));
    tn_optimizer *adam = NULL;
    TN_SCOPE tn_forward(net, tn_zeros(TN_SHAPE(1, 1))); /* the sizes are inferred */
    adam = tn_adam(net);
    double first = epoch(net, adam, curve), last = first;
    for (int i = 1; i < epochs; i++) {
        last = epoch(net, adam, curve);
        if (i % 10 == 9)
            printf("epoch %d | loss %f\n", i + 1, last);
    }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    return tn_ok() && last < first / 2 ? 0 : 1;
}
