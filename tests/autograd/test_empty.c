/* SPDX-License-Identifier: MIT */
/* Gradients by arrays without elements, as of a last minibatch that nothing is left for: they are empty, and asking for
 * them is no mistake, whatever is done with the array, and though no result depends on a value of it. */
#include "autograd/helpers.h"

#include <stdio.h>
#include <string.h>
#include <tanso.h>

#include "support/device.h"

typedef tn_array *function(tn_array *x);

static tn_array *other_of(const tn_array *x, int64_t rows)
{
    tn_shape shape = tn_shape_of(x);
    shape.dim[0] = rows;
    return tn_ones(shape, .dtype = tn_dtype_of(x));
}

static tn_array *rows_of(const tn_array *x)
{
    return tn_zeros(TN_SHAPE(tn_shape_of(x).dim[0]), .dtype = TN_INT64);
}

#define CASES_OF_ROWS(CASE) \
    CASE(sum, tn_sum(x)) \
    CASE(sum_along, tn_sum(x, .axis = TN_AXES(1))) \
    CASE(prod, tn_prod(x)) \
    CASE(cumsum, tn_cumsum(x, .axis = TN_AXES(1))) \
    CASE(cumprod, tn_cumprod(x, .axis = TN_AXES(0))) \
    CASE(cummax, tn_cummax(x, .axis = TN_AXES(1))) \
    CASE(sort, tn_sort(x)) \
    CASE(softmax, tn_softmax(x, -1)) \
    CASE(log_softmax, tn_log_softmax(x, -1)) \
    CASE(logsumexp, tn_logsumexp(x, .axis = TN_AXES(-1))) \
    CASE(largest, tn_max(x, .axis = TN_AXES(-1))) \
    CASE(variance, tn_var(x, .axis = TN_AXES(-1))) \
    CASE(joined, tn_concatenate(TN_ARRAYS(x, x), 1)) \
    CASE(joined_rows, tn_concatenate(TN_ARRAYS(x, x), 0)) \
    CASE(joined_to_some, tn_concatenate(TN_ARRAYS(other_of(x, 2), x, other_of(x, 1)), 0)) \
    CASE(stacked, tn_stack(TN_ARRAYS(x, x), 1)) \
    CASE(padded, tn_pad(x, ((int64_t[][2]){{0, 0}, {1, 2}, {0, 1}}))) \
    CASE(repeated, tn_repeat(x, 3, TN_AXES(1))) \
    CASE(tiled, tn_tile(x, TN_SHAPE(2, 1, 1))) \
    CASE(rolled, tn_roll(x, 1, &(int64_t){2}, TN_AXES(1))) \
    CASE(flipped, tn_flip(x, TN_AXES(0, 2))) \
    CASE(sliced, tn_slice(x, 2, ((tn_slice_range[]){{0, TN_NONE, 1}, {3, TN_NONE, -1}}))) \
    CASE(put_over, tn_slice_update(other_of(x, 3), 1, ((tn_slice_range[]){{1, 1, 1}}), x)) \
    CASE(put_into, tn_slice_update(x, 2, ((tn_slice_range[]){{0, 0, 1}, {0, 1, 1}}), tn_ones(TN_SHAPE(6)))) \
    CASE(turned, tn_transpose(x, TN_AXES(2, 0, 1))) \
    CASE(shaped, tn_reshape(x, TN_SHAPE(0, 24))) \
    CASE(expanded, tn_broadcast_to(tn_reshape(x, TN_SHAPE(1, 0, 4, 6)), TN_SHAPE(3, 0, 4, 6))) \
    CASE(taken, tn_take(x, tn_zeros(TN_SHAPE(3), .dtype = TN_INT64), 1)) \
    CASE(taken_none, tn_take(x, tn_zeros(TN_SHAPE(0), .dtype = TN_INT64), 1)) \
    CASE(scattered, tn_scatter_add(other_of(x, 3), rows_of(x), x, 0)) \
    CASE(chosen, tn_where(tn_greater(x, 0), x, 2)) \
    CASE(product, tn_matmul(x, tn_ones(TN_SHAPE(6, 5)))) \
    CASE(product_of_none, tn_matmul(tn_reshape(x, TN_SHAPE(24, 0)), tn_reshape(x, TN_SHAPE(0, 24)))) \
    CASE(contracted, tn_einsum("bij,bkj->ik", TN_ARRAYS(x, x))) \
    CASE(transformed, tn_real(tn_fft_ifft(tn_fft_fft(x)))) \
    CASE(shifted, tn_fft_fftshift(x, TN_AXES(1))) \
    CASE(inverse, tn_linalg_inv(tn_matmul(x, tn_ones(TN_SHAPE(6, 4))))) \
    CASE(cast, tn_cast(tn_cast(x, TN_FLOAT16), TN_FLOAT32)) \
    CASE(moved, tn_to(tn_to_cpu(x), test_device())) \
    CASE(normed, tn_normalize(x, 2, -1, 0)) \
    CASE(attended, tn_scaled_dot_product_attention(x, x, x)) \
    CASE(unfolded_columns, tn_fold(tn_reshape(x, TN_SHAPE(0, 4, 6)), TN_SHAPE(3, 4), TN_SHAPE(2)))

