/* SPDX-License-Identifier: MIT */
/* Kernel steps on the CPU: compiled from text, cached on disk, in several threads, and what happens when that fails. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso/device.h>

#include "cpu_steps.h"
#include "device/kernel_cache.h"


#define HEAD "void twice(void *const *p, const long *n, const unsigned long *s, long begin, long end, " \
             "long long *fault) {" \
             "float *to = (float *)p[0] + n[0]; const float *from = (const float *)p[1] + n[1];" \
             "(void)fault; for (long i = begin; i < end; i++) to[i] = "
#define TAIL ";}\n"

static char cache[PATH_MAX];

/* A kernel step over n elements, with an offset of 1 in the output. */
static one_step twice(const char *source, float *to, float *from, int64_t n)
{
    static int64_t param[2] = {1, 0};
    one_step step = step_of(0, TN_FLOAT32);
    step.source = source;
    step.step.kind = TN__STEP_KERNEL;
    step.step.kernel.name = "twice";
    step.step.param_count = 2;
    step.step.param = param;
    step.step.kernel.items = n;
    step.step.kernel.item_cost = 2;
    step_operand(&step, to, TN_FLOAT32, 1, &n, NULL, 1);
    step_operand(&step, from, TN_FLOAT32, 1, &n, NULL, 0);
    return step;
}

/* Runs it on n elements; true if the result is right. */
static bool works(const char *source, float factor, int64_t n)
{
    float *from = malloc(n * sizeof(*from) + 1), *to = calloc(n + 1, sizeof(*to));
    assert_true(from && to);
    for (int64_t i = 0; i < n; i++)
        from[i] = (float)i;
    one_step step = twice(source, to, from, n);
    bool good = step_run(&step) == TN_OK && to[0] == 0;
    for (int64_t i = 0; i < n && good; i++)
        good = to[i + 1] == factor * from[i];
    free(from);
    free(to);
    return good;
}

/* The kernels in the cache: their number, and the path of the last. */
static int files(const char *folder, char *path)
{
    int count = 0;
    DIR *all = opendir(folder);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (path)
            snprintf(path, PATH_MAX, "%s/%s", folder, entry->d_name);
    }
    if (all)
        closedir(all);
    return count;
}

