/* SPDX-License-Identifier: MIT */
/*
 * What NumPy promises at the edges of its functions: masks of extent 0, values with axes of extent 1 in front, odd
 * reflections that repeat, exact pad values, weights, masks that are none, numbers beyond a dtype, given means, bins
 * with NaN, statistics of nothing. Expected values are NumPy 2.4's; compiled and not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/latched.h"

#define EXPECT(x, ...) expect(x, __LINE__, TN_INTS(__VA_ARGS__))
static void expect(const tn_array *x, int line, int count, const int64_t *values)
{
    if (tn_is_error(x) || tn_size(x) != count)
        fail_msg("line %d: %lld elements, expected %d: %s", line, (long long)tn_size(x), count, tn_error());
    tn_array *wanted = tn_reshape(tn_from_int64s(values, count), tn_shape_of(x));
    if (!tn_array_equal(tn_cast(x, TN_INT64), wanted, false))
        fail_msg("line %d: got %s", line, tn_string(x));
}

#define REFUSED(x, code, words) \
    do { \
        assert_true(tn_is_error(x)); \
        assert_failed(code, words); \
    } while (0)

static tn_array *bytes(void) { return tn_arange(0, 3, 1, .dtype = TN_UINT8); }

static void check_masks(void)
{
    tn_array *none = tn_zeros(TN_SHAPE(0), .dtype = TN_BOOL), *x = tn_reshape(tn_arange(0, 6, 1), TN_SHAPE(2, 3));
    tn_array *taken = tn_getitem(tn_arange(0, 3, 1), TN_KEYS(TN_PICK(none)));
    assert_int_equal(tn_size(taken), 0);
    taken = tn_getitem(x, TN_KEYS(TN_WHOLE, TN_PICK(none)));
    assert_int_equal(tn_dim(taken, 0), 2);
    assert_int_equal(tn_dim(taken, 1), 0);
    taken = tn_getitem(x, TN_KEYS(TN_PICK(tn_zeros(TN_SHAPE(0, 3), .dtype = TN_BOOL))));
    assert_int_equal(tn_ndim(taken), 1);
    REFUSED(tn_getitem(x, TN_KEYS(TN_PICK(tn_zeros(TN_SHAPE(0, 4), .dtype = TN_BOOL)))), TN_ERR_INDEX, "extent 4");
    tn_array *kept = tn_reshape(tn_arange(0, 6, 1), TN_SHAPE(2, 3));
    assert_int_equal(tn_setitem(kept, tn_scalar(7), TN_KEYS(TN_PICK(none))), TN_OK);
    assert_int_equal(tn_setitem(kept, tn_scalar(7), TN_KEYS(TN_WHOLE, TN_PICK(none))), TN_OK);
    tn_array *flat_none = tn_zeros(TN_SHAPE(0, 0), .dtype = TN_BOOL);
    assert_int_equal(tn_add_at(kept, tn_weak_int(7), TN_KEYS(TN_PICK(flat_none))), TN_OK);
    EXPECT(kept, 0, 1, 2, 3, 4, 5);
    /* integers are no mask */
    tn_array *ints = tn_from_int64s((const int64_t[]){1, 0, 1}, 3), *v = tn_arange(0, 3, 1), *out = tn_zeros_like(v);
    REFUSED(tn_sum(v, .where = ints), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_mean(v, .where = ints), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_max(v, .where = ints, .initial = v), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_any(v, .where = ints), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_var(v, .where = ints), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_nanmean(tn_cast(v, TN_FLOAT64), .where = ints), TN_ERR_DTYPE, "expected bool");
    /* nor is 0, which C takes for no array at all, an operand */
    REFUSED(tn_sum(v, .where = 0), TN_ERR_VALUE, "the option where is no number");
    REFUSED(tn_prod(v, .initial = 0), TN_ERR_VALUE, ".initial = tn_scalar(0) is meant");
    REFUSED(tn_max(v, .axis = TN_AXES(0), .initial = 0), TN_ERR_VALUE, "the option initial is no number");
    REFUSED(tn_nanmin(tn_cast(v, TN_FLOAT64), .initial = 0), TN_ERR_VALUE, "the option initial is no number");
    REFUSED(tn_nanmean(tn_cast(v, TN_FLOAT64), .where = 0), TN_ERR_VALUE, "the option where is no number");
    REFUSED(tn_nanstd(tn_cast(v, TN_FLOAT64), .where = 0), TN_ERR_VALUE, "the option where is no number");
    REFUSED(tn_var(v, .mean = 0), TN_ERR_VALUE, "the option mean is no number");
    REFUSED(tn_reduce_by(tn_add, v, TN_OPTS(tn_reduce_opts, .initial = 0)), TN_ERR_VALUE, "initial is no number");
    REFUSED(tn_binary(tn_add, v, v, .where = 0), TN_ERR_VALUE, "the option where is no number");
    REFUSED(tn_unary(tn_square, v, .out = out, .where = 0), TN_ERR_VALUE, "the option where is no number");
    EXPECT(out, 0, 0, 0);
    assert_float_equal(tn_item(tn_sum(v, .where = NULL, .initial = NULL)), 3, 0);
    REFUSED(tn_binary(tn_add, v, v, .where = ints), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_binary(tn_add, v, v, .out = out, .where = ints), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_write(out, v, ints), TN_ERR_DTYPE, "expected bool");
    REFUSED(tn_reduce_by(tn_add, v, TN_OPTS(tn_reduce_opts, .where = ints, .initial = tn_scalar(0))), TN_ERR_DTYPE,
            "expected bool");
    EXPECT(tn_sum(v, .where = tn_cast(ints, TN_BOOL)), 2);
}

