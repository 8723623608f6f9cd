/* SPDX-License-Identifier: MIT */
/*
 * A step whose updates are shared out. Gradients lie in vectors as shard.c has laid them out, are evaluated as a step
 * is, with the loss, and reduced by a scatter, so that each rank has the sums for its own elements alone; it updates
 * those, and new parameters are gathered from all ranks: windows of the vectors that they come in. No rank has anything
 * new before all have: what fails before that leaves parameters as they were.
 */
#include "optim/shard.h"

#include <string.h>
#include <tanso/array.h>

#include "autograd/backward.h"
#include "engine/engine.h"

static tn_array *handle(tn__node *node) { return tn__leave_array(tn__enter(), node); }

static tn__node *zeros(const tn__shard_bucket *b, int64_t size)
{
    const tn__shape *shape = tn__shape_intern(1, &size);
    return shape ? tn__const(0, b->dtype, shape, b->device) : tn__failed();
}

/* ---- vectors of pieces ---- */

/* A vector that is put together: pieces one behind another, with zeros where there are none. */
typedef struct pieces {
    const tn__shard_bucket *bucket;
    const tn_array **part;
    int count;
    int64_t filled;
} pieces;

static void add_piece(pieces *v, tn__node *node, int64_t at, int64_t size)
{
    tn__call call = tn__enter();
    if (at > v->filled)
        v->part[v->count++] = handle(zeros(v->bucket, at - v->filled));
    if (node)
        v->part[v->count++] = handle(tn__reshape(node, 1, &size));
    v->filled = at + size;
    tn__leave(call);
}

tn__node *tn__shard_put_together(tn_optimizer *optimizer, const tn__shard_bucket *b, int64_t size,
                                 tn__shard_piece_fn *piece)
{
    TN__FREED const tn_array **part = tn__alloc((2 * b->count + 1) * sizeof *part);
    if (!part) {
        tn__fail_memory("step", (2 * b->count + 1) * sizeof *part);
        return tn__failed();
    }
    pieces v = {.bucket = b, .part = part};
    for (size_t k = 0; k < b->count; k++) {
        int64_t at, elements;
        tn__node *node = piece(optimizer, optimizer->shard->order[b->first + k], &at, &elements);
        if (node && elements)
            add_piece(&v, node, at, elements);
    }
    add_piece(&v, NULL, size, 0);
    return tn__node_of(v.count == 1 ? part[0] : tn_concatenate(v.count, part, 0), "step");
}

tn_status tn__shard_hold(tn_array **array, tn__node *node)
{
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    tn_array *new = tn__array_own_new(node);
    if (tn__handle_of(new)->is_static)
        return TN_ERR_MEMORY;
    *array = new;
    return TN_OK;
}

/* ---- gradients ---- */

static tn__node *gradient_piece(tn_optimizer *optimizer, size_t i, int64_t *at, int64_t *size)
{
    *at = optimizer->tracked[i].shard.place;
    *size = tn__array_node(optimizer->tracked[i].param)->shape->size;
    return optimizer->work[i].gradient;
}

/* Which parameters have a gradient on some rank, here or sent already. */
static tn_status ask_who_has(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    size_t count = optimizer->tracked_count;
    memset(s->some, 0, 2 * count);
    for (size_t i = 0; i < count; i++) {
        s->has[i] = optimizer->work[i].gradient && optimizer->tracked[i].shard.bucket;
        s->has[count + i] = optimizer->tracked[i].shard.reached;
    }
    const tn__transfer most = {.kind = TN__ALL_REDUCE,
                               .op = TN_COMM_MAX,
                               .dtype = TN_UINT8,
                               .itemsize = 1,
                               .count = 2 * (int64_t)count,
                               .from = s->has,
                               .to = s->some};
    return tn__comm_tell(optimizer->comm, &most, "step", "a question for gradients");
}

tn_status tn__shard_scatter(tn_optimizer *optimizer, tn__shard_bucket *b, tn__node *own)
{
    const tn__collective_call sum = {.kind = TN__REDUCE_SCATTER};
    const tn__shape *share = tn__shape_intern(1, &b->share);
    tn__node *rows = tn__reshape(own, 2, (int64_t[]){optimizer->comm->place.size, b->share});
    if (tn__node_is_error(rows) || !share)
        return tn__error_status(tn__error_last());
    tn__node *sums = tn__collective(optimizer->comm, &sum, rows, b->dtype, share);
    if (b->sums && !tn__node_is_error(sums)) { /* of a backward before */
        sums = tn__binary(TN__OP_ADD, tn__array_node(b->sums), sums);
        tn_status status = tn__evaluate(1, &sums);
        if (status != TN_OK)
            return status;
    }
    tn_array *old = b->sums;
    tn_status status = tn__shard_hold(&b->sums, sums);
    if (status == TN_OK)
        tn__array_free_kept(old);
    return status;
}

