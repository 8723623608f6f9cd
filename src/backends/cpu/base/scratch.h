/* SPDX-License-Identifier: MIT */
/* Memory that a step needs while it runs, mostly the same from step to step: warm, and without a page to be had. */
#ifndef TN_BACKENDS_CPU_SCRATCH_H
#define TN_BACKENDS_CPU_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tn__scratch {
    char *memory; /* 64-byte aligned, uninitialised; NULL without memory */
    bool common;
} tn__scratch;

/* Threads may take some at once. */
tn__scratch tn__scratch_take(size_t bytes);
void tn__scratch_give(tn__scratch scratch);

#endif
