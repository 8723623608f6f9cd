/* SPDX-License-Identifier: MIT */
/*
 * A program: what compile/ hands to a backend. A list of steps over a table of buffers; each step is a kernel of the
 * program's source text or one operation of ops.def over strided operands.
 */
#ifndef TN_DEVICE_PROGRAM_H
#define TN_DEVICE_PROGRAM_H

#include "core/plugin.h"
#include "device/device.h"

typedef enum tn__buffer_kind {
    TN__BUFFER_INPUT,     /* the storage of a leaf, whole */
    TN__BUFFER_OUTPUT,    /* a storage made for each run */
    TN__BUFFER_DONATED,   /* an output written into the storage of input buffer `slot` */
    TN__BUFFER_TEMPORARY, /* `offset` in the arena */
    TN__BUFFER_SHIFTED    /* buffer `donor` from an element on that each run tells: its shift number `slot` */
} tn__buffer_kind;

typedef struct tn__buffer {
    tn__buffer_kind kind;
    int slot;       /* INPUT: leaf number; OUTPUT, DONATED: result number; SHIFTED: number of its shift */
    int donor;      /* DONATED: index of the INPUT buffer; SHIFTED: of the one that it is a part of */
    size_t bytes;   /* of OUTPUT and TEMPORARY: what must be allocated; of DONATED and SHIFTED: what there is */
    size_t offset;  /* TEMPORARY */
} tn__buffer;

/* A strided window of a buffer. Strides and offset in elements; stride 0 repeats. */
typedef struct tn__operand {
    int buffer;
    tn_dtype dtype;
    int ndim;
    int64_t dim[TN_MAX_NDIM];
    int64_t stride[TN_MAX_NDIM];
    int64_t offset;
} tn__operand;

/* What a step is: it tells which member of a tn__step's union there is. */
typedef enum tn__step_kind {
    TN__STEP_KERNEL,     /* `kernel`: a kernel of the program's text */
    TN__STEP_OP,         /* `axes`: one operation of ops.def that is none of the following */
    TN__STEP_PRODUCT,    /* `product`: MATMUL */
    TN__STEP_CONVOLUTION /* `convolution`: CONVOLVE or one of its gradients */
} tn__step_kind;

/* How a GPU is to start a kernel. */
typedef struct tn__kernel_launch {
    int64_t blocks;           /* the grid */
    int threads, shared;      /* of a block; bytes of dynamic shared memory */
    int most_threads;         /* that the kernel's text allows a block */
    int resident;             /* blocks that are to fit on a multiprocessor together, 0: as may be */
    int registers;            /* that a thread may have, 0: as may be */
    int spread;               /* blocks that a multiprocessor takes at most, so that all have some; 0: as may be */
    int cluster;              /* blocks that work together, 0: none do; the grid is a multiple of it */
    bool late_trigger;        /* lets others start early only when all before it is done; the first and the last step */
} tn__kernel_launch;

/* The entry point of a kernel in C:
 *     void name(void *const *p, const int64_t *n, const uint64_t *s, int64_t begin, int64_t end, int64_t *fault)
 * p: one pointer an operand (its buffer; the offset is in n), n: `param`, s: the run-time scalars of the whole program,
 * [begin, end): the part of `items` to do; of an index out of range, fault[0] is set to 1 + the number of the operand
 * it is for (whose last dimension is the one indexed) and fault[1] to the index.
 * In CUDA:
 *     extern "C" __global__ void name(const __grid_constant__ struct { void *p[]; long long n[]; u64 s[]; } a,
 *                                     const __grid_constant__ struct { u64 guard, latch, report, run, who; } f)
 * launched as its `launch` says, maybe before those it depends on are done, for which it waits itself
 * (griddepcontrol.wait); before that, the program's first step reads nothing that a run writes, and any other one what
 * no step before it has written. s: the step's own scalars. f is for failures: nothing is done where the word at
 * `guard`, if there is one, is not 0; of an index out of range, the word at `latch` is set to 1, and whoever did so
 * writes run, who, the number of the operand and the index to report[1..4], and then 1 to report[0]. */
