/* SPDX-License-Identifier: MIT */
/* The public collectives: what they ask of their operands, and those that are made of others. */
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>
#include <tanso/array.h>

#include "array/build.h"
#include "engine/engine.h"

/* ---- operands ---- */

/* TN_OK, or what is wrong with a root, or another end. */
tn_status tn__comm_check_peer(const tn_comm *comm, const char *operation, const char *what, int peer, bool other)
{
    if (peer < 0 || peer >= comm->place.size)
        return tn__fail(TN_ERR_VALUE, operation, "expected %s from 0 to %d, got %d", what, comm->place.size - 1, peer);
    if (other && peer == comm->place.rank)
        return tn__fail(TN_ERR_VALUE, operation, "%s is this rank itself, %d: expected another one", what, peer);
    return TN_OK;
}

/* An operand, with the place of its failure told to the ranks that would wait for it; NULL: it, or the communicator, is
 * an error that is latched. */
static tn__node *operand(tn_comm *comm, const char *operation, const tn_array *x)
{
    if (tn__comm_of_processes(comm, operation) != TN_OK)
        return NULL;
    tn__node *node = tn__node_of(x, operation);
    if (!tn__node_is_error(node))
        return node;
    tn__error_raise(node->error);
    tn__comm_break(comm, comm->place.size > 1);
    return NULL;
}

/* Whether x can be cut into a share a rank along its first axis. */
tn_status tn__comm_check_shares(const tn_comm *comm, const char *operation, const tn__node *x)
{
    char text[TN__SHAPE_TEXT];
    if (x->shape->ndim >= 1 && x->shape->dim[0] == comm->place.size)
        return TN_OK;
    return tn__fail(TN_ERR_SHAPE, operation,
                    "expected a first axis of %d, an element for each rank, got shape %s: reshape it",
                    comm->place.size, tn__shape_text(x->shape->ndim, x->shape->dim, text));
}

static const tn__shape *without_first(const tn__node *x)
{
    return tn__shape_intern(x->shape->ndim - 1, x->shape->dim + 1);
}

static const tn__shape *with_first(const tn_comm *comm, const char *operation, const tn__node *x)
{
    int64_t dim[TN_MAX_NDIM + 1] = {comm->place.size};
    if (x->shape->ndim == TN_MAX_NDIM) {
        tn__fail(TN_ERR_SHAPE, operation, "the result would have more than %d axes", TN_MAX_NDIM);
        return NULL;
    }
    memcpy(dim + 1, x->shape->dim, sizeof *dim * (size_t)x->shape->ndim);
    tn_shape shape = {.ndim = x->shape->ndim + 1};
    memcpy(shape.dim, dim, sizeof shape.dim);
    if (tn__shape_check(operation, shape, tn_dtype_size((tn_dtype)x->dtype)) != TN_OK)
        return NULL;
    const tn__shape *made = tn__shape_intern(shape.ndim, shape.dim);
    if (!made)
        tn__fail_memory(operation, sizeof *made);
    return made;
}

tn_status tn__comm_check_op(const char *operation, tn_comm_op op, const tn__node *x)
{
    if ((int)op < TN_COMM_SUM || op > TN_COMM_PROD)
        return tn__fail(TN_ERR_VALUE, operation, "expected a tn_comm_op from %d to %d, got %d", TN_COMM_SUM,
                        TN_COMM_PROD, (int)op);
    if (op == TN_COMM_MEAN && !tn__dtype_inexact((tn_dtype)x->dtype))
        return tn__fail(TN_ERR_DTYPE, operation, "expected a floating or complex dtype to take the mean of, got %s: "
                                                 "tn_cast it, or take the sum",
                        tn_dtype_name((tn_dtype)x->dtype));
    return TN_OK;
}

/* An empty value that stands for an operand where a rank gives nothing; of what has a gradient on the rank that gives,
 * a leaf, so that backward comes by here. */
