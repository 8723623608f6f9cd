/* SPDX-License-Identifier: MIT */
/* Hashes: multiply-and-fold over 16 bytes at a time for tables, FNV-1a of 128 bits for names of files. */
#include "core/hash.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* The high and low halves of a 128-bit product, folded together: every input bit reaches about every output bit. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t tn__hash(const void *bytes, size_t count, uint64_t seed)
{
    /* Odd constants without structure: the fractional parts of square roots of 2, 3 and 5, and of the golden ratio. */
    const uint64_t k0 = 0x6A09E667F3BCC909u, k1 = 0xBB67AE8584CAA73Bu, k2 = 0x3C6EF372FE94F82Bu;
    const unsigned char *p = bytes;
    uint64_t h = fold(seed ^ k0, 0x9E3779B97F4A7C15u ^ count), word[4];
    size_t left = count;
    /* Two chains: a fold waits for the one before it. */
    for (uint64_t other = h ^ k2; left >= 32; left -= 32, p += 32) {
        memcpy(word, p, 32);
        h = fold(word[0] ^ k1, word[1] ^ h);
        other = fold(word[2] ^ k2, word[3] ^ other);
        if (left < 64)
            h ^= fold(other, k0);
    }
    for (; left >= 16; left -= 16, p += 16) {
        memcpy(word, p, 16);
        h = fold(word[0] ^ k1, word[1] ^ h);
    }
    if (count % 16) {
        word[0] = word[1] = 0;
        memcpy(word, p, count % 16);
        h = fold(word[0] ^ k2, word[1] ^ h);
    }
    return fold(h ^ k0, k1);
}

/* FNV-1a, draft-eastlake-fnv: basis and prime for 128 bits. */
void tn__hash_name(const void *bytes, size_t count, char name[33])
{
    const unsigned char *p = bytes;
    const wide prime = ((wide)1 << 88) + 0x13B;
    wide h = ((wide)0x6C62272E07BB0142u << 64) | 0x62B821756295C58Du;
    for (size_t i = 0; i < count; i++)
        h = (h ^ p[i]) * prime;
    for (int i = 31; i >= 0; i--, h >>= 4)
        name[i] = "0123456789abcdef"[(unsigned)h & 15];
    name[32] = '\0';
}
