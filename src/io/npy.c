/* SPDX-License-Identifier: MIT */
/*
 * .npy, NumPy's format for one array (numpy.lib.format, versions 1.0 to 3.0): a magic string, a version, the length of
 * a header, the header (the text of a Python dict), the elements. Version 1.0 is written, elements aligned to 64 bytes.
 */
#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "io/bytes.h"
#include "io/formats.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define ALIGNMENT 64

/* NumPy's type strings without the byte order. */
static const char *const codes[TN_DTYPE_COUNT] = {
    [TN_BOOL] = "b1",    [TN_INT8] = "i1",    [TN_INT16] = "i2",   [TN_INT32] = "i4",   [TN_INT64] = "i8",
    [TN_UINT8] = "u1",   [TN_UINT16] = "u2",  [TN_UINT32] = "u4",  [TN_UINT64] = "u8",  [TN_FLOAT16] = "f2",
    [TN_FLOAT32] = "f4", [TN_FLOAT64] = "f8", [TN_COMPLEX64] = "c8", [TN_COMPLEX128] = "c16",
};

const char *tn__npy_code(tn_dtype dtype) { return codes[dtype]; }

/* ---- the header's text ---- */

/* A reader of the one form of Python dict that NumPy writes: three keys, a string, a bool, a tuple of integers. */
typedef struct reader {
    const char *operation, *name;
    const char *begin, *at, *end;
} reader;

static tn_status expected(const reader *r, const char *what)
{
    int left = (int)(r->end - r->at);
    return tn__fail(TN_ERR_FORMAT, r->operation, "'%s': expected %s at character %d of the .npy header, found %s%.*s%s",
                    r->name, what, (int)(r->at - r->begin), left ? "'" : "its end", left < 16 ? left : 16, r->at,
                    left ? "'" : "");
}

static void skip_space(reader *r)
{
    while (r->at < r->end && strchr(" \t\n\r", *r->at) && *r->at)
        r->at++;
}

