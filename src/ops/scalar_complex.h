/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 7: complex64 and complex128 (needs parts 1 to 4 and 6). Order, maximum and the like are NumPy's:
 * by the real part, then the imaginary one; a number with a NaN in it is NaN.
 *
 * Division is Smith's (CACM 1962, Algorithm 116), as NumPy's. In C the elementary functions are libm's; CUDA has none
 * of complex numbers: there they are made of real ones, inverse functions by W. Kahan's formulas ("Branch Cuts for
 * Complex Elementary Functions", 1987). Those of complex64 are computed in complex128 and rounded; on a GPU
 * e^z in float64 as far as float32 asks.
 *
 * tns_pack keeps one part apart from what the other is computed by, like the products in mul and div: see TNS_ROUNDED.
 */
#ifndef TN_OPS_SCALAR_COMPLEX_H
#define TN_OPS_SCALAR_COMPLEX_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TNS__COMPLEX_TYPE(s, T, R, bytes) \
    struct __align__(bytes) T { \
        R re, im; \
        T() = default; \
        __device__ T(R x, R y = 0) : re(x), im(y) {} \
    }; \
    TN_HOT R tns_re_##s(T z) { return z.re; } \
    TN_HOT R tns_im_##s(T z) { return z.im; } \
    TN_HOT T tns_make_##s(R x, R y) { return T(x, y); } \
    TN_HOT T operator+(T a, T b) { return T(a.re + b.re, a.im + b.im); } \
    TN_HOT T operator-(T a, T b) { return T(a.re - b.re, a.im - b.im); } \
    TN_HOT T operator-(T a) { return T(-a.re, -a.im); } \
    TN_HOT bool operator==(T a, T b) { return a.re == b.re && a.im == b.im; } \
    TN_HOT bool operator!=(T a, T b) { return !(a == b); }
#else
typedef float _Complex tn_c64;
typedef double _Complex tn_c128;
#define TNS__COMPLEX_TYPE(s, T, R, bytes) \
    TN_HOT R tns_re_##s(T z) { return __real__ z; } \
    TN_HOT R tns_im_##s(T z) { return __imag__ z; } \
    TN_HOT T tns_make_##s(R x, R y) { T z; __real__ z = x; __imag__ z = y; return z; }
#endif
TNS__COMPLEX_TYPE(c64, tn_c64, tn_f32, 8)
TNS__COMPLEX_TYPE(c128, tn_c128, tn_f64, 16)

/* ---- casts: to a real dtype the imaginary part is dropped; to bool, either part counts ---- */

#define TNS__CAST_TO_COMPLEX(s, T, r, f, F) \
    TN_HOT T tns_cast_##s##_##f(F x) { return tns_make_##s(tns_cast_##r##_##f(x), 0); }
#define TNS__CAST_FROM_COMPLEX(s, T, r, t, U) \
    TN_HOT U tns_cast_##t##_##s(T z) { return tns_cast_##t##_##r(tns_re_##s(z)); }
#define TNS__REALS(X, s, T, r) \
    X(s, T, r, i8, tn_i8) X(s, T, r, i16, tn_i16) X(s, T, r, i32, tn_i32) X(s, T, r, i64, tn_i64) \
    X(s, T, r, u8, tn_u8) X(s, T, r, u16, tn_u16) X(s, T, r, u32, tn_u32) X(s, T, r, u64, tn_u64) \
    X(s, T, r, f16, tn_f16) X(s, T, r, bf16, tn_bf16) X(s, T, r, f32, tn_f32) X(s, T, r, f64, tn_f64)
#define TNS__COMPLEX_CASTS(s, T, r) \
    TNS__CAST_TO_COMPLEX(s, T, r, b8, tn_b8) \
    TN_HOT tn_b8 tns_cast_b8_##s(T z) { return tns_re_##s(z) != 0 || tns_im_##s(z) != 0; } \
    TNS__REALS(TNS__CAST_TO_COMPLEX, s, T, r) \
    TNS__REALS(TNS__CAST_FROM_COMPLEX, s, T, r) \
    TN_HOT T tns_cast_##s##_##s(T z) { return z; }
TNS__COMPLEX_CASTS(c64, tn_c64, f32)
TNS__COMPLEX_CASTS(c128, tn_c128, f64)
TN_HOT tn_c64 tns_cast_c64_c128(tn_c128 z) { return tns_make_c64((tn_f32)tns_re_c128(z), (tn_f32)tns_im_c128(z)); }
TN_HOT tn_c128 tns_cast_c128_c64(tn_c64 z) { return tns_make_c128(tns_re_c64(z), tns_im_c64(z)); }

