/* SPDX-License-Identifier: MIT */
/*
 * Graphs over three devices against the same graphs on one: values, gradients, second gradients, and what they leave
 * behind. Two devices of a kind (GPUs where there are two, else virtual ones) and the CPU.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso.h>

#include "core/memory.h"
#include "engine/collect.h"
#include "support/device.h"
#include "support/random.h"

enum { DEVICES = 3, LEAVES = 4, MOST = 24, GRAPHS = 12 };

static tn_device on[DEVICES];
static test_random common;

#define MUST(call) \
    do { \
        if ((call) != TN_OK) \
            fail_msg("%s: %s", #call, tn_error()); \
    } while (0)

static int pick(int count) { return (int)test_random_int(&common, 0, count - 1); }

/* ---- random graphs ---- */

/* A node: an operation over earlier ones, and the device that it is computed on. */
typedef struct plan_node {
    int kind, a, b, device;
} plan_node;

typedef struct graph {
    int n, count; /* square matrices of n; nodes, leaves first */
    plan_node node[MOST];
    double value[LEAVES][16];
} graph;

static graph draw(void)
{
    static const int sizes[] = {1, 2, 3, 4};
    graph g = {.n = sizes[pick(4)], .count = LEAVES + 4 + pick(MOST - LEAVES - 3)};
    for (int i = 0; i < g.count; i++)
        g.node[i] = (plan_node){pick(8), pick(i ? i : 1), pick(i ? i : 1), pick(DEVICES)};
    for (int k = 0; k < LEAVES; k++)
        for (int i = 0; i < 16; i++)
            g.value[k][i] = 1.6 * test_random_double(&common) - 0.8;
    return g;
}

static tn_array *apply(int kind, const tn_array *a, const tn_array *b)
{
    switch (kind) {
    case 0: return tn_tanh(tn_add(a, b));
    case 1: return tn_multiply(a, tn_sin(b));
    case 2: return tn_subtract(tn_multiply(a, 0.5), b);
    case 3: return tn_tanh(tn_matmul(a, b));
    case 4: return tn_add(tn_transpose(a, (tn_axes){0}), tn_cos(b));
    case 5: return tn_subtract(a, tn_mean(b, .axis = TN_AXES(1), .keepdims = true));
    case 6: return tn_multiply(tn_slice_axis(a, 0, 0, 1, 1), b);
    default: return tn_multiply(a, -0.7);
    }
}

typedef struct built {
    tn_array *leaf[LEAVES], *node[MOST], *loss;
} built;

/* The graph on its devices, or all of it on one. */
static built build(const graph *g, bool apart)
{
    built made = {.loss = NULL};
    tn_array *total = NULL;
    for (int i = 0; i < g->count; i++) {
        const plan_node *p = &g->node[i];
        tn_device device = on[apart ? p->device : 0];
        if (i < LEAVES) {
            made.node[i] = made.leaf[i] = tn_requires_grad(
                tn_from_host(g->value[i], TN_SHAPE(g->n, g->n), TN_FLOAT64, .device = device));
            continue;
        }
        made.node[i] = apply(p->kind, tn_to(made.node[p->a], device), tn_to(made.node[p->b], device));
        tn_array *sum = tn_mean(tn_square(made.node[i]));
        if (i + 4 >= g->count)
            total = total ? tn_add(tn_to(total, device), sum) : sum;
    }
    for (int k = 0; k < LEAVES; k++) /* so that every leaf has a gradient */
        total = tn_add(total, tn_to(tn_sum(tn_square(made.leaf[k])), tn_device_of(total)));
    made.loss = total;
    return made;
}

typedef struct results {
    double value[MOST][16], loss, slope, gradient[LEAVES][16], second[LEAVES][16];
} results;

static void read_to(const tn_array *x, double *to)
{
    MUST(tn_to_host(x, to, 16 * sizeof *to));
}

