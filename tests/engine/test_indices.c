/* SPDX-License-Identifier: MIT */
/* Indices and labels out of range: an error whatever is evaluated of a graph, and in it what the user gave, and where.
 * Each by the reference evaluator and compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/modes.h"
#include "support/latched.h"

static tn_array *int64s(int64_t a, int64_t b) { return tn_from_int64s((int64_t[]){a, b}, 2); }
static tn_array *uint64s(uint64_t a, uint64_t b)
{
    return tn_from_host(((uint64_t[]){a, b}), TN_SHAPE(2), TN_UINT64);
}

/* GPUs tell of it later, when indices can't be looked at once more: what a kernel met, which is the index alone. */
static bool tells_later(void) { return test_device().kind == TN_DEVICE_CUDA; }

/* A call that computes something has failed with an index out of range, at once or when the device is asked next. The
 * words must be in the message; `where`, too, unless the device tells later. */
#define assert_out_of_range(call, words, where) assert_out_of_range_at(call, words, where, __FILE__, __LINE__)
static void assert_out_of_range_at(tn_status status, const char *words, const char *where, const char *file, int line)
{
    if (status == TN_OK && tells_later())
        status = tn_synchronize(test_device());
    if (status != TN_ERR_INDEX || tn_error_code() != status || !strstr(tn_error(), words) ||
        (!tells_later() && !strstr(tn_error(), where))) {
        print_error("expected an index out of range with \"%s\" and \"%s\", got %s: %s\n", words, where,
                    tn_status_name(status), tn_error());
        _fail(file, line);
    }
    tn_clear_error();
}

/* ---- labels ---- */

static tn_status loss_and_step(tn_layer *net, tn_optimizer *sgd, tn_array *t)
{
    tn_status status = TN_OK;
    TN_SCOPE status = tn_backward(tn_softmax_cross_entropy(tn_forward(net, tn_ones(TN_SHAPE(2, 4))), t));
    return status == TN_OK ? tn_step(sgd) : status;
}

/* The loss's handle lives, so that the step computes it, too. */
static tn_status held_loss_and_step(tn_layer *net, tn_optimizer *sgd, tn_array *t)
{
    tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, tn_ones(TN_SHAPE(2, 4))), t);
    tn_status status = tn_backward(loss);
    return status == TN_OK ? tn_step(sgd) : status;
}

static void labels(void)
{
    const struct {
        int64_t label;
        tn_dtype dtype;
        const char *words;
    } cases[] = {{-100, TN_INT64, "index -100"}, {3, TN_INT64, "index 3"},
                 {-1, TN_INT8, "index -1"},      {3, TN_UINT8, "index 3"},
                 {-7, TN_INT32, "index -7"},     {INT32_MIN, TN_INT32, "index -2147483648"},
                 {-1, TN_UINT64, "index 9223372036854775807"},
                 {INT64_MIN, TN_INT64, tells_later() ? "index -2147483648" : "index -9223372036854775808"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) TN_SCOPE {
        tn_layer *net = tn_linear(3, .in = 4);
        tn_optimizer *sgd = tn_sgd(net, .lr = 0.1);
        tn_array *t = cases[i].dtype == TN_UINT64 ? uint64s(1, (uint64_t)cases[i].label)
                                                  : tn_cast(int64s(1, cases[i].label), cases[i].dtype);
        float before[12], after[12];
        assert_int_equal(tn_to_host(tn_param(net, 0), before, sizeof before), TN_OK);
        assert_out_of_range(loss_and_step(net, sgd, t), cases[i].words, "at position 1 is out of range");
        assert_int_equal(tn_to_host(tn_param(net, 0), after, sizeof after), TN_OK);
        assert_memory_equal(before, after, sizeof before);
        assert_out_of_range(held_loss_and_step(net, sgd, t), cases[i].words, "at position 1 is out of range");
        assert_int_equal(tn_to_host(tn_param(net, 0), after, sizeof after), TN_OK);
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(loss_and_step(net, sgd, int64s(2, 0)), TN_OK);
        assert_int_equal(tn_to_host(tn_param(net, 0), after, sizeof after), TN_OK);
        assert_memory_not_equal(before, after, sizeof before);
        tn_array *loss = tn_softmax_cross_entropy(tn_ones(TN_SHAPE(2, 3)), t);
        assert_out_of_range(tn_eval(loss), cases[i].words, "valid are 0");
        tn_optimizer_free(sgd);
        tn_layer_free(net);
    }
}

static void test_labels(void **state)
{
    (void)state;
    test_in_both_modes(labels);
}

static int gathers_of(const tn_array *y)
{
    int count = 0;
    char *text = tn_plan_describe(y);
    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, "gather")); at++)
        count++;
    tn_string_free(text);
    return count;
}