static void check_assigned(void)
{
    tn_array *x = tn_zeros(TN_SHAPE(3)), *deep = tn_reshape(tn_arange(1, 4, 1), TN_SHAPE(1, 1, 3));
    assert_int_equal(tn_assign(x, deep), TN_OK);
    EXPECT(x, 1, 2, 3);
    x = tn_zeros(TN_SHAPE(3));
    EXPECT(tn_write(x, tn_cast(deep, TN_FLOAT32), NULL), 1, 2, 3);
    EXPECT(tn_write(x, tn_zeros(TN_SHAPE(1, 1)), tn_greater(x, 1)), 1, 0, 0);
    tn_array *pair = tn_reshape(tn_arange(7, 9, 1), TN_SHAPE(1, 2));
    EXPECT(tn_slice_update(x, 1, (const tn_slice_range[]){{1, 3, 1}}, pair), 1, 7, 8);
    assert_int_equal(tn_assign(x, tn_zeros(TN_SHAPE(2, 3))), TN_ERR_SHAPE);
    tn_clear_error();
}

static void check_pads(void)
{
    const int64_t nine[1][2] = {{9, 9}}, width[1][2] = {{7, 4}}, one[1][2] = {{1, 2}};
    tn_array *x = tn_from_int64s((const int64_t[]){1, 4, 2, 7}, 4), *two = tn_from_int64s((const int64_t[]){1, 4}, 2);
    EXPECT(tn_pad(x, nine, .mode = "reflect", .odd = true), -17, -12, -14, -11, -8, -10, -5, 0, -2, 1, 4, 2, 7, 12, 10,
           13, 16, 14, 19, 24, 22, 25);
    EXPECT(tn_pad(two, width, .mode = "symmetric", .odd = true), -8, -8, -5, -5, -2, -2, 1, 1, 4, 4, 7, 7, 10);
    int64_t exact = ((int64_t)1 << 60) + 7;
    tn_array *pairs = tn_from_int64s((const int64_t[]){exact, -exact}, 2);
    EXPECT(tn_pad(two, one, .constants = pairs), exact, 1, 4, -exact, -exact);
    tn_array *z = tn_pad(tn_cast(two, TN_COMPLEX128), one, .constants = tn_complex(tn_scalar(2), tn_scalar(3)));
    EXPECT(tn_imag(z), 3, 0, 0, 3, 3);
    EXPECT(tn_real(z), 2, 1, 4, 2, 2);
    const int64_t none[1][2] = {{0, 0}};
    tn_array *f = tn_cast(two, TN_FLOAT64), *mean = tn_pad(f, one, .mode = "mean", .stat_length = none);
    EXPECT(tn_isnan(mean), 1, 0, 0, 1, 1);
    EXPECT(tn_isnan(tn_pad(f, one, .mode = "median", .stat_length = none)), 1, 0, 0, 1, 1);
    REFUSED(tn_pad(f, one, .mode = "maximum", .stat_length = none), TN_ERR_VALUE, "stat_length");
    REFUSED(tn_pad(bytes(), one, .values = (const double[1][2]){{300, 0}}), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_pad(f, none, .mode = "minimum", .stat_length = none), TN_ERR_VALUE, "1 or more");
    /* an error beside the first of two axes */
    const int64_t both[2][2] = {{1, 1}, {1, 1}};
    const double much[2][2] = {{300, 300}, {300, 300}};
    tn_array *square = tn_zeros(TN_SHAPE(2, 2), .dtype = TN_UINT8);
    REFUSED(tn_pad(square, both, .mode = "constant", .values = much), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_pad(square, both, .mode = "mean", .stat_length = (const int64_t[2][2]){{-1, 1}, {1, 1}}), TN_ERR_VALUE,
            "0 or more");
    tn_array *j = tn_complex(tn_scalar(0), tn_scalar(1));
    REFUSED(tn_pad(square, both, .constants = j), TN_ERR_DTYPE, "complex constants");
    REFUSED(tn_pad(square, both, .mode = "linear_ramp", .constants = j), TN_ERR_DTYPE, "complex constants");
    /* a ramp begins where it is told to, and is rounded down at its end alone */
    EXPECT(tn_pad(two, width, .mode = "linear_ramp", .constants = tn_scalar(2.5)), 2, 2, 2, 1, 1, 1, 1, 1, 4, 3, 3, 2,
           2);
    /* 2 edge - x of bools is true where one of them is */
    tn_array *bits = tn_cast(tn_from_int64s((const int64_t[]){0, 0, 1}, 3), TN_BOOL), *odd_bits;
    odd_bits = tn_pad(bits, width, .mode = "symmetric", .odd = true);
    assert_int_equal(tn_dtype_of(odd_bits), TN_BOOL);
    EXPECT(odd_bits, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1);
}

