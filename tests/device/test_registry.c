/* SPDX-License-Identifier: MIT */
/* Devices by name, the current device, registration, threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/error.h"
#include "core/memory.h"
#include "device/device.h"

static int begin(void **state)
{
    (void)state;
    unsetenv("TANSO_VIRTUAL_DEVICES");
    tn_clear_error();
    return tn_set_device(tn_cpu());
}

static tn_device virtual_device(int index)
{
    return (tn_device){TN_DEVICE_VIRTUAL, (short)index};
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(tn_device_name(tn_cpu()), "cpu");
    assert_string_equal(tn_device_name(tn_cuda(0)), "cuda:0");
    assert_string_equal(tn_device_name(tn_cuda(7)), "cuda:7");
    assert_string_equal(tn_device_name(tn_virtual(2)), "virtual:2");
    assert_true(tn_device_equal(tn_virtual(1), tn_device_parse("virtual:1", NULL)));
    assert_string_equal(tn_device_name(virtual_device(3)), "virtual:3");
    assert_string_equal(tn_device_name((tn_device){TN_DEVICE_NULL, 0}), "null");
    assert_string_equal(tn_device_name((tn_device){0}), "cpu"); /* the current one */
    static const tn_device odd[] = {{99, 0}, {-1, 0}, {TN_DEVICE_CUDA, -1}, {TN_DEVICE_CUDA, 99}};
    for (int i = 0; i < 4; i++) {
        assert_non_null(strstr(tn_device_name(odd[i]), "device"));
        assert_false(tn_device_available(odd[i], NULL));
        assert_null(tn__device_get(odd[i]));
        assert_int_equal(tn_error_code(), TN_ERR_DEVICE);
        tn_clear_error();
    }
    assert_false(tn_device_available(tn_cuda(1 << 20), NULL));
    assert_false(tn_device_available(tn_virtual(1 << 16), NULL));
    assert_false(tn_device_available(tn_cuda(1 << 16), NULL)); /* must not wrap around to cuda:0 */
}

static void parsing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        tn_device device;
    } good[] = {{"cpu", {TN_DEVICE_CPU, 0}},          {"cpu:0", {TN_DEVICE_CPU, 0}}, {"null", {TN_DEVICE_NULL, 0}},
                {"virtual", {TN_DEVICE_VIRTUAL, 0}}, {"virtual:3", {TN_DEVICE_VIRTUAL, 3}}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tn_status status = TN_ERR_INTERNAL;
        assert_true(tn_device_equal(tn_device_parse(good[i].text, &status), good[i].device));
        assert_int_equal(status, TN_OK);
    }
    assert_true(tn_device_equal(tn_device_parse("auto", NULL), tn_device_best()));
    assert_true(tn_ok());
    static const char *const bad[] = {"",
                                      "cp",
                                      "cpu:",
                                      "cpu:1",
                                      "cpu:0x",
                                      "virtual:4",
                                      "virtual:-1",
                                      "virtual: 1",
                                      "virtual:1 ",
                                      "CPU",
                                      "virtual:99999999999999999999",
                                      "cpu:65536",
                                      NULL};
    static const char absent[] = "0001010000110"; /* a good name of a device that is not there */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_status status = TN_OK;
        tn_clear_error();
        assert_true(tn_device_equal(tn_device_parse(bad[i], &status), (tn_device){0}));
        assert_int_equal(status, absent[i] == '1' ? TN_ERR_DEVICE : TN_ERR_NAME);
        assert_int_equal(tn_error_code(), status);
        tn_device_parse(bad[i], NULL);
    }
    tn_clear_error();
    tn_device_parse("cdua", NULL);
    assert_non_null(strstr(tn_error(), "did you mean 'cuda'?"));
    tn_clear_error();
    tn_device_parse("gpu:0", NULL);
    assert_non_null(strstr(tn_error(), "did you mean 'cuda'?"));
    tn_clear_error();
    tn_device_parse("virtual:9", NULL);
    assert_non_null(strstr(tn_error(), "there are only virtual:0 to virtual:3"));
    tn_clear_error();
    tn_device_parse("cpu:1", NULL);
    assert_non_null(strstr(tn_error(), "there is only cpu"));
}

