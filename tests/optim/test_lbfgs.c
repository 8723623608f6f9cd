/* SPDX-License-Identifier: MIT */
/* L-BFGS: PyTorch's values, a least that is known, several parameters, what it refuses, and what a failure leaves. */
#include <limits.h>

#include "nn/check.h"

#include "optim/lbfgs_values.h"
#include "support/starve.h"

/* ---- losses of a vector ---- */

typedef struct place {
    tn_layer *layer;
    tn_array *(*of)(const tn_array *x);
    int looks, fails_at; /* 0: never */
} place;

static tn_array *from(const tn_array *x, int64_t start, int64_t stop) { return tn_slice_axis(x, 0, start, stop, 1); }

static tn_array *quadratic(const tn_array *x)
{
    double scale[LBFGS_N];
    for (int i = 0; i < LBFGS_N; i++)
        scale[i] = 1 + i * i;
    tn_array *weights = check_array(scale, TN_SHAPE(LBFGS_N), TN_FLOAT64);
    tn_array *squares = tn_sum(tn_multiply(weights, tn_square(tn_subtract(x, 1))));
    tn_array *pairs = tn_sum(tn_multiply(from(x, 1, LBFGS_N), from(x, 0, LBFGS_N - 1)));
    return tn_add(tn_divide(squares, 2), tn_divide(pairs, 4));
}

static tn_array *rosenbrock(const tn_array *x)
{
    tn_array *a = from(x, 0, LBFGS_N - 1), *b = from(x, 1, LBFGS_N);
    tn_array *valley = tn_multiply(tn_square(tn_subtract(b, tn_square(a))), 100);
    return tn_divide(tn_sum(tn_add(valley, tn_square(tn_subtract(1, a)))), 10);
}

static tn_array *bumps(const tn_array *x)
{
    return tn_sum(tn_add(tn_sin(tn_multiply(x, 3)), tn_divide(tn_square(x), 4)));
}

static tn_array *loss_of(void *user)
{
    place *p = user;
    if (++p->looks == p->fails_at)
        return tn_reshape(tn_param(p->layer, 0), TN_SHAPE(2));
    return p->of(tn_param(p->layer, 0));
}

static tn_layer *layer_of(const double *x)
{
    tn_layer *layer = tn_sequential_of(0, NULL);
    assert_false(tn_is_error(tn_layer_param(layer, "x", check_array(x, TN_SHAPE(LBFGS_N), TN_FLOAT64))));
    return layer;
}

static void first_place(double *x)
{
    for (int i = 0; i < LBFGS_N; i++)
        x[i] = ((7 * i) % 5 - 2) / 4.0 + 1 / 16.0;
}

/* ---- values ---- */

static void test_torch(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof lbfgs_values / sizeof *lbfgs_values; k++) TN_SCOPE {
        double x[LBFGS_N];
        first_place(x);
        place p = {.layer = layer_of(x)};
        const char *name = lbfgs_values[k].function;
        p.of = *name == 'q' ? quadratic : *name == 'r' ? rosenbrock : bumps;
        check_context = name;
        tn_lbfgs_opts opts = {.lr = lbfgs_values[k].lr,
                              .iterations = lbfgs_values[k].iterations,
                              .evaluations = lbfgs_values[k].evaluations,
                              .history = lbfgs_values[k].history,
                              .gradient_tolerance = lbfgs_values[k].gradient_tolerance,
                              .change_tolerance = lbfgs_values[k].change_tolerance,
                              .strong_wolfe = lbfgs_values[k].strong_wolfe};
        tn_lbfgs *lbfgs = tn_lbfgs_with(p.layer, &opts);
        for (int i = 0; i < LBFGS_STEPS; i++) {
            double loss = 0;
            assert_int_equal(tn_lbfgs_step(lbfgs, loss_of, &p, &loss), TN_OK);
            if (fabs(loss - lbfgs_values[k].loss[i]) > 1e-7 * (1 + fabs(loss)))
                fail_msg("case %zu, step %d: %.12g, expected %.12g", k, i, loss, lbfgs_values[k].loss[i]);
        }
        check_near(tn_param(p.layer, 0), lbfgs_values[k].x, LBFGS_N, 1e-6);
        assert_int_equal(tn_lbfgs_iterations(lbfgs), lbfgs_values[k].movements);
        assert_int_equal(p.looks, lbfgs_values[k].looks);
        tn_lbfgs_free(lbfgs);
        tn_layer_free(p.layer);
    }
    check_context = "";
    check_fine();
}

/* A bowl with random axes, whose least place is known. */
static tn_array *bowl_matrix, *bowl_place;
static tn_array *bowl(const tn_array *x)
{
    return tn_sum(tn_square(tn_matmul(bowl_matrix, tn_reshape(tn_subtract(x, bowl_place), TN_SHAPE(LBFGS_N, 1)))));
}

