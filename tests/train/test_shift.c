/* SPDX-License-Identifier: MIT */
/* Schedules of hyperparameters: values that Chainer 7.8.1 gave, targets that are not passed, and the ends of those by
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "support/random.h"
#include "train/shift.h"

static test_random chance;

static void assert_values(const char *what, tn__shift s, int count, const double *expected)
{
    double old = s.first;
    for (int t = 0; t < count; t++) {
        old = tn__shift_value(&s, t, old);
        if (!(fabs(old - expected[t]) <= 5e-7 * fabs(expected[t])))
            fail_msg("%s: expected %.9g after %d calls, got %.9g", what, expected[t], t, old);
    }
}
#define VALUES(...) \
    sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]) { __VA_ARGS__ }

static void test_measured(void **state)
{
    (void)state;
    tn__shift s = {.kind = &tn__shift_exponential, .first = 1, .a = 0.5, .target = NAN};
    assert_values("exponential", s, VALUES(1, .5, .25, .125, .0625));
    s.first = 2;
    s.target = 0.3;
    assert_values("exponential with a target", s, VALUES(2, 1, .5, .3, .3));
    assert_values("linear", (tn__shift){.kind = &tn__shift_linear, .first = 1, .a = 1, .b = .2, .c = 2, .d = 6},
                  VALUES(1, 1, 1, .8, .6, .4, .2, .2));
    assert_values("step", (tn__shift){.kind = &tn__shift_step, .first = 1, .a = .1, .b = 3, .target = NAN},
                  VALUES(1, 1, 1, .1, .1, .1, .01));
    assert_values(
        "multistep",
        (tn__shift){.kind = &tn__shift_multistep, .first = 1, .a = .1, .steps = (double[]){3, 5}, .step_count = 2},
        VALUES(1, 1, 1, .1, .1, .01, .01));
    s = (tn__shift){.kind = &tn__shift_polynomial, .first = 1, .a = 2, .b = 5, .target = NAN};
    assert_values("polynomial", s, VALUES(1, .64, .36, .16, .04, 0, 0));
    s.target = .1;
    assert_values("polynomial with a target", s, VALUES(1, .64, .36, .16, .1, .1, .1));
    assert_values("inverse", (tn__shift){.kind = &tn__shift_inverse, .first = 1, .a = .1, .b = .5, .target = NAN},
                  VALUES(1, .953463, .912871, .877058, .845154));
    assert_values("warmup", (tn__shift){.kind = &tn__shift_warmup, .first = 1, .a = .1, .b = 4},
                  VALUES(.1, .325, .55, .775, 1, 1));
}

/* Whatever the first value and the rate, a target is met and not passed. */
static void test_targets(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        bool grows = round % 2;
        double sign = round % 3 ? 1 : -1, first = sign * (0.1 + test_random_double(&chance));
        double rate = grows ? 1.1 + test_random_double(&chance) : 0.9 * test_random_double(&chance);
        double target = first * (grows ? 5 : 0.2);
        tn__shift s = {.kind = round % 5 ? &tn__shift_exponential : &tn__shift_step,
                       .first = first,
                       .a = rate,
                       .b = 2,
                       .target = target};
        double before = first;
        for (int t = 0; t < 200; t++) {
            double value = tn__shift_value(&s, t, before);
            assert_true(grows ? fabs(value) >= fabs(before) && fabs(value) <= fabs(target)
                              : fabs(value) <= fabs(before) && fabs(value) >= fabs(target));
            before = value;
        }
        assert_true(before == target);
    }
}

static void test_placed(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        double length = 1 + 1000 * test_random_double(&chance), first = 0.01 + test_random_double(&chance);
        double warm = length * 0.3 * test_random_double(&chance), last = first * test_random_double(&chance);
        tn__shift s = {
            .kind = &tn__shift_cosine, .first = first, .a = first / 7, .b = last, .c = warm, .length = length};
        assert_true(fabs(tn__shift_value(&s, 0, 9) - (warm > 0 ? first / 7 : first)) < 1e-12);
        assert_true(fabs(tn__shift_value(&s, warm, 9) - first) < 1e-12);
        assert_true(fabs(tn__shift_value(&s, (warm + length) / 2, 9) - (first + last) / 2) < 1e-12);
        assert_true(fabs(tn__shift_value(&s, length, 9) - last) < 1e-12);
        assert_true(fabs(tn__shift_value(&s, length * 2, 9) - last) < 1e-12);
        s = (tn__shift){.kind = &tn__shift_one_cycle, .first = first, .a = 25, .b = 1e4, .c = 0.3, .length = length};
        assert_true(fabs(tn__shift_value(&s, 0, 9) - first / 25) < 1e-12);
        assert_true(fabs(tn__shift_value(&s, 0.3 * length, 9) - first) < 1e-9);
        assert_true(fabs(tn__shift_value(&s, length, 9) - first / 25e4) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_measured), cmocka_unit_test(test_targets),
                                       cmocka_unit_test(test_placed)};
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
