/* SPDX-License-Identifier: MIT */
/* Memory of others as nodes: what tn_wrap, DLPack and mapped files share. */
#ifndef TN_IO_WRAP_H
#define TN_IO_WRAP_H

#include "array/node.h"

typedef struct tn__lent {
    void *memory;           /* of element [0, 0, ...] */
    tn_shape shape;
    tn_dtype dtype;
    const int64_t *strides; /* in elements, one an axis; NULL: C order */
    tn_device device;
    void (*release)(void *user, void *memory);
    void *user;
} tn__lent;

/* Checks shape, dtype, alignment and that strides reach no further than addresses do; an error node otherwise, with
 * nothing released. Borrowed. */
tn__node *tn__wrap(const char *operation, const tn__lent *lent);

/* The same inside a storage that is there already, whose reference it takes one more of; device, release and user are
 * not read. The caller has checked that the elements lie inside. */
tn__node *tn__wrap_in(const char *operation, tn__storage *storage, const tn__lent *lent);

/* An array computed, with what it is waited for, so that anyone may read its memory. A status, latched. */
typedef struct tn__lending {
    tn__storage *storage;   /* retained: let go with tn__storage_release */
    void *memory;           /* of element [0, 0, ...] */
    tn_dtype dtype;
    const tn__shape *shape;
    int64_t stride[TN_MAX_NDIM]; /* in elements */
    bool copied;                 /* the memory is not x's own */
} tn__lending;
tn_status tn__lend(const char *operation, const tn_array *x, tn__lending *lending);
/* The same without strides below zero: of a copy where x goes backwards. */
tn_status tn__lend_forward(const char *operation, const tn_array *x, tn__lending *lending);

#endif
