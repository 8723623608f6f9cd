/* SPDX-License-Identifier: MIT */
/*
 * Updates shared out between the ranks (ZeRO's first stage): each keeps the state of some elements of the parameters,
 * and updates those. shard.c tells which, and moves states when that changes; shard_step.c is a step.
 */
#ifndef TN_OPTIM_SHARD_H
#define TN_OPTIM_SHARD_H

#include "comm/comm.h"
#include "optim/optimizer.h"

/* A vector of parameters of one dtype and device: as many shares, one behind another, as there are ranks. */
typedef struct tn__shard_bucket {
    tn_dtype dtype;
    tn__device *device;
    int64_t share;         /* elements of one share */
    size_t first, count;   /* its parameters: a part of `order` */
    tn_array *sums, *news; /* during a step, owned: of this rank's share, the gradients' sums, and new values */
} tn__shard_bucket;

typedef struct tn__shard {
    tn__shard_bucket *bucket;
    size_t bucket_count, bucket_capacity;
    size_t *order;         /* parameters by bucket, and in it by place */
    size_t order_count, order_capacity;
    size_t seen;           /* parameters that there were when this was laid out */
    bool whole;            /* each parameter is one rank's */
    bool gathered;         /* this rank has all states, as of now */
    bool open;             /* in a step that the others wait for */
    uint8_t *has, *some;   /* by parameter: whether this rank, and whether any, has a gradient */
    size_t has_capacity, some_capacity;
} tn__shard;

/* ---- shard.c ---- */
/* Begins, with states that are whole on all ranks; and ends, with such, if it can. */
tn_status tn__shard_begin(tn_optimizer *optimizer);
tn_status tn__shard_end(tn_optimizer *optimizer);
void tn__shard_free(tn_optimizer *optimizer);
/* Lays parameters out as they are now, and moves states to whom they belong. All ranks call it. */
tn_status tn__shard_settle(tn_optimizer *optimizer);
/* The elements of a parameter that a rank updates. */
void tn__shard_piece(const tn_optimizer *optimizer, const tn__tracked *tracked, int rank, int64_t *begin,
                     int64_t *size);

/* ---- shard_state.c ---- */
/* The shape of this rank's part of a state. */
const tn__shape *tn__shard_state_shape(const tn_optimizer *optimizer, const tn__tracked *tracked, int which);
/* Takes a state as a whole, or this rank's part of it; TN_ERR_SHAPE if it is neither. */
tn_status tn__shard_take(tn_optimizer *optimizer, tn__tracked *tracked, int which, tn__node *state);
/* Lets go what was gathered, which is not as of now any more. */
void tn__shard_forget(tn_optimizer *optimizer);
/* Each state that the ranks have in parts, brought together: in its place, or beside it; not `wanted`: for others. */
tn_status tn__shard_bring_together(tn_optimizer *optimizer, bool beside, bool wanted);
/* The states that are there as wholes, to this rank's parts of them. */
tn_status tn__shard_cut_states(tn_optimizer *optimizer);

/* ---- shard_step.c ---- */
/* Gradients become sums of this rank's elements; leaves none with a parameter. */
tn_status tn__shard_exchange(tn_optimizer *optimizer);
/* The scratch of the step: this rank's elements and their gradients; how many parameters are updated anywhere. */
int tn__shard_look(tn_optimizer *optimizer);
/* The sum of a number of all ranks; NULL is 0. */
tn__node *tn__shard_sum(tn_optimizer *optimizer, tn__node *number);
/* New values, as further roots of the update; the count of roots then, -1 with a latched error. */
int tn__shard_put(tn_optimizer *optimizer, int count);
/* After the update: everybody's new values for all. */
tn_status tn__shard_spread(tn_optimizer *optimizer);
/* The end of a step; of one that failed while others wait, the communicator's. */
void tn__shard_close(tn_optimizer *optimizer, tn_status status);

#endif
