/* SPDX-License-Identifier: MIT */
/*
 * Loops over several threads. A loop's range is cut into equal pieces, one a thread; no result may depend on the cut.
 */
#ifndef TN_BACKENDS_CPU_PARALLEL_H
#define TN_BACKENDS_CPU_PARALLEL_H

#include <tanso/base.h>

/* Below this many element operations a loop runs in the calling thread. */
#define TN__CPU_PARALLEL_WORK 32768

typedef void (*tn__cpu_body)(void *context, int64_t begin, int64_t end);

/* Threads that a loop of `items` pieces of `cost` element operations is worth. */
int tn__cpu_team(int64_t items, int64_t cost);
/* Calls body over [0, items). */
void tn__cpu_for(int64_t items, int64_t cost, tn__cpu_body body, void *context);

#endif
