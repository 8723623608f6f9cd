/* SPDX-License-Identifier: MIT */
/* Heaps as arrays: what is at i is no more than what is at 2 i + 1 and 2 i + 2. */
#include "compile/ir/numbers.h"

bool tn__heap_add(tn__heap *heap, int key, int number)
{
    if (!tn__grow((void **)&heap->at, &heap->capacity, (size_t)heap->count + 1, sizeof *heap->at))
        return false;
    int64_t added = (int64_t)key * ((int64_t)1 << 32) + number;
    int i = heap->count++;
    for (; i > 0 && heap->at[(i - 1) / 2] > added; i = (i - 1) / 2)
        heap->at[i] = heap->at[(i - 1) / 2];
    heap->at[i] = added;
    return true;
}

int tn__heap_take(tn__heap *heap)
{
    int first = tn__heap_first(heap), i = 0;
    int64_t last = heap->at[--heap->count];
    for (int below; (below = 2 * i + 1) < heap->count; i = below) {
        if (below + 1 < heap->count && heap->at[below + 1] < heap->at[below])
            below++;
        if (heap->at[below] >= last)
            break;
        heap->at[i] = heap->at[below];
    }
    heap->at[i] = last;
    return first;
}
