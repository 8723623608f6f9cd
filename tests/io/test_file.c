/* SPDX-License-Identifier: MIT */
/* Whole files: the final name holds the old or the new contents, never a part, whatever fails. */
#include "io/check.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"

typedef struct content {
    const uint8_t *data;
    size_t size, piece;
    bool give_up;
} content;

static tn_status fill(tn__writer *writer, void *user)
{
    const content *c = user;
    for (size_t at = 0; at < c->size; at += c->piece)
        if (tn__write(writer, c->data + at, c->size - at < c->piece ? c->size - at : c->piece) != TN_OK)
            break;
    if (c->give_up)
        return tn__fail(TN_ERR_VALUE, "test", "giving up");
    return TN_OK;
}

static void assert_contents(const char *path, const void *data, size_t size)
{
    size_t got;
    uint8_t *read = scratch_read(path, &got);
    assert_int_equal(got, size);
    if (size)
        assert_memory_equal(read, data, size);
    free(read);
    uint8_t *ours;
    assert_int_equal(tn__file_read("test", path, UINT64_MAX, &ours, &got), TN_OK);
    assert_int_equal(got, size);
    if (size)
        assert_memory_equal(ours, data, size);
    assert_int_equal(ours[size], 0);
    tn__free(ours);
}

static void round_trips(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static uint8_t data[200001];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)test_random_bits(&random);
    const size_t sizes[] = {0, 1, 65535, 65536, 65537, sizeof data};
    const size_t pieces[] = {7, 65536, 65537, sizeof data};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            content c = {data, sizes[s], pieces[p], false};
            const char *path = scratch_path("round");
            assert_int_equal(tn__file_write_atomic("test", path, fill, &c), TN_OK);
            assert_contents(path, data, sizes[s]);
        }
    assert_int_equal(scratch_count(), 1);
    unlink(scratch_path("round"));
}

static void failures_leave_the_old_file(void **state)
{
    (void)state;
    const char *path = scratch_path("old");
    test_write_bytes(path, "old", 3);
    content c = {(const uint8_t *)"new contents", 12, 5, true};
    assert_int_equal(tn__file_write_atomic("test", path, fill, &c), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "giving up");
    assert_contents(path, "old", 3);
    assert_int_equal(scratch_count(), 1);
    for (long n = 0; n < 20; n++) { /* the nth allocation fails */
        c.give_up = false;
        tn__fail_allocation_after(n);
        tn_status status = tn__file_write_atomic("test", path, fill, &c);
        tn__fail_allocation_after(-1);
        assert_true(status == TN_OK || status == TN_ERR_MEMORY);
        tn_clear_error();
        assert_int_equal(scratch_count(), 1);
    }
    assert_contents(path, "new contents", 12);
    unlink(path);
}

/* A limit on the size of files stands for a full disk: write() gives fewer bytes than asked for, then fails. */
static void a_full_disk(void **state)
{
    (void)state;
    const char *path = scratch_path("full");
    test_write_bytes(path, "old", 3);
    static uint8_t data[300000];
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 100000;
    for (size_t piece = 1000; piece <= sizeof data; piece *= 300) {
        content c = {data, sizeof data, piece, false};
        setrlimit(RLIMIT_FSIZE, &small);
        tn_status status = tn__file_write_atomic("test", path, fill, &c);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(status, TN_ERR_IO);
        assert_non_null(strstr(tn_error(), path));
        assert_failed(TN_ERR_IO, "File too large");
        assert_contents(path, "old", 3);
        assert_int_equal(scratch_count(), 1);
    }
    unlink(path);
}

static void bad_places(void **state)
{
    (void)state;
    content c = {(const uint8_t *)"x", 1, 1, false};
    assert_int_equal(tn__file_write_atomic("test", scratch_path("none/file"), fill, &c), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "No such file or directory; check the path");
    mkdir(scratch_path("folder"), 0777);
    assert_int_equal(tn__file_write_atomic("test", scratch_path("folder"), fill, &c), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "name a file");
    assert_int_equal(tn__file_write_atomic("test", "/dev/null", fill, &c), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "not a regular file");
    uint8_t *data;
    size_t size;
    assert_int_equal(tn__file_read("test", scratch_path("folder"), 10, &data, &size), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "Is a directory");
    assert_int_equal(tn__file_read("test", scratch_path("none"), 10, &data, &size), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "No such file");
    test_write_bytes(scratch_path("eleven"), "12345678901", 11);
    assert_int_equal(tn__file_read("test", scratch_path("eleven"), 10, &data, &size), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "larger than the 10 bytes");
    /* has no size, and no end */
    assert_int_equal(tn__file_read("test", "/dev/zero", 100000, &data, &size), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "larger than the 100000 bytes");
    unlink(scratch_path("eleven"));
    rmdir(scratch_path("folder"));
}

