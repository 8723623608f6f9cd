/* SPDX-License-Identifier: MIT */
/* Parts written into arrays, filled ones, large enough that the fill leaves out what is written over, and such as
 * parts make up, against loops on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/device.h"
#include "support/random.h"

enum { WRITES = 5, MOST = 300, PARTS = 150 };

static test_random chance;

static int64_t between(int64_t least, int64_t most) { return test_random_int(&chance, least, most); }

/* A GPU compiles kernels for each shape. */
static int rounds(void) { return test_same_bits() ? 40 : 8; }

/* A range of n positions: some neighbours, or every second, or every second from behind. */
static tn_key some_of(int64_t n, int64_t *start, int64_t *count, int64_t *step)
{
    *step = between(0, 5) ? 1 : between(0, 1) ? 2 : -2;
    int64_t first = between(0, n - 1), most = *step > 0 ? (n - 1 - first) / *step : first / -*step;
    *start = first;
    *count = between(0, most) + 1;
    int64_t stop = first + *step * *count;
    return TN_RANGE(first, stop < 0 ? TN_NONE : stop, *step);
}

static void check(const char *what, tn_array *x, const float *expected, int64_t size)
{
    float *got = malloc((size_t)size * sizeof *got);
    assert_non_null(got);
    if (tn_to_host(x, got, (size_t)size * sizeof *got) != TN_OK)
        fail_msg("%s: %s", what, tn_error());
    for (int64_t i = 0; i < size; i++)
        if (got[i] != expected[i])
            fail_msg("%s: element %lld is %g, expected %g", what, (long long)i, got[i], expected[i]);
    free(got);
}

/* Writes go on top of one another; what was there before one of them is read by others. */
static void test_writes(void **state)
{
    (void)state;
    float *expected = malloc(MOST * MOST * sizeof *expected), *before = malloc(MOST * MOST * sizeof *before);
    assert_true(expected && before);
    for (int round = 0; round < rounds(); round++)
        TN_SCOPE {
            int64_t rows = between(1, MOST), columns = between(1, MOST), writes = between(1, WRITES),
                    read = between(0, 2 * WRITES);
            tn_array *x = tn_full(TN_SHAPE(rows, columns), 7, .dtype = TN_FLOAT32), *early = NULL;
            for (int64_t i = 0; i < rows * columns; i++)
                expected[i] = 7;
            for (int64_t w = 0; w < writes; w++) {
                if (w == read) {
                    early = tn_multiply(x, 2);
                    for (int64_t i = 0; i < rows * columns; i++)
                        before[i] = 2 * expected[i];
                }
                int64_t start[2], count[2], step[2];
                tn_key key[2];
                key[0] = some_of(rows, &start[0], &count[0], &step[0]);
                key[1] = some_of(columns, &start[1], &count[1], &step[1]);
                bool whole = between(0, 1);
                int64_t size = whole ? count[0] * count[1] : 1;
                tn_array *value = tn_add(tn_arange(0, (double)size, 1, .dtype = TN_FLOAT32), (double)w);
                if (whole)
                    value = tn_reshape(value, TN_SHAPE(count[0], count[1]));
                assert_int_equal(tn_setitem(x, value, 2, key), TN_OK);
                for (int64_t i = 0; i < count[0]; i++)
                    for (int64_t j = 0; j < count[1]; j++)
                        expected[(start[0] + step[0] * i) * columns + start[1] + step[1] * j] =
                            (float)(w + (whole ? i * count[1] + j : 0));
            }
            const tn_array *both[] = {x, early};
            assert_int_equal(tn_eval_all(early ? 2 : 1, both), TN_OK);
            check("writes", x, expected, rows * columns);
            if (early)
                check("read before a write", early, before, rows * columns);
        }
    free(expected);
    free(before);
}