typedef struct tn__kernel_step {
    const char *name;         /* owned; the entry point's */
    int code;                 /* its number in the program's text, if that has kernels */
    bool may_fail;            /* has indices that may be out of range */
    int64_t items;            /* extent of the parallel loop */
    int64_t item_cost;        /* about how many element operations an item is */
    tn__kernel_launch launch; /* on a GPU */
} tn__kernel_step;

/* out = alpha a b + beta out, or with a bias a b + row */
typedef struct tn__product_step {
    int alpha;                /* slot of the program's scalar that is a factor, -1: 1 */
    bool negate_alpha;        /* the factor is minus the scalar */
    bool bias;                /* of float32, where capabilities.epilogues says so: a row is added to each, the operand
                                 behind b, of one axis without gaps; then alpha is -1, beta 0, and out neither a batch
                                 nor in donated memory */
    int beta;                 /* 0 or 1 */
    int precision;            /* of float32: a tn_matmul_precision */
} tn__product_step;

/* Its param are the groups, and for each axis step, spread, padding before. */
typedef struct tn__convolution_step {
    int precision;            /* as a product's */
    bool channels_last;       /* operands lie so in memory; their axes are in the usual order */
} tn__convolution_step;

/* A step: what is common to all, then what its kind alone has. Copies and fills are operations, too: of one window, or
 * of several that do not meet, outputs first. */
typedef struct tn__step {
    tn__step_kind kind;
    int op;                   /* the operation, a tn__op of ops/ops.h; of no meaning for a kernel */
    tn_dtype compute;         /* T of its expression; of no meaning for a kernel */
    int operand_count, output_count;
    tn__operand *operand;     /* outputs first, then inputs in the operation's order */
    int scalar_count;         /* of operations, and of kernels on a GPU */
    int *scalar;              /* slots of the program's scalars */
    int param_count;          /* a kernel's n[]; the modes of a library or of rows; a convolution's */
    int64_t *param;
    int64_t bytes, operations; /* estimates, for descriptions and scheduling */
    char *label;              /* what was fused, for people: "exp multiply -> sum" */
    union {
        tn__kernel_step kernel;
        uint32_t axes;        /* a reduction's axes, or GATHER / SCATTER_ADD's axis as a bit; else 0 */
        tn__product_step product;
        tn__convolution_step convolution;
    };
} tn__step;

static inline bool tn__step_may_fail(const tn__step *step)
{
    return step->kind == TN__STEP_KERNEL && step->kernel.may_fail;
}

/* The name of a kernel's entry point, NULL of other steps. */
static inline const char *tn__step_kernel(const tn__step *step)
{
    return step->kind == TN__STEP_KERNEL ? step->kernel.name : NULL;
}

/* A kernel of a program's text. Its name tells what it is: kernels of that name do the same in every program. */
typedef struct tn__kernel_text {
    char *name;        /* the entry point's */
    int count;         /* the stretches of the text that it is made of, in their order */
    int *stretch;
    int own;           /* how many come before its own functions: parts of the dialect */
} tn__kernel_text;

/* What a program's source is made of, for whoever compiles kernels one by one. */
typedef struct tn__program_text {
    int stretch_count;
    size_t *begin;     /* of each stretch, and where the last one ends */
    int kernel_count;  /* 0: the source is only to be compiled as a whole */
    tn__kernel_text *kernel;
} tn__program_text;

struct tn__program {
    int buffer_count;
    tn__buffer *buffer;
    int scalar_count;         /* 64-bit run-time scalars */
    tn_dtype *scalar_dtype;
    int step_count;
    tn__step *step;
    size_t arena_bytes;       /* temporaries together */
    char *source;             /* text of all kernels, "" if none */
    tn__program_text text;
};

/* The buffer that one is a part of, or itself. */
static inline int tn__buffer_whole(const tn__program *program, int buffer)
{
    const tn__buffer *b = &program->buffer[buffer];
    return b->kind == TN__BUFFER_SHIFTED ? b->donor : buffer;
}

TN__PLUGIN_BEGIN
/* The text of some of a program's kernels, which is all that one needs to compile them. NULL without memory. */
char *tn__program_text_of(const tn__program *program, int count, const int *kernel);
TN__PLUGIN_END
void tn__program_text_free(tn__program_text *text);
/* Frees what a program holds, not the struct itself, and empties it. */
void tn__program_free(tn__program *program);

#endif
