/* SPDX-License-Identifier: MIT */
/*
 * Batches of products whose matrices lie as attention's heads do, in rows that hold all heads: as views, sums with a
 * bias, slices and transposes, several products of one operand. Of small whole numbers, so that float16, whose products
 * are always a library's on a GPU, holds each result exactly, and int64 on the CPU says what it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { PROGRAMS = 30, MOST = 8 * 5 * 24 * 12 };

static test_random common;

static int64_t between(int64_t least, int64_t most) { return test_random_int(&common, least, most); }

/* The same numbers on the CPU, as int64, and on the device. */
typedef struct pair {
    tn_array *right, *tested;
} pair;

static pair whole_numbers(tn_shape shape, tn_dtype dtype)
{
    static int8_t values[MOST];
    int64_t size = 1;
    for (int d = 0; d < shape.ndim; d++)
        size *= shape.dim[d];
    assert_true(size <= MOST);
    for (int64_t i = 0; i < size; i++)
        values[i] = (int8_t)between(-2, 2);
    return (pair){tn_cast(tn_from_host(values, shape, TN_INT8, .device = tn_cpu()), TN_INT64),
                  tn_cast(tn_from_host(values, shape, TN_INT8, .device = test_device()), dtype)};
}

static void compare(const char *what, const tn_array *right, const tn_array *tested)
{
    if (!tn_array_equal(right, tn_cast(tn_to_cpu(tested), TN_INT64), false))
        fail_msg("%s: %s", what, tn_ok() ? "other numbers" : tn_error());
}

#define BOTH(name, expression) \
    static tn_array *name(tn_array *a, tn_array *b) \
    { \
        (void)b; \
        return expression; \
    }
BOTH(add, tn_add(a, b))
BOTH(heads, tn_swapaxes(a, 1, 2))
BOTH(across, tn_swapaxes(a, 2, 3))
BOTH(part, tn_slice_axis(a, 1, 1, tn_dim(a, 1), 1))
BOTH(product, tn_matmul(a, b))

static pair both(tn_array *(*f)(tn_array *, tn_array *), pair a, pair b)
{
    return (pair){f(a.right, b.right), f(a.tested, b.tested)};
}

/* (batch, rows, heads, width), with a bias or without, perhaps a slice of the rows, by heads. */
static pair rows_by_heads(const int64_t *dim, tn_dtype dtype, bool sliced)
{
    pair x = whole_numbers(TN_SHAPE(dim[0], dim[1] + sliced, dim[2], dim[3]), dtype);
    if (between(0, 2))
        x = both(add, x, whole_numbers(TN_SHAPE(dim[2], dim[3]), dtype));
    if (sliced)
        x = both(part, x, x);
    return both(heads, x, x);
}

static void test_products(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS; i++)
        TN_SCOPE {
            tn_dtype dtype = between(0, 1) ? TN_FLOAT16 : TN_FLOAT32;
            const int64_t dim[] = {between(4, 8), between(1, 23), between(1, 5), between(1, 12)};
            pair q = rows_by_heads(dim, dtype, false), k = rows_by_heads(dim, dtype, between(0, 1));
            pair weights = whole_numbers(TN_SHAPE(1, 1, dim[1], dim[1]), dtype);
            pair scores = both(product, q, both(across, k, k));
            pair mixed = both(product, both(add, weights, both(across, weights, weights)), k);
            pair squares = both(product, both(across, q, q), k);
            const tn_array *const all[] = {scores.tested, mixed.tested, squares.tested};
            assert_int_equal(tn_eval_all(3, all), TN_OK);
            compare("q k^T", scores.right, scores.tested);
            compare("w k", mixed.right, mixed.tested);
            compare("q^T k", squares.right, squares.tested);
        }
}

int main(void)
{
    common = test_random_new();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
