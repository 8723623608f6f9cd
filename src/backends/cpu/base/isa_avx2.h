/* SPDX-License-Identifier: MIT */
/* Vectors of AVX2 with FMA under the names that the templates of matrix products use; isa_end.h takes the names
 * back. */
#define TARGET            __attribute__((target("avx2,fma")))
#define ISA(name)         name##_avx2
#define V                 __m256
#define MASK              __m256i
#define WIDTH             8
#define ZERO()            _mm256_setzero_ps()
#define SPREAD(x)         _mm256_set1_ps(x)
#define FMA(a, b, c)      _mm256_fmadd_ps(a, b, c)
#define FIRST(n) \
    _mm256_cmpgt_epi32(_mm256_set1_epi32((int)((n) > 8 ? 8 : (n))), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define LOAD(p, mask)     _mm256_maskload_ps(p, mask)
#define STORE(p, mask, v) _mm256_maskstore_ps(p, mask, v)
#define LOAD_ALL(p)       _mm256_loadu_ps(p)
#define STORE_ALL(p, v)   _mm256_storeu_ps(p, v)
/* Four elements of rows r and r + 4, a lane each; pairs of elements of a lane, and pairs of pairs. */
#define FOURS(row, r, p) \
    _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row[r] + (p))), _mm_loadu_ps(row[(r) + 4] + (p)), 1)
#define LOW(a, b)         _mm256_unpacklo_ps(a, b)
#define HIGH(a, b)        _mm256_unpackhi_ps(a, b)
#define LOW_PAIRS(a, b) \
    _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
#define HIGH_PAIRS(a, b) \
    _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
