/* SPDX-License-Identifier: MIT */
/* What is UTF-8 and what is not: every character, and the ways to be none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/utf8.h"

/* By RFC 3629's table, written another way than the library does. */
static int put(uint32_t code, char *to)
{
    int count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = count - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[count] | code);
    to[count] = '\0';
    return count;
}

static void test_every_character(void **state)
{
    (void)state;
    char text[8];
    for (uint32_t code = 1; code < 0x110000; code++) {
        int count = put(code, text);
        bool surrogate = code >= 0xd800 && code < 0xe000;
        if (tn__is_utf8(text) == surrogate)
            fail_msg("U+%04x", code);
        text[count - 1] = '\0'; /* cut short */
        if (count > 1 && tn__is_utf8(text))
            fail_msg("U+%04x without its last byte", code);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80", "a\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff", "\xc3(", "\xe2\x82z"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (tn__is_utf8(bad[i]))
            fail_msg("number %zu is taken", i);
    assert_true(tn__is_utf8(""));
    assert_int_equal(tn__check_utf8("test", "the key", "fine"), TN_OK);
    assert_int_equal(tn__check_utf8("test", "the key", "a\xff\n"), TN_ERR_VALUE);
    assert_non_null(strstr(tn_error(), "the key \"a\\xff\\x0a\" is not valid UTF-8"));
    tn_clear_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_character), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
