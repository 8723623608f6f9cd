/* SPDX-License-Identifier: MIT */
/* Reduction steps on the CPU: bit for bit the order of device/order.h, written down again here in the plainest way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso/device.h>

#include "core/dtype.h"
#include "cpu_steps.h"
#include "device/order.h"
#include "ops/ops.h"

enum { L = TN__REDUCE_LANES, B = TN__REDUCE_BLOCK, C = TN__REDUCE_OUTER_BLOCK };
enum { S = TN__REDUCE_STRETCH, T = TN__REDUCE_OUTER_STRETCH };

/* What has been added to a sum of double precision, or of single. */
static double rounded(double sum, bool wide) { return wide ? sum : (float)sum; }

static double halves(double lane[L], bool wide)
{
    for (int half = L / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] = rounded(lane[j] + lane[j + half], wide);
    return lane[0];
}

/* The sum of x[0..r-1] in the inner and in the outer order, whose stretches go on in double precision or don't: of a
 * block, ... */
static double inner_block(const float *x, int64_t r, bool wide)
{
    double lane[L] = {0};
    int64_t stretch = wide ? S : B;
    for (int64_t begin = 0; begin < r; begin += stretch) {
        float turn[L] = {0};
        for (int64_t i = begin; i < r && i < begin + stretch; i++)
            turn[i % L] += x[i];
        for (int j = 0; j < L; j++)
            lane[j] += turn[j];
    }
    return halves(lane, wide);
}

static double outer_block(const float *x, int64_t r, bool wide)
{
    double sum = 0;
    int64_t stretch = wide ? T : C;
    for (int64_t begin = 0; begin < r; begin += stretch) {
        float turn = 0;
        for (int64_t i = begin; i < r && i < begin + stretch; i++)
            turn += x[i];
        sum += turn;
    }
    return sum;
}

/* ... of blocks. */
static float inner_sum(const float *x, int64_t r, bool wide)
{
    double lane[L] = {0};
    if (r <= B)
        return (float)inner_block(x, r, wide && r > S);
    for (int64_t k = 0; k * B < r; k++)
        lane[k % L] = rounded(lane[k % L] + inner_block(x + k * B, r - k * B < B ? r - k * B : B, wide), wide);
    return (float)halves(lane, wide);
}

static float outer_sum(const float *x, int64_t r, bool wide)
{
    double total = 0;
    for (int64_t i = 0; i < r; i += C)
        total = rounded(total + outer_block(x + i, r - i < C ? r - i : C, wide && r > T), wide);
    return (float)total;
}

/* Sums over random axes of a random strided array. */
static void check_sum(int ndim, const int64_t *dim, uint32_t axes, tn_dtype dtype, bool shuffled)
{
    int64_t size = 1, kept = 1, stride[8], out_dim[8], step = 1;
    for (int i = 0; i < ndim; i++)
        size *= dim[i];
    for (int i = ndim - 1; i >= 0; i--) { /* C order, or Fortran's */
        int axis = shuffled ? ndim - 1 - i : i;
        stride[axis] = step;
        step *= dim[axis];
    }
    bool inner = true;
    for (int i = 0; i < ndim; i++) {
        out_dim[i] = axes >> i & 1 ? 1 : dim[i];
        kept *= out_dim[i];
        if (dim[i] > 1)
            inner = axes >> i & 1;
    }
    size_t item = tn_dtype_size(dtype);
    char *in = calloc(size + 1, item), *out = calloc(kept + 1, item);
    float *row = malloc((size + 1) * sizeof(*row));
    assert_true(in && out && row);
    for (int64_t i = 0; i < size; i++) {
        tn__scalar scalar = tn__scalar_from_double(step_uniform(-1, 1), dtype);
        memcpy(in + i * item, scalar.bytes, item);
    }
    one_step reduce = step_of(TN__OP_SUM, dtype);
    reduce.step.axes = axes;
    step_operand(&reduce, out, dtype, ndim, out_dim, NULL, 0);
    step_operand(&reduce, in, dtype, ndim, dim, stride, 0);
    assert_int_equal(step_run(&reduce), TN_OK);

    for (int64_t k = 0; k < kept; k++) {
        int64_t base = 0, rest = k, count = 0;
        for (int i = ndim - 1; i >= 0; rest /= out_dim[i], i--)
            base += rest % out_dim[i] * stride[i];
        for (int64_t e = 0; e < size; e++) { /* the elements of this result, in C order */
            int64_t place = 0, left = e;
            bool mine = true;
            int64_t fixed = 0;
            for (int i = ndim - 1; i >= 0; left /= dim[i], i--) {
                place += left % dim[i] * stride[i];
                if (!(axes >> i & 1))
                    fixed += left % dim[i] * stride[i];
            }
            mine = fixed == base;
            if (mine) {
                tn__scalar scalar = {.bits = 0};
                memcpy(scalar.bytes, in + place * item, item);
                row[count++] = (float)tn__scalar_to_double(scalar, dtype);
            }
        }
        bool wide = dtype == TN_FLOAT32;
        float sum = inner ? inner_sum(row, count, wide) : outer_sum(row, count, wide);
        tn__scalar expected = tn__scalar_from_double(sum, dtype);
        if (memcmp(out + k * item, expected.bytes, item) != 0)
            fail_msg("a %s sum of axes 0x%x of %d differs", tn_dtype_name(dtype), (unsigned)axes, ndim);
    }
    free(in);
    free(out);
    free(row);
}

