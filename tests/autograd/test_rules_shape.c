/* SPDX-License-Identifier: MIT */
/* Gradient rules of views, indexing and products, against differences, to second order; and
 * functions made of many operations. */
#include "autograd/helpers.h"

#include "array/build.h"
#include "autograd/rules.h"
#include "tn_op_functions.h"

#include <stdio.h>
#include <tanso.h>

/* ---- views ---- */

static tn_array *reshape(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_reshape(xs[0], *(tn_shape *)user));
}

static tn_array *transpose(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_transpose(xs[0], *(tn_axes *)user));
}

static tn_array *broadcast(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_broadcast_to(xs[0], *(tn_shape *)user));
}

static void test_views(void **state)
{
    (void)state;
    const tn_array *x = spread(TN_SHAPE(2, 3, 5), -2, 2, 0),
                   *column = spread(TN_SHAPE(3, 1), -2, 2, 0);
    tn_shape flat = TN_SHAPE(30), folded = TN_SHAPE(5, 1, 6), wide = TN_SHAPE(2, 3, 4);
    check_gradients("reshape", reshape, &flat, 1, &x);
    check_gradients("reshape", reshape, &folded, 1, &x);
    tn_axes orders[] = {{0}, TN_AXES(1, 2, 0), TN_AXES(2, 0, 1), TN_AXES(0, 2, 1)};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        check_gradients("permute", transpose, &orders[i], 1, &x);
    check_gradients("expand", broadcast, &wide, 1, &column);
}

static tn_array *slice(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_slice(xs[0], 3, user));
}

static tn_array *update(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_slice_update(xs[0], 2, user, xs[1]));
}

static void test_windows(void **state)
{
    (void)state;
    const tn_array *x = spread(TN_SHAPE(4, 3, 7), -2, 2, 0);
    tn_slice_range ranges[][3] = {
        {{1, 3, 1}, {TN_NONE, TN_NONE, 1}, {0, 7, 3}},
        {{TN_NONE, TN_NONE, -1}, {2, 0, -1}, {-2, TN_NONE, -2}},
        {{3, 4, 1}, {1, 2, 1}, {2, 2, 1}},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        check_gradients("slice", slice, ranges[i], 1, &x);

    tn_slice_range window[] = {{TN_NONE, TN_NONE, -2}, {1, 6, 2}};
    const tn_array *values[] = {spread(TN_SHAPE(4, 7), -2, 2, 0), spread(TN_SHAPE(2, 3), -2, 2, 1)};
    check_gradients("update", update, window, 2, values);
    const tn_array *row[] = {values[0], spread(TN_SHAPE(3), -2, 2, 1)};
    check_gradients("update by broadcasting", update, window, 2, row);
}

static tn_array *join(int count, tn_array *const *xs, void *user)
{
    return tn_square(tn_concatenate(count, (const tn_array *const *)xs, *(int *)user));
}

static tn_array *cut_and_multiply(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    tn_array *parts[3] = {0};
    return tn_split(xs[0], 3, 1, parts) == TN_OK
               ? tn_multiply(tn_multiply(parts[0], parts[2]), parts[1])
               : parts[0];
}

static void test_joins(void **state)
{
    (void)state;
    int axis = 1;
    const tn_array *xs[] = {spread(TN_SHAPE(3, 2), -2, 2, 0), spread(TN_SHAPE(3, 0), -2, 2, 1),
                            spread(TN_SHAPE(3, 4), -2, 2, 2)};
    check_gradients("concatenate", join, &axis, 3, xs);
    const tn_array *x = spread(TN_SHAPE(2, 6), -2, 2, 0);
    check_gradients("split", cut_and_multiply, NULL, 1, &x);
}

/* ---- indexing ---- */

static tn_array *take(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_take(xs[0], xs[1], *(int *)user));
}

static tn_array *take_along(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_take_along_axis(xs[0], xs[1], *(int *)user));
}

static tn_array *scatter(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_square(tn_scatter_add(xs[0], xs[1], xs[2], *(int *)user));
}

