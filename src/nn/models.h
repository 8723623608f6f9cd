/* SPDX-License-Identifier: MIT */
/* The networks of tanso/models.h by name. */
#ifndef TN_NN_MODELS_H
#define TN_NN_MODELS_H

#include <tanso/models.h>

/* All of them, in the order in which they are named to the user; OTHER for those with a choice of stems. */
#define TN__MODELS(ONE, OTHER) \
    ONE(lenet5) ONE(alexnet) ONE(vgg16) ONE(vgg19) ONE(vgg_cifar) ONE(googlenet) OTHER(resnet18) OTHER(resnet34) \
    OTHER(resnet50) OTHER(resnet101) OTHER(resnet152) ONE(mobilenet_v2) ONE(unet)

/* The network of that name with `classes`, -1: its own number. An error layer if there is none, or the options are
 * wrong. */
tn_layer *tn__model(const char *name, int64_t classes, const tn_model_opts *opts);
/* Whether a word is the name of one. */
bool tn__is_model(const char *word, size_t length);
/* The i-th name; NULL: there are no more. */
const char *tn__model_name(int i);

#endif
