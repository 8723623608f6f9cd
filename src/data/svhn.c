/* SPDX-License-Identifier: MIT */
/* SVHN (Y. Netzer et al., "Reading digits in natural images with unsupervised feature learning", 2011), the cropped
 * images, read out of the files of MATLAB that it is published in. */
#include <string.h>
#include "core/memory.h"
#include "data/catalog.h"
#include "data/dataset.h"
#include "io/file.h"
#include "io/formats.h"

#define SIDE   32
#define PLANE  (SIDE * SIDE)
#define DIGITS 10
#define MOST_BYTES ((uint64_t)1 << 28)

static const char *const files[2][2] = {{"train_32x32.mat", NULL}, {"test_32x32.mat", NULL}};

/* 1 to 10, of whatever dtype; 10 stands for the digit 0. */
static tn_status take_labels(const char *path, const tn__values *labels, int64_t *t)
{
    size_t item = tn_dtype_size(labels->dtype);
    for (int64_t i = 0; i < labels->shape->size; i++) {
        tn__scalar value = {.bits = 0};
        memcpy(value.bytes, (const char *)tn__values_data(labels) + (size_t)i * item, item);
        double label = tn__scalar_to_double(value, labels->dtype);
        if (!(label >= 1 && label <= DIGITS))
            return tn__fail(TN_ERR_FORMAT, "svhn", "'%s': label %g, expected 1 to 10, which stands for 0", path, label);
        t[i] = (int64_t)label % DIGITS;
    }
    return TN_OK;
}

/* Pixels as MATLAB has them, columns of planes: image, colour, column, row. */
static tn_status convert(const char *path, const tn__values *images, const tn__values *labels, tn__values *x,
                         tn__values *t)
{
    const int64_t *dim = images->shape->dim, count = images->shape->ndim == 4 ? dim[0] : -1;
    if (count < 0 || dim[1] != 3 || dim[2] != SIDE || dim[3] != SIDE || images->dtype != TN_UINT8 ||
        labels->shape->size != count)
        return tn__fail(TN_ERR_FORMAT, "svhn", "'%s' does not hold images of 32 x 32 x 3 bytes with a label each; "
                        "remove it and run `tanso data fetch svhn`", path);
    tn_status status = tn__values_new("svhn", x, TN_FLOAT32, TN_SHAPE(count, 3, SIDE, SIDE));
    if (status == TN_OK)
        status = tn__values_new("svhn", t, TN_INT64, TN_SHAPE(count));
    if (status != TN_OK)
        return status;
    const uint8_t *pixel = tn__values_data(images);
    float *plane = tn__values_data(x);
    for (int64_t i = 0; i < 3 * count; i++, pixel += PLANE, plane += PLANE)
        for (int row = 0; row < SIDE; row++)
            for (int column = 0; column < SIDE; column++)
                plane[row * SIDE + column] = (float)pixel[column * SIDE + row] / 255.0f;
    return take_labels(path, labels, tn__values_data(t));
}

static tn_status read_file(const char *path, tn__values *x, tn__values *t)
{
    tn__values images = {0}, labels = {0};
    uint8_t *data;
    size_t size;
    tn_status status = tn__file_read("svhn", path, MOST_BYTES, &data, &size);
    if (status != TN_OK)
        return status;
    status = tn__mat_parse("svhn", path, "X", data, size, &images);
    if (status == TN_OK)
        status = tn__mat_parse("svhn", path, "y", data, size, &labels);
    tn__free(data);
    if (status == TN_OK)
        status = convert(path, &images, &labels, x, t);
    tn__values_free(&images);
    tn__values_free(&labels);
    return status;
}

tn_dataset *tn_svhn(tn_split_kind split)
{
    tn__values x = {0}, t = {0};
    const char *const *names = files[split == TN_TEST];
    char *folder = tn__set_folder(tn__set_find("svhn"), names);
    char *path = folder ? tn__format("%s/%s", folder, names[0]) : NULL;
    tn_status status = path     ? read_file(path, &x, &t)
                       : folder ? tn__fail_memory("svhn", strlen(folder) + 64)
                                : tn__error_status(tn__error_last());
    tn__free(path);
    tn__free(folder);
    tn_dataset *dataset = tn__dataset_make("svhn", status, &x, &t);
    if (tn_dataset_status(dataset) == TN_OK)
        dataset->classes = DIGITS;
    return dataset;
}