static void rights_stay(void **state)
{
    (void)state;
    struct stat info;
    content c = {(const uint8_t *)"x", 1, 1, false};
    const char *path = scratch_path("rights");
    umask(022);
    assert_int_equal(tn__file_write_atomic("test", path, fill, &c), TN_OK);
    stat(path, &info);
    assert_int_equal(info.st_mode & 0777, 0644);
    chmod(path, 0600);
    assert_int_equal(tn__file_write_atomic("test", path, fill, &c), TN_OK);
    stat(path, &info);
    assert_int_equal(info.st_mode & 0777, 0600);
    unlink(path);
}

/* What a link leads to is written, there or not, and the link stays; circles, and links that others put where all may
 * write, are refused. */
static void links_are_followed(void **state)
{
    (void)state;
    struct stat info;
    content c = {(const uint8_t *)"first", 5, 5, false};
    const char *path = scratch_path("link");
    assert_int_equal(mkdir(scratch_path("there"), 0777), 0);
    assert_int_equal(symlink("there/second", path), 0); /* from where the link is, not from here */
    assert_int_equal(symlink("target", scratch_path("there/second")), 0);
    for (int round = 0; round < 2; round++) { /* the target is made, then replaced */
        assert_int_equal(tn__file_write_atomic("test", path, fill, &c), TN_OK);
        assert_contents(scratch_path("there/target"), c.data, c.size);
        c = (content){(const uint8_t *)"second", 6, 6, false};
        assert_int_equal(lstat(path, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        assert_int_equal(lstat(scratch_path("there/second"), &info), 0);
        assert_true(S_ISLNK(info.st_mode));
    }
    char *temporary;
    assert_int_equal(tn__file_temporary("test", path, &temporary), TN_OK);
    test_write_bytes(temporary, "third", 5);
    assert_int_equal(tn__file_commit("test", temporary, path), TN_OK);
    assert_contents(scratch_path("there/target"), "third", 5);

    assert_int_equal(symlink("circle", scratch_path("circle")), 0);
    assert_int_equal(tn__file_write_atomic("test", scratch_path("circle"), fill, &c), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "in a circle");
    if (geteuid() == 0) {
        assert_int_equal(chmod(scratch_path("there"), 01777), 0);
        assert_int_equal(lchown(scratch_path("there/second"), 54321, (gid_t)-1), 0);
        assert_int_equal(tn__file_write_atomic("test", path, fill, &c), TN_ERR_IO);
        assert_failed(TN_ERR_IO, "another user's link");
        assert_contents(scratch_path("there/target"), "third", 5);
    }
    const char *const made[] = {"link", "circle", "there/second", "there/target"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(scratch_path(made[i]));
    assert_int_equal(rmdir(scratch_path("there")), 0); /* nothing else is in it */
}

static void folders(void **state)
{
    (void)state;
    struct stat info;
    assert_int_equal(tn__folder_make("test", scratch_path("a/b//c/")), TN_OK);
    assert_int_equal(tn__folder_make("test", scratch_path("a/b/c")), TN_OK);
    assert_int_equal(stat(scratch_path("a/b/c"), &info), 0);
    test_write_bytes(scratch_path("a/file"), "", 0);
    assert_int_equal(tn__folder_make("test", scratch_path("a/file/c")), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "not a folder");
    assert_int_equal(tn__folder_make("test", scratch_path("a/file")), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "not a folder");
    assert_int_equal(symlink("b", scratch_path("a/link")), 0);
    assert_int_equal(tn__folder_make("test", scratch_path("a/link/d")), TN_OK);
    assert_int_equal(stat(scratch_path("a/b/d"), &info), 0);
    assert_int_equal(symlink("none", scratch_path("a/lost")), 0);
    assert_int_equal(tn__folder_make("test", scratch_path("a/lost")), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "a/lost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips), cmocka_unit_test(failures_leave_the_old_file), cmocka_unit_test(a_full_disk),
        cmocka_unit_test(bad_places),  cmocka_unit_test(rights_stay),                 cmocka_unit_test(folders),
        cmocka_unit_test(links_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
