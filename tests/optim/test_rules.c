/* SPDX-License-Identifier: MIT */
/* Each optimizer over several steps against its rule in plain C, with weight decay and clipping. */
#include "nn/check.h"

enum { A = 7, B = 1, SIZE = A + B, STEPS = 6 };

/* Two parameters of odd sizes, and the loss sum(c p² / 2), whose gradient is c p. */
typedef struct problem {
    tn_layer *layer;
    double p[SIZE], c[SIZE], v[SIZE], m[SIZE];
} problem;

static tn_array *no_forward(tn_layer *layer, const tn_array *x, void *user)
{
    (void)layer, (void)x, (void)user;
    return NULL;
}

static void problem_start(problem *q, tn_dtype dtype)
{
    memset(q, 0, sizeof *q);
    check_fill(q->p, SIZE, -2, 2);
    check_fill(q->c, SIZE, 0.5, 3);
    q->layer = tn_layer_new("problem", no_forward, NULL, NULL);
    TN_SCOPE {
        tn_layer_param(q->layer, "a", check_array(q->p, TN_SHAPE(A, 1), dtype));
        tn_layer_param(q->layer, "b", check_array(q->p + A, (tn_shape){0}, dtype));
    }
    check_fine();
}

static tn_array *problem_loss(const problem *q)
{
    tn_array *a = tn_param(q->layer, 0), *b = tn_param(q->layer, 1);
    tn_array *ca = check_array(q->c, TN_SHAPE(A, 1), tn_dtype_of(a)),
             *cb = check_array(q->c + A, (tn_shape){0}, tn_dtype_of(a));
    return tn_multiply(0.5, tn_add(tn_sum_with(tn_multiply(ca, tn_square(a)), NULL), tn_multiply(cb, tn_square(b))));
}

static void step_c(const char *kind, const tn_optimizer_opts *o, problem *q, int t)
{
    double g[SIZE], norm = 0;
    for (int i = 0; i < SIZE; i++) {
        g[i] = q->c[i] * q->p[i];
        if (o->clip_value > 0)
            g[i] = fmin(fmax(g[i], -o->clip_value), o->clip_value);
        norm += g[i] * g[i];
    }
    norm = sqrt(norm);
    for (int i = 0; i < SIZE; i++) {
        double *p = &q->p[i], *v = &q->v[i], *m = &q->m[i], old = *v;
        if (o->clip_norm > 0 && norm > o->clip_norm)
            g[i] *= o->clip_norm / norm;
        if (strcmp(kind, "adamw"))
            g[i] += o->weight_decay * *p;
        if (!strcmp(kind, "sgd")) {
            *p -= o->lr * g[i];
        } else if (!strcmp(kind, "momentum")) {
            *v = o->momentum * old - o->lr * g[i];
            *p += *v;
        } else if (!strcmp(kind, "nesterov")) {
            *v = o->momentum * old - o->lr * g[i];
            *p += o->momentum * *v - o->lr * g[i];
        } else {
            *m = o->beta1 * *m + (1 - o->beta1) * g[i];
            *v = o->beta2 * *v + (1 - o->beta2) * g[i] * g[i];
            double change = o->lr * (*m / (1 - pow(o->beta1, t))) / (sqrt(*v / (1 - pow(o->beta2, t))) + o->eps);
            *p = *p * (strcmp(kind, "adamw") ? 1 : 1 - o->lr * o->weight_decay) - change;
        }
    }
}

static void check_params(const problem *q, double tolerance)
{
    check_near(tn_param(q->layer, 0), q->p, A, tolerance);
    check_near(tn_param(q->layer, 1), q->p + A, B, tolerance);
}