static void check_statistics(void)
{
    tn_array *x = tn_from_doubles((const double[]){1, 2, 3}, 3), *v = tn_arange(0, 3, 1);
    const double negative[] = {1, -1, 1}, half[] = {1, 0.5, 1};
    REFUSED(tn_cov_with(x, TN_OPTS(tn_cov_opts, .aweights = tn_from_doubles(negative, 3))), TN_ERR_VALUE, "negative");
    REFUSED(tn_cov_with(x, TN_OPTS(tn_cov_opts, .fweights = tn_from_doubles(negative, 3))), TN_ERR_VALUE, "negative");
    REFUSED(tn_cov_with(x, TN_OPTS(tn_cov_opts, .fweights = tn_from_doubles(half, 3))), TN_ERR_VALUE, "whole");
    tn_array *c = tn_cov_with(x, TN_OPTS(tn_cov_opts, .fweights = tn_from_int64s((const int64_t[]){1, 1, 0}, 3)));
    assert_float_equal(tn_item(c), 0.5, 1e-12);
    /* a mean of another place gives the mean square about that */
    assert_float_equal(tn_item(tn_var(v, .mean = tn_scalar(1))), 2.0 / 3, 1e-12);
    assert_float_equal(tn_item(tn_var(v, .mean = tn_scalar(2))), 5.0 / 3, 1e-12);
    assert_float_equal(tn_item(tn_std(v, .mean = tn_scalar(2), .ddof = 1)), sqrt(2.5), 1e-12);
    tn_array *m = tn_reshape(tn_arange(0, 6, 1, .dtype = TN_FLOAT64), TN_SHAPE(2, 3));
    tn_array *means = tn_mean(m, .axis = TN_AXES(1), .keepdims = true);
    assert_true(tn_array_equal(tn_var(m, .axis = TN_AXES(1)), tn_var(m, .axis = TN_AXES(1), .mean = means), false));
    REFUSED(tn_var(m, .mean = tn_zeros(TN_SHAPE(2))), TN_ERR_SHAPE, "broadcast");
    /* Of complex numbers the whole mean counts, in whatever dtype their variance is. */
    const double parts[] = {1, 2, 3, -1, -1, 1, 1, 2};
    tn_array *z = tn_from_complex_parts(parts, 4), *about = tn_reshape(tn_weak_complex_parts(1, 1), TN_SHAPE(1));
    for (int i = 0; i < 4; i++) {
        const tn_dtype of[] = {TN_DTYPE_DEFAULT, TN_FLOAT64, TN_FLOAT32, TN_FLOAT16};
        assert_float_equal(tn_item(tn_var(z, .mean = about, .dtype = of[i])), 3.5, 0);
        assert_float_equal(tn_item(tn_nanvar(tn_cast(z, TN_COMPLEX64), .mean = about, .dtype = of[i])), 3.5, 0);
        assert_float_equal(tn_item(tn_std(z, .mean = about, .dtype = of[i])), sqrt(3.5), 2e-3);
    }
    EXPECT(tn_var(z, .mean = about, .dtype = TN_INT32), 3);
    EXPECT(tn_std(z, .mean = about, .dtype = TN_INT32), 1);
    REFUSED(tn_cov_with(x, TN_OPTS(tn_cov_opts, .aweights = tn_zeros(TN_SHAPE(3)))), TN_ERR_VALUE, "0 all over");
    REFUSED(tn_cov_with(x, TN_OPTS(tn_cov_opts, .dtype = TN_INT32)), TN_ERR_DTYPE, "fraction");
    assert_int_equal(tn_size(tn_cov_with(tn_zeros(TN_SHAPE(2, 0)), TN_OPTS(tn_cov_opts, .by_columns = true,
                                                                          .aweights = tn_zeros(TN_SHAPE(2))))), 0);
    REFUSED(tn_quantile(x, tn_scalar(0.5), .method = "inverted_cdf", .weights = tn_zeros(TN_SHAPE(3))), TN_ERR_VALUE,
            "0 all over");
    tn_array *ends = tn_quantile(v, tn_from_int64s((const int64_t[]){0, 1}, 2), .method = "weibull");
    assert_int_equal(tn_dtype_of(ends), TN_INT64);
    EXPECT(ends, 0, 2);
    /* of no edges there are no bins */
    tn_array *edges = NULL, *none = tn_histogram(x, &edges, .edges = tn_zeros(TN_SHAPE(0)));
    assert_true(tn_size(none) == 0 && tn_size(edges) == 0 && tn_dtype_of(none) == TN_INT64);
    none = tn_histogram(x, NULL, .edges = tn_zeros(TN_SHAPE(1)), .weights = tn_cast(x, TN_COMPLEX64));
    assert_true(tn_size(none) == 0 && tn_dtype_of(none) == TN_COMPLEX64);
    tn_array *turned = tn_complex(tn_zeros_like(x), tn_ones_like(x)); /* the weights' kind is the density's */
    none = tn_histogram(x, NULL, .bins = 2, .weights = turned, .density = true);
    assert_int_equal(tn_dtype_of(none), TN_COMPLEX128);
    EXPECT(tn_isfinite(tn_real(none)), 1, 1);
    REFUSED(tn_histogram_bin_edges(x, .weights = tn_zeros(TN_SHAPE(2))), TN_ERR_SHAPE, "array's shape");
    /* Bins that have no width in the elements' dtype, which only functions of several dimensions allow. */
    const double far[] = {1e17, 1e17 + 64};
    tn_array *large = tn_from_doubles(far, 2), *narrow = tn_full(TN_SHAPE(1), 300.75, .dtype = TN_FLOAT16), *both[2];
    REFUSED(tn_histogram(large, NULL, .bins = 10), TN_ERR_VALUE, "10 bins between 1e+17");
    REFUSED(tn_histogram_bin_edges(narrow, .bins = 7), TN_ERR_VALUE, "too many for numbers of float16");
    EXPECT(tn_histogram(large, NULL, .bins = 4), 1, 0, 0, 1);
    EXPECT(tn_histogram(narrow, NULL, .bins = 4), 0, 0, 1, 0);
    assert_int_equal(tn_size(tn_histogram2d(narrow, narrow, both, .bins = ((int64_t[]){7, 7}))), 49);
    /* a NaN to begin with is left out like another; alone it stays */
    const double some[] = {NAN, 1, NAN, NAN, 2, NAN};
    tn_array *gaps = tn_reshape(tn_from_doubles(some, 6), TN_SHAPE(3, 2)), *from = tn_scalar(NAN, .dtype = TN_FLOAT64);
    EXPECT(tn_isnan(tn_nanmax(gaps, .axis = TN_AXES(1), .initial = from)), 0, 1, 0);
    EXPECT(tn_nanmin(gaps, .axis = TN_AXES(1), .initial = tn_weak_float(5)), 1, 5, 2);
    assert_float_equal(tn_item(tn_nanmax(gaps, .initial = tn_weak_float(NAN))), 2, 0);
    assert_int_equal(tn_size(tn_unique(tn_ravel(gaps), .axis = TN_AXES(0))), 3);
    const double at[] = {0, 1, 2.5, NAN};
    tn_array *p = tn_from_doubles(at, 4);
    EXPECT(tn_digitize(p, tn_from_doubles((const double[]){1, 2, NAN}, 3)), 0, 1, 2, 3);
    assert_false(tn_is_error(tn_digitize(p, tn_from_doubles((const double[]){1, NAN}, 2)))); /* descend, for NumPy */
    EXPECT(tn_digitize(p, tn_from_doubles((const double[]){NAN, 1}, 2)), 2, 1, 1, 0);
    REFUSED(tn_digitize(p, tn_from_doubles((const double[]){NAN, 1, 2}, 3)), TN_ERR_VALUE, "ascend");
    REFUSED(tn_digitize(p, tn_from_doubles((const double[]){1, 2, 1}, 3)), TN_ERR_VALUE, "ascend");
}

