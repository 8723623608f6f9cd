/* SPDX-License-Identifier: MIT */
/* The CUDA backend's host side on a fake driver: memory, launches, run-time scalars, faults, the cache of kernels. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso/base.h>

#include "cuda/fake.h"
#include "device/kernel_cache.h"
#include "device/launch.h"
#include "ops/ops.h"
#include "tn_op_functions.h"

/* A program of one kernel with one operand of 4 floats, one parameter and two scalars. */
typedef struct one_kernel {
    tn__program program;
    tn__step step[2];
    tn__operand operand[2];
    tn__buffer buffer[2];
    int64_t param[3];
    int slot[2];
    tn_dtype dtype[2];
    char source[128];
} one_kernel;

static void make(one_kernel *one, const char *kernel)
{
    memset(one, 0, sizeof *one);
    one->operand[0] = (tn__operand){.buffer = 0, .dtype = TN_FLOAT32, .ndim = 1, .dim = {4}, .stride = {1}};
    one->operand[1] = (tn__operand){.buffer = 1, .dtype = TN_FLOAT32, .ndim = 1, .dim = {4}, .stride = {1}};
    one->param[0] = 1234;
    one->slot[1] = 1;
    one->dtype[0] = one->dtype[1] = TN_FLOAT32;
    one->step[0] = (tn__step){.kind = TN__STEP_KERNEL, .operand_count = 1, .output_count = 1,
                              .operand = one->operand, .param_count = 3, .param = one->param, .scalar_count = 2,
                              .scalar = one->slot, .label = "add -> sum",
                              .kernel = {.name = kernel, .launch = {.blocks = 7, .threads = 96, .shared = 512}}};
    /* a text of its own in each process, so that caches hold it only if this test put it there */
    snprintf(one->source, sizeof one->source, "%s text of %ld %ld", kernel, (long)time(NULL), (long)getpid());
    one->program = (tn__program){.buffer_count = 2, .buffer = one->buffer, .scalar_count = 2,
                                 .scalar_dtype = one->dtype, .step_count = 1, .step = one->step, .source = one->source};
}

/* ---- memory ---- */

static void test_memory(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    assert_non_null(device);
    assert_int_equal(device->capabilities.target, TN__TARGET_CUDA);
    assert_false(device->capabilities.operations);
    assert_false(device->capabilities.host_memory);
    assert_int_equal(device->capabilities.total_memory, 1 << 30);
    void *memory = device->ops->allocate(device, 64), *other = device->ops->allocate(device, 64);
    assert_true(memory && other && memory != other);
    char text[64] = "carbon", back[64] = "";
    assert_int_equal(device->ops->write(device, memory, text, sizeof text), TN_OK);
    memset(text, 0, sizeof text); /* the host's memory is the caller's again */
    assert_int_equal(device->ops->copy(device, other, memory, sizeof text), TN_OK);
    assert_int_equal(device->ops->read(device, back, other, sizeof back), TN_OK);
    assert_string_equal(back, "carbon");
    assert_int_equal(device->ops->read(device, NULL, NULL, 0), TN_OK);
    device->ops->release(device, memory, 64);
    device->ops->release(device, other, 64);
    assert_int_equal(fake.count.allocations, 2);
    assert_int_equal(fake.count.releases, 2);
    fake.memory_left = 100;
    assert_null(device->ops->allocate(device, 101));
    assert_true(tn_ok()); /* the allocator trims, tries again, and then tells more than the driver knows */
}

/* ---- launches and scalars ---- */

static uint64_t seen[64][2];
static int64_t seen_words[4];
static int seen_count;

static void note(const char *name, const int64_t *words, const uint64_t *scalars, const tn__cuda_failure *failure)
{
    assert_string_equal(name, "k1");
    assert_false(fake_stopped(failure));
    memcpy(seen_words, words, sizeof seen_words);
    memcpy(seen[seen_count++ % 64], scalars, sizeof *seen);
}

