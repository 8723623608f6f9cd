/* SPDX-License-Identifier: MIT */
/*
 * The compiler's graph: a plain copy of what is to be evaluated, values in topological order (inputs have smaller
 * numbers), with no pointers into the recording. Passes rewrite it; nothing here is shared or locked.
 */
#ifndef TN_COMPILE_IR_GRAPH_H
#define TN_COMPILE_IR_GRAPH_H

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/ops.h"
#include <tanso/base.h>

#define TN__GRAPH_INPUTS 20 /* of a value, at most: as TN__MAX_INPUTS of array/node.h */

typedef struct tn__graph_attr {
    uint32_t axes;             /* REDUCE */
    bool about_mean;           /* SUM: not the elements are added, but the squares of what they differ from their mean
                                  by */
    uint8_t perm[TN_MAX_NDIM]; /* PERMUTE */
    const tn__ints *ints;      /* SLICE, UPDATE: start, step an axis; PART: strides */
    int shift;                 /* UPDATE: its window begins so many elements further on as the run-time number shift - 1
                                  says; 0: where `ints` says. PART: so many further on than it can at least */
    int axis;                  /* GATHER, SCATTER_ADD */
    bool last;                 /* CONVOLVE: its values are to have their channels last, and have, once rewrite/layout.c
                                  has seen to that */
    bool known;                /* GATHER: positions need no look */
    const struct tn__user *user; /* USER, USER_REDUCE: whose function */
    int output;                /* USER: which output of it */
} tn__graph_attr;

typedef struct tn__value {
    tn__op op;
    tn_dtype dtype;
    int arity;
    int in[TN__GRAPH_INPUTS];
    const tn__shape *shape;
    tn__graph_attr attr;
    int leaf;                  /* VALUE: its number, else -1 */
    const tn__ints *strides;   /* VALUE: NULL for C order */
    int scalar;                /* CONST, RANDOM_*: first of its run-time scalars, else -1 */
    int uses;                  /* by values and as a result; kept by tn__graph_count_uses */
} tn__value;

typedef struct tn__leaf {
    int storage;               /* number of its storage: equal for leaves that share one */
    bool donatable;            /* its storage may be overwritten: nobody else will read it after this plan */
    size_t storage_bytes;      /* of a donatable leaf */
} tn__leaf;

typedef struct tn__graph {
    int count;
    size_t capacity;
    tn__value *value;
    int leaf_count;
    tn__leaf *leaf;            /* those whose place in memory moves from run to run come last */
    int result_count;
    int *result;               /* values to compute */
    int scalar_count;
    tn_dtype *scalar_dtype;
    int shift_count;           /* run-time shifts */
} tn__graph;

void tn__graph_free(tn__graph *graph);
/* Appends a value (copied); its number, or -1 without memory. */
int tn__graph_add(tn__graph *graph, const tn__value *value);
void tn__graph_count_uses(tn__graph *graph);
/* Ends a pass that has made the values anew in another graph, which ends, too: they take the place of the graph's own,
 * or, if that is not `done`, are freed. `number`: of each old value that of the new one, for the results; NULL: these
 * have it. Uses are counted. */
void tn__graph_take(tn__graph *graph, tn__graph *other, const int *number, bool done);
/* Checks the graph's invariants (order, arities, shapes, dtypes); NULL or a static description of what is broken. */
const char *tn__graph_verify(const tn__graph *graph);
/* Appends a readable listing. */
struct tn__text;
void tn__graph_print(const tn__graph *graph, struct tn__text *text);

static inline bool tn__value_is_leaf(const tn__value *v) { return v->op == TN__OP_VALUE; }
static inline bool tn__value_is_wide(const tn__value *v) { return v->op == TN__OP_USER || v->op == TN__OP_CUSTOM; }
static inline int tn__value_kind(const tn__value *v) { return tn__ops[v->op].kind; }

/* The base of a chain of views. */
static inline int tn__view_base(const tn__graph *graph, int v)
{
    while (tn__value_kind(&graph->value[v]) == TN__KIND_VIEW)
        v = graph->value[v].in[0];
    return v;
}

/* Is a value of this kind made by one operation of arrays that are in memory, and no part of other values' kernels? */
static inline bool tn__kind_is_library(int kind)
{
    return kind == TN__KIND_MATMUL || kind == TN__KIND_SCATTER || kind == TN__KIND_UPDATE ||
           kind == TN__KIND_PART || kind == TN__KIND_TRANSFER || kind == TN__KIND_SORT_SCAN ||
           kind == TN__KIND_LIBRARY || kind == TN__KIND_CONVOLVE || kind == TN__KIND_RECURRENCE;
}

/* Multiplications and additions of a convolution, CONV or CONVOLVE or one of their gradients. */
int64_t tn__convolution_operations(const tn__graph *graph, const tn__value *value);

#endif
