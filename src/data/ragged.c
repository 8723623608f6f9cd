/* SPDX-License-Identifier: MIT */
/* Samples of different lengths, padded: all of a minibatch to the longest of it; and arrays joined so. */
#include <string.h>
#include <tanso/array.h>
#include <tanso/manipulate.h>
#include "core/error.h"
#include "core/memory.h"
#include "core/options.h"
#include "data/dataset.h"
#include "data/resident.h"
#include "data/source.h"

typedef struct ragged {
    tn__source source;
    char *values, *targets;
    int64_t *begin;      /* count + 1: where each sample's steps are in values */
    size_t step_bytes;
    tn__scalar padding;
} ragged;

static int64_t ragged_length(const tn__source *source, int64_t i)
{
    const ragged *r = (const ragged *)source;
    return r->begin[i + 1] - r->begin[i];
}

static tn_status ragged_get(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t)
{
    (void)generator;
    const ragged *r = (const ragged *)source;
    size_t item = tn_dtype_size(source->x.dtype), bytes = (size_t)ragged_length(source, i) * r->step_bytes;
    if (bytes)
        memcpy(x, r->values + (size_t)r->begin[i] * r->step_bytes, bytes);
    for (; bytes < source->x_bytes; bytes += item)
        memcpy((char *)x + bytes, r->padding.bytes, item);
    if (source->t_bytes)
        memcpy(t, r->targets + (size_t)i * source->t_bytes, source->t_bytes);
    return TN_OK;
}

static void ragged_release(tn__source *source)
{
    ragged *r = (ragged *)source;
    tn__free(r->values);
    tn__free(r->targets);
    tn__free(r->begin);
}

static tn_sample_type type_of(const tn__host_view *view, int64_t length)
{
    tn_sample_type type = {view->dtype, {.ndim = view->shape->ndim - (length < 0)}};
    for (int i = 0; i < type.shape.ndim; i++)
        type.shape.dim[i] = length < 0 ? view->shape->dim[i + 1] : i ? view->shape->dim[i] : length;
    return type;
}

/* What is given, on the host: steps of all samples, numbers of steps, targets. */
typedef struct given {
    tn__host_view values, lengths, t;
} given;

static int64_t length_at(const tn__host_view *lengths, int64_t i)
{
    size_t item = tn_dtype_size(lengths->dtype);
    tn__scalar value = {.bits = 0};
    memcpy(value.bytes, (const char *)lengths->data + (size_t)i * item, item);
    return tn__scalar_to_int(value, lengths->dtype);
}

static tn_status check_given(const given *g)
{
    if (g->values.shape->ndim < 1 || g->lengths.shape->ndim != 1 || g->t.shape->ndim < 1 ||
        g->t.shape->dim[0] != g->lengths.shape->dim[0])
        return tn__fail(TN_ERR_SHAPE, "dataset_ragged",
                        "expected steps (total, ...), lengths (n) and targets (n, ...)");
    return tn_dtype_is_integer(g->lengths.dtype)
               ? TN_OK
               : tn__fail(TN_ERR_DTYPE, "dataset_ragged", "expected lengths of integers, got %s",
                          tn_dtype_name(g->lengths.dtype));
}

/* Where each sample begins, and the longest one's length. */
static tn_status sum_lengths(const given *g, int64_t *begin, int64_t *longest)
{
    int64_t count = g->lengths.shape->dim[0], total = g->values.shape->dim[0];
    *longest = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = length_at(&g->lengths, i);
        if (length < 0 || length > total - begin[i])
            return tn__fail(TN_ERR_VALUE, "dataset_ragged", "expected lengths of 0 or more with the sum %lld, got %lld "
                            "at place %lld", (long long)total, (long long)length, (long long)i);
        begin[i + 1] = begin[i] + length;
        *longest = length > *longest ? length : *longest;
    }
    return begin[count] == total ? TN_OK
                                 : tn__fail(TN_ERR_VALUE, "dataset_ragged", "expected lengths with the sum %lld, got "
                                            "%lld", (long long)total, (long long)begin[count]);
}

static tn_status fill(ragged *r, const given *g, const tn_ragged_opts *opts)
{
    int64_t count = g->lengths.shape->dim[0], longest, multiple = TN__OPTION(opts, multiple, 1);
    if (multiple < 1)
        return tn__fail(TN_ERR_VALUE, "dataset_ragged", "expected a multiple of 1 or more, got %lld",
                        (long long)multiple);
    if (!(r->begin = tn__calloc((size_t)count + 1, sizeof *r->begin)))
        return tn__fail_memory("dataset_ragged", (size_t)count * sizeof *r->begin);
    tn_status status = sum_lengths(g, r->begin, &longest);
    if (status != TN_OK)
        return status;
    if (longest > INT64_MAX - multiple)
        return tn__fail(TN_ERR_VALUE, "dataset_ragged", "a multiple of %lld steps is longer than memory",
                        (long long)multiple);
    longest = (longest + multiple - 1) / multiple * multiple;
    status = tn__source_init(&r->source, "dataset_ragged", count, type_of(&g->values, longest), type_of(&g->t, -1));
    r->values = tn__alloc_aligned(g->values.bytes + 1);
    r->targets = tn__alloc_aligned(g->t.bytes + 1);
    if (status == TN_OK && (!r->values || !r->targets))
        status = tn__fail_memory("dataset_ragged", g->values.bytes + g->t.bytes);
    if (status != TN_OK)
        return status;
    if (g->values.bytes)
        memcpy(r->values, g->values.data, g->values.bytes);
    if (g->t.bytes)
        memcpy(r->targets, g->t.data, g->t.bytes);
    r->padding = tn__scalar_from_double(opts ? opts->padding : 0, g->values.dtype);
    r->step_bytes = longest ? r->source.x_bytes / (size_t)longest : 0;
    r->source.multiple = multiple;
    return TN_OK;
}

