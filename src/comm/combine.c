/* SPDX-License-Identifier: MIT */
/* How elements of two ranks become one: by the scalar functions of the operations of the same meaning. float16 and
 * bfloat16 are combined in float32 and rounded each time. */
#include "comm/comm.h"

#include "ops/scalar.h"

/* Sums of complex numbers are C's own. */
#define tns_add_c64(a, b)  ((a) + (b))
#define tns_add_c128(a, b) ((a) + (b))

#define COMBINE(name, s, T) \
    static void name##_##s(void *to, const void *from, int64_t count) \
    { \
        T *restrict a = to; \
        const T *restrict b = from; \
        for (int64_t i = 0; i < count; i++) \
            a[i] = tns_##name##_##s(b[i], a[i]); \
    }
#define COMBINE_HALF(name, s) \
    static void name##_##s(void *to, const void *from, int64_t count) \
    { \
        tn_##s *restrict a = to; \
        const tn_##s *restrict b = from; \
        for (int64_t i = 0; i < count; i++) \
            a[i] = tns_cast_##s##_f32(tns_##name##_f32(tns_cast_f32_##s(b[i]), tns_cast_f32_##s(a[i]))); \
    }
#define COMBINE_ALL(name) \
    COMBINE(name, b8, tn_b8) COMBINE(name, i8, tn_i8) COMBINE(name, i16, tn_i16) COMBINE(name, i32, tn_i32) \
    COMBINE(name, i64, tn_i64) COMBINE(name, u8, tn_u8) COMBINE(name, u16, tn_u16) COMBINE(name, u32, tn_u32) \
    COMBINE(name, u64, tn_u64) COMBINE(name, f32, tn_f32) COMBINE(name, f64, tn_f64) COMBINE(name, c64, tn_c64) \
    COMBINE(name, c128, tn_c128) COMBINE_HALF(name, f16) COMBINE_HALF(name, bf16)
COMBINE_ALL(add)
COMBINE_ALL(mul)
COMBINE_ALL(max)
COMBINE_ALL(min)

#define ROW(name) \
    {[TN_BOOL] = name##_b8, [TN_INT8] = name##_i8, [TN_INT16] = name##_i16, [TN_INT32] = name##_i32, \
     [TN_INT64] = name##_i64, [TN_UINT8] = name##_u8, [TN_UINT16] = name##_u16, [TN_UINT32] = name##_u32, \
     [TN_UINT64] = name##_u64, [TN_FLOAT16] = name##_f16, [TN_BFLOAT16] = name##_bf16, [TN_FLOAT32] = name##_f32, \
     [TN_FLOAT64] = name##_f64, [TN_COMPLEX64] = name##_c64, [TN_COMPLEX128] = name##_c128}
tn__combine *const tn__combines[TN__COMBINES][TN_DTYPE_COUNT] = {
    [TN_COMM_SUM] = ROW(add), [TN_COMM_MAX] = ROW(max), [TN_COMM_MIN] = ROW(min), [TN_COMM_PROD] = ROW(mul)};
