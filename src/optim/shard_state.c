/* SPDX-License-Identifier: MIT */
/* States of updates that are shared out: each rank's part, brought together where they are wanted whole. */
#include "optim/shard.h"

#include <tanso/array.h>

#include "array/build_parts.h"
#include "engine/engine.h"

const tn__shape *tn__shard_state_shape(const tn_optimizer *optimizer, const tn__tracked *tracked, int which)
{
    const tn__node *p = tn__array_node(tracked->param);
    tn_shape shape = {.ndim = 1, .dim = {tracked->shard.size}};
    if (!tracked->shard.bucket || optimizer->shard->whole)
        shape = tn__state_shape(optimizer, p->shape, which);
    return tn__shape_make("step", shape, tn__update_dtype(p));
}

tn__node *tn__shard_copy_of(tn__node *value, const tn__shape *shape)
{
    if (tn__node_is_error(value) || tn__evaluate(1, &value) != TN_OK)
        return tn__node_is_error(value) ? value : tn__failed();
    size_t bytes = (size_t)shape->size * tn_dtype_size((tn_dtype)value->dtype);
    TN__FREED void *host = tn__alloc(bytes + 1);
    if (!host) {
        tn__fail_memory("step", bytes);
        return tn__failed();
    }
    return tn__read(value, host) == TN_OK ? tn__value_from_host(host, (tn_dtype)value->dtype, shape, value->device)
                                          : tn__failed();
}

/* Keeps a node's value in the place of an array. */
static tn_status keep(tn_array **array, tn__node *node)
{
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    tn_status status = tn__evaluate(1, &node);
    tn_array *new = status == TN_OK ? tn__array_own_new(node) : NULL;
    if (status == TN_OK && tn__handle_of(new)->is_static)
        return TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    tn__array_free_kept(*array);
    *array = new;
    return TN_OK;
}

tn_status tn__shard_take(tn_optimizer *optimizer, tn__tracked *tracked, int which, tn__node *state)
{
    tn_array **array = &tracked->state[which];
    const tn__shape *own = tn__shard_state_shape(optimizer, tracked, which);
    tn_status status = own ? TN_OK : tn__error_status(tn__error_last());
    bool here = tracked->shard.size > 0 || !tracked->shard.bucket;
    if (status == TN_OK && here && !optimizer->shard->whole && tracked->shard.bucket && state->shape != own) {
        tn__node *flat = tn__reshape(state, 1, &state->shape->size);
        state = tn__shard_copy_of(tn__part_of(flat, tracked->shard.begin, own), own);
    }
    if (status == TN_OK && here) {
        status = keep(array, state);
    } else if (status == TN_OK) {
        tn__array_free_kept(*array);
        *array = NULL;
    }
    tracked->shard.made |= status == TN_OK ? 1u << which : 0;
    tn__shard_forget(optimizer);
    return status;
}

/* A rank's part of a state, for all. */
static tn__node *from_rank(tn_optimizer *optimizer, const tn__tracked *tracked, int which, int rank, int64_t size)
{
    const tn__node *p = tn__array_node(tracked->param);
    const tn__collective_call call = {.kind = TN__BROADCAST, .peer = rank};
    tn_dtype dtype = tn__update_dtype(p);
    tn_shape shape = {.ndim = 1, .dim = {size}};
    if (optimizer->shard->whole)
        shape = tn__state_shape(optimizer, p->shape, which);
    const tn__shape *all = tn__shape_make("step", shape, dtype);
    const tn__shape *none = tn__shape_intern(1, (int64_t[]){0});
    if (!all || !none)
        return tn__failed();
    bool own = rank == optimizer->comm->place.rank;
    if (own && !tracked->state[which]) {
        tn__fail(TN_ERR_STATE, "step", "the state %s is missing on rank %d", tracked->state_name[which], rank);
        return tn__failed();
    }
    tn__node *part = own ? tn__array_node(tracked->state[which]) : tn__const(0, dtype, none, p->device);
    return tn__collective(optimizer->comm, &call, part, dtype, all);
}

/* A state as a whole, on all ranks. */
static tn__node *whole_of(tn_optimizer *optimizer, const tn__tracked *tracked, int which)
{
    const tn__node *p = tn__array_node(tracked->param);
    int ranks = optimizer->comm->place.size, count = 0;
    TN__FREED const tn_array **part = tn__alloc((size_t)ranks * sizeof *part);
    if (!part) {
        tn__fail_memory("step", (size_t)ranks * sizeof *part);
        return tn__failed();
    }
    for (int r = 0; r < ranks; r++) {
        int64_t begin, size;
        tn__shard_piece(optimizer, tracked, r, &begin, &size);
        if (size == 0)
            continue;
        tn__call call = tn__enter();
        part[count++] = tn__leave_array(call, from_rank(optimizer, tracked, which, r, size));
    }
    tn_array *all = count == 1 ? (tn_array *)part[0] : tn_concatenate(count, part, 0);
    const tn__shape *shape =
        tn__shape_make("step", tn__state_shape(optimizer, p->shape, which), tn__update_dtype(p));
    return shape ? tn__reshape_like(tn__node_of(all, "step"), shape) : tn__failed();
}

