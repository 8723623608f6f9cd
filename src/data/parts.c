/* SPDX-License-Identifier: MIT */
/* Datasets made of other datasets. A stretch of samples is a view of their memory; other choices are gathered; of
 * samples that are made when they are needed, the result makes them, too. */
#include <string.h>
#include <tanso/dataset.h>
#include "core/hash.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/source.h"

/* Keeps the orders of splits apart from those that a loader or a user draws with the same seed. */
#define SPLIT_KEY 0x73706C6974000000u

static tn_dataset *failed(const char *operation, tn_status status)
{
    tn__values none = {0};
    return tn__dataset_make(operation, status, &none, &none);
}

/* A part of another dataset; it has that one's classes, also where its own samples are of few of them: networks for
 * both have as many outputs. */
static tn_dataset *make(const char *operation, tn_status status, tn__values *x, tn__values *t, int64_t classes)
{
    tn_dataset *dataset = tn__dataset_make(operation, status, x, t);
    if (tn_dataset_status(dataset) == TN_OK)
        dataset->classes = classes;
    return dataset;
}

/* ---- stretches ---- */

static tn_shape shape_of_rows(const tn_array *all, int64_t count)
{
    tn_shape shape = tn__shape_value(tn__array_node(all)->shape);
    shape.dim[0] = count;
    return shape;
}

static size_t row_bytes(const tn_array *all)
{
    const tn__node *node = tn__array_node(all);
    int64_t elements = 1;
    for (int i = 1; i < node->shape->ndim; i++)
        elements *= node->shape->dim[i];
    return (size_t)elements * tn__dtypes[node->dtype].size;
}

static tn_status view_rows(const char *operation, const tn_array *all, int64_t first, int64_t count, tn__values *view)
{
    const tn__node *node = tn__array_node(all);
    tn_shape shape = shape_of_rows(all, count);
    const tn__shape *interned = tn__shape_intern(shape.ndim, shape.dim);
    if (!interned)
        return tn__fail_memory(operation, sizeof *interned);
    int64_t row = (int64_t)(row_bytes(all) / tn__dtypes[node->dtype].size);
    *view = (tn__values){node->dtype, interned, tn__storage_retain(node->storage), node->offset + first * row};
    return TN_OK;
}

static tn_dataset *choose_of_source(const char *operation, const tn_dataset *dataset, int64_t count,
                                    const int64_t *rows)
{
    return tn__dataset_of_source(operation, tn__source_chosen(dataset->source, operation, count, rows),
                                 dataset->classes);
}

static tn_dataset *stretch_of_source(const char *operation, const tn_dataset *dataset, int64_t first, int64_t count)
{
    int64_t *rows = tn__calloc((size_t)count + 1, sizeof *rows);
    if (!rows)
        return failed(operation, tn__fail_memory(operation, (size_t)count * sizeof *rows));
    for (int64_t i = 0; i < count; i++)
        rows[i] = first + i;
    tn_dataset *part = choose_of_source(operation, dataset, count, rows);
    tn__free(rows);
    return part;
}

static tn_dataset *stretch_pair(const char *operation, const tn_dataset *dataset, int64_t first, int64_t count)
{
    tn__values x = {0}, t = {0};
    if (dataset->source)
        return stretch_of_source(operation, dataset, first, count);
    tn_status status = view_rows(operation, dataset->x, first, count, &x);
    if (status == TN_OK)
        status = view_rows(operation, dataset->t, first, count, &t);
    return make(operation, status, &x, &t, dataset->classes);
}

static tn_dataset *stretch(const char *operation, const tn_dataset *dataset, int64_t first, int64_t count)
{
    tn_dataset *part = tn__dataset_named_as(stretch_pair(operation, dataset, first, count), dataset);
    return dataset->more ? tn__dataset_with_more(part, stretch(operation, dataset->more, first, count)) : part;
}

tn_dataset *tn__dataset_pair(const char *operation, const tn_dataset *dataset)
{
    return stretch_pair(operation, dataset, 0, dataset->size);
}

