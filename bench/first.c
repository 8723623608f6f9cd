/* SPDX-License-Identifier: MIT */
/*
 * Rows about the pause before a network's first steps: the time of the first three, with no kernel in the cache, and in
 * a second process, which finds them there. Each is measured in a process of its own, with a cache of its own.
 */
#include <ftw.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { MOST_LAYERS = 3 + 8 * 64 };

typedef struct net {
    tn_layer *layer[MOST_LAYERS];
    int count;
    tn_layer *all; /* owns them */
    tn_array *x, *t;
    tn_array *(*loss)(const struct net *n);
    int64_t layers, batch, time, width, heads, classes;
    bool large;  /* too much for a CPU */
    bool halves; /* one half is on the next device */
} net;

typedef struct first_row {
    const char *row, *work;
    void (*make)(net *n);
    net with;
} first_row;

static tn_array *given(tn_array *x)
{
    (void)!tn_eval(x); /* a failure is latched, and the row says so */
    return tn_own(x);
}

/* ---- a GPT: a table of tokens, blocks normalized first, scores of all tokens ---- */

enum { NORM1, QUERY, KEY, VALUE, OUT, NORM2, UP, DOWN, IN_BLOCK };

static void make_gpt(net *n)
{
    n->layer[n->count++] = tn_embedding(n->classes, n->width);
    for (int64_t k = 0; k < n->layers; k++)
        for (int i = NORM1; i < IN_BLOCK; i++)
            n->layer[n->count++] = i == NORM1 || i == NORM2 ? tn_layer_norm(n->width, 1e-5)
                                                            : tn_linear(i == UP ? 4 * n->width : n->width);
    n->layer[n->count++] = tn_layer_norm(n->width, 1e-5);
    n->layer[n->count++] = tn_linear(n->classes, .no_bias = true);
    n->x = given(tn_random_integers(0, n->classes, TN_SHAPE(n->batch, n->time)));
    n->t = given(tn_random_integers(0, n->classes, TN_SHAPE(n->batch * n->time)));
}

static tn_array *heads_of(const net *n, tn_array *x)
{
    return tn_swapaxes(tn_reshape(x, TN_SHAPE(n->batch, n->time, n->heads, n->width / n->heads)), 1, 2);
}

static tn_array *gpt_block(const net *n, tn_layer *const *l, tn_array *x)
{
    tn_array *h = tn_forward(l[NORM1], x);
    tn_array *q = heads_of(n, tn_forward(l[QUERY], h)), *k = heads_of(n, tn_forward(l[KEY], h)),
             *v = heads_of(n, tn_forward(l[VALUE], h));
    tn_array *mixed = tn_scaled_dot_product_attention(q, k, v, .causal = true);
    mixed = tn_reshape(tn_swapaxes(mixed, 1, 2), TN_SHAPE(n->batch, n->time, n->width));
    tn_array *y = tn_add(x, tn_forward(l[OUT], mixed));
    return tn_add(y, tn_forward(l[DOWN], tn_gelu(tn_forward(l[UP], tn_forward(l[NORM2], y)))));
}

static tn_array *gpt(const net *n)
{
    tn_array *x = tn_forward(n->layer[0], n->x);
    for (int64_t k = 0; k < n->layers; k++)
        x = gpt_block(n, n->layer + 1 + k * IN_BLOCK, x);
    x = tn_forward(n->layer[n->count - 1], tn_forward(n->layer[n->count - 2], x));
    return tn_softmax_cross_entropy(tn_reshape(x, TN_SHAPE(n->batch * n->time, n->classes)), n->t);
}

/* ---- equal layers ---- */

static void make_stack(net *n)
{
    for (int64_t k = 0; k < n->layers; k++) {
        n->layer[n->count++] = tn_linear(n->width);
        n->layer[n->count++] = tn_relu_layer();
    }
    n->layer[n->count++] = tn_linear(n->classes);
    n->x = given(tn_random_normal(TN_SHAPE(n->batch, n->width)));
    n->t = given(tn_random_integers(0, n->classes, TN_SHAPE(n->batch)));
}

static tn_array *chained(const net *n)
{
    tn_array *x = n->x;
    for (int i = 0; i < n->count; i++)
        x = tn_forward(n->layer[i], x);
    return x;
}

static tn_array *stack(const net *n) { return tn_softmax_cross_entropy(chained(n), n->t); }

/* ---- an LSTM, layer upon layer ---- */

static void make_lstm(net *n)
{
    n->layer[n->count++] = tn_embedding(n->classes, n->width);
    n->layer[n->count++] = tn_lstm(n->width, .layers = (int)n->layers);
    n->layer[n->count++] = tn_linear(n->classes);
    n->x = given(tn_random_integers(0, n->classes, TN_SHAPE(n->time, n->batch)));
    n->t = given(tn_random_integers(0, n->classes, TN_SHAPE(n->time * n->batch)));
}

