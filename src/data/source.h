/* SPDX-License-Identifier: MIT */
/*
 * Samples that are made when a minibatch needs them, by a function of the user's or from another dataset's samples. A
 * source is counted, since the datasets that are made of one hold it, and is called from any thread.
 */
#ifndef TN_DATA_SOURCE_H
#define TN_DATA_SOURCE_H

#include <stdatomic.h>
#include <tanso/dataset.h>

typedef struct tn__source tn__source;
struct tn__source {
    atomic_int references;
    const char *operation; /* that made it, for messages */
    /* Writes sample i, x and t one behind the other's end as their types say, in memory that is theirs. */
    tn_status (*get)(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t);
    void (*release)(tn__source *source); /* of what it holds, not of itself */
    /* Of samples that are padded: how many steps, along the first axis of x, sample i has; NULL: they are not. The
     * steps of a minibatch are a multiple of `multiple`. */
    int64_t (*length)(const tn__source *source, int64_t i);
    int64_t multiple;
    int64_t count;
    tn_sample_type x, t;
    size_t x_bytes, t_bytes; /* of one sample */
};

/* Checks the types, and fills in what all sources have; the caller made the memory, of which *source is the start. */
tn_status tn__source_init(tn__source *source, const char *operation, int64_t count, tn_sample_type x, tn_sample_type t);
tn__source *tn__source_retain(tn__source *source);
/* NULL is ignored. */
void tn__source_release(tn__source *source);
/* Sample i of an epoch of a loader with this seed: its random numbers depend on these three alone. */
tn_status tn__source_get(tn__source *source, uint64_t seed, int64_t epoch, int64_t i, void *x, void *t);

/* What a sample's x, or t, is. */
tn_sample_type tn__dataset_type(const tn_dataset *dataset, bool targets);
/* The samples of any dataset as a source, which holds what it needs; NULL with a latched error. */
tn__source *tn__source_of(const tn_dataset *dataset);
/* A dataset of a source, which it takes over; NULL stands for an error that was latched. */
tn_dataset *tn__dataset_of_source(const char *operation, tn__source *source, int64_t classes);
/* The samples at `rows` of a source, in this order; both lists and the source are the caller's. */
tn__source *tn__source_chosen(tn__source *source, const char *operation, int64_t count, const int64_t *rows);
/* The samples of a source, kept once they were made. */
tn__source *tn__source_cached(tn__source *inner);
/* All samples of one source after another. */
tn__source *tn__source_joined(int count, tn__source *const *sources);

#endif
