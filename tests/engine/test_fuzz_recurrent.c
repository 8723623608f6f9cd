/* SPDX-License-Identifier: MIT */
/* Random programs like recurrent networks' training: deep, with weights that each step uses, rows written into and read
 * from arrays, and gradients added up over minibatches. However they are evaluated, gradients are the same but for
 * rounding. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <tanso.h>

#include "array/node.h"
#include "support/device.h"
#include "support/random.h"

enum { ROWS = 3, WIDTH = 4, WEIGHTS = 3, STEPS = 40, ROUNDS = 6 };

typedef struct way {
    const char *name;
    tn_compile_mode mode;
    uint32_t depth;  /* where recordings are cut */
    bool one_by_one; /* states get values as they come */
    bool retain;     /* graphs are kept, so that minibatches' gradients stay one recording */
} way;

static tn_array *weight(int k, double scale)
{
    tn_array *w = tn_arange(1, WIDTH * WIDTH + 1, 1, .dtype = TN_FLOAT64);
    return tn_requires_grad(tn_reshape(tn_multiply(tn_sin(tn_multiply(w, k + 1)), scale), TN_SHAPE(WIDTH, WIDTH)));
}

/* What one step does, by a random number: with the states, the inputs of all steps, what was written, and a weight. */
static tn_array *next(int what, int t, tn_array *h, tn_array *x, tn_array **written, tn_array *w)
{
    tn_slice_range row = {t, t + 1, 1}, before = {t > 0 ? t - 1 : 0, t > 0 ? t : 1, 1};
    switch (what) {
    case 0:
        return tn_tanh(tn_add(tn_matmul(h, w), tn_index(x, t)));
    case 1:
        return tn_sin(tn_add(h, tn_matmul(tn_index(x, t), tn_transpose(w, TN_AXES(1, 0)))));
    case 2:
        *written = tn_slice_update(*written, 1, &row, tn_reshape(tn_multiply(h, 0.5), TN_SHAPE(1, ROWS, WIDTH)));
        return tn_add(h, 0.01);
    case 3:
        return tn_add(tn_multiply(h, 0.9), tn_sum(tn_slice(*written, 1, &before), .axis = TN_AXES(0)));
    case 4: /* rows of the weight by number, some of them twice */
        return tn_multiply(tn_add(h, tn_take(w, tn_from_int64s((int64_t[]){t % WIDTH, 1, 1}, ROWS), 0)), 0.7);
    default: /* columns turned about */
        return tn_concatenate(
            2, (const tn_array *[]){tn_slice_axis(h, 1, 1, WIDTH, 1), tn_slice_axis(h, 1, 0, 1, 1)}, 1);
    }
}

static void passes(const way *way, uint64_t seed, int steps, double *gradient)
{
    test_random numbers = {seed};
    tn_set_compile(way->mode);
    tn__set_max_depth(way->depth);
    TN_SCOPE
    {
        tn_array *w[WEIGHTS];
        for (int k = 0; k < WEIGHTS; k++)
            w[k] = weight(k, 0.5);
        int batches = (int)test_random_int(&numbers, 1, 3);
        for (int batch = 0; batch < batches; batch++) {
            tn_array *x = tn_multiply(tn_ones(TN_SHAPE(STEPS, ROWS, WIDTH), .dtype = TN_FLOAT64), 0.1 * (batch + 1));
            tn_array *h = tn_full(TN_SHAPE(ROWS, WIDTH), 0.2, .dtype = TN_FLOAT64), *written = tn_multiply(x, 0.3);
            for (int t = 0; t < steps; t++) {
                int what = (int)test_random_int(&numbers, 0, 5), k = (int)test_random_int(&numbers, 0, WEIGHTS - 1);
                h = next(what, t, h, x, &written, w[k]);
                if (way->one_by_one && t % 3 == 0)
                    assert_int_equal(tn_eval_all(2, (const tn_array *[]){h, written}), TN_OK);
            }
            tn_array *used = tn_sum(tn_multiply(tn_square(w[0]), tn_square(w[1])));
            tn_array *loss = tn_add(tn_add(tn_sum(tn_square(h)), tn_mean(written)), tn_add(used, tn_sum(w[2])));
            assert_int_equal(tn_backward(loss, .retain_graph = way->retain), TN_OK);
        }
        for (int k = 0; k < WEIGHTS; k++)
            assert_int_equal(tn_to_host(tn_grad(w[k]), gradient + k * WIDTH * WIDTH, 8 * WIDTH * WIDTH), TN_OK);
    }
    tn__set_max_depth(TN__MAX_DEPTH);
    tn_set_compile(TN_COMPILE_AUTO);
}

/* Steps multiply errors by less than 2, and states stay below a few units. */
static void compare(const way *ways, int count, uint64_t seed, int steps)
{
    double expected[WEIGHTS * WIDTH * WIDTH], got[WEIGHTS * WIDTH * WIDTH], largest = 1;
    passes(&ways[0], seed, steps, expected);
    for (int i = 0; i < WEIGHTS * WIDTH * WIDTH; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int w = 1; w < count; w++) {
        passes(&ways[w], seed, steps, got);
        for (int i = 0; i < WEIGHTS * WIDTH * WIDTH; i++)
            if (!(fabs(got[i] - expected[i]) <= 1e-9 * largest))
                fail_msg("%s: element %d is %.17g instead of %.17g (program %llu)", ways[w].name, i, got[i],
                         expected[i], (unsigned long long)seed);
    }
}

static void ways_agree(void **state)
{
    (void)state;
    static const way ways[] = {{"whole", TN_COMPILE_NEVER, TN__MAX_DEPTH, false, false},
                               {"minibatches together", TN_COMPILE_NEVER, TN__MAX_DEPTH, false, true},
                               {"cut", TN_COMPILE_NEVER, 160, false, false},
                               {"step by step", TN_COMPILE_NEVER, TN__MAX_DEPTH, true, false}};
    static const way compiled[] = {{"whole", TN_COMPILE_NEVER, TN__MAX_DEPTH, false, false},
                                   {"compiled", TN_COMPILE_ALWAYS, TN__MAX_DEPTH, false, false}};
    if (test_device().kind == TN_DEVICE_CUDA) /* whose compiler takes long for each */
        skip();
    test_random numbers = test_random_new();
    for (int i = 0; i < ROUNDS; i++)
        compare(ways, sizeof ways / sizeof *ways, (uint64_t)test_random_int(&numbers, 0, INT32_MAX), STEPS);
    compare(compiled, 2, (uint64_t)test_random_int(&numbers, 0, INT32_MAX), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ways_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
