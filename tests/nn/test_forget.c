/* SPDX-License-Identifier: MIT */
/* tn_forget against tn_forward: values, gradients of both orders, what forward changes, memory, what is refused. */
#include "nn/check.h"

#include <tanso/hooks.h>

static tn_layer *block(void)
{
    return tn_sequential(tn_linear(6, .in = 6), tn_batch_norm(6), tn_tanh_layer(), tn_dropout(0.4));
}

typedef tn_array *(*forward_fn)(tn_layer *layer, const tn_array *x);
static tn_array *plainly(tn_layer *layer, const tn_array *x) { return tn_forward(layer, x); }
static tn_array *forgetting(tn_layer *layer, const tn_array *x) { return tn_forget(layer, x); }

static void check_equal(const tn_array *a, const tn_array *b)
{
    double y[64];
    int64_t count = tn_size(a);
    assert_int_equal(tn_size(b), count);
    check_read(b, y, (int)count);
    check_near(a, y, (int)count, 1e-5);
}

typedef struct statistics {
    const tn_array *value[8];
    int count;
} statistics;

static tn_status collect(const tn_layer_part *part, void *user)
{
    statistics *s = user;
    if (part->kind == TN_PART_PERSISTENT)
        s->value[s->count++] = part->value;
    return TN_OK;
}

static void check_statistics(tn_layer *a, tn_layer *b)
{
    statistics s[2] = {{.count = 0}};
    assert_int_equal(tn_layer_walk(a, collect, &s[0]), TN_OK);
    assert_int_equal(tn_layer_walk(b, collect, &s[1]), TN_OK);
    assert_true(s[0].count >= 2);
    for (int i = 0; i < s[0].count; i++)
        check_equal(s[0].value[i], s[1].value[i]);
}

/* Two blocks, the second forgotten too, with dropout: the same numbers, and statistics that changed once. */
static void test_same(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *first = tn_random_normal(TN_SHAPE(5, 6), .dtype = TN_FLOAT64); /* so that roundings matter little */
        tn_array *weights = tn_random_normal(TN_SHAPE(5, 6));
        tn_layer *a[2] = {block(), block()}, *b[2] = {tn_layer_copy(a[0]), tn_layer_copy(a[1])};
        tn_array *x[2], *y[2];
        tn_generator seed = *tn_default_generator(), after[2];
        assert_int_equal(tn_eval(weights), TN_OK);
        for (int way = 0; way < 2; way++) {
            tn_layer **l = way ? b : a;
            forward_fn f = way ? forgetting : plainly;
            x[way] = tn_requires_grad(tn_detach(first));
            *tn_default_generator() = seed;
            y[way] = f(l[1], f(l[0], x[way]));
            assert_int_equal(tn_backward(tn_sum(tn_multiply(y[way], weights))), TN_OK);
            after[way] = *tn_default_generator();
        }
        assert_memory_equal(&after[0], &after[1], sizeof seed);
        check_equal(y[0], y[1]);
        check_equal(tn_grad(x[0]), tn_grad(x[1]));
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < tn_param_count(a[k]); i++) {
                check_equal(tn_param(a[k], i), tn_param(b[k], i));
                check_equal(tn_grad(tn_param(a[k], i)), tn_grad(tn_param(b[k], i)));
            }
            check_statistics(a[k], b[k]);
            tn_layer_free(a[k]);
            tn_layer_free(b[k]);
        }
    }
    check_fine();
}

static tn_array *smooth(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_forget(user, tn_forget(user, xs[0]));
}

static void test_differences(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *layer = tn_sequential(tn_linear(4, .in = 4), tn_tanh_layer());
        tn_array *x = tn_random_normal(TN_SHAPE(3, 4));
        assert_int_equal(tn_check_backward(smooth, layer, 1, &(const tn_array *){x}), TN_OK);
        assert_int_equal(tn_check_double_backward(smooth, layer, 1, &(const tn_array *){x}), TN_OK);
        tn_layer_free(layer);
    }
    check_fine();
}

/* Without gradients it is forward; frozen weights, and an input of integers. */
static void test_few(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *table = tn_embedding(4, 3), *line = tn_linear(2);
        tn_array *t = tn_from_int64s((int64_t[]){3, 0, 3}, 3);
        TN_NO_GRAD assert_false(tn_needs_grad(tn_forget(table, t)));
        tn_array *h = tn_forget(table, t), *y = tn_forget(line, h); /* which makes its weights first */
        assert_true(tn_needs_grad(y));
        assert_int_equal(tn_layer_freeze(line, NULL, true), TN_OK);
        y = tn_forget(line, h);
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_false(tn_has_grad(tn_param(line, 0)));
        double w[6], grad[12] = {0};
        check_read(tn_param(line, 0), w, 6);
        for (int k = 0; k < 3; k++) {
            grad[k] = w[2 * k] + w[2 * k + 1];
            grad[9 + k] = 2 * grad[k];
        }
        check_near(tn_grad(tn_param(table, 0)), grad, 12, 1e-5);
        tn_layer_free(table);
        tn_layer_free(line);
    }
    check_fine();
}

/* Twelve wide layers: what is between them is there one at a time. */
static void test_memory(void **state)
{
    (void)state;
    enum { DEPTH = 12, ROWS = 128, WIDTH = 1024 };
    int64_t peak[2];
    for (int way = 0; way < 2; way++) TN_SCOPE {
        tn_layer *net[DEPTH];
        tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(ROWS, 4))), *y = x;
        assert_int_equal(tn_eval(x), TN_OK);
        for (int i = 0; i < DEPTH; i++)
            net[i] = tn_layer_parse("linear:1024 tanh linear:4");
        tn_memory_reset_peak(tn_device_of(x));
        for (int i = 0; i < DEPTH; i++)
            y = way ? tn_forget(net[i], y) : tn_forward(net[i], y);
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_int_equal(tn_eval(tn_grad(x)), TN_OK);
        assert_int_equal(tn_eval(tn_grad(tn_param(net[0], 0))), TN_OK);
        peak[way] = (int64_t)tn_memory_stats(tn_device_of(x)).peak;
        for (int i = 0; i < DEPTH; i++)
            tn_layer_free(net[i]);
    }
    assert_true(peak[0] - peak[1] > (int64_t)DEPTH / 2 * ROWS * WIDTH * (int64_t)sizeof(float));
    check_fine();
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 3));
        REFUSED(TN_ERR_VALUE, "got NULL", tn_forget(NULL, x));
        tn_layer *layer = tn_linear(3), *many = tn_layer_repeat(tn_linear(3, .in = 3), 8);
        REFUSED(TN_ERR_UNSUPPORTED, "at most 14 parameters, got sequential of 16", tn_forget(many, x));
        REFUSED(TN_ERR_SHAPE, "", tn_forget(layer, tn_scalar(1.0)));
        tn_array *y = tn_sum(tn_forget(layer, x)), *z = tn_sum(tn_forget(layer, x));
        assert_int_equal(tn_assign(tn_param(layer, 0), tn_ones(TN_SHAPE(3, 3))), TN_OK);
        assert_int_equal(tn_backward(y), TN_ERR_STATE);
        check_latched(TN_ERR_STATE, "");
        z = tn_sum(tn_forget(layer, x));
        tn_layer_free(layer);
        assert_int_equal(tn_backward(z), TN_ERR_STATE);
        check_latched(TN_ERR_STATE, "");
        tn_layer_free(many);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_differences),
                                       cmocka_unit_test(test_few), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("forget", tests, check_seed, NULL);
}
