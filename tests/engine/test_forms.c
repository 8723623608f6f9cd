/* SPDX-License-Identifier: MIT */
/*
 * Kernels of each form that loops take: elementwise, tiles, rows, columns, pieces of them, several passes, values that
 * stay in registers and in shared memory, positions; and the products, copies and random numbers between them. Operands
 * are whole numbers so small that every result is exact in any order, so a device's are those of the CPU's evaluator,
 * which knows no loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { MOST = 1 << 18 };
static float number[2][MOST];

typedef tn_array *(*expression)(const tn_array *x, const tn_array *y);

static tn_array *mixed(const tn_array *x, const tn_array *y)
{
    tn_array *row = tn_sum(y, .axis = TN_AXES(0), .keepdims = true);
    return tn_where(tn_greater(x, y), tn_subtract(tn_multiply(x, y), row), tn_abs(x));
}
static tn_array *half(const tn_array *x, const tn_array *y)
{ return tn_add(tn_cast(x, TN_FLOAT16), tn_cast(tn_cast(y, TN_INT8), TN_FLOAT16)); }
static tn_array *whole(const tn_array *x, const tn_array *y)
{ return tn_remainder(tn_cast(x, TN_INT64), tn_add(tn_abs(tn_cast(y, TN_INT32)), 1)); }
static tn_array *turned(const tn_array *x, const tn_array *y)
{ return tn_add(tn_transpose(x, TN_AXES(1, 0)), tn_multiply(tn_transpose(y, TN_AXES(1, 0)), 2)); }
static tn_array *rows(const tn_array *x, const tn_array *y) { return tn_sum(tn_add(x, y), .axis = TN_AXES(1)); }
static tn_array *columns(const tn_array *x, const tn_array *y)
{ return tn_sum(tn_multiply(x, y), .axis = TN_AXES(0)); }
static tn_array *all(const tn_array *x, const tn_array *y) { return tn_sum(tn_subtract(x, y)); }
static tn_array *row_passes(const tn_array *x, const tn_array *y)
{
    tn_array *apart = tn_subtract(x, tn_max(x, .axis = TN_AXES(1), .keepdims = true));
    return tn_add(apart, tn_add(y, tn_sum(apart, .axis = TN_AXES(1), .keepdims = true)));
}
static tn_array *column_passes(const tn_array *x, const tn_array *y)
{
    tn_array *apart = tn_subtract(x, tn_min(x, .axis = TN_AXES(0), .keepdims = true));
    return tn_subtract(tn_add(apart, y), tn_sum(apart, .axis = TN_AXES(0), .keepdims = true));
}
static tn_array *row_place(const tn_array *x, const tn_array *y) { return tn_argmax(tn_add(x, y), .axis = TN_AXES(1)); }
static tn_array *column_place(const tn_array *x, const tn_array *y)
{ return tn_argmin(tn_add(x, y), .axis = TN_AXES(0)); }
static tn_array *chosen(const tn_array *x, const tn_array *y)
{ return tn_multiply(tn_take(x, tn_cast(tn_abs(tn_reshape(y, TN_SHAPE(-1))), TN_INT32), 0), 3); }
static tn_array *product(const tn_array *x, const tn_array *y)
{ return tn_matmul(x, tn_transpose(y, TN_AXES(1, 0))); }
static tn_array *whole_product(const tn_array *x, const tn_array *y)
{ return tn_matmul(tn_cast(x, TN_INT16), tn_transpose(tn_cast(y, TN_INT16), TN_AXES(1, 0))); }
static tn_array *joined(const tn_array *x, const tn_array *y)
{ return tn_concatenate(TN_ARRAYS(tn_flip(x, TN_AXES(1)), y, tn_zeros_like(x)), 1); }

static const struct {
    const char *name;
    expression of;
    int64_t dim[2];
} cases[] = {
    {"elementwise", mixed, {7, 37}},           {"elementwise, vectors", mixed, {8, 64}},
    {"elementwise, one", mixed, {1, 1}},       {"elementwise, empty", mixed, {0, 5}},
    {"float16", half, {5, 33}},                {"integers", whole, {5, 33}},
    {"tiles", turned, {259, 260}},             {"rows, short", rows, {70, 3}},
    {"rows, lanes", rows, {9, 117}},           {"rows, warps", rows, {5, 4004}},
    {"rows, none", rows, {4, 0}},              {"rows, pieces", rows, {2, 70001}},
    {"columns", columns, {117, 9}},            {"columns, none", columns, {0, 4}},
    {"columns, pieces", columns, {35001, 4}},  {"everything", all, {211, 313}},
    {"row passes", row_passes, {6, 100}},      {"row passes, long", row_passes, {2, 40003}},
    {"column passes", column_passes, {50, 12}}, {"row positions", row_place, {6, 203}},
    {"column positions", column_place, {203, 6}}, {"gather", chosen, {9, 4}},
    {"product", product, {17, 5}},             {"integer product", whole_product, {3, 19}},
    {"joined", joined, {5, 7}},
};
enum { CASES = sizeof cases / sizeof *cases };

static tn_array *operand(int k, int c, tn_device device)
{
    tn_array *x = tn_reshape(tn_from_floats(number[k], cases[c].dim[0] * cases[c].dim[1]),
                             TN_SHAPE(cases[c].dim[0], cases[c].dim[1]));
    return tn_to(x, device);
}

static void draw(void)
{
    test_random random = test_random_new();
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < MOST; i++)
            number[k][i] = (float)test_random_int(&random, -8, 8);
}

static void test_forms(void **state)
{
    (void)state;
    draw();
    for (int c = 0; c < CASES; c++)
        TN_SCOPE {
            tn_set_compile(TN_COMPILE_NEVER);
            tn_array *expected = cases[c].of(operand(0, c, tn_cpu()), operand(1, c, tn_cpu()));
            assert_int_equal(tn_eval(expected), TN_OK);
            tn_set_compile(TN_COMPILE_ALWAYS);
            tn_array *got = tn_to(cases[c].of(operand(0, c, test_device()), operand(1, c, test_device())), tn_cpu());
            if (!tn_array_equal(got, expected, false))
                fail_msg("%s: %s", cases[c].name, tn_ok() ? "other numbers" : tn_error());
        }
    tn_set_compile(TN_COMPILE_AUTO);
    assert_true(tn_ok());
}

/* An index beyond the end is told of, and names the index; what is computed afterwards is not concerned. */
static void test_beyond(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_set_compile(TN_COMPILE_ALWAYS);
        tn_array *x = tn_to(tn_arange(0, 12, 1), test_device()), *at = tn_to(tn_arange(9, 14, 1), test_device());
        tn_array *y = tn_multiply(tn_take(tn_cast(x, TN_FLOAT32), at, 0), 2);
        assert_int_equal(test_eval(y), TN_ERR_INDEX);
        assert_true(strstr(tn_error(), "12") || strstr(tn_error(), "13"));
        tn_clear_error();
        assert_true(tn_item(tn_sum(tn_cast(x, TN_FLOAT32))) == 66);
        tn_set_compile(TN_COMPILE_AUTO);
    }
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_beyond)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
