/* SPDX-License-Identifier: MIT */
/* What the tests of the kernel dialect share: cmocka, the dialect, random bits, a check that says what it was of. */
#ifndef TN_TESTS_ARRAY_SCALAR_CHECK_H
#define TN_TESTS_ARRAY_SCALAR_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ops/scalar.h"
#include "support/random.h"

static test_random chance; /* its seed is printed */

static inline uint64_t next(void) { return test_random_bits(&chance); }

#define CHECK(cond, ...) \
    do { \
        if (!(cond)) { \
            print_error(__VA_ARGS__); \
            fail(); \
        } \
    } while (0)

#endif