static void test_indexing(void **state)
{
    (void)state;
    const tn_array *x = spread(TN_SHAPE(4, 5), -2, 2, 0);
    const tn_shape places[] = {
        TN_SHAPE(9), TN_SHAPE(2, 3), TN_SHAPE(1), {0}, TN_SHAPE(0)}; /* 9 of 4 or 5: some repeat */
    for (int axis = 0; axis < 2; axis++) {
        int64_t extent = axis ? 5 : 4;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const tn_array *both[] = {x, random_indices(places[i], -extent, extent)};
            check_gradients("take", take, &axis, 2, both);
        }
        tn_array *at = random_indices(TN_SHAPE(6), -extent, extent);
        const tn_array *all[] = {x, at, spread(axis ? TN_SHAPE(4, 6) : TN_SHAPE(6, 5), -2, 2, 1)};
        check_gradients("scatter_add", scatter, &axis, 3, all);
    }
    /* One position a row, as a loss picks its targets: another formula than for many. */
    int last = 1;
    const tn_array *one[] = {x, random_indices(TN_SHAPE(4, 1), -5, 5)},
                   *many[] = {x, random_indices(TN_SHAPE(4, 8), -5, 5)};
    check_gradients("take_along_axis of one", take_along, &last, 2, one);
    check_gradients("take_along_axis", take_along, &last, 2, many);
}

/* Both formulas of a gather's gradient, on values known by hand. */
static void test_gather_values(void **state)
{
    (void)state;
    const int64_t places[] = {2, -1, 0, 2};
    tn_array *x = tn_requires_grad(tn_zeros(TN_SHAPE(3))),
             *y = tn_requires_grad(tn_zeros(TN_SHAPE(2, 3)));
    assert_int_equal(tn_backward(tn_take(x, tn_from_int64s(places, 4), 0)), TN_OK);
    assert_values(tn_grad(x), 3, (double[]){1, 0, 3}, 0);
    tn_array *column = tn_reshape(tn_from_int64s(places, 2), TN_SHAPE(2, 1));
    assert_int_equal(tn_backward(tn_take_along_axis(y, column, 1)), TN_OK);
    assert_values(tn_grad(y), 6, (double[]){0, 0, 1, 0, 0, 1}, 0);
}

/* ---- products ---- */

static tn_array *matmul(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_square(tn_matmul(xs[0], xs[1]));
}

