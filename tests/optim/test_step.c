/* SPDX-License-Identifier: MIT */
/* What surrounds the rule in a step: hooks, state by name, parameters that come later, other devices, failures,
 * plans. */
#include "nn/check.h"

static tn_layer *new_net(void)
{
    return tn_sequential(tn_linear(6, .in = 5), tn_sigmoid_layer(), tn_linear(3, .in = 6));
}

static tn_array *random_input(int rows)
{
    double x[40 * 5];
    check_fill(x, rows * 5, -1, 1);
    return check_array(x, TN_SHAPE(rows, 5), TN_FLOAT32);
}

static tn_array *random_labels(int rows)
{
    int64_t t[40];
    for (int i = 0; i < rows; i++)
        t[i] = (int64_t)(check_bits() % 3);
    return tn_from_int64s(t, rows);
}

static tn_status train_once(tn_layer *net, tn_optimizer *optimizer, tn_array *x, tn_array *t)
{
    tn_status status = tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t));
    return status == TN_OK ? tn_step(optimizer) : status;
}

enum { TOTAL = 5 * 6 + 6 + 6 * 3 + 3 };

static void read_params(const tn_layer *net, double *out)
{
    for (int i = 0; i < tn_param_count(net); i++) TN_SCOPE {
        check_read(tn_param(net, i), out, tn_size(tn_param(net, i)));
        out += tn_size(tn_param(net, i));
    }
}

static void write_params(const tn_layer *net, const double *in)
{
    for (int i = 0; i < tn_param_count(net); i++) TN_SCOPE {
        tn_array *p = tn_param(net, i);
        assert_int_equal(tn_assign(p, check_array(in, tn_shape_of(p), TN_FLOAT32)), TN_OK);
        assert_true(tn_needs_grad(p));
        in += tn_size(p);
    }
}

/* Training on labels that follow from the input lowers the loss; the loop leaves no arrays and finds its plans. */
static void test_loop(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    tn_layer *net = new_net();
    tn_optimizer *optimizer = tn_adam(net, .lr = 0.05);
    double first = 0, last = 0;
    uint64_t misses = 0;
    size_t live = 0;
    tn_scope_push();
    tn_array *x = random_input(40), *t = tn_argmax(tn_slice_axis(x, 1, 0, 3, 1), .axis = TN_AXES(1));
    for (int i = 0; i < 60; i++) TN_SCOPE {
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, x), t);
        assert_int_equal(tn_backward(loss), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        last = tn_item(loss);
        if (i == 0)
            first = last;
        if (i == 5) {
            misses = tn_engine_stats().plan_misses;
            live = tn_live_arrays();
        }
    }
    assert_int_equal(tn_engine_stats().plan_misses, misses);
    assert_true(tn_live_arrays() < live); /* the loop's own are gone by now */
    tn_scope_pop();
    assert_true(last < 0.8 * first);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    assert_int_equal(tn_live_arrays(), arrays);
    check_fine();
}

/* A net, its optimizer's state and its count of steps, put into fresh ones, go on with the same bits. */
static void test_state(void **state)
{
    (void)state;
    const char *kinds[] = {"sgd", "momentum", "nesterov", "adam", "adamw"};
    const int states[] = {0, 1, 1, 2, 2};
    for (int k = 0; k < 5; k++) TN_SCOPE {
        tn_layer *net = new_net(), *other = new_net();
        tn_optimizer *optimizer = tn_optimizer_parse(kinds[k], net), *resumed = tn_optimizer_parse(kinds[k], other);
        tn_array *x = random_input(9), *t = random_labels(9);
        assert_int_equal(tn_optimizer_state_count(optimizer), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(train_once(net, optimizer, x, t), TN_OK);
        assert_int_equal(tn_optimizer_state_count(optimizer), 4 * states[k]);

        double values[TOTAL], again[TOTAL];
        read_params(net, values);
        write_params(other, values);
        for (int i = 0; i < tn_optimizer_state_count(optimizer); i++)
            assert_int_equal(tn_optimizer_set_state(resumed, tn_optimizer_state_name(optimizer, i),
                                                    tn_optimizer_state(optimizer, i)), TN_OK);
        tn_optimizer_set_steps(resumed, tn_optimizer_steps(optimizer));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(train_once(net, optimizer, x, t), TN_OK);
            assert_int_equal(train_once(other, resumed, x, t), TN_OK);
        }
        read_params(net, values);
        read_params(other, again);
        assert_memory_equal(values, again, sizeof values);
        tn_optimizer_free(optimizer);
        tn_optimizer_free(resumed);
        tn_layer_free(net);
        tn_layer_free(other);
    }
    check_fine();
}

