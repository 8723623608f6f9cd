/* SPDX-License-Identifier: MIT */
/* Samplers, and loaders that repeat: whose samples come, in which order, and where an epoch ends. */
#include <math.h>
#include <tanso/autograd.h>
#include <tanso/device.h>
#include <tanso/nn.h>
#include <tanso/optim.h>
#include <tanso/sampler.h>
#include <tanso/trainer.h>
#include "data/check.h"
#include "support/starve.h"

/* Sample i has x = (i, 2 i) and t = i. */
static tn_dataset *numbered(int64_t count)
{
    tn_dataset *dataset = NULL;
    TN_SCOPE {
        tn_array *t = tn_arange_int64(0, count, 1), *x = tn_cast(t, TN_FLOAT32);
        dataset = tn_dataset_arrays(tn_stack(2, (const tn_array *[]){x, tn_multiply(x, 2)}, 1), t);
    }
    return dataset;
}

/* The numbers of the samples of a minibatch; x belongs to t. */
static void numbers(const tn_batch *b, int64_t *out)
{
    const float *x = test_data(b->x);
    const int64_t *t = test_data(b->t);
    for (int64_t i = 0; i < b->size; i++) {
        assert_true(x[2 * i] == (float)t[i] && x[2 * i + 1] == 2 * (float)t[i]);
        out[i] = t[i];
    }
}

/* The same of a minibatch on any device. */
static void numbers_of(const tn_batch *b, int64_t *out)
{
    tn_batch here = {.x = tn_to(b->x, test_device()), .t = tn_to(b->t, test_device()), .size = b->size};
    numbers(&here, out);
}

