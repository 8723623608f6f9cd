/* SPDX-License-Identifier: MIT */
/* Kernel dialect, part 1: types, bit casts, float16 and bfloat16 as storage. */
#ifndef TN_OPS_SCALAR_BASE_H
#define TN_OPS_SCALAR_BASE_H

typedef unsigned char tn_b8; /* 0 or 1 */
typedef signed char tn_i8;
typedef short tn_i16;
typedef int tn_i32;
typedef long long tn_i64;
typedef unsigned char tn_u8;
typedef unsigned short tn_u16;
typedef unsigned int tn_u32;
typedef unsigned long long tn_u64;
typedef unsigned short tn_f16;  /* IEEE binary16, the bits */
typedef unsigned short tn_bf16; /* the upper half of a binary32, the bits */
typedef float tn_f32;
typedef double tn_f64;

/* TN_FN for small functions, TN_HOT for straight-line ones that must be inlined for a loop to vectorise. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TN_FN static __device__ inline __attribute__((unused))
#define TN_HOT static __device__ __forceinline__ __attribute__((unused))
#define TN_LONG static __device__ __noinline__ __attribute__((unused)) /* so long that a kernel wants but one */
#define TNS_LIBM(name) name
TN_HOT tn_u32 tns_bits_f32(tn_f32 x) { return (tn_u32)__float_as_int(x); }
TN_HOT tn_f32 tns_f32_bits(tn_u32 u) { return __int_as_float((int)u); }
TN_HOT tn_u64 tns_bits_f64(tn_f64 x) { return (tn_u64)__double_as_longlong(x); }
TN_HOT tn_f64 tns_f64_bits(tn_u64 u) { return __longlong_as_double((long long)u); }
TN_HOT tn_f64 tns_unknown(tn_f64 x) { return x; }
#else
#define TN_FN static inline __attribute__((unused))
#define TN_HOT static inline __attribute__((unused, always_inline))
#define TN_LONG TN_FN
#define TNS_LIBM(name) __builtin_##name
TN_HOT tn_u32 tns_bits_f32(tn_f32 x) { union { tn_f32 f; tn_u32 u; } v = {.f = x}; return v.u; }
TN_HOT tn_f32 tns_f32_bits(tn_u32 u) { union { tn_u32 u; tn_f32 f; } v = {.u = u}; return v.f; }
TN_HOT tn_u64 tns_bits_f64(tn_f64 x) { union { tn_f64 f; tn_u64 u; } v = {.f = x}; return v.u; }
TN_HOT tn_f64 tns_f64_bits(tn_u64 u) { union { tn_u64 u; tn_f64 f; } v = {.u = u}; return v.f; }
/* A number that the compiler does not know: it computes functions of those it knows more exactly than libm does at run
 * time. */
TN_HOT tn_f64 tns_unknown(tn_f64 x)
{
    __asm__("" : "+m"(x));
    return x;
}
#endif

/*
 * A product that stays one: where one part of a complex number is a product minus something and the other one a product
 * plus something, gcc 12 and later fuse both for vectors (vfmaddsub), -ffp-contract=off or not, but not for a scalar.
 */
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#define TNS_ROUNDED(x) __builtin_assoc_barrier(x)
#endif
#endif
#ifndef TNS_ROUNDED
#define TNS_ROUNDED(x) (x)
#endif

/*
 * What a GPU has instructions for, exact to 1 ulp; elsewhere the plain expression.
 *   TNS_FMA_F32(a, b, c)   a b + c, rounded once where there is an instruction for that, twice elsewhere
 *   tns__root_f32(x)       the square root of x >= 0
 *   tns__ratio_f32(a, b)   a / b, where neither b nor the quotient is near the ends of the range
 *   tns__above_f32(a, b)   the larger one, tns__below_f32 the smaller one; NaN wins. (Two choices
 *                          one after the other leave no branches, which loops of vectors cannot have; one by `||` does,
 *                          and by `|` where gcc moves half of it)
 *   tns__wide_u32(a, b)    the product in 64 bits
 */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TNS_FMA_F32(a, b, c) fmaf(a, b, c)
#define TNS__PTX1(name, instruction) \
    TN_HOT tn_f32 name(tn_f32 x) { tn_f32 y; asm(instruction " %0, %1;" : "=f"(y) : "f"(x)); return y; }
