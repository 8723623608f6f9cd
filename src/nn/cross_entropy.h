/* SPDX-License-Identifier: MIT */
/* Softmax cross entropy beyond the mean over rows of two axes. */
#ifndef TN_NN_CROSS_ENTROPY_H
#define TN_NN_CROSS_ENTROPY_H

#include <tanso/nn.h>
#include "nn/functions.h"

/* Scores of any axes and their labels as (rows, classes) and (rows); false with a latched error where the shapes do not
 * go together. Of two axes they stay as they are, unchecked. */
bool tn__class_rows(const char *operation, const tn_cross_entropy_opts *opts, tn__node **x, tn__node **t);
/* True if the loss is the mean over all rows. */
bool tn__cross_entropy_plain(const tn_cross_entropy_opts *opts);
/* The loss with options, which are checked here, of checked rows; `labels` is the shape of unreduced losses. */
tn__node *tn__cross_entropy(const char *operation, tn__node *x, tn__node *t, const tn__shape *labels,
                            const tn_cross_entropy_opts *opts);
/* The same where x holds logarithms of chances already. */
tn__node *tn__nll(const char *operation, tn__node *x, tn__node *t, const tn__shape *labels,
                  const tn_cross_entropy_opts *opts);
/* The loss of chances t of all classes, in x's shape; opts may be NULL. */
tn__node *tn__soft_cross_entropy(const char *operation, tn__node *x, tn__node *t, const tn_cross_entropy_opts *opts);
/* Whether scores are (N, classes) of a class or more, labels (N) integers; latches if not. */
bool tn__check_classes(const char *operation, const tn__node *x, const tn__node *t);

#endif
