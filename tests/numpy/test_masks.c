/* SPDX-License-Identifier: MIT */
/* Masks and positions of all sizes against loops on the host: what is true, what masks get and set, who wrote last,
 * sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

static const int64_t sizes[] = {1, 31, 32, 33, 1000, 8191, 8192, 8193, 20001, 1100003};
enum { SIZES = sizeof sizes / sizeof *sizes };

static uint32_t mixed(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static bool same(tn_array *a, tn_array *b)
{
    return tn_size(a) == tn_size(b) && (tn_size(a) == 0 || tn_item_int(tn_all(tn_equal(a, b))) == 1);
}

/* One of `one_in` is true; 0: none. */
static unsigned char *some_true(int64_t n, uint32_t one_in)
{
    unsigned char *mask = malloc((size_t)n);
    assert_non_null(mask);
    for (int64_t i = 0; i < n; i++)
        mask[i] = one_in && mixed((uint32_t)i + 7 * one_in) % one_in == 0;
    return mask;
}

static void test_true_positions(void **state)
{
    (void)state;
    static const uint32_t one_in[] = {0, 1, 2, 50};
    for (int s = 0; s < SIZES; s++)
        for (int k = 0; k < 4; k++)
            TN_SCOPE {
                int64_t n = sizes[s], count = 0, *places = malloc(sizeof *places * (size_t)(n + 1));
                unsigned char *mask = some_true(n, one_in[k]);
                for (int64_t i = 0; i < n; i++)
                    if (mask[i])
                        places[count++] = i;
                tn_array *x = tn_from_host(mask, TN_SHAPE(n), TN_BOOL);
                tn_array *expected = tn_from_host(places, TN_SHAPE(count), TN_INT64);
                tn_array *numbers = tn_arange(0, (double)n, 1, .dtype = TN_INT64);
                assert_true(same(tn_flatnonzero(x), expected));
                assert_true(same(tn_get(numbers, TN_PICK(x)), expected));
                assert_true(same(tn_flatnonzero(tn_cast(x, TN_FLOAT32)), expected));
                /* every second one from behind, and from the second one on */
                tn_array *back = tn_flatnonzero(tn_flip(x, TN_AXES(0)));
                assert_true(same(tn_flip(tn_subtract((double)(n - 1), back), TN_AXES(0)), expected));
                tn_array *odd = tn_multiply(tn_cast(x, TN_INT64), tn_remainder(numbers, 2));
                assert_true(
                    same(tn_add(tn_multiply(tn_flatnonzero(tn_slice_axis(x, 0, 1, n, 2)), 2), 1), tn_flatnonzero(odd)));
                assert_true(tn_ok());
                free(mask);
                free(places);
            }
}

/* Where the value does not vary, the mask chooses; the same with a value for each true element goes by their
 * positions. */
static void compare_set(tn_array *x, tn_array *value, int count, const tn_key *keys)
{
    tn_array *taken = tn_getitem(x, count, keys);
    tn_array *each = tn_add(tn_multiply(taken, 0), value);
    tn_array *given[] = {tn_index_update(x, value, count, keys), tn_index_add(x, value, count, keys)};
    tn_array *by_position[] = {tn_index_update(x, each, count, keys), tn_index_add(x, each, count, keys)};
    tn_array *good =
        tn_logical_and(tn_all(tn_equal(given[0], by_position[0])), tn_all(tn_equal(given[1], by_position[1])));
    if (tn_item_int(good) != 1 || !tn_ok())
        fail_msg("%d keys: %s", count, tn_ok() ? "other elements" : tn_error());
}

static void test_set(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 4 * 5 * 6, 1, .dtype = TN_FLOAT32), TN_SHAPE(4, 5, 6));
        tn_array *all = tn_greater(tn_remainder(x, 7), 3), *rows = tn_index(tn_index(all, 1), 2);
        tn_array *planes = tn_reshape(tn_slice_axis(tn_slice_axis(all, 2, 0, 1, 1), 1, 0, 1, 1), TN_SHAPE(4));
        tn_array *two = tn_reshape(tn_slice_axis(all, 2, 3, 4, 1), TN_SHAPE(4, 5));
        tn_array *one = tn_full(TN_SHAPE(1, 1), 9), *six = tn_arange(0, 6, 1, .dtype = TN_FLOAT32);
        tn_array *column = tn_reshape(tn_arange(0, 5, 1, .dtype = TN_FLOAT32), TN_SHAPE(5, 1));
        compare_set(x, one, 1, (const tn_key[]){TN_PICK(all)});
        compare_set(x, one, 1, (const tn_key[]){TN_PICK(planes)});
        compare_set(x, six, 1, (const tn_key[]){TN_PICK(planes)});
        compare_set(x, column, 1, (const tn_key[]){TN_PICK(planes)});
        compare_set(x, six, 1, (const tn_key[]){TN_PICK(two)});
        compare_set(x, tn_reshape(six, TN_SHAPE(1, 6)), 1, (const tn_key[]){TN_PICK(two)});
        compare_set(x, one, 2, (const tn_key[]){TN_DOTS, TN_PICK(rows)});
        compare_set(x, column, 2, (const tn_key[]){TN_DOTS, TN_PICK(rows)});
        compare_set(x, one, 3, (const tn_key[]){TN_I(1), TN_RANGE(4, 0, -2), TN_PICK(rows)});
        compare_set(x, column, 3, (const tn_key[]){TN_RANGE(1, 3, 1), TN_WHOLE, TN_PICK(rows)});
        compare_set(x, six, 3, (const tn_key[]){TN_PICK(two), TN_NEWAXIS, TN_WHOLE});
        tn_array *empty = tn_zeros(TN_SHAPE(0, 3));
        tn_array *none = tn_cast(empty, TN_BOOL);
        assert_int_equal(tn_size(tn_index_update(empty, one, 1, (const tn_key[]){TN_PICK(none)})), 0);
        /* a value that does not fit, a mask that does not */
        assert_true(tn_is_error(tn_index_update(x, tn_zeros(TN_SHAPE(4)), 1, (const tn_key[]){TN_PICK(planes)})));
        tn_clear_error();
        assert_true(tn_is_error(tn_index_update(x, one, 1, (const tn_key[]){TN_PICK(rows)})));
        tn_clear_error();
        tn_array *g[2], *y = tn_requires_grad(tn_multiply(x, 1)), *v = tn_requires_grad(tn_multiply(six, 1));
        tn_array *sum = tn_sum(tn_square(tn_index_update(y, v, 1, (const tn_key[]){TN_PICK(two)})));
        assert_int_equal(tn_gradients(sum, 2, (const tn_array *[]){y, v}, false, g), TN_OK);
        tn_array *mask = tn_broadcast_to(tn_expand_dims(two, 2), TN_SHAPE(4, 5, 6));
        assert_true(same(g[0], tn_where(mask, 0, tn_multiply(x, 2))));
        assert_true(same(g[1], tn_multiply(tn_multiply(six, 2), tn_sum(tn_cast(two, TN_FLOAT32)))));
    }
}

