/* SPDX-License-Identifier: MIT */
/* Loaders: every sample once an epoch, orders that depend on seed and epoch alone, arrays that may be kept. */
#include "data/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <tanso/kernel.h>
#include <tanso/nn.h>
#include "array/node.h"
#include "core/memory.h"
#include "data/batches.h"
#include "data/resident.h"
#include "engine/engine.h"

/* Stands before the C library's, so that a test can refuse threads. */
static bool refuse_threads;
static int threads_made;
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    if (refuse_threads)
        return EAGAIN;
    threads_made++;
    return real(thread, attributes, run, user);
}

/* Sample i has x = (i, -i, i / 2) and t = i. */
static tn_dataset *numbered(int64_t count)
{
    float *x = malloc((size_t)count * 3 * sizeof *x + 1);
    int64_t *t = malloc((size_t)count * sizeof *t + 1);
    for (int64_t i = 0; i < count; i++) {
        x[3 * i] = (float)i;
        x[3 * i + 1] = -(float)i;
        x[3 * i + 2] = (float)i / 2;
        t[i] = i;
    }
    tn_dataset *dataset = NULL;
    TN_SCOPE dataset = tn_dataset_arrays(tn_from_host(x, TN_SHAPE(count, 3), TN_FLOAT32),
                                         tn_from_int64s(t, count));
    free(x);
    free(t);
    return dataset;
}

/* Runs one epoch; the samples' numbers go to order[]; gives how many there were. Checks that x and t belong
 * together. */
static int64_t epoch_order(tn_loader *loader, int64_t batch, int64_t *order)
{
    int64_t total = 0, batches = 0;
    for (tn_batch b; tn_loader_next(loader, &b); batches++) {
        assert_int_equal(tn_dim(b.x, 0), b.size);
        assert_int_equal(tn_dim(b.x, 1), 3);
        assert_int_equal(tn_dim(b.t, 0), b.size);
        assert_true(b.size == batch || (b.size < batch && batches == tn_loader_length(loader) - 1));
        const float *x = test_data(b.x);
        const int64_t *t = test_data(b.t);
        for (int64_t i = 0; i < b.size; i++) {
            assert_true(x[3 * i] == (float)t[i] && x[3 * i + 1] == -(float)t[i] && x[3 * i + 2] == (float)t[i] / 2);
            order[total++] = t[i];
        }
    }
    assert_string_equal(tn_error(), "");
    assert_int_equal(batches, tn_loader_length(loader));
    return total;
}

static void assert_is_permutation(const int64_t *order, int64_t count)
{
    bool *seen = calloc((size_t)count + 1, 1);
    for (int64_t i = 0; i < count; i++) {
        assert_in_range(order[i], 0, count - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    free(seen);
}

static void every_sample_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 31, 32, 33, 100, 257}, batches[] = {1, 2, 32, 100, 1000};
    int64_t order[257];
    for (int c = 0; c < 8; c++)
        for (int b = 0; b < 5; b++)
            for (int mode = 0; mode < 4; mode++) {
                bool shuffle = mode < 2;
                tn_loader *loader = tn_loader_new(numbered(counts[c]), .batch = batches[b], .shuffle = shuffle,
                                                  .no_prefetch = mode & 1, .seed = 5);
                int64_t length = (counts[c] + batches[b] - 1) / batches[b];
                assert_int_equal(tn_loader_length(loader), length);
                for (int64_t epoch = 0; epoch < 3; epoch++) {
                    assert_int_equal(tn_loader_epoch(loader), epoch);
                    assert_int_equal(epoch_order(loader, batches[b], order), counts[c]);
                    assert_is_permutation(order, counts[c]);
                    for (int64_t i = 0; i < counts[c] && !shuffle; i++)
                        assert_int_equal(order[i], i);
                }
                tn_loader_free(loader);
            }
}

