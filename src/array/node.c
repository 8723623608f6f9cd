/* SPDX-License-Identifier: MIT */
/* Nodes: making, freeing, and giving them values. */
#include "array/node.h"

#include <pthread.h>
#include <stdatomic.h>

#include "array/build.h"
#include "array/fresh.h"


/* ---- exhausted memory ---- */

/* Its count starts so high that matched retains and releases never bring it to 0. */
tn__node tn__no_memory = {.references = 1u << 30, .op = TN__OP_ERROR};

static void make_no_memory(void)
{
    tn__no_memory.shape = tn__shape_scalar();
    tn__no_memory.error = tn__error_no_memory();
}

tn__node *tn__node_no_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_no_memory);
    return &tn__no_memory;
}

/* ---- temporaries ---- */

static __attribute__((noinline)) bool grow_temporaries(void)
{
    tn__thread *self = tn__self();
    return tn__grow((void **)&self->temporaries, &self->temporary_capacity, self->temporary_count + 1,
                    sizeof *self->temporaries);
}

static __attribute__((noinline)) tn__node *fail_new(void)
{
    tn__fail_memory("array", sizeof(tn__node));
    return tn__node_no_memory();
}

/* A node that only the list of temporaries holds; NULL without memory. */
static inline tn__node *temporary_new(tn__op op, tn_dtype dtype, int flags, const tn__shape *shape, tn__device *device,
                                      bool wide)
{
    tn__thread *self = tn__self();
    if (__builtin_expect(self->temporary_count == self->temporary_capacity, 0) && !grow_temporaries())
        return NULL;
    tn__node *node =
        __builtin_expect(wide, 0) ? tn__thread_take(self, TN__SLAB_WIDE_NODE) : tn__thread_take(self, TN__SLAB_NODE);
    if (__builtin_expect(node == NULL, 0))
        return NULL;
    self->temporaries[self->temporary_count++] = node;
    tn__node_begin(self, node, op, dtype, flags | TN__NODE_TEMPORARY | (wide ? TN__NODE_WIDE : 0), shape, device);
    return node;
}

tn__call tn__enter(void)
{
    tn__thread *self = tn__self();
    tn__thread_begin(self);
    return self->temporary_count;
}

void tn__leave(tn__call call)
{
    tn__thread *self = tn__self();
    while (self->temporary_count > call) {
        tn__node *node = self->temporaries[--self->temporary_count];
        tn__node_not_temporary(node);
        tn__node_release(node);
    }
}

/* ---- making ---- */

static tn__node *error_of_input(tn__node *in)
{
    return tn__node_is_error(in) ? in : tn__node_error(tn__error_retain(in->error));
}

/* depth and flags: of the inputs together, which are no errors. */
static inline tn__node *recorded(tn__op op, tn_dtype dtype, const tn__shape *shape, tn__device *device, int arity,
                                 tn__node *const *in, const tn__attr *attr, uint32_t depth, int flags)
{
    flags &= TN__NODE_NEEDS_GRAD | TN__NODE_LOOKS;
    if (__builtin_expect(tn__no_grad_depth > 0, 0))
        flags = (flags & TN__NODE_LOOKS) | TN__NODE_NO_GRAD;
    else if (flags && !(tn__ops[op].differentiable && tn__dtype_inexact(dtype)))
        flags &= TN__NODE_LOOKS;
    tn__node *node = temporary_new(op, dtype, flags, shape, device, arity > TN__MAX_ARITY);
    if (__builtin_expect(node == NULL, 0))
        return fail_new();
    node->arity = (uint8_t)arity;
    node->depth = depth + 1;
    /* Word by word, kept so by the empty asm: the caller has just stored the words apart, and one wide load of both
     * would have to wait until they are in the cache. */
    uint64_t low = attr->raw[0], high = attr->raw[1];
    __asm__("" : "+r"(low), "+r"(high));
    node->attr.raw[0] = low;
    node->attr.raw[1] = high;
    for (int i = 0; i < arity; i++)
        node->in[i] = tn__node_retain(in[i]);
    return node;
}

/* Whoever is told of operations, and from which depth on recording takes the long way: from 0 while somebody is. */
static _Atomic(tn__recording_hook) recording_hook;
static _Atomic uint32_t deep = TN__MAX_DEPTH;
uint32_t tn__depth_limit = TN__MAX_DEPTH;

