/* SPDX-License-Identifier: MIT */
/* Options that are lists or other structures and were written as a bare number, `.axis = 1`, in a program that is
 * compiled without warnings: C takes the number for the first member. What the macros make of it is written out here,
 * as they do not compile. An array written as 0 does compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/latched.h"

#define AXES(type, field, number) (&(type){._ = "." #field " = " #number, .field = {.count = number}})
#define SHAPE(type, field, number) (&(type){._ = "." #field " = " #number, .field = {.ndim = number}})

/* The call gives an error array, and what to write instead. */
#define refuses_axes(call) refuses(call, "got one", "= TN_AXES(1) is meant")
#define refuses_array(call) refuses(call, "got one", "= tn_scalar(0) is meant")
#define refuses_shape(call) refuses(call, "got one", "= TN_SHAPE(1) is meant")
static void refuses(const tn_array *y, const char *words, const char *more)
{
    assert_true(tn_is_error(y));
    assert_non_null(strstr(tn_error(), more));
    assert_failed(TN_ERR_VALUE, words);
}

static tn_array *matrix(void) { return tn_reshape(tn_arange(0, 9, 1, .dtype = TN_FLOAT32), TN_SHAPE(3, 3)); }

static void test_axes(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = matrix(), *half = tn_full(TN_SHAPE(1), 0.5), *at = tn_from_int64s((int64_t[]){0}, 1);
        typedef tn_array *(*reduction)(const tn_array *, const tn_reduce_opts *);
        const reduction reductions[] = {tn_sum_with,    tn_mean_with,   tn_max_with,    tn_var_with,  tn_argmax_with,
                                        tn_any_with,    tn_median_with, tn_ptp_with,    tn_nansum_with,
                                        tn_nanmin_with, tn_nanvar_with, tn_nanargmax_with, tn_count_nonzero_with,
                                        tn_logsumexp_with, tn_nanmedian_with};
        for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
            refuses_axes(reductions[i](x, AXES(tn_reduce_opts, axis, 0)));
            refuses_axes(reductions[i](x, AXES(tn_reduce_opts, axis, 1)));
        }
        refuses_axes(tn_average_with(x, NULL, NULL, AXES(tn_reduce_opts, axis, 1)));
        refuses_axes(tn_reduce_by(tn_add, x, AXES(tn_reduce_opts, axis, 1)));
        typedef tn_array *(*along)(const tn_array *, const tn_axis_opts *);
        const along functions[] = {tn_sort_with, tn_argsort_with, tn_cumsum_with, tn_cumprod_with};
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
            refuses_axes(functions[i](x, AXES(tn_axis_opts, axis, 0)));
            refuses_axes(functions[i](x, AXES(tn_axis_opts, axis, 1)));
        }
        refuses_axes(tn_accumulate_by(tn_add, x, AXES(tn_axis_opts, axis, 1)));
        refuses_axes(tn_reduceat_by(tn_add, x, TN_INTS(0, 1), AXES(tn_axis_opts, axis, 1)));
        refuses_axes(tn_cross_with(x, x, AXES(tn_cross_opts, a, 1)));
        refuses_axes(tn_cross_with(x, x, AXES(tn_cross_opts, b, 0)));
        refuses_axes(tn_cross_with(x, x, AXES(tn_cross_opts, result, 1)));
        refuses_axes(tn_take_with(x, at, AXES(tn_take_opts, axis, 0)));
        refuses_axes(tn_unique_with(x, AXES(tn_unique_opts, axis, 1)));
        refuses_axes(tn_quantile_with(x, half, AXES(tn_quantile_opts, axis, 1)));
        refuses_axes(tn_fft_fft_with(x, AXES(tn_fft_opts, axis, 1)));
        refuses_axes(tn_fft_fftn_with(x, AXES(tn_fft_opts, axes, 1)));
        refuses_axes(tn_linalg_norm_with(x, AXES(tn_norm_opts, axis, 1)));
        refuses(tn_linalg_norm_with(x, &(tn_norm_opts){._ = ".ord = 2", .ord = {.kind = 2}}), "got one",
                ".ord = TN_ORD(1) is meant");
        refuses(tn_zeros_with(TN_SHAPE(2), &(tn_create_opts){._ = ".device = 1", .device = {.kind = TN_DEVICE_CPU}}),
                "got one", ".device = tn_cuda(1) is meant");
        refuses(tn_random_normal_with(TN_SHAPE(2), &(tn_random_opts){._ = ".device = 0"}), "got one", "tn_cuda(1)");
        /* as they are meant */
        assert_false(tn_is_error(tn_linalg_norm(x, .ord = TN_ORD(1))));
        assert_false(tn_is_error(tn_zeros(TN_SHAPE(1), .device = tn_cpu())));
        assert_true(tn_item(tn_index(tn_sum(x, .axis = TN_AXES(0)), 0)) == 9);
        assert_true(tn_item(tn_index(tn_sum_with(x, &(tn_reduce_opts){.axis = {.count = 1}}), 0)) == 9);
        assert_true(tn_item(tn_sum(x, .keepdims = 0)) == 36);
        assert_true(tn_ok());
    }
}