static tn__node *stand_in(tn__device *device, tn_dtype dtype, bool needs_grad)
{
    const tn__shape *none = tn__shape_intern(1, (int64_t[]){0});
    if (!device || !none)
        return tn__failed();
    tn__node *node = tn__value_from_host("", dtype, none, device);
    if (needs_grad && !tn__node_is_error(node))
        node->flags |= TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD;
    return node;
}

static bool needs_grad(const tn__node *x)
{
    return x->flags & TN__NODE_NEEDS_GRAD && tn__no_grad_depth == 0;
}

/* ---- reductions ---- */

static tn__node *mean_of(const tn_comm *comm, tn_comm_op op, tn__node *sum)
{
    return op == TN_COMM_MEAN && !tn__node_is_error(sum) ? tn__with(TN__OP_DIVIDE, sum, comm->place.size) : sum;
}

/* Products and extremes that have a gradient are a gather and a reduction, whose gradients do; and so is what the link
 * of devices does not combine as it is meant: extremes of what may be NaN, products of complex numbers. */
static tn__node *reduced_here(tn_comm *comm, const tn__collective_call *call, tn__node *x)
{
    static const tn__op by[] = {[TN_COMM_MAX] = TN__OP_MAX, [TN_COMM_MIN] = TN__OP_MIN, [TN_COMM_PROD] = TN__OP_PROD};
    const tn__collective_call gather = {.kind = call->kind == TN__REDUCE       ? TN__GATHER
                                                : call->kind == TN__ALL_REDUCE ? TN__ALL_GATHER
                                                                               : TN__ALL_TO_ALL,
                                        .peer = call->peer,
                                        .way = call->way};
    const tn__shape *stacked =
        gather.kind == TN__ALL_TO_ALL ? x->shape : with_first(comm, tn__collective_name(call->kind), x);
    if (!stacked)
        return tn__failed();
    tn__node *all = tn__collective(comm, &gather, x, (tn_dtype)x->dtype, stacked);
    if (tn__node_is_error(all) || !tn__collective_gets(comm, &gather))
        return all;
    return tn__drop_axes(tn__reduce(by[call->op], all, 1), 1);
}

/* A sum, or what else elements are combined by. Those of 16 bits, which a link does not combine, are as those of 32,
 * of which the lower half has the same bits. */
static tn__node *combined(tn_comm *comm, const tn__collective_call *call, tn__node *x)
{
    const tn__shape *out = call->kind == TN__REDUCE_SCATTER ? without_first(x) : x->shape;
    tn_dtype dtype = (tn_dtype)x->dtype;
    bool taken = call->way == TN__BY_HOST || tn__link_takes(comm, call->kind, call->op, dtype);
    if (!out)
        return tn__failed();
    if (!taken && (dtype == TN_INT16 || dtype == TN_UINT16)) {
        tn__node *wide = tn__cast(x, TN_INT32);
        wide = tn__node_is_error(wide) ? wide : tn__collective(comm, call, wide, TN_INT32, out);
        return tn__node_is_error(wide) ? wide : tn__cast(wide, dtype);
    }
    if (!taken || (needs_grad(x) && call->op > TN_COMM_MEAN))
        return reduced_here(comm, call, x);
    return tn__collective(comm, call, x, dtype, out);
}

static tn__node *reduction(tn_comm *comm, const tn__collective_call *call, const tn_array *array)
{
    const char *name = tn__collective_name(call->kind);
    bool linked;
    tn__node *x = operand(comm, name, array);
    if (!x || tn__comm_check_op(name, call->op, x) != TN_OK ||
        tn__comm_check_peer(comm, name, "a root", call->peer, false) != TN_OK ||
        (call->kind == TN__REDUCE_SCATTER && tn__comm_check_shares(comm, name, x) != TN_OK) ||
        tn__comm_link(comm, x->device, name, &linked) != TN_OK)
        return tn__failed();
    tn__collective_call known = *call;
    known.way = linked ? TN__BY_LINK : TN__BY_HOST;
    known.op = call->op == TN_COMM_MEAN ? TN_COMM_SUM : call->op;
    return mean_of(comm, call->op, combined(comm, &known, x));
}

