/* SPDX-License-Identifier: MIT */
/*
 * Arrays in MATLAB's files of version 5 ("MAT-File Format", The MathWorks, 1999-2023), which SVHN is published in:
 * a header, then elements of a type, a length and contents; one of an array has its class, extents, name and numbers as
 * elements within it, and is one deflated stream where the file was saved compressed.
 */
#include <string.h>
#include <tanso/array.h>
#include "array/build_parts.h"
#include "core/memory.h"
#include "io/formats.h"
#include "io/unpack.h"

#define HEADER      128
#define LONGEST     63   /* characters of a name */
#define AT_ONCE     1024 /* numbers that are converted together */
#define IS_COMPLEX  0x08 /* of the flags */

/* Types of elements. */
enum { INT8 = 1, INT32 = 5, UINT32 = 6, MATRIX = 14, COMPRESSED = 15 };

/* What numbers are stored as, by an element's type, and what they are, by an array's class. */
static const tn_dtype stored[] = {
    [1] = TN_INT8,   [2] = TN_UINT8,   [3] = TN_INT16,   [4] = TN_UINT16, [5] = TN_INT32,
    [6] = TN_UINT32, [7] = TN_FLOAT32, [9] = TN_FLOAT64, [12] = TN_INT64, [13] = TN_UINT64,
};
static const tn_dtype meant[] = {
    [6] = TN_FLOAT64, [7] = TN_FLOAT32, [8] = TN_INT8,    [9] = TN_UINT8,  [10] = TN_INT16,
    [11] = TN_UINT16, [12] = TN_INT32,  [13] = TN_UINT32, [14] = TN_INT64, [15] = TN_UINT64,
};
#define KNOWN(table, i) ((i) < sizeof(table) / sizeof *(table) ? (table)[i] : TN_DTYPE_DEFAULT)

typedef struct reader {
    const char *operation, *name;
    tn__unpack stream; /* of one array */
} reader;

typedef struct element {
    uint32_t type, bytes;
    uint8_t held[4]; /* the contents of a small one */
    bool small;
} element;

static tn_status damaged(const reader *r, const char *how)
{
    return tn__fail(TN_ERR_FORMAT, r->operation, "'%s' is no file of MATLAB's version 5 that can be read: %s", r->name,
                    how);
}

