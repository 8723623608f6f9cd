/* SPDX-License-Identifier: MIT */
/*
 * What is done in windows that slide over one to three axes: pooling, unfolding and folding, interpolation; and what is
 * done to channels: depth to space, local response normalization.
 *
 * Arrays are channels first, (N, channels, extents). All is differentiable. Windows are views: what is done with their
 * elements is one kernel with what follows it.
 */
#ifndef TANSO_POOL_H
#define TANSO_POOL_H

#include <tanso/array.h>
#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pooling ---- */

typedef struct tn_pool_opts {
    const char *_;
    tn_shape stride;   /* default: the window; of tn_unfold and tn_fold 1 */
    tn_shape pad;      /* elements before and behind each axis, fewer than a window covers; default 0. They are never
                          the largest, and 0 in sums */
    tn_shape dilation; /* from one element of a window to the next; default 1 */
    bool ceil;         /* a last window that goes over the end counts, if it begins inside (or in the padding before):
                          PyTorch's ceil_mode and Chainer's cover_all; default: windows end inside */
    bool exclude_pad;  /* of averages: the padding is not counted in; default: it is, as in both frameworks */
} tn_pool_opts;

/* Of each window of `kernel`, an extent for all axes or one each, over x (N, channels, L...), floating: the largest
 * element, NaN if there is one (of equal ones backward takes the first); the mean; the sum; the p-th root of the sum of
 * |x|^p, p > 0, INFINITY for the largest |x|. (N, channels, M...) with M = (L + 2 pad - dilation (K - 1) - 1) / stride
 * + 1. */
TN_API tn_array *tn_max_pool_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts);
TN_API tn_array *tn_average_pool_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts);
TN_API tn_array *tn_sum_pool_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts);
TN_API tn_array *tn_lp_pool_with(const tn_array *x, double p, tn_shape kernel, const tn_pool_opts *opts);
/* Where those largest elements are: int64, positions in the channel's elements in C order, as PyTorch gives them. */
TN_API tn_array *tn_max_pool_indices_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts);
/* The reverse: zeros (N, channels, extents of `out`) with x at such positions. */
TN_API tn_array *tn_max_unpool(const tn_array *x, const tn_array *indices, tn_shape out);
/* Each element at all places of its window, sums where windows meet (Chainer's unpooling): (N, channels, M...) with
 * M = (L - 1) stride + K - 2 pad. */
TN_API tn_array *tn_unpool_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts);

/* As many windows as `out` says, of extents that differ by 1 where they do not divide x's: window i of m over n
 * elements from floor(i n / m) to ceil((i + 1) n / m). */
TN_API tn_array *tn_adaptive_average_pool(const tn_array *x, tn_shape out);
TN_API tn_array *tn_adaptive_max_pool(const tn_array *x, tn_shape out);
/* Of all elements of a channel: (N, channels). */
TN_API tn_array *tn_global_average_pool(const tn_array *x);
TN_API tn_array *tn_global_max_pool(const tn_array *x);

/* ---- windows as columns ---- */

/* (N, channels elements of a window, windows): columns are windows (PyTorch's unfold; Chainer's im2col is the same
 * reshaped). */
TN_API tn_array *tn_unfold_with(const tn_array *x, tn_shape kernel, const tn_pool_opts *opts);
/* The reverse, which adds: (N, channels, extents of `out`). */
TN_API tn_array *tn_fold_with(const tn_array *columns, tn_shape out, tn_shape kernel, const tn_pool_opts *opts);

/* ---- other extents ---- */

typedef struct tn_interpolate_opts {
    const char *_;
    const char *mode;   /* "nearest" (default), "linear" along each axis (bilinear, trilinear), "cubic" (bicubic; Keys
                           1981, a = -0.75), "area": adaptive averages */
    bool align_corners; /* linear, cubic: first and last elements stay where they are; default: elements are of one
                           size, and the corners of the first and last ones stay */
} tn_interpolate_opts;

/* x (N, channels, L...) at the places of (N, channels, extents of `out`), as PyTorch's interpolate. */
TN_API tn_array *tn_interpolate_with(const tn_array *x, tn_shape out, const tn_interpolate_opts *opts);

