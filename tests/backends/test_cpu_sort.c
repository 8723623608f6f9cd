/* SPDX-License-Identifier: MIT */
/* Sorting rows on the CPU: values bit for bit, and places, against the C library's sort with places deciding between
 * equal elements; by one thread and by three, for rows that are inserted, parted, dealt out by all digits, by the
 * highest ones only, and by these in vain; and many short rows, by a network. Searching sorted rows. */
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

static uint64_t seed;
static const tn_dtype dtypes[] = {TN_BOOL,   TN_INT8,  TN_UINT8,  TN_INT16,   TN_UINT16,   TN_INT32,  TN_UINT32,
                                  TN_INT64,  TN_UINT64, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64};
enum { SPREAD, EQUAL, ODD, CLOSE, WIDE, FAR, CROWDED, FALLING, KINDS };

/* Numbers spread, often equal, with NaN and zeros of both signs, close to 1, of all sizes, far from 0, most of them
 * crowded, falling. */
static tn_array *numbers(int64_t n, int kind)
{
    tn_array *x = tn_random_normal(TN_SHAPE(n), .dtype = TN_FLOAT64),
             *u = tn_random_uniform(TN_SHAPE(n), .dtype = TN_FLOAT64);
    switch (kind) {
    case EQUAL: return tn_rint(tn_multiply(x, 3));
    case ODD: return tn_where(tn_less(u, .1), NAN, tn_where(tn_less(u, .2), -0.0, tn_where(tn_less(u, .3), 0.0, x)));
    case CLOSE: return tn_add(1, tn_multiply(x, 1e-7));
    case WIDE: return tn_exp(tn_multiply(x, 9));
    case FAR: return tn_add(1e9, tn_rint(tn_multiply(x, 1000)));
    case CROWDED: return tn_where(tn_less(u, .01), tn_multiply(x, 1e8), tn_add(1, tn_multiply(x, 1e-12)));
    case FALLING: return tn_arange(n, 0, -1, .dtype = TN_FLOAT64);
    default: return tn_multiply(x, 40);
    }
}

static tn_array *row(int64_t n, tn_dtype dtype, int kind)
{
    tn_array *x = numbers(n, kind);
    if (!tn_dtype_is_float(dtype)) { /* in the dtype's range */
        double most = dtype == TN_BOOL ? 1 : ldexp(1, 8 * (int)tn_dtype_size(dtype) - 1) - 1;
        x = tn_where(tn_isnan(x), 1, tn_clip(x, -1e9, 2e9));
        x = tn_remainder(tn_dtype_is_float(dtype) || dtype == TN_INT32 || dtype == TN_INT64 ? x : tn_abs(x),
                         most < 2e9 ? most : 2e9);
    }
    return tn_cast(x, dtype);
}

static const double *compared;
static int by_value_then_place(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    double x = compared[i], y = compared[j];
    if (isnan(x) != isnan(y))
        return isnan(x) ? 1 : -1;
    if (!isnan(x) && x != y)
        return x < y ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void check(tn_array *x, const char *what)
{
    int64_t n = tn_dim(x, 0);
    size_t size = tn_dtype_size(tn_dtype_of(x)), bytes = (size_t)n * size, wide = (size_t)n * sizeof(double);
    double *value = malloc(wide);
    int64_t *order = malloc(wide), *found = malloc(wide);
    char *from = malloc(bytes), *to = malloc(bytes);
    assert_true(value && order && found && from && to);
    assert_int_equal(tn_to_host(tn_cast(x, TN_FLOAT64), value, wide), TN_OK);
    assert_int_equal(tn_to_host(x, from, bytes), TN_OK);
    assert_int_equal(tn_to_host(tn_sort(x), to, bytes), TN_OK);
    assert_int_equal(tn_to_host(tn_argsort(x), found, wide), TN_OK);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    compared = value;
    qsort(order, (size_t)n, sizeof *order, by_value_then_place);
    for (int64_t i = 0; i < n; i++)
        if (found[i] != order[i] || memcmp(to + i * (int64_t)size, from + order[i] * (int64_t)size, size) != 0)
            fail_msg("%s of %lld %s, threads %d, place %lld: seed %llu", what, (long long)n,
                     tn_dtype_name(tn_dtype_of(x)), tn_threads(), (long long)i, (unsigned long long)seed);
    free(value), free(order), free(found), free(from), free(to);
}

static void test_rows(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 48, 49, 96, 300, 5000};
    static const char *const names[] = {"spread", "equal", "odd", "close", "wide", "far", "crowded", "falling"};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int kind = 0; kind < KINDS; kind++)
                TN_SCOPE { check(row(sizes[s], dtypes[d], kind), names[kind]); }
}

