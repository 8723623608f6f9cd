/* SPDX-License-Identifier: MIT */
/*
 * Convolution, in one, two and three dimensions: functions, and layers of them.
 *
 * Arrays are channels first, (N, channels, extents), and weights (out, in / groups, extents), as Chainer and PyTorch
 * have them. What is called convolution is, as there, a correlation: weights are not flipped. Everything is
 * differentiable, as often as one likes. Operands are floating; sums of float16 and bfloat16 are in float32.
 *
 * Lists of strides and such have one number for all axes, TN_SHAPE(2), or one an axis, TN_SHAPE(2, 1).
 */
#ifndef TANSO_CONV_H
#define TANSO_CONV_H

#include <tanso/array.h>
#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_conv_opts {
    const char *_;
    const tn_array *bias; /* (out): added to each channel; default: none */
    tn_shape stride;      /* default 1 */
    tn_shape pad;         /* zeros before and behind each axis; default 0 */
    tn_shape pad_behind;  /* behind, where that is another number */
    tn_shape dilation;    /* from one element of a window to the next; default 1 */
    int64_t groups;       /* channels are divided into as many groups, each with weights of its own; default 1 */
    const char *padding;  /* "same": pad so that there are as many results as elements, one an element or, with a
                             stride, as many as strides begin in them (an odd zero goes behind); "valid": none;
                             default: `pad` */
    const char *pad_mode; /* what stands there: "zeros" (default), "reflect", "replicate", "circular" */
} tn_conv_opts;

/*
 * x (N, in, L...) by w (out, in / groups, K...), with one to three axes behind the channels: (N, out, M...) with
 * M = (L + pad + pad_behind - dilation (K - 1) - 1) / stride + 1, rounded down. groups divides in and out; with
 * groups = in it is depthwise. TN_ERR_SHAPE where a window is larger than what it slides over, or channels do not fit.
 */
TN_API tn_array *tn_conv_with(const tn_array *x, const tn_array *w, const tn_conv_opts *opts);

typedef struct tn_conv_transpose_opts {
    const char *_;
    const tn_array *bias; /* (out) */
    tn_shape stride;      /* default 1 */
    tn_shape pad;         /* elements of the result left out at both ends of each axis; default 0 */
    tn_shape output_pad;  /* elements more at the end of each axis; default 0 */
    tn_shape out;         /* the result's extents instead; a convolution of them must give x's */
    tn_shape dilation;    /* default 1 */
    int64_t groups;       /* default 1 */
} tn_conv_transpose_opts;

/* The transposed convolution ("deconvolution"): x (N, in, L...) by w (in, out / groups, K...), what the gradient by the
 * data of the convolution of these options is. (N, out, M...) with M = (L - 1) stride - 2 pad + dilation (K - 1) + 1 +
 * output_pad. */
TN_API tn_array *tn_conv_transpose_with(const tn_array *x, const tn_array *w, const tn_conv_transpose_opts *opts);

/* Windows over x (N, in, height, width) with weights of their own at every place: w (out, rows, columns, in, kernel
 * height, kernel width), rows and columns being how many windows there are, b (out, rows, columns) or NULL; stride of
 * ndim 0: 1. (N, out, rows, columns); Chainer's local_convolution_2d. */
TN_API tn_array *tn_local_conv2d(const tn_array *x, const tn_array *w, const tn_array *b, tn_shape stride);
/* x (N, channels, height, width) with its channels in as many groups as a window of `kernel` (odd extents; ndim 0: 3)
 * has places, each moved by a place from the window's middle, zeros coming in; the last group, which takes what is left
 * of the channels, stays where it is. dilation of ndim 0: 1. Chainer's shift (Wu et al. 2017). */
TN_API tn_array *tn_shift(const tn_array *x, tn_shape kernel, tn_shape dilation);
/* How many windows there are along an axis of `size`, with `ceil` also one that goes over its end (Chainer's
 * get_conv_outsize, whose cover_all that is); of a transposed convolution the result's extent (get_deconv_outsize). 0
 * where no window fits, or a number is none of a window's. */
TN_API int64_t tn_conv_extent(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bool ceil);
TN_API int64_t tn_conv_transpose_extent(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation);

/* ---- layers ---- */

typedef struct tn_conv_layer_opts {
    const char *_;
    int64_t in;           /* input channels; default: inferred at the first forward */
    tn_shape stride, pad, pad_behind, dilation; /* as above */
    int64_t groups;       /* default 1 */
    const char *padding;  /* "same", "valid": as above */
    const char *pad_mode; /* as above */
    tn_shape output_pad;  /* of transposed ones */
    bool no_bias;
    tn_init weight;       /* default LeCun normal, whose fan_in is in / groups times the window's elements */
    tn_init bias;         /* default zeros */
    tn_dtype dtype;       /* default float32 */
} tn_conv_layer_opts;

