/* SPDX-License-Identifier: MIT */
/*
 * Collectives over nodes. A call evaluates its operand, does the transfer and makes a node of the operation COLLECTIVE
 * that has its value from the start, and its operand as input. Its gradient is another call, by the table below, so
 * gradients of any order are.
 *
 * A rank that gives nothing has an empty node as its operand, and one that gets nothing an empty result: so a graph
 * goes through every rank, and backward calls all of them.
 */
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

#include "array/build.h"
#include "core/memory.h"
#include "engine/engine.h"

#define WAY_SHIFT 8 /* of a node's kind, above which its way lies */

/* What a kind does. */
typedef struct kind_facts {
    const char *name;
    bool reduces;               /* names its op in messages */
    bool to_root, from_root;    /* only the root gets, gives */
    bool pair;                  /* peer is the other end */
    tn__transfer_kind gradient; /* what is done with the result's gradient */
} kind_facts;

static const kind_facts kinds[TN__TRANSFER_KINDS] = {
    [TN__ALL_REDUCE] = {.name = "all_reduce", .reduces = true, .gradient = TN__ALL_REDUCE},
    [TN__REDUCE] = {.name = "reduce", .reduces = true, .to_root = true, .gradient = TN__BROADCAST},
    [TN__BROADCAST] = {.name = "broadcast", .from_root = true, .gradient = TN__REDUCE},
    [TN__ALL_GATHER] = {.name = "all_gather", .gradient = TN__REDUCE_SCATTER},
    [TN__GATHER] = {.name = "gather", .to_root = true, .gradient = TN__SCATTER},
    [TN__SCATTER] = {.name = "scatter", .from_root = true, .gradient = TN__GATHER},
    [TN__REDUCE_SCATTER] = {.name = "reduce_scatter", .reduces = true, .gradient = TN__ALL_GATHER},
    [TN__ALL_TO_ALL] = {.name = "all_to_all", .gradient = TN__ALL_TO_ALL},
    [TN__SEND] = {.name = "send", .pair = true, .gradient = TN__RECEIVE},
    [TN__RECEIVE] = {.name = "receive", .pair = true, .gradient = TN__SEND},
    [TN__BARRIER] = {.name = "barrier"},
};

const char *tn__collective_name(tn__transfer_kind kind) { return kinds[kind].name; }

bool tn__collective_gives(const tn_comm *comm, const tn__collective_call *call)
{
    return call->kind != TN__RECEIVE && (!kinds[call->kind].from_root || call->peer == comm->place.rank);
}

bool tn__collective_gets(const tn_comm *comm, const tn__collective_call *call)
{
    return call->kind != TN__SEND && (!kinds[call->kind].to_root || call->peer == comm->place.rank);
}

/* ---- messages ---- */

static const char *op_name(tn_comm_op op)
{
    static const char *const names[] = {"sum", "mean", "max", "min", "prod"};
    return names[op];
}

/* "all_reduce(sum) of float32 (2, 3)", "gather to rank 1 of int8 (3,)". */
static void describe(char text[TN__CALL_TEXT], const tn_comm *comm, const tn__collective_call *call, tn_dtype dtype,
                     const tn__shape *shape)
{
    const kind_facts *kind = &kinds[call->kind];
    char shape_text[TN__SHAPE_TEXT], end[48] = "", op[16] = "";
    if (kind->to_root || kind->from_root || kind->pair)
        snprintf(end, sizeof end, " %s rank %d", kind->from_root || call->kind == TN__RECEIVE ? "from" : "to",
                 comm->members[call->peer]);
    if (kind->reduces)
        snprintf(op, sizeof op, "(%s)", op_name(call->op));
    tn__shape_text(shape->ndim, shape->dim, shape_text);
    snprintf(text, TN__CALL_TEXT, "%s%s%s of %s %.150s", kind->name, op, end, tn_dtype_name(dtype), shape_text);
}

/* ---- memory that transfers read and write ---- */

