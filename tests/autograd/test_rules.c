/* SPDX-License-Identifier: MIT */
/* Every elementwise operation and reduction of ops.def with a gradient rule, against differences,
 * to second order. */
#include "autograd/helpers.h"

#include "array/build.h"
#include "autograd/rules.h"
#include "tn_op_functions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where an operation is smooth; others are tested on (-2, 2). */
static const struct domain {
    const char *name;
    double low[2], high[2];
} domains[] = {
    {"reciprocal", {0.5}, {2}},
    {"log", {0.4}, {3}},
    {"log2", {0.4}, {3}},
    {"log10", {0.4}, {3}},
    {"log1p", {-0.6}, {2}},
    {"sqrt", {0.4}, {3}},
    {"rsqrt", {0.4}, {3}},
    {"cbrt", {0.4}, {3}},
    {"tan", {-1}, {1}},
    {"arcsin", {-0.8}, {0.8}},
    {"arccos", {-0.8}, {0.8}},
    {"arctanh", {-0.8}, {0.8}},
    {"arccosh", {1.4}, {3}},
    {"divide", {-2, 0.5}, {2, 2}},
    {"remainder", {-5.5, 1.4}, {-5.2, 1.6}},
    {"fmod", {-5.5, 1.4}, {-5.2, 1.6}},
    {"power", {0.4, -2}, {2, 2}},
    {"arctan2", {0.4, 0.4}, {2, 2}},
    {"hypot", {0.4, -2}, {2, -0.4}},
    {"frexp_fraction", {0.55}, {0.95}},
};

static tn_array *input(tn__op op, int i, tn_shape shape)
{
    double low = -2, high = 2;
    for (size_t d = 0; d < sizeof domains / sizeof *domains; d++)
        if (strcmp(domains[d].name, tn__ops[op].name) == 0) {
            low = domains[d].low[i];
            high = domains[d].high[i];
        }
    return spread(shape, low, high, i);
}

static tn_array *apply_map(int count, tn_array *const *xs, void *user)
{
    tn__op op = *(tn__op *)user;
    tn__call call = tn__enter();
    tn__node *in[3] = {0};
    for (int i = 0; i < count; i++)
        in[i] = tn__node_of(xs[i], "test");
    if (op == TN__OP_CAST)
        return tn__leave_array(call, tn__cast(in[0], TN_FLOAT64));
    return tn__leave_array(call, count == 1   ? tn__unary(op, in[0])
                                 : count == 2 ? tn__binary(op, in[0], in[1])
                                              : tn__where(in[0], in[1], in[2]));
}

static void check_map(tn__op op, const tn_shape *shapes)
{
    const tn_array *xs[3];
    int arity = tn__ops[op].arity, condition = tn__ops[op].props & TN_CONDITION ? 1 : 0;
    for (int i = 0; i < arity; i++)
        xs[i] = i < condition ? tn_greater(spread(shapes[i], -2, 2, i), 0)
                              : input(op, i - condition, shapes[i]);
    check_gradients(tn__ops[op].name, apply_map, &op, arity, xs);
}

static void test_elementwise(void **state)
{
    (void)state;
    const tn_shape scalar = {0}, odd = TN_SHAPE(3, 5), column = TN_SHAPE(3, 1), row = TN_SHAPE(5),
                   one = TN_SHAPE(1, 1), empty = TN_SHAPE(0, 5), lead = TN_SHAPE(2, 1, 5);
    const tn_shape same[][3] = {{odd, odd, odd}, {scalar, scalar, scalar}, {empty, empty, empty}};
    const tn_shape broadcast[][3] = {
        {odd, row, column}, {column, row, odd}, {scalar, odd, row}, {lead, column, one}};
    int tested = 0;
    for (int op = 0; op < TN__OP_COUNT; op++) {
        if (tn__ops[op].kind != TN__KIND_MAP || !tn__rules[op] || tn__ops[op].types == TN__TYPES_NONE)
            continue;
        for (size_t s = 0; s < 3; s++)
            TN_SCOPE
                check_map((tn__op)op, same[s]);
        for (size_t s = 0; s < 4 && tn__ops[op].arity > 1; s++)
            TN_SCOPE
                check_map((tn__op)op, broadcast[s]);
        tested++;
    }
    assert_true(tested >= 50);
}

struct reduction {
    tn__op op;
    uint32_t axes;
};