static tn__source *source_of(const given *g, const tn_ragged_opts *opts)
{
    ragged *r = tn__calloc(1, sizeof *r);
    if (!r) {
        tn__fail_memory("dataset_ragged", sizeof *r);
        return NULL;
    }
    atomic_init(&r->source.references, 1);
    r->source.get = ragged_get;
    r->source.length = ragged_length;
    r->source.release = ragged_release;
    if (check_given(g) == TN_OK && fill(r, g, opts) == TN_OK)
        return &r->source;
    tn__source_release(&r->source);
    return NULL;
}

tn_dataset *tn_dataset_ragged_with(const tn_array *values, const tn_array *lengths, const tn_array *t,
                                   const tn_ragged_opts *opts)
{
    given g = {0};
    tn__source *source = NULL;
    if (tn__host_view_of("dataset_ragged", values, &g.values) == TN_OK &&
        tn__host_view_of("dataset_ragged", lengths, &g.lengths) == TN_OK &&
        tn__host_view_of("dataset_ragged", t, &g.t) == TN_OK)
        source = source_of(&g, opts);
    int64_t classes = source ? tn__labels_below(g.t.data, g.t.dtype, g.t.shape->size) : 0;
    tn_dataset *pair = tn__dataset_of_source("dataset_ragged", source, classes);
    tn__host_view_end(&g.values);
    tn__host_view_end(&g.lengths);
    tn__host_view_end(&g.t);
    if (tn_dataset_status(pair) != TN_OK)
        return pair;
    return tn__dataset_with_more(pair, tn_dataset_fields_of(1, &(tn_field){"length", lengths}));
}

/* ---- arrays ---- */

/* The largest extents of arrays of one dtype and number of axes. */
static tn_status largest(int count, const tn_array *const *arrays, bool pad, tn_shape *shape)
{
    if (count < 1 || !arrays)
        return tn__fail(TN_ERR_VALUE, "concat_examples", "expected at least one array, got none");
    for (int i = 0; i < count; i++) {
        tn_status status = tn_status_of(arrays[i]);
        if (status != TN_OK)
            return tn__fail(status, "concat_examples", "array %d: %s", i, tn_message_of(arrays[i]));
        tn_shape other = tn_shape_of(arrays[i]);
        *shape = i ? *shape : other;
        bool fits = other.ndim == shape->ndim && tn_dtype_of(arrays[i]) == tn_dtype_of(arrays[0]);
        for (int k = 0; k < other.ndim && fits; k++) {
            fits = pad || other.dim[k] == shape->dim[k];
            shape->dim[k] = other.dim[k] > shape->dim[k] ? other.dim[k] : shape->dim[k];
        }
        if (!fits)
            return tn__fail(TN_ERR_SHAPE, "concat_examples", "array %d has another dtype, number of axes or shape than "
                            "those before%s", i, pad ? "" : "; .padding fills up shorter ones");
    }
    return TN_OK;
}

tn_array *tn_concat_examples_with(int count, const tn_array *const *arrays, const tn_concat_opts *opts)
{
    tn_shape shape = {0};
    bool pad = opts && TN__GIVEN(opts, padding);
    if (largest(count, arrays, pad, &shape) != TN_OK)
        return tn__leave_error(tn__enter());
    if (!pad)
        return tn_stack(count, arrays, 0);
    tn_array *all = NULL;
    double padding[TN_MAX_NDIM][2];
    for (int k = 0; k < TN_MAX_NDIM; k++)
        padding[k][0] = padding[k][1] = opts->padding;
    tn_pad_opts how = {.values = (const double(*)[2])padding};
    TN_SCOPE {
        const tn_array **padded = tn__calloc((size_t)count, sizeof *padded);
        for (int i = 0; i < count && padded; i++) {
            int64_t width[TN_MAX_NDIM][2] = {0};
            for (int k = 0; k < shape.ndim; k++)
                width[k][1] = shape.dim[k] - tn_dim(arrays[i], k);
            padded[i] = tn_pad_with(arrays[i], (const int64_t(*)[2])width, &how);
        }
        if (!padded)
            tn__fail_memory("concat_examples", (size_t)count * sizeof *padded);
        all = padded ? tn_keep(tn_stack(count, padded, 0)) : NULL;
        tn__free(padded);
    }
    return all ? all : tn__leave_error(tn__enter());
}
