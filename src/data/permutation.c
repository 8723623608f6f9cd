/* SPDX-License-Identifier: MIT */
/* Random orders that depend on a key alone, and gathering rows by them. */
#include <string.h>
#include "array/scalar.h"
#include "data/dataset.h"

void tn__permutation(uint64_t key, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)tns_random_below_u64(key, 0, (tn_u64)i, (tn_u64)i + 1);
        int64_t other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}

void tn__gather_rows(void *out, const void *rows, size_t bytes, const int64_t *order, int64_t count)
{
    char *to = out;
    const char *from = rows;
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)order[i] * bytes, bytes);
}