/* The host runs far ahead: no run may see the scalars of a later one, and nothing is copied or waited for. */
static void scalars_arrive(tn__device *device)
{
    one_kernel one;
    make(&one, "k1");
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    fake.kernel_runs = note;
    seen_count = 0;
    float place[4];
    void *buffers[2] = {place, place};
    int waits = fake.count.waits;
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){i / 2, ~i}), TN_OK);
    assert_int_equal(fake.count.host_to_device, 0);
    assert_int_equal(fake.count.waits, waits);
    fake_flush();
    assert_int_equal(seen_count, 50);
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(seen[i][0], i / 2);
        assert_int_equal(seen[i][1], ~i);
    }
    assert_int_equal(seen_words[0], (intptr_t)place);
    assert_int_equal(seen_words[1], 1234);
    assert_int_equal(fake.blocks, 7);
    assert_int_equal(fake.threads, 96);
    assert_int_equal(fake.shared, 512);
    int patches = fake.count.patches;
    for (int i = 0; i < 3; i++)
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){24, ~(uint64_t)49}), TN_OK);
    assert_int_equal(fake.count.patches, patches); /* unchanged scalars stay where they are */
    device->ops->unload(executable);
    assert_int_equal(fake.count.allocations, fake.count.releases);
    assert_int_equal(fake.count.pinned, fake.count.unpinned);
    assert_int_equal(fake.count.modules, fake.count.unloads);
    assert_int_equal(fake.count.graphs, fake.count.graphs_gone);
}

static void test_scalars(void **state)
{
    (void)state;
    scalars_arrive(fake_open());
    assert_int_equal(fake.count.launches, 2); /* the first run's, and one that was captured */
    assert_int_equal(fake.count.graph_launches, 52);
    scalars_arrive(fake_open_without_graphs());
    assert_int_equal(fake.count.captures, 0);
    assert_int_equal(fake.count.launches, 53);
}

/* ---- faults ---- */

static void poison(const char *name, const int64_t *words, const uint64_t *scalars, const tn__cuda_failure *failure)
{
    (void)name, (void)words;
    if (scalars[0] == 1)
        fake_fail(failure, 2, -9);
}

static void test_index_fault(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k2");
    one.step[0].kernel.may_fail = true;
    one.step[0].operand_count = 2;
    one.operand[1].dim[0] = 5;
    fake.words = 5;
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    fake.kernel_runs = poison;
    void *buffers[2] = {one.buffer, one.buffer};
    for (int i = 0; i < 3; i++) { /* started step by step, then captured, then patched */
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){0, 0}), TN_OK);
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){1, 0}), TN_OK);
        int waits = fake.count.waits;
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){0, 0}), TN_OK); /* nobody knows yet */
        assert_int_equal(fake.count.waits, waits);
        assert_int_equal(device->ops->synchronize(device), TN_ERR_INDEX);
        assert_non_null(
            strstr(tn_error(), "add -> sum: index -9 is out of range for an axis of extent 5: valid are -5 to 4"));
        tn_clear_error();
        assert_int_equal(device->ops->synchronize(device), TN_OK); /* told once; an index ruins nothing */
    }
    assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){1, 0}), TN_OK);
    fake_flush();
    assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){0, 0}), TN_ERR_INDEX); /* the next run tells */
    tn_clear_error();
    assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){1, 0}), TN_OK);
    device->ops->unload(executable);
    assert_int_equal(device->ops->synchronize(device), TN_ERR_INDEX); /* told after the program is gone */
    tn_clear_error();
}

static int runs;

static void poison_first(const char *name, const int64_t *words, const uint64_t *scalars,
                        const tn__cuda_failure *failure)
{
    (void)words;
    runs += !fake_stopped(failure);
    if (strcmp(name, "k2") == 0 && scalars[0] == 1)
        fake_fail(failure, 1, 77);
}

