/* SPDX-License-Identifier: MIT */
/*
 * Operands on two devices, in each kind of operation: an error that names both and the call that mends it, whichever
 * comes first; and no handle ends up on another device than it was on. Constants go where the others are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

#define LIST(...) ((const tn_array *const[]){__VA_ARGS__})

static tn_device elsewhere;
/* here: on the CPU; there: on the other device. */
static tn_array *here, *there, *row, *other_row, *at, *other_at, *mask, *other_mask;

static void both_named(const char *what)
{
    const char *said = tn_error();
    if (tn_error_code() != TN_ERR_DEVICE || !strstr(said, "cpu") || !strstr(said, tn_device_name(elsewhere)) ||
        !strstr(said, "tn_to(x, tn_device_of("))
        fail_msg("%s: %s", what, *said ? said : "no error");
    tn_clear_error();
}

#define REFUSES(call) \
    do { \
        assert_true(tn_is_error(call)); \
        both_named(#call); \
    } while (0)
#define FAILS(call) \
    do { \
        assert_int_equal(call, TN_ERR_DEVICE); \
        both_named(#call); \
    } while (0)

static void make(tn_device device, tn_array **x, tn_array **r, tn_array **i, tn_array **m)
{
    static const float values[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
    TN_ON_DEVICE(device)
    {
        *x = tn_from_host(values, TN_SHAPE(4, 4), TN_FLOAT32);
        *r = tn_from_host(values, TN_SHAPE(4), TN_FLOAT32);
        *i = tn_from_int64s((int64_t[]){2, 0, 1, 3}, 4);
    }
    *m = tn_greater(*x, 4);
}

static void test_operations(void **state)
{
    (void)state;
    TN_SCOPE
    {
        REFUSES(tn_add(here, there));
        REFUSES(tn_add(there, here));
        REFUSES(tn_maximum(here, there));
        REFUSES(tn_less(there, here));
        REFUSES(tn_clip(here, there, there));
        REFUSES(tn_where(mask, there, there));
        REFUSES(tn_where(other_mask, there, here));
        REFUSES(tn_matmul(here, there));
        REFUSES(tn_dot(other_row, row));
        REFUSES(tn_outer(row, other_row));
        REFUSES(tn_einsum("ij,jk->ik", 2, LIST(here, there)));
        REFUSES(tn_concatenate(2, LIST(here, there), 0));
        REFUSES(tn_stack(2, LIST(there, here), 0));
        REFUSES(tn_complex(here, there));
        REFUSES(tn_searchsorted(row, other_row));
        REFUSES(tn_convolve(row, other_row, "full"));
        REFUSES(tn_linalg_solve(here, there));
        REFUSES(tn_choose(at, 4, LIST(other_row, other_row, other_row, other_row), "raise"));
        REFUSES(tn_isin(here, there, false));
    }
}

static void test_indexing(void **state)
{
    (void)state;
    TN_SCOPE
    {
        REFUSES(tn_take(here, other_at, 0));
        REFUSES(tn_take_along_axis(there, tn_reshape(at, TN_SHAPE(1, 4)), 0));
        REFUSES(tn_get(here, TN_PICK(other_at)));
        REFUSES(tn_get(there, TN_PICK(mask)));
        REFUSES(tn_compress(tn_greater(row, 2), there, TN_AXES(0)));
        REFUSES(tn_scatter_set(here, other_at, here, 0));
        REFUSES(tn_index_update(here, there, 1, (tn_key[]){TN_WHOLE}));
        tn_array *x = tn_multiply(here, 1);
        FAILS(tn_setitem(x, there, 1, (tn_key[]){TN_WHOLE}));
        FAILS(tn_add_at(x, there, 1, (tn_key[]){TN_WHOLE}));
        FAILS(tn_put(x, other_at, row, "raise"));
        FAILS(tn_place(x, other_mask, row));
        FAILS(tn_fill_diagonal(x, other_row, false));
        assert_true(tn_device_equal(tn_device_of(x), tn_cpu()));
    }
}

/* A handle stays on its device, even one whose value could be had anywhere. */
static void test_written(void **state)
{
    (void)state;
    tn_array *target[2];
    TN_SCOPE
    {
        TN_ON_DEVICE(elsewhere) target[1] = tn_zeros(TN_SHAPE(4, 4));
        target[0] = tn_multiply(there, 1);
        for (int i = 0; i < 2; i++) {
            FAILS(tn_assign(target[i], here));
            FAILS(tn_add_assign(target[i], tn_add(here, here)));
            REFUSES(tn_binary(tn_add, here, here, .out = target[i]));
            REFUSES(tn_binary(tn_matmul, here, here, .out = target[i]));
            REFUSES(tn_unary(tn_exp, here, .out = target[i]));
            REFUSES(tn_concatenate_with(2, LIST(tn_slice_axis(here, 0, 0, 2, 1), tn_slice_axis(here, 0, 2, 4, 1)), 0,
                                        TN_OPTS(tn_out_opts, .out = target[i])));
            REFUSES(tn_sum(here, .axis = TN_AXES(0), .keepdims = true, .out = tn_slice_axis(target[i], 0, 0, 1, 1)));
            REFUSES(tn_unary(tn_exp, there, .out = target[i], .where = mask));
            REFUSES(tn_binary(tn_add, tn_full(TN_SHAPE(4, 4), 1), 2, .out = target[i], .where = mask));
            assert_true(tn_device_equal(tn_device_of(target[i]), elsewhere));
            assert_int_equal(tn_assign(target[i], 7), TN_OK); /* a constant goes where the handle is */
            tn_unary(tn_positive, tn_full(TN_SHAPE(4, 4), 8), .out = target[i]);
            assert_true(tn_ok() && tn_device_equal(tn_device_of(target[i]), elsewhere));
            assert_true(tn_item(tn_sum(target[i])) == 128);
        }
    }
}

static void test_learning(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(4, .in = 4), tn_relu_layer());
    assert_int_equal(tn_layer_to(net, tn_cpu()), TN_OK);
    TN_SCOPE
    {
        REFUSES(tn_forward(net, there));
        REFUSES(tn_softmax_cross_entropy(here, other_at));
        REFUSES(tn_mean_squared_error(there, here));
        assert_int_equal(tn_layer_to(net, elsewhere), TN_OK);
        REFUSES(tn_forward(net, here));
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, there), other_at);
        assert_int_equal(tn_backward(loss), TN_OK);
        FAILS(tn_assign(tn_grad(tn_param(net, 0)), here));
    }
    tn_layer_free(net);
}

static int setup(void **state)
{
    (void)state;
    tn_status status;
    elsewhere = tn_device_parse("virtual:0", &status);
    make(tn_cpu(), &here, &row, &at, &mask);
    make(elsewhere, &there, &other_row, &other_at, &other_mask);
    return status != TN_OK || !tn_ok();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operations), cmocka_unit_test(test_indexing),
                                       cmocka_unit_test(test_written), cmocka_unit_test(test_learning)};
    if (test_about_cpu("it, and another device"))
        return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, setup, NULL);
}
