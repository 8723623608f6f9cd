/* SPDX-License-Identifier: MIT */
/*
 * Evaluation over several devices. A TRANSFER node is where a value goes from one device to another; there the graph is
 * cut into regions, each of which is a plan of one device, found in the cache like any other. Nobody waits between
 * them: a run returns when its work is on the device's stream, and a copy between two devices puts their streams behind
 * one another.
 *
 * The rank of a node says when it can be computed: it is one more than that of what it needs where this is sent to
 * another device, and all devices work on what has one rank side by side. What of a rank and device has to be there to
 * send something is one region, so that it is sent early; what is needed by later ranks a second one. All else, most
 * gradients of parameters and their updates above all, comes last, in one more region a device: so nothing is
 * overwritten before all the rest has been computed, and an update can be part of the product that gives its gradient.
 *
 * A copy is the receiving device's work, behind what it was asked before. So the phases of a rank are: what is to be
 * sent; copies to devices that have nothing to do meanwhile; what later ranks need; the other copies.
 *
 * What one region computes and another uses gets a value; what costs nothing is computed again.
 */
#include "engine/regions.h"

#include "core/memory.h"

void tn__regions_free(tn__regions *r)
{
    tn__free(r->item);
    tn__free(r->root);
    tn__free(r->device);
    tn__free(r->order);
    tn__free(r->part);
    tn__free(r->stack.frame);
}

static tn_status no_memory(void) { return tn__fail_memory("eval", sizeof(tn__region_item)); }

/* ---- listing ---- */

/* The item of a pending node, or -1. */
static int64_t item_of(const tn__regions *r, const tn__node *node)
{
    uint64_t mark = tn__node_mark(node);
    return mark >> 32 == r->stamp ? (int64_t)((uint32_t)mark & ~TN__COLLECTED) : -1;
}

static bool has_device(const tn__regions *r, const tn__device *device)
{
    for (size_t i = 0; i < r->device_count; i++)
        if (r->device[i] == device)
            return true;
    return false;
}

static bool add_item(tn__regions *r, tn__node *node)
{
    if (!tn__grow((void **)&r->item, &r->capacity, r->count + 1, sizeof *r->item))
        return false;
    uint32_t again = tn__was_collected(node) ? TN__COLLECTED : 0; /* the mark goes on saying so */
    tn__node_set_mark(node, (uint64_t)r->stamp << 32 | again | (uint32_t)r->count);
    r->item[r->count++] = (tn__region_item){
        .node = node, .device = node->device, .transfers = node->op == TN__OP_TRANSFER};
    if (has_device(r, node->device))
        return true;
    if (!tn__grow((void **)&r->device, &r->device_capacity, r->device_count + 1, sizeof(tn__device *)))
        return false;
    r->device[r->device_count++] = node->device;
    return true;
}

static bool push(tn__regions *r, size_t depth, tn__node *node)
{
    if (!tn__grow((void **)&r->stack.frame, &r->stack.capacity, depth + 1, sizeof *r->stack.frame))
        return false;
    r->stack.frame[depth] = (struct tn__region_frame){node, 0};
    return true;
}

/* Lists the pending nodes under a root, inputs first. */
static tn_status visit(tn__regions *r, tn__node *root)
{
    size_t depth = 0;
    if (!push(r, depth++, root))
        return no_memory();
    while (depth > 0) {
        struct tn__region_frame *top = &r->stack.frame[depth - 1];
        tn__node *node = top->node;
        if (node->error || tn__node_is_error(node))
            return tn__refuse(node);
        if (top->next < node->arity && item_of(r, node) < 0) {
            tn__node *in = node->in[top->next++];
            if (!in->storage && item_of(r, in) < 0 && !push(r, depth++, in))
                return no_memory();
        } else {
            depth--;
            if (item_of(r, node) < 0 && !add_item(r, node))
                return no_memory();
        }
    }
    return TN_OK;
}

static tn_status add_root(tn__regions *r, tn__node *node)
{
    if (node->storage)
        return tn__storage_check(node->storage);
    tn_status status = visit(r, node);
    if (status != TN_OK)
        return status;
    tn__region_item *item = &r->item[item_of(r, node)];
    if (item->root)
        return TN_OK;
    item->root = true;
    if (!tn__grow((void **)&r->root, &r->root_capacity, r->root_count + 1, sizeof(tn__node *)))
        return no_memory();
    r->root[r->root_count++] = node;
    return TN_OK;
}

/* A step's gradients of other parameters than its own, see collect.c. */
static tn_status add_gradients(tn__regions *r, size_t devices)
{
    int count = tn__pending_gradients(NULL, 0);
    tn__node **gradient = tn__alloc(((size_t)count + 1) * sizeof *gradient);
    if (!gradient)
        return no_memory();
    tn_status status = TN_OK;
    tn__pending_gradients(gradient, count);
    for (int i = 0; i < count && status == TN_OK; i++)
        for (size_t d = 0; d < devices && status == TN_OK; d++)
            if (gradient[i]->device == r->device[d])
                status = add_root(r, gradient[i]);
    tn__free(gradient);
    return status;
}

