/* SPDX-License-Identifier: MIT */
/*
 * Optimizers of several ranks, which all have the same network: parameters begin as rank 0's, and before each update
 * gradients become their means over the ranks.
 *
 * Gradients travel in buckets: one vector of all that have a dtype and a device in common, up to a size, behind which
 * lies for each of them whether this rank has it, so that the sums tell how many do. What each rank does so depends on
 * the parameters alone: a rank whose samples have run out, or whose graph leaves some of them out, gives zeros. Buckets
 * are evaluated like a step, with the loss and what else would be lost; the means are parts of them, and the division
 * is left to the update. Between GPUs that are connected gradients need no buckets: travel.c.
 */
#include "optim/optimizer.h"

#include <tanso/array.h>
#include <tanso/random.h>

#include "autograd/backward.h"
#include "comm/comm.h"
#include "engine/engine.h"
#include "optim/shard.h"
#include "optim/travel.h"

#define MOST ((int64_t)1 << 24) /* elements of a bucket, but for one parameter that is larger */

/* ---- parameters ---- */

static tn__node *from_root(tn_comm *comm, tn__node *node)
{
    const tn__collective_call call = {.kind = TN__BROADCAST};
    return tn__collective(comm, &call, node, (tn_dtype)node->dtype, node->shape);
}

/* Whether two values differ anywhere; in NaN they do. */
static tn_status differ(tn__node *a, tn__node *b, bool *differs)
{
    bool some = false;
    tn__node *unequal = tn__binary(TN__OP_NOT_EQUAL, a, b);
    unequal = tn__node_is_error(unequal) ? unequal : tn__reduce(TN__OP_ANY, unequal, (1u << a->shape->ndim) - 1);
    tn_status status = tn__evaluate(1, &unequal);
    if (status == TN_OK)
        status = tn__read(unequal, &some);
    *differs |= some;
    return status;
}

static tn_status share_one(tn_optimizer *optimizer, tn__tracked *tracked, bool *changed)
{
    tn__call call = tn__enter();
    tn__node *own = tn__array_node(tracked->param);
    tn__node *root = own->shape->size ? from_root(optimizer->comm, own) : own;
    tn_status status = tn__node_is_error(root) ? tn__error_raise(root->error) : TN_OK;
    if (status == TN_OK && root != own)
        status = differ(own, root, changed);
    if (status == TN_OK && root != own && optimizer->comm->place.rank != 0)
        tn__param_point(tracked->param, root);
    tracked->shared |= status == TN_OK;
    tn__leave(call);
    return status;
}

/* Rank 0's parameters for all, of those that have come since; whether any rank had others. */
static tn_status share_params(tn_optimizer *optimizer, bool *changed)
{
    bool any = false, own = false;
    tn_status status = TN_OK;
    for (size_t i = 0; i < optimizer->tracked_count && status == TN_OK; i++) {
        if (optimizer->tracked[i].shared)
            continue;
        any = true;
        status = share_one(optimizer, &optimizer->tracked[i], &own);
    }
    bool some = own;
    const tn__transfer most = {.kind = TN__ALL_REDUCE,
                               .op = TN_COMM_MAX,
                               .dtype = TN_BOOL,
                               .itemsize = sizeof own,
                               .count = 1,
                               .from = &own,
                               .to = &some};
    if (status == TN_OK && any)
        status = tn__comm_tell(optimizer->comm, &most, "step", "a comparison of parameters");
    *changed = some;
    return status;
}

/* ---- buckets ---- */

/* The parameters that may have gradients, from `first` on, that go into one bucket; `taken` tells of each which bucket
 * it is in. Returns how many there are. */
static int choose(tn_optimizer *optimizer, size_t first, int bucket)
{
    const tn__node *like = tn__array_node(optimizer->tracked[first].param);
    int64_t elements = 0;
    int count = 0;
    for (size_t i = first; i < optimizer->tracked_count; i++) {
        const tn__node *p = tn__array_node(optimizer->tracked[i].param);
        if (optimizer->work[i].bucket || p->dtype != like->dtype || p->device != like->device ||
            !(p->flags & TN__NODE_LEAF_VAR) || (count && elements + p->shape->size > MOST))
            continue;
        optimizer->work[i].bucket = bucket;
        optimizer->work[i].place = elements;
        elements += p->shape->size;
        count++;
    }
    return count;
}