typedef struct tn_grid_sample_opts {
    const char *_;
    const char *mode;     /* "linear" (default; PyTorch's bilinear), "nearest" (ties to even), "cubic" (two axes) */
    const char *pad_mode; /* what is seen beyond the ends: "zeros" (default), "border": the last element, "reflect" */
    bool align_corners;   /* -1 and 1 are the first and last elements (Chainer's spatial_transformer_sampler); default:
                             their outer edges */
} tn_grid_sample_opts;
/* x (N, channels, L...) at the places of a grid (N, M..., axes), floating: a coordinate an axis, the last axis's first
 * (x, y), from -1 to 1. (N, channels, M...). The gradient reaches both (Jaderberg et al. 2015). PyTorch's grid_sample;
 * Chainer's grids are (N, 2, height, width): tn_moveaxis(grid, 1, 3). */
TN_API tn_array *tn_grid_sample_with(const tn_array *x, const tn_array *grid, const tn_grid_sample_opts *opts);
/* Such a grid (N, extents of `out`, axes) of affine maps theta (N, axes, axes + 1), of one to three axes: theta times
 * (x, y, 1). Chainer's spatial_transformer_grid with align_corners. */
TN_API tn_array *tn_affine_grid(const tn_array *theta, tn_shape out, bool align_corners);

typedef struct tn_roi_opts {
    const char *_;
    double scale;    /* of boxes, to elements of x; default 1 */
    int64_t samples; /* tn_roi_align: so many along either axis of a bin; default 2 */
    bool aligned;    /* tn_roi_align: elements' centres are at halves; default: at whole numbers, as torchvision's and
                        Chainer's are, and boxes are of one element at least */
    bool max;        /* tn_roi_align: the largest of a bin's samples (Chainer's roi_max_align_2d); default: the mean */
    bool average;    /* tn_roi_pool: the mean of a bin; default: the largest */
    bool open;       /* tn_roi_pool: the last elements are not in the box (Chainer's roi_max_pooling_2d and
                        roi_average_pooling_2d); default: they are (torchvision's roi_pool, Chainer's roi_pooling_2d) */
} tn_roi_opts;
/* Of x (N, channels, height, width) what boxes (R, 5), floating, cut out: picture, x1, y1, x2, y2, as torchvision has
 * them; brought to the extents of `out`: (R, channels, height', width'). tn_roi_align averages linear samples in each
 * bin (He et al. 2017), tn_roi_pool takes the largest element of bins of whole elements, 0 of empty ones (Girshick
 * 2015). A picture that is not there is an error of the evaluation; boxes get no gradient. */
TN_API tn_array *tn_roi_align_with(const tn_array *x, const tn_array *boxes, tn_shape out, const tn_roi_opts *opts);
TN_API tn_array *tn_roi_pool_with(const tn_array *x, const tn_array *boxes, tn_shape out, const tn_roi_opts *opts);
/* The largest elements of 1, 2 x 2, 4 x 4, ... windows over the picture, `levels` of these, in one row: (N, channels
 * (1 + 4 + 16 + ...)) (He et al. 2014; Chainer's spatial_pyramid_pooling_2d). */
TN_API tn_array *tn_spatial_pyramid_pool(const tn_array *x, int levels);

typedef struct tn_depth_opts {
    const char *_;
    bool depth_first; /* the place in a block is the channels' slow index, as Chainer's and TensorFlow's depth2space
                         have it; default: the fast one, as PyTorch's pixel_shuffle */
} tn_depth_opts;
/* (N, channels r r, height, width) as (N, channels, height r, width r), and back. */
TN_API tn_array *tn_depth_to_space_with(const tn_array *x, int64_t r, const tn_depth_opts *opts);
TN_API tn_array *tn_space_to_depth_with(const tn_array *x, int64_t r, const tn_depth_opts *opts);

typedef struct tn_response_opts {
    const char *_;
    int64_t size; /* default 5: channels, size / 2 of them before its own */
    double k;     /* default 2 */
    double alpha; /* default 1e-4; PyTorch's alpha is `size` times this one */
    double beta;  /* default 0.75 */
} tn_response_opts;
/* x / (k + alpha sum of x² over `size` neighbouring channels)^beta (Krizhevsky and others 2012). */
TN_API tn_array *tn_local_response_norm_with(const tn_array *x, const tn_response_opts *opts);

/* ---- layers ---- */

