/* SPDX-License-Identifier: MIT */
/* Recording with host memory exhausted at the first, the second, ... allocation: errors, but no
 * crash and no leak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <tanso.h>

#include "core/memory.h"

/* One call of each builder and composite, on extents that no shape table holds yet. */
static void record_all(int64_t n)
{
    static float data[2 * 3 * 2000];
    const tn_slice_range range = {1, TN_NONE, 2};
    TN_SCOPE {
        tn_array *x = tn_from_host(data, TN_SHAPE(2, n, 3), TN_FLOAT32),
                 *i = tn_cast(tn_arange(0, n, 1), TN_INT32);
        tn_array *parts[2];
        const tn_array *both[] = {x, tn_add(x, 1.5)};
        tn_matmul(x, tn_swapaxes(x, 1, 2));
        tn_matmul(tn_greater(x, 0), tn_ones(TN_SHAPE(3)));
        tn_where(tn_isnan(x), 0.0, tn_divide(x, tn_full(TN_SHAPE(n, 1), 3.0)));
        tn_take(x, i, 1);
        tn_scatter_add(x, i, x, 1);
        tn_take_along_axis(x, tn_argmax(x, .axis = TN_AXES(1), .keepdims = true), 1);
        tn_one_hot(i, n + 1, TN_INT8);
        tn_softmax(x, 1);
        tn_logsumexp(x, .axis = TN_AXES(0, 1));
        tn_std(tn_cast(x, TN_FLOAT16), .ddof = 1);
        tn_slice(x, 1, &range);
        tn_slice_update(x, 1, &range, tn_expand_dims(i, -1));
        tn_flip(tn_transpose(x, (tn_axes){0}), (tn_axes){0});
        tn_concatenate(2, both, 1);
        tn_stack(2, both, 0);
        (void)tn_split(x, 2, 0, parts);
        tn_squeeze(tn_expand_dims(x, 1), (tn_axes){0});
        tn_linspace(0, 1, n);
        tn_eye(n, n + 2);
        tn_random_uniform(TN_SHAPE(n, 5), .high = 3);
        tn_random_integers(-4, n, TN_SHAPE(n, 5));
        tn_random_permutation(n);
        (void)tn_add_assign(parts[0], tn_index(x, 0));
        (void)tn_assign(x, 2);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    record_all(7); /* so that what the library makes once is there */
    assert_true(tn_ok());
    size_t live = tn_live_arrays();
    int failures = 0;
    for (int n = 0; n < 200; n++) {
        tn__fail_allocation_after(n);
        record_all(1000 + n);
        tn__fail_allocation_after(-1);
        failures += tn_error_code() == TN_ERR_MEMORY;
        if (!tn_ok() && tn_error_code() != TN_ERR_MEMORY)
            fail_msg("with allocation %d failing: %s", n, tn_error());
        tn_clear_error();
        assert_int_equal(tn_live_arrays(), live);
    }
    assert_true(failures > 10);
    record_all(2000);
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
