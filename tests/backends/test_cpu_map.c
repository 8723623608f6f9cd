/* SPDX-License-Identifier: MIT */
/* Elementwise operation steps on the CPU: every operation of the table, against libm in double and plain loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso/device.h>

#include "core/dtype.h"
#include "cpu_steps.h"
#include "ops/ops.h"
#include "tn_op_functions.h"

#define N 1001

/* x as a number, from memory of a dtype. */
static double number(const void *memory, int64_t i, tn_dtype dtype)
{
    tn__scalar scalar = {.bits = 0};
    size_t size = tn_dtype_size(dtype);
    memcpy(scalar.bytes, (const char *)memory + i * (int64_t)size, size);
    return tn__scalar_to_double(scalar, dtype);
}

static void put(void *memory, int64_t i, tn_dtype dtype, double value)
{
    tn__scalar scalar = tn__scalar_from_double(value, dtype);
    size_t size = tn_dtype_size(dtype);
    memcpy((char *)memory + i * (int64_t)size, scalar.bytes, size);
}

static double sigmoid(double a) { return 1 / (1 + exp(-a)); }
static double softplus(double a) { return log1p(exp(a)); }
static double gelu(double a) { return a * (1 + erf(a / sqrt(2))) / 2; }
static double relu(double a) { return a > 0 ? a : 0; }
static double square(double a) { return a * a; }
static double reciprocal(double a) { return 1 / a; }
static double rsqrt(double a) { return 1 / sqrt(a); }
static double negative(double a) { return -a; }
static double sign(double a) { return (a > 0) - (a < 0); }
static double same(double a) { return a; }
static double is_negative(double a) { return signbit(a) != 0; }
static double is_nan(double a) { return isnan(a); }
static double is_finite(double a) { return isfinite(a); }

/* Functions of one real number, and the range to try them on. */
static const struct {
    int op;
    double (*f)(double);
    double low, high;
} unary[] = {
    {TN__OP_COPY, same, -5, 5},        {TN__OP_NEGATIVE, negative, -5, 5}, {TN__OP_ABS, fabs, -5, 5},
    {TN__OP_SIGN, sign, -5, 5},        {TN__OP_SQUARE, square, -5, 5},     {TN__OP_RECIPROCAL, reciprocal, 0.1, 5},
    {TN__OP_EXP, exp, -9, 9},          {TN__OP_EXP2, exp2, -9, 9},         {TN__OP_EXPM1, expm1, -5, 5},
    {TN__OP_LOG, log, 0.01, 90},       {TN__OP_LOG2, log2, 0.01, 90},      {TN__OP_LOG10, log10, 0.01, 90},
    {TN__OP_LOG1P, log1p, -0.9, 90},   {TN__OP_SQRT, sqrt, 0, 90},         {TN__OP_RSQRT, rsqrt, 0.1, 90},
    {TN__OP_CBRT, cbrt, -90, 90},      {TN__OP_SIN, sin, -9, 9},           {TN__OP_COS, cos, -9, 9},
    {TN__OP_TAN, tan, -1.4, 1.4},      {TN__OP_ARCSIN, asin, -1, 1},       {TN__OP_ARCCOS, acos, -1, 1},
    {TN__OP_ARCTAN, atan, -9, 9},      {TN__OP_SINH, sinh, -5, 5},         {TN__OP_COSH, cosh, -5, 5},
    {TN__OP_TANH, tanh, -5, 5},        {TN__OP_ARCSINH, asinh, -9, 9},     {TN__OP_ARCCOSH, acosh, 1.1, 9},
    {TN__OP_ARCTANH, atanh, -0.9, 0.9}, {TN__OP_ERF, erf, -3, 3},          {TN__OP_ERFC, erfc, -3, 3},
    {TN__OP_SIGMOID, sigmoid, -9, 9},  {TN__OP_SOFTPLUS, softplus, -9, 9}, {TN__OP_RELU, relu, -5, 5},
    {TN__OP_GELU, gelu, -4, 4},        {TN__OP_FLOOR, floor, -9, 9},       {TN__OP_CEIL, ceil, -9, 9},
    {TN__OP_TRUNC, trunc, -9, 9},      {TN__OP_RINT, rint, -9, 9},         {TN__OP_ISNAN, is_nan, -9, 9},
    {TN__OP_ISINF, is_nan, -9, 9},     {TN__OP_ISFINITE, is_finite, -9, 9}, {TN__OP_SIGNBIT, is_negative, -9, 9},
};

static bool gives_bool(int op)
{
    return tn__ops[op].result == TN__RESULT_BOOL;
}