/* Short rows, which are sorted several at a time, against each by itself, and rows just too long for that. */
static void test_short_rows(void **state)
{
    (void)state;
    static const int64_t sizes[] = {2, 7, 9, 100, 1024, 1025};
    enum { ROWS = 11 };
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            TN_SCOPE {
                tn_array *each[ROWS];
                for (int r = 0; r < ROWS; r++)
                    each[r] = row(sizes[s], dtypes[d], r % KINDS);
                tn_array *all = tn_stack(ROWS, (const tn_array *const *)each, 0), *sorted = tn_sort(all),
                         *order = tn_argsort(all);
                for (int r = 0; r < ROWS; r++)
                    for (int positions = 0; positions < 2; positions++) {
                        tn_array *one = positions ? tn_argsort(each[r]) : tn_sort(each[r]),
                                 *of_all = positions ? order : sorted;
                        size_t bytes = (size_t)tn_size(one) * tn_dtype_size(tn_dtype_of(one));
                        char *wanted = malloc(bytes), *got = malloc(ROWS * bytes);
                        assert_true(wanted && got);
                        assert_int_equal(tn_to_host(one, wanted, bytes), TN_OK);
                        assert_int_equal(tn_to_host(of_all, got, ROWS * bytes), TN_OK);
                        if (memcmp(wanted, got + (size_t)r * bytes, bytes) != 0)
                            fail_msg("row %d of %lld %s, positions %d: seed %llu", r, (long long)sizes[s],
                                     tn_dtype_name(dtypes[d]), positions, (unsigned long long)seed);
                        free(wanted), free(got);
                    }
            }
}

/* Long enough for all threads to sort one row together, more of them than share it evenly. */
static void test_threads(void **state)
{
    (void)state;
    static const tn_dtype long_ones[] = {TN_FLOAT32, TN_FLOAT64, TN_INT64};
    int threads = tn_threads();
    tn_set_threads(3);
    for (size_t d = 0; d < sizeof long_ones / sizeof *long_ones; d++)
        for (int kind = 0; kind < KINDS; kind++)
            TN_SCOPE { check(row(40001, long_ones[d], kind), "together"); }
    tn_set_threads(threads);
}

/* Rows that lie across others, and results that do: axis 0 of a matrix. */
static void test_strided(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_array *x = row(7 * 300, TN_FLOAT32, ODD), *m = tn_reshape(x, TN_SHAPE(300, 7));
        tn_array *sorted = tn_sort(m, .axis = TN_AXES(0)), *order = tn_argsort(m, .axis = TN_AXES(0));
        for (int64_t c = 0; c < 7; c++) {
            tn_array *column = tn_add(tn_reshape(tn_slice_axis(m, 1, c, c + 1, 1), TN_SHAPE(300)), 0);
            tn_array *same =
                tn_equal(tn_sort(column), tn_reshape(tn_slice_axis(sorted, 1, c, c + 1, 1), TN_SHAPE(300)));
            assert_true(tn_item(tn_all(tn_logical_or(same, tn_isnan(tn_sort(column))))) == 1);
            assert_true(tn_item(tn_all(tn_equal(tn_argsort(column), tn_reshape(tn_slice_axis(order, 1, c, c + 1, 1),
                                                                               TN_SHAPE(300))))) == 1);
        }
    }
}

/* Searching among elements that rise evenly, about evenly, and not, on either side of equal ones, against counting. */
static void test_searches(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 8, 9, 100};
    static const double unevenness[] = {0, 0.4, 2.5};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int u = 0; u < 3; u++)
                TN_SCOPE {
                    int64_t n = sizes[s], m = 6 * n + 40;
                    bool real = tn_dtype_is_float(dtypes[d]);
                    tn_array *shift = tn_multiply(tn_random_uniform(TN_SHAPE(n), .dtype = TN_FLOAT64), unevenness[u]);
                    tn_array *even =
                        tn_multiply(tn_add(tn_arange(0, (double)n, 1, .dtype = TN_FLOAT64), shift), real ? 0.7 : 1.2);
                    tn_array *sorted = tn_sort(tn_cast(even, dtypes[d]));
                    tn_array *spread =
                        tn_multiply(tn_random_uniform(TN_SHAPE(m), .dtype = TN_FLOAT64), 1.3 * (double)n);
                    tn_array *odd = tn_cast(real ? tn_concatenate(3,
                                                                  (const tn_array *[]){tn_full(TN_SHAPE(1), NAN),
                                                                                       tn_full(TN_SHAPE(1), INFINITY),
                                                                                       tn_full(TN_SHAPE(1), -INFINITY)},
                                                                  0)
                                                 : tn_zeros(TN_SHAPE(3)),
                                            dtypes[d]);
                    tn_array *values =
                        tn_concatenate(3, (const tn_array *[]){tn_cast(spread, dtypes[d]), sorted, odd}, 0);
                    tn_array *across = tn_reshape(values, TN_SHAPE(m + n + 3, 1));
                    tn_array *later = tn_logical_and(tn_isnan(across), tn_logical_not(tn_isnan(sorted)));
                    tn_array *before = tn_logical_or(tn_less(sorted, across), later), *same = tn_equal(sorted, across);
                    for (int right = 0; right < 2; right++) {
                        tn_array *wanted =
                            tn_count_nonzero(right ? tn_logical_or(before, same) : before, .axis = TN_AXES(1));
                        tn_array *got = tn_searchsorted(sorted, values, .right = right);
                        if (tn_item(tn_all(tn_equal(wanted, got))) != 1)
                            fail_msg("%s, %lld elements, unevenness %g, right %d: seed %llu%s",
                                     tn_dtype_name(dtypes[d]), (long long)n, unevenness[u], right,
                                     (unsigned long long)seed, tn_error());
                    }
                }
}

int main(void)
{
    tn_set_compile(TN_COMPILE_NEVER); /* steps of the same functions, without a compiler for what is around them */
    seed = (uint64_t)time(NULL);
    tn_seed(seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_short_rows),
                                       cmocka_unit_test(test_threads), cmocka_unit_test(test_strided),
                                       cmocka_unit_test(test_searches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