static void drop_last(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 10, 19, 20, 21};
    int64_t order[21];
    for (int c = 0; c < 5; c++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            tn_loader *loader = tn_loader_new(numbered(counts[c]), .batch = 10, .shuffle = shuffle, .drop_last = true);
            assert_int_equal(tn_loader_length(loader), counts[c] / 10);
            assert_int_equal(epoch_order(loader, 10, order), counts[c] / 10 * 10);
            assert_int_equal(epoch_order(loader, 10, order), counts[c] / 10 * 10);
            tn_loader_free(loader);
        }
    tn_loader *loader = tn_loader_new(numbered(9), .batch = 10, .drop_last = true); /* nothing would be left */
    tn_batch batch;
    assert_int_equal(tn_loader_status(loader), TN_ERR_VALUE);
    assert_false(tn_loader_next(loader, &batch));
    assert_failed(TN_ERR_VALUE, "9 samples make no minibatch of 10");
    tn_loader_free(loader);
}

/* Moved in the midst of an epoch, again and again, it gives the minibatches that it would have given, on its device. */
static void moved(void **state)
{
    (void)state;
    enum { COUNT = 23, BATCH = 5 };
    const tn_device devices[] = {tn_cpu(), tn_virtual(0), tn_virtual(1)};
    test_random random = test_random_new();
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        tn_loader *still = tn_loader_new(numbered(COUNT), .batch = BATCH, .shuffle = shuffle, .device = tn_cpu());
        tn_loader *moves = tn_loader_new(numbered(COUNT), .batch = BATCH, .shuffle = shuffle, .device = tn_cpu());
        for (int epoch = 0; epoch < 4; epoch++) {
            tn_batch a, b;
            tn_device device = tn_loader_device(moves);
            while (tn_loader_next(still, &a)) {
                assert_true(tn_loader_next(moves, &b));
                assert_int_equal(a.size, b.size);
                assert_true(tn_device_equal(tn_device_of(b.x), device) && tn_device_equal(tn_device_of(b.t), device));
                TN_SCOPE {
                    assert_true(tn_item(tn_sum(tn_not_equal(tn_to(b.x, tn_cpu()), a.x))) == 0);
                    assert_true(tn_item(tn_sum(tn_not_equal(tn_to(b.t, tn_cpu()), a.t))) == 0);
                }
                device = devices[test_random_int(&random, 0, 2)];
                assert_int_equal(tn_loader_to(moves, device), TN_OK);
            }
            assert_false(tn_loader_next(moves, &b));
        }
        tn_device last = tn_loader_device(moves);
        assert_int_equal(tn_loader_to(moves, tn_virtual(30000)), TN_ERR_DEVICE);
        tn_clear_error();
        assert_true(tn_device_equal(tn_loader_device(moves), last));
        tn_batch batch;
        assert_true(tn_loader_next(moves, &batch));
        tn_loader_free(still);
        tn_loader_free(moves);
    }
    assert_int_equal(tn_loader_to(NULL, tn_cpu()), TN_ERR_VALUE);
    tn_clear_error();
}

static void orders_depend_on_seed_and_epoch_alone(void **state)
{
    (void)state;
    enum { COUNT = 100, EPOCHS = 4 };
    int64_t reference[EPOCHS][COUNT], order[COUNT];
    tn_loader *loader = tn_loader_new(numbered(COUNT), .batch = 7, .shuffle = true, .seed = 11);
    for (int e = 0; e < EPOCHS; e++)
        epoch_order(loader, 7, reference[e]);
    for (int e = 1; e < EPOCHS; e++)
        assert_memory_not_equal(reference[e], reference[e - 1], sizeof order);
    tn_loader_free(loader);
    /* another batch size, no thread: the same orders */
    loader = tn_loader_new(numbered(COUNT), .batch = 100, .shuffle = true, .seed = 11, .no_prefetch = true);
    for (int e = 0; e < EPOCHS; e++) {
        epoch_order(loader, 100, order);
        assert_memory_equal(order, reference[e], sizeof order);
    }
    tn_loader_free(loader);
    /* restarted at an epoch, from the start or the middle of another, with or without a thread */
    for (int no_prefetch = 0; no_prefetch < 2; no_prefetch++)
        for (int before = 0; before < 20; before++) {
            loader =
                tn_loader_new(numbered(COUNT), .batch = 7, .shuffle = true, .seed = 11, .no_prefetch = no_prefetch);
            tn_batch b;
            for (int i = 0; i < before; i++)
                tn_loader_next(loader, &b);
            assert_int_equal(tn_loader_set_epoch(loader, 2), TN_OK);
            assert_int_equal(tn_loader_epoch(loader), 2);
            epoch_order(loader, 7, order);
            assert_memory_equal(order, reference[2], sizeof order);
            assert_int_equal(tn_loader_epoch(loader), 3);
            epoch_order(loader, 7, order);
            assert_memory_equal(order, reference[3], sizeof order);
            tn_loader_free(loader);
        }
    loader = tn_loader_new(numbered(COUNT), .batch = 7, .shuffle = true, .seed = 12);
    epoch_order(loader, 7, order);
    assert_memory_not_equal(order, reference[0], sizeof order);
    assert_int_equal(tn_loader_set_epoch(loader, -1), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "got -1");
    tn_loader_free(loader);
}

