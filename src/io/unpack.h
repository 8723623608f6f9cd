/* SPDX-License-Identifier: MIT */
/* Bytes in memory, gzipped or not, read as a stream of unpacked bytes. */
#ifndef TN_IO_UNPACK_H
#define TN_IO_UNPACK_H

#include <stdbool.h>
#include <zlib.h>
#include <tanso/base.h>

typedef struct tn__unpack {
    const char *operation, *name; /* for messages */
    const uint8_t *in;
    size_t left;
    uint64_t unpacked, limit; /* bytes so far, and what they may become: tn__unpack_limit unless it is set lower */
    bool packed, ended;
    z_stream zlib;
} tn__unpack;

/* Deflate cannot pack tighter than this (zlib's technical details: 1032 to 1). */
#define TN__DEFLATE_MOST 1032
/* What a packed file may unpack to without being asked, whatever its format: 1 GiB, or 100 times its size where that is
 * more. Real data packs no tighter; what is made to fill the memory does. */
uint64_t tn__unpack_limit(uint64_t packed);

/* Detects gzip by its magic number. Close it even after a failure of a read (not of open). */
tn_status tn__unpack_open(tn__unpack *stream, const char *operation, const char *name, const uint8_t *data,
                          size_t size);
/* The same of bytes that zlib packed, without gzip's header (RFC 1950). */
tn_status tn__unpack_open_zlib(tn__unpack *stream, const char *operation, const char *name, const uint8_t *data,
                               size_t size);
/* Reads up to `want` bytes; fewer only at the end. TN_ERR_FORMAT for damaged gzip data, and beyond the limit. */
tn_status tn__unpack_read(tn__unpack *stream, void *out, size_t want, size_t *got);
void tn__unpack_close(tn__unpack *stream);

/* Everything, in memory the caller gives to tn__free, with a NUL after it. Grows as bytes arrive, to `limit` at most:
 * more is TN_ERR_FORMAT. */
tn_status tn__unpack_all(tn__unpack *stream, uint64_t limit, uint8_t **data, size_t *size);

#endif
