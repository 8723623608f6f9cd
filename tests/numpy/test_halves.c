/* SPDX-License-Identifier: MIT */
/* Many float16 and bfloat16 numbers, which kernels of a GPU read eight at a time: along rows, down columns, and one by
 * one. Against float64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"
#include "support/read.h"

typedef struct half {
    tn_dtype dtype;
    int digits, least; /* of binary; the exponent of the least normal number */
} half;

static const half halves[] = {{TN_FLOAT16, 11, -14}, {TN_BFLOAT16, 8, -126}};

static double ulp(const half *h, double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, (x == 0 || exponent - 1 < h->least ? h->least : exponent - 1) - (h->digits - 1));
}

/* A matrix, and what is expected along rows (axis 1) or down columns (axis 0). */
typedef struct matrix {
    int64_t rows, columns;
    int axis;
    const half *half;
    double *x;  /* what its elements are */
    bool wrong; /* one failure is told */
} matrix;

static int64_t lines(const matrix *m) { return m->axis ? m->rows : m->columns; }
static int64_t length(const matrix *m) { return m->axis ? m->columns : m->rows; }
static int64_t place(const matrix *m, int64_t line, int64_t i)
{
    return m->axis ? line * m->columns + i : i * m->columns + line;
}
static double at(const matrix *m, int64_t line, int64_t i) { return m->x[place(m, line, i)]; }

static void near(matrix *m, const char *what, int64_t i, double got, double expected, double ulps, double apart)
{
    if (m->wrong || fabs(got - expected) <= ulps * ulp(m->half, expected) + apart)
        return;
    m->wrong = true;
    fail_msg("%s of %s, %lld x %lld, axis %d: %lld is %.9g, expected %.9g", what, tn_dtype_name(m->half->dtype),
             (long long)m->rows, (long long)m->columns, m->axis, (long long)i, got, expected);
}

/* One result a line. */
static void check_reductions(matrix *m, const tn_array *x)
{
    tn_axes axis = TN_AXES(m->axis);
    double *sum = test_doubles(tn_sum(x, .axis = axis)), *most = test_doubles(tn_max(x, .axis = axis));
    double *first = test_doubles(tn_argmax(x, .axis = axis)), *variance = test_doubles(tn_var(x, .axis = axis));
    double count = (double)length(m);
    for (int64_t k = 0; k < lines(m); k++) {
        double total = 0, squares = 0;
        int64_t best = 0;
        for (int64_t i = 0; i < length(m); i++) {
            total += at(m, k, i);
            best = at(m, k, i) > at(m, k, best) ? i : best;
        }
        for (int64_t i = 0; i < length(m); i++)
            squares += pow(at(m, k, i) - total / count, 2);
        near(m, "sum", k, sum[k], total, 0.5, 1e-7 * count);
        near(m, "variance", k, variance[k], squares / count, 0.6, 1e-6);
        near(m, "max", k, most[k], at(m, k, best), 0, 0);
        near(m, "argmax", k, first[k], (double)best, 0, 0);
    }
    free(sum), free(most), free(first), free(variance);
}

/* Sums in eight bytes, and scale and shift in another dtype than the rows. */
static void check_wider(matrix *m, const tn_array *x)
{
    double *sum = test_doubles(tn_sum(tn_cast(x, TN_FLOAT64), .axis = TN_AXES(m->axis)));
    for (int64_t k = 0; k < lines(m); k++) {
        double total = 0;
        for (int64_t i = 0; i < length(m); i++)
            total += at(m, k, i);
        near(m, "sum in float64", k, sum[k], total, 0, 1e-9);
    }
    free(sum);
    if (!m->axis)
        return;
    tn_array *scale = tn_linspace(1, 2, m->columns, .dtype = TN_FLOAT32);
    double *normal = test_doubles(tn_layer_norm_function(x, scale, scale, 1e-5)), *factor = test_doubles(scale);
    for (int64_t r = 0; r < m->rows; r++) {
        double total = 0, squares = 0, count = (double)m->columns;
        for (int64_t c = 0; c < m->columns; c++)
            total += at(m, r, c);
        for (int64_t c = 0; c < m->columns; c++)
            squares += pow(at(m, r, c) - total / count, 2);
        for (int64_t c = 0; c < m->columns; c++) {
            double expected = ((at(m, r, c) - total / count) / sqrt(squares / count + 1e-5) + 1) * factor[c];
            near(m, "normalized", place(m, r, c), normal[place(m, r, c)], expected, 2, ulp(m->half, 4));
        }
    }
    free(normal), free(factor);
}

/* As many results as elements. */
static void check_softmax(matrix *m, const tn_array *x)
{
    double *share = test_doubles(tn_softmax(x, m->axis));
    for (int64_t k = 0; k < lines(m); k++) {
        double total = 0;
        for (int64_t i = 0; i < length(m); i++)
            total += exp(at(m, k, i));
        for (int64_t i = 0; i < length(m); i++)
            near(m, "softmax", place(m, k, i), share[place(m, k, i)], exp(at(m, k, i)) / total, 0.52, 0);
    }
    free(share);
}

