/* SPDX-License-Identifier: MIT */
/*
 * Loops over several threads. A loop's range is cut into equal pieces, a few a thread; no result may depend on the cut.
 */
#ifndef TN_BACKENDS_CPU_BASE_PARALLEL_H
#define TN_BACKENDS_CPU_BASE_PARALLEL_H

#include <tanso/base.h>

/*
 * Elementary operations below which a loop stays in its thread: about 50 us of work. Sharing 5 us of it would pay on an
 * idle machine, but on a busy one every region waits until all its threads get a processor, tens of milliseconds at
 * times.
 */
#define TN__CPU_PARALLEL_WORK (1 << 18)

typedef void (*tn__cpu_body)(void *context, int64_t begin, int64_t end);

/* The number of threads that a loop of `items` items of `cost` element operations each is worth. */
int tn__cpu_team(int64_t items, int64_t cost);
/* Calls body over [0, items), in pieces and from several threads where that is worth it and they are not busy
 * otherwise. */
void tn__cpu_for(int64_t items, int64_t cost, tn__cpu_body body, void *context);
/* The same with a given number of threads, one item at a time: for few, costly items. */
void tn__cpu_share(int team, int64_t items, tn__cpu_body body, void *context);
/* Sets how many threads oneDNN uses when called from this thread (OpenMP's setting), and returns the previous number.
 * In the pool's threads it is 1. */
int tn__cpu_library_threads(int count);

#endif
