/* SPDX-License-Identifier: MIT */
/* Gradients that come in parts: of windows, however they lie to each other, of what is written into windows and read
 * again, and of rows chosen by indices; and that the work for many of them grows with what they hold, not with its
 * square. */
#include "autograd/helpers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { ROWS = 6, COLUMNS = 5, MOVES = 14 };

/* One of a program's steps: what it does with x and with a buffer, at which windows. */
typedef struct move {
    int what;
    tn_slice_range from[2], to[2];
} move;

typedef struct program {
    move move[MOVES];
    int count;
    bool one_by_one; /* each array gets a value before it is used */
} program;

static test_random numbers;

/* Some `count` of an axis' elements, forwards or backwards. */
static tn_slice_range range_of(int64_t extent, int64_t count)
{
    int64_t step = count > 1 ? test_random_int(&numbers, 1, (extent - 1) / (count - 1)) : 1;
    int64_t first = test_random_int(&numbers, 0, extent - 1 - (count - 1) * step);
    tn_slice_range forwards = {first, first + (count - 1) * step + 1, step};
    if (count == 0)
        return (tn_slice_range){first, first, 1};
    if (test_random_int(&numbers, 0, 3))
        return forwards;
    int64_t end = first - 1;
    return (tn_slice_range){first + (count - 1) * step, end < 0 ? TN_NONE : end, -step};
}

static program random_program(void)
{
    program p = {.count = (int)test_random_int(&numbers, 1, MOVES)};
    for (int i = 0; i < p.count; i++) {
        move *m = &p.move[i];
        m->what = (int)test_random_int(&numbers, 0, 4);
        for (int d = 0; d < 2; d++) {
            int64_t extent = d ? COLUMNS : ROWS, count = test_random_int(&numbers, 0, 9) ? 1 : 0;
            count += count ? test_random_int(&numbers, 0, extent - 1) : 0;
            m->from[d] = range_of(extent, count);
            m->to[d] = range_of(extent, count);
        }
        if (i && !test_random_int(&numbers, 0, 2)) /* just there once more */
            m->from[0] = p.move[i - 1].from[0], m->from[1] = p.move[i - 1].from[1],
            m->to[0] = p.move[i - 1].to[0], m->to[1] = p.move[i - 1].to[1];
    }
    return p;
}

/* xs: x, and rows of it by number. */
static tn_array *run(int count, tn_array *const *xs, void *user)
{
    (void)count;
    const program *p = user;
    tn_array *x = xs[0], *buffer = tn_multiply(x, 0.5), *sum = tn_sum(tn_square(tn_add(x, 1)));
    for (int i = 0; i < p->count; i++) {
        const move *m = &p->move[i];
        tn_array *window = tn_slice(m->what % 2 ? x : buffer, 2, m->from);
        if (p->one_by_one)
            assert_int_equal(tn_eval(window), TN_OK);
        if (m->what < 3)
            buffer = tn_slice_update(buffer, 2, m->to, tn_sin(tn_add(window, 0.1 * i)));
        else if (m->what == 3)
            sum = tn_add(sum, tn_sum(tn_square(tn_add(window, 0.2 * i))));
        else
            sum = tn_add(sum, tn_sum(tn_sin(tn_take(i % 2 ? x : buffer, xs[1], 0))));
    }
    return tn_add(tn_mean(tn_square(buffer)), sum);
}

static void test_random_programs(void **state)
{
    (void)state;
    numbers.state = test_seed();
    for (int i = 0; i < 12; i++) {
        program p = random_program();
        const tn_array *xs[] = {spread(TN_SHAPE(ROWS, COLUMNS), -2, 2, 0), random_indices(TN_SHAPE(7), -ROWS, ROWS)};
        check_gradients("moves", run, &p, 2, xs);
        double value = tn_item(run(2, (tn_array *const *)xs, &p));
        p.one_by_one = true;
        double expected = tn_item(run(2, (tn_array *const *)xs, &p));
        if (fabs(value - expected) > 1e-12 * (1 + fabs(expected)))
            fail_msg("%.17g at once, %.17g one by one (TANSO_TEST_SEED=%llu)", value, expected,
                     (unsigned long long)test_seed());
    }
}

