/* SPDX-License-Identifier: MIT */
/*
 * Rows about several processes, each with a device of the kind that --device names: tanso launch -n 2 bench/ranks
 * --device cuda:0. Sums over the ranks of 16 KiB to 256 MiB, and steps whose gradients become means: of a perceptron at
 * a batch of 100 a rank, of a transformer's block at 16 x 512 x 768 a rank. Alone there are the steps; rank 0 reports.
 * "beside": in smaller parts than usual, of which each travels beside the computation of the next.
 */
#include <math.h>

#include "measure.h"

enum { BATCH = 100, BATCHES = 50, REPETITIONS = 20, IN = 784, UNITS = 1000, OUT = 10 };
enum { TEXTS = 16, TIME = 512, WIDTH = 768, HEADS = 12 };

typedef struct ranks {
    const bench *b;
    tn_comm *comm;
    int rank, size;
    tn_device device;
} ranks;

/* As many calls on every rank, whatever they take. */
static timing timed(const ranks *r, work_fn work, void *context, int calls)
{
    double seconds[REPETITIONS];
    for (int i = -2; i < REPETITIONS; i++) {
        if (tn_comm_barrier(r->comm) != TN_OK)
            break;
        double begin = now();
        for (int k = 0; k < calls; k++)
            work(context, k == calls - 1);
        if (i >= 0)
            seconds[i] = (now() - begin) / calls;
    }
    return timing_of(seconds, REPETITIONS);
}

static void tell(const ranks *r, row_facts facts, timing t)
{
    if (r->rank == 0 && tn_ok())
        report(r->b, facts, t);
}

/* ---- sums ---- */

typedef struct sum {
    const ranks *r;
    tn_array *x;
} sum;

static void sum_once(void *context, bool last)
{
    const sum *s = context;
    TN_SCOPE {
        tn_array *all = tn_comm_all_reduce(s->r->comm, s->x, TN_COMM_SUM);
        if (tn_eval(all) == TN_OK && last)
            (void)!tn_synchronize(s->r->device); /* a failure is latched */
    }
}

static void sums(const ranks *r, int64_t kib)
{
    char name[64], work[64];
    snprintf(name, sizeof name, "all-reduce-%lldk-%d", (long long)kib, r->size);
    snprintf(work, sizeof work, "sum of %lld KiB of float32 over %d ranks", (long long)kib, r->size);
    if (!wanted(r->b, name))
        return;
    TN_SCOPE {
        sum s = {r, tn_ones(TN_SHAPE(kib * 256), .device = r->device)};
        settle(s.x);
        tell(r, (row_facts){.row = name, .work = work, .bytes = (double)kib * 1024},
             timed(r, sum_once, &s, kib < 65536 ? 20 : 4));
    }
}

/* ---- a step ---- */

typedef struct training {
    const ranks *r;
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *loader;
} training;

static void step(void *context, bool last)
{
    training *t = context;
    tn_batch batch;
    if (!tn_loader_next(t->loader, &batch))
        return;
    TN_SCOPE {
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(t->net, batch.x), batch.t);
        if (tn_backward(loss) == TN_OK && tn_step(t->optimizer) == TN_OK && last)
            (void)!tn_synchronize(t->r->device);
    }
}

/* bucket: as in tn_optimizer_distribute. */
static void steps(const ranks *r, const char *row, int64_t bucket)
{
    char name[64], work[96];
    snprintf(name, sizeof name, "%s-%d", row, r->size);
    snprintf(work, sizeof work, "784-1000-1000-10, batch 100 a rank, momentum, %d ranks", r->size);
    if (!wanted(r->b, name))
        return;
    training t = {.r = r};
    t.net = tn_sequential(tn_linear(UNITS, .in = IN), tn_relu_layer(), tn_linear(UNITS, .in = UNITS), tn_relu_layer(),
                          tn_linear(OUT, .in = UNITS));
    tn_layer_to(t.net, r->device);
    t.optimizer = tn_momentum_sgd(t.net, .lr = 0.001);
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(BATCH * BATCHES, IN), .device = tn_cpu());
        tn_array *labels = tn_random_integers(0, OUT, TN_SHAPE(BATCH * BATCHES), .device = tn_cpu());
        t.loader = tn_loader_new(tn_dataset_arrays(x, labels), .batch = BATCH, .repeat = true, .device = r->device);
    }
    if (tn_optimizer_distribute(t.optimizer, r->comm, .bucket = bucket) == TN_OK)
        tell(r, (row_facts){.row = name, .work = work}, timed(r, step, &t, 100));
    tn_optimizer_free(t.optimizer);
    tn_layer_free(t.net);
    tn_loader_free(t.loader);
}

