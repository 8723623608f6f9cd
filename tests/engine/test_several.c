/* SPDX-License-Identifier: MIT */
/*
 * Two devices of a kind in one program: arrays that go from one to the other while both work, a network with a layer on
 * each, the same training on both, a thread for each, and what one device's failure is to the other. On two GPUs where
 * there are two, else on two virtual devices, whose arithmetic is the CPU's.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "core/clock.h"
#include "support/device.h"
#include "support/random.h"

enum { DEVICES = 2, ARRAYS = 4, STEPS = 300, MOST = 40000, ROUNDS = 20 };

static tn_device on[DEVICES];
static test_random common;

#define MUST(call) \
    do { \
        if ((call) != TN_OK) \
            fail_msg("%s: %s", #call, tn_error()); \
    } while (0)

/* ---- random programs: whole numbers, beside the same on the CPU ---- */

typedef struct cell {
    tn_array *here, *there; /* on the CPU, on some device */
} cell;

static int pick(int count) { return (int)test_random_int(&common, 0, count - 1); }

static void replace(cell *c, tn_array *here, tn_array *there)
{
    MUST(tn_eval(here));
    MUST(tn_eval(there));
    if (here != c->here) {
        tn_free(c->here);
        c->here = tn_own(here);
    }
    if (there != c->there) {
        tn_free(c->there);
        c->there = tn_own(there);
    }
}

static void upload(cell *c)
{
    static const int64_t sizes[] = {0, 1, 7, 4096, MOST};
    static int32_t values[MOST];
    tn_shape shape = TN_SHAPE(sizes[pick(5)]);
    for (int64_t i = 0; i < shape.dim[0]; i++)
        values[i] = (int32_t)test_random_bits(&common);
    replace(c, tn_from_host(values, shape, TN_INT32, .device = tn_cpu()),
            tn_from_host(values, shape, TN_INT32, .device = on[pick(DEVICES)]));
}

static void compare(const cell *c)
{
    if (!tn_array_equal(c->here, tn_to_cpu(c->there), false))
        fail_msg("an array of %lld elements on %s: %s", (long long)tn_size(c->here),
                 tn_device_name(tn_device_of(c->there)), tn_ok() ? "other elements" : tn_error());
}

static tn_device other_than(tn_device device) { return on[tn_device_equal(device, on[0])]; }

/* A cell's array goes to the other device, sometimes as a part or before it has been computed. */
static void move(cell *c)
{
    tn_array *here = c->here, *there = c->there;
    if (pick(3) == 0) {
        here = tn_flip(here, (tn_axes){0});
        there = tn_flip(there, (tn_axes){0});
    } else if (pick(3) == 0) {
        here = tn_multiply(here, 3);
        there = tn_multiply(there, 3);
    }
    replace(c, here, tn_to(there, other_than(tn_device_of(there))));
}

static void combine(cell *to, const cell *x, const cell *y)
{
    if (tn_size(x->here) != tn_size(y->here))
        return;
    tn_array *follower = tn_to(y->there, tn_device_of(x->there));
    replace(to, tn_subtract(tn_multiply(x->here, 5), y->here), tn_subtract(tn_multiply(x->there, 5), follower));
}

/* In place: behind the copies that others have asked for. */
static void grow(cell *c)
{
    MUST(tn_add_assign(c->here, 1));
    MUST(tn_add_assign(c->there, 1));
    MUST(tn_eval(c->there));
}

static void step(cell *cells)
{
    cell *c = &cells[pick(ARRAYS)];
    switch (pick(6)) {
    case 0: upload(c); break;
    case 1: combine(c, &cells[pick(ARRAYS)], &cells[pick(ARRAYS)]); break;
    case 2: grow(c); break;
    case 3: compare(c); break;
    default: move(c);
    }
}

static void test_programs(void **state)
{
    (void)state;
    cell cells[ARRAYS] = {{0}};
    for (int k = 0; k < ARRAYS; k++)
        TN_SCOPE upload(&cells[k]);
    for (int i = 0; i < STEPS; i++)
        TN_SCOPE step(cells);
    for (int k = 0; k < ARRAYS; k++)
        TN_SCOPE {
            compare(&cells[k]);
            tn_free(cells[k].here);
            tn_free(cells[k].there);
        }
}