/* ---- against what the same is without parts ---- */

/* A gradient that is asked for on the way is whole, and the same. */
static void test_on_the_way(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(spread(TN_SHAPE(3, 2), -1, 1, 0));
    tn_array *h[3], *joined = NULL, *rest[2];
    for (int t = 0; t < 3; t++)
        h[t] = tn_multiply(tn_index(x, t), t + 1);
    joined = tn_stack(3, (const tn_array *const *)h, 0);
    tn_slice_range last = {1, 3, 1}, first = {0, 2, 1};
    rest[0] = tn_slice(joined, 1, &last);
    rest[1] = tn_slice(joined, 1, &first);
    tn_array *y = tn_add(tn_sum(tn_multiply(rest[0], 10)), tn_sum(rest[1]));
    tn_array *g[2];
    assert_int_equal(tn_gradients(y, 2, (const tn_array *[]){joined, x}, false, g), TN_OK);
    assert_values(g[0], 6, (const double[]){1, 1, 11, 11, 10, 10}, 0);
    assert_values(g[1], 6, (const double[]){1, 1, 22, 22, 30, 30}, 0);
    tn_retain_grad(joined);
    assert_int_equal(tn_backward(y), TN_OK);
    assert_values(tn_grad(joined), 6, (const double[]){1, 1, 11, 11, 10, 10}, 0);
    assert_values(tn_grad(x), 6, (const double[]){1, 1, 22, 22, 30, 30}, 0);
}

/* What goes nowhere: the value of a window that is written over before anybody reads it. */
static void test_written_over(void **state)
{
    (void)state;
    tn_array *x = tn_requires_grad(spread(TN_SHAPE(2), -1, 1, 0)), *z = tn_requires_grad(spread(TN_SHAPE(2), -1, 1, 1));
    tn_slice_range window = {1, 3, 1};
    tn_array *buffer = tn_slice_update(tn_zeros(TN_SHAPE(4), .dtype = TN_FLOAT64), 1, &window, x);
    buffer = tn_slice_update(buffer, 1, &window, z);
    assert_int_equal(tn_backward(tn_sum(tn_multiply(buffer, 3))), TN_OK);
    assert_values(tn_grad(x), 2, (const double[]){0, 0}, 0);
    assert_values(tn_grad(z), 2, (const double[]){3, 3}, 0);
}

/* ---- how much it moves ---- */

static long long number_behind(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    assert_non_null(at);
    while (at > text && at[-1] != ' ')
        at--;
    for (at--; at > text && at[-1] >= '0' && at[-1] <= '9';)
        at--;
    return strtoll(at, NULL, 10);
}

/* Bytes moved by the plan of the gradient of x, or those of its temporaries. */
static long long bytes_of(const char *which, tn_array *y, tn_array *x)
{
    assert_int_equal(tn_backward(y), TN_OK);
    char *text = tn_plan_describe(tn_grad(x));
    assert_non_null(text);
    long long bytes = number_behind(text, which);
    tn_string_free(text);
    return bytes;
}

/* So many that a GPU's kernel, which takes the first 20 steps whole, is several in both graphs that are compared. */
enum { FEW_PARTS = 60, MOST_PARTS = 3 * FEW_PARTS };

static tn_array *leaf(int n) { return tn_requires_grad(tn_ones(TN_SHAPE(n, 3, 5))); }

static long long steps_of_time(int n)
{
    tn_array *x = leaf(n), *h = tn_zeros(TN_SHAPE(3, 5));
    for (int t = 0; t < n; t++)
        h = tn_tanh(tn_add(h, tn_index(x, t)));
    return bytes_of("bytes moved", tn_sum(h), x);
}

static long long halves(int n)
{
    tn_array *x = leaf(n), *part[MOST_PARTS], *sum = tn_zeros(TN_SHAPE(1, 3, 5));
    assert_int_equal(tn_split(x, n, 0, part), TN_OK);
    for (int t = n; t-- > 0;)
        sum = tn_add(sum, tn_square(part[t]));
    return bytes_of("bytes moved", tn_sum(sum), x);
}