static tn_array *apply_reduce(int count, tn_array *const *xs, void *user)
{
    (void)count;
    const struct reduction *r = user;
    tn__call call = tn__enter();
    return tn__leave_array(call, tn__reduce(r->op, tn__node_of(xs[0], "test"), r->axes));
}

static void test_reductions(void **state)
{
    (void)state;
    const tn_shape shapes[] = {
        TN_SHAPE(3, 2, 5), TN_SHAPE(7), TN_SHAPE(1, 4), TN_SHAPE(2, 1, 3), {0}};
    int tested = 0;
    for (int op = 0; op < TN__OP_COUNT; op++) {
        if (tn__ops[op].kind != TN__KIND_REDUCE || !tn__rules[op])
            continue;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (uint32_t axes = 0; axes < 1u << shapes[s].ndim; axes++)
                TN_SCOPE {
                    const tn_array *x = spread(shapes[s], -2, 2, 0);
                    char what[96];
                    snprintf(what, sizeof what, "%s over the axes %x of %d", tn__ops[op].name, axes,
                             shapes[s].ndim);
                    check_gradients(what, apply_reduce, &(struct reduction){(tn__op)op, axes}, 1,
                                    &x);
                }
        tested++;
    }
    assert_int_equal(tested, 4);
}

/* Zeros among the factors: the gradient is the product of the others, not 0 / 0. */
static void test_product_of_zeros(void **state)
{
    (void)state;
    const double values[4][5] = {
        {2, 3, 5, 7, 1}, {2, 0, 5, 7, 1}, {2, 0, 5, 0, 1}, {0, 0, 0, 0, 0}};
    const double expected[20] = {105, 70, 42, 30, 210, 0, 70};
    const tn_array *x = tn_from_host(values, TN_SHAPE(4, 5), TN_FLOAT64);
    tn_array *y = tn_prod(x, .axis = TN_AXES(1)),
             *leaf = tn_requires_grad(tn_from_host(values, TN_SHAPE(4, 5), TN_FLOAT64));
    assert_int_equal(tn_backward(tn_prod(leaf, .axis = TN_AXES(1))), TN_OK);
    assert_values(tn_grad(leaf), 20, expected, 0);
    assert_values(y, 4, (double[]){210, 0, 0, 0}, 0);
    check_gradients("prod of zeros", apply_reduce, &(struct reduction){TN__OP_PROD, 2}, 1, &x);
    check_gradients("prod of zeros over all", apply_reduce, &(struct reduction){TN__OP_PROD, 3}, 1,
                    &x);
}

static void check_slope(tn_array *(*f)(const tn_array *), double at, double expected)
{
    tn_array *x = tn_requires_grad(tn_scalar(at, .dtype = TN_FLOAT64));
    assert_int_equal(tn_backward((f)(x)), TN_OK);
    assert_values(tn_grad(x), 1, &expected, 1e-12);
}

static void check_slopes(tn_array *(*f)(const tn_array *, const tn_array *), double a, double b,
                         double by_a, double by_b)
{
    tn_array *x = tn_requires_grad(tn_scalar(a, .dtype = TN_FLOAT64)),
             *y = tn_requires_grad(tn_scalar(b, .dtype = TN_FLOAT64));
    assert_int_equal(tn_backward((f)(x, y)), TN_OK);
    assert_values(tn_grad(x), 1, &by_a, 1e-12);
    assert_values(tn_grad(y), 1, &by_b, 1e-12);
}

/* The conventions where there is no derivative, and values far out, where naive formulas give NaN. */
static void test_edges(void **state)
{
    (void)state;
    const double inf = __builtin_inf();
    check_slope(tn_abs, 0, 0);
    check_slope(tn_relu, 0, 0);
    check_slope(tn_softplus, 1000, 1);
    check_slope(tn_softplus, -1000, 0);
    check_slope(tn_sigmoid, 800, 0);
    check_slope(tn_sigmoid, -800, 0);
    check_slope(tn_tanh, 400, 0);
    check_slope(tn_gelu, 40, 1);
    check_slope(tn_gelu, -40, 0);
    check_slope(tn_sqrt, 0, inf);
    check_slope(tn_arcsinh, 1e200, 1e-200);
    check_slope(tn_arccosh, 1e200, 1e-200);
    check_slopes(tn_maximum, 3, 3, 0.5, 0.5);
    check_slopes(tn_minimum, 3, 3, 0.5, 0.5);
    check_slopes(tn_fmax, __builtin_nan(""), 2, 0, 1);
    check_slopes(tn_fmin, 2, __builtin_nan(""), 1, 0);
    check_slopes(tn_hypot, 0, 0, 0, 0);
    check_slopes(tn_hypot, 3e200, 4e200, 0.6, 0.8);
    check_slopes(tn_arctan2, 0, 0, 0, 0);
    check_slopes(tn_arctan2, 3e200, 4e200, 0.16e-200, -0.12e-200);
    check_slopes(tn_power, 0, 0, 0, 0);
    check_slopes(tn_power, 0, 1, 1, 0);
    check_slopes(tn_power, 0, 3, 0, 0);
    check_slopes(tn_power, -2, 3, 12, 0);
    check_slopes(tn_power, 2, 0, 0, 0.69314718055994530942);
    check_slopes(tn_logaddexp, 1000, -1000, 1, 0);
    check_slopes(tn_logaddexp, -inf, -inf, 0.5, 0.5);
    check_slopes(tn_logaddexp, -inf, 0, 0, 1);
    check_slopes(tn_copysign, -3, 2, -1, 0);
    check_slopes(tn_remainder, -7, 2, 1, 4);
    check_slopes(tn_fmod, -7, 2, 1, 3);
}

