/* SPDX-License-Identifier: MIT */
/* What backward gives to whom: leaves, retained arrays, accumulation, graphs kept and let go,
 * higher orders, errors. */
#include "autograd/helpers.h"

#include "array/build.h"
#include "autograd/backward.h"
#include "core/memory.h"
#include "support/device.h"

#include <string.h>
#include <tanso/device.h>
#include <tanso/linalg.h>
#include <tanso/statistics.h>

static tn_array *leaf(double value)
{
    return tn_requires_grad(tn_scalar(value, .dtype = TN_FLOAT64));
}

static void assert_grad(const tn_array *x, double expected)
{
    assert_true(tn_has_grad(x));
    assert_values(tn_grad(x), 1, &expected, 1e-12);
}

static void assert_no_grad(const tn_array *x)
{
    assert_false(tn_has_grad(x));
    assert_true(tn_is_error(tn_grad(x)));
    assert_error(TN_ERR_STATE, "no gradient");
}

static void test_leaves_alone_get_gradients(void **state)
{
    (void)state;
    tn_array *x = leaf(3), *constant = tn_scalar(2, .dtype = TN_FLOAT64);
    tn_array *middle = tn_square(x), *y = tn_multiply(middle, constant);
    assert_true(tn_needs_grad(x) && tn_needs_grad(y));
    assert_false(tn_needs_grad(constant));
    assert_int_equal(tn_backward(y), TN_OK);
    assert_grad(x, 12);
    assert_no_grad(constant);
    assert_no_grad(middle);
    assert_no_grad(y);
    assert_values(y, 1, (double[]){18}, 0);
}

/* A leaf reached on several paths gets the sum, each node being passed once. */
static void test_fan_out(void **state)
{
    (void)state;
    tn_array *x = leaf(1), *y = x;
    for (int i = 0; i < 60; i++)
        y = tn_add(y, y); /* 2^60 paths */
    assert_int_equal(tn_backward(y), TN_OK);
    assert_grad(x, 0x1p60);
}

/* Deeper than what is recorded before an evaluation, and than any recursion would survive. */
static void test_deep(void **state)
{
    (void)state;
    tn_array *x = leaf(1), *y = x;
    for (int i = 0; i < 7001; i++)
        y = tn_multiply(y, i % 2 ? 0.5 : 2.0);
    assert_int_equal(tn_backward(y), TN_OK);
    assert_grad(x, 2);
    assert_values(y, 1, (double[]){2}, 0);
}

static void test_not_a_scalar(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(tn_from_floats((float[]){1, 2, 3}, 3)), *y = tn_square(x);
    assert_int_equal(tn_backward(y, .retain_graph = true), TN_OK);
    assert_values(tn_grad(x), 3, (double[]){2, 4, 6}, 0);
    tn_clear_grad(x);
    assert_int_equal(tn_backward(y, .grad = tn_from_floats((float[]){1, 0, -2}, 3)), TN_OK);
    assert_values(tn_grad(x), 3, (double[]){2, 0, -12}, 0);
}

static void test_accumulation(void **state)
{
    (void)state;
    tn_array *x = leaf(3);
    assert_int_equal(tn_backward(tn_square(x)), TN_OK);
    tn_array *handle = tn_grad(x);
    assert_grad(x, 6);
    assert_int_equal(tn_backward(tn_multiply(x, 5)), TN_OK);
    assert_grad(x, 11);
    assert_ptr_equal(tn_grad(x), handle);
    tn_clear_grad(x);
    assert_no_grad(x);
    assert_true(tn_is_error(handle));
    assert_fine();
    assert_int_equal(tn_backward(x), TN_OK);
    assert_ptr_equal(tn_grad(x), handle);
    assert_grad(x, 1);
}

