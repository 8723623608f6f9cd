/* SPDX-License-Identifier: MIT */
/* The latch, records, places, and what happens without memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/error.h"
#include "core/memory.h"

static int begin(void **state)
{
    (void)state;
    tn__at(NULL, 0);
    tn_clear_error();
    return 0;
}

static void first_error_stays(void **state)
{
    (void)state;
    assert_true(tn_ok());
    assert_string_equal(tn_error(), "");
    assert_int_equal(tn_error_code(), TN_OK);
    assert_int_equal(tn__fail(TN_ERR_SHAPE, "tn_add", "expected %d, got %d", 2, 3), TN_ERR_SHAPE);
    assert_int_equal(tn__fail(TN_ERR_VALUE, "tn_sub", "other"), TN_ERR_VALUE);
    assert_false(tn_ok());
    assert_string_equal(tn_error(), "tn_add: expected 2, got 3");
    assert_int_equal(tn_error_code(), TN_ERR_SHAPE);
    assert_string_equal(tn__error_message(tn__error_last()), "tn_sub: other");
    tn_clear_error();
    assert_true(tn_ok());
    assert_int_equal(tn_error_code(), TN_OK);
    tn__fail(TN_ERR_INDEX, "", "no operation");
    assert_string_equal(tn_error(), "no operation");
}

static void places(void **state)
{
    (void)state;
    tn__at("/home/someone/train.c", 42);
    tn__fail(TN_ERR_VALUE, "tn_sgd", "lr");
    assert_string_equal(tn_error(), "tn_sgd: lr (train.c:42)");
    tn_clear_error();
    tn__at("plain.c", 7);
    tn__fail(TN_ERR_VALUE, "tn_sgd", "lr");
    assert_string_equal(tn_error(), "tn_sgd: lr (plain.c:7)");
}

static void long_messages(void **state)
{
    (void)state;
    tn__at("file.c", 123);
    static char text[3000], expected[3100];
    for (int length = 400; length < 2999; length += 37) {
        memset(text, 'x', (size_t)length);
        text[length] = '\0';
        tn_clear_error();
        tn__fail(TN_ERR_VALUE, "op", "%s", text);
        snprintf(expected, sizeof expected, "op: %s (file.c:123)", text);
        assert_string_equal(tn_error(), expected);
    }
}

static void records_outlive_the_latch(void **state)
{
    (void)state;
    tn__error *error = tn__error_new(TN_ERR_DTYPE, "tn_take", "float index");
    assert_int_equal(tn_error_code(), TN_ERR_DTYPE);
    tn_clear_error();
    tn__fail(TN_ERR_IO, "tn_load", "gone");
    assert_string_equal(tn__error_message(error), "tn_take: float index");
    assert_int_equal(tn__error_status(error), TN_ERR_DTYPE);
    tn_clear_error();
    assert_int_equal(tn__error_raise(error), TN_ERR_DTYPE);
    assert_string_equal(tn_error(), "tn_take: float index");
    assert_ptr_equal(tn__error_last(), error);
    tn__error_release(tn__error_retain(error));
    tn__error_release(error);
    assert_string_equal(tn_error(), "tn_take: float index"); /* the latch holds it */
    tn__error_release(NULL);
}

static void without_memory(void **state)
{
    (void)state;
    tn__fail_allocation_after(0);
    tn__error *error = tn__error_new(TN_ERR_SHAPE, "tn_add", "shapes");
    tn__fail_allocation_after(-1);
    assert_non_null(error);
    assert_int_equal(tn__error_status(error), TN_ERR_MEMORY);
    assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
    for (int i = 0; i < 3; i++) /* static: counting does nothing */
        tn__error_release(error);
    assert_non_null(strstr(tn__error_message(error), "out of memory"));
    tn_clear_error();
    tn__fail_allocation_after(0);
    assert_int_equal(tn__fail(TN_ERR_SHAPE, "tn_add", "shapes"), TN_ERR_MEMORY);
    tn__fail_allocation_after(-1);
    tn_clear_error();
    assert_int_equal(tn__fail_memory("tn_zeros", 12345), TN_ERR_MEMORY);
    assert_non_null(strstr(tn_error(), "tn_zeros: no memory for 12345 bytes"));
}

