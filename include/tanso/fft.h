/* SPDX-License-Identifier: MIT */
/*
 * Discrete Fourier transforms with NumPy's names and semantics (numpy.fft). Lengths of any kind: products of small
 * primes are fastest, others take about four times as long.
 *
 * The result is complex64 for float32, float16 and complex64, complex128 for others (real results: float32, float64; of
 * irfft and hfft of float16, float16). An axis is cropped or padded with zeros at its end to the length asked for. All
 * are differentiable: a transform's gradient is the transform the other way. On a device without a library for it the
 * array is moved to the CPU at once, and the result back.
 */
#ifndef TANSO_FFT_H
#define TANSO_FFT_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the transforms are multiplied by. */
typedef enum tn_fft_norm {
    TN_FFT_BACKWARD = 0, /* inverse ones by 1 / n */
    TN_FFT_ORTHO,        /* all by 1 / sqrt(n) */
    TN_FFT_FORWARD       /* the others by 1 / n */
} tn_fft_norm;

typedef struct tn_fft_opts {
    const char *_;
    int64_t n;        /* length; default: the axis's (irfft, hfft: 2 (m - 1)) */
    tn_axes axis;     /* of fft, ifft and so on, one; default: the last */
    tn_shape s;       /* of fftn and so on: lengths, as many as axes, -1 for an axis as it is; default: as they are */
    tn_axes axes;     /* of those; default: all, or the last s.ndim ones (fft2 and so on: the last two) */
    tn_fft_norm norm;
    tn_array *out;    /* receives the result, as tn_assign does; of its shape */
} tn_fft_opts;

TN_API tn_array *tn_fft_fft_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_ifft_with(const tn_array *x, const tn_fft_opts *opts);
/* Of real numbers: the first n / 2 + 1 numbers of the transform, which tell the others; and back to n real numbers.
 * Half the work of complex transforms. */
TN_API tn_array *tn_fft_rfft_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_irfft_with(const tn_array *x, const tn_fft_opts *opts);
/* Of a signal whose second half is the conjugate of the first, which has a real transform; and back. */
TN_API tn_array *tn_fft_hfft_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_ihfft_with(const tn_array *x, const tn_fft_opts *opts);
/* Over several axes; of the real ones, the last of them is halved. */
TN_API tn_array *tn_fft_fftn_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_ifftn_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_rfftn_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_irfftn_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_fft2_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_ifft2_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_rfft2_with(const tn_array *x, const tn_fft_opts *opts);
TN_API tn_array *tn_fft_irfft2_with(const tn_array *x, const tn_fft_opts *opts);

/* The frequencies of a transform of n numbers that lie d apart: 0, 1, ..., -1 over n d; of the real one the first n / 2
 * + 1, all positive. float64 by default, as NumPy. */
TN_API tn_array *tn_fft_fftfreq_with(int64_t n, double d, const tn_create_opts *opts);
TN_API tn_array *tn_fft_rfftfreq_with(int64_t n, double d, const tn_create_opts *opts);
/* The zero frequency to the middle of the axes (default: all), and back to the front. */
TN_API tn_array *tn_fft_fftshift(const tn_array *x, tn_axes axes);
TN_API tn_array *tn_fft_ifftshift(const tn_array *x, tn_axes axes);

#ifndef TN_NO_MACROS
#define tn_fft_fft(...) TN__CALL_V(tn_fft_fft_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_ifft(...) TN__CALL_V(tn_fft_ifft_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_rfft(...) TN__CALL_V(tn_fft_rfft_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_irfft(...) TN__CALL_V(tn_fft_irfft_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_hfft(...) TN__CALL_V(tn_fft_hfft_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_ihfft(...) TN__CALL_V(tn_fft_ihfft_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_fftn(...) TN__CALL_V(tn_fft_fftn_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_ifftn(...) TN__CALL_V(tn_fft_ifftn_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_rfftn(...) TN__CALL_V(tn_fft_rfftn_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_irfftn(...) TN__CALL_V(tn_fft_irfftn_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_fft2(...) TN__CALL_V(tn_fft_fft2_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_ifft2(...) TN__CALL_V(tn_fft_ifft2_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_rfft2(...) TN__CALL_V(tn_fft_rfft2_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_irfft2(...) TN__CALL_V(tn_fft_irfft2_with, tn_fft_opts, __VA_ARGS__, )
#define tn_fft_fftfreq(...) TN__CALL_VV(tn_fft_fftfreq_with, tn_create_opts, __VA_ARGS__, )
#define tn_fft_rfftfreq(...) TN__CALL_VV(tn_fft_rfftfreq_with, tn_create_opts, __VA_ARGS__, )
#define tn_fft_fftshift(x, axes) TN_AT(tn_fft_fftshift)(x, axes)
#define tn_fft_ifftshift(x, axes) TN_AT(tn_fft_ifftshift)(x, axes)
#endif

#ifdef __cplusplus
}
#endif
#endif
