/* SPDX-License-Identifier: MIT */
/*
 * Loops over several threads, on OpenMP: opening and closing a parallel region with 2 threads takes 0.7 us, which a pool of
 * our own could not better by enough to matter, and oneDNN multiplies in the same pool: two pools would fight over the cores.
 */
#include "backends/cpu/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tanso/device.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* A child by fork() has this thread alone, but gcc's OpenMP would wait there for the threads it had before. */
static atomic_bool forked;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void note_fork(void) { atomic_store(&forked, true); }

static void watch_forks(void) { (void)!pthread_atfork(NULL, NULL, note_fork); }

int tn__cpu_threads(void)
{
    int threads = tn_threads();
    if (threads == 1)
        return 1;
    pthread_once(&watched, watch_forks);
    return atomic_load_explicit(&forked, memory_order_relaxed) ? 1 : threads;
}

int tn__cpu_team(int64_t items, int64_t cost)
{
    if (items < 2 || (double)items * (double)cost < TN__CPU_PARALLEL_WORK)
        return 1;
    int team = tn__cpu_threads();
    return items < team ? (int)items : team;
}

void tn__cpu_for(int64_t items, int64_t cost, tn__cpu_body body, void *context)
{
#ifdef _OPENMP
    int team = tn__cpu_team(items, cost);
    if (team > 1) {
#pragma omp parallel num_threads(team)
        {
            int64_t count = omp_get_num_threads(), id = omp_get_thread_num();
            int64_t share = items / count, rest = items % count;
            int64_t begin = id * share + (id < rest ? id : rest);
            int64_t end = begin + share + (id < rest);
            if (begin < end)
                body(context, begin, end);
        }
        return;
    }
#else
    (void)cost;
#endif
    if (items > 0)
        body(context, 0, items);
}