static void test_unary(void **state)
{
    (void)state;
    static const struct {
        tn_dtype dtype;
        double tolerance;
    } dtypes[] = {{TN_FLOAT64, 1e-12}, {TN_FLOAT32, 4e-6}, {TN_FLOAT16, 2e-3}, {TN_BFLOAT16, 1.6e-2}};
    for (size_t u = 0; u < sizeof(unary) / sizeof(*unary); u++)
        for (size_t d = 0; d < sizeof(dtypes) / sizeof(*dtypes); d++) {
            tn_dtype dtype = dtypes[d].dtype, result = gives_bool(unary[u].op) ? TN_BOOL : dtype;
            static double in[N], out[N];
            for (int i = 0; i < N; i++)
                put(in, i, dtype, step_uniform(unary[u].low, unary[u].high));
            one_step step = step_of(unary[u].op, dtype);
            step_operand(&step, out, result, 1, (int64_t[]){N}, NULL, 0);
            step_operand(&step, in, dtype, 1, (int64_t[]){N}, NULL, 0);
            assert_int_equal(step_run(&step), TN_OK);
            for (int i = 0; i < N; i++) {
                double expected = unary[u].f(number(in, i, dtype)), got = number(out, i, result);
                double error = fabs(got - expected), bound = dtypes[d].tolerance * (fabs(expected) + 0.05);
                if (!(error <= bound))
                    fail_msg("%s %s(%.9g) = %.9g, expected %.9g", tn_dtype_name(dtype), tn__ops[unary[u].op].name,
                             number(in, i, dtype), got, expected);
            }
        }
}

static double add(double a, double b) { return a + b; }
static double subtract(double a, double b) { return a - b; }
static double multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return a / b; }
static double floor_divide(double a, double b) { return b == 0 ? 0 : floor(a / b); }
static double remainder_of(double a, double b) { return b == 0 ? 0 : a - b * floor(a / b); }
static double c_fmod(double a, double b) { return b == 0 ? 0 : fmod(a, b); }
static double equal(double a, double b) { return a == b; }
static double not_equal(double a, double b) { return a != b; }
static double less(double a, double b) { return a < b; }
static double less_equal(double a, double b) { return a <= b; }
static double greater(double a, double b) { return a > b; }
static double greater_equal(double a, double b) { return a >= b; }
static double logaddexp(double a, double b) { return log(exp(a) + exp(b)); }
static double and(double a, double b) { return (double)((int64_t)a & (int64_t)b); }
static double or(double a, double b) { return (double)((int64_t)a | (int64_t)b); }
static double xor(double a, double b) { return (double)((int64_t)a ^ (int64_t)b); }
static double shift_left(double a, double b) { return ldexp(a, (int)b); }
static double shift_right(double a, double b) { return floor(ldexp(a, -(int)b)); }

/* Whole numbers from low to high of both operands keep every result exact in the narrowest dtype tried. */
static const struct {
    int op;
    double (*f)(double, double);
    int low, high, second_low, second_high;
} binary[] = {
    {TN__OP_ADD, add, 0, 60, 0, 60},           {TN__OP_SUBTRACT, subtract, 60, 99, 0, 60},
    {TN__OP_MULTIPLY, multiply, 0, 11, 0, 11}, {TN__OP_DIVIDE, divide, -50, 50, 1, 1},
    {TN__OP_FLOOR_DIVIDE, floor_divide, 0, 99, 1, 9}, {TN__OP_REMAINDER, remainder_of, 0, 99, 1, 9},
    {TN__OP_FMOD, c_fmod, 0, 99, 1, 9},        {TN__OP_POWER, pow, 0, 4, 0, 3},
    {TN__OP_MAXIMUM, fmax, 0, 99, 0, 99},      {TN__OP_MINIMUM, fmin, 0, 99, 0, 99},
    {TN__OP_FMAX, fmax, 0, 99, 0, 99},         {TN__OP_FMIN, fmin, 0, 99, 0, 99},
    {TN__OP_ARCTAN2, atan2, -9, 9, 1, 9},      {TN__OP_HYPOT, hypot, -9, 9, 0, 0},
    {TN__OP_COPYSIGN, copysign, -9, 9, -9, -1}, {TN__OP_LOGADDEXP, logaddexp, -9, 9, -9, 9},
    {TN__OP_EQUAL, equal, 0, 3, 0, 3},         {TN__OP_NOT_EQUAL, not_equal, 0, 3, 0, 3},
    {TN__OP_LESS, less, 0, 3, 0, 3},           {TN__OP_LESS_EQUAL, less_equal, 0, 3, 0, 3},
    {TN__OP_GREATER, greater, 0, 3, 0, 3},     {TN__OP_GREATER_EQUAL, greater_equal, 0, 3, 0, 3},
    {TN__OP_BITWISE_AND, and, 0, 120, 0, 120}, {TN__OP_BITWISE_OR, or, 0, 120, 0, 120},
    {TN__OP_BITWISE_XOR, xor, 0, 120, 0, 120}, {TN__OP_LEFT_SHIFT, shift_left, 0, 7, 0, 4},
    {TN__OP_RIGHT_SHIFT, shift_right, 0, 120, 0, 9},
};