/* What a failed run was to overwrite is as it was, however far ahead the host is. */
static void test_fault_before_donation(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k2");
    strcat(one.source, " and k8");
    one.step[0].kernel.may_fail = true;
    one.step[1] = one.step[0];
    one.step[1].kernel.may_fail = false;
    one.step[1].kernel.name = "k8";
    one.step[1].operand = &one.operand[1];
    one.buffer[1].kind = TN__BUFFER_DONATED;
    one.program.step_count = 2;
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    fake.kernel_runs = poison_first;
    void *buffers[2] = {one.buffer, one.buffer};
    for (int i = 0; i < 3; i++) {
        runs = 0;
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){1, 0}), TN_OK);
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){0, 0}), TN_OK);
        fake_flush();
        assert_int_equal(runs, 2); /* what looks without overwriting may go on */
        assert_int_equal(device->ops->synchronize(device), TN_ERR_INDEX);
        tn_clear_error();
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){0, 0}), TN_OK);
        fake_flush();
        assert_int_equal(runs, 4);
    }
    device->ops->unload(executable);
}

static void test_faulted_device(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k3");
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    void *buffers[2] = {one.buffer, one.buffer};
    uint64_t scalars[2] = {0};
    assert_int_equal(device->ops->run(executable, buffers, scalars), TN_OK);
    fake.next_wait = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(device->ops->synchronize(device), TN_ERR_DEVICE);
    assert_non_null(strstr(tn_error(), "FAKE_ILLEGAL_ADDRESS"));
    assert_non_null(strstr(tn_error(), "add -> sum"));
    tn_clear_error();
    fake.next_wait = CUDA_SUCCESS;
    int launches = fake.count.launches;
    assert_int_equal(device->ops->run(executable, buffers, scalars), TN_ERR_DEVICE); /* and so it stays */
    assert_non_null(strstr(tn_error(), "FAKE_ILLEGAL_ADDRESS"));
    tn_clear_error();
    assert_int_equal(fake.count.launches, launches);
    char byte;
    assert_int_equal(device->ops->read(device, &byte, one.buffer, 1), TN_ERR_DEVICE);
    assert_null(device->ops->allocate(device, 1));
    tn_clear_error();
    device->ops->unload(executable);
}

static void test_failed_launch(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k4");
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    void *buffers[2] = {one.buffer, one.buffer};
    uint64_t scalars[2] = {0};
    fake.next_launch = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(device->ops->run(executable, buffers, scalars), TN_ERR_DEVICE);
    assert_non_null(strstr(tn_error(), "add -> sum"));
    tn_clear_error();
    fake.next_launch = CUDA_SUCCESS;
    assert_int_equal(device->ops->run(executable, buffers, scalars), TN_OK); /* this one ruins nothing */
    device->ops->unload(executable);
}

static void test_refused_launch(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    const tn__launch l = {.source = "", .name = "raw", .grid = {2, 1, 1}, .block = {5000, 1, 1}};
    static const CUresult refusals[] = {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES};
    for (int i = 0; i < 2; i++) {
        fake.next_launch = refusals[i];
        assert_int_equal(device->ops->launch(device, &l), TN_ERR_VALUE);
        assert_non_null(strstr(tn_error(), "at most 1024 threads"));
        assert_non_null(strstr(tn_error(), "a grid of (2, 1, 1), blocks of (5000, 1, 1) and 0 bytes of shared memory"));
        tn_clear_error();
    }
    fake.next_launch = CUDA_SUCCESS;
    assert_int_equal(device->ops->launch(device, &l), TN_OK);
}

/* ---- code ---- */

