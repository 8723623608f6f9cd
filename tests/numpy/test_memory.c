/* SPDX-License-Identifier: MIT */
/* The composed functions with host memory exhausted at the first, the second, ... allocation: errors, but no crash and
 * no leak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <tanso.h>

#include "core/memory.h"

/* One call of nearly everything, on extents that no shape table holds yet. */
static void call_all(int64_t n)
{
    TN_SCOPE
    {
        static const int64_t width[][2] = {{1, 2}, {0, 3}}, places[] = {1, 0};
        tn_array *x = tn_reshape(tn_arange(0, (double)(2 * n), 1), TN_SHAPE(2, n)), *y = tn_cast(x, TN_FLOAT64);
        tn_array *i = tn_from_int64s((int64_t[]){1, 0, 1}, 3), *out[8];
        tn_sort(tn_negative(y));
        tn_argsort(y, .axis = TN_AXES(0));
        tn_cumsum(x, .axis = TN_AXES(1), .out = tn_zeros_like(x));
        (void)tn_unique(tn_remainder(x, 5), .index = &out[0], .inverse = &out[1], .counts = &out[2]);
        tn_topk(y, 2, &out[0]);
        tn_isin(x, i, true);
        tn_median(y, .axis = TN_AXES(1));
        tn_quantile(y, 0.3, .method = "hazen");
        tn_nanvar(y, .ddof = 1);
        tn_average(y, y, &out[0], .axis = TN_AXES(0));
        tn_histogram(x, &out[0], .bins = 4);
        tn_bincount(tn_ravel(x), NULL, 3);
        tn_gradient(y, 1, NULL, 1, 2);
        tn_interp(y, tn_index(y, 0), tn_index(y, 1), NULL, NULL);
        tn_pad(y, width, .mode = "reflect");
        tn_pad(y, width, .mode = "mean");
        tn_roll(y, 1, places, (tn_axes){0});
        tn_tile(y, TN_SHAPE(2, 2));
        tn_repeat_each(y, tn_from_int64s((int64_t[]){1, 2}, 2), TN_AXES(0));
        tn_insert(y, 2, places, 7.0, TN_AXES(1));
        tn_delete(y, 2, places, TN_AXES(1));
        (void)tn_array_split(y, 3, 1, out);
        (void)tn_meshgrid(2, ((const tn_array *[]){i, i}), out);
        tn_diag(i, 1);
        tn_vander(i, 3, false);
        tn_geomspace(1.0, 64.0, n);
        tn_get(y, TN_PICK(i), TN_RANGE(0, TN_NONE, 2));
        tn_get(y, TN_PICK(tn_greater(y, 3)));
        (void)tn_set(y, 1.0, TN_PICK(i), TN_PICK(i));
        (void)tn_add_at(y, tn_index(y, 1), 1, (tn_key[]){TN_I(0)});
        (void)tn_put(y, i, i, "wrap");
        tn_choose(tn_remainder(i, 2), 2, ((const tn_array *[]){i, i}), NULL);
        (void)tn_nonzero(x, out);
        tn_einsum("ij,kj->ik", 2, ((const tn_array *[]){y, y}));
        tn_kron(y, i);
        tn_cross(tn_slice_axis(y, 1, 0, 3, 1), i);
        (void)tn_allclose(y, x);
        tn_binary(tn_add, y, y, .out = tn_zeros_like(y), .where = tn_greater(y, 1));
        tn_max(y, .where = tn_greater(y, 1), .initial = i ? tn_scalar(0) : NULL, .axis = TN_AXES(1));
        for (int k = 0; k < 3; k++)
            tn_round(y, k);
        tn_polyval(i, y);
        (void)tn_polydiv(i, i, &out[0], &out[1]);
        tn_polyfit(tn_index(y, 0), tn_index(y, 1), 1, .covariance = &out[0]);
        tn_histogramdd(tn_transpose(y, (tn_axes){0}), out, .bins = ((int64_t[]){3, 2}));
        tn_packbits(x, TN_AXES(1), false);
        tn_unwrap(y, NULL, 0, 1);
        tn_kaiser(n, 3);
        tn_block(2, 1, ((const tn_array *[]){y, y}));
        tn_piecewise(y, 1, ((const tn_array *[]){tn_greater(y, 1)}), ((const tn_array *[]){y}), NULL);
        tn_concatenate_with(2, ((const tn_array *[]){x, y}), 0, TN_OPTS(tn_out_opts, .dtype = TN_FLOAT32));
        tn_einsum_with("ij->j", 1, ((const tn_array *[]){y}),
                       TN_OPTS(tn_out_opts, .out = tn_zeros(TN_SHAPE(n), .dtype = TN_FLOAT64)));
        tn_quantile(y, 0.3, .method = "inverted_cdf", .weights = tn_add(y, 1));
        tn_searchsorted(tn_complex(i, i), tn_complex(y, y));
        tn_cummax(tn_complex(y, 1), .axis = TN_AXES(1));
        tn_nextafter(tn_cast(y, TN_FLOAT16), 1);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    call_all(9); /* so that what the library makes once is there */
    if (!tn_ok())
        fail_msg("%s", tn_error());
    size_t live = tn_live_arrays();
    int failures = 0;
    for (int n = 0; n < 400; n += 3) {
        tn__fail_allocation_after(n);
        call_all(100 + n);
        tn__fail_allocation_after(-1);
        failures += !tn_ok();
        tn_clear_error();
        assert_int_equal(tn_live_arrays(), live);
    }
    assert_true(failures > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
