/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 2: tns_cast_<to>_<from>(x) for every pair of the 13 dtypes. Integers wrap around; a float
 * becomes an integer by truncation toward zero, saturating at the ends of the range, NaN giving 0 (NumPy leaves those
 * two undefined); anything becomes b8 by x != 0. To float16 and bfloat16 there is one rounding from every type except
 * 64-bit integers beyond 2^53.
 */
#ifndef TN_SCALAR_CAST_H
#define TN_SCALAR_CAST_H

/* A plain C conversion between numbers: to T (suffix t) from F (suffix f). */
#define TNS__CAST_C(t, T, f, F) TN_HOT T tns_cast_##t##_##f(F x) { return (T)x; }
/* Without the first branch gcc 12 turns (F)(T)x into a truncation, which keeps the sign of a zero that an integer has not. */
#define TNS__WHOLE(T, x) ((x) > -1 && (x) < 1 ? (T)0 : (T)(x))
/* Float to integer: `least` is T's minimum, `end` the first power of two above its maximum, both exact in F. */
#define TNS__CAST_SATURATE(t, T, f, F, least, most, end) \
    TN_HOT T tns_cast_##t##_##f(F x) \
    { return x >= (F)(end) ? (T)(most) : x > (F)(least) ? TNS__WHOLE(T, x) : x <= (F)(least) ? (T)(least) : (T)0; }

#define TNS__CASTS_FROM_INT(f, F) \
    TN_HOT tn_b8 tns_cast_b8_##f(F x) { return x != 0; } \
    TNS__CAST_C(i8, tn_i8, f, F) TNS__CAST_C(i16, tn_i16, f, F) TNS__CAST_C(i32, tn_i32, f, F) \
    TNS__CAST_C(i64, tn_i64, f, F) TNS__CAST_C(u8, tn_u8, f, F) TNS__CAST_C(u16, tn_u16, f, F) \
    TNS__CAST_C(u32, tn_u32, f, F) TNS__CAST_C(u64, tn_u64, f, F) \
    TNS__CAST_C(f32, tn_f32, f, F) TNS__CAST_C(f64, tn_f64, f, F) \
    TN_HOT tn_f16 tns_cast_f16_##f(F x) { return tn_f64_to_f16((tn_f64)x); } \
    TN_HOT tn_bf16 tns_cast_bf16_##f(F x) { return tn_f64_to_bf16((tn_f64)x); }

TNS__CASTS_FROM_INT(b8, tn_b8)
TNS__CASTS_FROM_INT(i8, tn_i8)
TNS__CASTS_FROM_INT(i16, tn_i16)
TNS__CASTS_FROM_INT(i32, tn_i32)
TNS__CASTS_FROM_INT(i64, tn_i64)
TNS__CASTS_FROM_INT(u8, tn_u8)
TNS__CASTS_FROM_INT(u16, tn_u16)
TNS__CASTS_FROM_INT(u32, tn_u32)
TNS__CASTS_FROM_INT(u64, tn_u64)

#define TNS__CASTS_FROM_FLOAT(f, F) \
    TN_HOT tn_b8 tns_cast_b8_##f(F x) { return x != 0; } \
    TNS__CAST_SATURATE(i8, tn_i8, f, F, -128, 127, 128) \
    TNS__CAST_SATURATE(i16, tn_i16, f, F, -32768, 32767, 32768) \
    TNS__CAST_SATURATE(i32, tn_i32, f, F, -2147483647 - 1, 2147483647, 2147483648.0) \
    TNS__CAST_SATURATE(i64, tn_i64, f, F, -9223372036854775807ll - 1, 9223372036854775807ll, 9223372036854775808.0) \
    TNS__CAST_SATURATE(u8, tn_u8, f, F, 0, 255, 256) \
    TNS__CAST_SATURATE(u16, tn_u16, f, F, 0, 65535, 65536) \
    TNS__CAST_SATURATE(u32, tn_u32, f, F, 0, 4294967295u, 4294967296.0) \
    TNS__CAST_SATURATE(u64, tn_u64, f, F, 0, 18446744073709551615ull, 18446744073709551616.0) \
    TNS__CAST_C(f32, tn_f32, f, F) TNS__CAST_C(f64, tn_f64, f, F) \
    TN_HOT tn_f16 tns_cast_f16_##f(F x) { return tn_##f##_to_f16(x); } \
    TN_HOT tn_bf16 tns_cast_bf16_##f(F x) { return tn_##f##_to_bf16(x); }

TNS__CASTS_FROM_FLOAT(f32, tn_f32)
TNS__CASTS_FROM_FLOAT(f64, tn_f64)

/* From float16 and bfloat16: by way of f32, which holds every value of both. */
#define TNS__CAST_HALF(t, T, f) TN_HOT T tns_cast_##t##_##f(tn_##f x) { return tns_cast_##t##_f32(tn_##f##_to_f32(x)); }
#define TNS__CASTS_FROM_HALF(f) \
    TNS__CAST_HALF(b8, tn_b8, f) TNS__CAST_HALF(i8, tn_i8, f) TNS__CAST_HALF(i16, tn_i16, f) \
    TNS__CAST_HALF(i32, tn_i32, f) TNS__CAST_HALF(i64, tn_i64, f) TNS__CAST_HALF(u8, tn_u8, f) \
    TNS__CAST_HALF(u16, tn_u16, f) TNS__CAST_HALF(u32, tn_u32, f) TNS__CAST_HALF(u64, tn_u64, f) \
    TNS__CAST_HALF(f32, tn_f32, f) TNS__CAST_HALF(f64, tn_f64, f)

TNS__CASTS_FROM_HALF(f16)
TNS__CASTS_FROM_HALF(bf16)
TN_HOT tn_f16 tns_cast_f16_f16(tn_f16 x) { return x; }
TN_HOT tn_bf16 tns_cast_bf16_f16(tn_f16 x) { return tn_f32_to_bf16(tn_f16_to_f32(x)); }
TN_HOT tn_f16 tns_cast_f16_bf16(tn_bf16 x) { return tn_f32_to_f16(tn_bf16_to_f32(x)); }
TN_HOT tn_bf16 tns_cast_bf16_bf16(tn_bf16 x) { return x; }

#endif