/* Values and gradients of two orders, asked for in this order or that. */
static tn_status compute(const graph *g, bool apart, int order, results *r)
{
    built b = build(g, apart);
    const tn_array *xs[LEAVES];
    tn_array *first[LEAVES], *slope = NULL;
    memcpy(xs, b.leaf, sizeof xs);
    memset(r, 0, sizeof *r);
    if (order == 1)
        (void)!tn_eval(b.node[g->count - 1]);
    tn_status status = tn_gradients(b.loss, LEAVES, xs, true, first);
    if (status != TN_OK)
        return status;
    for (int k = 0; k < LEAVES; k++) {
        tn_array *part = tn_to(tn_sum(tn_square(first[k])), tn_device_of(b.loss));
        slope = slope ? tn_add(slope, part) : part;
    }
    status = tn_backward(slope);
    if (status == TN_OK && order == 2)
        status = tn_eval_all(LEAVES, (const tn_array *const *)first);
    r->slope = tn_item(slope);
    r->loss = tn_item(b.loss);
    for (int k = 0; k < LEAVES && tn_ok(); k++) {
        read_to(first[k], r->gradient[k]);
        read_to(tn_grad(b.leaf[k]), r->second[k]);
    }
    for (int i = LEAVES; i < g->count && tn_ok() && order != 2; i++)
        read_to(b.node[i], r->value[i]);
    return tn_error_code();
}

static void compare(const graph *g, const results *one, const results *several, bool values)
{
    const double *a = &one->value[0][0], *b = &several->value[0][0];
    size_t from = values ? 0 : offsetof(results, loss) / sizeof *a;
    for (size_t i = from; i < sizeof *one / sizeof *a; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-9 * (1 + fabs(a[i]))))
            fail_msg("number %zu of a graph of %d: %.17g on one device, %.17g on several", i, g->count, a[i], b[i]);
    assert_true(one->slope > 0);
}

static size_t used(void)
{
    size_t sum = 0;
    for (int d = 0; d < DEVICES; d++)
        sum += tn_memory_stats(on[d]).used;
    return sum;
}

static void test_random_graphs(void **state)
{
    (void)state;
    size_t before = used();
    int graphs = on[0].kind == TN_DEVICE_CUDA ? 2 : GRAPHS; /* each is compiled there */
    for (int i = 0; i < graphs; i++) {
        graph g = draw();
        results one, several;
        TN_SCOPE MUST(compute(&g, false, i % 3, &one));
        TN_SCOPE MUST(compute(&g, true, i % 3, &several));
        compare(&g, &one, &several, i % 3 != 2);
    }
    assert_int_equal(used(), before);
}

/* The second time all plans are there. */
static void test_found_again(void **state)
{
    (void)state;
    graph g = draw();
    results first, second;
    TN_SCOPE MUST(compute(&g, true, 0, &first));
    uint64_t misses = tn_engine_stats().plan_misses;
    TN_SCOPE MUST(compute(&g, true, 0, &second));
    assert_int_equal(tn_engine_stats().plan_misses, misses);
    assert_memory_equal(&first, &second, sizeof first);
}

/* Whichever allocation fails, it is told, and nothing stays behind. */
static void test_no_memory(void **state)
{
    (void)state;
    graph g = draw();
    results r;
    TN_SCOPE MUST(compute(&g, true, 0, &r));
    size_t before = used();
    bool failed = true;
    long step = 1;
    for (long k = 0; failed; k += step, step += k / 16 > step)
        TN_SCOPE {
            built b = build(&g, true);
            MUST(tn_backward(b.loss));
            tn__fail_allocation_after(k);
            tn_status status = tn_eval_all(LEAVES, (const tn_array *const[]){tn_grad(b.leaf[0]), tn_grad(b.leaf[1]),
                                                                             tn_grad(b.leaf[2]), tn_grad(b.leaf[3])});
            tn__fail_allocation_after(-1);
            failed = status != TN_OK;
            assert_int_equal(status, failed ? TN_ERR_MEMORY : TN_OK);
            tn_clear_error();
            assert_true(isfinite(tn_item(tn_grad(b.leaf[pick(LEAVES)]))) || g.n > 1);
            tn_clear_error();
        }
    assert_int_equal(used(), before);
}

