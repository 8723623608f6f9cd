/* SPDX-License-Identifier: MIT */
/*
 * The field's networks, and the layers that they are made of beside those of nn.h, conv.h, pool.h: sums and results
 * side by side. All are written in the words of tn_layer_parse, whose words they are, too.
 */
#ifndef TANSO_MODELS_H
#define TANSO_MODELS_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- branches ---- */

/* after(body(x) + shortcut(x)) (He and others 2016); without shortcut, NULL, x itself is added, without after the sum
 * is the result. Takes ownership of all three, as tn_sequential does; they are children "body", "shortcut", "after". */
TN_API tn_layer *tn_residual(tn_layer *body, tn_layer *shortcut, tn_layer *after);
/* The results of layers for the same input, one behind another along an axis, 1 being that of channels; negative from
 * the end. Takes ownership; children are named "0", "1", ... */
TN_API tn_layer *tn_concat_layer_of(int axis, int count, tn_layer *const *layers);

/* ---- models ---- */

typedef struct tn_model_opts {
    const char *_;
    double width;     /* factor of all channels and hidden features (not of the classes), which are rounded to whole
                         numbers, 1 at least; default 1 */
    const char *stem; /* of ResNets: "imagenet" (default), windows of 7 at every other place and a pooling, or "cifar",
                         for small pictures: windows of 3 at all places */
} tn_model_opts;

/*
 * Networks over pictures (N, channels, height, width), which give scores (N, classes). Input channels are inferred. As
 * words of tn_layer_parse they are "resnet18:10,stem=cifar", "vgg16", "mobilenet_v2:100,width=0.5": classes, 1000 if
 * left out (of lenet5 and vgg_cifar 10, of unet 2).
 *
 * Parameters are named as PyTorch's torchvision names its own, but for the last name of a path, so that such files load
 * by tn_layer_load(net, path, .torch = true). The convolutions of ResNets, GoogLeNet and MobileNet begin with He's
 * normal weights, those of others as tn_conv2d's.
 */

/* LeNet-5 (LeCun and others 1998) as it is trained today, for pictures of one channel, 28 x 28, or rows of 784: 20
 * channels by windows of 5, the largest of each 2 x 2, 50 by windows of 5, the same, 500 features, `classes` scores;
 * ReLUs between. */
TN_API tn_layer *tn_lenet5_with(int64_t classes, const tn_model_opts *opts);
/* Krizhevsky 2014: five convolutions, three linear layers; pictures of 63 x 63 or more. */
TN_API tn_layer *tn_alexnet_with(int64_t classes, const tn_model_opts *opts);
/* Simonyan and Zisserman 2015, without normalization; 32 x 32 or more. */
TN_API tn_layer *tn_vgg16_with(int64_t classes, const tn_model_opts *opts);
TN_API tn_layer *tn_vgg19_with(int64_t classes, const tn_model_opts *opts);
/* The same for pictures of 32 x 32, with batch normalization and dropout (Zagoruyko 2015), as in Chainer's cifar
 * example. */
TN_API tn_layer *tn_vgg_cifar_with(int64_t classes, const tn_model_opts *opts);
/* Szegedy and others 2015, with batch normalization and without the scores on the way. */
TN_API tn_layer *tn_googlenet_with(int64_t classes, const tn_model_opts *opts);
/* He and others 2016: two convolutions a block, or, from 50 on, three. */
TN_API tn_layer *tn_resnet18_with(int64_t classes, const tn_model_opts *opts);
TN_API tn_layer *tn_resnet34_with(int64_t classes, const tn_model_opts *opts);
TN_API tn_layer *tn_resnet50_with(int64_t classes, const tn_model_opts *opts);
TN_API tn_layer *tn_resnet101_with(int64_t classes, const tn_model_opts *opts);
TN_API tn_layer *tn_resnet152_with(int64_t classes, const tn_model_opts *opts);
/* Sandler and others 2018: depthwise convolutions between narrow layers. */
TN_API tn_layer *tn_mobilenet_v2_with(int64_t classes, const tn_model_opts *opts);
/* Ronneberger and others 2015, padded and with batch normalization: scores (N, classes, height, width) of each element;
 * height and width are multiples of 16. */
TN_API tn_layer *tn_unet_with(int64_t classes, const tn_model_opts *opts);

/* A picture (3, height, width), or several (N, 3, height, width), as those that torchvision's weights were trained
 * with: whole numbers over 255 (floating ones are taken to be from 0 to 1), scaled to 224 x 224, bilinearly, less the
 * colours' means over ImageNet and divided by their deviations; (N, 3, 224, 224) floating. Chainer's prepare, DeZero's
 * preprocess, whose weights want other means. Differentiable. */
TN_API tn_array *tn_prepare(const tn_array *picture);

#ifndef TN_NO_MACROS
#define tn_prepare(picture) TN_AT(tn_prepare)(TN_ARG(picture))
#define tn_residual(...) TN_HERE(tn_residual(__VA_ARGS__))
/* tn_concat_layer(axis, layer, layer, ...) */
#define tn_concat_layer(axis, ...) TN_AT(tn_concat_layer_of)(axis, TN__LIST(tn_layer *, __VA_ARGS__))
#define tn_lenet5(...) TN__CALL_V(tn_lenet5_with, tn_model_opts, __VA_ARGS__, )
#define tn_alexnet(...) TN__CALL_V(tn_alexnet_with, tn_model_opts, __VA_ARGS__, )
#define tn_vgg16(...) TN__CALL_V(tn_vgg16_with, tn_model_opts, __VA_ARGS__, )
#define tn_vgg19(...) TN__CALL_V(tn_vgg19_with, tn_model_opts, __VA_ARGS__, )
#define tn_vgg_cifar(...) TN__CALL_V(tn_vgg_cifar_with, tn_model_opts, __VA_ARGS__, )
#define tn_googlenet(...) TN__CALL_V(tn_googlenet_with, tn_model_opts, __VA_ARGS__, )
#define tn_resnet18(...) TN__CALL_V(tn_resnet18_with, tn_model_opts, __VA_ARGS__, )
#define tn_resnet34(...) TN__CALL_V(tn_resnet34_with, tn_model_opts, __VA_ARGS__, )
#define tn_resnet50(...) TN__CALL_V(tn_resnet50_with, tn_model_opts, __VA_ARGS__, )
#define tn_resnet101(...) TN__CALL_V(tn_resnet101_with, tn_model_opts, __VA_ARGS__, )
#define tn_resnet152(...) TN__CALL_V(tn_resnet152_with, tn_model_opts, __VA_ARGS__, )
#define tn_mobilenet_v2(...) TN__CALL_V(tn_mobilenet_v2_with, tn_model_opts, __VA_ARGS__, )
#define tn_unet(...) TN__CALL_V(tn_unet_with, tn_model_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
