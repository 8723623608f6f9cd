/* SPDX-License-Identifier: MIT */
/* The folder of compiled kernels: what is written can be read, what is damaged cannot, and what is old goes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <tanso.h>

#include "core/memory.h"
#include "device/kernel_cache.h"

static tn__kernel_folder folder;

static int open_folder(void **state)
{
    (void)state;
    return tn__kernel_folder_private(&folder) != TN_OK;
}

static void path_of(const char *name, char *path, size_t size) { snprintf(path, size, "%s/%s", folder.path, name); }

static bool there(const char *name)
{
    char path[PATH_MAX];
    path_of(name, path, sizeof path);
    return access(path, F_OK) == 0;
}

static void put(const char *name, size_t bytes, long age)
{
    char path[PATH_MAX], *data = calloc(1, bytes);
    assert_non_null(data);
    assert_int_equal(tn__kernel_write(&folder, name, data, bytes), TN_OK);
    free(data);
    path_of(name, path, sizeof path);
    struct timespec then[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

static void take_away(const char *name)
{
    char path[PATH_MAX];
    path_of(name, path, sizeof path);
    assert_int_equal(unlink(path), 0);
}

static void test_written_is_read(void **state)
{
    (void)state;
    char path[PATH_MAX];
    size_t length = 0;
    path_of("a.so", path, sizeof path);
    put("a.so", 1000, 0);
    char *data = tn__kernel_read(path, &length);
    assert_non_null(data);
    assert_int_equal(length, 1000);
    tn__free(data);
    assert_int_equal(truncate(path, 900), 0);
    assert_false(tn__kernel_intact(path));
    assert_false(there("a.so"));
}

/* One bit that is another, wherever it is, in what was written or in the seal behind it. */
static void test_every_byte_counts(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct stat info;
    path_of("b.so", path, sizeof path);
    put("b.so", 100, 0);
    assert_int_equal(stat(path, &info), 0);
    for (long at = 0; at < (long)info.st_size - 8; at += 7) { /* the last bytes are padding */
        put("b.so", 100, 0);
        assert_true(tn__kernel_intact(path));
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        fseek(file, at, SEEK_SET);
        int byte = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(byte ^ 4, file);
        fclose(file);
        if (tn__kernel_intact(path))
            fail_msg("byte %ld of %ld is another, and nobody sees it", at, (long)info.st_size);
        assert_false(there("b.so"));
    }
}

/* What others can write, or have written, is not read; nor what a link leads to. */
static void test_whose(void **state)
{
    (void)state;
    char path[PATH_MAX], other[PATH_MAX];
    path_of("c.so", path, sizeof path);
    path_of("d.so", other, sizeof other);
    put("c.so", 100, 0);
    assert_int_equal(chmod(path, 0722), 0);
    assert_false(tn__kernel_intact(path));
    put("d.so", 100, 0);
    assert_int_equal(symlink(other, path), 0);
    assert_false(tn__kernel_intact(path));
    assert_true(tn__kernel_intact(other));
    if (geteuid() == 0) {
        assert_int_equal(chown(other, 54321, (gid_t)-1), 0);
        assert_false(tn__kernel_intact(other));
    } else {
        take_away("d.so");
    }
    assert_false(there("c.so") || there("d.so"));
}

/* A cache that others can write is not used. */
static void test_whose_folder(void **state)
{
    (void)state;
    char path[PATH_MAX + 16], *before = getenv("TANSO_CACHE_DIR");
    before = before ? strdup(before) : NULL;
    tn__kernel_folder found;
    setenv("TANSO_CACHE_DIR", folder.path, 1);
    assert_int_equal(tn__kernel_folder_open(&found), TN_OK);
    assert_false(found.temporary);
    snprintf(path, sizeof path, "%s/kernels", folder.path);
    assert_string_equal(found.path, path);
    assert_int_equal(chmod(path, 0770), 0);
    assert_int_equal(tn__kernel_folder_open(&found), TN_OK);
    assert_true(found.temporary);
    tn__kernel_folder_close(&found);
    assert_int_equal(chmod(path, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 54321, (gid_t)-1), 0);
        assert_int_equal(tn__kernel_folder_open(&found), TN_OK);
        assert_true(found.temporary);
        tn__kernel_folder_close(&found);
    }
    rmdir(path);
    before ? setenv("TANSO_CACHE_DIR", before, 1) : unsetenv("TANSO_CACHE_DIR");
    free(before);
}

static void test_oldest_go(void **state)
{
    (void)state;
    char name[16];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "%d.so", i);
        put(name, 10000, 100 * (i * 7 % 10)); /* 0 is the youngest, then 3, 6, 9, 2, 5, ... */
    }
    tn__kernel_prune(folder.path, 200000); /* all have room */
    assert_true(there("7.so"));
    tn__kernel_prune(folder.path, 90000); /* 4 of 10 kB and a seal each fit into half of it */
    static const char *const young[] = {"0.so", "3.so", "6.so", "9.so"}, *const old[] = {"2.so", "5.so", "8.so",
                                                                                         "1.so", "4.so", "7.so"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        assert_false(there(old[i]));
    for (size_t i = 0; i < sizeof young / sizeof *young; i++) {
        assert_true(there(young[i]));
        take_away(young[i]);
    }
}

static void test_abandoned_go(void **state)
{
    (void)state;
    put("old.tmp", 10, 3 * 86400);
    put("new.tmp", 10, 60);
    put("old.so", 10, 30 * 86400);
    tn__kernel_prune(folder.path, 1 << 20);
    assert_false(there("old.tmp"));
    assert_true(there("new.tmp"));
    assert_true(there("old.so"));
    take_away("new.tmp");
    take_away("old.so");
    tn__kernel_prune("/nowhere/at/all", 0);
    assert_true(tn_ok());
}

static int close_folder(void **state)
{
    (void)state;
    tn__kernel_folder_close(&folder);
    return access(folder.path, F_OK) == 0; /* it was empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_is_read),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_whose_folder),
        cmocka_unit_test(test_oldest_go),
        cmocka_unit_test(test_abandoned_go),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