/* Arrays made of a batch hold its values for as long as they live, though the batch's own move on. */
static void kept_batches(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    for (int mode = 0; mode < 3; mode++)
        TN_SCOPE {
            tn_array *kept[COUNT / 5], *sums[COUNT / 5], *handle = NULL;
            int64_t copies[COUNT], n = 0;
            tn_loader *loader =
                tn_loader_new(numbered(COUNT), .batch = 5, .shuffle = mode < 2, .no_prefetch = mode == 1);
            for (tn_batch b; tn_loader_next(loader, &b); n++) {
                assert_true(!handle || handle == b.t); /* the same handle every time */
                handle = b.t;
                kept[n] = tn_reshape(b.t, TN_SHAPE(5, 1)); /* a view */
                sums[n] = tn_add(b.x, tn_weak_float(1));   /* pending */
                memcpy(copies + 5 * n, test_data(b.t), 5 * sizeof(int64_t));
            }
            assert_int_equal(n, COUNT / 5);
            epoch_order(loader, 5, (int64_t[COUNT]){0});
            tn_loader_free(loader);
            for (int64_t i = 0; i < n; i++) {
                assert_memory_equal(test_data(kept[i]), copies + 5 * i, 5 * sizeof(int64_t));
                const float *sum = test_data(sums[i]);
                for (int j = 0; j < 5; j++)
                    assert_true(sum[3 * j] == (float)copies[5 * i + j] + 1);
            }
        }
}

/* Changing a batch in place must not change the dataset. */
static void batches_in_place(void **state)
{
    (void)state;
    tn_dataset *dataset = numbered(20);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        tn_loader *loader = tn_loader_new(dataset, .batch = 6, .shuffle = shuffle, .keep_dataset = true);
        for (tn_batch b; tn_loader_next(loader, &b);)
            TN_SCOPE {
                assert_int_equal(tn_multiply_assign(b.x, tn_weak_int(0)), TN_OK);
                assert_int_equal(tn_eval(b.x), TN_OK);
            }
        tn_loader_free(loader);
    }
    const float *x = test_data(tn_dataset_x(dataset));
    for (int i = 0; i < 20; i++)
        assert_true(x[3 * i] == (float)i);
    tn_dataset_free(dataset);
}

static void without_threads(void **state)
{
    (void)state;
    int64_t order[50];
    refuse_threads = true;
    tn_loader *loader = tn_loader_new(numbered(50), .batch = 8, .shuffle = true);
    for (int e = 0; e < 3; e++) {
        assert_int_equal(epoch_order(loader, 8, order), 50);
        assert_is_permutation(order, 50);
    }
    tn_loader_free(loader);
    refuse_threads = false;
    int before = threads_made;
    loader = tn_loader_new(numbered(50), .batch = 8, .shuffle = true);
    epoch_order(loader, 8, order);
    int once = !test_elsewhere(); /* one, for all epochs; none where the dataset is on the device */
    assert_int_equal(threads_made, before + once);
    epoch_order(loader, 8, order);
    assert_int_equal(threads_made, before + once);
    tn_loader_free(loader);
}

/* Freed at any moment: before the first batch, in an epoch, at its end. */
static void freed_early(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    for (int taken = 0; taken < 30; taken++) {
        tn_loader *loader = tn_loader_new(numbered(100), .batch = 10, .shuffle = true);
        tn_batch b;
        for (int i = 0; i < taken; i++)
            tn_loader_next(loader, &b);
        tn_loader_free(loader);
    }
    tn_loader_free(NULL);
    assert_int_equal(tn_live_arrays(), arrays);
}

