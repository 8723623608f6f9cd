/* SPDX-License-Identifier: MIT */
/* Samples of any number of arrays, of different lengths, and kept ones: what loaders and parts of them have. */
#include <stdatomic.h>
#include <tanso/autograd.h>
#include <tanso/sampler.h>
#include "data/check.h"
#include "support/starve.h"

enum { COUNT = 11 };

/* Field k of sample i is i + 100 k, as often as the field is wide: of widths 1, 2, 3, ... and several dtypes. */
static tn_array *field(int k, int64_t count)
{
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_INT64, TN_UINT8, TN_FLOAT64, TN_INT32};
    tn_array *column = tn_reshape(tn_arange_int64(0, count, 1), TN_SHAPE(count, 1));
    return tn_cast(tn_add(tn_broadcast_to(column, TN_SHAPE(count, k + 1)), 100 * (k % 2)), dtypes[k % 5]);
}

static const char *const names[] = {"a", "b", "c", "d", "e"};

static tn_dataset *fields(int count, int64_t samples)
{
    tn_dataset *dataset = NULL;
    TN_SCOPE {
        tn_field list[5];
        for (int k = 0; k < count; k++)
            list[k] = (tn_field){names[k], field(k, samples)};
        dataset = tn_dataset_fields_of(count, list);
    }
    return dataset;
}

/* The number of sample i of a field, all elements of which agree. */
static int64_t number(const tn_array *x, int64_t i, int k)
{
    int64_t value = 0;
    TN_SCOPE {
        tn_array *row = tn_cast(tn_slice_axis(tn_to_cpu(x), 0, i, i + 1, 1), TN_INT64);
        assert_int_equal(tn_size(row), k + 1);
        value = ((const int64_t *)tn_data(row))[0];
        for (int j = 1; j <= k; j++)
            assert_int_equal(((const int64_t *)tn_data(row))[j], value);
    }
    return value - 100 * (k % 2);
}

/* All fields of a minibatch are of the same samples, whose numbers go to order[]. */
static void check_batch(const tn_batch *b, int count, int64_t *order)
{
    assert_int_equal(b->field_count, count);
    assert_ptr_equal(b->fields[0], b->x);
    assert_true(count == 1 ? tn_size(b->t) == 0 : b->fields[1] == b->t);
    for (int k = 0; k < count; k++) {
        assert_string_equal(b->names[k], names[k]);
        assert_ptr_equal(tn_batch_field(b, names[k]), b->fields[k]);
        assert_int_equal(tn_dim(b->fields[k], 0), b->size);
        for (int64_t i = 0; i < b->size; i++) {
            int64_t found = number(b->fields[k], i, k);
            assert_true(k == 0 || found == order[i]);
            order[i] = found;
        }
    }
}

static void loaded(void **state)
{
    (void)state;
    const tn_device devices[] = {tn_cpu(), test_device(), tn_virtual(0)};
    for (int count = 1; count <= 5; count++)
        for (int mode = 0; mode < 12; mode++) {
            bool shuffle = mode & 1;
            int64_t expected[2 * COUNT], got[2 * COUNT], total = 0;
            tn_loader *plain = tn_loader_new(fields(1, COUNT), .batch = 4, .shuffle = shuffle, .seed = 3);
            for (int e = 0; e < 2; e++)
                for (tn_batch b; tn_loader_next(plain, &b); total += b.size)
                    check_batch(&b, 1, expected + total);
            tn_loader_free(plain);
            tn_loader *loader = tn_loader_new(fields(count, COUNT), .batch = 4, .shuffle = shuffle, .seed = 3,
                                              .workers = mode / 2 % 2 ? 3 : 0, .device = devices[mode / 4]);
            tn_batch b;
            assert_true(tn_loader_next(loader, &b)); /* and from the beginning again */
            assert_int_equal(tn_loader_set_epoch(loader, 0), TN_OK);
            total = 0;
            for (int e = 0; e < 2; e++) {
                while (tn_loader_next(loader, &b)) {
                    check_batch(&b, count, got + total);
                    total += b.size;
                    assert_int_equal(tn_loader_to(loader, devices[total % 3]), TN_OK);
                }
                assert_string_equal(tn_error(), "");
            }
            assert_int_equal(total, 2 * COUNT);
            assert_memory_equal(got, expected, sizeof got);
            assert_int_equal(tn_loader_set_position(loader, 1, 8), TN_OK);
            assert_true(tn_loader_next(loader, &b));
            check_batch(&b, count, got);
            assert_memory_equal(got, expected + COUNT + 8, 3 * sizeof *got);
            tn_loader_free(loader);
        }
}

