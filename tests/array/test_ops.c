/* SPDX-License-Identifier: MIT */
/* The table of operations that ops.def gives. */
#include "array/graphs.h"
#include "tn_op_functions.h"

static void every_row_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < TN__OP_COUNT; i++) {
        const tn__op_info *op = &tn__ops[i];
        assert_non_null(op->name);
        assert_true(op->doc && *op->doc);
        assert_true(op->arity <= TN__MAX_ARITY);
        /* say it themselves */
        bool users = op->kind == TN__KIND_USER || op->kind == TN__KIND_CUSTOM || i == TN__OP_USER_REDUCE;
        bool computed =
            !users && (op->kind == TN__KIND_MAP || op->kind == TN__KIND_REDUCE || op->kind == TN__KIND_GENERATE);
        assert_int_equal(*op->expression != 0, computed);
        assert_int_equal(*op->identity != 0, computed && op->kind == TN__KIND_REDUCE);
        assert_int_equal(op->arity == 0, op->kind == TN__KIND_LEAF || op->kind == TN__KIND_CONST ||
                                             op->kind == TN__KIND_GENERATE || op->kind == TN__KIND_USER ||
                                             i == TN__OP_CUSTOM);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(op->name, tn__ops[j].name);
    }
}

static void rows_are_those_of_the_definition(void **state)
{
    (void)state;
    const tn__op_info *relu = &tn__ops[TN__OP_RELU], *where = &tn__ops[TN__OP_WHERE], *max = &tn__ops[TN__OP_MAX];
    assert_string_equal(relu->name, "relu");
    assert_string_equal(relu->expression, "F(max)(a, 0)");
    assert_int_equal(relu->types, TN__TYPES_NUMBERS);
    assert_string_equal(where->expression, "a ? b : c");
    assert_int_equal(where->arity, 3);
    assert_int_equal(where->props, TN_CONDITION);
    assert_string_equal(max->identity, "F(lowest)()");
    assert_int_equal(max->kind, TN__KIND_REDUCE);
    assert_int_equal(tn__ops[TN__OP_ARGMAX].result, TN__RESULT_INT64);
    assert_int_equal(tn__ops[TN__OP_LESS].result, TN__RESULT_BOOL);
    assert_int_equal(tn__ops[TN__OP_SCATTER_ADD].kind, TN__KIND_SCATTER);
    assert_int_equal(tn__ops[TN__OP_IOTA].kind, TN__KIND_GENERATE);
}

static void differentiable_is_having_a_rule(void **state)
{
    (void)state;
    static const tn__op with[] = {TN__OP_COPY, TN__OP_ADD, TN__OP_WHERE, TN__OP_SUM, TN__OP_RESHAPE, TN__OP_MATMUL};
    static const tn__op without[] = {TN__OP_FLOOR, TN__OP_LESS, TN__OP_ANY, TN__OP_ARGMAX, TN__OP_CONST, TN__OP_IOTA};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        assert_true(tn__ops[with[i]].differentiable);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        assert_false(tn__ops[without[i]].differentiable);
}

static void dtypes_computed_in(void **state)
{
    (void)state;
    assert_true(tn__op_computes(TN__OP_MAXIMUM, TN_BOOL));
    assert_false(tn__op_computes(TN__OP_ADD, TN_BOOL));
    assert_true(tn__op_computes(TN__OP_ADD, TN_UINT8));
    assert_false(tn__op_computes(TN__OP_EXP, TN_INT64));
    assert_true(tn__op_computes(TN__OP_EXP, TN_BFLOAT16));
    assert_true(tn__op_computes(TN__OP_INVERT, TN_BOOL));
    assert_false(tn__op_computes(TN__OP_INVERT, TN_FLOAT32));
    assert_true(tn__op_computes(TN__OP_LOGICAL_AND, TN_BOOL));
    assert_false(tn__op_computes(TN__OP_LOGICAL_AND, TN_INT8));
    assert_true(tn__op_computes(TN__OP_RANDOM_BITS, TN_UINT64));
    assert_false(tn__op_computes(TN__OP_RANDOM_BITS, TN_UINT8));
    assert_true(tn__op_computes(TN__OP_EXP, TN_COMPLEX64));
    assert_false(tn__op_computes(TN__OP_FLOOR, TN_COMPLEX128));
    assert_true(tn__op_computes(TN__OP_PACK, TN_COMPLEX128));
    assert_false(tn__op_computes(TN__OP_PACK, TN_FLOAT64));
    assert_string_equal(tn__op_expression(TN__OP_MULTIPLY, TN_COMPLEX64), "F(mul)(a, b)");
    assert_string_equal(tn__op_expression(TN__OP_MULTIPLY, TN_FLOAT64), "a * b");
    assert_true(tn__op_computes(TN__OP_RESHAPE, TN_BOOL));
    for (int op = 0; op < TN__OP_COUNT; op++) {
        assert_false(tn__op_computes((tn__op)op, TN_DTYPE_DEFAULT));
        assert_false(tn__op_computes((tn__op)op, TN_DTYPE_COUNT));
    }
    assert_false(tn__op_computes(TN__OP_COUNT, TN_FLOAT32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(rows_are_those_of_the_definition),
        cmocka_unit_test(differentiable_is_having_a_rule),
        cmocka_unit_test(dtypes_computed_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