static void errors(void **state)
{
    (void)state;
    tn_batch b;
    tn_loader *loader = tn_loader_new(numbered(5), .batch = -1);
    assert_int_equal(tn_loader_status(loader), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "got -1");
    assert_int_equal(tn_loader_length(loader), 0);
    assert_false(tn_loader_next(loader, &b));
    assert_null(b.x);
    assert_failed(TN_ERR_VALUE, "got -1");
    assert_int_equal(tn_loader_set_epoch(loader, 1), TN_ERR_VALUE);
    tn_clear_error();
    tn_loader_free(loader);

    loader = tn_loader_new(tn_dataset_named("digitz", TN_TRAIN), .shuffle = true);
    assert_int_equal(tn_loader_status(loader), TN_ERR_NAME);
    assert_failed(TN_ERR_NAME, "digits");
    tn_loader_free(loader);

    loader = tn_loader_new(numbered(5), .device = {.kind = TN_DEVICE_CUDA, .index = 999});
    assert_int_equal(tn_loader_status(loader), TN_ERR_DEVICE);
    tn_clear_error();
    tn_loader_free(loader);

    loader = tn_loader_new(NULL, .batch = 1);
    assert_int_equal(tn_loader_status(loader), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "expected a dataset, got NULL");
    tn_loader_free(loader);

    /* a latched error of any kind ends the loop, and costs no batch */
    loader = tn_loader_new(numbered(5), .batch = 1);
    assert_true(tn_loader_next(loader, &b));
    tn_reshape(tn_zeros(TN_SHAPE(3)), TN_SHAPE(2));
    assert_false(tn_loader_next(loader, &b));
    assert_null(b.x);
    assert_int_equal(tn_loader_epoch(loader), 0);
    tn_clear_error();
    assert_true(tn_loader_next(loader, &b));
    assert_int_equal(tn_item_int(b.t), 1);
    tn_loader_free(loader);
}

static void on_other_devices(void **state)
{
    (void)state;
    static const char *const names[] = {"virtual:0", "cuda:0"};
    for (int i = 0; i < 2; i++) {
        tn_status status;
        tn_device device = tn_device_parse(names[i], &status);
        if (status != TN_OK || !tn_device_available(device, NULL)) {
            tn_clear_error();
            continue;
        }
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            int64_t order[40];
            tn_loader *loader = tn_loader_new(numbered(40), .batch = 9, .shuffle = shuffle, .device = device);
            assert_int_equal(epoch_order(loader, 9, order), 40);
            assert_is_permutation(order, 40);
            tn_loader_set_epoch(loader, 0);
            tn_batch b;
            assert_true(tn_loader_next(loader, &b));
            assert_true(tn_device_equal(tn_device_of(b.x), device));
            tn_loader_free(loader);
        }
    }
}

/* Two loaders, one of which may have its dataset on a device, give the same minibatches, bit by bit. */
static void same_batches(tn_loader *a, tn_loader *b, int epochs)
{
    for (int e = 0; e < epochs; e++) {
        tn_batch x, y;
        while (tn_loader_next(a, &x)) {
            assert_true(tn_loader_next(b, &y));
            assert_int_equal(x.size, y.size);
            TN_SCOPE {
                assert_memory_equal(test_data(x.x), test_data(y.x), (size_t)(3 * x.size) * sizeof(float));
                assert_memory_equal(test_data(x.t), test_data(y.t), (size_t)x.size * sizeof(int64_t));
            }
        }
        assert_false(tn_loader_next(b, &y));
        assert_string_equal(tn_error(), "");
    }
}

/* Whatever minibatch a loader goes on with, those that follow are those of one that was there by itself; also where a
 * thread gathers ahead, and where minibatches are recorded on the device. */
