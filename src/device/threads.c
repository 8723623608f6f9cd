/* SPDX-License-Identifier: MIT */
/* How many threads evaluation on the CPU uses. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <tanso/device.h>
#include "core/log.h"

#define MOST_THREADS 1024

static atomic_int chosen; /* 0: not yet */

/* A positive count at the start of an environment variable (OMP_NUM_THREADS may be a list), else 0. */
static int from_environment(const char *name, bool ours)
{
    const char *text = getenv(name);
    char *end = NULL;
    long count = text ? strtol(text, &end, 10) : 0;
    if (ours && text && *text && (*end || count < 1))
        tn__log(TN__LOG_WARN, "device", "%s: expected a number of threads, 1 to %d; got '%s': going on without it",
                name, MOST_THREADS, text);
    return count < 0 ? 0 : count > MOST_THREADS ? MOST_THREADS : (int)count;
}

/* The processors that this process may run on: fewer than there are in containers and under batch systems. */
static int processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

void tn_set_threads(int count)
{
    if (count <= 0)
        count = processors();
    atomic_store(&chosen, count > MOST_THREADS ? MOST_THREADS : count);
}

int tn_threads(void)
{
    int count = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (count > 0)
        return count;
    count = from_environment("TANSO_THREADS", true);
    if (count == 0)
        count = from_environment("OMP_NUM_THREADS", false);
    tn_set_threads(count);
    return atomic_load(&chosen);
}