static void empty_cache(void)
{
    char folder[PATH_MAX + 16], path[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/kernels", cache);
    while (files(folder, path) > 0)
        assert_int_equal(unlink(path), 0);
    rmdir(folder);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(cache, sizeof(cache), "%s/tanso-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(cache) == NULL)
        return -1;
    unsetenv("TANSO_CC");
    return setenv("TANSO_CACHE_DIR", cache, 1);
}

static int tear_down(void **state)
{
    (void)state;
    tn_clear_error();
    empty_cache();
    return rmdir(cache);
}

static void test_compile_once(void **state)
{
    (void)state;
    static const char source[] = HEAD "2 * from[i]" TAIL;
    char folder[PATH_MAX + 16], path[PATH_MAX];
    struct stat info;
    uint64_t compiled = tn__kernels_compiled, hits = tn__kernels_found;
    assert_true(works(source, 2, 1000));
    assert_int_equal(tn__kernels_compiled, compiled + 1);
    assert_int_equal(tn__kernels_found, hits);
    snprintf(folder, sizeof(folder), "%s/kernels", cache);
    assert_int_equal(files(folder, path), 1);
    assert_non_null(strstr(path, ".so"));
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);

    assert_true(works(source, 2, 0));
    assert_true(works(source, 2, 1));
    assert_true(works(source, 2, 500001)); /* several threads */
    assert_int_equal(tn__kernels_compiled, compiled + 1);
    assert_int_equal(tn__kernels_found, hits + 3);
}

static bool put(const char *path, const char *format, int number)
{
    FILE *file = fopen(path, "w");
    bool good = file && fprintf(file, format, number) > 0;
    return file && fclose(file) == 0 && good;
}

/* From now on the process may mount, which nobody else sees; what is its user's stays so. */
static bool own_mounts(void)
{
    int user = (int)geteuid(), group = (int)getegid();
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/setgroups", "deny%.0d", 0) &&
           put("/proc/self/uid_map", "0 %d 1", user) && put("/proc/self/gid_map", "0 %d 1", group);
}

/* Where the cache lies on a disk without room, here a small one of a child's own, kernels are compiled elsewhere. */
static void test_full_disk(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const char source[] = HEAD "6 * from[i]" TAIL;
        if (!own_mounts() || mount("tmpfs", cache, "tmpfs", 0, "size=64k,mode=700") != 0)
            _exit(77);
        char folder[PATH_MAX + 16];
        snprintf(folder, sizeof(folder), "%s/kernels", cache);
        _exit(works(source, 6, 100) && works(source, 6, 100) && files(folder, NULL) == 0 ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    if (WIFEXITED(code) && WEXITSTATUS(code) == 77) {
        print_message("no disk of one's own can be mounted here\n");
        skip();
    }
    assert_int_equal(code, 0);
}

/* Two executables of one text share the code that is in memory, whatever became of the file. */
static void test_shared_in_memory(void **state)
{
    (void)state;
    static const char source[] = HEAD "4 * from[i]" TAIL;
    float from[4] = {1, 2, 3, 4}, to[5] = {0};
    tn__device *device = step_device();
    one_step step = twice(source, to, from, 4);
    step.step.operand = step.operand;
    tn__buffer buffer[2] = {{.kind = TN__BUFFER_OUTPUT}, {.kind = TN__BUFFER_INPUT}};
    tn__program program = {.buffer_count = 2, .buffer = buffer, .step_count = 1, .step = &step.step,
                           .source = (char *)source};
    tn__executable *first, *second;
    assert_int_equal(device->ops->load(device, &program, &first), TN_OK);
    empty_cache();
    uint64_t compiled = tn__kernels_compiled;
    assert_int_equal(device->ops->load(device, &program, &second), TN_OK);
    assert_int_equal(tn__kernels_compiled, compiled);
    device->ops->unload(first);
    assert_int_equal(device->ops->run(second, step.memory, NULL), TN_OK);
    assert_true(to[4] == 16);
    device->ops->unload(second);
}

/* Every way a file may be harmed: the next load compiles again, and leaves a good file. */
static void test_damaged_file(void **state)
{
    (void)state;
    static const char source[] = HEAD "3 * from[i]" TAIL;
    char folder[PATH_MAX + 16], path[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/kernels", cache);
    assert_true(works(source, 3, 10));
    assert_int_equal(files(folder, path), 1);
    for (int harm = 0; harm < 6; harm++) {
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        if (harm < 3) { /* empty, half, all but a byte */
            assert_int_equal(truncate(path, harm == 0 ? 0 : harm == 1 ? info.st_size / 2 : info.st_size - 1), 0);
        } else if (harm < 5) { /* a byte of the code, a byte of the seal */
            int file = open(path, O_RDWR);
            char byte;
            off_t at = harm == 3 ? info.st_size / 2 : info.st_size - 20;
            assert_int_equal(pread(file, &byte, 1, at), 1);
            byte ^= 1;
            assert_int_equal(pwrite(file, &byte, 1, at), 1);
            close(file);
        } else { /* somebody may have written it */
            assert_int_equal(chmod(path, 0722), 0);
        }
        uint64_t compiled = tn__kernels_compiled;
        assert_true(works(source, 3, 10));
        assert_int_equal(tn__kernels_compiled, compiled + 1);
        assert_true(works(source, 3, 10));
        assert_int_equal(tn__kernels_compiled, compiled + 1);
        assert_int_equal(files(folder, NULL), 1);
    }
}

/* A folder that others may write, or none at all: everything works, nothing is left. */
static void test_unusable_cache(void **state)
{
    (void)state;
    static const char source[] = HEAD "5 * from[i]" TAIL;
    char folder[PATH_MAX + 16];
    snprintf(folder, sizeof(folder), "%s/kernels", cache);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_true(works(source, 5, 10));
    assert_int_equal(files(folder, NULL), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(chmod(cache, 0722), 0);
    assert_true(works(source, 5, 10));
    assert_int_equal(files(folder, NULL), 0);
    assert_int_equal(chmod(cache, 0700), 0);

    setenv("TANSO_CACHE_DIR", "/dev/null/nowhere", 1);
    char temporary[PATH_MAX];
    snprintf(temporary, sizeof(temporary), "%.*s", PATH_MAX - 1, cache);
    setenv("TMPDIR", temporary, 1);
    uint64_t compiled = tn__kernels_compiled;
    assert_true(works(source, 5, 10));
    assert_true(works(source, 5, 10));
    assert_int_equal(tn__kernels_compiled, compiled + 2);
    unsetenv("TMPDIR");
    rmdir(folder);
    assert_int_equal(files(cache, NULL), 0);
}

static void test_no_compiler(void **state)
{
    (void)state;
    setenv("TANSO_CC", "/nonexistent/cc", 1);
    assert_false(works(HEAD "6 * from[i]" TAIL, 6, 10));
    assert_int_equal(tn_error_code(), TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "/nonexistent/cc"));
    assert_non_null(strstr(tn_error(), "TANSO_CC"));
    tn_clear_error();
    char *path = strdup(getenv("PATH"));
    unsetenv("TANSO_CC");
    setenv("TANSO_CC", "cc", 1);
    setenv("PATH", "/nonexistent", 1);
    assert_false(works(HEAD "6 * from[i]" TAIL, 6, 10));
    assert_int_equal(tn_error_code(), TN_ERR_COMPILE);
    setenv("PATH", path, 1);
    free(path);
    tn_clear_error();
    setenv("TANSO_CC", "false", 1); /* a program that fails and says nothing */
    assert_false(works(HEAD "6 * from[i]" TAIL, 6, 10));
    assert_int_equal(tn_error_code(), TN_ERR_COMPILE);
    tn_clear_error();
    setenv("TANSO_CC", "true", 1); /* one that succeeds and makes nothing */
    assert_false(works(HEAD "6 * from[i]" TAIL, 6, 10));
    assert_int_equal(tn_error_code(), TN_ERR_COMPILE);
    unsetenv("TANSO_CC");
}

/* Whichever compilers are here, not only the one that built this. */
static void test_each_compiler(void **state)
{
    (void)state;
    static const char *const names[] = {"cc", "gcc", "clang"};
    int worked = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t compiled = tn__kernels_compiled;
        setenv("TANSO_CC", names[i], 1);
        bool good = works(HEAD "7 * from[i]" TAIL, 7, 10);
        if (good)
            assert_int_equal(tn__kernels_compiled, compiled + 1);
        else
            assert_non_null(strstr(tn_error(), "not an executable file"));
        tn_clear_error();
        worked += good;
    }
    unsetenv("TANSO_CC");
    assert_true(worked > 0);
}

static void test_compiler_error(void **state)
{
    (void)state;
    char folder[PATH_MAX + 16];
    assert_false(works(HEAD "2 * no_such_variable" TAIL, 2, 10));
    assert_int_equal(tn_error_code(), TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "no_such_variable"));
    tn_clear_error();
    assert_false(works("int not_the_kernel;\n", 2, 10)); /* a missing entry point */
    assert_int_equal(tn_error_code(), TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "twice"));
    snprintf(folder, sizeof(folder), "%s/kernels", cache);
    assert_int_equal(files(folder, NULL), 0);
}

