/* SPDX-License-Identifier: MIT */
/*
 * A generative adversarial network of convolutions (Radford, Metz, Chintala 2016), after Chainer's dcgan: a generator
 * makes pictures of noise by transposed convolutions, a discriminator tells them from real ones, and each learns from
 * the other's mistakes. The pictures are made up: bright bars across a dark ground. dcgan [ITERATIONS]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { SIDE = 8, ROWS = 32, NOISE = 8, CHANNELS = 16 };

/* Bars of random brightness at random rows, in [-1, 1]. */
static tn_array *real_pictures(void)
{
    float x[ROWS * SIDE * SIDE];
    for (int n = 0; n < ROWS; n++) {
        int bar = 1 + rand() % (SIDE - 2);
        float bright = 0.5f + 0.4f * (float)rand() / (float)RAND_MAX;
        for (int i = 0; i < SIDE * SIDE; i++)
            x[n * SIDE * SIDE + i] = i / SIDE == bar ? bright : -0.8f;
    }
    return tn_from_host(x, TN_SHAPE(ROWS, 1, SIDE, SIDE), TN_FLOAT32);
}

static tn_array *generated(tn_layer *generator)
{
    return tn_forward(generator, tn_random_uniform(TN_SHAPE(ROWS, NOISE, 1, 1), .low = -1, .high = 1));
}

/* How unlike its neighbours in a row an element is, on the average: bars have 0, noise has much. */
static double roughness(const tn_array *x)
{
    tn_array *step = tn_subtract(tn_slice_axis(x, 3, 1, SIDE, 1), tn_slice_axis(x, 3, 0, SIDE - 1, 1));
    return tn_item(tn_mean(tn_abs(step)));
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 300;
    double rough = 1, bright = 0;
    srand(11);
    tn_seed(11);
    tn_layer *generator = tn_sequential(tn_conv_transpose2d(2 * CHANNELS, TN_SHAPE(2), .in = NOISE), tn_batch_norm(0),
                                        tn_relu_layer(),
                                        tn_conv_transpose2d(CHANNELS, TN_SHAPE(4), .stride = TN_SHAPE(2),
                                                            .pad = TN_SHAPE(1)),
                                        tn_batch_norm(0), tn_relu_layer(),
                                        tn_conv_transpose2d(1, TN_SHAPE(4), .stride = TN_SHAPE(2), .pad = TN_SHAPE(1)),
                                        tn_tanh_layer());
    tn_layer *discriminator = tn_sequential(tn_conv2d(CHANNELS, TN_SHAPE(4), .in = 1, .stride = TN_SHAPE(2),
                                                      .pad = TN_SHAPE(1)),
                                            tn_leaky_relu_layer(0.2),
                                            tn_conv2d(2 * CHANNELS, TN_SHAPE(4), .stride = TN_SHAPE(2),
                                                      .pad = TN_SHAPE(1)),
                                            tn_leaky_relu_layer(0.2), tn_flatten_layer(), tn_linear(1));
    TN_SCOPE tn_forward(discriminator, generated(generator)); /* the sizes are inferred */
    tn_optimizer *of_generator = tn_adam(generator, .lr = 2e-3, .beta1 = 0.5);
    tn_optimizer *of_discriminator = tn_adam(discriminator, .lr = 1e-3, .beta1 = 0.5);
    for (int i = 0; i < iterations && tn_ok(); i++)
        TN_SCOPE {
            tn_array *fake = generated(generator), *y = tn_forward(discriminator, tn_detach(fake));
            tn_array *loss = tn_add(tn_mean(tn_softplus(tn_negative(tn_forward(discriminator, real_pictures())))),
                                    tn_mean(tn_softplus(y)));
            if (tn_backward(loss) != TN_OK || tn_step(of_discriminator) != TN_OK)
                break;
            tn_array *fooled = tn_mean(tn_softplus(tn_negative(tn_forward(discriminator, fake))));
            if (tn_backward(fooled) != TN_OK || tn_step(of_generator) != TN_OK)
                break;
            tn_layer_clear_grads(discriminator);
            if (i % 50 == 49) {
                rough = roughness(tn_detach(fake));
                bright = tn_item(tn_mean(tn_detach(fake)));
                printf("iteration %d, discriminator %.3f, generator %.3f, roughness %.3f, brightness %.3f\n", i + 1,
                       tn_item(loss), tn_item(fooled), rough, bright);
            }
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(of_generator);
    tn_optimizer_free(of_discriminator);
    tn_layer_free(generator);
    tn_layer_free(discriminator);
    return tn_ok() && rough < 0.25 && bright < -0.3 ? 0 : 1; /* real ones: 0 and -0.6 */
}