static void test_binary(void **state)
{
    (void)state;
    for (size_t u = 0; u < sizeof(binary) / sizeof(*binary); u++)
        for (tn_dtype dtype = TN_INT8; dtype <= TN_FLOAT64; dtype++) {
            tn_dtype compute = tn__dtypes[dtype].compute, result = gives_bool(binary[u].op) ? TN_BOOL : dtype;
            if (!tn__op_computes(binary[u].op, compute))
                continue;
            static double a[N], b[N], out[N];
            for (int i = 0; i < N; i++) {
                put(a, i, dtype, (double)step_between(binary[u].low, binary[u].high));
                put(b, i, dtype, (double)step_between(binary[u].second_low, binary[u].second_high));
            }
            one_step step = step_of(binary[u].op, dtype);
            step_operand(&step, out, result, 1, (int64_t[]){N}, NULL, 0);
            step_operand(&step, a, dtype, 1, (int64_t[]){N}, NULL, 0);
            step_operand(&step, b, dtype, 1, (int64_t[]){N}, NULL, 0);
            assert_int_equal(step_run(&step), TN_OK);
            for (int i = 0; i < N; i++) {
                double expected = binary[u].f(number(a, i, dtype), number(b, i, dtype)), got = number(out, i, result);
                double bound = tn_dtype_is_float(dtype) ? (dtype < TN_FLOAT32 ? 1e-2 : 1e-6) * fabs(expected) : 0;
                if (!(fabs(got - expected) <= bound + (tn_dtype_is_float(dtype) ? 1e-6 : 0)))
                    fail_msg("%s %s(%g, %g) = %.9g, expected %.9g", tn_dtype_name(dtype), tn__ops[binary[u].op].name,
                             number(a, i, dtype), number(b, i, dtype), got, expected);
            }
        }
}

/* Whatever the table promises, the backend runs. */
static void test_every_operation(void **state)
{
    (void)state;
    for (int op = 0; op < TN__OP_COUNT; op++)
        for (tn_dtype dtype = TN_BOOL; dtype <= TN_FLOAT64; dtype++) {
            const tn__op_info *info = &tn__ops[op];
            if (info->kind != TN__KIND_MAP || !tn__op_computes(op, dtype) || op == TN__OP_CAST)
                continue;
            uint64_t memory[4][3] = {{0}};
            one_step step = step_of(op, dtype);
            step_operand(&step, memory[0], gives_bool(op) ? TN_BOOL : dtype, 1, (int64_t[]){3}, NULL, 0);
            for (int k = 0; k < info->arity; k++)
                step_operand(&step, memory[1 + k], k == 0 && (info->props & TN_CONDITION) ? TN_BOOL : dtype, 1,
                             (int64_t[]){3}, NULL, 0);
            if (step_run(&step) != TN_OK)
                fail_msg("%s of %s: %s", info->name, tn_dtype_name(dtype), tn_error());
        }
}

