/* SPDX-License-Identifier: MIT */
/* Samples that functions make: the same in every thread, epoch after epoch, in datasets made of others. */
#include <stdatomic.h>
#include <tanso/dataset.h>
#include "data/check.h"
#include "support/starve.h"

enum { COUNT = 23 };
static const tn_sample_type pair = {TN_FLOAT32, {1, {2}}}, label = {TN_INT64, {0, {0}}};

/* What `user` of these functions is. */
typedef struct counts {
    atomic_int calls, frees;
    int64_t bad; /* the sample that cannot be made; -1: none */
} counts;

static tn_status make(void *user, int64_t i, tn_generator *generator, void *x, void *t)
{
    counts *c = user;
    atomic_fetch_add(&c->calls, 1);
    if (i == c->bad)
        return TN_ERR_IO;
    ((float *)x)[0] = (float)i;
    ((float *)x)[1] = (float)tn_generator_uniform(generator);
    *(int64_t *)t = i % 5;
    return TN_OK;
}

static void count_free(void *user) { atomic_fetch_add(&((counts *)user)->frees, 1); }

/* x doubled in float64, the target one number more. */
static tn_status twice(void *user, const void *x, const void *t, tn_generator *generator, void *new_x, void *new_t)
{
    (void)user;
    ((double *)new_x)[0] = 2 * ((const float *)x)[0];
    ((double *)new_x)[1] = tn_generator_uniform(generator);
    *(int64_t *)new_t = *(const int64_t *)t + 1;
    return TN_OK;
}

static tn_dataset *made(counts *c)
{
    return tn_dataset_of(COUNT, pair, label, make, c, .classes = 5, .free_user = count_free);
}

/* All numbers that a loader gives in some epochs, x then t, and frees it. */
static int64_t collect(tn_loader *loader, int epochs, double *numbers)
{
    int64_t count = 0;
    tn_batch b;
    for (int epoch = 0; epoch < epochs; epoch++)
        while (tn_loader_next(loader, &b)) {
            tn_array *x = tn_to_cpu(b.x), *t = tn_to_cpu(b.t);
            for (int64_t i = 0; i < tn_size(x); i++)
                numbers[count++] = ((const float *)tn_data(x))[i];
            for (int64_t i = 0; i < b.size; i++)
                numbers[count++] = (double)((const int64_t *)tn_data(t))[i];
        }
    assert_string_equal(tn_error(), "");
    tn_loader_free(loader);
    return count;
}

static tn_loader *load(counts *c, bool shuffle, int workers, bool no_prefetch)
{
    return tn_loader_new(made(c), .batch = 4, .shuffle = shuffle, .seed = 9, .no_prefetch = no_prefetch,
                         .workers = workers, .device = test_device());
}

/* Whoever makes the samples, they and their random numbers are the same; another epoch has others. */
static void threads_agree(void **state)
{
    (void)state;
    enum { ALL = 3 * COUNT };
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        counts c = {.bad = -1};
        double expected[3 * ALL], got[3 * ALL];
        assert_int_equal(collect(load(&c, shuffle, 0, true), 3, expected), 3 * ALL);
        assert_int_equal(atomic_load(&c.calls), 3 * COUNT);
        assert_memory_not_equal(expected, expected + ALL, ALL * sizeof *expected);
        for (int workers = 0; workers <= 7; workers++) {
            assert_int_equal(collect(load(&c, shuffle, workers, false), 3, got), 3 * ALL);
            assert_memory_equal(got, expected, sizeof expected);
        }
        /* from a later epoch on */
        tn_loader *loader = load(&c, shuffle, 3, false);
        tn_batch b;
        assert_true(tn_loader_next(loader, &b));
        assert_int_equal(tn_loader_set_epoch(loader, 2), TN_OK);
        assert_int_equal(collect(loader, 1, got), ALL);
        assert_memory_equal(got, expected + 2 * ALL, ALL * sizeof *got);
        assert_int_equal(atomic_load(&c.frees), 10);
    }
}