/* ---- a step of a transformer's block, as bench/steps.c has it ---- */

enum { NORM1, QUERY, KEY, VALUE, MIX, NORM2, UP, DOWN, LAYERS };

typedef struct blocks {
    const ranks *r;
    tn_layer *layer[LAYERS];
    tn_optimizer *optimizer;
    tn_array *x;
} blocks;

static tn_array *heads_of(tn_array *x)
{
    return tn_swapaxes(tn_reshape(x, TN_SHAPE(TEXTS, TIME, HEADS, WIDTH / HEADS)), 1, 2);
}

static tn_array *block_loss(const blocks *b)
{
    tn_layer *const *l = b->layer;
    tn_array *h = tn_forward(l[NORM1], b->x);
    tn_array *q = heads_of(tn_forward(l[QUERY], h)), *k = heads_of(tn_forward(l[KEY], h)),
             *v = heads_of(tn_forward(l[VALUE], h));
    tn_array *weights = tn_softmax(tn_multiply(tn_matmul(q, tn_swapaxes(k, 2, 3)), 1 / sqrt(WIDTH / HEADS)), -1);
    tn_array *mixed = tn_reshape(tn_swapaxes(tn_matmul(weights, v), 1, 2), TN_SHAPE(TEXTS, TIME, WIDTH));
    tn_array *y = tn_add(b->x, tn_forward(l[MIX], mixed));
    tn_array *wide = tn_gelu(tn_forward(l[UP], tn_forward(l[NORM2], y)));
    return tn_mean(tn_square(tn_add(y, tn_forward(l[DOWN], wide))));
}

static void block_step(void *context, bool last)
{
    blocks *b = context;
    TN_SCOPE
        if (tn_backward(block_loss(b)) == TN_OK && tn_step(b->optimizer) == TN_OK && last)
            (void)!tn_synchronize(b->r->device);
}

static void block(const ranks *r, const char *row, int64_t bucket)
{
    char name[64], work[96];
    snprintf(name, sizeof name, "%s-%d", row, r->size);
    snprintf(work, sizeof work, "a transformer's block, 16 x 512 x 768 a rank, Adam, %d ranks", r->size);
    if (!wanted(r->b, name))
        return;
    blocks b = {.r = r};
    for (int i = 0; i < LAYERS; i++)
        b.layer[i] = i == NORM1 || i == NORM2 ? tn_layer_norm(WIDTH, 1e-5)
                                              : tn_linear(i == UP ? 4 * WIDTH : WIDTH,
                                                          .in = i == DOWN ? 4 * WIDTH : WIDTH);
    tn_layer *all = tn_sequential_of(LAYERS, b.layer);
    tn_layer_to(all, r->device);
    b.optimizer = tn_adam(all, .lr = 0.001);
    TN_SCOPE {
        b.x = tn_random_normal(TN_SHAPE(TEXTS, TIME, WIDTH), .device = r->device);
        settle(b.x);
        if (tn_optimizer_distribute(b.optimizer, r->comm, .bucket = bucket) == TN_OK)
            tell(r, (row_facts){.row = name, .work = work}, timed(r, block_step, &b, 10));
    }
    tn_optimizer_free(b.optimizer);
    tn_layer_free(all);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {16, 256, 1024, 16384, 262144};
    bench b = bench_flags(argc, argv);
    ranks r = {.b = &b, .comm = tn_comm_world(), .device = b.device};
    r.rank = tn_comm_rank(r.comm);
    r.size = tn_comm_size(r.comm);
    if (b.device.kind == TN_DEVICE_CUDA)
        r.device.index = tn_comm_local_rank(r.comm);
    tn_seed(1);
    if (tn_comm_status(r.comm) != TN_OK || tn_set_device(r.device) != TN_OK)
        return 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && r.size > 1; i++)
        sums(&r, sizes[i]);
    bool several = r.size > 1;
    steps(&r, "mlp-ranks", 0);
    if (several)
        steps(&r, "mlp-beside", (int64_t)1 << 21);
    if (r.device.kind != TN_DEVICE_CPU) /* as bench/steps.c has it */
        block(&r, "block-ranks", 0);
    if (r.device.kind != TN_DEVICE_CPU && several)
        block(&r, "block-beside", (int64_t)8 << 20);
    return tn_ok() ? 0 : 1;
}
