/* SPDX-License-Identifier: MIT */
/*
 * Arguments beyond every bound: lists of more axes than there are, counts that no memory holds, text that is NULL, and
 * matrices that are not finite. Each call ends, in an error or a value, and reads nothing beside its arguments: the
 * first elements of a list are right, so that only its count can be refused.
 */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#define TN_NO_MACROS
#include <tanso.h>

#include "support/device.h"
#include "support/latched.h"

#define REFUSED(call) refused(call, #call)
static void refused(const tn_array *y, const char *call)
{
    if (!tn_is_error(y))
        fail_msg("%s is no error", call);
    if (tn_error_code() == TN_ERR_MEMORY || tn_error_code() == TN_ERR_INTERNAL)
        fail_msg("%s: %s", call, tn_error());
    tn_clear_error();
}

static const double numbers[] = {3, 1, 2, 5, 4, 6, 7, 8, 9};
static const int counts[] = {9, -1, 1000, INT_MAX, INT_MIN};

static void check_axes(tn_axes a)
{
    const tn_array *v = tn_from_doubles(numbers, 9), *x = tn_reshape(v, (tn_shape){2, {3, 3}}), *m = x;
    const tn_array *idx = tn_from_int64s((const int64_t[]){0, 1, 2}, 3);
    const tn_reduce_opts ro = {.axis = a};
    const tn_axis_opts ao = {.axis = a};
    const tn_unique_opts uo = {.axis = a};
    const tn_take_opts to = {.axis = a};
    const tn_norm_opts no = {.axis = a};
    const tn_cross_opts co = {.a = a}, co2 = {.b = a}, co3 = {.result = a};
    const tn_fft_opts fo = {.axis = a}, fx = {.axes = a};
    REFUSED(tn_transpose(x, a));
    REFUSED(tn_squeeze(x, a));
    REFUSED(tn_flip(x, a));
    REFUSED(tn_sum_with(x, &ro));
    REFUSED(tn_argmax_with(x, &ro));
    REFUSED(tn_var_with(x, &ro));
    REFUSED(tn_logsumexp_with(x, &ro));
    REFUSED(tn_any_with(x, &ro));
    REFUSED(tn_max_with(x, &ro));
    REFUSED(tn_median_with(x, &ro));
    REFUSED(tn_nanmean_with(x, &ro));
    REFUSED(tn_nansum_with(x, &ro));
    REFUSED(tn_count_nonzero_with(x, &ro));
    REFUSED(tn_average_with(x, x, NULL, &ro));
    REFUSED(tn_ptp_with(x, &ro));
    REFUSED(tn_nanmax_with(x, &ro));
    REFUSED(tn_nanargmax_with(x, &ro));
    REFUSED(tn_nanmedian_with(x, &ro));
    REFUSED(tn_nanvar_with(x, &ro));
    REFUSED(tn_reduce_by(tn_add, x, &ro));
    REFUSED(tn_accumulate_by(tn_add, x, &ao));
    REFUSED(tn_reduceat_by(tn_add, x, 1, (int64_t[]){0}, &ao));
    REFUSED(tn_sort_with(x, &ao));
    REFUSED(tn_argsort_with(x, &ao));
    REFUSED(tn_cumsum_with(x, &ao));
    REFUSED(tn_cumprod_with(x, &ao));
    REFUSED(tn_partition_with(x, 1, (int64_t[]){0}, &ao));
    REFUSED(tn_argpartition_with(x, 1, (int64_t[]){0}, &ao));
    REFUSED(tn_topk_with(x, 1, NULL, &ao));
    REFUSED(tn_lexsort_with(1, (const tn_array *const[]){x}, &ao));
    REFUSED(tn_nancumsum_with(x, &ao));
    REFUSED(tn_unique_with(x, &uo));
    REFUSED(tn_take_with(x, idx, &to));
    REFUSED(tn_compress(tn_greater(idx, tn_weak_int(0)), x, a));
    REFUSED(tn_linalg_tensorsolve(m, tn_from_doubles(numbers, 3), a));
    REFUSED(tn_linalg_norm_with(m, &no));
    REFUSED(tn_moveaxis(x, a, a));
    REFUSED(tn_roll(x, 1, (int64_t[]){1}, a));
    REFUSED(tn_rot90(x, 1, a));
    REFUSED(tn_repeat(x, 2, a));
    REFUSED(tn_repeat_each(x, idx, a));
    REFUSED(tn_append(x, x, a));
    REFUSED(tn_insert(x, 1, (int64_t[]){0}, x, a));
    REFUSED(tn_delete(x, 1, (int64_t[]){0}, a));
    REFUSED(tn_trim_zeros_along(x, true, true, a));
    REFUSED(tn_packbits(x, a, false));
    REFUSED(tn_unpackbits(tn_cast(x, TN_UINT8), a, TN_NONE, false));
    REFUSED(tn_cross_with(m, m, &co));
    REFUSED(tn_cross_with(m, m, &co2));
    REFUSED(tn_cross_with(m, m, &co3));
    REFUSED(tn_tensordot(x, x, a, a));
    REFUSED(tn_fft_fftshift(x, a));
    REFUSED(tn_fft_ifftshift(x, a));
    REFUSED(tn_fft_fft_with(x, &fo));
    REFUSED(tn_fft_fftn_with(x, &fx));
    REFUSED(tn_fft_irfft2_with(x, &fx));
    REFUSED(tn_quantile_with(x, tn_weak_float(.5), &(tn_quantile_opts){.axis=a}));
}

