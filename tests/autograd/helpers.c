/* SPDX-License-Identifier: MIT */
/* Helpers of the tests of differentiation. */
#include "autograd/helpers.h"

#include "support/random.h"
#include "support/slice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;
static test_random numbers;

uint64_t test_seed(void)
{
    if (!seed)
        numbers.state = seed = test_seed_new();
    return seed;
}

/* In [least, most]. */
static int64_t random_int(int64_t least, int64_t most)
{
    test_seed();
    return test_random_int(&numbers, least, most);
}

static int64_t size_of(tn_shape shape)
{
    int64_t size = 1;
    for (int i = 0; i < shape.ndim; i++)
        size *= shape.dim[i];
    return size;
}

tn_array *spread(tn_shape shape, double low, double high, int phase)
{
    int64_t n = size_of(shape);
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = random_int(0, i);
        values[i] = values[j];
        values[j] = low + (high - low) * ((double)i + 0.2 + 0.25 * phase) / (double)n;
    }
    tn_array *x = tn_from_host(values, shape, TN_FLOAT64);
    free(values);
    return x;
}

tn_array *random_indices(tn_shape shape, int64_t low, int64_t high)
{
    int64_t n = size_of(shape), *values = malloc((size_t)(n + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = random_int(low, high - 1);
    tn_array *x = tn_from_host(values, shape, TN_INT64);
    free(values);
    return x;
}

void check_gradients(const char *what, tn_function f, void *user, int count,
                     const tn_array *const *xs)
{
    if (!test_in_slice())
        return;
    uint64_t directions = test_seed();
    if (tn_check_backward(f, user, count, xs, .eps = 1e-4, .rtol = 1e-5, .atol = 1e-6,
                          .seed = directions) != TN_OK)
        fail_msg("%s: %s (TANSO_TEST_SEED=%llu)", what, tn_error(),
                 (unsigned long long)test_seed());
    if (tn_check_double_backward(f, user, count, xs, .eps = 1e-4, .rtol = 1e-5, .atol = 1e-6,
                                 .seed = directions) != TN_OK)
        fail_msg("%s: %s (TANSO_TEST_SEED=%llu)", what, tn_error(),
                 (unsigned long long)test_seed());
}

void assert_values(const tn_array *x, int64_t count, const double *expected, double tolerance)
{
    if (tn_is_error(x))
        fail_msg("an error array: %s", tn_message_of(x));
    assert_int_equal(tn_size(x), count);
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    assert_non_null(values);
    if (tn_to_host(tn_cast(x, TN_FLOAT64), values, (size_t)count * sizeof *values) != TN_OK)
        fail_msg("%s", tn_error());
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(values[i] - expected[i]) <= tolerance * fmax(1, fabs(expected[i]))) &&
            !(isnan(values[i]) && isnan(expected[i])) && values[i] != expected[i])
            fail_msg("element %lld is %.17g, expected %.17g", (long long)i, values[i], expected[i]);
    free(values);
}

void assert_error(tn_status code, const char *word)
{
    if (tn_error_code() != code)
        fail_msg("expected %s, got %s: %s", tn_status_name(code), tn_status_name(tn_error_code()),
                 tn_error());
    if (!strstr(tn_error(), word))
        fail_msg("expected '%s' in the message: %s", word, tn_error());
    tn_clear_error();
}

void assert_fine(void)
{
    if (!tn_ok())
        fail_msg("%s", tn_error());
}

static size_t live;

int enter_test(void **unused)
{
    (void)unused;
    tn_set_compile(getenv("TANSO_TEST_COMPILE") ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
    tn_clear_error();
    live = tn_live_arrays();
    tn_scope_push();
    return 0;
}

int leave_test(void **unused)
{
    (void)unused;
    tn_scope_pop();
    if (!tn_ok())
        fprintf(stderr, "an error nobody looked at: %s\n", tn_error());
    if (tn_live_arrays() != live)
        fprintf(stderr, "%zu arrays leaked\n", tn_live_arrays() - live);
    return !tn_ok() || tn_live_arrays() != live || !tn_grad_enabled();
}
