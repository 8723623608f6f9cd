/* SPDX-License-Identifier: MIT */
/*
 * What a thread keeps for recording: its number, caches of memory, temporaries, pending handles, scopes. Inside the
 * room array/ only.
 *
 * Objects of another thread. A pending node, and a handle that is in a scope or in the list of pending handles, may be
 * changed by the thread that owns it alone, whose number it carries. Another thread that frees such a handle, or drops
 * the last reference to a value that still holds pending inputs, posts it to the owner, which frees it at its next
 * call. Where the owner has ended, the posting thread takes over its number while it frees. As always, an array may be
 * freed only before its scope is left; where two threads do these, they must agree on the order.
 */
#ifndef TN_ARRAY_THREAD_H
#define TN_ARRAY_THREAD_H

#include "array/node.h"
#include "array/slab.h"

typedef struct tn__scope tn__scope;
struct tn__scope {
    tn__handle *first; /* newest */
    tn__scope *outer; /* NULL: this is the thread's own */
    int unmade;       /* pushes that found no memory; their arrays are in this scope until it is left */
    int line;         /* where it was opened */
    const char *file;
};

/* Of a thread, in one byte, so that one comparison finds that there is nothing to be done first. Other threads change
 * the first bit. */
enum {
    TN__CALM = 1,   /* registered, and nothing is posted */
    TN__GUARDED = 2 /* some guard is in the list */
};

typedef struct tn__thread {
    tn__scope *innermost;
    tn__slab_cache slabs[TN__SLAB_KINDS];
    tn__node **temporaries;
    size_t temporary_count, temporary_capacity;
    tn__handle **pending;
    size_t pending_count, pending_capacity;
    uint32_t pending_written;  /* of these, how many the program has written into */
    uint32_t pending_swept;    /* how many there were when values were last taken off the list */
    int64_t live;              /* handles made less handles freed by this thread */
    bool evaluating;           /* inside tn__engine.evaluate */
    uint8_t state;             /* TN__CALM, TN__GUARDED; 0: not registered yet */
    uint16_t number;           /* 0: not registered yet */
    uint16_t acting;           /* the number whose objects it may free: its own, or that of an ended thread */
    int depth;                 /* scopes pushed */
    tn__scope base;
    struct tn__guards *guards; /* the list of guards (guard.c); NULL: none yet */
    uintptr_t guard_limit;     /* of the last one; without any, there is nothing to be compared with it */
    tn__handle *posted_arrays; /* by other threads, under the registry's lock */
    tn__node *posted_nodes;
} tn__thread;

/* In the static block of thread storage, where it is found with one load in a shared library too. */
extern _Thread_local tn__thread tn__this_thread __attribute__((tls_model("initial-exec")));
static inline tn__thread *tn__self(void)
{
    tn__thread *self = &tn__this_thread;
    /* Hides from the compiler where the address is from: a linker may turn the addition that makes it into one that
     * sets no flags, and gcc's undefined-behaviour sanitizer would look at these for a check against NULL. */
    __asm__("" : "+r"(self));
    return self;
}

/* Registers the thread if it is not; false, with a latched error, if that fails. */
bool tn__thread_register(void);
/* The same, and frees what other threads posted to this one. */
bool tn__thread_attend(void);
static inline uint8_t tn__thread_state(const tn__thread *self)
{
    return __atomic_load_n(&self->state, __ATOMIC_RELAXED);
}
static inline void tn__thread_set_state(tn__thread *self, int bit, bool set)
{
    if (set)
        __atomic_fetch_or(&self->state, (uint8_t)bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&self->state, (uint8_t)~bit, __ATOMIC_RELAXED);
}
static inline bool tn__thread_ready(tn__thread *self)
{
    return __builtin_expect(tn__thread_state(self) & TN__CALM, 1) || tn__thread_attend();
}
/* Calls come from frames below the innermost guard's limit, or its function was left by longjmp (array/guard.h): then
 * everything is put right. */
void tn__guards_look(tn__thread *self);
static inline void tn__guards_check(tn__thread *self)
{
    if (__builtin_expect(tn__thread_state(self) & TN__GUARDED, 0))
        tn__guards_look(self);
}
/* What every call begins by: the two together, of which there is nearly always nothing to do. */
bool tn__thread_begin_slowly(tn__thread *self);
static inline bool tn__thread_begin(tn__thread *self)
{
    uint8_t state = tn__thread_state(self);
    if (__builtin_expect(state == TN__CALM, 1))
        return true;
    bool inside = state == (TN__CALM | TN__GUARDED) && (uintptr_t)__builtin_frame_address(0) <= self->guard_limit;
    return inside || tn__thread_begin_slowly(self);
}
/* Frees the list at the thread's end. */
void tn__guards_free(tn__thread *self);
/* Hands an object to the thread that owns it. */
void tn__thread_post_array(tn__handle *x, uint16_t owner);
void tn__thread_post_node(tn__node *node, uint16_t owner);

/* Read by any thread, written by this one alone. */
static inline void tn__thread_count_live(tn__thread *self, int64_t change)
{
    __atomic_store_n(&self->live, __atomic_load_n(&self->live, __ATOMIC_RELAXED) + change, __ATOMIC_RELAXED);
}

static inline void *tn__thread_take(tn__thread *self, tn__slab_kind kind)
{
    return tn__slab_take(&self->slabs[kind], kind);
}
static inline void tn__thread_put(tn__thread *self, tn__slab_kind kind, void *object)
{
    tn__slab_put(&self->slabs[kind], kind, object);
}

/* ---- between the files of the room ---- */
/* The node that stands for exhausted memory: its place, for comparisons, and the node made ready for use. */
extern tn__node tn__no_memory;
tn__node *tn__node_no_memory(void);
/* Drops a reference to a node that may be pending in another thread. */
void tn__node_release_anywhere(tn__node *node);
/* Frees a handle that this thread may change: its own, or posted. It died at `place` (array/places.h). */
void tn__handle_free(tn__handle *x, uint32_t place);
/* Leaves every scope of the thread and frees its own arrays. */
void tn__scopes_end(void);
/* Empties the list of pending handles and frees it. */
void tn__pending_end(void);

#endif