/* What is assigned to the gradient's handle is the gradient: clipping by hand. */
static void test_assigned_gradients(void **state)
{
    (void)state;
    tn_array *x = leaf(3);
    assert_int_equal(tn_backward(tn_square(x)), TN_OK);
    assert_int_equal(tn_multiply_assign(tn_grad(x), 0.5), TN_OK);
    assert_grad(x, 3);
    tn_array *inside = tn__array_own_new(tn__var_grad(tn__handle_of(x)->var));
    assert_values(inside, 1, (double[]){3}, 0);
    tn__array_free_kept(inside);
    assert_int_equal(tn_backward(x), TN_OK);
    assert_grad(x, 4);
    assert_int_equal(tn_set_grad(x, tn_scalar(7, .dtype = TN_FLOAT64)), TN_OK);
    assert_grad(x, 7);
    assert_int_equal(tn_set_grad(x, tn_zeros(TN_SHAPE(2), .dtype = TN_FLOAT64)), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "shape (), got (2,)");
    assert_int_equal(tn_set_grad(x, tn_scalar(1)), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "float64, got float32");
    assert_grad(x, 7);
}

static void test_retained(void **state)
{
    (void)state;
    tn_array *x = leaf(3), *asked = tn_retain_grad(tn_square(x)), *not_asked = tn_exp(asked);
    assert_int_equal(tn_backward(tn_multiply(not_asked, 2), .retain_graph = true), TN_OK);
    const double slope = 2 * __builtin_exp(9);
    assert_grad(asked, slope);
    assert_grad(x, slope * 6);
    assert_no_grad(not_asked);
    tn_clear_grad(x);
    tn_clear_grad(asked);
    assert_int_equal(tn_backward(tn_multiply(not_asked, 2), .retain_grad = true), TN_OK);
    assert_grad(not_asked, 2);
    assert_grad(asked, slope);
    assert_grad(x, slope * 6);
}

static void test_graph_is_let_go(void **state)
{
    (void)state;
    tn_array *x = leaf(3), *middle = tn_square(x), *y = tn_exp(middle),
             *other = tn_multiply(middle, 2);
    assert_int_equal(tn_backward(y), TN_OK);
    assert_int_equal(tn_backward(y), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "retain_graph");
    assert_int_equal(tn_backward(other), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "'square'");
    assert_int_equal(tn_eval(y), TN_OK);
    assert_int_equal(tn__array_node(y)->arity, 0);
    assert_int_equal(tn_backward(y), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "retain_graph");
    assert_grad(x, 6 * __builtin_exp(9));
}

static void test_graph_is_kept(void **state)
{
    (void)state;
    tn_array *x = leaf(3), *y = tn_square(x);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(tn_backward(y, .retain_graph = true), TN_OK);
        assert_int_equal(tn_eval(y), TN_OK);
        assert_grad(x, 6 * i);
    }
    assert_int_equal(tn_backward(y), TN_OK); /* evaluated before: let go at once */
    assert_int_equal(tn__array_node(y)->arity, 0);
    assert_grad(x, 24);
}

static void test_higher_orders(void **state)
{
    (void)state;
    tn_array *x = leaf(2), *y = tn_power(x, 5);
    const double expected[] = {80, 160, 240, 240, 120, 0, 0};
    for (int order = 0; order < 7; order++) {
        assert_int_equal(tn_backward(y, .create_graph = true), TN_OK);
        assert_grad(x, expected[order]);
        y = tn_multiply(tn_grad(x), 1);
        tn_clear_grad(x);
    }
}