static int64_t epoch_of(tn_loader *loader, int64_t *out)
{
    int64_t count = 0;
    for (tn_batch b; tn_loader_next(loader, &b); count += b.size)
        numbers(&b, out + count);
    assert_string_equal(tn_error(), "");
    return count;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Each number once. */
static void assert_is_permutation(const int64_t *order, int64_t count)
{
    int64_t *sorted = malloc((size_t)count * sizeof *sorted + 1);
    memcpy(sorted, order, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(sorted[i], i);
    free(sorted);
}

/* ---- repeating ---- */

/* What Chainer 7.8.1 was measured to do: 10 samples by 3, and 3 by 8. */
static void as_chainer_counts(void **state)
{
    (void)state;
    static const struct {
        int64_t size, batch;
        int steps;
        int64_t epoch[10], position[10];
    } cases[] = {
        {10, 3, 10, {0, 0, 0, 1, 1, 1, 2, 2, 2, 3}, {3, 6, 9, 2, 5, 8, 1, 4, 7, 0}},
        {3, 8, 1, {2}, {2}},
        {8, 4, 2, {0, 1}, {4, 0}},
        {1, 1, 3, {1, 2, 3}, {0, 0, 0}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        tn_loader *loader = tn_loader_new(numbered(cases[c].size), .batch = cases[c].batch, .repeat = true,
                                          .drop_last = true, .device = test_device());
        assert_true(tn_loader_repeats(loader));
        assert_int_equal(tn_loader_samples(loader), cases[c].size);
        assert_int_equal(tn_loader_length(loader), (cases[c].size + cases[c].batch - 1) / cases[c].batch);
        int64_t at = 0, got[8];
        for (int i = 0; i < cases[c].steps; i++) {
            tn_batch b;
            assert_true(tn_loader_next(loader, &b));
            assert_int_equal(b.size, cases[c].batch);
            numbers(&b, got);
            for (int64_t k = 0; k < b.size; k++)
                assert_int_equal(got[k], at++ % cases[c].size);
            assert_int_equal(tn_loader_epoch(loader), cases[c].epoch[i]);
            assert_int_equal(tn_loader_position(loader), cases[c].position[i]);
        }
        tn_loader_free(loader);
    }
}

/* Shuffled, they are the epochs of a loader that does not repeat, one behind the other: in any thread, from any place
 * on, on the host and on a device, where 12 samples by 3 may lie there and 13 may not. */
static void epochs_joined(void **state)
{
    (void)state;
    enum { EPOCHS = 6, MOST = 13, BATCH = 3 };
    test_random random = test_random_new();
    for (int64_t size = 12; size <= MOST; size++)
        for (int mode = 0; mode < 5; mode++) {
            uint64_t seed = test_random_bits(&random);
            int64_t expected[EPOCHS * MOST], got[BATCH], steps = EPOCHS * size / BATCH;
            tn_loader *whole = tn_loader_new(numbered(size), .batch = 5, .shuffle = true, .seed = seed);
            for (int e = 0; e < EPOCHS; e++)
                assert_int_equal(epoch_of(whole, expected + e * size), size);
            tn_loader_free(whole);
            tn_loader *loader = tn_loader_new(numbered(size), .batch = BATCH, .shuffle = true, .seed = seed,
                                              .repeat = true, .workers = mode, .no_prefetch = mode == 0,
                                              .device = mode == 4 ? tn_virtual(0) : test_device());
            for (int64_t i = 0; i < 3 * steps; i++) {
                int64_t step = i < steps ? i : test_random_int(&random, 0, steps - 1), first = step * BATCH;
                if (i >= steps)
                    assert_int_equal(tn_loader_set_position(loader, first / size, first % size), TN_OK);
                assert_int_equal(tn_loader_epoch(loader), first / size);
                assert_int_equal(tn_loader_position(loader), first % size);
                tn_batch b;
                assert_true(tn_loader_next(loader, &b));
                TN_SCOPE {
                    numbers_of(&b, got);
                }
                assert_memory_equal(got, expected + first, sizeof got);
            }
            assert_int_equal(tn_loader_set_epoch(loader, 1), TN_OK); /* where no minibatch began before */
            tn_batch b;
            assert_true(tn_loader_next(loader, &b));
            TN_SCOPE
                numbers_of(&b, got);
            assert_memory_equal(got, expected + size, sizeof got);
            tn_loader_free(loader);
        }
}

/* A trainer's epochs are those of the loader, wherever minibatches end. */
static void trainer_counts(void **state)
{
    (void)state;
    tn_loader *loader = tn_loader_new(numbered(10), .batch = 3, .repeat = true, .device = test_device());
    tn_layer *net = tn_linear(1);
    tn_layer_to(net, test_device());
    tn_optimizer *optimizer = tn_sgd(net, .lr = 0);
    tn_updater *updater = tn_standard_updater(loader, optimizer, .loss = NULL);
    static const bool is_new[] = {false, false, false, true, false, false, true, false, false, true};
    for (int i = 0; i < 10; i++) {
        tn_batch b;
        assert_true(tn_updater_next(updater, NULL, &b)); /* what an updater of the user's own does */
        assert_int_equal(tn_loader_epoch(loader), 3 * (i + 1) / 10);
        assert_int_equal(tn_loader_position(loader) < 3, is_new[i]);
    }
    tn_extension *evaluator = tn_evaluator(loader, net);
    assert_failed(TN_ERR_VALUE, "the loader repeats");
    tn_extension_free(evaluator);
    tn_updater_free(updater);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    tn_loader_free(loader);
}

/* ---- weights ---- */

/* Each sample as often as its weight says, and one of weight 0 never. */
static void by_weight(void **state)
{
    (void)state;
    enum { SIZE = 5, DRAWN = 20000 };
    const double weights[SIZE] = {0, 1, 2, 5, 0};
    test_random random = test_random_new();
    int64_t *order = malloc(2 * DRAWN * sizeof *order), count[SIZE] = {0};
    tn_loader *loader = tn_loader_new(numbered(SIZE), .batch = 300, .seed = test_random_bits(&random),
                                      .sampler = tn_weighted_sampler(SIZE, weights, .samples = DRAWN),
                                      .device = test_device());
    assert_int_equal(tn_loader_samples(loader), DRAWN);
    assert_int_equal(tn_loader_length(loader), (DRAWN + 299) / 300);
    for (int e = 0; e < 2; e++)
        assert_int_equal(epoch_of(loader, order + e * DRAWN), DRAWN);
    assert_memory_not_equal(order, order + DRAWN, DRAWN * sizeof *order);
    for (int64_t i = 0; i < DRAWN; i++)
        count[order[i]]++;
    assert_int_equal(count[0] + count[4], 0);
    for (int i = 1; i < 4; i++) { /* eight standard deviations: seeds that miss it are rarer than 1e-14 */
        double p = weights[i] / 8, deviation = sqrt(DRAWN * p * (1 - p));
        assert_true(fabs((double)count[i] - DRAWN * p) < 8 * deviation);
    }
    tn_loader_free(loader);
    free(order);
}

/* Without replacement: each once at most; of two that differ, the heavier comes first as often as it should. */
static void distinct(void **state)
{
    (void)state;
    enum { RUNS = 4000 };
    const double weights[] = {3, 0, 1, 1};
    test_random random = test_random_new();
    int64_t first = 0, order[4];
    tn_loader *loader = tn_loader_new(numbered(4), .batch = 4, .seed = test_random_bits(&random),
                                      .sampler = tn_weighted_sampler(4, weights, .samples = 3, .distinct = true));
    for (int run = 0; run < RUNS; run++) {
        assert_int_equal(epoch_of(loader, order), 3);
        first += order[0] == 0;
        qsort(order, 3, sizeof *order, compare);
        assert_true(order[0] == 0 && order[1] == 2 && order[2] == 3);
    }
    assert_true(fabs((double)first - 0.6 * RUNS) < 8 * sqrt(RUNS * 0.24));
    tn_loader_free(loader);
}

/* ---- lengths ---- */

/* Minibatches hold neighbours of the sorted lengths, in no sorted order, each sample once; the short one is last. */
static void by_length(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 7, 8, 103};
    test_random random = test_random_new();
    for (int s = 0; s < 5; s++) {
        enum { BATCH = 8, MOST = 103 };
        int64_t size = sizes[s], lengths[MOST], order[MOST], next[MOST], sorted[MOST];
        for (int64_t i = 0; i < size; i++)
            sorted[i] = lengths[i] = test_random_int(&random, 0, 1000);
        qsort(sorted, (size_t)size, sizeof *sorted, compare);
        tn_loader *loader = tn_loader_new(numbered(size), .batch = BATCH, .sampler = tn_length_sampler(size, lengths),
                                          .device = test_device());
        assert_int_equal(epoch_of(loader, order), size);
        assert_is_permutation(order, size);
        for (int64_t first = 0, falls = 0; first < size; first += BATCH) {
            int64_t count = size - first < BATCH ? size - first : BATCH, least = lengths[order[first]];
            int64_t most = lengths[order[first + count - 1]], place = 0;
            while (sorted[place] != least)
                place++;
            bool found = false; /* equal lengths may begin in the minibatch before */
            for (; place + count <= size && sorted[place] == least; place++)
                found |= sorted[place + count - 1] == most;
            assert_true(found);
            falls += first && least < lengths[order[first - 1]];
            assert_true(first + BATCH < size || size < 100 || falls > 0);
        }
        assert_int_equal(epoch_of(loader, next), size);
        assert_is_permutation(next, size);
        assert_true(size < 100 || memcmp(order, next, sizeof order) != 0);
        tn_loader_free(loader);
    }
    /* a window of one minibatch is a random order, sorted within each */
    const int64_t lengths[] = {5, 4, 3, 2, 1, 0};
    int64_t order[6];
    tn_loader *loader = tn_loader_new(numbered(6), .batch = 2, .sampler = tn_length_sampler(6, lengths, .window = 1));
    assert_int_equal(epoch_of(loader, order), 6);
    assert_is_permutation(order, 6);
    for (int i = 0; i < 6; i += 2)
        assert_true(order[i] > order[i + 1]);
    tn_loader_free(loader);
}

/* ---- an order of one's own ---- */

/* The epoch's number, then backwards, then a random one. */
static tn_status own_order(void *user, int64_t epoch, tn_generator *generator, int64_t count, int64_t *rows)
{
    const int *fails = user;
    if (fails && *fails == epoch)
        return TN_ERR_STATE;
    rows[0] = epoch % 10;
    for (int64_t i = 1; i < count - 1; i++)
        rows[i] = -i;
    rows[count - 1] = tn_generator_below(generator, 10);
    if (fails && *fails == 100 + epoch)
        rows[1] = 10;
    return TN_OK;
}

static void own(void **state)
{
    (void)state;
    enum { COUNT = 6, EPOCHS = 4 };
    int64_t expected[EPOCHS][COUNT];
    const tn_device devices[] = {tn_cpu(), test_device(), tn_virtual(0)};
    for (int workers = 0; workers < 4; workers++)
        for (int d = 0; d < 3; d++) {
            tn_loader *loader = tn_loader_new(numbered(10), .batch = 4, .workers = workers, .shuffle = true,
                                              .device = devices[d], .sampler = tn_sampler_of(COUNT, own_order, NULL));
            assert_int_equal(tn_loader_samples(loader), COUNT);
            for (int e = 0; e < EPOCHS; e++) {
                int64_t count = 0, order[COUNT];
                for (tn_batch b; tn_loader_next(loader, &b); count += b.size)
                    TN_SCOPE
                        numbers_of(&b, order + count);
                assert_int_equal(count, COUNT);
                assert_int_equal(order[0], e);
                for (int i = 1; i < COUNT - 1; i++)
                    assert_int_equal(order[i], 10 - i);
                if (workers + d == 0)
                    memcpy(expected[e], order, sizeof order);
                assert_memory_equal(order, expected[e], sizeof order);
            }
            tn_loader_free(loader);
        }
}

static int frees;
static void count_free(void *user)
{
    (void)user;
    frees++;
}

static void errors(void **state)
{
    (void)state;
    const double negative[] = {1, -1}, zeros[] = {0, 0}, huge[] = {1e308, 1e308}, one[] = {1, 0};
    const int64_t two[] = {1, 2};
    static const struct {
        int64_t size, samples;
        bool distinct;
        const char *says;
    } weights[] = {{2, 0, false, "got -1 at place 1"}, {2, 0, false, "0 weights are above 0"},
                   {2, 0, false, "got 1e+308 at place 1"}, {2, 2, true, "2 distinct samples"},
                   {0, 0, false, "1 sample or more"}, {2, -1, false, "drawn or more"}};
    const double *lists[] = {negative, zeros, huge, one, one, one};
    for (int i = 0; i < 6; i++) {
        tn_sampler *sampler = weights[i].samples
                                  ? tn_weighted_sampler(weights[i].size, lists[i], .samples = weights[i].samples,
                                                        .distinct = weights[i].distinct)
                                  : tn_weighted_sampler(weights[i].size, lists[i]);
        assert_int_equal(tn_sampler_status(sampler), TN_ERR_VALUE);
        assert_failed(TN_ERR_VALUE, weights[i].says);
        tn_loader *loader = tn_loader_new(numbered(2), .sampler = sampler); /* has the same error */
        assert_failed(TN_ERR_VALUE, weights[i].says);
        tn_loader_free(loader);
    }
    const tn_sampler *unfit = tn_weighted_sampler(2, one);
    tn_loader *loader = tn_loader_new(numbered(3), .sampler = (tn_sampler *)unfit);
    assert_failed(TN_ERR_VALUE, "made for 2 samples, and the dataset has 3");
    tn_loader_free(loader);
    loader = tn_loader_new(numbered(0), .sampler = tn_sampler_of(2, own_order, NULL));
    assert_failed(TN_ERR_VALUE, "of a dataset that has none");
    tn_loader_free(loader);
    loader = tn_loader_new(numbered(0), .repeat = true);
    assert_failed(TN_ERR_VALUE, "no samples to repeat");
    tn_loader_free(loader);
    loader = tn_loader_new(numbered(2), .repeat = true, .batch = INT64_MAX);
    assert_failed(TN_ERR_VALUE, "larger than the memory");
    tn_loader_free(loader);
    loader = tn_loader_new(numbered(4), .repeat = true, .batch = 2);
    assert_int_equal(tn_loader_set_position(loader, 3, 1), TN_ERR_VALUE);
    assert_int_equal(tn_loader_set_position(loader, 3, 5), TN_ERR_VALUE);
    assert_int_equal(tn_loader_set_position(loader, INT64_MAX, 1), TN_ERR_VALUE);
    tn_clear_error();
    assert_int_equal(tn_loader_set_position(loader, 3, 4), TN_OK);
    assert_int_equal(tn_loader_epoch(loader), 4);
    tn_loader_free(loader);

    tn_sampler_free(tn_length_sampler(2, NULL));
    assert_failed(TN_ERR_VALUE, "got 2 (NULL)");
    tn_sampler_free(tn_length_sampler(2, two, .window = 0));
    assert_failed(TN_ERR_VALUE, "a window of 1 minibatch or more");
    frees = 0;
    tn_sampler_free(tn_sampler_of(3, NULL, NULL, .free_user = count_free));
    assert_failed(TN_ERR_VALUE, "a function that orders samples");
    tn_sampler_free(tn_sampler_of(0, own_order, NULL, .free_user = count_free));
    assert_failed(TN_ERR_VALUE, "1 sample or more");
    for (int fails = 1; fails < 102; fails += 100)
        for (int workers = 0; workers < 3; workers++) {
            tn_loader *own = tn_loader_new(numbered(10), .batch = 2, .workers = workers,
                                           .sampler = tn_sampler_of(4, own_order, &fails, .free_user = count_free));
            int64_t order[4];
            assert_int_equal(epoch_of(own, order), 4);
            tn_batch b;
            assert_false(tn_loader_next(own, &b));
            assert_failed(fails == 1 ? TN_ERR_STATE : TN_ERR_INDEX,
                          fails == 1 ? "for epoch 1" : "got 10 at place 1 of epoch 1");
            tn_loader_free(own);
        }
    assert_int_equal(frees, 8);
}

static tn_status one_epoch(tn_loader *loader)
{
    for (tn_batch b; tn_loader_next(loader, &b);)
        ;
    tn_status status = tn_ok() ? tn_loader_status(loader) : tn_error_code();
    tn_loader_free(loader);
    return status;
}

static tn_status scenario(void *user)
{
    (void)user;
    const double weights[] = {1, 2, 3};
    const int64_t lengths[] = {1, 2, 3};
    tn_status status = one_epoch(tn_loader_new(numbered(3), .batch = 2, .sampler = tn_weighted_sampler(3, weights)));
    if (status == TN_OK)
        status = one_epoch(tn_loader_new(numbered(3), .sampler = tn_weighted_sampler(3, weights, .distinct = true)));
    if (status == TN_OK)
        status = one_epoch(tn_loader_new(numbered(3), .batch = 2, .sampler = tn_length_sampler(3, lengths)));
    if (status == TN_OK)
        status = one_epoch(tn_loader_new(numbered(10), .sampler = tn_sampler_of(6, own_order, NULL)));
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    starve("samplers", scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_chainer_counts), cmocka_unit_test(epochs_joined), cmocka_unit_test(trainer_counts),
        cmocka_unit_test(by_weight),         cmocka_unit_test(distinct),      cmocka_unit_test(by_length),
        cmocka_unit_test(own),               cmocka_unit_test(errors),        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
