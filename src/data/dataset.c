/* SPDX-License-Identifier: MIT */
/* Datasets: making them of arrays, and reading what they hold. */
#include "data/dataset.h"

#include <string.h>
#include <tanso/device.h>
#include "array/guard.h"
#include "core/memory.h"
#include "data/source.h"

static tn_dataset out_of_memory = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_dataset, "dataset");

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
    tn_dataset *dataset = tn__object_new(&objects);
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
        tn__array_free_kept(dataset->x);
        dataset->size = dataset->classes = 0;
        dataset->x = NULL;
        dataset->error = tn__error_retain(tn__error_last());
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

tn_dataset *tn__dataset_of_source(const char *operation, tn__source *source, int64_t classes)
{
    tn__values none = {0};
    tn_dataset *dataset = source ? tn__object_new(&objects) : NULL;
    if (dataset) {
        dataset->source = source;
        dataset->size = source->count;
        dataset->classes = classes;
        pthread_mutex_init(&dataset->making, NULL);
        return dataset;
    }
    tn_status status = source ? tn__fail_memory(operation, sizeof *dataset) : tn__error_status(tn__error_last());
    tn__source_release(source);
    return tn__dataset_make(operation, status, &none, &none);
}

tn_status tn__dataset_raise(const char *operation, const tn_dataset *dataset)
{
    if (!dataset)
        return tn__fail_null(operation, "a dataset");
    if (dataset->is_static)
        return tn__fail_memory(operation, sizeof *dataset);
    return dataset->error ? tn__error_raise(dataset->error) : TN_OK;
}

void tn_dataset_free(tn_dataset *dataset)
{
    if (!dataset || dataset->is_static || !tn__object_may_go(&objects, &dataset->object) ||
        tn__at_work(dataset, "dataset"))
        return;
    if (dataset->source)
        pthread_mutex_destroy(&dataset->making);
    tn_dataset_free(dataset->more);
    tn__free(dataset->names[0]);
    tn__free(dataset->names[1]);
    tn__source_release(dataset->source);
    tn__array_free_kept(dataset->x);
    tn__array_free_kept(dataset->t);
    if (dataset->error)
        tn__error_release(dataset->error);
    tn__object_end(&objects, &dataset->object);
}

tn_status tn__dataset_take(tn_dataset *dataset, const char *owner)
{
    return !dataset || dataset->is_static ? TN_OK : tn__object_take(&objects, &dataset->object, owner);
}

void tn__dataset_free_taken(tn_dataset *dataset)
{
    if (dataset && !dataset->is_static)
        dataset->object.owner = NULL;
    tn_dataset_free(dataset);
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

static tn_shape rows_of(int64_t count, tn_shape sample)
{
    tn_shape shape = {.ndim = sample.ndim + 1, .dim = {count}};
    for (int i = 0; i < sample.ndim; i++)
        shape.dim[i + 1] = sample.dim[i];
    return shape;
}

/* All samples of a source, as they are in the first epoch. */
static tn_status make_all(tn__source *source, tn__values *x, tn__values *t)
{
    tn_status status = tn__values_new("dataset_x", x, source->x.dtype, rows_of(source->count, source->x.shape));
    if (status == TN_OK)
        status = tn__values_new("dataset_x", t, source->t.dtype, rows_of(source->count, source->t.shape));
    for (int64_t i = 0; i < source->count && status == TN_OK; i++)
        status = tn__source_get(source, 0, 0, i, (char *)tn__values_data(x) + (size_t)i * source->x_bytes,
                                (char *)tn__values_data(t) + (size_t)i * source->t_bytes);
    return status;
}

#define VALUES tn__values __attribute__((cleanup(tn__values_free)))

static bool has_all(tn_dataset *dataset)
{
    pthread_mutex_lock(&dataset->making);
    bool there = dataset->x != NULL;
    pthread_mutex_unlock(&dataset->making);
    return there;
}

/* The first ones that any of the threads makes that ask for them at once. None holds the lock while the program's
 * function makes samples, which may ask for others, or throw an exception. */
static tn_status keep_all(tn_dataset *dataset)
{
    VALUES x = {0};
    VALUES t = {0};
    TN__GUARD_OF("dataset_x", dataset);
    tn_status status = make_all(dataset->source, &x, &t);
    tn_array *all_x = status == TN_OK ? tn__values_own(&x) : NULL, *all_t = all_x ? tn__values_own(&t) : NULL;
    if (all_t) {
        pthread_mutex_lock(&dataset->making);
        if (!dataset->x) {
            dataset->x = all_x;
            dataset->t = all_t;
            all_x = all_t = NULL;
        }
        pthread_mutex_unlock(&dataset->making);
    } else {
        status = tn__error_status(tn__error_last());
    }
    tn__array_free_kept(all_x);
    tn__array_free_kept(all_t);
    return status;
}

/* An array of the caller's scope with the reason why a dataset has none. */
static tn_array *no_array(const tn_dataset *dataset)
{
    tn__call call = tn__enter();
    tn__dataset_raise("dataset", dataset);
    return tn__leave_error(call);
}

/* Sees to it that the arrays are there; false with an error latched. What a dataset is does not change by it: it is
 * const to its readers, of which several threads may ask at once. */
static bool has_arrays(const tn_dataset *dataset)
{
    if (!dataset || !dataset->source)
        return dataset && dataset->x;
    tn_dataset *own = (tn_dataset *)dataset;
    return has_all(own) || keep_all(own) == TN_OK;
}

static tn_array *array_of(const tn_dataset *dataset, bool targets)
{
    if (has_arrays(dataset))
        return targets ? dataset->t : dataset->x;
    if (!dataset || !dataset->source)
        return no_array(dataset);
    return tn__leave_error(tn__enter());
}

tn_array *tn_dataset_x(const tn_dataset *dataset) { return array_of(dataset, false); }
tn_array *tn_dataset_t(const tn_dataset *dataset) { return array_of(dataset, true); }
