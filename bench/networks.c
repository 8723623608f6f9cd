/* SPDX-License-Identifier: MIT */
/*
 * Plans of real networks: recurrences composed of primitives, whose steps are slices of an array, use the same weights,
 * and are joined; gradients added up over minibatches; caches that each layer of a deep network writes into. The note
 * of a row tells the operations and the memory of what it does once.
 */
#include "measure.h"

enum { WIDTH = 128, BATCH = 16, STEPS = 64, LAYERS = 24, CONTEXT = 32 };

typedef struct network {
    tn_array *x, *w, *u, *cache[LAYERS];
    int count, token;
} network;

static tn_array *filled(const bench *b, tn_shape shape, double value, bool weight)
{
    tn_array *x = tn_own(tn_full(shape, value, .device = b->device));
    if (tn_eval(x) == TN_OK && weight)
        tn_requires_grad(x);
    return x;
}

/* An LSTM's cell without its biases. */
static void cell(const network *n, const tn_array *x, tn_array **h, tn_array **c)
{
    tn_array *gates = tn_add(tn_matmul(x, n->w), tn_matmul(*h, n->u)), *part[4];
    if (tn_split(gates, 4, 1, part) != TN_OK)
        return;
    *c = tn_add(tn_multiply(*c, tn_sigmoid(part[1])), tn_multiply(tn_sigmoid(part[0]), tn_tanh(part[2])));
    *h = tn_multiply(tn_sigmoid(part[3]), tn_tanh(*c));
}

/* All steps of a sequence, and backward through them. */
static void recur(void *context, bool last)
{
    (void)last;
    network *n = context;
    TN_SCOPE {
        tn_array *all[STEPS], *h = tn_zeros(TN_SHAPE(BATCH, WIDTH), .device = tn_device_of(n->x)), *c = h;
        for (int t = 0; t < STEPS; t++) {
            cell(n, tn_index(n->x, t), &h, &c);
            all[t] = h;
        }
        tn_array *loss = tn_mean(tn_square(tn_stack(STEPS, (const tn_array *const *)all, 0)));
        if (tn_backward(loss) != TN_OK ||
            tn_eval_all(4, (const tn_array *[]){loss, tn_grad(n->x), tn_grad(n->w), tn_grad(n->u)}) != TN_OK)
            return;
    }
    tn_clear_grad(n->x);
    tn_clear_grad(n->w);
    tn_clear_grad(n->u);
}

/* Gradients of several minibatches, and the losses' sum. */
static void add_up(void *context, bool last)
{
    (void)last;
    network *n = context;
    TN_SCOPE {
        tn_array *sum = tn_zeros(TN_SHAPE(1), .device = tn_device_of(n->x));
        for (int i = 0; i < n->count; i++) TN_SCOPE {
            tn_array *h = tn_reshape(n->x, TN_SHAPE(STEPS * BATCH, WIDTH));
            for (int k = 0; k < 8; k++)
                h = tn_tanh(tn_matmul(h, n->w));
            tn_array *loss = tn_mean(tn_square(h));
            if (tn_backward(loss) != TN_OK)
                return;
            sum = tn_keep(tn_add(sum, loss));
        }
        if (tn_eval_all(2, (const tn_array *[]){tn_grad(n->w), sum}) != TN_OK)
            return;
    }
    tn_clear_grad(n->w);
}

/* A token through layers with caches, each behind the last one. */
static void generate(void *context, bool last)
{
    (void)last;
    network *n = context;
    int at = n->token++ % CONTEXT;
    TN_SCOPE {
        tn_array *h = tn_full(TN_SHAPE(1, WIDTH), 0.1, .device = tn_device_of(n->x));
        for (int k = 0; k < LAYERS; k++) {
            tn_array *key = tn_tanh(tn_matmul(h, n->w));
            tn_slice_range row = {at, at + 1, 1};
            if (tn_assign(n->cache[k], tn_slice_update(n->cache[k], 1, &row, key)) != TN_OK)
                return;
            tn_array *weights = tn_softmax(tn_matmul(key, tn_transpose(n->cache[k], TN_AXES(1, 0))), 1);
            h = tn_add(tn_multiply(h, 0.5), tn_matmul(weights, n->cache[k]));
        }
        if (tn_eval(h) != TN_OK)
            return;
    }
}

static void run(const bench *b, const char *row, const char *work, work_fn once, network *n)
{
    if (!wanted(b, row))
        return;
    timing t = measure(b, once, n, 1e-3);
    tn_engine_counters before = tn_engine_stats();
    size_t used = tn_memory_stats(b->device).used;
    tn_memory_reset_peak(b->device);
    once(n, true);
    char note[120];
    snprintf(note, sizeof note, "%llu kernels and calls, %llu evaluations, %.1f MB",
             (unsigned long long)(tn_engine_stats().kernels - before.kernels),
             (unsigned long long)(tn_engine_stats().evaluations - before.evaluations),
             (double)(tn_memory_stats(b->device).peak - used) / 1e6);
    report(b, (row_facts){.row = row, .work = work, .note = note}, t);
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    network n = {.x = filled(&b, TN_SHAPE(STEPS, BATCH, WIDTH), 0.1, true),
                 .w = filled(&b, TN_SHAPE(WIDTH, 4 * WIDTH), 0.01, true),
                 .u = filled(&b, TN_SHAPE(WIDTH, 4 * WIDTH), 0.02, true)};
    run(&b, "network-lstm", "an LSTM of primitives, 64 steps of 16 x 128, with the gradient by its input", recur, &n);
    network square = {.x = filled(&b, TN_SHAPE(STEPS, BATCH, WIDTH), 0.1, false),
                      .w = filled(&b, TN_SHAPE(WIDTH, WIDTH), 0.01, true),
                      .count = 1};
    for (int k = 0; k < LAYERS; k++)
        square.cache[k] = filled(&b, TN_SHAPE(CONTEXT, WIDTH), 0.1, false);
    run(&b, "network-batch", "one minibatch of 8 layers, 1024 x 128", add_up, &square);
    square.count = 8;
    run(&b, "network-batches-8", "the gradients of 8 minibatches added up", add_up, &square);
    run(&b, "network-caches", "a token through 24 layers, each with a cache", generate, &square);
    return tn_ok() ? 0 : 1;
}
