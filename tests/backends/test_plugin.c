/* SPDX-License-Identifier: MIT */
/* What is said of a plug-in that is not there, is none, or belongs to another library. CUDA's is asked for in processes
 * of their own, as the first question decides for all. */
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

#include "device/device.h"

/* In a child with TANSO_PLUGIN_DIR as given: 0 if the reason for cuda:0 being absent has each text in it. */
static int ask(const char *folder, const char *text, const char *other)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const char *why = "";
        tn_status status;
        setenv("TANSO_PLUGIN_DIR", folder, 1);
        bool there = tn_device_available(tn_cuda(0), &why);
        bool said = !there && strstr(why, text) && strstr(why, other);
        if (!said)
            printf("%s: %s\n", there ? "available" : "absent", why);
        tn_device_parse("cuda:0", &status);
        said = said && status == TN_ERR_DEVICE && strstr(tn_error(), "cuda:0 is not available") &&
               strstr(tn_error(), text);
        said = said && tn_device_equal(tn_device_best(), tn_cpu());
        fflush(NULL);
        _exit(said ? 0 : 1);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void test_absent(void **state)
{
    (void)state;
    assert_int_equal(ask("/nowhere/at/all", "the CUDA plug-in is not there", "/nowhere/at/all/libtanso-cuda.so"), 0);
    assert_int_equal(ask("", "the CUDA plug-in is not there", "libtanso-cuda.so"), 0); /* not beside this test either */
}

static void test_no_plugin(void **state)
{
    (void)state;
    char folder[] = "/tmp/tanso-plugin-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libtanso-cuda.so", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("not a shared object", file);
    fclose(file);
    int status = ask(folder, "the CUDA plug-in cannot be loaded", path);
    unlink(path);
    rmdir(folder);
    assert_int_equal(status, 0);
}

/* Another kind's: it is there once it has been asked for by name, and what is wrong with its file is said. */
static void test_other_kind(void **state)
{
    (void)state;
    char folder[] = "/tmp/tanso-plugin-XXXXXX", path[64];
    tn_status status = TN_OK;
    assert_non_null(mkdtemp(folder));
    setenv("TANSO_PLUGIN_DIR", folder, 1);
    tn_device_parse("another:0", &status);
    assert_int_equal(status, TN_ERR_NAME);
    assert_non_null(strstr(tn_error(), "'another:0' is no device"));
    tn_clear_error();
    snprintf(path, sizeof path, "%s/libtanso-another.so", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("not a shared object", file);
    fclose(file);
    tn_device_parse("another:0", &status);
    unlink(path);
    rmdir(folder);
    unsetenv("TANSO_PLUGIN_DIR");
    assert_int_equal(status, TN_ERR_DEVICE);
    assert_non_null(strstr(tn_error(), "the another plug-in cannot be loaded"));
    tn_clear_error();
}

#ifndef __SANITIZE_ADDRESS__ /* which takes two copies of the library in a process for a defect by itself */
/* This program holds the library in itself, and the plug-in of the build uses the shared one: not to be mixed. */
static void test_other_library(void **state)
{
    (void)state;
    const char *command = getenv("TANSO_COMMAND");
    char folder[4096], path[4200];
    if (command == NULL || strlen(command) >= sizeof folder)
        skip();
    strcpy(folder, command);
    *(strrchr(folder, '/') ? strrchr(folder, '/') : folder) = 0;
    snprintf(path, sizeof path, "%s/libtanso-cuda.so", folder);
    if (access(path, F_OK) != 0)
        skip();
    assert_int_equal(ask(folder, "works with libtanso.so, which this program does not use", path), 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent), cmocka_unit_test(test_no_plugin), cmocka_unit_test(test_other_kind),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(test_other_library),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
