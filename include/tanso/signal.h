/* SPDX-License-Identifier: MIT */
/* Windows, phases and bits, as NumPy has them. */
#ifndef TANSO_SIGNAL_H
#define TANSO_SIGNAL_H

#include <tanso/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- windows: vectors of n numbers, 1 in the middle; float32 by default; n < 1 gives none, and one is 1 ---- */

/* With x from -1 to 1 over the window: 1 - |x|; 0.42 + 0.5 cos(pi x) + 0.08 cos(2 pi x); 0.54 + 0.46 cos(pi x); 0.5 +
 * 0.5 cos(pi x). */
TN_API tn_array *tn_bartlett_with(int64_t n, const tn_create_opts *opts);
TN_API tn_array *tn_blackman_with(int64_t n, const tn_create_opts *opts);
TN_API tn_array *tn_hamming_with(int64_t n, const tn_create_opts *opts);
TN_API tn_array *tn_hanning_with(int64_t n, const tn_create_opts *opts);
/* I0(beta sqrt(1 - (2 k / (n - 1) - 1)^2)) / I0(beta) (Kaiser 1966). */
TN_API tn_array *tn_kaiser_with(int64_t n, double beta, const tn_create_opts *opts);

/* The modified Bessel function of the first kind of order 0, of real numbers, integers as float64. To 1e-15: its power
 * series up to 20, its asymptotic series beyond (Abramowitz and Stegun 9.6.12, 9.7.1). */
TN_API tn_array *tn_i0(const tn_array *x);

/* ---- phases ---- */

/* x with multiples of `period` (a number; NULL: 2 pi) added along an axis, so that neighbours differ by no more than
 * half of it; differences below `jump` (0: half the period) are left alone. Integers stay integers if the period is
 * one. */
TN_API tn_array *tn_unwrap(const tn_array *x, const tn_array *period, double jump, int axis);

/* ---- bits ---- */

/* Eight elements along an axis (none: of the flat array) as the bits of a uint8, 1 where they are not zero, the first
 * as the highest bit, or as the lowest with `little`; zeros fill up the last. Integers and bool only. */
TN_API tn_array *tn_packbits(const tn_array *x, tn_axes axis, bool little);
/* The bits of uint8 as elements of uint8: the first `count` along the axis (zeros behind the last), or all but the last
 * -count; TN_NONE: all. */
TN_API tn_array *tn_unpackbits(const tn_array *x, tn_axes axis, int64_t count, bool little);

#ifndef TN_NO_MACROS
#define tn_i0(x) TN_AT(tn_i0)(TN_ARG(x))
#define tn_unwrap(x, period, jump, axis) TN_AT(tn_unwrap)(TN_ARG(x), period, jump, axis)
#define tn_packbits(x, axis, little) TN_AT(tn_packbits)(TN_ARG(x), axis, little)
#define tn_unpackbits(x, axis, count, little) TN_AT(tn_unpackbits)(TN_ARG(x), axis, count, little)
#define tn_bartlett(...) TN__CALL_V(tn_bartlett_with, tn_create_opts, __VA_ARGS__, )
#define tn_blackman(...) TN__CALL_V(tn_blackman_with, tn_create_opts, __VA_ARGS__, )
#define tn_hamming(...) TN__CALL_V(tn_hamming_with, tn_create_opts, __VA_ARGS__, )
#define tn_hanning(...) TN__CALL_V(tn_hanning_with, tn_create_opts, __VA_ARGS__, )
#define tn_kaiser(...) TN__CALL_VV(tn_kaiser_with, tn_create_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
