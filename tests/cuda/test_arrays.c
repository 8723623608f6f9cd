/* SPDX-License-Identifier: MIT */
/* Expressions written once, evaluated on the CPU and on a GPU: within float32's rounding the same. Skipped without a
 * GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { ROWS = 37, COLUMNS = 129, MOST = 1 << 16 };

static uint64_t seed;

/* What an expression is made of: equal on every device. */
typedef struct inputs {
    tn_array *x, *y, *row, *index;
} inputs;

static tn_array *chain(const inputs *in)
{
    return tn_add(tn_multiply(in->x, in->y), tn_tanh(tn_subtract(in->x, in->row)));
}
static tn_array *sum_all(const inputs *in) { return tn_sum(in->x); }
static tn_array *sum_rows(const inputs *in) { return tn_sum(tn_exp(in->x), .axis = TN_AXES(1)); }
static tn_array *sum_columns(const inputs *in) { return tn_sum(in->x, .axis = TN_AXES(0), .keepdims = true); }
static tn_array *largest(const inputs *in) { return tn_max(in->x, .axis = TN_AXES(1)); }
static tn_array *position(const inputs *in) { return tn_argmax(in->x, .axis = TN_AXES(1)); }
static tn_array *soft(const inputs *in) { return tn_softmax(in->x, 1); }
static tn_array *product(const inputs *in) { return tn_matmul(in->x, tn_transpose(in->y, (tn_axes){0})); }
static tn_array *product_of_transposed(const inputs *in) { return tn_matmul(tn_transpose(in->x, (tn_axes){0}), in->y); }
static tn_array *transposed(const inputs *in) { return tn_transpose(in->x, (tn_axes){0}); }
static tn_array *taken(const inputs *in) { return tn_take(in->x, in->index, 0); }
static tn_array *sliced(const inputs *in) { return tn_slice_axis(in->x, 1, 3, 100, 7); }
static tn_array *whole(const inputs *in) { return tn_cast(tn_multiply(in->x, in->y), TN_INT32); }
static tn_array *half(const inputs *in) { return tn_cast(tn_cast(in->x, TN_FLOAT16), TN_FLOAT32); }
static tn_array *random_numbers(const inputs *in)
{
    (void)in;
    return tn_random_uniform(TN_SHAPE(ROWS, COLUMNS));
}

static tn_array *gradient(const inputs *in)
{
    tn_array *w = tn_multiply(in->y, 0.1);
    tn_requires_grad(w);
    tn_array *scores = tn_matmul(in->x, tn_transpose(w, (tn_axes){0}));
    if (tn_backward(tn_mean(tn_softmax_cross_entropy(scores, in->index))) != TN_OK)
        return scores;
    return tn_grad(w);
}

static const struct {
    const char *name;
    tn_array *(*of)(const inputs *in);
    double tolerance; /* relative to the largest element */
} expressions[] = {
    {"chain", chain, 1e-6},
    {"sum_all", sum_all, 1e-5},
    {"sum_rows", sum_rows, 1e-5},
    {"sum_columns", sum_columns, 1e-5},
    {"largest", largest, 0},
    {"position", position, 0},
    {"soft", soft, 1e-5},
    {"product", product, 1e-5},
    {"product_of_transposed", product_of_transposed, 1e-5},
    {"transposed", transposed, 0},
    {"taken", taken, 0},
    {"sliced", sliced, 0},
    {"whole", whole, 0},
    {"half", half, 0},
    {"random_numbers", random_numbers, 0},
    {"gradient", gradient, 1e-5},
};
enum { EXPRESSIONS = sizeof expressions / sizeof *expressions };

static double results[2][MOST];

static int64_t evaluate(tn_device device, int which, double *to)
{
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS], row[COLUMNS];
    int64_t index[ROWS], count = -1;
    srand((unsigned)seed);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = (float)rand() / (float)RAND_MAX * 4 - 2;
        y[i] = (float)rand() / (float)RAND_MAX * 4 - 2;
    }
    for (int i = 0; i < COLUMNS; i++)
        row[i] = (float)rand() / (float)RAND_MAX;
    for (int i = 0; i < ROWS; i++)
        index[i] = rand() % ROWS;
    TN_SCOPE TN_ON_DEVICE(device)
    {
        tn_seed(seed);
        inputs in = {tn_from_host(x, TN_SHAPE(ROWS, COLUMNS), TN_FLOAT32),
                     tn_from_host(y, TN_SHAPE(ROWS, COLUMNS), TN_FLOAT32),
                     tn_from_host(row, TN_SHAPE(COLUMNS), TN_FLOAT32), tn_from_host(index, TN_SHAPE(ROWS), TN_INT64)};
        tn_array *z = tn_cast(expressions[which].of(&in), TN_FLOAT64);
        count = tn_size(z);
        if (count > MOST || tn_to_host(z, to, (size_t)count * sizeof *to) != TN_OK ||
            !tn_device_equal(tn_device_of(z), device))
            count = -1;
    }
    return count;
}

static void check(int which)
{
    int64_t here = evaluate(tn_cpu(), which, results[0]), there = evaluate(tn_cuda(0), which, results[1]);
    if (here < 0 || here != there) {
        print_error("%s: %lld and %lld elements: %s\n", expressions[which].name, (long long)here, (long long)there,
                    tn_error());
        tn_clear_error();
        fail();
    }
    double largest_element = 0, error = 0;
    for (int64_t i = 0; i < here; i++) {
        largest_element = fmax(largest_element, fabs(results[0][i]));
        error = fmax(error, isnan(results[1][i]) ? INFINITY : fabs(results[0][i] - results[1][i]));
    }
    if (!(largest_element > 0) || !(error <= expressions[which].tolerance * largest_element))
        fail_msg("%s: largest %g, error %g", expressions[which].name, largest_element, error);
}

static void test_expression(void **state) { check((int)(intptr_t)*state); }

/* The same again on the same device: the same bits. */
static void test_repeatable(void **state)
{
    (void)state;
    for (int i = 0; i < EXPRESSIONS; i++) {
        int64_t first = evaluate(tn_cuda(0), i, results[0]), second = evaluate(tn_cuda(0), i, results[1]);
        assert_true(first > 0 && first == second);
        assert_memory_equal(results[0], results[1], (size_t)first * sizeof **results);
    }
}

int main(void)
{
    struct CMUnitTest tests[EXPRESSIONS + 1];
    if (test_no_gpu())
        return TEST_SKIPPED;
    seed = test_seed_new();
    for (intptr_t i = 0; i < EXPRESSIONS; i++)
        tests[i] = (struct CMUnitTest){expressions[i].name, test_expression, NULL, NULL, (void *)i};
    tests[EXPRESSIONS] = (struct CMUnitTest)cmocka_unit_test(test_repeatable);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