static void test_products(void **state)
{
    (void)state;
    const tn_shape shapes[][2] = {
        {TN_SHAPE(3, 4), TN_SHAPE(4, 5)},       {TN_SHAPE(4), TN_SHAPE(4)},
        {TN_SHAPE(4), TN_SHAPE(4, 5)},          {TN_SHAPE(3, 4), TN_SHAPE(4)},
        {TN_SHAPE(2, 3, 4), TN_SHAPE(2, 4, 5)}, {TN_SHAPE(2, 3, 4), TN_SHAPE(4, 5)},
        {TN_SHAPE(3, 4), TN_SHAPE(2, 4, 1)},    {TN_SHAPE(2, 1, 3, 4), TN_SHAPE(3, 4, 2)},
        {TN_SHAPE(4), TN_SHAPE(2, 4, 3)},       {TN_SHAPE(2, 3, 4), TN_SHAPE(4)},
        {TN_SHAPE(3, 0), TN_SHAPE(0, 2)},       {TN_SHAPE(0, 4), TN_SHAPE(4, 2)},
        {TN_SHAPE(1, 1), TN_SHAPE(1, 1)},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        TN_SCOPE {
            const tn_array *xs[] = {spread(shapes[i][0], -1, 1, 0), spread(shapes[i][1], -1, 1, 1)};
            char what[32];
            snprintf(what, sizeof what, "matmul, row %zu", i);
            check_gradients(what, matmul, NULL, 2, xs);
        }
}

/* ---- composites ---- */

enum composite { MEAN, VAR, STD, LOGSUMEXP, SOFTMAX, LOG_SOFTMAX, CLIP, FLIP, STACK, COMPOSITES };

static tn_array *composite(int count, tn_array *const *xs, void *user)
{
    const tn_array *x = xs[0];
    (void)count;
    switch (*(enum composite *)user) {
    case MEAN:
        return tn_square(tn_mean(x, .axis = TN_AXES(1)));
    case VAR:
        return tn_var(x, .axis = TN_AXES(0), .ddof = 1);
    case STD:
        return tn_std(x, .axis = TN_AXES(-1), .keepdims = true);
    case LOGSUMEXP:
        return tn_logsumexp(x, .axis = TN_AXES(1));
    case SOFTMAX:
        return tn_softmax(x, 1);
    case LOG_SOFTMAX:
        return tn_log_softmax(x, 0);
    case CLIP:
        return tn_square(tn_clip(x, -1.01, 0.83));
    case FLIP:
        return tn_multiply(tn_flip(x, TN_AXES(1)), x);
    default:
        return tn_square(tn_stack(2, (const tn_array *[]){x, tn_square(x)}, 1));
    }
}

static void test_composites(void **state)
{
    (void)state;
    const tn_array *x = spread(TN_SHAPE(3, 5), -2, 2, 0);
    for (enum composite which = 0; which < COMPOSITES; which++) {
        char what[32];
        snprintf(what, sizeof what, "composite %d", (int)which);
        check_gradients(what, composite, &which, 1, &x);
    }
}

/* Two layers, whose loss picks one logarithm a row: many paths, fan-out and broadcasting at once. */
static tn_array *network(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    tn_array *hidden = tn_tanh(tn_add(tn_matmul(xs[0], xs[1]), xs[2]));
    tn_array *scores =
        tn_add(tn_matmul(hidden, xs[3]), tn_sum(hidden, .axis = TN_AXES(1), .keepdims = true));
    tn_array *picked = tn_take_along_axis(tn_log_softmax(scores, 1), xs[4], 1);
    return tn_negative(tn_mean(picked));
}

static void test_network(void **state)
{
    (void)state;
    const tn_array *xs[] = {spread(TN_SHAPE(4, 3), -1, 1, 0), spread(TN_SHAPE(3, 6), -1, 1, 1),
                            spread(TN_SHAPE(6), -1, 1, 0), spread(TN_SHAPE(6, 5), -1, 1, 2),
                            random_indices(TN_SHAPE(4, 1), 0, 5)};
    check_gradients("network", network, NULL, 5, xs);
}

/* The same by compiled kernels. */
static void test_compiled(void **state)
{
    tn_set_compile(TN_COMPILE_ALWAYS);
    test_network(state);
}

/* Every kind of operation that has a rule is tested in this file or in test_rules.c; operations on rows, of libraries
 * and of users have tests beside what uses them. */
/* More of them than float16 has numbers for, or bfloat16 counts, share a gradient all the same. */
static void test_many_ties(void **state)
{
    (void)state;
    typedef tn_array *reduction(const tn_array *, const tn_reduce_opts *);
    static const struct {
        const char *name;
        reduction *function;
        int low, high; /* of the gradient of the low half and of the high one, by shares */
    } reductions[] = {{"max", tn_max_with, 0, 1}, {"min", tn_min_with, 1, 0}, {"ptp", tn_ptp_with, -1, 1},
                      {"nanmax", tn_nanmax_with, 0, 1}, {"nanmin", tn_nanmin_with, 1, 0}};
    static const tn_dtype dtypes[] = {TN_FLOAT16, TN_BFLOAT16, TN_FLOAT32};
    static const int64_t ties[] = {1, 257, 65505, 131073};
    for (int k = 0; k < 5 * 3 * 4; k++)
        TN_SCOPE {
            int64_t n = ties[k % 4];
            tn_dtype dtype = dtypes[k / 4 % 3];
            tn_array *halves = tn_cast(tn_expand_dims(tn_from_doubles((double[]){-2, 3}, 2), 1), dtype);
            tn_array *x = tn_requires_grad(tn_broadcast_to(halves, TN_SHAPE(2, n)));
            assert_int_equal(tn_backward(reductions[k / 12].function(x, NULL)), TN_OK);
            tn_array *share = tn_cast(tn_scalar(1.0f / (float)n), dtype), *g = tn_grad(x);
            const int side[] = {reductions[k / 12].low, reductions[k / 12].high};
            for (int h = 0; h < 2; h++) {
                tn_array *wrong = tn_not_equal(tn_slice_axis(g, 0, h, h + 1, 1), tn_multiply(share, side[h]));
                if (tn_item(tn_any(wrong)) != 0)
                    fail_msg("%s of %s, %lld ties", reductions[k / 12].name, tn_dtype_name(dtype), (long long)n);
            }
        }
}

/* The sum for what was broadcast is that of the products, though one factor, summed alone, is beyond the dtype: the
 * other, which is the same wherever the sum goes along, makes the products small. */
static void test_large_terms(void **state)
{
    (void)state;
    static const struct {
        tn_dtype dtype;
        double large, small;
    } of[] = {{TN_FLOAT32, 0x1p126, 0x1p-100}, {TN_FLOAT64, 0x1p1022, 0x1p-1000}};
    for (int k = 0; k < 2 * 3; k++)
        TN_SCOPE {
            tn_dtype dtype = of[k / 3].dtype;
            double sign = k % 3 == 1 ? -1 : 1;
            tn_array *scale = tn_full(TN_SHAPE(3, 1), of[k / 3].small, .dtype = dtype);
            tn_array *mean = tn_requires_grad(tn_zeros(TN_SHAPE(3, 1), .dtype = dtype));
            tn_array *x = tn_ones(TN_SHAPE(3, 8), .dtype = dtype);
            assert_int_equal(tn_eval(scale) | tn_eval(x), TN_OK); /* no constants, which are folded */
            tn_array *y = sign < 0 ? tn_subtract(x, mean) : tn_add(x, mean);
            y = tn_multiply(y, k % 3 == 2 ? tn_broadcast_to(scale, TN_SHAPE(3, 8)) : scale);
            assert_int_equal(tn_backward(tn_sum(tn_multiply(y, tn_full(TN_SHAPE(1), of[k / 3].large, .dtype = dtype)))),
                             TN_OK);
            double want = sign * 8 * (of[k / 3].large * of[k / 3].small);
            assert_values(tn_grad(mean), 3, (double[]){want, want, want}, 0);
        }
}

static void test_nothing_left_out(void **state)
{
    (void)state;
    const tn__op tested[] = {TN__OP_RESHAPE, TN__OP_PERMUTE, TN__OP_EXPAND, TN__OP_SLICE,
                             TN__OP_WINDOWS /* in tests/numpy */,
                             TN__OP_UPDATE,  TN__OP_GATHER,  TN__OP_MATMUL, TN__OP_SCATTER_ADD,
                             TN__OP_SCATTER_SET /* in tests/numpy */, TN__OP_TRANSFER /* in test_backward.c */,
                             TN__OP_COLLECTIVE /* in tests/comm */, TN__OP_RECUR, TN__OP_RECUR_BACK /* in tests/nn */};
    int others = 0;
    for (int op = 0; op < TN__OP_COUNT; op++)
        others += tn__rules[op] && tn__ops[op].kind != TN__KIND_MAP &&
                  tn__ops[op].kind != TN__KIND_REDUCE && tn__ops[op].kind != TN__KIND_SORT_SCAN &&
                  tn__ops[op].kind != TN__KIND_LIBRARY && tn__ops[op].kind != TN__KIND_CUSTOM &&
                  tn__ops[op].kind != TN__KIND_TIED;
    assert_int_equal(others, sizeof tested / sizeof *tested);
    for (size_t i = 0; i < sizeof tested / sizeof *tested; i++)
        assert_non_null(tn__rules[tested[i]]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_views),         TEST(test_windows),
        TEST(test_joins),         TEST(test_indexing),
        TEST(test_gather_values), TEST(test_products),
        TEST(test_composites),    TEST(test_network),
        TEST(test_compiled),      TEST(test_nothing_left_out),
        TEST(test_many_ties),      TEST(test_large_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