/* What is large goes in one piece and arrives whole; what it came from is overwritten at once. */
static void test_large(void **state)
{
    (void)state;
    enum { LARGE = 3000001 };
    TN_SCOPE {
        tn_array *x = tn_arange(0, LARGE, 1, .dtype = TN_FLOAT32, .device = on[0]);
        for (int i = 0; i < ROUNDS; i++)
            TN_SCOPE {
                tn_array *copy = tn_to(x, on[1]);
                MUST(tn_add_assign(x, 1));
                MUST(tn_eval(x));
                tn_array *first = tn_slice_axis(copy, 0, 0, 1, 1), *last = tn_slice_axis(copy, 0, LARGE - 1, LARGE, 1);
                assert_int_equal(tn_item(first), i);
                assert_int_equal(tn_item(last), LARGE - 1 + i);
                double sum = tn_item(tn_sum(tn_cast(copy, TN_FLOAT64)));
                assert_true(sum == (double)LARGE * (LARGE - 1) / 2 + (double)i * LARGE);
            }
    }
}

/* ---- networks ---- */

static tn_array *of_host(const float *values, int rows, int columns, tn_device device)
{
    return tn_from_host(values, TN_SHAPE(rows, columns), TN_FLOAT32, .device = device);
}

/* A layer on each device; its loss and all gradients are what they are on one. */
static void test_split_network(void **state)
{
    (void)state;
    enum { BATCH = 9, IN = 5, HIDDEN = 7 };
    float x[BATCH * IN], w[IN * HIDDEN], v[HIDDEN];
    float *const all[] = {x, w, v};
    const int counts[] = {BATCH * IN, IN * HIDDEN, HIDDEN};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < counts[k]; i++)
            all[k][i] = (float)test_random_double(&common) - 0.5f;
    double found[DEVICES][4];
    for (int split = 0; split < 2; split++)
        TN_SCOPE {
            tn_device second = on[split];
            tn_array *first = tn_requires_grad(of_host(w, IN, HIDDEN, on[0]));
            tn_array *last = tn_requires_grad(of_host(v, HIDDEN, 1, second));
            tn_array *hidden = tn_tanh(tn_matmul(of_host(x, BATCH, IN, on[0]), first));
            tn_array *loss = tn_mean(tn_square(tn_matmul(tn_to(hidden, second), last)));
            tn_array *gradient = NULL;
            const tn_array *const sources[] = {first};
            MUST(tn_gradients(loss, 1, sources, true, &gradient));
            assert_true(tn_device_equal(tn_device_of(gradient), on[0]));
            tn_array *again = tn_sum(tn_square(gradient));
            MUST(tn_backward(again));
            assert_true(tn_device_equal(tn_device_of(tn_grad(last)), second));
            found[split][0] = tn_item(loss);
            found[split][1] = tn_item(again);
            found[split][2] = tn_item(tn_sum(tn_abs(tn_grad(first))));
            found[split][3] = tn_item(tn_sum(tn_abs(tn_grad(last))));
        }
    for (int k = 0; k < 4; k++)
        if (!(found[0][k] != 0) || found[0][k] != found[1][k])
            fail_msg("value %d: %.9g on one device, %.9g on two", k, found[0][k], found[1][k]);
}

/* A short training on a device; its parameters' bits summed up. */
static double train(tn_device device, const float *x, const int32_t *labels, int rows, int columns)
{
    double sum = 0;
    TN_SCOPE {
        tn_seed(11);
        tn_layer *net = tn_sequential(tn_linear(16), tn_relu_layer(), tn_linear(3));
        tn_optimizer *opt = tn_adam(net, .lr = 0.01);
        MUST(tn_layer_to(net, device));
        tn_array *in = of_host(x, rows, columns, device);
        tn_array *t = tn_from_host(labels, TN_SHAPE(rows), TN_INT32, .device = device);
        for (int i = 0; i < ROUNDS; i++)
            TN_SCOPE {
                MUST(tn_backward(tn_softmax_cross_entropy(tn_forward(net, in), t)));
                MUST(tn_step(opt));
            }
        sum = tn_item(tn_sum(tn_forward(net, in)));
        tn_optimizer_free(opt);
        tn_layer_free(net);
    }
    return sum;
}

enum { ROWS = 33, COLUMNS = 6 };
static float samples[ROWS * COLUMNS];
static int32_t labels[ROWS];

static void draw_samples(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        samples[i] = (float)test_random_double(&common) - 0.5f;
    for (int i = 0; i < ROWS; i++)
        labels[i] = (int32_t)pick(3);
}

static void test_same_training(void **state)
{
    (void)state;
    draw_samples();
    double first = train(on[0], samples, labels, ROWS, COLUMNS), second = train(on[1], samples, labels, ROWS, COLUMNS);
    if (!(first == second))
        fail_msg("%.17g on %s, %.17g on another one: %s", first, tn_device_name(on[0]), second, tn_error());
}

/* A network with a layer on each device, or both on one. */
typedef struct halves {
    tn_layer *first, *second, *both;
    tn_optimizer *opt;
} halves;

