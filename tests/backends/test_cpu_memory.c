/* SPDX-License-Identifier: MIT */
/* Steps on the CPU when memory runs out at any point: an error each time, no leak, and right again afterwards. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso/device.h>

#include "core/memory.h"
#include "cpu_steps.h"
#include "ops/ops.h"

enum { N = 300000 };
static float x[N], y[N], out[N];
static int64_t index_of[N];

/* Runs with the first allocation failing, then the second, ...; `allocations` is how many there must be at least. */
static void starve(one_step *step, int allocations)
{
    for (int allowed = 0;; allowed++) {
        tn__fail_allocation_after(allowed);
        tn_status status = step_run(step);
        tn__fail_allocation_after(-1);
        if (status == TN_OK) {
            assert_true(allowed >= allocations);
            assert_true(tn_ok());
            return;
        }
        assert_int_equal(status, TN_ERR_MEMORY);
        assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
        tn_clear_error();
        assert_true(allowed < 1000);
    }
}

static void test_operations(void **state)
{
    (void)state;
    int64_t n = N, one = 1;
    for (int i = 0; i < N; i++)
        x[i] = y[i] = 1;
    one_step add = step_of(TN__OP_ADD, TN_FLOAT32);
    step_operand(&add, out, TN_FLOAT32, 1, &n, NULL, 0);
    step_operand(&add, x, TN_FLOAT32, 1, &n, NULL, 0);
    step_operand(&add, y, TN_FLOAT32, 1, &n, NULL, 0);
    starve(&add, 2);
    assert_true(out[0] == 2 && out[N - 1] == 2);

    one_step sum = step_of(TN__OP_SUM, TN_FLOAT32); /* large enough for a table of blocks */
    sum.step.axes = 1;
    step_operand(&sum, out, TN_FLOAT32, 1, &one, NULL, 0);
    step_operand(&sum, x, TN_FLOAT32, 1, &n, NULL, 0);
    starve(&sum, 3);
    assert_true(out[0] == N);

    one_step gather = step_of(TN__OP_GATHER, TN_FLOAT32);
    gather.step.axes = 1;
    step_operand(&gather, out, TN_FLOAT32, 1, &n, NULL, 0);
    step_operand(&gather, x, TN_FLOAT32, 1, &n, NULL, 0);
    step_operand(&gather, index_of, TN_INT64, 1, &n, NULL, 0);
    starve(&gather, 2);

    int64_t square[2] = {100, 100};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_BFLOAT16, TN_INT16};
    for (int d = 0; d < 4; d++) {
        one_step product = step_of(TN__OP_MATMUL, dtypes[d]);
        step_operand(&product, out, dtypes[d], 2, square, NULL, 0);
        step_operand(&product, x, dtypes[d], 2, square, (int64_t[]){0, 2}, 0);
        step_operand(&product, y, dtypes[d], 2, square, NULL, 0);
        starve(&product, 2);
    }
}

static void test_kernel(void **state)
{
    (void)state;
    char cache[PATH_MAX], command[PATH_MAX + 16];
    snprintf(cache, sizeof(cache), "%s/tanso-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(cache));
    setenv("TANSO_CACHE_DIR", cache, 1);
    int64_t n = N;
    for (int round = 0; round < 2; round++) { /* compiling, and loading from the cache */
        one_step step = step_of(0, TN_FLOAT32);
        step.source =
            "void fill(void *const *p, const long *n, const unsigned long *s, long begin, long end, long long *fault)"
            "{ (void)n, (void)s, (void)fault; for (long i = begin; i < end; i++) ((float *)p[0])[i] = 5; }\n";
        step.step.kind = TN__STEP_KERNEL;
        step.step.kernel.name = "fill";
        step.step.kernel.items = N;
        step.step.kernel.item_cost = 1;
        step_operand(&step, out, TN_FLOAT32, 1, &n, NULL, 0);
        for (int k = 0; k < round * 5; k++)
            step_scalar(&step, TN_FLOAT32, 0);
        memset(out, 0, sizeof(out));
        starve(&step, 3);
        assert_true(out[0] == 5 && out[N - 1] == 5);
    }
    snprintf(command, sizeof(command), "rm -r %s", cache);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    tn_set_threads(3); /* whatever the machine has */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
