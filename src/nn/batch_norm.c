/* SPDX-License-Identifier: MIT */
/* Batch normalization: the functions, and the layer, which keeps running statistics. */
#include <inttypes.h>
#include <math.h>
#include <tanso/normalization.h>

#include "comm/comm.h"
#include "core/options.h"
#include "nn/activation.h"
#include "nn/layer.h"

/* ---- the function ---- */

/* Statistics of each channel, with extent 1 along the other axes; of `count` elements each, or, over several ranks, of
 * as many as make `unbiased` what the variance is multiplied by for the divisor n - 1. */
typedef struct moments {
    tn__node *mean, *variance, *unbiased;
    int64_t count;
} moments;

static moments moments_of(tn__node *wide, int axis)
{
    uint32_t others = ((1u << wide->shape->ndim) - 1) & ~(1u << axis);
    moments m = {.count = 1};
    for (int i = 0; i < wide->shape->ndim; i++)
        m.count *= i == axis ? 1 : wide->shape->dim[i];
    m.mean = others ? tn__average(wide, others) : wide;
    m.variance = others ? times(tn__deviations(wide, others), 1 / (double)m.count) : like(wide, 0);
    return m;
}

/* Columns begin .. begin + count - 1 of a row a rank. */
static tn__node *columns(tn__node *rows, int64_t begin, int64_t count)
{
    if (tn__node_is_error(rows))
        return rows;
    return tn__slice_node(rows, (int64_t[]){0, begin}, (int64_t[]){1, 1}, (int64_t[]){rows->shape->dim[0], count});
}

/* This rank's moments as a vector: means, variances, and of how many elements they are. */
static tn__node *packed(const moments *own, int64_t channels)
{
    const tn__node *like = own->mean;
    const tn__shape *row = tn__shape_intern(1, (int64_t[]){2 * channels + 1});
    const tn__shape *one = tn__shape_intern(1, (int64_t[]){1});
    if (!row || !one)
        return tn__failed();
    tn__node *vector = tn__const(0, (tn_dtype)like->dtype, row, like->device);
    vector = tn__update_along(vector, tn__reshape(own->mean, 1, &channels), 0, 0);
    vector = tn__update_along(vector, tn__reshape(own->variance, 1, &channels), 0, channels);
    tn__node *count = tn__const((double)own->count, (tn_dtype)like->dtype, one, like->device);
    return tn__update_along(vector, count, 0, 2 * channels);
}

/* All ranks' moments come together, and are combined as those of groups are: by the groups' sizes, the variance with
 * the distance of each group's mean. */
static moments moments_over_ranks(uint32_t number, const moments *own)
{
    const tn__collective_call gather = {.kind = TN__ALL_GATHER};
    int64_t channels = own->mean->shape->size;
    tn_comm *comm = tn__comm_numbered(number);
    if (!comm) {
        tn__fail(TN_ERR_STATE, "batch_norm", "the communicator that its statistics go over has been freed");
        return (moments){.variance = tn__failed()};
    }
    tn__node *mine = packed(own, channels);
    const tn__shape *rows = tn__shape_intern(2, (int64_t[]){comm->place.size, 2 * channels + 1});
    if (tn__node_is_error(mine) || !rows)
        return (moments){.variance = rows ? mine : tn__failed()};
    tn__node *all = tn__collective(comm, &gather, mine, (tn_dtype)mine->dtype, rows);
    if (tn__node_is_error(all))
        return (moments){.variance = all};
    tn__node *means = columns(all, 0, channels), *counts = columns(all, 2 * channels, 1);
    tn__node *total = tn__reduce(TN__OP_SUM, counts, 1u << 0), *part = over(counts, total);
    tn__node *mean = tn__reduce(TN__OP_SUM, mul(part, means), 1u << 0), *away = sub(means, mean);
    tn__node *variance = mul(part, add(columns(all, channels, channels), mul(away, away)));
    return (moments){.mean = tn__reshape_like(mean, own->mean->shape),
                     .variance = tn__reshape_like(tn__reduce(TN__OP_SUM, variance, 1u << 0), own->mean->shape),
                     .unbiased = tn__reshape_like(over(total, with(MAXIMUM, plus(total, -1), 1)), tn__shape_scalar())};
}

