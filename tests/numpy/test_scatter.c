/* SPDX-License-Identifier: MIT */
/* Sums of few and many terms at few and many positions, against sums of the host's in long double: all within a few
 * roundings, the same bits each time, and what no term goes to left alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

static test_random fresh;

typedef enum kind { ANYWHERE, ALL_AT_ONE, SORTED, KINDS } kind;

/* Terms [count, places] go to base [extent, places] along axis 0, or both lie the other way round, along axis 1. */
typedef struct sums {
    tn_dtype dtype;
    int64_t count, extent, places;
    int axis;
    bool strided; /* terms are every second of more, positions come from the last to the first */
    kind kind;
    int64_t *position;
    double *base, *term; /* parts of complex numbers beside one another */
} sums;

static int parts(const sums *s) { return tn_dtype_is_complex(s->dtype) ? 2 : 1; }

static size_t at(const sums *s, int64_t i, int64_t n, int64_t place, int part)
{
    int64_t element = s->axis == 0 ? i * s->places + place : place * n + i;
    return (size_t)(element * parts(s) + part);
}

/* Numbers that the dtype has; in float16 all sums, too. */
static double some_number(const sums *s)
{
    double x = 2 * test_random_double(&fresh) - 1;
    return s->dtype == TN_FLOAT16 ? (x < 0 ? -1 : 1) : s->dtype == TN_FLOAT64 ? x : (double)(float)x;
}

/* Of ten positions, no term goes to one, and only zeros, most of them -0.0, to another, which has -0.0. */
static bool is_left_alone(const sums *s, int64_t k) { return s->extent >= 10 && k % 10 == 3; }
static bool has_zeros(const sums *s, int64_t k) { return s->extent >= 10 && k % 10 == 5; }

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void make(sums *s)
{
    size_t bases = (size_t)(s->extent * s->places * parts(s)), terms = (size_t)(s->count * s->places * parts(s));
    s->position = malloc(sizeof *s->position * (size_t)s->count);
    s->base = malloc(sizeof *s->base * bases);
    s->term = malloc(sizeof *s->term * terms);
    assert_true(s->position && s->base && s->term);
    int64_t one = test_random_int(&fresh, 0, s->extent - 1);
    for (int64_t j = 0; j < s->count; j++) {
        int64_t k = s->kind == ALL_AT_ONE ? one : test_random_int(&fresh, 0, s->extent - 1);
        s->position[j] = is_left_alone(s, k) ? k - 1 : k;
    }
    if (s->kind == SORTED)
        qsort(s->position, (size_t)s->count, sizeof *s->position, ascending);
    for (size_t i = 0; i < bases; i++)
        s->base[i] = some_number(s);
    for (size_t i = 0; i < terms; i++)
        s->term[i] = some_number(s);
    for (int64_t k = 0; k < s->extent; k++)
        for (int64_t i = 0; i < s->places * parts(s) && (is_left_alone(s, k) || has_zeros(s, k)); i++)
            s->base[at(s, k, s->extent, i / parts(s), (int)(i % parts(s)))] =
                is_left_alone(s, k) && k % 20 == 3 && s->dtype != TN_FLOAT16 ? of_bits(0x7ff8123400000000u) : -0.0;
    for (int64_t j = 0; j < s->count; j++) {
        for (int64_t i = 0; i < s->places * parts(s) && has_zeros(s, s->position[j]); i++)
            s->term[at(s, j, s->count, i / parts(s), (int)(i % parts(s)))] =
                test_random_int(&fresh, 0, 99) ? -0.0 : 0.0;
        s->position[j] -= test_random_int(&fresh, 0, 2) ? 0 : s->extent;
    }
}

static void clean(sums *s)
{
    free(s->position);
    free(s->base);
    free(s->term);
}

