/* SPDX-License-Identifier: MIT */
/* MD5 (RFC 1321), to tell whether a download is the published file. Not for protection against forgery. */
#ifndef TN_IO_DIGEST_H
#define TN_IO_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct tn__md5 {
    uint32_t state[4];
    uint64_t bytes;
    uint8_t block[64];
} tn__md5;

void tn__md5_begin(tn__md5 *md5);
void tn__md5_add(tn__md5 *md5, const void *data, size_t bytes);
/* 32 hexadecimal digits and a NUL. */
void tn__md5_end(tn__md5 *md5, char digest[33]);

#endif
