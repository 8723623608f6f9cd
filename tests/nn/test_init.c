/* SPDX-License-Identifier: MIT */
/* Initialisers: their moments and ranges against the formulas, orthogonality, names, errors. */
#include "nn/check.h"

enum { IN = 120, OUT = 250, SIZE = IN * OUT };
static double values[SIZE];

typedef struct moment_row {
    tn_init_kind kind;
    const char *name;
    bool uniform;
    double variance; /* for gain 1, of a (IN, OUT) weight */
} moment_row;

static const moment_row moment_rows[] = {
    {TN_INIT_DEFAULT, NULL, false, 1.0 / IN},
    {TN_INIT_NORMAL, "normal", false, 1},
    {TN_INIT_UNIFORM, "uniform", true, 1.0 / 3},
    {TN_INIT_LECUN_NORMAL, "lecun_normal", false, 1.0 / IN},
    {TN_INIT_LECUN_UNIFORM, "lecun_uniform", true, 1.0 / IN},
    {TN_INIT_GLOROT_NORMAL, "glorot_normal", false, 2.0 / (IN + OUT)},
    {TN_INIT_GLOROT_UNIFORM, "glorot_uniform", true, 2.0 / (IN + OUT)},
    {TN_INIT_HE_NORMAL, "he_normal", false, 2.0 / IN},
    {TN_INIT_HE_UNIFORM, "he_uniform", true, 2.0 / IN},
};

static void test_moments(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof moment_rows / sizeof *moment_rows; k++) TN_SCOPE {
        const moment_row *row = &moment_rows[k];
        double gain = k % 2 ? 1.7 : 0, factor = gain == 0 ? 1 : gain;
        tn_array *x = tn_initialize((tn_init){row->kind, gain}, TN_SHAPE(IN, OUT), NULL);
        assert_int_equal(tn_dtype_of(x), TN_FLOAT32);
        check_read(x, values, SIZE);
        double deviation = factor * sqrt(row->variance), mean = 0, square = 0, largest = 0;
        for (int i = 0; i < SIZE; i++) {
            double z = values[i] / deviation;
            mean += z / SIZE;
            square += z * z / SIZE;
            largest = fmax(largest, fabs(z));
        }
        /* six standard deviations of the estimates */
        assert_true(fabs(mean) < 6 / sqrt(SIZE));
        assert_true(fabs(square - 1) < 6 * sqrt((row->uniform ? 0.8 : 2.0) / SIZE));
        if (row->uniform)
            assert_true(largest <= sqrt(3) * (1 + 1e-6) && largest > 1.7);
        else
            assert_true(largest > 3);
        if (row->name)
            assert_int_equal(tn_init_parse(row->name), row->kind);
    }
    check_fine();
}

/* Of deviation `gain`, cut at 2: 1 - 2 c f(c) / (2 F(c) - 1) of the variance, c = 2 / gain. */
static void test_truncated(void **state)
{
    (void)state;
    static const double gains[] = {1, 2, 0.02};
    assert_int_equal(tn_init_parse("truncated_normal"), TN_INIT_TRUNCATED_NORMAL);
    for (int k = 0; k < 3; k++) TN_SCOPE {
        tn_array *x = tn_initialize((tn_init){TN_INIT_TRUNCATED_NORMAL, gains[k]}, TN_SHAPE(SIZE), NULL);
        assert_int_equal(tn_dtype_of(x), TN_FLOAT32);
        check_read(x, values, SIZE);
        double c = 2 / gains[k], density = exp(-c * c / 2) / sqrt(2 * acos(-1)), within = erf(c / sqrt(2));
        double variance = gains[k] * gains[k] * (1 - 2 * c * density / within), mean = 0, square = 0, largest = 0;
        for (int i = 0; i < SIZE; i++) {
            mean += values[i] / SIZE;
            square += values[i] * values[i] / SIZE;
            largest = fmax(largest, fabs(values[i]));
        }
        /* six standard deviations; cutting makes fourth moments smaller */
        assert_true(fabs(mean) < 6 * sqrt(variance / SIZE));
        assert_true(fabs(square - variance) < 6 * variance * sqrt(2.0 / SIZE));
        assert_true(k == 2 ? largest > 0.06 && largest < 0.2 : largest > 1.95 && largest <= 2);
    }
    check_fine();
}

static void test_constants(void **state)
{
    (void)state;
    const struct {
        tn_init init;
        double value;
    } rows[] = {{{TN_INIT_ZEROS, 3}, 0}, {{TN_INIT_ONES, 3}, 1}, {{TN_INIT_CONSTANT, 2.5}, 2.5}};
    for (size_t k = 0; k < 3; k++) TN_SCOPE {
        const double want[] = {rows[k].value, rows[k].value, rows[k].value};
        check_near(tn_initialize(rows[k].init, TN_SHAPE(3), &(tn_random_opts){.dtype = TN_FLOAT64}), want, 3, 0);
    }
    TN_SCOPE {
        const double eye[] = {2, 0, 0, 2};
        check_near(tn_initialize((tn_init){TN_INIT_IDENTITY, 2}, TN_SHAPE(2, 2), NULL), eye, 4, 0);
        assert_int_equal(tn_size(tn_initialize((tn_init){TN_INIT_HE_NORMAL, 0}, TN_SHAPE(0, 4), NULL)), 0);
    }
    check_fine();
}

