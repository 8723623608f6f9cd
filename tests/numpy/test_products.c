/* SPDX-License-Identifier: MIT */
/* Matrix products of unusual shapes, for which GPUs have kernels of their own: very long sums and few elements, and
 * very many tiny matrices. Against float64 loops: odd extents, factors that lie in any way, updates in place. */
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
#include "support/read.h"

static test_random numbers;

/* How a factor lies: as it is, transposed, every other column, behind a first column that is not of it, one matrix for
 * the whole batch, two axes of the batch the other way round. */
typedef enum lie { PLAIN, ACROSS, SPARSE, BEHIND, SHARED, TURNED, LIES } lie;
static const char *const lie_name[] = {"plain", "across", "sparse", "behind", "shared", "turned"};

typedef struct shape {
    int64_t batch[2], rows, depth, columns;
    lie a, b;
    bool wide, update;
} shape;

static tn_array *values(tn_shape of, bool wide)
{
    int64_t size = 1;
    for (int d = 0; d < of.ndim; d++)
        size *= of.dim[d];
    double *x = malloc((size_t)(size + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < size; i++)
        x[i] = (float)(2 * test_random_double(&numbers) - 1);
    tn_array *y = tn_cast(tn_from_host(x, of, TN_FLOAT64), wide ? TN_FLOAT64 : TN_FLOAT32);
    free(x);
    assert_int_equal(tn_eval(y), TN_OK);
    return y;
}

static tn_array *matrices(const shape *s, lie how, int64_t rows, int64_t columns)
{
    const int64_t *b = s->batch;
    switch (how) {
    case ACROSS:
        return tn_swapaxes(values(TN_SHAPE(b[0], b[1], columns, rows), s->wide), 2, 3);
    case SPARSE:
        return tn_slice_axis(values(TN_SHAPE(b[0], b[1], rows, 2 * columns), s->wide), 3, 0, 2 * columns, 2);
    case BEHIND:
        return tn_slice_axis(values(TN_SHAPE(b[0], b[1], rows, columns + 1), s->wide), 3, 1, columns + 1, 1);
    case SHARED:
        return values(TN_SHAPE(1, b[1], rows, columns), s->wide);
    case TURNED:
        return tn_swapaxes(values(TN_SHAPE(b[1], b[0], rows, columns), s->wide), 0, 1);
    default:
        return values(TN_SHAPE(b[0], b[1], rows, columns), s->wide);
    }
}

/* Of the largest sum of magnitudes, the error of the worst element. */
static double error_of(const shape *s, const double *a, const double *b, const double *old, const double *c)
{
    const int64_t m = s->rows, n = s->columns, k = s->depth, whole = s->batch[0] * s->batch[1];
    double worst = 0, most = 1;
    for (int64_t q = 0; q < whole; q++) {
        const double *x = a + (s->a == SHARED ? q % s->batch[1] : q) * m * k;
        const double *y = b + (s->b == SHARED ? q % s->batch[1] : q) * k * n;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0, size = 0;
                for (int64_t l = 0; l < k; l++) {
                    sum += x[i * k + l] * y[l * n + j];
                    size += fabs(x[i * k + l] * y[l * n + j]);
                }
                const int64_t at = (q * m + i) * n + j;
                double wanted = old ? old[at] - 0.25 * sum : sum, off = fabs(c[at] - wanted);
                most = size > most ? size : most;
                worst = off > worst || isnan(off) ? off : worst;
            }
    }
    return worst / most;
}

static void check(const shape *s)
{
    TN_SCOPE
    {
        tn_array *a = matrices(s, s->a, s->rows, s->depth), *b = matrices(s, s->b, s->depth, s->columns);
        tn_array *old = s->update ? values(TN_SHAPE(s->batch[0], s->batch[1], s->rows, s->columns), s->wide) : NULL;
        double *was = old ? test_doubles(old) : NULL, *x = test_doubles(a), *y = test_doubles(b), *c[2];
        for (int again = 0; again < 2; again++) {
            if (old) { /* in the old one's memory */
                tn_array *p = tn_cast(tn_from_host(was, tn_shape_of(old), TN_FLOAT64), tn_dtype_of(old));
                assert_int_equal(tn_eval(p), TN_OK);
                tn_assign(p, tn_subtract(p, tn_multiply(tn_matmul(a, b), 0.25)));
                c[again] = test_doubles(p);
            } else {
                c[again] = test_doubles(tn_matmul(a, b));
            }
        }
        const size_t bytes = (size_t)(s->batch[0] * s->batch[1] * s->rows * s->columns) * sizeof(double);
        double error = error_of(s, x, y, was, c[0]);
        bool same = memcmp(c[0], c[1], bytes) == 0;
        free(was), free(x), free(y), free(c[0]), free(c[1]);
        if (!(error <= (s->wide ? 1e-15 : 6e-7)) || !same)
            fail_msg("%lld x %lld times %lld x %lld x %lld%s%s, a %s, b %s: error %g%s", (long long)s->batch[0],
                     (long long)s->batch[1], (long long)s->rows, (long long)s->depth, (long long)s->columns,
                     s->wide ? ", float64" : "", s->update ? ", in place" : "", lie_name[s->a], lie_name[s->b], error,
                     same ? "" : ", other bits the second time");
    }
}