/* Many terms at positions that repeat, rows of them and single ones: the last one stays; sums are right and the same
 * each time. */
static void test_repeated(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{50, 70, 3},  {3000, 500, 8}, {40, 3000, 5},
                                        {5000, 1, 1}, {7, 20001, 1},  {100000, 300, 1}};
    for (int s = 0; s < 6; s++)
        TN_SCOPE {
            int64_t extent = shapes[s][0], count = shapes[s][1], width = shapes[s][2];
            int64_t *places = malloc(sizeof *places * (size_t)count);
            float *base = calloc((size_t)(extent * width), sizeof *base);
            float *terms = calloc((size_t)(count * width), sizeof *terms);
            for (int64_t i = 0; i < count; i++)
                places[i] = (int64_t)(mixed((uint32_t)i) % (uint32_t)extent) - (i % 3 == 0 ? extent : 0);
            for (int64_t i = 0; i < count * width; i++)
                terms[i] = (float)(mixed((uint32_t)i + 99) % 1000);
            tn_array *at = tn_from_host(places, TN_SHAPE(count), TN_INT64);
            tn_array *y = tn_from_host(terms, TN_SHAPE(count, width), TN_FLOAT32);
            tn_array *x = tn_from_host(base, TN_SHAPE(extent, width), TN_FLOAT32);
            tn_array *in_place = tn_add(x, 0);
            assert_int_equal(tn_eval(in_place), TN_OK);
            tn_array *set = tn_scatter_set(x, at, y, 0);
            tn_array *sums = tn_scatter_add(x, at, y, 0), *thirds = tn_divide(y, 3), *twice[2];
            for (int k = 0; k < 2; k++) {
                twice[k] = tn_scatter_add(x, at, thirds, 0);
                assert_int_equal(tn_eval(twice[k]), TN_OK);
            }
            assert_int_equal(tn_set(in_place, y, TN_PICK(at)), TN_OK);
            float *last = calloc((size_t)(extent * width), sizeof *last);
            for (int64_t i = 0; i < count * width; i++) {
                int64_t row = places[i / width] + (places[i / width] < 0 ? extent : 0);
                last[row * width + i % width] = terms[i];
                base[row * width + i % width] += terms[i];
            }
            tn_array *expected = tn_from_host(last, TN_SHAPE(extent, width), TN_FLOAT32);
            assert_true(same(set, expected));
            assert_true(same(in_place, expected));
            assert_true(same(sums, tn_from_host(base, TN_SHAPE(extent, width), TN_FLOAT32)));
            assert_true(same(twice[0], twice[1]));
            /* each column its own positions */
            tn_array *own = tn_broadcast_to(tn_expand_dims(at, 1), TN_SHAPE(count, width)), *along = tn_add(x, 0);
            assert_int_equal(tn_put_along_axis(along, tn_add(own, 0), y, 0), TN_OK);
            assert_true(same(along, expected));
            assert_true(tn_ok());
            free(places);
            free(base);
            free(terms);
            free(last);
        }
}

static void test_permutation(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 100000; n = n * 7 + 1)
        TN_SCOPE {
            tn_generator g = {.key = 5}, h = g;
            tn_array *order = tn_random_permutation(n, .generator = &g);
            tn_array *on_host = tn_random_permutation(n, .generator = &h, .device = tn_cpu());
            assert_int_equal(tn_size(order), n);
            if (n) {
                assert_true(same(tn_sort(order), tn_arange(0, (double)n, 1, .dtype = TN_INT64)));
                assert_true(same(order, tn_to(on_host, tn_current_device())));
            }
            assert_true(n < 100 || !same(order, tn_random_permutation(n, .generator = &g)));
            assert_true(tn_ok());
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_true_positions), cmocka_unit_test(test_set),
                                       cmocka_unit_test(test_repeated), cmocka_unit_test(test_permutation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
