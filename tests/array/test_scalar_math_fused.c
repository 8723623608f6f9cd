/* SPDX-License-Identifier: MIT */
/* The same functions as kernels compute them on processors with fused multiply-adds: the same bounds, bits of their
 * own. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("fma")
#endif
#include "test_scalar_math.c"
