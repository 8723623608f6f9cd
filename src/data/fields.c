/* SPDX-License-Identifier: MIT */
/*
 * Samples of any number of arrays. A dataset has two fields, x and t; one of more has a list of datasets of the same
 * size, each with the next two, or with one and a t without elements. So all that is done with samples is done with
 * pairs, and a loader loads each pair by the same order.
 */
#include <string.h>
#include <tanso/array.h>
#include <tanso/dataset.h>
#include "core/memory.h"
#include "data/dataset.h"
#include "data/source.h"

static tn_dataset *failed(const char *operation, tn_status status)
{
    tn__values none = {0};
    return tn__dataset_make(operation, status, &none, &none);
}

tn_dataset *tn__dataset_with_more(tn_dataset *dataset, tn_dataset *more)
{
    if (tn_dataset_status(dataset) == TN_OK && tn_dataset_status(more) == TN_OK) {
        tn_dataset *last = dataset;
        while (last->more)
            last = last->more;
        last->more = more;
        return dataset;
    }
    tn_dataset *wrong = tn_dataset_status(dataset) != TN_OK ? dataset : more;
    tn_dataset_free(wrong == dataset ? more : dataset);
    return wrong;
}

/* The same, after a failure, which is latched. */
static tn_dataset *give_up(tn_dataset *dataset, const char *operation, tn_status status)
{
    tn_dataset_free(dataset);
    return failed(operation, status);
}

tn_dataset *tn__dataset_named_as(tn_dataset *dataset, const tn_dataset *other)
{
    if (tn_dataset_status(dataset) != TN_OK)
        return dataset;
    dataset->half = other->half;
    for (int i = 0; i < 2; i++)
        if (other->names[i] && !(dataset->names[i] = tn__strdup(other->names[i])))
            return give_up(dataset, "dataset", tn__fail_memory("dataset", strlen(other->names[i])));
    return dataset;
}

/* ---- making ---- */

static tn_status check_fields(int count, const tn_field *fields)
{
    if (count < 1 || count > TN_MAX_FIELDS || !fields)
        return tn__fail(TN_ERR_VALUE, "dataset_fields", "expected 1 to %d arrays, got %d%s", TN_MAX_FIELDS, count,
                        fields ? "" : " and NULL");
    for (int i = 0; i < count; i++) {
        if (!fields[i].name || !*fields[i].name)
            return tn__fail(TN_ERR_NAME, "dataset_fields", "expected a name of array %d, got %s", i,
                            fields[i].name ? "\"\"" : "NULL");
        for (int j = 0; j < i; j++)
            if (strcmp(fields[i].name, fields[j].name) == 0)
                return tn__fail(TN_ERR_NAME, "dataset_fields", "expected another name for array %d than \"%s\", which "
                                "array %d has", i, fields[i].name, j);
    }
    return TN_OK;
}

/* No elements for each of n samples: what stands for a field that is not there. */
static tn_array *nothing(const tn_array *x)
{
    tn_create_opts opts = {.dtype = TN_UINT8, .device = tn_cpu()};
    return tn_zeros_with(TN_SHAPE(tn_ndim(x) > 0 ? tn_dim(x, 0) : 0, 0), &opts);
}

static tn_dataset *pair_of(int count, const tn_field *fields)
{
    tn_dataset *dataset = NULL;
    TN_SCOPE {
        dataset = tn_dataset_arrays(fields[0].array, count > 1 ? fields[1].array : nothing(fields[0].array));
    }
    if (tn_dataset_status(dataset) != TN_OK)
        return dataset;
    dataset->half = count == 1;
    dataset->classes = count == 1 ? 0 : dataset->classes;
    for (int i = 0; i < 2 && i < count; i++)
        if (!(dataset->names[i] = tn__strdup(fields[i].name)))
            return give_up(dataset, "dataset_fields", tn__fail_memory("dataset_fields", strlen(fields[i].name)));
    return dataset;
}

static tn_dataset *join(const char *operation, tn_dataset *dataset, tn_dataset *more)
{
    if (tn_dataset_status(dataset) == TN_OK && tn_dataset_status(more) == TN_OK && dataset->size != more->size) {
        tn_status status = tn__fail(TN_ERR_SHAPE, operation, "expected arrays of the same number of samples, got %lld "
                                    "and %lld", (long long)dataset->size, (long long)more->size);
        tn_dataset_free(more);
        return give_up(dataset, operation, status);
    }
    return tn__dataset_with_more(dataset, more);
}

tn_dataset *tn_dataset_fields_of(int count, const tn_field *fields)
{
    tn_status status = check_fields(count, fields);
    if (status != TN_OK)
        return failed("dataset_fields", status);
    tn_dataset *dataset = pair_of(count, fields);
    for (int i = 2; i < count && tn_dataset_status(dataset) == TN_OK; i += 2)
        dataset = join("dataset_fields", dataset, pair_of(count - i, fields + i));
    return dataset;
}

