/* SPDX-License-Identifier: MIT */
/* Convolution and its transpose: checks of shapes and options, padding, bias. */
#include "nn/convolve.h"

#include <inttypes.h>
#include <string.h>
#include <tanso/conv.h>

#include "array/build_parts.h"
#include "array/build_window.h"
#include "core/options.h"

/* ---- padding by what is there ---- */

/* Positions i of the padded axis as those in x, of extent n, which they continue. */
static tn__node *continued(tn__node *i, int64_t n, tn__pad_mode mode)
{
    if (mode == TN__PAD_REPLICATE)
        return tn__with(TN__OP_MINIMUM, tn__with(TN__OP_MAXIMUM, i, 0), (double)(n - 1));
    if (mode == TN__PAD_CIRCULAR)
        return tn__with(TN__OP_REMAINDER, i, (double)n);
    tn__node *below = tn__unary(TN__OP_ABS, i), *last = tn__const_like(below, (double)(n - 1));
    return tn__binary(TN__OP_SUBTRACT, last, tn__unary(TN__OP_ABS, tn__binary(TN__OP_SUBTRACT, last, below)));
}

tn__node *tn__padded_along(const char *operation, tn__node *x, int axis, int64_t before, int64_t behind,
                           tn__pad_mode mode)
{
    TN__PASS_ERROR(x);
    int64_t n = x->shape->dim[axis], most = mode == TN__PAD_REFLECT ? n - 1 : mode == TN__PAD_CIRCULAR ? n : INT64_MAX;
    if (before == 0 && behind == 0)
        return x;
    if (n == 0 || before > most || behind > most)
        TN__REFUSE(TN_ERR_VALUE, operation,
                   "padding by %" PRId64 " and %" PRId64 " elements of an axis of extent %" PRId64
                   "; expected at most %" PRId64 " here: use pad_mode \"zeros\"",
                   before, behind, n, n == 0 ? 0 : most);
    tn_shape value = {.ndim = x->shape->ndim};
    for (int d = 0; d < value.ndim; d++)
        value.dim[d] = 1;
    value.dim[axis] = n + before + behind;
    const tn__shape *shape = tn__shape_make(operation, value, TN_INT64);
    if (!shape)
        return tn__failed();
    tn__node *i = tn__with(TN__OP_SUBTRACT, tn__iota(shape, axis, x->device), (double)before);
    return tn__gather_known(x, continued(i, n, mode), axis, n);
}

/* ---- words ---- */

bool tn__conv_words(tn__conv_settings *s, const char *padding, const char *pad_mode)
{
    static const char *const modes[] = {"zeros", "reflect", "replicate", "circular"};
    int mode = 0;
    while (pad_mode && mode < 4 && strcmp(pad_mode, modes[mode]) != 0)
        mode++;
    if (mode == 4)
        return tn__fail(TN_ERR_NAME, s->name,
                        "no pad_mode '%s'; there are zeros, reflect, replicate, circular", pad_mode) == TN_OK;
    s->mode = (tn__pad_mode)mode;
    s->same = padding && strcmp(padding, "same") == 0;
    if (padding && !s->same && strcmp(padding, "valid") != 0)
        return tn__fail(TN_ERR_NAME, s->name, "no padding '%s'; there are \"same\" and \"valid\", and numbers by .pad",
                        padding) == TN_OK;
    if (padding && (s->pad.ndim || s->pad_behind.ndim))
        return tn__fail(TN_ERR_VALUE, s->name, "padding \"%s\" and numbers by .pad; expected one of them",
                        padding) == TN_OK;
    return true;
}

/* ---- shapes ---- */

typedef struct problem {
    const tn__conv_settings *s;
    const tn__shape *x, *w;
    tn__convolution c;
    int64_t behind[TN__CONVOLVED_AXES], more[TN__CONVOLVED_AXES];
    tn_shape y;
} problem;

