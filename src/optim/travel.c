/* SPDX-License-Identifier: MIT */
/*
 * Gradients of several ranks whose GPUs are connected: each travels as it lies, many by one call, and the means are
 * taken of sums in memory of their own. Only small ones of a dtype are put into a vector, as each array of a call has
 * its price.
 *
 * Where there are many, they go in a few parts, each beside the computation of the next: the last layers' first, which
 * backward comes to first. A part is evaluated with what the rest needs of it, and put on a stream of its own. The last
 * one, with which the loss comes, is the only one that nothing is computed beside.
 *
 * No parameter gets its mean before all parts are on their way: it would be computed with the next part, which had to
 * wait for it, and what is computed next would be put into the gradient's memory, which is still being read.
 *
 * Behind each part's gradients goes, for each, whether this rank has it, as in distribute.c.
 */
#include "optim/travel.h"

#include "array/build_parts.h"
#include "autograd/backward.h"
#include "comm/comm.h"
#include "engine/engine.h"

/* What is usual: so many parts, each of so many bytes at least, as a transfer has its price: beside products it takes
 * their multiprocessors, and a part its own launches. A transformer's block of 28 MB takes 1.9 and 3.4% more on 2 and 4
 * H200s than on one in a single part, 4.7 and 5.5% in four. */
#define PARTS 4
#define LEAST ((int64_t)32 << 20)
#define SMALL ((int64_t)64 << 10) /* bytes: up to there an array's sum takes no longer than an empty one's */

static bool travels(const tn__node *param) { return param->flags & TN__NODE_LEAF_VAR && param->shape->size; }

static int64_t bytes_of(const tn__node *param)
{
    return param->shape->size * (int64_t)tn_dtype_size((tn_dtype)param->dtype);
}

/* Whether all lie on one device, and there is one that is connected to the other ranks', perhaps another one. */
tn_status tn__gradients_travel(tn_optimizer *optimizer, bool *travel)
{
    tn__device *device = NULL;
    bool one = true;
    *travel = false;
    for (size_t i = 0; i < optimizer->tracked_count && one; i++) {
        const tn__node *p = tn__array_node(optimizer->tracked[i].param);
        one = !device || p->device == device;
        device = p->device;
    }
    return device && one ? tn__comm_link(optimizer->comm, device, "step", travel) : TN_OK;
}

tn_status tn__take_mean(tn_array *param, tn__node *mean)
{
    if (tn__node_is_error(mean))
        return tn__error_raise(mean->error);
    tn__var *var = tn__array_var(param);
    if (!var)
        return tn__fail_memory("step", sizeof *var);
    tn__var_set_grad(var, mean);
    return TN_OK;
}

/* Says of each parameter which part its gradient is in; how many parts there are. */
static int divide(tn_optimizer *optimizer)
{
    int64_t all = 0, bytes = 0;
    int part = 1, count = 0;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn__node *p = tn__array_node(optimizer->tracked[i].param);
        all += travels(p) ? bytes_of(p) : 0;
    }
    int64_t usual = all / PARTS > LEAST ? all / PARTS : LEAST, enough = optimizer->bucket ? optimizer->bucket : usual;
    for (size_t i = optimizer->tracked_count; i-- > 0;) {
        const tn__node *p = tn__array_node(optimizer->tracked[i].param);
        if (!travels(p))
            continue;
        optimizer->work[i].bucket = count = part;
        bytes += bytes_of(p);
        if (bytes >= enough) {
            part++;
            bytes = 0;
        }
    }
    return count;
}

/* The part's gradients, zeros for those that this rank lacks, and which they are; how many, or -1 with an error. */
static int list(tn_optimizer *optimizer, int part, tn__node **node, size_t *tracked, bool *lacks)
{
    int count = 0;
    for (size_t i = optimizer->tracked_count; i-- > 0;) {
        if (optimizer->work[i].bucket != part)
            continue;
        tn__node *g = optimizer->work[i].gradient;
        *lacks |= !g;
        tracked[count] = i;
        node[count] = g ? g : tn__const_like(tn__array_node(optimizer->tracked[i].param), 0);
        if (tn__node_is_error(node[count++]))
            return tn__error_raise(node[count - 1]->error), -1;
    }
    return count;
}

/* Of `count` gradients, which there are. */
static tn__node *presence(const tn_optimizer *optimizer, int count, const size_t *tracked, bool lacks,
                          tn__device *device)
{
    const tn__shape *shape = tn__shape_intern(1, (int64_t[]){count});
    TN__FREED float *there = tn__alloc((size_t)count * sizeof *there);
    if (!shape || !there) {
        tn__fail_memory("step", (size_t)count * sizeof *there);
        return tn__failed();
    }
    for (int i = 0; i < count; i++)
        there[i] = optimizer->work[tracked[i]].gradient != NULL;
    return lacks ? tn__value_from_host(there, TN_FLOAT32, shape, device) : tn__const(1, TN_FLOAT32, shape, device);
}

/* To the device that is connected. */
static tn_status move(int count, tn__node **node, tn__device *device)
{
    for (int i = 0; i < count; i++) {
        node[i] = tn__node_is_error(node[i]) ? node[i] : tn__to(node[i], device);
        if (tn__node_is_error(node[i]))
            return tn__error_raise(node[i]->error);
    }
    return TN_OK;
}

/* Where a gradient is among what is sent: an array of its own, or elements of a vector from `begin` on. */
typedef struct place {
    int sent;
    bool alone;
    int64_t begin;
} place;