static halves halves_new(tn_device second, double clip)
{
    tn_seed(5);
    halves h = {.first = tn_linear(8, .in = COLUMNS), .second = tn_linear(3, .in = 8)};
    MUST(tn_layer_to(h.first, on[0]));
    MUST(tn_layer_to(h.second, second));
    h.both = tn_sequential(h.first, h.second);
    h.opt = tn_adam(h.both, .lr = 0.05, .clip_norm = clip);
    return h;
}

static void halves_free(halves *h)
{
    tn_optimizer_free(h->opt);
    tn_layer_free(h->both);
}

static tn_status halves_backward(const halves *h)
{
    tn_device first = tn_layer_device(h->first), second = tn_layer_device(h->second);
    tn_array *in = of_host(samples, ROWS, COLUMNS, first);
    tn_array *t = tn_from_host(labels, TN_SHAPE(ROWS), TN_INT32, .device = second);
    tn_array *hidden = tn_tanh(tn_forward(h->first, in));
    return tn_backward(tn_softmax_cross_entropy(tn_forward(h->second, tn_to(hidden, second)), t));
}

/* Their parameters' elements, summed up by their weight. */
static double halves_sum(const halves *h)
{
    double sum = 0;
    for (int i = 0; i < tn_param_count(h->both); i++) {
        tn_array *p = tn_cast(tn_to_cpu(tn_param(h->both, i)), TN_FLOAT64);
        sum += (i + 1) * tn_item(tn_sum(tn_square(p)));
    }
    return sum;
}

/* Clipped by the norm of all gradients, wherever they are. */
static void test_halves(void **state)
{
    (void)state;
    draw_samples();
    double found[DEVICES];
    for (int d = 0; d < DEVICES; d++)
        TN_SCOPE {
            halves h = halves_new(on[d], 0.3);
            for (int i = 0; i < ROUNDS; i++)
                TN_SCOPE {
                    MUST(halves_backward(&h));
                    MUST(tn_step(h.opt));
                }
            found[d] = halves_sum(&h);
            halves_free(&h);
        }
    if (!(found[0] > 0) || fabs(found[0] - found[1]) > 1e-5 * found[0])
        fail_msg("%.9g on one device, %.9g on two: %s", found[0], found[1], tn_error());
}

/* Where one device cannot compute its gradients, the other's parameters are as they were, too. */
static void test_failed_step(void **state)
{
    (void)state;
    draw_samples();
    TN_SCOPE {
        halves h = halves_new(on[1], 0);
        MUST(halves_backward(&h));
        MUST(tn_step(h.opt));
        double before = halves_sum(&h);
        MUST(halves_backward(&h));
        MUST(tn_synchronize(on[1]));
        tn_memory_trim(on[1]);
        MUST(tn_memory_limit(on[1], 1));
        assert_int_equal(tn_step(h.opt), TN_ERR_MEMORY);
        MUST(tn_memory_limit_parse(on[1], "none"));
        tn_clear_error();
        assert_true(halves_sum(&h) == before);
        MUST(halves_backward(&h));
        MUST(tn_step(h.opt));
        assert_true(halves_sum(&h) != before);
        halves_free(&h);
    }
}

/* ---- threads ---- */

typedef struct worker {
    int device;
    double result;
    char error[512];
    tn_array *_Atomic *inbox, *_Atomic *outbox; /* arrays from the other one, for it */
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    tn_device own = on[w->device];
    for (int i = 0; i < ROUNDS; i++)
        TN_SCOPE {
            tn_array *x = tn_multiply(tn_ones(TN_SHAPE(1000), .device = own), (double)(i + 1 + w->device));
            tn_array *sent = tn_own(tn_to(x, on[1 - w->device])), *got = NULL;
            (void)!tn_eval(sent); /* what another thread may have is a value */
            while (tn_ok() && atomic_load(w->outbox))
                sched_yield();
            atomic_store(w->outbox, sent);
            while (tn_ok() && !(got = atomic_exchange(w->inbox, NULL)))
                sched_yield();
            if (got)
                w->result += tn_item(tn_sum(tn_add(tn_to(got, own), x)));
            tn_free(got);
        }
    w->result += tn_ok() ? train(own, samples, labels, ROWS, COLUMNS) : 0;
    snprintf(w->error, sizeof w->error, "%s", tn_error());
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    tn_array *_Atomic box[DEVICES] = {NULL, NULL};
    worker workers[DEVICES] = {{.device = 0, .inbox = &box[0], .outbox = &box[1]},
                               {.device = 1, .inbox = &box[1], .outbox = &box[0]}};
    pthread_t thread[DEVICES];
    draw_samples();
    for (int d = 0; d < DEVICES; d++)
        assert_int_equal(pthread_create(&thread[d], NULL, work, &workers[d]), 0);
    for (int d = 0; d < DEVICES; d++)
        pthread_join(thread[d], NULL);
    double each = 0;
    for (int i = 0; i < ROUNDS; i++)
        each += 1000.0 * (2 * i + 3);
    each += train(on[0], samples, labels, ROWS, COLUMNS);
    for (int d = 0; d < DEVICES; d++)
        if (*workers[d].error || workers[d].result != each)
            fail_msg("thread of %s: %.17g, expected %.17g; %s", tn_device_name(on[d]), workers[d].result, each,
                     workers[d].error);
}