/* Field i gets its number behind its name where an earlier one has that. */
static tn_status tell_apart(tn_dataset *all)
{
    int i = 0;
    for (tn_dataset *pair = all; pair; pair = pair->more)
        for (int k = 0; k < (pair->half ? 1 : 2); k++, i++) {
            const char *name = tn_dataset_field_name(all, i);
            int j = 0;
            while (j < i && strcmp(name, tn_dataset_field_name(all, j)) != 0)
                j++;
            char *own = j < i ? tn__format("%s%d", name, i) : NULL;
            if (j < i && !own)
                return tn__fail_memory("dataset_zip", strlen(name) + 16);
            if (own) {
                tn__free(pair->names[k]);
                pair->names[k] = own;
            }
        }
    return TN_OK;
}

tn_dataset *tn_dataset_zip_of(int count, const tn_dataset *const *datasets)
{
    tn_dataset *all = NULL;
    int fields = 0;
    if (count < 1 || !datasets)
        return failed("dataset_zip", tn__fail_null("dataset_zip", "datasets"));
    for (int i = 0; i < count && (!all || tn_dataset_status(all) == TN_OK); i++) {
        tn_dataset *own = tn_dataset_slice(datasets[i], 0, INT64_MAX); /* shares its memory */
        fields += tn_dataset_field_count(own);
        all = all ? join("dataset_zip", all, own) : own;
    }
    if (tn_dataset_status(all) == TN_OK && fields > TN_MAX_FIELDS)
        return give_up(all, "dataset_zip", tn__fail(TN_ERR_VALUE, "dataset_zip", "expected %d arrays at most, got %d",
                                                    TN_MAX_FIELDS, fields));
    tn_status status = tn_dataset_status(all) == TN_OK ? tell_apart(all) : TN_OK;
    return status == TN_OK ? all : give_up(all, "dataset_zip", status);
}

tn_dataset *tn_dataset_cache(const tn_dataset *dataset)
{
    tn_status status = tn__dataset_raise("dataset_cache", dataset);
    if (status != TN_OK)
        return failed("dataset_cache", status);
    tn_dataset *pair = dataset->source ? tn__dataset_of_source("dataset_cache", tn__source_cached(dataset->source),
                                                               dataset->classes)
                                       : tn__dataset_pair("dataset_cache", dataset);
    pair = tn__dataset_named_as(pair, dataset);
    return dataset->more ? tn__dataset_with_more(pair, tn_dataset_cache(dataset->more)) : pair;
}

/* ---- reading ---- */

/* The pair that field i is in, and whether it is the second of it; NULL if there is none. */
static const tn_dataset *pair_at(const tn_dataset *dataset, int i, int *which)
{
    for (; dataset; dataset = dataset->more) {
        int count = dataset->half ? 1 : 2;
        if (i < count) {
            *which = i;
            return i < 0 ? NULL : dataset;
        }
        i -= count;
    }
    return NULL;
}

int tn_dataset_field_count(const tn_dataset *dataset)
{
    int count = 0;
    if (tn_dataset_status(dataset) != TN_OK)
        return 0;
    for (; dataset; dataset = dataset->more)
        count += dataset->half ? 1 : 2;
    return count;
}

const char *tn_dataset_field_name(const tn_dataset *dataset, int i)
{
    static const char *const usual[] = {"x", "t"};
    int which = 0;
    const tn_dataset *pair = tn_dataset_status(dataset) == TN_OK ? pair_at(dataset, i, &which) : NULL;
    if (pair)
        return pair->names[which] ? pair->names[which] : usual[which];
    if (tn__dataset_raise("dataset_field_name", dataset) == TN_OK)
        tn__fail(TN_ERR_INDEX, "dataset_field_name", "expected one of %d fields, got %d",
                 tn_dataset_field_count(dataset), i);
    return "";
}

tn_array *tn_dataset_field(const tn_dataset *dataset, const char *name)
{
    for (int i = 0; name && i < tn_dataset_field_count(dataset); i++)
        if (strcmp(tn_dataset_field_name(dataset, i), name) == 0) {
            int which = 0;
            const tn_dataset *pair = pair_at(dataset, i, &which);
            return which ? tn_dataset_t(pair) : tn_dataset_x(pair);
        }
    tn__call call = tn__enter();
    if (tn__dataset_raise("dataset_field", dataset) == TN_OK)
        tn__fail(TN_ERR_NAME, "dataset_field", "there is no field \"%s\"; the first is \"%s\"", name ? name : "NULL",
                 tn_dataset_field_name(dataset, 0));
    return tn__leave_error(call);
}
