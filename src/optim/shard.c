/* SPDX-License-Identifier: MIT */
/*
 * Which rank updates what. Parameters of one dtype and device lie one behind another in vectors, each of which is cut
 * into as many equal shares as there are ranks; of a rule that looks at a parameter as a whole each parameter lies in
 * one share, else a cut may go through it. All follows from the parameters alone, so it is the same on all ranks, and
 * states are whole where that matters: in files, and while parameters that came change who has what.
 */
#include "optim/shard.h"

#define MOST ((int64_t)1 << 24) /* elements of a vector, but for one parameter that is larger */

/* ---- laying out ---- */

/* Whether a parameter may have gradients to share. */
static bool joins(const tn__node *p) { return p->flags & TN__NODE_LEAF_VAR && p->shape->size > 0; }

static bool any_whole(const tn_optimizer *optimizer)
{
    bool whole = optimizer->rule->whole || optimizer->set.lars;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        whole |= optimizer->tracked[i].own_given & TN__FIELD(lars) && optimizer->tracked[i].own.lars;
    return whole;
}

static int64_t size_of(const tn_optimizer *optimizer, size_t i)
{
    return tn__array_node(optimizer->tracked[i].param)->shape->size;
}

static bool is_stale(const tn_optimizer *optimizer)
{
    const tn__shard *s = optimizer->shard;
    bool stale = s->seen != optimizer->tracked_count || s->whole != any_whole(optimizer);
    for (size_t i = 0; i < optimizer->tracked_count && !stale; i++) {
        const tn__node *p = tn__array_node(optimizer->tracked[i].param);
        const tn__shard_place *place = &optimizer->tracked[i].shard;
        const tn__shard_bucket *b = place->bucket ? &s->bucket[place->bucket - 1] : NULL;
        stale = joins(p) != (b != NULL) || (b && (b->dtype != (tn_dtype)p->dtype || b->device != p->device ||
                                                  b->layer != place->layer));
    }
    return stale;
}

/* A layer may have moved, on some of the ranks alone: where a vector's parameters still are together, that changes
 * nothing of who has what. */
static void follow_devices(tn_optimizer *optimizer)
{
    const tn__shard *s = optimizer->shard;
    for (size_t k = 0; k < s->bucket_count && s->seen == optimizer->tracked_count; k++)
        s->bucket[k].device = tn__array_node(optimizer->tracked[s->order[s->bucket[k].first]].param)->device;
}

/* Puts the parameters of a bucket in order, by size from the largest or by place. */
static void sort(tn_optimizer *optimizer, const tn__shard_bucket *b, bool by_size)
{
    size_t *order = optimizer->shard->order + b->first;
    for (size_t k = 1; k < b->count; k++) {
        size_t at = k, one = order[k];
        for (; at > 0; at--) {
            size_t other = order[at - 1];
            bool before = by_size ? size_of(optimizer, one) > size_of(optimizer, other)
                                  : optimizer->tracked[one].shard.place < optimizer->tracked[other].shard.place;
            if (!before)
                break;
            order[at] = other;
        }
        order[at] = one;
    }
}

/* Whole parameters, from the largest, to whom has least so far. */
static tn_status deal(tn_optimizer *optimizer, tn__shard_bucket *b)
{
    int size = optimizer->comm->place.size;
    TN__FREED int64_t *load = tn__calloc((size_t)size, sizeof *load);
    if (!load)
        return tn__fail_memory("step", (size_t)size * sizeof *load);
    sort(optimizer, b, true);
    b->share = 0;
    for (size_t k = 0; k < b->count; k++) {
        size_t i = optimizer->shard->order[b->first + k];
        tn__shard_place *place = &optimizer->tracked[i].shard;
        int rank = 0;
        for (int r = 1; r < size; r++)
            rank = load[r] < load[rank] ? r : rank;
        place->begin = rank;
        place->place = load[rank];
        load[rank] += size_of(optimizer, i);
        b->share = load[rank] > b->share ? load[rank] : b->share;
    }
    for (size_t k = 0; k < b->count; k++) {
        tn__shard_place *place = &optimizer->tracked[optimizer->shard->order[b->first + k]].shard;
        place->place += place->begin * b->share;
    }
    sort(optimizer, b, false);
    return TN_OK;
}

/* A bucket of `first` and those behind it that are like it. */
static tn_status add_bucket(tn_optimizer *optimizer, size_t first)
{
    tn__shard *s = optimizer->shard;
    const tn__node *like = tn__array_node(optimizer->tracked[first].param);
    if (!tn__grow((void **)&s->bucket, &s->bucket_capacity, s->bucket_count + 1, sizeof *s->bucket))
        return tn__fail_memory("step", sizeof *s->bucket);
    tn__shard_bucket *b = &s->bucket[s->bucket_count++];
    *b = (tn__shard_bucket){.dtype = (tn_dtype)like->dtype,
                            .device = like->device,
                            .first = s->order_count,
                            .layer = optimizer->tracked[first].shard.layer};
    int64_t elements = 0;
    for (size_t i = first; i < optimizer->tracked_count; i++) {
        const tn__node *p = tn__array_node(optimizer->tracked[i].param);
        tn__shard_place *place = &optimizer->tracked[i].shard;
        if (place->bucket || !joins(p) || p->dtype != like->dtype || p->device != like->device ||
            place->layer != b->layer ||
            (b->count && elements + p->shape->size > MOST))
            continue;
        place->bucket = (int)s->bucket_count;
        place->place = elements;
        elements += p->shape->size;
        s->order[s->order_count++] = i;
        b->count++;
    }
    int size = optimizer->comm->place.size;
    b->share = (elements + size - 1) / size;
    return s->whole ? deal(optimizer, b) : TN_OK;
}

