/* SPDX-License-Identifier: MIT */
/* Windows whose starts a loop changes: one plan serves all of them, and gives what a plan for each gives. */
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
#include "support/starve.h"

enum { ROWS = 101, COLUMNS = 5, MOST = 12 * COLUMNS };

static test_random random_state;

static uint64_t plans(void) { return tn_engine_stats().plan_misses; }

/* What an array of ROWS rows is at `host`: what the loops below are compared with. */
typedef struct table {
    tn_array *array;
    float host[ROWS * COLUMNS];
} table;

static table make(void)
{
    table t;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        t.host[i] = (float)test_random_int(&random_state, -500, 500); /* all sums are exact */
    t.array = tn_own(tn_reshape(tn_from_floats(t.host, ROWS * COLUMNS), TN_SHAPE(ROWS, COLUMNS)));
    assert_int_equal(tn_eval(t.array), TN_OK);
    return t;
}

static void assert_values(const tn_array *x, const float *expected, int count)
{
    const float *now = test_data(x);
    assert_non_null(now);
    assert_memory_equal(now, expected, sizeof(float) * (size_t)count);
}

/* Row r of what starts at `start` and goes on by `step`. */
static const float *row(const table *t, int64_t start, int64_t step, int r)
{
    return t->host + (start + step * r) * COLUMNS;
}

