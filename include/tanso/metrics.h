/* SPDX-License-Identifier: MIT */
/*
 * How good predictions are: no gradient goes through them. Predictions y are scores (N, classes, ...), of which the
 * largest along axis 1 is the predicted class, or predicted classes themselves, integers of t's shape; labels t are
 * integers (N, ...). A label out of range is an error of the evaluation.
 */
#ifndef TANSO_METRICS_H
#define TANSO_METRICS_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_metric_opts {
    const char *_;
    int64_t ignore_index; /* rows with this label count for nothing; default: none (Chainer's default is -1) */
    int64_t classes;      /* their number; needed where y holds classes, default: the extent of y's axis 1 */
    double beta;          /* tn_f_score: how much more recall weighs than precision; default 1 */
    int64_t top;          /* tn_class_accuracy: the label is among that many largest scores; default 1 */
} tn_metric_opts;

/* The share of rows whose label was predicted, a float32 scalar; NaN where no row counts. tn_accuracy with ignored
 * labels, more axes, and top-k. */
TN_API tn_array *tn_class_accuracy_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts);
/* The share of elements of t, 0 or 1, that are 1 where the logit y >= 0 and 0 elsewhere; those that are -1 do not count
 * (Chainer's binary_accuracy). */
TN_API tn_array *tn_binary_accuracy(const tn_array *y, const tn_array *t);
/* How often label i was predicted as class j: (classes, classes), int64. */
TN_API tn_array *tn_confusion_matrix_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts);
/* Of each class, float32 (classes): the share of its predictions that are right; the share of its labels that were
 * predicted; (1 + beta²) p r / (beta² p + r). NaN where there is nothing to take a share of. */
TN_API tn_array *tn_precision_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts);
TN_API tn_array *tn_recall_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts);
TN_API tn_array *tn_f_score_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts);
/* How many labels each class has: int64 (classes). With the three above it is Chainer's classification_summary. */
TN_API tn_array *tn_support_with(const tn_array *y, const tn_array *t, const tn_metric_opts *opts);
/* 1 - sum of (t - y)² / sum of (t - mean t)² of each column (axis 0 are the samples), averaged over the columns; 0 for
 * a column of one value (Chainer's r2_score). */
TN_API tn_array *tn_r2_score(const tn_array *y, const tn_array *t);

#ifndef TN_NO_MACROS
#define tn_class_accuracy(...) TN__CALL_VV(tn_class_accuracy_with, tn_metric_opts, __VA_ARGS__, )
#define tn_confusion_matrix(...) TN__CALL_VV(tn_confusion_matrix_with, tn_metric_opts, __VA_ARGS__, )
#define tn_precision(...) TN__CALL_VV(tn_precision_with, tn_metric_opts, __VA_ARGS__, )
#define tn_recall(...) TN__CALL_VV(tn_recall_with, tn_metric_opts, __VA_ARGS__, )
#define tn_f_score(...) TN__CALL_VV(tn_f_score_with, tn_metric_opts, __VA_ARGS__, )
#define tn_support(...) TN__CALL_VV(tn_support_with, tn_metric_opts, __VA_ARGS__, )
#define tn_binary_accuracy(...) TN_HERE(tn_binary_accuracy(__VA_ARGS__))
#define tn_r2_score(...) TN_HERE(tn_r2_score(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
