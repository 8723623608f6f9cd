/* SPDX-License-Identifier: MIT */
/* Losses against plain C, their gradients and second gradients by differences, and their checks of operands. */
#include "nn/check.h"

enum { N = 7, C = 5 };

static double softmax_cross_entropy_c(const double *x, const int64_t *t, double *grad)
{
    double loss = 0;
    for (int r = 0; r < N; r++) {
        double sum = 0;
        for (int c = 0; c < C; c++)
            sum += exp(x[r * C + c] - x[r * C + t[r]]);
        loss += log(sum) / N;
        for (int c = 0; c < C; c++)
            grad[r * C + c] = (exp(x[r * C + c] - x[r * C + t[r]]) / sum - (c == t[r])) / N;
    }
    return loss;
}

static void test_softmax_cross_entropy(void **state)
{
    (void)state;
    double x[N * C], grad[N * C], loss;
    int64_t t[N];
    TN_SCOPE {
        check_fill(x, N * C, -4, 4);
        for (int i = 0; i < N; i++)
            t[i] = (int64_t)(check_bits() % C);
        loss = softmax_cross_entropy_c(x, t, grad);
        tn_array *scores = tn_requires_grad(check_array(x, TN_SHAPE(N, C), TN_FLOAT32));
        tn_array *labels = tn_from_int64s(t, N);
        tn_array *got = tn_softmax_cross_entropy(scores, labels);
        assert_int_equal(tn_ndim(got), 0);
        assert_int_equal(tn_backward(got), TN_OK);
        check_near(got, &loss, 1, 1e-6);
        check_near(tn_grad(scores), grad, N * C, 1e-6);
        check_near(tn_softmax_cross_entropy(scores, tn_cast(labels, TN_UINT8)), &loss, 1, 1e-6);
        check_near(tn_softmax_cross_entropy(tn_cast(scores, TN_FLOAT16), labels), &loss, 1, 2e-3);

        /* scores far beyond exp's range */
        const double big[] = {3000, -3000, 1e30, 0}, want = 6000.0 / 2;
        check_near(tn_softmax_cross_entropy(check_array(big, TN_SHAPE(2, 2), TN_FLOAT32),
                                            tn_from_int64s((int64_t[]){1, 0}, 2)),
                   &want, 1, 1e-6);
        assert_true(
            isnan(tn_item(tn_softmax_cross_entropy(tn_zeros_with(TN_SHAPE(0, 3), NULL), tn_from_int64s(t, 0)))));
    }
    check_fine();
}

static void test_softmax_cross_entropy_errors(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_zeros_with(TN_SHAPE(3, 4), NULL), *t = tn_from_int64s((int64_t[]){0, 1, 3}, 3);
        const struct {
            tn_array *x, *t;
            tn_status code;
            const char *text;
        } rows[] = {
            {tn_zeros_with(TN_SHAPE(3), NULL), t, TN_ERR_SHAPE, "(N, classes)"},
            {tn_zeros_with(TN_SHAPE(3, 0), NULL), t, TN_ERR_SHAPE, "at least one class"},
            {x, tn_from_int64s((int64_t[]){0, 1}, 2), TN_ERR_SHAPE, "one a row of the scores (3, 4); got (2,)"},
            {x, tn_one_hot(t, 4, TN_INT64), TN_ERR_SHAPE, "tn_argmax"},
            {x, tn_cast(t, TN_FLOAT32), TN_ERR_DTYPE, "integer labels, got float32"},
            {tn_cast(x, TN_INT32), t, TN_ERR_DTYPE, "floating scores, got int32"},
            {NULL, t, TN_ERR_VALUE, "NULL"},
        };
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            tn_array *loss = tn_softmax_cross_entropy(rows[k].x, rows[k].t);
            assert_int_equal(tn_status_of(loss), rows[k].code);
            check_latched(rows[k].code, rows[k].text);
            tn_array *accuracy = tn_accuracy(rows[k].x, rows[k].t);
            if (k != 5) /* accuracy takes any scores */
                assert_true(tn_is_error(accuracy));
            tn_clear_error();
        }
        for (int bad = -1; bad < 5; bad += 5) {
            tn_array *loss = tn_softmax_cross_entropy(x, tn_from_int64s((int64_t[]){0, bad, 3}, 3));
            assert_int_equal(test_eval(loss), TN_ERR_INDEX);
            check_latched(TN_ERR_INDEX, "");
        }
    }
}

