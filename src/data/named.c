/* SPDX-License-Identifier: MIT */
/* Datasets by name. */
#include <string.h>
#include <sys/stat.h>
#include "data/dataset.h"

/* The toy sets' sizes and seeds, training and test. */
#define SPIRAL_PER_CLASS 100
static const uint64_t spiral_seed[2] = {1984, 2020}; /* as DeZero's */
static const int64_t sine_count[2] = {1000, 250};
static const uint64_t sine_seed[2] = {0, 1};

static tn_dataset *spiral(tn_split_kind split) { return tn_spiral(SPIRAL_PER_CLASS, spiral_seed[split == TN_TEST]); }
static tn_dataset *sine(tn_split_kind split)
{
    return tn_sine(sine_count[split == TN_TEST], sine_seed[split == TN_TEST]);
}

#define DATASETS(ROW) \
    ROW("digits", tn_digits) \
    ROW("mnist", tn_mnist) \
    ROW("fashion-mnist", tn_fashion_mnist) \
    ROW("kmnist", tn_kmnist) \
    ROW("cifar10", tn_cifar10) \
    ROW("cifar100", tn_cifar100) \
    ROW("svhn", tn_svhn) \
    ROW("ptb", tn_ptb) \
    ROW("spiral", spiral) \
    ROW("sine", sine)
#define NAME(name, maker) name,
#define MAKER(name, maker) maker,
#define LISTED(name, maker) name ", "

static tn_dataset *(*const makers[])(tn_split_kind) = {DATASETS(MAKER)};
const char *const tn__dataset_names[] = {DATASETS(NAME)};
const int tn__dataset_name_count = sizeof tn__dataset_names / sizeof *tn__dataset_names;

tn_dataset *tn_dataset_named(const char *name, tn_split_kind split)
{
    name = name ? name : "";
    for (int i = 0; i < tn__dataset_name_count; i++)
        if (strcmp(name, tn__dataset_names[i]) == 0)
            return makers[i](split);
    if (strncmp(name, TN__SYNTHETIC, strlen(TN__SYNTHETIC)) == 0)
        return tn_dataset_synthetic(name + strlen(TN__SYNTHETIC), split);
    struct stat info;
    if (strchr(name, '/') || (stat(name, &info) == 0 && S_ISDIR(info.st_mode)))
        return tn_idx_folder(name, split);
    tn__values none = {0};
    const char *near = tn__nearest_name(name, tn__dataset_names, tn__dataset_name_count);
    tn_status status = tn__fail(TN_ERR_NAME, "dataset_named",
                                "no dataset or folder is called '%s'%s%s%s are " DATASETS(LISTED)
                                "and folders of IDX files",
                                name, near ? ": did you mean '" : "", near ? near : "", near ? "'? There" : "; there");
    return tn__dataset_make("dataset_named", status, &none, &none);
}