static void test_tall(void **state)
{
    (void)state;
    static const shape shapes[] = {
        {{1, 1}, 20, 20011, 20, ACROSS, PLAIN, false, false}, {{1, 1}, 20, 20000, 20, PLAIN, PLAIN, false, false},
        {{1, 1}, 20, 20000, 20, PLAIN, ACROSS, false, true},  {{1, 1}, 64, 10007, 64, ACROSS, PLAIN, false, false},
        {{1, 1}, 65, 9001, 40, ACROSS, PLAIN, false, true},   {{1, 1}, 3, 70001, 2, ACROSS, PLAIN, false, false},
        {{1, 1}, 2, 70000, 5, PLAIN, ACROSS, false, false},   {{1, 1}, 7, 30001, 23, SPARSE, BEHIND, false, false},
        {{1, 1}, 24, 30000, 12, BEHIND, SPARSE, true, false}, {{1, 1}, 33, 9999, 17, ACROSS, PLAIN, true, true},
        {{1, 1}, 64, 9000, 64, PLAIN, ACROSS, true, false},   {{1, 1}, 120, 8193, 100, ACROSS, PLAIN, false, false},
        {{1, 1}, 8, 24000, 20, ACROSS, PLAIN, false, false},  {{1, 1}, 130, 9000, 50, ACROSS, BEHIND, false, false},
        {{1, 1}, 2, 30000, 3, PLAIN, ACROSS, false, false},   {{1, 1}, 2, 20001, 2, PLAIN, ACROSS, false, true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(&shapes[i]);
    for (int i = 0; i < 4; i++)
        check(&(shape){.batch = {1, 1},
                       .rows = test_random_int(&numbers, 2, 70),
                       .depth = test_random_int(&numbers, 8000, 40000),
                       .columns = test_random_int(&numbers, 2, 70),
                       .a = (lie)test_random_int(&numbers, 0, BEHIND),
                       .b = (lie)test_random_int(&numbers, 0, BEHIND),
                       .wide = test_random_int(&numbers, 0, 3) == 0,
                       .update = test_random_int(&numbers, 0, 1)});
}

static void test_tiny(void **state)
{
    (void)state;
    static const shape shapes[] = {
        {{1, 2003}, 3, 3, 3, PLAIN, PLAIN, false, false},    {{1, 2003}, 4, 4, 4, ACROSS, PLAIN, false, false},
        {{1, 1501}, 8, 8, 8, PLAIN, ACROSS, false, true},    {{1, 1100}, 16, 16, 16, PLAIN, PLAIN, false, false},
        {{1, 1101}, 16, 16, 16, ACROSS, ACROSS, true, true}, {{1, 1024}, 1, 1, 1, PLAIN, PLAIN, false, false},
        {{40, 30}, 5, 7, 9, SHARED, TURNED, false, false},   {{40, 30}, 6, 2, 15, TURNED, SHARED, true, true},
        {{30, 41}, 12, 4, 1, SPARSE, BEHIND, false, false},  {{30, 41}, 1, 16, 13, BEHIND, SPARSE, false, true},
        {{1, 4096}, 2, 2, 2, PLAIN, PLAIN, false, true},     {{1, 1030}, 11, 3, 11, BEHIND, PLAIN, true, false},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(&shapes[i]);
    for (int i = 0; i < 6; i++) {
        lie a = (lie)test_random_int(&numbers, 0, LIES - 1), b = (lie)test_random_int(&numbers, 0, LIES - 1);
        check(&(shape){.batch = {test_random_int(&numbers, 2, 40), test_random_int(&numbers, 520, 600)},
                       .rows = test_random_int(&numbers, 1, 16),
                       .depth = test_random_int(&numbers, 1, 16),
                       .columns = test_random_int(&numbers, 1, 16),
                       .a = a,
                       .b = a == SHARED && b == SHARED ? PLAIN : b, /* else the result would be shared, too */
                       .wide = test_random_int(&numbers, 0, 3) == 0,
                       .update = test_random_int(&numbers, 0, 1)});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tall), cmocka_unit_test(test_tiny)};
    numbers = test_random_new();
    tn_set_compile(TN_COMPILE_ALWAYS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
