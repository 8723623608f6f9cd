/* SPDX-License-Identifier: MIT */
/* Datasets: making them of arrays, and reading what they hold. */
#include "data/dataset.h"

#include <string.h>
#include <tanso/device.h>
#include "core/memory.h"

static tn_dataset out_of_memory = {.is_static = true};

/* The largest target + 1; targets of floats have no classes. */
static int64_t count_classes(const tn__values *t)
{
    int64_t largest = -1;
    const tn__dtype_info *info = &tn__dtypes[t->dtype];
    if (info->class == TN__CLASS_FLOAT)
        return 0;
    const char *data = tn__values_data(t);
    for (int64_t i = 0; i < t->shape->size; i++) {
        tn__scalar element = {0};
        memcpy(element.bytes, data + (size_t)i * info->size, info->size);
        int64_t value = tn__scalar_to_int(element, t->dtype);
        largest = value > largest ? value : largest;
    }
    return largest < INT64_MAX ? largest + 1 : largest;
}

static tn_status check_pair(const char *operation, const tn__values *x, const tn__values *t)
{
    char x_text[TN__SHAPE_TEXT], t_text[TN__SHAPE_TEXT];
    if (x->shape->ndim >= 1 && t->shape->ndim >= 1 && x->shape->dim[0] == t->shape->dim[0])
        return TN_OK;
    return tn__fail(TN_ERR_SHAPE, operation,
                    "expected x and t with the same number of samples as first extent, got x of shape %s and t of "
                    "shape %s",
                    tn__shape_text(x->shape->ndim, x->shape->dim, x_text),
                    tn__shape_text(t->shape->ndim, t->shape->dim, t_text));
}

tn_dataset *tn__dataset_make(const char *operation, tn_status status, tn__values *x, tn__values *t)
{
    if (status == TN_OK)
        status = check_pair(operation, x, t);
    tn_dataset *dataset = tn__calloc(1, sizeof *dataset);
    if (!dataset) {
        tn__fail_memory(operation, sizeof *dataset);
        tn__values_free(x);
        tn__values_free(t);
        return &out_of_memory;
    }
    if (status == TN_OK) {
        dataset->size = x->shape->dim[0];
        dataset->classes = count_classes(t);
        dataset->x = tn__values_own(x);
        dataset->t = dataset->x ? tn__values_own(t) : NULL;
    }
    tn__values_free(x);
    tn__values_free(t);
    if (!dataset->t) {
        tn_free(dataset->x);
        *dataset = (tn_dataset){.error = tn__error_retain(tn__error_last())};
    }
    return dataset;
}

static tn_status copy_values(const char *operation, const tn_array *array, tn__values *values)
{
    tn__host_view view;
    tn_status status = tn__host_view_of(operation, array, &view);
    if (status == TN_OK)
        status = tn__values_new(operation, values, view.dtype, tn__shape_value(view.shape));
    if (status == TN_OK && view.bytes)
        memcpy(tn__values_data(values), view.data, view.bytes);
    tn__host_view_end(&view);
    return status;
}

tn_dataset *tn_dataset_arrays(const tn_array *x, const tn_array *t)
{
    tn__values own_x = {0}, own_t = {0};
    tn_status status = copy_values("dataset_arrays", x, &own_x);
    if (status == TN_OK)
        status = copy_values("dataset_arrays", t, &own_t);
    return tn__dataset_make("dataset_arrays", status, &own_x, &own_t);
}

void tn_dataset_free(tn_dataset *dataset)
{
    if (!dataset || dataset->is_static)
        return;
    tn_free(dataset->x);
    tn_free(dataset->t);
    if (dataset->error)
        tn__error_release(dataset->error);
    tn__free(dataset);
}

tn_device tn_dataset_device(const tn_dataset *dataset)
{
    if (!dataset)
        tn__fail_null("device_of", "a dataset");
    return dataset && dataset->x ? tn_device_of(dataset->x) : (tn_device){0};
}

tn_status tn_dataset_status(const tn_dataset *dataset)
{
    if (!dataset || dataset->is_static)
        return dataset ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return dataset->error ? tn__error_status(dataset->error) : TN_OK;
}

int64_t tn_dataset_size(const tn_dataset *dataset) { return dataset ? dataset->size : 0; }
int64_t tn_dataset_classes(const tn_dataset *dataset) { return dataset ? dataset->classes : 0; }

/* A failed dataset has no arrays: gives an error array with its reason, in the caller's scope. */
static tn_array *array_of(const tn_dataset *dataset, tn_array *array)
{
    if (array)
        return array;
    tn__call call = tn__enter();
    if (!dataset)
        tn__fail_null("dataset", "a dataset");
    else if (dataset->error)
        tn__error_raise(dataset->error);
    else
        tn__fail_memory("dataset", sizeof *dataset);
    return tn__leave_error(call);
}

tn_array *tn_dataset_x(const tn_dataset *dataset) { return array_of(dataset, dataset ? dataset->x : NULL); }
tn_array *tn_dataset_t(const tn_dataset *dataset) { return array_of(dataset, dataset ? dataset->t : NULL); }