/* The first value counts once, however many axes are folded. */
static void check_folds(void)
{
    tn_array *x = tn_reshape(tn_arange(0, 6, 1), TN_SHAPE(2, 3)), *one = tn_scalar(1, .dtype = TN_INT64);
    EXPECT(tn_reduce_by(tn_bitwise_xor, x, TN_OPTS(tn_reduce_opts, .initial = one)), 0);
    EXPECT(tn_reduce_by(tn_add, x, TN_OPTS(tn_reduce_opts, .initial = one, .keepdims = true)), 16);
    EXPECT(tn_reduce_by(tn_add, tn_expand_dims(x, 1), TN_OPTS(tn_reduce_opts, .initial = one, .axis = TN_AXES(0, 2))),
           16);
    EXPECT(tn_reduce_by(tn_add, x, TN_OPTS(tn_reduce_opts, .initial = one, .where = tn_less(x, 3))), 4);
    EXPECT(tn_reduce_by(tn_subtract, x, TN_OPTS(tn_reduce_opts, .initial = one, .axis = TN_AXES(0))), -2, -4, -6);
    tn_array *places = tn_from_doubles((const double[]){1}, 1);
    static const char *const modes[] = {"raise", "wrap", "clip"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tn_put(x, places, one, modes[i]), TN_ERR_DTYPE);
        assert_failed(TN_ERR_DTYPE, "integers");
    }
}

