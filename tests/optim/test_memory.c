/* SPDX-License-Identifier: MIT */
/* The Nth allocation failing, for every N, while a net is built, trained, changed and saved: an error, no crash, no
 * leak. */
#include "nn/check.h"

#include "support/starve.h"

static tn_status build(void *unused)
{
    (void)unused;
    tn_layer *net = tn_layer_parse("linear:4 relu layer_norm:4 dropout:0.2 embedding:3:2");
    tn_status status = tn_layer_status(net);
    tn_layer_free(net);
    if (status != TN_OK)
        return status;
    net = tn_mlp(2, (int64_t[]){3, 2}, "tanh");
    status = tn_layer_status(net);
    tn_layer_free(net);
    return status;
}

static tn_array *pass(const tn_array *x, void *user)
{
    (void)user;
    return tn_add(x, 0);
}

static tn_status train(void *unused)
{
    (void)unused;
    tn_layer *net =
        tn_sequential(tn_linear(3), tn_function_layer("pass", pass, NULL), tn_layer_norm(0, 0), tn_linear(2));
    tn_optimizer *optimizer = tn_adam(net, .clip_norm = 1);
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_array *x = tn_ones_with(TN_SHAPE(4, 5), NULL), *t = tn_from_int64s((int64_t[]){0, 1, 1, 0}, 4);
        for (int i = 0; i < 2 && status == TN_OK; i++) {
            status = tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t));
            if (status == TN_OK)
                status = tn_step(optimizer);
        }
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    return status;
}

static tn_status describe(void *unused)
{
    (void)unused;
    tn_layer *net = tn_sequential(tn_linear(3, .in = 2), tn_linear(2, .in = 3));
    tn_status status = tn_layer_status(net);
    if (status == TN_OK && tn_param_count(net) != 4)
        status = tn_error_code();
    char *text = tn_layer_string(net);
    if (!text)
        status = tn_error_code();
    tn_string_free(text);
    TN_SCOPE {
        if (status == TN_OK)
            status = tn_status_of(tn_param_named(net, "1.b"));
    }
    tn_layer_free(net);
    return status;
}

/* Copies, averages, walks and an optimizer's file, which all or nothing comes of. */
static tn_status copy(void *unused)
{
    (void)unused;
    tn_layer *net = tn_sequential(tn_linear(3, .in = 2), tn_linear(2, .in = 3)), *twin = tn_layer_copy(net);
    tn_optimizer *optimizer = tn_adam(twin, .clip_norm = 1);
    tn_status status = tn_layer_status(twin);
    if (status == TN_OK)
        status = tn_layer_average(twin, net, 0.5);
    if (status == TN_OK)
        status = tn_layer_freeze(twin, "0.*", true);
    if (status == TN_OK)
        status = tn_optimizer_status(optimizer);
    if (status == TN_OK)
        status = tn_optimizer_for(optimizer, "*.b", .lr = 1);
    if (status == TN_OK)
        status = tn_layer_add_grads(twin, net);
    tn_optimizer_free(optimizer);
    tn_layer_free(twin);
    tn_layer_free(net);
    return status;
}

/* A step that runs out of memory leaves the parameters as they were, whole, or has been done. */
static void test_step_is_all_or_nothing(void **state)
{
    (void)state;
    tn_layer *net = tn_sequential(tn_linear(3, .in = 5), tn_linear(2, .in = 3));
    tn_optimizer *optimizer = tn_momentum_sgd(net, .lr = 0.1);
    tn_scope_push();
    tn_array *x = tn_ones_with(TN_SHAPE(4, 5), NULL), *t = tn_from_int64s((int64_t[]){0, 1, 1, 0}, 4);
    for (long n = 0;; n++) {
        double before[15], after[15];
        long made = 0;
        bool reached = false;
        TN_SCOPE {
            check_read(tn_param(net, 0), before, 15);
            assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t)), TN_OK);
            int64_t steps = tn_optimizer_steps(optimizer);
            tn__fail_allocation_after(n);
            tn_status status = tn_step(optimizer);
            made = tn__fail_allocation_after(-1);
            reached = made > n;
            tn_clear_error();
            check_read(tn_param(net, 0), after, 15);
            assert_int_equal(tn_optimizer_steps(optimizer), steps + (status == TN_OK));
            if (status == TN_OK)
                assert_memory_not_equal(before, after, sizeof before);
            else
                assert_memory_equal(before, after, sizeof before);
            assert_true(tn_needs_grad(tn_param(net, 0)));
            assert_false(tn_has_grad(tn_param(net, 0)));
        }
        if (!reached)
            break;
    }
    tn_scope_pop();
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    check_fine();
}

/* ---- moving ---- */

enum { ROWS = 30, COLUMNS = 40, ARRAYS = 4, ELEMENTS = ROWS * COLUMNS }; /* a weight, its gradient, Adam's two states */

typedef struct moved_net {
    tn_device here, other;
    tn_layer *net;
    tn_optimizer *optimizer;
    double before[ARRAYS][ELEMENTS];
} moved_net;

