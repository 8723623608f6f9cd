/* SPDX-License-Identifier: MIT */
/* The log's file: numbers that read back, a list that is whole after each entry, however long, and after a write that
 * was cut off anywhere; and the table's lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include "support/folder.h"
#include "support/fresh_folder.h"
#include "support/latched.h"
#include "support/random.h"
#include "train/entry.h"

static test_random chance;

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } known[] = {{1, "1.0"},
                 {-0.0, "-0.0"},
                 {0, "0.0"},
                 {0.1, "0.1"},
                 {1e-5, "1e-05"},
                 {1.5e-5, "1.5e-05"},
                 {1e-4, "0.0001"},
                 {123456.75, "123456.75"},
                 {1e15, "1000000000000000.0"},
                 {1e16, "1e+16"},
                 {-2.5e300, "-2.5e+300"},
                 {5e-324, "5e-324"},
                 {0.30000000000000004, "0.30000000000000004"},
                 {NAN, "NaN"},
                 {INFINITY, "Infinity"},
                 {-INFINITY, "-Infinity"}};
    char text[32];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tn__json_number(known[i].value, text);
        assert_string_equal(text, known[i].text);
    }
    for (int i = 0; i < 20000; i++) {
        union {
            uint64_t bits;
            double value;
        } any = {test_random_bits(&chance)};
        if (!isfinite(any.value))
            continue;
        tn__json_number(any.value, text);
        assert_true(strlen(text) < 26 && strtod(text, NULL) == any.value);
    }
}

/* What the list holds by another reader; NaN is 0 for it. */
static json_t *read_list(const char *path)
{
    char *text = test_read(path, NULL);
    assert_non_null(text);
    for (char *nan; (nan = strstr(text, "NaN"));)
        memcpy(nan, "0.0", 3);
    json_error_t error;
    json_t *list = json_loads(text, 0, &error);
    if (!list)
        fail_msg("%s at line %d of %s", error.text, error.line, text);
    free(text);
    return list;
}

static void add(tn__json_log *log, int i)
{
    const tn__figure figures[] = {
        {"main/loss", i % 7 == 3 ? NAN : 1.0 / (i + 1), false}, {"a \"name\"", i, false}, {"iteration", i, true}};
    if (tn__json_log_add(log, figures, 3, INFINITY) != TN_OK)
        fail_msg("%s", tn_error());
}

static void assert_holds(const char *path, int entries)
{
    json_t *list = read_list(path);
    assert_int_equal(json_array_size(list), entries);
    for (int i = 0; i < entries; i++) {
        json_t *entry = json_array_get(list, (size_t)i);
        assert_int_equal(json_integer_value(json_object_get(entry, "iteration")), i);
        assert_true(json_real_value(json_object_get(entry, "main/loss")) == (i % 7 == 3 ? 0 : 1.0 / (i + 1)));
        assert_true(json_real_value(json_object_get(entry, "a \"name\"")) == i);
    }
    json_decref(list);
}

static void test_format(void **state)
{
    (void)state;
    const char *path = test_path(folder, "log");
    tn__json_log log = {0};
    assert_int_equal(tn__json_log_open(&log, path), TN_OK);
    assert_false(test_exists(path)); /* what an earlier run left stays until there is an entry */
    const tn__figure figures[] = {{"main/loss", 0.5, false}, {"epoch", 1, true}};
    assert_int_equal(tn__json_log_add(&log, figures, 2, INFINITY), TN_OK);
    assert_int_equal(tn__json_log_add(&log, figures, 2, INFINITY), TN_OK);
    char *text = test_read(path, NULL);
    assert_string_equal(text, "[\n    {\n        \"main/loss\": 0.5,\n        \"epoch\": 1\n    },\n"
                              "    {\n        \"main/loss\": 0.5,\n        \"epoch\": 1\n    }\n]\n");
    free(text);
    tn__json_log_close(&log);
}

