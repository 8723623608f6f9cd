/* SPDX-License-Identifier: MIT */
/*
 * .safetensors (huggingface/safetensors, README, "Format"): the header's length in 8 bytes, the header (JSON: dtype,
 * shape and data_offsets by name, and text under __metadata__), then the elements, little-endian, without gaps.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "io/archive.h"
#include "io/bytes.h"
#include "io/formats.h"
#include "io/map.h"

#define LENGTH_BYTES 8
#define MAX_HEADER 100000000 /* as the reference implementation */

static const char *const codes[TN_DTYPE_COUNT] = {
    [TN_BOOL] = "BOOL",  [TN_INT8] = "I8",    [TN_INT16] = "I16",   [TN_INT32] = "I32",    [TN_INT64] = "I64",
    [TN_UINT8] = "U8",   [TN_UINT16] = "U16", [TN_UINT32] = "U32",  [TN_UINT64] = "U64",   [TN_FLOAT16] = "F16",
    [TN_BFLOAT16] = "BF16", [TN_FLOAT32] = "F32", [TN_FLOAT64] = "F64", [TN_COMPLEX64] = "C64",
};

/* ---- reading ---- */

typedef struct tensor {
    const char *name;
    tn_dtype dtype;
    tn_shape shape;
    uint64_t begin, end;
    tn__error *unreadable; /* what its dtype is that Tanso has not; NULL: it has */
} tensor;

typedef struct parse {
    const char *operation, *file;
    tn__storage *mapped; /* the file's own memory, in which elements may stay; NULL: they are copied */
    tensor *tensors; /* in the header's order */
    size_t count;
} parse;

static tn_status bad_field(const parse *p, const char *name, const char *field, const char *expected)
{
    return tn__fail(TN_ERR_FORMAT, p->operation, "'%s': array '%.200s': expected \"%s\" to be %s", p->file, name, field,
                    expected);
}

static tn_status read_dtype(const parse *p, const char *name, const json_t *object, tensor *out)
{
    const char *code = json_string_value(json_object_get(object, "dtype"));
    if (!code)
        return bad_field(p, name, "dtype", "a string such as \"F32\"");
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (codes[d] && strcmp(code, codes[d]) == 0)
            out->dtype = (tn_dtype)d;
    if (out->dtype == TN_DTYPE_DEFAULT)
        out->unreadable = tn__error_record(
            TN_ERR_DTYPE, p->operation,
            "'%s': array '%.200s' has the dtype '%.32s', which is not supported: convert it to F32", p->file, name,
            code);
    return TN_OK;
}

