/* SPDX-License-Identifier: MIT */
/* Windows as columns and back, and the reverses of pooling. */
#include "array/build_parts.h"
#include "nn/pool.h"

#include <inttypes.h>
#include <string.h>

static int64_t product(int count, const int64_t *extent)
{
    int64_t n = 1;
    for (int i = 0; i < count; i++)
        n *= extent[i];
    return n;
}

static tn__node *unfold(tn__node *x, const tn__pool_settings *s)
{
    tn__pooling p;
    x = tn__pooled_operand(s->name, x);
    TN__PASS_ERROR(x);
    if (!tn__pooling_find(s, x->shape->ndim - 2, &x->shape->dim[2], &p))
        return tn__failed();
    tn__node *windows = tn__pooling_windows(x, &p, 0);
    TN__PASS_ERROR(windows);
    int64_t places = product(p.axes, &windows->shape->dim[2]);
    return tn__reshape(windows, 3, (int64_t[]){x->shape->dim[0], x->shape->dim[1] * places, product(p.axes, p.count)});
}

static tn__node *fold(tn__node *x, tn_shape out, const tn__pool_settings *s)
{
    tn__pooling p;
    TN__PASS_ERROR(x);
    if (out.ndim < 1 || out.ndim > TN__POOLED_AXES)
        TN__REFUSE(TN_ERR_SHAPE, s->name, "expected one to three extents of the result, got %d", (int)out.ndim);
    if (tn__shape_check(s->name, out, 1) != TN_OK || !tn__pooling_find(s, out.ndim, out.dim, &p))
        return tn__failed();
    int64_t dim[TN_MAX_NDIM], places = 1, count = product(p.axes, p.count);
    for (int i = 0; i < p.axes; i++) {
        dim[2 + i] = p.window[i].extent;
        if (__builtin_mul_overflow(places, dim[2 + i], &places))
            TN__REFUSE(TN_ERR_SHAPE, s->name, "expected a window of fewer than 2^63 elements");
    }
    char text[TN__SHAPE_TEXT];
    if (x->shape->ndim != 3 || x->shape->dim[2] != count || x->shape->dim[1] % places != 0)
        TN__REFUSE(TN_ERR_SHAPE, s->name,
                   "expected (N, channels times %" PRId64 " elements of a window, %" PRId64 " windows), got shape %s",
                   places, count, tn__shape_text(x->shape->ndim, x->shape->dim, text));
    dim[0] = x->shape->dim[0];
    dim[1] = x->shape->dim[1] / places;
    memcpy(&dim[2 + p.axes], p.count, sizeof *dim * (size_t)p.axes);
    return tn__pooling_fold(tn__pooling_exchanged(tn__reshape(x, 2 + 2 * p.axes, dim), p.axes), &p);
}

/* Extents are found from the windows, not the other way round. */
static tn__node *unpool(tn__node *x, const tn__pool_settings *s)
{
    x = tn__pooled_operand(s->name, x);
    TN__PASS_ERROR(x);
    int axes = x->shape->ndim - 2;
    int64_t kernel[TN__POOLED_AXES], stride[TN__POOLED_AXES], pad[TN__POOLED_AXES], out[TN__POOLED_AXES];
    if (s->kernel.ndim == 0)
        TN__REFUSE(TN_ERR_SHAPE, s->name, "expected a window's extents, got none: TN_SHAPE(2), say");
    if (s->dilation.ndim || s->ceil)
        TN__REFUSE(TN_ERR_VALUE, s->name, "takes a stride and a pad alone; expected no dilation, and ceil to be off");
    if (!tn__extents_of(s->name, "window's extent", s->kernel, axes, 1, 1, kernel) ||
        !tn__extents_of(s->name, "stride", s->stride, axes, 1, 1, stride) ||
        !tn__extents_of(s->name, "pad", s->pad, axes, 0, 0, pad))
        return tn__failed();
    tn__pooling p;
    for (int i = 0; i < axes; i++) {
        int64_t step = s->stride.ndim ? stride[i] : kernel[i], reach, n = x->shape->dim[2 + i];
        if (n == 0 || __builtin_mul_overflow(n - 1, step, &reach) || reach > INT64_MAX / 4 ||
            kernel[i] > INT64_MAX / 4 || pad[i] >= kernel[i] || (out[i] = reach + kernel[i] - 2 * pad[i]) < 1)
            TN__REFUSE(TN_ERR_VALUE, s->name,
                       "%" PRId64 " windows of %" PRId64 " elements along axis %d, with a padding of %" PRId64
                       ": nothing is left; expected elements, and less padding",
                       n, kernel[i], 2 + i, pad[i]);
    }
    if (!tn__pooling_find(s, axes, out, &p))
        return tn__failed();
    return tn__pooling_cover(x, NULL, &p);
}