/* ---- arithmetic, order ---- */

#define TNS__COMPLEX(s, T, r, R, INF, fabs) \
    TN_HOT T tns_mul_##s(T a, T b) \
    { \
        R ar = tns_re_##s(a), ai = tns_im_##s(a), br = tns_re_##s(b), bi = tns_im_##s(b); \
        return tns_make_##s(TNS_ROUNDED(ar * br) - TNS_ROUNDED(ai * bi), TNS_ROUNDED(ar * bi) + TNS_ROUNDED(ai * br)); \
    } \
    TN_FN T tns_div_##s(T a, T b) \
    { \
        R ar = tns_re_##s(a), ai = tns_im_##s(a), br = tns_re_##s(b), bi = tns_im_##s(b); \
        if (TNS_LIBM(fabs)(br) >= TNS_LIBM(fabs)(bi)) { \
            if (br == 0 && bi == 0) return tns_make_##s(ar / TNS_LIBM(fabs)(br), ai / TNS_LIBM(fabs)(br)); \
            R q = bi / br, d = (R)1 / (br + bi * q); \
            return tns_make_##s((ar + TNS_ROUNDED(ai * q)) * d, (ai - TNS_ROUNDED(ar * q)) * d); \
        } \
        R q = br / bi, d = (R)1 / (bi + br * q); \
        return tns_make_##s((TNS_ROUNDED(ar * q) + ai) * d, (TNS_ROUNDED(ai * q) - ar) * d); \
    } \
    TN_FN T tns_reciprocal_##s(T a) \
    { \
        R x = tns_re_##s(a), y = tns_im_##s(a); \
        if (TNS_LIBM(fabs)(y) <= TNS_LIBM(fabs)(x)) { \
            R q = y / x, d = x + y * q; \
            return tns_make_##s((R)1 / d, -q / d); \
        } \
        R q = x / y, d = x * q + y; \
        return tns_make_##s(q / d, (R)-1 / d); \
    } \
    TN_HOT T tns_abs_##s(T a) { return tns_make_##s(tns_hypot_##r(tns_re_##s(a), tns_im_##s(a)), 0); } \
    TN_FN T tns_sign_##s(T a) \
    { \
        R h = tns_hypot_##r(tns_re_##s(a), tns_im_##s(a)); \
        if (h == INF) { /* the direction of the infinite part; of two, none */ \
            R x = tns_re_##s(a), y = tns_im_##s(a); \
            R p = x == INF ? 1 : x == -INF ? -1 : 0, q = y == INF ? 1 : y == -INF ? -1 : 0; \
            return p != 0 && q != 0 ? tns_make_##s(h - h, h - h) : tns_make_##s(p, q); \
        } \
        return h == 0 ? tns_make_##s(0, 0) : tns_make_##s(tns_re_##s(a) / h, tns_im_##s(a) / h); \
    } \
    TN_HOT T tns_conjugate_##s(T a) { return tns_make_##s(tns_re_##s(a), -tns_im_##s(a)); } \
    TN_HOT T tns_imaginary_##s(T a) { return tns_make_##s(tns_im_##s(a), 0); } \
    TN_HOT T tns_pack_##s(T a, T b) { return tns_make_##s(tns_re_##s(a), TNS_ROUNDED(tns_re_##s(b))); } \
    TN_HOT T tns_rint_##s(T a) { return tns_make_##s(tns_rint_##r(tns_re_##s(a)), tns_rint_##r(tns_im_##s(a))); } \
    TN_HOT tn_b8 tns_isnan_##s(T a) { return tns_re_##s(a) != tns_re_##s(a) || tns_im_##s(a) != tns_im_##s(a); } \
    TN_HOT tn_b8 tns_isinf_##s(T a) \
    { \
        return TNS_LIBM(fabs)(tns_re_##s(a)) == INF || TNS_LIBM(fabs)(tns_im_##s(a)) == INF; \
    } \
    TN_HOT tn_b8 tns_isfinite_##s(T a) { return !tns_isnan_##s(a) && !tns_isinf_##s(a); } \
    TN_HOT tn_b8 tns_lt_##s(T a, T b) \
    { \
        R ar = tns_re_##s(a), ai = tns_im_##s(a), br = tns_re_##s(b), bi = tns_im_##s(b); \
        return (ar < br && ai == ai && bi == bi) || (ar == br && ai < bi); \
    } \
    TN_HOT tn_b8 tns_le_##s(T a, T b) \
    { \
        R ar = tns_re_##s(a), ai = tns_im_##s(a), br = tns_re_##s(b), bi = tns_im_##s(b); \
        return (ar < br && ai == ai && bi == bi) || (ar == br && ai <= bi); \
    } \
    TN_HOT T tns_max_##s(T a, T b) { return tns_isnan_##s(a) || tns_le_##s(b, a) ? a : b; } \
    TN_HOT T tns_min_##s(T a, T b) { return tns_isnan_##s(a) || tns_le_##s(a, b) ? a : b; } \
    TN_HOT T tns_fmax_##s(T a, T b) { return tns_isnan_##s(b) || tns_le_##s(b, a) ? a : b; } \
    TN_HOT T tns_fmin_##s(T a, T b) { return tns_isnan_##s(b) || tns_le_##s(a, b) ? a : b; } \
    TN_HOT T tns_lowest_##s(void) { return tns_make_##s(-INF, -INF); } \
    TN_HOT T tns_highest_##s(void) { return tns_make_##s(INF, INF); } \
    TN_HOT tn_b8 tns_arg_above_##s(T a, T b) { return !tns_isnan_##s(b) && (tns_isnan_##s(a) || tns_lt_##s(b, a)); } \
    TN_HOT tn_b8 tns_arg_below_##s(T a, T b) { return !tns_isnan_##s(b) && (tns_isnan_##s(a) || tns_lt_##s(a, b)); }
TNS__COMPLEX(c64, tn_c64, f32, tn_f32, TNS_INF_F32, fabsf)
TNS__COMPLEX(c128, tn_c128, f64, tn_f64, TNS_INF_F64, fabs)

/* ---- elementary functions of complex128 ---- */

#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(TNS_COMPLEX_FORMULAS)
#define TNS__REAL_IMAGINARY(z) tn_f64 x = tns_re_c128(z), y = tns_im_c128(z);
/* i z, and w / i */
TN_HOT tn_c128 tns__turn(tn_c128 z) { return tns_make_c128(-tns_im_c128(z), tns_re_c128(z)); }
TN_HOT tn_c128 tns__turn_back(tn_c128 w) { return tns_make_c128(tns_im_c128(w), -tns_re_c128(w)); }

TN_FN tn_c128 tns_exp_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    tn_f64 e = tns_exp_f64(x);
    return y == 0 ? tns_make_c128(e, y) : tns_make_c128(e * tns_cos_f64(y), e * tns_sin_f64(y));
}
TN_FN tn_c128 tns_log_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    tn_f64 h = tns_hypot_f64(x, y), a = TNS_LIBM(fabs)(x), b = TNS_LIBM(fabs)(y);
    tn_f64 most = a > b ? a : b, least = a > b ? b : a;
    /* near the unit circle, log h = log1p(h² - 1) / 2 */
    tn_f64 size = h > 0.5 && h < 2 ? 0.5 * tns_log1p_f64((most - 1) * (most + 1) + least * least) : tns_log_f64(h);
    return tns_make_c128(size, tns_atan2_f64(y, x));
}
TN_FN tn_c128 tns_sqrt_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    if (x == 0 && y == 0)
        return tns_make_c128(0, y);
    if (TNS_LIBM(fabs)(y) == TNS_INF_F64)
        return tns_make_c128(TNS_INF_F64, y);
    tn_f64 t = tns_sqrt_f64(0.5 * TNS_LIBM(fabs)(x) + 0.5 * tns_hypot_f64(x, y));
    if (x >= 0)
        return tns_make_c128(t, y / (2 * t));
    return tns_make_c128(TNS_LIBM(fabs)(y) / (2 * t), TNS_LIBM(copysign)(t, y));
}
TN_FN tn_c128 tns_sin_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    return tns_make_c128(tns_sin_f64(x) * tns_cosh_f64(y), tns_cos_f64(x) * tns_sinh_f64(y));
}
TN_FN tn_c128 tns_cos_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    return tns_make_c128(tns_cos_f64(x) * tns_cosh_f64(y), -(tns_sin_f64(x) * tns_sinh_f64(y)));
}
TN_FN tn_c128 tns_sinh_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    return tns_make_c128(tns_sinh_f64(x) * tns_cos_f64(y), tns_cosh_f64(x) * tns_sin_f64(y));
}
TN_FN tn_c128 tns_cosh_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    return tns_make_c128(tns_cosh_f64(x) * tns_cos_f64(y), tns_sinh_f64(x) * tns_sin_f64(y));
}
TN_FN tn_c128 tns_tanh_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    if (TNS_LIBM(fabs)(x) > 22) { /* beyond, tanh x is 1 */
        tn_f64 e = tns_exp_f64(-2 * TNS_LIBM(fabs)(x));
        return tns_make_c128(TNS_LIBM(copysign)(1.0, x), 4 * tns_sin_f64(y) * tns_cos_f64(y) * e);
    }
    tn_f64 t = tns_tan_f64(y), beta = 1 + t * t, s = tns_sinh_f64(x), rho = tns_sqrt_f64(1 + s * s),
           d = 1 + beta * s * s;
    return tns_make_c128(beta * rho * s / d, t / d);
}
TN_FN tn_c128 tns_tan_c128(tn_c128 z) { return tns__turn_back(tns_tanh_c128(tns__turn(z))); }
TN_FN tn_c128 tns_asin_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    tn_c128 m = tns_sqrt_c128(tns_make_c128(1 - x, -y)), p = tns_sqrt_c128(tns_make_c128(1 + x, y));
    return tns_make_c128(tns_atan2_f64(x, tns_re_c128(tns_mul_c128(m, p))),
                         tns_asinh_f64(tns_im_c128(tns_mul_c128(tns_conjugate_c128(m), p))));
}
TN_FN tn_c128 tns_acos_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    tn_c128 m = tns_sqrt_c128(tns_make_c128(1 - x, -y)), p = tns_sqrt_c128(tns_make_c128(1 + x, y));
    return tns_make_c128(2 * tns_atan2_f64(tns_re_c128(m), tns_re_c128(p)),
                         tns_asinh_f64(tns_im_c128(tns_mul_c128(tns_conjugate_c128(p), m))));
}
TN_FN tn_c128 tns_acosh_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    tn_c128 m = tns_sqrt_c128(tns_make_c128(x - 1, y)), p = tns_sqrt_c128(tns_make_c128(x + 1, y));
    return tns_make_c128(tns_asinh_f64(tns_re_c128(tns_mul_c128(tns_conjugate_c128(m), p))),
                         2 * tns_atan2_f64(tns_im_c128(m), tns_re_c128(p)));
}
TN_FN tn_c128 tns_atanh_c128(tn_c128 z)
{
    TNS__REAL_IMAGINARY(z)
    return tns_make_c128(0.25 * tns_log1p_f64(4 * x / ((1 - x) * (1 - x) + y * y)),
                         0.5 * tns_atan2_f64(2 * y, (1 - x) * (1 + x) - y * y));
}
TN_FN tn_c128 tns_asinh_c128(tn_c128 z) { return tns__turn_back(tns_asin_c128(tns__turn(z))); }
TN_FN tn_c128 tns_atan_c128(tn_c128 z) { return tns__turn_back(tns_atanh_c128(tns__turn(z))); }
TN_FN tn_c128 tns__power_c128(tn_c128 a, tn_c128 b) { return tns_exp_c128(tns_mul_c128(b, tns_log_c128(a))); }
#else
#define TNS__LIBM_COMPLEX(name) TN_FN tn_c128 tns_##name##_c128(tn_c128 z) { return TNS_LIBM(c##name)(z); }
TNS__LIBM_COMPLEX(exp) TNS__LIBM_COMPLEX(log) TNS__LIBM_COMPLEX(sqrt)
TNS__LIBM_COMPLEX(sin) TNS__LIBM_COMPLEX(cos) TNS__LIBM_COMPLEX(tan)
TNS__LIBM_COMPLEX(asin) TNS__LIBM_COMPLEX(acos) TNS__LIBM_COMPLEX(atan)
TNS__LIBM_COMPLEX(sinh) TNS__LIBM_COMPLEX(cosh) TNS__LIBM_COMPLEX(tanh)
TNS__LIBM_COMPLEX(asinh) TNS__LIBM_COMPLEX(acosh) TNS__LIBM_COMPLEX(atanh)
TN_FN tn_c128 tns__power_c128(tn_c128 a, tn_c128 b) { return TNS_LIBM(cpow)(a, b); }
#endif

