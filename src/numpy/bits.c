/* SPDX-License-Identifier: MIT */
/* Bits packed into bytes, and bytes unpacked into bits: eight at a time in the host's memory, elsewhere by shifts and
 * sums. */
#include <tanso/signal.h>

#include <string.h>

#include "array/build_parts.h"
#include "core/memory.h"
#include "numpy/compose.h"

/* Eight bytes as a number whose lowest byte is the first. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LOWEST_FIRST(word) __builtin_bswap64(word)
#else
#define LOWEST_FIRST(word) (word)
#endif

/* Rows of n bytes that are 0 or 1, packed: the last byte of a row is filled up with zeros. */
static void pack_rows(const unsigned char *from, unsigned char *restrict to, int64_t rows, int64_t n, bool little)
{
    /* byte k of eight, times one of the eight powers of two here, lands in the highest byte: in its bit k, or 7 - k */
    const uint64_t powers = little ? 0x0102040810204080u : 0x8040201008040201u;
    for (int64_t r = 0; r < rows; r++, from += n) {
        uint64_t word;
        int64_t i = 0;
        for (; i + 8 <= n; i += 8) {
            memcpy(&word, from + i, 8);
            *to++ = (unsigned char)(LOWEST_FIRST(word) * powers >> 56);
        }
        if (i < n) {
            word = 0;
            memcpy(&word, from + i, (size_t)(n - i));
            *to++ = (unsigned char)(LOWEST_FIRST(word) * powers >> 56);
        }
    }
}

static void unpack_bytes(const unsigned char *from, unsigned char *restrict to, int64_t n, bool little)
{
    const uint64_t ones = 0x0101010101010101u, bits = little ? 0x8040201008040201u : 0x0102040810204080u;
    for (int64_t i = 0; i < n; i++) { /* each byte keeps its own bit of a copy, which a sum carries to the byte's
                                         highest one */
        uint64_t own = from[i] * ones & bits, word = LOWEST_FIRST((own + 0x7f * ones) >> 7 & ones);
        memcpy(to + 8 * i, &word, 8);
    }
}

/* Rows along the last axis in the host's memory: of `shape` packed, or unpacked if `bytes`. */
static tn_array *in_host_memory(const tn_array *x, tn_shape shape, bool bytes, bool little)
{
    const unsigned char *from = tn_data(x);
    if (!from)
        return tn__failed_array();
    const char *operation = bytes ? "unpackbits" : "packbits";
    int last = shape.ndim - 1;
    int64_t n = tn_dim(x, last), rows = n ? tn_size(x) / n : 0;
    size_t size = (size_t)rows * (size_t)shape.dim[last];
    const tn__shape *interned = tn__shape_intern(shape.ndim, shape.dim);
    tn__storage *storage = interned ? tn__storage_new(tn__node_of(x, operation)->device, size) : NULL;
    if (!storage)
        return tn__refused(TN_ERR_MEMORY, operation, "no memory for %zu bytes", size);
    if (bytes)
        unpack_bytes(from, storage->memory, rows * n, little);
    else
        pack_rows(from, storage->memory, rows, n, little);
    tn__call call = tn__enter();
    tn__node *node = tn__node_value(storage, TN_UINT8, interned, 0, NULL);
    tn__storage_release(storage);
    return tn__leave_array(call, node);
}

/* 7, 6, ..., 0, or the other way round. */
static tn_array *shifts(const tn_array *like, bool little)
{
    const tn_create_opts opts = {.dtype = TN_UINT8, .device = tn_device_of(like)};
    return little ? tn_arange_with(0, 8, 1, &opts) : tn_arange_with(7, -1, -1, &opts);
}

/* x with the axis last: of the flat array if none is given. -1: no such axis. */
static int flat_axis(const char *operation, const tn_array **x, tn_axes axis)
{
    if (!tn__axes_fit(operation, axis, 1))
        return -1;
    if (axis.count == 0 || tn_ndim(*x) == 0) {
        bool fits = axis.count == 0 || axis.axis[0] == 0 || axis.axis[0] == -1;
        *x = tn_ravel(*x);
        return fits ? 0 : tn__axis_of(operation, *x, axis.axis[0]);
    }
    return tn__axis_of(operation, *x, axis.axis[0]);
}

