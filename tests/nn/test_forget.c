/* SPDX-License-Identifier: MIT */
/* tn_forget against tn_forward: values, gradients of both orders, what forward changes, memory, what is refused. */
#include "nn/check.h"

#include <tanso/hooks.h>
#include <tanso/normalization.h>
#include <tanso/recurrent.h>

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

/* x² to forward, x to backward; and 2x², of which backward sees one x. */
static tn_array *straight(const tn_array *x, void *user)
{
    (void)user;
    return tn_add(x, tn_detach(tn_subtract(tn_square(x), x)));
}

static tn_array *half(const tn_array *x, void *user)
{
    (void)user;
    tn_array *other = NULL;
    TN_NO_GRAD other = tn_multiply(x, 2);
    return tn_multiply(x, other);
}

/* Of little values, as they are float32. */
static tn_layer *table(void) { return tn_embedding(5, 4, .weight = {TN_INIT_UNIFORM, 0.5}); }
static tn_layer *line(void) { return tn_linear(4, .in = 4, .dtype = TN_FLOAT64); }

static tn_layer *embedding_straight(void)
{
    return tn_sequential(table(), tn_function_layer("f", straight, NULL));
}
static tn_layer *embedding_half(void) { return tn_sequential(table(), tn_function_layer("f", half, NULL)); }
static tn_layer *linear_straight(void)
{
    return tn_sequential(line(), tn_function_layer("f", straight, NULL));
}
static tn_layer *linear_half(void)
{
    return tn_sequential(line(), tn_function_layer("f", half, NULL));
}
static tn_layer *smooth_layer(void) { return tn_sequential(line(), tn_tanh_layer()); }
static tn_layer *renorm(void)
{
    return tn_sequential(line(), tn_batch_norm(4, .rmax = 1.5, .dmax = 0.5, .dtype = TN_FLOAT64));
}
static tn_layer *spectral(void)
{
    tn_layer *layer = line();
    assert_int_equal(tn_spectral_norm(layer), TN_OK);
    return layer;
}

typedef struct form {
    tn_layer *(*make)(void);
    bool integers, marked, twice; /* of the input; called on its own output */
} form;

static const form forms[] = {
    {embedding_straight, true, false, false}, {embedding_half, true, false, false},
    {linear_straight, false, true, false},    {linear_half, false, true, false},
    {linear_straight, false, false, false},   {smooth_layer, false, true, true},
    {renorm, false, true, true},              {spectral, false, true, true},
};
enum { FORMS = sizeof forms / sizeof *forms };

/* Forward, and gradients of the first or the second order, by one way or the other. */
static tn_array *run_form(const form *c, tn_layer *layer, forward_fn f, const tn_array *first, bool second)
{
    tn_array *x = tn_detach(first), *by[3] = {NULL}, *g[3], *loss;
    int count = 0;
    if (c->marked)
        by[count++] = tn_requires_grad(x);
    tn_array *y = f(layer, x);
    if (c->twice)
        y = f(layer, y);
    for (int i = 0; i < tn_param_count(layer) && count < 3; i++)
        if (tn_needs_grad(tn_param(layer, i)))
            by[count++] = tn_param(layer, i);
    loss = tn_sum(tn_sin(y));
    if (second) {
        assert_int_equal(tn_gradients(loss, count, (const tn_array *const *)by, true, g), TN_OK);
        loss = tn_sum(tn_square(g[0]));
        for (int i = 1; i < count; i++)
            loss = tn_add(loss, tn_sum(tn_square(g[i])));
    }
    assert_int_equal(tn_backward(loss), TN_OK);
    return c->marked ? tn_grad(x) : NULL;
}

/* Constants within a layer, whatever its input and its parameters are marked as; inputs made by the layer itself; and
 * persistent values that forward reads and changes. */
static void test_forms(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER); /* a hundred small plans */
    for (int i = 0; i < 4 * FORMS; i++) TN_SCOPE {
        const form *c = &forms[i / 4];
        bool frozen = i & 1, second = i & 2;
        tn_array *x = c->integers ? tn_from_int64s((int64_t[]){3, 0, 3, 1}, 4)
                                  : tn_random_normal(TN_SHAPE(4, 4), .dtype = TN_FLOAT64);
        assert_int_equal(tn_eval(x), TN_OK);
        tn_generator seed = *tn_default_generator();
        tn_layer *layer[2];
        tn_array *gx[2];
        for (int way = 0; way < 2; way++) {
            *tn_default_generator() = seed;
            layer[way] = c->make();
            assert_int_equal(tn_eval(tn_forward(layer[way], x)), TN_OK);
            if (frozen && !c->integers)
                assert_int_equal(tn_layer_freeze(layer[way], "*b", true), TN_OK);
            gx[way] = run_form(c, layer[way], way ? forgetting : plainly, x, second);
        }
        if (c->marked)
            check_equal(gx[0], gx[1]);
        for (int k = 0; k < tn_param_count(layer[0]); k++) {
            const tn_array *p = tn_param(layer[0], k), *q = tn_param(layer[1], k);
            assert_int_equal(tn_has_grad(p), tn_has_grad(q));
            if (tn_has_grad(p))
                check_equal(tn_grad(p), tn_grad(q));
        }
        tn_layer_free(layer[0]);
        tn_layer_free(layer[1]);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

static tn_array *with_outside(const tn_array *x, void *user) { return tn_multiply(x, user); }

/* What backward could not do right. */
static void test_refused_forms(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(3, 1, 3))), *outside = tn_requires_grad(tn_ones(TN_SHAPE(3)));
        tn_layer *net = tn_sequential(tn_lstm(3, .in = 3, .stateful = true)), *late = tn_batch_norm(0);
        REFUSED(TN_ERR_UNSUPPORTED, "got lstm", tn_forget(net, x));
        TN_NO_GRAD assert_false(tn_is_error(tn_forget(net, x)));
        REFUSED(TN_ERR_STATE, "call tn_forward once", tn_forget(late, x));
        assert_true(tn_needs_grad(tn_forget(late, x)));
        tn_layer *drop = tn_sequential(tn_dropout(0.5)), *own = tn_function_layer("own", with_outside, outside);
        tn_array *y = tn_sum(tn_forget(drop, x));
        tn_layer_train(drop, false);
        assert_int_equal(tn_backward(y), TN_ERR_STATE);
        check_latched(TN_ERR_STATE, "tn_layer_train");
        assert_int_equal(tn_backward(tn_sum(tn_forget(own, x))), TN_ERR_STATE);
        check_latched(TN_ERR_STATE, "of shape (3,)");
        assert_false(tn_has_grad(x) || tn_has_grad(outside));
        tn_layer_free(net);
        tn_layer_free(late);
        tn_layer_free(drop);
        tn_layer_free(own);
    }
    check_fine();
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 3));
        REFUSED(TN_ERR_VALUE, "got NULL", tn_forget(NULL, x));
        tn_layer *layer = tn_linear(3), *many = tn_layer_repeat(tn_linear(3, .in = 3), 8);
        REFUSED(TN_ERR_UNSUPPORTED, "14 parameters and persistent values, got sequential of 16", tn_forget(many, x));
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),  cmocka_unit_test(test_differences),   cmocka_unit_test(test_few),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_forms),
        cmocka_unit_test(test_refused_forms), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("forget", tests, check_seed, NULL);
}
