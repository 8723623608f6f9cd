/* SPDX-License-Identifier: MIT */
/* Shapes of results, and the errors of operands that do not fit: their codes and what their
 * messages tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "array/node.h"

#define SHAPED(...) tn_ones(TN_SHAPE(__VA_ARGS__))
#define RANGE(...)  ((tn_slice_range){__VA_ARGS__})

static void check_shape(const tn_array *x, tn_shape expected, const char *call, int line)
{
    tn_shape got = tn_shape_of(x);
    char a[TN__SHAPE_TEXT], b[TN__SHAPE_TEXT];
    if (tn_is_error(x))
        fail_msg("line %d: %s: %s", line, call, tn_message_of(x));
    if (got.ndim != expected.ndim ||
        memcmp(got.dim, expected.dim, (size_t)got.ndim * sizeof *got.dim) != 0)
        fail_msg("line %d: %s: shape %s, expected %s", line, call,
                 tn__shape_text(got.ndim, got.dim, a),
                 tn__shape_text(expected.ndim, expected.dim, b));
}
#define HAS_SHAPE(call, ...) check_shape(call, TN_SHAPE(__VA_ARGS__), #call, __LINE__)
#define IS_SCALAR(call)      check_shape(call, (tn_shape){0}, #call, __LINE__)

/* The call gives an error of this code, whose message has this part, and which operations pass on. */
static void check_refused(tn_array *x, tn_status code, const char *part, const char *call, int line)
{
    if (!tn_is_error(x))
        fail_msg("line %d: %s: expected an error", line, call);
    if (tn_status_of(x) != code)
        fail_msg("line %d: %s: code %s, expected %s: %s", line, call,
                 tn_status_name(tn_status_of(x)), tn_status_name(code), tn_message_of(x));
    if (!strstr(tn_message_of(x), part))
        fail_msg("line %d: %s: the message lacks \"%s\": %s", line, call, part, tn_message_of(x));
    assert_false(tn_ok());
    assert_string_equal(tn_message_of(tn_add(tn_exp(x), 1)), tn_message_of(x));
    tn_clear_error();
}
#define REFUSED(call, code, part) check_refused(call, code, part, #call, __LINE__)

static void broadcasting(void **state)
{
    (void)state;
    TN_SCOPE {
        HAS_SHAPE(tn_add(SHAPED(2, 3), SHAPED(3)), 2, 3);
        HAS_SHAPE(tn_add(SHAPED(2, 1, 3), SHAPED(5, 1)), 2, 5, 3);
        HAS_SHAPE(tn_add(SHAPED(1), SHAPED(0)), 0);
        HAS_SHAPE(tn_add(SHAPED(2, 3), 1), 2, 3);
        HAS_SHAPE(tn_where(SHAPED(2, 1), SHAPED(3), 0.0), 2, 3);
        HAS_SHAPE(tn_broadcast_to(SHAPED(3), TN_SHAPE(4, 3)), 4, 3);
        IS_SCALAR(tn_add(1, 2.0));
        REFUSED(tn_add(SHAPED(2, 3), SHAPED(4)), TN_ERR_SHAPE, "shapes (2, 3) and (4,)");
        REFUSED(tn_add(SHAPED(2, 3), SHAPED(4)), TN_ERR_SHAPE, "extents 3 and 4 differ at axis -1");
        REFUSED(tn_add(SHAPED(2, 3), SHAPED(4)), TN_ERR_SHAPE, "test_infer_shape.c:");
        REFUSED(tn_add(SHAPED(2), SHAPED(0)), TN_ERR_SHAPE, "extents 2 and 0");
        REFUSED(tn_broadcast_to(SHAPED(2, 3), TN_SHAPE(3)), TN_ERR_SHAPE, "(2, 3)");
        REFUSED(tn_add(SHAPED(2), (tn_array *)NULL), TN_ERR_VALUE, "NULL");
        REFUSED(tn_add(SHAPED(2), NULL), TN_ERR_VALUE, "NULL"); /* no number 0 */
    }
}