static void test_cache(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k5");
    tn__executable *executable = NULL, *second = NULL;
    uint64_t compiled = tn__kernels_compiled, found = tn__kernels_found;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    assert_int_equal(fake.count.compilations, 1);
    assert_int_equal(device->ops->load(device, &one.program, &second), TN_OK);
    assert_int_equal(fake.count.modules, 1); /* one text is loaded once */
    device->ops->unload(executable);
    assert_int_equal(fake.count.unloads, 0);
    device->ops->unload(second);
    assert_int_equal(fake.count.unloads, 1);
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    assert_int_equal(fake.count.compilations, 1); /* from the disk */
    assert_int_equal(tn__kernels_compiled - compiled, 1); /* as tn_engine_stats tells */
    assert_int_equal(tn__kernels_found - found, 2);
    assert_int_equal(fake.count.modules, 2);
    device->ops->unload(executable);
}

/* Machine code for a GPU that the compiler knows (the fake one knows 8.0 and 9.0), else PTX for the newest before it,
 * which is kept apart from the code of that one. */
static void test_target(void **state)
{
    (void)state;
    static const struct {
        int architecture;
        const char *target;
    } rows[] = {{80, "sm_80"}, {86, "compute_80"}, {90, "sm_90a"}, {91, "compute_90"}, {100, "compute_90"},
                {130, "compute_90"}};
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k13");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int again = 0; again < 2; again++) {
            tn__executable *executable = NULL;
            tn__cuda_of(device)->architecture = rows[i].architecture;
            *fake.target = 0;
            assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
            assert_string_equal(fake.target, again ? "" : rows[i].target); /* then from the disk */
            device->ops->unload(executable);
        }
}

/* While a text is compiled, which takes seconds, other threads run what is loaded, and who wants the same text waits
 * for it. */
static struct {
    tn__device *device;
    tn__executable *ready, *same;
    const tn__program *program;
    tn_status ran, loaded;
    pthread_t waiting;
} meanwhile;

static void *run_ready(void *unused)
{
    float place[4];
    void *buffers[2] = {place, place};
    meanwhile.ran = meanwhile.device->ops->run(meanwhile.ready, buffers, (uint64_t[]){0, 0});
    return unused;
}

static void *load_same(void *unused)
{
    meanwhile.loaded = meanwhile.device->ops->load(meanwhile.device, meanwhile.program, &meanwhile.same);
    return unused;
}

static void while_compiling(const char *text)
{
    (void)text;
    pthread_t running;
    meanwhile.ran = TN_ERR_INTERNAL;
    if (pthread_create(&running, NULL, run_ready, NULL) == 0)
        pthread_join(running, NULL);
    assert_int_equal(pthread_create(&meanwhile.waiting, NULL, load_same, NULL), 0);
}

static void test_compiling(void **state)
{
    (void)state;
    one_kernel ready, other;
    tn__device *device = meanwhile.device = fake_open();
    tn__executable *executable = NULL;
    make(&ready, "k7");
    make(&other, "k8");
    meanwhile.program = &other.program;
    assert_int_equal(device->ops->load(device, &ready.program, &meanwhile.ready), TN_OK);
    fake.compiles = while_compiling;
    assert_int_equal(device->ops->load(device, &other.program, &executable), TN_OK);
    fake.compiles = NULL;
    pthread_join(meanwhile.waiting, NULL);
    assert_int_equal(meanwhile.ran, TN_OK);
    assert_int_equal(meanwhile.loaded, TN_OK);
    assert_int_equal(fake.count.compilations, 2);
    assert_int_equal(fake.count.modules, 2);
    device->ops->unload(executable);
    device->ops->unload(meanwhile.same);
    device->ops->unload(meanwhile.ready);
    assert_int_equal(fake.count.unloads, 2);
}

static void loads_and_runs(const char *kernel)
{
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, kernel);
    tn__executable *executable = NULL;
    void *buffers[2] = {one.buffer, one.buffer};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
        assert_int_equal(device->ops->run(executable, buffers, (uint64_t[]){0, 0}), TN_OK);
        device->ops->unload(executable);
    }
    assert_int_equal(fake.count.compilations, 2); /* nothing was kept */
    assert_true(tn_ok());
}

