/* SPDX-License-Identifier: MIT */
/*
 * The steps of a program under construction, which the passes after rewriting work on. Their operands name values of
 * the graph; the memory plan replaces these by buffers, and makes a tn__program of the draft (device/program.h).
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
    int shift;           /* not 0: run-time number shift - 1 is added to the offset, in elements */
    int nest;            /* KERNEL: the loop nest that uses it; nests of one part run one after another */
    int part;            /* KERNEL: that nest's part; a step of several copies: which; parts run at the same time */
    bool pointwise;      /* each iteration touches only the element of its own position: may share memory with an equal
                            window of the same nest */
} tn__draft_operand;

typedef struct tn__draft_step {
    tn__step step;       /* operands and buffer numbers are filled in by tn__plan_memory */
    tn__draft_operand *operand; /* outputs first */
    int operand_count;
    size_t operand_capacity;
    int output_count;
    bool adopts;         /* a COPY that is left out if its output gets its input's memory */
    bool may_fail;       /* has indices that may be out of range: so it must not overwrite a leaf (fuse/updates.c) */
} tn__draft_step;

/* What a value is in a product's step that has been folded (fold.c): the step's result, or computed within it. */
typedef enum tn__fold { TN__FOLD_NONE, TN__FOLD_UPDATE, TN__FOLD_EPILOGUE, TN__FOLD_PART } tn__fold;

typedef struct tn__draft {
    tn__graph *graph;
    int precision;       /* as in the options */
    const tn__target_policy *policy; /* of the kernels' target, NULL: none, or no kernels */
    int *home;           /* for each value, the value in whose buffer it lives (itself, mostly) */
    uint8_t *fold;       /* a tn__fold for each value */
    bool *kept;          /* for each value: a result, or what one is made of by writing into it */
    bool *stored;        /* views that have been given memory of their own; constants that are stored whole */
    bool *placed;        /* updates whose window is written by what computes the piece: fuse/places.c */
    int step_count;
    size_t step_capacity;
    tn__draft_step *step;
    char *source;
    tn__program_text text;
    const char *wrong;   /* what a verifier of nests found broken, NULL: nothing */
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
/* These: NULL or false without memory. A step pointer is valid until the next one is added. */
tn__draft_step *tn__draft_add_kernel(tn__draft *draft);
tn__draft_step *tn__draft_add_op(tn__draft *draft, tn__op op);
bool tn__draft_operand_add(tn__draft_step *step, const tn__window *window, tn_dtype dtype);
/* A new value of `size` elements that is none of the recording's: scratch memory that one step writes and another
 * reads. Its number; -1 without memory. May move draft->stored. */
int tn__draft_scratch(tn__draft *draft, tn_dtype dtype, int64_t size);
bool tn__draft_scalars(tn__draft_step *step, int first, int count);
/* Checks that steps' operands name values and lie in their memory (draft_verify.c); NULL or a static description of
 * what is broken. */
const char *tn__draft_verify(const tn__draft *draft);
void tn__draft_remove(tn__draft *draft, int i);
void tn__draft_step_free(tn__draft_step *step);
void tn__draft_free(tn__draft *draft);

#endif
