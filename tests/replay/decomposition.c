/* SPDX-License-Identifier: MIT */
/*
 * Decompositions by their definition. Where values are equal or nearly so (a singular value of 0 twice, the identity),
 * vectors are not determined, but for what they span: LAPACK's versions and cuSOLVER then give others than NumPy had.
 * Such results are right if they decompose the operand, to within the rounding of its dtype; values, shapes and dtypes
 * are compared with NumPy's all the same.
 */
#include "replay.h"

#include <float.h>

typedef struct wide {
    tn_array *a;
    double eps; /* how near results of the operand's dtype are */
    int64_t extent;
} wide;

/* In double precision on the CPU. */
static tn_array *widened(const tn_array *x)
{
    tn_array *y = tn_to(x, tn_cpu());
    return tn_cast(y, tn_dtype_is_complex(tn_dtype_of(y)) ? TN_COMPLEX128 : TN_FLOAT64);
}

static wide operand_of(call *c)
{
    tn_array *a = array(c, 0);
    bool single = tn_dtype_of(a) == TN_FLOAT32 || tn_dtype_of(a) == TN_COMPLEX64;
    int64_t m = tn_dim(a, -2), n = tn_dim(a, -1);
    return (wide){widened(a), single ? FLT_EPSILON : DBL_EPSILON, m > n ? m : n};
}

static tn_array *adjoint(const tn_array *x) { return tn_conjugate(tn_swapaxes(x, -1, -2)); }
static tn_array *first_columns(tn_array *x, int64_t count) { return tn_slice_axis(x, -1, 0, count, 1); }

/* Is |x - y| small beside the largest of y? NaN is not. */
static bool near(const wide *w, const tn_array *x, const tn_array *y, double slack)
{
    if (tn_is_error(x) || tn_is_error(y))
        return false;
    if (tn_size(y) == 0)
        return tn_size(x) == 0;
    double most = tn_item(tn_max(tn_abs(tn_subtract(x, y)))), size = tn_item(tn_max(tn_abs(y)));
    return most <= slack * w->eps * (double)w->extent * size;
}

/* Are the columns orthonormal? */
static bool orthonormal(const wide *w, const tn_array *x)
{
    tn_array *one = tn_matmul(adjoint(x), x);
    return near(w, one,
                tn_broadcast_to(tn_cast(tn_eye(tn_dim(x, -1), tn_dim(x, -1)), tn_dtype_of(one)), tn_shape_of(one)),
                100);
}

bool holds_svd(call *c, tn_array *const *result)
{
    wide w = operand_of(c);
    tn_array *u = widened(result[0]), *s = widened(result[1]), *vh = widened(result[2]);
    int64_t k = tn_dim(s, -1);
    tn_array *made = tn_matmul(tn_multiply(first_columns(u, k), tn_expand_dims(s, -2)), tn_slice_axis(vh, -2, 0, k, 1));
    return near(&w, made, w.a, 100) && orthonormal(&w, u) && orthonormal(&w, adjoint(vh));
}

bool holds_qr(call *c, tn_array *const *result)
{
    wide w = operand_of(c);
    tn_array *q = widened(result[0]), *r = widened(result[1]);
    return near(&w, tn_matmul(q, r), w.a, 100) && orthonormal(&w, q) && tn_item(tn_all(tn_equal(tn_tril(r, -1), 0)));
}

/* Of the triangle that is read, the other one is its mirror. */
bool holds_eigh(call *c, tn_array *const *result)
{
    wide w = operand_of(c);
    const char *side = string(c, 1, "L");
    tn_array *half = *side == 'U' || *side == 'u' ? adjoint(tn_triu(w.a, 0)) : tn_tril(w.a, 0);
    w.a = tn_add(tn_tril(half, -1), adjoint(tn_tril(half, -1)));
    tn_array *v = widened(result[1]),
             *made = tn_matmul(tn_multiply(v, tn_expand_dims(widened(result[0]), -2)), adjoint(v));
    tn_array *diagonal = tn_multiply(tn_cast(tn_eye(tn_dim(half, -1), tn_dim(half, -1)), TN_FLOAT64), tn_real(half));
    return near(&w, made, tn_add(w.a, diagonal), 100) && orthonormal(&w, v);
}

/* Vectors of length one that the matrix only stretches. */
bool holds_eig(call *c, tn_array *const *result)
{
    wide w = operand_of(c);
    tn_array *v = widened(result[1]), *stretched = tn_multiply(v, tn_expand_dims(widened(result[0]), -2));
    tn_array *length = tn_sum(tn_square(tn_abs(v)), .axis = TN_AXES(-2)), *size = tn_max(tn_abs(w.a));
    tn_array *rest = tn_divide(tn_subtract(tn_matmul(w.a, v), stretched), size);
    return near(&w, tn_add(rest, 1), tn_ones_like(rest), 1000) && near(&w, length, tn_ones_like(length), 100);
}