static void test_element_losses(void **state)
{
    (void)state;
    double x[N], t[N], s[N], grad[N], cross = 0, square = 0;
    TN_SCOPE {
        check_fill(x, N, -5, 5);
        check_fill(t, N, 0, 1);
        x[0] = 0; /* where a formula with max and abs has no derivative */
        x[1] = 200;
        x[2] = -200;
        for (int i = 0; i < N; i++) {
            s[i] = 1 / (1 + exp(-x[i]));
            cross += (fmax(x[i], 0) - x[i] * t[i] + log1p(exp(-fabs(x[i])))) / N;
            grad[i] = (s[i] - t[i]) / N;
            square += (x[i] - t[i]) * (x[i] - t[i]) / N;
        }
        tn_array *logits = tn_requires_grad(check_array(x, TN_SHAPE(N), TN_FLOAT32));
        tn_array *targets = check_array(t, TN_SHAPE(N), TN_FLOAT32);
        tn_array *loss = tn_sigmoid_cross_entropy(logits, targets);
        assert_int_equal(tn_backward(loss), TN_OK);
        check_near(loss, &cross, 1, 1e-5);
        check_near(tn_grad(logits), grad, N, 1e-6);
        check_near(tn_mean_squared_error(logits, targets), &square, 1, 1e-5);

        tn_array *probabilities = tn_sigmoid(tn_slice_axis(logits, 0, 3, TN_NONE, 1));
        double rest = 0;
        for (int i = 3; i < N; i++)
            rest -= (t[i] * log(s[i]) + (1 - t[i]) * log(1 - s[i])) / (N - 3);
        check_near(tn_binary_cross_entropy(probabilities, tn_slice_axis(targets, 0, 3, TN_NONE, 1)), &rest, 1, 1e-5);
        /* sure and right costs next to nothing, sure and wrong much, neither is infinite */
        tn_array *sure = tn_from_floats((float[]){0, 1}, 2);
        assert_true(tn_item(tn_binary_cross_entropy(sure, sure)) < 1e-6);
        double wrong = tn_item(tn_binary_cross_entropy(sure, tn_subtract(1.0, sure)));
        assert_true(wrong > 10 && isfinite(wrong));

        /* integer targets leave the predictions' dtype alone */
        assert_int_equal(tn_dtype_of(tn_mean_squared_error(logits, tn_cast(targets, TN_INT64))), TN_FLOAT32);
        assert_int_equal(tn_dtype_of(tn_sigmoid_cross_entropy(logits, tn_cast(targets, TN_BOOL))), TN_FLOAT32);
    }
    check_fine();
}

static void test_element_loss_errors(void **state)
{
    (void)state;
    tn_array *(*const losses[])(const tn_array *, const tn_array *) = {tn_sigmoid_cross_entropy,
                                                                       tn_binary_cross_entropy, tn_mean_squared_error};
    for (int k = 0; k < 3; k++) TN_SCOPE {
        tn_array *x = tn_zeros_with(TN_SHAPE(4, 1), NULL);
        assert_true(tn_is_error(losses[k](x, tn_zeros_with(TN_SHAPE(4), NULL))));
        check_latched(TN_ERR_SHAPE, "(4, 1) and (4,)");
        assert_true(tn_is_error(losses[k](tn_cast(x, TN_INT32), tn_cast(x, TN_INT32))));
        check_latched(TN_ERR_DTYPE, "floating");
        assert_true(tn_is_error(losses[k](x, NULL)));
        check_latched(TN_ERR_VALUE, "NULL");
    }
}