static void test_padding(void **state)
{
    (void)state;
    for (int round = 0; round < rounds() / 2; round++)
        TN_SCOPE {
            int64_t n[3], width[3][2], size = 1;
            for (int d = 0; d < 3; d++) {
                n[d] = between(1, 50);
                for (int side = 0; side < 2; side++)
                    width[d][side] = between(0, 3);
                size *= n[d] + width[d][0] + width[d][1];
            }
            tn_array *x = tn_reshape(tn_arange(0, (double)(n[0] * n[1] * n[2]), 1, .dtype = TN_FLOAT32),
                                     TN_SHAPE(n[0], n[1], n[2]));
            float *expected = calloc((size_t)size, sizeof *expected), next = 0;
            assert_non_null(expected);
            int64_t rows = n[1] + width[1][0] + width[1][1], columns = n[2] + width[2][0] + width[2][1];
            for (int64_t i = 0; i < n[0]; i++)
                for (int64_t j = 0; j < n[1]; j++)
                    for (int64_t k = 0; k < n[2]; k++)
                        expected[((i + width[0][0]) * rows + j + width[1][0]) * columns + k + width[2][0]] = next++;
            check("pad", tn_pad(x, width), expected, size);
            free(expected);
        }
}

/* Different values at each of the borders: those of later axes have the corners. */
static void test_borders(void **state)
{
    (void)state;
    for (int round = 0; round < rounds() / 2; round++)
        TN_SCOPE {
            int64_t rows = between(1, 60), columns = between(1, 60), width[2][2];
            double value[2][2];
            for (int i = 0; i < 4; i++) {
                width[i / 2][i % 2] = between(0, 4);
                value[i / 2][i % 2] = (double)between(-9, 9);
            }
            int64_t down = rows + width[0][0] + width[0][1], along = columns + width[1][0] + width[1][1];
            tn_array *x = tn_full(TN_SHAPE(rows, columns), 50, .dtype = TN_FLOAT32);
            float *expected = malloc((size_t)(down * along) * sizeof *expected);
            assert_non_null(expected);
            for (int64_t i = 0; i < down; i++)
                for (int64_t j = 0; j < along; j++)
                    expected[i * along + j] = (float)(j < width[1][0]              ? value[1][0]
                                                      : j >= width[1][0] + columns ? value[1][1]
                                                      : i < width[0][0]            ? value[0][0]
                                                      : i >= width[0][0] + rows    ? value[0][1]
                                                                                   : 50);
            check("borders", tn_pad(x, width, .values = value), expected, down * along);
            free(expected);
        }
}

/* first + its number in each element, as memory, an expression or a view has it; or `first` alone. */
static tn_array *part(int64_t rows, int64_t columns, int64_t first, bool *constant)
{
    int kind = (int)between(0, 4);
    *constant = kind == 0;
    if (*constant)
        return tn_full(TN_SHAPE(rows, columns), (double)first, .dtype = TN_FLOAT32);
    int64_t more = kind == 2 ? columns + between(1, 5) : columns;
    tn_array *x = tn_arange(0, (double)(rows * columns), 1, .dtype = TN_FLOAT32);
    x = tn_add(tn_reshape(x, TN_SHAPE(rows, columns)), (double)first);
    if (kind == 2) {
        const int64_t width[2][2] = {{0, 0}, {more - columns, 0}};
        x = tn_pad(x, width);
    } else if (kind == 3) {
        x = tn_transpose(x, TN_AXES(1, 0));
        x = tn_add(x, 0);
    }
    if (kind > 1)
        assert_int_equal(tn_eval(x), TN_OK);
    return kind == 2   ? tn_slice_axis(x, 1, more - columns, more, 1)
           : kind == 3 ? tn_transpose(x, TN_AXES(1, 0))
                       : x;
}

static void test_joining(void **state)
{
    (void)state;
    for (int round = 0; round < rounds(); round++)
        TN_SCOPE {
            int count = (int)(round % 4 ? between(1, 6) : between(1, PARTS)), most = count > 6 ? 9 : MOST / 2;
            int axis = (int)between(0, 1);
            int64_t other = between(1, most), at = 0, extent[PARTS], rows = other, columns = other;
            const tn_array *parts[PARTS];
            bool constants[PARTS];
            for (int i = 0; i < count; i++) {
                extent[i] = between(0, 19) ? between(1, most) : 0;
                parts[i] = part(axis ? other : extent[i], axis ? extent[i] : other, 10 * i, &constants[i]);
                at += extent[i];
            }
            *(axis ? &columns : &rows) = at;
            float *expected = malloc((size_t)(rows * columns + 1) * sizeof *expected);
            assert_non_null(expected);
            at = 0;
            for (int i = 0; i < count; at += extent[i++])
                for (int64_t r = 0; r < (axis ? other : extent[i]); r++)
                    for (int64_t c = 0; c < (axis ? extent[i] : other); c++)
                        expected[(axis ? r : at + r) * columns + (axis ? at + c : c)] =
                            (float)(10 * i + (constants[i] ? 0 : r * (axis ? extent[i] : other) + c));
            check("concatenate", tn_concatenate(count, parts, axis), expected, rows * columns);
            free(expected);
        }
}