static tn_array *lstm(const net *n)
{
    return tn_softmax_cross_entropy(tn_reshape(chained(n), TN_SHAPE(n->time * n->batch, n->classes)),
                                    n->t);
}

/* ---- LeNet, by the library's layers and from primitives ---- */

static void make_lenet(net *n)
{
    n->layer[n->count++] = tn_lenet5(n->classes);
    n->x = given(tn_random_normal(TN_SHAPE(n->batch, 1, 28, 28)));
    n->t = given(tn_random_integers(0, n->classes, TN_SHAPE(n->batch)));
}

static tn_array *convolved(tn_layer *weights, tn_array *x)
{
    enum { WINDOW = 5 };
    tn_array *windows = tn_sliding_window_view(x, TN_SHAPE(WINDOW, WINDOW), TN_AXES(2, 3));
    int64_t batch = tn_dim(x, 0), depth = tn_dim(x, 1), rows = tn_dim(windows, 2), columns = tn_dim(windows, 3);
    windows = tn_reshape(tn_transpose(windows, TN_AXES(0, 2, 3, 1, 4, 5)),
                         TN_SHAPE(batch * rows * columns, depth * WINDOW * WINDOW));
    tn_array *y = tn_reshape(tn_forward(weights, windows), TN_SHAPE(batch, rows, columns, -1));
    return tn_transpose(y, TN_AXES(0, 3, 1, 2));
}

static tn_array *pooled(tn_array *x)
{
    int64_t rows = tn_dim(x, 2) / 2, columns = tn_dim(x, 3) / 2;
    x = tn_reshape(x, TN_SHAPE(tn_dim(x, 0), tn_dim(x, 1), rows, 2, columns, 2));
    return tn_max(x, .axis = TN_AXES(3, 5));
}

static void make_primitive_lenet(net *n)
{
    static const int64_t units[] = {20, 50, 500};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        n->layer[n->count++] = tn_linear(units[i]);
    n->layer[n->count++] = tn_linear(n->classes);
    n->x = given(tn_random_normal(TN_SHAPE(n->batch, 1, 28, 28)));
    n->t = given(tn_random_integers(0, n->classes, TN_SHAPE(n->batch)));
}

static tn_array *primitive_lenet(const net *n)
{
    tn_array *x = pooled(convolved(n->layer[0], n->x));
    x = tn_reshape(pooled(convolved(n->layer[1], x)), TN_SHAPE(n->batch, -1));
    x = tn_forward(n->layer[3], tn_relu(tn_forward(n->layer[2], x)));
    return tn_softmax_cross_entropy(x, n->t);
}

/* ---- layers in two halves, each on a device of its own ---- */

static void make_halves(net *n)
{
    int64_t half = n->width / 2;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) {
            int64_t out = k == 0 ? n->width : n->classes;
            tn_device device = tn_current_device();
            tn_layer *layer = tn_sequential(tn_linear(half), tn_relu_layer(), tn_linear(half), tn_relu_layer(),
                                            tn_linear(out));
            device.index += i;
            n->layer[n->count++] = layer;
            tn_layer_to(layer, device);
        }
    n->x = given(tn_random_normal(TN_SHAPE(n->batch, 784)));
    n->t = given(tn_random_integers(0, n->classes, TN_SHAPE(n->batch)));
}

static tn_array *halves(const net *n)
{
    tn_device here = tn_device_of(n->x), there = {here.kind, here.index + 1};
    tn_array *a = tn_forward(n->layer[0], n->x), *b = tn_forward(n->layer[1], tn_to(n->x, there));
    tn_array *x = tn_relu(tn_add(a, tn_to(b, here))), *y = tn_relu(tn_add(b, tn_to(a, there)));
    x = tn_add(tn_forward(n->layer[2], x), tn_to(tn_forward(n->layer[3], y), here));
    return tn_softmax_cross_entropy(x, n->t);
}

/* ---- the rows ---- */