void tn__shard_piece(const tn_optimizer *optimizer, const tn__tracked *tracked, int rank, int64_t *begin,
                     int64_t *size)
{
    const tn__shard_place *place = &tracked->shard;
    *begin = *size = 0;
    if (!place->bucket)
        return;
    int64_t share = optimizer->shard->bucket[place->bucket - 1].share, low = rank * share - place->place;
    int64_t high = low + share, all = tn__array_node(tracked->param)->shape->size;
    *begin = low > 0 ? low : 0;
    *size = (high < all ? high : all) - *begin;
    if (*size <= 0)
        *begin = *size = 0;
}

static tn_status lay_out(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    size_t count = optimizer->tracked_count;
    tn_status status = TN_OK;
    if (!tn__grow((void **)&s->order, &s->order_capacity, count, sizeof *s->order) ||
        !tn__grow((void **)&s->has, &s->has_capacity, 2 * count, 1) ||
        !tn__grow((void **)&s->some, &s->some_capacity, 2 * count, 1))
        return tn__fail_memory("step", count * sizeof *s->order);
    tn__shard_drop(optimizer);
    s->bucket_count = s->order_count = 0;
    s->whole = any_whole(optimizer);
    for (size_t i = 0; i < count; i++)
        optimizer->tracked[i].shard.bucket = 0;
    for (size_t i = 0; i < count && status == TN_OK; i++)
        if (!optimizer->tracked[i].shard.bucket && joins(tn__array_node(optimizer->tracked[i].param)))
            status = add_bucket(optimizer, i);
    for (size_t i = 0; i < count; i++) {
        tn__tracked *t = &optimizer->tracked[i];
        tn__shard_piece(optimizer, t, optimizer->comm->place.rank, &t->shard.begin, &t->shard.size);
    }
    s->seen = s->ordered = status == TN_OK ? count : SIZE_MAX;
    return status;
}

void tn__shard_drop(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    for (size_t k = 0; k < s->bucket_count; k++) {
        tn_array **held[] = {&s->bucket[k].own, &s->bucket[k].sums, &s->bucket[k].news};
        for (int i = 0; i < 3; i++) {
            tn__array_free_kept(*held[i]);
            *held[i] = NULL;
        }
    }
}

/* ---- from its begin to its end ---- */

tn_status tn__shard_settle(tn_optimizer *optimizer)
{
    follow_devices(optimizer);
    tn_status status = tn__shard_find_layers(optimizer);
    if (status != TN_OK || !is_stale(optimizer))
        return status;
    bool known = optimizer->shard->seen != SIZE_MAX;
    status = known ? tn__shard_bring_together(optimizer, false, true) : TN_OK;
    if (status == TN_OK && known)
        status = tn__shard_params_together(optimizer, 0, true);
    if (status == TN_OK && known)
        status = tn__shard_gradients_back(optimizer);
    if (status == TN_OK)
        status = lay_out(optimizer);
    return status == TN_OK ? tn__shard_cut_states(optimizer) : status;
}

tn_status tn__shard_begin(tn_optimizer *optimizer, int stage)
{
    optimizer->shard = tn__calloc(1, sizeof *optimizer->shard);
    if (!optimizer->shard)
        return tn__fail_memory("optimizer_distribute", sizeof *optimizer->shard);
    optimizer->shard->seen = SIZE_MAX;
    optimizer->shard->looked = UINT64_MAX;
    optimizer->shard->stage = stage;
    tn_status status = tn__shard_settle(optimizer);
    if (status != TN_OK)
        tn__shard_free(optimizer);
    return status;
}

tn_status tn__shard_end(tn_optimizer *optimizer)
{
    tn_status status = optimizer->shard ? tn__shard_bring_together(optimizer, false, true) : TN_OK;
    if (status == TN_OK && optimizer->shard)
        status = tn__shard_params_together(optimizer, 0, true);
    if (status == TN_OK)
        tn__shard_free(optimizer);
    return status;
}

void tn__shard_free(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    if (!s)
        return;
    tn__shard_forget(optimizer);
    tn__shard_drop(optimizer);
    tn__shard_leave_layers(optimizer);
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        optimizer->tracked[i].shard = (tn__shard_place){0};
    tn__free(s->bucket);
    tn__free(s->order);
    tn__free(s->has);
    tn__free(s->some);
    tn__free(s);
    optimizer->shard = NULL;
}