static void counts(void **state)
{
    (void)state;
    assert_int_equal(tn_device_count(TN_DEVICE_CPU), 1);
    assert_int_equal(tn_device_count(TN_DEVICE_NULL), 1);
    assert_int_equal(tn_device_count(TN_DEVICE_DEFAULT), 1);
    assert_int_equal(tn_device_count((tn_device_kind)77), 0);
    static const struct {
        const char *text;
        int count;
    } rows[] = {{"", 4}, {"2", 2}, {"16", 16}, {"400", 16}, {"many", 4}, {"3x", 4}, {"0", 0}, {"-3", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("TANSO_VIRTUAL_DEVICES", rows[i].text, 1);
        assert_int_equal(tn_device_count(TN_DEVICE_VIRTUAL), rows[i].count);
    }
    const char *why = NULL;
    assert_false(tn_device_available(virtual_device(0), &why));
    assert_string_equal(why, "TANSO_VIRTUAL_DEVICES asks for none");
}

static void best_is_available(void **state)
{
    (void)state;
    const char *why = NULL;
    bool cuda = tn_device_available(tn_cuda(0), &why);
    assert_true(cuda || (why && *why));
    assert_true(tn_device_equal(tn_device_best(), cuda ? tn_cuda(0) : tn_cpu()));
    assert_true(tn_device_available(tn_device_best(), NULL));
}

static void *current_of_thread(void *unused)
{
    (void)unused;
    assert_true(tn_device_equal(tn_current_device(), tn_cpu()));
    assert_int_equal(tn_set_device(virtual_device(2)), TN_OK);
    return NULL;
}

static void current_device(void **state)
{
    (void)state;
    assert_int_equal(tn_set_device(virtual_device(1)), TN_OK);
    assert_true(tn_device_equal(tn_current_device(), virtual_device(1)));
    assert_ptr_equal(tn__device_current(), tn__device_get(virtual_device(1)));
    assert_ptr_equal(tn__device_get((tn_device){0}), tn__device_current());
    assert_string_equal(tn_device_name((tn_device){0}), "virtual:1");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, current_of_thread, NULL), 0);
    pthread_join(thread, NULL);
    assert_true(tn_device_equal(tn_current_device(), virtual_device(1)));
    assert_int_equal(tn_set_device(virtual_device(15)), TN_ERR_DEVICE);
    assert_true(tn_device_equal(tn_current_device(), virtual_device(1)));
}

static void device_of_a_block(void **state)
{
    (void)state;
    TN_ON_DEVICE(virtual_device(1)) {
        assert_true(tn_device_equal(tn_current_device(), virtual_device(1)));
        TN_ON_DEVICE(virtual_device(2)) {
            assert_true(tn_device_equal(tn_current_device(), virtual_device(2)));
            break;
        }
        assert_true(tn_device_equal(tn_current_device(), virtual_device(1)));
    }
    assert_true(tn_device_equal(tn_current_device(), tn_cpu()));
    assert_true(tn_ok());
    int runs = 0;
    TN_ON_DEVICE(virtual_device(14)) {
        assert_true(tn_device_equal(tn_current_device(), tn_cpu()));
        runs++;
    }
    assert_int_equal(runs, 1);
    assert_int_equal(tn_error_code(), TN_ERR_DEVICE);
}

static void opened_devices(void **state)
{
    (void)state;
    tn__device *cpu = tn__device_get(tn_cpu()), *first = tn__device_get(virtual_device(0));
    assert_non_null(cpu);
    assert_non_null(first);
    assert_ptr_equal(cpu, tn__device_get(tn_cpu()));
    assert_ptr_not_equal(cpu, first);
    assert_ptr_not_equal(first, tn__device_get(virtual_device(1)));
    assert_int_not_equal(cpu->number, first->number);
    assert_string_equal(first->name, "virtual:0");
    assert_true(tn_device_equal(first->id, virtual_device(0)));
}

