/* SPDX-License-Identifier: MIT */
/* Random orders that depend on a key alone, and gathering rows by them. */
#include <string.h>
#include "data/dataset.h"
#include "ops/scalar.h"

void tn__shuffling_begin(tn__shuffling *s, uint64_t key, int64_t n, int64_t *order)
{
    *s = (tn__shuffling){.key = key, .left = n - 1, .order = order};
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
}

/* Position i changes places with one of those up to it, drawn by tns_random_below_u64; neighbours share a block of the
 * generator. */
bool tn__shuffling_go_on(tn__shuffling *s, int64_t steps)
{
    tn_u32 word[4] = {0};
    int64_t block = -1;
    for (; s->left > 0 && steps > 0; s->left--, steps--) {
        int64_t i = s->left;
        if (i / 2 != block)
            tns_philox(s->key, (tn_u64)(block = i / 2), 0, word);
        tn_u64 bits = i % 2 ? word[2] | (tn_u64)word[3] << 32 : word[0] | (tn_u64)word[1] << 32;
        int64_t j = (int64_t)tns__below_u64(bits, (tn_u64)i + 1);
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
