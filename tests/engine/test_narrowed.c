/* SPDX-License-Identifier: MIT */
/* An index out of range is an error of all that depends on it, though what it was to find is not read: a window leaves
 * it out, or nothing is read at all. By the reference evaluator and by kernels, fused or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/modes.h"

static tn_array *table(void) { return tn_reshape(tn_arange(0, 12, 1, .dtype = TN_FLOAT32), TN_SHAPE(3, 4)); }
static tn_array *int64s(int64_t a, int64_t b, int64_t c) { return tn_from_int64s((int64_t[]){a, b, c}, 3); }

/* ---- what looks at indices: three rows each ---- */

static tn_array *taken(tn_array *at) { return tn_take(table(), at, 0); }
static tn_array *along(tn_array *at) { return tn_take_along_axis(table(), tn_reshape(at, TN_SHAPE(3, 1)), 0); }
static tn_array *added(tn_array *at) { return tn_scatter_add(table(), at, tn_ones(TN_SHAPE(3, 4)), 0); }
static tn_array *set(tn_array *at) { return tn_scatter_set(table(), at, tn_ones(TN_SHAPE(3, 4)), 0); }
static tn_array *items(tn_array *at) { return tn_getitem(table(), TN_KEYS(TN_PICK(at))); }
static tn_array *losses(tn_array *at)
{
    return tn_softmax_cross_entropy(table(), at, .reduction = TN_REDUCTION_NONE);
}
static tn_array *between(tn_array *at) { return tn_exp(tn_negative(tn_take(tn_sin(table()), at, 0))); }
static tn_array *twice(tn_array *at) { return tn_take(table(), tn_take(int64s(0, 1, 2), at, 0), 0); }
static tn_array *of_some(tn_array *at) { return tn_take(tn_square(tn_take(table(), at, 0)), int64s(0, 1, 0), 0); }
static tn_array *computed(tn_array *at) { return tn_take(table(), tn_add(at, tn_zeros_like(at)), 0); }
static tn_array *embedded(tn_array *at) { return tn_embedding_function(table(), at); }
static tn_array *joined(tn_array *at)
{
    return tn_concatenate(2, (const tn_array *[]){table(), tn_take(table(), at, 0)}, 0);
}

static tn_array *(*const makers[])(tn_array *) = {taken, along,   added,    set,      items,  losses, between,
                                                  twice, of_some, computed, embedded, joined};

/* ---- what is read of it: with the indices 1, 0, 7 never what the last one finds ---- */

static tn_array *rows(tn_array *y, int64_t start, int64_t stop)
{
    return tn_slice(y, 1, &(tn_slice_range){start, stop, 1});
}
static tn_array *first(tn_array *y) { return rows(y, 0, 1); }
static tn_array *sum_of_first(tn_array *y) { return tn_sum(rows(y, 0, 1)); }
static tn_array *sum_of_none(tn_array *y) { return tn_sum(rows(y, 0, 0)); }
static tn_array *none(tn_array *y) { return rows(tn_square(y), 1, 1); }
static tn_array *mapped(tn_array *y) { return tn_sum(tn_exp(rows(tn_sin(y), 0, 2))); }
static tn_array *every_second(tn_array *y) { return tn_max(tn_slice(y, 1, &(tn_slice_range){-2, TN_NONE, -2})); }
static tn_array *spread(tn_array *y) { return tn_prod(tn_broadcast_to(tn_sum(y), TN_SHAPE(0))); }
static tn_array *not_chosen(tn_array *y)
{
    return tn_where(tn_zeros(TN_SHAPE(1), .dtype = TN_BOOL), tn_sum(y), tn_ones(TN_SHAPE(1)));
}
static tn_array *product_of_none(tn_array *y)
{
    tn_array *empty = tn_reshape(rows(y, 0, 0), TN_SHAPE(0, 2));
    return tn_matmul(tn_zeros(TN_SHAPE(3, 0)), empty);
}
static tn_array *beside(tn_array *y, tn_array *other)
{
    return tn_concatenate(2, (const tn_array *[]){tn_ravel(y), other}, 0);
}
static tn_array *sum_beside(tn_array *y) { return tn_sum(rows(beside(y, tn_ones(TN_SHAPE(2))), -2, INT64_MAX)); }
static tn_array *read_beside(tn_array *y) { return rows(beside(y, tn_ones(TN_SHAPE(2))), -2, INT64_MAX); }
static tn_array *gradient_of_other(tn_array *y)
{
    tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(2)));
    assert_int_equal(tn_backward(tn_sum(tn_multiply(x, tn_sum(rows(y, 0, 0))))), TN_OK);
    return tn_grad(x);
}