static tn__node *max_unpool(tn__node *x, tn__node *indices, tn_shape out)
{
    static const char name[] = "max_unpool";
    x = tn__pooled_operand(name, x);
    TN__PASS_ERROR(x);
    TN__PASS_ERROR(indices);
    int64_t extent[TN__POOLED_AXES];
    int axes = x->shape->ndim - 2;
    char text[2][TN__SHAPE_TEXT];
    if (out.ndim == 0 || indices->shape != x->shape)
        TN__REFUSE(TN_ERR_SHAPE, name,
                   "expected indices of x's shape %s, and the result's extents; got %s and %d extents",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text[0]),
                   tn__shape_text(indices->shape->ndim, indices->shape->dim, text[1]), (int)out.ndim);
    if (!tn__extents_of(name, "extent of the result", out, axes, 1, 1, extent))
        return tn__failed();
    tn_shape value = {.ndim = 2 + axes, .dim = {x->shape->dim[0], x->shape->dim[1]}};
    memcpy(&value.dim[2], extent, sizeof *extent * (size_t)axes);
    const tn__shape *shape = tn__shape_make(name, value, (tn_dtype)x->dtype);
    if (!shape)
        return tn__failed();
    int64_t rows = shape->dim[0] * shape->dim[1], from[] = {rows, product(axes, &x->shape->dim[2])};
    tn__node *zeros = tn__reshape(tn__const(0, (tn_dtype)x->dtype, shape, x->device), 2,
                                  (int64_t[]){rows, product(axes, extent)});
    tn__node *placed = tn__scatter_node(TN__OP_SCATTER_SET, zeros, tn__reshape(indices, 2, from),
                                        tn__reshape(x, 2, from), 1);
    return tn__node_is_error(placed) ? placed : tn__reshape_like(placed, shape);
}

/* With strides of 1 where none are given: windows of these functions meet, as a rule. */
static tn__pool_settings settings_of(const char *name, tn_shape kernel, const tn_pool_opts *opts)
{
    tn__pool_settings s = tn__pool_settings_of(name, kernel, opts);
    if (s.stride.ndim == 0)
        s.stride = TN_SHAPE(1);
    return s;
}

tn_array *tn_unfold_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts)
{
    tn__pool_settings s = settings_of("unfold", kernel, opts);
    TN__RETURN(unfold(tn__node_of(x, "unfold"), &s));
}

tn_array *tn_fold_with(const tn_array *columns, tn_shape out, tn_shape kernel, const tn_pool_opts *opts)
{
    tn__pool_settings s = settings_of("fold", kernel, opts);
    TN__RETURN(fold(tn__node_of(columns, "fold"), out, &s));
}

tn_array *tn_unpool_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts)
{
    tn__pool_settings s = tn__pool_settings_of("unpool", kernel, opts);
    TN__RETURN(unpool(tn__node_of(x, "unpool"), &s));
}

tn_array *tn_max_unpool(const tn_array *x, const tn_array *indices, tn_shape out)
{
    TN__RETURN(max_unpool(tn__node_of(x, "max_unpool"), tn__node_of(indices, "max_unpool"), out));
}
