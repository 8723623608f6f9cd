/* SPDX-License-Identifier: MIT */
/* Functions that go another way where there is little to tell apart: few different elements, integers close together,
 * few places to insert at or to delete, rows of bits in the host's memory. Each against the other way, or against
 * loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"

static uint64_t seed;

static void same(tn_array *got, tn_array *wanted, const char *what, long long detail)
{
    size_t bytes = (size_t)tn_size(wanted) * tn_dtype_size(tn_dtype_of(wanted));
    void *a = calloc(bytes + 1, 1), *b = calloc(bytes + 1, 1);
    bool good = a && b && tn_size(got) == tn_size(wanted) && tn_dtype_of(got) == tn_dtype_of(wanted) &&
                tn_to_host(got, a, bytes) == TN_OK && tn_to_host(wanted, b, bytes) == TN_OK && memcmp(a, b, bytes) == 0;
    free(a), free(b);
    if (!good)
        fail_msg("%s %lld: seed %llu: %s", what, detail, (unsigned long long)seed,
                 tn_ok() ? "values differ" : tn_error());
}

/* Without counts the different elements may be found by a table, with them by sorting. */
static void test_unique(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_BOOL,  TN_INT8,   TN_UINT8,  TN_INT16,   TN_UINT16,   TN_INT32,   TN_UINT32,
                                      TN_INT64, TN_UINT64, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64};
    static const double spread[] = {0, 3, 40, 300, 1e6}; /* the more, the sooner the table is given up */
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof spread / sizeof *spread; s++)
            TN_SCOPE
            {
                tn_array *x = tn_rint(tn_multiply(tn_random_normal(TN_SHAPE(20011), .dtype = TN_FLOAT64), spread[s]));
                if (tn_dtype_is_float(dtypes[d])) {
                    tn_array *u = tn_random_uniform(TN_SHAPE(20011), .dtype = TN_FLOAT64);
                    x = tn_where(tn_less(u, .01), NAN,
                                 tn_where(tn_less(u, .02), -0.0, tn_where(tn_less(u, .03), INFINITY, x)));
                } else {
                    x = tn_clip(tn_abs(x), 0, 100);
                }
                tn_array *y = tn_cast(x, dtypes[d]), *counts;
                tn_array *sorted = tn_unique(y, .counts = &counts);
                same(tn_unique(y), sorted, tn_dtype_name(dtypes[d]), (long long)spread[s]);
                assert_true(tn_item_int(tn_sum(counts)) == 20011);
            }
}

/* As float64, integers are searched for; as they are, they may be looked up. */
static void test_isin(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_INT8, TN_UINT8, TN_INT32, TN_INT64, TN_UINT64};
    static const double range[] = {1, 100, 20000, 1e9};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t r = 0; r < sizeof range / sizeof *range; r++)
            TN_SCOPE
            {
                double most = tn_dtype_size(dtypes[d]) == 1 && range[r] > 100 ? 100 : range[r];
                bool negative = dtypes[d] != TN_UINT8 && dtypes[d] != TN_UINT64;
                tn_array *x = tn_rint(tn_multiply(tn_random_uniform(TN_SHAPE(3001), .dtype = TN_FLOAT64), most));
                tn_array *set = tn_rint(tn_multiply(tn_random_uniform(TN_SHAPE(77), .dtype = TN_FLOAT64), most / 2));
                x = negative ? tn_subtract(x, tn_floor(most / 2)) : x;
                set = negative ? tn_subtract(set, tn_floor(most / 4)) : set;
                for (int invert = 0; invert < 2; invert++)
                    same(tn_isin(tn_cast(x, dtypes[d]), tn_cast(set, dtypes[d]), invert), tn_isin(x, set, invert),
                         tn_dtype_name(dtypes[d]), (long long)most);
            }
    TN_SCOPE
    {
        const int64_t ends[] = {INT64_MIN, INT64_MAX, 0}, set[] = {INT64_MAX, INT64_MIN};
        const uint64_t high[] = {UINT64_MAX, UINT64_MAX - 1, 5}, members[] = {UINT64_MAX, UINT64_MAX - 3};
        const unsigned char found[] = {1, 1, 0}, first[] = {1, 0, 0};
        same(tn_isin(tn_from_host(ends, TN_SHAPE(3), TN_INT64), tn_from_host(set, TN_SHAPE(2), TN_INT64), false),
             tn_from_host(found, TN_SHAPE(3), TN_BOOL), "ends of int64", 0);
        same(tn_isin(tn_from_host(high, TN_SHAPE(3), TN_UINT64), tn_from_host(members, TN_SHAPE(2), TN_UINT64), false),
             tn_from_host(first, TN_SHAPE(3), TN_BOOL), "ends of uint64", 0);
    }
}

