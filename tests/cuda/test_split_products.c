/* SPDX-License-Identifier: MIT */
/*
 * Large float32 products in parts on tensor cores (TN_MATMUL_TF32X3) against float64 products on the same GPU, large
 * enough that GPUs which have such kernels take them: odd extents, transposed and strided factors, batches, updates in
 * place, pieces of k, infinities. Where a GPU has none, float32 has to pass the same. Skipped without a GPU.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

static test_random numbers;

typedef struct shape {
    int64_t batch, rows, depth, columns;
    bool a_across, b_across, a_every_other, b_shared;
} shape;

/* Normal numbers of (batch, rows, columns), maybe lying transposed, maybe every other one of a row. */
static tn_array *matrix(int64_t batch, int64_t rows, int64_t columns, bool across, bool every_other)
{
    int64_t length = (across ? rows : columns) * (every_other ? 2 : 1);
    tn_array *x = tn_random_normal(TN_SHAPE(batch, across ? columns : rows, length), .device = tn_cuda(0));
    assert_int_equal(tn_eval(x), TN_OK);
    if (every_other)
        x = tn_slice_axis(x, 2, 0, length, 2);
    return across ? tn_swapaxes(x, 1, 2) : x;
}

static tn_array *wide(const tn_array *x) { return tn_cast(x, TN_FLOAT64); }

/* |c - r| / |r| in Frobenius' norm. */
static double distance(const tn_array *c, const tn_array *r)
{
    return sqrt(tn_item(tn_sum(tn_square(tn_subtract(wide(c), r)))) / tn_item(tn_sum(tn_square(r))));
}

static void check(const shape *s)
{
    TN_SCOPE {
        tn_array *a = matrix(s->batch, s->rows, s->depth, s->a_across, s->a_every_other);
        tn_array *b = matrix(s->b_shared ? 1 : s->batch, s->depth, s->columns, s->b_across, false);
        tn_array *c = tn_matmul(a, b), *r = tn_matmul(wide(a), wide(b));
        assert_int_equal(tn_eval(c), TN_OK);
        assert_int_equal(tn_eval(r), TN_OK);
        double error = distance(c, r);
        if (!(error <= 1.5e-6))
            fail_msg("batch %lld, %lld x %lld x %lld%s%s: error %g %s", (long long)s->batch, (long long)s->rows,
                     (long long)s->depth, (long long)s->columns, s->a_across ? ", a across" : "",
                     s->b_across ? ", b across" : "", error, tn_error());
    }
}

static void test_shapes(void **state)
{
    (void)state;
    static const shape shapes[] = {
        {1, 2000, 1500, 1800, false, false, false, false},  {1, 2000, 1500, 1800, true, false, false, false},
        {1, 2000, 1500, 1800, false, true, false, false},   {1, 2000, 1500, 1800, true, true, false, false},
        {1, 1999, 1501, 1797, false, false, false, false},  {1, 1921, 1489, 1793, true, true, false, false},
        {1, 2000, 1500, 1800, false, false, true, false},   {3, 2100, 700, 1700, false, true, false, false},
        {3, 2100, 700, 1700, false, false, false, true},    {1, 129, 40000, 8193, false, false, false, false},
        {1, 4096, 50000, 4000, false, false, false, false}, /* in pieces of k where there are 141 GB */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(&shapes[i]);
}

/* p -= c a b in p's memory, several times, as a loop does it. */
static void test_updates(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *a = matrix(1, 1900, 1300, true, false), *b = matrix(1, 1300, 2001, false, false);
        tn_array *p = tn_random_normal(TN_SHAPE(1, 1900, 2001), .device = tn_cuda(0));
        tn_array *r = tn_subtract(wide(p), tn_multiply(tn_matmul(wide(a), wide(b)), 0.25 + 0.5 + 0.75));
        assert_int_equal(tn_eval(r), TN_OK);
        for (int i = 1; i <= 3; i++) {
            tn_assign(p, tn_subtract(p, tn_multiply(tn_matmul(a, b), 0.25 * i)));
            assert_int_equal(tn_eval(p), TN_OK);
        }
        assert_true(distance(p, r) <= 1.5e-6);
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    enum { N = 2048 };
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f, -3.3e38f, 1e-38f, 0, 1e-41f};
    static float values[2][N * N];
    TN_SCOPE {
        for (int side = 0; side < 2; side++) {
            for (int i = 0; i < N * N; i++)
                values[side][i] = (float)(2 * test_random_double(&numbers) - 1);
            for (int i = 0; i < 8; i++) { /* each in a row of a, a column of b, of its own */
                int line = 200 * i + 3, at = (int)test_random_int(&numbers, 0, N - 1);
                values[side][side ? at * N + line : line * N + at] = odd[i];
            }
        }
        tn_array *a = tn_to(tn_from_host(values[0], TN_SHAPE(N, N), TN_FLOAT32), tn_cuda(0));
        tn_array *b = tn_to(tn_from_host(values[1], TN_SHAPE(N, N), TN_FLOAT32), tn_cuda(0));
        tn_array *c = wide(tn_matmul(a, b)), *r = tn_matmul(wide(a), wide(b));
        tn_array *size = tn_matmul(tn_abs(wide(a)), tn_abs(wide(b)));
        tn_array *near = tn_less_equal(tn_abs(tn_subtract(c, r)), tn_multiply(size, 2e-6));
        near = tn_logical_or(near, tn_greater(tn_abs(r), 3.3e38)); /* which float32 need not hold */
        tn_array *good = tn_where(tn_isnan(r), tn_isnan(c), tn_where(tn_isinf(r), tn_equal(c, r), near));
        double most = tn_item(tn_sum(tn_cast(good, TN_FLOAT64)));
        if (most != N * N)
            fail_msg("%g elements of %d are right: %s", most, N * N, tn_error());
    }
}

/* The same again: the same bits. */
static void test_repeatable(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *a = matrix(1, 1900, 1300, false, false), *b = matrix(1, 1300, 2001, false, false);
        tn_array *c = tn_matmul(a, b), *d = tn_matmul(a, b);
        assert_int_equal(tn_eval(c), TN_OK);
        assert_int_equal(tn_eval(d), TN_OK);
        assert_true(tn_item(tn_cast(tn_all(tn_equal(c, d)), TN_FLOAT64)) == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_updates),
                                       cmocka_unit_test(test_not_finite), cmocka_unit_test(test_repeatable)};
    if (test_no_gpu())
        return TEST_SKIPPED;
    numbers = test_random_new();
    tn_set_compile(TN_COMPILE_ALWAYS);
    tn_set_matmul_precision(TN_MATMUL_TF32X3);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