/* ---- recording ---- */

/* Nothing is computed when a copy is recorded, and each region is one plan. */
static void test_recorded(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_full(TN_SHAPE(3), 2.0, .dtype = TN_FLOAT64, .device = on[0]));
        MUST(tn_eval(x));
        uint64_t evaluations = tn_engine_stats().evaluations;
        size_t before = used();
        tn_array *there = tn_to(tn_square(x), on[1]), *back = tn_to(tn_exp(there), on[0]);
        tn_array *y = tn_sum(tn_multiply(back, x));
        MUST(tn_backward(y));
        assert_int_equal(tn_engine_stats().evaluations, evaluations);
        assert_int_equal(used(), before);
        MUST(tn_eval(y));
        assert_int_equal(tn_engine_stats().evaluations, evaluations + 3);
        assert_true(fabs(tn_item(y) - 6 * exp(4)) < 1e-9);
        assert_true(fabs(tn_item(tn_sum(tn_grad(x))) - 3 * (exp(4) + 2 * exp(4) * 4)) < 1e-9 * exp(4) * 40);
        assert_true(tn_device_equal(tn_device_of(tn_grad(x)), on[0]));
    }
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; at && (at = strstr(at, what)); at++)
        count++;
    return count;
}

/* One array many times is evaluated once. */
static void test_same_root(void **state)
{
    (void)state;
    enum { TIMES = 64 };
    TN_SCOPE {
        tn_array *y = tn_add(tn_to(tn_exp(tn_zeros(TN_SHAPE(3), .device = on[0])), on[1]), 1.0);
        const tn_array *all[TIMES];
        for (int i = 0; i < TIMES; i++)
            all[i] = y;
        assert_int_equal(tn_eval_all(TIMES, all), TN_OK);
        assert_true(tn_item(tn_sum(y)) == 6);
    }
}

/* What is sent is copied into C order first, amid the evaluation. That computes nothing along: else a state that the
 * program writes into would get its value there, and let go of what a later region is to compute for it. */
static void test_sent_beside_a_state(void **state)
{
    (void)state;
    static const double given[6] = {0.5, -1, 2, 0.25, -0.75, 1.5};
    TN_SCOPE {
        tn_array *x = tn_from_host(given, TN_SHAPE(2, 3), TN_FLOAT64, .device = on[0]);
        tn_array *power = tn_exp(x), *sent = tn_to(power, on[1]);
        tn_array *kept = tn_sinh(x); /* for what comes after the sending, as it is multiplied by what is sent */
        MUST(tn_multiply_assign(kept, power));
        tn_array *turned = tn_to(tn_transpose(x, (tn_axes){0}), on[1]);
        const tn_array *asked[] = {turned, sent, kept};
        MUST(tn_eval_all(3, asked));
        double got[3][6];
        MUST(tn_to_host(turned, got[0], sizeof *got));
        MUST(tn_to_host(sent, got[1], sizeof *got));
        MUST(tn_to_host(kept, got[2], sizeof *got));
        for (int i = 0; i < 6; i++) {
            assert_true(got[0][i] == given[i % 2 * 3 + i / 2]);
            assert_true(fabs(got[1][i] - exp(given[i])) <= 1e-15 * exp(given[i]));
            double product = sinh(given[i]) * exp(given[i]);
            assert_true(fabs(got[2][i] - product) <= 1e-14 * fabs(product));
        }
    }
}

