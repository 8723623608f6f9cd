/* SPDX-License-Identifier: MIT */
/* GATHER and SCATTER_ADD steps on the CPU, against plain loops. */
#include <stdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso/device.h>

#include "cpu_steps.h"
#include "ops/ops.h"

enum { MOST = 6 * 6 * 2000 };
static float array[MOST], other[MOST], out[MOST], expected[MOST];
static int64_t positions[MOST];

/* Element of a C-order array of shape (d0, d1, d2), with the index along axis replaced. */
static int64_t place(const int64_t *dim, int64_t i, int64_t j, int64_t k, int axis, int64_t p)
{
    int64_t at[3] = {i, j, k};
    if (axis >= 0)
        at[axis] = p;
    return (at[0] * dim[1] + at[1]) * dim[2] + at[2];
}

static void test_random(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t dim[3], index_dim[3], index_stride[3], size = 1, index_size = 1;
        int axis = (int)step_between(0, 2);
        bool rows = step_between(0, 1); /* one position a row, as an embedding's: stride 0 along the others */
        for (int i = 0; i < 3; i++) {
            dim[i] = step_between(1, i == 2 && round % 10 == 0 ? 1500 : 6);
            index_dim[i] = i == axis ? step_between(0, 8) : dim[i];
            size *= dim[i];
        }
        for (int i = 2; i >= 0; i--) {
            index_stride[i] = rows ? i == axis : index_size;
            index_size *= index_dim[i];
        }
        for (int64_t i = 0; i < size; i++)
            array[i] = (float)step_between(-99, 99);
        for (int64_t i = 0; i < MOST; i++)
            positions[i] = step_between(-dim[axis], dim[axis] - 1);
        for (int64_t i = 0; i < index_size; i++)
            other[i] = (float)step_between(-99, 99);

        one_step gather = step_of(TN__OP_GATHER, TN_FLOAT32), scatter = step_of(TN__OP_SCATTER_ADD, TN_FLOAT32);
        gather.step.axes = scatter.step.axes = 1u << axis;
        step_operand(&gather, out, TN_FLOAT32, 3, index_dim, NULL, 0);
        step_operand(&gather, array, TN_FLOAT32, 3, dim, NULL, 0);
        step_operand(&gather, positions, TN_INT64, 3, index_dim, index_stride, 0);
        assert_int_equal(step_run(&gather), TN_OK);
        memcpy(expected, array, size * sizeof(float));
        for (int64_t i = 0; i < index_dim[0]; i++)
            for (int64_t j = 0; j < index_dim[1]; j++)
                for (int64_t k = 0; k < index_dim[2]; k++) {
                    int64_t p = positions[i * index_stride[0] + j * index_stride[1] + k * index_stride[2]];
                    int64_t from = place(dim, i, j, k, axis, p < 0 ? p + dim[axis] : p);
                    int64_t here = place(index_dim, i, j, k, -1, 0);
                    assert_true(out[here] == array[from]);
                    expected[from] += other[here];
                }

        bool in_place = step_between(0, 1);
        if (in_place)
            memcpy(out, array, size * sizeof(float));
        step_operand(&scatter, out, TN_FLOAT32, 3, dim, NULL, 0);
        step_operand(&scatter, in_place ? out : array, TN_FLOAT32, 3, dim, NULL, 0);
        step_operand(&scatter, positions, TN_INT64, 3, index_dim, index_stride, 0);
        step_operand(&scatter, other, TN_FLOAT32, 3, index_dim, NULL, 0);
        assert_int_equal(step_run(&scatter), TN_OK);
        assert_memory_equal(out, expected, size * sizeof(float));
    }
}