static bool take(reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    skip_space(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* A quoted string without escapes, copied. */
static tn_status read_string(reader *r, const char *what, char *out, size_t room)
{
    skip_space(r);
    reader before = *r;
    char quote = r->at < r->end ? *r->at : '\0';
    if (quote != '\'' && quote != '"')
        return expected(r, what);
    const char *begin = ++r->at;
    while (r->at < r->end && *r->at != quote && *r->at != '\\' && *r->at != '\n')
        r->at++;
    size_t length = (size_t)(r->at - begin);
    if (r->at == r->end || *r->at != quote || length >= room || memchr(begin, '\0', length))
        return expected(&before, what);
    memcpy(out, begin, length);
    out[length] = '\0';
    r->at++;
    return TN_OK;
}

static tn_status read_descr(reader *r, tn__npy_header *header)
{
    char text[32];
    if (take(r, '['))
        return tn__fail(TN_ERR_DTYPE, r->operation,
                        "'%s' holds records (a structured dtype): save each field as an array of its own",
                        r->name);
    tn_status status = read_string(r, "a dtype such as '<f4'", text, sizeof text);
    if (status != TN_OK)
        return status;
    bool has_order = text[0] && strchr("<>|=", text[0]);
    const char *code = text + has_order;
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (codes[d] && strcmp(code, codes[d]) == 0)
            header->dtype = (tn_dtype)d;
    if (header->dtype == TN_DTYPE_DEFAULT)
        return tn__fail(TN_ERR_DTYPE, r->operation,
                        "'%s' has the dtype '%s': expected bool, integers or floats of 1 to 8 "
                        "bytes, or complex numbers of such floats; convert it with NumPy's astype before saving",
                        r->name, text);
    header->swapped = has_order && text[0] == (TN__HOST_LITTLE ? '>' : '<') && tn__dtypes[header->dtype].size > 1;
    return TN_OK;
}

static tn_status read_fortran(reader *r, tn__npy_header *header)
{
    if (take_word(r, "True"))
        header->fortran_order = true;
    else if (!take_word(r, "False"))
        return expected(r, "True or False");
    return TN_OK;
}

static tn_status read_extent(reader *r, int64_t *extent)
{
    skip_space(r);
    const char *begin = r->at;
    *extent = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(*extent, 10, extent) || __builtin_add_overflow(*extent, *r->at - '0', extent))
            return tn__fail(TN_ERR_FORMAT, r->operation, "'%s': an extent of the .npy header is too large", r->name);
    if (r->at == begin)
        return expected(r, "an extent of the shape");
    if (r->at < r->end && *r->at == 'L') /* written by Python 2 */
        r->at++;
    return TN_OK;
}

static tn_status read_shape(reader *r, tn__npy_header *header)
{
    if (!take(r, '('))
        return expected(r, "the shape, a tuple");
    tn_shape *shape = &header->shape;
    bool comma = true;
    while (!take(r, ')')) {
        if (!comma)
            return expected(r, "',' or ')' in the shape");
        if (shape->ndim == TN_MAX_NDIM)
            return tn__fail(TN_ERR_FORMAT, r->operation, "'%s' has more than %d axes, the most an array may have",
                            r->name, TN_MAX_NDIM);
        tn_status status = read_extent(r, &shape->dim[shape->ndim]);
        if (status != TN_OK)
            return status;
        shape->ndim++;
        comma = take(r, ',');
    }
    if (shape->ndim == 1 && !comma)
        return expected(r, "a tuple (Python's tuple of one has a comma) and not a number in parentheses");
    return TN_OK;
}

static const struct {
    const char *key;
    tn_status (*read)(reader *, tn__npy_header *);
} fields[] = {{"descr", read_descr}, {"fortran_order", read_fortran}, {"shape", read_shape}};
#define FIELDS 3

static tn_status read_field(reader *r, tn__npy_header *header, unsigned *seen)
{
    char key[32];
    tn_status status = read_string(r, "a key of the dict", key, sizeof key);
    if (status != TN_OK)
        return status;
    int field = 0;
    while (field < FIELDS && strcmp(key, fields[field].key) != 0)
        field++;
    if (field == FIELDS || (*seen >> field & 1))
        return tn__fail(TN_ERR_FORMAT, r->operation,
                        "'%s': %s key '%s' in the .npy header: expected descr, fortran_order and shape, once each",
                        r->name, field == FIELDS ? "unknown" : "repeated", key);
    *seen |= 1u << field;
    return take(r, ':') ? fields[field].read(r, header) : expected(r, "':'");
}

static tn_status read_dict(reader *r, tn__npy_header *header)
{
    unsigned seen = 0;
    if (!take(r, '{'))
        return expected(r, "'{'");
    for (bool comma = true; !take(r, '}'); comma = take(r, ',')) {
        if (!comma)
            return expected(r, "',' or '}'");
        tn_status status = read_field(r, header, &seen);
        if (status != TN_OK)
            return status;
    }
    for (int i = 0; i < FIELDS; i++)
        if (!(seen >> i & 1))
            return tn__fail(TN_ERR_FORMAT, r->operation, "'%s': the .npy header has no key '%s'", r->name,
                            fields[i].key);
    skip_space(r);
    return r->at == r->end ? TN_OK : expected(r, "nothing after '}'");
}

/* ---- whole headers ---- */

tn_status tn__npy_header_size(const char *operation, const char *name, const uint8_t *data, size_t size, size_t *header)
{
    if (size < MAGIC_BYTES || memcmp(data, MAGIC, MAGIC_BYTES) != 0)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' is not an .npy file: it does not begin with \\x93NUMPY", name);
    int major = size > MAGIC_BYTES ? data[MAGIC_BYTES] : 1;
    if (major < 1 || major > 3)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' is an .npy file of version %d: expected 1, 2 or 3", name,
                        major);
    int length_bytes = major == 1 ? 2 : 4;
    size_t prefix = MAGIC_BYTES + 2 + (size_t)length_bytes;
    if (size < prefix)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' is cut short: it ends after %zu bytes, in the .npy header",
                        name, size);
    uint64_t length = tn__get_little(data + MAGIC_BYTES + 2, length_bytes);
    if (length > TN__NPY_MAX_HEADER)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' claims an .npy header of %llu bytes: expected %d at most", name,
                        (unsigned long long)length, TN__NPY_MAX_HEADER);
    *header = prefix + (size_t)length;
    return TN_OK;
}

tn_status tn__npy_header_parse(const char *operation, const char *name, const uint8_t *data, size_t size,
                               tn__npy_header *header)
{
    *header = (tn__npy_header){.header_bytes = size};
    const char *text = (const char *)data + MAGIC_BYTES + 2 + (data[MAGIC_BYTES] == 1 ? 2 : 4);
    reader r = {operation, name, text, text, (const char *)data + size};
    tn_status status = read_dict(&r, header);
    if (status != TN_OK)
        return status;
    size_t item = tn__dtypes[header->dtype].size;
    if ((status = tn__shape_check(operation, header->shape, item)) != TN_OK)
        return status;
    header->data_bytes = item;
    for (int i = 0; i < header->shape.ndim; i++)
        header->data_bytes *= (uint64_t)header->shape.dim[i];
    return TN_OK;
}

