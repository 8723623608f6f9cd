/* SPDX-License-Identifier: MIT */
/* The options out, dtype and casting of what is no ufunc; functions that read their operands; and what all of these
 * refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

#define LIST(...) \
    (int)(sizeof((const tn_array *[]){__VA_ARGS__}) / sizeof(tn_array *)), ((const tn_array *[]){__VA_ARGS__})

static tn_array *numbers(int64_t n) { return tn_arange(1, (double)n + 1, 1, .dtype = TN_FLOAT64); }

static void assert_equal(const tn_array *x, const tn_array *expected)
{
    if (!tn_array_equal(x, expected, true))
        fail_msg("%s", tn_is_error(x) ? tn_message_of(x) : "other values");
}

static void assert_refused(const tn_array *x, tn_status code)
{
    assert_true(tn_is_error(x));
    assert_int_equal(tn_status_of(x), code);
    tn_clear_error();
}

/* Each writes into `out`, gives it again, and leaves another handle to out's old value alone. */
static void results_go_into_arrays_that_exist(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *a = tn_reshape(numbers(6), TN_SHAPE(2, 3)), *b = tn_multiply(a, 2),
                 *t = tn_transpose(b, (tn_axes){0});
        tn_array *which = tn_from_int64s((int64_t[]){1, 0, 1}, 3), *some = tn_from_int64s((int64_t[]){0, 1}, 2);
#define INTO(shape, call, plain) \
    do { \
        tn_array *out = tn_zeros(shape, .dtype = TN_FLOAT64), *before = tn_add(out, 0); \
        tn_out_opts o = {.out = out}; \
        assert_int_equal(tn_eval(before), TN_OK); \
        assert_equal(call, plain); \
        assert_equal(out, plain); \
        assert_equal(before, tn_zeros(shape, .dtype = TN_FLOAT64)); \
        out = tn_zeros(TN_SHAPE(7, 7, 7), .dtype = TN_FLOAT64); \
        o.out = out; \
        tn_array *refused = call; \
        assert_true(tn_is_error(refused) || tn_ndim(plain) == 0); \
        tn_clear_error(); \
        o = (tn_out_opts){.out = tn_zeros(shape, .dtype = TN_INT32)}; \
        assert_refused(call, TN_ERR_DTYPE); \
        o.casting = "unsafe"; \
        assert_equal(call, tn_cast(plain, TN_INT32)); \
    } while (0)
        INTO(TN_SHAPE(4, 3), tn_concatenate_with(LIST(a, b), 0, &o), tn_concatenate(LIST(a, b), 0));
        INTO(TN_SHAPE(2, 2, 3), tn_stack_with(LIST(a, b), 0, &o), tn_stack(LIST(a, b), 0));
        INTO(TN_SHAPE(4, 3), tn_vstack_with(LIST(a, b), &o), tn_vstack(LIST(a, b)));
        INTO(TN_SHAPE(2, 6), tn_hstack_with(LIST(a, b), &o), tn_hstack(LIST(a, b)));
        INTO(TN_SHAPE(2), tn_vecdot_with(a, b, 1, &o), tn_vecdot(a, b, 1));
        INTO(TN_SHAPE(2, 2), tn_einsum_with("ij,jk", LIST(a, t), &o), tn_matmul(a, t));
        INTO(((tn_shape){0}), tn_trace_with(a, 0, 0, 1, &o), tn_trace(a, 0, 0, 1, TN_DTYPE_DEFAULT));
        INTO(TN_SHAPE(2, 3), tn_round_with(tn_divide(a, 3), 0, &o), tn_round(tn_divide(a, 3), 0));
        INTO(TN_SHAPE(3), tn_choose_with(which, LIST(tn_index(a, 0), tn_index(b, 0)), NULL, &o),
             tn_choose(which, LIST(tn_index(a, 0), tn_index(b, 0)), NULL));
        INTO(TN_SHAPE(1, 3), tn_compress_with(some, a, TN_AXES(0), &o), tn_slice_axis(a, 0, 1, 2, 1));
    }
}

