/* SPDX-License-Identifier: MIT */
/*
 * In front of the scalar dialect, for OpenCL C 1.2: the names by which the dialect calls a C compiler's functions. The
 * dialect then takes its portable branch, for a C compiler and an unknown processor. It writes 64-bit types as
 * `long long`, which OpenCL C reserves for 128 bits: the backend replaces that by `long` before it compiles a text.
 */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#undef __x86_64__
#undef __FMA__
#undef __ARM_FEATURE_FMA
#define __asm__(...)
#define half tn_half /* a type in OpenCL, a variable in the dialect */

/* The dialect forms function names by token pasting, which fails for functions that some OpenCL implementations define
 * as macros: so each is called by a function here, which has only the dialect's name. */
#define TN_1(name) \
    static inline float tn_##name##f(float x) { return name(x); } \
    static inline double tn_##name(double x) { return name(x); }
#define TN_2(name) \
    static inline float tn_##name##f(float x, float y) { return name(x, y); } \
    static inline double tn_##name(double x, double y) { return name(x, y); }
TN_1(fabs) TN_1(sqrt) TN_1(floor) TN_1(ceil) TN_1(trunc) TN_1(rint) TN_1(log2) TN_1(log10)
TN_1(erf) TN_1(erfc) TN_1(sin) TN_1(cos) TN_1(tan) TN_1(asin) TN_1(acos) TN_1(atan)
TN_1(sinh) TN_1(cosh) TN_1(cbrt) TN_1(asinh) TN_1(acosh) TN_1(atanh)
TN_2(copysign) TN_2(fmod) TN_2(nextafter) TN_2(pow) TN_2(hypot) TN_2(atan2)
static inline float tn_ldexpf(float x, int n) { return ldexp(x, n); }
static inline double tn_ldexp(double x, int n) { return ldexp(x, n); }
static inline float tn_frexpf(float x, int *n) { return frexp(x, n); }
static inline double tn_frexp(double x, int *n) { return frexp(x, n); }

#undef fabs
#define __builtin_fabsf tn_fabsf
#define __builtin_fabs tn_fabs
#undef sqrt
#define __builtin_sqrtf tn_sqrtf
#define __builtin_sqrt tn_sqrt
#undef floor
#define __builtin_floorf tn_floorf
#define __builtin_floor tn_floor
#undef ceil
#define __builtin_ceilf tn_ceilf
#define __builtin_ceil tn_ceil
#undef trunc
#define __builtin_truncf tn_truncf
#define __builtin_trunc tn_trunc
#undef rint
#define __builtin_rintf tn_rintf
#define __builtin_rint tn_rint
#undef copysign
#define __builtin_copysignf tn_copysignf
#define __builtin_copysign tn_copysign
#undef fmod
#define __builtin_fmodf tn_fmodf
#define __builtin_fmod tn_fmod
#undef nextafter
#define __builtin_nextafterf tn_nextafterf
#define __builtin_nextafter tn_nextafter
#undef ldexp
#define __builtin_ldexpf tn_ldexpf
#define __builtin_ldexp tn_ldexp
#undef frexp
#define __builtin_frexpf tn_frexpf
#define __builtin_frexp tn_frexp
#undef log2
#define __builtin_log2 tn_log2
#undef log10
#define __builtin_log10 tn_log10
#undef erf
#define __builtin_erf tn_erf
#undef erfc
#define __builtin_erfc tn_erfc
#undef sin
#define __builtin_sin tn_sin
#undef cos
#define __builtin_cos tn_cos
#undef tan
#define __builtin_tan tn_tan
#undef asin
#define __builtin_asin tn_asin
#undef acos
#define __builtin_acos tn_acos
#undef atan
#define __builtin_atan tn_atan
#undef sinh
#define __builtin_sinh tn_sinh
#undef cosh
#define __builtin_cosh tn_cosh
#undef cbrt
#define __builtin_cbrt tn_cbrt
#undef asinh
#define __builtin_asinh tn_asinh
#undef acosh
#define __builtin_acosh tn_acosh
#undef atanh
#define __builtin_atanh tn_atanh
#undef pow
#define __builtin_pow tn_pow
#undef hypot
#define __builtin_hypot tn_hypot
#undef atan2
#define __builtin_atan2 tn_atan2
#define __builtin_fma fma
#define __builtin_fmaf fma
