/* SPDX-License-Identifier: MIT */
/* Convolutions by oneDNN inside the CPU backend. */
#ifndef TN_BACKENDS_CPU_CONVOLUTION_H
#define TN_BACKENDS_CPU_CONVOLUTION_H

#include "device/program.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_DNNL
#define TN__CPU_CONVOLUTIONS true
#else
#define TN__CPU_CONVOLUTIONS false
#endif

/* Has oneDNN an optimized implementation of the step's convolution, not only its reference loops? */
bool tn__cpu_convolves(tn__device *device, const tn__step *step);

#endif
