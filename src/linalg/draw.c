/* SPDX-License-Identifier: MIT */
/* Random vectors with a covariance. */
#include <tanso/random.h>

#include "array/draw.h"
#include "linalg/matrix.h"

static const char operation[] = "random_multivariate_normal";

/* Checked, in the draw's dtype; `ndim` axes. */
static tn__node *parameter(const tn_array *x, int ndim, const tn__draw *d)
{
    tn__node *a = tn__strong(tn__node_of(x, operation));
    TN__PASS_ERROR(a);
    if (a->shape->ndim != ndim || a->shape->dim[ndim - 1] < 1 || tn_dtype_is_complex((tn_dtype)a->dtype))
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected a vector and a matrix of real numbers, got %d axes of %s",
                   a->shape->ndim, tn_dtype_name((tn_dtype)a->dtype));
    if (a->device != d->device && !tn__foldable(a))
        TN__REFUSE(TN_ERR_DEVICE, operation,
                   "a parameter is on %s, the result on %s; move it with tn_to, or give .device", a->device->name,
                   d->device->name);
    return tn__adapt(a, TN_FLOAT64, a->shape, d->device);
}

/* covariance = v w v^T: normals times sqrt(w) v^T. */
static tn__node *drawn(const tn_array *mean, const tn_array *covariance, tn_shape shape, const tn_random_opts *opts)
{
    int64_t n = tn_ndim(mean) == 1 ? tn_dim(mean, 0) : 1;
    if (shape.ndim < 0 || shape.ndim >= TN_MAX_NDIM)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected a shape of 0 to %d axes, got %d: a vector's is one more",
                   TN_MAX_NDIM - 1, shape.ndim);
    shape.dim[shape.ndim++] = n;
    tn__draw d = tn__draw_new(operation, shape, TN_FLOAT32, opts);
    if (!d.shape)
        return tn__failed();
    if (!tn_dtype_is_float(d.dtype))
        TN__REFUSE(TN_ERR_DTYPE, operation, "draws floats, and the dtype asked for is %s", tn_dtype_name(d.dtype));
    tn__node *centre = parameter(mean, 1, &d), *square = parameter(covariance, 2, &d);
    TN__PASS_ERROR(centre);
    TN__PASS_ERROR(square);
    if (square->shape->dim[0] != n || square->shape->dim[1] != n)
        TN__REFUSE(TN_ERR_SHAPE, operation,
                   "the mean has %lld elements, the covariance %lld rows and %lld columns: they must agree",
                   (long long)n, (long long)square->shape->dim[0], (long long)square->shape->dim[1]);
    tn__node *all = tn__packed(TN__OP_EIGH, TN_FLOAT64, square, n + n * n, 2, (int64_t[]){1, 0});
    tn__node *w = tn__part(all, 0, 1, n), *v = tn__part(all, n, n, n);
    TN__PASS_ERROR(w);
    tn__node *root = tn__unary(TN__OP_SQRT, tn__binary(TN__OP_MAXIMUM, w, tn__const_like(w, 0)));
    tn__node *z = tn__draw_next(&d, TN__OP_RANDOM_NORMAL, TN_FLOAT64);
    TN__PASS_ERROR(z);
    int64_t rows[] = {d.shape->size / n, n};
    tn__node *x = tn__matmul_node(tn__binary(TN__OP_MULTIPLY, tn__reshape(z, 2, rows), root), tn__swap_last(v));
    TN__PASS_ERROR(x);
    return tn__cast(tn__reshape_like(tn__binary(TN__OP_ADD, x, centre), d.shape), d.dtype);
}

tn_array *tn_random_multivariate_normal_with(const tn_array *mean, const tn_array *covariance, tn_shape shape,
                                             const tn_random_opts *opts)
{
    TN__RETURN(drawn(mean, covariance, shape, opts));
}