/* The numbers of each device are its own. */
static void memory_of_each(void **state)
{
    (void)state;
    tn_memory_info cpu = tn_memory_stats(tn_cpu()), second = tn_memory_stats(virtual_device(1));
    tn__storage *storage = tn__storage_new(tn__device_get(virtual_device(0)), 1 << 20);
    assert_non_null(storage);
    assert_true(tn_memory_stats(virtual_device(0)).used >= 1 << 20);
    assert_int_equal(tn_memory_stats(tn_cpu()).used, cpu.used);
    assert_int_equal(tn_memory_stats(virtual_device(1)).used, second.used);
    assert_int_equal(tn_memory_limit(virtual_device(0), 2 << 20), TN_OK);
    assert_int_equal(tn_memory_stats(virtual_device(0)).limit, 2 << 20);
    assert_int_equal(tn_memory_stats(tn_cpu()).limit, cpu.limit);
    assert_null(tn__storage_new(tn__device_get(virtual_device(0)), 3 << 20));
    assert_int_equal(tn_memory_limit(virtual_device(0), 0), TN_OK);
    tn_clear_error();
    tn__storage_release(storage);
    tn_memory_reset_peak(virtual_device(0));
    assert_int_equal(tn_memory_stats(virtual_device(0)).peak, 0);
    assert_true(tn_memory_trim(virtual_device(0)) >= 1 << 20);
    assert_int_equal(tn_memory_stats(virtual_device(0)).cached, 0);

    assert_int_equal(tn_memory_limit(tn_cuda(9999), 1), TN_ERR_DEVICE);
    assert_int_equal(tn_memory_stats(tn_cuda(9999)).total, 0);
    assert_int_equal(tn_memory_trim(tn_cuda(9999)), 0);
    tn_memory_reset_peak(tn_cuda(9999));
}

static int one(const char **why)
{
    (void)why;
    return 1;
}

static tn_status open_nothing(int index, tn__device *device)
{
    (void)index, (void)device;
    return TN_OK;
}

static void registration(void **state)
{
    (void)state;
    tn_device_count(TN_DEVICE_CPU); /* the built-in ones are there */
    const tn__backend bad[] = {
        {.name = "second cpu", .kind = TN_DEVICE_CPU, .count = one, .open = open_nothing},
        {.name = "cpu", .kind = TN_DEVICE_DEFAULT, .count = one, .open = open_nothing}, /* a kind of its own */
        {.name = "Two words", .kind = TN_DEVICE_DEFAULT, .count = one, .open = open_nothing},
        {.name = "", .kind = TN_DEVICE_DEFAULT, .count = one, .open = open_nothing},
        {.name = "below", .kind = (tn_device_kind)-1, .count = one, .open = open_nothing},
        {.name = "beyond", .kind = (tn_device_kind)50, .count = one, .open = open_nothing},
        {.name = "no open", .kind = TN_DEVICE_CUDA, .count = one},
        {.name = "no count", .kind = TN_DEVICE_CUDA, .open = open_nothing},
        {.kind = TN_DEVICE_CUDA, .count = one, .open = open_nothing},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_clear_error();
        assert_int_equal(tn__backend_register(&bad[i]), TN_ERR_STATE);
        assert_false(tn_ok());
    }
}

static int two(const char **why)
{
    (void)why;
    return 2;
}

