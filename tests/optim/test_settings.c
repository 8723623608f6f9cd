/* SPDX-License-Identifier: MIT */
/* Hyperparameters by name and by pattern, counts of updates a parameter, norms that are not finite, optimizers of one's
 * own, and optimizers in files. */
#include "nn/check.h"

#include "support/scratch.h"

static tn_array *no_forward(tn_layer *layer, const tn_array *x, void *user)
{
    (void)layer, (void)x, (void)user;
    return NULL;
}

/* Parameters "w" and "b" of float64, three elements each. */
static tn_layer *new_layer(void)
{
    tn_layer *layer = tn_layer_new("pair", no_forward, NULL, NULL);
    TN_SCOPE {
        tn_layer_param(layer, "w", tn_full(TN_SHAPE(3), 1, .dtype = TN_FLOAT64));
        tn_layer_param(layer, "b", tn_full(TN_SHAPE(3), 1, .dtype = TN_FLOAT64));
    }
    return layer;
}

/* A step with a gradient of gw, and gb unless that is 0. */
static tn_status step(const tn_layer *layer, tn_optimizer *optimizer, double gw, double gb)
{
    tn_status status = TN_OK;
    TN_SCOPE {
        const tn_array *loss = tn_sum(tn_multiply(tn_param(layer, 0), gw));
        if (gb != 0)
            loss = tn_add(loss, tn_sum(tn_multiply(tn_param(layer, 1), gb)));
        status = tn_backward(loss);
        if (status == TN_OK)
            status = tn_step(optimizer);
    }
    return status;
}

static double value(const tn_layer *layer, int i)
{
    double x[3];
    TN_SCOPE check_read(tn_param(layer, i), x, 3);
    assert_true((x[0] == x[1] && x[1] == x[2]) || isnan(x[0]));
    return x[0];
}

static void test_by_name(void **state)
{
    (void)state;
    tn_layer *layer = new_layer();
    tn_optimizer *optimizer = tn_momentum_sgd(layer, .lr = 0.5);
    assert_float_equal(tn_optimizer_get(optimizer, "momentum"), 0.9, 0);
    assert_int_equal(tn_optimizer_set(optimizer, "momentum", 0), TN_OK);
    assert_int_equal(tn_optimizer_set(optimizer, "lr", 0.25), TN_OK);
    assert_float_equal(tn_optimizer_lr(optimizer), 0.25, 0);
    assert_int_equal(step(layer, optimizer, 1, 1), TN_OK);
    assert_int_equal(step(layer, optimizer, 1, 1), TN_OK);
    assert_float_equal(value(layer, 0), 0.5, 1e-15);
    assert_int_equal(tn_optimizer_set(optimizer, "momentun", 0), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "did you mean 'momentum'");
    assert_int_equal(tn_optimizer_set(optimizer, "beta1", 0), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "no use for beta1");
    assert_int_equal(tn_optimizer_set(optimizer, "momentum", 1), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "< 1");
    assert_true(isnan(tn_optimizer_get(optimizer, "nothing")));
    check_latched(TN_ERR_NAME, "nothing");
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
}