#define CASES_OF_PICTURES(CASE) \
    CASE(unpooled, tn_unpool(x, TN_SHAPE(2))) \
    CASE(unfolded, tn_unfold(x, TN_SHAPE(2))) \
    CASE(pooled, tn_max_pool(x, TN_SHAPE(2))) \
    CASE(pooled_means, tn_average_pool(x, TN_SHAPE(3), .stride = TN_SHAPE(1))) \
    CASE(pooled_norms, tn_lp_pool(x, 2, TN_SHAPE(2))) \
    CASE(adaptive, tn_adaptive_max_pool(x, TN_SHAPE(4, 5))) \
    CASE(adaptive_means, tn_adaptive_average_pool(x, TN_SHAPE(4, 5))) \
    CASE(global, tn_global_average_pool(x)) \
    CASE(pyramid, tn_spatial_pyramid_pool(x, 2)) \
    CASE(convolved, tn_conv(x, tn_ones(TN_SHAPE(3, 2, 2, 2)))) \
    CASE(turned_convolved, tn_conv_transpose(x, tn_ones(TN_SHAPE(2, 3, 2, 2)))) \
    CASE(interpolated, tn_interpolate(x, TN_SHAPE(4, 5), .mode = "linear")) \
    CASE(sampled, tn_grid_sample(x, tn_zeros(TN_SHAPE(0, 3, 3, 2)))) \
    CASE(deep, tn_space_to_depth(x, 2)) \
    CASE(neighbours, tn_local_response_norm(x)) \
    CASE(max_unpooled, tn_max_unpool(tn_max_pool(x, TN_SHAPE(2)), tn_max_pool_indices(x, TN_SHAPE(2)), TN_SHAPE(6, 6)))

#define FUNCTION(name, expression) \
    static tn_array *name##_of(tn_array *x) { return expression; }
CASES_OF_ROWS(FUNCTION)
CASES_OF_PICTURES(FUNCTION)

typedef struct one {
    const char *name;
    function *call;
} one;
#define ROW(name, expression) {#name, name##_of},
static const one of_rows[] = {CASES_OF_ROWS(ROW)}, of_pictures[] = {CASES_OF_PICTURES(ROW)};

static void check(const one *c, tn_shape shape)
{
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_zeros(shape));
        tn_array *y = c->call(x);
        if (tn_is_error(y))
            fail_msg("%s: %s", c->name, tn_error());
        if (tn_backward(tn_sum(tn_square(y)), .create_graph = true) != TN_OK)
            fail_msg("gradient of %s: %s", c->name, tn_error());
        tn_array *gradient = tn_grad(x);
        tn_shape got = tn_shape_of(gradient);
        assert_int_equal(got.ndim, shape.ndim);
        assert_memory_equal(got.dim, shape.dim, sizeof *got.dim * (size_t)shape.ndim);
        if (tn_eval(y) != TN_OK || tn_eval(gradient) != TN_OK)
            fail_msg("%s: %s", c->name, tn_error());
    }
    assert_fine();
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
        check(&of_rows[i], TN_SHAPE(0, 4, 6));
}

static void test_pictures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof of_pictures / sizeof *of_pictures; i++)
        check(&of_pictures[i], TN_SHAPE(0, 2, 6, 6));
}

/* Parts with elements among empty ones have their gradients. */
static void test_among_others(void **state)
{
    (void)state;
    tn_array *none = tn_requires_grad(tn_zeros(TN_SHAPE(0, 3)));
    tn_array *some = tn_requires_grad(tn_full(TN_SHAPE(2, 3), 5));
    tn_array *y = tn_concatenate(TN_ARRAYS(none, some, none), 0);
    assert_int_equal(tn_backward(tn_sum(tn_square(y))), TN_OK);
    assert_values(tn_grad(some), 6, (double[]){10, 10, 10, 10, 10, 10}, 0);
    assert_int_equal(tn_shape_of(tn_grad(none)).dim[0], 0);
    tn_array *out = NULL; /* of what is not marked, too */
    none = tn_zeros(TN_SHAPE(0, 3));
    tn_array *pair = tn_concatenate(TN_ARRAYS(none, none), 1);
    assert_int_equal(tn_gradients(tn_sum(pair), 1, (const tn_array *const[]){none}, false, &out), TN_OK);
    assert_int_equal(tn_shape_of(out).dim[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_rows), TEST(test_pictures), TEST(test_among_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
