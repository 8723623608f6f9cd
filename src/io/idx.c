/* SPDX-License-Identifier: MIT */
/*
 * IDX, the format of the MNIST files (Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits"): two
 * zero bytes, a dtype code, the number of axes, the extents as big-endian 32-bit integers, then the elements,
 * big-endian, in C order.
 */
#include <string.h>
#include "core/memory.h"
#include "io/bytes.h"
#include "io/formats.h"
#include "io/unpack.h"

static const tn_dtype dtypes[256] = {
    [0x08] = TN_UINT8, [0x09] = TN_INT8, [0x0B] = TN_INT16, [0x0C] = TN_INT32, [0x0D] = TN_FLOAT32, [0x0E] = TN_FLOAT64,
};

static tn_status cut_short(const tn__unpack *stream, const char *what, uint64_t expected, uint64_t found)
{
    return tn__fail(TN_ERR_FORMAT, stream->operation,
                    "'%s' is cut short: expected %llu bytes of %s, found %llu; fetch or make the file again",
                    stream->name, (unsigned long long)expected, what, (unsigned long long)found);
}

static tn_status read_header(tn__unpack *stream, tn_dtype *dtype, tn_shape *shape)
{
    uint8_t magic[4], extent[4 * TN_MAX_NDIM];
    size_t got;
    tn_status status = tn__unpack_read(stream, magic, sizeof magic, &got);
    if (status != TN_OK)
        return status;
    if (got < sizeof magic)
        return cut_short(stream, "magic number", sizeof magic, got);
    if (magic[0] || magic[1] || !dtypes[magic[2]])
        return tn__fail(TN_ERR_FORMAT, stream->operation,
                        "'%s' is not an IDX file: expected it to begin with 00 00 and a dtype code 08, 09, 0b, 0c, 0d "
                        "or 0e, found %02x %02x %02x",
                        stream->name, magic[0], magic[1], magic[2]);
    if (magic[3] > TN_MAX_NDIM)
        return tn__fail(TN_ERR_FORMAT, stream->operation, "'%s' has %d axes (byte 3): arrays have at most %d",
                        stream->name, magic[3], TN_MAX_NDIM);
    *dtype = dtypes[magic[2]];
    shape->ndim = magic[3];
    size_t bytes = 4 * (size_t)shape->ndim;
    if ((status = tn__unpack_read(stream, extent, bytes, &got)) != TN_OK)
        return status;
    if (got < bytes)
        return cut_short(stream, "extents", bytes, got);
    for (int i = 0; i < shape->ndim; i++)
        shape->dim[i] = (int64_t)tn__get_big(extent + 4 * i, 4);
    return tn__shape_check(stream->operation, *shape, tn__dtypes[*dtype].size);
}

/* Whether there can be so many bytes of elements, before memory is taken for them. */
static tn_status check_claim(const tn__unpack *stream, uint64_t bytes)
{
    if (!stream->packed)
        return stream->left < bytes ? cut_short(stream, "elements", bytes, stream->left) : TN_OK;
    if (bytes > stream->limit - stream->unpacked)
        return tn__fail(TN_ERR_FORMAT, stream->operation,
                        "'%s' claims %llu bytes of elements, and may unpack to %llu; if it is to be trusted, unpack it "
                        "first (gunzip)",
                        stream->name, (unsigned long long)bytes, (unsigned long long)stream->limit);
    uint64_t most = (stream->left + 1) * TN__DEFLATE_MOST; /* some of a byte that is read already may be to come */
    return most < bytes ? cut_short(stream, "elements", bytes, most) : TN_OK;
}

static tn_status read_elements(tn__unpack *stream, uint64_t bytes, tn_dtype dtype, tn_shape shape, tn__values *values)
{
    size_t got = 0, more = 0;
    uint8_t next;
    tn_status status = check_claim(stream, bytes);
    if (status == TN_OK)
        status = tn__values_new(stream->operation, values, dtype, shape);
    if (status == TN_OK)
        status = tn__unpack_read(stream, tn__values_data(values), (size_t)bytes, &got);
    if (status == TN_OK && got < bytes)
        return cut_short(stream, "elements", bytes, got);
    if (status == TN_OK)
        status = tn__unpack_read(stream, &next, 1, &more);
    if (status == TN_OK && more)
        return tn__fail(TN_ERR_FORMAT, stream->operation,
                        "'%s': expected %llu bytes of elements by its header, found %llu%s; fetch or make the file "
                        "again",
                        stream->name, (unsigned long long)bytes,
                        (unsigned long long)(bytes + 1 + (stream->packed ? 0 : stream->left)),
                        stream->packed ? " or more" : "");
    return status;
}

tn_status tn__idx_parse(const char *operation, const char *name, const uint8_t *data, size_t size, tn__values *values)
{
    *values = (tn__values){0};
    tn__unpack stream;
    tn_status status = tn__unpack_open(&stream, operation, name, data, size);
    if (status != TN_OK)
        return status;
    tn_dtype dtype = TN_DTYPE_DEFAULT;
    tn_shape shape = {0};
    status = read_header(&stream, &dtype, &shape);
    if (status == TN_OK) {
        uint64_t bytes = tn__dtypes[dtype].size;
        for (int i = 0; i < shape.ndim; i++)
            bytes *= (uint64_t)shape.dim[i];
        status = read_elements(&stream, bytes, dtype, shape, values);
    }
    tn__unpack_close(&stream);
    if (status != TN_OK)
        tn__values_free(values);
    else if (TN__HOST_LITTLE)
        tn__swap_bytes(tn__values_data(values), (size_t)values->shape->size, tn__dtypes[dtype].size);
    return status;
}

tn_status tn__idx_read(const char *operation, const char *path, tn__values *values)
{
    *values = (tn__values){0};
    return tn__values_read(operation, path, tn__idx_parse, values);
}

tn_array *tn_load_idx(const char *path)
{
    tn__call call = tn__enter();
    tn__values values;
    tn_status status = tn__idx_read("load_idx", path, &values);
    return tn__values_leave(call, status, &values);
}
