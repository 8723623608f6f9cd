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

int main(void)
{
    tn_set_compile(TN_COMPILE_NEVER); /* thousands of runs */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_train),
        cmocka_unit_test(test_step_is_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