/* Numbers that a dtype does not hold are told of, with what it holds, wherever a C number becomes an element. */
static void check_numbers(void)
{
    tn_array *u = bytes(), *x = bytes();
    REFUSED(tn_full(TN_SHAPE(2), 300, .dtype = TN_UINT8), TN_ERR_VALUE, "uint8, which holds 0 to 255");
    REFUSED(tn_full(TN_SHAPE(2), -1, .dtype = TN_UINT8), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_full(TN_SHAPE(2), NAN, .dtype = TN_INT32), TN_ERR_VALUE, "-2147483648 to 2147483647");
    REFUSED(tn_full(TN_SHAPE(2), INFINITY, .dtype = TN_INT64), TN_ERR_VALUE, "9223372036854775807");
    REFUSED(tn_full(TN_SHAPE(2), 0x1p63, .dtype = TN_INT64), TN_ERR_VALUE, "int64");
    REFUSED(tn_full(TN_SHAPE(2), 0x1p64, .dtype = TN_UINT64), TN_ERR_VALUE, "18446744073709551615");
    REFUSED(tn_full_like(u, 256), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_scalar(-129, .dtype = TN_INT8), TN_ERR_VALUE, "-128 to 127");
    EXPECT(tn_full(TN_SHAPE(1), 255.9, .dtype = TN_UINT8), 255);
    EXPECT(tn_full(TN_SHAPE(1), -0.5, .dtype = TN_UINT8), 0);
    EXPECT(tn_full(TN_SHAPE(1), -128.5, .dtype = TN_INT8), -128);
    EXPECT(tn_full(TN_SHAPE(1), 300, .dtype = TN_BOOL), 1);
    assert_true(isinf(tn_item(tn_full(TN_SHAPE(1), 1e300))));
    REFUSED(tn_arange(0, 300, 1, .dtype = TN_UINT8), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_arange(-1, 3, 1, .dtype = TN_UINT8), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_linspace(0, 300, 4, .dtype = TN_UINT8), TN_ERR_VALUE, "0 to 255");
    assert_int_equal(tn_size(tn_arange(0, 256, 1, .dtype = TN_UINT8)), 256);
    assert_int_equal(tn_assign(x, 300), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "0 to 255");
    assert_int_equal(tn_assign(x, NAN), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "0 to 255");
    EXPECT(x, 0, 1, 2);
    REFUSED(tn_slice_update(u, 1, (const tn_slice_range[]){{0, 1, 1}}, tn_weak_int(300)), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_where(tn_greater(u, 1), u, 300), TN_ERR_VALUE, "300");
    REFUSED(tn_add(u, 300), TN_ERR_VALUE, "300");
    EXPECT(tn_equal(u, 300), 0, 0, 0);
    EXPECT(tn_less(u, 300), 1, 1, 1);
    EXPECT(tn_clip(u, 1, 300), 1, 1, 2);
    EXPECT(tn_clip(u, -5, 1), 0, 1, 1);
    REFUSED(tn_insert(u, TN_INTS(0), tn_weak_int(300), TN_AXES(0)), TN_ERR_VALUE, "0 to 255");
    EXPECT(tn_append(u, tn_weak_int(300), (tn_axes){0}), 0, 1, 2, 300);
    assert_int_equal(tn_put(x, tn_from_int64s((const int64_t[]){0}, 1), tn_weak_int(300), NULL), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "0 to 255");
    assert_int_equal(tn_fill_diagonal(tn_zeros(TN_SHAPE(2, 2), .dtype = TN_UINT8), tn_weak_float(NAN), false),
                     TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_max(u, .initial = tn_weak_int(300)), TN_ERR_VALUE, "0 to 255");
    EXPECT(tn_sum(u, .initial = tn_weak_int(300)), 303);
    const int64_t one[1][2] = {{1, 1}};
    tn_array *at = tn_from_int64s((const int64_t[]){0, 1}, 2), *much = tn_weak_int(300);
    REFUSED(tn_scatter_set(u, at, much, 0), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_scatter_add(u, at, much, 0), TN_ERR_VALUE, "0 to 255");
    EXPECT(tn_scatter_set(u, at, tn_weak_int(255), 0), 255, 255, 2);
    REFUSED(tn_index_update(u, much, TN_KEYS(TN_PICK(at))), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_index_update(u, much, TN_KEYS(TN_PICK(tn_greater(u, 0)))), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_index_update(u, much, TN_KEYS(TN_I(1))), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_index_add(u, much, TN_KEYS(TN_PICK(at))), TN_ERR_VALUE, "0 to 255");
    EXPECT(tn_index_update(u, tn_weak_int(255), TN_KEYS(TN_PICK(at))), 255, 255, 2);
    REFUSED(tn_ediff1d(u, much, NULL), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_ediff1d(u, NULL, much), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_pad(u, one, .constants = much), TN_ERR_VALUE, "0 to 255");
    EXPECT(tn_pad(u, one, .constants = tn_weak_int(9)), 9, 0, 1, 2, 9);
    REFUSED(tn_geomspace(1, 1000, 4, .dtype = TN_UINT8), TN_ERR_VALUE, "0 to 255");
    REFUSED(tn_logspace(0, 3, 4, .dtype = TN_UINT8), TN_ERR_VALUE, "0 to 255");
    EXPECT(tn_logspace(0, 3, 3, .dtype = TN_UINT8, .open = true), 1, 10, 100);
    EXPECT(tn_logspace(0, 7, 8, .dtype = TN_UINT8, .base = 2), 1, 2, 4, 8, 16, 32, 64, 128);
}

