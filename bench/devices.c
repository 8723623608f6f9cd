/* SPDX-License-Identifier: MIT */
/*
 * Rows about several devices of a kind: a step of the network of examples/parallel_mlp.c, six layers of 2,000 units in
 * two halves, with both halves on one device and with one on each of two. Without a second device there are no rows.
 */
#include "measure.h"

enum { BATCH = 100, BATCHES = 50, UNITS = 2000, IN = 784, OUT = 10 };

typedef struct halves {
    tn_device device[2];
    tn_layer *first[2], *second[2], *all;
    tn_optimizer *optimizer;
    tn_loader *loader;
} halves;

static tn_layer *mlp(int64_t in, int64_t out, tn_device device)
{
    tn_layer *layer = tn_sequential(tn_linear(UNITS / 2, .in = in), tn_relu_layer(),
                                    tn_linear(UNITS / 2, .in = UNITS / 2), tn_relu_layer(),
                                    tn_linear(out, .in = UNITS / 2));
    tn_layer_to(layer, device);
    return layer;
}

static tn_array *forward(const halves *h, const tn_array *x)
{
    const tn_device *on = h->device;
    tn_array *z0 = tn_forward(h->first[0], x), *z1 = tn_forward(h->first[1], tn_to(x, on[1]));
    tn_array *h0 = tn_relu(tn_add(z0, tn_to(z1, on[0]))), *h1 = tn_relu(tn_add(z1, tn_to(z0, on[1])));
    return tn_add(tn_forward(h->second[0], h0), tn_to(tn_forward(h->second[1], h1), on[0]));
}

static void step(void *context, bool last)
{
    halves *h = context;
    tn_batch batch;
    if (!tn_loader_next(h->loader, &batch))
        return;
    TN_SCOPE {
        tn_array *loss = tn_softmax_cross_entropy(forward(h, batch.x), batch.t);
        if (tn_backward(loss) == TN_OK && tn_step(h->optimizer) == TN_OK && last)
            for (int i = 0; i < 2; i++)
                (void)!tn_synchronize(h->device[i]); /* a failure is latched */
    }
}

static void row(const bench *b, const char *name, const char *work, tn_device second)
{
    halves h = {.device = {b->device, second}};
    if (!wanted(b, name))
        return;
    for (int i = 0; i < 2; i++) {
        h.first[i] = mlp(IN, UNITS, h.device[i]);
        h.second[i] = mlp(UNITS, OUT, h.device[i]);
    }
    h.all = tn_sequential(h.first[0], h.first[1], h.second[0], h.second[1]);
    h.optimizer = tn_sgd(h.all, .lr = 0.001);
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(BATCH * BATCHES, IN), .device = tn_cpu());
        tn_array *t = tn_random_integers(0, OUT, TN_SHAPE(BATCH * BATCHES), .device = tn_cpu());
        h.loader = tn_loader_new(tn_dataset_arrays(x, t), .batch = BATCH, .repeat = true, .device = b->device);
    }
    timing t = measure(b, step, &h, 5e-3);
    double half = (double)IN * UNITS / 2 + UNITS / 2 * (UNITS / 2) * 2.0 + UNITS / 2 * (double)UNITS * 2 +
                  UNITS / 2 * (double)OUT;
    report(b, (row_facts){.row = name, .work = work, .operations = 2 * 6.0 * BATCH * half}, t);
    tn_optimizer_free(h.optimizer);
    tn_layer_free(h.all);
    tn_loader_free(h.loader);
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    tn_device second = {b.device.kind, b.device.index + 1};
    tn_seed(1);
    if (!b.list && (b.device.kind == TN_DEVICE_CPU || tn_device_count(b.device.kind) < second.index + 1))
        return 0;
    row(&b, "parallel-mlp-1", "six layers of 2000 units in two halves, batch 100, both on one device", b.device);
    row(&b, "parallel-mlp-2", "six layers of 2000 units in two halves, batch 100, on two devices", second);
    return 0;
}
