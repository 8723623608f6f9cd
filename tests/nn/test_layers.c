/* SPDX-License-Identifier: MIT */
/* Each kind of layer against the same function in plain C. */
#include "nn/check.h"

#include <tanso/connections.h>
#include <tanso/metrics.h>

static void linear_c(const double *x, const double *w, const double *b, int rows, int in, int out, double *y)
{
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < out; o++) {
            double sum = b ? b[o] : 0;
            for (int i = 0; i < in; i++)
                sum += x[r * in + i] * w[i * out + o];
            y[r * out + o] = sum;
        }
    }
}

/* Inputs of every number of axes, empty ones too; the input size is inferred from the first. */
static void test_linear(void **state)
{
    (void)state;
    enum { IN = 7, OUT = 5, ROWS = 6 };
    const tn_shape shapes[] = {TN_SHAPE(ROWS, IN), TN_SHAPE(IN),          TN_SHAPE(2, 3, IN),
                               TN_SHAPE(0, IN),    TN_SHAPE(3, 0, 2, IN), TN_SHAPE(1, IN)};
    for (int biased = 0; biased < 2; biased++) {
        tn_layer *layer = tn_linear(OUT, .no_bias = !biased, .bias = {TN_INIT_UNIFORM, 1});
        assert_int_equal(tn_param_count(layer), 0);
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) TN_SCOPE {
            double x[ROWS * IN], w[IN * OUT], b[OUT], y[ROWS * OUT];
            int64_t size = 1;
            for (int i = 0; i < shapes[k].ndim; i++)
                size *= shapes[k].dim[i];
            check_fill(x, size, -1, 1);
            tn_array *got = tn_forward(layer, check_array(x, shapes[k], TN_FLOAT32));
            assert_int_equal(tn_param_count(layer), 1 + biased);
            assert_int_equal(tn_dim(tn_param_named(layer, "W"), 0), IN);
            check_read(tn_param_named(layer, "W"), w, IN * OUT);
            if (biased)
                check_read(tn_param_named(layer, "b"), b, OUT);
            linear_c(x, w, biased ? b : NULL, (int)(size / IN), IN, OUT, y);
            assert_int_equal(tn_ndim(got), shapes[k].ndim);
            assert_int_equal(tn_dim(got, -1), OUT);
            check_near(got, y, size / IN * OUT, 1e-5);
        }
        tn_layer_free(layer);
    }
    check_fine();
}

static void test_linear_errors(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *layer = tn_linear(3, .in = 4);
        assert_int_equal(tn_param_count(layer), 2);
        assert_true(tn_is_error(tn_forward(layer, tn_zeros_with(TN_SHAPE(2, 5), NULL))));
        check_latched(TN_ERR_SHAPE, "(4, 3)");
        assert_true(tn_is_error(tn_forward(layer, tn_scalar_with(1, NULL))));
        check_latched(TN_ERR_SHAPE, "at least one axis");
        assert_true(tn_is_error(tn_forward(NULL, tn_scalar_with(1, NULL))));
        check_latched(TN_ERR_VALUE, "NULL");
        tn_layer_free(layer);
        layer = tn_linear(0);
        assert_int_equal(tn_layer_status(layer), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "at least one output");
        tn_array *y = tn_forward(layer, tn_scalar_with(1, NULL));
        assert_int_equal(tn_status_of(y), TN_ERR_VALUE);
        tn_layer_free(layer);
        layer = tn_linear(2, .dtype = TN_INT32);
        check_latched(TN_ERR_DTYPE, "int32");
        tn_layer_free(layer);
        tn_clear_error();
    }
}

static double sigmoid_c(double x) { return 1 / (1 + exp(-x)); }
static double relu_c(double x) { return x > 0 ? x : 0; }
static double gelu_c(double x) { return x * (1 + erf(x / sqrt(2))) / 2; }
static double softplus_c(double x) { return log1p(exp(x)); }
static double leaky_c(double x) { return x < 0 ? 0.1 * x : x; }