static void test_patterns(void **state)
{
    (void)state;
    tn_layer *layer = new_layer();
    tn_optimizer *optimizer = tn_sgd(layer, .lr = 0.5, .weight_decay = 0.1);
    assert_int_equal(tn_optimizer_for(optimizer, "b", .lr = 0.05, .weight_decay = 0), TN_OK);
    assert_int_equal(step(layer, optimizer, 1, 1), TN_OK);
    assert_float_equal(value(layer, 0), 1 - 0.5 * 1.1, 1e-14);
    assert_float_equal(value(layer, 1), 1 - 0.05, 1e-14);
    tn_optimizer_set_lr(optimizer, 1); /* the pattern's stays a tenth of it */
    double w = value(layer, 0), b = value(layer, 1);
    assert_int_equal(step(layer, optimizer, 1, 1), TN_OK);
    assert_float_equal(value(layer, 0), w - (1 + 0.1 * w), 1e-14);
    assert_float_equal(value(layer, 1), b - 0.1, 1e-14);
    TN_SCOPE tn_layer_param(layer, "bias", tn_full(TN_SHAPE(3), 1, .dtype = TN_FLOAT64)); /* comes later */
    assert_int_equal(tn_optimizer_for(optimizer, "b*", .lr = 0), TN_OK);
    TN_SCOPE {
        assert_int_equal(tn_backward(tn_sum(tn_param(layer, 2))), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
    }
    assert_float_equal(value(layer, 2), 1, 0);
    check_fine();
    assert_int_equal(tn_optimizer_for(optimizer, "*.weight", .lr = 0), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "matches '*.weight': there are ");
    assert_int_equal(tn_optimizer_for(optimizer, "*.bias", .lr = 0), TN_OK);
    assert_int_equal(tn_optimizer_for(optimizer, "*", .clip_norm = 1), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "of all parameters together");
    assert_int_equal(tn_optimizer_for(optimizer, "*", .beta1 = 0), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "no use for beta1");
    tn_optimizer_set_lr(optimizer, 0);
    assert_int_equal(tn_optimizer_for(optimizer, "*", .lr = 1), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "in proportion");
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
}

/* Adam's corrections go by the updates that a parameter had: its first one is lr sign(g), whenever it comes. */
static void test_counts(void **state)
{
    (void)state;
    const char *path = scratch_path("counts.npz");
    tn_layer *layer = new_layer();
    tn_optimizer *optimizer = tn_adam(layer, .lr = 0.1, .eps = 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(step(layer, optimizer, 3, 0), TN_OK);
    assert_int_equal(tn_optimizer_param_steps(optimizer, 0), 4);
    assert_int_equal(tn_optimizer_param_steps(optimizer, 1), 0);
    assert_int_equal(step(layer, optimizer, 3, 5), TN_OK);
    assert_float_equal(value(layer, 1), 0.9, 1e-12);
    assert_int_equal(tn_optimizer_param_steps(optimizer, 1), 1);
    assert_int_equal(tn_optimizer_save(optimizer, path), TN_OK);
    double w = value(layer, 0), b = value(layer, 1);
    assert_int_equal(step(layer, optimizer, 2, -1), TN_OK);
    double w_next = value(layer, 0), b_next = value(layer, 1);
    tn_optimizer_free(optimizer);

    tn_layer *other = new_layer();
    TN_SCOPE {
        assert_int_equal(tn_assign(tn_param(other, 0), tn_full(TN_SHAPE(3), w, .dtype = TN_FLOAT64)), TN_OK);
        assert_int_equal(tn_assign(tn_param(other, 1), tn_full(TN_SHAPE(3), b, .dtype = TN_FLOAT64)), TN_OK);
    }
    optimizer = tn_adam(other);
    assert_int_equal(tn_optimizer_load(optimizer, path), TN_OK);
    assert_float_equal(tn_optimizer_lr(optimizer), 0.1, 0);
    assert_float_equal(tn_optimizer_get(optimizer, "eps"), 0, 0);
    assert_int_equal(tn_optimizer_steps(optimizer), 5);
    assert_int_equal(tn_optimizer_param_steps(optimizer, 1), 1);
    assert_int_equal(step(other, optimizer, 2, -1), TN_OK);
    assert_float_equal(value(other, 0), w_next, 0);
    assert_float_equal(value(other, 1), b_next, 0);
    assert_int_equal(tn_optimizer_param_steps(optimizer, 2), 0);
    check_latched(TN_ERR_INDEX, "2 parameters");
    tn_optimizer_free(optimizer);

    optimizer = tn_sgd(other);
    assert_int_equal(tn_optimizer_load(optimizer, path), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "is of adam, and this optimizer is sgd");
    assert_float_equal(tn_optimizer_lr(optimizer), 0.01, 0);
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
    tn_layer_free(other);
    check_fine();
}

static const char *const wrong[] = {"NaN", "infinity", "a square that overflows"};

/* A norm that is no finite number changes nothing: an error, or left out by asking. */
static void test_norms(void **state)
{
    (void)state;
    const double gradients[] = {NAN, INFINITY, 1e200};
    for (size_t k = 0; k < sizeof gradients / sizeof *gradients; k++) {
        for (int skip = 0; skip < 2; skip++) {
            check_context = wrong[k];
            tn_layer *layer = new_layer();
            tn_optimizer *optimizer = tn_adam(layer, .lr = 0.1, .clip_norm = 1, .skip_nonfinite = skip);
            assert_int_equal(step(layer, optimizer, 0.1, 0.2), TN_OK);
            double w = value(layer, 0), b = value(layer, 1), m[3], m_after[3];
            TN_SCOPE check_read(tn_optimizer_state(optimizer, 0), m, 3);
            tn_status status = step(layer, optimizer, gradients[k], 0.2);
            for (int more = 0; more < 40 && status == TN_OK && !skip; more++) /* a GPU tells of it later */
                status = step(layer, optimizer, 0.1, 0.2);
            assert_int_equal(status, skip ? TN_OK : TN_ERR_NAN);
            if (!skip)
                check_latched(TN_ERR_NAN, "infinite or NaN");
            assert_float_equal(value(layer, 0), w, 0);
            assert_float_equal(value(layer, 1), b, 0);
            TN_SCOPE check_read(tn_optimizer_state(optimizer, 0), m_after, 3);
            assert_memory_equal(m, m_after, sizeof m);
            assert_int_equal(step(layer, optimizer, 0.1, 0.2), TN_OK); /* and it goes on */
            assert_true(value(layer, 0) < w);
            tn_optimizer_free(optimizer);
            tn_layer_free(layer);
        }
    }
    check_context = "";
    check_fine();
}

static tn_status clip_by_hand(tn_optimizer *optimizer, tn_layer *layer, void *user)
{
    (void)optimizer;
    (void)user;
    tn_array *total = NULL;
    for (int i = 0; i < tn_param_count(layer); i++) {
        tn_array *squares = tn_sum(tn_square(tn_grad(tn_param(layer, i))));
        total = total ? tn_add(total, squares) : squares;
    }
    tn_array *ratio = tn_minimum(tn_divide(1, tn_sqrt(total)), 1);
    tn_status status = TN_OK;
    for (int i = 0; i < tn_param_count(layer) && status == TN_OK; i++)
        status = tn_set_grad(tn_param(layer, i), tn_multiply(tn_grad(tn_param(layer, i)), ratio));
    return status;
}

/* Kernels and library calls of a step, each of which is one evaluation, of one plan from the second step on. */
static uint64_t kernels_of_steps(tn_layer *layer, tn_optimizer *optimizer)
{
    enum { STEPS = 4 };
    tn_engine_counters before = {0};
    for (int i = 0; i < 2 + STEPS; i++) {
        if (i == 2)
            before = tn_engine_stats();
        assert_int_equal(step(layer, optimizer, 3, 1), TN_OK);
    }
    assert_int_equal(tn_engine_stats().plan_misses, before.plan_misses);
    assert_int_equal(tn_engine_stats().evaluations - before.evaluations, STEPS);
    tn_optimizer_free(optimizer);
    return (tn_engine_stats().kernels - before.kernels) / STEPS;
}

/* Clipping by the norm costs no evaluation, and no kernel more than a hook that computes the same. */
static void test_clipping_plans(void **state)
{
    (void)state;
    tn_layer *layer = new_layer();
    uint64_t option = kernels_of_steps(layer, tn_adam(layer, .clip_norm = 1));
    tn_optimizer *by_hand = tn_adam(layer);
    assert_int_equal(tn_optimizer_add_hook(by_hand, clip_by_hand, NULL), TN_OK);
    assert_in_range(option, 1, kernels_of_steps(layer, by_hand));
    tn_layer_free(layer);
}

/* ---- of one's own ---- */

/* A signed descent with memory: h = (h + sign(g)) / 2 t. */
static tn_array *own_update(const tn_update *update, const tn_array *p, const tn_array *g, tn_array **state)
{
    state[0] = tn_multiply(0.5, tn_add(state[0], tn_sign(g)));
    ++*(int *)update->user;
    return tn_subtract(p, tn_multiply(update->set->lr * (double)update->t, state[0]));
}

static tn_array *bad_update(const tn_update *update, const tn_array *p, const tn_array *g, tn_array **state)
{
    (void)update, (void)g, (void)state;
    return tn_sum(p);
}

static void test_own(void **state)
{
    (void)state;
    int calls = 0;
    tn_layer *layer = new_layer();
    tn_optimizer *optimizer = tn_optimizer_new(layer, "h", own_update, &calls, .lr = 0.1, .weight_decay = 0);
    double p = 1, h = 0;
    for (int t = 1; t <= 4; t++) {
        assert_int_equal(step(layer, optimizer, t % 2 ? 2 : -3, 0), TN_OK);
        h = 0.5 * (h + (t % 2 ? 1 : -1));
        p -= 0.1 * t * h;
        assert_float_equal(value(layer, 0), p, 1e-14);
    }
    assert_int_equal(calls, 4);
    assert_string_equal(tn_optimizer_state_name(optimizer, 0), "w.h");
    assert_int_equal(tn_optimizer_state_count(optimizer), 1);
    tn_optimizer_free(optimizer);
    check_fine();
    optimizer = tn_optimizer_new(layer, NULL, bad_update, NULL, .lr = 1);
    assert_int_equal(step(layer, optimizer, 1, 0), TN_ERR_SHAPE);
    check_latched(TN_ERR_SHAPE, "gave an array of shape");
    assert_float_equal(value(layer, 0), p, 1e-14);
    tn_optimizer_free(optimizer);
    tn_optimizer_free(tn_optimizer_new(layer, "a b c d", own_update, &calls, .lr = 1));
    check_latched(TN_ERR_VALUE, "'d' is one more");
    tn_optimizer_free(tn_optimizer_new(layer, "a", NULL, NULL, .lr = 1));
    check_latched(TN_ERR_VALUE, "update function");
    tn_layer_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_name), cmocka_unit_test(test_patterns),
                                       cmocka_unit_test(test_counts),  cmocka_unit_test(test_norms),
                                       cmocka_unit_test(test_own),     cmocka_unit_test(test_clipping_plans)};
    return cmocka_run_group_tests_name("settings", tests, check_seed, NULL);
}
