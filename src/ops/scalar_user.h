/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 7, in front of users' own functions: C's names for the scalar functions, for float and double.
 * Other arguments compute in double, but for abs, min and max, which keep the type of integers. Needs parts 1 to 6.
 */
#ifndef TN_OPS_SCALAR_USER_H
#define TN_OPS_SCALAR_USER_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TNU_1(R, f) \
    TN_HOT R##32 tnu_##f(tn_f32 x) { return tns_##f##_f32(x); } \
    TN_HOT R##64 tnu_##f(tn_f64 x) { return tns_##f##_f64(x); } \
    template <class X> TN_HOT R##64 tnu_##f(X x) { return tns_##f##_f64((tn_f64)x); }
#define TNU_2(f) \
    TN_HOT tn_f32 tnu_##f(tn_f32 x, tn_f32 y) { return tns_##f##_f32(x, y); } \
    template <class X, class Y> TN_HOT tn_f64 tnu_##f(X x, Y y) { return tns_##f##_f64((tn_f64)x, (tn_f64)y); }
#define TNU_CALL_1(f, x) tnu_##f(x)
#define TNU_CALL_2(f, x, y) tnu_##f(x, y)
typedef tn_f32 tnu_f32;
typedef tn_f64 tnu_f64;
typedef bool tnu_b32;
typedef bool tnu_b64;
TN_HOT tn_f32 tnu_abs(tn_f32 x) { return tns_abs_f32(x); }
TN_HOT tn_f64 tnu_abs(tn_f64 x) { return tns_abs_f64(x); }
template <class X> TN_HOT X tnu_abs(X x) { return x < 0 ? -x : x; }
#define TNU_KEEP(f, compare) \
    TN_HOT tn_f32 tnu_##f(tn_f32 x, tn_f32 y) { return tns_##f##_f32(x, y); } \
    TN_HOT tn_f64 tnu_##f(tn_f64 x, tn_f64 y) { return tns_##f##_f64(x, y); } \
    TN_HOT tn_f64 tnu_##f(tn_f32 x, tn_f64 y) { return tns_##f##_f64(x, y); } \
    TN_HOT tn_f64 tnu_##f(tn_f64 x, tn_f32 y) { return tns_##f##_f64(x, y); } \
    template <class X, class Y> TN_HOT auto tnu_##f(X x, Y y) \
    { \
        return x compare y ? (decltype(x + y))x : (decltype(x + y))y; \
    }
