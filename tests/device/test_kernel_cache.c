/* SPDX-License-Identifier: MIT */
/* The folder of compiled kernels: what is written can be read, what is damaged cannot, what is old goes; and
 * nobody else has a hand in it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    char *data = tn__kernel_read(&folder, "a.so", &length);
    assert_non_null(data);
    assert_int_equal(length, 1000);
    tn__free(data);
    assert_int_equal(truncate(path, 900), 0);
    assert_false(tn__kernel_intact(&folder, "a.so"));
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
        assert_true(tn__kernel_intact(&folder, "b.so"));
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        fseek(file, at, SEEK_SET);
        int byte = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(byte ^ 4, file);
        fclose(file);
        if (tn__kernel_intact(&folder, "b.so"))
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
    assert_false(tn__kernel_intact(&folder, "c.so"));
    put("d.so", 100, 0);
    assert_int_equal(symlink(other, path), 0);
    assert_false(tn__kernel_intact(&folder, "c.so"));
    assert_true(tn__kernel_intact(&folder, "d.so"));
    if (geteuid() == 0) {
        assert_int_equal(chown(other, 54321, (gid_t)-1), 0);
        assert_false(tn__kernel_intact(&folder, "d.so"));
    } else {
        take_away("d.so");
    }
    assert_false(there("c.so") || there("d.so"));
}

/* Makes the test's folder the cache; what it was before comes back with `was`. */
static char *become_cache(const char *place)
{
    char *before = getenv("TANSO_CACHE_DIR");
    before = before ? strdup(before) : NULL;
    setenv("TANSO_CACHE_DIR", place, 1);
    return before;
}

static void was(char *before)
{
    before ? setenv("TANSO_CACHE_DIR", before, 1) : unsetenv("TANSO_CACHE_DIR");
    free(before);
}

static bool used(void)
{
    tn__kernel_folder found;
    assert_int_equal(tn__kernel_folder_open(&found), TN_OK);
    bool kept = !found.temporary;
    tn__kernel_folder_close(&found);
    assert_int_equal(found.file, -1);
    return kept;
}

/* A cache that others can write is not used, nor one below a folder in which others could put another in its place:
 * any of those above, and through links as well. */
static void test_whose_folder(void **state)
{
    (void)state;
    char above[PATH_MAX], place[PATH_MAX], kernels[PATH_MAX], link[PATH_MAX];
    path_of("above", above, sizeof above);
    path_of("above/between/cache", place, sizeof place);
    path_of("above/between/cache/kernels", kernels, sizeof kernels);
    path_of("link", link, sizeof link);
    char *before = become_cache(place);
    assert_true(used());
    const struct {
        const char *folder;
        mode_t mode;
        bool safe;
    } modes[] = {{kernels, 0770, false}, {kernels, 0702, false}, {kernels, 01777, false}, {kernels, 0755, true},
                 {place, 0770, false},   {place, 01777, true},   {above, 0720, false},    {above, 0777, false},
                 {above, 01777, true},   {above, 02755, true}};
    assert_int_equal(symlink(place, link), 0);
    for (int linked = 0; linked < 2; linked++) {
        setenv("TANSO_CACHE_DIR", linked ? link : place, 1);
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            assert_int_equal(chmod(modes[i].folder, modes[i].mode), 0);
            if (used() != modes[i].safe)
                fail_msg("%s of mode %o: %s", modes[i].folder, modes[i].mode, modes[i].safe ? "not used" : "used");
            assert_int_equal(chmod(modes[i].folder, 0700), 0);
            assert_true(used());
        }
        const char *const owned[] = {kernels, place, above};
        for (size_t i = 0; geteuid() == 0 && i < sizeof owned / sizeof *owned; i++) {
            assert_int_equal(chown(owned[i], 54321, (gid_t)-1), 0);
            assert_false(used());
            assert_int_equal(chown(owned[i], 0, (gid_t)-1), 0);
        }
    }
    was(before);
    assert_int_equal(unlink(link) | rmdir(kernels) | rmdir(place), 0);
    path_of("above/between", place, sizeof place);
    assert_int_equal(rmdir(place) | rmdir(above), 0);
}