static void test_extents(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_reshape(matrix(), TN_SHAPE(1, 1, 3, 3)), *w = tn_ones(TN_SHAPE(1, 1, 2, 2));
        refuses_shape(tn_conv_with(x, w, SHAPE(tn_conv_opts, pad, 1)));
        refuses_shape(tn_conv_with(x, w, SHAPE(tn_conv_opts, pad, 2)));
        refuses_shape(tn_conv_with(x, w, SHAPE(tn_conv_opts, stride, 2)));
        refuses_shape(tn_conv_with(x, w, SHAPE(tn_conv_opts, pad_behind, 1)));
        refuses_shape(tn_conv_with(x, w, SHAPE(tn_conv_opts, dilation, 1)));
        refuses_shape(tn_conv_transpose_with(x, w, SHAPE(tn_conv_transpose_opts, pad, 1)));
        refuses_shape(tn_conv_transpose_with(x, w, SHAPE(tn_conv_transpose_opts, output_pad, 1)));
        refuses_shape(tn_conv_transpose_with(x, w, SHAPE(tn_conv_transpose_opts, out, 2)));
        refuses_shape(tn_max_pool_with(x, TN_SHAPE(2), SHAPE(tn_pool_opts, pad, 1)));
        refuses_shape(tn_average_pool_with(x, TN_SHAPE(2), SHAPE(tn_pool_opts, stride, 2)));
        refuses_shape(tn_unfold_with(x, TN_SHAPE(2), SHAPE(tn_pool_opts, pad, 1)));
        refuses_shape(tn_fft_fftn_with(x, SHAPE(tn_fft_opts, s, 4)));
        tn_layer *layers[] = {tn_conv2d_with(2, TN_SHAPE(2), SHAPE(tn_conv_layer_opts, pad, 1)),
                              tn_max_pool_layer_with(TN_SHAPE(2), SHAPE(tn_pool_opts, pad, 1))};
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
            tn_layer_free(layers[i]);
        assert_failed(TN_ERR_VALUE, ".pad = TN_SHAPE(1) is meant");
        assert_true(tn_dim(tn_conv(x, w, .pad = TN_SHAPE(0)), 2) == 2 && tn_ok());
    }
}

/* An option that is an array and was written as 0, a null pointer to C: it would be as if it had been left out. NULL
 * is that. */
static void test_arrays(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = matrix(), *t = tn_from_int64s((int64_t[]){0, 1, 2}, 3), *line = tn_arange(0, 3, 1);
        tn_array *bits = tn_cast(x, TN_INT32), *steps = tn_reshape(x, TN_SHAPE(3, 1, 3));
        tn_array *one = tn_reshape(tn_from_int64s((int64_t[]){1}, 1), TN_SHAPE(1, 1));
        refuses_array(tn_softmax_cross_entropy(x, t, .weight = 0));
        refuses_array(tn_nll_loss(x, t, .weight = (0), .reduction = TN_REDUCTION_SUM));
        refuses_array(tn_softmax_cross_entropy(x, tn_softmax(x, 1), .weight = 0));
        refuses_array(tn_sigmoid_cross_entropy(x, bits, .weight = 0));
        refuses_array(tn_sigmoid_cross_entropy(x, bits, .pos_weight = 0));
        refuses_array(tn_embedding_bag(x, bits, .weights = 0));
        refuses_array(tn_ctc_loss(steps, one, .input_lengths = 0));
        refuses_array(tn_ctc_loss(steps, one, .label_lengths = 0));
        refuses_array(tn_crf_loss(x, tn_expand_dims(x, 0), tn_expand_dims(t, 0), .lengths = 0));
        refuses_array(tn_random_choice(3, TN_SHAPE(2), .p = 0));
        refuses_array(tn_polyfit(line, line, 1, .weights = 0));
        refuses_array(tn_quantile(line, 0.5, .method = "inverted_cdf", .weights = 0));
        refuses_array(tn_histogram_bin_edges(line, .edges = 0));
        refuses_array(tn_histogram_bin_edges(line, .weights = 0));
        refuses_array(tn_cov_with(x, TN_OPTS(tn_cov_opts, .fweights = 0)));
        refuses_array(tn_cov_with(x, TN_OPTS(tn_cov_opts, .aweights = 0)));
        tn_array *w = tn_requires_grad(tn_ones(TN_SHAPE(3)));
        assert_int_equal(tn_backward(tn_square(w), .grad = 0), TN_ERR_VALUE);
        assert_failed(TN_ERR_VALUE, "the option grad is no number");
        assert_int_equal(tn_backward(tn_square(w), .grad = NULL), TN_OK);
        assert_false(tn_is_error(tn_softmax_cross_entropy(x, t, .weight = NULL, .ignore_index = 0)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_axes), cmocka_unit_test(test_extents),
                                       cmocka_unit_test(test_arrays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