tn_array *tn_comm_all_reduce(tn_comm *comm, const tn_array *x, tn_comm_op op)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, reduction(comm, &(tn__collective_call){.kind = TN__ALL_REDUCE, .op = op}, x));
}

tn_array *tn_comm_reduce(tn_comm *comm, const tn_array *x, tn_comm_op op, int root)
{
    tn__call call = tn__enter();
    return tn__leave_array(call,
                           reduction(comm, &(tn__collective_call){.kind = TN__REDUCE, .op = op, .peer = root}, x));
}

tn_array *tn_comm_reduce_scatter(tn_comm *comm, const tn_array *x, tn_comm_op op)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, reduction(comm, &(tn__collective_call){.kind = TN__REDUCE_SCATTER, .op = op}, x));
}

/* ---- gathers ---- */

static tn__node *gathered(tn_comm *comm, const tn__collective_call *call, const tn_array *array)
{
    const char *name = tn__collective_name(call->kind);
    tn__node *x = operand(comm, name, array);
    const tn__shape *out = NULL;
    if (x && tn__comm_check_peer(comm, name, "a root", call->peer, false) == TN_OK)
        out = with_first(comm, name, x);
    return out ? tn__collective(comm, call, x, (tn_dtype)x->dtype, out) : tn__failed();
}

tn_array *tn_comm_all_gather(tn_comm *comm, const tn_array *x)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, gathered(comm, &(tn__collective_call){.kind = TN__ALL_GATHER}, x));
}

tn_array *tn_comm_gather(tn_comm *comm, const tn_array *x, int root)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, gathered(comm, &(tn__collective_call){.kind = TN__GATHER, .peer = root}, x));
}

tn_array *tn_comm_all_to_all(tn_comm *comm, const tn_array *array)
{
    static const tn__collective_call to_all = {.kind = TN__ALL_TO_ALL};
    tn__call call = tn__enter();
    tn__node *x = operand(comm, "all_to_all", array);
    if (!x || tn__comm_check_shares(comm, "all_to_all", x) != TN_OK)
        return tn__leave_error(call);
    return tn__leave_array(call, tn__collective(comm, &to_all, x, (tn_dtype)x->dtype, x->shape));
}

/* ---- from a rank whose array the others do not know ---- */

/* Tells what comes, or is told. */
static tn_status tell_heading(tn_comm *comm, const tn__collective_call *call, tn__heading *heading)
{
    char text[64];
    const char *name = tn__collective_name(call->kind);
    tn__transfer t = {.kind = call->kind == TN__SCATTER ? TN__BROADCAST : call->kind,
                      .dtype = TN_UINT8,
                      .itemsize = 1,
                      .count = sizeof *heading,
                      .peer = call->peer,
                      .tag = call->tag};
    bool gives = tn__collective_gives(comm, call);
    t.from = gives ? heading : NULL;
    t.to = gives && t.kind == TN__SEND ? NULL : heading;
    snprintf(text, sizeof text, "%s with rank %d", name, comm->members[call->peer]);
    tn_status status = t.kind == TN__BROADCAST ? tn__comm_check(comm, name, text) : TN_OK;
    return status == TN_OK ? tn__comm_tell_unchecked(comm, &t, name, text) : status;
}

static tn__heading heading_of(const tn__node *x)
{
    tn__heading heading = {.dtype = x->dtype, .ndim = x->shape->ndim, .needs_grad = needs_grad(x)};
    memcpy(heading.dim, x->shape->dim, sizeof heading.dim);
    return heading;
}

/* What the rank that gives has, as all of them know it now; NULL with a latched error. */
static const tn__shape *shape_of(const tn__heading *heading, const char *name)
{
    if (heading->fails) {
        tn__fail(TN_ERR_VALUE, name, "the root's array does not fit, as it has been told");
        return NULL;
    }
    const tn__shape *shape = tn__shape_intern(heading->ndim, heading->dim);
    if (!shape)
        tn__fail_memory(name, sizeof *shape);
    return shape;
}

