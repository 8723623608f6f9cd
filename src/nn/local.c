/* SPDX-License-Identifier: MIT */
/* Relatives of convolution: weights of their own at every place, channels that are shifted, and extents of results. */
#include <inttypes.h>
#include <tanso/conv.h>

#include "nn/pool.h"
#include "nn/terms.h"

/* ---- weights of their own at every place ---- */

/* Windows of x as (places, N, elements of one), and the weights as (places, elements, out): one product a place. */
static tn__node *local_products(tn__node *x, tn__node *w, const tn__pooling *p)
{
    int64_t places = p->count[0] * p->count[1], n = x->shape->dim[0], out = w->shape->dim[0];
    int64_t elements = x->shape->dim[1] * p->window[0].extent * p->window[1].extent;
    tn__node *windows = tn__permute(tn__windows(x, 2, p->window), (uint8_t[TN_MAX_NDIM]){2, 3, 0, 1, 4, 5});
    windows = tn__reshape(windows, 3, (int64_t[]){places, n, elements});
    tn__node *weights = tn__permute(w, (uint8_t[TN_MAX_NDIM]){1, 2, 3, 4, 5, 0});
    weights = tn__reshape(weights, 3, (int64_t[]){places, elements, out});
    tn__node *y = tn__permute(tn__matmul_node(windows, weights), (uint8_t[TN_MAX_NDIM]){1, 2, 0});
    return tn__reshape(y, 4, (int64_t[]){n, out, p->count[0], p->count[1]});
}

static tn__node *local_conv(const char *operation, tn__node *x, tn__node *w, tn__node *b, tn_shape stride)
{
    tn__node *error = tn__first_error(3, (tn__node *[]){x, w, b});
    if (error)
        return error;
    char text[2][TN__SHAPE_TEXT];
    const tn__shape *a = x->shape, *s = w->shape;
    if (a->ndim != 4 || s->ndim != 6 || s->dim[3] != a->dim[1])
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "expected x (N, in, height, width) and w (out, rows, columns, in, kernel height, kernel width), "
                   "got %s and %s", tn__shape_text(a->ndim, a->dim, text[0]), tn__shape_text(s->ndim, s->dim, text[1]));
    tn__pooling p;
    const tn__pool_settings settings = {.name = operation, .kernel = TN_SHAPE(s->dim[4], s->dim[5]),
                                        .stride = stride.ndim ? stride : TN_SHAPE(1)};
    if (!tn__pooling_find(&settings, 2, &a->dim[2], &p))
        return tn__failed();
    if (s->dim[1] != p.count[0] || s->dim[2] != p.count[1])
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "expected weights for %" PRId64 " rows and %" PRId64 " columns of windows, got %s", p.count[0],
                   p.count[1], tn__shape_text(s->ndim, s->dim, text[1]));
    if (b && (b->shape->ndim != 3 || b->shape->dim[0] != s->dim[0] || b->shape->dim[1] != s->dim[1] ||
              b->shape->dim[2] != s->dim[2]))
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected a bias of shape (%" PRId64 ", %" PRId64 ", %" PRId64 "), got %s",
                   s->dim[0], s->dim[1], s->dim[2], tn__shape_text(b->shape->ndim, b->shape->dim, text[0]));
    tn__node *y = local_products(x, w, &p);
    return b ? add(y, tn__spread(b, 0)) : y;
}

tn_array *tn_local_conv2d(const tn_array *x, const tn_array *w, const tn_array *b, tn_shape stride)
{
    static const char operation[] = "local_conv2d";
    TN__RETURN(local_conv(operation, tn__only_floating(x, operation), tn__only_floating(w, operation),
                          b ? tn__only_floating(b, operation) : NULL, stride));
}

/* ---- shifts ---- */

/* The place in a window that the i-th group of channels is taken from: the middle and the last one change places. */
static int64_t place_of(int64_t i, int64_t places)
{
    int64_t middle = (places - 1) / 2;
    return i == middle ? places - 1 : i == places - 1 ? middle : i;
}

static tn__node *shifted(const char *operation, tn__node *x, tn_shape kernel, tn_shape dilation)
{
    TN__PASS_ERROR(x);
    char text[TN__SHAPE_TEXT];
    int64_t k[2], d[2];
    if (x->shape->ndim != 4)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected (N, channels, height, width), got shape %s",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text));
    if (!tn__extents_of(operation, "window's extent", kernel, 2, 3, 1, k) ||
        !tn__extents_of(operation, "dilation", dilation, 2, 1, 1, d))
        return tn__failed();
    int64_t places, channels = x->shape->dim[1];
    if (k[0] % 2 == 0 || k[1] % 2 == 0 || __builtin_mul_overflow(k[0], k[1], &places) || places > channels)
        TN__REFUSE(TN_ERR_VALUE, operation,
                   "expected a window of odd extents, with no more places than there are channels, %" PRId64
                   "; got %" PRId64 " by %" PRId64, channels, k[0], k[1]);
    tn__node *y = tn__const_like(x, 0);
    for (int64_t i = 0, each = channels / places; i < places; i++) {
        int64_t at = place_of(i, places), from = i * each, count = i + 1 < places ? each : channels - from;
        int64_t start[TN_MAX_NDIM] = {0, from, (k[0] / 2 - at / k[1]) * d[0], (k[1] / 2 - at % k[1]) * d[1]};
        const int64_t *dim = x->shape->dim;
        y = tn__update_along(y, tn__framed(x, start, (int64_t[]){dim[0], count, dim[2], dim[3]}, 0), 1, from);
        TN__PASS_ERROR(y);
    }
    return y;
}

tn_array *tn_shift(const tn_array *x, tn_shape kernel, tn_shape dilation)
{
    TN__RETURN(shifted("shift", tn__only_floating(x, "shift"), kernel, dilation));
}

/* ---- extents ---- */

/* Elements from the first to the last of a window, or -1 where the numbers are none of a window's. */
static int64_t covered(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    int64_t across;
    bool fine = size >= 0 && kernel >= 1 && stride >= 1 && pad >= 0 && pad <= INT64_MAX / 4 && size <= INT64_MAX / 4 &&
                dilation >= 1 && !__builtin_mul_overflow(kernel - 1, dilation, &across) && across < INT64_MAX / 4;
    return fine ? across + 1 : -1;
}

int64_t tn_conv_extent(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bool ceil)
{
    int64_t window = covered(size, kernel, stride, pad, dilation), room = size + 2 * pad - window;
    if (window < 0 || room < 0)
        return 0;
    return (room + (ceil ? stride - 1 : 0)) / stride + 1;
}

int64_t tn_conv_transpose_extent(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    int64_t window = covered(size, kernel, stride, pad, dilation), reach;
    if (window < 0 || size < 1 || __builtin_mul_overflow(size - 1, stride, &reach) || reach > INT64_MAX / 4)
        return 0;
    int64_t extent = reach + window - 2 * pad;
    return extent > 0 ? extent : 0;
}