static void shapes(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = SHAPED(2, 3, 4);
        HAS_SHAPE(tn_reshape(x, TN_SHAPE(4, -1)), 4, 6);
        HAS_SHAPE(tn_reshape(SHAPED(0, 3), TN_SHAPE(-1, 2)), 0, 2);
        HAS_SHAPE(tn_flatten(tn_scalar(1.0)), 1);
        HAS_SHAPE(tn_transpose(x, (tn_axes){0}), 4, 3, 2);
        HAS_SHAPE(tn_transpose(x, TN_AXES(1, 0, -1)), 3, 2, 4);
        HAS_SHAPE(tn_swapaxes(x, 0, -1), 4, 3, 2);
        HAS_SHAPE(tn_expand_dims(x, -1), 2, 3, 4, 1);
        HAS_SHAPE(tn_expand_dims(x, 0), 1, 2, 3, 4);
        HAS_SHAPE(tn_squeeze(SHAPED(1, 3, 1), (tn_axes){0}), 3);
        HAS_SHAPE(tn_squeeze(SHAPED(1, 3, 1), TN_AXES(-1)), 1, 3);
        REFUSED(tn_reshape(x, TN_SHAPE(5, -1)), TN_ERR_SHAPE, "24 elements");
        REFUSED(tn_reshape(x, TN_SHAPE(-1, -1)), TN_ERR_SHAPE, "both -1");
        REFUSED(tn_reshape(x, TN_SHAPE(5, 5)), TN_ERR_SHAPE, "(2, 3, 4)");
        REFUSED(tn_reshape(SHAPED(0, 3), TN_SHAPE(0, -1)), TN_ERR_SHAPE, "-1");
        REFUSED(tn_transpose(x, TN_AXES(0, 1)), TN_ERR_VALUE, "2 axes");
        REFUSED(tn_transpose(x, TN_AXES(0, 1, 1)), TN_ERR_VALUE, "twice");
        REFUSED(tn_swapaxes(x, 0, 3), TN_ERR_INDEX, "axis 3");
        REFUSED(tn_squeeze(x, TN_AXES(0)), TN_ERR_SHAPE, "extent 2");
        REFUSED(tn_expand_dims(x, 5), TN_ERR_INDEX, "axis 5");
        REFUSED(tn_zeros(TN_SHAPE(2, -3)), TN_ERR_SHAPE, "-3");
        REFUSED(tn_zeros(TN_SHAPE(1, 2, 3, 4, 5, 6, 7, 8, 9)), TN_ERR_SHAPE, "9");
    }
}

static void slices(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = SHAPED(10, 4);
        HAS_SHAPE(tn_slice(x, 1, &RANGE(2, 8, 3)), 2, 4);
        HAS_SHAPE(tn_slice(x, 1, &RANGE(TN_NONE, TN_NONE, -3)), 4, 4);
        HAS_SHAPE(tn_slice(x, 1, &RANGE(-3, 100, TN_NONE)), 3, 4);
        HAS_SHAPE(tn_slice(x, 1, &RANGE(5, 2, 0)), 0, 4);
        HAS_SHAPE(tn_slice(x, 1, &RANGE(5, TN_NONE, -1)), 6, 4);
        HAS_SHAPE(tn_slice(x, 1, &RANGE(INT64_MAX, INT64_MIN + 1, INT64_MIN + 1)), 1, 4);
        HAS_SHAPE(tn_slice_axis(x, -1, 1, TN_NONE, 2), 10, 2);
        HAS_SHAPE(tn_index(x, -10), 4);
        HAS_SHAPE(tn_flip(x, TN_AXES(0)), 10, 4);
        HAS_SHAPE(tn_slice_update(x, 1, &RANGE(0, 2, 1), tn_scalar(0.0)), 10, 4);
        REFUSED(tn_index(x, 10), TN_ERR_INDEX, "index 10");
        REFUSED(tn_index(tn_scalar(1.0), 0), TN_ERR_INDEX, "tn_item");
        REFUSED(tn_slice(x, 3, (tn_slice_range[3]){{0, 1, 1}}), TN_ERR_INDEX, "3 ranges");
        REFUSED(tn_slice_update(x, 1, &RANGE(0, 2, 1), SHAPED(3)), TN_ERR_SHAPE, "(3,)");
        tn_array *parts[4];
        assert_int_equal(tn_split(x, 2, 0, parts), TN_OK);
        HAS_SHAPE(parts[1], 5, 4);
        assert_int_equal(tn_split(x, 3, 0, parts), TN_ERR_SHAPE);
        REFUSED(parts[2], TN_ERR_SHAPE, "extent 10");
    }
}

