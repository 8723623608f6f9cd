/* SPDX-License-Identifier: MIT */
/* Plans of Fourier transforms of one length: factors and tables. */
#ifndef TN_BACKENDS_CPU_FFT_H
#define TN_BACKENDS_CPU_FFT_H

#include <stddef.h>
#include <stdint.h>
#include <tanso/base.h>

#define TN__FFT_FACTORS 64

typedef struct tn__fft_plan {
    int64_t n;      /* the transform's length */
    int64_t length; /* of the transforms by factors: n, or Bluestein's power of 2 */
    int factors;
    int factor[TN__FFT_FACTORS];
    size_t element; /* bytes of a complex number */
    /* Tables behind the plan: the length's roots of unity; with Bluestein's algorithm its chirp (n) and the transformed
     * filter (length), too. */
    _Alignas(16) char tables[];
} tn__fft_plan;

/* Bytes of a plan for complex64 or complex128. */
size_t tn__fft_plan_bytes(int64_t n, tn_dtype dtype);
/* Fills one in; false without memory. */
bool tn__fft_plan_make(tn__fft_plan *plan, int64_t n, tn_dtype dtype);

#endif
