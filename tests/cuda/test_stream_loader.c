/* SPDX-License-Identifier: MIT */
/*
 * Minibatches of a dataset that does not lie on the device, on a fake driver that does nothing before it must: they are
 * copied on a stream of the loader's own, beside the steps, and each step gets its own one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/stand_in.h"
#include "support/device.h"
#include "support/random.h"

enum { ROWS = 40000, COLUMNS = 20, EPOCHS = 2, MOST = 64 };

static tn__device *device;
static tn__cuda_device *cuda;
static test_random common;

static unsigned roll(unsigned sides) { return (unsigned)(test_random_bits(&common) % sides); }

static tn_loader *loader_of(int64_t batch, bool shuffle)
{
    tn_loader *loader = NULL;
    TN_SCOPE
        TN_ON_DEVICE (tn_cpu()) {
            tn_array *x = tn_arange(0, (double)ROWS * COLUMNS, 1, .dtype = TN_FLOAT32);
            tn_dataset *data = tn_dataset_arrays(tn_reshape(x, TN_SHAPE(ROWS, COLUMNS)), tn_arange(0, ROWS, 1));
            loader = tn_loader_new(data, .batch = batch, .shuffle = shuffle, .seed = 5, .device = tn_cuda(0));
        }
    assert_int_equal(tn_loader_status(loader), TN_OK);
    return loader;
}

/* What the steps have computed, as bits; how often a step was under way still when the next minibatch had been
 * copied. */
static uint64_t train(bool shuffle, int *beside)
{
    float sums[MOST] = {0};
    int steps = 0;
    uint64_t hash = 0;
    tn_loader *loader = loader_of(4000, shuffle);
    TN_SCOPE {
        tn_array *total = tn_from_host(sums, TN_SHAPE(COLUMNS), TN_FLOAT32);
        for (int e = 0; e < EPOCHS; e++) {
            tn_batch b;
            while (tn_loader_next(loader, &b))
                TN_SCOPE {
                    if (beside && device->streams) {
                        assert_int_equal(tn__cuda_finish_stream(cuda, __builtin_ctz(device->streams)), CUDA_SUCCESS);
                        *beside += fake_waiting(cuda->stream) > 0;
                    }
                    tn_add_assign(total,
                                  tn_sum(tn_add(b.x, tn_expand_dims(tn_cast(b.t, TN_FLOAT32), 1)), .axis = TN_AXES(0)));
                    assert_int_equal(tn_eval(total), TN_OK);
                    steps++;
                    if (!beside)
                        fake_flush();
                }
        }
        assert_int_equal(steps, EPOCHS * ROWS / 4000);
        assert_int_equal(tn_to_host(total, sums, sizeof sums), TN_OK);
        hash = stand_in_hash(0, sums, sizeof sums);
    }
    tn_loader_free(loader);
    assert_int_equal(device->streams, 0);
    return hash;
}

static void test_minibatches(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        int beside = 0;
        bool shuffle = i % 2;
        fake.lazy = false;
        fake.dice = NULL;
        uint64_t expected = train(shuffle, NULL);
        fake.lazy = true;
        fake.dice = i < 4 ? NULL : roll;
        assert_true(train(shuffle, &beside) == expected);
        if (fake.dice == NULL)
            assert_true(beside >= EPOCHS * ROWS / 4000 - 4);
    }
}

/* Small minibatches are not worth it, and without a stream left copies go where everything else goes. */
static void test_without(void **state)
{
    (void)state;
    tn_stream *stream[TN__STREAMS];
    int count = 0;
    fake.lazy = false;
    for (int many = 0; many < 2; many++) {
        tn_loader *loader = loader_of(many ? 4000 : 1000, true);
        tn_batch b;
        while (many && count < TN__STREAMS - 1)
            stream[count++] = tn_stream_new(tn_cuda(0));
        int copies = fake.count.host_to_device;
        assert_true(tn_loader_next(loader, &b));
        assert_true(tn_ok());
        assert_true(fake.count.host_to_device > copies);
        assert_int_equal(__builtin_popcount(device->streams), count);
        tn_loader_free(loader);
    }
    while (count > 0)
        tn_stream_free(stream[--count]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_minibatches), cmocka_unit_test(test_without)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    common = test_random_new();
    device = stand_in_use();
    if (device == NULL || tn_memory_limit(tn_cuda(0), (size_t)12 << 20) != TN_OK) /* a quarter of it is too little */
        return 1;
    cuda = tn__cuda_of(device);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