/* Parts, joined ones, choices, kept ones and stretches have all fields. */
static void parts(void **state)
{
    (void)state;
    for (int count = 1; count <= 5; count++) {
        tn_dataset *all = fields(count, COUNT), *first, *rest;
        assert_int_equal(tn_dataset_field_count(all), count);
        assert_int_equal(tn_dataset_split(all, 4, &first, &rest, .shuffle = true), TN_OK);
        const int64_t rows[] = {2, -1, 2};
        tn_dataset *made[] = {tn_dataset_concat(first, rest), tn_dataset_subset(all, 3, rows), tn_dataset_cache(all),
                              tn_dataset_slice(all, 3, -2), tn_dataset_fold(all, 3, 1, TN_TRAIN)};
        static const int64_t sizes[] = {COUNT, 3, COUNT, COUNT - 5, 7};
        tn_dataset_free(all);
        tn_dataset_free(first);
        tn_dataset_free(rest);
        for (int m = 0; m < 5; m++) {
            int64_t order[COUNT];
            assert_int_equal(tn_dataset_size(made[m]), sizes[m]);
            assert_int_equal(tn_dataset_field_count(made[m]), count);
            for (int k = 0; k < count; k++) {
                assert_string_equal(tn_dataset_field_name(made[m], k), names[k]);
                for (int64_t i = 0; i < sizes[m]; i++) {
                    int64_t found = number(tn_dataset_field(made[m], names[k]), i, k);
                    assert_true(k == 0 || found == order[i]);
                    order[i] = found;
                }
            }
            assert_true(m != 1 || (order[0] == 2 && order[1] == COUNT - 1 && order[2] == 2));
            tn_dataset_free(made[m]);
        }
    }
}

static void zipped(void **state)
{
    (void)state;
    tn_dataset *one = fields(3, COUNT), *spiral = tn_spiral(4, 1), *part = tn_dataset_slice(spiral, 0, COUNT);
    tn_dataset *both = tn_dataset_zip(one, part, part, one);
    static const char *const expected[] = {"a", "b", "c", "x", "t", "x5", "t6", "a7", "b8", "c9"};
    assert_int_equal(tn_dataset_field_count(both), 10);
    for (int i = 0; i < 10; i++)
        assert_string_equal(tn_dataset_field_name(both, i), expected[i]);
    assert_int_equal(number(tn_dataset_field(both, "c9"), 5, 2), 5);
    assert_memory_equal(tn_data(tn_dataset_field(both, "t6")), tn_data(tn_dataset_t(part)), COUNT * sizeof(int64_t));
    tn_dataset_free(both);
    both = tn_dataset_zip(one, spiral);
    assert_failed(TN_ERR_SHAPE, "got 11 and 12");
    tn_dataset_free(both);
    tn_dataset_free(one);
    tn_dataset_free(spiral);
    tn_dataset_free(part);
}

/* ---- kept ---- */

static tn_status make(void *user, int64_t i, tn_generator *generator, void *x, void *t)
{
    int fails = *(int *)user;
    if (i == fails)
        return TN_ERR_IO;
    ((double *)x)[0] = (double)i + tn_generator_uniform(generator);
    *(int64_t *)t = i;
    return TN_OK;
}

static atomic_int calls;
static tn_status count_make(void *user, int64_t i, tn_generator *generator, void *x, void *t)
{
    atomic_fetch_add(&calls, 1);
    return make(user, i, generator, x, t);
}

static void kept(void **state)
{
    (void)state;
    const tn_sample_type x = {TN_FLOAT64, {1, {1}}}, t = {.dtype = TN_INT64};
    int fails = -1;
    tn_dataset *source = tn_dataset_of(COUNT, x, t, count_make, &fails, .classes = COUNT);
    tn_dataset *cached = tn_dataset_cache(source), *part = tn_dataset_slice(cached, 1, 5);
    assert_int_equal(tn_dataset_classes(cached), COUNT);
    atomic_store(&calls, 0);
    double first[COUNT];
    for (int workers = 0; workers < 4; workers++) { /* from any epoch on, by any number of threads, the same numbers */
        tn_loader *loader = tn_loader_new(cached, .batch = 3, .shuffle = true, .seed = (uint64_t)workers,
                                          .workers = workers, .keep_dataset = true);
        assert_int_equal(tn_loader_set_epoch(loader, 3 - workers), TN_OK);
        for (tn_batch b; tn_loader_next(loader, &b);)
            for (int64_t i = 0; i < b.size; i++) {
                int64_t row = ((const int64_t *)test_data(b.t))[i];
                double value = ((const double *)test_data(b.x))[i];
                assert_true(workers == 0 || value == first[row]);
                first[row] = value;
            }
        tn_loader_free(loader);
        assert_true(workers > 0 || atomic_load(&calls) == COUNT);
    }
    assert_int_equal(atomic_load(&calls), COUNT);
    assert_memory_equal(tn_data(tn_dataset_x(part)), first + 1, 4 * sizeof *first);
    assert_int_equal(atomic_load(&calls), COUNT);
    assert_memory_equal(tn_data(tn_dataset_x(source)), first, sizeof first); /* epoch 0 of seed 0 */
    tn_dataset_free(part);
    tn_dataset_free(cached);
    tn_dataset_free(source);
    fails = 2;
    source = tn_dataset_of(COUNT, x, t, make, &fails);
    cached = tn_dataset_cache(source);
    tn_dataset_x(cached);
    assert_failed(TN_ERR_IO, "for sample 2");
    fails = -1;
    assert_int_equal(tn_dim(tn_dataset_x(cached), 0), COUNT); /* not for ever */
    tn_dataset_free(cached);
    tn_dataset_free(source);
}