/* The gradient alone looks at the labels, but not once more where the loss does. */
static void looked_at_once(void)
{
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(2, 3)));
        tn_array *loss = tn_softmax_cross_entropy(x, int64s(1, 2));
        assert_int_equal(tn_backward(loss), TN_OK);
        assert_int_equal(gathers_of(tn_sum(tn_grad(x))), 1);
        assert_int_equal(gathers_of(tn_add(loss, tn_sum(tn_grad(x)))), 1);
    }
}

static void test_looked_at_once(void **state)
{
    (void)state;
    test_in_both_modes(looked_at_once);
}

/* ---- only the gradient is evaluated ---- */

static tn_array *taken(tn_array *x, tn_array *at) { return tn_take(x, at, 0); }
static tn_array *last(tn_array *at) { return tn_slice(at, 1, &(tn_slice_range){1, 2, 1}); }
static tn_array *one_taken(tn_array *x, tn_array *at) { return tn_take(x, last(at), 0); }
static tn_array *along(tn_array *x, tn_array *at) { return tn_take_along_axis(x, tn_reshape(at, TN_SHAPE(1, 2)), 0); }
static tn_array *across(tn_array *x, tn_array *at) { return tn_take_along_axis(x, tn_reshape(at, TN_SHAPE(2, 1)), 0); }
static tn_array *item(tn_array *x, tn_array *at) { return tn_getitem(x, TN_KEYS(TN_PICK(at))); }
static tn_array *items(tn_array *x, tn_array *at) { return tn_getitem(x, TN_KEYS(TN_PICK(at), TN_PICK(int64s(0, 1)))); }
static tn_array *added(tn_array *x, tn_array *at) { return tn_scatter_add(x, at, tn_ones(TN_SHAPE(2, 2)), 0); }
static tn_array *set(tn_array *x, tn_array *at) { return tn_scatter_set(x, at, tn_ones(TN_SHAPE(2, 2)), 0); }

static tn_array *(*const users[])(tn_array *, tn_array *) = {taken, one_taken, along, across, item, items, added, set};
#define USERS (sizeof users / sizeof *users)

static void gradients(void)
{
    for (size_t i = 0; i < USERS; i++)
        for (int bad = 0; bad < 3; bad++) TN_SCOPE {
            tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(3, 2)));
            tn_array *at = bad == 2 ? uint64s(1, UINT64_MAX) : int64s(1, bad ? 5 : -4);
            const char *words = bad == 2 ? "index 9223372036854775807" : bad ? "index 5" : "index -4";
            TN_SCOPE {
                assert_int_equal(tn_backward(tn_sum(users[i](x, at))), TN_OK);
            }
            assert_out_of_range(tn_eval(tn_grad(x)), words, "for an axis of extent 3");
            tn_clear_grad(x);
            assert_out_of_range(tn_eval(users[i](x, at)), words, "at position");
            TN_SCOPE { /* and one in range is none, from either end */
                assert_int_equal(tn_backward(tn_sum(users[i](x, int64s(-3, 2)))), TN_OK);
                assert_int_equal(tn_eval(tn_grad(x)), TN_OK);
                assert_int_equal(tn_synchronize(test_device()), TN_OK);
            }
        }
}

static void test_gradients(void **state)
{
    (void)state;
    test_in_both_modes(gradients);
}

/* An embedding of which only the table's gradient is read, of tokens of two axes. */
static void tokens(void)
{
    TN_SCOPE {
        tn_layer *table = tn_embedding(5, 2);
        tn_array *at = tn_from_host(((int64_t[]){0, 1, 2, 3, -2, 4}), TN_SHAPE(2, 3), TN_INT64);
        TN_SCOPE assert_int_equal(tn_backward(tn_sum(tn_forward(table, at))), TN_OK);
        assert_out_of_range(tn_eval(tn_grad(tn_param(table, 0))), "index -2", "at position (1, 1)");
        tn_layer_free(table);
    }
}

