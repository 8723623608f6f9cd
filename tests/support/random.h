/* SPDX-License-Identifier: MIT */
/* Fresh random inputs for tests. TANSO_TEST_SEED repeats a run; the seed is printed, so that a failure shows it. */
#ifndef TN_TESTS_RANDOM_H
#define TN_TESTS_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The seed of this run. */
static inline uint64_t test_seed_new(void)
{
    const char *wanted = getenv("TANSO_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = wanted ? strtoull(wanted, NULL, 10)
                           : ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 40);
    printf("TANSO_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

typedef struct test_random {
    uint64_t state;
} test_random;

static inline test_random test_random_new(void) { return (test_random){test_seed_new()}; }

/* SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t test_random_bits(test_random *r)
{
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* An integer in [least, most]. */
static inline int64_t test_random_int(test_random *r, int64_t least, int64_t most)
{
    return least + (int64_t)(test_random_bits(r) % ((uint64_t)(most - least) + 1));
}

/* In [0, 1). */
static inline double test_random_double(test_random *r)
{
    return (double)(test_random_bits(r) >> 11) * 0x1p-53;
}

#endif
