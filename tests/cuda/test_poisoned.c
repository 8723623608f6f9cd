/* SPDX-License-Identifier: MIT */
/*
 * What a run has computed that fails after it has returned, on a fake driver: an error each time that somebody wants
 * it, and so is what runs behind it computed; what was there before stays.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/fake.h"
#include "support/device.h"

static bool failing;

static void meets(const char *name, const int64_t *words, const uint64_t *scalars, const tn__cuda_failure *failure)
{
    (void)name, (void)words, (void)scalars;
    if (failing)
        fake_fail(failure, 2, 9);
    failing = false;
}

static void poisoned(const tn_array *x)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tn_eval(x), TN_ERR_INDEX);
        assert_non_null(strstr(tn_error(), "index 9 is out of range"));
        tn_clear_error();
        assert_true(isnan(tn_item(tn_sum(x))));
        assert_int_equal(tn_error_code(), TN_ERR_INDEX);
        tn_clear_error();
        char *text = tn_string(x);
        assert_non_null(strstr(text, "<error: "));
        tn_string_free(text);
        assert_int_equal(tn_error_code(), TN_ERR_INDEX);
        tn_clear_error();
        assert_null(tn_to_dlpack(x));
        assert_int_equal(tn_error_code(), TN_ERR_INDEX);
        tn_clear_error();
        assert_int_equal(tn_launch(tn_raw_kernel("extern \"C\" __global__ void raw(float *x) {}", "raw"), TN_ARGS(x)),
                         TN_ERR_INDEX);
        tn_clear_error();
    }
}

static void test_poisoned(void **state)
{
    (void)state;
    static const float values[4] = {1, 2, 3, 4};
    for (int round = 0; round < 3; round++)
        TN_SCOPE
        {
            tn_array *x = tn_from_host(values, TN_SHAPE(4), TN_FLOAT32), *before = tn_exp(x);
            tn_array *at = tn_from_int64s((int64_t[]){0, 9}, 2);
            assert_int_equal(tn_eval(before), TN_OK);
            assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
            tn_array *taken = tn_take(x, at, 0), *behind = tn_sin(x);
            failing = true;
            assert_int_equal(tn_eval(taken), TN_OK); /* nobody knows yet */
            assert_int_equal(tn_eval(behind), TN_OK);
            assert_int_equal(tn_synchronize(tn_cuda(0)), TN_ERR_INDEX);
            tn_clear_error();
            poisoned(taken);
            poisoned(behind);
            assert_int_equal(tn_eval(before), TN_OK);
            assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK); /* told once */
            assert_int_equal(tn_eval(tn_cos(x)), TN_OK);
        }
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_poisoned)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    fake_use();
    fake.kernel_runs = meets;
    if (tn_set_device(tn_cuda(0)) != TN_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
