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

#endif