static void operands_are_cast_by_rule(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *a = numbers(3), *i = tn_from_int64s((int64_t[]){1, 2, 3}, 3), *bits = tn_cast(i, TN_BOOL);
        assert_int_equal(tn_dtype_of(tn_concatenate_with(LIST(a, i), 0, TN_OPTS(tn_out_opts, .dtype = TN_FLOAT32))),
                         TN_FLOAT32);
        assert_refused(tn_concatenate_with(LIST(a, i), 0, TN_OPTS(tn_out_opts, .dtype = TN_INT32)), TN_ERR_DTYPE);
        assert_refused(tn_stack_with(LIST(i, i), 0, TN_OPTS(tn_out_opts, .dtype = TN_INT32, .casting = "safe")),
                       TN_ERR_DTYPE);
        assert_refused(tn_binary(tn_matmul, a, a, .dtype = TN_FLOAT32, .casting = "no"), TN_ERR_DTYPE);
        assert_refused(tn_vecdot_with(a, a, 0, TN_OPTS(tn_out_opts, .dtype = TN_FLOAT32, .casting = "nonsense")),
                       TN_ERR_NAME);
        assert_refused(tn_einsum_with("i,i", LIST(a, i), TN_OPTS(tn_out_opts, .dtype = TN_FLOAT32)), TN_ERR_DTYPE);
        assert_refused(tn_einsum_with("i,i", 0, NULL, NULL), TN_ERR_VALUE);
        tn_einsum("ij,jk->ik", LIST(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(4, 5))));
        assert_non_null(strstr(tn_error(), "'j' is 3 in operand 0 and 4 in operand 1"));
        tn_clear_error();
        tn_einsum("...i,...i,i", LIST(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(4, 1)), tn_ones(TN_SHAPE(3))));
        assert_non_null(strstr(tn_error(), "an axis of '...' (-1) is 2 in operand 0 and 4 in operand 1"));
        tn_clear_error();
        /* computed in out's dtype, if that holds each operand: int16 and uint16, whose common int32 complex64 does not
         * hold */
        tn_array *out = tn_zeros((tn_shape){0}, .dtype = TN_COMPLEX64);
        assert_equal(tn_einsum_with("i,i", LIST(tn_cast(i, TN_INT16), tn_cast(i, TN_UINT16)),
                                    TN_OPTS(tn_out_opts, .out = out)),
                     tn_scalar(14, .dtype = TN_COMPLEX64));
        assert_refused(tn_einsum_with("i,i", LIST(tn_cast(i, TN_INT32), tn_cast(i, TN_INT32)),
                                      TN_OPTS(tn_out_opts, .out = out)),
                       TN_ERR_DTYPE);
        /* sums of bool are sums where something else is not bool, and unions where all is */
        assert_equal(tn_einsum("i,i->", LIST(bits, tn_cast(tn_ones_like(i), TN_UINT8))),
                     tn_scalar(3, .dtype = TN_UINT8));
        assert_equal(tn_einsum("i,i->", LIST(bits, bits)), tn_scalar(1, .dtype = TN_BOOL));
        /* what a ufunc computes in must be had by the rule */
        assert_refused(tn_unary(tn_sqrt, i, .casting = "no"), TN_ERR_DTYPE);
        assert_refused(tn_binary(tn_equal, i, a, .casting = "equiv"), TN_ERR_DTYPE);
        assert_equal(tn_binary(tn_logical_and, i, a, .casting = "no"), tn_cast(i, TN_BOOL));
        assert_refused(tn_reduce_by((tn_less), a, NULL), TN_ERR_DTYPE);
        assert_refused(tn_reduce_by((tn_divide), i, &(tn_reduce_opts){.dtype = TN_INT32}), TN_ERR_DTYPE);
        assert_true(tn_can_cast_by(TN_INT32, TN_FLOAT64, "safe") && !tn_can_cast_by(TN_INT64, TN_FLOAT32, "safe") &&
                    !tn_can_cast_by(TN_INT8, TN_INT8, "other"));
        assert_int_equal(tn_result_type(LIST(i, tn_weak_float(1))), TN_FLOAT64);
        assert_int_equal(tn_result_type(LIST(tn_cast(a, TN_FLOAT32), tn_weak_int(1))), TN_FLOAT32);
        assert_int_equal(tn_result_type(0, NULL), TN_DTYPE_DEFAULT);
    }
}

