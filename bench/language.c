/* SPDX-License-Identifier: MIT */
/*
 * Training steps of language models of the usual sizes: GPT-2 of 124 million parameters, composed of plain operations
 * as its first description has them (Radford et al. 2019), with casts written by hand in the row in bfloat16, and an
 * LSTM for the Penn Treebank (Zaremba et al. 2014). A row's note tells its kernels, its evaluations and its memory.
 */
#include "measure.h"

enum { WIDTH = 768, HEADS = 12, BLOCKS = 12, TIME = 1024, TOKENS = 50304 };
/* The parameters, in order: tables of tokens and of positions, the blocks', the last normalization's. */
enum { TABLE, PLACES, FIRST_BLOCK, NORM1 = 0, QKV = 2, OUT = 4, NORM2 = 6, UP = 8, DOWN = 10, IN_BLOCK = 12 };

typedef struct job {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_array *x, *t;
    int64_t classes;
} job;

static tn_array *given(tn_array *x)
{
    (void)!tn_eval(x); /* a failure is latched, and the row says so */
    return tn_own(x);
}

/* ---- GPT-2 ---- */

typedef struct gpt {
    tn_dtype dtype; /* of products */
} gpt;

static void add_param(tn_layer *net, tn_array *value)
{
    char name[16];
    snprintf(name, sizeof name, "p%d", tn_param_count(net));
    tn_layer_param(net, name, value);
}

static void add_product(tn_layer *net, int64_t in, int64_t out)
{
    add_param(net, tn_multiply(tn_random_normal(TN_SHAPE(in, out)), 0.02));
    add_param(net, tn_zeros(TN_SHAPE(out)));
}

static void add_norm(tn_layer *net)
{
    add_param(net, tn_ones(TN_SHAPE(WIDTH)));
    add_param(net, tn_zeros(TN_SHAPE(WIDTH)));
}

static tn_array *product(const tn_layer *net, int at, const tn_array *x, tn_dtype dtype)
{
    tn_array *weight = tn_cast(tn_param(net, at), dtype), *bias = tn_cast(tn_param(net, at + 1), dtype);
    return tn_add(tn_matmul(tn_cast(x, dtype), weight), bias);
}

static tn_array *norm(const tn_layer *net, int at, const tn_array *x)
{
    return tn_layer_norm_function(x, tn_param(net, at), tn_param(net, at + 1), 1e-5);
}

static tn_array *attention(const tn_array *qkv, int64_t batch)
{
    tn_array *part[3];
    if (tn_split(tn_reshape(qkv, TN_SHAPE(batch, TIME, 3 * HEADS, WIDTH / HEADS)), 3, 2, part) != TN_OK)
        return part[0];
    for (int i = 0; i < 3; i++)
        part[i] = tn_swapaxes(part[i], 1, 2);
    tn_array *mixed = tn_scaled_dot_product_attention(part[0], part[1], part[2], .causal = true);
    return tn_reshape(tn_swapaxes(mixed, 1, 2), TN_SHAPE(batch, TIME, WIDTH));
}

static tn_array *gpt_forward(tn_layer *net, const tn_array *x, void *user)
{
    tn_dtype dtype = ((gpt *)user)->dtype;
    tn_array *h = tn_add(tn_take(tn_param(net, TABLE), x, 0), tn_param(net, PLACES));
    for (int at = FIRST_BLOCK; at < FIRST_BLOCK + BLOCKS * IN_BLOCK; at += IN_BLOCK) {
        tn_array *mixed = attention(product(net, at + QKV, norm(net, at + NORM1, h), dtype), tn_dim(x, 0));
        h = tn_add(h, product(net, at + OUT, mixed, dtype));
        tn_array *wide = tn_gelu_tanh(product(net, at + UP, norm(net, at + NORM2, h), dtype));
        h = tn_add(h, product(net, at + DOWN, wide, dtype));
    }
    h = norm(net, FIRST_BLOCK + BLOCKS * IN_BLOCK, h);
    return tn_matmul(tn_cast(h, dtype), tn_transpose(tn_cast(tn_param(net, TABLE), dtype), TN_AXES(1, 0)));
}

static tn_layer *gpt_new(tn_dtype dtype)
{
    tn_layer *net = tn_layer_new("gpt", gpt_forward, &(gpt){dtype}, NULL, .size = sizeof(gpt));
    add_param(net, tn_multiply(tn_random_normal(TN_SHAPE(TOKENS, WIDTH)), 0.02));
    add_param(net, tn_multiply(tn_random_normal(TN_SHAPE(TIME, WIDTH)), 0.01));
    for (int i = 0; i < BLOCKS; i++) {
        add_norm(net);
        add_product(net, WIDTH, 3 * WIDTH);
        add_product(net, WIDTH, WIDTH);
        add_norm(net);
        add_product(net, WIDTH, 4 * WIDTH);
        add_product(net, 4 * WIDTH, WIDTH);
    }
    add_norm(net);
    return net;
}

