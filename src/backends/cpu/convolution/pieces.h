/* SPDX-License-Identifier: MIT */
/*
 * A convolution by oneDNN, prepared: prepare.c cuts it into pieces and makes their primitives, run.c runs
 * them.
 */
#ifndef TN_BACKENDS_CPU_PIECES_H
#define TN_BACKENDS_CPU_PIECES_H

#include "backends/cpu/base/step.h"
#include "backends/cpu/convolution/dnnl.h"

/* What a convolution is divided by: images, channels of the result, channels of the data. */
typedef enum tn__division_way { TN__BY_IMAGES, TN__BY_RESULTS, TN__BY_CHANNELS } tn__division_way;

/* The axis of each tensor that a cut is along; -1: all pieces use, or add to, the whole. */
static const int8_t tn__division_axis[][TN__DNNL_TENSORS] = {
    [TN__BY_IMAGES] = {0, -1, 0}, [TN__BY_RESULTS] = {-1, 0, 1}, [TN__BY_CHANNELS] = {1, 1, -1}};

/* For each kind of convolution, the tensor that each operand of the step is. */
static const uint8_t tn__dnnl_operands[][TN__DNNL_TENSORS] = {
    [TN__DNNL_RESULT] = {TN__DNNL_Y, TN__DNNL_X, TN__DNNL_W},
    [TN__DNNL_DATA] = {TN__DNNL_X, TN__DNNL_Y, TN__DNNL_W},
    [TN__DNNL_WEIGHTS] = {TN__DNNL_W, TN__DNNL_X, TN__DNNL_Y}};

typedef struct tn__division {
    tn__division_way way;
    int64_t extent, size, pieces; /* extent of the axis; extent of each piece (the last may be smaller); number of
                                     pieces */
} tn__division;

/* How a piece is computed. */
typedef struct tn__convolution_kernel {
    dnnl_primitive_t convolution;
    dnnl_primitive_t reorder[TN__DNNL_TENSORS]; /* NULL: the tensor has the layout that the convolution wants */
    size_t bytes[TN__DNNL_TENSORS];             /* bytes of the tensor in that layout */
    size_t scratchpad;                          /* temporary memory of the primitive that needs most */
} tn__convolution_kernel;

typedef struct tn__convolution {
    tn__dnnl_problem whole; /* with copied tensors as they are copied */
    tn__cpu_space copy[TN__DNNL_TENSORS];
    bool copied[TN__DNNL_TENSORS];
    tn__division cut;
    int kernels;            /* number of kernels: one for all pieces, and another for the last if that is smaller */
    tn__convolution_kernel kernel[2];
    int64_t work;           /* operations of a piece */
    size_t common, piece;   /* bytes of the memory that all pieces share, and of that of each piece under way */
} tn__convolution;

static inline size_t tn__dnnl_rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static inline int64_t tn__dnnl_size(const tn__dnnl_problem *p, int t)
{
    int64_t size = 1;
    for (int d = 0; d < p->tensor[t].ndim; d++)
        size *= p->tensor[t].dim[d];
    return size;
}

static inline int tn__convolution_output(const tn__convolution *c) { return tn__dnnl_operands[c->whole.way][0]; }
static inline bool tn__convolution_is_cut(const tn__convolution *c, int t)
{
    return tn__division_axis[c->cut.way][t] >= 0;
}

/* Partial sums: every piece has an output of the whole extents. */
static inline bool tn__convolution_adds_up(const tn__convolution *c)
{
    return c->cut.pieces > 1 && !tn__convolution_is_cut(c, tn__convolution_output(c));
}

tn_status tn__convolution_run(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars);

#endif