static void run(const char *text, const char *kind, const tn_optimizer_opts *o, tn_dtype dtype, double tolerance)
{
    problem q;
    char context[160];
    check_context = context;
    problem_start(&q, dtype);
    tn_optimizer *optimizer = tn_optimizer_parse(text, q.layer);
    assert_int_equal(tn_optimizer_status(optimizer), TN_OK);
    tn_optimizer_opts set = *o;
    tn_array *a = tn_param(q.layer, 0);
    for (int t = 1; t <= STEPS; t++) TN_SCOPE {
        snprintf(context, sizeof context, "%s, %s, step %d", text, tn_dtype_name(dtype), t);
        if (t == 4) { /* a schedule */
            set.lr /= 3;
            tn_optimizer_set_lr(optimizer, set.lr);
        }
        assert_int_equal(tn_backward(problem_loss(&q)), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        step_c(kind, &set, &q, t);
        check_params(&q, tolerance);
        assert_false(tn_has_grad(tn_param(q.layer, 0)));
    }
    assert_ptr_equal(tn_param(q.layer, 0), a);
    assert_int_equal(tn_dtype_of(a), dtype);
    assert_int_equal(tn_optimizer_steps(optimizer), STEPS);
    assert_float_equal(tn_optimizer_lr(optimizer), set.lr, 0);
    tn_optimizer_free(optimizer);
    tn_layer_free(q.layer);
    check_fine();
    check_context = "";
}

static void test_rules(void **state)
{
    (void)state;
    const struct {
        const char *text, *kind;
        tn_optimizer_opts set;
    } rows[] = {
        {"sgd", "sgd", {.lr = 0.01}},
        {"sgd:lr=0.2,weight_decay=0.1", "sgd", {.lr = 0.2, .weight_decay = 0.1}},
        {"sgd:lr=0.2,clip_norm=1.5", "sgd", {.lr = 0.2, .clip_norm = 1.5}},
        {"sgd:clip_norm=1e6,lr=0.1", "sgd", {.lr = 0.1, .clip_norm = 1e6}},
        {"sgd:lr=0.2,clip_value=0.5,clip_norm=0.9,weight_decay=0.3",
         "sgd",
         {.lr = 0.2, .clip_value = 0.5, .clip_norm = 0.9, .weight_decay = 0.3}},
        {"momentum", "momentum", {.lr = 0.01, .momentum = 0.9}},
        {"momentum:lr=0.1,momentum=0.5,weight_decay=0.01",
         "momentum",
         {.lr = 0.1, .momentum = 0.5, .weight_decay = 0.01}},
        {"nesterov:lr=0.05", "nesterov", {.lr = 0.05, .momentum = 0.9}},
        {"adam", "adam", {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
        {"adam:lr=0.1,beta1=0,beta2=0.5,eps=0.1,weight_decay=0.2",
         "adam",
         {.lr = 0.1, .beta1 = 0, .beta2 = 0.5, .eps = 0.1, .weight_decay = 0.2}},
        {"adamw:lr=0.1", "adamw", {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01}},
        {"adamw:lr=0.1,weight_decay=0", "adamw", {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
        {"adamw:lr=0.1,weight_decay=0.5,clip_norm=1",
         "adamw",
         {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.5, .clip_norm = 1}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        run(rows[k].text, rows[k].kind, &rows[k].set, TN_FLOAT32, 2e-5);
        run(rows[k].text, rows[k].kind, &rows[k].set, TN_FLOAT64, 1e-12);
    }
    /* Half precision: the rule computes in float32, the parameter is rounded at each step. */
    run("adam:lr=0.01", "adam", &(tn_optimizer_opts){.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}, TN_FLOAT16,
        1e-2);
}

static void test_constructors(void **state)
{
    (void)state;
    problem q;
    problem_start(&q, TN_FLOAT32);
    const struct {
        tn_optimizer *optimizer;
        double lr;
    } rows[] = {{tn_sgd(q.layer), 0.01},
                {tn_sgd(q.layer, .lr = 0.5), 0.5},
                {tn_momentum_sgd(q.layer, .momentum = 0.1), 0.01},
                {tn_nesterov(q.layer), 0.01},
                {tn_adam(q.layer, .eps = 1e-4), 0.001},
                {tn_adamw(q.layer, .lr = 3), 3},
                {tn_sgd_with(q.layer, NULL), 0.01}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        assert_int_equal(tn_optimizer_status(rows[k].optimizer), TN_OK);
        assert_float_equal(tn_optimizer_lr(rows[k].optimizer), rows[k].lr, 0);
        tn_optimizer_free(rows[k].optimizer);
    }
    tn_optimizer_free(NULL);
    tn_layer_free(q.layer);
    check_fine();
}

static void test_errors(void **state)
{
    (void)state;
    problem q;
    problem_start(&q, TN_FLOAT32);
    const struct {
        const char *text;
        tn_status code;
        const char *part;
    } rows[] = {
        {"adan", TN_ERR_NAME, "did you mean 'adam'"},
        {"bfgs-with-line-search", TN_ERR_NAME, "expected sgd, momentum"},
        {"sgd:lr", TN_ERR_VALUE, "name=number"},
        {"sgd:lr=", TN_ERR_VALUE, "name=number"},
        {"sgd:lr=fast", TN_ERR_VALUE, "a number for lr, got 'fast'"},
        {"sgd:lr=-1", TN_ERR_VALUE, "lr >= 0"},
        {"sgd:lr=nan", TN_ERR_VALUE, "lr >= 0"},
        {"sgd:lr=inf", TN_ERR_VALUE, "finite"},
        {"momentum:momentum=1", TN_ERR_VALUE, "< 1"},
        {"sgd:momentum=0.9", TN_ERR_VALUE, "momentum_sgd, corrected_momentum_sgd, nesterov"},
        {"adam:bata1=0.9", TN_ERR_NAME, "did you mean 'beta1'"},
        {"adam:learning_rate=1", TN_ERR_NAME,
         "expected lr, beta1, beta2, eps, weight_decay, clip_norm, clip_value, clip_low"},
        {"adam:lr=0.1,beta1=0.8,lr=0.1", TN_ERR_VALUE, "lr is given twice"},
        {"", TN_ERR_VALUE, "none"},
        {NULL, TN_ERR_VALUE, "NULL"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        tn_optimizer *optimizer = tn_optimizer_parse(rows[k].text, q.layer);
        assert_int_equal(tn_optimizer_status(optimizer), rows[k].code);
        check_latched(rows[k].code, rows[k].part);
        assert_int_equal(tn_step(optimizer), rows[k].code);
        tn_clear_error();
        tn_optimizer_free(optimizer);
    }
    tn_optimizer_free(tn_sgd(NULL));
    check_latched(TN_ERR_VALUE, "NULL");
    tn_optimizer_free(tn_sgd(q.layer, .beta1 = 0.9));
    check_latched(TN_ERR_VALUE, "no use for beta1");
    tn_layer *broken = tn_linear(-1);
    tn_clear_error();
    tn_optimizer_free(tn_adam(broken));
    check_latched(TN_ERR_VALUE, "at least one output");
    tn_layer_free(broken);
    assert_int_equal(tn_step(NULL), TN_ERR_VALUE);
    tn_clear_error();
    tn_optimizer *optimizer = tn_sgd(q.layer);
    tn_optimizer_set_lr(optimizer, -1);
    check_latched(TN_ERR_VALUE, "learning rate");
    tn_optimizer_set_steps(optimizer, -1);
    check_latched(TN_ERR_VALUE, "count");
    assert_int_equal(tn_step(optimizer), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "tn_backward");
    tn_optimizer_free(optimizer);
    tn_layer_free(q.layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_constructors),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
