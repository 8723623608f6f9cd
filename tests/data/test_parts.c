/* SPDX-License-Identifier: MIT */
/* Datasets made of other datasets: which samples are in them, and what is said of those that cannot be made. */
#include <tanso/dataset.h>
#include "data/check.h"
#include "support/starve.h"

/* Sample i is (i, -i), its target i mod 7. */
static tn_dataset *numbered(int64_t count)
{
    float *x = calloc((size_t)count * 2 + 1, sizeof *x);
    int64_t *t = calloc((size_t)count + 1, sizeof *t);
    for (int64_t i = 0; i < count; i++) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = (float)-i;
        t[i] = i % 7;
    }
    tn_dataset *dataset = NULL;
    TN_SCOPE
        dataset = tn_dataset_arrays(tn_from_host(x, TN_SHAPE(count, 2), TN_FLOAT32),
                                    tn_from_host(t, TN_SHAPE(count), TN_INT64));
    free(x);
    free(t);
    return dataset;
}

/* The number of sample i, all of whose parts must belong together. */
static int64_t number(const tn_dataset *dataset, int64_t i)
{
    const float *x = tn_data(tn_dataset_x(dataset));
    const int64_t *t = tn_data(tn_dataset_t(dataset));
    int64_t n = (int64_t)x[2 * i];
    assert_true(x[2 * i + 1] == (float)-n);
    assert_int_equal(t[i], n % 7);
    return n;
}

static void assert_numbers(tn_dataset *dataset, int64_t count, const int64_t *numbers)
{
    assert_int_equal(tn_dataset_status(dataset), TN_OK);
    assert_int_equal(tn_dataset_size(dataset), count);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(number(dataset, i), numbers[i]);
    tn_dataset_free(dataset);
}

static void assert_dataset_failed(tn_dataset *dataset, tn_status status, const char *words)
{
    assert_int_equal(tn_dataset_status(dataset), status);
    assert_int_equal(tn_dataset_size(dataset), 0);
    assert_failed(status, words);
    tn_dataset_free(dataset);
}

static void slices(void **state)
{
    (void)state;
    tn_dataset *all = numbered(10);
    tn_dataset *middle = tn_dataset_slice(all, 3, 6), *end = tn_dataset_slice(all, -2, 100);
    tn_dataset *inner = tn_dataset_slice(middle, 1, -1), *none = tn_dataset_slice(all, 6, 3);
    /* they share memory, and outlive what they were cut out of */
    assert_ptr_equal(tn_data(tn_dataset_x(middle)), (const float *)tn_data(tn_dataset_x(all)) + 6);
    assert_int_equal(tn_dataset_classes(middle), 7);
    tn_dataset_free(all);
    assert_numbers(middle, 3, (int64_t[]){3, 4, 5});
    assert_numbers(end, 2, (int64_t[]){8, 9});
    assert_numbers(inner, 1, (int64_t[]){4});
    assert_numbers(none, 0, NULL);
}

static void subsets(void **state)
{
    (void)state;
    tn_dataset *all = numbered(10);
    assert_numbers(tn_dataset_subset(all, 4, (int64_t[]){7, -1, 7, 0}), 4, (int64_t[]){7, 9, 7, 0});
    assert_numbers(tn_dataset_subset(all, 0, NULL), 0, NULL);
    assert_dataset_failed(tn_dataset_subset(all, 2, (int64_t[]){1, 10}), TN_ERR_INDEX,
                          "positions of 10 samples, got 10 at place 1");
    assert_dataset_failed(tn_dataset_subset(all, 1, (int64_t[]){-11}), TN_ERR_INDEX, "got -11 at place 0");
    assert_dataset_failed(tn_dataset_subset(all, -1, NULL), TN_ERR_VALUE, "0 samples or more, got -1");
    assert_dataset_failed(tn_dataset_subset(all, 1, NULL), TN_ERR_VALUE, "NULL");
    tn_dataset_free(all);
}

static void joined(void **state)
{
    (void)state;
    tn_dataset *all = numbered(5), *part = tn_dataset_slice(all, 3, 5), *none = tn_dataset_slice(all, 0, 0);
    assert_numbers(tn_dataset_concat(part, none, all, part), 9, (int64_t[]){3, 4, 0, 1, 2, 3, 4, 3, 4});
    assert_numbers(tn_dataset_concat(none), 0, NULL);
    tn_dataset *wide = tn_dataset_arrays(tn_zeros(TN_SHAPE(2, 3)), tn_zeros(TN_SHAPE(2), .dtype = TN_INT64));
    tn_dataset *values = tn_dataset_arrays(tn_zeros(TN_SHAPE(2, 2)), tn_zeros(TN_SHAPE(2)));
    assert_dataset_failed(tn_dataset_concat(all, wide), TN_ERR_SHAPE,
                          "expected samples of one dtype and shape, got float32 (2,) and float32 (3,)");
    assert_dataset_failed(tn_dataset_concat(all, values), TN_ERR_SHAPE, "targets of one dtype");
    assert_dataset_failed(tn_dataset_concat_of(0, NULL), TN_ERR_VALUE, "at least one dataset");
    tn_dataset_free(wide);
    tn_dataset_free(values);
    tn_dataset_free(none);
    tn_dataset_free(part);
    tn_dataset_free(all);
}

/* Marks the samples of a dataset, none of which may have been marked before; whether they rise. */
static bool mark(const tn_dataset *dataset, bool *seen)
{
    bool rising = true;
    for (int64_t i = 0, before = -1; i < tn_dataset_size(dataset); i++) {
        int64_t n = number(dataset, i);
        assert_false(seen[n]);
        seen[n] = true;
        rising &= n > before;
        before = n;
    }
    return rising;
}

