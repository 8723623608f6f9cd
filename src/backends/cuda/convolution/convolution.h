/* SPDX-License-Identifier: MIT */
/* Convolutions by cuDNN, as the CUDA backend uses them. */
#ifndef TN_BACKENDS_CUDA_CONVOLUTION_H
#define TN_BACKENDS_CUDA_CONVOLUTION_H

#include "backends/cuda/runtime/cuda.h"

/* Whether cuDNN is there and has an engine for a convolution's step, which is chosen then. */
bool tn__cuda_convolves(tn__device *owner, const tn__step *step);
bool tn__cuda_dnn_takes(const tn__cuda_device *device, tn_dtype dtype);
/* Is cuDNN there? Opens it if that has not been tried. */
bool tn__cuda_dnn_there(const tn__cuda_device *device);
tn_status tn__cuda_prepare_convolution(tn__cuda_step *step, tn__cuda_device *device);

#endif
