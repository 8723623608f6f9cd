/* SPDX-License-Identifier: MIT */
/* Shapes and strides, against slow and obvious answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "core/shape.h"
#include "support/random.h"

static int64_t product(int ndim, const int64_t *dim)
{
    int64_t size = 1;
    for (int i = 0; i < ndim; i++)
        size *= dim[i];
    return size;
}

/* Where element `linear` (in C order) of a strided array lies. */
static int64_t place(int64_t linear, int ndim, const int64_t *dim, const int64_t *stride)
{
    int64_t offset = 0;
    for (int i = ndim - 1; i >= 0; i--) {
        offset += linear % dim[i] * stride[i];
        linear /= dim[i];
    }
    return offset;
}

/* The only strides that could do: axis k's is the distance between elements 0 and its own step in C order. */
static bool reshape_by_force(int from_ndim, const int64_t *from, const int64_t *from_stride, int to_ndim,
                             const int64_t *to, int64_t *stride)
{
    int64_t size = product(to_ndim, to), step = 1;
    for (int k = to_ndim - 1; k >= 0; k--) {
        stride[k] = to[k] > 1 ? place(step, from_ndim, from, from_stride) : 0;
        step *= to[k];
    }
    for (int64_t i = 0; i < size; i++)
        if (place(i, to_ndim, to, stride) != place(i, from_ndim, from, from_stride))
            return false;
    return true;
}

static int random_factors(test_random *r, int64_t size, int64_t *dim)
{
    int ndim = 0;
    while (size > 1 && ndim < TN_MAX_NDIM - 2) {
        if (test_random_int(r, 0, 4) == 0)
            dim[ndim++] = 1;
        int64_t factor = test_random_int(r, 2, size);
        while (size % factor)
            factor++;
        dim[ndim++] = factor;
        size /= factor;
    }
    if (size > 1 || test_random_int(r, 0, 3) == 0)
        dim[ndim++] = size;
    return ndim;
}

static void reshape_strides(void **state)
{
    (void)state;
    test_random r = test_random_new();
    int views = 0, copies = 0;
    for (int round = 0; round < 20000; round++) {
        static const int64_t sizes[] = {1, 2, 6, 12, 24, 36, 60, 64};
        int64_t size = sizes[test_random_int(&r, 0, 7)], from[8], to[8], stride[8], got[8], wanted[8];
        int from_ndim = random_factors(&r, size, from), to_ndim = random_factors(&r, size, to);
        tn__strides_contiguous(from_ndim, from, stride);
        for (int i = 0; i < from_ndim; i++)
            switch (test_random_int(&r, 0, 9)) {
            case 0: stride[i] = 0; break;               /* broadcast */
            case 1: stride[i] *= -1; break;             /* reversed */
            case 2: stride[i] *= 2; break;              /* sliced */
            case 3: {                                   /* transposed */
                int64_t kept = stride[i];
                stride[i] = stride[0];
                stride[0] = kept;
                break;
            }
            default: break;
            }
        bool expected = reshape_by_force(from_ndim, from, stride, to_ndim, to, wanted);
        bool found = tn__strides_reshape(from_ndim, from, stride, to_ndim, to, got);
        assert_int_equal(found, expected);
        for (int i = 0; found && i < to_ndim; i++)
            if (to[i] > 1)
                assert_int_equal(got[i], wanted[i]);
        views += found;
        copies += !found;
    }
    assert_true(views > 1000 && copies > 1000);
}

static void reshape_of_nothing(void **state)
{
    (void)state;
    int64_t from[] = {0, 3}, to[] = {5, 0, 2}, stride[] = {3, 1}, got[3];
    assert_true(tn__strides_reshape(2, from, stride, 3, to, got));
    to[1] = 1;
    assert_false(tn__strides_reshape(2, from, stride, 3, to, got));
    int64_t one[] = {1, 1};
    assert_true(tn__strides_reshape(0, NULL, NULL, 2, one, got));
    assert_true(tn__strides_reshape(2, one, stride, 0, NULL, got));
}