static tn_status read_shape(const parse *p, const char *name, const json_t *object, tensor *out)
{
    const json_t *shape = json_object_get(object, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > TN_MAX_NDIM)
        return bad_field(p, name, "shape", "an array of at most 8 extents");
    out->shape.ndim = (int)json_array_size(shape);
    for (int i = 0; i < out->shape.ndim; i++) {
        const json_t *extent = json_array_get(shape, (size_t)i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return bad_field(p, name, "shape", "whole numbers of 0 or more");
        out->shape.dim[i] = json_integer_value(extent);
    }
    return out->unreadable ? TN_OK : tn__shape_check(p->operation, out->shape, tn__dtypes[out->dtype].size);
}

static tn_status read_offsets(const parse *p, const char *name, const json_t *object, tensor *out)
{
    const json_t *offsets = json_object_get(object, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return bad_field(p, name, "data_offsets", "two whole numbers, begin <= end");
    out->begin = (uint64_t)json_integer_value(begin);
    out->end = (uint64_t)json_integer_value(end);
    if (out->unreadable) /* how many bytes its elements take is not known */
        return TN_OK;
    uint64_t bytes = tn__dtypes[out->dtype].size;
    for (int i = 0; i < out->shape.ndim; i++)
        bytes *= (uint64_t)out->shape.dim[i];
    if (out->end - out->begin == bytes)
        return TN_OK;
    char text[TN__SHAPE_TEXT];
    return tn__fail(TN_ERR_FORMAT, p->operation, "'%s': array '%.200s': expected %llu bytes for %s of shape %s, found "
                    "data_offsets [%llu, %llu], %llu bytes", p->file, name, (unsigned long long)bytes,
                    tn__dtypes[out->dtype].name, tn__shape_text(out->shape.ndim, out->shape.dim, text),
                    (unsigned long long)out->begin, (unsigned long long)out->end,
                    (unsigned long long)(out->end - out->begin));
}

static tn_status read_tensor(parse *p, const char *name, const json_t *object)
{
    tensor *out = &p->tensors[p->count];
    *out = (tensor){.name = name};
    if (!json_is_object(object))
        return tn__fail(TN_ERR_FORMAT, p->operation, "'%s': expected '%.200s' to be an object with dtype, shape and "
                        "data_offsets", p->file, name);
    tn_status status = read_dtype(p, name, object, out);
    if (status == TN_OK)
        status = read_shape(p, name, object, out);
    if (status == TN_OK)
        status = read_offsets(p, name, object, out);
    if (status == TN_OK)
        p->count++;
    else if (out->unreadable)
        tn__error_release(out->unreadable);
    return status;
}

static tn_status read_metadata(const parse *p, const json_t *object, tn_archive *archive)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return tn__fail(TN_ERR_FORMAT, p->operation, "'%s': expected " TN__METADATA " to be an object of strings",
                        p->file);
    json_object_foreach((json_t *)object, key, value) {
        if (!json_is_string(value))
            return tn__fail(TN_ERR_FORMAT, p->operation, "'%s': " TN__METADATA " '%.200s': expected a string", p->file,
                            key);
        tn_status status = tn_archive_set_text(archive, key, json_string_value(value));
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static int by_offset(const void *a, const void *b)
{
    const tensor *left = *(const tensor *const *)a, *right = *(const tensor *const *)b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return left->end < right->end ? -1 : left->end > right->end;
}

/* The arrays must cover the file's elements: no byte twice, no byte unused, none outside. */
static tn_status check_tiling(const parse *p, uint64_t bytes)
{
    const tensor **sorted = tn__alloc((p->count + 1) * sizeof *sorted);
    if (!sorted)
        return tn__fail_memory(p->operation, (p->count + 1) * sizeof *sorted);
    for (size_t i = 0; i < p->count; i++)
        sorted[i] = &p->tensors[i];
    qsort(sorted, p->count, sizeof *sorted, by_offset);
    uint64_t at = 0;
    tn_status status = TN_OK;
    for (size_t i = 0; i < p->count && status == TN_OK; at = sorted[i++]->end)
        if (sorted[i]->begin != at || sorted[i]->end > bytes)
            status = tn__fail(TN_ERR_FORMAT, p->operation,
                              "'%s': array '%.200s' lies at [%llu, %llu]: expected it to begin at %llu, where the one "
                              "before ends, and to end by %llu, where the file does; save or fetch it again",
                              p->file, sorted[i]->name, (unsigned long long)sorted[i]->begin,
                              (unsigned long long)sorted[i]->end, (unsigned long long)at, (unsigned long long)bytes);
    if (status == TN_OK && at != bytes)
        status = tn__fail(TN_ERR_FORMAT, p->operation,
                          "'%s': expected %llu bytes of elements by its header, found %llu; save or fetch it again",
                          p->file, (unsigned long long)at, (unsigned long long)bytes);
    tn__free(sorted);
    return status;
}

/* Elements that stay where they lie in the mapped file; false if they cannot. */
static bool stays(const parse *p, const tensor *t, const uint8_t *elements, tn__values *values)
{
    size_t item = tn__dtypes[t->dtype].size;
    const tn__shape *shape = tn__shape_intern(t->shape.ndim, t->shape.dim);
    if (!p->mapped || !TN__HOST_LITTLE || t->dtype == TN_BOOL || t->begin == t->end || !shape ||
        (uintptr_t)(elements + t->begin) % item)
        return false;
    int64_t bytes = (const char *)(elements + t->begin) - (const char *)p->mapped->memory;
    *values = (tn__values){t->dtype, shape, tn__storage_retain(p->mapped), bytes / (int64_t)item};
    return true;
}

static tn_status take_tensor(const parse *p, tensor *t, const uint8_t *elements, tn_archive *archive)
{
    tn__values values;
    if (t->unreadable) {
        tn__error *error = t->unreadable;
        t->unreadable = NULL;
        return tn__archive_take_error(archive, p->operation, p->file, t->name, error);
    }
    if (stays(p, t, elements, &values))
        return tn__archive_take(archive, p->operation, p->file, t->name, &values);
    tn_status status = tn__values_new(p->operation, &values, t->dtype, t->shape);
    if (status != TN_OK)
        return status;
    if (t->end > t->begin)
        memcpy(tn__values_data(&values), elements + t->begin, (size_t)(t->end - t->begin));
    if (!TN__HOST_LITTLE)
        tn__swap_elements(tn__values_data(&values), (size_t)values.shape->size, t->dtype);
    if (t->dtype == TN_BOOL)
        tn__normalize_bools(tn__values_data(&values), (size_t)values.shape->size);
    return tn__archive_take(archive, p->operation, p->file, t->name, &values);
}

static tn_status read_header(parse *p, json_t *header, const uint8_t *elements, uint64_t bytes, tn_archive *archive)
{
    const char *name;
    json_t *object;
    tn_status status = TN_OK;
    p->tensors = tn__alloc((json_object_size(header) + 1) * sizeof *p->tensors);
    if (!p->tensors)
        return tn__fail_memory(p->operation, (json_object_size(header) + 1) * sizeof *p->tensors);
    json_object_foreach(header, name, object) {
        status = strcmp(name, TN__METADATA) == 0 ? read_metadata(p, object, archive) : read_tensor(p, name, object);
        if (status != TN_OK)
            break;
    }
    if (status == TN_OK)
        status = check_tiling(p, bytes);
    for (size_t i = 0; i < p->count && status == TN_OK; i++)
        status = take_tensor(p, &p->tensors[i], elements, archive);
    for (size_t i = 0; i < p->count; i++)
        if (p->tensors[i].unreadable)
            tn__error_release(p->tensors[i].unreadable);
    tn__free(p->tensors);
    return status;
}

static tn_status parse_file(const char *operation, const char *name, const uint8_t *data, size_t size,
                            tn__storage *mapped, tn_archive *archive)
{
    parse p = {.operation = operation, .file = name, .mapped = mapped};
    if (size < LENGTH_BYTES + 2)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' is no .safetensors file: expected at least %d bytes, found %zu",
                        name, LENGTH_BYTES + 2, size);
    uint64_t length = tn__get_little(data, LENGTH_BYTES);
    if (length > MAX_HEADER || length > size - LENGTH_BYTES)
        return tn__fail(TN_ERR_FORMAT, operation,
                        "'%s' claims a header of %llu bytes: expected at most the %zu bytes that "
                        "follow, and %d; it is damaged or no .safetensors file",
                        name, (unsigned long long)length, size - LENGTH_BYTES, MAX_HEADER);
    json_error_t error;
    const char *text = (const char *)data + LENGTH_BYTES;
    json_t *header = length && *text == '{' ? json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!header && (!length || *text != '{'))
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' is no .safetensors file: expected its header to begin with '{'",
                        name);
    if (!header && json_error_code(&error) == json_error_out_of_memory)
        return tn__fail_memory(operation, (size_t)length);
    if (!header)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s': the header is not valid JSON at byte %d: %s", name,
                        error.position + LENGTH_BYTES, error.text);
    const uint8_t *elements = data + LENGTH_BYTES + length;
    tn_status status = read_header(&p, header, elements, size - LENGTH_BYTES - length, archive);
    json_decref(header);
    return status;
}

