/* SPDX-License-Identifier: MIT */
/*
 * Optimizers and loaders of several ranks: a network that they train together comes out as one that a process trains by
 * itself with all their samples, up to the order of sums, and the same on all of them.
 */
#include "comm/ranks.h"

static tn_comm *comm;
static int rank, size;
static uint64_t seed;

enum { SAMPLES = 48, BATCH = 12, STEPS = 4 }; /* parts of which are 1 to 4 ranks' */

static tn_dataset *dataset(void)
{
    float x[SAMPLES][5], t[SAMPLES][2];
    test_random r = {seed};
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < 5; k++)
            x[i][k] = (float)(test_random_bits(&r) >> 40) * 0x1p-23f - 1;
        for (int k = 0; k < 2; k++)
            t[i][k] = x[i][k] * x[i][k + 1];
    }
    return tn_dataset_arrays(tn_from_host(x, TN_SHAPE(SAMPLES, 5), TN_FLOAT32),
                             tn_from_host(t, TN_SHAPE(SAMPLES, 2), TN_FLOAT32));
}

/* A network, whose layers know their inputs or not; for `begin` other weights. */
static tn_layer *network(uint64_t begin, bool lazy)
{
    tn_seed(begin);
    tn_layer *first = lazy ? tn_linear(7) : tn_linear(7, .in = 5), *last = lazy ? tn_linear(2) : tn_linear(2, .in = 7);
    return tn_sequential(first, tn_tanh_layer(), last);
}

/* Trains it; with ranks, this one's share. Losses of steps into losses, if it is not NULL. */
static void train(tn_layer *net, tn_optimizer *optimizer, bool ranks, double *losses)
{
    tn_sampler *sampler = ranks ? tn_rank_sampler(SAMPLES, comm, .shuffle = true) : NULL;
    tn_loader *loader = tn_loader_new(dataset(), .batch = ranks ? BATCH / size : BATCH, .shuffle = true, .seed = seed,
                                      .sampler = sampler);
    int step = 0;
    for (int epoch = 0; epoch < 2; epoch++)
        TN_EACH (batch, loader) {
            tn_array *loss = tn_mean_squared_error(tn_forward(net, batch.x), batch.t);
            assert_int_equal(tn_backward(loss), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
            if (losses && step < STEPS)
                losses[step] = tn_item(loss);
            step++;
        }
    assert_int_equal(step, 2 * SAMPLES / BATCH);
    tn_loader_free(loader);
}

static void assert_params_near(tn_layer *a, tn_layer *b)
{
    for (int i = 0; i < tn_param_count(a); i++) {
        if (!tn_allclose(tn_param(a, i), tn_param(b, i), .rtol = 1e-4, .atol = 1e-5)) {
            char *left = tn_string(tn_param(a, i)), *right = tn_string(tn_param(b, i));
            fail_msg("parameter %d of rank %d: %s, expected %s", i, rank, left, right);
        }
    }
}

static void assert_params_same_everywhere(tn_layer *net)
{
    for (int i = 0; i < tn_param_count(net); i++) TN_SCOPE {
        tn_array *all = tn_comm_all_gather(comm, tn_param(net, i));
        assert_true(tn_item(tn_all(tn_equal(all, tn_slice_axis(all, 0, 0, 1, 1)))) == 1);
    }
}

/* By each of three optimizers, one of which clips; all ranks but one begin with other weights where they may. */
static void test_as_alone(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"sgd:lr=0.1", "adam:lr=0.01,clip_norm=0.1", "momentum:weight_decay=0.01"};
    for (int k = 0; k < 3; k++) TN_SCOPE {
        bool lazy = k == 1;
        tn_layer *alone = network(7, lazy), *shared = network(lazy ? 7 : 7 + (uint64_t)rank, lazy);
        tn_optimizer *one = tn_optimizer_parse(optimizers[k], alone), *all = tn_optimizer_parse(optimizers[k], shared);
        double losses[STEPS], own[STEPS];
        assert_int_equal(tn_optimizer_distribute(all, comm), TN_OK);
        tn_seed(11);
        train(alone, one, false, losses);
        tn_seed(11);
        train(shared, all, true, own);
        assert_params_near(shared, alone);
        assert_params_same_everywhere(shared);
        tn_array *means = tn_comm_all_reduce(comm, tn_from_doubles(own, STEPS), TN_COMM_MEAN);
        assert_true(tn_allclose(means, tn_from_doubles(losses, STEPS), .rtol = 1e-4));
        tn_optimizer_free(one);
        tn_optimizer_free(all);
        tn_layer_free(alone);
        tn_layer_free(shared);
    }
    assert_true(tn_ok());
}

static tn_array *squared_error(tn_layer *net, const tn_batch *batch, void *user)
{
    (void)user;
    return tn_mean_squared_error(tn_forward(net, batch->x), batch->t);
}

/* Each rank shares its part of a minibatch between two devices of its own. */
static void test_with_devices(void **state)
{
    (void)state;
    tn_device on[3] = {{0}};
    if (test_too_few(on, 2))
        skip();
    for (int shard = 0; shard < 2; shard++) TN_SCOPE {
        tn_layer *alone = network(7, false), *shared = network(7, false);
        tn_optimizer *one = tn_momentum_sgd(alone), *all = tn_momentum_sgd(shared);
        assert_int_equal(tn_layer_to(shared, on[0]), TN_OK); /* which on some ranks only may be another device */
        assert_int_equal(tn_optimizer_distribute(all, comm, .shard = shard), TN_OK);
        train(alone, one, false, NULL);
        assert_int_equal(tn_layer_to(alone, on[0]), TN_OK);
        tn_loader *loader = tn_loader_new(dataset(), .batch = BATCH / size, .seed = seed, .device = on[0],
                                          .sampler = tn_rank_sampler(SAMPLES, comm, .shuffle = true));
        tn_updater *updater = tn_parallel_updater(loader, all, .loss = squared_error, .devices = on);
        for (int step = 0; step < 2 * SAMPLES / BATCH; step++)
            if (tn_updater_update(updater) != TN_OK)
                fail_msg("rank %d: %s", rank, tn_error());
        assert_params_near(shared, alone);
        assert_params_same_everywhere(shared);
        tn_updater_free(updater);
        tn_loader_free(loader);
        tn_optimizer_free(one);
        tn_optimizer_free(all);
        tn_layer_free(alone);
        tn_layer_free(shared);
    }
    assert_true(tn_ok());
}