static void test_rolling(void **state)
{
    (void)state;
    for (int round = 0; round < rounds(); round++)
        TN_SCOPE {
            int64_t rows = between(1, MOST), columns = between(1, MOST), n = rows * columns, by = between(-MOST, MOST);
            tn_array *x = tn_reshape(tn_arange(0, (double)n, 1, .dtype = TN_FLOAT32), TN_SHAPE(rows, columns));
            bool flat = between(0, 1);
            float *expected = malloc((size_t)n * sizeof *expected);
            assert_non_null(expected);
            assert_int_equal(tn_eval(x), TN_OK);
            for (int64_t i = 0; i < n; i++) {
                int64_t to = flat ? ((i + by) % n + n) % n
                                  : i / columns * columns + ((i % columns + by) % columns + columns) % columns;
                expected[to] = (float)i;
            }
            check("roll", tn_roll(x, 1, &by, flat ? (tn_axes){0} : TN_AXES(1)), expected, n);
            free(expected);
        }
}

static tn_array *window_of(tn_array *x, int axis, int64_t from, int64_t to)
{
    return tn_slice_axis(x, axis, from, to, 1);
}

/* Gradients of slices, some of them transposed, which come in any order, are computed and joined; what they come to is
 * read by what follows. */
static void test_computed_pieces(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++)
        TN_SCOPE {
            int64_t dim[3] = {between(1, 4), between(1, 4), between(8, 40)}, size = dim[0] * dim[1] * dim[2];
            float value[4 * 4 * 40], expected[4 * 4 * 40];
            int axis = (int)between(0, 2), pieces = 0;
            int64_t end[4], after = dim[1] * dim[2], order = between(0, 23);
            after = axis == 0 ? after : axis == 1 ? dim[2] : 1;
            for (int64_t at = 0; at < dim[axis]; pieces++)
                end[pieces] = at = pieces == 3 ? dim[axis] : at + between(1, dim[axis] - at);
            for (int64_t i = 0; i < size; i++) {
                int k = 0;
                while (i / after % dim[axis] >= end[k])
                    k++;
                value[i] = (float)between(-9, 9);
                expected[i] = (float)(2 * (k + 1)) * value[i] + 1;
            }
            tn_array *x = tn_requires_grad(tn_reshape(tn_from_floats(value, size), TN_SHAPE(dim[0], dim[1], dim[2])));
            tn_array *loss = tn_sum(tn_zeros(TN_SHAPE(1)));
            for (int i = 0; i < pieces; i++) {
                int k = (int)((order >> 1) + (order & 1 ? pieces - i : i)) % pieces;
                tn_array *piece = window_of(x, axis, k ? end[k - 1] : 0, end[k]);
                piece = round & 1 ? tn_transpose(piece, TN_AXES(1, 0, 2)) : piece;
                loss = tn_add(loss, tn_sum(tn_multiply(tn_square(piece), (double)(k + 1))));
            }
            assert_int_equal(tn_backward(loss), TN_OK);
            check("pieces", tn_add(tn_grad(x), 1), expected, size);
        }
}

/* Of whole numbers, exactly; what it takes is worth storing, where it is wanted more than once. */
static tn_array *sign_by_tanh(const tn_array *x) { return tn_rint(tn_tanh(x)); }

static float sign_of(float x) { return (float)((x > 0) - (x < 0)); }

/* Pieces that show computed elements more than once, as a row for all of a batch and windows that meet, or only some of
 * them: a product reads what is joined, which is no result itself. */
