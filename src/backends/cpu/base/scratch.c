/* SPDX-License-Identifier: MIT */
/* One block of memory for the whole process, which grows to the largest size that a step has needed. A thread that
 * finds it in use allocates its own. */
#include "backends/cpu/base/scratch.h"

#include <stdatomic.h>

#include "core/memory.h"

static struct {
    atomic_flag busy;
    char *memory;
    size_t bytes;
} common = {.busy = ATOMIC_FLAG_INIT};

tn__scratch tn__scratch_take(size_t bytes)
{
    if (atomic_flag_test_and_set_explicit(&common.busy, memory_order_acquire))
        return (tn__scratch){tn__alloc_aligned(bytes), false};
    if (bytes > common.bytes) {
        tn__free(common.memory);
        common.memory = tn__alloc_aligned(bytes);
        common.bytes = common.memory ? bytes : 0;
    }
    char *memory = common.memory;
    if (!memory)
        atomic_flag_clear_explicit(&common.busy, memory_order_release);
    return (tn__scratch){memory, memory != NULL};
}

void tn__scratch_give(tn__scratch scratch)
{
    if (scratch.common)
        atomic_flag_clear_explicit(&common.busy, memory_order_release);
    else
        tn__free(scratch.memory);
}

__attribute__((destructor)) static void free_common(void)
{
    tn__free(common.memory);
    common.memory = NULL;
    common.bytes = 0;
}
