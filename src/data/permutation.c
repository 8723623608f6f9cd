/* SPDX-License-Identifier: MIT */
/* Random orders that depend on a key alone, and gathering rows by them. */
#include <string.h>
#include "array/scalar.h"
#include "data/dataset.h"

void tn__shuffling_begin(tn__shuffling *s, uint64_t key, int64_t n, int64_t *order)
{
    *s = (tn__shuffling){.key = key, .left = n - 1, .order = order};
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
}

bool tn__shuffling_go_on(tn__shuffling *s, int64_t steps)
{
    for (; s->left > 0 && steps > 0; s->left--, steps--) {
        int64_t i = s->left, j = (int64_t)tns_random_below_u64(s->key, 0, (tn_u64)i, (tn_u64)i + 1);
        int64_t other = s->order[j];
        s->order[j] = s->order[i];
        s->order[i] = other;
    }
    return s->left > 0;
}

void tn__permutation(uint64_t key, int64_t n, int64_t *order)
{
    tn__shuffling shuffling;
    tn__shuffling_begin(&shuffling, key, n, order);
    tn__shuffling_go_on(&shuffling, n);
}

void tn__gather_rows(void *out, const void *rows, size_t bytes, const int64_t *order, int64_t count)
{
    char *to = out;
    const char *from = rows;
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)order[i] * bytes, bytes);
}