static void test_described(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(5, 3), .device = on[0]);
        tn_array *y = tn_sum(tn_multiply(tn_to(tn_exp(tn_to(tn_square(x), on[1])), on[0]), x));
        uint64_t evaluations = tn_engine_stats().evaluations;
        char *text = tn_plan_describe(y), expected[128];
        assert_int_equal(tn_engine_stats().evaluations, evaluations);
        assert_int_equal(count_of(text, "region "), 3);
        const char *first = tn_device_name(on[0]), *second = tn_device_name(on[1]);
        snprintf(expected, sizeof expected, "copy float32(5, 3) from %s to %s", first, second);
        assert_int_equal(count_of(text, expected), 1);
        snprintf(expected, sizeof expected, "region 3 on %s", tn_device_name(on[0]));
        assert_int_equal(count_of(text, expected), 1);
        tn_string_free(text);
        MUST(tn_eval(y)); /* which has its inputs still */
        char *drawn = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&drawn, &size);
        MUST(tn_graph_dot(tn_to(tn_square(tn_to(tn_square(x), on[1])), on[0]), stream));
        fclose(stream);
        assert_int_equal(count_of(drawn, "subgraph"), 2);
        assert_int_equal(count_of(drawn, tn_device_name(on[1])), 2);
        free(drawn);
    }
}

/* Each region's graph and plan are printed, with where it is computed. */
static void test_dumped(void **state)
{
    (void)state;
    char name[] = "/tmp/tanso-dump-XXXXXX", text[1 << 14], expected[64];
    int file = mkstemp(name), kept = dup(STDERR_FILENO);
    assert_true(file >= 0 && kept >= 0);
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(7, 3), .device = on[0]);
        MUST(tn_eval(x));
        setenv("TANSO_DUMP", "graph,plan", 1);
        dup2(file, STDERR_FILENO);
        tn_status status = tn_eval(tn_sinh(tn_to(tn_cosh(x), on[1])));
        dup2(kept, STDERR_FILENO);
        unsetenv("TANSO_DUMP");
        MUST(status);
    }
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    close(file);
    close(kept);
    remove(name);
    for (int i = 0; i < 2; i++) {
        snprintf(expected, sizeof expected, "on %s\n", tn_device_name(on[i]));
        assert_int_equal(count_of(text, expected), 1);
    }
    assert_true(count_of(text, "graph ") >= 2 && strstr(text, "cosh") && strstr(text, "sinh"));
}

/* What was only described does not count as computed before: the next evaluation would compute more than is asked. */
static void test_described_only(void **state)
{
    (void)state;
    for (int away = 0; away < 2; away++)
        TN_SCOPE {
            tn_array *x = tn_random_normal(TN_SHAPE(5, 3), .device = on[0]);
            tn_array *a = tn_square(x), *b = tn_exp(away ? tn_to(tn_exp(tn_to(a, on[1])), on[0]) : a);
            tn_array *c = tn_negative(b);
            tn_string_free(tn_plan_describe(c));
            tn_array *all[] = {a, b, c};
            for (int i = 0; i < 3; i++)
                assert_false(tn__was_collected(tn__array_node(all[i])));
            MUST(tn_eval(c));
        }
}

/* A letter a line of a description: copies by who gets them, regions by where they are. */
static void shorten(const char *text, char *to)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *end = strchr(line, '\n'), *name = tn_device_name(on[1]);
        bool second = end && strncmp(end - strlen(name), name, strlen(name)) == 0;
        if (strncmp(line, "copy", 4) == 0)
            *to++ = second ? '>' : '<';
        else if (strncmp(line, "region", 6) == 0)
            *to++ = second ? 'b' : 'a';
    }
    *to = 0;
}

/* Two halves of a network that meet twice: both devices work on each half at once, and none waits for a copy before it
 * has done what it can. */