static void statistics(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *i = tn_reshape(tn_arange(0, 6, 1), TN_SHAPE(2, 3)), *n = tn_scalar(5, .dtype = TN_INT32);
        assert_equal(tn_mean(i, .axis = TN_AXES(0), .dtype = TN_INT32),
                     tn_cast(tn_from_int64s((int64_t[]){1, 2, 3}, 3), TN_INT32));
        assert_refused(tn_mean(i, .dtype = TN_BOOL), TN_ERR_DTYPE);
        assert_refused(tn_std(i, .axis = TN_AXES(0), .dtype = TN_INT64), TN_ERR_DTYPE);
        /* the one axis a number may have */
        assert_equal(tn_sum(n, .axis = TN_AXES(-1)), tn_scalar(5, .dtype = TN_INT64));
        assert_true(tn_is_error(tn_sum(n, .axis = TN_AXES(1))) && tn_is_error(tn_mean(n, .axis = TN_AXES(0))));
        tn_clear_error();
        assert_refused(tn_argmax(i, .axis = TN_AXES(0), .out = tn_zeros(TN_SHAPE(3))), TN_ERR_DTYPE);
        tn_array *w = tn_from_doubles((double[]){0, 1, 1}, 3), *x = tn_cast(i, TN_FLOAT64);
        assert_equal(tn_quantile(x, tn_from_doubles((double[]){0, 0.5, 1}, 3), .axis = TN_AXES(1),
                                 .method = "inverted_cdf", .weights = w),
                     tn_reshape(tn_from_doubles((double[]){1, 4, 1, 4, 2, 5}, 6), TN_SHAPE(3, 2)));
        assert_refused(tn_quantile(x, 0.5, .axis = TN_AXES(1), .weights = w), TN_ERR_VALUE);
        assert_refused(tn_quantile(x, 0.5, .method = "inverted_cdf", .weights = w), TN_ERR_VALUE);
        assert_refused(tn_quantile(x, 0.5, .axis = TN_AXES(1), .method = "inverted_cdf", .weights = tn_negative(w)),
                       TN_ERR_VALUE);
    }
}

static void what_new_functions_refuse(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *a = numbers(3), *m = tn_reshape(numbers(4), TN_SHAPE(2, 2)), *out[2],
                 *error = tn_reshape(a, TN_SHAPE(2));
        tn_shape shape;
        assert_refused(tn_polyval(3.0, a), TN_ERR_SHAPE);
        assert_refused(tn_polyadd(m, a), TN_ERR_SHAPE);
        assert_refused(tn_polyder(a, -1), TN_ERR_VALUE);
        assert_refused(tn_polyint(a, 3, tn_from_doubles((double[]){1, 2}, 2)), TN_ERR_VALUE);
        assert_refused(tn_poly(tn_reshape(numbers(6), TN_SHAPE(2, 3))), TN_ERR_SHAPE);
        assert_refused(tn_polyfit(a, m, 1), TN_ERR_SHAPE);
        assert_true(tn_polydiv(a, tn_zeros(TN_SHAPE(0)), &out[0], &out[1]) != TN_OK && tn_is_error(out[1]));
        assert_refused(tn_packbits(a, (tn_axes){0}, false), TN_ERR_DTYPE);
        assert_refused(tn_unpackbits(tn_cast(a, TN_INT16), (tn_axes){0}, TN_NONE, false), TN_ERR_DTYPE);
        assert_refused(tn_unpackbits(tn_cast(a, TN_UINT8), (tn_axes){0}, -99, false), TN_ERR_VALUE);
        assert_refused(tn_i0(tn_complex(a, a)), TN_ERR_DTYPE);
        assert_refused(tn_unwrap(tn_cast(a, TN_UINT8), tn_weak_int(4), 0, 0), TN_ERR_DTYPE);
        assert_refused(tn_block(0, 1, NULL), TN_ERR_VALUE);
        assert_refused(tn_piecewise(a, 1, ((const tn_array *[]){m}), ((const tn_array *[]){a}), NULL), TN_ERR_SHAPE);
        assert_refused(tn_histogramdd(a, NULL), TN_ERR_SHAPE);
        assert_refused(tn_histogramdd(m, NULL, .weights = a), TN_ERR_SHAPE);
        assert_refused(tn_histogramdd(m, NULL, .bins = ((int64_t[]){0, 2})), TN_ERR_VALUE);
        assert_true(tn_broadcast_shapes(2, ((tn_shape[]){TN_SHAPE(2), TN_SHAPE(3)}), &shape) == TN_ERR_SHAPE);
        assert_refused(tn_round(tn_cast(a, TN_BOOL), 1), TN_ERR_DTYPE);
        tn_clear_error();
        /* errors pass through */
        assert_true(tn_is_error(tn_polyval(error, a)) && tn_is_error(tn_polymul(a, error)) &&
                    tn_is_error(tn_roots(error)) && tn_is_error(tn_packbits(error, (tn_axes){0}, false)) &&
                    tn_is_error(tn_unwrap(error, NULL, 0, 0)) && tn_is_error(tn_vecdot_with(error, a, 0, NULL)) &&
                    tn_is_error(tn_concatenate_with(LIST(a, error), 0, NULL)) && tn_is_error(tn_sort_complex(error)) &&
                    tn_is_error(tn_real_if_close(error, 100)) && tn_is_error(tn_i0(error)));
        tn_clear_error();
    }
}

int main(void)
{
    tn_set_compile(TN_COMPILE_NEVER); /* these are small, and new each time */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_go_into_arrays_that_exist),
        cmocka_unit_test(operands_are_cast_by_rule),
        cmocka_unit_test(statistics),
        cmocka_unit_test(what_new_functions_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
