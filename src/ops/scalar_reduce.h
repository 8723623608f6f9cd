/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 6: what reductions start from and how positions are compared, and the operations whose meaning
 * differs between bool and integers (needs scalar_base.h and scalar_arith.h).
 *
 * tns_arg_above(a, b): a beats b strictly as a maximum. A NaN beats every number and no NaN, so that the first one
 * wins.
 */
#ifndef TN_OPS_SCALAR_REDUCE_H
#define TN_OPS_SCALAR_REDUCE_H

#define TNS__ENDS(s, T, least, most) \
    TN_HOT T tns_lowest_##s(void) { return least; } \
    TN_HOT T tns_highest_##s(void) { return most; }
#define TNS__ARG_INTEGER(s, T) \
    TN_HOT tn_b8 tns_arg_above_##s(T a, T b) { return a > b; } \
    TN_HOT tn_b8 tns_arg_below_##s(T a, T b) { return a < b; }
#define TNS__ARG_FLOAT(s, T) \
    TN_HOT tn_b8 tns_arg_above_##s(T a, T b) { return a > b || (a != a && b == b); } \
    TN_HOT tn_b8 tns_arg_below_##s(T a, T b) { return a < b || (a != a && b == b); }
#define TNS__REDUCE_INTEGER(s, T, least, most) \
    TNS__ENDS(s, T, least, most) \
    TNS__ARG_INTEGER(s, T) \
    TN_HOT T tns_invert_##s(T a) { return (T)~a; }

TNS__REDUCE_INTEGER(i8, tn_i8, -128, 127)
TNS__REDUCE_INTEGER(i16, tn_i16, -32768, 32767)
TNS__REDUCE_INTEGER(i32, tn_i32, -2147483647 - 1, 2147483647)
TNS__REDUCE_INTEGER(i64, tn_i64, -9223372036854775807ll - 1, 9223372036854775807ll)
TNS__REDUCE_INTEGER(u8, tn_u8, 0, 255)
TNS__REDUCE_INTEGER(u16, tn_u16, 0, 65535)
TNS__REDUCE_INTEGER(u32, tn_u32, 0, 4294967295u)
TNS__REDUCE_INTEGER(u64, tn_u64, 0, 18446744073709551615ull)
TNS__ENDS(f32, tn_f32, -TNS_INF_F32, TNS_INF_F32)
TNS__ENDS(f64, tn_f64, -TNS_INF_F64, TNS_INF_F64)
TNS__ARG_FLOAT(f32, tn_f32)
TNS__ARG_FLOAT(f64, tn_f64)

TNS__ENDS(b8, tn_b8, 0, 1)
TNS__ARG_INTEGER(b8, tn_b8)
TN_HOT tn_b8 tns_invert_b8(tn_b8 a) { return !a; }
/* One bit, shifted out by anything but 0. */
TN_HOT tn_b8 tns_shl_b8(tn_b8 a, tn_b8 n) { return n ? 0 : a; }
TN_HOT tn_b8 tns_shr_b8(tn_b8 a, tn_b8 n) { return n ? 0 : a; }

#endif
