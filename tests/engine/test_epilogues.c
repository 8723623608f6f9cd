/* SPDX-License-Identifier: MIT */
/*
 * Products whose bias a GPU's library adds while it writes them: values and gradients against float64 on the CPU, for
 * extents and addresses of every kind. On a GPU without the library (tests/emulated) the backend's own kernels do the
 * same steps.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "device/device.h"
#include "support/device.h"
#include "support/random.h"

static test_random chance;

/* Numbers of float32 between -1 and 1. */
static tn_array *numbers(int64_t rows, int64_t columns)
{
    float *x = malloc((size_t)(rows * columns) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = (float)(2 * test_random_double(&chance) - 1);
    tn_array *made = tn_from_host(x, TN_SHAPE(rows, columns), TN_FLOAT32, .device = tn_cpu());
    free(x);
    return made;
}

static bool folds(void) { return tn__device_get(test_device())->capabilities.epilogues; }

static void check_plan(const tn_array *y)
{
    char *text = tn_plan_describe(y);
    assert_non_null(text);
    if (folds() != (strstr(text, "+ bias") != NULL))
        fail_msg("folded: %d\n%s", !folds(), text);
    tn_string_free(text);
}

static void check_close(const char *what, tn_array *got, tn_array *expected, double tolerance)
{
    TN_ON_DEVICE(tn_cpu()) {
        tn_array *difference = tn_subtract(tn_cast(tn_to(got, tn_cpu()), TN_FLOAT64), expected);
        double most = tn_item(tn_max(tn_abs(expected))), error = tn_item(tn_max(tn_abs(difference)));
        if (!(error <= tolerance * (most + 1)))
            fail_msg("%s: largest %g, error %g: %s", what, most, error, tn_error());
    }
}

static tn_array *wide(tn_array *x) { return tn_cast(x, TN_FLOAT64); }

/* Rows, depth, columns, each a product for the library: of float32 from 2^27 multiplications on. */
static const struct {
    int64_t rows, depth, columns, offset; /* of the bias in its vector, in elements */
    bool across;
} cases[] = {
    {1021, 517, 333, 0, false}, {1021, 333, 517, 1, false}, {517, 1021, 333, 3, true},  {1024, 257, 512, 0, true},
    {512, 600, 512, 4, false},  {70001, 13, 149, 1, false}, {67, 16411, 127, 0, false}, {2, 8209, 8209, 0, false},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TN_SCOPE {
            int64_t m = cases[i].rows, k = cases[i].depth, n = cases[i].columns, at = cases[i].offset;
            bool across = cases[i].across;
            tn_array *x = numbers(m, k), *w = across ? numbers(n, k) : numbers(k, n), *all = numbers(1, n + 8);
            tn_array *b = tn_slice_axis(tn_reshape(all, TN_SHAPE(-1)), 0, at, at + n, 1), *expected;
            TN_ON_DEVICE(tn_cpu())
                expected = tn_add(tn_matmul(wide(x), across ? tn_swapaxes(wide(w), 0, 1) : wide(w)), wide(b));
            tn_array *xt = tn_to(x, test_device()), *wt = tn_to(w, test_device()), *at_b = tn_to(all, test_device());
            tn_array *bt = tn_slice_axis(tn_reshape(at_b, TN_SHAPE(-1)), 0, at, at + n, 1);
            wt = across ? tn_swapaxes(wt, 0, 1) : wt;
            char text[100];
            snprintf(text, sizeof text, "%lld x %lld x %lld, bias from %lld on", (long long)m, (long long)k,
                     (long long)n, (long long)at);
            for (int again = 0; again < 3; again++) { /* later runs are of a graph */
                tn_array *y = tn_add(tn_matmul(xt, wt), bt);
                if (again == 0)
                    check_plan(y);
                check_close(text, y, expected, 1e-6 * sqrt((double)k));
            }
        }
}

/* Another bias at another address, and the same again with other values. */
static void test_other_addresses(void **state)
{
    (void)state;
    enum { M = 600, K = 400, N = 601, BIASES = 3 };
    TN_SCOPE {
        tn_array *x = tn_to(numbers(M, K), test_device()), *w = tn_to(numbers(K, N), test_device()), *b[BIASES];
        tn_array *product = tn_matmul(x, w);
        for (int i = 0; i < BIASES; i++)
            b[i] = tn_to(numbers(1, N + i), test_device());
        assert_int_equal(tn_eval(product), TN_OK);
        for (int round = 0; round < 4 * BIASES; round++) {
            int i = round % BIASES;
            tn_array *part = tn_slice_axis(b[i], 1, i, i + N, 1);
            tn_array *y = tn_add(tn_matmul(x, w), part);
            assert_int_equal(tn_eval(y), TN_OK);
            double error = tn_item(tn_max(tn_abs(tn_subtract(y, tn_add(product, part)))));
            if (!(error <= 1e-4)) /* other algorithms, other orders of sums */
                fail_msg("round %d: error %g: %s", round, error, tn_error());
        }
    }
}

/* Infinities and NaN of a bias reach their column and no other; NaN passes a relu. */
static void test_not_finite(void **state)
{
    (void)state;
    enum { M = 700, K = 300, N = 701 };
    float bias[N] = {[1] = NAN, [5] = INFINITY, [N - 1] = -INFINITY};
    TN_SCOPE {
        tn_array *x = tn_to(numbers(M, K), test_device()), *w = tn_to(numbers(K, N), test_device());
        tn_array *b = tn_from_host(bias, TN_SHAPE(N), TN_FLOAT32);
        for (int relu = 0; relu < 2; relu++) {
            tn_array *y = tn_add(tn_matmul(x, w), b);
            const float *got = test_data(relu ? tn_relu(y) : y);
            assert_non_null(got);
            for (int64_t i = 0; i < (int64_t)M * N; i++) {
                int c = (int)(i % N);
                bool right = c == 1 ? isnan(got[i]) : c == 5 ? got[i] == INFINITY
                                    : c == N - 1    ? got[i] == (relu ? 0 : -INFINITY)
                                                    : isfinite(got[i]) && (!relu || got[i] >= 0);
                if (!right)
                    fail_msg("row %d, column %d, relu %d: %g", (int)(i / N), c, relu, (double)got[i]);
            }
        }
    }
}

/* Layers with rows in one axis and in two, forward and backward. */
static void test_linear(void **state)
{
    (void)state;
    enum { BATCH = 3, M = 260, K = 410, N = 431 };
    tn_layer *layer = tn_linear(N, .in = K, .bias = {TN_INIT_NORMAL, 1});
    for (int axes = 2; axes < 4; axes++)
        TN_SCOPE {
            tn_array *flat = numbers(BATCH * M, K), *g = numbers(BATCH * M, N), *gradient[3];
            tn_array *x = tn_to(flat, test_device());
            x = axes == 2 ? x : tn_reshape(x, TN_SHAPE(BATCH, M, K));
            assert_int_equal(tn_eval(x), TN_OK);
            tn_requires_grad(x);
            tn_array *y = tn_forward(layer, x), *w = tn_param(layer, 0), *b = tn_param(layer, 1);
            check_plan(y);
            tn_array *loss = tn_sum(tn_multiply(tn_reshape(y, TN_SHAPE(-1, N)), tn_to(g, test_device())));
            if (tn_gradients(loss, 3, (const tn_array *[]){x, w, b}, false, gradient) != TN_OK ||
                tn_eval_all(4, (const tn_array *[]){y, gradient[0], gradient[1], gradient[2]}) != TN_OK)
                fail_msg("%s", tn_error());
            TN_ON_DEVICE(tn_cpu()) {
                tn_array *w64 = wide(tn_to(w, tn_cpu())), *x64 = wide(flat), *g64 = wide(g);
                tn_array *y64 = tn_add(tn_matmul(x64, w64), wide(tn_to(b, tn_cpu())));
                check_close("y", tn_reshape(tn_to(y, tn_cpu()), TN_SHAPE(-1, N)), y64, 1e-5);
                check_close("gradient of x", tn_reshape(tn_to(gradient[0], tn_cpu()), TN_SHAPE(-1, K)),
                            tn_matmul(g64, tn_swapaxes(w64, 0, 1)), 1e-5);
                check_close("gradient of W", gradient[1], tn_matmul(tn_swapaxes(x64, 0, 1), g64), 1e-5);
                check_close("gradient of b", gradient[2], tn_sum(g64, .axis = TN_AXES(0)), 1e-5);
            }
        }
    tn_layer_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_other_addresses),
                                       cmocka_unit_test(test_not_finite), cmocka_unit_test(test_linear)};
    tn__device *device = tn__device_get(test_device());
    if (device == NULL)
        return 1;
    if (device->id.kind == TN_DEVICE_CUDA) /* without the library, too: every step can be done without */
        device->capabilities.epilogues = true;
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
