/* SPDX-License-Identifier: MIT */
/* Pooling: reductions over the places of windows. */
#include "nn/pool.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "array/build_parts.h"
#include "core/options.h"
#include "nn/functions.h"

/* ---- windows ---- */

tn__pool_settings tn__pool_settings_of(const char *name, tn_shape kernel, const tn_pool_opts *opts)
{
    tn__pool_settings s = {.name = name, .kernel = kernel};
    if (opts) {
        s.stride = opts->stride;
        s.pad = opts->pad;
        s.dilation = opts->dilation;
        s.ceil = opts->ceil;
        s.exclude_pad = opts->exclude_pad;
        if (!TN__SHAPE_GIVEN(name, opts, stride) || !TN__SHAPE_GIVEN(name, opts, pad) ||
            !TN__SHAPE_GIVEN(name, opts, dilation))
            s.pad.ndim = -1; /* which is refused behind that */
    }
    return s;
}

tn__node *tn__pooled_operand(const char *name, tn__node *x)
{
    TN__PASS_ERROR(x);
    x = tn__strong(x);
    TN__PASS_ERROR(x);
    char text[TN__SHAPE_TEXT];
    if (x->shape->ndim < 3 || x->shape->ndim > 2 + TN__POOLED_AXES)
        TN__REFUSE(TN_ERR_SHAPE, name, "expected (N, channels, extents) with one to three extents, got shape %s",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text));
    if (!tn_dtype_is_float((tn_dtype)x->dtype) || tn_dtype_is_complex((tn_dtype)x->dtype))
        TN__REFUSE(TN_ERR_DTYPE, name, "expected a floating operand, got %s: cast it with tn_cast",
                   tn_dtype_name((tn_dtype)x->dtype));
    return x;
}

/* Windows along axis i, whose other numbers are there. */
static bool count_windows(const tn__pool_settings *s, tn__pooling *p, int i)
{
    const tn__window_axis *w = &p->window[i];
    int64_t covered, padded, step = w->step;
    if (__builtin_mul_overflow(w->extent - 1, w->spread, &covered) || covered > INT64_MAX / 4)
        covered = INT64_MAX / 4;
    covered++;
    if (p->pad[i] >= covered) {
        tn__fail(TN_ERR_VALUE, s->name,
                 "padding of %" PRId64 " elements beside windows of %" PRId64
                 "; expected fewer, so that no window lies in the padding",
                 p->pad[i], covered);
        return false;
    }
    padded = p->extent[i] + 2 * p->pad[i];
    if (covered > padded || p->extent[i] == 0) {
        tn__fail(TN_ERR_SHAPE, s->name,
                 "a window of %" PRId64 " elements is larger than axis %d, of extent %" PRId64 " with its padding",
                 covered, 2 + i, padded);
        return false;
    }
    p->count[i] = (padded - covered) / step + 1;
    if (s->ceil && (padded - covered) % step && p->count[i] * step < p->extent[i] + p->pad[i])
        p->count[i]++;
    p->reached[i] = (p->count[i] - 1) * step + covered;
    return true;
}

bool tn__pooling_find(const tn__pool_settings *s, int axes, const int64_t *extent, tn__pooling *p)
{
    int64_t kernel[TN__POOLED_AXES], stride[TN__POOLED_AXES], spread[TN__POOLED_AXES];
    *p = (tn__pooling){.axes = axes};
    memcpy(p->extent, extent, sizeof *extent * (size_t)axes);
    if (s->kernel.ndim == 0)
        return tn__fail(TN_ERR_SHAPE, s->name, "expected a window's extents, got none: TN_SHAPE(2), say") == TN_OK;
    if (!tn__extents_of(s->name, "window's extent", s->kernel, axes, 1, 1, kernel) ||
        !tn__extents_of(s->name, "stride", s->stride, axes, 1, 1, stride) ||
        !tn__extents_of(s->name, "pad", s->pad, axes, 0, 0, p->pad) ||
        !tn__extents_of(s->name, "dilation", s->dilation, axes, 1, 1, spread))
        return false;
    for (int i = 0; i < axes; i++) {
        p->window[i] = (tn__window_axis){2 + i, kernel[i], s->stride.ndim ? stride[i] : kernel[i], spread[i]};
        if (!count_windows(s, p, i))
            return false;
    }
    return true;
}

/* ---- reductions of them ---- */

/* The windows of x that the settings say, each reduced. */
static tn__node *reduced(tn__op op, tn__node *x, const tn__pool_settings *s, tn__pooling *p)
{
    TN__PASS_ERROR(x);
    return tn__pooling_find(s, x->shape->ndim - 2, &x->shape->dim[2], p) ? tn__pooled(op, x, p) : tn__failed();
}

tn__node *tn__max_pool(tn__node *x, const tn__pool_settings *s)
{
    tn__pooling p;
    return reduced(TN__OP_MAX, tn__pooled_operand(s->name, x), s, &p);
}

/* Where the padding is not counted, or a window goes over the end of it: how many elements of each do count, a product
 * of a number an axis. */
