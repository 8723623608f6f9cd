/* SPDX-License-Identifier: MIT */
/* Telling classifiers, which bring their loss, from other layers. */
#ifndef TN_TRAIN_CLASSIFIER_H
#define TN_TRAIN_CLASSIFIER_H

#include <tanso/classifier.h>

bool tn__is_classifier(const tn_layer *layer);

#endif
