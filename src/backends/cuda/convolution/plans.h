/* SPDX-License-Identifier: MIT */
/*
 * Convolutions by cuDNN inside the CUDA backend: what a step asks for (problem.c), the library's plan for it (plans.c),
 * and the step (step.c).
 */
#ifndef TN_BACKENDS_CUDA_CONVOLUTION_PLANS_H
#define TN_BACKENDS_CUDA_CONVOLUTION_PLANS_H

#include "backends/cuda/convolution/cudnn.h"

/* In the order of the operations CONVOLVE, CONVOLVE_DATA and CONVOLVE_WEIGHTS. */
typedef enum tn__cudnn_way { TN__CUDNN_RESULT, TN__CUDNN_DATA, TN__CUDNN_WEIGHTS, TN__CUDNN_WAYS } tn__cudnn_way;
/* Tensors: data, weights, result. */
enum { TN__CUDNN_X, TN__CUDNN_W, TN__CUDNN_Y, TN__CUDNN_TENSORS };

enum { TN__CUDNN_AXES = 3 }; /* most axes that windows slide along; there are at least 2, so a line is an image of
                                one row */

typedef struct tn__cudnn_problem {
    tn__cudnn_way way;
    tn_dtype dtype;
    bool tf32;                     /* factors of float32 may be rounded to it */
    int axes;
    int64_t groups;
    struct {
        int64_t dim[2 + TN__CUDNN_AXES], stride[2 + TN__CUDNN_AXES];
    } tensor[TN__CUDNN_TENSORS];
    int64_t step[TN__CUDNN_AXES], spread[TN__CUDNN_AXES], before[TN__CUDNN_AXES], behind[TN__CUDNN_AXES];
} tn__cudnn_problem;

/* For each way, the tensor that each operand of the step is. */
extern const uint8_t tn__cudnn_operands[TN__CUDNN_WAYS][TN__CUDNN_TENSORS];

/* Could a library compute the step, with contiguous operands, in C order or channels last as the step says? *problem:
 * what it is asked for. */
bool tn__cudnn_problem_of(const tn__step *step, tn__cudnn_problem *problem);
int64_t tn__cudnn_size(const tn__cudnn_problem *problem, int tensor);
/* Multiplications and additions. */
double tn__cudnn_operations(const tn__cudnn_problem *problem);

/* A problem's plan, for all steps of the device that ask for the same. */
typedef struct tn__cudnn_plan {
    struct tn__cudnn_plan *next;   /* next in the device's list; under its lock, as is `uses` */
    char *key;
    int uses;
    void *plan, *config;           /* the plan, and what it is made of */
    size_t workspace;              /* bytes */
} tn__cudnn_plan;

/* Takes the plan for a problem. NULL if cuDNN has none; an error is latched only if there is no memory or the device
 * has faulted. The device's lock is not held. */
tn__cudnn_plan *tn__cudnn_plan_take(tn__cuda_device *device, const tn__cudnn_problem *problem);
void tn__cudnn_plan_give(tn__cuda_device *device, tn__cudnn_plan *plan);
/* Puts the work on a stream; operands in a step's order. Under the device's lock. False if refused. */
bool tn__cudnn_execute(const tn__cuda_device *device, const tn__cudnn_problem *problem, void *plan, CUstream stream,
                       const CUdeviceptr *operand, CUdeviceptr workspace);

#endif