static tn__node *counted(const tn__pooling *p, const tn__pool_settings *s, tn__node *sum)
{
    tn__node *count = NULL;
    for (int i = 0; i < p->axes; i++) {
        int64_t length = p->extent[i] + (s->exclude_pad ? 0 : 2 * p->pad[i]), start = s->exclude_pad ? -p->pad[i] : 0;
        const tn__shape *shape = tn__shape_make(s->name, (tn_shape){1, {length}}, (tn_dtype)sum->dtype);
        if (!shape)
            return tn__failed();
        tn__node *ones = tn__const(1, (tn_dtype)sum->dtype, shape, sum->device);
        tn__window_axis window = p->window[i];
        window.axis = 0;
        ones = tn__windows(tn__framed(ones, &start, &p->reached[i], 0), 1, &window);
        ones = tn__reduce(TN__OP_SUM, ones, 2);
        int64_t dim[TN__POOLED_AXES] = {p->count[i], 1, 1};
        ones = tn__reshape(ones, p->axes - i, dim);
        count = count ? tn__binary(TN__OP_MULTIPLY, count, ones) : ones;
    }
    return count;
}

tn__node *tn__average_pool(tn__node *x, const tn__pool_settings *s)
{
    tn__pooling p;
    x = tn__pooled_operand(s->name, x);
    tn__node *sum = reduced(TN__OP_SUM, tn__widened(x), s, &p);
    TN__PASS_ERROR(sum);
    double elements = 1;
    bool alike = true;
    for (int i = 0; i < p.axes; i++) {
        elements *= (double)p.window[i].extent;
        alike = alike && p.reached[i] <= p.extent[i] + 2 * p.pad[i] && !(s->exclude_pad && p.pad[i]);
    }
    sum = alike ? tn__with(TN__OP_DIVIDE, sum, elements) : tn__binary(TN__OP_DIVIDE, sum, counted(&p, s, sum));
    return tn__cast(sum, (tn_dtype)x->dtype);
}

static tn__node *sum_pool(tn__node *x, const tn__pool_settings *s)
{
    tn__pooling p;
    x = tn__pooled_operand(s->name, x);
    tn__node *sum = reduced(TN__OP_SUM, tn__widened(x), s, &p);
    return tn__node_is_error(sum) ? sum : tn__cast(sum, (tn_dtype)x->dtype);
}

static tn__node *lp_pool(tn__node *x, double power, const tn__pool_settings *s)
{
    if (!(power > 0))
        TN__REFUSE(TN_ERR_VALUE, s->name, "expected p > 0, got %g", power);
    x = tn__pooled_operand(s->name, x);
    TN__PASS_ERROR(x);
    tn__node *size = tn__unary(TN__OP_ABS, tn__widened(x));
    if (isinf(power))
        return tn__cast(tn__max_pool(size, s), (tn_dtype)x->dtype);
    tn__pooling p;
    size = power == 1 ? size : tn__with(TN__OP_POWER, size, power);
    tn__node *sum = reduced(TN__OP_SUM, size, s, &p);
    return tn__cast(power == 1 ? sum : tn__root_of_sum(sum, 1 / power), (tn_dtype)x->dtype);
}

/* The place in a window says how far along each axis the element is from the window's first one. */
static tn__node *indices_of(tn__node *x, const tn__pool_settings *s)
{
    tn__pooling p;
    tn__node *place = reduced(TN__OP_ARGMAX, tn__pooled_operand(s->name, x), s, &p);
    TN__PASS_ERROR(place);
    tn__node *index = tn__const_like(place, 0);
    double behind = 1;
    for (int i = 1; i < p.axes; i++)
        behind *= (double)p.window[i].extent;
    for (int i = 0; i < p.axes; i++) {
        tn__node *along = tn__with(TN__OP_REMAINDER, tn__with(TN__OP_FLOOR_DIVIDE, place, behind),
                                   (double)p.window[i].extent);
        tn__node *first = tn__with(TN__OP_MULTIPLY, tn__iota(place->shape, 2 + i, place->device),
                                   (double)p.window[i].step);
        along = tn__with(TN__OP_MULTIPLY, along, (double)p.window[i].spread);
        along = tn__with(TN__OP_SUBTRACT, tn__binary(TN__OP_ADD, first, along), (double)p.pad[i]);
        index = tn__binary(TN__OP_ADD, tn__with(TN__OP_MULTIPLY, index, (double)p.extent[i]), along);
        behind = i + 1 < p.axes ? behind / (double)p.window[i + 1].extent : 1;
    }
    return index;
}

#define POOL(function, name, of) \
    tn_array *function(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts) \
    { \
        tn__pool_settings s = tn__pool_settings_of(name, kernel, opts); \
        TN__RETURN(of(tn__node_of(x, name), &s)); \
    }
POOL(tn_max_pool_with, "max_pool", tn__max_pool)
POOL(tn_average_pool_with, "average_pool", tn__average_pool)
POOL(tn_sum_pool_with, "sum_pool", sum_pool)
POOL(tn_max_pool_indices_with, "max_pool_indices", indices_of)

tn_array *tn_lp_pool_with(const tn_array *x, double p, tn_shape kernel, const tn_pool_opts *opts)
{
    tn__pool_settings s = tn__pool_settings_of("lp_pool", kernel, opts);
    TN__RETURN(lp_pool(tn__node_of(x, "lp_pool"), p, &s));
}
