/* SPDX-License-Identifier: MIT */
/*
 * Collectives over the devices of one process: graphs of transfers and operations, which have gradients of any order
 * like all others. What is reduced is so on one device, in the order of the ranks, so that all get the same bits.
 */
#include "comm/comm.h"

#include <string.h>
#include <tanso/array.h>

#include "array/build.h"
#include "core/memory.h"

#define FEW 4096 /* elements: fewer are reduced on the first device, more by a share on each */

/* ---- operands ---- */

static tn_status check_operand(const tn_comm *comm, const char *operation, const tn__node *x, int rank)
{
    if (tn__node_is_error(x))
        return tn__error_raise(x->error);
    if (x->device == comm->devices[rank])
        return TN_OK;
    return tn__fail(TN_ERR_DEVICE, operation, "the array of rank %d is on %s, and its device is %s: move it with tn_to",
                    rank, x->device->name, comm->devices[rank]->name);
}

static tn_status check_same(const char *operation, const tn__node *x, const tn__node *first, int rank)
{
    char own[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (x->shape == first->shape && x->dtype == first->dtype)
        return TN_OK;
    return tn__fail(x->dtype == first->dtype ? TN_ERR_SHAPE : TN_ERR_DTYPE, operation,
                    "rank %d has %s%s, rank 0 %s%s: expected one shape and dtype", rank,
                    tn_dtype_name((tn_dtype)x->dtype), tn__shape_text(x->shape->ndim, x->shape->dim, own),
                    tn_dtype_name((tn_dtype)first->dtype),
                    tn__shape_text(first->shape->ndim, first->shape->dim, other));
}

/* All ranks' nodes into x, once they have been found to fit. */
static tn_status operands(const tn_comm *comm, const char *operation, tn_array *const *arrays, tn__node **x)
{
    tn_status status = arrays ? TN_OK : tn__fail_null(operation, "arrays");
    for (int r = 0; r < comm->place.size && status == TN_OK; r++) {
        x[r] = tn__node_of(arrays[r], operation);
        status = check_operand(comm, operation, x[r], r);
        if (status == TN_OK)
            status = check_same(operation, x[r], x[0], r);
    }
    return status;
}

/* ---- pieces ---- */

/* Elements begin .. end - 1 along the first axis. */
static tn__node *piece(tn__node *x, int64_t begin, int64_t end)
{
    int64_t start[TN_MAX_NDIM] = {begin}, step[TN_MAX_NDIM], dim[TN_MAX_NDIM];
    if (tn__node_is_error(x))
        return x;
    for (int i = 0; i < x->shape->ndim; i++) {
        step[i] = 1;
        dim[i] = i ? x->shape->dim[i] : end - begin;
    }
    return tn__slice_node(x, start, step, dim);
}

/* Element r along the first axis, without that axis. */
static tn__node *element(tn__node *x, int r)
{
    tn__node *one = piece(x, r, r + 1);
    return tn__node_is_error(one) ? one : tn__reshape(one, x->shape->ndim - 1, x->shape->dim + 1);
}

/* Nodes of one dtype behind one another along the first axis, on a device. */
static tn__node *join(int count, tn__node *const *part, const tn__shape *whole, tn__device *device)
{
    if (tn__node_is_error(part[0]) || !whole)
        return whole ? part[0] : tn__failed();
    tn__node *all = tn__const(0, (tn_dtype)part[0]->dtype, whole, device);
    int64_t at = 0;
    for (int i = 0; i < count && !tn__node_is_error(all); i++) {
        tn__node *here = tn__node_is_error(part[i]) ? part[i] : tn__to(part[i], device);
        all = tn__node_is_error(here) ? here : tn__update_along(all, here, 0, at);
        at += tn__node_is_error(here) ? 0 : here->shape->dim[0];
    }
    return all;
}

/* The same of nodes of one shape along a new first axis. */
static tn__node *stack(const tn_comm *comm, tn__node *const *x, tn__device *device)
{
    tn__node *part[comm->place.size];
    int64_t dim[TN_MAX_NDIM + 1] = {comm->place.size};
    int ndim = x[0]->shape->ndim;
    memcpy(dim + 1, x[0]->shape->dim, sizeof *dim * (size_t)ndim);
    const tn__shape *whole = tn__shape_intern(ndim + 1, dim);
    dim[0] = 1;
    for (int r = 0; r < comm->place.size; r++)
        part[r] = tn__reshape(x[r], ndim + 1, dim);
    return join(comm->place.size, part, whole, device);
}

/* ---- reductions ---- */

/* One node a rank, combined on a device. */
static tn__node *combined(const tn_comm *comm, tn_comm_op op, tn__node *const *x, tn__device *device)
{
    static const tn__op by[] = {[TN_COMM_SUM] = TN__OP_ADD,     [TN_COMM_MEAN] = TN__OP_ADD,
                                [TN_COMM_MAX] = TN__OP_MAXIMUM, [TN_COMM_MIN] = TN__OP_MINIMUM,
                                [TN_COMM_PROD] = TN__OP_MULTIPLY};
    tn__node *all = NULL;
    for (int r = 0; r < comm->place.size; r++) {
        tn__node *here = tn__node_is_error(x[r]) ? x[r] : tn__to(x[r], device);
        if (tn__node_is_error(here))
            return here;
        all = all ? tn__binary(by[op], all, here) : here;
        if (tn__node_is_error(all))
            return all;
    }
    return op == TN_COMM_MEAN ? tn__with(TN__OP_DIVIDE, all, comm->place.size) : all;
}

/* On the first device, and from there to all. */
static void reduce_few(const tn_comm *comm, tn_comm_op op, tn__node *const *x, tn__node **result)
{
    tn__node *all = combined(comm, op, x, comm->devices[0]);
    for (int r = 0; r < comm->place.size; r++)
        result[r] = tn__node_is_error(all) ? all : tn__to(all, comm->devices[r]);
}

/* A share on each device, and from there to all. */
static void reduce_many(const tn_comm *comm, tn_comm_op op, tn__node *const *x, tn__node **result)
{
    int size = comm->place.size;
    int64_t elements = x[0]->shape->size;
    const tn__shape *flat = tn__shape_intern(1, &elements), *shape = x[0]->shape;
    tn__node *share[size], *all[size];
    for (int s = 0; s < size; s++) {
        for (int r = 0; r < size; r++)
            all[r] = piece(tn__reshape(x[r], 1, &elements), elements * s / size, elements * (s + 1) / size);
        share[s] = combined(comm, op, all, comm->devices[s]);
    }
    for (int r = 0; r < size; r++) {
        result[r] = join(size, share, flat, comm->devices[r]);
        if (!tn__node_is_error(result[r]))
            result[r] = tn__reshape_like(result[r], shape);
    }
}

/* ---- calls ---- */

/* What a call is about; which of these it reads depends on what it does. */
typedef struct each {
    tn_comm *comm;
    const char *operation;
    tn_array *const *x;
    const tn_array *root_x;
    tn_comm_op op;
    int root;
} each;

static tn_status all_reduce(const each *e, tn__node *const *x, tn__node **result)
{
    tn_status status = tn__comm_check_op(e->operation, e->op, x[0]);
    if (status == TN_OK && (x[0]->shape->size < FEW || e->comm->place.size == 1))
        reduce_few(e->comm, e->op, x, result);
    else if (status == TN_OK)
        reduce_many(e->comm, e->op, x, result);
    return status;
}

static tn_status reduce(const each *e, tn__node *const *x, tn__node **result)
{
    tn_status status = tn__comm_check_op(e->operation, e->op, x[0]);
    if (status == TN_OK)
        result[e->root] = combined(e->comm, e->op, x, e->comm->devices[e->root]);
    return status;
}

static tn_status check_room(const each *e, const tn__node *x)
{
    return x->shape->ndim < TN_MAX_NDIM ? TN_OK
                                        : tn__fail(TN_ERR_SHAPE, e->operation,
                                                   "the result would have more than %d axes", TN_MAX_NDIM);
}

static tn_status all_gather(const each *e, tn__node *const *x, tn__node **result)
{
    tn_status status = check_room(e, x[0]);
    for (int r = 0; r < e->comm->place.size && status == TN_OK; r++)
        result[r] = stack(e->comm, x, e->comm->devices[r]);
    return status;
}

static tn_status gather(const each *e, tn__node *const *x, tn__node **result)
{
    tn_status status = check_room(e, x[0]);
    if (status == TN_OK)
        result[e->root] = stack(e->comm, x, e->comm->devices[e->root]);
    return status;
}

static tn_status broadcast(const each *e, tn__node *const *x, tn__node **result)
{
    for (int r = 0; r < e->comm->place.size; r++)
        result[r] = tn__to(x[e->root], e->comm->devices[r]);
    return TN_OK;
}

static tn_status scatter(const each *e, tn__node *const *x, tn__node **result)
{
    tn_status status = tn__comm_check_shares(e->comm, e->operation, x[e->root]);
    for (int r = 0; r < e->comm->place.size && status == TN_OK; r++) {
        tn__node *own = element(x[e->root], r);
        result[r] = tn__node_is_error(own) ? own : tn__to(own, e->comm->devices[r]);
    }
    return status;
}

/* Elements `rank` of all. */
static void elements(const tn_comm *comm, tn__node *const *x, int rank, tn__node **own)
{
    for (int r = 0; r < comm->place.size; r++)
        own[r] = element(x[r], rank);
}

static tn_status reduce_scatter(const each *e, tn__node *const *x, tn__node **result)
{
    tn__node *own[e->comm->place.size];
    tn_status status = tn__comm_check_op(e->operation, e->op, x[0]);
    if (status == TN_OK)
        status = tn__comm_check_shares(e->comm, e->operation, x[0]);
    for (int r = 0; r < e->comm->place.size && status == TN_OK; r++) {
        elements(e->comm, x, r, own);
        result[r] = combined(e->comm, e->op, own, e->comm->devices[r]);
    }
    return status;
}

static tn_status all_to_all(const each *e, tn__node *const *x, tn__node **result)
{
    int size = e->comm->place.size;
    tn__node *own[size];
    tn_status status = tn__comm_check_shares(e->comm, e->operation, x[0]);
    for (int r = 0; r < size && status == TN_OK; r++) {
        for (int from = 0; from < size; from++)
            own[from] = piece(x[from], r, r + 1);
        result[r] = join(size, own, x[0]->shape, e->comm->devices[r]);
    }
    return status;
}

/* ---- one call for all ranks ---- */

typedef tn_status record(const each *e, tn__node *const *x, tn__node **result);

static tn_status record_nodes(const each *e, record *run, tn__node **x, tn__node **result)
{
    tn_status status = tn__comm_check_peer(e->comm, e->operation, "a root", e->root, false);
    if (status == TN_OK && !e->x) {
        x[e->root] = tn__node_of(e->root_x, e->operation);
        status = check_operand(e->comm, e->operation, x[e->root], e->root);
    } else if (status == TN_OK) {
        status = operands(e->comm, e->operation, e->x, x);
    }
    if (status == TN_OK)
        status = run(e, x, result);
    for (int r = 0; r < e->comm->place.size && status == TN_OK; r++)
        if (result[r] && tn__node_is_error(result[r]))
            status = tn__error_raise(result[r]->error);
    return status;
}

/* Results of all ranks, or of the root alone; errors where it fails. */
static tn_status call(const each *e, record *run, tn_array **result)
{
    int size = e->comm->place.size;
    tn__node *x[size], *made[size];
    memset(x, 0, sizeof x);
    memset(made, 0, sizeof made);
    tn__call call = tn__enter();
    tn_status status = record_nodes(e, run, x, made);
    for (int r = 0; r < size; r++)
        if (status != TN_OK)
            result[r] = tn__failed_array();
        else if (made[r])
            result[r] = tn__leave_array(tn__enter(), made[r]);
    tn__leave(call);
    return status;
}

/* Whether a call can be made at all; else its results are errors. */
static bool usable(tn_comm *comm, const char *operation, const void *x, tn_array **result, tn_status *status)
{
    *status = tn__comm_usable(comm, operation);
    if (*status == TN_OK && (!x || !result))
        *status = tn__fail_null(operation, "arrays");
    for (int r = 0; *status != TN_OK && result && comm && r < comm->place.size; r++)
        result[r] = tn__failed_array();
    return *status == TN_OK;
}

static tn_status one(tn_array *made, tn_array **result)
{
    *result = made;
    return tn_status_of(made);
}

tn_status tn_comm_all_reduce_each(tn_comm *comm, tn_array *const *x, tn_comm_op op, tn_array **result)
{
    tn_status status;
    if (!usable(comm, "all_reduce", x, result, &status))
        return status;
    if (!comm->devices)
        return one(tn_comm_all_reduce(comm, x[0], op), result);
    return call(&(each){.comm = comm, .operation = "all_reduce", .x = x, .op = op}, all_reduce, result);
}

tn_status tn_comm_reduce_scatter_each(tn_comm *comm, tn_array *const *x, tn_comm_op op, tn_array **result)
{
    tn_status status;
    if (!usable(comm, "reduce_scatter", x, result, &status))
        return status;
    if (!comm->devices)
        return one(tn_comm_reduce_scatter(comm, x[0], op), result);
    return call(&(each){.comm = comm, .operation = "reduce_scatter", .x = x, .op = op}, reduce_scatter, result);
}

tn_status tn_comm_all_gather_each(tn_comm *comm, tn_array *const *x, tn_array **result)
{
    tn_status status;
    if (!usable(comm, "all_gather", x, result, &status))
        return status;
    if (!comm->devices)
        return one(tn_comm_all_gather(comm, x[0]), result);
    return call(&(each){.comm = comm, .operation = "all_gather", .x = x}, all_gather, result);
}

tn_status tn_comm_all_to_all_each(tn_comm *comm, tn_array *const *x, tn_array **result)
{
    tn_status status;
    if (!usable(comm, "all_to_all", x, result, &status))
        return status;
    if (!comm->devices)
        return one(tn_comm_all_to_all(comm, x[0]), result);
    return call(&(each){.comm = comm, .operation = "all_to_all", .x = x}, all_to_all, result);
}

tn_status tn_comm_broadcast_each(tn_comm *comm, const tn_array *x, int root, tn_array **result)
{
    tn_status status;
    if (!usable(comm, "broadcast", result, result, &status))
        return status;
    if (!comm->devices)
        return one(tn_comm_broadcast(comm, x, root), result);
    return call(&(each){.comm = comm, .operation = "broadcast", .root_x = x, .root = root}, broadcast, result);
}

tn_status tn_comm_scatter_each(tn_comm *comm, const tn_array *x, int root, tn_array **result)
{
    tn_status status;
    if (!usable(comm, "scatter", result, result, &status))
        return status;
    if (!comm->devices)
        return one(tn_comm_scatter(comm, x, root), result);
    return call(&(each){.comm = comm, .operation = "scatter", .root_x = x, .root = root}, scatter, result);
}

/* The root's result alone. */
static tn_array *call_root(const each *e, record *run)
{
    tn_array *result[e->comm->place.size];
    tn_status status = call(e, run, result);
    return status == TN_OK ? result[e->root] : tn__failed_array();
}

tn_array *tn_comm_reduce_each(tn_comm *comm, tn_array *const *x, tn_comm_op op, int root)
{
    tn_status status = tn__comm_usable(comm, "reduce");
    if (status == TN_OK && !x)
        status = tn__fail_null("reduce", "arrays");
    if (status != TN_OK)
        return tn__failed_array();
    if (!comm->devices)
        return tn_comm_reduce(comm, x[0], op, root);
    return call_root(&(each){.comm = comm, .operation = "reduce", .x = x, .op = op, .root = root}, reduce);
}

tn_array *tn_comm_gather_each(tn_comm *comm, tn_array *const *x, int root)
{
    tn_status status = tn__comm_usable(comm, "gather");
    if (status == TN_OK && !x)
        status = tn__fail_null("gather", "arrays");
    if (status != TN_OK)
        return tn__failed_array();
    if (!comm->devices)
        return tn_comm_gather(comm, x[0], root);
    return call_root(&(each){.comm = comm, .operation = "gather", .x = x, .root = root}, gather);
}
