/* SPDX-License-Identifier: MIT */
/* What the tests of users' kernels share: results against the same computed by Tanso's own operations or by plain C. */
#ifndef TN_TESTS_KERNELS_CHECK_H
#define TN_TESTS_KERNELS_CHECK_H

#include <tanso.h>

#include "support/device.h"
#include "support/latched.h"
#include "support/random.h"

/* A random float32 array on the device under test. */
tn_array *random_floats(test_random *random, tn_shape shape);
/* Equal dtypes, shapes and, bit for bit, elements. */
void assert_same(const tn_array *a, const tn_array *b);
/* Elements as doubles, equal or both NaN. */
#define assert_elements(x, ...) \
    assert_elements_at(x, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double), __FILE__, __LINE__)
void assert_elements_at(const tn_array *x, const double *expected, size_t count, const char *file, int line);
/* A scope a test. */
int open_scope(void **state);
int close_scope(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

#endif
