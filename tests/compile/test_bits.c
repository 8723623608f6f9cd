/* SPDX-License-Identifier: MIT */
/*
 * Every operation in every dtype that it computes in gives the same bits by the reference evaluator and by a compiled
 * kernel, and so do expressions fused and not. Elements are any bits at all, ends of the ranges, and numbers of
 * everyday size. Only NaNs may differ in their bits. (Draws need parameters that mean something: array.distribution.)
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "array/build.h"
#include "core/dtype.h"
#include "support/device.h"
#include "support/random.h"
#include "support/slice.h"
#include "tn_op_functions.h"

#define MOST    400 /* results at a time */
#define LENGTHS 4
#define ROWS    3

static test_random chance;

typedef struct outcome {
    tn_array *x[MOST];
    char *bytes[MOST], *name[MOST];
    int count;
} outcome;

/* ---- operands ---- */

static tn_dtype part_of(tn_dtype dtype) { return (tn_dtype)tn__dtypes[dtype].component; }

static tn__scalar number(tn_dtype dtype)
{
    static const double ends[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149, 1e200, -1e200, 1e30, 3e38, 127};
    tn__scalar any = {.bits = test_random_bits(&chance)};
    int kind = (int)test_random_int(&chance, 0, 3);
    if (dtype == TN_BOOL)
        return (tn__scalar){.bits = any.bits & 1};
    if (kind == 0)
        return any;
    double x = kind == 1 ? ends[any.bits % (sizeof ends / sizeof *ends)] : 8 * test_random_double(&chance) - 4;
    return tn_dtype_is_float(dtype) ? tn__scalar_from_double(x, dtype) : (tn__scalar){.i = (int64_t)fmod(x, 128)};
}

static tn_array *operand(tn_dtype dtype, int64_t n)
{
    size_t part = tn_dtype_size(part_of(dtype)), count = (size_t)(ROWS * n) * tn_dtype_size(dtype) / part;
    char *bytes = malloc(count * part + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * part, number(part_of(dtype)).bytes, part);
    tn_array *x = tn_from_host(bytes, TN_SHAPE(ROWS, n), dtype);
    assert_false(tn_is_error(x));
    free(bytes);
    return x;
}

/* ---- results ---- */

static void add(outcome *o, bool refused, const char *name, tn__node *node)
{
    assert_true(o->count < MOST);
    if (tn__node_is_error(node)) { /* bool has an expression for some that NumPy refuses */
        assert_true(refused);
        tn_clear_error();
        return;
    }
    size_t size = strlen(name) + 1;
    o->name[o->count] = malloc(size);
    assert_non_null(o->name[o->count]);
    memcpy(o->name[o->count], name, size);
    o->bytes[o->count] = NULL;
    o->x[o->count++] = tn__leave_array(tn__enter(), node);
}

static tn__node *mapped(tn__op op, tn__node *const in[3])
{
    if (tn__ops[op].props & TN_CONDITION)
        return tn__where(tn__binary(TN__OP_LESS, in[1], in[2]), in[0], in[1]);
    return tn__ops[op].arity == 1 ? tn__unary(op, in[0]) : tn__binary(op, in[0], in[1]);
}

static void add_operations(outcome *o, tn_dtype dtype, tn__node *const in[3])
{
    for (int op = 0; op < TN__OP_COUNT; op++) {
        const tn__op_info *info = &tn__ops[op];
        bool draws = strncmp(info->name, "draw_", 5) == 0;
        if (op == TN__OP_CAST || draws || !*info->expression || !tn__op_computes((tn__op)op, dtype))
            continue;
        if (info->kind == TN__KIND_MAP)
            add(o, dtype == TN_BOOL, info->name, mapped((tn__op)op, in));
        for (uint32_t axes = 1; info->kind == TN__KIND_REDUCE && axes < 4 && in[0]->shape->size; axes++)
            add(o, dtype == TN_BOOL, info->name, tn__reduce((tn__op)op, in[0], axes));
    }
    for (int to = 1; to < TN_DTYPE_COUNT; to++)
        add(o, false, tn_dtype_name((tn_dtype)to), tn__cast(in[0], (tn_dtype)to));
}

static tn__node *sum_of(tn__node *a, tn__node *b) { return tn__binary(TN__OP_ADD, a, b); }
static tn__node *difference(tn__node *a, tn__node *b) { return tn__binary(TN__OP_SUBTRACT, a, b); }
static tn__node *times(tn__node *a, tn__node *b) { return tn__binary(TN__OP_MULTIPLY, a, b); }