static void check_shape(tn_shape s)
{
    const tn_array *v = tn_from_doubles(numbers, 9), *x = tn_reshape(v, (tn_shape){2, {3, 3}});
    const tn_array *idx = tn_from_int64s((const int64_t[]){0, 1, 2}, 3);
    const tn_fft_opts fs = {.s = s};
    const tn_axes a = {.count = s.ndim};
    REFUSED(tn_sliding_window_view(x, s, a));
    REFUSED(tn_sliding_window_view(x, s, (tn_axes){0}));
    REFUSED(tn_fft_fftn_with(x, &fs));
    REFUSED(tn_reshape(x, s));
    REFUSED(tn_broadcast_to(x, s));
    REFUSED(tn_zeros_with(s, NULL));
    REFUSED(tn_full_with(s, 1, NULL));
    REFUSED(tn_from_host_with(numbers, s, TN_FLOAT64, NULL));
    REFUSED(tn_indices_with(s, NULL));
    REFUSED(tn_tile(x, s));
    REFUSED(tn_resize(x, s));
    REFUSED(tn_empty_with(s, NULL));
    REFUSED(tn_random_uniform_with(s, NULL));
    REFUSED(tn_random_normal_with(s, NULL));
    REFUSED(tn_random_integers_with(0, 3, s, NULL));
    REFUSED(tn_random_multinomial_with(3, tn_from_doubles((double[]){.5, .5}, 2), s, NULL));
    REFUSED(tn_random_dirichlet_with(v, s, NULL));
    REFUSED(tn_random_choice_with(3, s, NULL));
    REFUSED(tn_random_multivariate_normal_with(tn_from_doubles(numbers, 3), tn_eye_with(3, 3, NULL), s, NULL));
    if (s.ndim != -1) /* TN_FIT */
        REFUSED(tn_random_poisson_with(tn_weak_int(3), s, NULL));
    REFUSED(tn_ravel_multi_index(s.ndim, (const tn_array *const[]){idx}, s, NULL));
    REFUSED(tn_wrap_with((void *)(uintptr_t)numbers, s, TN_FLOAT64, NULL));
    tn_array *out[TN_MAX_NDIM];
    assert_int_not_equal(tn_unravel_index(idx, s, out), TN_OK);
    tn_clear_error();
}

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        TN_SCOPE
        {
            check_axes((tn_axes){counts[i], {0, 1, 0, 1, 0, 1, 0, 1}});
            check_shape((tn_shape){counts[i], {1, 1, 1, 1, 1, 1, 1, 1}});
        }
    TN_SCOPE /* axes moved to the end come in the order of the list */
    {
        tn_array *a = tn_reshape(tn_arange_with(0, 24 * 24, 1, &(tn_create_opts){.dtype = TN_FLOAT64}),
                                 (tn_shape){5, {2, 3, 4, 6, 4}});
        a = tn_add(a, tn_multiply(tn_sin(a), tn_weak_float(1e3)));
        tn_array *b = tn_ones_with((tn_shape){2, {6, 4}}, &(tn_create_opts){.dtype = TN_FLOAT64});
        tn_array *x = tn_linalg_tensorsolve(a, b, (tn_axes){3, {2, 0, 1}});
        if (tn_is_error(x) && tn_status_of(x) == TN_ERR_UNSUPPORTED) { /* without LAPACK */
            tn_clear_error();
            return;
        }
        assert_int_equal(tn_dim(x, 0), 4);
        assert_int_equal(tn_dim(x, 1), 2);
        assert_int_equal(tn_dim(x, 2), 3);
        tn_array *turned = tn_transpose(a, (tn_axes){5, {3, 4, 2, 0, 1}});
        tn_array *back = tn_tensordot(turned, x, (tn_axes){3, {2, 3, 4}}, (tn_axes){3, {0, 1, 2}});
        assert_true(tn_item(tn_max_with(tn_abs(tn_subtract(back, b)), NULL)) < 1e-6);
    }
}