/* Every `step`th of the array's elements along the axis are those of x; others are in between. */
static tn_array *array_of(const sums *s, const double *x, int64_t n, int step)
{
    size_t size = (size_t)(n * step * s->places * parts(s));
    double *wide = malloc(sizeof *wide * size);
    float *narrow = malloc(sizeof *narrow * size);
    assert_true(wide && narrow);
    for (size_t i = 0; i < size; i++)
        wide[i] = 100;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < s->places * parts(s); k++) {
            int64_t place = k / parts(s);
            int part = (int)(k % parts(s));
            wide[at(s, i * step, n * step, place, part)] = x[at(s, i, n, place, part)];
        }
    for (size_t i = 0; i < size; i++)
        narrow[i] = (float)wide[i];
    tn_dtype dtype = s->dtype == TN_FLOAT16 ? TN_FLOAT32 : s->dtype;
    const void *host = s->dtype == TN_FLOAT64 ? (const void *)wide : narrow;
    tn_array *y = s->axis == 0 ? tn_from_host(host, TN_SHAPE(n * step, s->places), dtype)
                               : tn_from_host(host, TN_SHAPE(s->places, n * step), dtype);
    y = tn_cast(y, s->dtype);
    assert_int_equal(tn_eval(y), TN_OK);
    free(wide);
    free(narrow);
    const tn_key part = TN_RANGE(TN_NONE, TN_NONE, step);
    return step == 1 ? y : s->axis == 0 ? tn_get(y, part) : tn_get(y, TN_WHOLE, part);
}

static tn_array *positions_of(const sums *s)
{
    int64_t *backwards = malloc(sizeof *backwards * (size_t)s->count);
    assert_non_null(backwards);
    for (int64_t j = 0; j < s->count; j++)
        backwards[s->count - 1 - j] = s->position[j];
    tn_array *x = s->strided ? tn_flip(tn_from_host(backwards, TN_SHAPE(s->count), TN_INT64), TN_AXES(0))
                             : tn_from_host(s->position, TN_SHAPE(s->count), TN_INT64);
    free(backwards);
    return x;
}

/* In the dtype's own bytes, but float16 as float32. */
static void *bytes_of(const sums *s, const tn_array *x, size_t *size)
{
    tn_array *y = s->dtype == TN_FLOAT16 ? tn_cast(x, TN_FLOAT32) : tn_cast(x, s->dtype);
    *size = (size_t)tn_size(y) * tn_dtype_size(tn_dtype_of(y));
    void *bytes = malloc(*size);
    assert_non_null(bytes);
    if (tn_to_host(y, bytes, *size) != TN_OK)
        fail_msg("%s", tn_error());
    return bytes;
}

static void near(const sums *s, const void *result, const void *base)
{
    size_t each = s->dtype == TN_FLOAT64 ? sizeof(double) : sizeof(float);
    size_t size = (size_t)(s->extent * s->places * parts(s));
    long double *sum = calloc(size, sizeof *sum), *most = calloc(size, sizeof *most);
    assert_true(sum && most);
    for (size_t i = 0; i < size; i++)
        sum[i] = -0.0L; /* which changes no zero */
    for (int64_t j = 0; j < s->count; j++) {
        int64_t k = s->position[j] + (s->position[j] < 0 ? s->extent : 0);
        for (int64_t i = 0; i < s->places * parts(s); i++) {
            size_t to = at(s, k, s->extent, i / parts(s), (int)(i % parts(s)));
            double term = s->term[at(s, j, s->count, i / parts(s), (int)(i % parts(s)))];
            sum[to] += term;
            most[to] += fabs(term);
        }
    }
    for (int64_t k = 0; k < s->extent; k++)
        for (int64_t i = 0; i < s->places * parts(s); i++) {
            size_t to = at(s, k, s->extent, i / parts(s), (int)(i % parts(s)));
            double got = each == sizeof(double) ? ((const double *)result)[to] : ((const float *)result)[to];
            long double off = fabsl(got - (s->base[to] + sum[to])), unit = each == sizeof(double) ? 0x1p-53 : 0x1p-24;
            long double limit = s->dtype == TN_FLOAT16 ? 0 : 16 * unit * (most[to] + fabs(s->base[to]));
            bool same = memcmp((const char *)result + to * each, (const char *)base + to * each, each) == 0;
            if (is_left_alone(s, k) ? !same : !(off <= limit) || (has_zeros(s, k) && same != !!signbit(sum[to])))
                fail_msg("%s: %lld terms, %lld of %lld positions (%lld places along axis %d, kind %d%s): %.17g, off "
                         "by %Lg",
                         tn_dtype_name(s->dtype), (long long)s->count, (long long)k, (long long)s->extent,
                         (long long)s->places, 1 - s->axis, s->kind, s->strided ? ", strided" : "", got, off);
        }
    free(sum);
    free(most);
}