/* What a compiler that fuses for vectors only would fuse: a product and one added to or taken from it, side by side. */
static void add_fused(outcome *o, tn_dtype dtype, tn__node *const in[3])
{
    tn__node *product = times(in[0], in[1]);
    if (dtype == TN_FLOAT32 || dtype == TN_FLOAT64) {
        add(o, false, "parts", tn__complex(difference(product, in[2]), sum_of(product, in[2])));
        add(o, false, "parts turned", tn__complex(sum_of(product, in[2]), difference(in[2], product)));
        tn__node *apart = tn__complex(product, times(in[1], in[2]));
        add(o, false, "conjugate added", sum_of(apart, tn__conjugate(tn__complex(in[2], in[0]))));
    }
    if (!tn_dtype_is_complex(dtype))
        return;
    add(o, false, "product and conjugate", sum_of(product, tn__conjugate(in[2])));
    add(o, false, "difference of products", difference(product, times(in[1], in[2])));
    add(o, false, "quotient and sum", sum_of(tn__binary(TN__OP_DIVIDE, in[0], in[1]), product));
    add(o, false, "sum of products", tn__reduce(TN__OP_SUM, product, 2));
    add(o, false, "sum of products down", tn__reduce(TN__OP_SUM, times(product, in[2]), 1));
}

/* Each operation alone, or what can be fused. */
static void compute(outcome *o, tn_dtype dtype, tn_array *const x[3], tn_compile_mode mode, bool fusion)
{
    tn_set_compile(mode);
    tn_set_fusion(fusion);
    tn__call call = tn__enter();
    tn__node *const in[3] = {tn__node_of(x[0], "bits"), tn__node_of(x[1], "bits"), tn__node_of(x[2], "bits")};
    o->count = 0;
    (fusion ? add_fused : add_operations)(o, dtype, in);
    tn__leave(call);
    if (tn_eval_all(o->count, (const tn_array *const *)o->x) != TN_OK)
        fail_msg("%s: %s", tn_dtype_name(dtype), tn_error());
    for (int k = 0; k < o->count; k++) {
        size_t bytes = (size_t)tn_size(o->x[k]) * tn_dtype_size(tn_dtype_of(o->x[k]));
        o->bytes[k] = malloc(bytes + 1);
        assert_non_null(o->bytes[k]);
        assert_int_equal(tn_to_host(o->x[k], o->bytes[k], bytes), TN_OK);
    }
}

static void forget(outcome *o)
{
    for (int k = 0; k < o->count; k++) {
        free(o->bytes[k]);
        free(o->name[k]);
    }
}

static int wrong;

static void compare(tn_dtype dtype, const outcome *expected, const outcome *got, bool fusion)
{
    assert_int_equal(expected->count, got->count);
    for (int k = 0; k < got->count; k++) {
        tn_dtype part = part_of(tn_dtype_of(got->x[k]));
        size_t size = tn_dtype_size(part), count = (size_t)tn_size(got->x[k]) * tn_dtype_size(tn_dtype_of(got->x[k]));
        for (size_t i = 0; i < count; i += size) {
            tn__scalar a = {0}, b = {0};
            memcpy(a.bytes, expected->bytes[k] + i, size);
            memcpy(b.bytes, got->bytes[k] + i, size);
            double x = tn__scalar_to_double(a, part), y = tn__scalar_to_double(b, part);
            if (a.bits == b.bits || (tn_dtype_is_float(part) && isnan(x) && isnan(y)))
                continue;
            if (wrong++ < 20)
                print_error("%s of %s, %s: number %zu is %.17g, the reference evaluator's %.17g\n", got->name[k],
                            tn_dtype_name(dtype), fusion ? "fused" : "not fused", i / size, y, x);
            break;
        }
    }
}

static void same_bits_in(tn_dtype dtype)
{
    const int64_t lengths[LENGTHS] = {0, 1, 2, test_random_int(&chance, 90, 300)};
    for (int k = 0; k < LENGTHS; k++)
        TN_SCOPE {
            tn_array *x[3];
            static outcome expected, got;
            for (int j = 0; j < 3; j++)
                x[j] = operand(dtype, lengths[k]);
            for (int fusion = 0; fusion < 2; fusion++) {
                compute(&expected, dtype, x, TN_COMPILE_NEVER, fusion);
                compute(&got, dtype, x, TN_COMPILE_ALWAYS, fusion);
                compare(dtype, &expected, &got, fusion);
                forget(&got);
                forget(&expected);
            }
        }
}

static void every_operation_in_every_dtype(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("the bits of its compiled kernels");
    chance = test_random_new();
    for (int dtype = 1; dtype < TN_DTYPE_COUNT; dtype++)
        if (test_in_slice())
            same_bits_in((tn_dtype)dtype);
    assert_int_equal(wrong, 0);
}