static void test_side_by_side(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(4, 4), .device = on[0]);
        tn_array *w = tn_random_normal(TN_SHAPE(4, 4), .device = on[0]);
        tn_array *v = tn_random_normal(TN_SHAPE(4, 4), .device = on[1]);
        MUST(tn_eval_all(TN_ARRAYS(x, w, v)));
        tn_array *z0 = tn_matmul(x, w), *z1 = tn_matmul(tn_to(x, on[1]), v);
        tn_array *h0 = tn_tanh(tn_add(z0, tn_to(z1, on[0]))), *h1 = tn_tanh(tn_add(z1, tn_to(z0, on[1])));
        tn_array *y = tn_add(tn_matmul(h0, w), tn_to(tn_matmul(h1, v), on[0]));
        char *text = tn_plan_describe(y), order[64];
        shorten(text, order);
        tn_string_free(text);
        if (strcmp(order, ">ab<>ba<a") != 0 && strcmp(order, ">ab><ba<a") != 0)
            fail_msg("the order is %s", order);
    }
}

/* What is linear has the second derivative zero, wherever its parts are. */
static void test_zero_slopes(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_full(TN_SHAPE(2), 3.0, .device = on[0]));
        tn_array *w = tn_requires_grad(tn_full(TN_SHAPE(2), 5.0, .device = on[1]));
        tn_array *y = tn_sum(tn_multiply(tn_to(x, on[1]), w)), *first[2], *second[2];
        MUST(tn_gradients(y, 2, (const tn_array *[]){x, w}, true, first));
        MUST(tn_gradients(tn_sum(first[0]), 2, (const tn_array *[]){x, w}, false, second));
        assert_true(tn_item(tn_sum(first[0])) == 10 && tn_item(tn_sum(first[1])) == 6);
        assert_true(tn_item(tn_sum(second[0])) == 0 && tn_item(tn_sum(second[1])) == 2);
    }
}

/* ---- steps ---- */

typedef struct training {
    tn_layer *first, *second, *all;
    tn_optimizer *opt;
} training;

static training training_new(tn_device a, tn_device b)
{
    training t = {.first = tn_linear(6, .in = 5), .second = tn_linear(3, .in = 6)};
    MUST(tn_layer_to(t.first, a));
    MUST(tn_layer_to(t.second, b));
    t.all = tn_sequential(t.first, t.second);
    t.opt = tn_sgd(t.all, .lr = 0.1);
    return t;
}

static void training_free(training *t)
{
    tn_optimizer_free(t->opt);
    tn_layer_free(t->all);
}

static tn_array *loss_of(const training *t, const float *x, const int32_t *labels)
{
    tn_device a = tn_layer_device(t->first), b = tn_layer_device(t->second);
    tn_array *in = tn_from_host(x, TN_SHAPE(4, 5), TN_FLOAT32, .device = a);
    tn_array *out = tn_from_host(labels, TN_SHAPE(4), TN_INT32, .device = a);
    tn_array *h = tn_to(tn_relu(tn_forward(t->first, in)), b);
    return tn_softmax_cross_entropy(tn_to(tn_forward(t->second, h), a), out);
}

static void weights_of(const training *t, float *to)
{
    for (int i = 0, at = 0; i < tn_param_count(t->all); at += (int)tn_size(tn_param(t->all, i++)))
        MUST(tn_to_host(tn_param(t->all, i), to + at, sizeof(float) * (size_t)tn_size(tn_param(t->all, i))));
}

enum { WEIGHTS = 5 * 6 + 6 + 6 * 3 + 3 };

static void draw_samples(float *x, int32_t *labels)
{
    for (int i = 0; i < 20; i++)
        x[i] = (float)test_random_double(&common) - 0.5f;
    for (int i = 0; i < 4; i++)
        labels[i] = (int32_t)pick(3);
}

