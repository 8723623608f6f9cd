/* SPDX-License-Identifier: MIT */
/* Powers of matrices, and products of many in the order that costs least. */
#include <tanso/linalg.h>

#include "core/memory.h"
#include "linalg/matrix.h"

/* By squaring. Integers stay integers, as NumPy's, but for inverses. */
static tn__node *matrix_power(tn__node *a, int64_t n)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    if (a->shape->ndim < 2 || tn__row_count(a) != tn__column_count(a))
        TN__REFUSE(TN_ERR_SHAPE, "matrix_power", "expected square matrices, got %d axes%s", a->shape->ndim,
                   a->shape->ndim < 2 ? "" : " and other extents");
    if (n == 0)
        return tn__eye_like(a, tn__row_count(a));
    uint64_t left = (uint64_t)n;
    if (n < 0) {
        left = 0 - left;
        a = tn__inverse("matrix_power", tn__square_operand("matrix_power", a), false);
    }
    if (left == 3) /* NumPy's order */
        return tn__matmul_node(tn__matmul_node(a, a), a);
    tn__node *result = NULL;
    for (tn__node *power = a; left; left >>= 1) {
        if (left & 1)
            result = result ? tn__matmul_node(result, power) : power;
        if (left > 1)
            power = tn__matmul_node(power, power);
    }
    return result;
}

tn_array *tn_linalg_matrix_power(const tn_array *a, int64_t n)
{
    TN__RETURN(matrix_power(tn__node_of(a, "matrix_power"), n));
}

#define MOST 64

/* split[i][j]: where the product of matrices i to j is cut (T. Cormen et al., "Introduction to Algorithms", 15.2). */
static void order(int count, const int64_t *extent, unsigned char split[MOST][MOST])
{
    double cost[MOST][MOST] = {{0}};
    for (int length = 1; length < count; length++)
        for (int i = 0; i + length < count; i++) {
            int j = i + length;
            cost[i][j] = -1;
            for (int k = i; k < j; k++) {
                double c = cost[i][k] + cost[k + 1][j] +
                           (double)extent[i] * (double)extent[k + 1] * (double)extent[j + 1];
                if (cost[i][j] < 0 || c < cost[i][j]) {
                    cost[i][j] = c;
                    split[i][j] = (unsigned char)k;
                }
            }
        }
}

static tn__node *product(tn__node *const *a, int i, int j, unsigned char split[MOST][MOST])
{
    if (i == j)
        return a[i];
    int k = split[i][j];
    return tn__matmul_node(product(a, i, k, split), product(a, k + 1, j, split));
}

static tn__node *multi_dot(int count, const tn_array *const *arrays)
{
    if (count < 2 || count > MOST)
        TN__REFUSE(TN_ERR_VALUE, "multi_dot", "expected 2 to %d arrays, got %d", MOST, count);
    if (!arrays)
        TN__REFUSE(TN_ERR_VALUE, "multi_dot", "expected %d arrays, got NULL", count);
    tn__node *a[MOST];
    int64_t extent[MOST + 1];
    unsigned char split[MOST][MOST] = {{0}};
    uint32_t dropped = 0;
    for (int i = 0; i < count; i++) {
        a[i] = tn__strong(tn__node_of(arrays[i], "multi_dot"));
        TN__PASS_ERROR(a[i]);
        bool end = i == 0 || i == count - 1;
        if (a[i]->shape->ndim != 2 && !(end && a[i]->shape->ndim == 1))
            TN__REFUSE(TN_ERR_SHAPE, "multi_dot",
                       "array %d has %d axes; expected matrices, or vectors as the first and last", i,
                       a[i]->shape->ndim);
    }
    /* a vector in front is a row, one at the end a column */
    if (a[0]->shape->ndim == 1) {
        a[0] = tn__insert_axis("multi_dot", a[0], 0);
        dropped |= 1;
    }
    if (a[count - 1]->shape->ndim == 1) {
        a[count - 1] = tn__insert_axis("multi_dot", a[count - 1], 1);
        dropped |= 2;
    }
    for (int i = 0; i < count; i++) {
        TN__PASS_ERROR(a[i]);
        if (i && tn__row_count(a[i]) != tn__column_count(a[i - 1]))
            TN__REFUSE(TN_ERR_SHAPE, "multi_dot", "array %d has %lld columns, the next one %lld rows: they must agree",
                       i - 1, (long long)tn__column_count(a[i - 1]), (long long)tn__row_count(a[i]));
        extent[i] = tn__row_count(a[i]);
    }
    extent[count] = tn__column_count(a[count - 1]);
    order(count, extent, split);
    tn__node *result = product(a, 0, count - 1, split);
    TN__PASS_ERROR(result);
    return dropped ? tn__drop_axes(result, dropped) : result;
}

tn_array *tn_linalg_multi_dot(int count, const tn_array *const *arrays)
{
    TN__RETURN(multi_dot(count, arrays));
}

tn_array *tn_linalg_multi_dot_with(int count, const tn_array *const *arrays, const tn_out_opts *opts)
{
    tn__call call = tn__enter();
    tn_array *out = opts ? opts->out : NULL;
    tn__node *result = multi_dot(count, arrays);
    if (out && !tn__node_is_error(result) && !tn_is_error(out) && tn_dtype_of(out) != (tn_dtype)result->dtype)
        result = tn__node_error(tn__error_new(TN_ERR_DTYPE, "multi_dot",
                                              "the product is %s and .out %s: expected the same dtype",
                                              tn_dtype_name((tn_dtype)result->dtype), tn_dtype_name(tn_dtype_of(out))));
    return tn__deliver(call, result, out);
}
