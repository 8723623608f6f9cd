/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 2: tns_cast_<to>_<from>(x) for every pair of the 13 dtypes. Integers wrap around; a float
 * becomes an integer by truncation toward zero, and beyond the range what NumPy gives on x86-64: C leaves that open,
 * here every device has the same. Anything becomes b8 by x != 0. To float16 and bfloat16 there is one rounding from
 * every type except 64-bit integers beyond 2^53.
 */
#ifndef TN_OPS_SCALAR_CAST_H
#define TN_OPS_SCALAR_CAST_H

/* A plain C conversion between numbers: to T (suffix t) from F (suffix f). */
#define TNS__CAST_C(t, T, f, F) TN_HOT T tns_cast_##t##_##f(F x) { return (T)x; }
/* Without the first branch gcc 12 turns (F)(T)x into a truncation, which keeps the sign of a zero that an integer has
 * not. */
#define TNS__WHOLE(T, x) ((((x) > -1) & ((x) < 1)) ? (T)0 : (T)(x))
/* Float to integer of 32 or 64 bits, whose least is -end: itself what is beyond the range, and NaN. */
#define TNS__CAST_TRUNCATE(t, T, f, F, end) \
    TN_HOT T tns_cast_##t##_##f(F x) { return ((x >= (F)(-end)) & (x < (F)(end))) ? TNS__WHOLE(T, x) : (T)(-end); }
#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
/* The instruction gives just that, and there is none for vectors, which branches would be in the way of. */
typedef tn_f32 tns__v_f32 __attribute__((vector_size(16)));
typedef tn_f64 tns__v_f64 __attribute__((vector_size(16)));
#define TNS__CAST_I64(f, F, instruction) \
    TN_HOT tn_i64 tns_cast_i64_##f(F x) { return (tn_i64)__builtin_ia32_##instruction((tns__v_##f){x}); }
TNS__CAST_I64(f32, tn_f32, cvttss2si64)
TNS__CAST_I64(f64, tn_f64, cvttsd2si64)
#else
TNS__CAST_TRUNCATE(i64, tn_i64, f32, tn_f32, 9223372036854775808.0)
TNS__CAST_TRUNCATE(i64, tn_i64, f64, tn_f64, 9223372036854775808.0)
#endif
/* To others: the low bits of the integer of 32 bits, uint32 of that of 64. */
#define TNS__CAST_LOW(t, T, wide, f, F) TN_HOT T tns_cast_##t##_##f(F x) { return (T)tns_cast_##wide##_##f(x); }
/* To uint64: from 2^63 on by what is beyond it. */
#define TNS__CAST_UPPER(f, F) \
    TN_HOT tn_u64 tns_cast_u64_##f(F x) \
    { \
        return x >= (F)9223372036854775808.0 ? (tn_u64)tns_cast_i64_##f(x - (F)9223372036854775808.0) ^ \
               0x8000000000000000ull \
                                             : (tn_u64)tns_cast_i64_##f(x); \
    }

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
    TNS__CAST_TRUNCATE(i32, tn_i32, f, F, 2147483648.0) \
    TNS__CAST_LOW(i8, tn_i8, i32, f, F) TNS__CAST_LOW(i16, tn_i16, i32, f, F) TNS__CAST_LOW(u8, tn_u8, i32, f, F) \
    TNS__CAST_LOW(u16, tn_u16, i32, f, F) TNS__CAST_LOW(u32, tn_u32, i64, f, F) TNS__CAST_UPPER(f, F) \
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
