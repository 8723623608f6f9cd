/* SPDX-License-Identifier: MIT */
/*
 * Training steps of convolutional networks through the loop a user writes: forward, loss, backward, update, of numbers
 * of the shapes of MNIST's and CIFAR's pictures. PyTorch's convolutions round their factors to TF32 unless told
 * otherwise; so do these but where float32 is said. The note tells what one step does.
 */
#include "measure.h"

#include <math.h>

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

/* ---- ResNet-18 for CIFAR in bfloat16, with casts by hand: parameters and statistics are of float32 ---- */

enum { STAGES = 4, BLOCKS = 8, CONVOLUTIONS = 20, CLASSES = 10 };

typedef struct narrow {
    int count;
    int64_t step[CONVOLUTIONS];
    tn_array *weights[CONVOLUTIONS], *gamma[CONVOLUTIONS], *beta[CONVOLUTIONS], *last;
} narrow;

static tn_array *normalized(const narrow *n, int k, const tn_array *x)
{
    tn_array *w = tn_cast(n->weights[k], TN_BFLOAT16);
    tn_array *y = tn_conv(x, w, .stride = TN_SHAPE(n->step[k]), .pad = TN_SHAPE(tn_dim(w, 2) / 2));
    return tn_batch_norm_function(y, n->gamma[k], n->beta[k]);
}

static tn_array *narrow_forward(tn_layer *layer, const tn_array *x, void *user)
{
    const narrow *n = user;
    int k = 0;
    (void)layer;
    tn_array *h = tn_relu(normalized(n, k++, tn_cast(x, TN_BFLOAT16)));
    for (int block = 0; block < BLOCKS; block++) {
        bool shrinks = n->step[k] != 1;
        tn_array *y = normalized(n, k + 1, tn_relu(normalized(n, k, h)));
        k += 2;
        h = tn_relu(tn_add(y, shrinks ? normalized(n, k, h) : h));
        k += shrinks;
    }
    h = tn_mean(h, .axis = TN_AXES(2, 3));
    return tn_cast(tn_matmul(h, tn_cast(n->last, TN_BFLOAT16)), TN_FLOAT32);
}

static tn_array *parameter(tn_layer *layer, const char *kind, int k, tn_array *value)
{
    char name[24];
    snprintf(name, sizeof name, "%s%d", kind, k);
    return tn_layer_param(layer, name, value);
}

static void add_convolution(tn_layer *layer, narrow *n, int64_t in, int64_t out, int64_t extent, int64_t step)
{
    int k = n->count++;
    tn_array *w = tn_random_normal(TN_SHAPE(out, in, extent, extent), .device = tn_cpu());
    n->step[k] = step;
    n->weights[k] = parameter(layer, "weights", k, tn_multiply(w, 1 / sqrt((double)(in * extent * extent))));
    n->gamma[k] = parameter(layer, "gamma", k, tn_ones(TN_SHAPE(out), .device = tn_cpu()));
    n->beta[k] = parameter(layer, "beta", k, tn_zeros(TN_SHAPE(out), .device = tn_cpu()));
}

static tn_layer *narrow_resnet18(narrow *n)
{
    tn_layer *layer = tn_layer_new("narrow", narrow_forward, n, NULL);
    int64_t in = 64;
    add_convolution(layer, n, 3, in, 3, 1);
    for (int block = 0; block < BLOCKS; block++) {
        int64_t out = 64 << block * STAGES / BLOCKS, step = out == in ? 1 : 2;
        add_convolution(layer, n, in, out, 3, step);
        add_convolution(layer, n, out, out, 3, 1);
        if (step != 1)
            add_convolution(layer, n, in, out, 1, step);
        in = out;
    }
    n->last = parameter(layer, "last", 0, tn_random_normal(TN_SHAPE(in, CLASSES), .device = tn_cpu()));
    return layer;
}

/* ---- rows ---- */

/* `net` NULL: the network by hand. */
static void run(const bench *b, const char *row, const char *work, const char *net, tn_shape pictures,
                tn_matmul_precision precision)
{
    narrow own = {.count = 0};
    if (!wanted(b, row))
        return;
    tn_set_matmul_precision(precision);
    network n = {.x = tn_own(tn_random_normal(pictures, .device = b->device)),
                 .t = tn_own(tn_random_integers(0, 10, TN_SHAPE(pictures.dim[0]), .device = b->device)),
                 .net = net ? tn_layer_parse(net) : narrow_resnet18(&own)};
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
    if (b.device.kind != TN_DEVICE_CPU) {
        run(&b, "network-resnet18-bf16", "the same in bfloat16, with casts by hand", NULL, TN_SHAPE(count, 3, 32, 32),
            TN_MATMUL_FLOAT32);
        run(&b, "network-resnet50", "a step of ResNet-50, 128 pictures of 224 x 224, momentum", "resnet50",
            TN_SHAPE(count, 3, 224, 224), TN_MATMUL_TF32);
    }
    return tn_ok() ? 0 : 1;
}