/* Several workers gather what lies in memory, too. */
static void workers_on_arrays(void **state)
{
    (void)state;
    counts c = {.bad = -1};
    double expected[6 * COUNT], got[6 * COUNT];
    tn_dataset *source = made(&c);
    tn_dataset *arrays = tn_dataset_arrays(tn_dataset_x(source), tn_dataset_t(source));
    for (int workers = 0; workers < 5; workers++) {
        tn_loader *loader = tn_loader_new(arrays, .batch = 5, .shuffle = true, .workers = workers, .keep_dataset = true,
                                          .device = test_device());
        assert_int_equal(collect(loader, 2, workers ? got : expected), 6 * COUNT);
        assert_true(!workers || memcmp(got, expected, sizeof got) == 0);
    }
    tn_dataset_free(arrays);
    tn_dataset_free(source);
}

static void all_at_once(void **state)
{
    (void)state;
    counts c = {.bad = -1};
    tn_dataset *dataset = made(&c);
    assert_int_equal(tn_dataset_size(dataset), COUNT);
    assert_int_equal(tn_dataset_classes(dataset), 5);
    assert_int_equal(atomic_load(&c.calls), 0);
    const float *x = tn_data(tn_dataset_x(dataset));
    const int64_t *t = tn_data(tn_dataset_t(dataset));
    for (int64_t i = 0; i < COUNT; i++) {
        assert_true(x[2 * i] == (float)i && x[2 * i + 1] >= 0 && x[2 * i + 1] < 1);
        assert_int_equal(t[i], i % 5);
        assert_true(i == 0 || x[2 * i + 1] != x[2 * i - 1]);
    }
    assert_int_equal(atomic_load(&c.calls), COUNT); /* once for both */
    tn_dataset_free(dataset);
    assert_int_equal(atomic_load(&c.frees), 1);
}

static void transforms(void **state)
{
    (void)state;
    counts c = {.bad = -1};
    const tn_sample_type wide = {TN_FLOAT64, {1, {2}}};
    tn_dataset *inner = made(&c), *outer = tn_dataset_transform(inner, wide, label, twice, NULL);
    tn_dataset *part = tn_dataset_slice(outer, 3, 5), *both = tn_dataset_concat(part, outer);
    tn_dataset *chosen = tn_dataset_subset(both, 2, (int64_t[]){-1, 0});
    tn_dataset_free(inner);
    tn_dataset_free(outer);
    tn_dataset_free(part);
    tn_dataset_free(both);
    assert_int_equal(atomic_load(&c.frees), 0); /* the last one holds it */
    const double *x = tn_data(tn_dataset_x(chosen));
    const int64_t *t = tn_data(tn_dataset_t(chosen));
    assert_true(x[0] == 2 * (COUNT - 1) && x[2] == 6);
    assert_true(t[0] == (COUNT - 1) % 5 + 1 && t[1] == 4);
    assert_int_equal(tn_dataset_classes(chosen), 5);
    tn_dataset_free(chosen);
    assert_int_equal(atomic_load(&c.frees), 1);

    /* of arrays, beside arrays */
    tn_dataset *digits = tn_digits_raw(), *few = tn_dataset_slice(digits, 0, 3);
    tn_dataset *joined = tn_dataset_concat(few, few);
    assert_int_equal(tn_dataset_size(joined), 6);
    tn_dataset_free(joined);
    tn_dataset *train, *rest;
    outer = tn_dataset_transform(digits, pair, label, (tn_transform_fn)twice, NULL);
    assert_int_equal(tn_dataset_split(outer, 1000, &train, &rest, .shuffle = true), TN_OK);
    assert_int_equal(tn_dataset_size(rest), 797);
    assert_int_equal(tn_dataset_classes(rest), 10);
    tn_dataset_free(train);
    tn_dataset_free(rest);
    tn_dataset_free(outer);
    tn_dataset_free(few);
    tn_dataset_free(digits);
}

/* A sample that cannot be made ends the loader, with the reason, at its own minibatch. */
static void failures(void **state)
{
    (void)state;
    for (int workers = 0; workers < 4; workers++) {
        counts c = {.bad = 9};
        tn_loader *loader = load(&c, false, workers, workers == 0);
        tn_batch b;
        assert_true(tn_loader_next(loader, &b));
        assert_true(tn_loader_next(loader, &b));
        assert_false(tn_loader_next(loader, &b));
        assert_failed(TN_ERR_IO, "the function that makes samples gave TN_ERR_IO for sample 9");
        assert_int_equal(tn_loader_status(loader), TN_ERR_IO);
        tn_loader_free(loader);
    }
    counts c = {.bad = 2};
    tn_dataset *dataset = made(&c);
    assert_true(tn_is_error(tn_dataset_x(dataset)));
    assert_failed(TN_ERR_IO, "for sample 2");
    tn_dataset_free(dataset);
}