/* A kind with a name alone: it has a number of its own, by which it is found under its name everywhere. */
static void open_kinds(void **state)
{
    (void)state;
    static const tn__backend kind[] = {
        {.name = "first_1", .count = two, .open = open_nothing}, {.name = "second", .count = one, .open = open_nothing},
        {.name = "third", .count = one, .open = open_nothing}, {.name = "fourth", .count = one, .open = open_nothing}};
    tn_clear_error();
    tn_status status;
    tn_device_parse("first_1", &status);
    assert_int_equal(status, TN_ERR_NAME); /* no such plug-in */
    tn_clear_error();
    assert_int_equal(tn__backend_register(&kind[0]), TN_OK);
    assert_int_equal(tn__backend_register(&kind[1]), TN_OK);
    tn_device device = tn_device_parse("first_1:1", &status);
    assert_int_equal(status, TN_OK);
    assert_true(device.kind > TN_DEVICE_VIRTUAL && device.index == 1);
    assert_string_equal(tn_device_name(device), "first_1:1");
    assert_string_equal(tn_device_name(tn_device_parse("second", NULL)), "second:0");
    assert_int_not_equal(tn_device_parse("second", NULL).kind, device.kind);
    assert_int_equal(tn_device_count((tn_device_kind)device.kind), 2);
    assert_true(tn_ok());
    tn_device_parse("first_1:2", &status);
    assert_int_equal(status, TN_ERR_DEVICE);
    assert_non_null(strstr(tn_error(), "there are only first_1:0 to first_1:1"));
    tn_clear_error();
    assert_null(tn__device_get(device)); /* whose functions are not there */
    assert_non_null(strstr(tn_error(), "first_1:1"));
    tn_clear_error();
    assert_int_equal(tn__backend_register(&kind[1]), TN_ERR_STATE);
    tn_clear_error();
    for (int left = 2; tn__backend_register(&kind[left]) == TN_OK; left++) /* one or two, as one may be linked in */
        assert_true(left < 3);
    assert_non_null(strstr(tn_error(), "no room"));
    tn_clear_error();
}

/* Opening under failing allocations: an error each time, and then it works. */
static void opening_without_memory(void **state)
{
    (void)state;
    setenv("TANSO_VIRTUAL_DEVICES", "16", 1);
    tn__device_get(tn_cpu());
    for (int n = 0;; n++) {
        tn__fail_allocation_after(n);
        tn__device *device = tn__device_get(virtual_device(10));
        tn__fail_allocation_after(-1);
        if (device)
            break;
        assert_true(n < 10);
        assert_int_equal(tn_error_code(), TN_ERR_MEMORY);
        tn_clear_error();
    }
    assert_true(tn_ok());
    assert_non_null(tn__device_get(virtual_device(10)));
}

static void *open_all(void *out)
{
    for (int i = 11; i < 16; i++)
        ((tn__device **)out)[i] = tn__device_get(virtual_device(i));
    return NULL;
}

static void opening_in_threads(void **state)
{
    (void)state;
    setenv("TANSO_VIRTUAL_DEVICES", "16", 1);
    static tn__device *seen[8][16];
    pthread_t thread[8];
    for (int t = 0; t < 8; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, open_all, seen[t]), 0);
    for (int t = 0; t < 8; t++)
        pthread_join(thread[t], NULL);
    for (int i = 11; i < 16; i++) {
        assert_non_null(seen[0][i]);
        for (int t = 1; t < 8; t++)
            assert_ptr_equal(seen[t][i], seen[0][i]);
    }
}

static void threads(void **state)
{
    (void)state;
    int usual = tn_threads();
    assert_true(usual >= 1);
    tn_set_threads(3);
    assert_int_equal(tn_threads(), 3);
    tn_set_threads(0);
    assert_true(tn_threads() >= 1);
    tn_set_threads(1 << 30);
    assert_true(tn_threads() <= 4096);
    tn_set_threads(-5);
    assert_true(tn_threads() >= 1);
    tn_set_threads(usual);
}

#define ROW(test) cmocka_unit_test_setup(test, begin)
int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(names),          ROW(parsing),        ROW(counts),       ROW(best_is_available),
        ROW(current_device), ROW(device_of_a_block), ROW(opened_devices), ROW(memory_of_each),
        ROW(registration),   ROW(open_kinds), ROW(opening_without_memory), ROW(opening_in_threads), ROW(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