static void test_least(void **state)
{
    (void)state;
    for (int wolfe = 0; wolfe < 2; wolfe++) TN_SCOPE {
        double a[LBFGS_N * LBFGS_N], x[LBFGS_N], least[LBFGS_N];
        check_fill(a, LBFGS_N * LBFGS_N, -0.2, 0.2);
        for (int i = 0; i < LBFGS_N; i++)
            a[i * LBFGS_N + i] += 2; /* far from singular, whatever the numbers */
        check_fill(x, LBFGS_N, -3, 3);
        check_fill(least, LBFGS_N, -3, 3);
        bowl_matrix = check_array(a, TN_SHAPE(LBFGS_N, LBFGS_N), TN_FLOAT64);
        bowl_place = check_array(least, TN_SHAPE(LBFGS_N), TN_FLOAT64);
        place p = {.layer = layer_of(x), .of = bowl};
        tn_lbfgs *lbfgs = tn_lbfgs(p.layer, .iterations = 60, .change_tolerance = 0, .strong_wolfe = wolfe);
        for (int i = 0; i < 3; i++)
            assert_int_equal(tn_lbfgs_step(lbfgs, loss_of, &p, NULL), TN_OK);
        check_near(tn_param(p.layer, 0), least, LBFGS_N, 1e-6);
        tn_lbfgs_free(lbfgs);
        tn_layer_free(p.layer);
    }
    check_fine();
}

/* ---- networks ---- */

typedef struct fit {
    tn_layer *net;
    tn_array *x, *t;
    bool fails;
} fit;

static tn_array *error_of(void *user)
{
    fit *f = user;
    if (f->fails)
        return NULL;
    return tn_mean(tn_square(tn_subtract(tn_forward(f->net, f->x), f->t)));
}

static fit fit_new(tn_dtype dtype)
{
    double x[24], t[16];
    check_fill(x, 24, -1, 1);
    for (int i = 0; i < 8; i++) {
        t[2 * i] = x[3 * i] - 2 * x[3 * i + 1];
        t[2 * i + 1] = 0.5 * x[3 * i + 2] + 0.25;
    }
    return (fit){.net = tn_sequential(tn_linear(2, .in = 3, .dtype = dtype)),
                 .x = check_array(x, TN_SHAPE(8, 3), dtype),
                 .t = check_array(t, TN_SHAPE(8, 2), dtype)};
}