static void test_gradients_are_plain_by_default(void **state)
{
    (void)state;
    tn_array *x = leaf(2);
    assert_int_equal(tn_backward(tn_power(x, 3)), TN_OK);
    assert_false(tn_needs_grad(tn_grad(x)));
    assert_int_equal(tn_backward(tn_grad(x)), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_requires_grad");
    tn_clear_grad(x);
    TN_NO_GRAD
    {
        tn_array *y;
        tn_no_grad_pop();
        y = tn_power(x, 3);
        tn_no_grad_push();
        assert_int_equal(tn_backward(y, .create_graph = true), TN_OK);
        assert_true(tn_needs_grad(tn_grad(x)));
        assert_false(tn_grad_enabled());
    }
    assert_true(tn_grad_enabled());
}

static void test_gradients_of_anything(void **state)
{
    (void)state;
    tn_array *x = tn_from_doubles((double[]){1, 2}, 2), *w = leaf(3), *out[3];
    tn_array *middle = tn_multiply(x, w), *y = tn_sum(tn_square(middle));
    assert_int_equal(tn_eval(x), TN_OK);
    assert_int_equal(tn_gradients(y, 3, (const tn_array *[]){x, middle, w}, false, out), TN_OK);
    assert_values(out[0], 2, (double[]){18, 36}, 0);
    assert_values(out[1], 2, (double[]){6, 12}, 0);
    assert_values(out[2], 1, (double[]){30}, 0);
    assert_false(tn_has_grad(w));
    assert_false(tn_needs_grad(x));
    /* The graph stays, the same array may be asked for twice, and an output for its own gradient. */
    assert_int_equal(tn_gradients(y, 3, (const tn_array *[]){x, y, x}, true, out), TN_OK);
    assert_values(out[1], 1, (double[]){1}, 0);
    assert_values(out[2], 2, (double[]){18, 36}, 0);
    /* d/dx and d/dw of sum(2 x w²) */
    assert_int_equal(tn_gradients(tn_sum(out[0]), 2, (const tn_array *[]){x, w}, false, out),
                     TN_OK);
    assert_values(out[0], 2, (double[]){18, 18}, 0);
    assert_values(out[1], 1, (double[]){36}, 0);
    assert_int_equal(tn_gradients(y, 0, NULL, false, NULL), TN_OK);
}

/* What was recorded without gradients is constant for tn_gradients, too, as long as the rest leads to what is asked. */
static void test_gradients_past_constants(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(tn_from_doubles((double[]){1, 3, 2}, 3)), *slope, *largest;
    TN_NO_GRAD largest = tn_max(x);
    tn_array *y = tn_sum(tn_multiply(x, largest));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, false, &slope), TN_OK);
    assert_values(slope, 3, (double[]){3, 3, 3}, 0);
    /* nothing else leads to x: what there is is gone through */
    assert_int_equal(tn_gradients(tn_square(largest), 1, (const tn_array *[]){x}, false, &slope), TN_OK);
    assert_values(slope, 3, (double[]){0, 6, 0}, 0);
    /* softmax subtracts the largest as a constant: of its gradient's operations none compares with it */
    y = tn_sum(tn_multiply(tn_softmax(x, 0), tn_from_doubles((double[]){1, 2, 4}, 3)));
    assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, false, &slope), TN_OK);
    char *plan = tn_plan_describe(slope);
    assert_non_null(plan);
    assert_null(strstr(plan, "equal"));
    tn_string_free(plan);
}

static void test_gradients_of_strangers(void **state)
{
    (void)state;
    tn_array *x = leaf(1), *stranger = leaf(1), *out[2];
    assert_int_equal(tn_gradients(tn_square(x), 2, (const tn_array *[]){x, stranger}, false, out),
                     TN_ERR_STATE);
    assert_true(tn_is_error(out[0]) && tn_is_error(out[1]));
    assert_error(TN_ERR_STATE, "xs[1]");
}

static void test_detach_and_no_grad(void **state)
{
    (void)state;
    tn_array *x = leaf(3), *y = tn_square(x), *cut = tn_detach(y);
    assert_false(tn_needs_grad(cut));
    assert_int_equal(tn_backward(tn_multiply(y, cut), .retain_graph = true), TN_OK);
    assert_grad(x, 54);
    TN_NO_GRAD
    {
        assert_false(tn_grad_enabled());
        TN_NO_GRAD assert_false(tn_needs_grad(tn_square(x)));
        assert_false(tn_needs_grad(tn_square(x)));
    }
    assert_true(tn_needs_grad(tn_square(x)));
    assert_int_equal(tn_eval(y), TN_OK);
    tn_array *after = tn_detach(y);
    assert_false(tn_needs_grad(after));
    assert_values(after, 1, (double[]){9}, 0);
    tn_no_grad_pop();
    assert_error(TN_ERR_STATE, "tn_no_grad_push");
}