static void test_tokens(void **state)
{
    (void)state;
    test_in_both_modes(tokens);
}

/* ---- several arrays of indices ---- */

static void each_axis(void)
{
    TN_SCOPE {
        tn_array *x = tn_arange(0, 6, 1, .dtype = TN_FLOAT32), *zero = tn_from_int64s((int64_t[]){0}, 1);
        tn_array *three = tn_from_int64s((int64_t[]){3}, 1);
        x = tn_reshape(x, TN_SHAPE(3, 2));
        assert_int_equal(tn_eval(x), TN_OK); /* where failures are told later, what the failed run made is spoilt */
        assert_out_of_range(tn_eval(tn_getitem(x, TN_KEYS(TN_PICK(zero), TN_PICK(three)))),
                            "for an axis of extent 2: valid are -2 to 1", "index 3 at position 0");
        assert_out_of_range(tn_eval(tn_getitem(x, TN_KEYS(TN_PICK(three), TN_PICK(zero)))),
                            "for an axis of extent 3: valid are -3 to 2", "index 3 at position 0");
        tn_array *y = tn_getitem(x, TN_KEYS(TN_PICK(int64s(-1, 1)), TN_PICK(int64s(1, -2))));
        const float *value = test_data(y);
        assert_true(value[0] == 5 && value[1] == 2);
    }
}

static void test_each_axis(void **state)
{
    (void)state;
    test_in_both_modes(each_axis);
}

/* ---- beside labels that count for nothing ---- */

/* They are told of in the labels' own shape, and the largest uint64 is not taken for the -1 that counts for nothing. */
static void beside_ignored(void)
{
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 3)), *words = tn_ones(TN_SHAPE(4, 3)), *maps = tn_ones(TN_SHAPE(1, 3, 2));
        tn_array *t = int64s(-1, 3), *large = uint64s(1, UINT64_MAX);
        tn_array *samples = tn_reshape(int64s(0, 1), TN_SHAPE(2, 1));
        const char *largest = "index 9223372036854775807";
        assert_out_of_range(tn_eval(tn_softmax_cross_entropy(x, t, .ignore_index = -1)), "index 3", "at position 1 ");
        assert_out_of_range(tn_eval(tn_softmax_cross_entropy(maps, tn_reshape(t, TN_SHAPE(1, 2)), .ignore_index = -1)),
                            "index 3", "of extent 3: valid are 0 to 2");
        assert_out_of_range(tn_eval(tn_softmax_cross_entropy(x, large, .ignore_index = -1)), largest,
                            "at position 1 ");
        assert_out_of_range(tn_eval(tn_negative_sampling(x, large, words, samples)), largest, "at position 1 ");
        assert_out_of_range(tn_eval(tn_black_out(x, int64s(-1, 4), words, samples)), "index 4", "at position 1 ");
        assert_true(tn_item(tn_binary_accuracy(tn_ones(TN_SHAPE(2)), large)) == 0.5);
    }
}

static void test_beside_ignored(void **state)
{
    (void)state;
    test_in_both_modes(beside_ignored);
}

/* ---- results without elements ---- */