/* Slices of an array that gradients go to, which are recorded, with the gradient of each. */
static void read_all(int64_t count, int64_t step)
{
    table t = make();
    tn_requires_grad(t.array);
    int64_t span = (count - 1) * (step < 0 ? -step : step);
    uint64_t before = plans();
    for (int64_t low = 0; low + span < ROWS; low++) TN_SCOPE {
        int64_t start = step < 0 ? low + span : low, stop = start + count * step;
        tn_array *part = tn_slice_axis(t.array, 0, start, stop < 0 ? TN_NONE : stop, step);
        assert_int_equal(tn_backward(tn_sum(tn_square(part))), TN_OK);
        float twice[MOST], gradient[ROWS * COLUMNS] = {0};
        for (int r = 0; r < count; r++)
            for (int k = 0; k < COLUMNS; k++) {
                twice[r * COLUMNS + k] = 2 * row(&t, start, step, r)[k];
                gradient[(start + step * r) * COLUMNS + k] = twice[r * COLUMNS + k];
            }
        assert_values(tn_grad(t.array), gradient, ROWS * COLUMNS);
        assert_values(tn_add(part, part), twice, (int)count * COLUMNS);
        tn_clear_grad(t.array);
    }
    assert_in_range(plans() - before, 2, 4); /* two that know a start, two that are told it */
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

static void test_read(void **state)
{
    (void)state;
    read_all(1, 1);
    read_all(4, 1);
    read_all(3, -2);
}

static int64_t clipped(int64_t end)
{
    end = end < 0 ? end + ROWS : end;
    return end < 0 ? 0 : end > ROWS ? ROWS : end;
}

/* Ends are counted from the end and clipped as Python does: other extents are other plans, other starts are not. */
static void test_clipped(void **state)
{
    (void)state;
    table t = make();
    tn_requires_grad(t.array);
    uint64_t before = plans();
    for (int64_t i = -ROWS - 4; i < ROWS + 4; i++) TN_SCOPE {
        int count = (int)(clipped(i + 6) - clipped(i));
        float negated[MOST];
        for (int k = 0; k < count * COLUMNS; k++)
            negated[k] = -row(&t, clipped(i), 1, 0)[k];
        assert_values(tn_negative(tn_slice_axis(t.array, 0, i, i + 6, 1)), negated, count > 0 ? count * COLUMNS : 0);
    }
    assert_in_range(plans() - before, 2, 2 * 7);
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

/* A window that is itself what is asked for, of a view, in two axes. */
static void test_views(void **state)
{
    (void)state;
    table t = make();
    tn_requires_grad(t.array);
    uint64_t before = plans();
    for (int i = 0; i < 40; i++) TN_SCOPE {
        int column = i % (COLUMNS - 1);
        tn_array *part = tn_slice(tn_swapaxes(t.array, 0, 1), 2, (tn_slice_range[]){{column, column + 2, 1},
                                                                                     {i, i + 3, 1}});
        float expected[6];
        for (int k = 0; k < 6; k++)
            expected[k] = t.host[(i + k % 3) * COLUMNS + column + k / 3];
        assert_values(tn_negative(tn_negative(part)), expected, 6);
        assert_values(part, expected, 6);
        assert_values(tn_index(tn_index(t.array, i), column), &t.host[i * COLUMNS + column], 1);
    }
    assert_in_range(plans() - before, 4, 7); /* the window that is asked for is copied to be in C order */
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

/* A cache that is written a row further each round, all of it read, and one that is read where it will be written. */
static void test_write(void **state)
{
    (void)state;
    table t = make(), other = make();
    uint64_t before = plans();
    for (int i = 0; i < 3 * ROWS; i++) TN_SCOPE {
        int at = i * 7 % ROWS;
        float sum = 0;
        for (int k = 0; k < COLUMNS; k++)
            sum += t.host[at * COLUMNS + k] = other.host[i % ROWS * COLUMNS + k] + 1;
        tn_array *value = tn_add(tn_index(other.array, i % ROWS), 1);
        tn_slice_range place = {at, at + 1, 1};
        assert_int_equal(tn_assign(t.array, tn_slice_update(t.array, 1, &place, value)), TN_OK);
        if (i % 3 == 0)
            assert_values(tn_sum(value), &sum, 1);
        assert_values(t.array, t.host, ROWS * COLUMNS);
    }
    assert_in_range(plans() - before, 1, 6);
    tn_free(t.array);
    tn_free(other.array);
    assert_string_equal(tn_error(), "");
}

/* A token's way through layers, each with a cache: at another place for each token, the same in all layers. */
static void test_caches(void **state)
{
    (void)state;
    enum { LAYERS = 12 };
    table t[LAYERS];
    for (int k = 0; k < LAYERS; k++)
        t[k] = make();
    uint64_t before = plans();
    for (int i = 0; i < 30; i++) TN_SCOPE {
        tn_array *h = tn_ones(TN_SHAPE(1, COLUMNS));
        for (int k = 0; k < LAYERS; k++) {
            tn_slice_range place = {i, i + 1, 1};
            assert_int_equal(tn_assign(t[k].array, tn_slice_update(t[k].array, 1, &place, h)), TN_OK);
            h = tn_add(h, tn_slice_axis(t[k].array, 0, -1, TN_NONE, 1));
            const table *last = k ? &t[k - 1] : NULL;
            for (int c = 0; c < COLUMNS; c++)
                t[k].host[i * COLUMNS + c] = k ? row(last, i, 1, 0)[c] + row(last, ROWS - 1, 1, 0)[c] : 1;
        }
        assert_int_equal(tn_eval(h), TN_OK);
        for (int k = 0; k < LAYERS; k++)
            assert_values(t[k].array, t[k].host, ROWS * COLUMNS);
    }
    assert_in_range(plans() - before, 2, 3); /* the first caches are not whole storages of their own */
    for (int k = 0; k < LAYERS; k++)
        tn_free(t[k].array);
    assert_string_equal(tn_error(), "");
}

static tn_status starved(void *user)
{
    table *t = user;
    tn_status status = TN_OK;
    tn_set_memory_planning(false); /* the plans of the last time go */
    tn_set_memory_planning(true);
    for (int i = 0; i < 3 && status == TN_OK; i++) TN_SCOPE {
        tn_slice_range place = {i, i + 2, 1};
        tn_array *part = tn_slice(t->array, 1, &place);
        status = tn_eval(tn_slice_update(tn_zeros(TN_SHAPE(ROWS, COLUMNS)), 1, &place, tn_negative(part)));
    }
    return status;
}

static void test_starved(void **state)
{
    (void)state;
    table t = make();
    tn_requires_grad(t.array);
    tn_set_compile(TN_COMPILE_NEVER);
    starve("windows that move", starved, &t);
    tn_set_compile(TN_COMPILE_AUTO);
    tn_free(t.array);
}

/* Noting what may come again with other starts takes no plan's place. */
static void test_many_plans(void **state)
{
    (void)state;
    enum { PLANS = 900 };
    tn_array *x = tn_own(tn_ones(TN_SHAPE(2 * PLANS)));
    assert_int_equal(tn_eval(x), TN_OK);
    tn_requires_grad(x);
    uint64_t before = 0;
    tn_set_compile(TN_COMPILE_NEVER);
    for (int round = 0; round < 2; round++) {
        before = plans();
        for (int n = 1; n <= PLANS; n++)
            TN_SCOPE assert_int_equal(tn_eval(tn_negative(tn_slice_axis(x, 0, n, 2 * n, 1))), TN_OK);
    }
    assert_int_equal(plans(), before);
    tn_set_compile(TN_COMPILE_AUTO);
    tn_free(x);
    assert_string_equal(tn_error(), "");
}

/* Where a plan reads a window of what it writes another window of, it goes by what was there before. */
static void test_read_and_write(void **state)
{
    (void)state;
    table t = make();
    tn_requires_grad(t.array);
    uint64_t before = plans();
    for (int i = 0; i < 60; i++) TN_SCOPE {
        int from = i * 5 % (ROWS - 3), to = i * 3 % (ROWS - 3); /* they meet, now and then, in part or wholly */
        float moved[3 * COLUMNS];
        memcpy(moved, row(&t, from, 1, 0), sizeof moved);
        memcpy(t.host + to * COLUMNS, moved, sizeof moved);
        tn_slice_range place = {to, to + 3, 1};
        TN_NO_GRAD {
            assert_int_equal(tn_assign(t.array, tn_slice_update(t.array, 1, &place,
                                                                tn_slice_axis(t.array, 0, from, from + 3, 1))), TN_OK);
        }
        assert_values(t.array, t.host, ROWS * COLUMNS);
    }
    assert_in_range(plans() - before, 1, 4);
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

/* ---- of what is computed ---- */

static tn_array *by_elements(const tn_array *x) { return tn_add(tn_square(x), tn_index(x, 3)); }
static tn_array *transposed(const tn_array *x)
{
    return tn_swapaxes(tn_negative(tn_swapaxes(tn_cast(x, TN_INT64), 0, 1)), 0, 1);
}
static tn_array *product(const tn_array *x)
{
    return tn_add(tn_matmul(x, tn_slice_axis(x, 0, 0, COLUMNS, 1)), tn_index(x, 1));
}
static tn_array *normalized(const tn_array *x) { return tn_softmax(x, -1); }
static tn_array *cumulated(const tn_array *x) { return tn_multiply(tn_cumsum(x, .axis = TN_AXES(0)), 2); }
static tn_array *reshaped(const tn_array *x)
{
    return tn_swapaxes(tn_reshape(tn_matmul(x, tn_slice_axis(x, 0, 0, COLUMNS, 1)), TN_SHAPE(COLUMNS, ROWS)), 0, 1);
}
static tn_array *in_six(const tn_array *x)
{
    return tn_multiply(tn_reshape(x, TN_SHAPE(ROWS, COLUMNS, 1)), tn_full(TN_SHAPE(ROWS, COLUMNS, 6), 2));
}
static tn_array *cut_up(const tn_array *x)
{
    return tn_negative(tn_reshape(in_six(x), TN_SHAPE(ROWS, COLUMNS, 1, 2, 3)));
}
static tn_array *joined_up(const tn_array *x) { return tn_reshape(in_six(x), TN_SHAPE(ROWS, 1, 6 * COLUMNS)); }
static tn_array *end_to_end(const tn_array *x)
{
    return tn_reshape(tn_square(tn_reshape(x, TN_SHAPE(ROWS * COLUMNS))), TN_SHAPE(ROWS, COLUMNS));
}
static tn_array *written(const tn_array *x)
{
    tn_slice_range place = {10, 20, 1};
    return tn_slice_update(tn_add(x, 1), 1, &place, tn_slice_axis(x, 0, 0, 10, 1));
}
static tn_array *of_number(const tn_array *x) { return tn_add(tn_full(TN_SHAPE(ROWS, COLUMNS), 3), tn_index(x, 2)); }

/* Windows of `count` rows, by `step`, of what is computed in the same plan: what they are of its values. */
static void windows_of(tn_array *(*make_it)(const tn_array *), int64_t count, int64_t step)
{
    table t = make();
    int64_t span = (count - 1) * (step < 0 ? -step : step);
    tn_array *whole = tn_own(make_it(t.array));
    size_t bytes = (size_t)tn_size(whole) / ROWS * tn_dtype_size(tn_dtype_of(whole));
    const char *all = test_data(whole);
    uint64_t before = plans();
    for (int64_t low = 0; low + span < ROWS; low += 7) TN_SCOPE {
        int64_t start = step < 0 ? low + span : low, stop = start + count * step;
        tn_array *part = tn_slice_axis(make_it(t.array), 0, start, stop < 0 ? TN_NONE : stop, step);
        const char *now = test_data(tn_negative(tn_negative(part)));
        assert_non_null(now);
        for (int64_t r = 0; r < count; r++)
            assert_memory_equal(now + (size_t)r * bytes, all + (size_t)(start + r * step) * bytes, bytes);
    }
    assert_in_range(plans() - before, 1, 2);
    tn_free(whole);
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

static void test_computed(void **state)
{
    (void)state;
    tn_array *(*const made[])(const tn_array *) = {by_elements, transposed, product,  normalized,
                                                   cumulated,   reshaped,   written, of_number,
                                                   cut_up,      joined_up};
    const tn_compile_mode modes[] = {TN_COMPILE_AUTO, TN_COMPILE_ALWAYS, TN_COMPILE_NEVER};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        tn_set_compile(modes[m]);
        for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
            windows_of(made[i], 1, 1);
            windows_of(made[i], 4, 1);
            windows_of(made[i], 3, -2);
        }
        windows_of(end_to_end, 1, 1);
        windows_of(end_to_end, 4, 1); /* every other row of it is at no even distances of what it is made of */
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* With gradients, which go into one window of zeros; a window of a value moves along, and one that does not. */
static void test_computed_gradients(void **state)
{
    (void)state;
    table t = make();
    tn_requires_grad(t.array);
    uint64_t before = plans();
    for (int i = 0; i < 60; i++) TN_SCOPE {
        tn_array *square = tn_square(t.array), *other = tn_index(t.array, 2 * i % 61);
        assert_int_equal(tn_backward(tn_sum(tn_add(tn_index(square, i), other))), TN_OK);
        float gradient[ROWS * COLUMNS] = {0};
        for (int k = 0; k < COLUMNS; k++) {
            gradient[i * COLUMNS + k] += 2 * row(&t, i, 1, 0)[k];
            gradient[2 * i % 61 * COLUMNS + k] += 1;
        }
        assert_values(tn_grad(t.array), gradient, ROWS * COLUMNS);
        tn_clear_grad(t.array);
    }
    assert_in_range(plans() - before, 1, 8);
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

/* The first start has a plan that knows it, though nothing that is computed has windows; the second one's is told. */
static void test_first_start(void **state)
{
    (void)state;
    static const uint64_t made[] = {1, 1, 2, 2, 2}; /* plans by then, of these starts */
    static const int64_t start[] = {3, 3, 4, 3, 7};
    table t = make();
    tn_requires_grad(t.array);
    uint64_t before = plans();
    for (int i = 0; i < 5; i++) TN_SCOPE {
        float expected[COLUMNS];
        for (int c = 0; c < COLUMNS; c++)
            expected[c] = -row(&t, start[i], 1, 0)[c];
        assert_values(tn_negative(tn_index(t.array, start[i])), expected, COLUMNS);
        assert_int_equal(plans() - before, made[i]);
    }
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

/* What each round notes anew would stay until as many plans had been made: slices of a value and of what is computed,
 * both of which move, note nothing once they have a plan. */
static void test_nothing_noted(void **state)
{
    (void)state;
    enum { ROUNDS = 400 };
    table t = make();
    tn_requires_grad(t.array);
    tn_set_compile(TN_COMPILE_NEVER);
    uint64_t before = 0;
    for (int i = 0; i < ROUNDS; i++) TN_SCOPE {
        /* the first half goes through all starts of what is computed, the second has them again, beside others */
        int of = i < ROUNDS / 2 ? i % 7 : i % 5, a = i / 7 % 20, b = i / 20 % 20;
        tn_array *sums = tn_cumsum(tn_slice_axis(t.array, 0, of, of + 21, 1), .axis = TN_AXES(0));
        assert_int_equal(tn_eval(tn_subtract(tn_index(sums, a), tn_index(sums, b))), TN_OK);
        before = i == 20 ? plans() : before;
    }
    assert_int_equal(plans(), before);
    tn_set_compile(TN_COMPILE_AUTO);
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

/* A recurrence's windows over all of what is computed, always the same, stay known where a value's minibatch moves. */
static void test_many_of_one(void **state)
{
    (void)state;
    table t = make();
    uint64_t before = plans();
    for (int i = 0; i < 40; i++) TN_SCOPE {
        tn_array *x = tn_add(tn_square(tn_slice_axis(t.array, 0, i, i + 20, 1)), 1), *h = tn_index(x, 0);
        for (int k = 1; k < 20; k++)
            h = tn_maximum(tn_negative(h), tn_index(x, k));
        float expected[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) {
            expected[c] = row(&t, i, 1, 0)[c] * row(&t, i, 1, 0)[c] + 1;
            for (int k = 1; k < 20; k++) {
                float next = row(&t, i, 1, k)[c] * row(&t, i, 1, k)[c] + 1;
                expected[c] = -expected[c] > next ? -expected[c] : next;
            }
        }
        assert_values(h, expected, COLUMNS);
    }
    assert_in_range(plans() - before, 1, 2);
    tn_free(t.array);
    assert_string_equal(tn_error(), "");
}

int main(void)
{
    random_state = test_random_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),  cmocka_unit_test(test_clipped),        cmocka_unit_test(test_views),
        cmocka_unit_test(test_write), cmocka_unit_test(test_read_and_write), cmocka_unit_test(test_caches),
        cmocka_unit_test(test_starved), cmocka_unit_test(test_many_plans),
        cmocka_unit_test(test_computed), cmocka_unit_test(test_computed_gradients), cmocka_unit_test(test_many_of_one),
        cmocka_unit_test(test_first_start), cmocka_unit_test(test_nothing_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
