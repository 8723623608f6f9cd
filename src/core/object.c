/* SPDX-License-Identifier: MIT */
/* The memory of objects that were freed, and who may free one. */
#include "core/object.h"

#include <string.h>

#include "core/memory.h"

#define MANY 256 /* dead ones of a kind, that are kept from being used again */

static tn__object *oldest(tn__object_kind *kind)
{
    tn__object *object = NULL;
    pthread_mutex_lock(&kind->lock);
    if (kind->count > MANY) {
        object = kind->first;
        kind->first = object->next;
        kind->count--;
    }
    pthread_mutex_unlock(&kind->lock);
    return object;
}

void *tn__object_new(tn__object_kind *kind)
{
    void *object = oldest(kind);
    return object ? memset(object, 0, kind->size) : tn__calloc(1, kind->size);
}

bool tn__object_may_go(const tn__object_kind *kind, const tn__object *object)
{
    if (tn__object_is_free(object))
        return true;
    if (object->dead)
        tn__fail(TN_ERR_STATE, "free", "this %s has been freed before, by the program or by what it was given to",
                 kind->name);
    else
        tn__fail(TN_ERR_STATE, "free", "this %s belongs to %s, which frees it", kind->name, object->owner);
    return false;
}

void tn__object_end(tn__object_kind *kind, tn__object *object)
{
    memset(object, 0, kind->size);
    object->dead = true;
    *(tn__error **)((char *)object + kind->error) = tn__error_freed();
    pthread_mutex_lock(&kind->lock);
    if (kind->count++)
        kind->last->next = object;
    else
        kind->first = object;
    kind->last = object;
    pthread_mutex_unlock(&kind->lock);
}

tn_status tn__object_take(const tn__object_kind *kind, tn__object *object, const char *owner)
{
    if (object->dead)
        return tn__error_raise(tn__error_freed());
    if (object->owner)
        return tn__fail(TN_ERR_STATE, NULL, "%s takes this %s over, but it belongs to %s already: make a second one",
                        owner, kind->name, object->owner);
    object->owner = owner;
    return TN_OK;
}
