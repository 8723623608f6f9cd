/* SPDX-License-Identifier: MIT */
#include "numpy/gradients.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/random.h"
#include "support/slice.h"

/* Distinct values, so that no difference steps over a tie: a random order of evenly spread numbers. */
static tn_array *spread(int phase)
{
    double data[12];
    for (int i = 0; i < 12; i++)
        data[i] = -1.7 + 0.29 * i + 0.09 * phase;
    for (int i = 11; i > 0; i--) {
        int k = rand() % (i + 1);
        double swap = data[i];
        data[i] = data[k];
        data[k] = swap;
    }
    return tn_from_host(data, TN_SHAPE(3, 4), TN_FLOAT64);
}

static struct {
    const gradient_case *cases;
    size_t count;
} given;

static void test_gradients(void **state)
{
    (void)state;
    const gradient_case *cases = given.cases;
    unsigned seed = (unsigned)test_seed_new();
    srand(seed);
    tn_set_compile(TN_COMPILE_NEVER); /* a thousand small plans */
    int failed = 0;
    for (size_t i = 0; i < given.count; i++)
        TN_SCOPE {
            if (!test_in_slice())
                continue;
            const tn_array *xs[] = {spread(0), spread(1)};
            tn_status once = tn_check_backward(cases[i].f, NULL, cases[i].count, xs, .seed = seed), twice = TN_OK;
            if (once == TN_OK)
                twice = tn_check_double_backward(cases[i].f, NULL, cases[i].count, xs, .seed = seed);
            if (once != TN_OK || twice != TN_OK) {
                print_error("%s, %s (seed %u): %s\n", cases[i].name, once != TN_OK ? "first" : "second", seed,
                            tn_error());
                failed++;
            }
            tn_clear_error();
        }
    assert_int_equal(failed, 0);
}

int gradients_main(const gradient_case *cases, size_t count)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
    given.cases = cases;
    given.count = count;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
