/* SPDX-License-Identifier: MIT */
/*
 * The operations: their numbers and a table of their facts, both made from ops.def. Numbers are in two headers that the
 * build makes: tn_ops.h, which this one includes, has those that numbers.txt lists, and tn_op_functions.h all others,
 * and TN__OP_COUNT.
 */
#ifndef TN_OPS_OPS_H
#define TN_OPS_OPS_H

#include "tn_ops.h"
#include <tanso/base.h>

typedef enum tn__kind {
    TN__KIND_LEAF,
    TN__KIND_CONST,
    TN__KIND_GENERATE,
    TN__KIND_MAP,
    TN__KIND_REDUCE,
    TN__KIND_VIEW,
    TN__KIND_UPDATE,
    TN__KIND_PART,
    TN__KIND_GATHER,
    TN__KIND_SCATTER,
    TN__KIND_SORT_SCAN,
    TN__KIND_LIBRARY,
    TN__KIND_MATMUL,
    TN__KIND_TRANSFER,
    TN__KIND_COLLECTIVE,
    TN__KIND_USER,
    TN__KIND_CUSTOM,
    TN__KIND_TIED,
    TN__KIND_CONVOLVE,
    TN__KIND_RECURRENCE
} tn__kind;

typedef enum tn__types {
    TN__TYPES_ANY, /* no rule: views and such */
    TN__TYPES_ALL,
    TN__TYPES_NUMBERS,
    TN__TYPES_FLOATS,
    TN__TYPES_INTEGERS,
    TN__TYPES_BOOLS,
    TN__TYPES_NONE,
    TN__TYPES_UNSIGNED,
    TN__TYPES_INT64
} tn__types;

typedef enum tn__result { TN__RESULT_SAME, TN__RESULT_BOOL, TN__RESULT_INT64 } tn__result;

enum {
    TN_COMMUTATIVE = 1,
    TN_EXPENSIVE = 2,
    TN_CONDITION = 4,
    TN_ARG = 8,
    TN_ORDERED = 16,
    TN_REAL = 32, /* of complex numbers a real one: the result is cast to the dtype of the parts */
    TN_PARTS = 64, /* of complex numbers not holomorphic: its gradient rule treats the parts itself */
    TN_WIDENED = 128 /* a reduction of many numbers of single precision that goes on in double precision */
};

typedef struct tn__op_info {
    const char *name;
    const char *expression; /* EXPR or COMBINE as text, "" where there is none */
    const char *identity;   /* of a reduction, else "" */
    const char *doc;
    unsigned char arity, kind, types, result, props;
    bool differentiable; /* has a gradient rule */
} tn__op_info;
extern const tn__op_info tn__ops[]; /* by number */

/* Its expression and identity for a compute dtype. */
const char *tn__op_expression(tn__op op, tn_dtype dtype);
const char *tn__op_identity(tn__op op, tn_dtype dtype);
/* True if expressions of the operation exist for a compute dtype. */
bool tn__op_computes(tn__op op, tn_dtype dtype);

#endif
