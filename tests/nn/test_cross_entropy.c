/* SPDX-License-Identifier: MIT */
/* Softmax cross entropy with every combination of its options, against plain C, and what it refuses. */
#include "nn/check.h"

enum { MOST = 3 * 4 * 2 * 3, C = 4 };

/* One case: scores of (n, C, a, b) with the classes' axis where `last` says. */
typedef struct drawn {
    int64_t rows, n, a, b;
    int ndim;
    bool last, ignores, weighs;
    int64_t ignored;
    double smoothing;
    tn_reduction reduction;
    double x[MOST], weight[C];
    int64_t t[MOST / C];
    double loss[MOST / C], grad[MOST], value; /* what must come out */
} drawn;

/* Where class c of row r lies. */
static int64_t at(const drawn *d, int64_t r, int c)
{
    int64_t inner = d->a * d->b;
    return d->last ? r * C + c : (r / inner * C + c) * inner + r % inner;
}

static void draw(drawn *d)
{
    *d = (drawn){.n = (int64_t)(check_bits() % 4), .a = 1, .b = 1, .ndim = 2 + (int)(check_bits() % 3)};
    if (d->ndim > 2)
        d->a = 1 + (int64_t)(check_bits() % 2);
    if (d->ndim > 3)
        d->b = 1 + (int64_t)(check_bits() % 3);
    d->rows = d->n * d->a * d->b;
    d->last = check_bits() % 2;
    d->ignores = check_bits() % 2;
    d->weighs = check_bits() % 2;
    d->smoothing = check_bits() % 2 ? 0 : check_uniform(0, 1);
    d->reduction = (tn_reduction)(check_bits() % 3);
    d->ignored = (const int64_t[]){0, -100, 2}[check_bits() % 3]; /* zero is a label as others */
    check_fill(d->x, MOST, -4, 4);
    check_fill(d->weight, C, 0.1, 2);
    for (int64_t r = 0; r < d->rows; r++)
        d->t[r] = d->ignores && check_bits() % 3 == 0 ? d->ignored : (int64_t)(check_bits() % C);
}

/* The losses, and the gradient of their sum, without the division. Returns the sum of the weights. */
static double losses(drawn *d)
{
    double sum_of_weights = 0, all = 0;
    for (int c = 0; c < C; c++)
        all += d->weighs ? d->weight[c] : 1;
    for (int64_t r = 0; r < d->rows; r++) {
        int64_t t = d->t[r];
        double sum = 0, e = d->smoothing / C;
        d->loss[r] = 0;
        for (int c = 0; c < C; c++) {
            d->grad[at(d, r, c)] = 0;
            sum += exp(d->x[at(d, r, c)]);
        }
        if (d->ignores && t == d->ignored)
            continue;
        double w = d->weighs ? d->weight[t] : 1, own = (1 - d->smoothing) * w;
        sum_of_weights += w;
        for (int c = 0; c < C; c++) {
            double share = e * (d->weighs ? d->weight[c] : 1) + (c == t ? own : 0);
            d->loss[r] += share * (log(sum) - d->x[at(d, r, c)]);
            d->grad[at(d, r, c)] = exp(d->x[at(d, r, c)]) / sum * (own + e * all) - share;
        }
    }
    return sum_of_weights;
}

static void solve(drawn *d)
{
    double weights = losses(d), by = d->reduction != TN_REDUCTION_MEAN ? 1 : weights == 0 ? 1 : weights;
    for (int64_t r = 0; r < d->rows; r++)
        d->value += d->loss[r] / by;
    for (int64_t i = 0; i < d->rows * C; i++)
        d->grad[i] /= by;
}

static tn_shape shape_of(const drawn *d, bool classes)
{
    tn_shape shape = {.ndim = 0};
    const int64_t inner[] = {d->a, d->b};
    shape.dim[shape.ndim++] = d->n;
    if (classes && !d->last)
        shape.dim[shape.ndim++] = C;
    for (int i = 0; i < d->ndim - 2; i++)
        shape.dim[shape.ndim++] = inner[i];
    if (classes && d->last)
        shape.dim[shape.ndim++] = C;
    return shape;
}

static tn_array *loss_of(const drawn *d, const tn_array *x, const tn_array *t, const tn_array *weight)
{
    int axis = d->last ? -1 : 1;
    if (d->ignores)
        return tn_softmax_cross_entropy(x, t, .ignore_index = d->ignored, .weight = weight,
                                        .label_smoothing = d->smoothing, .reduction = d->reduction, .axis = axis);
    return tn_softmax_cross_entropy(x, t, .weight = weight, .label_smoothing = d->smoothing,
                                    .reduction = d->reduction, .axis = axis);
}