/* Short and long lists, after each entry. */
static void test_whole(void **state)
{
    (void)state;
    const char *path = test_path(folder, "log");
    tn__json_log log = {0};
    assert_int_equal(tn__json_log_open(&log, path), TN_OK);
    int count = 1500;
    for (int i = 0; i < count; i++) {
        add(&log, i);
        if (i < 20 || i % 97 == 0)
            assert_holds(path, i + 1);
    }
    assert_holds(path, count);
    assert_true(log.size > 100000 && !log.list.data); /* in place, and nothing is kept */
    tn__json_log_close(&log);
}

/* A run that goes on from `entries`, with whatever the file held by then. */
static void go_on(const char *path, int64_t entries, int64_t size, const char *list)
{
    tn__json_log log = {.entries = entries, .size = size};
    if (list)
        tn__text_addn(&log.list, list, (size_t)size);
    if (tn__json_log_open(&log, path) != TN_OK)
        fail_msg("%s", tn_error());
    assert_holds(path, (int)entries);
    add(&log, (int)entries);
    add(&log, (int)entries + 1);
    assert_holds(path, (int)entries + 2);
    tn__json_log_close(&log);
}

static void test_cut_off(void **state)
{
    (void)state;
    const char *path = test_path(folder, "log");
    tn__json_log log = {0};
    assert_int_equal(tn__json_log_open(&log, path), TN_OK);
    int count = 1600;
    for (int i = 0; i < count; i++)
        add(&log, i);
    assert_true(!log.list.data);
    int64_t size = log.size;
    add(&log, count);
    tn__json_log_close(&log);
    size_t whole;
    char *text = test_read(path, &whole);
    for (size_t cut = (size_t)size; cut <= whole; cut++) {
        test_write_bytes(path, text, cut);
        go_on(path, count, size, NULL);
    }
    /* What is no list that was begun so is left alone, and said. */
    test_write(path, "[]\n");
    log = (tn__json_log){.entries = count, .size = size};
    assert_int_equal(tn__json_log_open(&log, path), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "1600 entries");
    tn__json_log_close(&log);
    char *kept = test_read(path, NULL);
    assert_string_equal(kept, "[]\n");
    free(kept);
    free(text);
}

/* A short list needs no file. */
static void test_short_goes_on(void **state)
{
    (void)state;
    const char *path = test_path(folder, "log");
    tn__json_log log = {0};
    assert_int_equal(tn__json_log_open(&log, path), TN_OK);
    for (int i = 0; i < 5; i++)
        add(&log, i);
    char list[4096];
    assert_true(log.size < (int64_t)sizeof list && (size_t)log.size == log.list.length);
    memcpy(list, log.list.data, log.list.length);
    int64_t size = log.size;
    tn__json_log_close(&log);
    unlink(path);
    go_on(path, 5, size, list);
}

static void test_unwritable(void **state)
{
    (void)state;
    tn__json_log log = {0};
    assert_int_equal(tn__json_log_open(&log, test_path(folder, "not/there/log")), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "not/there/log");
    tn__json_log_close(&log);
}

static void test_table(void **state)
{
    (void)state;
    static const char *const names[] = {"epoch",         "iteration",   "main/loss", "validation/main/loss",
                                        "main/accuracy", "elapsed_time"};
    tn__text out = {0};
    tn__table_header(&out, 6, names);
    const tn__figure figures[] = {{names[0], 1, true},        {names[1], 4, true},    {names[2], 1.136148, false},
                                  {names[3], 1.10893, false}, {names[4], .25, false}, {names[5], 0.0662982, false}};
    const tn__figure some[] = {figures[0], figures[1], {0}, {0}, figures[4], {0}};
    tn__table_row(&out, 6, names, figures);
    tn__table_row(&out, 6, names, some);
    assert_string_equal(out.data,
                        "epoch       iteration   main/loss   validation/main/loss  main/accuracy  elapsed_time\n"
                        "1           4           1.13615     1.10893               0.25           0.0662982\n"
                        "1           4                                             0.25\n");
    tn__free(out.data);
    out = (tn__text){0};
    tn__table_row(&out, 1, (const char *[]){"ü"}, &(tn__figure){"ü", 12345678, true});
    assert_string_equal(out.data, "12345678\n");
    tn__free(out.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test_setup_teardown(test_format, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_short_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unwritable, set_up, tear_down),
        cmocka_unit_test(test_table),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