TNS__PTX1(tns__root_f32, "sqrt.approx.ftz.f32")
TNS__PTX1(tns__power_of_2_f32, "ex2.approx.ftz.f32") /* to 2^-22.5 */
TNS__PTX1(tns__inverse_f32, "rcp.approx.ftz.f32")
TNS__PTX1(tns__inverse_root_f32, "rsqrt.approx.ftz.f32")
TNS__PTX1(tns__sine_f32, "sin.approx.ftz.f32") /* to 2^-20.9, absolutely, between -pi and pi; so the cosine */
TNS__PTX1(tns__cosine_f32, "cos.approx.ftz.f32")
TNS__PTX1(tns__binary_log_f32, "lg2.approx.ftz.f32") /* to 2^-22, absolutely between 1/2 and 2, else relatively */
TN_HOT tn_f32 tns__ratio_f32(tn_f32 a, tn_f32 b)
{
    tn_f32 y = tns__inverse_f32(b), q = a * y;
    return fmaf(fmaf(-b, q, a), y, q);
}
/* of a normal number, to 20 bits */
TN_HOT tn_f64 tns__inverse_f64(tn_f64 x) { tn_f64 y; asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x)); return y; }
TN_HOT tn_u64 tns__wide_u32(tn_u32 a, tn_u32 b)
{
    tn_u64 y;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(y) : "r"(a), "r"(b));
    return y;
}
#else
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define TNS_FMA_F32(a, b, c) __builtin_fmaf(a, b, c)
#else
#define TNS_FMA_F32(a, b, c) ((a) * (b) + (c))
#endif
TN_HOT tn_f32 tns__root_f32(tn_f32 x) { return __builtin_sqrtf(x); }
TN_HOT tn_f32 tns__ratio_f32(tn_f32 a, tn_f32 b) { return a / b; }
TN_HOT tn_u64 tns__wide_u32(tn_u32 a, tn_u32 b) { return (tn_u64)a * b; }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TNS__PTX2(name, instruction) \
    TN_HOT tn_f32 name(tn_f32 a, tn_f32 b) \
    { \
        tn_f32 y; \
        asm(instruction " %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); \
        return y; \
    }
TNS__PTX2(tns__above_f32, "max.NaN.f32")
TNS__PTX2(tns__below_f32, "min.NaN.f32")
#else
TN_HOT tn_f32 tns__above_f32(tn_f32 a, tn_f32 b) { tn_f32 m = a > b ? a : b; return a != a ? a : m; }
TN_HOT tn_f32 tns__below_f32(tn_f32 a, tn_f32 b) { tn_f32 m = a < b ? a : b; return a != a ? a : m; }
#endif
TN_HOT tn_f64 tns__ratio_f64(tn_f64 a, tn_f64 b) { return a / b; }
TN_HOT tn_f64 tns__above_f64(tn_f64 a, tn_f64 b) { tn_f64 m = a > b ? a : b; return a != a ? a : m; }
TN_HOT tn_f64 tns__below_f64(tn_f64 a, tn_f64 b) { tn_f64 m = a < b ? a : b; return a != a ? a : m; }

#define TNS_INF_F32 tns_f32_bits(0x7f800000u)
#define TNS_NAN_F32 tns_f32_bits(0x7fc00000u)
#define TNS_INF_F64 tns_f64_bits(0x7ff0000000000000ull)
#define TNS_NAN_F64 tns_f64_bits(0x7ff8000000000000ull)

/* To 16 bits to nearest, ties to even; a NaN stays one and is made quiet. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
TN_HOT tn_f32 tn_f16_to_f32(tn_f16 h) { tn_f32 y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(h)); return y; }
TN_HOT tn_f16 tn_f32_to_f16(tn_f32 x) { tn_f16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; }
TN_HOT tn_bf16 tn_f32_to_bf16(tn_f32 x) { tn_bf16 y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; }
#else
TN_HOT tn_f32 tn_f16_to_f32(tn_f16 h)
{
    tn_u32 sign = (tn_u32)(h & 0x8000u) << 16, body = (tn_u32)(h & 0x7fffu) << 13;
    tn_u32 normal = body + (112u << 23);                                             /* rebias: 127 - 15 */
    tn_u32 special = body | 0x7f800000u;                                             /* inf and nan */
    tn_u32 tiny = tns_bits_f32(tns_f32_bits(body + (113u << 23)) - tns_f32_bits(113u << 23)); /* subnormal, exact */
    return tns_f32_bits(sign | (body < 0x00800000u ? tiny : body >= 0x0f800000u ? special : normal));
}

TN_HOT tn_f16 tn_f32_to_f16(tn_f32 x)
{
    tn_u32 bits = tns_bits_f32(x), sign = (bits >> 16) & 0x8000u, mag = bits & 0x7fffffffu;
    tn_u32 normal = (mag - (112u << 23) + 0xfffu + ((mag >> 13) & 1u)) >> 13;
    tn_u32 tiny = tns_bits_f32(tns_f32_bits(mag) + 0.5f) - 0x3f000000u; /* ulp(0.5) is float16's smallest number */
    tn_u32 body = mag < 0x38800000u ? tiny : normal;
    body = mag >= 0x477ff000u ? 0x7c00u : body; /* 65520 and up round to inf */
    body = mag > 0x7f800000u ? 0x7e00u | ((mag >> 13) & 0x3ffu) : body;
    return (tn_f16)(sign | body);
}

TN_HOT tn_bf16 tn_f32_to_bf16(tn_f32 x)
{
    tn_u32 bits = tns_bits_f32(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (tn_bf16)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}
#endif
TN_HOT tn_f32 tn_bf16_to_f32(tn_bf16 h) { return tns_f32_bits((tn_u32)h << 16); }

/* float64 to float32 rounding to odd: a second rounding to a narrower type is then as good as a single one. */
TN_HOT tn_f32 tns__f64_to_f32_odd(tn_f64 x)
{
    tn_f32 f = (tn_f32)x;
    tn_f64 back = (tn_f64)f, a = x < 0 ? -x : x, b = back < 0 ? -back : back;
    return tns_f32_bits((tns_bits_f32(f) - (b > a ? 1u : 0u)) | (back != x ? 1u : 0u));
}

TN_HOT tn_f16 tn_f64_to_f16(tn_f64 x) { return tn_f32_to_f16(tns__f64_to_f32_odd(x)); }
TN_HOT tn_bf16 tn_f64_to_bf16(tn_f64 x) { return tn_f32_to_bf16(tns__f64_to_f32_odd(x)); }
TN_HOT tn_f64 tn_f16_to_f64(tn_f16 h) { return (tn_f64)tn_f16_to_f32(h); }
TN_HOT tn_f64 tn_bf16_to_f64(tn_bf16 h) { return (tn_f64)tn_bf16_to_f32(h); }

#endif
