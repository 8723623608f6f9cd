/* SPDX-License-Identifier: MIT */
/* Values put aside on a device and fetched from there: what they were when they were put aside, whatever became of the
 * memory that they lay in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "array/build.h"
#include "engine/engine.h"
#include "support/device.h"
#include "support/random.h"

enum { VALUES = 24, MOST = 700 };

static test_random common;

static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_INT64, TN_UINT8, TN_BOOL, TN_COMPLEX128, TN_FLOAT16};

/* Whole numbers of some dtype: all of an array, a row of it, its transpose, or nothing. */
static tn_array *value(int64_t rows, int64_t columns)
{
    tn_dtype dtype = dtypes[test_random_int(&common, 0, (int)(sizeof dtypes / sizeof *dtypes) - 1)];
    tn_array *x = tn_cast(tn_random_integers(0, 100, TN_SHAPE(rows, columns)), dtype);
    assert_int_equal(tn_eval(x), TN_OK);
    switch (test_random_int(&common, 0, 2)) {
    case 0:
        return tn_transpose(x, TN_AXES(1, 0));
    case 1:
        return tn_slice_axis(x, 1, columns / 2, columns, 1);
    default:
        return x;
    }
}

static bool is_host(const tn_array *x) { return tn__array_node(x)->device->capabilities.host_memory; }

static size_t bytes_of(const tn__node *node)
{
    return (size_t)node->shape->size * tn_dtype_size((tn_dtype)node->dtype);
}

static void round_trip(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++)
        TN_SCOPE {
            int count = (int)test_random_int(&common, 0, VALUES);
            tn_array *x[VALUES];
            tn__node *node[VALUES];
            static char before[VALUES][MOST * 16], after[MOST * 16];
            for (int i = 0; i < count; i++) {
                x[i] = value(test_random_int(&common, 0, 7), test_random_int(&common, 1, 100));
                assert_int_equal(tn_eval(x[i]), TN_OK);
                node[i] = tn__array_node(x[i]);
                assert_int_equal(tn_to_host(x[i], before[i], sizeof before[i]), TN_OK);
            }
            tn__call call = tn__enter();
            assert_int_equal(tn__put_aside(count, node), TN_OK);
            for (int i = 0; i < count; i++) {
                assert_true((node[i] == tn__array_node(x[i])) == is_host(x[i]));
                assert_int_equal(node[i]->shape->size, tn_size(x[i]));
                tn__storage *own = tn__array_node(x[i])->storage; /* that is anybody's now */
                static const char nothing[MOST * 16];
                if (!is_host(x[i]) && own->bytes <= sizeof nothing)
                    assert_int_equal(tn__storage_write(own, nothing, own->bytes), TN_OK);
            }
            assert_int_equal(tn__fetch_aside(count, node), TN_OK);
            for (int i = 0; i < count; i++) {
                assert_true(node[i]->device->capabilities.host_memory);
                assert_int_equal(tn__read(node[i], after), TN_OK);
                assert_memory_equal(after, before[i], bytes_of(node[i]));
            }
            tn__leave(call);
        }
}

/* What lies in one block is fetched by one copy, and the block is let go. */
static void one_block(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x[] = {tn_arange(0, 5, 1), tn_ones(TN_SHAPE(3), .dtype = TN_INT64), tn_zeros(TN_SHAPE(0))};
        tn__node *node[3];
        for (int i = 0; i < 3; i++) {
            assert_int_equal(tn_eval(x[i]), TN_OK);
            node[i] = tn__array_node(x[i]);
        }
        tn__call call = tn__enter();
        assert_int_equal(tn__put_aside(3, node), TN_OK);
        if (!is_host(x[0])) {
            assert_ptr_equal(node[0]->storage, node[1]->storage);
            assert_ptr_equal(node[0]->storage, node[2]->storage);
        }
        assert_int_equal(tn__fetch_aside(3, node), TN_OK);
        if (!is_host(x[0]))
            assert_ptr_equal(node[0]->storage, node[1]->storage);
        tn__leave(call);
    }
}

int main(void)
{
    common = test_random_new();
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(one_block)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