static bool misfit(const problem *p, tn_status code, const char *reason)
{
    char x[TN__SHAPE_TEXT], w[TN__SHAPE_TEXT];
    tn__fail(code, p->s->name, "x %s by weights %s in %" PRId64 " groups: %s",
             tn__shape_text(p->x->ndim, p->x->dim, x), tn__shape_text(p->w->ndim, p->w->dim, w), p->c.groups, reason);
    return false;
}

static bool check_axes(problem *p)
{
    int axes = p->s->axes ? p->s->axes : p->x->ndim - 2;
    p->c.axes = axes;
    if (axes < 1 || axes > TN__CONVOLVED_AXES || p->x->ndim != axes + 2 || p->w->ndim != axes + 2)
        return misfit(p, TN_ERR_SHAPE,
                      p->s->axes == 1   ? "expected (N, channels, length), and weights of three axes"
                      : p->s->axes == 2 ? "expected (N, channels, height, width), and weights of four axes"
                      : p->s->axes == 3 ? "expected (N, channels, depth, height, width), and weights of five axes"
                                        : "expected (N, channels, extents) with one to three extents, and weights of "
                                          "as many axes");
    return true;
}

static bool check_channels(problem *p)
{
    int64_t in = p->x->dim[1], groups = p->c.groups, rows = p->w->dim[0];
    if (groups < 1 || in == 0)
        return misfit(p, TN_ERR_VALUE, "expected one group or more, and channels");
    if (in % groups != 0 || rows % groups != 0)
        return misfit(p, TN_ERR_VALUE, "the number of groups must divide the channels of both");
    if (p->s->transposed ? rows != in : p->w->dim[1] != in / groups)
        return misfit(p, TN_ERR_SHAPE,
                      p->s->transposed ? "the weights' first extent must be x's channels"
                                       : "the weights' second extent must be x's channels over the groups");
    for (int i = 0; i < p->c.axes; i++)
        if (p->w->dim[2 + i] == 0)
            return misfit(p, TN_ERR_SHAPE, "expected windows of at least one element");
    return true;
}

/* (K - 1) spread + 1, at most INT64_MAX / 4. */
static int64_t span(const problem *p, int i)
{
    int64_t reach;
    if (__builtin_mul_overflow(p->w->dim[2 + i] - 1, p->c.axis[i].spread, &reach) || reach > INT64_MAX / 4)
        return INT64_MAX / 4;
    return reach + 1;
}

static int64_t at_most_huge(int64_t n) { return n < INT64_MAX / 8 ? n : INT64_MAX / 8; }

/* Strides, spreads and padding of all axes. */
static bool read_lists(problem *p)
{
    const tn__conv_settings *s = p->s;
    int64_t list[6][TN__CONVOLVED_AXES];
    int n = p->c.axes;
    if (!tn__extents_of(s->name, "stride", s->stride, n, 1, 1, list[0]) ||
        !tn__extents_of(s->name, "dilation", s->dilation, n, 1, 1, list[1]) ||
        !tn__extents_of(s->name, "pad", s->pad, n, 0, 0, list[2]) ||
        !tn__extents_of(s->name, "pad_behind", s->pad_behind, n, 0, 0, list[3]) ||
        !tn__extents_of(s->name, "output_pad", s->output_pad, n, 0, 0, list[4]))
        return false;
    for (int i = 0; i < n; i++) {
        p->c.axis[i].step = list[0][i];
        p->c.axis[i].spread = list[1][i];
        p->c.axis[i].pad = at_most_huge(list[2][i]);
        p->behind[i] = at_most_huge(s->pad_behind.ndim ? list[3][i] : list[2][i]);
        p->more[i] = at_most_huge(list[4][i]);
        if (s->same) {
            int64_t extent = p->x->dim[2 + i], count = extent ? (extent - 1) / list[0][i] + 1 : 0;
            int64_t total = (count - 1) * list[0][i] + span(p, i) - extent;
            p->c.axis[i].pad = total > 0 ? total / 2 : 0;
            p->behind[i] = total > 0 ? total - total / 2 : 0;
        }
    }
    return true;
}