/* Gives values to the inputs that are as deep as a recording may be, before it records; and tells of what it does. */
static __attribute__((noinline)) tn__node *recorded_deep(tn__op op, tn_dtype dtype, const tn__shape *shape,
                                                         tn__device *device, int arity, tn__node *const *in,
                                                         const tn__attr *attr)
{
    tn__thread *self = tn__self();
    uint32_t depth = 0;
    int flags = 0;
    for (int i = 0; i < arity; i++) {
        if (in[i]->error)
            return error_of_input(in[i]);
        if (in[i]->depth >= tn__max_depth() && tn__engine.evaluate && !self->evaluating) {
            self->evaluating = true;
            tn_status status = tn__engine.evaluate(in[i]);
            self->evaluating = false;
            if (status)
                return tn__failed();
        }
        depth = in[i]->depth > depth ? in[i]->depth : depth;
        flags |= in[i]->flags;
    }
    tn__node *node = recorded(op, dtype, shape, device, arity, in, attr, depth, flags);
    tn__recording_hook hook = atomic_load_explicit(&recording_hook, memory_order_acquire);
    if (hook && !tn__node_is_error(node))
        hook(node);
    return node;
}

void tn__watch_recording(tn__recording_hook hook)
{
    atomic_store_explicit(&recording_hook, hook, memory_order_release);
    atomic_store_explicit(&deep, hook ? 0 : tn__max_depth(), memory_order_relaxed);
}

void tn__set_max_depth(uint32_t depth)
{
    __atomic_store_n(&tn__depth_limit, depth, __ATOMIC_RELAXED);
    tn__watch_recording(atomic_load_explicit(&recording_hook, memory_order_acquire));
}

tn__node *tn__node_new(tn__op op, tn_dtype dtype, const tn__shape *shape, tn__device *device, int arity,
                       tn__node *const *in, tn__attr attr)
{
    uint32_t depth = 0; /* 0 of values */
    int flags = 0;
    for (int i = 0; i < arity; i++) {
        const tn__node *input = in[i];
        if (__builtin_expect(input->error != NULL, 0))
            return error_of_input(in[i]);
        depth = input->depth > depth ? input->depth : depth;
        flags |= input->flags;
    }
    if (__builtin_expect(depth >= atomic_load_explicit(&deep, memory_order_relaxed), 0))
        return recorded_deep(op, dtype, shape, device, arity, in, &attr);
    return recorded(op, dtype, shape, device, arity, in, &attr, depth, flags);
}

tn__node *tn__node_value(tn__storage *storage, tn_dtype dtype, const tn__shape *shape, int64_t offset,
                         const tn__ints *strides)
{
    tn__node *node = temporary_new(TN__OP_VALUE, dtype, 0, shape, storage->device, false);
    if (!node)
        return fail_new();
    node->storage = tn__storage_retain(storage);
    node->offset = offset;
    node->strides = strides;
    return node;
}

tn__node *tn__node_error(tn__error *error)
{
    if (!error)
        return tn__node_no_memory();
    tn__node *node = temporary_new(TN__OP_ERROR, TN_DTYPE_DEFAULT, 0, tn__shape_scalar(), NULL, false);
    if (!node) {
        tn__error_release(error);
        return fail_new();
    }
    node->error = error;
    return node;
}

tn__node *tn__failed(void) { return tn__node_error(tn__error_retain(tn__error_last())); }

tn__node *tn__node_borrow(tn__node *node)
{
    tn__thread *self = tn__self();
    if (node->flags & TN__NODE_TEMPORARY || node == &tn__no_memory)
        return node;
    if (self->temporary_count == self->temporary_capacity && !grow_temporaries())
        return fail_new();
    self->temporaries[self->temporary_count++] = tn__node_retain(node);
    if (tn__node_pending(node)) /* else several threads may hold it so at once, and it is listed each time */
        node->flags |= TN__NODE_TEMPORARY;
    return node;
}

/* ---- freeing ---- */

/* A pending node counts plainly, so only its owner may drop a reference. Its owner may just be giving it a value: once
 * that is seen, counts are atomic for all. */
static bool is_foreign(const tn__thread *self, const tn__node *in)
{
    return in->owner != self->acting && !__atomic_load_n(&in->storage, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&in->error, __ATOMIC_ACQUIRE);
}

enum dropped { STILL_HELD, DEAD, FOREIGN };