static void test_no_elements(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(2, 0)), *at = int64s(1, 5), *fine = int64s(-2, 1);
        assert_out_of_range(tn_eval(tn_take(x, at, 0)), "index 5", "at position 1");
        assert_out_of_range(tn_eval(tn_getitem(x, TN_KEYS(TN_PICK(at)))), "index 5", "at position 1");
        assert_out_of_range(tn_eval(tn_getitem(x, TN_KEYS(TN_PICK(tn_add(at, -8))))), "index -7", "at position 0");
        assert_out_of_range(tn_eval(tn_scatter_set(x, at, tn_zeros(TN_SHAPE(2, 0)), 0)), "index 5", "at position 1");
        assert_out_of_range(tn_eval(tn_take(tn_zeros(TN_SHAPE(0, 3)), at, 0)), "extent 0", "");
        assert_out_of_range(tn_eval(tn_take(tn_zeros(TN_SHAPE(0, 0)), at, 0)), "extent 0", "");
        assert_out_of_range(tn_eval(tn_embedding_function(x, at)), "index 5", "at position 1");
        assert_out_of_range(tn_eval(tn_embedding_bag(x, tn_reshape(at, TN_SHAPE(1, 2)))), "index 5", "at position 1");
        assert_out_of_range(tn_eval(tn_embedding_function(x, fine)), "index -2", "at position 0");
        assert_int_equal(tn_size(tn_embedding_function(x, int64s(1, 0))), 0);
        tn_array *none = tn_zeros(TN_SHAPE(0), .dtype = TN_INT64), *five = tn_from_int64s((int64_t[]){5}, 1);
        tn_array *square = tn_ones(TN_SHAPE(2, 2));
        assert_out_of_range(tn_eval(tn_getitem(square, TN_KEYS(TN_PICK(five), TN_PICK(none)))), "index 5", "");
        assert_out_of_range(tn_eval(tn_getitem(square, TN_KEYS(TN_PICK(none), TN_PICK(five)))), "index 5", "");
        assert_int_equal(tn_size(tn_take(x, fine, 0)), 0);
        assert_int_equal(tn_size(tn_getitem(square, TN_KEYS(TN_PICK(none)))), 0);
        assert_int_equal(tn_size(tn_take(tn_zeros(TN_SHAPE(0, 3)), none, 0)), 0);
        assert_true(tn_ok());
    }
}

/* ---- what a failed write leaves ---- */

static tn_array *bad(void) { return int64s(1, 7); }
static tn_array *ones(void) { return tn_ones(TN_SHAPE(2)); }
static tn_status by_set(tn_array *x) { return tn_set(x, ones(), TN_PICK(bad())); }
static tn_status by_set_later(tn_array *x) { return tn_set(x, ones(), TN_PICK(tn_multiply(bad(), 1))); }
static tn_status by_add_at(tn_array *x) { return tn_add_at(x, ones(), TN_KEYS(TN_PICK(bad()))); }
static tn_status by_put(tn_array *x) { return tn_put(x, bad(), ones(), NULL); }
static tn_status by_put_along(tn_array *x) { return tn_put_along_axis(x, bad(), ones(), 0); }
static tn_status by_uint64(tn_array *x) { return tn_set(x, ones(), TN_PICK(uint64s(0, UINT64_MAX))); }
static tn_status by_assign(tn_array *x) { return tn_assign(x, tn_sum(tn_take(x, bad(), 0))); }
static tn_status by_add(tn_array *x) { return tn_add_assign(x, tn_max(tn_take(x, bad(), 0))); }
static tn_status by_scatter(tn_array *x) { return tn_assign(x, tn_square(tn_scatter_add(x, bad(), ones(), 0))); }
static tn_status by_write(tn_array *x)
{
    (void)tn_write(x, tn_sum(tn_take(x, bad(), 0)), NULL);
    return tn_error_code();
}


/* The first ones say so at once on every device. */
static tn_status (*const writes[])(tn_array *) = {by_set,    by_set_later, by_add_at, by_put,     by_put_along,
                                                  by_uint64, by_assign,    by_add,    by_scatter, by_write};
enum { EVERYWHERE = 6, WRITES = sizeof writes / sizeof *writes };

static void refused_writes(void)
{
    int count = test_device().kind == TN_DEVICE_CUDA ? EVERYWHERE : WRITES;
    for (int i = 0; i < count; i++)
        for (int pending = 0; pending < 2; pending++) TN_SCOPE {
            tn_array *x = tn_from_floats((float[]){3, 5}, 2);
            if (pending)
                assert_int_equal(tn_add_assign(x, 0), TN_OK);
            assert_int_equal(writes[i](x), TN_ERR_INDEX);
            assert_failed(TN_ERR_INDEX, "at position 1");
            assert_int_equal(tn_add_assign(x, 1), TN_OK);
            const float *value = test_data(x);
            assert_true(value && value[0] == 4 && value[1] == 6);
            assert_int_equal(tn_set(x, ones(), TN_PICK(int64s(0, -1))), TN_OK);
            assert_true(tn_item(tn_sum(x)) == 2);
        }
}

static void test_refused_writes(void **state)
{
    (void)state;
    test_in_both_modes(refused_writes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),    cmocka_unit_test(test_gradients),   cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_each_axis), cmocka_unit_test(test_no_elements), cmocka_unit_test(test_beside_ignored),
        cmocka_unit_test(test_refused_writes), cmocka_unit_test(test_looked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