static void test_bools_and_where(void **state)
{
    (void)state;
    unsigned char a[4] = {0, 0, 1, 1}, b[4] = {0, 1, 0, 1}, out[4];
    static const struct {
        int op;
        unsigned char expected[4];
    } rows[] = {{TN__OP_LOGICAL_AND, {0, 0, 0, 1}}, {TN__OP_LOGICAL_OR, {0, 1, 1, 1}},
                {TN__OP_LOGICAL_XOR, {0, 1, 1, 0}}, {TN__OP_BITWISE_AND, {0, 0, 0, 1}},
                {TN__OP_MAXIMUM, {0, 1, 1, 1}},     {TN__OP_LESS, {0, 1, 0, 0}}};
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        one_step step = step_of(rows[r].op, TN_BOOL);
        step_operand(&step, out, TN_BOOL, 1, (int64_t[]){4}, NULL, 0);
        step_operand(&step, a, TN_BOOL, 1, (int64_t[]){4}, NULL, 0);
        step_operand(&step, b, TN_BOOL, 1, (int64_t[]){4}, NULL, 0);
        assert_int_equal(step_run(&step), TN_OK);
        assert_memory_equal(out, rows[r].expected, 4);
    }
    for (int k = 0; k < 2; k++) {
        one_step step = step_of(k ? TN__OP_INVERT : TN__OP_LOGICAL_NOT, TN_BOOL);
        step_operand(&step, out, TN_BOOL, 1, (int64_t[]){4}, NULL, 0);
        step_operand(&step, a, TN_BOOL, 1, (int64_t[]){4}, NULL, 0);
        assert_int_equal(step_run(&step), TN_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(out[i], !a[i]);
    }
    for (tn_dtype dtype = TN_INT8; dtype <= TN_FLOAT64; dtype++) {
        double yes[4], no[4], chosen[4];
        for (int i = 0; i < 4; i++) {
            put(yes, i, dtype, 10 + i);
            put(no, i, dtype, 20 + i);
        }
        one_step step = step_of(TN__OP_WHERE, dtype);
        step_operand(&step, chosen, dtype, 1, (int64_t[]){4}, NULL, 0);
        step_operand(&step, b, TN_BOOL, 1, (int64_t[]){4}, NULL, 0);
        step_operand(&step, yes, dtype, 1, (int64_t[]){4}, NULL, 0);
        step_operand(&step, no, dtype, 1, (int64_t[]){4}, NULL, 0);
        assert_int_equal(step_run(&step), TN_OK);
        for (int i = 0; i < 4; i++)
            assert_float_equal(number(chosen, i, dtype), b[i] ? 10 + i : 20 + i, 0);
    }
}

/* Random windows with strides of every sign; the elements around the output's window stay as they were. */
static void test_strides(void **state)
{
    (void)state;
    enum { POOL = 200000 };
    static float pool[3][POOL], before[POOL];
    for (int round = 0; round < 300; round++) {
        int ndim = (int)step_between(0, 5);
        int64_t dim[8], stride[3][8], low[3] = {0, 0, 0}, size = 1;
        for (int i = ndim - 1; i >= 0; i--) {
            dim[i] = step_between(round % 10 == 0 ? 0 : 1, 6);
            size *= dim[i];
        }
        for (int k = 0; k < 3; k++) { /* a shuffled dense layout with gaps, some axes reversed */
            int64_t step = step_between(1, 2);
            int order[8];
            for (int i = 0; i < ndim; i++) {
                int j = (int)step_between(0, i);
                order[i] = order[j];
                order[j] = i;
            }
            for (int i = 0; i < ndim; i++) {
                int axis = order[i];
                stride[k][axis] = step;
                step *= dim[axis] ? dim[axis] : 1;
                if (step_between(0, 2) == 0)
                    stride[k][axis] = -stride[k][axis];
                if (k > 0 && step_between(0, 3) == 0)
                    stride[k][axis] = 0;
                if (stride[k][axis] < 0 && dim[axis] > 0)
                    low[k] -= stride[k][axis] * (dim[axis] - 1);
            }
        }
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < POOL; i++)
                pool[k][i] = (float)step_between(-1000, 1000);
        memcpy(before, pool[0], sizeof(before));
        one_step step = step_of(TN__OP_SUBTRACT, TN_FLOAT32);
        for (int k = 0; k < 3; k++)
            step_operand(&step, pool[k], TN_FLOAT32, ndim, dim, stride[k], low[k]);
        assert_int_equal(step_run(&step), TN_OK);
        for (int64_t e = 0; e < size; e++) {
            int64_t place[3] = {low[0], low[1], low[2]}, rest = e;
            for (int i = ndim - 1; i >= 0; rest /= dim[i], i--)
                for (int k = 0; k < 3; k++)
                    place[k] += rest % dim[i] * stride[k][i];
            float expected = pool[1][place[1]] - pool[2][place[2]];
            assert_true(pool[0][place[0]] == expected);
            before[place[0]] = expected;
        }
        assert_memory_equal(pool[0], before, sizeof(before));
    }
}

/* Large enough for several threads, and in place. */
static void test_large_in_place(void **state)
{
    (void)state;
    int64_t n = 300001;
    float *x = malloc(n * sizeof(*x)), *y = malloc(n * sizeof(*y));
    assert_true(x && y);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(i % 1000);
        y[i] = (float)(i % 7);
    }
    one_step step = step_of(TN__OP_MULTIPLY, TN_FLOAT32);
    step_operand(&step, x, TN_FLOAT32, 1, &n, NULL, 0);
    step_operand(&step, x, TN_FLOAT32, 1, &n, NULL, 0);
    step_operand(&step, y, TN_FLOAT32, 1, &n, NULL, 0);
    assert_int_equal(step_run(&step), TN_OK);
    for (int64_t i = 0; i < n; i++)
        assert_true(x[i] == (float)((i % 1000) * (i % 7)));
    free(x);
    free(y);
}

