/* SPDX-License-Identifier: MIT */
/*
 * Complex arrays: dtypes complex64 and complex128, two floats an element, laid out as C's float _Complex and
 * double _Complex. Elementwise functions, sums, products and comparisons of tanso/array.h take them as NumPy's do
 * (order: by the real part, then the imaginary one); functions that have no complex meaning are TN_ERR_DTYPE.
 *
 * Gradients. backward starts from a real value, L. The gradient by a complex number z = x + iy is dL/dx + i dL/dy, as
 * in PyTorch: z - lr * gradient goes downhill. (JAX gives its conjugate.)
 */
#ifndef TANSO_COMPLEX_H
#define TANSO_COMPLEX_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* re + i im; they broadcast, and promote to complex64 or complex128. */
TN_API tn_array *tn_complex(const tn_array *re, const tn_array *im);
/* The parts, in the parts' dtype; of real arrays the array itself, and zeros. */
TN_API tn_array *tn_real(const tn_array *x);
TN_API tn_array *tn_imag(const tn_array *x);
/* The complex conjugate (of a real array, itself). */
TN_API tn_array *tn_conjugate(const tn_array *x);
/* The angle in radians, in (-pi, pi]. */
TN_API tn_array *tn_angle(const tn_array *x);

/* The real part, if all imaginary parts are below `tolerance` (as a multiple of the dtype's epsilon where it is above
 * 1; NumPy's default is 100); else x. Evaluates. */
TN_API tn_array *tn_real_if_close(const tn_array *x, double tolerance);

/* A weak scalar, as tn_weak_float: with float32 it gives complex64, with float64 complex128. */
TN_API tn_array *tn_weak_complex_parts(double re, double im);
/* A copy of `count` complex numbers, 2 count doubles, as a complex128 vector. */
TN_API tn_array *tn_from_complex_parts(const double *parts, int64_t count);
/* The value of a one-element array of any dtype as real and imaginary part. On an error both are NaN. */
TN_API tn_status tn_item_parts(const tn_array *x, double parts[2]);

/* The same for C's own complex numbers; TN_COMPLEX(z) makes an operand of one. */
#if !defined(__cplusplus) && !defined(__STDC_NO_COMPLEX__)
static inline tn_array *tn_weak_complex(double _Complex z)
{
    return tn_weak_complex_parts(((const double *)&z)[0], ((const double *)&z)[1]);
}
static inline tn_array *tn_from_complex(const double _Complex *data, int64_t count)
{
    return tn_from_complex_parts((const double *)data, count);
}
static inline double _Complex tn_item_complex(const tn_array *x)
{
    double _Complex z;
    (void)tn_item_parts(x, (double *)&z);
    return z;
}
#define TN_COMPLEX(z) tn_weak_complex(z)
#endif

#ifndef TN_NO_MACROS
#define tn_from_complex_parts(...) TN_HERE(tn_from_complex_parts(__VA_ARGS__))
#define tn_item_parts(...) TN_HERE(tn_item_parts(__VA_ARGS__))
#define tn_complex(re, im) TN_AT(tn_complex)(TN_ARG(re), TN_ARG(im))
#define tn_real(x) TN_AT(tn_real)(TN_ARG(x))
#define tn_imag(x) TN_AT(tn_imag)(TN_ARG(x))
#define tn_conjugate(x) TN_AT(tn_conjugate)(TN_ARG(x))
#define tn_real_if_close(x, tolerance) TN_AT(tn_real_if_close)(TN_ARG(x), tolerance)
#define tn_angle(x) TN_AT(tn_angle)(TN_ARG(x))
#endif

#ifdef __cplusplus
}

/* An operand of a std::complex. */
template <class Z> inline const tn_array *TN_COMPLEX(const Z &z) { return tn_weak_complex_parts(z.real(), z.imag()); }
#endif
#endif