/* Layers of one, two and three axes with `out` channels and windows of `kernel`: an extent for all axes, TN_SHAPE(3),
 * or one each. Parameters "W" (out, in / groups, kernel...) and "b" (out): the names and shapes of Chainer's; PyTorch's
 * "weight" and "bias" have the same shapes. */
TN_API tn_layer *tn_conv1d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts);
TN_API tn_layer *tn_conv2d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts);
TN_API tn_layer *tn_conv3d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts);
/* Transposed ones: "W" (in, out / groups, kernel...). */
TN_API tn_layer *tn_conv_transpose1d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts);
TN_API tn_layer *tn_conv_transpose2d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts);
TN_API tn_layer *tn_conv_transpose3d_with(int64_t out, tn_shape kernel, const tn_conv_layer_opts *opts);
/* Each channel by windows of its own, `multiplier` of them: a convolution of as many groups as there are channels, of
 * two axes. "W" (in multiplier, 1, kernel...); .in must be given. */
TN_API tn_layer *tn_depthwise_conv2d_with(int64_t multiplier, tn_shape kernel, const tn_conv_layer_opts *opts);

/* A convolution of `kernel` with options, and behind it ones of 1 x 1, of out.dim[0], out.dim[1], ... channels, with an
 * activation between them, a layer's word, NULL for "relu": a perceptron that slides (Lin, Chen, Yan 2014; Chainer's
 * MLPConvolution2D). Children "0", "1", ... */
TN_API tn_layer *tn_mlp_conv2d_with(tn_shape out, tn_shape kernel, const char *activation,
                                    const tn_conv_layer_opts *opts);
/* A module of GoogLeNet (Szegedy et al. 2015): the ReLU of convolutions by windows of 1, of 3 behind proj3 channels, of
 * 5 behind proj5, and of the largest of 3 x 3 brought to proj_pool channels, one behind the other. Children, named as
 * Chainer's: "conv1", "proj3", "conv3", "proj5", "conv5", "projp". */
TN_API tn_layer *tn_inception(int64_t out1, int64_t proj3, int64_t out3, int64_t proj5, int64_t out5,
                              int64_t proj_pool);
typedef struct tn_inception_bn_opts {
    const char *_;
    int64_t proj_pool; /* channels that the pooled are brought to; default: they stay as they are */
    int64_t stride;    /* default 1 */
    bool average;      /* the mean of 3 x 3; default: the largest */
} tn_inception_bn_opts;
/* The same with batch normalization (eps 2e-5) and a ReLU behind each convolution, which have no biases, and two
 * convolutions of 3 in the place of that of 5 (Ioffe and Szegedy 2015). out1 0: none by windows of 1, as with a stride.
 * Chainer's InceptionBN. */
TN_API tn_layer *tn_inception_bn_with(int64_t out1, int64_t proj3, int64_t out3, int64_t proj33, int64_t out33,
                                      const tn_inception_bn_opts *opts);

#ifndef TN_NO_MACROS
#define tn_local_conv2d(...) TN_HERE(tn_local_conv2d(__VA_ARGS__))
#define tn_shift(...) TN_HERE(tn_shift(__VA_ARGS__))
#define tn_mlp_conv2d(...) TN__CALL_VVV(tn_mlp_conv2d_with, tn_conv_layer_opts, __VA_ARGS__, )
#define tn_inception(...) TN_HERE(tn_inception(__VA_ARGS__))
#define tn_inception_bn(...) TN__CALL_VVVVV(tn_inception_bn_with, tn_inception_bn_opts, __VA_ARGS__, )
#define tn_conv(...) TN__CALL_AA(tn_conv_with, tn_conv_opts, __VA_ARGS__, )
#define tn_conv_transpose(...) TN__CALL_AA(tn_conv_transpose_with, tn_conv_transpose_opts, __VA_ARGS__, )
#define tn_conv1d(...) TN__CALL_VV(tn_conv1d_with, tn_conv_layer_opts, __VA_ARGS__, )
#define tn_conv2d(...) TN__CALL_VV(tn_conv2d_with, tn_conv_layer_opts, __VA_ARGS__, )
#define tn_conv3d(...) TN__CALL_VV(tn_conv3d_with, tn_conv_layer_opts, __VA_ARGS__, )
#define tn_conv_transpose1d(...) TN__CALL_VV(tn_conv_transpose1d_with, tn_conv_layer_opts, __VA_ARGS__, )
#define tn_conv_transpose2d(...) TN__CALL_VV(tn_conv_transpose2d_with, tn_conv_layer_opts, __VA_ARGS__, )
#define tn_conv_transpose3d(...) TN__CALL_VV(tn_conv_transpose3d_with, tn_conv_layer_opts, __VA_ARGS__, )
#define tn_depthwise_conv2d(...) TN__CALL_VV(tn_depthwise_conv2d_with, tn_conv_layer_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
