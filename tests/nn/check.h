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
#include <time.h>

#include <cmocka.h>
#include <tanso.h>

static uint64_t check_state;
/* What is being checked, for messages. */
static const char *check_context = "";

/* Seeds from TANSO_TEST_SEED or the clock, and prints the seed, so that a failure can be repeated. */
static inline int check_seed(void **state)
{
    struct timespec now;
    (void)state;
    const char *given = getenv("TANSO_TEST_SEED");
    clock_gettime(CLOCK_REALTIME, &now);
    check_state = given ? strtoull(given, NULL, 10) : (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20;
    print_message("TANSO_TEST_SEED=%llu\n", (unsigned long long)check_state);
    tn_seed(check_state);
    return 0;
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static inline uint64_t check_bits(void)
{
    uint64_t z = (check_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline double check_uniform(double low, double high)
{
    return low + (high - low) * (double)(check_bits() >> 11) * 0x1p-53;
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

static inline void check_fine(void)
{
    assert_string_equal(tn_error(), "");
}

#endif