static void *in_thread(void *main_record)
{
    assert_true(tn_ok());
    tn__error_last(); /* none yet, and yet not NULL */
    tn__fail(TN_ERR_NAME, "thread", "own error");
    assert_string_equal(tn_error(), "thread: own error");
    tn__error_raise(main_record);
    assert_int_equal(tn_error_code(), TN_ERR_NAME);
    return NULL; /* its latch is freed with it: a leak checker sees to that */
}

static void each_thread_has_its_own(void **state)
{
    (void)state;
    tn__error *error = tn__error_new(TN_ERR_STATE, "main", "error");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, error), 0);
    pthread_join(thread, NULL);
    assert_string_equal(tn_error(), "main: error");
    tn__error_release(error);
}

static void status_names(void **state)
{
    (void)state;
    assert_string_equal(tn_status_name(TN_OK), "TN_OK");
    for (int s = TN_OK; s <= TN_ERR_INTERNAL; s++)
        assert_int_equal(strncmp(tn_status_name((tn_status)s), s ? "TN_ERR_" : "TN_OK", 5), 0);
    assert_string_equal(tn_status_name((tn_status)999), "an unknown status");
    assert_string_equal(tn_status_name((tn_status)-1), "an unknown status");
}

static void nearest_names(void **state)
{
    (void)state;
    static const char *const names[] = {"SGD", "MomentumSGD", "Adam", "AdamW", "AdaGrad", "RMSprop", NULL};
    static const struct {
        const char *word, *name;
    } rows[] = {
        {"sgd", "SGD"},       {"SDG", "SGD"},   {"momentum_sgd", "MomentumSGD"}, {"adm", "Adam"},
        {"adamw", "AdamW"},   {"Adam", "Adam"}, {"adagard", "AdaGrad"},          {"rmsprpo", "RMSprop"},
        {"lion", NULL},       {"", NULL},       {NULL, NULL},                    {"x", NULL},
        {"a word that is far longer than any name could reasonably be expected to be, really", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *found = tn__nearest_name(rows[i].word, names, 7);
        if (rows[i].name)
            assert_string_equal(found, rows[i].name);
        else
            assert_null(found);
    }
    assert_null(tn__nearest_name("sgd", NULL, 0));
}

/* ---- errors that nobody reads ---- */

static void *fail_and_end(void *how)
{
    tn__fail(TN_ERR_SHAPE, "tn_add", "unread");
    if (!strcmp(how, "ok"))
        tn_ok();
    if (!strcmp(how, "message"))
        tn_error();
    if (!strcmp(how, "code"))
        tn_error_code();
    if (!strcmp(how, "cleared"))
        tn_clear_error();
    if (!strcmp(how, "seen"))
        tn__error_seen();
    return NULL;
}

static void *fail_in_a_thread(void *how)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_and_end, how), 0);
    pthread_join(thread, NULL);
    return NULL;
}

/* What a process that does so, and then ends by exit(), prints on stderr. */
static void printed(void *(*run)(void *), const char *how, char text[400])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        run((void *)(uintptr_t)how);
        exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t came; length < 399 && (came = read(ends[0], text + length, 399 - length)) > 0;)
        length += (size_t)came;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
}

static void what_nobody_reads_is_printed(void **state)
{
    (void)state;
    static const char *const ways[] = {"ok", "message", "code", "cleared", "seen"};
    char text[400];
    printed(fail_and_end, "", text);
    assert_string_equal(text, "tanso: error: core: the process ends, and nobody has asked for its error: TN_ERR_SHAPE: "
                              "tn_add: unread\n");
    printed(fail_in_a_thread, "", text);
    assert_string_equal(text, "tanso: error: core: a thread ends, and nobody has asked for its error: TN_ERR_SHAPE: "
                              "tn_add: unread\n");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        printed(fail_and_end, ways[i], text);
        assert_string_equal(text, "");
        printed(fail_in_a_thread, ways[i], text);
        assert_string_equal(text, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(first_error_stays, begin), cmocka_unit_test_setup(places, begin),
        cmocka_unit_test_setup(long_messages, begin),     cmocka_unit_test_setup(records_outlive_the_latch, begin),
        cmocka_unit_test_setup(without_memory, begin),    cmocka_unit_test_setup(each_thread_has_its_own, begin),
        cmocka_unit_test_setup(what_nobody_reads_is_printed, begin),
        cmocka_unit_test_setup(status_names, begin),      cmocka_unit_test_setup(nearest_names, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
