/* SPDX-License-Identifier: MIT */
/* Operations on whole rows: sorting, scans, searching; and the axis that they work along. */
#include "array/build_parts.h"

bool tn__native(const tn__device *device, tn__op op, tn_dtype dtype, const tn__shape *shape)
{
    return device->capabilities.operations || device->capabilities.shapes_only ||
           (device->ops->supports && device->ops->supports((tn__device *)device, (int)op, dtype, shape));
}

static tn__node *on_host(tn__op op, tn_dtype dtype, const tn__shape *shape, int arity, tn__node *const *in,
                         tn__attr attr)
{
    tn__device *device = in[0]->device, *host = tn__device_get((tn_device){TN_DEVICE_CPU, 0});
    if (!host)
        return tn__failed();
    if (!tn__engine.transfer)
        TN__REFUSE(TN_ERR_UNSUPPORTED, tn__ops[op].name,
                   "is computed on the CPU, and moving operands from %s needs the engine", device->name);
    tn__node *there[TN__MAX_ARITY];
    for (int i = 0; i < arity; i++) {
        there[i] = tn__to_at_once(in[i], host);
        TN__PASS_ERROR(there[i]);
    }
    tn__node *result = tn__apply(op, dtype, shape, arity, there, attr);
    TN__PASS_ERROR(result);
    return tn__to_at_once(result, device);
}

tn__node *tn__apply_anywhere(tn__op op, tn_dtype dtype, const tn__shape *shape, int arity, tn__node *const *in,
                             tn__attr attr)
{
    bool here = tn__native(in[0]->device, op, (tn_dtype)in[0]->dtype, in[0]->shape);
    return (here ? tn__apply : on_host)(op, dtype, shape, arity, in, attr);
}

tn__node *tn__sort_scan(tn__op op, tn__node *a, tn__node *b)
{
    TN__PASS_ERROR(a);
    tn__node *in[] = {tn__strong(a), b ? tn__strong(b) : NULL};
    for (int i = 0; i < tn__ops[op].arity; i++)
        TN__PASS_ERROR(in[i]);
    tn_dtype dtype = tn__ops[op].props & TN_ARG ? TN_INT64 : (tn_dtype)in[0]->dtype;
    return tn__apply_anywhere(op, dtype, in[b != NULL]->shape, tn__ops[op].arity, in, (tn__attr){.raw = {0}});
}

tn__node *tn__nonzero(tn__node *mask, int64_t count)
{
    TN__PASS_ERROR(mask);
    const tn__shape *shape = tn__shape_make("nonzero", (tn_shape){.ndim = 1, .dim = {count}}, TN_INT64);
    return shape ? tn__apply_anywhere(TN__OP_NONZERO, TN_INT64, shape, 1, &mask, (tn__attr){.raw = {0}}) : tn__failed();
}

tn__node *tn__histogram(tn__node *edges, tn__node *values)
{
    TN__PASS_ERROR(edges);
    TN__PASS_ERROR(values);
    tn__node *in[] = {edges, values};
    bool weak;
    tn_dtype dtype = tn__common_dtype(2, in, &weak);
    if (tn_dtype_is_complex(dtype))
        TN__REFUSE(TN_ERR_DTYPE, "histogram",
                   "complex numbers lie in no bins; pass tn_abs, tn_real or tn_imag of them");
    tn__device *device = tn__common_device("histogram", 2, in);
    if (!device)
        return tn__failed();
    in[0] = tn__adapt(edges, dtype, edges->shape, device);
    in[1] = tn__reshape(tn__adapt(values, dtype, values->shape, device), 1, &values->shape->size);
    for (int i = 0; i < 2; i++)
        TN__PASS_ERROR(in[i]);
    const tn__shape *shape =
        tn__shape_make("histogram", (tn_shape){.ndim = 1, .dim = {edges->shape->dim[0] - 1}}, TN_INT64);
    return shape ? tn__apply_anywhere(TN__OP_HISTOGRAM, TN_INT64, shape, 2, in, (tn__attr){.raw = {0}}) : tn__failed();
}

tn__node *tn__reverse_rows(tn__node *a)
{
    TN__PASS_ERROR(a);
    int last = a->shape->ndim - 1;
    int64_t start[TN_MAX_NDIM] = {0}, step[TN_MAX_NDIM];
    for (int i = 0; i <= last; i++)
        step[i] = i == last ? -1 : 1;
    start[last] = a->shape->dim[last] - 1;
    return a->shape->size == 0 ? a : tn__slice_node(a, start, step, a->shape->dim);
}

tn__node *tn__axis_to_last(tn__node *a, int axis)
{
    TN__PASS_ERROR(a);
    uint8_t perm[TN_MAX_NDIM] = {0};
    int ndim = a->shape->ndim;
    for (int i = 0, n = 0; i < ndim; i++)
        perm[i == axis ? ndim - 1 : n++] = (uint8_t)i;
    return tn__permute(a, perm);
}

tn__node *tn__axis_from_last(tn__node *a, int axis)
{
    TN__PASS_ERROR(a);
    uint8_t perm[TN_MAX_NDIM] = {0};
    int ndim = a->shape->ndim;
    for (int i = 0, n = 0; i < ndim; i++)
        perm[i] = (uint8_t)(i == axis ? ndim - 1 : n++);
    return tn__permute(a, perm);
}
