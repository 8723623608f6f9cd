/* SPDX-License-Identifier: MIT */
/* Users' kernels while allocations fail: an error that speaks of memory, nothing left behind. */
#include "support/starve.h"

/* Kernels live as long as the process: each run makes others than the last. */
static int number;

static tn_status elementwise(void *user)
{
    (void)user;
    char text[64];
    tn_status status = TN_OK;
    snprintf(text, sizeof text, "a = x + %d; b = y", number++ % 4);
    TN_SCOPE {
        tn_kernel *f = tn_elementwise("T x, T y", "T a, T b", text, "starved", .gradient = "gx = ga; gy = gb");
        tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(3))), *results[2] = {NULL, NULL};
        status = tn_call_into(f, TN_ARGS(x, 2.0f), 2, results);
        tn_array *sum = tn_sum(tn_add(results[0], results[1]));
        if (status == TN_OK)
            status = tn_backward(sum);
        if (status == TN_OK)
            status = tn_eval(sum);
        if (status == TN_OK)
            status = tn_eval(tn_grad(x));
        if (status == TN_OK)
            status = tn_error_code();
    }
    return status;
}

static tn_status reduction(void *user)
{
    (void)user;
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_kernel *f = tn_reduction("T x", "T y", "x", "a + b", "y = a", "0", "starved_sum");
        status = tn_eval(tn_call(f, TN_ARGS(tn_ones(TN_SHAPE(4, 5))), .axis = TN_AXES(1)));
    }
    return status;
}

static tn_status launch(void *user)
{
    (void)user;
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_kernel *f = tn_raw_kernel("void starved_raw(float *y) { y[0] = 1; }", "starved_raw");
        tn_array *y = tn_zeros(TN_SHAPE(2));
        status = tn_launch(f, TN_ARGS(TN_WRITES(y)));
    }
    return status;
}

static tn_status vectorized(void *user)
{
    (void)user;
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_kernel *f = tn_vectorize_with(NULL, "float starved_f(float a, float b) { return a * b; }", NULL);
        status = tn_eval(tn_ufunc_accumulate(f, tn_full(TN_SHAPE(4), 2)));
    }
    return status;
}

static void starved(void **state)
{
    (void)state;
    starve("elementwise", elementwise, NULL);
    starve("reduction", reduction, NULL);
    starve("launch", launch, NULL);
    starve("vectorized", vectorized, NULL);
}

int main(void)
{
    if (test_about_cpu("failing allocations of the C compiler's side"))
        return TEST_SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(starved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
