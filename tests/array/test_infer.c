/* SPDX-License-Identifier: MIT */
/* The dtypes of elementwise functions against NumPy's, for every pair of operands; then what NumPy
 * has no table for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "array/build.h"
#include "tn_op_functions.h"

static tn__op op_of(const char *name)
{
    for (int op = 0; op < TN__OP_COUNT; op++)
        if (strcmp(tn__ops[op].name, name) == 0)
            return (tn__op)op;
    return TN__OP_ERROR;
}

/* An operand as infer.txt writes it. */
static tn_array *operand(const char *text)
{
    if (strcmp(text, "bool?") == 0)
        return tn_weak_bool(true);
    if (strcmp(text, "int?") == 0)
        return tn_weak_int(3);
    if (strcmp(text, "float?") == 0)
        return tn_weak_float(2.5);
    tn_dtype dtype = tn_dtype_parse(text);
    assert_true(dtype != TN_DTYPE_DEFAULT);
    return tn_ones(TN_SHAPE(2), .dtype = dtype);
}

static void dtypes_are_numpys(void **state)
{
    (void)state;
    const char *folder = getenv("TANSO_TEST_DATA");
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/infer.txt", folder ? folder : ".");
    FILE *file = fopen(path, "r");
    if (!file)
        skip();
    int rows = 0, wrong = 0;
    while (fgets(line, sizeof line, file)) {
        char name[64], word[3][32];
        int words = sscanf(line, "%63s %31s %31s %31s", name, word[0], word[1], word[2]) - 1;
        tn__op op = op_of(name);
        assert_int_not_equal(op, TN__OP_ERROR);
        assert_int_equal(words, tn__ops[op].arity + 1);
        TN_SCOPE {
            tn__call call = tn__enter();
            tn__node *a = tn__node_of(operand(word[0]), name),
                     *b = words == 3 ? tn__node_of(operand(word[1]), name) : NULL;
            tn__node *node = b ? tn__binary(op, a, b) : tn__unary(op, a);
            const char *got =
                tn__node_is_error(node) ? "error" : tn_dtype_name((tn_dtype)node->dtype);
            if (strcmp(got, word[words - 1]) != 0) {
                print_error("%s %s %s: NumPy gives %s, Tanso %s\n", name, word[0], b ? word[1] : "",
                            word[words - 1], got);
                wrong++;
            }
            tn__leave(call);
        }
        tn_clear_error();
        rows++;
    }
    fclose(file);
    assert_true(rows > 6000);
    assert_int_equal(wrong, 0);
}

static void a_number_never_widens(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(3), .dtype = TN_FLOAT32),
                 *h = tn_ones(TN_SHAPE(3), .dtype = TN_BFLOAT16);
        assert_int_equal(tn_dtype_of(tn_multiply(x, 2.0)), TN_FLOAT32);
        assert_int_equal(tn_dtype_of(tn_subtract(1, h)), TN_BFLOAT16);
        assert_int_equal(tn_dtype_of(tn_where(tn_less(x, 0), 0.0, h)), TN_BFLOAT16);
        assert_int_equal(tn_dtype_of(tn_add(h, tn_ones(TN_SHAPE(3), .dtype = TN_FLOAT16))),
                         TN_FLOAT32);
        assert_int_equal(tn_dtype_of(tn_exp(2.0)), TN_FLOAT32);
        assert_int_equal(tn_dtype_of(tn_exp(2)), TN_FLOAT32);
        assert_int_equal(tn_dtype_of(tn_add(1, 2)), TN_INT64);
        assert_int_equal(tn_dtype_of(tn_multiply(h, tn_add(1.0, 2.0))), TN_BFLOAT16);
        assert_int_equal(tn_dtype_of(tn_sum(2.0)), TN_FLOAT32);
        /* an ordinary 0-d array promotes as any array */
        assert_int_equal(tn_dtype_of(tn_multiply(x, tn_scalar(2.0, .dtype = TN_FLOAT64))),
                         TN_FLOAT64);
        assert_true(tn_ok());
    }
}