static bool find_result(problem *p)
{
    p->y = (tn_shape){.ndim = p->x->ndim, .dim = {p->x->dim[0], p->w->dim[0]}};
    for (int i = 0; i < p->c.axes; i++) {
        int64_t padded = at_most_huge(p->x->dim[2 + i]) + p->c.axis[i].pad + p->behind[i], covered = span(p, i);
        if (covered > padded) {
            tn__fail(TN_ERR_SHAPE, p->s->name,
                     "a window of %" PRId64 " elements (%" PRId64 " with its dilation of %" PRId64
                     ") is larger than axis %d, of extent %" PRId64 " with its padding: pad more, or use a smaller one",
                     p->w->dim[2 + i], covered, p->c.axis[i].spread, 2 + i, padded);
            return false;
        }
        p->y.dim[2 + i] = (padded - covered) / p->c.axis[i].step + 1;
    }
    return true;
}

/* Of the transpose: an extent whose convolution has as many places as x. */
static bool find_extent(problem *p, int i)
{
    int64_t step = p->c.axis[i].step, rest = span(p, i) - 2 * p->c.axis[i].pad, least, *extent = &p->y.dim[2 + i];
    if (__builtin_mul_overflow(p->x->dim[2 + i] - 1, step, &least) || least > INT64_MAX / 4)
        least = INT64_MAX / 4;
    least += rest;
    *extent = p->s->out.ndim ? *extent : least + p->more[i];
    int64_t room = step > p->c.axis[i].spread ? step : p->c.axis[i].spread;
    bool fits = p->s->out.ndim ? *extent >= least && *extent - least < step : p->more[i] < room;
    if (fits && *extent > 0 && p->x->dim[2 + i] > 0)
        return true;
    tn__fail(TN_ERR_VALUE, p->s->name,
             "axis %d of the result would have extent %" PRId64 "; expected at least 1, from %" PRId64 " to %" PRId64
             " (.output_pad is below the stride or the dilation)",
             2 + i, *extent, least, least + room - 1);
    return false;
}

static bool find_transposed(problem *p)
{
    int64_t out[TN__CONVOLVED_AXES];
    if (!tn__extents_of(p->s->name, "extent of out", p->s->out, p->c.axes, 1, 1, out))
        return false;
    if (__builtin_mul_overflow(p->w->dim[1], p->c.groups, &p->y.dim[1]))
        return misfit(p, TN_ERR_SHAPE, "the result has too many channels");
    p->y.ndim = p->x->ndim;
    p->y.dim[0] = p->x->dim[0];
    for (int i = 0; i < p->c.axes; i++) {
        p->y.dim[2 + i] = out[i];
        if (!find_extent(p, i))
            return false;
    }
    return true;
}

/* ---- the function ---- */

static tn__node *add_bias(const problem *p, tn__node *y, tn__node *bias)
{
    TN__PASS_ERROR(y);
    if (!bias)
        return y;
    TN__PASS_ERROR(bias);
    int64_t channels = y->shape->dim[1];
    if (!tn_dtype_is_float((tn_dtype)bias->dtype))
        TN__REFUSE(TN_ERR_DTYPE, p->s->name, "expected a floating bias, got %s: cast it with tn_cast",
                   tn_dtype_name((tn_dtype)bias->dtype));
    if (bias->shape->ndim != 1 || bias->shape->dim[0] != channels) {
        char text[TN__SHAPE_TEXT];
        TN__REFUSE(TN_ERR_SHAPE, p->s->name, "expected a bias of shape (%" PRId64 ",), a number a channel; got %s",
                   channels, tn__shape_text(bias->shape->ndim, bias->shape->dim, text));
    }
    return tn__binary(TN__OP_ADD, y, tn__reshape(bias, 1 + p->c.axes, (int64_t[]){channels, 1, 1, 1}));
}