static long long joined(int n)
{
    tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(3, 5))), *h = x;
    tn_array *all[MOST_PARTS];
    for (int t = 0; t < n; t++)
        all[t] = h = tn_sin(h);
    return bytes_of("bytes moved", tn_sum(tn_square(tn_stack(n, (const tn_array *const *)all, 1))), x);
}

/* Each round reads what the round before wrote. */
static long long written(int n)
{
    tn_array *x = leaf(n), *buffer = tn_zeros(TN_SHAPE(n, 3, 5));
    for (int t = 1; t < n; t++) {
        tn_slice_range to = {t, t + 1, 1};
        tn_array *h = tn_add(tn_index(buffer, t - 1), tn_index(x, t));
        buffer = tn_slice_update(buffer, 1, &to, tn_tanh(h));
    }
    return bytes_of("bytes moved", tn_sum(tn_square(buffer)), x);
}

/* A recurrence, whose two weights are used in each step. */
static tn_array *recurrent(int count, tn_array *const *xs, void *user)
{
    (void)count;
    tn_array *h = xs[0];
    for (int t = 0; t < 4; t++) {
        tn_array *w = *(int *)user && t % 2 ? tn_transpose(tn_transpose(xs[1], TN_AXES(1, 0)), TN_AXES(1, 0)) : xs[1];
        tn_array *left = tn_matmul(xs[2], tn_transpose(h, TN_AXES(1, 0)));
        h = tn_tanh(tn_add(tn_matmul(h, w), tn_transpose(left, TN_AXES(1, 0))));
    }
    return tn_square(h);
}

static void test_weights_of_recurrences(void **state)
{
    (void)state;
    for (int rows = 0; rows < 5; rows += 2)
        for (int turned = 0; turned < 2; turned++) {
            const tn_array *xs[] = {spread(TN_SHAPE(rows, 5), -1, 1, 0), spread(TN_SHAPE(5, 5), -1, 1, 1),
                                    spread(TN_SHAPE(5, 5), -1, 1, 2)};
            check_gradients("recurrence", recurrent, &turned, 3, xs);
        }
}

/* The gradient of such a weight is one product, not one a step and their sum. */
static int products_with_weight(int n)
{
    tn_array *w = tn_requires_grad(tn_multiply(tn_ones(TN_SHAPE(40, 50)), 0.01)), *sum = tn_zeros(TN_SHAPE(1));
    for (int t = 0; t < n; t++)
        sum = tn_add(sum, tn_sum(tn_sin(tn_matmul(tn_full(TN_SHAPE(2, 40), t), w))));
    assert_int_equal(tn_backward(tn_sum(sum)), TN_OK);
    char *text = tn_plan_describe(tn_grad(w));
    assert_non_null(text);
    int count = 0;
    for (const char *at = text; (at = strstr(at, " matmul ")); at++)
        count++;
    tn_string_free(text);
    return count;
}

/* Few rows of a table that is large. */
static long long chosen(int n)
{
    tn_array *table = tn_requires_grad(tn_ones(TN_SHAPE(500, 3))), *sum = tn_zeros(TN_SHAPE(2, 3));
    for (int t = 0; t < n; t++)
        sum = tn_add(sum, tn_square(tn_take(table, tn_from_int64s((const int64_t[]){t, 2 * t}, 2), 0)));
    return bytes_of("bytes of temporaries", tn_sum(sum), table);
}

static void test_bytes(void **state)
{
    (void)state;
    static long long (*const graph[])(int n) = {steps_of_time, halves, joined, written};
    for (size_t i = 0; i < sizeof graph / sizeof *graph; i++) {
        long long few = graph[i](FEW_PARTS), many = graph[i](MOST_PARTS);
        if (many > 4 * few)
            fail_msg("graph %zu: %lld bytes for %d parts, %lld for %d", i, few, FEW_PARTS, many, MOST_PARTS);
    }
    if (test_device().kind != TN_DEVICE_CUDA) /* whose kernels have products in them */
        assert_int_equal(products_with_weight(20), 20 + 1);
    assert_true(chosen(40) < 4 * 500 * 3 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_random_programs), TEST(test_on_the_way), TEST(test_written_over),
                                       TEST(test_weights_of_recurrences),
                                       TEST(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