static void numbers_that_do_not_fit_are_errors(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(3), .dtype = TN_UINT8);
        assert_int_equal(tn_status_of(tn_add(x, 300)), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "300"));
        assert_non_null(strstr(tn_error(), "uint8"));
        tn_clear_error();
        assert_int_equal(tn_status_of(tn_maximum(x, -1)), TN_ERR_VALUE);
        assert_int_equal(tn_status_of(tn_power(tn_ones(TN_SHAPE(2), .dtype = TN_INT32), -1)),
                         TN_ERR_VALUE);
        tn_clear_error();
        assert_false(tn_is_error(tn_add(x, 255)));
        assert_false(tn_is_error(tn_add(tn_ones(TN_SHAPE(2), .dtype = TN_INT8), -128)));
        assert_false(tn_is_error(tn_power(tn_ones(TN_SHAPE(2)), -1)));
        /* comparisons have an answer */
        assert_int_equal(tn_dtype_of(tn_less(x, 300)), TN_BOOL);
        assert_true(tn_ok());
    }
}

static void bool_follows_logic(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *t = tn_ones(TN_SHAPE(2), .dtype = TN_BOOL);
        assert_int_equal(tn_dtype_of(tn_abs(t)), TN_BOOL);
        assert_int_equal(tn_dtype_of(tn_relu(t)), TN_INT8);
        assert_int_equal(tn_dtype_of(tn_sum(t)), TN_INT64);
        assert_int_equal(tn_dtype_of(tn_prod(t)), TN_INT64);
        assert_int_equal(tn_dtype_of(tn_max(t)), TN_BOOL);
        assert_int_equal(tn_dtype_of(tn_mean(t)), TN_FLOAT64);
        assert_int_equal(tn_dtype_of(tn_matmul(t, t)), TN_BOOL);
        assert_int_equal(tn_status_of(tn_negative(t)), TN_ERR_DTYPE);
        assert_non_null(strstr(tn_error(), "tn_logical_not"));
        tn_clear_error();
    }
}

static void reductions_choose_their_dtype(void **state)
{
    (void)state;
    static const struct {
        tn_dtype x, sum, mean;
    } rows[] = {{TN_INT8, TN_INT64, TN_FLOAT64},      {TN_INT64, TN_INT64, TN_FLOAT64},
                {TN_UINT16, TN_UINT64, TN_FLOAT64},   {TN_FLOAT16, TN_FLOAT16, TN_FLOAT16},
                {TN_FLOAT32, TN_FLOAT32, TN_FLOAT32}, {TN_BFLOAT16, TN_BFLOAT16, TN_BFLOAT16},
                {TN_FLOAT64, TN_FLOAT64, TN_FLOAT64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TN_SCOPE {
            tn_array *x = tn_ones(TN_SHAPE(2, 3), .dtype = rows[i].x);
            assert_int_equal(tn_dtype_of(tn_sum(x)), rows[i].sum);
            assert_int_equal(tn_dtype_of(tn_prod(x, .axis = TN_AXES(1))), rows[i].sum);
            assert_int_equal(tn_dtype_of(tn_mean(x)), rows[i].mean);
            assert_int_equal(tn_dtype_of(tn_var(x)), rows[i].mean);
            assert_int_equal(tn_dtype_of(tn_max(x)), rows[i].x);
            assert_int_equal(tn_dtype_of(tn_argmax(x)), TN_INT64);
            assert_int_equal(tn_dtype_of(tn_any(x)), TN_BOOL);
            assert_int_equal(tn_dtype_of(tn_sum(x, .dtype = TN_FLOAT64)), TN_FLOAT64);
        }
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_are_numpys),
        cmocka_unit_test(a_number_never_widens),
        cmocka_unit_test(numbers_that_do_not_fit_are_errors),
        cmocka_unit_test(bool_follows_logic),
        cmocka_unit_test(reductions_choose_their_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
