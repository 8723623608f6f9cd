/* SPDX-License-Identifier: MIT */
/* Vector instructions of the processor, for loops that are compiled for several kinds of it (isa_*.h). */
#ifndef TN_BACKENDS_CPU_BASE_SIMD_H
#define TN_BACKENDS_CPU_BASE_SIMD_H

/* The widest vectors that products, and networks that sort, use: those of the processor, or narrower ones by TANSO_SIMD
 * (avx2, off). */
typedef enum tn__simd { TN__SIMD_UNKNOWN, TN__SIMD_NONE, TN__SIMD_AVX2, TN__SIMD_AVX512 } tn__simd;
tn__simd tn__cpu_simd(void);

#endif
