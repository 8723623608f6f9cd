/* SPDX-License-Identifier: MIT */
/* A test's body by the reference evaluator and by compiled kernels. Include after cmocka.h. */
#ifndef TN_TESTS_MODES_H
#define TN_TESTS_MODES_H

#include <tanso.h>

static inline void test_in_both_modes(void (*test)(void))
{
    tn_set_compile(TN_COMPILE_NEVER);
    test();
    tn_set_compile(TN_COMPILE_ALWAYS);
    test();
    tn_set_compile(TN_COMPILE_AUTO);
    assert_true(tn_ok());
}

#endif