TN_FN tn_c128 tns__scaled_c128(tn_c128 z, tn_f64 factor)
{
    return tns_make_c128(tns_re_c128(z) * factor, tns_im_c128(z) * factor);
}
TN_FN tn_c128 tns_exp2_c128(tn_c128 z) { return tns_exp_c128(tns__scaled_c128(z, 0.69314718055994530942)); }
TN_FN tn_c128 tns_log2_c128(tn_c128 z) { return tns__scaled_c128(tns_log_c128(z), 1.44269504088896340736); }
TN_FN tn_c128 tns_log10_c128(tn_c128 z) { return tns__scaled_c128(tns_log_c128(z), 0.43429448190325182765); }
/* e^x cos y - 1 = expm1(x) cos y - 2 sin²(y / 2) */
TN_FN tn_c128 tns_expm1_c128(tn_c128 z)
{
    tn_f64 x = tns_re_c128(z), y = tns_im_c128(z), h = tns_sin_f64(0.5 * y);
    return tns_make_c128(tns_expm1_f64(x) * tns_cos_f64(y) - 2 * h * h, tns_exp_f64(x) * tns_sin_f64(y));
}
TN_FN tn_c128 tns_log1p_c128(tn_c128 z)
{
    tn_f64 x = tns_re_c128(z) + 1, y = tns_im_c128(z);
    return tns_make_c128(tns_log_f64(tns_hypot_f64(x, y)), tns_atan2_f64(y, x));
}