static void test_activations(void **state)
{
    (void)state;
    const struct {
        tn_layer *layer;
        double (*c)(double);
    } rows[] = {
        {tn_sigmoid_layer(), sigmoid_c},   {tn_relu_layer(), relu_c},          {tn_tanh_layer(), tanh},
        {tn_gelu_layer(), gelu_c},         {tn_softplus_layer(), softplus_c},  {tn_leaky_relu_layer(0.1), leaky_c},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) TN_SCOPE {
        double x[33], y[33];
        check_fill(x, 33, -4, 4);
        x[0] = 0;
        for (int i = 0; i < 33; i++)
            y[i] = rows[k].c(x[i]);
        check_near(tn_forward(rows[k].layer, check_array(x, TN_SHAPE(3, 11), TN_FLOAT32)), y, 33, 1e-5);
        assert_int_equal(tn_param_count(rows[k].layer), 0);
        tn_layer_free(rows[k].layer);
    }
    check_fine();
}

static void test_softmax(void **state)
{
    (void)state;
    for (int axis = -2; axis < 2; axis++) TN_SCOPE {
        double x[15], y[15];
        bool along_rows = axis == -1 || axis == 1;
        check_fill(x, 15, -5, 5);
        x[4] = 90; /* far beyond exp's range in float32 without the shift */
        for (int i = 0; i < 15; i++) {
            double sum = 0;
            for (int j = 0; j < 15; j++)
                sum += (along_rows ? i / 5 == j / 5 : i % 5 == j % 5) ? exp(x[j] - x[i]) : 0;
            y[i] = 1 / sum;
        }
        tn_layer *layer = tn_softmax_layer(axis);
        check_near(tn_forward(layer, check_array(x, TN_SHAPE(3, 5), TN_FLOAT32)), y, 15, 1e-5);
        assert_true(tn_is_error(tn_forward(layer, tn_scalar_with(1, NULL))));
        check_latched(TN_ERR_INDEX, "axis");
        tn_layer_free(layer);
    }
}

static void test_flatten(void **state)
{
    (void)state;
    tn_layer *layer = tn_flatten_layer();
    TN_SCOPE {
        tn_array *y = tn_forward(layer, tn_zeros_with(TN_SHAPE(2, 3, 4), NULL));
        assert_int_equal(tn_ndim(y), 2);
        assert_int_equal(tn_dim(y, 1), 12);
        y = tn_forward(layer, tn_zeros_with(TN_SHAPE(0, 3, 4), NULL));
        assert_int_equal(tn_dim(y, 0), 0);
        assert_int_equal(tn_dim(y, 1), 12);
        assert_int_equal(tn_dim(tn_forward(layer, tn_zeros_with(TN_SHAPE(5), NULL)), 1), 1);
    }
    tn_layer_free(layer);
    check_fine();
}

static void test_dropout(void **state)
{
    (void)state;
    enum { COUNT = 40001 };
    static double x[COUNT], y[COUNT], again[COUNT];
    tn_layer *layer = tn_dropout(0.3);
    TN_SCOPE {
        check_fill(x, COUNT, 1, 2);
        x[7] = INFINITY;
        tn_array *input = check_array(x, TN_SHAPE(COUNT), TN_FLOAT32);
        tn_generator before = *tn_default_generator();
        check_read(tn_forward(layer, input), y, COUNT);
        int zeros = 0;
        for (int i = 0; i < COUNT; i++) {
            zeros += y[i] == 0;
            if (y[i] != 0 && i != 7)
                assert_float_equal(y[i], x[i] / 0.7, 1e-5);
            assert_false(isnan(y[i]));
        }
        /* 6 standard deviations of a binomial count */
        assert_true(fabs(zeros - 0.3 * COUNT) < 6 * sqrt(0.21 * COUNT));

        check_read(tn_forward(layer, input), again, COUNT);
        assert_memory_not_equal(y, again, sizeof y);
        *tn_default_generator() = before;
        check_read(tn_forward(layer, input), again, COUNT);
        assert_memory_equal(y, again, sizeof y);

        tn_layer_train(layer, false);
        check_near(tn_slice_axis(tn_forward(layer, input), 0, 0, 7, 1), x, 7, 0);
        tn_layer_train(layer, true);
        assert_true(tn_is_error(tn_forward(layer, tn_cast(input, TN_INT32))));
        check_latched(TN_ERR_DTYPE, "int32");
        assert_true(tn_is_error(tn_dropout_function(input, 1, NULL)));
        check_latched(TN_ERR_VALUE, "[0, 1)");
    }
    tn_layer_free(layer);
    tn_layer_free(tn_dropout(NAN));
    check_latched(TN_ERR_VALUE, "[0, 1)");
}

