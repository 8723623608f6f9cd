/* SPDX-License-Identifier: MIT */
/* Streams over gzip by zlib. */
#include "io/unpack.h"

#include <string.h>
#include "core/error.h"
#include "core/memory.h"

#define FIRST_PIECE ((size_t)1 << 16)
#define MOST_AT_ONCE ((size_t)1 << 30) /* zlib counts in unsigned int */

uint64_t tn__unpack_limit(uint64_t packed)
{
    static const uint64_t usual = (uint64_t)1 << 30, ratio = 100;
    uint64_t most = packed > UINT64_MAX / ratio ? UINT64_MAX : packed * ratio;
    return most > usual ? most : usual;
}

static bool has_gzip_magic(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

static voidpf zlib_alloc(voidpf unused, uInt items, uInt size)
{
    (void)unused;
    return tn__calloc(items, size);
}

static void zlib_free(voidpf unused, voidpf memory)
{
    (void)unused;
    tn__free(memory);
}

static tn_status begin_inflate(tn__unpack *stream, int window)
{
    stream->packed = true;
    stream->zlib.zalloc = zlib_alloc;
    stream->zlib.zfree = zlib_free;
    return inflateInit2(&stream->zlib, window) == Z_OK ? TN_OK : tn__fail_memory(stream->operation, 1 << 15);
}

tn_status tn__unpack_open(tn__unpack *stream, const char *operation, const char *name, const uint8_t *data, size_t size)
{
    *stream = (tn__unpack){.operation = operation, .name = name, .in = data, .left = size,
                            .limit = tn__unpack_limit(size)};
    return has_gzip_magic(data, size) ? begin_inflate(stream, 16 + MAX_WBITS) /* 16: with gzip's header and checksum */
                                      : TN_OK;
}

tn_status tn__unpack_open_zlib(tn__unpack *stream, const char *operation, const char *name, const uint8_t *data,
                               size_t size)
{
    *stream = (tn__unpack){.operation = operation, .name = name, .in = data, .left = size,
                            .limit = tn__unpack_limit(size)};
    return begin_inflate(stream, MAX_WBITS);
}

void tn__unpack_close(tn__unpack *stream)
{
    if (stream->packed)
        inflateEnd(&stream->zlib);
}

static tn_status damaged(const tn__unpack *stream, const char *what)
{
    return tn__fail(TN_ERR_FORMAT, stream->operation,
                    "'%s': damaged gzip data after %llu unpacked bytes: %s; fetch or make the file again", stream->name,
                    (unsigned long long)stream->unpacked, what);
}

/* gzip files may be several streams one after another. */
static tn_status next_member(tn__unpack *stream)
{
    stream->ended = stream->left == 0;
    if (stream->ended)
        return TN_OK;
    if (!has_gzip_magic(stream->in, stream->left))
        return damaged(stream, "other bytes follow the gzip stream");
    return inflateReset(&stream->zlib) == Z_OK ? TN_OK : damaged(stream, "cannot start the next gzip stream");
}

static tn_status inflate_some(tn__unpack *stream, uint8_t *out, size_t want, size_t *got)
{
    z_stream *z = &stream->zlib;
    size_t in = stream->left < MOST_AT_ONCE ? stream->left : MOST_AT_ONCE;
    z->next_in = (Bytef *)stream->in;
    z->avail_in = (uInt)in;
    z->next_out = out;
    z->avail_out = (uInt)(want < MOST_AT_ONCE ? want : MOST_AT_ONCE);
    uInt room = z->avail_out;
    int result = inflate(z, Z_NO_FLUSH);
    stream->in += in - z->avail_in;
    stream->left -= in - z->avail_in;
    stream->unpacked += room - z->avail_out;
    *got += room - z->avail_out;
    if (stream->unpacked > stream->limit)
        return tn__fail(TN_ERR_FORMAT, stream->operation,
                        "'%s' unpacks to more than %llu bytes; if it is to be trusted, unpack it first (gunzip)",
                        stream->name, (unsigned long long)stream->limit);
    if (result == Z_STREAM_END)
        return next_member(stream);
    if (result == Z_MEM_ERROR)
        return tn__fail_memory(stream->operation, 1 << 15);
    if (result != Z_OK && result != Z_BUF_ERROR)
        return damaged(stream, z->msg ? z->msg : "not valid");
    if (stream->left == 0 && room == z->avail_out)
        return damaged(stream, "the file is cut short");
    return TN_OK;
}

tn_status tn__unpack_read(tn__unpack *stream, void *out, size_t want, size_t *got)
{
    *got = 0;
    if (!stream->packed) {
        *got = want < stream->left ? want : stream->left;
        if (*got)
            memcpy(out, stream->in, *got);
        stream->in += *got;
        stream->left -= *got;
        return TN_OK;
    }
    while (*got < want && !stream->ended) {
        tn_status status = inflate_some(stream, (uint8_t *)out + *got, want - *got, got);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

tn_status tn__unpack_all(tn__unpack *stream, uint64_t limit, uint8_t **data, size_t *size)
{
    uint8_t *bytes = NULL;
    size_t capacity = 0, length = 0, piece = stream->packed ? FIRST_PIECE : stream->left + 1, got;
    tn_status status = TN_OK;
    *data = NULL;
    *size = 0;
    do {
        size_t want = piece;
        if (limit - length < want)
            want = (size_t)(limit - length) + 1; /* one too many, to see whether there is more */
        got = 0;
        status = tn__grow((void **)&bytes, &capacity, length + want + 1, 1)
                     ? tn__unpack_read(stream, bytes + length, want, &got)
                     : tn__fail_memory(stream->operation, length + want + 1);
        length += got;
        if (status == TN_OK && length > limit)
            status = tn__fail(TN_ERR_FORMAT, stream->operation, "'%s' holds more than the %llu bytes expected",
                              stream->name, (unsigned long long)limit);
        if (status == TN_OK && got < want)
            break;
        piece = length; /* doubles */
    } while (status == TN_OK);
    if (status != TN_OK) {
        tn__free(bytes);
        return status;
    }
    bytes[length] = 0;
    *data = bytes;
    *size = length;
    return TN_OK;
}
