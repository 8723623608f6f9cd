/* SPDX-License-Identifier: MIT */
/* Putting a thread right whose call of a function of the program's did not return. */
#include "array/guard.h"

#include <pthread.h>

#include "array/build.h"
#include "array/thread.h"
#include "core/memory.h"

tn__reports *tn__guard_reports;

/* Of a thread; in memory of its own, as little of a library's thread storage may be its own in programs that load it
 * late. */
typedef struct tn__guards {
    tn__before *guards;
    size_t count, capacity;
} list;

/* The list has as many guards from here on. */
static void set_count(tn__thread *self, list *l, size_t count)
{
    l->count = count;
    self->guards = l;
    self->guard_limit = count ? l->guards[count - 1].limit : UINTPTR_MAX;
    tn__thread_set_state(self, TN__GUARDED, count != 0);
}

void tn__guards_free(tn__thread *self)
{
    list *l = self->guards;
    if (l)
        tn__free(l->guards);
    tn__free(l);
}

static void put_right(tn__thread *self, const tn__before *before)
{
    while (self->depth > before->depth)
        tn_scope_pop();
    tn__no_grad_depth = before->no_grad;
    self->evaluating = before->evaluating;
    if (self->temporary_count > before->temporaries)
        tn__leave(before->temporaries);
    tn__reports *reports = __atomic_load_n(&tn__guard_reports, __ATOMIC_ACQUIRE);
    if (reports && reports->depth() > before->reports)
        reports->back_to(before->reports);
}

/* Whether both addresses lie in the stack that the thread was made with; those of fibers say nothing of each other. */
static bool in_own_stack(uintptr_t a, uintptr_t b)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
    pthread_attr_destroy(&attributes);
    return known && a - (uintptr_t)lowest < size && b - (uintptr_t)lowest < size;
}

static void repair(tn__thread *self, list *l, uintptr_t frame)
{
    tn__before before = {0};
    size_t count = l->count;
    while (count && frame > l->guards[count - 1].limit)
        before = l->guards[--count];
    set_count(self, l, count);
    put_right(self, &before);
    tn__fail(TN_ERR_STATE, before.operation,
             "a function of the program's that this called was left by longjmp. The thread's scopes are left and it "
             "records as before the call, but what the call was doing is torn in two, and its memory is lost: let "
             "such functions return an error");
}

/* With a list. */
static inline void look_from(tn__thread *self, uintptr_t frame)
{
    list *l = self->guards;
    if (__builtin_expect(frame > self->guard_limit, 0) && in_own_stack(frame, self->guard_limit))
        repair(self, l, frame);
}

void tn__guards_look(tn__thread *self) { look_from(self, (uintptr_t)__builtin_frame_address(0)); }

/* Room for one guard more in the thread's list; NULL without memory: then longjmp out of the call stays unnoticed. */
static tn__before *room_for(tn__thread *self, list *l, uintptr_t limit)
{
    if (!l && tn__thread_ready(self) && (l = tn__calloc(1, sizeof *l))) /* which the thread's end frees */
        set_count(self, l, 0);
    if (!l || !tn__grow((void **)&l->guards, &l->capacity, l->count + 1, sizeof *l->guards))
        return NULL;
    l->guards[l->count].limit = limit;
    set_count(self, l, l->count + 1);
    return &l->guards[l->count - 1];
}

void tn__guard_enter(tn__guard *guard, const char *operation, const void *frame, void *room)
{
    tn__thread *self = tn__self();
    list *l = self->guards;
    if (l)
        look_from(self, (uintptr_t)frame);
    guard->count = l ? l->count : 0;
    tn__before *before = room_for(self, l, (uintptr_t)room);
    guard->listed = before != NULL;
    tn__reports *reports = __atomic_load_n(&tn__guard_reports, __ATOMIC_ACQUIRE);
    *(before ? before : &guard->before) = (tn__before){.operation = operation,
                                                       .limit = (uintptr_t)room,
                                                       .temporaries = self->temporary_count,
                                                       .depth = self->depth,
                                                       .no_grad = tn__no_grad_depth,
                                                       .reports = reports ? reports->depth() : 0,
                                                       .evaluating = self->evaluating};
}

void tn__guard_leave(tn__guard *guard)
{
    tn__thread *self = tn__self();
    list *l = self->guards;
    tn__before before = guard->listed ? l->guards[guard->count] : guard->before;
    if (l)
        set_count(self, l, guard->count);
    put_right(self, &before);
}

void tn__guard_name(const tn__guard *guard, const void *object)
{
    list *l = tn__self()->guards;
    if (l && l->count > guard->count)
        l->guards[guard->count].object = object;
}

bool tn__at_work(const void *object, const char *what)
{
    if (!tn__guarded(object))
        return false;
    tn__fail(TN_ERR_STATE, "free", "this %s is in a call that has called this function: free it after the call", what);
    return true;
}

bool tn__guarded(const void *object)
{
    tn__thread *self = tn__self();
    tn__guards_check(self);
    const list *l = self->guards;
    for (size_t i = 0; l && i < l->count; i++)
        if (l->guards[i].object == object)
            return true;
    return false;
}
