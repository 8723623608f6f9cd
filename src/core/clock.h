/* SPDX-License-Identifier: MIT */
/* A clock that only goes on, for what takes how long: CLOCK_MONOTONIC, whose beginning means nothing. */
#ifndef TN_CORE_CLOCK_H
#define TN_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t tn__nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double tn__seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The same to some milliseconds, in a fifth of the time: for what asks often whether it is time. */
static inline double tn__seconds_about(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#else
    return tn__seconds();
#endif
}

#endif
