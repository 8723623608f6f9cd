/* SPDX-License-Identifier: MIT */
/*
 * Searching in sorted rows by halving, without branches: which half a value lies in is chance. A value's next element to look at depends on
 * the one before, so several values are searched for by turns, which wait for memory together. As all look at equally many elements,
 * they need no end of their own.
 */
#include "backends/cpu/search.h"

#include "backends/cpu/keys.h"

enum { TOGETHER = 8 };

#define SEARCH(dtype, name, U, KIND, INF) \
    static inline U key_##name(const char *at) \
    { \
        const U u = *(const U *)at; \
        return KEY_##KIND(U, u, INF); \
    } \
    static void search_##name(const tn__cpu_search_row *row) \
    { \
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
