/* SPDX-License-Identifier: MIT */
/* Plans of Fourier transforms of one length: factors and tables. */
#ifndef TN_BACKENDS_CPU_LINALG_FFT_H
#define TN_BACKENDS_CPU_LINALG_FFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tanso/base.h>

#define TN__FFT_FACTORS 64

/* A transform of `whole` real numbers is one of half as many complex ones, where they are even in number. */
typedef struct tn__fft_plan {
    int64_t n;      /* the complex transform's length */
    int64_t length; /* length of the transforms by factors: n, or Bluestein's power of 2 */
    int64_t whole;  /* real numbers; 0: the transform is of complex ones */
    int factors;
    int factor[TN__FFT_FACTORS];
    /* Tables behind the plan: the length's roots of unity; with Bluestein's algorithm its chirp (n) and the transformed
     * filter (length), too; for even real numbers the first n roots of `whole`. */
    _Alignas(16) char tables[];
} tn__fft_plan;

/* Bytes of a plan for n real or complex numbers; dtype: complex64 or complex128. */
size_t tn__fft_plan_bytes(int64_t n, bool real, tn_dtype dtype);
/* Fills in a plan; false without memory. */
bool tn__fft_plan_make(tn__fft_plan *plan, int64_t n, bool real, tn_dtype dtype);

#endif
