/* SPDX-License-Identifier: MIT */
/*
 * The kernel by which two ranks of one host add what they have, each writing into the other one's memory: both sides on
 * one GPU, one after the other. That goes because a side that is called off still gives what it has. Where there is no
 * GPU this program starts itself on the one of tests/emulator.
 */
#include "backends/nccl/peers.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <tanso.h>

#include "array/node.h"
#include "device/registry.h"
#include "support/device.h"
#include "support/random.h"

static tn__device *device;
static tn__peers side[2];

static bool enter(void *given) { return device == given && device->ops->streams->stream_enter(device) == TN_OK; }

static void *kernel(void *given, const char *text, const char *name)
{
    return device->ops->streams->stream_kernel(given, text, name);
}

/* A driver may refuse to open a process's own memory for it once more. */
static void open_sides(void)
{
    tn__link_name name[2];
    const tn__link_place place = {.enter = enter, .kernel = kernel, .device = device};
    for (int i = 0; i < 2; i++)
        assert_true(tn__peers_show(&side[i], &place, &name[i]));
    for (int i = 0; i < 2; i++) {
        if (!tn__peers_reach(&side[i], &name[1 - i]))
            side[i].other = side[1 - i].own;
        tn__peers_agree(&side[i], true);
    }
}

static void close_sides(void)
{
    for (int i = 0; i < 2; i++) {
        if (side[i].other == side[1 - i].own)
            side[i].other = 0;
        assert_true(tn__peers_end(&side[i]));
        assert_true(side[i].own == 0 && side[i].off == NULL);
    }
}

/* ---- a sum ---- */

static float *elements(tn_array *x)
{
    const tn__node *node = tn__array_node(x);
    return (float *)node->storage->memory + node->offset;
}

static tn_array *on_device(const float *values, int64_t count)
{
    tn_array *x = tn_to(tn_from_host(values, TN_SHAPE(count), TN_FLOAT32), device->id);
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

static void run_side(int i, tn_array *from, tn_array *to, int64_t begin, int64_t count)
{
    tn__why why = {""};
    const tn__transfer sum = {.kind = TN__ALL_REDUCE, .op = TN_COMM_SUM, .dtype = TN_FLOAT32, .itemsize = 4,
                              .count = count, .from = elements(from) + begin, .to = elements(to) + begin};
    assert_true(tn__peers_take(&side[i], &sum));
    void *stream = device->ops->streams->stream_take(device);
    assert_non_null(stream);
    if (!tn__peers_sum(&side[i], &sum, stream, &why))
        fail_msg("%s", why.text);
    device->ops->streams->stream_give(device);
    assert_int_equal(tn_synchronize(device->id), TN_OK);
}

static void assert_is(tn_array *x, const float *expected, int64_t count)
{
    float *got = malloc(sizeof *got * (size_t)count);
    assert_int_equal(tn_to_host(x, got, sizeof *got * (size_t)count), TN_OK);
    assert_memory_equal(got, expected, sizeof *got * (size_t)count);
    free(got);
}

/* Of elements begin.. of vectors of count + 2, whose other elements stay. */
static void check_sum(int64_t count, int64_t begin, bool in_place)
{
    int64_t all = count + 2;
    test_random r = {test_seed_new()};
    float *values = malloc(sizeof *values * 4 * (size_t)all), *x[2] = {values, values + all}, *sum = values + 2 * all,
          *zero = values + 3 * all;
    for (int64_t k = 0; k < 2 * all; k++)
        values[k] = (float)((double)(test_random_bits(&r) % 2000001) / 1000 - 1000);
    for (int64_t k = 0; k < all; k++) {
        zero[k] = 0;
        sum[k] = k >= begin && k < begin + count ? x[0][k] + x[1][k] : in_place ? x[1][k] : 0;
    }
    TN_SCOPE {
        tn_array *from[2] = {on_device(x[0], all), on_device(x[1], all)};
        tn_array *to[2] = {on_device(zero, all), in_place ? from[1] : on_device(zero, all)};
        tn__peers_call_off(&side[0]);
        run_side(0, from[0], to[0], begin, count);
        assert_is(to[0], zero, all);
        *side[0].off = 0;
        side[0].turn--;
        run_side(1, from[1], to[1], begin, count);
        assert_is(to[1], sum, all);
        run_side(0, from[0], to[0], begin, count);
        for (int64_t k = 0; in_place && k < all; k++)
            sum[k] = k >= begin && k < begin + count ? sum[k] : 0;
        assert_is(to[0], sum, all);
    }
    free(values);
}

static void test_sums(void **state)
{
    (void)state;
    /* parts of a block, a few blocks, and all, whose threads have one part or several */
    static const int64_t counts[] = {1, 3, 4, 5, 2047, 2048, 2053, 70001, 4 * BLOCKS * THREADS, 700003};
    open_sides();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int64_t begin = 0; begin < 2; begin++)
            check_sum(counts[i], begin, i % 2 == (size_t)begin);
    close_sides();
}

/* Small sums leave most blocks' flags as they are, which then are too old however many these were. */
static void test_old_flags(void **state)
{
    (void)state;
    static const unsigned long long sums[] = {1, (1ull << 31) - 1, 1ull << 31, (1ull << 32) - 2, 1ull << 40};
    open_sides();
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        check_sum(70001, 0, false);
        side[0].turn += sums[i], side[1].turn += sums[i];
        check_sum(1, 0, false);
    }
    check_sum(70001, 0, false);
    close_sides();
}

static void test_what_is_taken(void **state)
{
    (void)state;
    const tn__peers peers = {.used = true}, unused = {.used = false};
    const tn__transfer fits = {.kind = TN__ALL_REDUCE, .op = TN_COMM_SUM, .dtype = TN_FLOAT32, .count = HALF / 4};
    tn__transfer larger = fits, other = fits, product = fits, gather = fits, aside = fits;
    larger.count++;
    other.dtype = TN_INT32;
    product.op = TN_COMM_PROD;
    gather.kind = TN__ALL_GATHER;
    aside.aside = true;
    assert_true(tn__peers_take(&peers, &fits));
    assert_false(tn__peers_take(&unused, &fits));
    assert_false(tn__peers_take(&peers, &larger));
    assert_false(tn__peers_take(&peers, &other));
    assert_false(tn__peers_take(&peers, &product));
    assert_false(tn__peers_take(&peers, &gather));
    assert_false(tn__peers_take(&peers, &aside));
}

/* On the emulator's GPU. */
static int start_again(void)
{
    const char *driver = getenv("TANSO_TEST_DRIVER"), *kernels = getenv("TANSO_TEST_KERNELS");
    if (!driver || !kernels || system("command -v g++ >/dev/null && command -v python3 >/dev/null") != 0) {
        print_message("skipped: no NCCL plug-in, or no g++ or python3, by which kernels are emulated\n");
        return 77;
    }
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    setenv("LD_LIBRARY_PATH", driver, 1);
    setenv("TANSO_EMULATOR_FOLDER", kernels, 1);
    setenv("TANSO_CACHE_DIR", kernels, 1);
    setenv("TANSO_TEST_DEVICE", "cuda:0", 1);
    execl("/proc/self/exe", "test_comm", "peers", (char *)NULL);
    return 1;
}

int main(void)
{
    if (test_device().kind != TN_DEVICE_CUDA)
        return start_again();
    device = tn__device_get(test_device());
    assert_non_null(device);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_taken), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_old_flags)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