/* Steps beyond the stop, and powers of which there is none. */
static void check_few(void)
{
    EXPECT(tn_arange(3, 4, INFINITY), 3);
    EXPECT(tn_arange(3, 4, INFINITY, .dtype = TN_INT32), 3);
    EXPECT(tn_arange(5, 0, -INFINITY, .dtype = TN_FLOAT64), 5);
    EXPECT(tn_arange(0, 1e-300, 1e300), 0);
    assert_int_equal(tn_size(tn_arange(0, -1, INFINITY)), 0);
    assert_int_equal(tn_size(tn_arange(0, 5, -INFINITY)), 0);
    assert_int_equal(tn_size(tn_arange(0, 0, INFINITY)), 0);
    REFUSED(tn_arange(0, INFINITY, INFINITY), TN_ERR_VALUE, "finite");
    REFUSED(tn_arange(0, 1, NAN), TN_ERR_VALUE, "finite");
    const int64_t less[] = {-1};
    tn_array *none = tn_zeros(TN_SHAPE(0), .dtype = TN_INT64), *minus = tn_from_int64s(less, 1);
    assert_int_equal(tn_size(tn_power(none, -1)), 0);
    assert_int_equal(tn_size(tn_power(none, minus)), 0);
    assert_int_equal(tn_size(tn_power(minus, none)), 0);
    assert_int_equal(tn_dtype_of(tn_power(tn_zeros(TN_SHAPE(0, 1), .dtype = TN_UINT8), minus)), TN_INT64);
    REFUSED(tn_power(tn_arange(2, 3, 1), -1), TN_ERR_VALUE, "fractions");
    REFUSED(tn_power(tn_arange(2, 3, 1), minus), TN_ERR_VALUE, "fractions");
}

#define BOTH(name) \
    static void test_##name(void **state) \
    { \
        (void)state; \
        for (int on = 0; on < 2; on++) { \
            tn_set_compile(on ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER); \
            TN_SCOPE check_##name(); \
        } \
        tn_set_compile(TN_COMPILE_AUTO); \
    }
BOTH(masks)
BOTH(assigned)
BOTH(pads)
BOTH(statistics)
BOTH(folds)
BOTH(numbers)
BOTH(few)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks), cmocka_unit_test(test_assigned),
                                       cmocka_unit_test(test_pads), cmocka_unit_test(test_statistics),
                                       cmocka_unit_test(test_folds), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