static void test_options(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++)
        TN_SCOPE {
            drawn d;
            draw(&d);
            solve(&d);
            if (d.rows == 0 && d.reduction == TN_REDUCTION_MEAN && !d.ignores && !d.weighs)
                continue; /* no mean, as ever */
            tn_array *x = tn_requires_grad(check_array(d.x, shape_of(&d, true), TN_FLOAT32));
            tn_array *t = tn_reshape(tn_from_int64s(d.t, d.rows), shape_of(&d, false));
            tn_array *weight = d.weighs ? check_array(d.weight, TN_SHAPE(C), TN_FLOAT32) : NULL;
            tn_array *loss = loss_of(&d, x, t, weight);
            assert_int_equal(tn_dtype_of(loss), TN_FLOAT32);
            assert_int_equal(tn_backward(tn_sum(loss)), TN_OK);
            if (d.reduction == TN_REDUCTION_NONE) {
                tn_shape got = tn_shape_of(loss), want = shape_of(&d, false);
                assert_int_equal(got.ndim, want.ndim);
                assert_memory_equal(got.dim, want.dim, (size_t)want.ndim * sizeof *want.dim);
                check_near(loss, d.loss, d.rows, 1e-5);
            } else {
                assert_int_equal(tn_ndim(loss), 0);
                check_near(loss, &d.value, 1, 1e-5);
            }
            check_near(tn_grad(x), d.grad, d.rows * C, 1e-5);
        }
    check_fine();
}

/* Rows that do not count: their scores are nobody's matter, and where none counts the loss is zero. */
static void test_ignored(void **state)
{
    (void)state;
    TN_SCOPE {
        const double bad[] = {NAN, 1, INFINITY, 2, 0, 0, 0, 0}, zero[8] = {0};
        tn_array *x = tn_requires_grad(check_array(bad, TN_SHAPE(2, 4), TN_FLOAT32));
        double want = log(4), grad[8] = {0, 0, 0, 0, 0.25, 0.25, -0.75, 0.25};
        tn_array *loss = tn_softmax_cross_entropy(x, tn_from_int64s((int64_t[]){-1, 2}, 2), .ignore_index = -1);
        assert_int_equal(tn_backward(loss), TN_OK);
        check_near(loss, &want, 1, 1e-6);
        check_near(tn_grad(x), grad, 8, 1e-6);
        tn_clear_grad(x);
        loss = tn_softmax_cross_entropy(x, tn_full(TN_SHAPE(2), 255, .dtype = TN_UINT8), .ignore_index = 255);
        assert_int_equal(tn_backward(loss), TN_OK);
        check_near(loss, zero, 1, 0);
        check_near(tn_grad(x), zero, 8, 0);
        /* a label is ignored by itself alone: others out of range, and -100 by its last byte, are still mistakes */
        loss = tn_softmax_cross_entropy(x, tn_from_int64s((int64_t[]){-1, 4}, 2), .ignore_index = -1);
        assert_int_equal(test_eval(loss), TN_ERR_INDEX);
        tn_clear_error();
        loss = tn_softmax_cross_entropy(x, tn_full(TN_SHAPE(2), 156, .dtype = TN_UINT8), .ignore_index = -100);
        assert_int_equal(test_eval(loss), TN_ERR_INDEX);
        tn_clear_error();
    }
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(2, 3, 4)), *t = tn_zeros(TN_SHAPE(2, 4), .dtype = TN_INT64);
        tn_array *flat = tn_zeros(TN_SHAPE(2, 3)), *one = tn_zeros(TN_SHAPE(2), .dtype = TN_INT64);
        const struct {
            tn_array *loss;
            tn_status code;
            const char *text;
        } rows[] = {
            {tn_softmax_cross_entropy(x, one), TN_ERR_SHAPE, "(2, 3, 4) without the axis 1"},
            {tn_softmax_cross_entropy(x, t, .axis = 2), TN_ERR_SHAPE, "without the axis 2"},
            {tn_softmax_cross_entropy(x, t, .axis = 3), TN_ERR_SHAPE, "no axis 3"},
            {tn_softmax_cross_entropy(x, tn_cast(t, TN_FLOAT32)), TN_ERR_DTYPE, "integer labels"},
            {tn_softmax_cross_entropy(flat, one, .weight = tn_ones(TN_SHAPE(2))), TN_ERR_SHAPE, "each of 3 classes"},
            {tn_softmax_cross_entropy(flat, one, .weight = tn_ones(TN_SHAPE(3), .dtype = TN_INT32)), TN_ERR_DTYPE,
             "floating weights"},
            {tn_softmax_cross_entropy(flat, one, .label_smoothing = 1.5), TN_ERR_VALUE, "from 0 to 1, got 1.5"},
            {tn_softmax_cross_entropy(flat, one, .label_smoothing = NAN), TN_ERR_VALUE, "from 0 to 1"},
            {tn_softmax_cross_entropy(flat, one, .reduction = (tn_reduction)3), TN_ERR_VALUE, "no tn_reduction"},
        };
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            assert_int_equal(tn_status_of(rows[k].loss), rows[k].code);
            if (!strstr(tn_message_of(rows[k].loss), rows[k].text))
                fail_msg("no '%s' in %s", rows[k].text, tn_message_of(rows[k].loss));
        }
        tn_clear_error();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