/* Several parameters, in single precision; a frozen one stays, and gradients are cleared. */
static void test_network(void **state)
{
    (void)state;
    for (int frozen = 0; frozen < 2; frozen++) TN_SCOPE {
        fit f = fit_new(TN_FLOAT32);
        double b[2], kept[2], first = 0, last = 0;
        check_read(tn_param_named(f.net, "0.b"), b, 2);
        if (frozen)
            assert_int_equal(tn_layer_freeze(f.net, "*.b", true), TN_OK);
        tn_lbfgs *lbfgs = tn_lbfgs(f.net, .strong_wolfe = true);
        assert_int_equal(tn_lbfgs_step(lbfgs, error_of, &f, &first), TN_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(tn_lbfgs_step(lbfgs, error_of, &f, &last), TN_OK);
        check_read(tn_param_named(f.net, "0.b"), kept, 2);
        if (frozen)
            assert_memory_equal(b, kept, sizeof b);
        else
            assert_true(last < 1e-6 && fabs(kept[1] - 0.25) < 1e-2);
        assert_true(last < first);
        assert_false(tn_has_grad(tn_param(f.net, 0)));
        tn_lbfgs_free(lbfgs);
        tn_layer_free(f.net);
    }
    check_fine();
}

static tn_array *no_number(void *user)
{
    return tn_multiply(error_of(user), NAN);
}

/* Nor does a loss that is no number change it. */
static void test_no_number(void **state)
{
    (void)state;
    TN_SCOPE {
        fit f = fit_new(TN_FLOAT32);
        double b[2], w[6], kept[2];
        check_read(tn_param_named(f.net, "0.b"), b, 2);
        assert_int_equal(tn_layer_freeze(f.net, "*.b", true), TN_OK);
        tn_lbfgs *lbfgs = tn_lbfgs(f.net, .iterations = 2);
        assert_int_equal(tn_lbfgs_step(lbfgs, error_of, &f, NULL), TN_OK);
        assert_int_equal(tn_lbfgs_step(lbfgs, no_number, &f, NULL), TN_OK);
        assert_int_equal(tn_lbfgs_step(lbfgs, no_number, &f, NULL), TN_OK);
        check_read(tn_param_named(f.net, "0.b"), kept, 2);
        assert_memory_equal(b, kept, sizeof b);
        check_read(tn_param_named(f.net, "0.W"), w, 6);
        assert_true(isnan(w[0]));
        tn_lbfgs_free(lbfgs);
        tn_layer_free(f.net);
    }
    check_fine();
}

/* ---- what it refuses ---- */

static tn_array *constant(void *user)
{
    (void)user;
    return tn_scalar(1.0);
}

static tn_array *once_more(void *user)
{
    tn_lbfgs_step(user, constant, NULL, NULL);
    return tn_scalar(1.0);
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        double x[LBFGS_N], after[LBFGS_N];
        first_place(x);
        place p = {.layer = layer_of(x), .of = rosenbrock};
        tn_lbfgs *wrong[] = {tn_lbfgs((tn_layer *)NULL), tn_lbfgs(p.layer, .lr = 0), tn_lbfgs(p.layer, .lr = NAN),
                             tn_lbfgs(p.layer, .iterations = 0), tn_lbfgs(p.layer, .history = -1),
                             tn_lbfgs(p.layer, .evaluations = -2), tn_lbfgs(p.layer, .gradient_tolerance = -1)};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            tn_clear_error();
            assert_int_equal(tn_lbfgs_status(wrong[i]), TN_ERR_VALUE);
            assert_int_equal(tn_lbfgs_step(wrong[i], loss_of, &p, NULL), TN_ERR_VALUE);
            check_latched(TN_ERR_VALUE, "expected");
            tn_lbfgs_free(wrong[i]);
        }
        tn_lbfgs *lbfgs = tn_lbfgs(p.layer, .iterations = INT_MAX); /* until it is there */
        assert_int_equal(tn_lbfgs_status(lbfgs), TN_OK);
        tn_lbfgs_free(lbfgs);
        lbfgs = tn_lbfgs(p.layer);
        assert_int_equal(tn_lbfgs_status(lbfgs), TN_OK);
        assert_int_equal(tn_lbfgs_step(lbfgs, NULL, NULL, NULL), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "a function");
        assert_int_equal(tn_lbfgs_step(NULL, loss_of, &p, NULL), TN_ERR_VALUE);
        tn_clear_error();
        assert_int_equal(tn_lbfgs_step(lbfgs, constant, NULL, NULL), TN_ERR_STATE);
        tn_clear_error();
        assert_int_equal(tn_lbfgs_step(lbfgs, once_more, lbfgs, NULL), TN_ERR_STATE); /* as it has no gradient */
        tn_clear_error();
        check_near(tn_param(p.layer, 0), x, LBFGS_N, 0);
        /* the third look fails: all is as before the step, and the next one begins anew */
        p.fails_at = 3;
        assert_int_equal(tn_lbfgs_step(lbfgs, loss_of, &p, NULL), TN_ERR_SHAPE);
        tn_clear_error();
        check_read(tn_param(p.layer, 0), after, LBFGS_N);
        assert_memory_equal(after, x, sizeof x);
        assert_int_equal(tn_lbfgs_iterations(lbfgs), 0);
        assert_int_equal(tn_lbfgs_step(lbfgs, loss_of, &p, NULL), TN_OK);
        tn_layer_free(p.layer);
        assert_int_equal(tn_lbfgs_step(lbfgs, loss_of, &p, NULL), TN_ERR_STATE);
        check_latched(TN_ERR_STATE, "freed");
        tn_lbfgs_free(lbfgs);
        tn_lbfgs_free(NULL);
        fit f = fit_new(TN_FLOAT32);
        lbfgs = tn_lbfgs(f.net);
        f.fails = true;
        assert_int_equal(tn_lbfgs_step(lbfgs, error_of, &f, NULL), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "a loss");
        tn_lbfgs_free(lbfgs);
        tn_layer_free(f.net);
    }
    check_fine();
}

/* Within a step the function cannot step; recording is off outside and on within, whatever the caller has. */
static void test_recording(void **state)
{
    (void)state;
    fit f = fit_new(TN_FLOAT64);
    tn_lbfgs *lbfgs = tn_lbfgs(f.net, .iterations = 2);
    TN_NO_GRAD {
        assert_int_equal(tn_lbfgs_step(lbfgs, error_of, &f, NULL), TN_OK);
        assert_false(tn_grad_enabled());
    }
    assert_int_equal(tn_lbfgs_step(lbfgs, error_of, &f, NULL), TN_OK);
    assert_true(tn_grad_enabled());
    tn_lbfgs_free(lbfgs);
    tn_layer_free(f.net);
    check_fine();
}

static tn_status starved(void *user)
{
    (void)user;
    tn_status status = TN_OK;
    TN_SCOPE {
        fit f = fit_new(TN_FLOAT64);
        tn_lbfgs *lbfgs = tn_lbfgs(f.net, .iterations = 3, .history = 1, .strong_wolfe = true);
        status = tn_lbfgs_status(lbfgs);
        for (int i = 0; i < 2 && status == TN_OK; i++)
            status = tn_lbfgs_step(lbfgs, error_of, &f, NULL);
        tn_lbfgs_free(lbfgs);
        tn_layer_free(f.net);
    }
    return status;
}

static void test_starved(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    starve("lbfgs", starved, NULL);
    tn_set_compile(TN_COMPILE_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_torch),   cmocka_unit_test(test_least),
                                       cmocka_unit_test(test_network), cmocka_unit_test(test_no_number),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_recording),
                                       cmocka_unit_test(test_starved)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
