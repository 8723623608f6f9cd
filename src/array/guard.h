/* SPDX-License-Identifier: MIT */
/*
 * Public calls that call functions of the program's: a gradient function, a layer's forward, a hook. A C++ exception
 * that leaves such a function goes on through the library's frames, and longjmp leaves them without their knowing.
 * Either way the thread shall be as it was before the call: its scopes, whether it records, its temporaries.
 *
 * TN__GUARD stands first in such a call. However the call is left, but for longjmp, its end (cleanup) puts things
 * right. After longjmp the guard stays in the thread's list, and is found by the next call that enters the library from
 * a frame above those that the guarded call had: to tell these frames from the ones that come in their place, the guard
 * keeps a stretch of the stack between them that nothing else is in. What that call then puts right is an error, as
 * whatever was under way has been torn in two, and its memory is lost.
 */
#ifndef TN_ARRAY_GUARD_H
#define TN_ARRAY_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN__GUARD_ROOM 8192

/* How a thread is before a guarded call. */
typedef struct tn__before {
    const char *operation;
    const void *object; /* that the call is of, see tn__guard_name */
    uintptr_t limit; /* frames of what the call calls lie below */
    size_t temporaries;
    int depth, no_grad, reports;
    bool evaluating;
} tn__before;

typedef struct tn__guard {
    size_t count;      /* guards in the thread's list before this one */
    bool listed;       /* what it notes is there; else, for want of memory, here */
    tn__before before;
} tn__guard;

void tn__guard_enter(tn__guard *guard, const char *operation, const void *frame, void *room);
void tn__guard_leave(tn__guard *guard);
#define TN__GUARD(operation) \
    tn__guard tn__this_guard __attribute__((cleanup(tn__guard_leave))); \
    tn__guard_enter(&tn__this_guard, operation, __builtin_frame_address(0), __builtin_alloca(TN__GUARD_ROOM))

/* Names the object that a guarded call is of; and whether this thread is in such a call, which none that was left by
 * longjmp is. */
void tn__guard_name(const tn__guard *guard, const void *object);
bool tn__guarded(const void *object);
#define TN__GUARD_OF(operation, object) \
    TN__GUARD(operation); \
    tn__guard_name(&tn__this_guard, object)
/* What frees an object asks: whether a call of the object is under way, which has called the program; latches. */
bool tn__at_work(const void *object, const char *what);

/* Who listens to the thread's reports (train/reporter.c, above this room); NULL until somebody has. */
typedef const struct tn__reports {
    int (*depth)(void);
    void (*back_to)(int depth);
} tn__reports;
extern tn__reports *tn__guard_reports;

#endif
