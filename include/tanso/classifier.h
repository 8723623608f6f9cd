/* SPDX-License-Identifier: MIT */
/*
 * A classifier: a network that predicts, with the loss and the measure that it is trained and judged by, as one layer.
 * tn_forward(classifier, x) gives the predictor's output; tn_forward(classifier, x, t) the loss, and reports it, with
 * the accuracy, where a reporter is at hand (report.h). Trainers and evaluators call it by themselves.
 */
#ifndef TANSO_CLASSIFIER_H
#define TANSO_CLASSIFIER_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scalar of predictions y and targets t, as tn_softmax_cross_entropy and tn_accuracy are. */
typedef tn_array *(*tn_measure)(const tn_array *y, const tn_array *t);

typedef struct tn_classifier_opts {
    const char *_;
    tn_measure loss;     /* default: tn_softmax_cross_entropy */
    tn_measure accuracy; /* default: tn_accuracy; NULL, where it is written: none, as for regression */
} tn_classifier_opts;

/* Takes over the predictor, its child "predictor"; frees it if it can't be made. */
TN_API tn_layer *tn_classifier_with(tn_layer *predictor, const tn_classifier_opts *opts);
/* The same loss of the predictions for x; reports it as the classifier's "loss", the measure as its "accuracy" (without
 * gradient, and only if somebody listens). An error array for what is no classifier. */
TN_API tn_array *tn_classifier_loss(tn_layer *classifier, const tn_array *x, const tn_array *t);

#ifndef TN_NO_MACROS
#define tn_classifier_loss(...) TN_HERE(tn_classifier_loss(__VA_ARGS__))
#define tn_classifier(...) TN__CALL_V(tn_classifier_with, tn_classifier_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