static void joins(void **state)
{
    (void)state;
    TN_SCOPE {
        const tn_array *two[] = {SHAPED(2, 3), tn_ones(TN_SHAPE(2, 4), .dtype = TN_FLOAT64)};
        tn_array *joined = tn_concatenate(2, two, 1);
        HAS_SHAPE(joined, 2, 7);
        assert_int_equal(tn_dtype_of(joined), TN_FLOAT64);
        REFUSED(tn_concatenate(2, two, 0), TN_ERR_SHAPE, "array 1 has shape (2, 4)");
        REFUSED(tn_stack(2, two, 0), TN_ERR_SHAPE, "array 1 has shape (2, 4), array 0 (2, 3)");
        const tn_array *three[] = {two[0], two[0], two[1]};
        REFUSED(tn_concatenate(3, three, 0), TN_ERR_SHAPE, "array 2 has shape (2, 4), array 0 (2, 3)");
        REFUSED(tn_concatenate(0, two, 0), TN_ERR_VALUE, "1 or more");
        const tn_array *same[] = {SHAPED(2, 3), SHAPED(2, 3)};
        HAS_SHAPE(tn_stack(2, same, -1), 2, 3, 2);
        HAS_SHAPE(tn_stack(2, same, 0), 2, 2, 3);
        const tn_array *scalars[] = {tn_scalar(1.0), tn_scalar(2.0)};
        HAS_SHAPE(tn_stack(2, scalars, 0), 2);
        REFUSED(tn_concatenate(2, scalars, 0), TN_ERR_INDEX, "axis 0");
    }
}

static void reductions(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = SHAPED(2, 3, 4);
        IS_SCALAR(tn_sum(x));
        HAS_SHAPE(tn_sum(x, .axis = TN_AXES(0, -1)), 3);
        HAS_SHAPE(tn_mean(x, .axis = TN_AXES(1), .keepdims = true), 2, 1, 4);
        HAS_SHAPE(tn_std(x, .keepdims = true), 1, 1, 1);
        IS_SCALAR(tn_argmax(x));
        HAS_SHAPE(tn_argmax(x, .axis = TN_AXES(-1)), 2, 3);
        HAS_SHAPE(tn_argmin(x, .keepdims = true), 1, 1, 1);
        HAS_SHAPE(tn_max(SHAPED(0, 3), .axis = TN_AXES(1)), 0);
        HAS_SHAPE(tn_sum(SHAPED(0, 3), .axis = TN_AXES(0)), 3);
        HAS_SHAPE(tn_softmax(x, -1), 2, 3, 4);
        HAS_SHAPE(tn_log_softmax(SHAPED(0, 3), 0), 0, 3);
        HAS_SHAPE(tn_logsumexp(x, .axis = TN_AXES(1)), 2, 4);
        REFUSED(tn_max(SHAPED(0, 3)), TN_ERR_SHAPE, "extent 0, and nothing has no largest; check");
        REFUSED(tn_argmin(SHAPED(3, 0), .axis = TN_AXES(1)), TN_ERR_SHAPE, "extent 0");
        REFUSED(tn_argmax(x, .axis = TN_AXES(0, 1)), TN_ERR_VALUE, "2 axes");
        REFUSED(tn_sum(x, .axis = TN_AXES(3)), TN_ERR_INDEX, "axis 3 is out of range");
        REFUSED(tn_sum(x, .axis = TN_AXES(0, -3)), TN_ERR_VALUE, "twice");
        REFUSED(tn_mean(x, .dtype = TN_BOOL), TN_ERR_DTYPE, "bool");
        REFUSED(tn_softmax(tn_scalar(1.0), 0), TN_ERR_INDEX, "0 axes");
    }
}

