/* SPDX-License-Identifier: MIT */
/* The two backends without hardware of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device/program.h"

static tn__device *opened(tn_device_kind kind, int index)
{
    tn__device *device = tn__device_get((tn_device){(short)kind, (short)index});
    assert_non_null(device);
    return device;
}

static void null_has_shapes_only(void **state)
{
    (void)state;
    tn__device *device = opened(TN_DEVICE_NULL, 0);
    assert_true(device->capabilities.shapes_only);
    assert_false(device->capabilities.host_memory);
    size_t huge = (size_t)1 << 50; /* more than any machine has */
    tn__storage *a = tn__storage_new(device, huge), *b = tn__storage_new(device, huge), *c = tn__storage_new(device, 4);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_true(tn_memory_stats(device->id).used >= 2 * huge);
    assert_true((uintptr_t)b->memory >= (uintptr_t)a->memory + huge ||
                (uintptr_t)a->memory >= (uintptr_t)b->memory + huge);

    char host[4] = "abc";
    assert_int_equal(device->ops->write(device, c->memory, host, 4), TN_OK);
    assert_int_equal(device->ops->copy(device, c->memory, a->memory, 4), TN_OK);
    assert_int_equal(device->ops->read(device, host, c->memory, 4), TN_OK);
    assert_memory_equal(host, "\0\0\0\0", 4);

    tn__program program = {0};
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &program, &executable), TN_OK);
    assert_int_equal(device->ops->run(executable, NULL, NULL), TN_OK);
    device->ops->unload(executable);
    tn__storage_release(a);
    tn__storage_release(b);
    tn__storage_release(c);
    assert_int_equal(tn_memory_stats(device->id).used, 0);
    tn_memory_trim(device->id);
    assert_int_equal(tn_memory_stats(device->id).cached, 0);
}

static void virtual_devices_hold_data(void **state)
{
    (void)state;
    tn__device *device = opened(TN_DEVICE_VIRTUAL, 1), *cpu = opened(TN_DEVICE_CPU, 0);
    assert_int_equal(device->capabilities.target, cpu->capabilities.target);
    tn__storage *a = tn__storage_new(device, 100), *b = tn__storage_new(device, 100);
    char in[100], out[100] = {0};
    for (int i = 0; i < 100; i++)
        in[i] = (char)(i * 7);
    assert_int_equal(device->ops->write(device, a->memory, in, 100), TN_OK);
    assert_int_equal(device->ops->copy(device, b->memory, a->memory, 100), TN_OK);
    if (device->ops->synchronize)
        assert_int_equal(device->ops->synchronize(device), TN_OK);
    assert_int_equal(device->ops->read(device, out, b->memory, 100), TN_OK);
    assert_memory_equal(in, out, 100);
    tn__storage_release(a);
    tn__storage_release(b);
}

static void virtual_devices_run_programs(void **state)
{
    (void)state;
    tn__device *device = opened(TN_DEVICE_VIRTUAL, 2);
    tn__program program = {.source = ""};
    tn__executable *executable = NULL;
    assert_int_equal(device->ops->load(device, &program, &executable), TN_OK);
    assert_int_equal(device->ops->run(executable, NULL, NULL), TN_OK);
    device->ops->unload(executable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_has_shapes_only),
        cmocka_unit_test(virtual_devices_hold_data),
        cmocka_unit_test(virtual_devices_run_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