/* n numbers of which some stand at given places, in a matrix of three columns along axis 0 or 1. */
static void test_insert_delete(void **state)
{
    (void)state;
    enum { N = 200, MOST = 120 };
    static const int counts[] = {1, 2, 7, 47, 48, 49, MOST};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        TN_SCOPE
        {
            int count = counts[c];
            int64_t at[MOST], kept[N], places[N + MOST], left = 0, next = 0;
            tn_array *drawn = tn_random_integers(0, N, TN_SHAPE(count));
            assert_int_equal(tn_to_host(drawn, at, sizeof *at * (size_t)count), TN_OK);
            tn_array *x = tn_random_normal(TN_SHAPE(N, 3)), *v = tn_random_normal(TN_SHAPE(count, 3));
            for (int64_t i = 0; i < N; i++) {
                bool gone = false;
                for (int k = 0; k < count; k++) {
                    gone |= at[k] == i;
                    if (at[k] == i)
                        places[next++] = N + k;
                }
                places[next++] = i;
                if (!gone)
                    kept[left++] = i;
            }
            at[0] -= N; /* counted from the end */
            tn_array *rest = tn_take(x, tn_from_host(kept, TN_SHAPE(left), TN_INT64), 0);
            same(tn_delete(x, count, at, TN_AXES(0)), rest, "delete", count);
            same(tn_add(tn_transpose(tn_delete(tn_transpose(x, (tn_axes){0}), count, at, TN_AXES(1)), (tn_axes){0}), 0),
                 rest, "delete", count);
            tn_array *both = tn_concatenate(2, ((const tn_array *const[]){x, v}), 0);
            if (count > 1) /* else v is one row to be inserted in each of its columns */
                same(tn_insert(x, count, at, v, TN_AXES(0)),
                     tn_take(both, tn_from_host(places, TN_SHAPE(next), TN_INT64), 0), "insert", count);
        }
    TN_SCOPE
    {
        int64_t all[] = {2, 0, 1, 1};
        tn_array *x = tn_arange(0, 3, 1);
        assert_true(tn_size(tn_delete(x, 4, all, TN_AXES(0))) == 0);
        same(tn_delete(x, 0, all, TN_AXES(0)), x, "delete none of", 3);
    }
}

static void test_bits(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 7, 8, 9, 64, 301};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int little = 0; little < 2; little++)
            TN_SCOPE
            {
                enum { ROWS = 3, MOST = 304 };
                int64_t n = sizes[s], bytes = (n + 7) / 8;
                unsigned char bit[ROWS * MOST] = {0}, packed[ROWS * MOST] = {0}, unpacked[ROWS * MOST] = {0};
                tn_array *x = tn_less(tn_random_uniform(TN_SHAPE(ROWS, n)), 0.5);
                assert_int_equal(tn_to_host(x, bit, (size_t)(ROWS * n)), TN_OK);
                for (int64_t r = 0; r < ROWS; r++)
                    for (int64_t i = 0; i < n; i++) {
                        packed[r * bytes + i / 8] |= (unsigned char)(bit[r * n + i] << (little ? i % 8 : 7 - i % 8));
                        unpacked[r * 8 * bytes + i] = bit[r * n + i];
                    }
                tn_array *wanted = tn_from_host(packed, TN_SHAPE(ROWS, bytes), TN_UINT8);
                tn_array *bits = tn_from_host(unpacked, TN_SHAPE(ROWS, 8 * bytes), TN_UINT8);
                same(tn_packbits(x, TN_AXES(1), little), wanted, "packbits", n);
                same(tn_packbits(tn_multiply(tn_cast(x, TN_INT32), 6), TN_AXES(-1), little), wanted,
                     "packbits of numbers", n);
                same(tn_add(tn_transpose(tn_packbits(tn_transpose(x, (tn_axes){0}), TN_AXES(0), little), (tn_axes){0}),
                            tn_cast(0, TN_UINT8)),
                     wanted, "packbits along axis 0", n);
                same(tn_unpackbits(wanted, TN_AXES(1), TN_NONE, little), bits, "unpackbits", n);
            }
}

static void test_repeat(void **state)
{
    (void)state;
    TN_SCOPE
    {
        enum { N = 500, MOST = 9 };
        int64_t count[N], place[N * MOST], at = 0;
        assert_int_equal(tn_to_host(tn_random_integers(0, MOST, TN_SHAPE(N)), count, sizeof count), TN_OK);
        for (int64_t i = 0; i < N; i++)
            for (int64_t k = 0; k < count[i]; k++)
                place[at++] = i;
        tn_array *x = tn_random_normal(TN_SHAPE(N)), *counts = tn_from_host(count, TN_SHAPE(N), TN_INT64);
        same(tn_repeat_each(x, counts, TN_AXES(0)), tn_take(x, tn_from_host(place, TN_SHAPE(at), TN_INT64), 0),
             "repeat", N);
        assert_true(tn_size(tn_repeat_each(x, tn_zeros_like(counts), TN_AXES(0))) == 0);
    }
}

/* Without weights elements are counted, with weights of 1 these are added up. */
static void test_bincount(void **state)
{
    (void)state;
    static const int64_t bins[] = {1, 5, 2048, 2049, 30000}, sizes[] = {1, 3, 1001};
    for (size_t b = 0; b < sizeof bins / sizeof *bins; b++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            TN_SCOPE
            {
                tn_array *x = tn_random_integers(0, bins[b], TN_SHAPE(sizes[s]));
                tn_array *sums = tn_cast(tn_bincount(x, tn_ones(TN_SHAPE(sizes[s]), .dtype = TN_FLOAT64), 7), TN_INT64);
                same(tn_bincount(x, NULL, 7), sums, "bincount", bins[b]);
                if (bins[b] < 3e4)
                    same(tn_bincount(tn_cast(x, TN_UINT16), NULL, 7), sums, "bincount of uint16", bins[b]);
            }
}

int main(void)
{
    seed = (uint64_t)time(NULL);
    tn_seed(seed);
    tn_set_compile(TN_COMPILE_NEVER); /* hundreds of small graphs */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unique),        cmocka_unit_test(test_isin),
                                       cmocka_unit_test(test_insert_delete), cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_repeat),        cmocka_unit_test(test_bincount)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
