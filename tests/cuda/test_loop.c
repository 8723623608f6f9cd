/* SPDX-License-Identifier: MIT */
/*
 * What a training loop asks of the driver once it is under way, on a fake one: a launch of a graph a step, or of
 * several steps in one, scalars that have changed put in its place, and nothing else; no copy, no wait, no allocation,
 * no new graph.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/fake.h"
#include "support/device.h"

enum { SAMPLES = 230, FEATURES = 12, MANY_FEATURES = 3000, BATCH = 10, STEPS = SAMPLES / BATCH, EPOCHS = 50 };

static tn_dataset *samples(int features)
{
    static float x[SAMPLES * MANY_FEATURES];
    static int64_t t[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        t[i] = i % 4;
    tn_dataset *dataset = NULL;
    TN_SCOPE dataset = tn_dataset_arrays(tn_from_host(x, TN_SHAPE(SAMPLES, features), TN_FLOAT32),
                                         tn_from_int64s(t, SAMPLES));
    return dataset;
}

typedef struct training {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *batches;
    tn_meter *mean;
} training;

static void epoch(training *t)
{
    for (tn_batch b; tn_loader_next(t->batches, &b);)
        TN_SCOPE {
            tn__cuda_of(tn__device_get(tn_cuda(0)))->held.last = UINT64_MAX / 2; /* the step before was a moment ago */
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(t->net, b.x), b.t);
            assert_int_equal(tn_backward(loss), TN_OK);
            assert_int_equal(tn_step(t->optimizer), TN_OK);
            tn_meter_add(t->mean, loss, (double)b.size);
        }
}

/* patches: nodes with scalars that change in a step; launches: of graphs in an epoch, at most. */
static void steady(tn_optimizer *(*make)(tn_layer *net), int patches, int launches)
{
    training t = {.net = tn_sequential(tn_linear(6), tn_tanh_layer(), tn_linear(4)), .mean = tn_meter_new(tn_cuda(0))};
    t.optimizer = make(t.net);
    t.batches = tn_loader_new(samples(FEATURES), .batch = BATCH, .shuffle = true, .device = tn_cuda(0));
    assert_int_equal(tn_layer_to(t.net, tn_cuda(0)), TN_OK);
    for (int e = 0; e < EPOCHS; e++) {
        tn__cuda_device *cuda = tn__cuda_of(tn__device_get(tn_cuda(0)));
        unsigned long long waits = cuda->wait_count;
        fake_counts before = fake.count;
        epoch(&t);
        if (e >= EPOCHS / 2) {
            assert_true(fake.count.graph_launches - before.graph_launches <= launches);
            assert_int_equal(fake.count.launches, before.launches);
            assert_int_equal(fake.count.graphs, before.graphs);
            assert_int_equal(fake.count.allocations, before.allocations);
            /* the next order, the mean's zero */
            assert_int_equal(fake.count.host_to_device - before.host_to_device, 2);
            assert_int_equal(fake.count.device_to_host, before.device_to_host);
            assert_int_equal(cuda->wait_count, waits);
            assert_true(fake.count.patches - before.patches <= patches * STEPS);
        }
        tn_meter_take(t.mean);
    }
    /* After a run that failed nobody knows whether the place of the next minibatch has been computed: it is copied. */
    tn__device *device = tn__device_get(tn_cuda(0));
    int copies = fake.count.host_to_device;
    tn_batch b;
    atomic_fetch_add(&device->failures, 1);
    assert_true(tn_loader_next(t.batches, &b));
    assert_int_equal(fake.count.host_to_device, copies + 1);
    assert_string_equal(tn_error(), "");
    tn_meter_free(t.mean);
    tn_loader_free(t.batches);
    tn_optimizer_free(t.optimizer);
    tn_layer_free(t.net);
}

static tn_optimizer *sgd(tn_layer *net) { return tn_sgd(net, .lr = 0.1); }
static tn_optimizer *adam(tn_layer *net) { return tn_adam(net); }

/* Where a minibatch lies is told by a value on the device. */
static void test_sgd(void **state)
{
    (void)state;
    steady(sgd, 0, 7); /* 4, 4 and what is held back when the next order is written: by powers of two */
}

/* The corrections of the moments, in the kernels that updates are in. */
static void test_adam(void **state)
{
    (void)state;
    steady(adam, 2, STEPS);
}