/* A full disk, here a limit of files' sizes: what is compiled is used, and compiled again. */
static void test_full_disk(void **state)
{
    (void)state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    fflush(NULL);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    loads_and_runs("k11");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
}

/* Nowhere to write at all. */
static void test_no_folder(void **state)
{
    (void)state;
    const char *cache = getenv("TANSO_CACHE_DIR"), *place = getenv("TMPDIR");
    cache = cache ? strdup(cache) : NULL;
    place = place ? strdup(place) : NULL;
    setenv("TANSO_CACHE_DIR", "/proc/nowhere", 1);
    setenv("TMPDIR", "/proc/nowhere", 1);
    loads_and_runs("k12");
    cache ? setenv("TANSO_CACHE_DIR", cache, 1) : unsetenv("TANSO_CACHE_DIR");
    place ? setenv("TMPDIR", place, 1) : unsetenv("TMPDIR");
    free((char *)cache);
    free((char *)place);
}

static void test_compiler_error(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k6");
    strcat(one.source, "\n#error");
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_ERR_COMPILE);
    assert_null(executable);
    assert_non_null(strstr(tn_error(), "the compiler's log"));
    tn_clear_error();
    assert_int_equal(fake.count.allocations, fake.count.releases);
    assert_int_equal(fake.count.pinned, fake.count.unpinned);
}

/* ---- operations ---- */

static void test_copy(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    one_kernel one;
    make(&one, "k7");
    one.program.source = "";
    one.step[0] = (tn__step){.kind = TN__STEP_OP, .op = TN__OP_COPY, .operand_count = 2, .output_count = 1,
                             .operand = one.operand};
    one.operand[1].offset = 1;
    float from[6] = {1, 2, 3, 4, 5, 6}, to[4] = {0};
    void *buffers[2] = {to, from};
    uint64_t scalars[2] = {0};
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    assert_int_equal(device->ops->run(executable, buffers, scalars), TN_OK);
    assert_int_equal(fake.count.device_to_device, 1); /* without gaps: no kernel */
    assert_int_equal(device->ops->synchronize(device), TN_OK);
    assert_memory_equal(to, from + 1, sizeof to);
    device->ops->unload(executable);

    one.operand[1].stride[0] = -1;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_OK);
    assert_int_equal(device->ops->run(executable, buffers, scalars), TN_OK);
    assert_int_equal(fake.count.device_to_device, 1);
    assert_int_equal(fake.count.launches, 1);
    assert_string_equal(fake.kernel, "move");
    device->ops->unload(executable);

    one.operand[1].dtype = TN_INT64;
    assert_int_equal(device->ops->load(device, &one.program, &executable), TN_ERR_INTERNAL);
    tn_clear_error();
}

static void test_supports(void **state)
{
    (void)state;
    tn__device *device = fake_open();
    assert_true(device->ops->supports(device, TN__OP_MATMUL, TN_FLOAT32, NULL));
    assert_true(device->ops->supports(device, TN__OP_SCATTER_ADD, TN_INT8, NULL));
    assert_false(device->ops->supports(device, TN__OP_SCATTER_ADD, TN_BOOL, NULL));
    assert_true(device->ops->supports(device, TN__OP_COPY, TN_BOOL, NULL));
    assert_false(device->ops->supports(device, TN__OP_ADD, TN_FLOAT32, NULL));
    assert_int_equal(TN__OP_COUNT, TN__OP_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_scalars),     cmocka_unit_test(test_index_fault),
        cmocka_unit_test(test_fault_before_donation),
        cmocka_unit_test(test_faulted_device),   cmocka_unit_test(test_failed_launch),
        cmocka_unit_test(test_refused_launch), cmocka_unit_test(test_cache),
        cmocka_unit_test(test_target),        cmocka_unit_test(test_compiling),     cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_compiler_error), cmocka_unit_test(test_copy),       cmocka_unit_test(test_supports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
