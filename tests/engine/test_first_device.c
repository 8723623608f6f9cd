/* SPDX-License-Identifier: MIT */
/* A process whose first device opens another one: plans of the two are told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tanso.h>

static void test_two_devices_by_turns(void **state)
{
    (void)state;
    const tn_device device[] = {tn_device_parse("virtual:1", NULL), tn_cpu()};
    for (int i = 0; i < 6; i++)
        TN_SCOPE {
            tn_array *x = tn_full(TN_SHAPE(3), 2.0, .device = device[i % 2]);
            tn_array *y = tn_multiply(x, 4.0);
            assert_int_equal(tn_eval(x), TN_OK);
            assert_int_equal(tn_eval(y), TN_OK);
            assert_true(tn_device_equal(tn_device_of(y), device[i % 2]));
            assert_true(tn_item(tn_sum(y)) == 24);
        }
    assert_true(tn_ok());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_devices_by_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
