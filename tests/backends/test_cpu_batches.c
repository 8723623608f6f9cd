/* SPDX-License-Identifier: MIT */
/* Kernels of a text that tells them apart: each compiled once, several side by side, found by what it is, and what
 * happens when that fails or is ended. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
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
#include <tanso/device.h>

#include "cpu_steps.h"
#include "core/memory.h"
#include "device/kernel_batches.h"
#include "support/starve.h"

enum { MOST = 4, PADDING = 20000 }; /* bytes of a kernel: two are a batch of their own each */

static char cache[200];

static int set_up(void **state)
{
    (void)state;
    snprintf(cache, sizeof cache, "%.150s/tanso-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(cache) == NULL)
        return -1;
    unsetenv("TANSO_CC");
    return setenv("TANSO_CACHE_DIR", cache, 1);
}

/* The files of the cache with that ending (NULL: all), which are removed where `remove` says so. */
static int files(const char *ending, bool remove)
{
    char folder[240], path[600];
    int count = 0;
    snprintf(folder, sizeof folder, "%s/kernels", cache);
    DIR *all = opendir(folder);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (entry->d_name[0] == '.' || (ending && (!dot || strcmp(dot, ending) != 0)))
            continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (remove)
            unlink(path);
    }
    if (all)
        closedir(all);
    return count;
}

static int tear_down(void **state)
{
    (void)state;
    char folder[240];
    tn_clear_error();
    unsetenv("TANSO_CC");
    files(NULL, true);
    snprintf(folder, sizeof folder, "%s/kernels", cache);
    rmdir(folder);
    return rmdir(cache);
}

/* A program of kernels that add their number, 0 to count - 1 of those listed, to one element each. */
typedef struct several {
    tn__program program;
    tn__step step[MOST];
    tn__operand operand[MOST];
    tn__buffer buffer;
} several;

static const char *const body = "void k_%d(void *const *p, const long *n, const unsigned long *s, long begin, long "
                                "end, long long *fault) { (void)n, (void)s, (void)begin, (void)end, (void)fault; "
                                "((float *)p[0])[%d %% 100] += PLUS(%d)%s; }\n/*%*s*/\n";

static void make(several *s, int count, const int *numbers, const char *wrong)
{
    tn__program_text *text = &s->program.text;
    tn__text source = {0};
    *s = (several){.buffer = {.kind = TN__BUFFER_INPUT}};
    s->program.buffer_count = 1;
    s->program.buffer = &s->buffer;
    s->program.step = s->step;
    s->program.step_count = count;
    text->kernel_count = count;
    text->stretch_count = count + 1;
    text->begin = tn__calloc((size_t)count + 2, sizeof *text->begin);
    text->kernel = tn__calloc((size_t)count + 1, sizeof *text->kernel);
    assert_true(text->begin && text->kernel);
    tn__text_addf(&source, "#define PLUS(x) (x + 1)\n");
    for (int k = 0; k < count; k++) {
        text->begin[k + 1] = source.length;
        tn__text_addf(&source, body, numbers[k], numbers[k], numbers[k], k == 1 && wrong ? wrong : "", PADDING, "");
        text->kernel[k] = (tn__kernel_text){.name = tn__format("k_%d", numbers[k]), .count = 2, .own = 1,
                                            .stretch = tn__alloc(2 * sizeof(int))};
        assert_true(text->kernel[k].name && text->kernel[k].stretch);
        text->kernel[k].stretch[0] = 0;
        text->kernel[k].stretch[1] = k + 1;
        s->operand[k] = (tn__operand){.dtype = TN_FLOAT32, .ndim = 1, .dim = {100}, .stride = {1}};
        s->step[k] = (tn__step){.kind = TN__STEP_KERNEL, .operand = &s->operand[k], .operand_count = 1,
                                .output_count = 1,
                                .kernel = {.name = text->kernel[k].name, .code = k, .items = 1, .item_cost = 1}};
    }
    text->begin[count + 1] = source.length;
    s->program.source = tn__text_take(&source);
    assert_non_null(s->program.source);
}

static void let_go(several *s)
{
    tn__program_text_free(&s->program.text);
    tn__free(s->program.source);
}

/* Loads and runs kernels of these numbers; what each has added. */
static tn_status run(int count, const int *numbers, const char *wrong)
{
    several s;
    float sums[100] = {0};
    void *memory[] = {sums};
    tn__device *device = step_device();
    tn__executable *executable = NULL;
    make(&s, count, numbers, wrong);
    tn_status status = device->ops->load(device, &s.program, &executable);
    if (status == TN_OK)
        status = device->ops->run(executable, memory, NULL);
    for (int k = 0; k < count && status == TN_OK; k++)
        assert_true(sums[numbers[k] % 100] == (float)(numbers[k] + 1));
    device->ops->unload(executable);
    let_go(&s);
    return status;
}

static void test_each_once(void **state)
{
    (void)state;
    uint64_t compiled = tn__kernels_compiled, found = tn__kernels_found;
    assert_int_equal(run(3, (int[]){1, 2, 3}, NULL), TN_OK);
    assert_int_equal(tn__kernels_compiled - compiled, 3);
    assert_int_equal(tn__kernels_found, found);
    assert_int_equal(files(".so", false), 3);
    assert_int_equal(files(NULL, false), 3);
    assert_int_equal(run(3, (int[]){3, 4, 1}, NULL), TN_OK); /* two from the folder */
    assert_int_equal(tn__kernels_compiled - compiled, 4);
    assert_int_equal(tn__kernels_found - found, 2);
    assert_int_equal(files(NULL, false), 4);
    files(NULL, true);
    assert_int_equal(run(2, (int[]){1, 4}, NULL), TN_OK);
    assert_int_equal(tn__kernels_compiled - compiled, 6);
}

