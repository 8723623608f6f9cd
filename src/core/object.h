/* SPDX-License-Identifier: MIT */
/*
 * Objects that programs hold by address: layers, datasets, loaders, optimizers, and what a trainer is made of. They
 * free each other, as a loader its dataset does, and programs free them in any order, so an address may be used when
 * its object is gone. Therefore the memory of such an object is not given back: what was freed is an object that
 * failed, with an error that says so, until MANY more of its kind have been freed and its memory becomes that of a new
 * one.
 */
#ifndef TN_CORE_OBJECT_H
#define TN_CORE_OBJECT_H

#include <pthread.h>
#include <stddef.h>
#include "core/error.h"

/* What such an object begins with. */
typedef struct tn__object {
    const char *owner;       /* what has taken it over and will free it, "a loader"; NULL: the program */
    bool dead;
    struct tn__object *next; /* among the dead ones */
} tn__object;

typedef struct tn__object_kind {
    const char *name; /* "loader" */
    size_t size, error; /* where its tn__error * lies */
    pthread_mutex_t lock;
    tn__object *first, *last; /* dead ones, the oldest first */
    size_t count;
} tn__object_kind;
#define TN__OBJECT_KIND(type, what) \
    {.name = what, .size = sizeof(type), .error = offsetof(type, error), .lock = PTHREAD_MUTEX_INITIALIZER}

/* A new object, all zeros; NULL without memory. */
void *tn__object_new(tn__object_kind *kind);
/* Whether the program may free it: latches TN_ERR_STATE if it has been freed, or is another object's. */
bool tn__object_may_go(const tn__object_kind *kind, const tn__object *object);
/* What it held has been freed: from here on it is dead. */
void tn__object_end(tn__object_kind *kind, tn__object *object);

/* Whether it is nobody's and alive, so that it can be taken over, and freed where taking it over failed. */
static inline bool tn__object_is_free(const tn__object *object) { return !object->owner && !object->dead; }
/* Latches TN_ERR_STATE for one that cannot be taken over by `owner`; else notes the owner. */
tn_status tn__object_take(const tn__object_kind *kind, tn__object *object, const char *owner);

#endif