static void test_accuracy(void **state)
{
    (void)state;
    TN_SCOPE {
        const float y[] = {0, 1, 0, 3, 2, 1, 0, 0, 5, -1, -2, -3}; /* best: 1 0 2 0 */
        tn_array *scores = tn_requires_grad(tn_reshape(tn_from_floats(y, 12), TN_SHAPE(4, 3)));
        tn_array *got = tn_accuracy(scores, tn_from_int64s((int64_t[]){1, 0, 1, 2}, 4));
        assert_int_equal(tn_dtype_of(got), TN_FLOAT32);
        assert_false(tn_needs_grad(got));
        assert_float_equal(tn_item(got), 0.5, 0);
        assert_float_equal(tn_item(tn_accuracy(tn_cast(scores, TN_INT32), tn_from_int64s((int64_t[]){1, 0, 2, 2}, 4))),
                           0.75, 0);
    }
    check_fine();
}

/* ---- gradients by differences ---- */

typedef struct targets {
    tn_array *labels, *ratios;
} targets;

static tn_array *f_softmax_cross_entropy(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_softmax_cross_entropy(xs[0], ((targets *)user)->labels);
}
static tn_array *f_sigmoid_cross_entropy(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_sigmoid_cross_entropy(xs[0], xs[1]);
}
static tn_array *f_binary_cross_entropy(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_binary_cross_entropy(tn_sigmoid(xs[0]), ((targets *)user)->ratios);
}
static tn_array *f_mean_squared_error(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_mean_squared_error(xs[0], xs[1]);
}
static tn_array *f_layer_norm(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_layer_norm_function(xs[0], tn_index(xs[1], 0), tn_index(xs[1], 1), 1e-2);
}
static tn_array *f_leaky_relu(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_multiply(tn_leaky_relu(xs[0], 0.3), xs[1]);
}
static tn_array *f_dropout(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    tn_generator same = {.key = 5, .counter = 0}; /* the same elements at every call */
    return tn_square(tn_dropout_function(xs[0], 0.4, &same));
}

static void test_gradients(void **state)
{
    (void)state;
    const tn_function functions[] = {f_softmax_cross_entropy, f_sigmoid_cross_entropy, f_binary_cross_entropy,
                                     f_mean_squared_error,    f_layer_norm,            f_leaky_relu,
                                     f_dropout};
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) TN_SCOPE {
        double x[N * C], y[N * C], ratios[N * C];
        int64_t labels[N];
        check_fill(x, N * C, -2, 2);
        check_fill(y, N * C, 0.1, 0.9);
        check_fill(ratios, N * C, 0, 1);
        for (int i = 0; i < N * C; i++)
            x[i] += x[i] < 0 ? -0.1 : 0.1; /* off the kink of leaky_relu */
        for (int i = 0; i < N; i++)
            labels[i] = (int64_t)(check_bits() % C);
        targets user = {tn_from_int64s(labels, N), check_array(ratios, TN_SHAPE(N, C), TN_FLOAT64)};
        const tn_array *xs[] = {check_array(x, TN_SHAPE(N, C), TN_FLOAT64), check_array(y, TN_SHAPE(N, C), TN_FLOAT64)};
        const tn_check_opts opts = {.seed = check_bits()};
        if (tn_check_backward_with(functions[k], &user, 2, xs, &opts) != TN_OK)
            fail_msg("function %zu: %s", k, tn_error());
        if (tn_check_double_backward_with(functions[k], &user, 2, xs, &opts) != TN_OK)
            fail_msg("function %zu, second derivative: %s", k, tn_error());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax_cross_entropy), cmocka_unit_test(test_softmax_cross_entropy_errors),
        cmocka_unit_test(test_element_losses),        cmocka_unit_test(test_element_loss_errors),
        cmocka_unit_test(test_accuracy),              cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
