/* SPDX-License-Identifier: MIT */
/*
 * Keys: unsigned numbers in the order of the elements, as macros over the element's bits u of the unsigned type U. NaN
 * comes last, zeros of either sign are equal. INF: the bits of a float dtype's infinity.
 */
#ifndef TN_BACKENDS_CPU_SORT_KEYS_H
#define TN_BACKENDS_CPU_SORT_KEYS_H

#define SIGN(U) ((U)((U)1 << (8 * sizeof(U) - 1)))
#define KEY_UNSIGNED(U, u, INF) (u)
#define KEY_SIGNED(U, u, INF)   ((U)((u) ^ SIGN(U)))
/* Branches would go either way by chance: all bits as the highest one, which tells what is below zero, and what exceeds
 * infinity. */
#define TOP(U, x) ((U)((U)0 - (U)((U)(x) >> (8 * sizeof(U) - 1))))
#define SIZE(U, u) ((U)((u) & (U)~SIGN(U)))
#define NAN_MASK(U, u, INF) TOP(U, (U)(INF) - SIZE(U, u))
#define KEY_FLOAT(U, u, INF) ((U)((U)(SIGN(U) + (U)((SIZE(U, u) ^ TOP(U, u)) - TOP(U, u))) | NAN_MASK(U, u, INF)))

/* X(dtype, name, U, the key's kind, INF) for every dtype that has an order. */
#define TN__CPU_KEYED(X) \
    X(TN_BOOL, b8, uint8_t, UNSIGNED, 0) \
    X(TN_UINT8, u8, uint8_t, UNSIGNED, 0) \
    X(TN_UINT16, u16, uint16_t, UNSIGNED, 0) \
    X(TN_UINT32, u32, uint32_t, UNSIGNED, 0) \
    X(TN_UINT64, u64, uint64_t, UNSIGNED, 0) \
    X(TN_INT8, i8, uint8_t, SIGNED, 0) \
    X(TN_INT16, i16, uint16_t, SIGNED, 0) \
    X(TN_INT32, i32, uint32_t, SIGNED, 0) \
    X(TN_INT64, i64, uint64_t, SIGNED, 0) \
    X(TN_FLOAT16, f16, uint16_t, FLOAT, 0x7c00u) \
    X(TN_BFLOAT16, bf16, uint16_t, FLOAT, 0x7f80u) \
    X(TN_FLOAT32, f32, uint32_t, FLOAT, 0x7f800000u) \
    X(TN_FLOAT64, f64, uint64_t, FLOAT, 0x7ff0000000000000ull)

#endif
