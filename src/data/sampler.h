/* SPDX-License-Identifier: MIT */
/* What a sampler is: a way to fill in the order of an epoch. Read by several threads, written by none. */
#ifndef TN_DATA_SAMPLER_H
#define TN_DATA_SAMPLER_H

#include <tanso/sampler.h>
#include "core/object.h"

/* An epoch that wants an order. */
typedef struct tn__epoch_order {
    int64_t epoch, batch;
    int64_t size, count; /* samples of the dataset, and of the epoch */
    uint64_t key;        /* for random numbers */
    int64_t *rows;       /* to be filled in, count of them */
} tn__epoch_order;

struct tn_sampler {
    tn__object object;
    tn_status (*order)(const tn_sampler *sampler, const tn__epoch_order *want);
    int64_t size;      /* samples that the dataset must have; -1: any */
    int64_t samples;   /* of an epoch; 0: as many as the dataset has */
    double *weights;   /* running sums of them, or of distinct samples the weights themselves */
    int64_t *lengths;  /* of samples */
    int64_t window;
    int64_t ranks, rank; /* of a communicator */
    bool shuffles;
    tn_order_fn function;
    void *user;
    void (*free_user)(void *user);
    tn__error *error;  /* why it could not be made */
    bool is_static;
};

/* One whose orders a function fills in, for any dataset; and the end of making one, which a status other than TN_OK
 * makes inert. Without memory it is a static one, which is to be left as it is. */
tn_sampler *tn__sampler_new(tn_status (*order)(const tn_sampler *sampler, const tn__epoch_order *want));
tn_sampler *tn__sampler_done(tn_sampler *sampler, tn_status status);
/* Takes a sampler over for `owner`, as tn__dataset_take does. NULL is nothing. */
tn_status tn__sampler_take(tn_sampler *sampler, const char *owner);
void tn__sampler_free_taken(tn_sampler *sampler);
/* Whether it suits a dataset of `size` samples, and the samples of its epochs; else latched. */
tn_status tn__sampler_check(const tn_sampler *sampler, int64_t size, int64_t *samples);
/* Fills in an epoch's order, all of which lies in the dataset; or latches why not. */
tn_status tn__sampler_order(const tn_sampler *sampler, const tn__epoch_order *want);

#endif