/* Which states there are of each parameter on any rank: one that has no part of a state may not know. */
static tn_status ask_what_is_made(tn_optimizer *optimizer)
{
    size_t count = optimizer->tracked_count * TN__MAX_STATE;
    TN__FREED uint8_t *made = tn__calloc(2 * count + 1, 1);
    if (!made)
        return tn__fail_memory("step", 2 * count + 1);
    for (size_t k = 0; k < count; k++)
        made[k] = optimizer->tracked[k / TN__MAX_STATE].shard.made >> k % TN__MAX_STATE & 1;
    const tn__transfer most = {.kind = TN__ALL_REDUCE,
                               .op = TN_COMM_MAX,
                               .dtype = TN_UINT8,
                               .itemsize = 1,
                               .count = (int64_t)count,
                               .from = made,
                               .to = made + count};
    tn_status status = count ? tn__comm_tell(optimizer->comm, &most, "step", "a question for states") : TN_OK;
    for (size_t k = 0; k < count && status == TN_OK; k++)
        optimizer->tracked[k / TN__MAX_STATE].shard.made |= (unsigned)made[count + k] << k % TN__MAX_STATE;
    return status;
}

tn_status tn__shard_bring_together(tn_optimizer *optimizer, bool beside, bool wanted)
{
    tn_status status = ask_what_is_made(optimizer);
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        tn__tracked *t = &optimizer->tracked[i];
        for (int s = 0; s < optimizer->states && status == TN_OK; s++) {
            if (!(t->shard.made >> s & 1) || !t->shard.bucket)
                continue;
            tn__scope_guard scope = tn__scope_enter();
            tn__call call = tn__enter();
            tn__node *whole = whole_of(optimizer, t, s);
            if (wanted && beside && !tn__node_is_error(whole))
                whole = tn__to(whole, tn__device_get(tn_cpu()));
            status = wanted ? keep(beside ? &t->shard.whole[s] : &t->state[s], whole)
                     : tn__node_is_error(whole) ? tn__error_raise(whole->error)
                                                : TN_OK;
            tn__leave(call);
            tn__scope_leave(&scope);
        }
    }
    return status;
}

void tn__shard_forget(tn_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->tracked_count && optimizer->shard->gathered; i++)
        for (int s = 0; s < optimizer->states; s++) {
            tn__array_free_kept(optimizer->tracked[i].shard.whole[s]);
            optimizer->tracked[i].shard.whole[s] = NULL;
        }
    optimizer->shard->gathered = false;
}

tn_status tn__shard_cut_states(tn_optimizer *optimizer)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        for (int s = 0; s < optimizer->states && status == TN_OK; s++) {
            tn__tracked *t = &optimizer->tracked[i];
            if (!t->state[s])
                continue;
            tn__call call = tn__enter();
            status = tn__shard_take(optimizer, t, s, tn__array_node(t->state[s]));
            tn__leave(call);
        }
    return status;
}

bool tn__optimizer_has_all(const tn_optimizer *optimizer)
{
    return !optimizer->shard || optimizer->shard->gathered;
}

tn_status tn__optimizer_is_whole(const tn_optimizer *optimizer, const char *operation)
{
    if (tn__optimizer_has_all(optimizer))
        return TN_OK;
    return tn__fail(TN_ERR_STATE, operation,
                    "the optimizer's states are shared out between %d ranks: have all of them call "
                    "tn_optimizer_gather first, then rank 0 save",
                    optimizer->comm->place.size);
}

tn_status tn_optimizer_gather(tn_optimizer *optimizer)
{
    TN__NO_PLACE();
    tn_status status = tn__optimizer_raise(optimizer);
    if (status != TN_OK || !optimizer->shard)
        return status;
    status = tn__comm_usable(optimizer->comm, "optimizer_gather");
    if (status == TN_OK)
        status = tn__optimizer_sync(optimizer);
    if (status != TN_OK)
        return status;
    bool root = optimizer->comm->place.rank == 0;
    tn__no_grad_depth++;
    tn__shard_forget(optimizer);
    optimizer->shard->gathered = root; /* so that what came so far is let go on failure */
    status = tn__shard_bring_together(optimizer, true, root);
    if (status == TN_OK)
        status = tn__shard_params_together(optimizer, 0, root);
    if (status != TN_OK) {
        tn__shard_forget(optimizer);
        tn__comm_break(optimizer->comm, true); /* the others wait */
    }
    tn__no_grad_depth--;
    return status;
}