/* An operand's elements in host memory; `*copy` is to be freed. NULL with a latched error. */
static const void *elements(tn__node *in, void **copy)
{
    const tn__device *device = in->device;
    *copy = NULL;
    if (tn__evaluate(1, &in) != TN_OK)
        return NULL;
    if (device->capabilities.host_memory && !in->strides && !device->ops->synchronize)
        return (char *)in->storage->memory + in->offset * (int64_t)tn_dtype_size((tn_dtype)in->dtype);
    size_t bytes = (size_t)in->shape->size * tn_dtype_size((tn_dtype)in->dtype);
    *copy = tn__alloc(bytes);
    if (!*copy)
        tn__fail_memory("comm", bytes);
    else if (tn__read(in, *copy) == TN_OK)
        return *copy;
    tn__free(*copy);
    return *copy = NULL;
}

/* Where the elements of a result are put: the storage's memory, or a copy for it. */
static void *destination(tn__storage *storage, void **copy)
{
    *copy = NULL;
    if (storage->device->capabilities.host_memory && !storage->device->ops->synchronize)
        return storage->memory;
    *copy = tn__alloc(storage->bytes);
    if (!*copy)
        tn__fail_memory("comm", storage->bytes);
    return *copy;
}

/* ---- the call ---- */

/* Elements of one share. */
static int64_t share(const tn_comm *comm, const tn__collective_call *call, const tn__node *in, const tn__shape *out)
{
    switch (call->kind) {
    case TN__ALL_GATHER:
    case TN__GATHER:
        return in->shape->size;
    case TN__ALL_TO_ALL:
        return out->size / comm->place.size;
    case TN__SEND:
    case TN__REDUCE:
        return in->shape->size;
    default:
        return out->size;
    }
}

static tn_status transfer(tn_comm *comm, const tn__collective_call *call, const tn__transfer *t, const char *text)
{
    tn_status status = kinds[call->kind].pair ? TN_OK : tn__comm_check(comm, kinds[call->kind].name, text);
    return status == TN_OK ? tn__comm_transfer(comm, t, kinds[call->kind].name, text) : status;
}

static tn__transfer transfer_of(const tn_comm *comm, const tn__collective_call *call, const tn__node *in,
                                tn_dtype dtype, const tn__shape *out)
{
    return (tn__transfer){.kind = call->kind,
                          .op = call->op,
                          .dtype = dtype,
                          .itemsize = tn_dtype_size(dtype),
                          .count = share(comm, call, in, out),
                          .peer = call->peer,
                          .tag = call->tag};
}

/* By way of the host: the storage filled in, or a failure. */
static tn_status fill_by_host(tn_comm *comm, const tn__collective_call *call, tn__node *in, tn__transfer *t,
                              tn__storage *storage, const char *text)
{
    void *in_copy = NULL, *out_copy = NULL;
    bool gives = tn__collective_gives(comm, call), gets = tn__collective_gets(comm, call);
    bool ready = (!gives || (t->from = elements(in, &in_copy))) && (!gets || (t->to = destination(storage, &out_copy)));
    tn_status status = ready ? transfer(comm, call, t, text) : tn__comm_break(comm, true);
    if (status == TN_OK && out_copy && storage->bytes)
        status = tn__storage_write(storage, out_copy, storage->bytes);
    tn__comm_block_free(comm, in_copy);
    tn__comm_block_free(comm, out_copy);
    if (comm->given_up && in->storage)
        tn__comm_storage_release(comm, tn__storage_retain(in->storage));
    return status;
}

/* From device to device: the storage will be filled in. */
static tn_status fill_by_link(tn_comm *comm, const tn__collective_call *call, tn__node *in, tn__transfer *t,
                              tn__storage *storage, const char *text)
{
    bool gives = tn__collective_gives(comm, call), gets = tn__collective_gets(comm, call);
    tn_status status = gives ? tn__evaluate(1, &in) : TN_OK;
    const tn__node *from = status == TN_OK && gives ? tn__compact(in) : NULL;
    if (status != TN_OK || (gives && !from))
        return tn__comm_break(comm, true);
    if (from)
        t->from = (const char *)from->storage->memory + from->offset * (int64_t)t->itemsize;
    t->to = gets ? storage->memory : NULL;
    status = tn__comm_check(comm, kinds[call->kind].name, text);
    if (status != TN_OK || t->count == 0)
        return status;
    const tn__link_ends ends = {from ? from->storage : NULL, gets ? storage : NULL};
    return tn__link_transfer(comm, 1, t, &ends, false, kinds[call->kind].name, text);
}

