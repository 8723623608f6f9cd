/* SPDX-License-Identifier: MIT */
/*
 * What convolutions need of cuDNN 9: its graph interface (the "backend" functions), found by dlopen when a convolution
 * is first compiled, so that neither the build nor the plug-in needs it. There everything is a descriptor, which has
 * attributes and is then finished; names and numbers are declared here as NVIDIA's manual of version 9 has them.
 *
 * It is used rather than cudnnConvolutionForward and the like: it proposes every engine, tells for each whether it is
 * deterministic and whether it rounds its inputs, takes bfloat16 and any strides, and has engines that those lack.
 */
#ifndef TN_BACKENDS_CUDA_CONVOLUTION_CUDNN_H
#define TN_BACKENDS_CUDA_CONVOLUTION_CUDNN_H

#include <stdint.h>

#include "backends/cuda/runtime/cuda.h"

/* Kinds of descriptors. */
enum { TN__CUDNN_CONVOLUTION = 1, TN__CUDNN_ENGINE = 2, TN__CUDNN_CONFIG = 3, TN__CUDNN_HEURISTIC = 4,
       TN__CUDNN_PLAN = 5, TN__CUDNN_FORWARD = 10, TN__CUDNN_BACKWARD_FILTER = 11, TN__CUDNN_BACKWARD_DATA = 12,
       TN__CUDNN_GRAPH = 15, TN__CUDNN_PACK = 16, TN__CUDNN_TENSOR = 17 };

/* Attributes. */
enum { TN__CUDNN_CONVOLUTION_COMPUTE = 100, TN__CUDNN_CONVOLUTION_MODE = 101, TN__CUDNN_CONVOLUTION_DILATIONS = 102,
       TN__CUDNN_CONVOLUTION_STRIDES = 103, TN__CUDNN_CONVOLUTION_BEHIND = 104, TN__CUDNN_CONVOLUTION_BEFORE = 105,
       TN__CUDNN_CONVOLUTION_AXES = 106, TN__CUDNN_HEURISTIC_MODE = 200, TN__CUDNN_HEURISTIC_GRAPH = 201,
       TN__CUDNN_HEURISTIC_RESULTS = 202, TN__CUDNN_CONFIG_ENGINE = 300, TN__CUDNN_PLAN_HANDLE = 400,
       TN__CUDNN_PLAN_CONFIG = 401, TN__CUDNN_PLAN_WORKSPACE = 402, TN__CUDNN_GRAPH_HANDLE = 800,
       TN__CUDNN_GRAPH_OPERATIONS = 801, TN__CUDNN_TENSOR_ALIGNMENT = 900, TN__CUDNN_TENSOR_DTYPE = 901,
       TN__CUDNN_TENSOR_DIMENSIONS = 902, TN__CUDNN_TENSOR_STRIDES = 903, TN__CUDNN_TENSOR_ID = 906,
       TN__CUDNN_PACK_IDS = 1000, TN__CUDNN_PACK_POINTERS = 1001, TN__CUDNN_PACK_WORKSPACE = 1003,
       TN__CUDNN_ENGINE_INDEX = 1301, TN__CUDNN_ENGINE_NOTES = 1303 };

/* Types of the elements of attributes. */
enum { TN__CUDNN_OF_HANDLE = 0, TN__CUDNN_OF_DTYPE = 1, TN__CUDNN_OF_INT64 = 3, TN__CUDNN_OF_FLOAT = 4,
       TN__CUDNN_OF_POINTER = 6, TN__CUDNN_OF_CONVOLUTION_MODE = 7, TN__CUDNN_OF_HEURISTIC_MODE = 8,
       TN__CUDNN_OF_NOTE = 11, TN__CUDNN_OF_DESCRIPTOR = 15 };

/* Values of attributes: dtypes; notes on engines; modes. */
enum { TN__CUDNN_FLOAT = 0, TN__CUDNN_HALF = 2, TN__CUDNN_BFLOAT16 = 9 };
enum { TN__CUDNN_TENSOR_CORE = 0, TN__CUDNN_ROUNDS_INPUTS = 1, TN__CUDNN_ROUNDS_SUMS = 2, TN__CUDNN_BY_FFT = 3,
       TN__CUDNN_NONDETERMINISTIC = 4, TN__CUDNN_WINOGRAD = 5, TN__CUDNN_WINOGRAD_4 = 6, TN__CUDNN_WINOGRAD_6 = 7,
       TN__CUDNN_WINOGRAD_13 = 8 };
enum { TN__CUDNN_CROSS_CORRELATION = 1 };
enum { TN__CUDNN_FALLBACK = 2, TN__CUDNN_BY_RULES = 3 };

typedef struct tn__cudnn {
    size_t (*cudnnGetVersion)(void);
    int (*cudnnCreate)(void **handle);
    int (*cudnnSetStream)(void *handle, CUstream stream);
    int (*cudnnBackendCreateDescriptor)(int kind, void **descriptor);
    int (*cudnnBackendDestroyDescriptor)(void *descriptor);
    int (*cudnnBackendFinalize)(void *descriptor);
    int (*cudnnBackendSetAttribute)(void *descriptor, int name, int type, int64_t count, const void *elements);
    int (*cudnnBackendGetAttribute)(void *descriptor, int name, int type, int64_t room, int64_t *count,
                                    void *elements);
    int (*cudnnBackendExecute)(void *handle, void *plan, void *pack);
} tn__cudnn;

/* cuDNN's functions; NULL if it is absent. */
const tn__cudnn *tn__cuda_dnn_library(const tn__cuda_device *device);

#endif