/* What is computed along on the devices that the asked roots need: what collecting adds for each of them. */
static tn_status add_along(tn__regions *r)
{
    tn__handle *const *handle = NULL;
    bool only_written = r->mode == TN__COLLECT_ALONG || r->mode == TN__COLLECT_WRITTEN;
    int count = only_written && !tn__any_written() ? 0 : tn__pending_handles(&handle);
    size_t devices = r->device_count;
    tn_status status = TN_OK;
    for (int i = 0; i < count; i++)
        for (size_t d = 0; d < devices && status == TN_OK; d++)
            if (tn__computed_along(handle[i], r->device[d], r->mode))
                status = add_root(r, handle[i]->node);
    return status == TN_OK && r->mode == TN__COLLECT_STEP ? add_gradients(r, devices) : status;
}

static tn_status list(tn__regions *r, int count, tn__node *const *roots)
{
    tn_status status = TN_OK;
    r->stamp = tn__stamp();
    for (int i = 0; i < count && status == TN_OK; i++)
        status = add_root(r, roots[i]);
    r->asked = r->root_count;
    return status == TN_OK && r->mode != TN__COLLECT_ONLY ? add_along(r) : status;
}

/* ---- ranks, and what gets a value ---- */

/* The item of an item's input, or -1 if that has a value. */
static int64_t input_of(const tn__regions *r, size_t i, int k)
{
    const tn__node *in = r->item[i].node->in[k];
    return in->storage ? -1 : item_of(r, in);
}

static int32_t rank_behind(const tn__region_item *input)
{
    return input->rank + (input->sent && !input->transfers);
}

static void give_ranks(tn__regions *r)
{
    for (size_t i = 0; i < r->count; i++) {
        int64_t from = r->item[i].transfers ? input_of(r, i, 0) : -1;
        if (from >= 0)
            r->item[from].sent = true;
    }
    for (size_t i = 0; i < r->count; i++) {
        tn__region_item *user = &r->item[i];
        for (int k = 0; k < user->node->arity; k++) {
            int64_t at = input_of(r, i, k);
            if (at >= 0 && user->rank < rank_behind(&r->item[at]))
                user->rank = rank_behind(&r->item[at]);
        }
    }
}

/* What is made of numbers alone needs no region of its own: it is computed where it is used first. */
static void delay_constants(tn__regions *r)
{
    for (size_t i = 0; i < r->count; i++) {
        tn__region_item *item = &r->item[i];
        int kind = tn__ops[item->node->op].kind;
        item->first_user = INT32_MAX;
        item->constant = kind == TN__KIND_CONST || kind == TN__KIND_MAP || kind == TN__KIND_VIEW;
        for (int k = 0; k < item->node->arity && item->constant; k++) {
            int64_t at = input_of(r, i, k);
            item->constant = at >= 0 && r->item[at].constant;
        }
    }
    for (size_t i = r->count; i-- > 0;) {
        tn__region_item *user = &r->item[i];
        if (user->constant && !user->sent && !user->root && user->first_user != INT32_MAX)
            user->rank = user->first_user;
        for (int k = 0; k < user->node->arity; k++) {
            int64_t at = input_of(r, i, k);
            if (at >= 0 && r->item[at].first_user > user->rank)
                r->item[at].first_user = user->rank;
        }
    }
}

/* What an update makes of the old state before it meets the gradient, as the decayed moments: a part of the update's
 * kernel, which early would take a pass of its own, and memory beside the state's. */
static void find_light(tn__regions *r)
{
    for (size_t i = 0; i < r->count; i++) {
        tn__region_item *item = &r->item[i];
        int kind = tn__ops[item->node->op].kind;
        item->light = kind == TN__KIND_MAP || kind == TN__KIND_CONST;
        for (int k = 0; k < item->node->arity && item->light; k++) {
            int64_t at = input_of(r, i, k);
            item->light = at < 0 || r->item[at].light;
        }
    }
}

/* What something to be sent depends on, and what a later rank does: the device would else wait with it for others. */
static void find_early(tn__regions *r)
{
    if (r->mode == TN__COLLECT_STEP)
        find_light(r);
    for (size_t i = r->count; i-- > 0;) {
        tn__region_item *user = &r->item[i];
        user->early |= user->transfers;
        for (int k = 0; k < user->node->arity; k++) {
            int64_t at = input_of(r, i, k);
            if (at >= 0)
                r->item[at].early |= user->early || (user->rank > r->item[at].rank && !r->item[at].light);
        }
    }
}

/* ---- phases ---- */

enum { PHASES = 3 }; /* of a rank */

static void find_urgent(tn__regions *r)
{
    for (size_t i = r->count; i-- > 0;) {
        tn__region_item *user = &r->item[i];
        user->urgent |= user->sent;
        for (int k = 0; k < user->node->arity && user->urgent; k++) {
            int64_t at = input_of(r, i, k);
            if (at >= 0)
                r->item[at].urgent |= user->rank == r->item[at].rank;
        }
    }
}