/* The result's storage, filled in; NULL with a latched error. */
static tn__storage *fill(tn_comm *comm, const tn__collective_call *call, tn__node *in, tn_dtype dtype,
                         const tn__shape *out)
{
    char text[TN__CALL_TEXT];
    tn__transfer t = transfer_of(comm, call, in, dtype, out);
    describe(text, comm, call, dtype, tn__collective_gives(comm, call) ? in->shape : out);
    tn__storage *storage =
        tn__storage_new(in->device, tn__collective_gets(comm, call) ? (size_t)out->size * t.itemsize : 0);
    tn_status status = !storage                  ? tn__comm_break(comm, true)
                       : call->way == TN__BY_LINK ? fill_by_link(comm, call, in, &t, storage, text)
                                                  : fill_by_host(comm, call, in, &t, storage, text);
    if (status == TN_OK)
        return storage;
    tn__comm_storage_release(comm, storage);
    return NULL;
}

/* The way is known, and the operand where it begins. */
static tn__node *collect(tn_comm *comm, const tn__collective_call *call, tn__node *in, tn_dtype dtype,
                         const tn__shape *shape)
{
    const tn__shape *out = tn__collective_gets(comm, call) ? shape : tn__shape_intern(1, (int64_t[]){0});
    tn__storage *storage = out ? fill(comm, call, in, dtype, shape) : NULL;
    if (!storage)
        return tn__failed();
    tn__node *node = tn__node_new(TN__OP_COLLECTIVE, dtype, out, in->device, 1, &in,
                                  (tn__attr){.collective = {.comm = comm->number,
                                                            .kind = (uint16_t)(call->kind | call->way << WAY_SHIFT),
                                                            .op = (uint16_t)call->op,
                                                            .peer = call->peer,
                                                            .tag = call->tag}});
    if (!tn__node_is_error(node))
        tn__node_set_value(node, storage, 0, NULL, !(node->flags & TN__NODE_NEEDS_GRAD));
    tn__storage_release(storage);
    return node;
}

tn__node *tn__collective(tn_comm *comm, const tn__collective_call *call, tn__node *in, tn_dtype dtype,
                         const tn__shape *shape)
{
    bool linked = call->way == TN__BY_LINK;
    tn__collective_call known = *call;
    if (tn__comm_usable(comm, kinds[call->kind].name) != TN_OK)
        return tn__failed();
    if (call->way == TN__BY_OPERANDS && !kinds[call->kind].pair &&
        tn__comm_link(comm, in->device, kinds[call->kind].name, &linked) != TN_OK)
        return tn__failed();
    known.way = linked ? TN__BY_LINK : TN__BY_HOST;
    tn__device *here = in->device;
    tn__node *from = linked ? tn__to(in, tn__link_device(comm)) : in;
    if (tn__node_is_error(from))
        return from;
    tn__node *made = collect(comm, &known, from, dtype, shape);
    return tn__node_is_error(made) || made->device == here ? made : tn__to(made, here);
}

/* ---- backward ---- */

static tn__node *gradient(const tn__node *node, tn__node *g)
{
    tn_comm *comm = tn__comm_numbered(node->attr.collective.comm);
    tn__transfer_kind kind = (tn__transfer_kind)(node->attr.collective.kind & ((1 << WAY_SHIFT) - 1));
    if (!comm)
        return tn__node_error(tn__error_new(TN_ERR_STATE, kinds[kind].name,
                                            "its communicator has been freed: free it after tn_backward"));
    /* What is combined otherwise than by a sum was made of other calls. */
    const tn__collective_call call = {.kind = kinds[kind].gradient,
                                      .peer = node->attr.collective.peer,
                                      .tag = node->attr.collective.tag,
                                      .way = (tn__way)(node->attr.collective.kind >> WAY_SHIFT)};
    const tn__node *x = node->in[0];
    return tn__collective(comm, &call, g, (tn_dtype)g->dtype, x->shape);
}

__attribute__((constructor)) static void set_up(void) { tn__engine.collective_gradient = gradient; }