static void products(void **state)
{
    (void)state;
    TN_SCOPE {
        HAS_SHAPE(tn_matmul(SHAPED(2, 3), SHAPED(3, 5)), 2, 5);
        HAS_SHAPE(tn_matmul(SHAPED(3), SHAPED(3, 5)), 5);
        HAS_SHAPE(tn_matmul(SHAPED(2, 3), SHAPED(3)), 2);
        IS_SCALAR(tn_matmul(SHAPED(3), SHAPED(3)));
        HAS_SHAPE(tn_matmul(SHAPED(7, 2, 3), SHAPED(3, 5)), 7, 2, 5);
        HAS_SHAPE(tn_matmul(SHAPED(7, 2, 3), SHAPED(3)), 7, 2);
        HAS_SHAPE(tn_matmul(SHAPED(3), SHAPED(7, 3, 5)), 7, 5);
        HAS_SHAPE(tn_matmul(SHAPED(6, 1, 2, 3), SHAPED(7, 3, 5)), 6, 7, 2, 5);
        HAS_SHAPE(tn_matmul(SHAPED(4, 2, 0), SHAPED(0, 5)), 4, 2, 5);
        HAS_SHAPE(tn_matmul(SHAPED(0, 3), SHAPED(3, 0)), 0, 0);
        REFUSED(tn_matmul(SHAPED(2, 3), SHAPED(2, 3)), TN_ERR_SHAPE, "shapes (2, 3) and (2, 3)");
        REFUSED(tn_matmul(SHAPED(2, 3), 2.0), TN_ERR_SHAPE, "tn_multiply");
        REFUSED(tn_matmul(SHAPED(6, 2, 3), SHAPED(7, 3, 5)), TN_ERR_SHAPE, "6 and 7");
    }
}

static void indexing(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = SHAPED(5, 6, 7), *i = tn_zeros(TN_SHAPE(2, 3), .dtype = TN_INT32);
        HAS_SHAPE(tn_take(x, i, 1), 5, 2, 3, 7);
        HAS_SHAPE(tn_take(x, 0, -1), 5, 6);
        HAS_SHAPE(tn_take(x, tn_zeros(TN_SHAPE(0), .dtype = TN_INT64), 0), 0, 6, 7);
        HAS_SHAPE(tn_take_along_axis(x, tn_zeros(TN_SHAPE(5, 2, 1), .dtype = TN_INT64), 1), 5, 2,
                  7);
        HAS_SHAPE(tn_scatter_add(x, i, SHAPED(5, 2, 3, 7), 1), 5, 6, 7);
        HAS_SHAPE(tn_scatter_add(x, 2, 1.0, 0), 5, 6, 7);
        HAS_SHAPE(tn_one_hot(i, 10, TN_DTYPE_DEFAULT), 2, 3, 10);
        assert_int_equal(tn_dtype_of(tn_one_hot(i, 10, TN_INT8)), TN_INT8);
        REFUSED(tn_take(x, SHAPED(2), 0), TN_ERR_DTYPE, "float32");
        REFUSED(tn_take(x, i, 3), TN_ERR_INDEX, "axis 3");
        REFUSED(tn_take(SHAPED(0, 2), i, 0), TN_ERR_INDEX, "extent 0");
        REFUSED(tn_take_along_axis(x, i, 1), TN_ERR_SHAPE, "as many axes");
        REFUSED(tn_scatter_add(x, i, SHAPED(2, 7), 1), TN_ERR_SHAPE, "(2, 7)");
        REFUSED(tn_one_hot(i, -1, TN_FLOAT32), TN_ERR_VALUE, "-1");
    }
}

