/* SPDX-License-Identifier: MIT */
/*
 * What convolutions need of oneDNN: versions 2 and 3 differ in how memory and operations are described. A description
 * of memory is passed on as a pointer by both.
 */
#ifndef TN_BACKENDS_CPU_DNNL_H
#define TN_BACKENDS_CPU_DNNL_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdint.h>

/* In the order of the operations CONVOLVE, CONVOLVE_DATA and CONVOLVE_WEIGHTS. */
typedef enum tn__dnnl_way { TN__DNNL_RESULT, TN__DNNL_DATA, TN__DNNL_WEIGHTS } tn__dnnl_way;
enum { TN__DNNL_X, TN__DNNL_W, TN__DNNL_Y, TN__DNNL_TENSORS };

/* float32 tensors: data, weights (with an axis of the groups in front where there are several), result. */
typedef struct tn__dnnl_problem {
    tn__dnnl_way way;
    struct {
        int ndim;
        int64_t dim[DNNL_MAX_NDIMS], stride[DNNL_MAX_NDIMS];
    } tensor[TN__DNNL_TENSORS];
    /* For each axis that windows slide along: stride, dilation - 1, padding before and after. Padding after may be
     * negative: rows are left out. */
    int64_t step[DNNL_MAX_NDIMS], spread[DNNL_MAX_NDIMS], before[DNNL_MAX_NDIMS], behind[DNNL_MAX_NDIMS];
} tn__dnnl_problem;

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t tn__dnnl_view;
#else
typedef const dnnl_memory_desc_t *tn__dnnl_view;
#endif

/* The process's engine; NULL if there is none. */
dnnl_engine_t tn__dnnl_engine(void);
/* Descriptions of primitives, which have their temporary memory from their caller; NULL if oneDNN refuses. */
dnnl_primitive_desc_t tn__dnnl_convolution(const tn__dnnl_problem *problem);
/* Converts between a tensor in its own layout and a description of the same elements. */
dnnl_primitive_desc_t tn__dnnl_reorder(const tn__dnnl_problem *problem, int tensor, tn__dnnl_view other, bool from);
/* Has the tensor the layout of the description? */
bool tn__dnnl_lies(const tn__dnnl_problem *problem, int tensor, tn__dnnl_view view);
/* The number of the argument by which a primitive of this kind takes a tensor. */
int tn__dnnl_argument(tn__dnnl_way way, int tensor);

#endif