static void test_embedding(void **state)
{
    (void)state;
    tn_layer *layer = tn_embedding(6, 3);
    TN_SCOPE {
        const int64_t tokens[] = {5, 0, 2, 2, 5, 1};
        double w[18], y[18], grad[18] = {0};
        check_read(tn_param_named(layer, "W"), w, 18);
        for (int i = 0; i < 6; i++) {
            for (int k = 0; k < 3; k++) {
                y[i * 3 + k] = w[tokens[i] * 3 + k];
                grad[tokens[i] * 3 + k] += 1;
            }
        }
        tn_array *t = tn_reshape(tn_from_int64s(tokens, 6), TN_SHAPE(2, 3));
        tn_array *got = tn_forward(layer, t);
        assert_int_equal(tn_ndim(got), 3);
        check_near(got, y, 18, 0);
        check_near(tn_forward(layer, tn_cast(t, TN_UINT8)), y, 18, 0);
        assert_int_equal(tn_backward(tn_sum_with(got, NULL)), TN_OK);
        check_near(tn_grad(tn_param(layer, 0)), grad, 18, 0);
        check_fine();

        assert_true(tn_is_error(tn_forward(layer, tn_cast(t, TN_FLOAT32))));
        check_latched(TN_ERR_DTYPE, "integer");
        for (int bad = -1; bad < 7; bad += 7) {
            assert_int_equal(test_eval(tn_forward(layer, tn_from_int64s((int64_t[]){1, bad}, 2))), TN_ERR_INDEX);
            check_latched(TN_ERR_INDEX, "");
        }
        got = tn_forward(layer, tn_from_int64s(tokens, 0));
        assert_int_equal(tn_dim(got, 0), 0);
        assert_int_equal(tn_eval(got), TN_OK);
    }
    tn_layer_free(layer);
    TN_SCOPE { /* what is no word gives zeros and learns nothing, in a copy, too */
        const double ones[] = {0, 0, 1, 1, 0, 0}, grad[] = {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
        layer = tn_embedding(6, 2, .padding_index = -1, .weight = {TN_INIT_ONES, 0});
        tn_layer *copy = tn_layer_copy(layer);
        tn_array *y = tn_forward(copy, tn_from_int64s((int64_t[]){-1, 1, -1}, 3));
        check_near(y, ones, 6, 0);
        assert_int_equal(tn_backward(y), TN_OK);
        check_near(tn_grad(tn_param(copy, 0)), grad, 12, 0);
        check_fine();
        assert_int_equal(test_eval(tn_forward(layer, tn_from_int64s((int64_t[]){1, -2}, 2))), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "");
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(3)))));
        check_latched(TN_ERR_DTYPE, "integer");
        tn_layer_free(copy);
        tn_layer_free(layer);
    }
    tn_layer_free(tn_embedding(0, 3));
    check_latched(TN_ERR_VALUE, "at least one row");
}

/* What is padding, or ignored, is exactly that integer, whatever it is, among indices of any dtype. */
static void test_exact_padding(void **state)
{
    (void)state;
    static const int64_t paddings[] = {((int64_t)1 << 53) + 1, INT64_MAX - 1, INT64_MAX,
                                       -((int64_t)1 << 53) - 1, INT64_MIN};
    for (size_t k = 0; k < sizeof paddings / sizeof *paddings; k++) TN_SCOPE {
        int64_t p = paddings[k], beside = p == INT64_MAX || p == ((int64_t)1 << 53) + 1 ? p - 1 : p + 1;
        tn_array *w = tn_ones(TN_SHAPE(2, 1)), *at = tn_from_int64s((int64_t[]){p, 1}, 2);
        tn_array *other = tn_from_int64s((int64_t[]){beside, 1}, 2);
        check_near(tn_embedding_function(w, at, .padding_index = p), (double[]){0, 1}, 2, 0);
        check_near(tn_embedding_bag(w, tn_reshape(at, TN_SHAPE(1, 2)), .padding_index = p, .mode = TN_BAG_SUM),
                   (double[]){1}, 1, 0);
        assert_int_equal(test_eval(tn_embedding_function(w, other, .padding_index = p)), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "");
        assert_int_equal(test_eval(tn_embedding_bag(w, tn_reshape(other, TN_SHAPE(1, 2)), .padding_index = p)),
                         TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "");
        tn_array *y = tn_zeros(TN_SHAPE(2, 2));
        const tn_array *sum = tn_softmax_cross_entropy(y, at, .ignore_index = p, .reduction = TN_REDUCTION_SUM);
        assert_float_equal(tn_item(sum), log(2), 1e-6);
        assert_int_equal(test_eval(tn_softmax_cross_entropy(y, other, .ignore_index = p)), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "");
        assert_int_equal(test_eval(tn_confusion_matrix(y, other, .ignore_index = p)), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "");
    }
    TN_SCOPE { /* uint64 has no -1 */
        tn_array *large = tn_cast(tn_from_int64s((int64_t[]){-1}, 1), TN_UINT64), *w = tn_ones(TN_SHAPE(2, 1));
        assert_int_equal(test_eval(tn_embedding_function(w, large, .padding_index = -1)), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "");
    }
}