static void in_the_middle(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    for (int mode = 0; mode < 16; mode++) {
        bool shuffle = mode & 1, drop_last = mode & 2, threads = mode & 4, elsewhere = mode & 8;
        tn_loader_opts opts = {.batch = 9, .shuffle = shuffle, .seed = 5, .drop_last = drop_last,
                               .no_prefetch = !threads, .device = elsewhere ? test_device() : tn_cpu()};
        tn_loader *whole = tn_loader_new_with(numbered(COUNT), &opts);
        tn_loader *part = tn_loader_new_with(numbered(COUNT), &opts);
        assert_int_equal(tn_loader_samples(whole), drop_last ? 36 : 40);
        for (int taken = 0; taken <= tn_loader_length(whole); taken++) {
            tn_loader_set_epoch(whole, 1);
            tn_batch b;
            for (int i = 0; i < taken; i++)
                assert_true(tn_loader_next(whole, &b));
            int64_t position = tn_loader_position(whole);
            assert_int_equal(position, taken == tn_loader_length(whole) ? tn_loader_samples(whole) : 9 * taken);
            assert_int_equal(tn_loader_set_position(part, 1, position), TN_OK);
            assert_int_equal(tn_loader_epoch(part), 1);
            assert_int_equal(tn_loader_position(part), position);
            same_batches(whole, part, 2);
        }
        for (int64_t bad = -1; bad < 50; bad++)
            if (bad < 0 || (bad % 9 && bad != tn_loader_samples(part)) || bad > tn_loader_samples(part)) {
                assert_int_equal(tn_loader_set_position(part, 0, bad), TN_ERR_VALUE);
                assert_failed(TN_ERR_VALUE, "multiple of 9");
            }
        assert_int_equal(tn_loader_set_position(part, -1, 0), TN_ERR_VALUE);
        assert_failed(TN_ERR_VALUE, "got -1");
        tn_loader_free(whole);
        tn_loader_free(part);
    }
}

/* On a device with memory of its own the dataset lies there, and minibatches are recorded: nothing is computed before
 * it is asked for, nothing may fail, and the order is the CPU's. */
static void on_the_device(void **state)
{
    (void)state;
    tn_device device = tn_device_parse("virtual:0", NULL);
    int64_t counts[] = {1, 2, 37, 100};
    for (int c = 0; c < 4; c++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            int64_t batch = 1 + (counts[c] * 7 + shuffle) % 11;
            size_t before = tn_memory_stats(device).used;
            tn_loader *here = tn_loader_new(numbered(counts[c]), .batch = batch, .shuffle = shuffle, .seed = 5,
                                            .device = tn_cpu());
            tn_loader *there = tn_loader_new(numbered(counts[c]), .batch = batch, .shuffle = shuffle, .seed = 5,
                                             .device = device);
            assert_true(tn_memory_stats(device).used > before);
            same_batches(here, there, 3);
            assert_int_equal(tn_loader_set_epoch(here, 11), TN_OK);
            assert_int_equal(tn_loader_set_epoch(there, 11), TN_OK);
            same_batches(here, there, 2);
            tn_loader_free(here);
            tn_loader_free(there);
            assert_int_equal(tn_memory_stats(device).used, before);
        }
}

/* Where a minibatch lies is computed along with the step of the one before it, if that has been taken; else it is
 * copied. */
static void places_after_steps(void **state)
{
    (void)state;
    tn_device device = tn_device_parse("virtual:0", NULL);
    for (int way = 0; way < 4; way++) {
        tn_loader *here = tn_loader_new(numbered(61), .batch = 4, .shuffle = way % 2, .seed = 3, .device = tn_cpu());
        tn_loader *there = tn_loader_new(numbered(61), .batch = 4, .shuffle = way % 2, .seed = 3, .device = device);
        for (int i = 0; i < 60; i++) {
            tn_batch x, y;
            while (!tn_loader_next(here, &x))
                assert_int_equal(tn_loader_next(there, &y), 0);
            assert_true(tn_loader_next(there, &y));
            if (way >= 2 && i % 7 == 3) /* not looked at */
                continue;
            TN_SCOPE {
                tn_array *sum = tn_sum(y.x);
                tn__node *node = tn__array_node(sum);
                assert_int_equal(way < 2 || i % 3 ? tn__evaluate_step(1, &node) : tn_eval(sum), TN_OK);
                assert_memory_equal(test_data(x.t), test_data(y.t), (size_t)x.size * sizeof(int64_t));
                assert_true(tn_item(sum) == tn_item(tn_sum(x.x)));
            }
            if (way == 3 && i % 11 == 5) {
                assert_int_equal(tn_loader_set_epoch(here, i), TN_OK);
                assert_int_equal(tn_loader_set_epoch(there, i), TN_OK);
            }
        }
        tn_loader_free(here);
        tn_loader_free(there);
    }
}