tn_dataset *tn_dataset_slice(const tn_dataset *dataset, int64_t start, int64_t stop)
{
    tn_status status = tn__dataset_raise("dataset_slice", dataset);
    if (status != TN_OK)
        return failed("dataset_slice", status);
    int64_t bound[2] = {start, stop};
    for (int i = 0; i < 2; i++) {
        int64_t from_start = bound[i] < 0 ? bound[i] + dataset->size : bound[i];
        bound[i] = from_start < 0 ? 0 : from_start > dataset->size ? dataset->size : from_start;
    }
    return stretch("dataset_slice", dataset, bound[0], bound[1] > bound[0] ? bound[1] - bound[0] : 0);
}

/* ---- chosen samples ---- */

static tn_status gather(const char *operation, const tn_array *all, int64_t count, const int64_t *rows, tn__values *out)
{
    tn_status status = tn__values_new(operation, out, tn__array_node(all)->dtype, shape_of_rows(all, count));
    if (status == TN_OK)
        tn__gather_rows(tn__values_data(out), tn__dataset_data(all), row_bytes(all), rows, count);
    return status;
}

static tn_dataset *choose_pair(const char *operation, const tn_dataset *dataset, int64_t count, const int64_t *rows)
{
    tn__values x = {0}, t = {0};
    if (dataset->source)
        return choose_of_source(operation, dataset, count, rows);
    tn_status status = gather(operation, dataset->x, count, rows, &x);
    if (status == TN_OK)
        status = gather(operation, dataset->t, count, rows, &t);
    return make(operation, status, &x, &t, dataset->classes);
}

/* The samples at positions that are known to be there. */
static tn_dataset *choose(const char *operation, const tn_dataset *dataset, int64_t count, const int64_t *rows)
{
    tn_dataset *part = tn__dataset_named_as(choose_pair(operation, dataset, count, rows), dataset);
    return dataset->more ? tn__dataset_with_more(part, choose(operation, dataset->more, count, rows)) : part;
}

/* Positions from the beginning, of the caller's; NULL with a latched error. */
static int64_t *positions(const tn_dataset *dataset, int64_t count, const int64_t *rows)
{
    if (count < 0 || (count && !rows)) {
        tn__fail(TN_ERR_VALUE, "dataset_subset", "expected the positions of 0 samples or more, got %lld of them%s",
                 (long long)count, rows ? "" : " and NULL");
        return NULL;
    }
    int64_t *out = tn__calloc((size_t)count + 1, sizeof *out);
    if (!out)
        tn__fail_memory("dataset_subset", (size_t)count * sizeof *out);
    for (int64_t i = 0; out && i < count; i++) {
        out[i] = rows[i] < 0 ? rows[i] + dataset->size : rows[i];
        if (out[i] < 0 || out[i] >= dataset->size) {
            tn__fail(TN_ERR_INDEX, "dataset_subset",
                     "expected positions of %lld samples, got %lld at place %lld of the list", (long long)dataset->size,
                     (long long)rows[i], (long long)i);
            tn__free(out);
            return NULL;
        }
    }
    return out;
}

tn_dataset *tn_dataset_subset(const tn_dataset *dataset, int64_t count, const int64_t *rows)
{
    tn_status status = tn__dataset_raise("dataset_subset", dataset);
    int64_t *place = status == TN_OK ? positions(dataset, count, rows) : NULL;
    if (!place)
        return failed("dataset_subset", tn__error_status(tn__error_last()));
    tn_dataset *subset = choose("dataset_subset", dataset, count, place);
    tn__free(place);
    return subset;
}

/* ---- joined ---- */

/* Whether samples of one type may follow those of another. */
static tn_status check_join(tn_sample_type first, tn_sample_type other, const char *what)
{
    bool fits = first.dtype == other.dtype && first.shape.ndim == other.shape.ndim;
    for (int i = 0; fits && i < first.shape.ndim; i++)
        fits = first.shape.dim[i] == other.shape.dim[i];
    if (fits)
        return TN_OK;
    char first_text[TN__SHAPE_TEXT], other_text[TN__SHAPE_TEXT];
    return tn__fail(TN_ERR_SHAPE, "dataset_concat", "expected %s of one dtype and shape, got %s %s and %s %s", what,
                    tn_dtype_name(first.dtype), tn__shape_text(first.shape.ndim, first.shape.dim, first_text),
                    tn_dtype_name(other.dtype), tn__shape_text(other.shape.ndim, other.shape.dim, other_text));
}

