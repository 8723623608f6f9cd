/* SPDX-License-Identifier: MIT */
/*
 * Marked layers (tn_layer_shard), whose gradients, and parameters too, ranks have in parts: ZeRO's stages 2 and 3.
 * Which layers these are, and their parameters, cut and brought together; shard_forward.c runs them.
 *
 * Parameters that are put away are nodes of their shape without a value, TN__NODE_AWAY. One that has a value was
 * written meanwhile, by a load for instance: then this rank's part is cut anew.
 */
#include <math.h>
#include <pthread.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>

#include "array/build_parts.h"
#include "autograd/backward.h"
#include "engine/engine.h"
#include "optim/shard.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static tn__shard_layer *living;
static uint64_t numbers;

static bool is_away(const tn__tracked *t) { return tn__array_node(t->param)->flags & TN__NODE_AWAY; }

/* ---- parts of parameters ---- */

/* `order` goes by places of `tracked`, where parameters may have come between others since. */
static void find_order(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    if (s->ordered == optimizer->tracked_count)
        return;
    for (size_t k = 0; k < s->bucket_count; k++) {
        size_t *order = s->order + s->bucket[k].first, count = 0;
        for (size_t i = 0; i < optimizer->tracked_count; i++) {
            const tn__shard_place *place = &optimizer->tracked[i].shard;
            if (place->bucket != (int)k + 1)
                continue;
            size_t at = count++;
            for (; at > 0 && optimizer->tracked[order[at - 1]].shard.place > place->place; at--)
                order[at] = order[at - 1];
            order[at] = i;
        }
    }
    s->ordered = optimizer->tracked_count;
}

static tn__node *present_piece(tn_optimizer *optimizer, size_t i, int64_t *at, int64_t *size)
{
    const tn__tracked *t = &optimizer->tracked[i];
    *size = t->shard.size;
    *at = *size ? tn__shard_in_share(optimizer, t) : 0;
    return *size ? tn__shard_own_part(optimizer, t) : NULL;
}

static void put_away(tn_optimizer *optimizer, const tn__shard_bucket *b)
{
    for (size_t k = 0; k < b->count; k++) {
        const tn__tracked *t = &optimizer->tracked[optimizer->shard->order[b->first + k]];
        const tn__node *p = tn__array_node(t->param);
        tn_dtype dtype = (tn_dtype)p->dtype;
        tn__node *away = tn__node_new(TN__OP_CONST, dtype, p->shape, p->device, 0, NULL,
                                      (tn__attr){.scalar = tn__scalar_from_double(NAN, dtype)});
        if (tn__node_is_error(away)) /* stays, and is put away next time */
            continue;
        away->flags |= TN__NODE_AWAY;
        tn__param_point(t->param, away);
    }
}

static tn_status cut(tn_optimizer *optimizer, tn__shard_bucket *b)
{
    const tn__shape *share = tn__shape_intern(1, &b->share);
    tn__node *part = tn__shard_put_together(optimizer, b, b->share, present_piece);
    if (!share || tn__node_is_error(part))
        return share ? tn__error_raise(part->error) : tn__error_status(tn__error_last());
    tn_array *own = NULL;
    tn_status status = tn__shard_hold(&own, tn__shard_copy_of(part, share));
    if (status != TN_OK)
        return status;
    tn__array_free_kept(b->own);
    b->own = own;
    put_away(optimizer, b);
    return TN_OK;
}

tn_status tn__shard_cut_params(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    tn_status status = TN_OK;
    for (size_t k = 0; k < s->bucket_count && s->stage > 2; k++) {
        tn__shard_bucket *b = &s->bucket[k];
        bool all = b->own != NULL;
        find_order(optimizer);
        for (size_t m = 0; m < b->count && all; m++)
            all = is_away(&optimizer->tracked[s->order[b->first + m]]);
        if (all || !b->layer || s->layer[b->layer - 1]->keeper.inside)
            continue;
        tn__scope_guard scope = tn__scope_enter();
        tn__call call = tn__enter();
        status = status == TN_OK ? cut(optimizer, b) : status;
        tn__leave(call);
        tn__scope_leave(&scope);
    }
    return status;
}

