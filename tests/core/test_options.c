/* SPDX-License-Identifier: MIT */
/* Which options a text of arguments sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <tanso/base.h>
#include "core/options.h"

typedef struct example {
    const char *_;
    double lr;
    int count[3];
    const char *name;
    char mark;
} example;

#define WRITTEN(...) #__VA_ARGS__

static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        bool written;
    } cases[] = {
        {NULL, "lr", false},
        {"", "lr", false},
        {WRITTEN(.lr = 0), "lr", true},
        {WRITTEN(.lr = 0, ), "lr", true},
        {WRITTEN(.lr = 0), "l", false},
        {WRITTEN(.lr = 0), "lr_scale", false},
        {WRITTEN(.lr_scale = 0), "lr", false},
        {WRITTEN(.lr2 = 0), "lr", false},
        {WRITTEN(. /* the rate */ lr = 0), "lr", true},
        {WRITTEN(.name = "x", .lr = 0), "lr", true},
        {WRITTEN(.name = ", .lr = 0"), "lr", false},
        {WRITTEN(.name = "\", .lr = 0"), "lr", false},
        {WRITTEN(.name = "\\", .lr = 0), "lr", true},
        {WRITTEN(.mark = ',', .lr = 0), "lr", true},
        {WRITTEN(.mark = '"', .lr = 0), "lr", true},
        {WRITTEN(.mark = '\'', .lr = 0), "lr", true},
        {".count[0] = 1'000, .lr = 0, .count[1] = 2'000", "lr", true},
        {WRITTEN(.count = {0, 1}, .lr = 0), "lr", true},
        {WRITTEN(.count = {0, 1}, .lr = 0), "count", true},
        {WRITTEN(.count[0] = 0), "count", true},
        {WRITTEN(.weight.gain = 0), "weight", true},
        {WRITTEN(.weight.gain = 0), "gain", false},
        {WRITTEN(.weight = {.gain = 0, .lr = 1}), "lr", false},
        {WRITTEN(.name = f((T){1, .lr = 0})), "lr", false},
        {WRITTEN(.count = other.lr), "lr", false},
        {WRITTEN(.count = a ? b : c, .lr = 0), "lr", true},
        {".lr, .count", "count", true},
        {"lr, .count", "lr", false},
        {".name = \"never closed, .lr", "lr", false},
        {".name = (never closed, .lr", "lr", false},
        {".name = \"\\", "lr", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (tn__option_written(cases[i].text, cases[i].name) != cases[i].written)
            fail_msg("%s in '%s': expected %d", cases[i].name, cases[i].text, cases[i].written);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        bool number;
    } cases[] = {
        {NULL, "axis", false},
        {"", "axis", false},
        {".axis", "axis", false},
        {WRITTEN(.axis = 1), "axis", true},
        {WRITTEN(.axis=0), "axis", true},
        {WRITTEN(.axis = -1), "axis", true},
        {WRITTEN(.axis = (1), .keepdims = true), "axis", true},
        {WRITTEN(.keepdims = true, .axis = 12), "axis", true},
        {WRITTEN(.keepdims = true, .axis = TN_AXES(1)), "axis", false},
        {WRITTEN(.axis = {1}), "axis", false},
        {WRITTEN(.axis = axes), "axis", false},
        {WRITTEN(.axis = axes1), "axis", false},
        {WRITTEN(.axis = ((tn_axes){.count = 1}), .keepdims = 1), "axis", false},
        {WRITTEN(.axis[0] = 1), "axis", false},
        {WRITTEN(.axis.count = 1), "axis", false},
        {WRITTEN(.axis = 1), "axi", false},
        {WRITTEN(.keepdims = true, .initial = 0), "initial", true},
        {WRITTEN(.initial = NULL), "initial", false},
        {WRITTEN(.initial = zero), "initial", false},
        {WRITTEN(.name = ".axis = 1"), "axis", false},
        {WRITTEN(.axis = ), "axis", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (tn__option_is_number(cases[i].text, cases[i].name) != cases[i].number)
            fail_msg("%s in '%s': expected %d", cases[i].name, cases[i].text, cases[i].number);
    }
}

/* The macros that the library asks by, of options as the public macros make them. */
static void test_values(void **state)
{
    (void)state;
    const example *none = NULL, *zero = TN_OPTS(example, .name = "", .lr = 0), *other = TN_OPTS(example, .lr = 3),
                  *empty = TN_OPTS(example, ), *by_hand = &(example){._ = ".lr", .mark = 0};
    assert_float_equal(TN__OPTION(none, lr, 7), 7, 0);
    assert_float_equal(TN__OPTION(zero, lr, 7), 0, 0);
    assert_float_equal(TN__OPTION(other, lr, 7), 3, 0);
    assert_float_equal(TN__OPTION(empty, lr, 7), 7, 0);
    assert_float_equal(TN__OPTION(by_hand, lr, 7), 0, 0);
    assert_int_equal(TN__OPTION(by_hand, mark, 'm'), 'm');
    assert_true(TN__GIVEN(zero, lr) && !TN__GIVEN(zero, mark) && !TN__GIVEN(empty, lr));
}

/* A macro that stands for options is read as what it stands for. */
#define MY_OPTIONS .lr = 0, .mark = 0
static void test_macros(void **state)
{
    (void)state;
    const example *mine = TN_OPTS(example, MY_OPTIONS);
    assert_true(TN__GIVEN(mine, lr) && TN__GIVEN(mine, mark));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_values), cmocka_unit_test(test_macros)};
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
