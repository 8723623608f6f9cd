/* SPDX-License-Identifier: MIT */
/*
 * Samplers: which samples an epoch of a loader has, and in which order, where neither the dataset's own order nor a
 * random one of all samples will do.
 *
 *     tn_loader_new(dataset, .batch = 64, .sampler = tn_weighted_sampler(size, weights))
 *
 * Constructors never return NULL; a sampler that could not be made fails the loader that is given it. A loader takes
 * over its sampler in any case. What a sampler gives depends on the loader's seed and the epoch alone, so that runs,
 * resumed ones, devices and numbers of threads agree.
 */
#ifndef TANSO_SAMPLER_H
#define TANSO_SAMPLER_H

#include <tanso/comm.h>
#include <tanso/data.h>
#include <tanso/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_weighted_sampler_opts {
    const char *_;
    int64_t samples; /* of an epoch; default: as many as the dataset has */
    bool distinct;   /* without replacement: each sample once at most, so that `samples` weights must be above 0 */
} tn_weighted_sampler_opts;
/* Samples drawn by chance, sample i in proportion to weights[i], of which the dataset must have `size`; weights are
 * finite, not negative, and not all 0, else TN_ERR_VALUE. They are copied. */
TN_API tn_sampler *tn_weighted_sampler_with(int64_t size, const double *weights, const tn_weighted_sampler_opts *opts);

typedef struct tn_length_sampler_opts {
    const char *_;
    int window; /* minibatches whose samples are sorted by length together; default 100 */
} tn_length_sampler_opts;
/* All samples in a random order in which those of a minibatch have nearly the same length, so that padding is short:
 * windows of the random order are sorted, and their minibatches then dealt out in a random order, the short one last.
 * lengths[i], copied, is that of sample i. */
TN_API tn_sampler *tn_length_sampler_with(int64_t size, const int64_t *lengths, const tn_length_sampler_opts *opts);

typedef struct tn_rank_sampler_opts {
    const char *_;
    bool shuffle; /* a new order each epoch, from the loader's seed and the epoch's number */
    bool uneven;  /* every sample once, so that some ranks may have one less; default: as many for all ranks, by some
                     samples twice */
} tn_rank_sampler_opts;
/* This rank's share of each epoch of a dataset of `size` samples: those that a loader of all of them has, shuffled or
 * not, are dealt out one by one, so that minibatches of n samples of the ranks of a communicator together are those of
 * n * ranks samples of a single process. All ranks give their loaders the same seed. The communicator is not used
 * later. */
TN_API tn_sampler *tn_rank_sampler_with(int64_t size, const tn_comm *comm, const tn_rank_sampler_opts *opts);

/* Writes the positions of `count` samples of an epoch into rows; negative ones count from the end. Random numbers come
 * from `generator`, which depends on the loader's seed and the epoch. It may be called in any thread, also by several
 * at once, for an epoch more than once and before it begins: the same epoch must give the same rows. */
typedef tn_status (*tn_order_fn)(void *user, int64_t epoch, tn_generator *generator, int64_t count, int64_t *rows);
typedef struct tn_sampler_opts {
    const char *_;
    void (*free_user)(void *user); /* called when the sampler is freed, or at once should this fail */
} tn_sampler_opts;
/* An order of one's own; a position that is not there ends the loader with TN_ERR_INDEX. */
TN_API tn_sampler *tn_sampler_of_with(int64_t samples, tn_order_fn order, void *user, const tn_sampler_opts *opts);

/* Frees one that no loader was given. NULL is ignored. */
TN_API void tn_sampler_free(tn_sampler *sampler);
/* TN_OK, or why it could not be made. */
TN_API tn_status tn_sampler_status(const tn_sampler *sampler);

#ifndef TN_NO_MACROS
#define tn_weighted_sampler(...) TN__CALL_VV(tn_weighted_sampler_with, tn_weighted_sampler_opts, __VA_ARGS__, )
#define tn_length_sampler(...) TN__CALL_VV(tn_length_sampler_with, tn_length_sampler_opts, __VA_ARGS__, )
#define tn_rank_sampler(...) TN__CALL_VV(tn_rank_sampler_with, tn_rank_sampler_opts, __VA_ARGS__, )
#define tn_sampler_of(...) TN__CALL_VVV(tn_sampler_of_with, tn_sampler_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