static void test_state_errors(void **state)
{
    (void)state;
    tn_layer *net = new_net();
    tn_optimizer *optimizer = tn_adam(net);
    TN_SCOPE {
        assert_int_equal(tn_optimizer_set_state(optimizer, "0.W.m", tn_zeros_with(TN_SHAPE(5, 6), NULL)), TN_OK);
        assert_string_equal(tn_optimizer_state_name(optimizer, 0), "0.W.m");
        check_fine();
        assert_int_equal(tn_optimizer_set_state(optimizer, "0.W.w", tn_zeros_with(TN_SHAPE(5, 6), NULL)), TN_ERR_NAME);
        check_latched(TN_ERR_NAME, "did you mean '0.W.");
        assert_int_equal(tn_optimizer_set_state(optimizer, "0.W.v", tn_zeros_with(TN_SHAPE(6, 5), NULL)), TN_ERR_SHAPE);
        check_latched(TN_ERR_SHAPE, "(5, 6), got (6, 5)");
        assert_int_equal(tn_optimizer_set_state(optimizer, "0.b.v", tn_cast(tn_zeros_with(TN_SHAPE(6), NULL), TN_INT8)),
                         TN_ERR_DTYPE);
        check_latched(TN_ERR_DTYPE, "int8");
        assert_int_equal(tn_optimizer_set_state(optimizer, NULL, NULL), TN_ERR_VALUE);
        tn_clear_error();
        assert_true(tn_is_error(tn_optimizer_state(optimizer, 1)));
        check_latched(TN_ERR_INDEX, "1 state arrays");
        assert_string_equal(tn_optimizer_state_name(optimizer, -1), "");
        check_latched(TN_ERR_INDEX, "-1");
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

/* ---- hooks ---- */

static tn_status halve_gradients(tn_optimizer *optimizer, tn_layer *layer, void *user)
{
    (void)optimizer;
    ++*(int *)user;
    for (int i = 0; i < tn_param_count(layer); i++) {
        tn_array *p = tn_param(layer, i);
        tn_status status = tn_set_grad(p, tn_multiply(tn_grad(p), 0.5));
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status refuse(tn_optimizer *optimizer, tn_layer *layer, void *user)
{
    (void)optimizer, (void)layer, (void)user;
    return TN_ERR_NAN;
}

static void test_hooks(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = new_net(), *other = new_net();
        tn_optimizer *halved = tn_sgd(net, .lr = 1), *slower = tn_sgd(other, .lr = 0.25);
        double values[TOTAL], again[TOTAL];
        int calls = 0;
        read_params(net, values);
        write_params(other, values);
        assert_int_equal(tn_optimizer_add_hook(halved, halve_gradients, &calls), TN_OK);
        assert_int_equal(tn_optimizer_add_hook(halved, halve_gradients, &calls), TN_OK);
        tn_array *x = random_input(8), *t = random_labels(8);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(train_once(net, halved, x, t), TN_OK);
            assert_int_equal(train_once(other, slower, x, t), TN_OK);
        }
        assert_int_equal(calls, 6);
        read_params(net, values);
        read_params(other, again);
        for (int i = 0; i < TOTAL; i++)
            assert_float_equal(values[i], again[i], 1e-6);

        assert_int_equal(tn_optimizer_add_hook(halved, refuse, NULL), TN_OK);
        assert_int_equal(train_once(net, halved, x, t), TN_ERR_NAN);
        check_latched(TN_ERR_NAN, "hook 2");
        read_params(net, again);
        assert_memory_equal(values, again, sizeof values);
        assert_false(tn_has_grad(tn_param(net, 0)));
        assert_int_equal(tn_optimizer_add_hook(halved, NULL, NULL), TN_ERR_VALUE);
        tn_clear_error();
        tn_optimizer_free(halved);
        tn_optimizer_free(slower);
        tn_layer_free(net);
        tn_layer_free(other);
    }
}

/* ---- which parameters ---- */

static void test_late_and_idle_params(void **state)
{
    (void)state;
    tn_layer *net = tn_layer_parse("linear:4 relu linear:3");
    tn_optimizer *optimizer = tn_momentum_sgd(net);
    TN_SCOPE {
        tn_array *x = random_input(6), *t = random_labels(6);
        assert_int_equal(train_once(net, optimizer, x, t), TN_OK);
        assert_int_equal(tn_optimizer_state_count(optimizer), 4);
        assert_int_equal(tn_layer_add(net, "idle", tn_linear(2, .in = 3)), TN_OK);
        double before[6], w[20], after[20];
        check_read(tn_param_named(net, "idle.W"), before, 6);
        check_read(tn_param_named(net, "0.W"), w, 20);
        tn_array *logits = tn_matmul(tn_relu(tn_matmul(x, tn_param(net, 0))), tn_param(net, 2));
        assert_int_equal(tn_backward(tn_softmax_cross_entropy(logits, t)), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        check_near(tn_param_named(net, "idle.W"), before, 6, 0);
        check_read(tn_param_named(net, "0.W"), after, 20);
        assert_memory_not_equal(w, after, sizeof w);
        assert_int_equal(tn_optimizer_state_count(optimizer), 4);
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    check_fine();
}

static void test_state_follows_device(void **state)
{
    (void)state;
    tn_status status;
    tn_device other = tn_device_parse("virtual:1", &status);
    if (status != TN_OK)
        skip();
    TN_SCOPE {
        tn_layer *net = new_net(), *still = new_net();
        tn_optimizer *moved = tn_adam(net), *stays = tn_adam(still);
        double values[TOTAL], again[TOTAL];
        read_params(net, values);
        write_params(still, values);
        tn_array *x = random_input(7), *t = random_labels(7);
        for (int i = 0; i < 4; i++) {
            if (i == 2) {
                assert_int_equal(tn_layer_to(net, other), TN_OK);
                for (int k = 0; k < tn_optimizer_state_count(moved); k++)
                    assert_true(tn_device_equal(tn_device_of(tn_optimizer_state(moved, k)), other));
                assert_true(tn_device_equal(tn_device_of(moved), other));
            }
            bool there = i >= 2;
            assert_int_equal(train_once(net, moved, there ? tn_to(x, other) : x, there ? tn_to(t, other) : t), TN_OK);
            assert_int_equal(train_once(still, stays, x, t), TN_OK);
        }
        assert_int_equal(tn_optimizer_state_count(moved), 8);
        read_params(net, values);
        read_params(still, again);
        for (int i = 0; i < TOTAL; i++) /* two kinds of device round differently */
            assert_float_equal(values[i], again[i], test_same_bits() ? 0 : 1e-5);
        tn_optimizer_free(moved);
        tn_optimizer_free(stays);
        tn_layer_free(net);
        tn_layer_free(still);
    }
    check_fine();
}

static bool all_on(const tn_optimizer *optimizer, int first, int count, tn_device device)
{
    bool there = true;
    for (int i = first; i < first + count; i++)
        there &= tn_device_equal(tn_device_of(tn_optimizer_state(optimizer, i)), device);
    return there;
}

/* The state of parameters moves with them, of whichever layer the optimizer is: of the one that moves, of one around
 * it, of one in it; that of other parameters stays. Handles stay what they are. */
static void test_state_of_parts(void **state)
{
    (void)state;
    tn_status status;
    tn_device here = test_device(), other = tn_device_parse("virtual:1", &status);
    if (status != TN_OK)
        skip();
    tn_layer *first = tn_linear(4, .in = 5), *last = tn_linear(3, .in = 4), *net = tn_sequential(first, last);
    tn_optimizer *whole = tn_momentum_sgd(net), *same = tn_adam(net), *part = tn_momentum_sgd(last),
                 *idle = tn_adam(first), *gone = tn_adam(last);
    TN_SCOPE {
        tn_array *x = random_input(6), *t = random_labels(6);
        tn_optimizer *step[] = {whole, same, part, gone};
        for (int i = 0; i < 4; i++)
            assert_int_equal(train_once(net, step[i], x, t), TN_OK);
        tn_optimizer_free(gone);
        tn_array *v = tn_optimizer_state(whole, 2);
        double before[12], after[12];
        check_read(v, before, 12);
        assert_int_equal(tn_layer_to(last, other), TN_OK);
        assert_true(all_on(whole, 0, 2, here) && all_on(whole, 2, 2, other));
        assert_true(all_on(same, 0, 4, here) && all_on(same, 4, 4, other));
        assert_true(all_on(part, 0, 2, other));
        assert_int_equal(tn_optimizer_state_count(idle), 0);
        assert_ptr_equal(tn_optimizer_state(whole, 2), v);
        check_read(v, after, 12);
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(tn_layer_to(net, other), TN_OK); /* half of it is there */
        assert_true(all_on(whole, 0, 4, other) && all_on(same, 0, 8, other) && all_on(part, 0, 2, other));
        assert_int_equal(train_once(net, whole, tn_to(x, other), tn_to(t, other)), TN_OK);
        assert_int_equal(tn_layer_to(net, here), TN_OK);
        assert_true(all_on(whole, 0, 4, here) && all_on(same, 0, 8, here) && all_on(part, 0, 2, here));
        assert_int_equal(train_once(net, idle, x, t), TN_OK);
        assert_int_equal(tn_layer_to(first, other), TN_OK);
        assert_true(all_on(idle, 0, 4, other));
    }
    tn_optimizer_free(whole);
    tn_layer_free(net);
    tn_optimizer_free(same); /* against the rules, and harmless */
    tn_optimizer_free(part);
    tn_optimizer_free(idle);
    check_fine();
}

/* Parameters of one net on two devices. */
static void test_two_devices(void **state)
{
    (void)state;
    tn_status status;
    tn_device other = tn_device_parse("virtual:1", &status);
    if (status != TN_OK)
        skip();
    tn_layer *near = tn_linear(4, .in = 5), *far = tn_linear(3, .in = 4), *net = tn_sequential(near, far);
    assert_int_equal(tn_layer_to(far, other), TN_OK);
    tn_optimizer *optimizer = tn_adam(net);
    TN_SCOPE {
        double w[12], after[12];
        check_read(tn_param_named(net, "1.W"), w, 12);
        tn_array *hidden = tn_forward(near, random_input(6));
        assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(far, tn_to(hidden, other)),
                                                              tn_to(random_labels(6), other))),
                         TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        check_read(tn_param_named(net, "1.W"), after, 12);
        assert_memory_not_equal(w, after, sizeof w);
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    check_fine();
}

/* ---- failures ---- */

/* A label out of range is found during evaluation: the parameters and the state keep their values, and training can go
 * on. */
static void test_failed_evaluation(void **state)
{
    (void)state;
    const char *kinds[] = {"sgd", "adam"};
    for (int k = 0; k < 2; k++) TN_SCOPE {
        tn_layer *net = new_net();
        tn_optimizer *optimizer = tn_optimizer_parse(kinds[k], net);
        tn_array *x = random_input(4), *t = random_labels(4);
        assert_int_equal(train_once(net, optimizer, x, t), TN_OK);
        double values[TOTAL], again[TOTAL], m[30], m_again[30];
        bool told_later;
        read_params(net, values);
        if (k)
            check_read(tn_optimizer_state(optimizer, 0), m, 30);
        TN_SCOPE { /* which frees the loss: a later step would try to compute it again */
            tn_status status = train_once(net, optimizer, x, tn_from_int64s((int64_t[]){0, 1, 3, 2}, 4));
            told_later = status == TN_OK; /* a GPU is asked for a step, and tells when it is asked next */
            assert_int_equal(told_later ? tn_synchronize(test_device()) : status, TN_ERR_INDEX);
            check_latched(TN_ERR_INDEX, "");
        }
        read_params(net, again);
        assert_memory_equal(values, again, sizeof values);
        if (k) {
            check_read(tn_optimizer_state(optimizer, 0), m_again, 30);
            assert_memory_equal(m, m_again, sizeof m);
        }
        assert_int_equal(tn_optimizer_steps(optimizer), told_later ? 2 : 1);
        assert_false(tn_has_grad(tn_param(net, 0)));
        assert_true(tn_needs_grad(tn_param(net, 0)));
        assert_int_equal(train_once(net, optimizer, x, t), TN_OK);
        read_params(net, again);
        assert_memory_not_equal(values, again, sizeof values);
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
    check_fine();
}

/* Handles of what failed, which a step would compute along, do not stop the steps after it: of this network, or of
 * another. */
static void test_failures_held(void **state)
{
    (void)state;
    tn_layer *nets[] = {new_net(), new_net()};
    tn_optimizer *optimizers[] = {tn_adam(nets[0]), tn_adam(nets[1])};
    TN_SCOPE {
        tn_array *x = random_input(4), *t = random_labels(4), *bad = tn_from_int64s((int64_t[]){0, 1, 3, 2}, 4);
        for (int i = 0; i < 2; i++)
            assert_int_equal(train_once(nets[i], optimizers[i], x, t), TN_OK);
        for (int held = 0; held < 2; held++) {
            tn_array *square = held ? tn_square(tn_param(nets[0], 0)) : NULL; /* of the old parameters, pending */
            tn_status status = train_once(nets[0], optimizers[0], x, bad);
            assert_int_equal(status == TN_OK ? tn_synchronize(test_device()) : status, TN_ERR_INDEX);
            check_latched(TN_ERR_INDEX, "");
            tn_array *after = held ? tn_square(tn_param(nets[0], 0)) : NULL;
            /* on a GPU parameters whose old values somebody holds are not overwritten in place, and so are lost */
            bool lost = held && tn_eval(tn_param(nets[0], 0)) != TN_OK;
            tn_clear_error();
            for (int i = 0; i < 3; i++) {
                assert_int_equal(train_once(nets[1], optimizers[1], x, t), TN_OK);
                assert_int_equal(tn_synchronize(test_device()), TN_OK);
                if (!lost)
                    assert_int_equal(train_once(nets[0], optimizers[0], x, t), TN_OK);
            }
            assert_int_equal(square ? tn_eval(square) : TN_OK, lost ? TN_ERR_INDEX : TN_OK); /* computed along */
            assert_int_equal(after ? tn_eval(after) : TN_OK, lost ? TN_ERR_INDEX : TN_OK);
            tn_clear_error();
        }
    }
    for (int i = 0; i < 2; i++) {
        tn_optimizer_free(optimizers[i]);
        tn_layer_free(nets[i]);
    }
    check_fine();
}

/* A gradient that the user holds is still there after the step, until the step's clearing shows. */
static void test_held_gradient(void **state)
{
    (void)state;
    tn_layer *net = new_net();
    tn_optimizer *optimizer = tn_sgd(net, .lr = 0.5);
    TN_SCOPE {
        tn_array *p = tn_param(net, 0);
        double w[30], g[30];
        check_read(p, w, 30);
        assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(net, random_input(3)), random_labels(3))),
                         TN_OK);
        tn_array *copy = tn_add(tn_grad(p), 0);
        check_fine();
        tn_step(optimizer);
        check_fine();
        check_read(copy, g, 30);
        for (int i = 0; i < 30; i++)
            w[i] -= 0.5 * g[i];
        check_near(p, w, 30, 1e-6);
        check_fine();
        assert_true(tn_is_error(tn_grad(p)));
        tn_clear_error();
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

/* ---- parts that learn otherwise ---- */

enum { WIDE = 150 }; /* its square is more than what a step computes along because it is small */

static tn_layer *wide_net(void)
{
    return tn_sequential(tn_linear(WIDE, .in = WIDE), tn_tanh_layer(), tn_linear(WIDE, .in = WIDE));
}

/* The weights' gradients of the part that a step did not update are there behind it, and so for another optimizer. */
static void test_optimizers_of_parts(void **state)
{
    (void)state;
    tn_layer *whole = wide_net(), *parts = wide_net();
    tn_optimizer *one = tn_sgd(whole, .lr = 0.5);
    tn_optimizer *first = tn_sgd(tn_layer_child(parts, "0"), .lr = 0.5),
                 *last = tn_sgd(tn_layer_child(parts, "2"), .lr = 0.5);
    TN_SCOPE {
        for (int i = 0; i < tn_param_count(whole); i++)
            assert_int_equal(tn_assign(tn_param(parts, i), tn_detach(tn_param(whole, i))), TN_OK);
        tn_array *x = tn_random_normal(TN_SHAPE(4, WIDE)), *t = tn_random_normal(TN_SHAPE(4, WIDE));
        for (int i = 0; i < 4; i++) {
            tn_backward(tn_mean_squared_error(tn_forward(whole, x), t));
            tn_step(one);
            tn_backward(tn_mean_squared_error(tn_forward(parts, x), t));
            tn_step(i % 2 ? first : last);
            tn_step(i % 2 ? last : first);
            check_fine();
        }
        for (int i = 0; i < tn_param_count(whole); i++) {
            tn_array *apart = tn_max(tn_abs(tn_subtract(tn_param(whole, i), tn_param(parts, i))));
            assert_true(tn_item(apart) < 1e-5);
        }
    }
    tn_optimizer_free(one);
    tn_optimizer_free(first);
    tn_optimizer_free(last);
    tn_layer_free(whole);
    tn_layer_free(parts);
    check_fine();
}

/* Gradients that nobody consumes add up, and hold nothing but their values. */
static void test_part_without_optimizer(void **state)
{
    (void)state;
    tn_layer *net = wide_net();
    tn_optimizer *last = tn_sgd(tn_layer_child(net, "2"), .lr = 1e-9);
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(4, WIDE)), *t = tn_random_normal(TN_SHAPE(4, WIDE)), *once = NULL;
        tn_array *kept = tn_add(tn_param(net, 0), 0);
        assert_int_equal(tn_eval(kept), TN_OK);
        size_t used = 0;
        for (int i = 0; i < 12; i++) TN_SCOPE {
            tn_backward(tn_mean_squared_error(tn_forward(net, x), t));
            tn_step(last);
            if (i == 0)
                once = tn_own(tn_detach(tn_grad(tn_param(net, 0))));
            if (i == 5)
                used = tn_memory_stats(test_device()).used;
        }
        check_fine();
        assert_true(tn_memory_stats(test_device()).used <= used);
        tn_array *apart = tn_subtract(tn_divide(tn_grad(tn_param(net, 0)), 12), once);
        assert_true(tn_item(tn_max(tn_abs(apart))) < 1e-5);
        assert_true(tn_item(tn_all(tn_equal(kept, tn_param(net, 0)))));
        tn_free(once);
    }
    tn_optimizer_free(last);
    tn_layer_free(net);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_state_errors),
        cmocka_unit_test(test_hooks),
        cmocka_unit_test(test_late_and_idle_params),
        cmocka_unit_test(test_state_follows_device),
        cmocka_unit_test(test_state_of_parts),
        cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_failed_evaluation),
        cmocka_unit_test(test_failures_held),
        cmocka_unit_test(test_held_gradient),
        cmocka_unit_test(test_optimizers_of_parts),
        cmocka_unit_test(test_part_without_optimizer),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
