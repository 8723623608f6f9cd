/* SPDX-License-Identifier: MIT */
/*
 * Training steps of convolutional networks through the loop a user writes: forward, loss, backward, update, of numbers
 * of the shapes of MNIST's and CIFAR's pictures. PyTorch's convolutions round their factors to TF32 unless told
 * otherwise; so do these but where float32 is said. The note tells what one step does.
 */
#include "measure.h"

typedef struct network {
    tn_array *x, *t; /* pictures and their classes */
    tn_layer *net;
    tn_optimizer *optimizer;
} network;

static void train(void *context, bool last)
{
    network *n = context;
    TN_SCOPE {
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(n->net, n->x), n->t);
        if (tn_backward(loss) == TN_OK && tn_step(n->optimizer) == TN_OK && last)
            (void)!tn_synchronize(tn_device_of(n->x)); /* a failure is latched */
    }
}

static void time_step(const bench *b, const char *row, const char *work, network *n)
{
    timing t = measure(b, train, n, 1e-3);
    tn_engine_counters before = tn_engine_stats();
    size_t used = tn_memory_stats(b->device).used;
    char note[120];
    tn_memory_reset_peak(b->device);
    train(n, true);
    snprintf(note, sizeof note, "%llu kernels and calls, %llu evaluations, %.1f MB",
             (unsigned long long)(tn_engine_stats().kernels - before.kernels),
             (unsigned long long)(tn_engine_stats().evaluations - before.evaluations),
             (double)(tn_memory_stats(b->device).peak - used) / 1e6);
    report(b, (row_facts){.row = row, .work = work, .note = note}, t);
}

static void run(const bench *b, const char *row, const char *work, const char *net, tn_shape pictures,
                tn_matmul_precision precision)
{
    if (!wanted(b, row))
        return;
    tn_set_matmul_precision(precision);
    network n = {.x = tn_own(tn_random_normal(pictures, .device = b->device)),
                 .t = tn_own(tn_random_integers(0, 10, TN_SHAPE(pictures.dim[0]), .device = b->device)),
                 .net = tn_layer_parse(net)};
    tn_layer_to(n.net, b->device);
    n.optimizer = tn_momentum_sgd(n.net, .lr = 0.01);
    if (tn_eval(n.x) == TN_OK && tn_eval(n.t) == TN_OK)
        time_step(b, row, work, &n);
    tn_optimizer_free(n.optimizer);
    tn_layer_free(n.net);
    tn_free(n.x);
    tn_free(n.t);
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    int64_t count = b.device.kind == TN_DEVICE_CPU ? 16 : 128;
    run(&b, "network-lenet", "a step of LeNet, 64 pictures of 28 x 28, momentum", "lenet5", TN_SHAPE(64, 1, 28, 28),
        TN_MATMUL_TF32);
    run(&b, "network-resnet18", "a step of ResNet-18, 128 (CPU: 16) pictures of 32 x 32, momentum",
        "resnet18:10,stem=cifar", TN_SHAPE(count, 3, 32, 32), TN_MATMUL_TF32);
    run(&b, "network-resnet18-float32", "the same in float32", "resnet18:10,stem=cifar", TN_SHAPE(count, 3, 32, 32),
        TN_MATMUL_FLOAT32);
    return tn_ok() ? 0 : 1;
}