static tn_axes only(int axis)
{
    return (tn_axes){1, {axis}};
}

static tn_array *pack(const tn_array *x, tn_axes axes, bool little)
{
    x = tn__array_of(x);
    if (!tn_is_error(x) && tn_dtype_of(x) != TN_BOOL && !tn_dtype_is_integer(tn_dtype_of(x)))
        return tn__refused(TN_ERR_DTYPE, "packbits", "expected integers or bool, got %s",
                           tn_dtype_name(tn_dtype_of(x)));
    int axis = tn_is_error(x) ? 0 : flat_axis("packbits", &x, axes);
    if (tn_is_error(x) || axis < 0)
        return tn__failure(x);
    tn_array *truth = tn_moveaxis(tn_cast(x, TN_BOOL), only(axis), only(-1)), *bits = tn_cast(truth, TN_UINT8);
    int64_t width[TN_MAX_NDIM][2] = {{0}};
    int last = tn_ndim(bits) - 1;
    tn_shape shape = tn_shape_of(bits);
    width[last][1] = (8 - shape.dim[last] % 8) % 8;
    if (shape.ndim == TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, "packbits", "takes arrays of fewer than %d axes", TN_MAX_NDIM);
    shape.dim[last] = (shape.dim[last] + width[last][1]) / 8;
    if (tn_device_of(x).kind == TN_DEVICE_CPU)
        return tn_moveaxis(in_host_memory(truth, shape, false, little), only(-1), only(axis));
    shape.dim[shape.ndim++] = 8;
    bits = tn_reshape(tn_pad_with(bits, (const int64_t(*)[2])width, NULL), shape);
    const tn_reduce_opts sum = {.axis = {1, {-1}}, .dtype = TN_UINT8};
    return tn_moveaxis(tn_sum_with(tn_left_shift(bits, shifts(bits, little)), &sum), only(-1), only(axis));
}

tn_array *tn_packbits(const tn_array *x, tn_axes axis, bool little)
{
    TN__COMPOSE(pack(x, axis, little));
}

static tn_array *unpack(const tn_array *x, tn_axes axes, int64_t count, bool little)
{
    x = tn__array_of(x);
    if (!tn_is_error(x) && (tn_dtype_of(x) != TN_UINT8 || tn_ndim(x) == TN_MAX_NDIM))
        return tn__refused(TN_ERR_DTYPE, "unpackbits", "expected uint8 of fewer than %d axes, got %s", TN_MAX_NDIM,
                           tn_dtype_name(tn_dtype_of(x)));
    int axis = tn_is_error(x) ? 0 : flat_axis("unpackbits", &x, axes);
    if (tn_is_error(x) || axis < 0)
        return tn__failure(x);
    tn_array *bytes = tn_moveaxis(x, only(axis), only(-1)), *bits;
    tn_shape shape = tn_shape_of(bytes);
    int64_t all = shape.dim[shape.ndim - 1] * 8;
    shape.dim[shape.ndim - 1] = all;
    if (tn_device_of(x).kind == TN_DEVICE_CPU)
        bits = in_host_memory(bytes, shape, true, little);
    else
        bits = tn_reshape(tn_bitwise_and(tn_right_shift(tn_expand_dims(bytes, -1), shifts(x, little)), tn_weak_int(1)),
                          shape);
    int64_t kept = count == TN_NONE ? all : count < 0 ? all + count : count;
    if (kept < 0)
        return tn__refused(TN_ERR_VALUE, "unpackbits", "%lld of %lld bits left out", (long long)-count, (long long)all);
    int64_t width[TN_MAX_NDIM][2] = {{0}};
    width[shape.ndim - 1][1] = kept > all ? kept - all : 0;
    bits = tn__cut(tn_pad_with(bits, (const int64_t(*)[2])width, NULL), shape.ndim - 1, 0, kept);
    return tn_moveaxis(bits, only(-1), only(axis));
}

tn_array *tn_unpackbits(const tn_array *x, tn_axes axis, int64_t count, bool little)
{
    TN__COMPOSE(unpack(x, axis, count, little));
}