static void test_order_of_sums(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT32, TN_FLOAT16, TN_BFLOAT16};
    for (int round = 0; round < 200; round++) {
        int64_t dim[8];
        int ndim = (int)step_between(0, 4);
        for (int i = 0; i < ndim; i++)
            dim[i] = step_between(1, 7);
        check_sum(ndim, dim, (uint32_t)step_between(0, (1 << ndim) - 1), dtypes[round % 4], round % 3 == 0);
    }
    for (int64_t r = 1; r < 5; r++) { /* around the limits of lanes and blocks */
        check_sum(1, (int64_t[]){L * r + step_between(-2, 2)}, 1, TN_FLOAT32, false);
        check_sum(1, (int64_t[]){B * r + step_between(-2, 2)}, 1, TN_FLOAT32, false);
        check_sum(1, (int64_t[]){S * r + step_between(-2, 2)}, 1, r % 2 ? TN_FLOAT32 : TN_BFLOAT16, false);
        check_sum(2, (int64_t[]){3, S * r + step_between(-2, 2)}, 2, r % 2 ? TN_FLOAT32 : TN_FLOAT16, r > 2);
        check_sum(2, (int64_t[]){T * r + step_between(-2, 2), 5}, 1, r % 2 ? TN_FLOAT32 : TN_FLOAT16, r > 2);
        check_sum(2, (int64_t[]){C * r + step_between(-2, 2), 3}, 1, TN_FLOAT32, false);
        check_sum(2, (int64_t[]){2, B * r + step_between(-2, 2)}, 2, TN_FLOAT32, true);
        check_sum(3, (int64_t[]){C + r, 2, 3}, 5, TN_FLOAT32, false);
        check_sum(3, (int64_t[]){C / 2, 3, r}, 3, TN_FLOAT32, true);
    }
    check_sum(1, (int64_t[]){B * 5 * L + 5}, 1, TN_FLOAT32, false); /* more blocks than lanes, several threads */
    check_sum(2, (int64_t[]){2 * C + 1, 300}, 1, TN_FLOAT32, false);
}

static void test_other_reductions(void **state)
{
    (void)state;
    int64_t dim[2] = {5, 9}, out_dim[2] = {5, 1};
    float x[45], out[5];
    for (int i = 0; i < 45; i++)
        x[i] = (float)step_between(-3, 3);
    x[20] = NAN;
    static const int ops[] = {TN__OP_PROD, TN__OP_MAX, TN__OP_MIN};
    for (int o = 0; o < 3; o++) {
        one_step step = step_of(ops[o], TN_FLOAT32);
        step.step.axes = 2;
        step_operand(&step, out, TN_FLOAT32, 2, out_dim, NULL, 0);
        step_operand(&step, x, TN_FLOAT32, 2, dim, NULL, 0);
        assert_int_equal(step_run(&step), TN_OK);
        for (int i = 0; i < 5; i++) {
            float expected = x[9 * i];
            for (int j = 1; j < 9; j++) {
                float value = x[9 * i + j];
                expected = o == 0 ? expected * value : o == 1 ? fmaxf(expected, value) : fminf(expected, value);
            }
            assert_true(i == 2 ? isnan(out[i]) : out[i] == expected);
        }
    }
    unsigned char flags[45] = {0}, any[5], all[5];
    for (int j = 0; j < 9; j++)
        flags[9 + j] = 1;
    flags[18 + 4] = 1;
    for (int k = 0; k < 2; k++) {
        one_step step = step_of(k ? TN__OP_ALL : TN__OP_ANY, TN_BOOL);
        step.step.axes = 2;
        step_operand(&step, k ? all : any, TN_BOOL, 2, out_dim, NULL, 0);
        step_operand(&step, flags, TN_BOOL, 2, dim, NULL, 0);
        assert_int_equal(step_run(&step), TN_OK);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(any[i], i == 1 || i == 2);
        assert_int_equal(all[i], i == 1);
    }
    signed char bytes[300], sum[1]; /* wraps around */
    memset(bytes, 1, sizeof(bytes));
    one_step step = step_of(TN__OP_SUM, TN_INT8);
    step.step.axes = 1;
    step_operand(&step, sum, TN_INT8, 1, (int64_t[]){1}, NULL, 0);
    step_operand(&step, bytes, TN_INT8, 1, (int64_t[]){300}, NULL, 0);
    assert_int_equal(step_run(&step), TN_OK);
    assert_int_equal(sum[0], (signed char)(300 % 256));
}

