/* SPDX-License-Identifier: MIT */
/*
 * Sorting networks: Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M), whose
 * comparisons do not depend on what is compared. So a vector has a word of each of eight rows, and a comparison is a
 * least and a greatest of two vectors.
 */
#include "backends/cpu/sort/network.h"

#include "backends/cpu/base/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { ROWS = TN__NETWORK_ROWS };

bool tn__network_here(void) { return tn__cpu_simd() != TN__SIMD_NONE; }

/* A vector has eight words of 4 bytes or, in two registers, of 8; these are compared as signed numbers. */
#define EXCHANGE_u32(a, b) \
    do { \
        __m256i x = _mm256_load_si256((__m256i *)(a)), y = _mm256_load_si256((__m256i *)(b)); \
        _mm256_store_si256((__m256i *)(a), _mm256_min_epu32(x, y)); \
        _mm256_store_si256((__m256i *)(b), _mm256_max_epu32(x, y)); \
    } while (0)
#define EXCHANGE_HALF(a, b) \
    do { \
        __m256i x = _mm256_load_si256((__m256i *)(a)), y = _mm256_load_si256((__m256i *)(b)); \
        __m256i swapped = _mm256_cmpgt_epi64(x, y); \
        _mm256_store_si256((__m256i *)(a), _mm256_blendv_epi8(x, y, swapped)); \
        _mm256_store_si256((__m256i *)(b), _mm256_blendv_epi8(y, x, swapped)); \
    } while (0)
#define EXCHANGE_u64(a, b) \
    do { \
        EXCHANGE_HALF(a, b); \
        EXCHANGE_HALF((a) + ROWS / 2, (b) + ROWS / 2); \
    } while (0)

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Pairs have their eight keys first, then their eight places, which decide between equal ones. */
#define EXCHANGE_SOME_PAIRS(a, b) \
    do { \
        __m256i *a_key = (__m256i *)(a), *b_key = (__m256i *)(b); \
        __m256i x = a_key[0], y = b_key[0], x_place = a_key[2], y_place = b_key[2]; \
        __m256i behind = _mm256_and_si256(_mm256_cmpeq_epi64(x, y), _mm256_cmpgt_epi64(x_place, y_place)); \
        __m256i swapped = _mm256_or_si256(_mm256_cmpgt_epi64(x, y), behind); \
        a_key[0] = _mm256_blendv_epi8(x, y, swapped); \
        b_key[0] = _mm256_blendv_epi8(y, x, swapped); \
        a_key[2] = _mm256_blendv_epi8(x_place, y_place, swapped); \
        b_key[2] = _mm256_blendv_epi8(y_place, x_place, swapped); \
    } while (0)
#define EXCHANGE_pair(a, b) \
    do { \
        EXCHANGE_SOME_PAIRS(a, b); \
        EXCHANGE_SOME_PAIRS((a) + ROWS / 2, (b) + ROWS / 2); \
    } while (0)

#define SIGN ((uint64_t)1 << 63)
#define PUT_u32(to, row, word)  ((to)[row] = (word))
#define TAKE_u32(word, to, row) ((word) = (to)[row])
#define PUT_u64(to, row, word)  ((to)[row] = (word) ^ SIGN)
#define TAKE_u64(word, to, row) ((word) = (to)[row] ^ SIGN)
#define PUT_pair(to, row, word)  ((to)[row] = (word).key ^ SIGN, (to)[ROWS + (row)] = (uint64_t)(word).place)
#define TAKE_pair(word, to, row) ((word).key = (to)[row] ^ SIGN, (word).place = (int64_t)(to)[ROWS + (row)])

/* Knuth's p, q, r and d; what he goes through with i & p == r are stretches of p from r on, a stretch apart. */
#define NETWORK(name, W, PART, STEP) \
    static __attribute__((target("avx2"))) void sort_##name(W *words, int64_t n, PART *room) \
    { \
        int64_t half = 1; \
        while (2 * half < n) \
            half *= 2; \
        for (int row = 0; row < ROWS; row++) \
            for (int64_t i = 0; i < n; i++) \
                PUT_##name(room + i * STEP, row, words[row * n + i]); \
        for (int64_t p = half; p > 0; p /= 2) \
            for (int64_t q = half, r = 0, d = p;; d = q - p, q /= 2, r = p) { \
                for (int64_t first = r; first < n - d; first += 2 * p) \
                    for (int64_t i = first, end = least(first + p, n - d); i < end; i++) \
                        EXCHANGE_##name(room + i * STEP, room + (i + d) * STEP); \
                if (q == p) \
                    break; \
            } \
        for (int row = 0; row < ROWS; row++) \
            for (int64_t i = 0; i < n; i++) \
                TAKE_##name(words[row * n + i], room + i * STEP, row); \
    }
NETWORK(u32, uint32_t, uint32_t, ROWS)
NETWORK(u64, uint64_t, uint64_t, ROWS)
NETWORK(pair, tn__radix_pair, uint64_t, 2 * ROWS)

void tn__network_sort(tn__radix_form form, void *words, int64_t n, void *room)
{
    if (form == TN__RADIX_KEYS32)
        sort_u32(words, n, room);
    else if (form == TN__RADIX_PAIRS)
        sort_pair(words, n, room);
    else
        sort_u64(words, n, room);
}

#else

bool tn__network_here(void) { return false; }

void tn__network_sort(tn__radix_form form, void *words, int64_t n, void *room)
{
    (void)form, (void)words, (void)n, (void)room;
}

#endif
