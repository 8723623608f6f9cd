/* SPDX-License-Identifier: MIT */
/* What the losses of tanso/losses.h share: checked operands. */
#ifndef TN_NN_LOSS_PARTS_H
#define TN_NN_LOSS_PARTS_H

#include <tanso/losses.h>
#include "nn/terms.h"

#define TN__LOSS_MOST 3

/* Operands of a loss: floating, of one shape, in at least float32. */
typedef struct tn__operands {
    tn__node *x[TN__LOSS_MOST];
    tn__node *error; /* NULL: all is right */
    tn_dtype dtype;  /* that they promote to: the loss's */
} tn__operands;

/* Reads and checks `count` operands, named for messages. */
tn__operands tn__operands_of(const char *operation, int count, const tn_array *const *arrays,
                             const char *const *names);

/* What becomes of the losses of operands. */
tn__node *tn__loss(const char *operation, const tn__operands *o, tn__node *loss, const tn_loss_opts *opts);

/* Labels (N), integers, of rows; an error node if they are others. */
tn__node *tn__row_labels(const char *operation, const tn_array *t, int64_t rows);
tn__node *tn__fit_rows(const char *operation, tn__node *labels, int64_t rows);

/* How often each of two words or more occurs, as numbers in *values (freed with tn__free, also after a failure). */
tn_status tn__read_counts(const char *operation, const tn_array *counts, double **values, int64_t *words);

/* tn_negative_sampling and tn_hierarchical_softmax over nodes, for their layers. */
tn__node *tn__negative_sampling(tn__node *x, tn__node *t, tn__node *w, tn__node *samples, tn_reduction reduction);
tn__node *tn__hierarchical_softmax(tn__node *x, tn__node *t, tn__node *w, tn__node *paths, tn__node *codes,
                                   tn_reduction reduction);

#endif
