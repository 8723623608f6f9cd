/* SPDX-License-Identifier: MIT */
/* What a dataset is: two evaluated, contiguous arrays on the CPU with equal first extents, or a source that makes
 * samples when they are needed, or an error. */
#ifndef TN_DATA_DATASET_H
#define TN_DATA_DATASET_H

#include <pthread.h>
#include <tanso/data.h>
#include "core/object.h"
#include "io/values.h"

struct tn_dataset {
    tn__object object;
    tn_array *x, *t;   /* owned; NULL in a failed dataset; of a source, NULL until somebody asks for them */
    struct tn__source *source; /* held, or NULL: the samples are in x and t */
    pthread_mutex_t making;    /* of a source: held while x and t are made */
    int64_t size;
    int64_t classes;
    tn_dataset *more;  /* owned: the next two fields of the same samples, and so on; NULL: there are no more */
    char *names[2];    /* owned, of x and t; NULL: "x" and "t" */
    bool half;         /* t only stands in: there is one field, x */
    tn__error *error;  /* why it failed, else NULL */
    bool is_static;    /* the one for no memory: never freed */
};

/* A dataset of x and t, which it takes over, or, if status says so, a failed one with the error that was latched last
 * (x and t are dropped). Checks that first extents agree. Never NULL. */
tn_dataset *tn__dataset_make(const char *operation, tn_status status, tn__values *x, tn__values *t);

/* Takes a dataset over for `owner`, who frees it with tn__dataset_free_taken; TN_ERR_STATE, latched, if it is another's
 * or has been freed. */
tn_status tn__dataset_take(tn_dataset *dataset, const char *owner);
void tn__dataset_free_taken(tn_dataset *dataset);

/* A dataset, and the next fields of its samples: it takes over both, which are of the same size. If one of them failed,
 * a dataset that failed so. */
tn_dataset *tn__dataset_with_more(tn_dataset *dataset, tn_dataset *more);
/* The first two fields of a dataset alone, in the same memory. */
tn_dataset *tn__dataset_pair(const char *operation, const tn_dataset *dataset);
/* Gives the two fields of a dataset the names, and the number, of those of another; itself, or one that failed. */
tn_dataset *tn__dataset_named_as(tn_dataset *dataset, const tn_dataset *other);

/* Why a dataset cannot be used, latched; TN_OK if it can. */
tn_status tn__dataset_raise(const char *operation, const tn_dataset *dataset);
/* The elements of x or t. */
static inline const char *tn__dataset_data(const tn_array *all)
{
    const tn__node *node = tn__array_node(all);
    return (const char *)node->storage->memory + (size_t)node->offset * tn__dtypes[node->dtype].size;
}

/* A permutation of 0..n-1 in order[], by Fisher and Yates with Philox stream `key`. */
void tn__permutation(uint64_t key, int64_t n, int64_t *order);
/* The same in parts: some steps at a time, false when all are done. */
typedef struct tn__shuffling {
    uint64_t key;
    int64_t left;
    int64_t *order;
} tn__shuffling;
void tn__shuffling_begin(tn__shuffling *shuffling, uint64_t key, int64_t n, int64_t *order);
bool tn__shuffling_go_on(tn__shuffling *shuffling, int64_t steps);
/* Copies rows order[0..count-1] of `bytes` each. */
void tn__gather_rows(void *out, const void *rows, size_t bytes, const int64_t *order, int64_t count);

/* What stands before the name of a set that is to be computed, see tn_dataset_named. */
#define TN__SYNTHETIC "synthetic:"
/* Datasets by name, for "did you mean". */
extern const char *const tn__dataset_names[];
extern const int tn__dataset_name_count;

#endif