static bool on_device(const tn_comm *comm, const tn__device *device)
{
    return comm->devices_everywhere && device->id.kind == TN_DEVICE_CUDA;
}

/* Where the result of a rank that gives nothing is to be: with its own array, if it has one. NULL with a latched
 * error. */
static tn__device *wanted_device(const tn_array *array, const char *name)
{
    tn__node *like = array ? tn__node_of(array, name) : NULL;
    return like && !tn__node_is_error(like) ? like->device : tn__device_current();
}

/* The way that the root's elements take, as they are on a device or not, which all ranks have been told; and the device
 * of this rank that they come to first. */
static tn_status choose_way(tn_comm *comm, const tn__heading *heading, const char *name, tn__device **device,
                            tn__way *way)
{
    tn__device *at = *device;
    bool linked = false;
    if (heading->on_device && !on_device(comm, at))
        at = tn__device_get((tn_device){TN_DEVICE_CUDA, comm->place.local_rank % tn_device_count(TN_DEVICE_CUDA)});
    tn_status status = !at                  ? tn__error_status(tn__error_last())
                       : heading->on_device ? tn__comm_link(comm, at, name, &linked)
                                            : TN_OK;
    *way = linked ? TN__BY_LINK : TN__BY_HOST;
    *device = linked ? at : *device;
    return status;
}

/* Once all ranks know what comes. */
static tn__node *spread(tn_comm *comm, const tn__collective_call *call, const tn__heading *heading, tn__node *x,
                        tn__device *wanted)
{
    const char *name = tn__collective_name(call->kind);
    tn__collective_call known = *call;
    tn__device *device = wanted;
    const tn__shape *whole = shape_of(heading, name), *out = whole;
    if (whole && call->kind == TN__SCATTER)
        out = tn__shape_intern(whole->ndim - 1, whole->dim + 1);
    if (!out || choose_way(comm, heading, name, &device, &known.way) != TN_OK)
        return tn__failed();
    if (!x)
        x = stand_in(device, (tn_dtype)heading->dtype, heading->needs_grad && tn__no_grad_depth == 0);
    tn__node *made = tn__node_is_error(x) ? x : tn__collective(comm, &known, x, (tn_dtype)heading->dtype, out);
    return tn__node_is_error(made) || made->device == wanted ? made : tn__to(made, wanted);
}

static tn__node *from_root(tn_comm *comm, const tn__collective_call *call, const tn_array *array)
{
    const char *name = tn__collective_name(call->kind);
    if (tn__comm_of_processes(comm, name) != TN_OK ||
        tn__comm_check_peer(comm, name, "a root", call->peer, false) != TN_OK)
        return tn__failed();
    tn__heading heading = {0};
    tn__node *x = NULL;
    bool root = call->peer == comm->place.rank;
    if (root) {
        if (!(x = operand(comm, name, array)))
            return tn__failed();
        heading = heading_of(x);
        heading.on_device = on_device(comm, x->device);
        heading.fails = call->kind == TN__SCATTER && tn__comm_check_shares(comm, name, x) != TN_OK;
    }
    tn__device *wanted = root ? x->device : wanted_device(array, name);
    if (!wanted || tell_heading(comm, call, &heading) != TN_OK || (root && heading.fails))
        return tn__failed();
    return spread(comm, call, &heading, x, wanted);
}

tn_array *tn_comm_broadcast(tn_comm *comm, const tn_array *x, int root)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, from_root(comm, &(tn__collective_call){.kind = TN__BROADCAST, .peer = root}, x));
}

tn_array *tn_comm_scatter(tn_comm *comm, const tn_array *x, int root)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, from_root(comm, &(tn__collective_call){.kind = TN__SCATTER, .peer = root}, x));
}

/* ---- between two ranks ---- */

