/* SPDX-License-Identifier: MIT */
/* Layers of layers, made of lists: what tn_layer_parse reads and what its public functions are given. */
#ifndef TN_NN_BRANCH_H
#define TN_NN_BRANCH_H

#include "nn/layer.h"

typedef struct tn__item {
    char *name;      /* as a child; owned. NULL: the number of its place */
    tn_layer *layer; /* owned */
} tn__item;

typedef struct tn__items {
    tn__item *item;
    size_t count, capacity;
} tn__items;

/* Takes over both, also where it fails: without memory, or with a layer that is an error. */
tn_status tn__items_add(tn__items *items, char *name, tn_layer *layer);
void tn__items_free(tn__items *items);

/* Layers with the items as children, which they take over in any case; the list is empty then. */
tn_layer *tn__sequential_of_items(tn__items *items);
/* The first `body` of them are what is added to, the next `shortcut` what is added, the others follow. */
tn_layer *tn__residual_of_items(tn__items *items, size_t body, size_t shortcut);
tn_layer *tn__concat_of_items(tn__items *items, int axis);

#endif
