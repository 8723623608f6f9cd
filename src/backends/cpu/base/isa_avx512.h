/* SPDX-License-Identifier: MIT */
/* Vectors of AVX-512 under the names that the templates of matrix products use; isa_end.h takes the names back. */
#define TARGET            __attribute__((target("avx512f,fma")))
#define ISA(name)         name##_avx512
#define V                 __m512
#define MASK              __mmask16
#define WIDTH             16
#define ZERO()            _mm512_setzero_ps()
#define SPREAD(x)         _mm512_set1_ps(x)
#define FMA(a, b, c)      _mm512_fmadd_ps(a, b, c)
#define FIRST(n)          ((__mmask16)((n) >= 16 ? 0xffff : (1u << (n)) - 1))
#define LOAD(p, mask)     _mm512_maskz_loadu_ps(mask, p)
#define STORE(p, mask, v) _mm512_mask_storeu_ps(p, mask, v)
#define LOAD_ALL(p)       _mm512_loadu_ps(p)
#define STORE_ALL(p, v)   _mm512_storeu_ps(p, v)
/* Four elements of rows r, r + 4, r + 8, ..., a lane each; pairs of elements of a lane, and pairs of pairs. */
#define FOURS(row, r, p) \
    _mm512_insertf32x4( \
        _mm512_insertf32x4(_mm512_insertf32x4(_mm512_castps128_ps512(_mm_loadu_ps(row[r] + (p))), \
                                              _mm_loadu_ps(row[(r) + 4] + (p)), 1), \
                           _mm_loadu_ps(row[(r) + 8] + (p)), 2), \
        _mm_loadu_ps(row[(r) + 12] + (p)), 3)
#define LOW(a, b)         _mm512_unpacklo_ps(a, b)
#define HIGH(a, b)        _mm512_unpackhi_ps(a, b)
#define LOW_PAIRS(a, b) \
    _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#define HIGH_PAIRS(a, b) \
    _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