size_t tn__npy_header_make(const char *operation, tn_dtype dtype, const tn__shape *shape,
                           uint8_t header[TN__NPY_HEADER_ROOM])
{
    if (!codes[dtype]) {
        tn__fail(TN_ERR_DTYPE, operation,
                 "NumPy has no dtype %s: cast the array to float32 first, or save it as .safetensors",
                 tn__dtypes[dtype].name);
        return 0;
    }
    char order = tn__dtypes[dtype].size == 1 ? '|' : TN__HOST_LITTLE ? '<' : '>';
    char shape_text[TN__SHAPE_TEXT];
    char *text = (char *)header;
    size_t prefix = MAGIC_BYTES + 4;
    size_t length = prefix + (size_t)snprintf(text + prefix, TN__NPY_HEADER_ROOM - prefix,
                                              "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }", order,
                                              codes[dtype], tn__shape_text(shape->ndim, shape->dim, shape_text));
    size_t padded = (length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(header + length, ' ', padded - length);
    header[padded - 1] = '\n';
    memcpy(header, MAGIC "\x01\x00", MAGIC_BYTES + 2);
    tn__put_little(header + MAGIC_BYTES + 2, 2, padded - prefix);
    return padded;
}

/* ---- elements ---- */

/* Elements in Fortran order, first axis fastest, to C order. */
static void from_fortran(const char *from, char *to, const tn__shape *shape, size_t item)
{
    int64_t at[TN_MAX_NDIM] = {0}, stride[TN_MAX_NDIM];
    int64_t step = 1, source = 0;
    for (int i = 0; i < shape->ndim; i++) {
        stride[i] = step;
        step *= shape->dim[i];
    }
    for (int64_t n = 0; n < shape->size; n++, to += item) {
        memcpy(to, from + (size_t)source * item, item);
        for (int i = shape->ndim - 1; i >= 0; i--) {
            source += stride[i];
            if (++at[i] < shape->dim[i])
                break;
            source -= stride[i] * shape->dim[i];
            at[i] = 0;
        }
    }
}

tn_status tn__npy_arrange(const char *operation, const tn__npy_header *header, tn__values *values)
{
    size_t item = tn__dtypes[values->dtype].size;
    if (header->swapped)
        tn__swap_elements(tn__values_data(values), (size_t)values->shape->size, values->dtype);
    if (values->dtype == TN_BOOL)
        tn__normalize_bools(tn__values_data(values), (size_t)values->shape->size);
    if (!header->fortran_order || values->shape->ndim < 2)
        return TN_OK;
    tn__values transposed;
    tn_status status = tn__values_new(operation, &transposed, values->dtype, header->shape);
    if (status != TN_OK)
        return status;
    from_fortran(tn__values_data(values), tn__values_data(&transposed), values->shape, item);
    tn__values_free(values);
    *values = transposed;
    return TN_OK;
}

tn_status tn__npy_parse(const char *operation, const char *name, const uint8_t *data, size_t size, tn__values *values)
{
    *values = (tn__values){0};
    size_t header_bytes;
    tn__npy_header header;
    tn_status status = tn__npy_header_size(operation, name, data, size, &header_bytes);
    if (status != TN_OK)
        return status;
    if (header_bytes > size)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' is cut short: expected an .npy header of %zu bytes, found %zu",
                        name, header_bytes, size);
    if ((status = tn__npy_header_parse(operation, name, data, header_bytes, &header)) != TN_OK)
        return status;
    if (size - header_bytes != header.data_bytes)
        return tn__fail(TN_ERR_FORMAT, operation,
                        "'%s': expected %llu bytes of elements by its header, found %zu; save it again", name,
                        (unsigned long long)header.data_bytes, size - header_bytes);
    if ((status = tn__values_new(operation, values, header.dtype, header.shape)) != TN_OK)
        return status;
    if (header.data_bytes)
        memcpy(tn__values_data(values), data + header_bytes, header.data_bytes);
    if ((status = tn__npy_arrange(operation, &header, values)) != TN_OK)
        tn__values_free(values);
    return status;
}