/* Marking what was computed cuts it off; marking one handle marks no other. */
static void test_marking(void **state)
{
    (void)state;
    tn_array *x = leaf(3), *middle = tn_square(x), *before = tn_exp(middle);
    tn_requires_grad(middle);
    assert_int_equal(tn_backward(tn_multiply(middle, 2)), TN_OK);
    assert_grad(middle, 2);
    assert_false(tn_has_grad(x));
    assert_int_equal(tn_backward(before), TN_OK);
    assert_grad(x, 6 * __builtin_exp(9));

    tn_array *plain = tn_scalar(2, .dtype = TN_FLOAT64), *user = tn_multiply(plain, 3);
    assert_ptr_equal(tn_requires_grad(plain), plain);
    assert_false(tn_needs_grad(user));
    assert_int_equal(tn_backward(tn_power(plain, plain)),
                     TN_OK); /* marked constants are not folded */
    assert_grad(plain, 4 * (1 + 0.69314718055994530942));

    tn_array *integers = tn_zeros(TN_SHAPE(2), .dtype = TN_INT64);
    tn_requires_grad(integers);
    assert_error(TN_ERR_DTYPE, "int64");
    assert_false(tn_needs_grad(integers));
}

/* A leaf keeps its mark when its handle is pointed at another value, as optimizers do. */
static void test_assigned_leaves(void **state)
{
    (void)state;
    tn_array *x = leaf(3);
    assert_int_equal(tn_backward(tn_square(x)), TN_OK);
    TN_NO_GRAD assert_int_equal(tn_subtract_assign(x, tn_multiply(tn_grad(x), 0.5)), TN_OK);
    assert_true(tn_needs_grad(x));
    tn_clear_grad(x);
    assert_int_equal(tn_backward(tn_add(tn_square(x), tn_multiply(x, 4))), TN_OK);
    assert_values(x, 1, (double[]){0}, 0);
    assert_grad(x, 4);
}

/* Integer and condition operands take no gradient, and stop none of the others'. */
static void test_operands_without_gradients(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(tn_from_doubles((double[]){-1, 2, 3}, 3));
    tn_array *y = tn_where(tn_greater(x, 0), tn_multiply(x, tn_argmax(x)), tn_floor(x));
    assert_int_equal(tn_backward(y), TN_OK);
    assert_values(tn_grad(x), 3, (double[]){0, 2, 2}, 0);
}

static void test_errors(void **state)
{
    (void)state;
    tn_array *x = leaf(1);
    assert_int_equal(tn_backward(tn_argmax(tn_reshape(x, TN_SHAPE(1)))), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "int64");
    assert_int_equal(tn_backward(tn_scalar(1)), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "depends on none");
    tn_array *broken = tn_add(tn_zeros(TN_SHAPE(2)), tn_zeros(TN_SHAPE(3)));
    tn_clear_error();
    assert_int_equal(tn_backward(broken), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "add");
    assert_int_equal(tn_backward(NULL), TN_ERR_VALUE);
    assert_error(TN_ERR_VALUE, "NULL");
    assert_int_equal(tn_backward(tn_square(x), .grad = tn_zeros(TN_SHAPE(3))), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "(3,)");
    assert_int_equal(tn_backward(tn_square(x), .grad = tn_scalar(1)), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "float32");
    assert_false(tn_has_grad(x));
    assert_false(tn_has_grad(NULL));
    assert_true(tn_is_error(tn_grad(NULL)));
    assert_error(TN_ERR_VALUE, "NULL");
}

/* A move between devices is an operation like others: gradients move back. */
static void test_moves(void **state)
{
    (void)state;
    tn_device elsewhere = tn_device_parse("virtual:1", NULL);
    tn_array *x = leaf(3), *y = tn_square(tn_to(tn_square(x), elsewhere));
    assert_int_equal(tn_backward(y), TN_OK);
    assert_true(tn_device_equal(tn_device_of(tn_grad(x)), test_device()));
    assert_grad(x, 4 * 27);
}

/* Gradients of what is gone go nowhere; a scope's end takes leaves along. */
static void test_freed_leaves(void **state)
{
    (void)state;
    tn_array *x = leaf(3), *y;
    TN_SCOPE
        y = tn_keep(tn_multiply(x, leaf(2)));
    assert_int_equal(tn_backward(y), TN_OK);
    assert_grad(x, 2);
}

