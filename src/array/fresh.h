/* SPDX-License-Identifier: MIT */
/*
 * The fields of new nodes and handles, for the files that make them: node.c and handle.c in general, plain.c on the
 * straight way. Fields are set one by one: a whole-struct assignment becomes a string instruction, which takes longer
 * than everything else here. Inside the room array/ only.
 */
#ifndef TN_ARRAY_FRESH_H
#define TN_ARRAY_FRESH_H

#include "array/thread.h"
#include "core/memory.h"

/* A node without inputs and value, held once; not a wide one. */
static inline void tn__node_begin(const tn__thread *self, tn__node *node, tn__op op, tn_dtype dtype, int flags,
                                  const tn__shape *shape, tn__device *device)
{
    node->references = 1;
    node->op = (uint16_t)op;
    node->dtype = (uint8_t)dtype;
    node->arity = 0;
    node->flags = (uint16_t)flags;
    node->owner = self->number;
    node->depth = 0;
    node->mark = 0;
    node->shape = shape;
    node->device = device;
    for (int i = 0; i < TN__MAX_ARITY; i++)
        node->in[i] = NULL;
    node->attr = (tn__attr){.raw = {0}};
    node->storage = NULL;
    node->offset = 0;
    node->strides = NULL;
    node->error = NULL;
    node->var = NULL;
    node->plain = NULL;
}

/* A handle in no list; takes over one reference to its node. Its generation stays as the one before left it. */
static inline void tn__handle_begin(const tn__thread *self, tn__handle *x, tn__node *node)
{
    x->node = node;
    x->var = NULL;
    x->scope = NULL;
    x->previous = x->next = NULL;
    x->pending = 0;
    x->owner = self->number;
    x->is_static = 0;
    x->written = 0;
}

/* Another thread that frees the handle may read `pending` at any time: it posts it to us unless that is 0. */
static inline void tn__pending_place(tn__handle *x, size_t position)
{
    __atomic_store_n(&x->pending, (uint32_t)position, __ATOMIC_RELEASE);
}

/* Counts a handle of the list that the program has written into, once. */
static inline void tn__pending_count_written(tn__thread *self, tn__handle *x)
{
    if (__builtin_expect((x->written & (TN__WRITTEN | TN__WRITTEN_COUNTED)) == TN__WRITTEN, 0)) {
        x->written |= TN__WRITTEN_COUNTED;
        self->pending_written++;
    }
}

/* Puts a handle on the list of those whose node has no value yet; false without memory. */
static inline bool tn__pending_add(tn__thread *self, tn__handle *x)
{
    if (__builtin_expect(self->pending_count == self->pending_capacity, 0) &&
        !tn__grow((void **)&self->pending, &self->pending_capacity, self->pending_count + 1, sizeof *self->pending))
        return false;
    self->pending[self->pending_count++] = x;
    tn__pending_place(x, self->pending_count);
    tn__pending_count_written(self, x);
    return true;
}

static inline void tn__scope_add(tn__scope *scope, tn__handle *x)
{
    x->scope = scope;
    x->previous = NULL;
    x->next = scope->first;
    if (x->next)
        x->next->previous = x;
    scope->first = x;
}

#endif
