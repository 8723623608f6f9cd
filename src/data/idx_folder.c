/* SPDX-License-Identifier: MIT */
/* Folders of IDX files named like MNIST's; MNIST, Fashion-MNIST and Kuzushiji-MNIST are some. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/memory.h"
#include "data/catalog.h"
#include "data/dataset.h"
#include "io/formats.h"

static const char *const stems[2][2] = {
    [TN_TRAIN] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    [TN_TEST] = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

/* The file FOLDER/STEM or FOLDER/STEM.gz that can be read; NULL if none, and nothing is latched. */
static char *find_file(const char *folder, const char *stem)
{
    static const char *const endings[] = {"", ".gz"};
    for (int i = 0; i < 2; i++) {
        char *path = tn__format("%s/%s%s", folder, stem, endings[i]);
        if (path && access(path, R_OK) == 0)
            return path;
        tn__free(path);
    }
    return NULL;
}

/* (n, pixels) float32: bytes are divided by 255, other dtypes taken as they are. */
static tn_status images_to_floats(const char *operation, const char *path, const tn__values *images, tn__values *x)
{
    if (images->shape->ndim < 1)
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' holds one number: expected images, at least one axis", path);
    int64_t count = images->shape->dim[0], pixels = 1;
    for (int i = 1; i < images->shape->ndim; i++)
        pixels *= images->shape->dim[i];
    tn_status status = tn__values_new(operation, x, TN_FLOAT32, (tn_shape){2, {count, pixels}});
    if (status != TN_OK)
        return status;
    float *out = tn__values_data(x);
    const unsigned char *bytes = tn__values_data(images);
    int64_t size = images->shape->size;
    if (images->dtype == TN_UINT8) {
        float scaled[256];
        for (int i = 0; i < 256; i++)
            scaled[i] = (float)i / 255.0f;
        for (int64_t i = 0; i < size; i++)
            out[i] = scaled[bytes[i]];
        return TN_OK;
    }
    size_t item = tn__dtypes[images->dtype].size;
    for (int64_t i = 0; i < size; i++) {
        tn__scalar element = {0};
        memcpy(element.bytes, bytes + (size_t)i * item, item);
        out[i] = (float)tn__scalar_to_double(element, images->dtype);
    }
    return TN_OK;
}

static tn_status labels_to_int64(const char *operation, const char *path, const tn__values *labels, tn__values *t)
{
    if (labels->shape->ndim != 1 || !tn_dtype_is_integer(labels->dtype))
        return tn__fail(TN_ERR_FORMAT, operation, "'%s' holds %s with %d axes: expected labels, integers with one axis",
                        path, tn__dtypes[labels->dtype].name, labels->shape->ndim);
    tn_status status = tn__values_new(operation, t, TN_INT64, tn__shape_value(labels->shape));
    if (status != TN_OK)
        return status;
    int64_t *out = tn__values_data(t);
    const unsigned char *bytes = tn__values_data(labels);
    size_t item = tn__dtypes[labels->dtype].size;
    for (int64_t i = 0; i < labels->shape->size; i++) {
        tn__scalar element = {0};
        memcpy(element.bytes, bytes + (size_t)i * item, item);
        out[i] = tn__scalar_to_int(element, labels->dtype);
    }
    return TN_OK;
}

static tn_status load_pair(const char *operation, const char *image_path, const char *label_path, tn__values *x,
                           tn__values *t)
{
    tn__values labels = {0}, images = {0};
    tn_status status = tn__idx_read(operation, label_path, &labels);
    if (status == TN_OK)
        status = labels_to_int64(operation, label_path, &labels, t);
    tn__values_free(&labels);
    if (status == TN_OK)
        status = tn__idx_read(operation, image_path, &images);
    if (status == TN_OK)
        status = images_to_floats(operation, image_path, &images, x);
    tn__values_free(&images);
    if (status == TN_OK && x->shape->dim[0] != t->shape->dim[0])
        status =
            tn__fail(TN_ERR_FORMAT, operation, "'%s' holds %lld images and '%s' %lld labels: expected as many of each",
                     image_path, (long long)x->shape->dim[0], label_path, (long long)t->shape->dim[0]);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return path && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static tn_dataset *load_folder(const char *operation, const char *folder, tn_split_kind split)
{
    tn__values x = {0}, t = {0};
    const char *const *stem = stems[split == TN_TEST];
    char *images = find_file(folder, stem[0]), *labels = find_file(folder, stem[1]);
    tn_status status;
    if (images && labels)
        status = load_pair(operation, images, labels, &x, &t);
    else if (!is_folder(folder))
        status = tn__fail(TN_ERR_IO, operation,
                          "there is no folder '%s': expected one that holds %s[.gz] and the other "
                          "files of an IDX dataset, named like MNIST's",
                          folder ? folder : "NULL", stem[0]);
    else
        status = tn__fail(TN_ERR_IO, operation,
                          "the folder '%s' holds no readable %s[.gz]: expected the files of an IDX "
                          "dataset, named like MNIST's",
                          folder, images ? stem[1] : stem[0]);
    tn__free(images);
    tn__free(labels);
    return tn__dataset_make(operation, status, &x, &t);
}

tn_dataset *tn_idx_folder(const char *folder, tn_split_kind split) { return load_folder("idx_folder", folder, split); }

/* ---- the published sets in this form ---- */

static tn_dataset *load_set(const char *name, tn_split_kind split)
{
    tn__values x = {0}, t = {0};
    const char *images = stems[split == TN_TEST][0];
    char *packed = tn__format("%s.gz", images);
    const char *files[] = {images, packed, NULL};
    char *folder = packed ? tn__set_folder(tn__set_find(name), files) : NULL;
    tn__free(packed);
    if (!folder)
        return tn__dataset_make(name, packed ? tn__error_status(tn__error_last()) : tn__fail_memory(name, 64), &x, &t);
    tn_dataset *dataset = load_folder(name, folder, split);
    tn__free(folder);
    return dataset;
}

tn_dataset *tn_mnist(tn_split_kind split) { return load_set("mnist", split); }
tn_dataset *tn_fashion_mnist(tn_split_kind split) { return load_set("fashion-mnist", split); }
tn_dataset *tn_kmnist(tn_split_kind split) { return load_set("kmnist", split); }
