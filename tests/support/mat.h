/* SPDX-License-Identifier: MIT */
/* Writing MATLAB's files of version 5, for tests of what reads them. */
#ifndef TN_TESTS_MAT_H
#define TN_TESTS_MAT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct mat_file {
    uint8_t *bytes;
    size_t size;
} mat_file;

static inline void mat_put(mat_file *f, const void *bytes, size_t size)
{
    f->bytes = realloc(f->bytes, f->size + size);
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

static inline void mat_header(mat_file *f)
{
    char header[128];
    memset(header, ' ', sizeof header);
    memcpy(header, "MATLAB 5.0 MAT-file", 19);
    memcpy(header + 116, "\0\0\0\0\0\0\0\0\0\1IM", 12);
    mat_put(f, header, sizeof header);
}

/* An element: up to 4 bytes within its tag, others filled up to a multiple of 8. */
static inline void mat_element(mat_file *f, uint32_t type, const void *bytes, uint32_t size)
{
    static const uint8_t zeros[8];
    uint32_t tag[2] = {type, size};
    if (size <= 4) {
        tag[0] |= size << 16;
        tag[1] = 0;
        memcpy(&tag[1], bytes, size);
        mat_put(f, tag, 8);
        return;
    }
    mat_put(f, tag, 8);
    mat_put(f, bytes, size);
    mat_put(f, zeros, (8 - size % 8) % 8);
}

typedef struct mat_array {
    const char *name;
    uint32_t class, type; /* of the array, and what its numbers are stored as */
    int ndim;
    const int32_t *dim;
    const void *numbers;
    uint32_t bytes;
} mat_array;

static inline void mat_add(mat_file *f, const mat_array *a, int packed)
{
    mat_file inner = {0};
    uint32_t flags[2] = {a->class, 0}, tag[2];
    mat_element(&inner, 6, flags, 8);
    mat_element(&inner, 5, a->dim, 4 * (uint32_t)a->ndim);
    mat_element(&inner, 1, a->name, (uint32_t)strlen(a->name));
    mat_element(&inner, a->type, a->numbers, a->bytes);
    mat_file whole = {0};
    tag[0] = 14;
    tag[1] = (uint32_t)inner.size;
    mat_put(&whole, tag, 8);
    mat_put(&whole, inner.bytes, inner.size);
    if (packed) {
        uLongf room = compressBound((uLong)whole.size);
        uint8_t *deflated = malloc(room);
        compress(deflated, &room, whole.bytes, (uLong)whole.size);
        tag[0] = 15;
        tag[1] = (uint32_t)room;
        mat_put(f, tag, 8);
        mat_put(f, deflated, room);
        free(deflated);
    } else {
        mat_put(f, whole.bytes, whole.size);
    }
    free(inner.bytes);
    free(whole.bytes);
}

#endif
