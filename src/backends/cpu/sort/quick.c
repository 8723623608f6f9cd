/* SPDX-License-Identifier: MIT */
/*
 * Quicksort of keys (Hoare 1962), whose equals need no order. A vector is parted by the pivot at once: one permutation,
 * looked up by which of its keys are not greater, puts these in front; it is then stored twice, over what has been
 * read, where those in front count, and from the end of the room, where those behind count. Few keys are sorted in
 * registers: eight vectors by a network, transposed, and their runs merged as bitonic ones (Batcher 1968). Of keys of 8
 * bytes, of which registers hold too few, eight pieces at a time are. Pivots that go wrong too often leave a piece to
 * radix.
 */
#include "backends/cpu/sort/quick.h"

#include <pthread.h>
#include <string.h>

#include "backends/cpu/sort/network.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    LEAST = 96,            /* least words for which quicksort pays */
    MOST_KEYS32 = 1 << 18, /* most keys: with more, radix divides the work among threads */
    MOST_KEYS64 = 1 << 15,
    FEW_BITS = 18,  /* keys of at most two radix digits are sorted by radix */
    PIECE_u32 = 64, /* words of a piece that is sorted in registers */
    PIECE_u64 = 32,
    PIECES = TN__NETWORK_ROWS
};

/* ---- few words ---- */

/* Pieces that wait to be sorted together by the network. */
typedef struct pieces {
    int count;
    int64_t longest;
    uint64_t *at[PIECES];
    int64_t length[PIECES];
} pieces;

static void sort_pieces(pieces *p)
{
    uint64_t words[PIECES * PIECE_u64];
    _Alignas(32) uint64_t room[PIECES * PIECE_u64];
    const int64_t n = p->longest;
    if (p->count == 0)
        return;
    for (int i = 0; i < PIECES; i++) { /* short pieces are padded with the greatest word */
        const int64_t length = i < p->count ? p->length[i] : 0;
        for (int64_t k = 0; k < n; k++)
            words[i * n + k] = k < length ? p->at[i][k] : UINT64_MAX;
    }
    tn__network_sort(TN__RADIX_KEYS64, words, n, room);
    for (int i = 0; i < p->count; i++)
        memcpy(p->at[i], words + i * n, (size_t)p->length[i] * sizeof *words);
    p->count = 0, p->longest = 0;
}

static void few_u64(pieces *p, uint64_t *words, int64_t n)
{
    if (n < 2)
        return;
    p->at[p->count] = words, p->length[p->count++] = n;
    p->longest = n > p->longest ? n : p->longest;
    if (p->count == PIECES)
        sort_pieces(p);
}

#define HERE   static inline __attribute__((target("avx2"), always_inline))
#define UNROLL _Pragma("GCC unroll 8")

HERE void exchange(__m256i *a, __m256i *b)
{
    const __m256i least = _mm256_min_epu32(*a, *b);
    *b = _mm256_max_epu32(*a, *b);
    *a = least;
}
/* Sorts a bitonic vector: exchanges words that are 4, 2 and 1 apart. */
HERE __m256i merge_vector(__m256i v)
{
    __m256i w = _mm256_permute2x128_si256(v, v, 1);
    v = _mm256_blend_epi32(_mm256_min_epu32(v, w), _mm256_max_epu32(v, w), 0xf0);
    w = _mm256_shuffle_epi32(v, 0x4e);
    v = _mm256_blend_epi32(_mm256_min_epu32(v, w), _mm256_max_epu32(v, w), 0xcc);
    w = _mm256_shuffle_epi32(v, 0xb1);
    return _mm256_blend_epi32(_mm256_min_epu32(v, w), _mm256_max_epu32(v, w), 0xaa);
}
/* Merges two ascending runs of `half` vectors each, one after the other: with the second one reversed they are a
 * bitonic sequence. */