/* Gradients of a bucket that are still to be sent: all, where no marked layer has done it. */
static bool is_to_send(const tn_optimizer *optimizer, const tn__shard_bucket *b)
{
    const tn__shard *s = optimizer->shard;
    bool any = !b->layer;
    for (size_t k = 0; k < b->count; k++)
        any |= s->some[s->order[b->first + k]];
    return any;
}

static void let_gradients_go(tn_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        tn__var *var = tn__handle_of(optimizer->tracked[i].param)->var;
        if (var && optimizer->tracked[i].shard.bucket)
            tn__var_set_grad(var, NULL);
    }
}

/* All vectors by one plan, in which gradients live no longer than they are needed; each is let go when it is sent. */
static tn_status exchange(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    TN__FREED tn_array **own = tn__calloc(s->bucket_count + 1, sizeof *own);
    if (!own)
        return tn__fail_memory("step", s->bucket_count * sizeof *own);
    tn_status status = TN_OK;
    int count = 0;
    for (size_t k = 0; k < s->bucket_count; k++) {
        const tn__shard_bucket *b = &s->bucket[k];
        if (!is_to_send(optimizer, b))
            continue;
        tn__call call = tn__enter();
        own[k] = tn__leave_array(call, tn__shard_put_together(optimizer, b, b->share * optimizer->comm->place.size,
                                                    gradient_piece));
        optimizer->roots[count++] = tn__array_node(own[k]);
        if (tn_is_error(own[k]) && status == TN_OK)
            status = tn__error_raise(tn__array_node(own[k])->error);
    }
    let_gradients_go(optimizer);
    if (status == TN_OK)
        status = tn__evaluate_step(count, optimizer->roots);
    for (size_t k = 0; k < s->bucket_count && status == TN_OK; k++) {
        if (!own[k])
            continue;
        tn__call call = tn__enter();
        status = tn__shard_scatter(optimizer, &s->bucket[k], tn__array_node(own[k]));
        tn__leave(call);
        tn_free(own[k]);
    }
    return status;
}

tn_status tn__shard_exchange(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    s->open = true;
    tn__scope_guard scope = tn__scope_enter();
    tn_status status = tn__shard_settle(optimizer);
    if (status == TN_OK)
        status = tn__shard_cut_params(optimizer);
    tn__look_for_gradients(optimizer);
    if (status == TN_OK)
        status = ask_who_has(optimizer);
    s->open = status != TN_OK || (optimizer->tracked_count && memchr(s->some, 1, 2 * optimizer->tracked_count));
    if (status == TN_OK && s->open) {
        tn__shard_forget(optimizer);
        status = exchange(optimizer);
    }
    tn__scope_leave(&scope);
    return status;
}

/* ---- the update ---- */

tn__node *tn__shard_own_part(const tn_optimizer *optimizer, const tn__tracked *t)
{
    tn__node *p = tn__array_node(t->param);
    const tn__shape *shape = optimizer->shard->whole ? p->shape : tn__shape_intern(1, &t->shard.size);
    if (shape && p->flags & TN__NODE_AWAY) {
        const tn__shard_bucket *b = &optimizer->shard->bucket[t->shard.bucket - 1];
        return tn__part_of(tn__array_node(b->own), tn__shard_in_share(optimizer, t), shape);
    }
    if (optimizer->shard->whole || !shape)
        return shape ? p : tn__failed();
    tn__node *flat = tn__reshape(p, 1, &p->shape->size);
    return tn__node_is_error(flat) ? flat : tn__part_of(flat, t->shard.begin, shape);
}

int64_t tn__shard_in_share(const tn_optimizer *optimizer, const tn__tracked *t)
{
    const tn__shard_bucket *b = &optimizer->shard->bucket[t->shard.bucket - 1];
    return t->shard.place + t->shard.begin - optimizer->comm->place.rank * b->share;
}

int tn__shard_look(tn_optimizer *optimizer)
{
    const uint8_t *some = optimizer->shard->some;
    int updated = 0;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn__tracked *t = &optimizer->tracked[i];
        tn__work *w = &optimizer->work[i];
        *w = (tn__work){.updated = some[i] || some[optimizer->tracked_count + i]};
        updated += w->updated;
        if (!w->updated || !t->shard.size)
            continue;
        tn__node *sums = tn__array_node(optimizer->shard->bucket[t->shard.bucket - 1].sums);
        w->param = tn__shard_own_part(optimizer, t);
        if (!tn__node_is_error(w->param))
            sums = tn__part_of(sums, tn__shard_in_share(optimizer, t), w->param->shape);
        w->gradient = tn__node_is_error(sums) ? sums : tn__with(TN__OP_DIVIDE, sums, optimizer->comm->place.size);
    }
    return updated;
}