/* The axis of the channels; -1 and latched if there is none, or a channel has no elements. */
static int channel_axis(const char *operation, const tn__node *x, int64_t axis, bool statistics)
{
    int found = axis < -TN_MAX_NDIM || axis >= TN_MAX_NDIM ? -1 : (int)axis;
    if (found != axis || (found = tn__axis_check(operation, found, x->shape->ndim)) < 0) {
        tn__fail(TN_ERR_INDEX, operation, "no axis %" PRId64 " for the channels: the input has %d", axis,
                 x->shape->ndim);
        return -1;
    }
    if (statistics && x->shape->size == 0 && x->shape->dim[found] > 0) {
        char text[TN__SHAPE_TEXT];
        tn__fail(TN_ERR_SHAPE, operation, "a channel of an input %s has no elements, and so no mean",
                 tn__shape_text(x->shape->ndim, x->shape->dim, text));
        return -1;
    }
    return found;
}

/* A vector with one element a channel, along their axis and in a dtype; NULL stays. */
static tn__node *per_channel(const char *operation, const char *what, const tn_array *vector, const tn__node *x,
                             int axis, tn_dtype dtype)
{
    tn__node *v = vector ? tn__only_floating(vector, operation) : NULL;
    if (!v || tn__node_is_error(v))
        return v;
    char text[TN__SHAPE_TEXT];
    if (v->shape->ndim != 1 || v->shape->dim[0] != x->shape->dim[axis])
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected %s of shape (%" PRId64 ",), one a channel; got %s", what,
                   x->shape->dim[axis], tn__shape_text(v->shape->ndim, v->shape->dim, text));
    return tn__cast(tn__along(v, axis, x->shape->ndim), dtype);
}

/* (wide - mean) rsqrt(variance + eps) gamma + beta in x's dtype. */
static tn__node *normalized(const tn__node *x, tn__node *wide, const moments *m, tn__node *gamma, tn__node *beta,
                            double eps)
{
    tn__node *scale = map(RSQRT, plus(m->variance, eps));
    if (gamma)
        scale = mul(scale, gamma);
    tn__node *y = mul(sub(wide, m->mean), scale);
    return tn__cast(beta ? add(y, beta) : y, (tn_dtype)x->dtype);
}

static tn_array *batch_norm_function(const char *operation, const tn_array *in, const tn_array *gamma,
                                     const tn_array *beta, const tn_array *mean, const tn_array *var, bool fixed,
                                     const tn_batch_norm_opts *opts)
{
    tn__call call = tn__enter();
    tn__node *x = tn__only_floating(in, operation);
    double eps = TN__OPTION(opts, eps, 1e-5);
    if (!(eps >= 0) || !isfinite(eps))
        x = tn__number_error(operation, "eps >= 0", eps);
    if (tn__node_is_error(x))
        return tn__leave_array(call, x);
    int axis = channel_axis(operation, x, TN__OPTION(opts, axis, 1), !fixed);
    if (axis < 0)
        return tn__leave_error(call);
    tn__node *wide = tn__widened(x);
    tn_dtype dtype = (tn_dtype)wide->dtype;
    tn__node *parts[] = {per_channel(operation, "gamma", gamma, x, axis, dtype),
                         per_channel(operation, "beta", beta, x, axis, dtype),
                         fixed ? per_channel(operation, "mean", mean, x, axis, dtype) : NULL,
                         fixed ? per_channel(operation, "var", var, x, axis, dtype) : NULL};
    tn__node *error = tn__first_error(4, parts);
    if (error)
        return tn__leave_array(call, error);
    moments m = fixed ? (moments){.mean = parts[2], .variance = parts[3]} : moments_of(wide, axis);
    return tn__leave_array(call, normalized(x, wide, &m, parts[0], parts[1], eps));
}

tn_array *tn_batch_norm_function_with(const tn_array *x, const tn_array *gamma, const tn_array *beta,
                                      const tn_batch_norm_opts *opts)
{
    return batch_norm_function("batch_norm", x, gamma, beta, NULL, NULL, false, opts);
}