/* What is made of a minibatch is an ordinary graph: one evaluation, which runs the gather, too. */
static void recorded_batches(void **state)
{
    (void)state;
    tn_device device = tn_device_parse("virtual:0", NULL);
    tn_loader *loader = tn_loader_new(numbered(50), .batch = 8, .shuffle = true, .device = device);
    TN_SCOPE {
        tn_batch b;
        tn_array *kept[6], *first = NULL;
        for (int i = 0; i < 6; i++) {
            assert_true(tn_loader_next(loader, &b));
            kept[i] = tn_sum(b.x);
            if (i == 0)
                first = tn_add(b.t, 0);
        }
        unsigned long long evaluations = tn_engine_stats().evaluations;
        double sum[6];
        for (int i = 5; i >= 0; i--)
            sum[i] = tn_item(kept[i]);
        assert_int_equal(tn_engine_stats().evaluations, evaluations + 6);
        tn_loader_set_epoch(loader, 0);
        tn_loader_next(loader, &b);
        assert_true(tn_item(tn_sum(b.x)) == sum[0]);
        assert_memory_equal(test_data(first), test_data(b.t), 8 * sizeof(int64_t));
    }
    tn_loader_free(loader);
}

/* A dataset that would take too much of the device stays on the host. */
static void too_large(void **state)
{
    (void)state;
    tn_device device = tn_device_parse("virtual:1", NULL);
    assert_int_equal(tn_memory_limit(device, 8192), TN_OK);
    tn_loader *here = tn_loader_new(numbered(100), .batch = 9, .shuffle = true, .device = tn_cpu());
    tn_loader *there = tn_loader_new(numbered(100), .batch = 9, .shuffle = true, .device = device);
    assert_int_equal(tn_loader_status(there), TN_OK);
    assert_int_equal(tn_memory_stats(device).used, 0);
    same_batches(here, there, 2);
    tn_loader_free(there);
    assert_int_equal(tn_memory_limit(device, 0), TN_OK);
    there = tn_loader_new(numbered(100), .batch = 9, .shuffle = true, .device = device);
    assert_true(tn_memory_stats(device).used > 100 * 20);
    tn_loader_set_epoch(here, 0);
    same_batches(here, there, 2);
    tn_loader_free(there);
    tn_loader_free(here);
}

static void *next_batch(void *user)
{
    tn_batch b;
    bool there = tn_loader_next(user, &b) && tn_item(tn_sum(b.t)) >= 0;
    return there ? user : NULL;
}

/* A loader may be handed from thread to thread. */
static void by_turns(void **state)
{
    (void)state;
    tn_loader *loader =
        tn_loader_new(numbered(30), .batch = 3, .shuffle = true, .device = tn_device_parse("virtual:0", NULL));
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        void *done = NULL;
        assert_non_null(next_batch(loader));
        assert_int_equal(pthread_create(&thread, NULL, next_batch, loader), 0);
        pthread_join(thread, &done);
        assert_non_null(done);
    }
    tn_loader_free(loader);
}

static void no_memory(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        bool done = false;
        for (long n = 0; !done && n < 300; n++) {
            tn_dataset *dataset = numbered(20);
            tn_batch b;
            int batches = 0;
            tn__fail_allocation_after(n);
            tn_loader *loader = tn_loader_new(dataset, .batch = 6, .shuffle = mode < 2, .no_prefetch = mode == 1);
            while (tn_loader_next(loader, &b))
                batches++;
            done = tn_ok();
            tn__fail_allocation_after(-1);
            assert_true(done ? batches == 4 : tn_error_code() == TN_ERR_MEMORY);
            tn_clear_error();
            tn_loader_free(loader);
        }
        assert_true(done);
    }
}