static void layer_norm_c(const double *x, const double *gamma, const double *beta, int rows, int n, double eps,
                         double *y)
{
    for (int r = 0; r < rows; r++) {
        double mean = 0, var = 0;
        for (int i = 0; i < n; i++)
            mean += x[r * n + i] / n;
        for (int i = 0; i < n; i++)
            var += (x[r * n + i] - mean) * (x[r * n + i] - mean) / n;
        for (int i = 0; i < n; i++)
            y[r * n + i] = (x[r * n + i] - mean) / sqrt(var + eps) * (gamma ? gamma[i] : 1) + (beta ? beta[i] : 0);
    }
}

static void test_layer_norm(void **state)
{
    (void)state;
    double x[4 * 9], y[4 * 9], gamma[9], beta[9];
    tn_layer *layer = tn_layer_norm(0, 1e-3);
    TN_SCOPE {
        check_fill(x, 36, -3, 5);
        check_fill(gamma, 9, 0, 2);
        check_fill(beta, 9, -1, 1);
        tn_array *input = check_array(x, TN_SHAPE(2, 2, 9), TN_FLOAT32);
        layer_norm_c(x, NULL, NULL, 4, 9, 1e-3, y);
        check_near(tn_forward(layer, input), y, 36, 1e-5);
        assert_int_equal(tn_param_count(layer), 2);
        assert_string_equal(tn_param_name(layer, 0), "gamma");

        layer_norm_c(x, gamma, beta, 4, 9, 1e-5, y);
        tn_array *g = check_array(gamma, TN_SHAPE(9), TN_FLOAT32), *b = check_array(beta, TN_SHAPE(9), TN_FLOAT32);
        check_near(tn_layer_norm_function(input, g, b, 0), y, 36, 1e-5);
        layer_norm_c(x, NULL, beta, 4, 9, 1e-5, y);
        check_near(tn_layer_norm_function(tn_cast(input, TN_FLOAT16), NULL, b, 0), y, 36, 1e-2);
        check_fine();

        assert_true(tn_is_error(tn_forward(layer, tn_zeros_with(TN_SHAPE(2, 8), NULL))));
        check_latched(TN_ERR_SHAPE, "9 features");
        assert_true(tn_is_error(tn_layer_norm_function(input, tn_zeros_with(TN_SHAPE(8), NULL), NULL, 0)));
        check_latched(TN_ERR_SHAPE, "gamma of shape (9,)");
        assert_true(tn_is_error(tn_layer_norm_function(tn_scalar_with(1, NULL), NULL, NULL, 0)));
        check_latched(TN_ERR_SHAPE, "scalar");
    }
    tn_layer_free(layer);
    tn_layer_free(tn_layer_norm(-1, 0));
    check_latched(TN_ERR_VALUE, "features >= 0");
}

/* An input with half as many digits loses no more than its own rounding. */
static void test_half_precision_stays(void **state)
{
    (void)state;
    tn_layer *layer = tn_sequential(tn_linear(4, .dtype = TN_FLOAT16), tn_softmax_layer(-1));
    TN_SCOPE {
        tn_array *y = tn_forward(layer, tn_full_with(TN_SHAPE(3, 300), 100, &(tn_create_opts){.dtype = TN_FLOAT16}));
        assert_int_equal(tn_dtype_of(y), TN_FLOAT16);
        assert_int_equal(tn_eval(y), TN_OK);
    }
    tn_layer_free(layer);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_linear_errors),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_exact_padding),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_half_precision_stays),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