/* What ranks have of a bucket, brought together: a window for each parameter, with a value where they are wanted. */
static tn_status windows(tn_optimizer *optimizer, const tn__shard_bucket *b, const tn_array *part, bool wanted,
                         tn__node **window)
{
    const tn__collective_call all = {.kind = TN__ALL_GATHER};
    int64_t size = optimizer->comm->place.size, elements = size * b->share;
    const tn__shape *rows = tn__shape_intern(2, (int64_t[]){size, b->share});
    tn__node *vector = rows ? tn__collective(optimizer->comm, &all, tn__array_node(part), b->dtype, rows)
                            : tn__failed();
    if (tn__node_is_error(vector))
        return tn__error_raise(vector->error);
    if (!wanted)
        return TN_OK;
    vector = tn__reshape(vector, 1, &elements);
    for (size_t k = 0; k < b->count; k++) {
        const tn__tracked *t = &optimizer->tracked[optimizer->shard->order[b->first + k]];
        window[k] = tn__part_of(vector, t->shard.place, tn__array_node(t->param)->shape);
    }
    return tn__evaluate((int)b->count, window);
}

/* Whole parameters in their handles, if they are wanted here. */
static tn_status bring_together(tn_optimizer *optimizer, const tn__shard_bucket *b, bool wanted)
{
    TN__FREED tn__node **window = tn__alloc((b->count + 1) * sizeof *window);
    if (!window)
        return tn__fail_memory("forward", (b->count + 1) * sizeof *window);
    tn_status status = windows(optimizer, b, b->own, wanted, window);
    for (size_t k = 0; k < b->count && status == TN_OK && wanted; k++)
        tn__param_point(optimizer->tracked[optimizer->shard->order[b->first + k]].param, window[k]);
    return status;
}

/* Sums that backward has sent, as gradients of rank 0: as if the other ranks had none. */
static tn_status give_back(tn_optimizer *optimizer, const tn__shard_bucket *b)
{
    bool root = optimizer->comm->place.rank == 0;
    TN__FREED tn__node **window = tn__alloc((b->count + 1) * sizeof *window);
    if (!window)
        return tn__fail_memory("step", (b->count + 1) * sizeof *window);
    tn_status status = windows(optimizer, b, b->sums, root, window);
    for (size_t k = 0; k < b->count && status == TN_OK && root; k++) {
        const tn__tracked *t = &optimizer->tracked[optimizer->shard->order[b->first + k]];
        tn__var *var = t->shard.reached ? tn__array_var(t->param) : NULL;
        tn__node *old = var ? tn__var_grad(var) : NULL;
        window[k] = old ? tn__binary(TN__OP_ADD, old, window[k]) : window[k];
        if (tn__node_is_error(window[k]))
            return tn__error_raise(window[k]->error);
        if (t->shard.reached && !var)
            return tn__fail_memory("step", sizeof *var);
        if (var)
            tn__var_set_grad(var, window[k]);
    }
    return status;
}

tn_status tn__shard_gradients_back(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    tn_status status = TN_OK;
    find_order(optimizer);
    for (size_t k = 0; k < s->bucket_count && status == TN_OK; k++) {
        if (!s->bucket[k].sums)
            continue;
        tn__call call = tn__enter();
        status = give_back(optimizer, &s->bucket[k]);
        tn__leave(call);
    }
    tn__shard_forget_gradients(optimizer);
    return status;
}

tn_status tn__shard_params_together(tn_optimizer *optimizer, int layer, bool wanted)
{
    tn__shard *s = optimizer->shard;
    tn_status status = TN_OK;
    find_order(optimizer);
    for (size_t k = 0; k < s->bucket_count && status == TN_OK; k++) {
        if (!s->bucket[k].own || (layer && s->bucket[k].layer != layer))
            continue;
        tn__call call = tn__enter();
        status = bring_together(optimizer, &s->bucket[k], wanted);
        tn__leave(call);
    }
    return status;
}

void tn__shard_put_away(tn_optimizer *optimizer, int layer)
{
    tn__shard *s = optimizer->shard;
    for (size_t k = 0; k < s->bucket_count; k++)
        if (s->bucket[k].layer == layer && s->bucket[k].own)
            put_away(optimizer, &s->bucket[k]);
}