tn__node *tn__shard_sum(tn_optimizer *optimizer, tn__node *number)
{
    const tn__collective_call sum = {.kind = TN__ALL_REDUCE};
    tn__device *device = tn__array_node(optimizer->tracked[0].param)->device;
    if (number && tn__node_is_error(number))
        return number;
    number = number ? tn__cast(number, TN_FLOAT64) : tn__const(0, TN_FLOAT64, tn__shape_scalar(), device);
    return tn__node_is_error(number)
               ? number
               : tn__collective(optimizer->comm, &sum, number, TN_FLOAT64, tn__shape_scalar());
}

static tn__node *value_piece(tn_optimizer *optimizer, size_t i, int64_t *at, int64_t *size)
{
    const tn__tracked *t = &optimizer->tracked[i];
    const tn__work *w = &optimizer->work[i];
    *size = t->shard.size;
    *at = *size ? tn__shard_in_share(optimizer, t) : 0;
    return !*size ? NULL : w->gradient ? w->value : tn__shard_own_part(optimizer, t);
}

int tn__shard_put(tn_optimizer *optimizer, int count)
{
    tn__shard *s = optimizer->shard;
    tn__scope_guard scope = tn__scope_enter();
    tn_status status = TN_OK;
    for (size_t k = 0; k < s->bucket_count && status == TN_OK; k++) {
        tn__shard_bucket *b = &s->bucket[k];
        status = tn__shard_hold(&b->news, tn__shard_put_together(optimizer, b, b->share, value_piece));
        if (status == TN_OK)
            optimizer->roots[count++] = tn__array_node(b->news);
    }
    tn__scope_leave(&scope);
    return status == TN_OK ? count : -1;
}

/* ---- new parameters ---- */

static tn__node *gather(tn_optimizer *optimizer, tn__shard_bucket *b)
{
    const tn__collective_call all = {.kind = TN__ALL_GATHER};
    int64_t size = optimizer->comm->place.size, elements = size * b->share;
    const tn__shape *rows = tn__shape_intern(2, (int64_t[]){size, b->share});
    tn__array_free_kept(b->sums);
    b->sums = NULL;
    tn__node *vector = rows ? tn__collective(optimizer->comm, &all, tn__array_node(b->news), b->dtype, rows)
                            : tn__failed();
    tn__array_free_kept(b->news);
    b->news = NULL;
    return tn__node_is_error(vector) ? vector : tn__reshape(vector, 1, &elements);
}

tn_status tn__shard_spread(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    tn__call call = tn__enter();
    tn_status status = TN_OK;
    int count = 0;
    for (size_t k = 0; k < s->bucket_count && status == TN_OK; k++) {
        const tn__shard_bucket *b = &s->bucket[k];
        if (b->own)
            continue;
        tn__node *vector = gather(optimizer, &s->bucket[k]);
        for (size_t m = 0; m < b->count && status == TN_OK; m++) {
            size_t i = s->order[b->first + m];
            const tn__tracked *t = &optimizer->tracked[i];
            if (!optimizer->work[i].updated)
                continue;
            tn__node *value = tn__node_is_error(vector)
                                  ? vector
                                  : tn__part_of(vector, t->shard.place, tn__array_node(t->param)->shape);
            optimizer->work[i].value = optimizer->roots[count++] = value;
        }
        status = tn__node_is_error(vector) ? tn__error_raise(vector->error) : TN_OK;
    }
    if (status == TN_OK)
        status = tn__evaluate(count, optimizer->roots);
    for (size_t k = 0; k < s->bucket_count && status == TN_OK; k++)
        if (s->bucket[k].own) {
            tn__array_free_kept(s->bucket[k].own);
            s->bucket[k].own = s->bucket[k].news;
            s->bucket[k].news = NULL;
        }
    for (size_t i = 0; i < optimizer->tracked_count && status == TN_OK; i++)
        if (optimizer->work[i].updated && !s->bucket[optimizer->tracked[i].shard.bucket - 1].own)
            tn__param_point(optimizer->tracked[i].param, optimizer->work[i].value);
    tn__leave(call);
    s->open = status != TN_OK;
    return status;
}

void tn__shard_close(tn_optimizer *optimizer, tn_status status)
{
    tn__shard *s = optimizer->shard;
    for (size_t k = 0; k < s->bucket_count; k++) {
        tn__array_free_kept(s->bucket[k].sums);
        tn__array_free_kept(s->bucket[k].news);
        s->bucket[k].sums = s->bucket[k].news = NULL;
    }
    tn__shard_forget_gradients(optimizer);
    if (status != TN_OK && s->open)
        tn__comm_break(optimizer->comm, true); /* the others wait */
    s->open = false;
}