/* A kernel of one program has the functions of another's in another order, which is no difference; one more function,
 * or another in front of all, is one. */
static void test_names(void **state)
{
    (void)state;
    static const char source[] = "front;one();two();kernel();two();one();other;";
    static const size_t begin[] = {0, 6, 12, 18, 27, 33, 39, sizeof source - 1};
    int stretch[][4] = {{0, 1, 2, 3}, {0, 4, 5, 3}, {0, 1, 3}, {6, 1, 2, 3}};
    tn__kernel_text kernel[4];
    for (int i = 0; i < 4; i++)
        kernel[i] = (tn__kernel_text){.count = i == 2 ? 3 : 4, .own = 1, .stretch = stretch[i]};
    tn__program_text text = {.stretch_count = 7, .begin = (size_t *)begin, .kernel_count = 4, .kernel = kernel};
    tn__program program = {.source = (char *)source, .text = text};
    char key[4][TN__KEY];
    assert_int_equal(tn__kernel_keys(&program, "compiler", key), TN_OK);
    assert_string_equal(key[0], key[1]);
    assert_string_not_equal(key[0], key[2]);
    assert_string_not_equal(key[0], key[3]);
}

/* No folder to keep anything in: nothing is left in the temporary one. */
static void test_no_folder(void **state)
{
    (void)state;
    uint64_t compiled = tn__kernels_compiled;
    setenv("TANSO_CACHE_DIR", "/proc/nowhere", 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(2, (int[]){5, 6}, NULL), TN_OK);
    assert_int_equal(tn__kernels_compiled - compiled, 4);
    setenv("TANSO_CACHE_DIR", cache, 1);
}

/* A damaged file is several kernels': each is compiled again, once. */
static void test_damaged(void **state)
{
    (void)state;
    char command[400];
    assert_int_equal(run(2, (int[]){7, 8}, NULL), TN_OK);
    snprintf(command, sizeof command, "for f in %s/kernels/*.so; do echo x >>$f; done", cache);
    assert_int_equal(system(command), 0);
    uint64_t compiled = tn__kernels_compiled;
    assert_int_equal(run(2, (int[]){7, 8}, NULL), TN_OK);
    assert_int_equal(tn__kernels_compiled - compiled, 2);
    assert_int_equal(files(NULL, false), 2);
}

static void test_wrong_text(void **state)
{
    (void)state;
    assert_int_equal(run(3, (int[]){11, 12, 13}, "+ no_such_variable"), TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "no_such_variable"));
    tn_clear_error();
    assert_int_equal(files(NULL, false), files(".so", false));
    setenv("TANSO_CC", "/nonexistent/cc", 1);
    assert_int_equal(run(2, (int[]){14, 15}, NULL), TN_ERR_COMPILE);
    tn_clear_error();
    setenv("TANSO_CC", "true", 1); /* succeeds and makes nothing */
    assert_int_equal(run(2, (int[]){14, 15}, NULL), TN_ERR_COMPILE);
    assert_int_equal(files(NULL, false), files(".so", false));
}

/* The texts that the test makes itself are made while memory is there. */
static tn_status load_one(void *user)
{
    several *s = user;
    tn__device *device = step_device();
    tn__executable *executable = NULL;
    files(NULL, true);
    tn_status status = device->ops->load(device, &s->program, &executable);
    device->ops->unload(executable);
    return status;
}

static void test_starved(void **state)
{
    (void)state;
    several s;
    make(&s, 2, (int[]){24, 25}, NULL);
    starve("kernels one by one", load_one, &s);
    assert_int_equal(files(NULL, false), files(".so", false));
    let_go(&s);
}

/* ---- a process that is ended ends the compilers that it started ---- */

static bool is_there(int pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

/* The number that a file holds, once it is there; -1: never. */
static int read_number(const char *path)
{
    int number = -1;
    for (int i = 0; i < 2000 && number < 0; i++) {
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%d\n", &number) != 1)
            number = -1;
        if (file)
            fclose(file);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return number;
}

static void test_killed(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGINT, SIGTERM};
    char compiler[240], pid_file[240];
    snprintf(compiler, sizeof compiler, "%s/cc", cache);
    snprintf(pid_file, sizeof pid_file, "%s/pid", cache);
    FILE *script = fopen(compiler, "w");
    assert_true(script && fprintf(script, "#!/bin/sh\necho $$ >%s.new; mv %s.new %s; sleep 600 & wait\n", pid_file,
                                  pid_file, pid_file) > 0);
    assert_int_equal(fclose(script), 0);
    assert_int_equal(chmod(compiler, 0700), 0);
    setenv("TANSO_CC", compiler, 1);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        unlink(pid_file);
        pid_t child = fork();
        if (child == 0) {
            signal(signals[i], SIG_DFL);
            run(1, (int[]){31}, NULL);
            _exit(0);
        }
        int pid = read_number(pid_file);
        assert_true(pid > 0 && is_there(pid));
        assert_int_equal(kill(child, signals[i]), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        for (int k = 0; k < 2000 && is_there(pid); k++)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        assert_false(is_there(pid));
    }
    unlink(pid_file);
    unlink(compiler);
}

int main(void)
{
    TEST_ABOUT_CPU("the CPU backend's compiler");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_once, set_up, tear_down),
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_no_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_starved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