static tn_array *(*const readers[])(tn_array *) = {first,        sum_of_first,    sum_of_none,      none,
                                                   mapped,       every_second,    spread,           not_chosen,
                                                   sum_beside,   product_of_none, read_beside,      gradient_of_other};

static tn_status status_of(tn_array *y)
{
    tn_status status = tn_eval(y);
    if (status == TN_OK) /* a GPU tells of it when it is asked next */
        status = tn_synchronize(test_device());
    tn_clear_error();
    return status;
}

static void some_pairs(size_t step)
{
    for (size_t m = 0; m < sizeof makers / sizeof *makers; m += step)
        for (size_t r = 0; r < sizeof readers / sizeof *readers; r++) TN_SCOPE {
            tn_status bad = status_of(readers[r](makers[m](int64s(1, 0, 7))));
            tn_status good = status_of(readers[r](makers[m](int64s(1, 0, 2))));
            if (bad != TN_ERR_INDEX || good != TN_OK)
                print_error("maker %zu, reader %zu: %s, in range %s\n", m, r, tn_status_name(bad),
                            tn_status_name(good));
            assert_int_equal(bad, TN_ERR_INDEX);
            assert_int_equal(good, TN_OK);
        }
}

static void all_pairs(void) { some_pairs(1); }

static void test_pairs(void **state)
{
    (void)state;
    test_in_both_modes(all_pairs);
}

static void test_no_fusion(void **state)
{
    (void)state;
    (void)state;
    tn_set_fusion(false);
    tn_set_compile(TN_COMPILE_ALWAYS);
    some_pairs(4);
    tn_set_compile(TN_COMPILE_AUTO);
    tn_set_fusion(true);
}

/* Windows that move from round to round have a plan of their own, in which they are told where they begin. */
static void moving_windows(void)
{
    for (int64_t k = 0; k < 5; k++) TN_SCOPE {
        tn_array *at = tn_from_int64s((int64_t[]){0, 1, 2, 0, 1, 9}, 6);
        tn_array *y = tn_take(table(), at, 0);
        assert_int_equal(status_of(tn_sum(tn_exp(rows(y, k, k + 1)))), TN_ERR_INDEX);
        assert_int_equal(status_of(tn_sum(tn_take(table(), rows(at, k, k + 1), 0))), TN_OK);
    }
}

static void test_moving(void **state)
{
    (void)state;
    test_in_both_modes(moving_windows);
}

/* A matrix without an inverse, of which nothing is read. */
static void singular(void)
{
    TN_SCOPE {
        tn_array *inverse = tn_linalg_inv(tn_zeros(TN_SHAPE(2, 2)));
        tn_status all = status_of(tn_sum(inverse));
        assert_int_not_equal(all, TN_OK);
        inverse = tn_linalg_inv(tn_zeros(TN_SHAPE(2, 2)));
        assert_int_equal(status_of(tn_sum(rows(inverse, 0, 0))), all);
        inverse = tn_linalg_inv(tn_zeros(TN_SHAPE(2, 2)));
        assert_int_equal(status_of(sum_beside(inverse)), all);
    }
}

static void test_singular(void **state)
{
    (void)state;
    test_in_both_modes(singular);
}

/* A step whose loss is of some rows leaves the parameters alone where a label that is not among these is wrong. */
static void stepped(void)
{
    for (int good = 0; good < 2; good++) TN_SCOPE {
        tn_layer *net = tn_linear(4, .in = 4);
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.5);
        float before[16], after[16];
        assert_int_equal(tn_to_host(tn_param(net, 0), before, sizeof before), TN_OK);
        tn_array *t = int64s(1, 0, good ? 2 : 7), *y = tn_forward(net, table());
        tn_status status = tn_backward(sum_of_first(tn_softmax_cross_entropy(y, t, .reduction = TN_REDUCTION_NONE)));
        assert_int_equal(status, TN_OK);
        status = tn_step(sgd);
        if (status == TN_OK)
            status = tn_synchronize(test_device());
        tn_clear_error();
        assert_int_equal(status, good ? TN_OK : TN_ERR_INDEX);
        assert_int_equal(tn_to_host(tn_param(net, 0), after, sizeof after), TN_OK);
        assert_true(!memcmp(before, after, sizeof before) == !good);
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

static void test_step(void **state)
{
    (void)state;
    test_in_both_modes(stepped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs), cmocka_unit_test(test_no_fusion), cmocka_unit_test(test_moving),
        cmocka_unit_test(test_singular), cmocka_unit_test(test_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