/* Whichever allocation fails, it is told, and the gradients of before stay. */
static void test_no_memory(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(tn_from_doubles((double[]){1, 2, 3}, 3)), *out[1];
    assert_int_equal(tn_backward(tn_multiply(x, 7)), TN_OK);
    bool failed = true;
    int failures = 0;
    for (long k = 0; failed && k < 1000; k++)
        TN_SCOPE {
            tn_array *y = x;
            for (int i = 0; i < 40; i++)
                y = tn_sin(tn_multiply(y, x));
            tn__fail_allocation_after(k);
            tn_status stored = tn_backward(y, .retain_graph = true, .retain_grad = true);
            tn_status returned = tn_gradients(y, 1, (const tn_array *[]){x}, true, out);
            tn_array *gradient = tn_grad(x);
            tn__fail_allocation_after(-1);
            failed = !tn_ok();
            failures += failed;
            assert_true(stored == TN_OK || stored == TN_ERR_MEMORY);
            assert_true(returned == TN_OK || returned == TN_ERR_MEMORY);
            assert_int_equal(tn_is_error(out[0]), returned != TN_OK);
            if (failed)
                assert_error(TN_ERR_MEMORY, "");
            if (stored != TN_OK && !tn_is_error(gradient))
                assert_values(tn_grad(x), 3, (double[]){7, 7, 7}, 0);
            if (stored == TN_OK)
                assert_int_equal(tn_set_grad(x, tn_full(TN_SHAPE(3), 7, .dtype = TN_FLOAT64)),
                                 TN_OK);
        }
    assert_false(failed);
    assert_true(failures > 3);
}

static tn_array *length(int kind, const tn_array *x)
{
    const tn_reduce_opts rows = {.axis = TN_AXES(1), .keepdims = true};
    return kind == 0   ? tn_linalg_norm(x, .axis = TN_AXES(1), .keepdims = true)
           : kind == 1 ? tn_linalg_norm(x, .axis = TN_AXES(1), .ord = TN_ORD(3), .keepdims = true)
           : kind == 2 ? tn_linalg_norm(x, .ord = TN_FRO, .axis = TN_AXES(0, 1))
           : kind == 3 ? tn_std_with(x, &rows)
                       : tn_nanstd_with(x, &rows);
}

/* A length or a deviation of nothing has the slope 0, in any order, and leaves that of its neighbours alone. */
static void test_lengths_of_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++)
        for (int some = 0; some < 2; some++) {
            double rows[3][4] = {{0}, {some * 3, some * 4, 0, 0}, {0}}, first[12], alone[4], none[12] = {0};
            tn_array *x = tn_requires_grad(tn_from_host(rows, TN_SHAPE(3, 4), TN_FLOAT64)), *slope, *second;
            tn_array *y = tn_sum(length(kind, x));
            assert_int_equal(tn_gradients(y, 1, (const tn_array *[]){x}, true, &slope), TN_OK);
            assert_int_equal(tn_gradients(tn_sum(tn_square(slope)), 1, (const tn_array *[]){x}, false, &second), TN_OK);
            assert_int_equal(tn_to_host(slope, first, sizeof first), TN_OK);
            assert_true(tn_item(tn_all(tn_isfinite(second))) == 1);
            if (!some) {
                assert_values(slope, 12, none, 0);
                continue;
            }
            tn_array *one = tn_requires_grad(tn_from_host(rows[1], TN_SHAPE(1, 4), TN_FLOAT64)), *own;
            assert_int_equal(tn_gradients(tn_sum(length(kind, one)), 1, (const tn_array *[]){one}, false, &own), TN_OK);
            assert_int_equal(tn_to_host(own, alone, sizeof alone), TN_OK);
            for (int i = 0; i < 12; i++)
                assert_true(first[i] == (i / 4 == 1 ? alone[i % 4] : 0));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_leaves_alone_get_gradients),
        TEST(test_fan_out),
        TEST(test_deep),
        TEST(test_not_a_scalar),
        TEST(test_accumulation),
        TEST(test_assigned_gradients),
        TEST(test_retained),
        TEST(test_graph_is_let_go),
        TEST(test_graph_is_kept),
        TEST(test_higher_orders),
        TEST(test_gradients_are_plain_by_default),
        TEST(test_gradients_of_anything),
        TEST(test_gradients_past_constants),
        TEST(test_gradients_of_strangers),
        TEST(test_detach_and_no_grad),
        TEST(test_marking),
        TEST(test_assigned_leaves),
        TEST(test_operands_without_gradients),
        TEST(test_errors),
        TEST(test_lengths_of_nothing),
        TEST(test_moves),
        TEST(test_freed_leaves),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
