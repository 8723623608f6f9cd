/* SPDX-License-Identifier: MIT */
/* On a GPU: what one newer than the compiler gets is run by this one; and a user's kernel that writes where it must
 * not: the first error names it and what else was under way, and stays, and the process goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "backends/cuda/runtime/cuda.h"
#include "backends/plugin.h"
#include "core/memory.h"
#include "device/launch.h"
#include "device/program.h"
#include "support/device.h"

static const char source[] =
    "struct k0_a { void *p[1]; long long n[1]; unsigned long long s[1]; };\n"
    "struct failure { unsigned long long words[5]; };\n"
    "extern \"C\" __global__ void k0(const __grid_constant__ k0_a a, const __grid_constant__ failure f)\n"
    "{ ((float *)a.p[0])[a.n[0] * threadIdx.x] = (float)a.s[0]; }\n";

/* Without `back`, nobody waits for it. */
static tn_status run_once(tn__device *device, void *memory, float *back, tn__executable **executable)
{
    static int64_t stride = 1;
    static int slot;
    static tn__operand operand = {.dtype = TN_FLOAT32, .ndim = 1, .dim = {4}, .stride = {1}};
    static tn__step step = {.kind = TN__STEP_KERNEL, .kernel = {.name = "k0", .launch = {.blocks = 1, .threads = 4}},
                            .operand_count = 1, .output_count = 1,
                            .operand = &operand, .param_count = 1, .param = &stride, .scalar_count = 1,
                            .scalar = &slot, .label = "add"};
    static tn__buffer buffer = {.kind = TN__BUFFER_INPUT};
    static tn_dtype dtype = TN_UINT64;
    static tn__program program = {.buffer_count = 1, .buffer = &buffer, .scalar_count = 1, .scalar_dtype = &dtype,
                                  .step_count = 1, .step = &step, .source = (char *)source};
    tn_status status = device->ops->load(device, &program, executable);
    if (status == TN_OK)
        status = device->ops->run(*executable, &memory, (uint64_t[]){42});
    if (status == TN_OK && back)
        status = device->ops->read(device, back, memory, 4 * sizeof *back);
    return status;
}

/* A user's kernel of one thread. */
static tn_status launch(tn__device *device, const char *text, const char *name, void *memory)
{
    tn__launch l = {.source = text, .name = name, .grid = {1, 1, 1}, .block = {1, 1, 1}, .count = 1};
    memcpy(&l.value[0], &memory, sizeof memory);
    return device->ops->launch(device, &l);
}

/* Told to be of a generation that the compiler does not know, the GPU gets PTX of its own, which its driver
 * compiles. */
static void test_newer(void **state)
{
    (void)state;
    tn__device *device = tn__device_get(tn_cuda(0));
    tn__cuda_device *cuda = tn__cuda_of(device);
    char *image = NULL;
    size_t length = 0;
    float back[4] = {0};
    int own = cuda->architecture;
    assert_int_equal(tn__cuda_compile(cuda->libraries, own + 1, source, &image, &length), TN_OK);
    bool code = length > 4 && memcmp(image, "\177ELF", 4) == 0;
    tn__free(image);
    if (code) /* there is such a generation */
        skip();
    void *memory = device->ops->allocate(device, sizeof back);
    assert_non_null(memory);
    cuda->architecture = own + 1;
    tn__executable *executable = NULL;
    tn_status status = run_once(device, memory, back, &executable);
    device->ops->unload(executable);
    cuda->architecture = own;
    device->ops->release(device, memory, sizeof back);
    assert_int_equal(status, TN_OK);
    for (int i = 0; i < 4; i++)
        assert_true(back[i] == 42);
}

static void test_device_fault(void **state)
{
    (void)state;
    tn__device *device = tn__device_get(tn_cuda(0));
    assert_non_null(device);
    float back[4] = {0};
    void *memory = device->ops->allocate(device, sizeof back);
    assert_non_null(memory);
    tn__executable *executable[2] = {NULL, NULL};
    assert_int_equal(launch(device, "extern \"C\" __global__ void tame(float *y) { *y = 1; }", "tame", memory), TN_OK);
    assert_int_equal(run_once(device, memory, back, &executable[0]), TN_OK);
    for (int i = 0; i < 4; i++)
        assert_true(back[i] == 42);
    assert_int_equal(launch(device, "extern \"C\" __global__ void stomp(float *y) { y[1ll << 45] = 1; }", "stomp",
                            memory), TN_OK);
    tn_status status = run_once(device, memory, NULL, &executable[1]); /* may find the fault already */
    if (status == TN_OK)
        status = device->ops->read(device, back, memory, sizeof back);
    assert_int_equal(status, TN_ERR_DEVICE);
    assert_non_null(strstr(tn_error(), "; the work under way was kernel stomp"));
    assert_non_null(strstr(tn_error(), "CUDA_ERROR_"));
    assert_null(strstr(tn_error(), "tame"));
    char first[2000];
    snprintf(first, sizeof first, "%s", strstr(tn_error(), "cuda:0 is lost"));
    tn_clear_error();
    assert_int_equal(device->ops->read(device, back, memory, sizeof back), TN_ERR_DEVICE);
    assert_non_null(strstr(tn_error(), first));
    tn_clear_error();
    for (int i = 0; i < 2; i++)
        device->ops->unload(executable[i]);
    assert_null(device->ops->allocate(device, 16));
    assert_false(tn_ok());
    tn_clear_error();
    device->ops->release(device, memory, sizeof back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_newer), cmocka_unit_test(test_device_fault)};
    if (test_no_gpu())
        return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