/* The same training on one device and on two, and from its third step on only plans that are there. */
static void test_training(void **state)
{
    (void)state;
    float x[20], found[2][WEIGHTS];
    int32_t labels[4];
    double loss[2] = {0};
    draw_samples(x, labels);
    for (int apart = 0; apart < 2; apart++)
        TN_SCOPE {
            tn_seed(3);
            training t = training_new(on[0], on[apart]);
            uint64_t misses = 0;
            for (int i = 0; i < 6; i++)
                TN_SCOPE {
                    misses = i == 2 ? tn_engine_stats().plan_misses : misses;
                    tn_array *now = loss_of(&t, x, labels);
                    MUST(tn_backward(now));
                    MUST(tn_step(t.opt));
                    loss[apart] = tn_item(now);
                }
            assert_int_equal(tn_engine_stats().plan_misses, misses);
            weights_of(&t, found[apart]);
            training_free(&t);
        }
    assert_true(fabs(loss[0] - loss[1]) < 1e-5 && loss[0] > 0);
    for (int i = 0; i < WEIGHTS; i++)
        assert_true(fabsf(found[0][i] - found[1][i]) < 1e-5f);
}

/* What an optimizer's program gives it: the new values depend neither on the parameter nor on the old state. */
static tn_array *forget(const tn_update *update, const tn_array *p, const tn_array *g, tn_array **last)
{
    (void)p;
    last[0] = tn_multiply(g, 0.5);
    return tn_multiply(g, -update->set->lr);
}

static tn_optimizer *sgd_new(tn_layer *net) { return tn_sgd(net, .lr = 0.1); }
static tn_optimizer *adam_new(tn_layer *net) { return tn_adam(net, .lr = 0.1); }
static tn_optimizer *forget_new(tn_layer *net) { return tn_optimizer_new(net, "last", forget, NULL, .lr = 1); }

/* Labels of which nothing is known are looked at before a step, where they can be; with none of them, no gradient is
 * computed before the step's own evaluation. */
static const struct {
    const char *name;
    tn_optimizer *(*make)(tn_layer *net);
    bool labelled, apart;
} steps[] = {{"sgd, labelled", sgd_new, true, true}, {"sgd", sgd_new, false, true}, {"adam", adam_new, false, true},
             {"forget", forget_new, false, true}, {"forget on one device", forget_new, false, false}};

enum { STEPS = sizeof steps / sizeof *steps, NUMBERS = 3 * WEIGHTS };

/* Parameters and the optimizer's state. */
static int everything_of(const training *t, float *to)
{
    int states = tn_optimizer_state_count(t->opt), at = WEIGHTS;
    weights_of(t, to);
    for (int i = 0; i < states; at += (int)tn_size(tn_optimizer_state(t->opt, i++)))
        MUST(tn_to_host(tn_optimizer_state(t->opt, i), to + at,
                        sizeof(float) * (size_t)tn_size(tn_optimizer_state(t->opt, i))));
    return at;
}

static void backward(const training *t, const float *x, const int32_t *labels)
{
    tn_array *h = tn_to(tn_tanh(tn_forward(t->first, tn_from_host(x, TN_SHAPE(4, 5), TN_FLOAT32, .device = on[0]))),
                        tn_layer_device(t->second));
    MUST(tn_backward(labels ? loss_of(t, x, labels) : tn_mean(tn_square(tn_subtract(tn_forward(t->second, h), 1.0)))));
}

/* Makes something fail, the k-th time a little later: any allocation, or memory of one device; and no longer. */
static void spoil(int way, long k)
{
    if (way == 0)
        tn__fail_allocation_after(k);
    else
        MUST(tn_memory_limit(on[way - 1], tn_memory_stats(on[way - 1]).used + (size_t)k + 1));
}

static void mend(int way)
{
    if (way == 0)
        tn__fail_allocation_after(-1);
    else
        MUST(tn_memory_limit_parse(on[way - 1], "none"));
    tn_clear_error();
}

