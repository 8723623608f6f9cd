/* SPDX-License-Identifier: MIT */
/* Fixing up elements that came from files. */
#include "io/bytes.h"

#include <byteswap.h>
#include <string.h>

#include "core/dtype.h"

#define SWAP_ALL(bits) \
    for (size_t i = 0; i < count; i++) { \
        uint##bits##_t v; \
        memcpy(&v, bytes + i * sizeof v, sizeof v); \
        v = bswap_##bits(v); \
        memcpy(bytes + i * sizeof v, &v, sizeof v); \
    }

void tn__swap_bytes(void *elements, size_t count, size_t size)
{
    char *bytes = elements;
    if (size == 2)
        SWAP_ALL(16)
    else if (size == 4)
        SWAP_ALL(32)
    else if (size == 8)
        SWAP_ALL(64)
}

void tn__swap_elements(void *elements, size_t count, tn_dtype dtype)
{
    size_t part = tn__dtypes[tn__dtypes[dtype].component].size;
    tn__swap_bytes(elements, count * (tn__dtypes[dtype].size / part), part);
}

void tn__normalize_bools(void *elements, size_t count)
{
    unsigned char *bytes = elements;
    for (size_t i = 0; i < count; i++)
        bytes[i] = bytes[i] != 0;
}
