/* SPDX-License-Identifier: MIT */
/* What the tests of nn and optim share: fresh random numbers, and comparing arrays with values computed in plain C. */
#ifndef TESTS_NN_CHECK_H
#define TESTS_NN_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

static test_random check_random;
/* What is being checked, for messages. */
static const char *check_context = "";

/* A group's set-up: fresh random numbers, for the tests and for the library's own generator. */
static inline int check_seed(void **state)
{
    (void)state;
    check_random = test_random_new();
    tn_seed(check_random.state);
    return 0;
}

static inline uint64_t check_bits(void) { return test_random_bits(&check_random); }

static inline double check_uniform(double low, double high)
{
    return low + (high - low) * test_random_double(&check_random);
}

static inline void check_fill(double *x, int64_t count, double low, double high)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)check_uniform(low, high);
}

/* An array of float32 (or `dtype`) with these values. */
static inline tn_array *check_array(const double *x, tn_shape shape, tn_dtype dtype)
{
    return tn_cast(tn_from_host_with(x, shape, TN_FLOAT64, NULL), dtype);
}

static inline void check_read(const tn_array *x, double *out, int64_t count)
{
    assert_string_equal(tn_is_error(x) ? tn_message_of(x) : "", "");
    assert_int_equal(tn_size(x), count);
    tn_status status = tn_to_host(tn_cast(x, TN_FLOAT64), out, (size_t)count * sizeof *out);
    if (status != TN_OK)
        fail_msg("%s", tn_error());
}

/* |got - want| <= tolerance (1 + |want|) everywhere. */
static inline void check_near(const tn_array *x, const double *want, int64_t count, double tolerance)
{
    double *got = malloc((size_t)count * sizeof *got + 1);
    check_read(x, got, count);
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))) && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s: element %lld is %.9g, expected %.9g", check_context, (long long)i, got[i], want[i]);
    }
    free(got);
}

/* The latched error has this code and its message holds the text; forgets it. */
static inline void check_latched(tn_status code, const char *text)
{
    assert_string_equal(tn_status_name(tn_error_code()), tn_status_name(code));
    if (!strstr(tn_error(), text))
        fail_msg("expected '%s' in the message: %s", text, tn_error());
    tn_clear_error();
}

/* An array that a call did not make. */
#define REFUSED(code, word, call) \
    do { \
        tn_array *refused = (call); \
        assert_true(tn_is_error(refused)); \
        check_latched(code, word); \
    } while (0)

static inline void check_fine(void)
{
    assert_string_equal(tn_error(), "");
}

#endif