static tn_status check_all(int count, const tn_dataset *const *datasets, int64_t *total, bool *in_memory)
{
    tn_status status = count > 0 && datasets
                           ? TN_OK
                           : tn__fail(TN_ERR_VALUE, "dataset_concat", "expected at least one dataset, got none");
    *total = 0;
    *in_memory = true;
    for (int i = 0; i < count && status == TN_OK; i++) {
        status = tn__dataset_raise("dataset_concat", datasets[i]);
        for (int targets = 0; targets < 2 && status == TN_OK; targets++)
            status = check_join(tn__dataset_type(datasets[0], targets), tn__dataset_type(datasets[i], targets),
                                targets ? "targets" : "samples");
        if (status == TN_OK && tn_dataset_field_count(datasets[i]) != tn_dataset_field_count(datasets[0]))
            status = tn__fail(TN_ERR_SHAPE, "dataset_concat", "expected samples of as many arrays each, got %d and %d",
                              tn_dataset_field_count(datasets[0]), tn_dataset_field_count(datasets[i]));
        if (status == TN_OK && __builtin_add_overflow(*total, datasets[i]->size, total))
            status = tn__fail(TN_ERR_VALUE, "dataset_concat", "these are more samples than can be counted");
        *in_memory = status == TN_OK && *in_memory && !datasets[i]->source;
    }
    return status;
}

static int64_t most_classes(int count, const tn_dataset *const *datasets)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++)
        most = datasets[i]->classes > most ? datasets[i]->classes : most;
    return most;
}

/* Joined samples of which some are made when they are needed. */
static tn_dataset *concat_sources(int count, const tn_dataset *const *datasets)
{
    tn__source **source = tn__calloc((size_t)count, sizeof *source), *all = NULL;
    bool complete = source != NULL;
    if (!source)
        tn__fail_memory("dataset_concat", (size_t)count * sizeof *source);
    for (int i = 0; i < count && complete; i++)
        complete = (source[i] = tn__source_of(datasets[i])) != NULL;
    if (complete)
        all = tn__source_joined(count, source);
    for (int i = 0; source && i < count; i++)
        tn__source_release(source[i]);
    tn__free(source);
    return tn__dataset_of_source("dataset_concat", all, most_classes(count, datasets));
}

static void append(char **to, const tn_array *all, int64_t count)
{
    size_t bytes = (size_t)count * row_bytes(all);
    if (bytes)
        memcpy(*to, tn__dataset_data(all), bytes);
    *to += bytes;
}

static tn_dataset *concat_pairs(int count, const tn_dataset *const *datasets)
{
    tn__values x = {0}, t = {0};
    int64_t total;
    bool in_memory;
    tn_status status = check_all(count, datasets, &total, &in_memory);
    if (status == TN_OK && !in_memory)
        return concat_sources(count, datasets);
    if (status == TN_OK)
        status =
            tn__values_new("dataset_concat", &x, tn__array_node(datasets[0]->x)->dtype,
                           shape_of_rows(datasets[0]->x, total));
    if (status == TN_OK)
        status =
            tn__values_new("dataset_concat", &t, tn__array_node(datasets[0]->t)->dtype,
                           shape_of_rows(datasets[0]->t, total));
    if (status == TN_OK) {
        char *to_x = tn__values_data(&x), *to_t = tn__values_data(&t);
        for (int i = 0; i < count; i++) {
            append(&to_x, datasets[i]->x, datasets[i]->size);
            append(&to_t, datasets[i]->t, datasets[i]->size);
        }
    }
    return make("dataset_concat", status, &x, &t, status == TN_OK ? most_classes(count, datasets) : 0);
}

tn_dataset *tn_dataset_concat_of(int count, const tn_dataset *const *datasets)
{
    tn_dataset *all = concat_pairs(count, datasets);
    if (tn_dataset_status(all) != TN_OK)
        return all;
    all = tn__dataset_named_as(all, datasets[0]);
    if (!datasets[0]->more)
        return all;
    const tn_dataset **more = tn__calloc((size_t)count, sizeof *more);
    if (!more) {
        tn_dataset_free(all);
        return failed("dataset_concat", tn__fail_memory("dataset_concat", (size_t)count * sizeof *more));
    }
    for (int i = 0; i < count; i++)
        more[i] = datasets[i]->more;
    all = tn__dataset_with_more(all, tn_dataset_concat_of(count, more));
    tn__free(more);
    return all;
}

/* ---- splits ---- */