tn_array *tn_fixed_batch_norm_with(const tn_array *x, const tn_array *gamma, const tn_array *beta,
                                   const tn_array *mean, const tn_array *var, const tn_batch_norm_opts *opts)
{
    if (!mean || !var) {
        tn__fail(TN_ERR_VALUE, "fixed_batch_norm", "expected statistics, got NULL for the %s", mean ? "var" : "mean");
        return tn__failed_array();
    }
    return batch_norm_function("fixed_batch_norm", x, gamma, beta, mean, var, true, opts);
}

/* ---- the layer ---- */

/* Slots that come to be in this order; those left out have the place -1. */
typedef struct batch_norm {
    int64_t axis;
    double eps, momentum, rmax, dmax;
    bool cumulative;
    int gamma, beta, mean, variance, count;
    uint32_t comm; /* the number of the communicator that statistics go over; 0: this process's own */
} batch_norm;

static tn__node *vector_at(const tn_layer *layer, int slot, int axis, const tn__node *wide)
{
    return slot < 0 ? NULL
                    : tn__cast(tn__along(tn__slot_node(layer, slot), axis, wide->shape->ndim), (tn_dtype)wide->dtype);
}

static tn_status write_slot(tn_layer *layer, int slot, tn__node *value)
{
    tn_array *array = layer->slots[slot].value;
    value = tn__assignable("batch_norm", tn__array_node(array), value);
    return tn__node_is_error(value) ? tn__error_raise(value->error) : tn__array_write(array, value);
}

/* A running statistic follows the batch's, by a share of the difference. */
static tn_status follow(tn_layer *layer, int slot, tn__node *batch, tn__node *share)
{
    tn__node *running = tn__slot_node(layer, slot);
    batch = tn__cast(tn__reshape_like(batch, running->shape), (tn_dtype)running->dtype);
    tn__node *now = share ? add(running, mul(tn__cast(share, (tn_dtype)running->dtype), sub(batch, running))) : batch;
    return write_slot(layer, slot, now);
}

static tn_status update_statistics(tn_layer *layer, const batch_norm *b, const moments *m)
{
    double unbiased = (double)m->count / (m->count > 1 ? (double)m->count - 1 : 1);
    tn__no_grad_depth++;
    tn__node *variance = m->unbiased ? mul(m->variance, m->unbiased) : times(m->variance, unbiased);
    tn__node *count = plus(tn__slot_node(layer, b->count), 1);
    tn__node *mean = tn__slot_node(layer, b->mean);
    tn__node *share = b->cumulative ? map(RECIPROCAL, tn__cast(count, (tn_dtype)mean->dtype))
                                    : tn__const(b->momentum, (tn_dtype)mean->dtype, count->shape, count->device);
    tn_status status = follow(layer, b->mean, m->mean, share);
    if (status == TN_OK)
        status = follow(layer, b->variance, variance, share);
    if (status == TN_OK)
        status = write_slot(layer, b->count, count);
    tn__no_grad_depth--;
    return status;
}

/* Batch renormalization: y r + d, r and d constants of differentiation, is (x - running mean) over the running
 * deviation as far as the bounds allow. */
static tn__node *renormalized(const batch_norm *b, tn__node *y, const moments *m, const moments *running)
{
    tn__no_grad_depth++;
    tn__node *deviation = map(SQRT, plus(running->variance, b->eps));
    tn__node *r = over(map(SQRT, plus(m->variance, b->eps)), deviation);
    tn__node *d = over(sub(m->mean, running->mean), deviation);
    r = with(MINIMUM, with(MAXIMUM, r, 1 / b->rmax), b->rmax);
    d = with(MINIMUM, with(MAXIMUM, d, -b->dmax), b->dmax);
    tn__no_grad_depth--;
    return add(mul(y, r), d);
}

static tn__node *train_forward(tn_layer *layer, const batch_norm *b, tn__node *x, tn__node *wide, int axis,
                               tn__node *gamma, tn__node *beta)
{
    moments m = moments_of(wide, axis);
    TN__PASS_ERROR(m.variance);
    if (b->comm)
        m = moments_over_ranks(b->comm, &m);
    TN__PASS_ERROR(m.variance);
    tn__node *y;
    if (b->rmax > 0) {
        moments running = {.mean = vector_at(layer, b->mean, axis, wide),
                           .variance = vector_at(layer, b->variance, axis, wide)};
        y = renormalized(b, normalized(wide, wide, &m, NULL, NULL, b->eps), &m, &running);
        y = gamma ? mul(y, gamma) : y;
        y = tn__cast(beta ? add(y, beta) : y, (tn_dtype)x->dtype);
    } else {
        y = normalized(x, wide, &m, gamma, beta, b->eps);
    }
    TN__PASS_ERROR(y);
    bool follows = b->count >= 0 && !layer->evaluating;
    return !follows || update_statistics(layer, b, &m) == TN_OK ? y : tn__failed();
}

