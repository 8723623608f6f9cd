/* SPDX-License-Identifier: MIT */
/* Integers of a fixed byte order in files, whatever the machine's own. */
#ifndef TN_IO_BYTES_H
#define TN_IO_BYTES_H

#include <stdint.h>
#include <stddef.h>
#include <tanso/base.h>

#define TN__HOST_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static inline uint64_t tn__get_little(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}
static inline uint64_t tn__get_big(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}
static inline void tn__put_little(uint8_t *bytes, int count, uint64_t value)
{
    for (int i = 0; i < count; i++, value >>= 8)
        bytes[i] = (uint8_t)value;
}

/* Reverses the bytes of each of `count` elements of `size` bytes. */
void tn__swap_bytes(void *elements, size_t count, size_t size);
/* The same for elements of a dtype: of complex numbers, each part. */
void tn__swap_elements(void *elements, size_t count, tn_dtype dtype);
/* Makes every element of a bool array 0 or 1: whatever else a file holds counts as true. */
void tn__normalize_bools(void *elements, size_t count);

#endif
