/* SPDX-License-Identifier: MIT */
/* Which vector instructions to use: what the processor has, or less where TANSO_SIMD asks for it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/base/simd.h"
#include "core/log.h"

static tn__simd simd_here(void)
{
#if defined(__x86_64__)
    const char *wanted = getenv("TANSO_SIMD");
    if (wanted && strcmp(wanted, "off") == 0)
        return TN__SIMD_NONE;
    if (wanted && *wanted && strcmp(wanted, "avx2") != 0)
        tn__log(TN__LOG_WARN, "cpu", "TANSO_SIMD: expected avx2 or off; got '%s': going on with the widest vectors",
                wanted);
    if (__builtin_cpu_supports("avx512f") && !(wanted && strcmp(wanted, "avx2") == 0))
        return TN__SIMD_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return TN__SIMD_AVX2;
#endif
    return TN__SIMD_NONE;
}

tn__simd tn__cpu_simd(void)
{
    static _Atomic int known;
    int simd = atomic_load_explicit(&known, memory_order_relaxed);
    if (simd == TN__SIMD_UNKNOWN)
        atomic_store_explicit(&known, simd = simd_here(), memory_order_relaxed);
    return simd;
}
