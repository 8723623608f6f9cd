/* SPDX-License-Identifier: MIT */
/* Shared by the tests of differentiation: random inputs away from kinks, and gradient checks that
 * say what failed. */
#ifndef TN_TESTS_AUTOGRAD_HELPERS_H
#define TN_TESTS_AUTOGRAD_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>

/* The seed of this run: from TANSO_TEST_SEED, or fresh. Every failure message of check_gradients
 * shows it. */
uint64_t test_seed(void);

/* A float64 array of distinct values spread over (low, high) in random order. Arrays with different
 * `phase` (0, 1, 2) have no value in common, nor has any the value in the middle: differences do
 * not step over the kink of a maximum or of |x|. */
tn_array *spread(tn_shape shape, double low, double high, int phase);
/* Random integers in [low, high). */
tn_array *random_indices(tn_shape shape, int64_t low, int64_t high);

/* First and second derivatives of f by differences. */
void check_gradients(const char *what, tn_function f, void *user, int count,
                     const tn_array *const *xs);

/* Compares all elements, in float64. */
void assert_values(const tn_array *x, int64_t count, const double *expected, double tolerance);
/* Expects exactly this error to be latched, with the word in its message, and clears it. */
void assert_error(tn_status code, const char *word);
/* Expects no error to be latched. */
void assert_fine(void);

/* Around each test: a scope; no error, leaked array or switched-off recording may be left. Unless
 * TANSO_TEST_COMPILE is set, the reference evaluator computes: differences need a thousand small
 * plans, whose compilation would take minutes. */
int enter_test(void **state);
int leave_test(void **state);
#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_test, leave_test)

#endif
