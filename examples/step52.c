/* SPDX-License-Identifier: MIT */
/*
 * Step 52 of the book "Deep Learning from Scratch 3": MNIST, an MLP of 784, 1000 and 10 units with a sigmoid, weights
 * drawn from N(0, 1/in), minibatches of 100, plain SGD. The book's program prints the losses below; this one sees that
 * it comes within 0.03 of them.
 *
 *     step52 [SEED]        exit status 77: MNIST is not here
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <tanso.h>

static const double expected[] = {1.92, 1.29, 0.93, 0.74, 0.63};
enum { EPOCHS = sizeof expected / sizeof *expected };
#define TOLERANCE 0.03

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double train_epoch(tn_layer *net, tn_optimizer *optimizer, tn_loader *batches, tn_meter *mean)
{
    for (tn_batch b; tn_loader_next(batches, &b);)
        TN_SCOPE {
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, b.x), b.t);
            tn_backward(loss);
            tn_step(optimizer);
            tn_meter_add(mean, loss, (double)b.size);
        }
    return tn_meter_take(mean);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    tn_device device = tn_device_best();
    tn_dataset *mnist = tn_mnist(TN_TRAIN);
    if (tn_dataset_status(mnist) != TN_OK) {
        fprintf(stderr, "step52 needs MNIST: %s\n", tn_error());
        tn_dataset_free(mnist);
        return 77;
    }
    tn_seed(seed);
    tn_init weight = {.kind = TN_INIT_LECUN_NORMAL};
    tn_layer *net =
        tn_sequential(tn_linear(1000, .weight = weight), tn_sigmoid_layer(), tn_linear(10, .weight = weight));
    tn_layer_to(net, device);
    tn_optimizer *optimizer = tn_sgd(net, .lr = 0.01);
    tn_loader *batches = tn_loader_new(mnist, .batch = 100, .shuffle = true, .seed = seed, .device = device);
    tn_meter *mean = tn_meter_new(device);

    bool near = true;
    for (int epoch = 0; epoch < EPOCHS && tn_ok(); epoch++) {
        double began = seconds(), loss = train_epoch(net, optimizer, batches, mean);
        printf("epoch: %d, loss: %.4f, time: %.4f[sec]\n", epoch + 1, loss, seconds() - began);
        near = near && fabs(loss - expected[epoch]) <= TOLERANCE;
    }
    tn_meter_free(mean);
    tn_loader_free(batches);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    else if (!near)
        fprintf(stderr, "the losses are not within %g of the book's: 1.92, 1.29, 0.93, 0.74, 0.63\n", TOLERANCE);
    return tn_ok() && near ? 0 : 1;
}