HERE void merge(__m256i *v, int half)
{
    const __m256i round = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    __m256i w[4];
    UNROLL for (int i = 0; i < half; i++) w[i] = _mm256_permutevar8x32_epi32(v[2 * half - 1 - i], round);
    UNROLL for (int i = 0; i < half; i++)
    {
        v[half + i] = w[i];
        exchange(&v[i], &v[half + i]);
    }
    UNROLL for (int apart = half / 2; apart > 0; apart /= 2) UNROLL for (int i = 0; i < 2 * half; i++) if (!(i & apart))
        exchange(&v[i], &v[i + apart]);
    UNROLL for (int i = 0; i < 2 * half; i++) v[i] = merge_vector(v[i]);
}
/* Transposes eight vectors. */
HERE void turn(__m256i *v)
{
    __m256i w[8];
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        w[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        w[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) UNROLL for (int k = 0; k < 2; k++)
    {
        v[i + 2 * k] = _mm256_unpacklo_epi64(w[i + k], w[i + k + 2]);
        v[i + 2 * k + 1] = _mm256_unpackhi_epi64(w[i + k], w[i + k + 2]);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        w[i] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x20);
        w[i + 4] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x31);
    }
    memcpy(v, w, sizeof w);
}

static __attribute__((target("avx2"))) void few_u32(pieces *p, uint32_t *words, int64_t n)
{
    /* a network of 19 exchanges for 8 (Knuth, The Art of Computer Programming 3, 5.3.4) */
    static const uint8_t pairs[19][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 1}, {2, 3},
                                         {4, 5}, {6, 7}, {2, 4}, {3, 5}, {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
    uint32_t copy[PIECE_u32];
    __m256i v[8];
    (void)p;
    memcpy(copy, words, (size_t)n * sizeof *words);
    for (int64_t i = n; i < PIECE_u32; i++)
        copy[i] = UINT32_MAX;
    UNROLL for (int i = 0; i < 8; i++) v[i] = _mm256_loadu_si256((const __m256i *)(copy + 8 * i));
    _Pragma("GCC unroll 19") for (int i = 0; i < 19; i++) exchange(&v[pairs[i][0]], &v[pairs[i][1]]);
    turn(v);
    UNROLL for (int i = 0; i < 8; i += 2) merge(v + i, 1);
    merge(v, 2);
    merge(v + 4, 2);
    merge(v, 4);
    UNROLL for (int i = 0; i < 8; i++) _mm256_storeu_si256((__m256i *)(copy + 8 * i), v[i]);
    memcpy(words, copy, (size_t)n * sizeof *words);
}

/* ---- parting ---- */

/* Lanes of 4 bytes in the order that puts those whose bits are set in front: of 8 words, and of 4 twice as long. */
static uint8_t order_u32[256][8], order_u64[16][8];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_orders(void)
{
    for (int bits = 0; bits < 256; bits++)
        for (int lane = 0, front = 0, behind = __builtin_popcount((unsigned)bits); lane < 8; lane++)
            order_u32[bits][bits >> lane & 1 ? front++ : behind++] = (uint8_t)lane;
    for (int bits = 0; bits < 16; bits++)
        for (int lane = 0, front = 0, behind = __builtin_popcount((unsigned)bits); lane < 4; lane++) {
            uint8_t *to = order_u64[bits] + 2 * (bits >> lane & 1 ? front++ : behind++);
            to[0] = (uint8_t)(2 * lane), to[1] = (uint8_t)(2 * lane + 1);
        }
}

/* The bit set of a vector's words that are not greater than the pivot. */
#define BITS_u32(v) _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_min_epu32(v, pivots), v)))
#define BITS_u64(v) \
    (15 ^ _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_xor_si256(v, signs), pivots))))
#define PIVOTS_u32(x) _mm256_set1_epi32((int)(x))
#define PIVOTS_u64(x) _mm256_set1_epi64x((long long)((x) ^ (uint64_t)1 << 63))