/* (1e200 + 1e200 i)² has no real part that is a number, in one element as in a vector of them. */
static void square_beyond_the_range(void **state)
{
    (void)state;
    double large[2 * 33];
    for (int i = 0; i < 2 * 33; i++)
        large[i] = 1e200;
    for (int way = 0; way < 4; way++)
        TN_SCOPE {
            tn_set_compile(way % 2 ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
            const tn_array *x = tn_from_host(large, TN_SHAPE(33), TN_COMPLEX128);
            const tn_array *y = tn_from_host(large, TN_SHAPE(33), TN_COMPLEX128);
            const double *z = test_data(way / 2 ? tn_square(x) : tn_multiply(x, y));
            for (int i = 0; i < 33; i++)
                assert_true(z && isnan(z[2 * i]) && z[2 * i + 1] == INFINITY);
        }
}

/* ---- products that begin with 1, which is not neutral: (1+0j)(-0-0j) is 0-0j ---- */

enum { PRODUCTS_MOST = 128 };

static void parts_of(double *x, int count)
{
    static const double ends[] = {0, -0.0, 1, -1};
    for (int i = 0; i < 2 * count; i++)
        x[i] = ends[test_random_bits(&chance) % 4];
}

/* As it is, its rows backwards, or column after column in memory. */
static tn_array *laid(tn_array *x, int way)
{
    tn_array *turned = way == 2 ? tn_where(true, tn_transpose(x, TN_AXES(1, 0)), 0) : x;
    assert_int_equal(tn_eval(turned), TN_OK);
    return way == 2 ? tn_transpose(turned, TN_AXES(1, 0)) : way == 1 ? tn_flip(turned, TN_AXES(1)) : turned;
}

static void products(const double *parts, int64_t rows, int64_t length, double *to)
{
    static const tn_dtype dtypes[] = {TN_COMPLEX64, TN_COMPLEX128};
    const tn_array *y[12];
    int count = 0;
    for (int d = 0; d < 2; d++)
        for (int way = 0; way < 3; way++) {
            tn_array *x = tn_cast(tn_from_host(parts, TN_SHAPE(rows, length), TN_COMPLEX128), dtypes[d]);
            for (int axis = 0; axis < 2; axis++)
                y[count++] = tn_cast(tn_prod(laid(x, way), .axis = TN_AXES(axis)), TN_COMPLEX128);
        }
    assert_int_equal(tn_eval_all(count, y), TN_OK);
    for (int k = 0; k < count; k++, to += 2 * PRODUCTS_MOST)
        assert_int_equal(tn_to_host(y[k], to, (size_t)tn_size(y[k]) * 16), TN_OK);
}

/* Down columns in turn, as NumPy does. */
static void products_in_turn(const double *parts, int64_t rows, int64_t length, double *to)
{
    for (int64_t i = 0; i < length; i++) {
        double re = 1, im = 0;
        for (int64_t k = 0; k < rows; k++) {
            const double *x = parts + 2 * (k * length + i);
            double real = re * x[0] - im * x[1];
            im = re * x[1] + im * x[0];
            re = real;
        }
        to[2 * i] = re, to[2 * i + 1] = im;
    }
}

static void signs_of_complex_products(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("the bits of its compiled kernels");
    static const int64_t shape[][2] = {{96, 3}, {40, 3}, {96, 7}, {40, 7}, {3, 100}, {9, 16}, {5, 40}};
    chance = test_random_new();
    static double parts[2 * 1000], expected[2 * PRODUCTS_MOST], way[2][12][2 * PRODUCTS_MOST];
    for (size_t k = 0; k < sizeof shape / sizeof *shape; k++)
        TN_SCOPE {
            if (!test_in_slice())
                continue;
            int64_t rows = shape[k][0], length = shape[k][1];
            parts_of(parts, (int)(rows * length));
            products_in_turn(parts, rows, length, expected);
            for (int compiled = 0; compiled < 2; compiled++) {
                tn_set_compile(compiled ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
                products(parts, rows, length, way[compiled][0]);
            }
            for (int i = 0; i < 12; i++)
                assert_memory_equal(way[0][i], way[1][i], (size_t)(i % 2 ? rows : length) * 16);
            assert_memory_equal(way[0][0], expected, (size_t)length * 16);
        }
}

static int restore(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_AUTO);
    tn_set_fusion(true);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_operation_in_every_dtype, restore),
        cmocka_unit_test_teardown(square_beyond_the_range, restore),
        cmocka_unit_test_teardown(signs_of_complex_products, restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