static tn_array *handle(tn__node *node) { return tn__leave_array(tn__enter(), node); }

/* The bucket as an array of the scope: gradients one behind the other, and which of them there are. */
static tn_array *pack(tn_optimizer *optimizer, int bucket, int count)
{
    TN__FREED const tn_array **parts = tn__alloc(2 * sizeof *parts * (size_t)count);
    int done = 0;
    if (!parts) {
        tn__fail_memory("step", 2 * sizeof *parts * (size_t)count);
        return tn__failed_array();
    }
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn_array *param = optimizer->tracked[i].param;
        tn__node *p = tn__array_node(param), *g = optimizer->work[i].gradient;
        if (optimizer->work[i].bucket != bucket)
            continue;
        tn__call call = tn__enter();
        const tn__shape *one = tn__shape_intern(1, (int64_t[]){1});
        tn__node *flat = tn__reshape(g ? g : tn__const_like(p, 0), 1, &p->shape->size);
        tn__node *there = one ? tn__const(g != NULL, (tn_dtype)p->dtype, one, p->device) : tn__failed();
        parts[done] = handle(flat);
        parts[count + done++] = handle(there);
        tn__leave(call);
    }
    return tn_concatenate(2 * count, parts, 0);
}

tn__node *tn__part_of(tn__node *vector, int64_t begin, const tn__shape *shape)
{
    const int64_t step = 1;
    tn__node *piece = tn__slice_node(vector, &begin, &step, &shape->size);
    return tn__node_is_error(piece) ? piece : tn__reshape_like(piece, shape);
}

/* How many ranks have each gradient of a bucket: by what lies behind them. Those that have all need not look. */
static tn_status read_counts(tn__node *sums, int count, double *counts)
{
    const tn__shape *shape = tn__shape_intern(1, (int64_t[]){count});
    tn__node *numbers = shape ? tn__part_of(sums, sums->shape->size - count, shape) : tn__failed();
    numbers = tn__node_is_error(numbers) ? numbers : tn__cast(numbers, TN_FLOAT64);
    tn_status status = tn__evaluate(1, &numbers);
    return status == TN_OK ? tn__read(numbers, counts) : status;
}

static bool lacks_any(const tn_optimizer *optimizer, int bucket)
{
    bool lacks = false;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        lacks |= optimizer->work[i].bucket == bucket && !optimizer->work[i].gradient;
    return lacks;
}

/* The means out of a bucket of sums, into the parameters' records. */
static tn_status unpack(tn_optimizer *optimizer, int bucket, int count, tn__node *sums)
{
    bool lacks = lacks_any(optimizer, bucket);
    TN__FREED double *counts = lacks ? tn__calloc((size_t)count, sizeof *counts) : NULL;
    int place = 0;
    if (lacks && !counts)
        return tn__fail_memory("step", (size_t)count * sizeof *counts);
    tn_status status = counts ? read_counts(sums, count, counts) : TN_OK;
    for (size_t i = 0; i < optimizer->tracked_count && status == TN_OK; i++) {
        tn_array *param = optimizer->tracked[i].param;
        if (optimizer->work[i].bucket != bucket)
            continue;
        if (counts && counts[place++] == 0)
            continue;
        tn__node *mean = tn__part_of(sums, optimizer->work[i].place, tn__array_node(param)->shape);
        mean = tn__node_is_error(mean) ? mean : tn__with(TN__OP_DIVIDE, mean, optimizer->comm->place.size);
        status = tn__take_mean(param, mean);
    }
    return status;
}

/* Sums of a bucket over the ranks. The evaluation is a step's: the loss comes along, which it would not find again. */
static tn_status exchange(tn_optimizer *optimizer, int bucket, int count)
{
    const tn__collective_call sum = {.kind = TN__ALL_REDUCE};
    tn__scope_guard scope = tn__scope_enter();
    tn__call call = tn__enter();
    tn__node *own = tn__node_of(pack(optimizer, bucket, count), "step");
    tn_status status = tn__node_is_error(own) ? tn__error_raise(own->error) : tn__evaluate_step(1, &own);
    tn__node *sums = NULL;
    if (status == TN_OK)
        sums = tn__collective(optimizer->comm, &sum, own, (tn_dtype)own->dtype, own->shape);
    if (sums)
        status = tn__node_is_error(sums) ? tn__error_raise(sums->error) : unpack(optimizer, bucket, count, sums);
    tn__leave(call);
    tn__scope_leave(&scope);
    return status;
}