/* Parameters that come in the first step, and are not the same: that step makes them so, and nothing else. */
static void test_late_parameters(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = network(100 + (uint64_t)rank, true), *first = network(100, true);
        tn_optimizer *optimizer = tn_sgd(net, .lr = 0.1);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm), TN_OK);
        tn_array *x = tn_ones(TN_SHAPE(3, 5));
        tn_seed(100); /* of what is made when the first input comes */
        tn_forward(first, x);
        tn_seed(100 + (uint64_t)rank);
        assert_int_equal(tn_backward(tn_sum(tn_forward(net, x))), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        assert_params_same_everywhere(net);
        assert_int_equal(tn_optimizer_steps(optimizer), size == 1);
        if (size > 1)
            assert_params_near(net, first);
        assert_false(tn_has_grad(tn_param(net, 0)));
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
        tn_layer_free(first);
    }
    assert_true(tn_ok());
}

/* Gradients that some ranks have not count as 0, and those that none has leave their parameter alone. */
static void test_absent_gradients(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *a = tn_linear(1, .in = 2), *b = tn_linear(1, .in = 2), *c = tn_linear(1, .in = 2);
        tn_layer *net = tn_sequential(a, b, c);
        for (int i = 0; i < tn_param_count(net); i++)
            assert_int_equal(tn_assign(tn_param(net, i), tn_zeros(tn_shape_of(tn_param(net, i)))), TN_OK);
        tn_optimizer *optimizer = tn_sgd(net, .lr = 1);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm), TN_OK);
        tn_array *x = tn_ones(TN_SHAPE(1, 2)), *y = tn_forward(a, x);
        if (rank == size - 1)
            y = tn_add(y, tn_forward(b, x));
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        for (int k = 0; k < 3; k++) {
            tn_layer *layer = k == 0 ? a : k == 1 ? b : c;
            double expected = k == 0 ? -1 : k == 1 ? -1.0 / size : 0;
            for (int i = 0; i < tn_param_count(layer); i++)
                assert_true(tn_allclose(tn_param(layer, i), expected));
        }
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
    assert_true(tn_ok());
}

/* Noise of updates is the same on all ranks, wherever each is in its own random numbers. */
static void test_noise(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = tn_linear(3, .in = 5);
        tn_optimizer *optimizer = tn_sgd(net, .lr = 0.1, .noise = 0.5);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm), TN_OK);
        tn_array *before = tn_add(tn_param(net, 0), 0);
        for (int t = 0; t < 3; t++) {
            tn_seed((uint64_t)(10 * t + rank));
            assert_int_equal(tn_backward(tn_sum(tn_forward(net, tn_zeros(TN_SHAPE(1, 5))))), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
            assert_params_same_everywhere(net);
            assert_false(tn_allclose(tn_param(net, 0), before)); /* which has no other gradient */
            before = tn_add(tn_param(net, 0), 0);
        }
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
    assert_true(tn_ok());
}

/* What the ranks' samplers deal out: all samples, each once, or evenly with some twice. */
static void test_shares(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 11; n++)
        for (int uneven = 0; uneven < 2; uneven++) TN_SCOPE {
            if (uneven && n < size) {
                tn_sampler *none = tn_rank_sampler(n, comm, .uneven = true);
                assert_int_equal(tn_sampler_status(none), TN_ERR_VALUE);
                tn_sampler_free(none);
                tn_clear_error();
                continue;
            }
            tn_array *numbers = tn_reshape(tn_arange(0, (double)n, 1), TN_SHAPE(n, 1));
            tn_loader *loader = tn_loader_new(
                tn_dataset_arrays(numbers, tn_zeros(TN_SHAPE(n), .dtype = TN_INT64)),
                .batch = 3, .sampler = tn_rank_sampler(n, comm, .shuffle = true, .uneven = uneven != 0), .seed = seed);
            int64_t counts[16] = {0}, total = 0;
            TN_EACH (batch, loader)
                for (int64_t i = 0; i < batch.size; i++, total++)
                    counts[(int)tn_item(tn_slice_axis(batch.x, 0, i, i + 1, 1))]++;
            assert_int_equal(total, uneven ? (n - rank + size - 1) / size : (n + size - 1) / size);
            int64_t all[16];
            assert_int_equal(tn_to_host(tn_comm_all_reduce(comm, tn_from_int64s(counts, 16), TN_COMM_SUM), all,
                                        sizeof all),
                             TN_OK);
            for (int64_t i = 0; i < n; i++)
                assert_true(uneven ? all[i] == 1 : all[i] >= 1 && all[i] <= (n < size ? size : 2));
            tn_loader_free(loader);
        }
    assert_true(tn_ok());
}

int main(void)
{
    if (!ranks_begin(&comm, &rank, &size))
        return 1;
    seed = shared_seed(comm);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_alone), cmocka_unit_test(test_with_devices),
                                       cmocka_unit_test(test_late_parameters),
                                       cmocka_unit_test(test_absent_gradients),
                                       cmocka_unit_test(test_noise), cmocka_unit_test(test_shares)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