static tn__node *batch_norm_forward(tn_layer *layer, tn__node *x)
{
    const batch_norm *b = layer->user.data;
    bool fixed = layer->evaluating && b->count >= 0;
    if (!tn_dtype_is_float((tn_dtype)x->dtype))
        TN__REFUSE(TN_ERR_DTYPE, "batch_norm", "expected a floating input, got %s: cast it with tn_cast",
                   tn_dtype_name((tn_dtype)x->dtype));
    int axis = channel_axis("batch_norm", x, b->axis, !fixed);
    if (axis < 0)
        return tn__failed();
    int64_t channels = x->shape->dim[axis];
    if (layer->slot_count > 0 && !layer->slots[0].value && tn__slots_infer(layer, channels, x->device) != TN_OK)
        return tn__failed();
    char text[TN__SHAPE_TEXT];
    if (layer->slot_count > 0 && layer->slots[0].shape.dim[0] != channels)
        TN__REFUSE(TN_ERR_SHAPE, "batch_norm", "expected inputs with the %" PRId64 " channels along axis %d, got %s",
                   layer->slots[0].shape.dim[0], axis, tn__shape_text(x->shape->ndim, x->shape->dim, text));
    tn__node *wide = tn__widened(x);
    tn__node *gamma = vector_at(layer, b->gamma, axis, wide), *beta = vector_at(layer, b->beta, axis, wide);
    if (!fixed)
        return train_forward(layer, b, x, wide, axis, gamma, beta);
    moments m = {.mean = vector_at(layer, b->mean, axis, wide), .variance = vector_at(layer, b->variance, axis, wide)};
    return normalized(x, wide, &m, gamma, beta, b->eps);
}

static const tn__layer_kind batch_norm_kind = {.name = "batch_norm", .forward = batch_norm_forward};

/* Adds a slot unless it is left out, and notes its place. */
static tn_status add_slot(tn_layer *layer, bool wanted, int *place, const char *name, int64_t channels,
                          const tn_batch_norm_opts *opts, tn_init_kind init, bool persistent)
{
    *place = wanted ? (int)layer->slot_count : -1;
    if (!wanted)
        return TN_OK;
    tn_dtype dtype = opts && opts->dtype ? opts->dtype : TN_FLOAT32;
    tn_shape shape = {.ndim = 1, .dim = {channels > 0 ? channels : -1}};
    return persistent ? tn__slot_add_persistent(layer, name, shape, dtype, (tn_init){.kind = init})
                      : tn__slot_add(layer, name, shape, dtype, (tn_init){.kind = init});
}

static tn_status add_slots(tn_layer *layer, batch_norm *b, int64_t channels, const tn_batch_norm_opts *opts)
{
    bool running = !(opts && opts->no_running);
    tn_status status = add_slot(layer, !(opts && opts->no_gamma), &b->gamma, "gamma", channels, opts, TN_INIT_ONES,
                                false);
    if (status == TN_OK)
        status = add_slot(layer, !(opts && opts->no_beta), &b->beta, "beta", channels, opts, TN_INIT_ZEROS, false);
    if (status == TN_OK)
        status = add_slot(layer, running, &b->mean, "avg_mean", channels, opts, TN_INIT_ZEROS, true);
    if (status == TN_OK)
        status = add_slot(layer, running, &b->variance, "avg_var", channels, opts, TN_INIT_ONES, true);
    b->count = running ? (int)layer->slot_count : -1;
    if (status == TN_OK && running)
        status = tn__slot_add_persistent(layer, "N", (tn_shape){.ndim = 0}, TN_INT64,
                                         (tn_init){.kind = TN_INIT_ZEROS});
    return status;
}