/* ---- the rows ---- */

static void step(void *context, bool last)
{
    job *j = context;
    TN_SCOPE {
        tn_array *y = tn_forward(j->net, j->x);
        tn_array *loss = tn_softmax_cross_entropy(tn_reshape(y, TN_SHAPE(-1, j->classes)), j->t);
        if (tn_backward(loss) != TN_OK || tn_step(j->optimizer) != TN_OK)
            return;
        if (last)
            settle(j->x);
    }
}

static void run(const bench *b, const char *row, const char *work, double operations, job *j)
{
    tn_layer_to(j->net, b->device);
    j->x = given(tn_to(j->x, b->device));
    j->t = given(tn_to(j->t, b->device));
    timing t = measure(b, step, j, 1e-2);
    tn_engine_counters before = tn_engine_stats();
    tn_memory_reset_peak(b->device);
    step(j, true);
    char note[120];
    snprintf(note, sizeof note, "%llu kernels and calls, %llu evaluations, %.2f GB",
             (unsigned long long)(tn_engine_stats().kernels - before.kernels),
             (unsigned long long)(tn_engine_stats().evaluations - before.evaluations),
             (double)tn_memory_stats(b->device).peak / 1e9);
    report(b, (row_facts){.row = row, .work = work, .operations = operations, .note = note}, t);
    tn_optimizer_free(j->optimizer);
    tn_layer_free(j->net);
    tn_free(j->x);
    tn_free(j->t);
    tn_memory_trim(b->device);
}

static void gpt_run(const bench *b, const char *row, const char *work, int64_t batch, tn_dtype dtype)
{
    if (b->device.kind == TN_DEVICE_CPU || !wanted(b, row)) /* minutes on two cores */
        return;
    job j = {.net = gpt_new(dtype), .classes = TOKENS};
    tn_layer_to(j.net, b->device);
    j.optimizer = tn_adamw(j.net, .lr = 3e-4);
    TN_SCOPE {
        j.x = tn_own(tn_random_integers(0, TOKENS, TN_SHAPE(batch, TIME)));
        j.t = tn_own(tn_random_integers(0, TOKENS, TN_SHAPE(batch * TIME)));
    }
    /* 6 a parameter and token, 12 a layer, width and pair of places */
    double operations = (double)batch * TIME * (6.0 * (double)tn_param_total(j.net) + 12.0 * BLOCKS * WIDTH * TIME);
    run(b, row, work, operations, &j);
}

static void lstm_run(const bench *b, const char *row, const char *work, int64_t steps)
{
    enum { UNITS = 650, BATCH = 20, WORDS = 10000 };
    if (!wanted(b, row))
        return;
    job j = {.net = tn_sequential(tn_embedding(WORDS, UNITS), tn_lstm(UNITS, .layers = 2), tn_linear(WORDS)),
             .classes = WORDS};
    tn_layer_to(j.net, b->device);
    j.optimizer = tn_adam(j.net);
    TN_SCOPE {
        j.x = tn_own(tn_random_integers(0, WORDS, TN_SHAPE(steps, BATCH)));
        j.t = tn_own(tn_random_integers(0, WORDS, TN_SHAPE(steps * BATCH)));
    }
    double operations = 6.0 * (double)(steps * BATCH) * (2 * 8.0 * UNITS * UNITS + (double)UNITS * WORDS);
    run(b, row, work, operations, &j);
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    tn_seed(1);
    bool gpu = b.device.kind != TN_DEVICE_CPU;
    lstm_run(&b, "network-lstm-ptb", "an LSTM of 2 x 650, batch 20, 10000 words, Adam; 35 steps, on the CPU 10",
             gpu ? 35 : 10);
    tn_set_matmul_precision(TN_MATMUL_TF32);
    if (gpu)
        lstm_run(&b, "network-lstm-ptb-tf32", "the same with products in TF32", 35);
    gpt_run(&b, "network-gpt2-tf32", "GPT-2 124M, 8 x 1024 tokens, products in TF32, AdamW", 8, TN_FLOAT32);
    gpt_run(&b, "network-gpt2-bf16", "GPT-2 124M, 16 x 1024 tokens, products in bfloat16, AdamW", 16, TN_BFLOAT16);
    return tn_ok() ? 0 : 1;
}
