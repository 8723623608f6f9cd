/* SPDX-License-Identifier: MIT */
/* Lists of numbers that grow, and heaps of numbers with a key, which give the one with the least key. */
#ifndef TN_COMPILE_IR_NUMBERS_H
#define TN_COMPILE_IR_NUMBERS_H

#include "core/memory.h"

#include <stdint.h>

typedef struct tn__numbers {
    int *at;
    int count;
    size_t capacity;
} tn__numbers;

/* False without memory. */
static inline bool tn__numbers_add(tn__numbers *list, int number)
{
    if (!tn__grow((void **)&list->at, &list->capacity, (size_t)list->count + 1, sizeof *list->at))
        return false;
    list->at[list->count++] = number;
    return true;
}

/* Numbers from 0 on, by key and then by number. */
typedef struct tn__heap {
    int64_t *at;
    int count;
    size_t capacity;
} tn__heap;

/* False without memory. */
bool tn__heap_add(tn__heap *heap, int key, int number);
/* Of one that is not empty: the least key, its number, and that number taken out. */
static inline int tn__heap_key(const tn__heap *heap) { return (int)(heap->at[0] >> 32); }
static inline int tn__heap_first(const tn__heap *heap) { return (int)(heap->at[0] & INT32_MAX); }
int tn__heap_take(tn__heap *heap);

#endif