/* ---- different lengths ---- */

/* Sample i has i % 4 steps (of two elements each), i at each. */
static tn_dataset *ragged(int64_t count, double padding, int64_t multiple)
{
    tn_dataset *dataset = NULL;
    TN_SCOPE {
        tn_array *t = tn_arange_int64(0, count, 1), *lengths = tn_remainder(t, 4);
        tn_array *steps = tn_cast(tn_repeat_each(t, lengths, TN_AXES(0)), TN_FLOAT32);
        tn_array *values = tn_stack(2, (const tn_array *[]){steps, tn_negative(steps)}, 1);
        dataset = tn_dataset_ragged(values, lengths, t, .padding = padding, .multiple = multiple);
    }
    return dataset;
}

static void check_ragged(const tn_batch *b, double padding, int64_t multiple)
{
    int64_t longest = 0, steps = tn_dim(b->x, 1);
    const float *x = test_data(b->x);
    const int64_t *t = test_data(b->t), *length = test_data(tn_batch_field(b, "length"));
    for (int64_t i = 0; i < b->size; i++) {
        assert_int_equal(length[i], t[i] % 4);
        longest = length[i] > longest ? length[i] : longest;
        for (int64_t k = 0; k < steps; k++, x += 2) {
            assert_true(x[0] == (float)(k < length[i] ? (double)t[i] : padding));
            assert_true(x[1] == (float)(k < length[i] ? -(double)t[i] : padding));
        }
    }
    assert_int_equal(steps, (longest + multiple - 1) / multiple * multiple);
}

static void padded(void **state)
{
    (void)state;
    const tn_device devices[] = {tn_cpu(), test_device(), tn_virtual(0)};
    for (int64_t multiple = 1; multiple < 6; multiple++)
        for (int mode = 0; mode < 12; mode++) {
            double padding = mode % 2 ? -1 : 0;
            tn_dataset *all = ragged(COUNT, padding, multiple), *dataset = all;
            if (mode % 3 == 1)
                dataset = tn_dataset_slice(all, 1, 9);
            if (mode % 3 == 2)
                dataset = tn_dataset_cache(all);
            int64_t count = 0, size = tn_dataset_size(dataset);
            tn_loader *loader = tn_loader_new(dataset, .batch = 3, .shuffle = mode % 2 == 0, .workers = mode % 4,
                                              .device = devices[mode / 4]);
            for (int e = 0; e < 2; e++)
                for (tn_batch b; tn_loader_next(loader, &b); count += b.size)
                    TN_SCOPE
                        check_ragged(&b, padding, multiple);
            assert_string_equal(tn_error(), "");
            assert_int_equal(count, 2 * size);
            tn_loader_free(loader);
            if (dataset != all)
                tn_dataset_free(all);
        }
    tn_dataset *all = ragged(2, 0, 1); /* one without steps, and one with one */
    assert_true(tn_dim(tn_dataset_x(all), 1) == 1 && tn_dataset_classes(all) == 2);
    tn_dataset_free(all);
    all = ragged(0, 0, 1);
    assert_int_equal(tn_dataset_status(all), TN_OK);
    assert_int_equal(tn_dataset_size(all), 0);
    tn_dataset_free(all);
}

