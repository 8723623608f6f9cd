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
    int layer;             /* whose parameters alone they are, from 1, of the marked ones; 0: of no marked one */
    tn_array *own;         /* owned: this rank's share of parameters that are away; NULL: they are whole */
    tn_array *sums, *news; /* owned: of this rank's share, the gradients' sums, since backward sends them or from the
                            * step on, and during it new values */
} tn__shard_bucket;

/* A marked layer, which nodes name by its number, as they may live longer. */
typedef struct tn__shard_layer {
    tn__keeper keeper;
    tn_layer *layer;
    tn_optimizer *optimizer;
    uint64_t number;
    tn_array *token; /* a leaf, so that backward comes to the layer whatever its inputs are */
    struct tn__shard_layer *next;
} tn__shard_layer;

typedef struct tn__shard {
    int stage;             /* 1: states, 2: gradients of marked layers, too, 3: and their parameters */
    tn__shard_layer **layer; /* the marked ones; owned */
    size_t layer_count, layer_capacity;
    uint64_t looked;       /* the layer's count of changes when they were looked for */
    tn__node **gradient;   /* while backward puts them together, by parameter */
    tn__shard_bucket *bucket;
    size_t bucket_count, bucket_capacity;
    size_t *order;         /* parameters by bucket, and in it by place */
    size_t order_count, order_capacity;
    size_t seen;           /* parameters that there were when this was laid out */
    size_t ordered;        /* and when `order` was made */
    bool whole;            /* each parameter is one rank's */
    bool gathered;         /* this rank has all states, as of now */
    bool open;             /* in a step that the others wait for */
    uint8_t *has, *some;   /* by parameter: whether this rank, and whether any, has a gradient; behind these, whether
                            * backward has sent one */
    size_t has_capacity, some_capacity;
} tn__shard;

/* ---- shard.c ---- */
/* Begins, with states that are whole on all ranks; and ends, with such, if it can. */
tn_status tn__shard_begin(tn_optimizer *optimizer, int stage);
tn_status tn__shard_end(tn_optimizer *optimizer);
void tn__shard_free(tn_optimizer *optimizer);
/* Lays parameters out as they are now, and moves states to whom they belong. All ranks call it. */
tn_status tn__shard_settle(tn_optimizer *optimizer);
/* The elements of a parameter that a rank updates. */
void tn__shard_piece(const tn_optimizer *optimizer, const tn__tracked *tracked, int rank, int64_t *begin,
                     int64_t *size);

/* Lets go of what buckets have, when parameters are tracked anew. */
void tn__shard_drop(tn_optimizer *optimizer);

/* ---- shard_layers.c ---- */
/* Finds the marked layers, notes whose each parameter is, and runs their forward from now on; until this is ended. */
tn_status tn__shard_find_layers(tn_optimizer *optimizer);
void tn__shard_leave_layers(tn_optimizer *optimizer);
/* Of marked layers' parameters that are whole, this rank's part is kept, and the rest put away. */
tn_status tn__shard_cut_params(tn_optimizer *optimizer);
/* Of one marked layer, or (0) of all: parameters become whole again, where they are wanted. All ranks call it. */
tn_status tn__shard_params_together(tn_optimizer *optimizer, int layer, bool wanted);
/* Before parameters are laid out anew: what backward has sent becomes gradients as others are, of one of the ranks. */
tn_status tn__shard_gradients_back(tn_optimizer *optimizer);
/* After a step. */
void tn__shard_forget_gradients(tn_optimizer *optimizer);

/* The living one with this number, or NULL. */
tn__shard_layer *tn__shard_layer_numbered(uint64_t number);
/* What params_together brought, of one layer. */
void tn__shard_put_away(tn_optimizer *optimizer, int layer);

/* ---- shard_forward.c ---- */
/* A marked layer's forward: of its keeper. */
void tn__shard_forward(tn__keeper *keeper, tn_layer *layer, const tn__flow *flow);

/* ---- shard_state.c ---- */
/* Elements of a value as one of its own: a window would keep all of it. */
tn__node *tn__shard_copy_of(tn__node *value, const tn__shape *shape);
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
/* What there is at a parameter's place in a vector; NULL: zeros. With how much of it, and where. */
typedef tn__node *tn__shard_piece_fn(tn_optimizer *optimizer, size_t i, int64_t *at, int64_t *size);
/* A vector of pieces of a bucket's parameters. */
tn__node *tn__shard_put_together(tn_optimizer *optimizer, const tn__shard_bucket *b, int64_t size,
                                 tn__shard_piece_fn *piece);
/* This rank's elements of a parameter; and where they begin in its share. */
tn__node *tn__shard_own_part(const tn_optimizer *optimizer, const tn__tracked *t);
int64_t tn__shard_in_share(const tn_optimizer *optimizer, const tn__tracked *t);
/* Keeps a node. */
tn_status tn__shard_hold(tn_array **array, tn__node *node);
/* Adds a vector of gradients, as long as all shares, to the sums of all ranks. */
tn_status tn__shard_scatter(tn_optimizer *optimizer, tn__shard_bucket *b, tn__node *own);
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
