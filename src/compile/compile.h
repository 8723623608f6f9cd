/* SPDX-License-Identifier: MIT */
/*
 * From a graph to a program: rewrite -> fuse -> schedule -> emit -> plan memory. Each pass has a file of its own; a
 * verifier looks at the graph before and after rewriting, and at the plan.
 */
#ifndef TN_COMPILE_COMPILE_H
#define TN_COMPILE_COMPILE_H

#include "compile/ir/graph.h"
#include "device/program.h"

typedef struct tn__compile_options {
    bool kernels;        /* emit fused kernels; else operations one by one (the reference evaluator) */
    bool fusion;         /* with kernels: fuse; else a kernel an operation */
    bool plan_memory;    /* reuse arena space and donated storages; else every value has its own */
    int precision;       /* a tn_matmul_precision, for the steps that multiply float32 */
} tn__compile_options;

/* Where a result of the evaluation lies: a window of a buffer. */
typedef struct tn__result_window {
    int buffer;
    int64_t offset;      /* in elements */
    const tn__ints *strides; /* NULL: C order */
} tn__result_window;

/* A program with the windows of its results. */
typedef struct tn__plan {
    tn__program program;
    int result_count;
    tn__result_window *result;
} tn__plan;

/* Compiles a copy of `graph`. NULL with a latched error (TN_ERR_MEMORY, TN_ERR_INTERNAL). */
tn__plan *tn__compile(const tn__graph *graph, const tn__device *device, const tn__compile_options *options);
void tn__plan_free(tn__plan *plan);
/* Appends what the plan does, a line a step. */
void tn__plan_print(const tn__plan *plan, struct tn__text *text);

/* ---- passes (compile/ only) ---- */

/* Convolutions that the device's library computes become values of their data and weights, instead of products of
 * windows. */
void tn__keep_convolutions(tn__graph *graph, const tn__device *device, int precision);
int64_t tn__convolution_operations(const tn__graph *graph, const tn__value *value);

/* Rewrites in place: common subexpressions become one value, reshapes move toward leaves. `one_pass`: reductions may be
 * `about_mean`. False without memory. */
bool tn__rewrite(tn__graph *graph, bool one_pass);

/* Operands of a library's batches of products that lie at no equal distances are copied, where that saves calls. False
 * without memory. */
bool tn__pack_batches(tn__graph *graph, const tn__device *device, int precision);

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

/* A step under construction, before buffers are numbered: operands name values. */
typedef struct tn__draft_operand {
    int value;           /* whose buffer */
    tn_dtype dtype;
    int ndim;
    int64_t dim[TN_MAX_NDIM], stride[TN_MAX_NDIM], offset;
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
    int *home;           /* for each value, the value in whose buffer it lives (itself, mostly) */
    uint8_t *fold;       /* a tn__fold for each value */
    bool *stored;        /* views that have been given memory of their own; constants that are stored whole */
    int step_count;
    size_t step_capacity;
    tn__draft_step *step;
    char *source;
    tn__program_text text;
} tn__draft;

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

/* One operation a step: what the reference evaluator runs. False without memory. */
bool tn__lower_operations(tn__draft *draft);
/* Appends the steps of one value, as tn__lower_operations does; for what kernels do not cover. */
bool tn__lower_value(tn__draft *draft, int v);
/* Marks in draft->fold the updates to fold, and, once it is known what is stored, the epilogues that a device's
 * products take. */
void tn__find_folds(tn__draft *draft);
void tn__find_epilogues(tn__draft *draft, const tn__device *device);
/* The product that is folded into v; the steps of v. */
int tn__folded_product(const tn__draft *draft, int v);
bool tn__lower_folded(tn__draft *draft, int v);
/* Fused kernels and library calls. False without memory. */
bool tn__lower_kernels(tn__draft *draft, const tn__device *device, bool fusion);
/* Fills leave out what is written over before it is read. `together`: copies and fills that do not meet become one
 * step, of several windows: its inputs are copied into the first of its outputs, its scalars fill the others. False
 * without memory. */
bool tn__join_moves(tn__draft *draft, bool together);
/* Orders steps, decides which results take over donated storages, lays temporaries out in the arena, and makes the
 * plan. False without memory. */
bool tn__plan_memory(tn__draft *draft, bool reuse, tn__plan *plan);
/* NULL, or what is wrong: overlapping live temporaries, reads before writes, operands outside their buffers; or
 * tn__verify_no_memory. */
const char *tn__plan_verify(const tn__plan *plan);
extern const char tn__verify_no_memory[];

#endif