/* Steps that fail, ever later, until one doesn't. How many did. */
static int fail_steps(const training *t, const float *x, const int32_t *labels, int way)
{
    long stride = way == 0 ? 1 : on[0].kind == TN_DEVICE_CUDA ? 4096 : 256; /* what is let go is compiled again there */
    float before[NUMBERS], after[NUMBERS];
    int failures = 0;
    bool failed = true;
    for (long k = 0; failed; k += stride)
        TN_SCOPE {
            int count = everything_of(t, before), same = 0;
            backward(t, x, labels);
            MUST(tn_synchronize(on[0]));
            MUST(tn_synchronize(on[1]));
            spoil(way, k);
            failed = tn_step(t->opt) != TN_OK;
            assert_int_equal(tn_error_code(), failed ? TN_ERR_MEMORY : TN_OK);
            mend(way);
            failures += failed;
            assert_int_equal(everything_of(t, after), count);
            for (int i = 0; i < count; i++)
                same += after[i] == before[i];
            if (failed ? same != count : same > count / 2)
                fail_msg("failure %d.%ld: %d of %d numbers are as they were", way, k, same, count);
        }
    return failures;
}

/* Whatever fails, all parameters are updated or none is; and what comes after that is as if nothing had failed. */
static void test_all_or_none(void **state)
{
    (void)state;
    float x[20], found[2][NUMBERS];
    int32_t labels[4];
    draw_samples(x, labels);
    for (int s = 0; s < STEPS; s++)
        for (int fails = 0; fails < 2; fails++)
            TN_SCOPE {
                tn_seed(4);
                training t = training_new(on[0], on[steps[s].apart]);
                /* on one device a step that was there before takes nothing from the host */
                int first = steps[s].apart ? 0 : 1, last = steps[s].apart ? 2 : 1;
                tn_optimizer_free(t.opt);
                t.opt = steps[s].make(t.all);
                const int32_t *known = steps[s].labelled ? labels : NULL;
                for (int i = 0; i < 2 + (fails ? 0 : last - first + 1); i++)
                    TN_SCOPE {
                        backward(&t, x, known);
                        MUST(tn_step(t.opt));
                    }
                for (int way = first; way <= last && fails; way++) {
                    /* of a GPU's memory 4096 bytes more are all that some steps need */
                    int least = way > 0 && on[0].kind == TN_DEVICE_CUDA ? 1 : 2;
                    if (fail_steps(&t, x, known, way) < least)
                        fail_msg("%s: too little failed in way %d", steps[s].name, way);
                }
                int count = everything_of(&t, found[fails]);
                for (int i = 0; i < count && fails; i++)
                    if (!(fabsf(found[0][i] - found[1][i]) <= 1e-5f))
                        fail_msg("%s: %.9g, and %.9g after failures", steps[s].name, found[0][i], found[1][i]);
                training_free(&t);
            }
}

/* What an update makes of the old state before it knows the gradient is not computed, and kept, by itself. */
static void test_state_in_one(void **state)
{
    (void)state;
    float x[20];
    int32_t labels[4];
    uint64_t evaluations[2] = {0};
    draw_samples(x, labels);
    for (int k = 0; k < 2; k++)
        TN_SCOPE {
            training t = training_new(on[0], on[1]);
            tn_optimizer_free(t.opt);
            t.opt = k ? adam_new(t.all) : sgd_new(t.all);
            for (int i = 0; i < 3; i++)
                TN_SCOPE {
                    backward(&t, x, NULL);
                    uint64_t before = tn_engine_stats().evaluations;
                    MUST(tn_step(t.opt));
                    evaluations[k] = tn_engine_stats().evaluations - before;
                }
            training_free(&t);
        }
    assert_true(evaluations[0] > 1);
    assert_int_equal(evaluations[0], evaluations[1]);
}

int main(void)
{
    if (test_too_few(on, 2))
        return TEST_SKIPPED;
    on[2] = tn_cpu();
    common = test_random_new();
    tn_set_compile(TN_COMPILE_NEVER); /* where there is another way: it is the regions that are tested */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_found_again), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_recorded), cmocka_unit_test(test_described), cmocka_unit_test(test_dumped),
        cmocka_unit_test(test_described_only), cmocka_unit_test(test_zero_slopes), cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_same_root), cmocka_unit_test(test_sent_beside_a_state),
        cmocka_unit_test(test_training), cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_state_in_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