/* Arrays of one shape, and of several, with gradients. */
static void examples(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *a = tn_requires_grad(tn_ones(TN_SHAPE(2, 3), .device = test_device()));
        tn_array *b = tn_full(TN_SHAPE(1, 4), 2, .device = test_device());
        tn_array *all = tn_concat_examples(TN_ARRAYS(a, b), .padding = -1);
        static const float expected[] = {1, 1, 1, -1, 1, 1, 1, -1, 2, 2, 2, 2, -1, -1, -1, -1};
        assert_true(tn_ndim(all) == 3 && tn_dim(all, 1) == 2 && tn_dim(all, 2) == 4);
        assert_memory_equal(test_data(all), expected, sizeof expected);
        tn_backward(tn_sum(all));
        assert_true(tn_item(tn_sum(tn_grad(a))) == 6);
        assert_int_equal(tn_dim(tn_concat_examples(TN_ARRAYS(b, b, b)), 0), 3);
        assert_true(tn_item(tn_sum(tn_concat_examples(TN_ARRAYS(a, b), .padding = 0))) == 14);
        assert_true(tn_is_error(tn_concat_examples(TN_ARRAYS(a, b))));
        assert_failed(TN_ERR_SHAPE, ".padding fills up");
        assert_true(tn_is_error(tn_concat_examples(TN_ARRAYS(b, tn_cast(b, TN_INT8)), .padding = 0)));
        assert_failed(TN_ERR_SHAPE, "array 1 has another dtype");
        assert_true(tn_is_error(tn_concat_examples(0, NULL)));
        assert_failed(TN_ERR_VALUE, "at least one array");
    }
}

static void errors(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(3)), *y = tn_ones(TN_SHAPE(4)), *n = tn_from_int64s((int64_t[]){1, 1, 2}, 3);
        tn_dataset *bad[] = {tn_dataset_fields_of(0, NULL),
                             tn_dataset_fields({"a", x}, {"a", x}),
                             tn_dataset_fields({"", x}),
                             tn_dataset_fields({"a", x}, {"b", x}, {"c", y}),
                             tn_dataset_fields({"a", x}, {"b", y}),
                             tn_dataset_fields({"a", NULL}),
                             tn_dataset_zip_of(0, NULL),
                             tn_dataset_ragged(y, n, y),
                             tn_dataset_ragged(y, x, x),
                             tn_dataset_ragged(x, n, x),
                             tn_dataset_ragged(tn_ones(TN_SHAPE(5)), n, x),
                             tn_dataset_ragged(y, tn_negative(n), x),
                             tn_dataset_ragged(y, n, x, .multiple = 0),
                             tn_dataset_ragged(NULL, n, x)};
        static const tn_status expected[] = {TN_ERR_VALUE, TN_ERR_NAME,  TN_ERR_NAME,  TN_ERR_SHAPE, TN_ERR_SHAPE,
                                             TN_ERR_VALUE, TN_ERR_VALUE, TN_ERR_SHAPE, TN_ERR_DTYPE, TN_ERR_VALUE,
                                             TN_ERR_VALUE, TN_ERR_VALUE, TN_ERR_VALUE, TN_ERR_VALUE};
        for (int i = 0; i < 14; i++) {
            if (tn_dataset_status(bad[i]) != expected[i])
                fail_msg("%d: %s", i, tn_status_name(tn_dataset_status(bad[i])));
            tn_dataset_free(bad[i]);
        }
        tn_clear_error();
        tn_dataset *three = tn_dataset_fields({"a", x}, {"b", x}, {"c", x}), *two = tn_dataset_arrays(x, x);
        assert_true(tn_is_error(tn_dataset_field(three, "d")));
        assert_failed(TN_ERR_NAME, "no field \"d\"; the first is \"a\"");
        assert_string_equal(tn_dataset_field_name(three, 3), "");
        assert_failed(TN_ERR_INDEX, "one of 3 fields");
        tn_dataset_free(tn_dataset_concat(three, two));
        assert_failed(TN_ERR_SHAPE, "as many arrays each, got 3 and 2");
        tn_dataset_free(tn_dataset_images(three, .pad = 1));
        assert_false(tn_ok());
        tn_clear_error();
        tn_batch empty = {0};
        assert_true(tn_is_error(tn_batch_field(&empty, "a")));
        assert_failed(TN_ERR_VALUE, "an empty one");
        tn_dataset_free(three);
        tn_dataset_free(two);
    }
}

static tn_status scenario(void *user)
{
    (void)user;
    tn_status status = TN_OK;
    for (int i = 0; i < 3 && status == TN_OK; i++) {
        tn_dataset *all = i < 2 ? fields(4 + i, 3) : ragged(3, 0, 1), *both = tn_dataset_zip(all, all);
        tn_dataset *part = tn_dataset_cache(both);
        tn_dataset_free(all);
        tn_dataset_free(both);
        tn_loader *loader = tn_loader_new(part, .batch = 2, .shuffle = true, .no_prefetch = true);
        for (tn_batch b; tn_loader_next(loader, &b);)
            ;
        status = tn_ok() ? tn_loader_status(loader) : tn_error_code();
        tn_loader_free(loader);
    }
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    starve("fields", scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded), cmocka_unit_test(parts),    cmocka_unit_test(zipped), cmocka_unit_test(kept),
        cmocka_unit_test(padded), cmocka_unit_test(examples), cmocka_unit_test(errors), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
