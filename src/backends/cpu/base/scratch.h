/* SPDX-License-Identifier: MIT */
/* Memory that a step needs while it runs. Steps mostly get the same block, so that it is in the cache and causes no
 * page faults. */
#ifndef TN_BACKENDS_CPU_SCRATCH_H
#define TN_BACKENDS_CPU_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tn__scratch {
    char *memory; /* 64-byte aligned, uninitialised; NULL without memory */
    bool common;
} tn__scratch;

/* Several threads may call this at once. */
tn__scratch tn__scratch_take(size_t bytes);
void tn__scratch_give(tn__scratch scratch);

#endif