/* Small ones of a dtype, of which `first` is the first, one behind the other. */
static tn__node *vector_of(int count, tn__node *const *node, int first, int sent, place *places)
{
    int64_t elements = 0;
    for (int i = first; i < count; i++)
        if (node[i]->dtype == node[first]->dtype && bytes_of(node[i]) <= SMALL) {
            places[i] = (place){.sent = sent, .begin = elements};
            elements += node[i]->shape->size;
        }
    const tn__shape *shape = tn__shape_intern(1, &elements);
    tn__node *vector = shape ? tn__const(0, (tn_dtype)node[first]->dtype, shape, node[first]->device) : tn__failed();
    for (int i = first; i < count && !tn__node_is_error(vector); i++)
        if (places[i].sent == sent)
            vector = tn__update_along(vector, tn__reshape(node[i], 1, &node[i]->shape->size), 0, places[i].begin);
    return vector;
}

/* What is sent of `count` gradients; how many arrays that is, or -1 with an error. */
static int pack(int count, tn__node *const *node, place *places, tn__node **sent)
{
    int sends = 0;
    for (int i = 0; i < count; i++)
        places[i] = (place){.sent = -1};
    for (int i = 0; i < count; i++) {
        if (places[i].sent >= 0)
            continue;
        bool alone = bytes_of(node[i]) > SMALL;
        places[i] = (place){.sent = sends, .alone = alone};
        sent[sends] = alone ? node[i] : vector_of(count, node, i, sends, places);
        if (tn__node_is_error(sent[sends++]))
            return tn__error_raise(sent[sends - 1]->error), -1;
    }
    return sends;
}

static tn__node *unpack(const place *p, tn__node *const *sent, const tn__node *gradient)
{
    return p->alone ? sent[p->sent] : tn__part_of(sent[p->sent], p->begin, gradient->shape);
}

/* A part under way: its gradients, and behind them which of them there are; what is sent of these. */
typedef struct parcel {
    tn__node **node, **sent;
    place *places;
    size_t *tracked;
    int count, sends;
} parcel;

static tn_status send(tn_optimizer *optimizer, parcel *p, bool last, bool aside)
{
    tn_status status = move(p->count + 1, p->node, tn__link_device(optimizer->comm));
    if (status != TN_OK)
        return status;
    p->sends = pack(p->count + 1, p->node, p->places, p->sent);
    if (p->sends < 0)
        return tn_error_code();
    status = last ? tn__evaluate_step(p->sends, p->sent) : tn__evaluate_part(p->sends, p->sent);
    return status == TN_OK ? tn__comm_sums(optimizer->comm, p->sends, p->sent, aside, "step") : status;
}

/* How many ranks have each gradient. */
static tn_status read_ranks(const parcel *p, float *ranks)
{
    tn__node *there = unpack(&p->places[p->count], p->sent, p->node[p->count]);
    tn_status status = tn__node_is_error(there) ? tn__error_raise(there->error) : tn__evaluate(1, &there);
    return status == TN_OK ? tn__read(there, ranks) : status;
}

/* Sums of a part's gradients, by parameter; none where no rank has one. */
static tn_status send_part(tn_optimizer *optimizer, int part, int parts, parcel *p, tn__node **sum)
{
    bool lacks = false;
    p->count = list(optimizer, part, p->node, p->tracked, &lacks);
    if (p->count < 0)
        return tn_error_code();
    TN__FREED float *ranks = lacks ? tn__alloc((size_t)p->count * sizeof *ranks) : NULL;
    if (lacks && !ranks)
        return tn__fail_memory("step", (size_t)p->count * sizeof *ranks);
    p->node[p->count] = presence(optimizer, p->count, p->tracked, lacks, p->node[0]->device);
    tn_status status = send(optimizer, p, part == parts, parts > 1);
    if (status == TN_OK && lacks)
        status = read_ranks(p, ranks);
    for (int i = 0; i < p->count && status == TN_OK; i++)
        sum[p->tracked[i]] = lacks && ranks[i] == 0 ? NULL : unpack(&p->places[i], p->sent, p->node[i]);
    return status;
}

static tn_status take_means(tn_optimizer *optimizer, tn__node *const *sum)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < optimizer->tracked_count && status == TN_OK; i++) {
        tn_array *param = optimizer->tracked[i].param;
        if (!sum[i])
            continue;
        tn__node *mean = tn__with(TN__OP_DIVIDE, sum[i], optimizer->comm->place.size);
        mean = tn__node_is_error(mean) ? mean : tn__to(mean, tn__array_node(param)->device);
        status = tn__take_mean(param, mean);
    }
    return status;
}

tn_status tn__gradients_sum(tn_optimizer *optimizer)
{
    size_t room = optimizer->tracked_count + 1;
    tn__look_for_gradients(optimizer);
    int parts = divide(optimizer);
    TN__FREED tn__node **node = tn__alloc(room * sizeof *node), **sent = tn__alloc(room * sizeof *sent),
                       **sum = tn__calloc(room, sizeof *sum);
    TN__FREED size_t *tracked = tn__alloc(room * sizeof *tracked);
    TN__FREED place *places = tn__alloc(room * sizeof *places);
    bool all = node && sent && sum && tracked && places;
    tn_status status = all ? TN_OK : tn__fail_memory("step", room * sizeof *places);
    parcel p = {.node = node, .sent = sent, .places = places, .tracked = tracked};
    tn__call call = tn__enter();
    for (int part = 1; part <= parts && status == TN_OK; part++)
        status = send_part(optimizer, part, parts, &p, sum);
    if (status == TN_OK)
        status = take_means(optimizer, sum);
    tn__leave(call);
    return status;
}