tn__node *tn__conv_of(tn__node *x, tn__node *w, tn__node *bias, const tn__conv_settings *s)
{
    TN__PASS_ERROR(x);
    TN__PASS_ERROR(w);
    tn__node *in[] = {tn__strong(x), tn__strong(w)};
    TN__PASS_ERROR(in[0]);
    TN__PASS_ERROR(in[1]);
    for (int i = 0; i < 2; i++)
        if (!tn_dtype_is_float((tn_dtype)in[i]->dtype))
            TN__REFUSE(TN_ERR_DTYPE, s->name, "expected floating operands, got %s and %s: cast them with tn_cast",
                       tn_dtype_name((tn_dtype)in[0]->dtype), tn_dtype_name((tn_dtype)in[1]->dtype));
    bool weak;
    tn_dtype dtype = tn__common_dtype(2, in, &weak);
    tn__device *device = tn__common_device(s->name, 2, in);
    if (!device)
        return tn__failed();
    problem p = {.s = s, .x = in[0]->shape, .w = in[1]->shape, .c.groups = s->groups};
    if (!check_axes(&p) || !check_channels(&p) || !read_lists(&p) ||
        !(s->transposed ? find_transposed(&p) : find_result(&p)))
        return tn__failed();
    const tn__shape *shape = tn__shape_make(s->name, p.y, dtype);
    if (!shape)
        return tn__failed();
    for (int i = 0; i < 2; i++)
        in[i] = tn__adapt(in[i], dtype, in[i]->shape, device);
    for (int i = 0; i < p.c.axes && s->mode != TN__PAD_ZEROS; i++) {
        in[0] = tn__padded_along(s->name, in[0], 2 + i, p.c.axis[i].pad, p.behind[i], s->mode);
        p.c.axis[i].pad = 0;
    }
    tn__node *y = s->transposed ? tn__convolve_data(in[0], in[1], &p.c, shape)
                                : tn__convolve(in[0], in[1], &p.c, shape);
    return add_bias(&p, y, bias);
}

tn_array *tn_conv_with(const tn_array *x, const tn_array *w, const tn_conv_opts *opts)
{
    static const tn_conv_opts none;
    opts = opts ? opts : &none;
    tn__conv_settings s = {.name = "conv", .stride = opts->stride, .pad = opts->pad, .pad_behind = opts->pad_behind,
                           .dilation = opts->dilation, .groups = TN__OPTION(opts, groups, 1)};
    tn__call call = tn__enter();
    if (!TN__SHAPE_GIVEN(s.name, opts, stride) || !TN__SHAPE_GIVEN(s.name, opts, pad) ||
        !TN__SHAPE_GIVEN(s.name, opts, pad_behind) || !TN__SHAPE_GIVEN(s.name, opts, dilation) ||
        !tn__conv_words(&s, opts->padding, opts->pad_mode))
        return tn__leave_error(call);
    return tn__leave_array(call, tn__conv_of(tn__node_of(x, "conv"), tn__node_of(w, "conv"),
                                             opts->bias ? tn__node_of(opts->bias, "conv") : NULL, &s));
}

tn_array *tn_conv_transpose_with(const tn_array *x, const tn_array *w, const tn_conv_transpose_opts *opts)
{
    static const tn_conv_transpose_opts none;
    static const char name[] = "conv_transpose";
    opts = opts ? opts : &none;
    tn__conv_settings s = {.name = name, .stride = opts->stride, .pad = opts->pad, .output_pad = opts->output_pad,
                           .out = opts->out, .dilation = opts->dilation, .groups = TN__OPTION(opts, groups, 1),
                           .transposed = true};
    tn__call call = tn__enter();
    if (!TN__SHAPE_GIVEN(name, opts, stride) || !TN__SHAPE_GIVEN(name, opts, pad) ||
        !TN__SHAPE_GIVEN(name, opts, output_pad) || !TN__SHAPE_GIVEN(name, opts, out) ||
        !TN__SHAPE_GIVEN(name, opts, dilation))
        return tn__leave_error(call);
    return tn__leave_array(call, tn__conv_of(tn__node_of(x, name), tn__node_of(w, name),
                                             opts->bias ? tn__node_of(opts->bias, name) : NULL, &s));
}