static void test_counts(void **state)
{
    (void)state;
    const int64_t large[] = {INT64_MAX, (int64_t)1 << 62, INT64_MIN};
    for (int i = 0; i < 3; i++)
        TN_SCOPE
        {
            int64_t n = large[i], wide[1][2] = {{n, 0}};
            tn_array *v = tn_from_doubles(numbers, 9);
            REFUSED(tn_pad_with(v, (const int64_t(*)[2])wide, &(tn_pad_opts){.mode = "wrap"}));
            REFUSED(tn_pad_with(v, (const int64_t(*)[2])wide, &(tn_pad_opts){.mode = "reflect"}));
            REFUSED(tn_pad_with(v, (const int64_t(*)[2])wide, &(tn_pad_opts){.mode = "mean"}));
            REFUSED(tn_pad_with(v, (const int64_t(*)[2])wide, NULL));
            REFUSED(tn_random_choice_with(n, (tn_shape){1, {3}}, &(tn_choice_opts){.once = true}));
            REFUSED(tn_repeat(v, n, (tn_axes){0}));
            REFUSED(tn_tile(v, (tn_shape){1, {n}}));
            REFUSED(tn_resize(v, (tn_shape){2, {n, n}}));
            if (n > 0) /* below 0: as many columns as elements */
                REFUSED(tn_vander(v, n, false));
            REFUSED(tn_identity_with(n, NULL));
            REFUSED(tn_linspace_arrays_with(v, v, n, NULL));
        }
    TN_SCOPE
    {
        tn_array *v = tn_from_doubles(numbers, 9);
        REFUSED(tn_block(INT_MAX, INT_MAX, (const tn_array *const[]){v}));
        assert_int_equal(tn_size(tn_polyder(v, INT_MAX)), 0);
        REFUSED(tn_polyint(v, INT_MAX, NULL));
        REFUSED(tn_polyint(v, 1001, NULL));
        REFUSED(tn_polyfit_with(v, v, INT_MAX, NULL));
        tn_array *often = tn_polyint(v, 300, NULL);
        assert_int_equal(tn_size(often), 309);
        assert_int_equal(tn_size(tn_diff(v, INT_MAX, 0)), 0);
    }
}

/* Without a mode, NumPy's defaults. */
static void test_no_mode(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *a = tn_from_doubles(numbers, 4), *b = tn_from_doubles(numbers + 4, 3);
        assert_true(tn_array_equal(tn_convolve(a, b, NULL), tn_convolve(a, b, "full"), false));
        assert_true(tn_array_equal(tn_correlate(a, b, NULL), tn_correlate(a, b, "valid"), false));
        REFUSED(tn_convolve(a, b, ""));
        REFUSED(tn_einsum(NULL, 1, (const tn_array *const[]){a}));
    }
}

static double largest(const tn_array *x) { return tn_item(tn_max_with(tn_abs(x), NULL)); }

/* One element that is not finite: LAPACK's loops need not end. NaN is an error; singular values and eigenvalues
 * of a matrix with an infinite one are NaN. */
static void check_matrix(tn_dtype dtype, int n, double bad)
{
    tn_array *a = tn_cast(tn_random_normal_with((tn_shape){2, {n, n}}, NULL), dtype), *out[4];
    tn_array *right = tn_cast(tn_random_normal_with((tn_shape){2, {n, 2}}, NULL), dtype);
    tn_array *spoilt = tn_slice_update(right, 2, (const tn_slice_range[]){{0, 1, 1}, {0, 1, 1}},
                                       tn_cast(tn_scalar_with(bad, NULL), dtype));
    tn_array *m = tn_slice_update(a, 2, (const tn_slice_range[]){{n - 1, n, 1}, {0, 1, 1}},
                                  tn_cast(tn_scalar_with(bad, NULL), dtype));
    tn_array *values[] = {tn_linalg_svdvals(m), tn_linalg_eigvalsh_with(m, NULL)};
    for (int i = 0; i < 2; i++)
        if (isnan(bad) && (i == 0 || n > 1))
            assert_int_not_equal(tn_eval(values[i]), TN_OK);
        else if (n > 1)
            assert_true(isnan(largest(values[i])));
    tn_clear_error();
    assert_int_not_equal(tn_eval(tn_linalg_eigvals(m)), TN_OK);
    tn_clear_error();
    (void)tn_linalg_lstsq_with(m, right, &out[0], &out[1], &out[2], &out[3], NULL);
    assert_int_not_equal(tn_eval(out[0]), TN_OK);
    tn_clear_error();
    tn_array *shifted = tn_add(a, tn_multiply(tn_cast(tn_eye_with(n, n, NULL), dtype), tn_weak_int(2 * n)));
    assert_int_equal(tn_linalg_lstsq_with(shifted, spoilt, &out[0], &out[1], &out[2], &out[3], NULL), TN_OK);
    assert_true(isnan(tn_item(tn_min_with(tn_abs(tn_slice_axis(out[0], 1, 0, 1, 1)), NULL))));
    assert_true(isfinite(largest(tn_slice_axis(out[0], 1, 1, 2, 1))));
    assert_int_equal(tn_item_int(out[2]), n);
}

static void test_not_finite(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_COMPLEX64, TN_COMPLEX128};
    TEST_ABOUT_CPU("what LAPACK is given");
    tn_array *any = tn_linalg_svdvals(tn_eye_with(2, 2, NULL));
    if (tn_status_of(any) == TN_ERR_UNSUPPORTED) {
        tn_clear_error();
        skip();
    }
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 4; d++)
            for (int n = 1; n < 60; n = n * 4 + 1)
                TN_SCOPE check_matrix(dtypes[d], n, bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_no_mode), cmocka_unit_test(test_not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