/* Exponents that are numbers take shorter formulas. */
static tn_array *power_of_number(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_power(xs[0], *(double *)user);
}

static void test_constant_exponents(void **state)
{
    (void)state;
    const double exponents[] = {0, 1, 2, 3, -1, 0.5, -2.5};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        TN_SCOPE {
            const tn_array *x = spread(TN_SHAPE(5), 0.4, 2, 0);
            check_gradients("power", power_of_number, (void *)&exponents[i], 1, &x);
        }
    const double bases[] = {-3, -0.0, 0, 1e-3, 7, INFINITY};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        for (size_t k = 0; k < sizeof bases / sizeof *bases; k++)
            TN_SCOPE {
                double y = tn_item(tn_power(tn_scalar(bases[k], .dtype = TN_FLOAT64), exponents[i])),
                       wanted = pow(bases[k], exponents[i]);
                assert_true(y == wanted     ? signbit(y) == signbit(wanted)
                            : isnan(wanted) ? isnan(y)
                                            : fabs(y / wanted - 1) < 1e-15);
            }
    TN_SCOPE {
        assert_int_equal(tn_item_int(tn_power(tn_scalar(100, .dtype = TN_INT8), 3)), 64); /* modulo 256 */
        assert_int_equal(tn_dtype_of(tn_power(tn_ones(TN_SHAPE(2), .dtype = TN_INT16), 2)), TN_INT16);
        assert_int_equal(tn_dtype_of(tn_power(tn_ones(TN_SHAPE(2), .dtype = TN_INT16), 2.0)), TN_FLOAT64);
    }
    tn_array *x = tn_requires_grad(tn_zeros(TN_SHAPE(1), .dtype = TN_FLOAT64));
    assert_int_equal(tn_backward(tn_add(tn_power(x, 2), tn_power(x, 0))), TN_OK);
    assert_values(tn_grad(x), 1, (double[]){0}, 0);
}

/* Elements that tie for the extreme share the gradient. */
static void test_ties(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(tn_from_floats((float[]){1, 5, 5, 2, 5}, 5));
    assert_int_equal(tn_backward(tn_max(x)), TN_OK);
    assert_values(tn_grad(x), 5, (double[]){0, 1 / 3., 1 / 3., 0, 1 / 3.}, 1e-7);
}

/* Gradients have the dtype of what they belong to. */
static void test_dtypes(void **state)
{
    (void)state;
    const tn_dtype dtypes[] = {TN_FLOAT16, TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            tn_array *a = tn_requires_grad(tn_full(TN_SHAPE(3, 1), 2, .dtype = dtypes[i]));
            tn_array *b = tn_requires_grad(tn_full(TN_SHAPE(4), 3, .dtype = dtypes[k]));
            assert_int_equal(tn_backward(tn_multiply(a, tn_exp(tn_subtract(b, 3)))), TN_OK);
            assert_int_equal(tn_dtype_of(tn_grad(a)), dtypes[i]);
            assert_int_equal(tn_dtype_of(tn_grad(b)), dtypes[k]);
            assert_values(tn_grad(a), 3, (double[]){4, 4, 4}, 0);
            assert_values(tn_grad(b), 4, (double[]){6, 6, 6, 6}, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_elementwise), TEST(test_reductions), TEST(test_product_of_zeros),
        TEST(test_edges),       TEST(test_ties),       TEST(test_constant_exponents),
        TEST(test_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