static void creation(void **state)
{
    (void)state;
    TN_SCOPE {
        assert_int_equal(tn_dtype_of(tn_arange(0, 5, 1)), TN_INT64);
        assert_int_equal(tn_dtype_of(tn_arange(0, 5, 0.5)), TN_FLOAT32);
        HAS_SHAPE(tn_arange(0, 1, 0.1), 10);
        HAS_SHAPE(tn_arange(5, 0, 1), 0);
        HAS_SHAPE(tn_linspace(0, 1, 0), 0);
        HAS_SHAPE(tn_eye(3, -1), 3, 3);
        HAS_SHAPE(tn_eye(3, 2), 3, 2);
        REFUSED(tn_arange(0, 1, 0), TN_ERR_VALUE, "step");
        REFUSED(tn_arange(0, 5, 1, .dtype = TN_BOOL), TN_ERR_DTYPE, "bool");
        REFUSED(tn_linspace(0, 1, -1), TN_ERR_VALUE, "-1");
        REFUSED(tn_zeros(TN_SHAPE(2), .dtype = (tn_dtype)99), TN_ERR_DTYPE, "99");
        REFUSED(tn_from_host(NULL, TN_SHAPE(2), TN_FLOAT32), TN_ERR_VALUE, "NULL");
        REFUSED(tn_from_host("\2", TN_SHAPE(1), TN_BOOL), TN_ERR_VALUE, "is 2");
        REFUSED(tn_cast(SHAPED(2), TN_DTYPE_DEFAULT), TN_ERR_DTYPE, "no dtype");
        REFUSED(tn_random_uniform(TN_SHAPE(2), .low = 2, .high = 1), TN_ERR_VALUE, "low 2");
        REFUSED(tn_random_normal(TN_SHAPE(2), .scale = -1), TN_ERR_VALUE, "scale -1");
        REFUSED(tn_random_uniform(TN_SHAPE(2), .dtype = TN_INT32), TN_ERR_DTYPE, "int32");
        REFUSED(tn_random_integers(3, 3, TN_SHAPE(2)), TN_ERR_VALUE, "low 3");
        REFUSED(tn_random_integers(0, 257, TN_SHAPE(2), .dtype = TN_UINT8), TN_ERR_VALUE, "uint8");
        REFUSED(tn_random_bernoulli(1.5, TN_SHAPE(2)), TN_ERR_VALUE, "1.5");
    }
}

/* Every call takes its own stretch of the generator's counter: blocks of four 32-bit or two 64-bit draws. */
static void generators_advance(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_generator g = {.key = 7, .counter = 100};
        tn_random_uniform(TN_SHAPE(9), .generator = &g);
        assert_int_equal(g.counter, 103);
        tn_random_normal(TN_SHAPE(9), .generator = &g, .dtype = TN_FLOAT64);
        assert_int_equal(g.counter, 108);
        tn_random_integers(0, 10, TN_SHAPE(1), .generator = &g, .dtype = TN_UINT8);
        assert_int_equal(g.counter, 109);
        tn_random_permutation(5, .generator = &g);
        assert_int_equal(g.counter, 112);
        tn_random_normal(TN_SHAPE(0), .generator = &g, .dtype = TN_FLOAT16);
        assert_int_equal(g.counter, 112);
        tn_seed(3);
        tn_random_bernoulli(0.5, TN_SHAPE(4));
        assert_int_equal(tn_default_generator()->key, 3);
        assert_int_equal(tn_default_generator()->counter, 1);
        assert_true(tn_ok());
    }
}