/* Partitions words in place, those not greater than the pivot first; returns the number of these. */
#define PART(name, W, LANES) \
    static __attribute__((target("avx2,popcnt"))) int64_t part_##name(W *words, W *room, int64_t n, W pivot) \
    { \
        const __m256i pivots = PIVOTS_##name(pivot), signs = _mm256_set1_epi64x((long long)((uint64_t)1 << 63)); \
        (void)signs; \
        int64_t i = 0, lower = 0, top = n; \
        for (; i + LANES <= n; i += LANES) { \
            const __m256i v = _mm256_loadu_si256((const __m256i *)(words + i)); \
            const int bits = BITS_##name(v), count = __builtin_popcount((unsigned)bits); \
            const __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)order_##name[bits])); \
            const __m256i parted = _mm256_permutevar8x32_epi32(v, lanes); \
            _mm256_storeu_si256((__m256i *)(room + top - LANES), parted); \
            _mm256_storeu_si256((__m256i *)(words + lower), parted); \
            lower += count, top -= LANES - count; \
        } \
        for (; i < n; i++) { \
            const W w = words[i]; \
            if (w <= pivot) \
                words[lower++] = w; \
            else \
                room[--top] = w; \
        } \
        memcpy(words + lower, room + top, (size_t)(n - top) * sizeof(W)); \
        return lower; \
    }
#define FORM_u32 TN__RADIX_KEYS32
#define FORM_u64 TN__RADIX_KEYS64
#define WORK(name, W) \
    static W middle_##name(W a, W b, W c) \
    { \
        const W low = a < b ? a : b, high = a < b ? b : a, top = high < c ? high : c; \
        return low > top ? low : top; \
    } \
    static W pivot_##name(const W *w, int64_t n) \
    { \
        W m[3]; \
        for (int i = 0; i < 3; i++) \
            m[i] = middle_##name(w[n * (6 * i + 1) / 18], w[n * (6 * i + 3) / 18], w[n * (6 * i + 5) / 18]); \
        return middle_##name(m[0], m[1], m[2]); \
    } \
    static void quick_##name(pieces *p, W *words, W *room, int64_t n, int depth) \
    { \
        for (; n > PIECE_##name; depth--) { \
            if (depth == 0) { \
                tn__radix r = {.form = FORM_##name, .n = n, .words = words, .room = room}; \
                r.high = 8 * sizeof(W), r.team = 1; \
                const W *sorted = tn__radix_sort(&r); \
                if (sorted != words) \
                    memcpy(words, sorted, (size_t)n * sizeof(W)); \
                return; \
            } \
            const W pivot = pivot_##name(words, n); \
            int64_t lower = part_##name(words, room, n, pivot); \
            if (lower == n) { /* none is greater: the words equal to the pivot are in their final places */ \
                n = pivot ? part_##name(words, room, n, pivot - 1) : 0; \
                continue; \
            } \
            const bool first = lower < n - lower; \
            quick_##name(p, first ? words : words + lower, room, first ? lower : n - lower, depth - 1); \
            words = first ? words + lower : words; \
            n = first ? n - lower : lower; \
        } \
        few_##name(p, words, n); \
    }

PART(u32, uint32_t, 8)
PART(u64, uint64_t, 4)
WORK(u32, uint32_t)
WORK(u64, uint64_t)

/*
 * On one Zen 3 core, ns a word, quick and radix: float32, 1,024 of them 4.8 and 12.4, 16,384 5.1 and 8.8, 262,144 6.3
 * and 10.5; float64, 1,024 12.2 and 17.6, 16,384 13.1 and 12.7; int64 below 10^6, 1,024 10.6 and 32, 65,536 13.7
 * and 24.
 */
bool tn__quick_suits(const tn__radix *r)
{
    int64_t most = r->form == TN__RADIX_KEYS32 ? MOST_KEYS32 : r->form == TN__RADIX_KEYS64 ? MOST_KEYS64 : 0;
    return r->n >= LEAST && r->n * r->team <= most && r->high - r->low > FEW_BITS && tn__network_here();
}

void tn__quick_sort(const tn__radix *r)
{
    pthread_once(&once, make_orders);
    pieces p = {0};
    int depth = 2 * (64 - __builtin_clzll((uint64_t)r->n));
    if (r->form == TN__RADIX_KEYS32) {
        quick_u32(&p, r->words, r->room, r->n, depth);
    } else {
        quick_u64(&p, r->words, r->room, r->n, depth);
        sort_pieces(&p);
    }
}

#else

bool tn__quick_suits(const tn__radix *r)
{
    (void)r;
    return false;
}

void tn__quick_sort(const tn__radix *r) { (void)r; }

#endif