/* ---- which layers ---- */

static tn_status note_slot(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer, (void)path;
    tn_optimizer *optimizer = user;
    for (size_t i = 0; i < optimizer->tracked_count && !slot->holders; i++) /* what others have, too, is nobody's own */
        if (optimizer->tracked[i].param == slot->value)
            optimizer->tracked[i].shard.layer = (int)optimizer->shard->layer_count;
    return TN_OK;
}

tn__shard_layer *tn__shard_layer_numbered(uint64_t number)
{
    pthread_mutex_lock(&mutex);
    tn__shard_layer *l = living;
    while (l && l->number != number)
        l = l->next;
    pthread_mutex_unlock(&mutex);
    return l;
}

static tn__shard_layer *new_layer(tn_optimizer *optimizer, tn_layer *layer)
{
    tn__shard_layer *l = tn__calloc(1, sizeof *l);
    tn__scope_guard scope = tn__scope_enter();
    tn_array *token = l ? tn_requires_grad(tn_zeros_with((tn_shape){0}, NULL)) : NULL;
    if (token && (tn_eval(token) != TN_OK || !tn_needs_grad(token))) {
        tn__free(l);
        l = NULL;
    }
    if (l) {
        *l = (tn__shard_layer){.keeper = {.owner = l, .flow = tn__shard_forward},
                               .layer = layer,
                               .optimizer = optimizer,
                               .token = tn__array_keep(token)};
        pthread_mutex_lock(&mutex);
        l->number = ++numbers;
        l->next = living;
        living = l;
        pthread_mutex_unlock(&mutex);
    }
    tn__scope_leave(&scope);
    return l;
}

/* The outermost marked layers, in order; those that are known stay. */
static tn_status look(tn_optimizer *optimizer, tn_layer *layer)
{
    tn__shard *s = optimizer->shard;
    tn_status status = TN_OK;
    if (!layer->in_parts) {
        for (size_t i = 0; i < layer->child_count && status == TN_OK; i++)
            status = look(optimizer, layer->children[i].layer);
        return status;
    }
    bool known = layer->keeper && ((tn__shard_layer *)layer->keeper->owner)->optimizer == optimizer;
    if (!tn__grow((void **)&s->layer, &s->layer_capacity, s->layer_count + 1, sizeof *s->layer))
        return tn__fail_memory("step", sizeof *s->layer);
    tn__shard_layer *l = known ? layer->keeper->owner : new_layer(optimizer, layer);
    if (!l)
        return tn__fail_memory("step", sizeof *l);
    layer->keeper = &l->keeper;
    s->layer[s->layer_count++] = l;
    return tn__visit_slots(layer, "", note_slot, optimizer);
}

tn_status tn__shard_find_layers(tn_optimizer *optimizer)
{
    tn__shard *s = optimizer->shard;
    if (s->stage < 2 || s->looked == optimizer->layer->changes)
        return TN_OK;
    s->layer_count = 0;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        optimizer->tracked[i].shard.layer = 0;
    tn_status status = look(optimizer, optimizer->layer);
    s->looked = status == TN_OK ? optimizer->layer->changes : UINT64_MAX;
    return status;
}

void tn__shard_forget_gradients(tn_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        optimizer->tracked[i].shard.reached = false;
    for (size_t k = 0; k < optimizer->shard->layer_count; k++)
        tn_clear_grad(optimizer->shard->layer[k]->token);
}

void tn__shard_leave_layers(tn_optimizer *optimizer)
{
    pthread_mutex_lock(&mutex);
    for (tn__shard_layer **at = &living; *at;) {
        tn__shard_layer *l = *at;
        if (l->optimizer != optimizer) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        if (optimizer->follower.layer && l->layer->keeper == &l->keeper)
            l->layer->keeper = NULL;
        tn__array_free_kept(l->token);
        tn__free(l);
    }
    pthread_mutex_unlock(&mutex);
    tn__free(optimizer->shard->layer);
    optimizer->shard->layer = NULL;
    optimizer->shard->layer_count = optimizer->shard->layer_capacity = 0;
}
