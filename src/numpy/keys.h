/* SPDX-License-Identifier: MIT */
/* What the keys of an index mean for an array, before anything is read or written. */
#ifndef TN_NUMPY_KEYS_H
#define TN_NUMPY_KEYS_H

#include "numpy/compose.h"

/* TN__INDEX_NOTHING: an ellipsis for no axes, which keeps arrays apart all the same. */
enum { TN__INDEX_NEW = -1, TN__INDEX_NOTHING = -2 };

/* Axes of the array are source axes; `item` lists what the result is made of, in order. */
typedef struct tn__index_plan {
    const tn_array *x;
    tn_slice_range range[TN_MAX_NDIM]; /* an axis: the window */
    bool number[TN_MAX_NDIM];          /* a source axis that a number drops */
    const tn_array *array[TN_MAX_NDIM]; /* a source axis that positions index, else NULL */
    int item[2 * TN_MAX_NDIM + 1];     /* a source axis or one of these two */
    int item_count, arrays;
    bool apart;                        /* something stands between the arrays: their axes come first */
    int first;                         /* the item that the first array is, or the first axis of a mask that chooses */
    bool mask_chooses; /* the only array is a mask, whose axes stay: what it says is asked for elsewhere */
    tn_shape positions;                /* the arrays' common shape */
} tn__index_plan;

/* Of `count` keys for x; NULL, or an error. With `mask_chooses` the only array among them is a mask of at least one
 * axis. */
tn_array *tn__index_plan_make(tn__index_plan *p, const tn_array *x, int count, const tn_key *keys, bool mask_chooses);

#endif