/* The loss chooses from x itself, not from a copy of it in float32; its gradient reads x once more. */
static void check_loss(matrix *m, tn_array *x)
{
    tn_array *t = tn_remainder(tn_multiply(tn_arange(0, m->rows, 1, .dtype = TN_INT64), 7), m->columns), *gradient;
    tn_requires_grad(x);
    tn_array *loss = tn_softmax_cross_entropy(x, t);
    assert_int_equal(tn_gradients(loss, 1, (const tn_array *[]){x}, false, &gradient), TN_OK);
    double *got = test_doubles(gradient), sum = 0;
    for (int64_t r = 0; r < m->rows; r++) {
        double total = 0;
        int64_t label = r * 7 % m->columns;
        for (int64_t c = 0; c < m->columns; c++)
            total += exp(at(m, r, c));
        sum += log(total) - at(m, r, label);
        for (int64_t c = 0; c < m->columns; c++)
            near(m, "gradient of the loss", place(m, r, c), got[place(m, r, c)],
                 (exp(at(m, r, c)) / total - (c == label)) / (double)m->rows, 1.1, 0);
    }
    near(m, "loss", 0, tn_item(loss), sum / (double)m->rows, 0.52, 0);
    free(got);
}

static void test_lines(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const int64_t shapes[][2] = {{70, 1000}, {9, 30000}, {5000, 24}, {20003, 8}, {4001, 17},
                                        {1500, 72}, {2, 65536}, {64, 2050}, {300, 1024}, {12, 50257}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int axis = 0; axis < 2; axis++)
            TN_SCOPE {
                matrix m = {shapes[s][0], shapes[s][1], axis, &halves[(s + (size_t)axis) % 2], NULL, false};
                int64_t size = m.rows * m.columns;
                float *values = malloc((size_t)size * sizeof *values);
                assert_non_null(values);
                for (int64_t i = 0; i < size; i++)
                    values[i] = (float)(2 * test_random_double(&random) - 1);
                tn_array *x = tn_cast(tn_from_host(values, TN_SHAPE(m.rows, m.columns), TN_FLOAT32), m.half->dtype);
                assert_int_equal(tn_eval(x), TN_OK);
                m.x = test_doubles(x);
                check_reductions(&m, x);
                check_wider(&m, x);
                check_softmax(&m, x);
                if (m.axis)
                    check_loss(&m, x);
                free(values), free(m.x);
            }
}

/* Views: of rows that begin between multiples of 16 bytes, backwards, transposed. */
static void test_views(void **state)
{
    (void)state;
    tn_seed(test_seed_new());
    for (int how = 0; how < 6; how++)
        TN_SCOPE {
            const half *h = &halves[how / 2 % 2];
            tn_array *all = tn_cast(tn_random_uniform(TN_SHAPE(150, 1001)), h->dtype);
            assert_int_equal(tn_eval(all), TN_OK);
            tn_array *x = how / 2 == 0   ? tn_slice_axis(all, 1, 1, TN_NONE, 1)
                          : how / 2 == 1 ? tn_slice_axis(all, 1, TN_NONE, TN_NONE, -1)
                                         : tn_transpose(all, (tn_axes){0});
            matrix m = {tn_shape_of(x).dim[0], tn_shape_of(x).dim[1], how % 2, h, test_doubles(x), false};
            check_reductions(&m, x);
            check_wider(&m, x);
            check_softmax(&m, x);
            free(m.x);
        }
}

/* Functions that have a shorter form for numbers of 16 bits, of all of these. */
static double gelu(double x) { return x == -INFINITY ? 0 : 0.5 * x * erfc(-x * sqrt(0.5)); }

static void test_functions(void **state)
{
    (void)state;
    enum { ALL = 65536 };
    uint16_t *bits = malloc(ALL * sizeof *bits);
    assert_non_null(bits);
    for (int i = 0; i < ALL; i++)
        bits[i] = (uint16_t)i;
    for (int how = 0; how < 2; how++)
        TN_SCOPE {
            matrix m = {ALL, 1, 0, &halves[how], NULL, false};
            tn_array *x = tn_from_host(bits, TN_SHAPE(ALL), m.half->dtype);
            double *of = test_doubles(x), *bent = test_doubles(tn_gelu(x)), *flat = test_doubles(tn_tanh(x));
            for (int i = 0; i < ALL; i++) {
                if (isnan(of[i])) {
                    assert_true(isnan(bent[i]) && isnan(flat[i]));
                    continue;
                }
                if (isinf(of[i]) && of[i] > 0)
                    assert_true(bent[i] == of[i]);
                else
                    near(&m, "gelu", i, bent[i], gelu(of[i]), 0.51, 0);
                near(&m, "tanh", i, flat[i], tanh(of[i]), 0.51, 0);
            }
            free(of), free(bent), free(flat);
        }
    free(bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_views),
                                       cmocka_unit_test(test_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
