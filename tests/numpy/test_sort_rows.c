/* SPDX-License-Identifier: MIT */
/* Sorting several rows of lengths about which GPUs choose their ways: values bit for bit and places, against the C
 * library's sort with places deciding between equal elements, for every dtype and layout. */
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

static test_random numbers;
static uint64_t seed;

enum { WHOLE, SIGNED, FLOAT };
typedef struct kind {
    tn_dtype dtype;
    int bits, form;
    uint64_t infinite; /* the bits of infinity */
} kind;
static const kind kinds[] = {
    {TN_FLOAT32, 32, FLOAT, 0x7f800000},  {TN_BOOL, 1, WHOLE, 0},    {TN_INT8, 8, SIGNED, 0},
    {TN_UINT8, 8, WHOLE, 0},              {TN_INT16, 16, SIGNED, 0}, {TN_UINT16, 16, WHOLE, 0},
    {TN_FLOAT16, 16, FLOAT, 0x7c00},      {TN_INT32, 32, SIGNED, 0}, {TN_UINT32, 32, WHOLE, 0},
    {TN_BFLOAT16, 16, FLOAT, 0x7f80},     {TN_INT64, 64, SIGNED, 0}, {TN_UINT64, 64, WHOLE, 0},
    {TN_FLOAT64, 64, FLOAT, 0x7ff0000000000000},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t mask_of(const kind *k) { return ~(uint64_t)0 >> (64 - k->bits); }
static size_t size_of(const kind *k) { return tn_dtype_size(k->dtype); }
static bool is_nan(const kind *k, uint64_t x) { return k->form == FLOAT && (x & mask_of(k) >> 1) > k->infinite; }

/* Whatever the bits; few different ones; ends of the range, zeros and infinities of both signs and several NaN; what
 * comes last. */
static uint64_t some_element(const kind *k, int which)
{
    uint64_t any = test_random_bits(&numbers), all = mask_of(k), pick = any >> 32;
    const uint64_t ends[] = {0, all, all >> 1, all ^ all >> 1, k->infinite, all ^ k->infinite, k->infinite + 1, 1};
    const uint64_t last = k->form == WHOLE ? all : all >> 1;
    return (which == 0 ? any : which == 1 ? pick % 3 : which == 2 ? ends[pick % 8] : pick % 16 ? last : any) & all;
}

/* In the order of the elements; NaN last, zeros equal. */
static uint64_t place_of(const kind *k, uint64_t x)
{
    uint64_t top = (uint64_t)1 << (k->bits - 1), size = x & (top - 1);
    if (k->form != FLOAT)
        return k->form == WHOLE ? x : x ^ top;
    return is_nan(k, x) ? ~(uint64_t)0 : x & top ? top - size : top + size;
}

typedef struct element {
    uint64_t place, bits;
    int64_t number;
} element;

static int in_order(const void *a, const void *b)
{
    const element *x = a, *y = b;
    return x->place != y->place ? (x->place < y->place ? -1 : 1) : x->number < y->number ? -1 : x->number > y->number;
}

/* Zeros of both signs, and NaN, may come in any order, and NaN with any sign. */
static int in_bits(const void *a, const void *b)
{
    const element *x = a, *y = b;
    return x->place != y->place ? (x->place < y->place ? -1 : 1) : x->bits < y->bits ? -1 : x->bits > y->bits;
}

static uint64_t bits_at(const kind *k, const void *from, int64_t i)
{
    uint64_t x = 0;
    memcpy(&x, (const char *)from + i * (int64_t)size_of(k), size_of(k));
    return x;
}

static element element_of(const kind *k, uint64_t bits, int64_t number)
{
    return (element){place_of(k, bits), is_nan(k, bits) ? bits & mask_of(k) >> 1 : bits, number};
}

/* n elements of the original, what is sorted, and their places. */
static void check_row(const kind *k, int64_t n, const void *from, const void *sorted, const int64_t *order,
                      const char *what)
{
    element *wanted = malloc((size_t)n * sizeof *wanted), *got = malloc((size_t)n * sizeof *got);
    assert_true(wanted && got);
    for (int64_t i = 0; i < n; i++) {
        wanted[i] = element_of(k, bits_at(k, from, i), i);
        got[i] = element_of(k, bits_at(k, sorted, i), i);
        if (i > 0 && got[i - 1].place > got[i].place)
            fail_msg("%s: %lld %s fall at %lld; seed %llu", what, (long long)n, tn_dtype_name(k->dtype), (long long)i,
                     (unsigned long long)seed);
    }
    qsort(wanted, (size_t)n, sizeof *wanted, in_order);
    for (int64_t i = 0; i < n; i++)
        if (order[i] != wanted[i].number)
            fail_msg("%s: %lld %s, place %lld is %lld's, not %lld's; seed %llu", what, (long long)n,
                     tn_dtype_name(k->dtype), (long long)i, (long long)wanted[i].number, (long long)order[i],
                     (unsigned long long)seed);
    qsort(wanted, (size_t)n, sizeof *wanted, in_bits);
    qsort(got, (size_t)n, sizeof *got, in_bits);
    for (int64_t i = 0; i < n; i++)
        if (got[i].bits != wanted[i].bits)
            fail_msg("%s: %lld %s, element %lld has the bits %llx, not %llx; seed %llu", what, (long long)n,
                     tn_dtype_name(k->dtype), (long long)i, (unsigned long long)got[i].bits,
                     (unsigned long long)wanted[i].bits, (unsigned long long)seed);
    free(wanted), free(got);
}

/* All rows of x. */
static void check(const kind *k, tn_array *x, const char *what)
{
    int64_t n = tn_dim(x, -1), all = tn_size(x);
    size_t bytes = (size_t)all * size_of(k);
    char *from = malloc(bytes), *sorted = malloc(bytes);
    int64_t *order = malloc((size_t)all * sizeof *order);
    assert_true(from && sorted && order);
    if (tn_to_host(x, from, bytes) != TN_OK || tn_to_host(tn_sort(x), sorted, bytes) != TN_OK ||
        tn_to_host(tn_argsort(x), order, (size_t)all * sizeof *order) != TN_OK)
        fail_msg("%s: %s", what, tn_error());
    for (int64_t row = 0; row < all / n; row++)
        check_row(k, n, from + (size_t)(row * n) * size_of(k), sorted + (size_t)(row * n) * size_of(k),
                  order + row * n, what);
    free(from), free(sorted), free(order);
}

/* Rows of all sorts of elements, by turns. */
static tn_array *elements(const kind *k, int64_t rows, int64_t n)
{
    char *bits = malloc((size_t)(rows * n) * size_of(k));
    assert_non_null(bits);
    for (int64_t i = 0; i < rows * n; i++) {
        uint64_t x = some_element(k, (int)(i / n % 4));
        memcpy(bits + i * (int64_t)size_of(k), &x, size_of(k));
    }
    tn_array *x = tn_from_host(bits, TN_SHAPE(rows, n), k->dtype);
    assert_int_equal(tn_eval(x), TN_OK);
    free(bits);
    return x;
}

static const int64_t lengths[] = {1,   2,   31,   32,   33,   64,   65,   100,  255,  256, 257,
                                  511, 513, 1000, 1024, 1025, 2047, 2048, 2049, 4096, 4097};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* On a GPU each dtype but the first takes its turn at lengths, three of them: every one has kernels to compile. */
static void test_lengths(void **state)
{
    (void)state;
    bool few = test_device().kind == TN_DEVICE_CUDA;
    int turn = (int)test_random_int(&numbers, 0, LENGTHS - 1);
    for (int d = 0; d < KINDS; d++)
        for (int i = 0; i < LENGTHS; i++)
            if (!few || d == 0 || (i + 5 * d + turn) % LENGTHS % 7 == 0)
                TN_SCOPE { check(&kinds[d], elements(&kinds[d], lengths[i] < 300 ? 21 : 4, lengths[i]), "rows"); }
}

/* Rows that lie across others, are reversed, have gaps, or share memory. Not of 16-bit floats: what is copied of these
 * on a GPU has other bits in NaN. */
static void test_layouts(void **state)
{
    (void)state;
    for (int d = 0; d < KINDS; d += 4)
        TN_SCOPE {
            const kind *k = &kinds[d];
            check(k, tn_swapaxes(elements(k, 100, 9), 0, 1), "across");
            check(k, tn_flip(elements(k, 5, 77), TN_AXES(-1)), "reversed");
            check(k, tn_slice_axis(elements(k, 5, 203), 1, 1, 203, 2), "with gaps");
            check(k, tn_broadcast_to(elements(k, 1, 120), TN_SHAPE(6, 120)), "one row again and again");
            tn_array *x = elements(k, 90, 14), *down = tn_sort(x, .axis = TN_AXES(0));
            check(k, tn_swapaxes(down, 0, 1), "sorted ones");
            assert_int_equal(tn_item_int(tn_all(tn_equal(tn_argsort(tn_swapaxes(x, 0, 1)),
                                                         tn_swapaxes(tn_argsort(x, .axis = TN_AXES(0)), 0, 1)))),
                             1);
        }
}

int main(void)
{
    numbers = test_random_new();
    seed = numbers.state;
    tn_set_compile(TN_COMPILE_NEVER); /* hundreds of small graphs */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths), cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