/* A dataset that is too large for the device: each minibatch is copied to where another one was, and nothing else is
 * done, as the loader has looked at the labels. */
static void test_streamed(void **state)
{
    (void)state;
    assert_int_equal(tn_memory_limit(tn_cuda(0), 8 << 20), TN_OK);
    training t = {.net = tn_sequential(tn_linear(6), tn_tanh_layer(), tn_linear(4)), .mean = tn_meter_new(tn_cuda(0)),
                  .batches = tn_loader_new(samples(MANY_FEATURES), .batch = BATCH, .shuffle = true,
                                           .device = tn_cuda(0))};
    t.optimizer = sgd(t.net);
    assert_int_equal(tn_layer_to(t.net, tn_cuda(0)), TN_OK);
    for (int e = 0; e < EPOCHS; e++) {
        tn__cuda_device *cuda = tn__cuda_of(tn__device_get(tn_cuda(0)));
        unsigned long long waits = cuda->wait_count;
        fake_counts before = fake.count;
        epoch(&t);
        tn_meter_take(t.mean);
        if (e < EPOCHS / 2)
            continue;
        assert_int_equal(fake.count.graph_launches - before.graph_launches, STEPS + 1); /* the mean's, too */
        assert_int_equal(fake.count.host_to_device - before.host_to_device, 2 * STEPS + 1);
        assert_int_equal(fake.count.graphs, before.graphs);
        assert_int_equal(fake.count.patches, before.patches);
        assert_int_equal(fake.count.allocations, before.allocations);
        assert_int_equal(cuda->wait_count, waits + 1); /* for the mean */
    }
    tn_meter_free(t.mean);
    tn_loader_free(t.batches);
    tn_optimizer_free(t.optimizer);
    tn_layer_free(t.net);
    assert_int_equal(tn_memory_limit(tn_cuda(0), 0), TN_OK);
}

/* A program that keeps the losses of its last steps. patches: nodes in an epoch, at most. */
static void kept(int count, int patches, int launches)
{
    enum { MOST = 100 };
    training t = {.net = tn_sequential(tn_linear(6), tn_tanh_layer(), tn_linear(4)),
                  .batches = tn_loader_new(samples(FEATURES), .batch = BATCH, .shuffle = true, .device = tn_cuda(0))};
    t.optimizer = sgd(t.net);
    assert_int_equal(tn_layer_to(t.net, tn_cuda(0)), TN_OK);
    tn_array *losses[MOST] = {NULL};
    for (int e = 0, step = 0; e < EPOCHS; e++) {
        fake_counts before = fake.count;
        for (tn_batch b; tn_loader_next(t.batches, &b); step++)
            TN_SCOPE {
                tn__cuda_of(tn__device_get(tn_cuda(0)))->held.last = UINT64_MAX / 2;
                tn_array *loss = tn_softmax_cross_entropy(tn_forward(t.net, b.x), b.t);
                assert_int_equal(tn_backward(loss), TN_OK);
                assert_int_equal(tn_step(t.optimizer), TN_OK);
                tn_free(losses[step % count]);
                losses[step % count] = tn_keep(loss);
            }
        if (e < EPOCHS / 2)
            continue;
        assert_true(fake.count.patches - before.patches <= patches);
        assert_true(fake.count.graph_launches - before.graph_launches <= launches);
        assert_int_equal(fake.count.graphs, before.graphs);
        assert_int_equal(fake.count.allocations, before.allocations);
    }
    for (int i = 0; i < count; i++)
        tn_free(losses[i]);
    tn_loader_free(t.batches);
    tn_optimizer_free(t.optimizer);
    tn_layer_free(t.net);
}

/* Its losses lie where earlier ones were, in a few places by turns, each of which has a graph; those of a program that
 * keeps them for long elsewhere each time, which the kernel that writes them is told of, and few others. */
static void test_kept(void **state)
{
    (void)state;
    kept(1, 0, 7);
    kept(3, 0, 7);
    kept(100, 2 * STEPS, STEPS);
}

static int setup(void **state)
{
    (void)state;
    if (fake_open() == NULL)
        return -1;
    fake.words = fake.scalars = 0;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sgd), cmocka_unit_test(test_adam),
                                       cmocka_unit_test(test_streamed), cmocka_unit_test(test_kept)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, setup, NULL);
}