static tn__error *refusal(int64_t channels, const tn_batch_norm_opts *opts)
{
    static const char name[] = "batch_norm";
    double eps = TN__OPTION(opts, eps, 1e-5), momentum = TN__OPTION(opts, momentum, 0.1);
    if (channels < 0 || !(eps >= 0) || !isfinite(eps))
        return tn__error_new(TN_ERR_VALUE, name,
                             "expected channels >= 0 (0: inferred) and eps >= 0, got %" PRId64 " and %g", channels,
                             eps);
    if (!(momentum >= 0 && momentum <= 1))
        return tn__error_new(TN_ERR_VALUE, name, "expected a momentum from 0 to 1, got %g", momentum);
    if (opts && opts->dtype && !tn_dtype_is_float(opts->dtype))
        return tn__error_new(TN_ERR_DTYPE, name, "parameters are floating, got %s", tn_dtype_name(opts->dtype));
    if (opts && (opts->rmax != 0 || opts->dmax != 0) && !(opts->rmax >= 1 && opts->dmax >= 0))
        return tn__error_new(TN_ERR_VALUE, name, "expected rmax >= 1 and dmax >= 0, got %g and %g", opts->rmax,
                             opts->dmax);
    if (opts && opts->rmax > 0 && opts->no_running)
        return tn__error_new(TN_ERR_VALUE, name, "batch renormalization is toward running statistics: without "
                                                 ".no_running");
    return NULL;
}

tn_layer *tn_batch_norm_with(int64_t channels, const tn_batch_norm_opts *opts)
{
    tn__error *error = refusal(channels, opts);
    if (error)
        return tn__layer_error(error);
    tn_layer *layer = tn__layer_make(&batch_norm_kind);
    if (layer->is_static)
        return layer;
    batch_norm *b = tn__layer_data(layer, sizeof *b);
    if (!b)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    b->axis = TN__OPTION(opts, axis, 1);
    b->eps = TN__OPTION(opts, eps, 1e-5);
    b->momentum = TN__OPTION(opts, momentum, 0.1);
    b->cumulative = opts && opts->cumulative;
    b->rmax = opts ? opts->rmax : 0;
    b->dmax = opts ? opts->dmax : 0;
    return tn__layer_finish(layer, add_slots(layer, b, channels, opts));
}

/* ---- over several ranks ---- */

static void share(tn_layer *layer, uint32_t number)
{
    if (layer->kind == &batch_norm_kind && layer->user.data)
        ((batch_norm *)layer->user.data)->comm = number;
    for (size_t i = 0; i < layer->child_count; i++)
        share(layer->children[i].layer, number);
}

tn_status tn_layer_share_statistics(tn_layer *layer, tn_comm *comm)
{
    TN__NO_PLACE();
    if (!layer)
        return tn__fail_null("layer_share_statistics", "a layer");
    tn_status status = tn__layer_raise(layer);
    if (status == TN_OK)
        status = tn__comm_of_processes(comm, "layer_share_statistics");
    if (status == TN_OK)
        share(layer, comm->place.size > 1 ? comm->number : 0);
    return status;
}

static tn_status average(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer, (void)path;
    const tn__collective_call sum = {.kind = TN__ALL_REDUCE};
    tn_comm *comm = user;
    if (!slot->persistent || !slot->value || !tn_dtype_is_float(tn_dtype_of(slot->value)))
        return TN_OK;
    tn__call call = tn__enter();
    tn__node *own = tn__array_node(slot->value);
    tn__node *mean = tn__collective(comm, &sum, own, (tn_dtype)own->dtype, own->shape);
    mean = tn__node_is_error(mean) ? mean : with(DIVIDE, mean, comm->place.size);
    tn_status status = tn__node_is_error(mean) ? tn__error_raise(mean->error) : tn__array_write(slot->value, mean);
    tn__leave(call);
    return status;
}

tn_status tn_layer_average_persistents(tn_layer *layer, tn_comm *comm)
{
    TN__NO_PLACE();
    if (!layer)
        return tn__fail_null("layer_average_persistents", "a layer");
    tn_status status = tn__layer_raise(layer);
    if (status == TN_OK)
        status = tn__comm_of_processes(comm, "layer_average_persistents");
    if (status != TN_OK || comm->place.size == 1)
        return status;
    tn__no_grad_depth++;
    status = tn__visit_slots(layer, "", average, comm);
    tn__no_grad_depth--;
    return status;
}