static void assignment_keeps_shape_and_dtype(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = SHAPED(2, 3), *first = tn_reshape(x, TN_SHAPE(2, 3));
        assert_int_equal(tn_add_assign(x, tn_ones(TN_SHAPE(3), .dtype = TN_FLOAT64)), TN_OK);
        HAS_SHAPE(x, 2, 3);
        assert_int_equal(tn_dtype_of(x), TN_FLOAT32);
        assert_ptr_not_equal(tn__array_node(x), tn__array_node(first));
        const tn__node *before = tn__array_node(x);
        assert_int_equal(tn_multiply_assign(x, SHAPED(4, 2, 3)), TN_ERR_SHAPE);
        assert_int_equal(tn_assign(x, SHAPED(2)), TN_ERR_SHAPE);
        assert_ptr_equal(tn__array_node(x), before);
        tn_clear_error();
        assert_int_equal(tn_assign(x, 2), TN_OK);
        HAS_SHAPE(x, 2, 3);
        assert_int_equal(tn_dtype_of(x), TN_FLOAT32);
        tn_array *bad = tn_add(SHAPED(2), SHAPED(3));
        assert_int_equal(tn_assign(x, bad), TN_ERR_SHAPE);
        assert_int_equal(tn_divide_assign(bad, x), TN_ERR_SHAPE);
        tn_clear_error();
    }
}

/* What changes nothing records nothing, and constants stay constants. */
static void nothing_is_recorded_in_vain(void **state)
{
    (void)state;
    TN_SCOPE {
        float data[6] = {0};
        tn_array *x = tn_from_host(data, TN_SHAPE(2, 3), TN_FLOAT32);
        assert_ptr_equal(tn__array_node(tn_reshape(x, TN_SHAPE(-1, 3))), tn__array_node(x));
        assert_ptr_equal(tn__array_node(tn_cast(x, TN_FLOAT32)), tn__array_node(x));
        assert_ptr_equal(tn__array_node(tn_transpose(x, TN_AXES(0, 1))), tn__array_node(x));
        assert_ptr_equal(tn__array_node(tn_transpose(tn_transpose(x, (tn_axes){0}), (tn_axes){0})), tn__array_node(x));
        assert_ptr_equal(tn__array_node(tn_reshape(tn_flatten(x), TN_SHAPE(2, 3))), tn__array_node(x));
        assert_ptr_equal(tn__array_node(tn_slice(x, 0, NULL)), tn__array_node(x));
        assert_ptr_equal(tn__array_node(tn_broadcast_to(x, TN_SHAPE(2, 3))), tn__array_node(x));
        tn_array *zero = tn_cast(
            tn_transpose(tn_broadcast_to(tn_zeros(TN_SHAPE(3)), TN_SHAPE(2, 3)), (tn_axes){0}),
            TN_INT8);
        assert_int_equal(tn__array_node(zero)->op, TN__OP_CONST);
        HAS_SHAPE(zero, 3, 2);
        assert_int_equal(tn__array_node(tn_add(x, 1))->in[1]->op, TN__OP_CONST);
        /* a leaf that is a constant stays itself: backward must reach it */
        tn_array *leaf = tn_requires_grad(tn_ones(TN_SHAPE(3)));
        assert_ptr_equal(tn__array_node(tn_add(x, leaf))->in[1]->in[0]->in[0], tn__array_node(leaf));
        assert_true(tn_ok());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcasting),
        cmocka_unit_test(shapes),
        cmocka_unit_test(slices),
        cmocka_unit_test(joins),
        cmocka_unit_test(reductions),
        cmocka_unit_test(products),
        cmocka_unit_test(indexing),
        cmocka_unit_test(creation),
        cmocka_unit_test(generators_advance),
        cmocka_unit_test(assignment_keeps_shape_and_dtype),
        cmocka_unit_test(nothing_is_recorded_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
