/* SPDX-License-Identifier: MIT */
/* MD5, after RFC 1321. */
#include "io/digest.h"

#include <stdio.h>
#include <string.h>
#include "io/bytes.h"

/* RFC 1321, 3.4: element i is the integer part of 2^32 |sin(i + 1)|. */
static const uint32_t sines[64] = {
    0xd76aa478u, 0xe8c7b756u, 0x242070dbu, 0xc1bdceeeu, 0xf57c0fafu, 0x4787c62au, 0xa8304613u, 0xfd469501u,
    0x698098d8u, 0x8b44f7afu, 0xffff5bb1u, 0x895cd7beu, 0x6b901122u, 0xfd987193u, 0xa679438eu, 0x49b40821u,
    0xf61e2562u, 0xc040b340u, 0x265e5a51u, 0xe9b6c7aau, 0xd62f105du, 0x02441453u, 0xd8a1e681u, 0xe7d3fbc8u,
    0x21e1cde6u, 0xc33707d6u, 0xf4d50d87u, 0x455a14edu, 0xa9e3e905u, 0xfcefa3f8u, 0x676f02d9u, 0x8d2a4c8au,
    0xfffa3942u, 0x8771f681u, 0x6d9d6122u, 0xfde5380cu, 0xa4beea44u, 0x4bdecfa9u, 0xf6bb4b60u, 0xbebfbc70u,
    0x289b7ec6u, 0xeaa127fau, 0xd4ef3085u, 0x04881d05u, 0xd9d4d039u, 0xe6db99e5u, 0x1fa27cf8u, 0xc4ac5665u,
    0xf4292244u, 0x432aff97u, 0xab9423a7u, 0xfc93a039u, 0x655b59c3u, 0x8f0ccc92u, 0xffeff47du, 0x85845dd1u,
    0x6fa87e4fu, 0xfe2ce6e0u, 0xa3014314u, 0x4e0811a1u, 0xf7537e82u, 0xbd3af235u, 0x2ad7d2bbu, 0xeb86d391u,
};
static const unsigned char turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static void add_block(uint32_t state[4], const uint8_t *block)
{
    uint32_t word[16];
    for (int i = 0; i < 16; i++)
        word[i] = (uint32_t)tn__get_little(block + 4 * i, 4);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 64; i++) {
        int round = i / 16, from;
        uint32_t mix;
        if (round == 0) {
            mix = (b & c) | (~b & d);
            from = i;
        } else if (round == 1) {
            mix = (b & d) | (c & ~d);
            from = (5 * i + 1) % 16;
        } else if (round == 2) {
            mix = b ^ c ^ d;
            from = (3 * i + 5) % 16;
        } else {
            mix = c ^ (b | ~d);
            from = 7 * i % 16;
        }
        uint32_t sum = a + mix + word[from] + sines[i];
        int turn = turns[round][i % 4];
        a = d;
        d = c;
        c = b;
        b += sum << turn | sum >> (32 - turn);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void tn__md5_begin(tn__md5 *md5)
{
    *md5 = (tn__md5){.state = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u}};
}

void tn__md5_add(tn__md5 *md5, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    while (bytes > 0) {
        size_t filled = md5->bytes % 64, room = 64 - filled, part = bytes < room ? bytes : room;
        memcpy(md5->block + filled, at, part);
        md5->bytes += part;
        at += part;
        bytes -= part;
        if (part == room)
            add_block(md5->state, md5->block);
    }
}

void tn__md5_end(tn__md5 *md5, char digest[33])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    tn__put_little(length, 8, md5->bytes * 8);
    tn__md5_add(md5, padding, 1 + (119 - md5->bytes % 64) % 64);
    tn__md5_add(md5, length, sizeof length);
    for (int i = 0; i < 16; i++)
        snprintf(digest + 2 * i, 3, "%02x", (unsigned)(md5->state[i / 4] >> (8 * (i % 4)) & 0xff));
}
