/* SPDX-License-Identifier: MIT */
/* Equations and inverses of arrays of several axes, whose axes in front and behind make the rows and columns of a
 * matrix. */
#include <tanso/linalg.h>

#include "linalg/matrix.h"

static int64_t product(const tn__shape *shape, int from, int to)
{
    int64_t size = 1;
    for (int d = from; d < to; d++)
        size *= shape->dim[d];
    return size;
}

/* In the order they are listed in. */
static tn__node *axes_to_the_end(tn__node *a, tn_axes axes)
{
    uint32_t set;
    int ndim = a->shape->ndim, n = 0;
    uint8_t perm[TN_MAX_NDIM] = {0};
    if (!tn__axes_set("tensorsolve", axes, ndim, &set))
        return tn__failed();
    for (int d = 0; d < ndim; d++)
        if (!(set >> d & 1))
            perm[n++] = (uint8_t)d;
    for (int i = 0; i < axes.count; i++)
        perm[n++] = (uint8_t)(axes.axis[i] < 0 ? axes.axis[i] + ndim : axes.axis[i]);
    return tn__permute(a, perm);
}

static tn__node *tensorsolve(tn__node *a, tn__node *b, tn_axes axes)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(b);
    a = axes.count ? axes_to_the_end(a, axes) : a;
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim, front = b->shape->ndim;
    int64_t size = product(b->shape, 0, front);
    if (front > ndim || product(a->shape, 0, front) != size || product(a->shape, front, ndim) != size)
        TN__REFUSE(TN_ERR_SHAPE, "tensorsolve",
                   "the axes of the first array do not make as many equations as unknowns");
    const int64_t square[] = {size, size};
    tn__node *x = tn__solve("tensorsolve", tn__square_operand("tensorsolve", tn__reshape(a, 2, square)),
                            tn__matrix_operand("tensorsolve", tn__reshape(b, 2, (int64_t[]){size, 1}), 1), false);
    TN__PASS_ERROR(x);
    return tn__reshape(x, ndim - front, a->shape->dim + front);
}

tn_array *tn_linalg_tensorsolve(const tn_array *a, const tn_array *b, tn_axes axes)
{
    TN__RETURN(tensorsolve(tn__strong(tn__node_of(a, "tensorsolve")), tn__strong(tn__node_of(b, "tensorsolve")), axes));
}

static tn__node *tensorinv(tn__node *a, int ind)
{
    TN__PASS_ERROR(a);
    int ndim = a->shape->ndim;
    if (ind < 1 || ind > ndim || product(a->shape, 0, ind) != product(a->shape, ind, ndim))
        TN__REFUSE(TN_ERR_SHAPE, "tensorinv", "the first %d of %d axes do not make a square matrix with the others",
                   ind, ndim);
    const int64_t square[] = {product(a->shape, 0, ind), product(a->shape, 0, ind)};
    tn__node *x = tn__inverse("tensorinv", tn__square_operand("tensorinv", tn__reshape(a, 2, square)), false);
    TN__PASS_ERROR(x);
    int64_t dim[TN_MAX_NDIM];
    for (int d = 0; d < ndim; d++)
        dim[d] = a->shape->dim[(d + ind) % ndim];
    return tn__reshape(x, ndim, dim);
}

tn_array *tn_linalg_tensorinv(const tn_array *a, int ind)
{
    TN__RETURN(tensorinv(tn__strong(tn__node_of(a, "tensorinv")), ind));
}