static void test_empty(void **state)
{
    (void)state;
    float out[3] = {7, 7, 7};
    static const struct {
        int op;
        float expected;
    } rows[] = {{TN__OP_SUM, 0}, {TN__OP_PROD, 1}, {TN__OP_MAX, -INFINITY}, {TN__OP_MIN, INFINITY}};
    for (int inner = 0; inner < 2; inner++)
        for (int r = 0; r < 4; r++) {
            one_step step = step_of(rows[r].op, TN_FLOAT32);
            step.step.axes = inner ? 2 : 1;
            step_operand(&step, out, TN_FLOAT32, 2, inner ? (int64_t[]){3, 1} : (int64_t[]){1, 3}, NULL, 0);
            step_operand(&step, out, TN_FLOAT32, 2, inner ? (int64_t[]){3, 0} : (int64_t[]){0, 3}, NULL, 0);
            assert_int_equal(step_run(&step), TN_OK);
            for (int i = 0; i < 3; i++)
                assert_true(out[i] == rows[r].expected);
        }
    one_step step = step_of(TN__OP_SUM, TN_FLOAT32);
    step.step.axes = 2;
    step_operand(&step, NULL, TN_FLOAT32, 2, (int64_t[]){0, 1}, NULL, 0);
    step_operand(&step, NULL, TN_FLOAT32, 2, (int64_t[]){0, 5}, NULL, 0);
    assert_int_equal(step_run(&step), TN_OK);
}

/* The first of equals wins, and the first NaN before all numbers. */
static void test_positions(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        int64_t dim[3] = {step_between(1, 4), step_between(1, round % 20 == 0 ? 1500 : 9), step_between(1, 4)};
        int axis = (int)step_between(0, 2), largest = (int)step_between(0, 1);
        int64_t size = dim[0] * dim[1] * dim[2], out_dim[3] = {dim[0], dim[1], dim[2]}, stride[3];
        out_dim[axis] = 1;
        stride[2] = 1;
        stride[1] = dim[2];
        stride[0] = dim[1] * dim[2];
        tn_dtype dtype = round % 2 ? TN_FLOAT32 : TN_INT16;
        float *x = malloc(size * sizeof(*x));
        short *narrow = malloc(size * sizeof(*narrow));
        int64_t *out = malloc(size * sizeof(*out));
        assert_true(x && narrow && out);
        for (int64_t i = 0; i < size; i++) {
            narrow[i] = (short)step_between(-3, 3);
            x[i] = round % 2 && step_between(0, 9) == 0 ? NAN : narrow[i];
        }
        one_step step = step_of(largest ? TN__OP_ARGMAX : TN__OP_ARGMIN, dtype);
        step.step.axes = 1u << axis;
        step_operand(&step, out, TN_INT64, 3, out_dim, NULL, 0);
        step_operand(&step, dtype == TN_FLOAT32 ? (void *)x : (void *)narrow, dtype, 3, dim, NULL, 0);
        assert_int_equal(step_run(&step), TN_OK);
        for (int64_t k = 0; k < size / dim[axis]; k++) {
            int64_t rest = k, base = 0, expected = 0;
            for (int i = 2; i >= 0; rest /= out_dim[i], i--)
                base += rest % out_dim[i] * stride[i];
            for (int64_t r = 1; r < dim[axis]; r++) {
                float best = x[base + expected * stride[axis]], value = x[base + r * stride[axis]];
                if (!isnan(best) && (isnan(value) || (largest ? value > best : value < best)))
                    expected = r;
            }
            assert_int_equal(out[k], expected);
        }
        free(x);
        free(narrow);
        free(out);
    }
    /* over both axes, and with nothing but the identity */
    float low[6] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    int64_t position = 9;
    for (int k = 0; k < 2; k++) {
        one_step step = step_of(TN__OP_ARGMAX, TN_FLOAT32);
        step.step.axes = 3;
        step_operand(&step, &position, TN_INT64, 2, (int64_t[]){1, 1}, NULL, 0);
        step_operand(&step, low, TN_FLOAT32, 2, (int64_t[]){2, 3}, NULL, 0);
        assert_int_equal(step_run(&step), TN_OK);
        assert_int_equal(position, k ? 4 : 0);
        low[4] = 1;
    }
}

int main(void)
{
    tn_set_threads(3); /* whatever the machine has */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_sums),
        cmocka_unit_test(test_other_reductions),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