static tn_status share(tn_optimizer *optimizer, bool *skip)
{
    tn_status status = share_params(optimizer, skip);
    if (*skip || status != TN_OK)
        return status;
    if (optimizer->shard)
        return tn__shard_exchange(optimizer);
    bool travel;
    status = tn__gradients_travel(optimizer, &travel);
    if (status == TN_OK && travel)
        return tn__gradients_sum(optimizer);
    tn__look_for_gradients(optimizer);
    int bucket = 0;
    for (size_t i = 0; i < optimizer->tracked_count && status == TN_OK; i++) {
        int count = optimizer->work[i].bucket ? 0 : choose(optimizer, i, bucket + 1);
        if (count)
            status = exchange(optimizer, ++bucket, count);
    }
    return status;
}

tn_status tn__optimizer_share(tn_optimizer *optimizer, bool *skip)
{
    tn_status status = tn__comm_usable(optimizer->comm, "step");
    if (status == TN_OK && optimizer->shard && optimizer->hook_count)
        status = tn__fail(TN_ERR_UNSUPPORTED, "step",
                          "a gradient hook looks at whole gradients, and no rank has those where updates are shared "
                          "out (.shard): remove it, or use the optimizer's own options");
    if (status != TN_OK)
        return status;
    status = share(optimizer, skip);
    if (status != TN_OK)
        tn__comm_break(optimizer->comm, true); /* the others wait */
    return status;
}

/* What all ranks' noise comes from: of their seeds, which are the same again in a run that goes on. */
static tn_status share_noise(tn_optimizer *optimizer)
{
    uint64_t own = tn_default_generator()->key;
    const tn__transfer most = {.kind = TN__ALL_REDUCE,
                               .op = TN_COMM_MAX,
                               .dtype = TN_UINT64,
                               .itemsize = sizeof own,
                               .count = 1,
                               .from = &own,
                               .to = &optimizer->noise_key};
    return tn__comm_tell(optimizer->comm, &most, "optimizer_distribute", "the seed of noise");
}

static tn_status set_shard(tn_optimizer *optimizer, tn_comm *comm, int shard)
{
    tn_status status = TN_OK;
    if (shard < 0 || shard > TN__SHARD_MOST)
        return tn__fail(TN_ERR_VALUE, "optimizer_distribute",
                        ".shard = %d: expected 0; 1 to share out states and updates; 2 and 3 for gradients and "
                        "parameters of layers that are marked (tn_layer_shard), too",
                        shard);
    if (optimizer->shard)
        status = tn__shard_end(optimizer);
    if (status != TN_OK)
        return status;
    optimizer->comm = comm->place.size > 1 ? comm : NULL;
    return optimizer->comm && shard ? tn__shard_begin(optimizer, shard) : TN_OK;
}

tn_status tn_optimizer_distribute_with(tn_optimizer *optimizer, tn_comm *comm, const tn_distribute_opts *opts)
{
    TN__NO_PLACE();
    tn_status status = tn__optimizer_raise(optimizer);
    if (status == TN_OK)
        status = tn__comm_of_processes(comm, "optimizer_distribute");
    if (status == TN_OK && opts && opts->bucket < 0)
        status = tn__fail(TN_ERR_VALUE, "optimizer_distribute", ".bucket = %lld: expected a number of bytes, or 0",
                          (long long)opts->bucket);
    if (status == TN_OK)
        status = tn__optimizer_sync(optimizer);
    if (status != TN_OK)
        return status;
    bool changed = false;
    tn__no_grad_depth++;
    optimizer->bucket = opts ? opts->bucket : 0;
    status = set_shard(optimizer, comm, opts ? opts->shard : 0);
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        optimizer->tracked[i].shared = false;
    if (status == TN_OK && optimizer->comm)
        status = share_params(optimizer, &changed);
    if (status == TN_OK && optimizer->comm)
        status = share_noise(optimizer);
    if (status == TN_OK && optimizer->shard)
        status = tn__shard_cut_params(optimizer);
    tn__no_grad_depth--;
    return status;
}