static void assert_refused(tn_dataset *dataset, tn_status status, const char *words)
{
    assert_int_equal(tn_dataset_status(dataset), status);
    assert_failed(status, words);
    tn_dataset_free(dataset);
}

static void bad_arguments(void **state)
{
    (void)state;
    counts c = {.bad = -1};
    const tn_sample_type none = {0}, deep = {TN_FLOAT32, {8, {1, 1, 1, 1, 1, 1, 1, 1}}}, less = {TN_INT8, {1, {-1}}};
    assert_refused(tn_dataset_of(-1, pair, label, make, &c, .free_user = count_free), TN_ERR_VALUE, "got -1");
    assert_int_equal(atomic_load(&c.frees), 1);
    assert_refused(tn_dataset_of(1, pair, label, NULL, &c), TN_ERR_VALUE, "a function");
    assert_refused(tn_dataset_of(1, none, label, make, &c), TN_ERR_DTYPE, "a sample's x, got none");
    assert_refused(tn_dataset_of(1, pair, deep, make, &c), TN_ERR_SHAPE, "t of fewer than 8 axes, got 8");
    assert_refused(tn_dataset_of(1, less, label, make, &c), TN_ERR_SHAPE, "-1");
    assert_refused(tn_dataset_transform(NULL, pair, label, twice, &c), TN_ERR_VALUE, "a dataset");
    tn_dataset *dataset = made(&c);
    assert_refused(tn_dataset_transform(dataset, pair, label, NULL, &c), TN_ERR_VALUE, "a function");
    assert_refused(tn_dataset_subset(dataset, 1, (int64_t[]){COUNT}), TN_ERR_INDEX, "23 samples");
    tn_loader *loader = tn_loader_new(dataset, .workers = 33, .device = test_device());
    assert_failed(TN_ERR_VALUE, "1 to 32 workers");
    tn_loader_free(loader);
    loader = tn_loader_new(tn_dataset_of(0, pair, label, make, &c), .workers = 3, .device = test_device());
    tn_batch b;
    assert_false(tn_loader_next(loader, &b));
    assert_int_equal(tn_loader_status(loader), TN_OK);
    tn_loader_free(loader);
}

/* Uniform numbers lie in [0, 1), integers below their bound, normal ones are as often on each side of 0. */
static void draws(void **state)
{
    (void)state;
    tn_generator g = {.key = test_seed_new()};
    int left = 0, seen[7] = {0};
    for (int i = 0; i < 10000; i++) {
        double u = tn_generator_uniform(&g);
        assert_true(u >= 0 && u < 1);
        seen[tn_generator_below(&g, 7)]++;
        left += tn_generator_normal(&g) < 0;
    }
    assert_int_equal(g.counter, 30000);
    assert_true(left > 4700 && left < 5300); /* six deviations */
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 1200 && seen[i] < 1660);
    assert_int_equal(tn_generator_below(&g, 0), 0);
    assert_int_equal(tn_generator_below(NULL, 5), 0);
}

static tn_status use_everything(void *user)
{
    tn_dataset *inner = made(user), *outer = tn_dataset_transform(inner, pair, label, (tn_transform_fn)twice, NULL);
    tn_dataset *part = tn_dataset_slice(outer, 2, 9), *both = tn_dataset_concat(part, inner);
    tn_loader *loader = tn_loader_new(part, .batch = 3, .no_prefetch = true, .device = test_device());
    tn_batch b;
    while (tn_loader_next(loader, &b))
        ;
    tn_status status = tn_error_code();
    tn_loader_free(loader);
    tn_dataset_free(both);
    tn_dataset_free(outer);
    tn_dataset_free(inner);
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    counts c = {.bad = -1};
    starve("sources", use_everything, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_agree), cmocka_unit_test(workers_on_arrays), cmocka_unit_test(all_at_once),
        cmocka_unit_test(transforms),    cmocka_unit_test(failures),          cmocka_unit_test(bad_arguments),
        cmocka_unit_test(draws),         cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