/* One position out of range: above, or below. */
static void refuses(sums *s, const tn_array *x, const tn_array *terms)
{
    char index[32];
    int64_t *wrong = &s->position[test_random_int(&fresh, 0, s->count - 1)], good = *wrong;
    *wrong = test_random_int(&fresh, 0, 1) ? s->extent : -s->extent - 1;
    snprintf(index, sizeof index, "index %lld ", (long long)*wrong);
    tn_array *y = tn_scatter_add(x, positions_of(s), terms, s->axis);
    tn_item(tn_sum(tn_real(y)));
    assert_int_equal(tn_error_code(), TN_ERR_INDEX);
    if (strstr(tn_error(), index) == NULL)
        fail_msg("no \"%s\" in: %s", index, tn_error());
    tn_clear_error();
    *wrong = good;
}

static void check(tn_dtype dtype, int64_t count, int64_t extent, int64_t places, int axis, kind kind)
{
    sums s = {.dtype = dtype, .count = count, .extent = extent, .places = places, .axis = axis, .kind = kind,
              .strided = test_random_int(&fresh, 0, 2) == 0};
    make(&s);
    TN_SCOPE {
        tn_array *x = array_of(&s, s.base, extent, 1), *terms = array_of(&s, s.term, count, s.strided ? 2 : 1);
        size_t size[3];
        void *bytes[3] = {bytes_of(&s, x, &size[2])};
        for (int k = 1; k < 3; k++)
            bytes[k] = bytes_of(&s, tn_scatter_add(x, positions_of(&s), terms, axis), &size[k]);
        near(&s, bytes[1], bytes[0]);
        assert_memory_equal(bytes[1], bytes[2], size[1]);
        for (int k = 0; k < 3; k++)
            free(bytes[k]);
        if (test_random_int(&fresh, 0, 3) == 0)
            refuses(&s, x, terms);
        assert_true(tn_ok());
    }
    clean(&s);
}

static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_COMPLEX64};

/* On a GPU, so many positions have room in 48 KiB. */
static int64_t most_positions(tn_dtype dtype)
{
    return (48 << 10) / (dtype == TN_FLOAT64 || dtype == TN_COMPLEX64 ? 8 : 4) - 1;
}

static void test_counts(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 256, 257, 5000, 100003};
    for (int d = 0; d < 4; d++)
        for (int c = 0; c < 5; c++) {
            int64_t most = most_positions(dtypes[d]), extents[] = {1, 2, 100, most, most + 1};
            for (int e = 0; e < 5; e++)
                check(dtypes[d], counts[c], extents[e], 1, 0, (kind)test_random_int(&fresh, 0, KINDS - 1));
        }
}

static void test_kinds(void **state)
{
    (void)state;
    for (int d = 0; d < 4; d++)
        for (int k = 0; k < KINDS; k++)
            for (int e = 1; e <= 1000; e *= 10)
                check(dtypes[d], test_random_int(&fresh, 257, 9000), e, 1, 0, (kind)k);
}

/* Rows and columns of sums that share the positions: a few, more than a few, and more than there are pieces of one. */
static void test_places(void **state)
{
    (void)state;
    static const int64_t places[] = {2, 4, 5, 70, 2100};
    for (int d = 0; d < 4; d++)
        for (int p = 0; p < 5; p++)
            for (int axis = 0; axis < 2; axis++)
                check(dtypes[d], p < 4 ? test_random_int(&fresh, 257, 4000) : 257, test_random_int(&fresh, 1, 40),
                      places[p], axis, (kind)test_random_int(&fresh, 0, KINDS - 1));
}

int main(void)
{
    fresh = test_random_new();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_kinds),
                                       cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
