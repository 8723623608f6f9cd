/* SPDX-License-Identifier: MIT */
/* The gradients of the last updates, which else are gone when extensions are called. */
#ifndef TN_TRAIN_GRADIENTS_H
#define TN_TRAIN_GRADIENTS_H

#include <tanso/trainer.h>

typedef struct tn__kept_gradient {
    const tn_array *param;
    tn_array *value; /* owned */
} tn__kept_gradient;

typedef struct tn__gradients {
    tn__kept_gradient *items;
    size_t count, capacity;
    tn_trainer *trainer; /* whose optimizers keep them here; NULL: none */
} tn__gradients;

/* From now on all optimizers of a trainer keep their gradients here, before each update. They are evaluated for that,
 * and so no longer computed together with the update. */
tn_status tn__gradients_watch(tn__gradients *gradients, tn_trainer *trainer);
/* The gradient that a parameter had last; NULL if it had none. */
const tn_array *tn__gradients_of(const tn__gradients *gradients, const tn_array *param);
void tn__gradients_free(tn__gradients *gradients);

#endif
