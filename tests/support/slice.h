/* SPDX-License-Identifier: MIT */
/* A long test as several processes side by side: each makes every n-th of its checks, the k-th, as
 * TANSO_TEST_SLICE="k/n" says (tests/CMakeLists.txt sets it; without it a test makes all its checks). */
#ifndef TN_TESTS_SLICE_H
#define TN_TESTS_SLICE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether the next check is this process's. */
static inline bool test_in_slice(void)
{
    static unsigned checks;
    unsigned mine = 0, slices = 1;
    const char *given = getenv("TANSO_TEST_SLICE");
    if (given && (sscanf(given, "%u/%u", &mine, &slices) != 2 || slices == 0 || mine >= slices)) {
        fprintf(stderr, "TANSO_TEST_SLICE: expected k/n with k < n, got '%s'\n", given);
        exit(1);
    }
    return checks++ % slices == mine;
}

#endif
