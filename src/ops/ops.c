/* SPDX-License-Identifier: MIT */
/* The table of operations, made from ops.def. */
#include "ops/ops.h"
#include "tn_op_functions.h"

/* The table's rows, counted: each has a number of its own by how the build makes them. */
enum {
#define TN_MAP(ID, ...)      ROW_##ID,
#define TN_REDUCE(ID, ...)   ROW_##ID,
#define TN_GENERATE(ID, ...) ROW_##ID,
#define TN_OTHER(ID, ...)    ROW_##ID,
#include "ops/ops.def"
    ROW_COUNT
};
_Static_assert((int)TN__OP_COUNT == (int)ROW_COUNT, "the build has numbers for other rows than ops.def's");

/* Folded at compile time. */
#define HAS_RULE(grad) (__builtin_strcmp(#grad, "none") != 0)

const tn__op_info tn__ops[TN__OP_COUNT] = {
#define TN_MAP(ID, op_name, inputs, TYPES, RESULT, grad, properties, EXPR, text) \
    [TN__OP_##ID] = {.name = #op_name, .expression = #EXPR, .identity = "", .doc = text, .arity = inputs, \
                     .kind = TN__KIND_MAP, .types = TN__TYPES_##TYPES, .result = TN__RESULT_##RESULT, \
                     .props = properties, .differentiable = HAS_RULE(grad)},
#define TN_REDUCE(ID, op_name, TYPES, RESULT, grad, properties, IDENTITY, COMBINE, text) \
    [TN__OP_##ID] = {.name = #op_name, .expression = #COMBINE, .identity = #IDENTITY, .doc = text, .arity = 1, \
                     .kind = TN__KIND_REDUCE, .types = TN__TYPES_##TYPES, .result = TN__RESULT_##RESULT, \
                     .props = properties, .differentiable = HAS_RULE(grad)},
#define TN_GENERATE(ID, op_name, TYPES, EXPR, text) \
    [TN__OP_##ID] = {.name = #op_name, .expression = #EXPR, .identity = "", .doc = text, .arity = 0, \
                     .kind = TN__KIND_GENERATE, .types = TN__TYPES_##TYPES, .result = TN__RESULT_SAME},
#define TN_OTHER(ID, op_name, inputs, KIND, grad, properties, text) \
    [TN__OP_##ID] = {.name = #op_name, .expression = "", .identity = "", .doc = text, .arity = inputs, \
                     .kind = TN__KIND_##KIND, .types = TN__TYPES_ANY, .result = TN__RESULT_SAME, \
                     .props = properties, .differentiable = HAS_RULE(grad)},
#include "ops/ops.def"
};

/* What the rows of complex numbers say. */
typedef struct complex_row {
    const char *expression, *identity;
} complex_row;
static const complex_row complex_rows[TN__OP_COUNT] = {
#define TN_COMPLEX_MAP(ID, name, arity, RESULT, EXPR) [TN__OP_##ID] = {#EXPR, ""},
#define TN_COMPLEX_REDUCE(ID, name, RESULT, IDENTITY, COMBINE) [TN__OP_##ID] = {#COMBINE, #IDENTITY},
#include "ops/ops.def"
};

/* Sets of dtypes, one bit each. */
#define ONE(dtype) (1u << (dtype))
#define SIGNED (ONE(TN_INT8) | ONE(TN_INT16) | ONE(TN_INT32) | ONE(TN_INT64))
#define UNSIGNED (ONE(TN_UINT8) | ONE(TN_UINT16) | ONE(TN_UINT32) | ONE(TN_UINT64))
#define COMPLEX (ONE(TN_COMPLEX64) | ONE(TN_COMPLEX128))
#define FLOATS (ONE(TN_FLOAT16) | ONE(TN_BFLOAT16) | ONE(TN_FLOAT32) | ONE(TN_FLOAT64))

static const unsigned computed_in[] = {
    [TN__TYPES_ANY] = ONE(TN_BOOL) | SIGNED | UNSIGNED | FLOATS | COMPLEX,
    [TN__TYPES_ALL] = ONE(TN_BOOL) | SIGNED | UNSIGNED | FLOATS,
    [TN__TYPES_NUMBERS] = SIGNED | UNSIGNED | FLOATS,
    [TN__TYPES_FLOATS] = FLOATS,
    [TN__TYPES_INTEGERS] = ONE(TN_BOOL) | SIGNED | UNSIGNED,
    [TN__TYPES_BOOLS] = ONE(TN_BOOL),
    [TN__TYPES_NONE] = 0,
    [TN__TYPES_UNSIGNED] = ONE(TN_UINT32) | ONE(TN_UINT64),
    [TN__TYPES_INT64] = ONE(TN_INT64),
};

const char *tn__op_expression(tn__op op, tn_dtype dtype)
{
    return tn_dtype_is_complex(dtype) && complex_rows[op].expression ? complex_rows[op].expression
                                                                     : tn__ops[op].expression;
}

const char *tn__op_identity(tn__op op, tn_dtype dtype)
{
    return tn_dtype_is_complex(dtype) && complex_rows[op].expression ? complex_rows[op].identity : tn__ops[op].identity;
}

bool tn__op_computes(tn__op op, tn_dtype dtype)
{
    if ((unsigned)op < TN__OP_COUNT && tn_dtype_is_complex(dtype) && tn__ops[op].types != TN__TYPES_ANY)
        return complex_rows[op].expression != NULL;
    return (unsigned)op < TN__OP_COUNT && (unsigned)dtype < TN_DTYPE_COUNT &&
           (computed_in[tn__ops[op].types] & ONE(dtype)) != 0;
}
