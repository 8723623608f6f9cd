/* SPDX-License-Identifier: MIT */
/* Fourier transforms on the CPU: which way a length is transformed, and the table for the dtypes. */
#include "backends/cpu/linalg/fft.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/linalg/library.h"
#include "core/memory.h"

#define LARGEST_FACTOR 61 /* beyond it, a chirp's three longer transforms cost less than a pass by definition */

#define T      float
#define SUFFIX f32
#include "backends/cpu/linalg/fft_of_type.h"

#define T      double
#define SUFFIX f64
#include "backends/cpu/linalg/fft_of_type.h"

/* Factors n: fours first, then 2, 3, 5 and other primes; returns the largest factor. */
static int64_t factorize(int64_t n, tn__fft_plan *plan)
{
    int64_t largest = 1;
    plan->factors = 0;
    for (int64_t f = 4; n > 1;) {
        if (n % f == 0) {
            plan->factor[plan->factors++] = (int)f;
            largest = f > largest ? f : largest;
            n /= f;
        } else if (f == 4) {
            f = 2;
        } else if (f == 2) {
            f = 3;
        } else {
            f = f * f > n ? n : f + 2;
            if (f > INT32_MAX)
                return f;
        }
    }
    return largest;
}

static void choose(int64_t n, bool real, tn__fft_plan *plan)
{
    plan->whole = real ? n : 0;
    plan->n = plan->length = n = real && n % 2 == 0 ? n / 2 : n;
    if (factorize(n, plan) <= LARGEST_FACTOR)
        return;
    for (plan->length = 1; plan->length < 2 * n - 1;)
        plan->length *= 2;
    factorize(plan->length, plan);
}

size_t tn__fft_plan_bytes(int64_t n, bool real, tn_dtype dtype)
{
    tn__fft_plan plan;
    choose(n, real, &plan);
    int64_t numbers =
        (plan.length == plan.n ? plan.n : 2 * plan.length + plan.n) + (plan.whole == 2 * plan.n ? plan.n : 0);
    return sizeof plan + (size_t)numbers * tn_dtype_size(dtype);
}

bool tn__fft_plan_make(tn__fft_plan *plan, int64_t n, bool real, tn_dtype dtype)
{
    choose(n, real, plan);
    return dtype == TN_COMPLEX64 ? make_f32(plan) : make_f64(plan);
}

const tn__library_functions *tn__fft_functions(int op)
{
    static const tn__library_functions whole = {{[TN_COMPLEX64] = fft_f32, [TN_COMPLEX128] = fft_f64}, ""};
    static const tn__library_functions from_real = {{[TN_FLOAT32] = rfft_f32, [TN_FLOAT64] = rfft_f64}, ""};
    static const tn__library_functions to_real = {{[TN_COMPLEX64] = irfft_f32, [TN_COMPLEX128] = irfft_f64}, ""};
    return op == TN__OP_FFT     ? &whole
           : op == TN__OP_RFFT  ? &from_real
           : op == TN__OP_IRFFT ? &to_real
                                    : NULL;
}
