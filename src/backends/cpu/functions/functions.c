/* SPDX-License-Identifier: MIT */
/* Functions by dtype: the tables of compute dtypes, and casts between all dtypes. */
#include "backends/cpu/functions/functions.h"

#include "ops/scalar.h"

/* Dtypes computed in, and those only stored. */
#define COMPUTED(X, ...) \
    X(TN_BOOL, b8, __VA_ARGS__) \
    X(TN_INT8, i8, __VA_ARGS__) \
    X(TN_INT16, i16, __VA_ARGS__) \
    X(TN_INT32, i32, __VA_ARGS__) \
    X(TN_INT64, i64, __VA_ARGS__) \
    X(TN_UINT8, u8, __VA_ARGS__) \
    X(TN_UINT16, u16, __VA_ARGS__) \
    X(TN_UINT32, u32, __VA_ARGS__) \
    X(TN_UINT64, u64, __VA_ARGS__) \
    X(TN_FLOAT32, f32, __VA_ARGS__) \
    X(TN_FLOAT64, f64, __VA_ARGS__) \
    X(TN_COMPLEX64, c64, __VA_ARGS__) \
    X(TN_COMPLEX128, c128, __VA_ARGS__)
#define STORED(X, ...) \
    COMPUTED(X, __VA_ARGS__) \
    X(TN_FLOAT16, f16, __VA_ARGS__) \
    X(TN_BFLOAT16, bf16, __VA_ARGS__)

#define DECLARE(DTYPE, suffix, ...) extern const tn__cpu_functions tn__cpu_functions_##suffix;
COMPUTED(DECLARE, )
#if defined(__x86_64__)
extern const tn__cpu_functions tn__cpu_functions_f32_fma;
#endif

const tn__cpu_functions *tn__cpu_functions_of(tn_dtype dtype)
{
    static const tn__cpu_functions *const table[TN_DTYPE_COUNT] = {
#define FUNCTIONS(DTYPE, suffix, ...) [DTYPE] = &tn__cpu_functions_##suffix,
        COMPUTED(FUNCTIONS, )};
#if defined(__x86_64__)
    if (dtype == TN_FLOAT32 && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
        return &tn__cpu_functions_f32_fma;
#endif
    return table[dtype];
}

#define CAST_LOOP(t, f, to_size, from_size) \
    for (int64_t i = 0; i < n; i++) \
        *(tn_##t *)(to + i * (to_size)) = tns_cast_##t##_##f(*(const tn_##f *)(from + i * (from_size)));
#define CAST(DTYPE, f, t, ...) \
    static void cast_##t##_##f(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) \
    { \
        const int64_t to_size = sizeof(tn_##t), from_size = sizeof(tn_##f); \
        if (to_step == to_size && from_step == from_size) { \
            INDEPENDENT CAST_LOOP(t, f, to_size, from_size) \
        } else if (to_step == to_size && from_step == 0 && n > 0) { /* one element everywhere */ \
            const tn_##t x = tns_cast_##t##_##f(*(const tn_##f *)from); \
            for (int64_t i = 0; i < n; i++) \
                ((tn_##t *)to)[i] = x; \
        } else { \
            CAST_LOOP(t, f, to_step, from_step) \
        } \
    }
#define CASTS_TO(t) STORED(CAST, t)
CASTS_TO(b8)
CASTS_TO(i8)
CASTS_TO(i16)
CASTS_TO(i32)
CASTS_TO(i64)
CASTS_TO(u8)
CASTS_TO(u16)
CASTS_TO(u32)
CASTS_TO(u64)
CASTS_TO(f16)
CASTS_TO(bf16)
CASTS_TO(f32)
CASTS_TO(f64)
CASTS_TO(c64)
CASTS_TO(c128)

tn__cpu_cast tn__cpu_cast_of(tn_dtype to, tn_dtype from)
{
#define ENTRY(DTYPE, f, t, ...) [DTYPE] = cast_##t##_##f,
#define ROW(t) {STORED(ENTRY, t)}
    static const tn__cpu_cast table[TN_DTYPE_COUNT][TN_DTYPE_COUNT] = {
        [TN_BOOL] = ROW(b8),    [TN_INT8] = ROW(i8),     [TN_INT16] = ROW(i16),   [TN_INT32] = ROW(i32),
        [TN_INT64] = ROW(i64),  [TN_UINT8] = ROW(u8),    [TN_UINT16] = ROW(u16),  [TN_UINT32] = ROW(u32),
        [TN_UINT64] = ROW(u64), [TN_FLOAT16] = ROW(f16), [TN_BFLOAT16] = ROW(bf16),
        [TN_FLOAT32] = ROW(f32), [TN_FLOAT64] = ROW(f64), [TN_COMPLEX64] = ROW(c64), [TN_COMPLEX128] = ROW(c128)};
    return table[to][from];
}