static size_t device_of(const tn__regions *r, const tn__region_item *i)
{
    size_t d = 0;
    while (r->device[d] != i->device)
        d++;
    return d;
}

/* Is it what a device does while others send? Views and constants are nothing to do. */
static bool keeps_busy(const tn__region_item *i)
{
    return i->early && !i->urgent && i->node->arity && tn__ops[i->node->op].kind != TN__KIND_VIEW &&
           !i->transfers;
}

static tn_status give_phases(tn__regions *r)
{
    int32_t ranks = 0;
    for (size_t i = 0; i < r->count; i++)
        ranks = r->item[i].rank >= ranks ? r->item[i].rank + 1 : ranks;
    bool *busy = tn__calloc((size_t)ranks * r->device_count + 1, sizeof *busy);
    if (!busy)
        return no_memory();
    for (size_t i = 0; i < r->count; i++)
        if (keeps_busy(&r->item[i]))
            busy[(size_t)r->item[i].rank * r->device_count + device_of(r, &r->item[i])] = true;
    for (size_t i = 0; i < r->count; i++) {
        tn__region_item *item = &r->item[i];
        item->phase = PHASES * item->rank + (item->urgent ? 1 : 2);
        if (!item->transfers)
            continue;
        int64_t from = input_of(r, i, 0);
        size_t before = item->rank ? (size_t)(item->rank - 1) * r->device_count + device_of(r, item) : 0;
        item->phase = PHASES * item->rank - (item->rank && !busy[before]);
        if (from >= 0 && r->item[from].transfers && item->phase < r->item[from].phase)
            item->phase = r->item[from].phase;
    }
    tn__free(busy);
    return TN_OK;
}

/* Has the value of an item kept for another region: instead of a view's, which costs nothing, that of what it views. */
static void store(tn__regions *r, int64_t at)
{
    for (;;) {
        tn__region_item *i = &r->item[at];
        bool view = i->node->op == TN__OP_EXPAND || i->node->op == TN__OP_RESHAPE || i->node->op == TN__OP_PERMUTE ||
                    (i->node->op == TN__OP_SLICE && i->node->in[0]->storage);
        if (!i->node->arity || i->transfers)
            return;
        if (!view) {
            i->stored = true;
            return;
        }
        if (i->node->in[0]->storage)
            return;
        at = item_of(r, i->node->in[0]);
    }
}

static void choose_stored(tn__regions *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const tn__region_item *user = &r->item[i];
        for (int k = 0; k < user->node->arity; k++) {
            int64_t at = input_of(r, i, k);
            if (at < 0 || !r->item[at].early || r->item[at].transfers)
                continue;
            if (user->transfers)
                r->item[at].stored = true;
            else if (r->item[at].phase != user->phase || !user->early)
                store(r, at);
        }
    }
    for (size_t k = 0; k < r->root_count; k++) {
        tn__region_item *root = &r->item[item_of(r, r->root[k])];
        root->stored |= root->early && !root->transfers;
    }
}

/* Items by phase, those of one phase as they were. */
static tn_status sort(tn__regions *r)
{
    int32_t phases = 1;
    for (size_t i = 0; i < r->count; i++)
        phases = r->item[i].phase >= phases ? r->item[i].phase + 1 : phases;
    size_t *begin = tn__calloc((size_t)phases + 1, sizeof *begin);
    r->order = tn__alloc((r->count + 1) * sizeof *r->order);
    r->part = tn__alloc((r->count + 1) * sizeof(tn__node *));
    bool done = begin && r->order && r->part;
    if (done) {
        for (size_t i = 0; i < r->count; i++)
            begin[r->item[i].phase + 1]++;
        for (int32_t k = 0; k < phases; k++)
            begin[k + 1] += begin[k];
        for (size_t i = 0; i < r->count; i++)
            r->order[begin[r->item[i].phase]++] = (uint32_t)i;
    }
    tn__free(begin);
    return done ? TN_OK : no_memory();
}

tn_status tn__regions_make(tn__regions *r, int count, tn__node *const *roots)
{
    tn_status status = list(r, count, roots);
    if (status != TN_OK)
        return status;
    give_ranks(r);
    delay_constants(r);
    find_early(r);
    find_urgent(r);
    status = give_phases(r);
    if (status != TN_OK)
        return status;
    choose_stored(r);
    return sort(r);
}

size_t tn__regions_phase(const tn__regions *r, size_t from)
{
    size_t to = from;
    while (to < r->count && r->item[r->order[to]].phase == r->item[r->order[from]].phase)
        to++;
    return to;
}

int tn__regions_part(tn__regions *r, size_t from, size_t to, const tn__device *device)
{
    int count = 0;
    for (size_t i = from; i < to; i++) {
        const tn__region_item *at = &r->item[r->order[i]];
        if (at->stored && at->device == device)
            r->part[count++] = at->node;
    }
    return count;
}

int tn__regions_last(tn__regions *r, const tn__device *device)
{
    int count = 0;
    for (size_t i = 0; i < r->root_count; i++)
        if (!r->root[i]->storage && r->root[i]->device == device)
            r->part[count++] = r->root[i];
    return count;
}
