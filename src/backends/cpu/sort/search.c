/* SPDX-License-Identifier: MIT */
/*
 * Searching in sorted rows by halving, without branches: which half a value lies in is chance. A value's next element
 * to look at depends on the one before, so several values are searched for by turns, which wait for memory together. As
 * all look at equally many elements, they need no end of their own.
 *
 * Where the elements rise evenly, as the edges of a histogram do, and many values are searched for, a value's place is
 * guessed from that, and put right by what stands around it.
 */
#include "backends/cpu/sort/search.h"

#include "backends/cpu/sort/keys.h"
#include "ops/scalar.h"

enum {
    TOGETHER = 8,
    EVEN_LEAST = 8, /* elements that are looked at whether they rise evenly, */
    EVEN_VALUES = 4 /* by so many values an element */
};

/* An element's bits as a number. */
#define NUMBER_b8(u)   ((double)(u))
#define NUMBER_u8(u)   ((double)(u))
#define NUMBER_u16(u)  ((double)(u))
#define NUMBER_u32(u)  ((double)(u))
#define NUMBER_u64(u)  ((double)(u))
#define NUMBER_i8(u)   ((double)(int8_t)(u))
#define NUMBER_i16(u)  ((double)(int16_t)(u))
#define NUMBER_i32(u)  ((double)(int32_t)(u))
#define NUMBER_i64(u)  ((double)(int64_t)(u))
#define NUMBER_f16(u)  ((double)tn_f16_to_f32(u))
#define NUMBER_bf16(u) ((double)tn_bf16_to_f32(u))
#define NUMBER_f32(u)  ((double)tns_f32_bits(u))
#define NUMBER_f64(u)  tns_f64_bits(u)

#define SEARCH(dtype, name, U, KIND, INF) \
    static inline U key_##name(const char *at) \
    { \
        const U u = *(const U *)at; \
        return KEY_##KIND(U, u, INF); \
    } \
    static inline double number_##name(const char *at) { return NUMBER_##name(*(const U *)at); } \
    /* Whether element i is less than one place off where it is by the first one and the last. */ \
    static bool even_##name(const tn__cpu_search_row *row, double *first, double *rate) \
    { \
        const int64_t n = row->n; \
        if (n < EVEN_LEAST || row->m / EVEN_VALUES < n) \
            return false; \
        *first = number_##name(row->sorted); \
        *rate = (double)(n - 1) / (number_##name(row->sorted + (n - 1) * row->sorted_step) - *first); \
        bool even = *rate > 0; \
        for (int64_t i = 0; i < n && even; i++) { \
            const double off = (number_##name(row->sorted + i * row->sorted_step) - *first) * *rate - (double)i; \
            even = off > -1 && off < 1; \
        } \
        return even; \
    } \
    static void guess_##name(const tn__cpu_search_row *row, double first, double rate) \
    { \
        const char *sorted = row->sorted, *at = row->values; \
        const int64_t step = row->sorted_step, n = row->n; \
        const bool right = row->right; \
        for (int64_t i = 0; i < row->m; i++, at += row->values_step) { \
            const U wanted = key_##name(at); \
            const double place = (number_##name(at) - first) * rate; \
            int64_t below = place < 0 ? 0 : place < (double)(n - 1) ? (int64_t)place + 1 : n; /* n: of NaN, too */ \
            for (U key; below < n && ((key = key_##name(sorted + below * step)) < wanted || \
                                      (right && key == wanted));) \
                below++; \
            for (U key; below > 0 && ((key = key_##name(sorted + (below - 1) * step)) > wanted || \
                                      (!right && key == wanted));) \
                below--; \
            *(int64_t *)(row->to + i * row->to_step) = below; \
        } \
    } \
    static void search_##name(const tn__cpu_search_row *row) \
    { \
        double first, rate; \
        if (even_##name(row, &first, &rate)) { \
            guess_##name(row, first, rate); \
            return; \
        } \
        const char *sorted = row->sorted; \
        const int64_t step = row->sorted_step; \
        const U right = row->right; \
        for (int64_t i = 0; i < row->m; i += TOGETHER) { \
            const int count = row->m - i < TOGETHER ? (int)(row->m - i) : TOGETHER; \
            U wanted[TOGETHER]; \
            int64_t below[TOGETHER] = {0}; /* as many elements, and at most `left` more, stand before the value */ \
            for (int j = 0; j < TOGETHER; j++) \
                wanted[j] = key_##name(row->values + (i + (j < count ? j : 0)) * row->values_step); \
            for (int64_t left = row->n; left > 0;) { \
                const int64_t half = (left + 1) / 2; \
                for (int j = 0; j < TOGETHER; j++) { \
                    const U key = key_##name(sorted + (below[j] + half - 1) * step); \
                    below[j] += half & -(int64_t)((key < wanted[j]) | (right & (key == wanted[j]))); \
                } \
                left -= half; \
            } \
            for (int j = 0; j < count; j++) \
                *(int64_t *)(row->to + (i + j) * row->to_step) = below[j]; \
        } \
    }
TN__CPU_KEYED(SEARCH)

tn__cpu_search tn__cpu_search_of(tn_dtype dtype)
{
#define ENTRY(dtype, name, U, KIND, INF) [dtype] = search_##name,
    static const tn__cpu_search table[TN_DTYPE_COUNT] = {TN__CPU_KEYED(ENTRY)};
    return table[dtype];
}
