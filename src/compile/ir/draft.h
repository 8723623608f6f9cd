/* SPDX-License-Identifier: MIT */
/*
 * Steps under construction: what passes behind rewriting hand on. A draft belongs to a graph and names its values;
 * buffers are numbered when memory is planned. Windows say how a step reads a value through views.
 */
#ifndef TN_COMPILE_IR_DRAFT_H
#define TN_COMPILE_IR_DRAFT_H

#include "compile/ir/graph.h"
#include "compile/ir/target.h"
#include "device/program.h"

/* A window of a value: how a chain of views reads its base. */
typedef struct tn__window {
    int base;            /* the value whose elements are read */
    int ndim;
    int64_t dim[TN_MAX_NDIM], stride[TN_MAX_NDIM], offset;
} tn__window;
/* The window through which value v reads the nearest value that is not a view, or is marked in `stored` (may be NULL);
 * base's layout is its own strides (leaves) or C order. False if a reshape on the way needs a copy; then *blocked is
 * the value that must be stored first. */
bool tn__window_of(const tn__graph *graph, int v, const bool *stored, tn__window *window, int *blocked);
/* The same of a view that is itself to be stored: how it reads what lies below it. */
bool tn__window_below(const tn__graph *graph, int v, const bool *stored, tn__window *window, int *blocked);
/* Changes a window that is read of a view's input into the one that the view is. False if no strides express it. */
bool tn__window_through(tn__window *window, const tn__value *view);

/* A step under construction, before buffers are numbered: operands name values. */
typedef struct tn__draft_operand {
    int value;           /* whose buffer */
    tn_dtype dtype;
    int ndim;
    int64_t dim[TN_MAX_NDIM], stride[TN_MAX_NDIM], offset;
    int shift;           /* and so many elements further on as the run-time number shift - 1 says; 0: none */
    int nest;            /* KERNEL: the loop nest that uses it; nests of a part of a step run one after another */
    int part;            /* KERNEL: that nest's part; several moves: which; parts run at the same time */
    bool pointwise; /* read or written only at the loop position: may share memory with an equal window of its nest */
} tn__draft_operand;

typedef struct tn__draft_step {
    tn__step step;       /* operands and buffer numbers are filled in by tn__plan_memory */
    tn__draft_operand *operand; /* outputs first */
    int operand_count;
    size_t operand_capacity;
    int output_count;
    bool adopts;         /* COPY that vanishes when its output takes over its input's memory */
    bool may_fail;       /* has indices that may be out of range: overwrites nothing that must survive a failure */
} tn__draft_step;

/* The part of a value in what is folded into a product's step (fold.c). */
typedef enum tn__fold { TN__FOLD_NONE, TN__FOLD_UPDATE, TN__FOLD_EPILOGUE, TN__FOLD_PART } tn__fold;

typedef struct tn__draft {
    tn__graph *graph;
    int precision;       /* as in the options */
    const tn__target_policy *policy; /* of the kernels' target, NULL: none, or no kernels */
    int *home;           /* for each value, the value in whose buffer it lives (itself, mostly) */
    uint8_t *fold;       /* a tn__fold for each value */
    bool *stored;        /* views that have been given memory of their own; constants that are stored whole */
    int step_count;
    size_t step_capacity;
    tn__draft_step *step;
    char *source;
    tn__program_text text;
} tn__draft;

/* Is a product computed by a kernel of our own? Else it is a step. */
static inline bool tn__is_own_product(const tn__draft *draft, int v, const tn__device *device)
{
    return draft->policy && draft->policy->owns(draft, v, device);
}
/* Is it the value that a product's step gives in the product's place? */
static inline bool tn__is_folded(const tn__draft *draft, int v)
{
    return draft->fold[v] == TN__FOLD_UPDATE || draft->fold[v] == TN__FOLD_EPILOGUE;
}

bool tn__draft_init(tn__draft *draft, tn__graph *graph);
/* These: NULL or false without memory. A step pointer is valid until the next tn__draft_add. */
tn__draft_step *tn__draft_add(tn__draft *draft, tn__step_kind kind);
bool tn__draft_operand_add(tn__draft_step *step, const tn__window *window, tn_dtype dtype);
/* A value of `size` elements that only steps know: memory for what one leaves to another. -1 without memory;
 * draft->stored may have moved. */
int tn__draft_scratch(tn__draft *draft, tn_dtype dtype, int64_t size);
bool tn__draft_scalars(tn__draft_step *step, int first, int count);
void tn__draft_remove(tn__draft *draft, int i);
void tn__draft_step_free(tn__draft_step *step);
void tn__draft_free(tn__draft *draft);

#endif