static void test_fault_and_scalars(void **state)
{
    (void)state;
    static const char source[] =
        "void twice(void *const *p, const long *n, const unsigned long *s, long begin, long end, long long *fault) {"
        "(void)n; for (long i = begin; i < end; i++) {"
        "if (i == (long)s[1]) { fault[0] = 2; fault[1] = i; return; } ((float *)p[0])[i] = (float)s[0]; } }\n";
    int64_t n = 100000;
    float *to = calloc(n, sizeof(*to)), from[1] = {0};
    assert_non_null(to);
    one_step step = twice(source, to, from, n);
    step_scalar(&step, TN_UINT64, 7);
    step_scalar(&step, TN_INT64, (uint64_t)-1);
    assert_int_equal(step_run(&step), TN_OK);
    assert_true(to[0] == 7 && to[n - 1] == 7);
    step.value[1] = (uint64_t)n - 1;
    assert_int_equal(step_run(&step), TN_ERR_INDEX);
    assert_non_null(strstr(tn_error(), "99999"));
    assert_non_null(strstr(tn_error(), "100000"));
    free(to);
}

int main(void)
{
    tn_set_threads(3); /* whatever the machine has */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_compile_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unusable_cache, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_compiler, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_compiler, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_compiler_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fault_and_scalars, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