tn_status tn__safetensors_parse(const char *operation, const char *name, const uint8_t *data, size_t size,
                                tn_archive *archive)
{
    return parse_file(operation, name, data, size, NULL, archive);
}

tn_status tn__safetensors_read(const char *operation, const char *path, const tn_archive_opts *opts,
                               tn_archive *archive)
{
    tn__mapping mapping;
    tn_status status = tn__file_map(operation, path, &mapping);
    if (status == TN_OK) {
        status =
            parse_file(operation, path, mapping.data, mapping.size, opts->mapped ? mapping.storage : NULL, archive);
        tn__mapping_end(&mapping);
        return status;
    }
    if (status != TN_ERR_UNSUPPORTED)
        return status;
    uint8_t *data;
    size_t size;
    status = tn__file_read(operation, path, UINT64_MAX, &data, &size);
    if (status == TN_OK)
        status = tn__safetensors_parse(operation, path, data, size, archive);
    tn__free(data);
    return status;
}

/* ---- writing ---- */

typedef struct output {
    const tn_archive *archive;
    const tn__host_view *views;
    size_t *order;    /* of the elements: widest dtype first, so that all are aligned */
    char *header;
} output;

static void order_elements(output *out)
{
    size_t placed = 0;
    for (size_t width = 8; width >= 1; width /= 2)
        for (size_t i = 0; i < out->archive->count; i++)
            if (tn__dtypes[out->views[i].dtype].size == width)
                out->order[placed++] = i;
}

/* jansson's *_new functions free what they are given when they fail, and accept NULL: one check at the end of each. */
static bool add_metadata(const tn_archive *archive, json_t *header)
{
    if (archive->text_count == 0)
        return true;
    json_t *metadata = json_object();
    bool done = metadata != NULL;
    for (size_t i = 0; i < archive->text_count; i++)
        done = done && json_object_set_new(metadata, archive->texts[i].key, json_string(archive->texts[i].value)) == 0;
    return json_object_set_new(header, TN__METADATA, metadata) == 0 && done;
}