/* Drops a reference to an input, if this thread may. */
static inline enum dropped drop_reference(const tn__thread *self, tn__node *in)
{
    if (__atomic_load_n(&in->storage, __ATOMIC_ACQUIRE) || __atomic_load_n(&in->error, __ATOMIC_ACQUIRE))
        return __atomic_sub_fetch(&in->references, 1, __ATOMIC_ACQ_REL) == 0 ? DEAD : STILL_HELD;
    if (__builtin_expect(in->owner != self->acting, 0))
        return FOREIGN;
    return --in->references == 0 ? DEAD : STILL_HELD;
}

void tn__node_free(tn__node *node)
{
    if (node == &tn__no_memory)
        return;
    /* Dead nodes still to be taken apart are chained through their marks: graphs are too deep to recurse. */
    tn__thread *self = tn__self();
    node->mark = 0;
    for (tn__node *dead = node; dead;) {
        node = dead;
        dead = (tn__node *)(uintptr_t)node->mark;
        uint16_t elsewhere = 0;
        for (int i = 0; i < node->arity; i++) {
            tn__node *in = node->in[i];
            if (!in)
                continue; /* dropped before the node was posted here */
            enum dropped dropped = drop_reference(self, in);
            if (__builtin_expect(dropped == FOREIGN, 0)) {
                elsewhere = in->owner;
                continue;
            }
            node->in[i] = NULL;
            if (dropped == DEAD) {
                in->mark = (uintptr_t)dead;
                dead = in;
            }
        }
        tn__storage *storage = node->storage;
        tn__error *error = node->error;
        tn__node *plain = node->plain;
        if (elsewhere) {
            node->plain = NULL;
            node->storage = NULL;
            node->error = NULL;
            tn__thread_post_node(node, elsewhere);
        } else if (__builtin_expect(node->flags & TN__NODE_WIDE, 0)) {
            tn__thread_put(self, TN__SLAB_WIDE_NODE, node);
        } else {
            tn__thread_put(self, TN__SLAB_NODE, node);
        }
        if (storage) {
            tn__storage_release(storage);
            if (__builtin_expect(plain != NULL, 0)) /* of values alone */
                tn__node_release(plain);
        }
        if (error)
            tn__error_release(error);
    }
}

void tn__node_release_anywhere(tn__node *node)
{
    tn__thread *self = tn__self();
    if (!is_foreign(self, node)) {
        tn__node_release(node);
        return;
    }
    /* A dead node carries the reference to the owner. Without memory for it, `node` lives as long as the process. */
    tn__node *carrier = tn__thread_take(self, TN__SLAB_NODE);
    if (!carrier) {
        tn__fail_memory("tn_free", sizeof *carrier);
        return;
    }
    *carrier = (tn__node){.op = TN__OP_COPY, .arity = 1};
    carrier->in[0] = node;
    tn__thread_post_node(carrier, node->owner);
}

/* ---- values ---- */

static void drop_inputs(tn__node *node)
{
    int arity = node->arity;
    node->arity = 0;
    for (int i = 0; i < arity; i++) {
        tn__node *in = node->in[i];
        node->in[i] = NULL;
        tn__node_release(in);
    }
}

void tn__node_set_value(tn__node *node, tn__storage *storage, int64_t offset, const tn__ints *strides, bool drop)
{
    tn__storage *old = node->storage;
    node->offset = offset;
    node->strides = strides;
    node->depth = 0;
    node->flags &= (uint16_t)~TN__NODE_LOOKS;
    /* From here on counts are atomic. */
    __atomic_store_n(&node->storage, tn__storage_retain(storage), __ATOMIC_RELEASE);
    if (old)
        tn__storage_release(old);
    if (drop)
        tn__node_drop_inputs(node);
}

void tn__node_drop_inputs(tn__node *node)
{
    /* One without inputs stays what it is: a constant can still be folded into other operations. */
    if (node->arity) {
        __atomic_store_n(&node->op, TN__OP_VALUE, __ATOMIC_RELAXED);
        node->attr = (tn__attr){.raw = {0}};
    }
    drop_inputs(node);
}

void tn__node_let_go(tn__node *node) { drop_inputs(node); }

void tn__node_set_released(tn__node *node, tn__error *error)
{
    if (!tn__node_pending(node)) {
        tn__error_release(error);
        return;
    }
    node->flags |= TN__NODE_RELEASED;
    __atomic_store_n(&node->error, error, __ATOMIC_RELEASE);
    drop_inputs(node);
}