TN_API tn_layer *tn_max_pool_layer_with(tn_shape kernel, const tn_pool_opts *opts);
TN_API tn_layer *tn_average_pool_layer_with(tn_shape kernel, const tn_pool_opts *opts);
TN_API tn_layer *tn_adaptive_average_pool_layer(tn_shape out);
TN_API tn_layer *tn_global_average_pool_layer(void);
TN_API tn_layer *tn_adaptive_max_pool_layer(tn_shape out);
TN_API tn_layer *tn_global_max_pool_layer(void);
/* (N, channels h h) as pictures (N, channels, h, h), which pass as they are; rows are squares of `channels`. */
TN_API tn_layer *tn_image_layer(int64_t channels);

#ifndef TN_NO_MACROS
#define tn_max_pool(...) TN__CALL_AV(tn_max_pool_with, tn_pool_opts, __VA_ARGS__, )
#define tn_average_pool(...) TN__CALL_AV(tn_average_pool_with, tn_pool_opts, __VA_ARGS__, )
#define tn_sum_pool(...) TN__CALL_AV(tn_sum_pool_with, tn_pool_opts, __VA_ARGS__, )
#define tn_lp_pool(...) TN__CALL_AVV(tn_lp_pool_with, tn_pool_opts, __VA_ARGS__, )
#define tn_max_pool_indices(...) TN__CALL_AV(tn_max_pool_indices_with, tn_pool_opts, __VA_ARGS__, )
#define tn_max_unpool(x, indices, out) TN_AT(tn_max_unpool)(TN_ARG(x), indices, out)
#define tn_unpool(...) TN__CALL_AV(tn_unpool_with, tn_pool_opts, __VA_ARGS__, )
#define tn_adaptive_average_pool(x, out) TN_AT(tn_adaptive_average_pool)(TN_ARG(x), out)
#define tn_adaptive_max_pool(x, out) TN_AT(tn_adaptive_max_pool)(TN_ARG(x), out)
#define tn_global_average_pool(x) TN_AT(tn_global_average_pool)(TN_ARG(x))
#define tn_global_max_pool(x) TN_AT(tn_global_max_pool)(TN_ARG(x))
#define tn_unfold(...) TN__CALL_AV(tn_unfold_with, tn_pool_opts, __VA_ARGS__, )
#define tn_fold(...) TN__CALL_AVV(tn_fold_with, tn_pool_opts, __VA_ARGS__, )
#define tn_interpolate(...) TN__CALL_AV(tn_interpolate_with, tn_interpolate_opts, __VA_ARGS__, )
#define tn_grid_sample(...) TN__CALL_AA(tn_grid_sample_with, tn_grid_sample_opts, __VA_ARGS__, )
#define tn_affine_grid(theta, out, align_corners) TN_AT(tn_affine_grid)(TN_ARG(theta), out, align_corners)
#define tn_roi_align(...) TN__CALL_AAV(tn_roi_align_with, tn_roi_opts, __VA_ARGS__, )
#define tn_roi_pool(...) TN__CALL_AAV(tn_roi_pool_with, tn_roi_opts, __VA_ARGS__, )
#define tn_spatial_pyramid_pool(x, levels) TN_AT(tn_spatial_pyramid_pool)(TN_ARG(x), levels)
#define tn_depth_to_space(...) TN__CALL_AV(tn_depth_to_space_with, tn_depth_opts, __VA_ARGS__, )
#define tn_space_to_depth(...) TN__CALL_AV(tn_space_to_depth_with, tn_depth_opts, __VA_ARGS__, )
#define tn_local_response_norm(...) TN__CALL_A(tn_local_response_norm_with, tn_response_opts, __VA_ARGS__, )
#define tn_max_pool_layer(...) TN__CALL_V(tn_max_pool_layer_with, tn_pool_opts, __VA_ARGS__, )
#define tn_average_pool_layer(...) TN__CALL_V(tn_average_pool_layer_with, tn_pool_opts, __VA_ARGS__, )
#define tn_image_layer(...) TN_HERE(tn_image_layer(__VA_ARGS__))
#define tn_adaptive_average_pool_layer(...) TN_HERE(tn_adaptive_average_pool_layer(__VA_ARGS__))
#define tn_adaptive_max_pool_layer(...) TN_HERE(tn_adaptive_max_pool_layer(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