static uint32_t number(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Type and length, where the upper half of the type is not 0 both of two bytes and the contents behind them. */
static element parse_tag(const uint8_t tag[8])
{
    element e = {.type = number(tag), .bytes = number(tag + 4)};
    e.small = e.type >> 16 != 0;
    if (e.small) {
        e.bytes = e.type >> 16;
        e.type &= 0xffff;
        memcpy(e.held, tag + 4, 4);
    }
    return e;
}

static tn_status take(reader *r, void *out, size_t want)
{
    size_t got;
    tn_status status = tn__unpack_read(&r->stream, out, want, &got);
    return status == TN_OK && got < want ? damaged(r, "it ends within an array") : status;
}

static tn_status begin_element(reader *r, element *e)
{
    uint8_t tag[8];
    tn_status status = take(r, tag, sizeof tag);
    if (status != TN_OK)
        return status;
    *e = parse_tag(tag);
    return e->small && e->bytes > 4 ? damaged(r, "a small element has more than 4 bytes") : TN_OK;
}

/* The contents of an element of at most `most` bytes; then what fills it up to a multiple of 8. */
static tn_status take_contents(reader *r, const element *e, void *out, size_t most)
{
    uint8_t padding[8];
    if (e->bytes > most)
        return damaged(r, "an element is longer than it may be");
    if (e->small) {
        memcpy(out, e->held, e->bytes);
        return TN_OK;
    }
    tn_status status = take(r, out, e->bytes);
    return status == TN_OK && e->bytes % 8 ? take(r, padding, 8 - e->bytes % 8) : status;
}

/* ---- one array ---- */

typedef struct matrix {
    uint32_t class, flags;
    tn_shape shape; /* with the extents in reverse: numbers lie in Fortran's order */
    char name[LONGEST + 1];
} matrix;

static tn_status take_head(reader *r, matrix *m)
{
    uint8_t flags[8] = {0}, extents[4 * TN_MAX_NDIM] = {0};
    element e;
    tn_status status = begin_element(r, &e);
    if (status == TN_OK)
        status = e.type == MATRIX ? begin_element(r, &e) : damaged(r, "an element is no array");
    if (status == TN_OK)
        status = e.type == UINT32 && e.bytes == 8 ? take_contents(r, &e, flags, 8)
                                                  : damaged(r, "an array has no class");
    if (status == TN_OK)
        status = begin_element(r, &e);
    if (status == TN_OK)
        status = e.type == INT32 && e.bytes % 4 == 0 ? take_contents(r, &e, extents, sizeof extents)
                                                     : damaged(r, "an array has no extents");
    *m = (matrix){.class = flags[0], .flags = flags[1], .shape = {.ndim = status == TN_OK ? (int)(e.bytes / 4) : 0}};
    for (int i = 0; i < m->shape.ndim; i++)
        m->shape.dim[m->shape.ndim - 1 - i] = (int32_t)number(extents + 4 * i);
    if (status == TN_OK)
        status = begin_element(r, &e);
    return status == TN_OK ? take_contents(r, &e, m->name, LONGEST) : status;
}

static tn_status convert(reader *r, tn_dtype from, tn__values *values)
{
    uint8_t piece[AT_ONCE * sizeof(double)];
    size_t from_item = tn_dtype_size(from), item = tn_dtype_size(values->dtype), left = (size_t)values->shape->size;
    char *to = tn__values_data(values);
    if (from == values->dtype)
        return take(r, to, left * item);
    tn_status status = TN_OK;
    while (left > 0 && status == TN_OK) {
        size_t count = left < AT_ONCE ? left : AT_ONCE;
        status = take(r, piece, count * from_item);
        for (size_t i = 0; i < count && status == TN_OK; i++, to += item) {
            tn__scalar value = {.bits = 0};
            memcpy(value.bytes, piece + i * from_item, from_item);
            value = tn__scalar_cast(value, from, values->dtype);
            memcpy(to, value.bytes, item);
        }
        left -= count;
    }
    return status;
}

static tn_status take_numbers(reader *r, const matrix *m, uint64_t room, tn__values *values)
{
    element e;
    tn_dtype dtype = KNOWN(meant, m->class);
    if (dtype == TN_DTYPE_DEFAULT || m->flags & IS_COMPLEX)
        return tn__fail(TN_ERR_UNSUPPORTED, r->operation, "'%s': '%s' is no dense array of real numbers", r->name,
                        m->name);
    tn_status status = begin_element(r, &e);
    tn_dtype from = status == TN_OK ? KNOWN(stored, e.type) : TN_DTYPE_DEFAULT;
    if (status == TN_OK && from == TN_DTYPE_DEFAULT)
        status = damaged(r, "numbers are of no known type");
    uint64_t count = 1;
    for (int i = 0; i < m->shape.ndim && status == TN_OK; i++)
        if (m->shape.dim[i] < 0 || __builtin_mul_overflow(count, (uint64_t)m->shape.dim[i], &count))
            status = damaged(r, "an array has extents that cannot be");
    if (status == TN_OK && (count > e.bytes || count * tn_dtype_size(from) != e.bytes || e.bytes > room))
        status = damaged(r, "there are not as many numbers as the extents say");
    if (status == TN_OK)
        status = tn__values_new(r->operation, values, dtype, m->shape);
    if (status != TN_OK || !e.small)
        return status == TN_OK ? convert(r, from, values) : status;
    for (uint64_t i = 0; i < count; i++) {
        tn__scalar value = {.bits = 0};
        size_t item = tn_dtype_size(from);
        memcpy(value.bytes, e.held + i * item, item);
        value = tn__scalar_cast(value, from, dtype);
        memcpy((char *)tn__values_data(values) + i * tn_dtype_size(dtype), value.bytes, tn_dtype_size(dtype));
    }
    return TN_OK;
}

/* ---- the file ---- */

static tn_status check_header(const reader *r, const uint8_t *data, size_t size)
{
    if (size < HEADER)
        return damaged(r, "it is shorter than its header");
    if (memcmp(data + 124, "\0\x02", 2) == 0)
        return tn__fail(TN_ERR_UNSUPPORTED, r->operation, "'%s' is of MATLAB's version 7.3, which is HDF5: save "
                        "it with -v7", r->name);
    return memcmp(data + 124, "\0\1IM", 4) == 0 ? TN_OK : damaged(r, "its header is of another version or byte order");
}

/* One element of the file, [data, data + size) with its tag. Whether it was the variable is told by values->storage. */
static tn_status try_element(reader *r, const uint8_t *data, size_t size, const char *variable, tn__values *values)
{
    bool packed = number(data) == COMPRESSED;
    const uint8_t *from = packed ? data + 8 : data;
    size_t bytes = packed ? size - 8 : size;
    matrix m;
    tn_status status = packed ? tn__unpack_open_zlib(&r->stream, r->operation, r->name, from, bytes)
                              : tn__unpack_open(&r->stream, r->operation, r->name, from, bytes);
    if (status != TN_OK)
        return status;
    status = take_head(r, &m);
    if (status == TN_OK && strcmp(m.name, variable) == 0)
        status = take_numbers(r, &m, (uint64_t)bytes * (packed ? TN__DEFLATE_MOST : 1), values);
    tn__unpack_close(&r->stream);
    if (status != TN_OK)
        tn__values_free(values);
    return status;
}

tn_status tn__mat_parse(const char *operation, const char *name, const char *variable, const uint8_t *data, size_t size,
                        tn__values *values)
{
    reader r = {.operation = operation, .name = name};
    *values = (tn__values){0};
    tn_status status = check_header(&r, data, size);
    for (size_t at = HEADER; status == TN_OK && !values->storage; ) {
        if (at == size)
            return tn__fail(TN_ERR_NAME, operation, "'%s' has no variable '%s'", name, variable);
        element e = size - at >= 8 ? parse_tag(data + at) : (element){0};
        if (size - at < 8 || e.small || e.bytes > size - at - 8)
            return damaged(&r, "it ends within an element");
        if (e.type != MATRIX && e.type != COMPRESSED)
            return damaged(&r, "there is something else than arrays in it");
        status = try_element(&r, data + at, 8 + (size_t)e.bytes, variable, values);
        at += 8 + (size_t)e.bytes;
    }
    return status;
}

tn_array *tn_load_mat(const char *path, const char *variable)
{
    tn__call call = tn__enter();
    tn__values values = {0};
    uint8_t *data;
    size_t size;
    tn_status status = variable ? tn__file_read("load_mat", path, UINT64_MAX, &data, &size)
                                : tn__fail_null("load_mat", "the name of a variable");
    if (status == TN_OK) {
        status = tn__mat_parse("load_mat", path, variable, data, size, &values);
        tn__free(data);
    }
    tn_array *reversed = tn__values_leave(call, status, &values);
    return status == TN_OK ? tn_transpose(reversed, (tn_axes){0}) : reversed;
}