static const first_row rows[] = {
    {"first-gpt", "a GPT of 2 blocks, 4 x 64 x 128, 4 heads, 256 tokens, Adam", make_gpt,
     {.loss = gpt, .layers = 2, .batch = 4, .time = 64, .width = 128, .heads = 4, .classes = 256}},
    {"first-gpt-12", "a GPT of 12 blocks, 4 x 64 x 128, 4 heads, 256 tokens, Adam", make_gpt,
     {.loss = gpt, .layers = 12, .batch = 4, .time = 64, .width = 128, .heads = 4, .classes = 256}},
    {"first-stack-2", "2 equal layers of 256, batch 64, Adam", make_stack,
     {.loss = stack, .layers = 2, .batch = 64, .width = 256, .classes = 10}},
    {"first-stack-12", "12 equal layers of 256, batch 64, Adam", make_stack,
     {.loss = stack, .layers = 12, .batch = 64, .width = 256, .classes = 10}},
    {"first-lstm-5", "an LSTM of 2 x 128, 5 steps, batch 20, 1000 words, Adam", make_lstm,
     {.loss = lstm, .layers = 2, .batch = 20, .time = 5, .width = 128, .classes = 1000}},
    {"first-lenet", "LeNet, batch 64, Adam", make_lenet, {.loss = stack, .batch = 64, .classes = 10}},
    {"first-lenet-primitives", "LeNet of windows, products and maxima, batch 64, Adam", make_primitive_lenet,
     {.loss = primitive_lenet, .batch = 64, .classes = 10}},
    {"first-halves", "six layers of 2000 units in two halves on two devices, batch 100, Adam", make_halves,
     {.loss = halves, .batch = 100, .width = 2000, .classes = 10, .halves = true}},
    {"first-lstm-35", "an LSTM of 2 x 128, 35 steps, batch 20, 1000 words, Adam", make_lstm,
     {.loss = lstm, .layers = 2, .batch = 20, .time = 35, .width = 128, .classes = 1000}},
    {"first-lstm-ptb", "an LSTM of 2 x 650, 35 steps, batch 20, 10000 words, Adam", make_lstm,
     {.loss = lstm, .layers = 2, .batch = 20, .time = 35, .width = 650, .classes = 10000}},
    {"first-gpt2", "GPT-2 124M, 4 x 1024 tokens, 50304 words, Adam, on a GPU", make_gpt,
     {.loss = gpt, .layers = 12, .batch = 4, .time = 1024, .width = 768, .heads = 12, .classes = 50304, .large = true}},
};

/* This process's and that of the compilers that it has run: what the work takes while others use the cores. */
static double processor_time(void)
{
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double seconds = 0;
    for (int i = 0; i < 2; i++) {
        struct rusage used;
        getrusage(whose[i], &used);
        seconds += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    }
    return seconds;
}

static void row_run(const bench *b, const first_row *row, bool cached)
{
    enum { STEPS = 3 };
    char name[64], note[96];
    snprintf(name, sizeof name, "%s%s", row->row, cached ? "-cached" : "");
    net n = row->with;
    tn_seed(1);
    double began = now();
    TN_SCOPE row->make(&n);
    n.all = tn_sequential_of(n.count, n.layer);
    if (!n.halves)
        tn_layer_to(n.all, b->device);
    tn_optimizer *optimizer = tn_adam(n.all, .lr = 0.0001);
    for (int i = 0; i < STEPS && tn_ok(); i++)
        TN_SCOPE
        {
            tn_array *loss = n.loss(&n);
            if (tn_backward(loss) == TN_OK && tn_step(optimizer) == TN_OK)
                settle(n.x);
        }
    double seconds = now() - began;
    snprintf(note, sizeof note, "%d steps, %llu kernels compiled, %.2f s of processor time", STEPS,
             (unsigned long long)tn_engine_stats().compilations, processor_time());
    report(b, (row_facts){.row = name, .work = row->work, .note = note},
           (timing){.best = seconds, .median = seconds, .repetitions = 1});
    tn_optimizer_free(optimizer);
    tn_layer_free(n.all);
    tn_free(n.x);
    tn_free(n.t);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

/* In a process of its own: the library, and a GPU, are first used there. */
static void row_apart(int argc, char **argv, const first_row *row, bool cached)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        bench b = bench_flags(argc, argv);
        bool fits = !row->with.large || b.device.kind != TN_DEVICE_CPU;
        if (fits && (!row->with.halves || tn_device_count(b.device.kind) > b.device.index + 1))
            row_run(&b, row, cached);
        exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* A row that has the name is chosen alone: those whose names begin with it are measured for minutes. */
static bool chosen_row(const bench *b, const char *row)
{
    for (size_t i = 0; b->only && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(b->only, rows[i].row))
            return !strcmp(b->only, row);
    return wanted(b, row);
}

int main(int argc, char **argv)
{
    bench chosen = {0};
    for (int i = 1; i < argc; i++) { /* bench_flags would use the device here */
        chosen.list |= !strcmp(argv[i], "--list");
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            chosen.only = argv[i + 1];
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char folder[] = "/tmp/bench-first-XXXXXX";
        if (!chosen_row(&chosen, rows[i].row))
            continue;
        if (mkdtemp(folder) == NULL || setenv("TANSO_CACHE_DIR", folder, 1) != 0)
            return 1;
        for (int cached = 0; cached < 2; cached++)
            row_apart(argc, argv, &rows[i], cached);
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    return 0;
}
