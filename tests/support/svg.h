/* SPDX-License-Identifier: MIT */
/* Pictures as SVG: whether they are well-formed, and what is in them. */
#ifndef TN_TESTS_SVG_H
#define TN_TESTS_SVG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ctype.h>
#include <cmocka.h>

static inline int test_count(const char *text, const char *part)
{
    int found = 0;
    for (text = strstr(text, part); text; text = strstr(text + 1, part))
        found++;
    return found;
}

/* Tags open and close in order, and no < or & stands for itself. */
static inline void test_well_formed(const char *svg)
{
    char open[16][16];
    int depth = 0;
    for (const char *at = svg; *at; at++) {
        if (*at == '&' && strncmp(at, "&lt;", 4) && strncmp(at, "&gt;", 4) && strncmp(at, "&amp;", 5))
            fail_msg("a bare &: %.30s", at);
        if (*at != '<')
            continue;
        const char *end = strchr(at, '>');
        assert_non_null(end);
        bool closes = at[1] == '/', empty = end[-1] == '/';
        char name[16] = "";
        for (int i = 0; i < 15 && isalpha((unsigned char)at[1 + closes + i]); i++)
            name[i] = at[1 + closes + i];
        assert_true(*name);
        if (closes) {
            assert_true(depth > 0);
            assert_string_equal(open[--depth], name);
        } else if (!empty) {
            assert_true(depth < 16);
            strcpy(open[depth++], name);
        }
        at = end;
    }
    assert_int_equal(depth, 0);
    assert_int_equal(test_count(svg, "<svg"), 1);
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
}

#endif