static void test_casts(void **state)
{
    (void)state;
    for (tn_dtype from = TN_BOOL; from <= TN_FLOAT64; from++)
        for (tn_dtype to = TN_BOOL; to <= TN_FLOAT64; to++) {
            double in[77], out[77] = {0};
            for (int i = 0; i < 77; i++)
                put(in, i, from, from == TN_BOOL ? i % 2 : i);
            one_step step = step_of(TN__OP_CAST, to);
            step_operand(&step, out, to, 2, (int64_t[]){7, 11}, NULL, 0);
            step_operand(&step, in, from, 2, (int64_t[]){7, 11}, (int64_t[]){1, 7}, 0);
            assert_int_equal(step_run(&step), TN_OK);
            for (int i = 0; i < 77; i++) {
                double value = number(in, i % 11 * 7 + i / 11, from);
                assert_float_equal(number(out, i, to), to == TN_BOOL ? value != 0 : value, 0);
            }
        }
}

static void test_const_and_generate(void **state)
{
    (void)state;
    float out[60];
    for (int i = 0; i < 60; i++)
        out[i] = -1;
    tn__scalar value = tn__scalar_from_double(2.5, TN_FLOAT32);
    one_step step = step_of(TN__OP_CONST, TN_FLOAT32);
    step_operand(&step, out, TN_FLOAT32, 2, (int64_t[]){3, 4}, (int64_t[]){20, 2}, 1);
    step_scalar(&step, TN_FLOAT32, value.bits);
    assert_int_equal(step_run(&step), TN_OK);
    for (int i = 0; i < 60; i++)
        assert_true(out[i] == (i % 20 < 9 && i % 2 == 1 ? 2.5f : -1));

    int64_t index[24];
    step = step_of(TN__OP_IOTA, TN_INT64);
    step_operand(&step, index, TN_INT64, 2, (int64_t[]){4, 6}, (int64_t[]){1, 4}, 0);
    assert_int_equal(step_run(&step), TN_OK);
    for (int i = 0; i < 24; i++)
        assert_int_equal(index[i % 6 * 4 + i / 6], i);

    /* A stream's values do not depend on the shape, and fill [0, 1). */
    enum { MANY = 40000 };
    static float line[MANY], square_shaped[MANY];
    for (int k = 0; k < 2; k++) {
        step = step_of(TN__OP_RANDOM_UNIFORM, TN_FLOAT32);
        step_operand(&step, k ? square_shaped : line, TN_FLOAT32, 2, k ? (int64_t[]){200, 200} : (int64_t[]){1, MANY},
                     NULL, 0);
        step_scalar(&step, TN_UINT64, 42);
        step_scalar(&step, TN_UINT64, 7);
        assert_int_equal(step_run(&step), TN_OK);
    }
    assert_memory_equal(line, square_shaped, sizeof(line));
    double mean = 0;
    for (int i = 0; i < MANY; i++) {
        assert_true(line[i] >= 0 && line[i] < 1);
        mean += line[i] / MANY;
    }
    assert_true(fabs(mean - 0.5) < 0.01);
}

static void test_refusals(void **state)
{
    (void)state;
    float x[2] = {0};
    one_step step = step_of(TN__OP_INVERT, TN_FLOAT32);
    step_operand(&step, x, TN_FLOAT32, 1, (int64_t[]){2}, NULL, 0);
    step_operand(&step, x, TN_FLOAT32, 1, (int64_t[]){2}, NULL, 0);
    assert_int_equal(step_run(&step), TN_ERR_UNSUPPORTED);
    assert_non_null(strstr(tn_error(), "float32"));
    tn_clear_error();
    step = step_of(TN__OP_RESHAPE, TN_FLOAT32);
    step_operand(&step, x, TN_FLOAT32, 1, (int64_t[]){2}, NULL, 0);
    assert_int_equal(step_run(&step), TN_ERR_INTERNAL);
    tn_clear_error();
    step = step_of(TN__OP_ADD, TN_FLOAT32);
    step_operand(&step, x, TN_FLOAT32, 1, (int64_t[]){2}, NULL, 0);
    assert_int_equal(step_run(&step), TN_ERR_INTERNAL);
    tn_clear_error();
}

int main(void)
{
    tn_set_threads(3); /* whatever the machine has */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_every_operation),
        cmocka_unit_test(test_bools_and_where),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_large_in_place),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_const_and_generate),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