/* Deviations and widths are no less than 0; what only multiplies may be. */
static void test_gains(void **state)
{
    (void)state;
    static const tn_init_kind kinds[] = {TN_INIT_DEFAULT, TN_INIT_NORMAL, TN_INIT_UNIFORM, TN_INIT_LECUN_NORMAL,
                                         TN_INIT_LECUN_UNIFORM, TN_INIT_GLOROT_NORMAL, TN_INIT_GLOROT_UNIFORM,
                                         TN_INIT_HE_NORMAL, TN_INIT_HE_UNIFORM, TN_INIT_TRUNCATED_NORMAL};
    static const double gains[] = {-0.5, INFINITY, NAN};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < 3; i++) TN_SCOPE {
            char told[60];
            snprintf(told, sizeof told, "expected a finite gain >= 0, got %g", gains[i]);
            REFUSED(TN_ERR_VALUE, told, tn_initialize((tn_init){kinds[k], gains[i]}, TN_SHAPE(2, 2), NULL));
        }
    TN_SCOPE check_near(tn_initialize((tn_init){TN_INIT_IDENTITY, -2}, TN_SHAPE(2, 2), NULL), (double[]){-2, 0, 0, -2},
                        4, 0);
    check_fine();
}

/* The shorter side's vectors are orthonormal, times the gain. */
static void check_orthogonal(int rows, int columns)
{
    double *q = malloc(sizeof *q * (size_t)(rows * columns));
    tn_array *x = tn_initialize((tn_init){TN_INIT_ORTHOGONAL, 1.5}, TN_SHAPE(rows, columns),
                                &(tn_random_opts){.dtype = TN_FLOAT64});
    check_read(x, q, rows * columns);
    bool wide = rows <= columns;
    int count = wide ? rows : columns, length = wide ? columns : rows;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            double dot = 0;
            for (int k = 0; k < length; k++)
                dot += wide ? q[i * columns + k] * q[j * columns + k] : q[k * columns + i] * q[k * columns + j];
            assert_float_equal(dot, i == j ? 2.25 : 0, 1e-13);
        }
    }
    free(q);
}

static void test_orthogonal(void **state)
{
    (void)state;
    TN_SCOPE {
        check_orthogonal(17, 17);
        check_orthogonal(5, 31);
        check_orthogonal(40, 3);
        check_orthogonal(1, 1);
        assert_int_equal(tn_dim(tn_initialize((tn_init){TN_INIT_ORTHOGONAL, 0}, TN_SHAPE(4, 0), NULL), 0), 4);
    }
    check_fine();
}

/* The same seed gives the same weights, also on another device: up to rounding of the functions that normals are made
 * of, where the device that is tested on has its own. */
static void test_devices_agree(void **state)
{
    (void)state;
    tn_status status;
    tn_device other = tn_device_parse("virtual:0", &status);
    if (status != TN_OK)
        skip();
    for (int kind = TN_INIT_NORMAL; kind < TN_INIT_COUNT; kind++) TN_SCOPE {
        double here[49], there[49];
        tn_seed(7);
        check_read(tn_initialize((tn_init){kind, 0}, TN_SHAPE(7, 7), NULL), here, 49);
        tn_seed(7);
        tn_array *x = tn_initialize((tn_init){kind, 0}, TN_SHAPE(7, 7), &(tn_random_opts){.device = other});
        assert_true(tn_device_equal(tn_device_of(x), other));
        check_read(x, there, 49);
        if (test_same_bits())
            assert_memory_equal(here, there, sizeof here);
        double scale = 0;
        for (int i = 0; i < 49; i++)
            scale = fmax(scale, fabs(here[i]));
        for (int i = 0; i < 49; i++)
            assert_true(fabs(here[i] - there[i]) <= 1e-6 * scale);
    }
    check_fine();
}

static void test_errors(void **state)
{
    (void)state;
    TN_SCOPE {
        assert_true(tn_is_error(tn_initialize((tn_init){TN_INIT_HE_NORMAL, 0}, TN_SHAPE(3), NULL)));
        check_latched(TN_ERR_SHAPE, "fan_in");
        assert_true(tn_is_error(tn_initialize((tn_init){TN_INIT_ORTHOGONAL, 0}, TN_SHAPE(3), NULL)));
        check_latched(TN_ERR_SHAPE, "two axes");
        assert_true(tn_is_error(tn_initialize((tn_init){TN_INIT_IDENTITY, 0}, TN_SHAPE(3, 2), NULL)));
        check_latched(TN_ERR_SHAPE, "square");
        assert_true(tn_is_error(tn_initialize((tn_init){TN_INIT_COUNT, 0}, TN_SHAPE(3, 2), NULL)));
        check_latched(TN_ERR_VALUE, "TN_INIT_COUNT");
        assert_true(tn_is_error(tn_initialize((tn_init){0}, TN_SHAPE(3, 2), &(tn_random_opts){.dtype = TN_INT8})));
        check_latched(TN_ERR_DTYPE, "int8");
        assert_true(tn_is_error(tn_initialize((tn_init){0}, (tn_shape){2, {3, -2}}, NULL)));
        check_latched(TN_ERR_SHAPE, "");
        assert_int_equal(tn_init_parse("nonsense"), TN_INIT_COUNT);
        assert_int_equal(tn_init_parse("default"), TN_INIT_COUNT);
        assert_int_equal(tn_init_parse(NULL), TN_INIT_COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),       cmocka_unit_test(test_truncated),
                                       cmocka_unit_test(test_constants), cmocka_unit_test(test_orthogonal),
        cmocka_unit_test(test_devices_agree), cmocka_unit_test(test_errors),      cmocka_unit_test(test_gains),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
