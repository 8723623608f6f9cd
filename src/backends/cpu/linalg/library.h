/* SPDX-License-Identifier: MIT */
/*
 * Steps of libraries: a function of one matrix (or row) of each operand, called for each place of the leading axes.
 *
 * A function is called once without memory: then it only asks for the scratch memory it needs, workspaces included,
 * with tn__carve; later calls get memory, and the same requests give pointers into it.
 */
#ifndef TN_BACKENDS_CPU_LINALG_LIBRARY_H
#define TN_BACKENDS_CPU_LINALG_LIBRARY_H

#include "backends/cpu/base/step.h"
#include "backends/cpu/linalg/fft.h"

typedef struct tn__carver {
    char *base;  /* NULL: requests are only added up */
    size_t used;
} tn__carver;

static inline void *tn__carve(tn__carver *c, int64_t count, size_t size)
{
    size_t at = c->used;
    c->used += ((size_t)(count > 0 ? count : 1) * size + 63) / 64 * 64;
    return c->base ? c->base + at : NULL;
}

/* One operand: extents of its last two axes, and bytes between neighbours along them. */
typedef struct tn__matrix_layout {
    int64_t rows, columns, row, column;
} tn__matrix_layout;

typedef struct tn__library tn__library;
/* p: the operands' matrices, output first, contiguous in C order. Returns 0, or LAPACK's info. */
typedef int tn__library_function(tn__library *library, char *const *p, tn__carver *carver);

typedef struct tn__library_functions {
    tn__library_function *of[TN_DTYPE_COUNT]; /* indexed by compute dtype */
    const char *failed;                       /* what a positive info means */
} tn__library_functions;

struct tn__library {
    tn__library_function *function;
    const char *failed;
    tn__matrix_layout layout[3]; /* output, inputs */
    const int64_t *mode;         /* the step's attributes */
    int mode_count;
    int64_t work[2];             /* sizes of workspaces, found while counting */
    bool serial;                 /* the library has threads of its own */
    int64_t cost;                /* cost of a call, in element operations */
    tn__cpu_space places;        /* the leading axes */
    size_t scratch;
    tn__fft_plan *plan;          /* the plan of an FFT: after this struct, in the same allocation */
};

/* LAPACK's functions of an operation; NULL if this build has no library for it. */
const tn__library_functions *tn__lapack_functions(int op);
const tn__library_functions *tn__fft_functions(int op);

#endif