static json_t *describe(const tn__host_view *view, uint64_t begin)
{
    json_t *shape = json_array();
    for (int i = 0; i < view->shape->ndim; i++)
        json_array_append_new(shape, json_integer(view->shape->dim[i]));
    bool whole = json_array_size(shape) == (size_t)view->shape->ndim;
    json_t *object = json_pack("{s:s, s:o, s:[I, I]}", "dtype", codes[view->dtype], "shape", shape, "data_offsets",
                               (json_int_t)begin, (json_int_t)(begin + view->bytes));
    if (object && !whole) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

static tn_status build_header(output *out, json_t *header)
{
    const tn_archive *archive = out->archive;
    uint64_t *begin = tn__alloc((archive->count + 1) * sizeof *begin), at = 0;
    bool done = begin && add_metadata(archive, header);
    for (size_t i = 0; i < archive->count && done; i++) {
        begin[out->order[i]] = at;
        at += out->views[out->order[i]].bytes;
    }
    for (size_t i = 0; i < archive->count && done; i++)
        done = json_object_set_new(header, archive->entries[i].name, describe(&out->views[i], begin[i])) == 0;
    tn__free(begin);
    char *text = done ? json_dumps(header, JSON_COMPACT) : NULL;
    if (!text)
        return tn__fail_memory("archive_save", archive->count * 64);
    /* The elements begin on a multiple of 8 bytes: spaces may follow the header. */
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    if (length <= MAX_HEADER)
        out->header = tn__format("%-*s", (int)padded, text);
    free(text);
    if (length > MAX_HEADER)
        return tn__fail(TN_ERR_VALUE, "archive_save", "the names make a header of %zu bytes: .safetensors allows %d",
                        length, MAX_HEADER);
    return out->header ? TN_OK : tn__fail_memory("archive_save", padded);
}

static tn_status fill(tn__writer *writer, void *user)
{
    const output *out = user;
    uint8_t length[LENGTH_BYTES];
    tn__put_little(length, LENGTH_BYTES, strlen(out->header));
    tn__write(writer, length, sizeof length);
    tn_status status = tn__write(writer, out->header, strlen(out->header));
    for (size_t i = 0; i < out->archive->count && status == TN_OK; i++) {
        const tn__host_view *view = &out->views[out->order[i]];
        status = tn__write(writer, view->data, view->bytes);
    }
    return status;
}

/* JSON's strings are UTF-8, and the format's own name is taken. */
static tn_status check_names(const tn_archive *archive)
{
    for (size_t i = 0; i < archive->count + archive->text_count; i++) {
        bool is_text = i >= archive->count;
        const char *name = is_text ? archive->texts[i - archive->count].key : archive->entries[i].name;
        json_t *key = json_string(name), *value = json_string(is_text ? archive->texts[i - archive->count].value : "");
        bool valid = key && value;
        json_decref(key);
        json_decref(value);
        if (!valid)
            return tn__fail(TN_ERR_VALUE, "archive_save",
                            "the %s '%.200s' is not valid UTF-8, which .safetensors needs", is_text ? "text" : "name",
                            name);
        if (!is_text && strcmp(name, TN__METADATA) == 0)
            return tn__fail(TN_ERR_NAME, "archive_save",
                            "an array cannot be called " TN__METADATA " in a .safetensors file: "
                            "rename it");
    }
    return TN_OK;
}

tn_status tn__safetensors_save(const tn_archive *archive, const char *path, const tn_archive_opts *opts)
{
    (void)opts;
    tn__host_view *views = NULL;
    tn_status status = check_names(archive);
    if (status == TN_OK)
        status = tn__archive_views(archive, "archive_save", &views);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < archive->count; i++)
        if (!codes[views[i].dtype]) {
            status = tn__fail(TN_ERR_DTYPE, "archive_save",
                              "'%.200s' is of %s, which .safetensors has not: cast it, or save a .npz",
                              archive->entries[i].name, tn__dtypes[views[i].dtype].name);
            tn__archive_views_end(archive, views);
            return status;
        }
    output out = {archive, views, tn__alloc((archive->count + 1) * sizeof(size_t)), NULL};
    json_t *header = json_object();
    if (!out.order || !header)
        status = tn__fail_memory("archive_save", (archive->count + 1) * sizeof(size_t));
    if (status == TN_OK) {
        order_elements(&out);
        status = build_header(&out, header);
    }
    if (status == TN_OK)
        status = tn__file_write_atomic("archive_save", path, fill, &out);
    json_decref(header);
    tn__free(out.header);
    tn__free(out.order);
    tn__archive_views_end(archive, views);
    return status;
}