/* Another folder in the place of one that was opened: files go to, and come from, the one that was looked at. */
static void test_another_in_its_place(void **state)
{
    (void)state;
    char place[PATH_MAX], kernels[PATH_MAX], away[PATH_MAX], path[PATH_MAX], real[PATH_MAX], expected[PATH_MAX + 16];
    path_of("cache", place, sizeof place);
    path_of("cache/kernels", kernels, sizeof kernels);
    path_of("away", away, sizeof away);
    char *before = become_cache(place);
    tn__kernel_folder found, other;
    assert_int_equal(tn__kernel_folder_open(&found), TN_OK);
    assert_string_equal(found.path, kernels);
    assert_int_equal(tn__kernel_write(&found, "e.so", "right", 6), TN_OK);
    assert_int_equal(rename(place, away), 0);
    assert_int_equal(tn__kernel_folder_open(&other), TN_OK);
    assert_int_equal(tn__kernel_write(&other, "e.so", "wrong", 6), TN_OK);
    assert_int_equal(tn__kernel_write(&other, "f.so", "wrong", 6), TN_OK);

    size_t length = 0;
    char *data = tn__kernel_read(&found, "e.so", &length);
    assert_non_null(data);
    assert_string_equal(data, "right");
    tn__free(data);
    assert_null(tn__kernel_read(&found, "f.so", &length));
    assert_non_null(realpath(tn__kernel_path(&found, "e.so", path), real));
    snprintf(expected, sizeof expected, "%s/kernels/e.so", away);
    assert_string_equal(real, expected);
    tn__kernel_prune(&found, 0);
    assert_false(tn__kernel_intact(&found, "e.so"));
    assert_true(tn__kernel_intact(&other, "e.so"));

    tn__kernel_prune(&other, 0);
    tn__kernel_folder_close(&found);
    tn__kernel_folder_close(&other);
    was(before);
    assert_int_equal(rmdir(kernels) | rmdir(place), 0);
    snprintf(expected, sizeof expected, "%s/kernels", away);
    assert_int_equal(rmdir(expected) | rmdir(away), 0);
}

/* Processes that have the same number, one after the other or each in its container, give different names. */
static void test_names_are_unique(void **state)
{
    (void)state;
    enum { NAMES = 8 };
    char name[NAMES + 1][TN__KERNEL_NAME];
    int ends[2];
    for (int i = 0; i < NAMES; i++) {
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) { /* of the same number, as it would be: the first name of a fresh process */
            tn__kernel_unique(name[0], "0123456789abcdef0123456789abcdef.algorithm");
            _exit(write(ends[1], name[0], TN__KERNEL_NAME) != TN__KERNEL_NAME);
        }
        close(ends[1]);
        assert_int_equal(read(ends[0], name[i], TN__KERNEL_NAME), TN__KERNEL_NAME);
        close(ends[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        char number[16];
        snprintf(number, sizeof number, "-%d-", (int)child);
        assert_null(strstr(name[i], number));
        assert_true(strlen(name[i]) + sizeof ".tmp" <= TN__KERNEL_NAME);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name[k], name[i]);
    }
}

static void test_oldest_go(void **state)
{
    (void)state;
    char name[16];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "%d.so", i);
        put(name, 10000, 100 * (i * 7 % 10)); /* 0 is the youngest, then 3, 6, 9, 2, 5, ... */
    }
    tn__kernel_prune(&folder, 200000); /* all have room */
    assert_true(there("7.so"));
    tn__kernel_prune(&folder, 90000); /* 4 of 10 kB and a seal each fit into half of it */
    static const char *const young[] = {"0.so", "3.so", "6.so", "9.so"}, *const old[] = {"2.so", "5.so", "8.so",
                                                                                         "1.so", "4.so", "7.so"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        assert_false(there(old[i]));
    for (size_t i = 0; i < sizeof young / sizeof *young; i++) {
        assert_true(there(young[i]));
        take_away(young[i]);
    }
}

/* What killed processes leave goes however little it is; what a living one may be at does not. */
static void test_abandoned_go(void **state)
{
    (void)state;
    static const char *const endings[] = {"tmp", "c", "log"};
    char old[16], new[16];
    put("old.so", 10, 30 * 86400);
    put("old.algorithm", 10, 30 * 86400);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(old, sizeof old, "old.%s", endings[i]);
        snprintf(new, sizeof new, "new.%s", endings[i]);
        put(old, 10, 2 * 3600);
        put(new, 10, 60);
        assert_true(there(old));
    }
    tn__kernel_prune(&folder, 1 << 20);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(old, sizeof old, "old.%s", endings[i]);
        snprintf(new, sizeof new, "new.%s", endings[i]);
        assert_false(there(old));
        assert_true(there(new));
        take_away(new);
    }
    assert_true(there("old.so") && there("old.algorithm"));
    take_away("old.so");
    take_away("old.algorithm");
    tn__kernel_folder nowhere = {.file = -1};
    tn__kernel_prune(&nowhere, 0);
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
        cmocka_unit_test(test_another_in_its_place),
        cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_oldest_go),
        cmocka_unit_test(test_abandoned_go),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