/* Enough columns for several threads: each still adds in the order of the index. */
static void test_large(void **state)
{
    (void)state;
    enum { ROWS = 3, COLUMNS = 500, TIMES = 140 };
    int64_t dim[2] = {ROWS, COLUMNS}, index_dim[2] = {TIMES, COLUMNS};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        expected[i] = array[i] = (float)step_uniform(-1, 1);
    for (int t = 0; t < TIMES; t++) {
        positions[t] = step_between(-ROWS, ROWS - 1);
        for (int j = 0; j < COLUMNS; j++) {
            other[t * COLUMNS + j] = (float)step_uniform(-1, 1);
            expected[(positions[t] + ROWS) % ROWS * COLUMNS + j] += other[t * COLUMNS + j];
        }
    }
    one_step step = step_of(TN__OP_SCATTER_ADD, TN_FLOAT32);
    step.step.axes = 1;
    step_operand(&step, out, TN_FLOAT32, 2, dim, NULL, 0);
    step_operand(&step, array, TN_FLOAT32, 2, dim, NULL, 0);
    step_operand(&step, positions, TN_INT64, 2, index_dim, (int64_t[]){1, 0}, 0);
    step_operand(&step, other, TN_FLOAT32, 2, index_dim, NULL, 0);
    assert_int_equal(step_run(&step), TN_OK);
    assert_memory_equal(out, expected, sizeof(float) * ROWS * COLUMNS);

    step = step_of(TN__OP_GATHER, TN_FLOAT32);
    step.step.axes = 1;
    step_operand(&step, out, TN_FLOAT32, 2, index_dim, NULL, 0);
    step_operand(&step, expected, TN_FLOAT32, 2, dim, NULL, 0);
    step_operand(&step, positions, TN_INT64, 2, index_dim, (int64_t[]){1, 0}, 0);
    assert_int_equal(step_run(&step), TN_OK);
    for (int t = 0; t < TIMES; t++)
        assert_memory_equal(out + t * COLUMNS, expected + (positions[t] + ROWS) % ROWS * COLUMNS,
                            sizeof(float) * COLUMNS);
}

/* bfloat16 rounds after each addition: 256 + 1 is 256. */
static void test_narrow(void **state)
{
    (void)state;
    uint16_t base[2] = {0x4380, 0}, sum[2], one[3] = {0x3f80, 0x3f80, 0x3f80};
    int64_t at[3] = {0, 1, 1};
    one_step step = step_of(TN__OP_SCATTER_ADD, TN_BFLOAT16);
    step.step.axes = 1;
    step_operand(&step, sum, TN_BFLOAT16, 1, (int64_t[]){2}, NULL, 0);
    step_operand(&step, base, TN_BFLOAT16, 1, (int64_t[]){2}, NULL, 0);
    step_operand(&step, at, TN_INT64, 1, (int64_t[]){3}, NULL, 0);
    step_operand(&step, one, TN_BFLOAT16, 1, (int64_t[]){3}, NULL, 0);
    assert_int_equal(step_run(&step), TN_OK);
    assert_int_equal(sum[0], 0x4380);
    assert_int_equal(sum[1], 0x4000);
}

static void test_out_of_range(void **state)
{
    (void)state;
    for (int scatter = 0; scatter < 2; scatter++)
        for (int bad = 0; bad < 6; bad++) {
            int64_t at[3] = {0, (int64_t[]){4, -5, INT64_MAX, INT64_MIN, -(INT64_C(1) << 62), INT64_MIN + 9}[bad], 1};
            one_step step = step_of(scatter ? TN__OP_SCATTER_ADD : TN__OP_GATHER, TN_FLOAT32);
            step.step.axes = 2;
            step_operand(&step, out, TN_FLOAT32, 2, scatter ? (int64_t[]){1, 4} : (int64_t[]){1, 3}, NULL, 0);
            step_operand(&step, array, TN_FLOAT32, 2, (int64_t[]){1, 4}, NULL, 0);
            step_operand(&step, at, TN_INT64, 2, (int64_t[]){1, 3}, NULL, 0);
            if (scatter)
                step_operand(&step, other, TN_FLOAT32, 2, (int64_t[]){1, 3}, NULL, 0);
            assert_int_equal(step_run(&step), TN_ERR_INDEX);
            char words[128];
            snprintf(words, sizeof words,
                     "index %lld along axis 1 is out of range for an axis of extent 4: valid are -4 to 3",
                     (long long)at[1]);
            assert_non_null(strstr(tn_error(), words));
            tn_clear_error();
        }
}

int main(void)
{
    tn_set_threads(3); /* whatever the machine has */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