/* By multiplication for whole exponents below 100, as NumPy. */
TN_FN tn_c128 tns_pow_c128(tn_c128 a, tn_c128 b)
{
    tn_f64 br = tns_re_c128(b), bi = tns_im_c128(b);
    if (br == 0 && bi == 0)
        return tns_make_c128(1, 0);
    if (tns_re_c128(a) == 0 && tns_im_c128(a) == 0)
        return br > 0 ? tns_make_c128(0, 0) : tns_make_c128(TNS_NAN_F64, TNS_NAN_F64);
    if (bi == 0 && br > -100 && br < 100 && br == (tn_f64)(int)br) {
        int n = (int)br < 0 ? -(int)br : (int)br;
        if (br == 1)
            return a; /* 1 would make an infinity's other part NaN */
        if (br == 2)
            return tns_mul_c128(a, a);
        if (br == 3)
            return tns_mul_c128(a, tns_mul_c128(a, a));
        tn_c128 result = tns_make_c128(1, 0);
        for (tn_c128 p = a; n > 0; n >>= 1, p = tns_mul_c128(p, p))
            if (n & 1)
                result = tns_mul_c128(result, p);
        return br < 0 ? tns_reciprocal_c128(result) : result;
    }
    return tns__power_c128(a, b);
}

/* ---- complex64 by way of complex128 ---- */