/* ---- what goes wrong ---- */

static void test_mixing(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = of_host(samples, 1, 3, on[0]), *y = of_host(samples, 1, 3, on[1]);
        assert_true(tn_is_error(tn_add(x, y)));
        assert_int_equal(tn_error_code(), TN_ERR_DEVICE);
        assert_non_null(strstr(tn_error(), tn_device_name(on[0])));
        assert_non_null(strstr(tn_error(), tn_device_name(on[1])));
        tn_clear_error();
    }
}

/* An index out of range is told of at once on some devices, later on others; the copy never passes for a value, and
 * neither device is the worse for it. */
static void test_failure(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        TN_SCOPE {
            tn_array *x = tn_arange(0, 10, 1, .dtype = TN_FLOAT32, .device = on[0]);
            tn_array *at = tn_to(tn_from_int64s((int64_t[]){3, 10 + i}, 2), on[0]);
            tn_array *copy = tn_to(tn_take(x, at, 0), on[1]);
            tn_array *sum = tn_sum(tn_add(copy, 1.0));
            assert_int_equal(tn_eval(sum) == TN_OK ? tn_synchronize(on[1]) : tn_error_code(), TN_ERR_INDEX);
            tn_clear_error();
            assert_int_equal(tn_synchronize(on[0]), TN_OK);
            assert_int_equal(tn_item(tn_sum(tn_to(x, on[1]))), 45);
            assert_int_equal(tn_item(tn_sum(x)), 45);
            assert_true(tn_ok());
        }
}

static void test_memory(void **state)
{
    (void)state;
    enum { COUNT = 1 << 20 };
    for (int d = 0; d < DEVICES; d++)
        TN_SCOPE {
            MUST(tn_synchronize(on[d]));
            size_t used[DEVICES] = {tn_memory_stats(on[0]).used, tn_memory_stats(on[1]).used};
            tn_array *x = tn_arange(0, COUNT, 1, .dtype = TN_FLOAT32, .device = on[d]);
            MUST(tn_eval(x));
            assert_true(tn_memory_stats(on[d]).used >= used[d] + COUNT * sizeof(float));
            assert_int_equal(tn_memory_stats(on[1 - d]).used, used[1 - d]);
            MUST(tn_memory_limit(on[1 - d], used[1 - d] + COUNT));
            assert_int_equal(tn_eval(tn_to(x, on[1 - d])), TN_ERR_MEMORY);
            assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
            assert_non_null(strstr(tn_error(), tn_device_name(on[1 - d])));
            tn_clear_error();
            MUST(tn_memory_limit_parse(on[1 - d], "none"));
            assert_int_equal(tn_item(tn_max(tn_to(x, on[1 - d]))), COUNT - 1);
        }
}

/* ---- how fast, for whoever reads it ---- */

static void test_rate(void **state)
{
    (void)state;
    enum { BYTES = 1 << 28, TIMES = 8 };
    if (on[0].kind != TN_DEVICE_CUDA || strstr(tn_device_properties(on[0]).product, "Fake"))
        skip();
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(BYTES / 4), .device = on[0]);
        MUST(tn_eval(x));
        MUST(tn_eval(tn_to(x, on[1])));
        MUST(tn_synchronize(on[1]));
        double began = tn__seconds(), asked;
        for (int i = 0; i < TIMES; i++)
            TN_SCOPE MUST(tn_eval(tn_to(x, on[1])));
        asked = tn__seconds();
        MUST(tn_synchronize(on[1]));
        double ended = tn__seconds();
        printf("%d copies of %d MiB: asked for in %.0f us, there after %.0f us: %.1f GB/s\n", TIMES, BYTES >> 20,
               1e6 * (asked - began), 1e6 * (ended - began), 1e-9 * BYTES * TIMES / (ended - began));
    }
}

int main(void)
{
    if (test_too_few(on, DEVICES))
        return TEST_SKIPPED;
    common = test_random_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),      cmocka_unit_test(test_large),
        cmocka_unit_test(test_split_network), cmocka_unit_test(test_same_training),
        cmocka_unit_test(test_halves),        cmocka_unit_test(test_failed_step),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_mixing),
        cmocka_unit_test(test_failure),       cmocka_unit_test(test_memory),
        cmocka_unit_test(test_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
