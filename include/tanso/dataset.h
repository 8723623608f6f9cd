/* SPDX-License-Identifier: MIT */
/*
 * Datasets made of other datasets: stretches, chosen samples, parts joined, random splits, k folds.
 *
 * None of these functions takes anything over: a result holds what it needs, and the datasets it was made of may be
 * freed at any time. Stretches of samples share memory with what they are cut out of; chosen and joined samples are
 * copied. Parts have the classes of the whole (tn_dataset_classes). Never NULL, like all datasets; of a failed
 * dataset, one that failed with the same error.
 */
#ifndef TANSO_DATASET_H
#define TANSO_DATASET_H

#include <tanso/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Samples start to stop - 1, counted as in a slice of Python: negative from the end, and cut to what is there. */
TN_API tn_dataset *tn_dataset_slice(const tn_dataset *dataset, int64_t start, int64_t stop);
/* The samples at `rows`, in this order; a sample may come several times. Negative ones count from the end; TN_ERR_INDEX
 * for one that is not there. */
TN_API tn_dataset *tn_dataset_subset(const tn_dataset *dataset, int64_t count, const int64_t *rows);
/* All samples of the first, then all of the second, ... Their dtypes and all extents but the first must agree. */
TN_API tn_dataset *tn_dataset_concat_of(int count, const tn_dataset *const *datasets);

typedef struct tn_split_opts {
    const char *_;
    bool shuffle;  /* deal the samples out by a random order instead of in their own */
    uint64_t seed; /* of that order, which depends on it and on the number of samples alone */
} tn_split_opts;

/* The first `size` samples into *first and the others into *rest, for the caller to free, whatever the status. */
TN_API tn_status tn_dataset_split_with(const tn_dataset *dataset, int64_t size, const tn_split_opts *opts,
                                       tn_dataset **first, tn_dataset **rest) TN_MUST_CHECK;
/* Part i of `parts`, as equal in size as can be: samples i n / parts to (i + 1) n / parts - 1. */
TN_API tn_dataset *tn_dataset_part_with(const tn_dataset *dataset, int parts, int i, const tn_split_opts *opts);
/* Fold i of k-fold cross-validation: part i for TN_TEST, all the others for TN_TRAIN. */
TN_API tn_dataset *tn_dataset_fold_with(const tn_dataset *dataset, int folds, int i, tn_split_kind which,
                                        const tn_split_opts *opts);

#ifndef TN_NO_MACROS
#define tn_dataset_slice(...) TN_HERE(tn_dataset_slice(__VA_ARGS__))
#define tn_dataset_subset(...) TN_HERE(tn_dataset_subset(__VA_ARGS__))
/* tn_dataset_concat(a, b, ...) */
#define tn_dataset_concat(...) TN_AT(tn_dataset_concat_of)(TN__LIST(const tn_dataset *, __VA_ARGS__))
#define tn_dataset_split(...) TN__DATASET_SPLIT(__VA_ARGS__, )
#define TN__DATASET_SPLIT(dataset, size, first, rest, ...) \
    TN_AT(tn_dataset_split_with)(dataset, size, TN_OPTS(tn_split_opts, __VA_ARGS__), first, rest)
#define tn_dataset_part(...) TN__CALL_VVV(tn_dataset_part_with, tn_split_opts, __VA_ARGS__, )
#define tn_dataset_fold(...) TN__CALL_VVVV(tn_dataset_fold_with, tn_split_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
