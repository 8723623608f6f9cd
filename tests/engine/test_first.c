/* SPDX-License-Identifier: MIT */
/* How many kernels a network's first run wants: not more for more equal layers or time steps, and only those that no
 * plan before had. Counted, not timed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

enum { WIDTH = 5, ROWS = 3 };

/* Kernels that were asked for: compiled or found. */
static uint64_t asked(void)
{
    tn_engine_counters counters = tn_engine_stats();
    return counters.compilations + counters.kernel_hits;
}

static tn_array *given(tn_shape shape)
{
    tn_array *x = tn_random_normal(shape);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

/* Layers one after another, with the gradients of their weights. */
static tn_array *layers(int count, int rows)
{
    tn_array *w[64], *gradient[64], *h = given(TN_SHAPE(rows, WIDTH));
    for (int i = 0; i < count; i++)
        w[i] = given(TN_SHAPE(WIDTH, WIDTH));
    for (int i = 0; i < count; i++)
        h = tn_tanh(tn_add(tn_matmul(h, w[i]), 0.5));
    assert_int_equal(tn_gradients(tn_sum(tn_square(h)), count, (const tn_array *const *)w, false, gradient), TN_OK);
    return tn_stack(count, (const tn_array *const *)gradient, 0);
}

/* A recurrent network of so many steps, with the gradients of its weights. */
static tn_array *steps(int count, int rows)
{
    tn_array *w[2] = {given(TN_SHAPE(WIDTH, WIDTH)), given(TN_SHAPE(WIDTH, WIDTH))}, *gradient[2];
    tn_array *x = given(TN_SHAPE(count, rows, WIDTH)), *h = given(TN_SHAPE(rows, WIDTH));
    for (int i = 0; i < count; i++)
        h = tn_tanh(tn_add(tn_matmul(tn_index(x, i), w[0]), tn_matmul(h, w[1])));
    assert_int_equal(tn_gradients(tn_sum(tn_square(h)), 2, (const tn_array *const *)w, false, gradient), TN_OK);
    return tn_stack(2, (const tn_array *const *)gradient, 0);
}

typedef tn_array *(*network)(int count, int rows);

/* Kernels of a network of so many layers or steps: what it asks for beside its inputs. */
static uint64_t kernels_of(network net, int count, int rows)
{
    uint64_t kernels = 0;
    TN_SCOPE
    {
        tn_array *y = net(count, rows);
        uint64_t before = asked();
        assert_int_equal(tn_eval(y), TN_OK);
        kernels = asked() - before;
    }
    return kernels;
}

static void test_counts(void **state)
{
    (void)state;
    static const network nets[] = {layers, steps};
    tn_set_compile(TN_COMPILE_ALWAYS);
    for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
        uint64_t few = kernels_of(nets[n], 8, ROWS), many = kernels_of(nets[n], 16, ROWS);
        print_message("network %zu: %d kernels for 8, %d for 16\n", n, (int)few, (int)many);
        assert_true(few > 0);
        assert_true(many <= few + 2); /* what lies at the ends of launches differs on a GPU */
        uint64_t compiled = tn_engine_stats().compilations;
        assert_true(kernels_of(nets[n], 16, ROWS + 2) > 0); /* another batch: another plan of the same kernels */
        assert_int_equal(tn_engine_stats().compilations, compiled);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* The second derivative of a chain of sines of one element. */
static double chain(int count)
{
    double value = 0;
    TN_SCOPE
    {
        tn_array *x = tn_requires_grad(tn_scalar(0.3)), *y = x, *first, *second;
        for (int i = 0; i < count; i++)
            y = tn_sin(y);
        const tn_array *xs[] = {x};
        assert_int_equal(tn_gradients(y, 1, xs, true, &first), TN_OK);
        assert_int_equal(tn_gradients(first, 1, xs, false, &second), TN_OK);
        value = tn_item(second);
    }
    return value;
}

/* What takes a moment without kernels, and half a minute to compile, is not compiled when it comes again. */
static void test_long_pause(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("a device with a reference evaluator");
    uint64_t compiled = tn_engine_stats().compilations;
    double value = chain(700);
    for (int i = 0; i < 3; i++)
        assert_true(chain(700) == value);
    assert_int_equal(tn_engine_stats().compilations, compiled);
    uint64_t before = asked();
    chain(3); /* what is compiled quickly is, when it comes again */
    chain(3);
    assert_true(asked() > before);
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_long_pause)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