static void splits(void **state)
{
    (void)state;
    enum { COUNT = 101 };
    tn_dataset *all = numbered(COUNT), *first, *rest, *again[2];
    assert_int_equal(tn_dataset_split(all, 40, &first, &rest), TN_OK);
    assert_int_equal(number(first, 39), 39);
    assert_int_equal(number(rest, 0), 40);
    tn_dataset_free(first);
    tn_dataset_free(rest);
    for (uint64_t seed = 0; seed < 3; seed++) {
        bool seen[COUNT] = {false};
        assert_int_equal(tn_dataset_split(all, 40, &first, &rest, .shuffle = true, .seed = seed), TN_OK);
        assert_int_equal(tn_dataset_split(all, 40, &again[0], &again[1], .shuffle = true, .seed = seed), TN_OK);
        assert_int_equal(tn_dataset_size(first), 40);
        assert_int_equal(tn_dataset_size(rest), 61);
        assert_false(mark(first, seen));
        assert_false(mark(rest, seen));
        for (int64_t i = 0; i < 40; i++)
            assert_int_equal(number(first, i), number(again[0], i));
        tn_dataset_free(first);
        tn_dataset_free(rest);
        tn_dataset_free(again[0]);
        tn_dataset_free(again[1]);
    }
    for (int64_t size = -1; size <= COUNT + 1; size += COUNT + 2) {
        assert_int_equal(tn_dataset_split(all, size, &first, &rest), TN_ERR_VALUE);
        assert_failed(TN_ERR_VALUE, "expected 0 to 101 samples");
        tn_dataset_free(first);
        tn_dataset_free(rest);
    }
    tn_dataset_free(all);
}

/* Parts are as long as Chainer's borders n i / parts make them, and together are all samples; a fold has all that its
 * part has not. */
static void parts_and_folds(void **state)
{
    (void)state;
    enum { COUNT = 23 };
    tn_dataset *all = numbered(COUNT);
    for (int parts = 1; parts <= COUNT + 2; parts += 3)
        for (int shuffled = 0; shuffled < 2; shuffled++) {
            bool seen[COUNT] = {false};
            for (int i = 0; i < parts; i++) {
                bool both[COUNT] = {false};
                tn_dataset *part = tn_dataset_part(all, parts, i, .shuffle = shuffled, .seed = 3);
                tn_dataset *test = tn_dataset_fold(all, parts, i, TN_TEST, .shuffle = shuffled, .seed = 3);
                tn_dataset *train = tn_dataset_fold(all, parts, i, TN_TRAIN, .shuffle = shuffled, .seed = 3);
                assert_int_equal(tn_dataset_size(part), COUNT * (i + 1) / parts - COUNT * i / parts);
                for (int64_t j = 0; j < tn_dataset_size(part); j++)
                    assert_int_equal(number(part, j), number(test, j));
                mark(part, seen);
                mark(test, both);
                assert_true(mark(train, both) || shuffled);
                assert_int_equal(tn_dataset_size(train) + tn_dataset_size(test), COUNT);
                tn_dataset_free(part);
                tn_dataset_free(test);
                tn_dataset_free(train);
            }
            for (int j = 0; j < COUNT; j++)
                assert_true(seen[j]);
        }
    assert_dataset_failed(tn_dataset_part(all, 3, 3), TN_ERR_VALUE, "got part 3 of 3");
    assert_dataset_failed(tn_dataset_fold(all, 0, 0, TN_TEST), TN_ERR_VALUE, "got fold 0 of 0");
    tn_dataset_free(all);
}

static void of_failed(void **state)
{
    (void)state;
    tn_dataset *bad = tn_dataset_arrays(tn_zeros(TN_SHAPE(3)), tn_zeros(TN_SHAPE(2))), *first, *rest;
    tn_clear_error();
    assert_dataset_failed(tn_dataset_slice(bad, 0, 1), TN_ERR_SHAPE, "same number of samples");
    assert_dataset_failed(tn_dataset_concat(bad, bad), TN_ERR_SHAPE, "same number of samples");
    assert_dataset_failed(tn_dataset_subset(NULL, 0, NULL), TN_ERR_VALUE, "a dataset");
    assert_int_equal(tn_dataset_split(bad, 0, &first, &rest), TN_ERR_SHAPE);
    tn_clear_error();
    tn_dataset_free(first);
    tn_dataset_free(rest);
    tn_dataset_free(bad);
}

static tn_status make_everything(void *user)
{
    const tn_dataset *all = user;
    tn_dataset *made[6];
    tn_status status = TN_OK;
    made[0] = tn_dataset_slice(all, 1, 3);
    made[1] = tn_dataset_subset(all, 3, (int64_t[]){1, 2, 1});
    made[2] = tn_dataset_concat(all, all);
    made[3] = tn_dataset_fold(all, 3, 1, TN_TRAIN, .shuffle = true);
    (void)!tn_dataset_split(all, 4, &made[4], &made[5], .shuffle = true);
    for (int i = 0; i < 6; i++) {
        status = status == TN_OK ? tn_dataset_status(made[i]) : status;
        tn_dataset_free(made[i]);
    }
    return status;
}

/* Whichever allocation fails: an error, and nothing is lost. */
static void no_memory(void **state)
{
    (void)state;
    tn_dataset *all = numbered(9);
    starve("parts", make_everything, all);
    tn_dataset_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),    cmocka_unit_test(subsets),         cmocka_unit_test(joined),
        cmocka_unit_test(splits),    cmocka_unit_test(parts_and_folds), cmocka_unit_test(of_failed),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