static tn_array *array_of(const moved_net *m, int i)
{
    tn_array *weight = tn_param(m->net, 0);
    return i == 0 ? weight : i == 1 ? tn_grad(weight) : tn_optimizer_state(m->optimizer, i - 2);
}

/* Skips the test where there is no other device. */
static moved_net net_to_move(void)
{
    tn_status status;
    tn_device other = tn_device_parse("virtual:1", &status);
    if (status != TN_OK)
        skip();
    moved_net m = {.here = test_device(), .other = other};
    m.net = tn_sequential(tn_linear(COLUMNS, .in = ROWS), tn_linear(2, .in = COLUMNS));
    m.optimizer = tn_adam(m.net);
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(4, ROWS)), *t = tn_from_int64s((int64_t[]){0, 1, 1, 0}, 4);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(m.net, x), t)), TN_OK);
            if (i == 0)
                assert_int_equal(tn_step(m.optimizer), TN_OK);
        }
        for (int i = 0; i < ARRAYS; i++)
            check_read(array_of(&m, i), m.before[i], ELEMENTS);
    }
    return m;
}

static void is_whole_on(const moved_net *m, tn_device device)
{
    for (int i = 0; i < ARRAYS; i++)
        assert_true(tn_device_equal(tn_device_of(array_of(m, i)), device));
    for (int i = 0; i < tn_param_count(m->net); i++) {
        assert_true(tn_device_equal(tn_device_of(tn_param(m->net, i)), device));
        assert_true(tn_device_equal(tn_device_of(tn_grad(tn_param(m->net, i))), device));
        assert_true(tn_needs_grad(tn_param(m->net, i)));
    }
    for (int i = 0; i < tn_optimizer_state_count(m->optimizer); i++)
        assert_true(tn_device_equal(tn_device_of(tn_optimizer_state(m->optimizer, i)), device));
}

static void has_its_values(const moved_net *m)
{
    double after[ELEMENTS];
    for (int i = 0; i < ARRAYS; i++) TN_SCOPE {
        check_read(array_of(m, i), after, ELEMENTS);
        assert_memory_equal(m->before[i], after, sizeof after);
    }
}

static void free_moved(moved_net *m)
{
    tn_optimizer_free(m->optimizer);
    tn_layer_free(m->net);
    check_fine();
}

/* Parameters, gradients and state move together or stay together, whichever allocation fails. */
static void test_move_is_all_or_nothing(void **state)
{
    (void)state;
    moved_net m = net_to_move();
    assert_int_equal(tn_layer_to(m.net, m.other), TN_OK); /* makes what lasts as long as the process */
    assert_int_equal(tn_layer_to(m.net, m.here), TN_OK);
    is_whole_on(&m, m.here);
    long failures = 0;
    for (long n = 0;; n++) {
        size_t arrays = tn_live_arrays(), used = tn_memory_stats(m.other).used;
        tn__fail_allocation_after(n);
        tn_status status = tn_layer_to(m.net, m.other);
        bool reached = tn__fail_allocation_after(-1) > n;
        assert_true(status == TN_OK || tn_error_code() == TN_ERR_MEMORY);
        tn_clear_error();
        is_whole_on(&m, status == TN_OK ? m.other : m.here);
        assert_int_equal(tn_live_arrays(), arrays);
        if (status != TN_OK) {
            failures++;
            assert_int_equal(tn_memory_stats(m.other).used, used);
        }
        has_its_values(&m);
        if (!reached)
            break;
        assert_int_equal(tn_layer_to(m.net, m.here), TN_OK);
    }
    assert_true(failures > 0);
    is_whole_on(&m, m.other);
    free_moved(&m);
}

/* A device with room for some of it. */
static void test_move_without_room(void **state)
{
    (void)state;
    moved_net m = net_to_move();
    tn_memory_trim(m.other);
    size_t used = tn_memory_stats(m.other).used;
    for (int i = 0; i <= ARRAYS; i++) {
        assert_int_equal(tn_memory_limit(m.other, used + 1 + (size_t)i * ELEMENTS * sizeof(float)), TN_OK);
        assert_int_equal(tn_layer_to(m.net, m.other), TN_ERR_MEMORY);
        check_latched(TN_ERR_MEMORY, "virtual:1");
        is_whole_on(&m, m.here);
        has_its_values(&m);
    }
    assert_int_equal(tn_memory_limit(m.other, 0), TN_OK);
    assert_int_equal(tn_layer_to(m.net, m.other), TN_OK);
    is_whole_on(&m, m.other);
    has_its_values(&m);
    free_moved(&m);
}

static void test_build(void **state)
{
    (void)state;
    starve("build", build, NULL);
}

static void test_train(void **state)
{
    (void)state;
    starve("train", train, NULL);
}

static void test_describe(void **state)
{
    (void)state;
    starve("describe", describe, NULL);
}

static void test_copy(void **state)
{
    (void)state;
    starve("copy", copy, NULL);
}

int main(void)
{
    tn_set_compile(TN_COMPILE_NEVER); /* thousands of runs */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_train),
        cmocka_unit_test(test_step_is_all_or_nothing),
        cmocka_unit_test(test_move_is_all_or_nothing),
        cmocka_unit_test(test_move_without_room),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