static void test_repeated_pieces(void **state)
{
    (void)state;
    enum { MOST = 5, WIDE = 24 };
    for (int round = 0; round < 8; round++)
        TN_SCOPE {
            int64_t rows = between(2, MOST), wide = between(8, WIDE), more = between(0, 3), at = 0;
            float row[WIDE + MOST], other[MOST * WIDE], expected[4 * MOST] = {0};
            for (int64_t i = 0; i < wide + MOST; i++)
                row[i] = (float)between(-9, 9);
            for (int64_t i = 0; i < more * wide; i++)
                other[i] = (float)between(-9, 9);
            tn_array *one = sign_by_tanh(tn_from_floats(row, round & 1 ? wide + MOST : wide)), *piece;
            if (round & 1) /* row i begins at element i */
                piece = window_of(tn_sliding_window_view(one, TN_SHAPE(wide), TN_AXES(0)), 0, 0, rows);
            else
                piece = tn_broadcast_to(one, TN_SHAPE(rows, wide));
            for (int64_t i = 0; i < rows; i++, at++)
                for (int64_t k = 0; k < wide; k++)
                    expected[at] += sign_of(row[(round & 1 ? i : 0) + k]);
            for (int64_t i = 0; i < more; i++, at++)
                for (int64_t k = 0; k < wide; k++)
                    expected[at] += sign_of(other[i * wide + k]);
            if (more)
                piece = tn_concatenate(
                    TN_ARRAYS(piece, sign_by_tanh(tn_reshape(tn_from_floats(other, more * wide),
                                                             TN_SHAPE(more, wide)))), 0);
            for (int64_t i = at; i-- > 0;) /* a product of one column would be a sum that reads the pieces themselves */
                expected[2 * i] = expected[2 * i + 1] = expected[i];
            check("repeated", tn_matmul(piece, tn_ones(TN_SHAPE(wide, 2))), expected, 2 * at);
        }
}

/* A gradient that is one number everywhere, which is known only once the graph is rewritten: views of it as results,
 * each alone and beside it, and what reads it. */
static void test_views_of_a_number(void **state)
{
    (void)state;
    enum { ROWS = 5, COLUMNS = 7, VIEWS = 6 };
    float expected[3 * ROWS * COLUMNS];
    for (int i = 0; i < 3 * ROWS * COLUMNS; i++)
        expected[i] = 3;
    for (int i = 0; i < 2 * VIEWS; i++)
        TN_SCOPE {
            tn_array *x = tn_requires_grad(tn_ones(TN_SHAPE(ROWS, COLUMNS))), *g = NULL;
            assert_int_equal(tn_gradients(tn_sum(tn_multiply(x, 3)), 1, (const tn_array *[]){x}, true, &g), TN_OK);
            tn_array *part = tn_get(g, TN_RANGE(1, 4, 1), TN_RANGE(2, 6, 1));
            tn_array *views[VIEWS] = {part, tn_flip(g, TN_AXES(0, 1)), tn_swapaxes(part, 0, 1),
                                      tn_broadcast_to(g, TN_SHAPE(3, ROWS, COLUMNS)), tn_reshape(part, TN_SHAPE(2, 6)),
                                      tn_sliding_window_view(part, TN_SHAPE(2, 2), TN_AXES(0, 1))};
            tn_array *view = views[i / 2], *sum = tn_matmul(part, tn_ones(TN_SHAPE(4, 2)));
            const tn_array *all[] = {view, sum, g};
            assert_int_equal(tn_eval_all(i & 1 ? 3 : 1, all), TN_OK);
            check("a view of a number", view, expected, tn_size(view));
            assert_true(tn_item(tn_sum(sum)) == 3 * 4 * 2 * 3);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_writes), cmocka_unit_test(test_padding),
                                       cmocka_unit_test(test_borders), cmocka_unit_test(test_joining),
                                       cmocka_unit_test(test_rolling), cmocka_unit_test(test_computed_pieces),
                                       cmocka_unit_test(test_repeated_pieces),
                                       cmocka_unit_test(test_views_of_a_number)};
    chance = test_random_new();
    tn_set_compile(TN_COMPILE_NEVER);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tn_set_compile(TN_COMPILE_ALWAYS);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