/* A way to deal a dataset out: by its own order, or by a random one. */
typedef struct deal {
    const char *operation;
    const tn_dataset *dataset;
    int64_t *order; /* NULL: its own */
} deal;

static tn_status deal_begin(deal *d, const char *operation, const tn_dataset *dataset, const tn_split_opts *opts)
{
    *d = (deal){operation, dataset, NULL};
    tn_status status = tn__dataset_raise(operation, dataset);
    if (status != TN_OK || !opts || !opts->shuffle)
        return status;
    d->order = tn__calloc((size_t)dataset->size + 1, sizeof *d->order);
    if (!d->order)
        return tn__fail_memory(operation, (size_t)dataset->size * sizeof *d->order);
    tn__permutation(tn__hash_mix(SPLIT_KEY, opts->seed), dataset->size, d->order);
    return TN_OK;
}

static tn_dataset *deal_out(const deal *d, int64_t first, int64_t count)
{
    return d->order ? choose(d->operation, d->dataset, count, d->order + first)
                    : stretch(d->operation, d->dataset, first, count);
}

/* All but `count` samples from `first` on. */
static tn_dataset *deal_others(deal *d, int64_t first, int64_t count)
{
    int64_t rest = d->dataset->size - count;
    int64_t *rows = tn__calloc((size_t)rest + 1, sizeof *rows);
    if (!rows)
        return failed(d->operation, tn__fail_memory(d->operation, (size_t)rest * sizeof *rows));
    for (int64_t i = 0; i < rest; i++) {
        int64_t place = i < first ? i : i + count;
        rows[i] = d->order ? d->order[place] : place;
    }
    tn_dataset *others = choose(d->operation, d->dataset, rest, rows);
    tn__free(rows);
    return others;
}

tn_status tn_dataset_split_with(const tn_dataset *dataset, int64_t size, const tn_split_opts *opts, tn_dataset **first,
                                tn_dataset **rest)
{
    deal d = {0};
    tn_status status = first && rest ? deal_begin(&d, "dataset_split", dataset, opts)
                                     : tn__fail_null("dataset_split", "two places for the datasets");
    if (status == TN_OK && (size < 0 || size > dataset->size))
        status = tn__fail(TN_ERR_VALUE, "dataset_split",
                          "expected 0 to %lld samples for the first part, as many as there are, got %lld",
                          (long long)dataset->size, (long long)size);
    tn_dataset *part[2];
    for (int i = 0; i < 2; i++)
        part[i] = status != TN_OK ? failed("dataset_split", status)
                                  : deal_out(&d, i ? size : 0, i ? dataset->size - size : size);
    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = tn_dataset_status(part[i]);
    if (first && rest) {
        *first = part[0];
        *rest = part[1];
    } else {
        tn_dataset_free(part[0]);
        tn_dataset_free(part[1]);
    }
    tn__free(d.order);
    return status;
}

/* n i / parts, which n times i need not fit 64 bits for. */
static int64_t border(int64_t n, int parts, int64_t i) { return n / parts * i + n % parts * i / parts; }

static tn_dataset *part_of(const char *operation, const char *what, const tn_dataset *dataset, int parts, int i,
                           bool others, const tn_split_opts *opts)
{
    deal d = {0};
    tn_status status = deal_begin(&d, operation, dataset, opts);
    if (status == TN_OK && (parts < 1 || i < 0 || i >= parts))
        status = tn__fail(TN_ERR_VALUE, operation, "expected a %s of 0 to %s - 1, of one %s or more, got %s %d of %d",
                          what, "their number", what, what, i, parts);
    tn_dataset *part = NULL;
    if (status != TN_OK) {
        part = failed(operation, status);
    } else {
        int64_t first = border(dataset->size, parts, i), count = border(dataset->size, parts, i + 1) - first;
        part = others ? deal_others(&d, first, count) : deal_out(&d, first, count);
    }
    tn__free(d.order);
    return part;
}

tn_dataset *tn_dataset_part_with(const tn_dataset *dataset, int parts, int i, const tn_split_opts *opts)
{
    return part_of("dataset_part", "part", dataset, parts, i, false, opts);
}

tn_dataset *tn_dataset_fold_with(const tn_dataset *dataset, int folds, int i, tn_split_kind which,
                                 const tn_split_opts *opts)
{
    return part_of("dataset_fold", "fold", dataset, folds, i, which == TN_TRAIN, opts);
}