/* Small minibatches are not worth a thread; large ones are, on a device of its own. */
static void threads_where_they_pay(void **state)
{
    (void)state;
    int64_t order[50];
    tn__prefetch_always = false;
    int before = threads_made;
    tn_loader *loader = tn_loader_new(numbered(50), .batch = 8, .shuffle = true);
    epoch_order(loader, 8, order);
    assert_is_permutation(order, 50);
    assert_int_equal(threads_made, before);
    tn_loader_free(loader);
    assert_false(tn__prefetch_pays(1000, false));
    assert_true(tn__prefetch_pays(1000000, false));
    tn__prefetch_always = true;
}

/* Labels that the loader has looked at on the way to a device; those that no class has are told of all the same, and
 * what a program keeps, or writes elsewhere, stays what it is while minibatches take the same memory by turns. */
static void labels_on_the_way(void **state)
{
    (void)state;
    enum { CLASSES = 24 };
    tn_device device = tn_device_parse("virtual:1", NULL);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        assert_int_equal(tn_memory_limit(device, 8192), TN_OK);
        tn_loader *loader = tn_loader_new(numbered(200), .batch = 8, .shuffle = shuffle, .device = device);
        assert_int_equal(tn_memory_limit(device, 0), TN_OK);
        tn_array *kept = NULL;
        int64_t first[8], wrong = 0, right = 0;
        for (tn_batch b; tn_loader_next(loader, &b);)
            TN_SCOPE {
                const int64_t *t = tn_data(tn_to_cpu(b.t));
                bool out = false;
                for (int64_t i = 0; i < b.size; i++)
                    out |= t[i] >= CLASSES;
                if (!kept) {
                    memcpy(first, t, sizeof first);
                    kept = tn_keep(tn_to(b.t, device));
                }
                assert_int_equal(tn__array_node(b.t)->attr.below > CLASSES, out);
                tn_array *scores = tn_matmul(b.x, tn_ones(TN_SHAPE(3, CLASSES), .device = device));
                double loss = tn_item(tn_softmax_cross_entropy(scores, b.t));
                assert_int_equal(tn_error_code(), out ? TN_ERR_INDEX : TN_OK);
                if (!out)
                    assert_true(fabs(loss - log(CLASSES)) < 1e-4);
                *(out ? &wrong : &right) += 1;
                tn_clear_error();
            }
        assert_int_equal(wrong + right, 25);
        assert_true(wrong > 0);
        assert_true(shuffle || right == CLASSES / 8);
        assert_memory_equal(tn_data(tn_to_cpu(kept)), first, sizeof first);
        tn_loader_free(loader);
        assert_true(tn__array_node(kept)->attr.below > 0); /* and nobody else holds them: a kernel writes into them */
        tn_kernel *spoil = tn_raw_kernel("void spoil(long long *t) { t[0] = 1000; }", "spoil");
        assert_int_equal(tn_launch(spoil, TN_ARGS(TN_WRITES(kept)), .grid = {1}), TN_OK);
        assert_int_equal(tn__array_node(kept)->attr.below, 0);
        tn_free(kept);
    }
    const int64_t below[] = {3, 0, -1};
    assert_int_equal(tn__labels_below(below, TN_INT64, 2), 4);
    assert_int_equal(tn__labels_below(below, TN_INT64, 3), 0);
    assert_int_equal(tn__labels_below(below, TN_FLOAT64, 2), 0);
    assert_int_equal(tn__labels_below(below, TN_INT64, 0), 0);
}

int main(void)
{
    tn__prefetch_always = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_once),
        cmocka_unit_test(drop_last),
        cmocka_unit_test(moved),
        cmocka_unit_test(orders_depend_on_seed_and_epoch_alone),
        cmocka_unit_test(kept_batches),
        cmocka_unit_test(batches_in_place),
        cmocka_unit_test(without_threads),
        cmocka_unit_test(threads_where_they_pay),
        cmocka_unit_test(freed_early),
        cmocka_unit_test(errors),
        cmocka_unit_test(on_other_devices),
        cmocka_unit_test(in_the_middle),
        cmocka_unit_test(on_the_device),
        cmocka_unit_test(places_after_steps),
        cmocka_unit_test(recorded_batches),
        cmocka_unit_test(too_large),
        cmocka_unit_test(by_turns),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(labels_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