static tn_status check_message(const tn_comm *comm, const tn__collective_call *call)
{
    const char *name = tn__collective_name(call->kind);
    if (tn__comm_of_processes(comm, name) != TN_OK)
        return tn__error_status(tn__error_last());
    if (call->tag < 0 || call->tag > 32767)
        return tn__fail(TN_ERR_VALUE, name, "expected a tag from 0 to 32767, got %d", call->tag);
    return tn__comm_check_peer(comm, name, "the other rank", call->peer, true);
}

static tn__node *sent(tn_comm *comm, const tn__collective_call *call, const tn_array *array)
{
    if (check_message(comm, call) != TN_OK)
        return tn__failed();
    tn__node *x = operand(comm, "send", array);
    if (!x)
        return tn__failed();
    tn__heading heading = heading_of(x);
    if (tell_heading(comm, call, &heading) != TN_OK)
        return tn__failed();
    return tn__collective(comm, call, x, (tn_dtype)x->dtype, x->shape);
}

tn_array *tn_comm_send(tn_comm *comm, const tn_array *x, int to, int tag)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, sent(comm, &(tn__collective_call){.kind = TN__SEND, .peer = to, .tag = tag}, x));
}

static tn__node *received(tn_comm *comm, const tn__collective_call *call, const tn_array *after)
{
    if (check_message(comm, call) != TN_OK)
        return tn__failed();
    tn__node *before = after ? operand(comm, "receive", after) : NULL;
    tn__heading heading = {0};
    if ((after && !before) || tell_heading(comm, call, &heading) != TN_OK)
        return tn__failed();
    const tn__shape *shape = shape_of(&heading, "receive");
    tn_dtype dtype = (tn_dtype)heading.dtype;
    bool wants = heading.needs_grad && tn__no_grad_depth == 0;
    tn__node *x = before && wants ? tn__cast(before, dtype) : stand_in(tn__device_current(), dtype, wants);
    return !shape ? tn__failed() : tn__node_is_error(x) ? x : tn__collective(comm, call, x, dtype, shape);
}

tn_array *tn_comm_receive(tn_comm *comm, int from, int tag, const tn_array *after)
{
    tn__call call = tn__enter();
    tn__collective_call receiving = {.kind = TN__RECEIVE, .peer = from, .tag = tag};
    return tn__leave_array(call, received(comm, &receiving, after));
}

tn_array *tn_comm_connect(const tn_array *sent, const tn_array *array)
{
    tn__call call = tn__enter();
    tn__node *x = tn__node_of(array, "comm_connect"), *empty = tn__node_of(sent, "comm_connect");
    if (tn__node_is_error(x) || tn__node_is_error(empty))
        return tn__leave_array(call, tn__node_is_error(x) ? x : empty);
    if (empty->shape->size != 0) {
        char text[TN__SHAPE_TEXT];
        tn__fail(TN_ERR_SHAPE, "comm_connect", "expected what tn_comm_send gave, of shape (0,), got shape %s",
                 tn__shape_text(empty->shape->ndim, empty->shape->dim, text));
        return tn__leave_error(call);
    }
    /* The sum of nothing. */
    tn__node *zero = tn__reduce(TN__OP_SUM, empty, (1u << empty->shape->ndim) - 1);
    zero = tn__cast(tn__drop_axes(zero, (1u << empty->shape->ndim) - 1), (tn_dtype)x->dtype);
    if (!tn__node_is_error(zero))
        zero = tn__to(zero, x->device);
    return tn__leave_array(call, tn__binary(TN__OP_ADD, x, zero));
}

tn_status tn_comm_barrier(tn_comm *comm)
{
    TN__NO_PLACE();
    tn_status status = tn__comm_of_processes(comm, "barrier");
    if (status == TN_OK)
        status = tn__comm_check(comm, "barrier", "barrier");
    if (status == TN_OK)
        status = tn__comm_transfer(comm, &(tn__transfer){.kind = TN__BARRIER}, "barrier", "barrier");
    return status;
}
