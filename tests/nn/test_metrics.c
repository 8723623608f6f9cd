/* SPDX-License-Identifier: MIT */
/* Metrics against counting in plain C, and what they refuse. */
#include "nn/check.h"

enum { N = 37, C = 4 };

typedef struct drawn {
    double y[N * C];
    int64_t t[N], predicted[N], cells[C][C];
} drawn;

/* Random scores and labels, of which -1 do not count. */
static void draw(drawn *d)
{
    memset(d, 0, sizeof *d);
    check_fill(d->y, N * C, -1, 1);
    for (int i = 0; i < N; i++) {
        d->t[i] = (int64_t)(check_bits() % 5) - 1;
        for (int k = 1; k < C; k++)
            d->predicted[i] = d->y[i * C + k] > d->y[i * C + d->predicted[i]] ? k : d->predicted[i];
        if (d->t[i] >= 0)
            d->cells[d->t[i]][d->predicted[i]]++;
    }
}

static void test_counts(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++)
        TN_SCOPE {
            drawn d;
            draw(&d);
            double cells[C * C], precision[C], recall[C], score[C], support[C], right = 0, all = 0;
            for (int i = 0; i < C; i++) {
                double row = 0, column = 0;
                for (int k = 0; k < C; k++) {
                    cells[i * C + k] = (double)d.cells[i][k];
                    row += (double)d.cells[i][k];
                    column += (double)d.cells[k][i];
                }
                precision[i] = (double)d.cells[i][i] / column;
                recall[i] = (double)d.cells[i][i] / row;
                score[i] = 5 * precision[i] * recall[i] / (4 * precision[i] + recall[i]);
                support[i] = row;
                right += (double)d.cells[i][i];
                all += row;
            }
            double accuracy = right / all;
            tn_array *y = check_array(d.y, TN_SHAPE(N, C), TN_FLOAT32), *t = tn_from_int64s(d.t, N);
            tn_array *classes = tn_from_int64s(d.predicted, N);
            tn_array *matrix = tn_confusion_matrix(y, t, .ignore_index = -1);
            assert_int_equal(tn_dtype_of(matrix), TN_INT64);
            check_near(matrix, cells, C * C, 0);
            check_near(tn_confusion_matrix(classes, t, .ignore_index = -1, .classes = C), cells, C * C, 0);
            check_near(tn_precision(y, t, .ignore_index = -1), precision, C, 1e-6);
            check_near(tn_recall(y, t, .ignore_index = -1), recall, C, 1e-6);
            check_near(tn_support(y, t, .ignore_index = -1), support, C, 0);
            check_near(tn_f_score(y, t, .ignore_index = -1, .beta = 2), score, C, 1e-6);
            check_near(tn_class_accuracy(y, t, .ignore_index = -1), &accuracy, 1, 1e-6);
            tn_array *maps = tn_reshape(tn_transpose(y, (tn_axes){0}), TN_SHAPE(1, C, N));
            check_near(tn_class_accuracy(maps, tn_reshape(t, TN_SHAPE(1, N)), .ignore_index = -1), &accuracy, 1, 1e-6);
        }
    check_fine();
}

/* Of ties the first classes are ahead, as of argmax. */
static void test_top(void **state)
{
    (void)state;
    TN_SCOPE {
        const double y[] = {3, 2, 1, 0, 5, 5, 5, 5, 0, 1, 2, 3};
        tn_array *x = check_array(y, TN_SHAPE(3, 4), TN_FLOAT32), *t = tn_from_int64s((int64_t[]){1, 2, 0}, 3);
        assert_true(fabs(tn_item(tn_class_accuracy(x, t, .top = 2)) - 1.0 / 3) < 1e-6);
        assert_true(fabs(tn_item(tn_class_accuracy(x, t, .top = 3)) - 2.0 / 3) < 1e-6);
        assert_true(tn_item(tn_class_accuracy(x, t, .top = 4)) == 1);
        tn_array *logits = tn_from_floats((float[]){-1, 0, 2, -3}, 4);
        assert_true(fabs(tn_item(tn_binary_accuracy(logits, tn_from_int64s((int64_t[]){0, 1, 0, -1}, 4))) - 2.0 / 3) <
                    1e-6);
    }
    check_fine();
}

static void test_r2(void **state)
{
    (void)state;
    enum { ROWS = 9 };
    double y[2 * ROWS], t[2 * ROWS], want = 0;
    check_fill(y, 2 * ROWS, -1, 1);
    check_fill(t, 2 * ROWS, -1, 1);
    for (int k = 0; k < 2; k++) {
        double mean = 0, rest = 0, all = 0;
        for (int i = 0; i < ROWS; i++)
            mean += t[2 * i + k] / ROWS;
        for (int i = 0; i < ROWS; i++) {
            rest += pow(t[2 * i + k] - y[2 * i + k], 2);
            all += pow(t[2 * i + k] - mean, 2);
        }
        want += (1 - rest / all) / 2;
    }
    TN_SCOPE {
        tn_array *a = check_array(y, TN_SHAPE(ROWS, 2), TN_FLOAT32), *b = check_array(t, TN_SHAPE(ROWS, 2), TN_FLOAT32);
        check_near(tn_r2_score(a, b), &want, 1, 1e-5);
        double zero = 0;
        check_near(tn_r2_score(a, tn_ones(TN_SHAPE(ROWS, 2))), &zero, 1, 1e-6);
    }
    check_fine();
}

static void test_refusals(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *y = tn_ones(TN_SHAPE(2, 3)), *t = tn_full(TN_SHAPE(2), 3, .dtype = TN_INT64);
        assert_int_equal(test_eval(tn_precision(y, t)), TN_ERR_INDEX);
        tn_clear_error();
        assert_true(tn_is_error(tn_recall(y, tn_ones(TN_SHAPE(2)))));
        check_latched(TN_ERR_DTYPE, "expected integers");
        assert_true(tn_is_error(tn_confusion_matrix(y, tn_ones(TN_SHAPE(3), .dtype = TN_INT64))));
        check_latched(TN_ERR_SHAPE, "expected scores (N, classes, ...)");
        assert_true(tn_is_error(tn_confusion_matrix(t, t)));
        check_latched(TN_ERR_VALUE, ".classes");
        assert_true(tn_is_error(tn_r2_score(y, t)));
        check_latched(TN_ERR_SHAPE, "of one shape");
        assert_true(tn_is_error(tn_class_accuracy(t, t, .classes = 4, .top = 2)));
        check_latched(TN_ERR_VALUE, ".top of 1");
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_top), cmocka_unit_test(test_r2),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
