/* SPDX-License-Identifier: MIT */
/* When a value's memory is in use, and where it lies: between memory.c and arena.c. */
#ifndef TN_COMPILE_MEMORY_ARENA_H
#define TN_COMPILE_MEMORY_ARENA_H

#include <tanso/base.h>

typedef struct tn__lifetime {
    int first, last; /* step that first writes, last step that touches; first > last: unused */
    size_t bytes, offset;
    bool temporary;
} tn__lifetime;

/* Gives the temporaries among `count` values their offsets in an arena, whose size it tells: largest first, of one
 * size (as TN__ALIGNMENT rounds it) those that live first, each at the lowest offset where it meets no other that lives
 * at the same time; without `reuse`, where it meets no other. False without memory. */
bool tn__arena_lay_out(tn__lifetime *life, int count, int steps, bool reuse, size_t *bytes);

#endif