#define TNU_KEEP_2(f, compare, x, y) tnu_##f(x, y)
#define TNU_ABS(x) tnu_abs(x)
#ifdef TN_OPS_SCALAR_COMPLEX_H
#define TNU_COMPLEX(s, T) \
    TN_HOT T operator*(T a, T b) { return tns_mul_##s(a, b); } \
    TN_HOT T operator/(T a, T b) { return tns_div_##s(a, b); }
TNU_COMPLEX(c64, tn_c64)
TNU_COMPLEX(c128, tn_c128)
#endif
#else
#define TNU_1(R, f)
#define TNU_2(f)
#define TNU_KEEP(f, compare)
#define TNU_CALL_1(f, x) _Generic((x), tn_f32: tns_##f##_f32, default: tns_##f##_f64)(x)
#define TNU_CALL_2(f, x, y) \
    _Generic((x), tn_f32: _Generic((y), tn_f32: tns_##f##_f32, default: tns_##f##_f64), default: tns_##f##_f64)(x, y)
#define TNU_KEEP_2(f, compare, x, y) \
    _Generic((x) + (y), tn_f32: tns_##f##_f32(x, y), tn_f64: tns_##f##_f64(x, y), \
             default: ((x)compare(y) ? (x) + 0 * (y) : (y) + 0 * (x)))
#define TNU_ABS(x) _Generic((x), tn_f32: tns_abs_f32(x), tn_f64: tns_abs_f64(x), default: ((x) < 0 ? -(x) : (x)))
#endif

TNU_1(tnu_f, sqrt) TNU_1(tnu_f, rsqrt) TNU_1(tnu_f, cbrt) TNU_1(tnu_f, exp) TNU_1(tnu_f, exp2) TNU_1(tnu_f, expm1)
TNU_1(tnu_f, log) TNU_1(tnu_f, log2) TNU_1(tnu_f, log10) TNU_1(tnu_f, log1p) TNU_1(tnu_f, sin) TNU_1(tnu_f, cos)
TNU_1(tnu_f, tan) TNU_1(tnu_f, asin) TNU_1(tnu_f, acos) TNU_1(tnu_f, atan) TNU_1(tnu_f, sinh) TNU_1(tnu_f, cosh)
TNU_1(tnu_f, tanh) TNU_1(tnu_f, asinh) TNU_1(tnu_f, acosh) TNU_1(tnu_f, atanh) TNU_1(tnu_f, erf) TNU_1(tnu_f, erfc)
TNU_1(tnu_f, sigmoid) TNU_1(tnu_f, floor) TNU_1(tnu_f, ceil) TNU_1(tnu_f, trunc) TNU_1(tnu_f, rint)
TNU_1(tnu_b, isnan) TNU_1(tnu_b, isinf) TNU_1(tnu_b, isfinite)
TNU_2(pow) TNU_2(atan2) TNU_2(hypot) TNU_2(fmod) TNU_2(copysign) TNU_2(fmax) TNU_2(fmin)
TNU_KEEP(max, >) TNU_KEEP(min, <)

/* C's names of integers. */
#define int8_t tn_i8
#define int16_t tn_i16
#define int32_t tn_i32
#define int64_t tn_i64
#define uint8_t tn_u8
#define uint16_t tn_u16
#define uint32_t tn_u32
#define uint64_t tn_u64
#define size_t tn_u64
#if !defined(__cplusplus) && !defined(bool)
#define bool _Bool
#define true 1
#define false 0
#endif

#define sqrt(x) TNU_CALL_1(sqrt, x)
#define rsqrt(x) TNU_CALL_1(rsqrt, x)
#define cbrt(x) TNU_CALL_1(cbrt, x)
#define exp(x) TNU_CALL_1(exp, x)
#define exp2(x) TNU_CALL_1(exp2, x)
#define expm1(x) TNU_CALL_1(expm1, x)
#define log(x) TNU_CALL_1(log, x)
#define log2(x) TNU_CALL_1(log2, x)
#define log10(x) TNU_CALL_1(log10, x)
#define log1p(x) TNU_CALL_1(log1p, x)
#define sin(x) TNU_CALL_1(sin, x)
#define cos(x) TNU_CALL_1(cos, x)
#define tan(x) TNU_CALL_1(tan, x)
#define asin(x) TNU_CALL_1(asin, x)
#define acos(x) TNU_CALL_1(acos, x)
#define atan(x) TNU_CALL_1(atan, x)
#define sinh(x) TNU_CALL_1(sinh, x)
#define cosh(x) TNU_CALL_1(cosh, x)
#define tanh(x) TNU_CALL_1(tanh, x)
#define asinh(x) TNU_CALL_1(asinh, x)
#define acosh(x) TNU_CALL_1(acosh, x)
#define atanh(x) TNU_CALL_1(atanh, x)
#define erf(x) TNU_CALL_1(erf, x)
#define erfc(x) TNU_CALL_1(erfc, x)
#define sigmoid(x) TNU_CALL_1(sigmoid, x)
#define floor(x) TNU_CALL_1(floor, x)
#define ceil(x) TNU_CALL_1(ceil, x)
#define trunc(x) TNU_CALL_1(trunc, x)
#define rint(x) TNU_CALL_1(rint, x)
#define isnan(x) TNU_CALL_1(isnan, x)
#define isinf(x) TNU_CALL_1(isinf, x)
#define isfinite(x) TNU_CALL_1(isfinite, x)
#define pow(x, y) TNU_CALL_2(pow, x, y)
#define atan2(x, y) TNU_CALL_2(atan2, x, y)
#define hypot(x, y) TNU_CALL_2(hypot, x, y)
#define fmod(x, y) TNU_CALL_2(fmod, x, y)
#define copysign(x, y) TNU_CALL_2(copysign, x, y)
#define fmax(x, y) TNU_CALL_2(fmax, x, y)
#define fmin(x, y) TNU_CALL_2(fmin, x, y)
#define max(x, y) TNU_KEEP_2(max, >, x, y)
#define min(x, y) TNU_KEEP_2(min, <, x, y)
#define abs(x) TNU_ABS(x)
#define fabs(x) TNU_ABS(x)

#endif