#define TNS__BY_WIDER(name) \
    TN_FN tn_c64 tns_##name##_c64(tn_c64 z) { return tns_cast_c64_c128(tns_##name##_c128(tns_cast_c128_c64(z))); }
TNS__BY_WIDER(exp2) TNS__BY_WIDER(expm1)
TNS__BY_WIDER(log) TNS__BY_WIDER(log2) TNS__BY_WIDER(log10) TNS__BY_WIDER(log1p) TNS__BY_WIDER(sqrt)
TNS__BY_WIDER(sin) TNS__BY_WIDER(cos) TNS__BY_WIDER(tan)
TNS__BY_WIDER(asin) TNS__BY_WIDER(acos) TNS__BY_WIDER(atan)
TNS__BY_WIDER(sinh) TNS__BY_WIDER(cosh) TNS__BY_WIDER(tanh)
TNS__BY_WIDER(asinh) TNS__BY_WIDER(acosh) TNS__BY_WIDER(atanh)
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
/* With sine and cosine of one reduction. e^700 is infinite in float32 even times the smallest sine or cosine. */
TN_HOT tn_c64 tns_exp_c64(tn_c64 z)
{
    tn_u32 q;
    tn_f64 e = tns__power_of_e(tns__above_f32(tns__below_f32(z.re, 700.0f), -700.0f));
    tn_f64 r = tns__reduce_near_f64(z.im, &q), w = r * r;
    tn_f64 s = fma(r * w, fma(w, fma(w, fma(w, 2.92176878e-6, -1.98612950e-4), 8.33339710e-3), -0.166666672), r);
    tn_f64 c = fma(w, fma(w, fma(w, fma(w, fma(w, -3.21313764e-7, 2.48527704e-5), -1.38890487e-3), 4.16666679e-2),
                          -0.5), 1.0);
    tn_f32 sine = (tn_f32)(e * ((q & 1u) ? c : s)), cosine = (tn_f32)(e * ((q & 1u) ? s : c));
    sine = tns_f32_bits(tns_bits_f32(sine) ^ ((tns_bits_f32(z.im) ^ q << 30) & 0x80000000u));
    cosine = tns_f32_bits(tns_bits_f32(cosine) ^ ((q + 1u) << 30 & 0x80000000u));
    return tns_make_c64(cosine, z.im == 0.0f ? z.im : sine);
}
#else
TNS__BY_WIDER(exp)
#endif
TN_FN tn_c64 tns_pow_c64(tn_c64 a, tn_c64 b)
{
    return tns_cast_c64_c128(tns_pow_c128(tns_cast_c128_c64(a), tns_cast_c128_c64(b)));
}

#endif