static void contiguous_strides(void **state)
{
    (void)state;
    int64_t dim[] = {4, 1, 0, 3}, stride[4];
    tn__strides_contiguous(4, dim, stride);
    assert_int_equal(stride[3], 1);
    assert_int_equal(stride[2], 3);
    assert_int_equal(stride[0], 3);
}

static void texts(void **state)
{
    (void)state;
    char text[TN__SHAPE_TEXT];
    int64_t dim[9] = {2, 3, 0, 1, 1, 1, 1, 1, 1};
    assert_string_equal(tn__shape_text(0, dim, text), "()");
    assert_string_equal(tn__shape_text(1, dim, text), "(2,)");
    assert_string_equal(tn__shape_text(3, dim, text), "(2, 3, 0)");
    assert_string_equal(tn__shape_text(9, dim, text), "(2, 3, 0, 1, 1, 1, 1, 1, ...)");
    for (int i = 0; i < 8; i++)
        dim[i] = INT64_MIN;
    tn__shape_text(8, dim, text);
    assert_int_equal(text[strlen(text) - 1], ')');
}

static void checks(void **state)
{
    (void)state;
    static const struct {
        tn_shape shape;
        size_t itemsize;
        tn_status status;
    } rows[] = {
        {{0, {0}}, 8, TN_OK},
        {{2, {3, 0}}, 8, TN_OK},
        {{9, {1}}, 1, TN_ERR_SHAPE},
        {{-1, {1}}, 1, TN_ERR_SHAPE},
        {{2, {3, -1}}, 4, TN_ERR_SHAPE},
        {{2, {1 << 30, 1 << 30}}, 1, TN_OK},
        {{2, {1 << 30, 1 << 30}}, 4, TN_ERR_SHAPE},
        {{3, {0, (int64_t)1 << 40, (int64_t)1 << 40}}, 4, TN_ERR_SHAPE},
        {{1, {INT64_MAX}}, 8, TN_ERR_SHAPE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_clear_error();
        assert_int_equal(tn__shape_check("test", rows[i].shape, rows[i].itemsize), rows[i].status);
        assert_int_equal(tn_ok(), rows[i].status == TN_OK);
    }
    tn_clear_error();
}

static void broadcasting(void **state)
{
    (void)state;
    test_random r = test_random_new();
    int fitted = 0;
    for (int round = 0; round < 5000; round++) {
        int64_t padded[2][8], dim[2][8];
        const tn__shape *shape[2];
        int ndim[2];
        for (int s = 0; s < 2; s++) {
            ndim[s] = (int)test_random_int(&r, 0, 4);
            for (int i = 0; i < 8; i++)
                padded[s][i] = 1;
            for (int i = 0; i < ndim[s]; i++)
                padded[s][8 - ndim[s] + i] = dim[s][i] = test_random_int(&r, 0, 2);
            shape[s] = tn__shape_intern(ndim[s], dim[s]);
            assert_non_null(shape[s]);
        }
        bool fits = true;
        int64_t result[8];
        for (int i = 0; i < 8; i++) {
            int64_t x = padded[0][i], y = padded[1][i];
            fits = fits && (x == y || x == 1 || y == 1);
            result[i] = x == 1 ? y : x;
        }
        tn_shape out;
        assert_int_equal(tn__shape_broadcast(shape[0], shape[1], &out), fits);
        if (!fits)
            continue;
        fitted++;
        assert_int_equal(out.ndim, ndim[0] > ndim[1] ? ndim[0] : ndim[1]);
        for (int i = 0; i < out.ndim; i++)
            assert_int_equal(out.dim[i], result[8 - out.ndim + i]);
    }
    assert_true(fitted > 500 && fitted < 4500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshape_strides), cmocka_unit_test(reshape_of_nothing), cmocka_unit_test(contiguous_strides),
        cmocka_unit_test(texts),           cmocka_unit_test(checks),             cmocka_unit_test(broadcasting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
