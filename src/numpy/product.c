/* SPDX-License-Identifier: MIT */
/* Products of vectors, matrices and tensors, as matrix products of reshaped arrays. */
#include "numpy/compose.h"

#include "array/build_parts.h"
#include "core/options.h"

static bool failed(const tn_array *a, const tn_array *b)
{
    return tn_is_error(a) || tn_is_error(b);
}

static tn_array *passed_on(const tn_array *a, const tn_array *b)
{
    return tn__again(tn_is_error(a) ? a : b);
}

tn_array *tn_outer(const tn_array *a, const tn_array *b)
{
    TN__COMPOSE(tn_multiply(tn_expand_dims(tn_ravel(a), 1), tn_ravel(b)));
}

/* ---- contraction of pairs of axes ---- */

/* x with its axes `summed` last (or first), as a matrix of (others, summed) (or the other way round). */
static tn_array *as_matrix(const tn_array *x, tn_axes summed, bool first)
{
    tn_axes order = {.count = tn_ndim(x)};
    tn_shape matrix = {.ndim = 2, .dim = {1, 1}};
    unsigned set = 0;
    int at = first ? 0 : tn_ndim(x) - summed.count, other = first ? summed.count : 0;
    for (int i = 0; i < summed.count; i++) {
        set |= 1u << summed.axis[i];
        order.axis[at + i] = summed.axis[i];
        matrix.dim[!first] *= tn_dim(x, summed.axis[i]);
    }
    for (int d = 0; d < tn_ndim(x); d++)
        if (!(set >> d & 1)) {
            order.axis[other++] = d;
            matrix.dim[first] *= tn_dim(x, d);
        }
    return tn_reshape(order.count ? tn_transpose(x, order) : tn__again(x), matrix);
}

static void add_others(tn_shape *shape, const tn_array *x, tn_axes summed)
{
    unsigned set = 0;
    for (int i = 0; i < summed.count; i++)
        set |= 1u << summed.axis[i];
    for (int d = 0; d < tn_ndim(x); d++)
        if (!(set >> d & 1))
            shape->dim[shape->ndim++ % TN_MAX_NDIM] = tn_dim(x, d);
}

static tn_array *tensordot(const char *operation, const tn_array *a, const tn_array *b, tn_axes a_axes, tn_axes b_axes)
{
    if (failed(a, b))
        return passed_on(a, b);
    if (a_axes.count != b_axes.count || a_axes.count < 0 || a_axes.count > TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, operation, "%d axes of the first array and %d of the second; expected as many",
                           a_axes.count, b_axes.count);
    unsigned seen_a = 0, seen_b = 0;
    for (int i = 0; i < a_axes.count; i++) {
        a_axes.axis[i] = tn__axis_of(operation, a, a_axes.axis[i]);
        b_axes.axis[i] = a_axes.axis[i] < 0 ? -1 : tn__axis_of(operation, b, b_axes.axis[i]);
        if (b_axes.axis[i] < 0)
            return tn__failed_array();
        int64_t m = tn_dim(a, a_axes.axis[i]), n = tn_dim(b, b_axes.axis[i]);
        if (m != n || seen_a >> a_axes.axis[i] & 1 || seen_b >> b_axes.axis[i] & 1)
            return tn__refused(TN_ERR_SHAPE, operation,
                               "axes %d and %d have extents %lld and %lld; expected equal ones, each axis once",
                               a_axes.axis[i], b_axes.axis[i], (long long)m, (long long)n);
        seen_a |= 1u << a_axes.axis[i];
        seen_b |= 1u << b_axes.axis[i];
    }
    tn_shape shape = {0};
    add_others(&shape, a, a_axes);
    add_others(&shape, b, b_axes);
    if (shape.ndim > TN_MAX_NDIM)
        return tn__refused(TN_ERR_SHAPE, operation, "the result would have %d axes, the most is %d", shape.ndim,
                           TN_MAX_NDIM);
    return tn_reshape(tn_matmul(as_matrix(a, a_axes, false), as_matrix(b, b_axes, true)), shape);
}

tn_array *tn_tensordot(const tn_array *a, const tn_array *b, tn_axes a_axes, tn_axes b_axes)
{
    TN__COMPOSE(tensordot("tensordot", a, b, a_axes, b_axes));
}

tn_array *tn_inner(const tn_array *a, const tn_array *b)
{
    if (failed(a, b))
        return passed_on(a, b);
    if (tn_ndim(a) == 0 || tn_ndim(b) == 0)
        return tn_multiply(a, b);
    const tn_axes last = tn__axes_of(1, (int[]){-1});
    TN__COMPOSE(tensordot("inner", a, b, last, last));
}

tn_array *tn_dot(const tn_array *a, const tn_array *b)
{
    if (failed(a, b))
        return passed_on(a, b);
    if (tn_ndim(a) == 0 || tn_ndim(b) == 0)
        return tn_multiply(a, b);
    if (tn_ndim(a) <= 2 && tn_ndim(b) <= 2)
        return tn_matmul(a, b);
    TN__COMPOSE(tensordot("dot", a, b, tn__axes_of(1, (int[]){-1}), tn__axes_of(1, (int[]){tn_ndim(b) > 1 ? -2 : -1})));
}

tn_array *tn_vdot(const tn_array *a, const tn_array *b)
{
    TN__COMPOSE(tn_matmul(tn_conjugate(tn_ravel(a)), tn_ravel(b)));
}

/* Row times column for each pair of vectors, so that what is summed is never stored. */
static tn_array *vecdot(const tn_array *a, const tn_array *b, int axis)
{
    if (failed(a, b))
        return passed_on(a, b);
    if (tn__axis_of("vecdot", a, axis) < 0 || tn__axis_of("vecdot", b, axis) < 0)
        return tn__failed_array();
    const tn_axes from = tn__axes_of(1, &axis), last = tn__axes_of(1, (int[]){-1});
    tn_array *x = tn_moveaxis(a, from, last), *y = tn_moveaxis(b, from, last);
    if (tn_dim(x, -1) != tn_dim(y, -1))
        return tn__refused(TN_ERR_SHAPE, "vecdot", "extents %lld and %lld along the axis; expected equal ones",
                           (long long)tn_dim(x, -1), (long long)tn_dim(y, -1));
    tn_array *product = tn_matmul(tn_expand_dims(tn_conjugate(x), -2), tn_expand_dims(y, -1));
    return tn_squeeze(product, tn__axes_of(2, (int[]){-2, -1}));
}

tn_array *tn_vecdot(const tn_array *a, const tn_array *b, int axis)
{
    TN__COMPOSE(vecdot(a, b, axis));
}

static tn_array *vecdot_with(const tn_array *a, const tn_array *b, int axis, const tn_out_opts *opts)
{
    tn_array *in[] = {tn__again(a), tn__again(b)}, *error = tn__operands_as("vecdot", 2, in, opts);
    return error ? error : tn__given_out("vecdot", vecdot(in[0], in[1], axis), opts);
}

tn_array *tn_vecdot_with(const tn_array *a, const tn_array *b, int axis, const tn_out_opts *opts)
{
    TN__COMPOSE(vecdot_with(a, b, axis, opts));
}

/* One axis for the vector that is to be a column, or a row. */
static tn_array *with_vector(const char *operation, const tn_array *matrix, const tn_array *vector, bool row)
{
    if (failed(matrix, vector))
        return passed_on(matrix, vector);
    if (tn_ndim(matrix) < 2 || tn_ndim(vector) < 1)
        return tn__refused(TN_ERR_SHAPE, operation, "expected a matrix and a vector, got arrays of %d and %d axes",
                           tn_ndim(matrix), tn_ndim(vector));
    tn_array *expanded = tn_expand_dims(row ? tn_conjugate(vector) : tn__again(vector), row ? -2 : -1);
    tn_array *product = row ? tn_matmul(expanded, matrix) : tn_matmul(matrix, expanded);
    return tn_squeeze(product, tn__axes_of(1, (int[]){row ? -2 : -1}));
}

tn_array *tn_matvec(const tn_array *a, const tn_array *x)
{
    TN__COMPOSE(with_vector("matvec", a, x, false));
}

tn_array *tn_vecmat(const tn_array *x, const tn_array *a)
{
    TN__COMPOSE(with_vector("vecmat", a, x, true));
}

/* ---- kron, cross ---- */

/* Axis by axis: extents (m, 1) times (1, n) make m n. Axes of both stand side by side, so one at a time is merged. */
static tn_array *kron(const tn_array *a, const tn_array *b)
{
    if (failed(a, b))
        return passed_on(a, b);
    int ndim = tn_ndim(a) > tn_ndim(b) ? tn_ndim(a) : tn_ndim(b);
    tn_array *x = tn__at_least(a, ndim), *y = tn__at_least(b, ndim);
    tn_shape product = {.ndim = ndim};
    for (int d = 0; d < ndim; d++) { /* elements of x repeated, y tiled, both of the product's extents */
        int64_t m = tn_dim(x, d), n = tn_dim(y, d);
        x = tn_repeat(x, n, tn__axes_of(1, &d));
        tn_shape copies = {.ndim = ndim};
        for (int e = 0; e < ndim; e++)
            copies.dim[e] = e == d ? m : 1;
        y = tn_tile(y, copies);
        product.dim[d] = m * n;
    }
    return tn_reshape(tn_multiply(x, y), product);
}

tn_array *tn_kron(const tn_array *a, const tn_array *b)
{
    TN__COMPOSE(kron(a, b));
}

static tn_array *component(const tn_array *x, int i)
{
    return tn_squeeze(tn__cut(x, -1 + tn_ndim(x), i, 1), tn__axes_of(1, (int[]){-1}));
}

/* a_i b_k - a_k b_i; components that vectors of 2 lack are 0. */
static tn_array *minor(const tn_array *a, const tn_array *b, int i, int k)
{
    bool has_a_i = i < tn_dim(a, -1), has_a_k = k < tn_dim(a, -1), has_b_i = i < tn_dim(b, -1),
         has_b_k = k < tn_dim(b, -1);
    tn_array *plus = has_a_i && has_b_k ? tn_multiply(component(a, i), component(b, k)) : NULL;
    tn_array *minus = has_a_k && has_b_i ? tn_multiply(component(a, k), component(b, i)) : NULL;
    return plus && minus ? tn_subtract(plus, minus) : plus ? plus : tn_negative(minus);
}

static tn_array *cross(const tn_array *a, const tn_array *b, const tn_cross_opts *opts)
{
    static const tn_cross_opts defaults = {._ = 0};
    opts = opts ? opts : &defaults;
    if (failed(a, b))
        return passed_on(a, b);
    if (!TN__AXES_GIVEN("cross", opts, a) || !TN__AXES_GIVEN("cross", opts, b) ||
        !TN__AXES_GIVEN("cross", opts, result))
        return tn__failed_array();
    int axis_a = tn__axis_of_list("cross", opts->a, -1, tn_ndim(a));
    int axis_b = axis_a < 0 ? -1 : tn__axis_of_list("cross", opts->b, -1, tn_ndim(b));
    int axis = opts->result.count ? opts->result.axis[0] : -1;
    const tn_axes last = tn__axes_of(1, (int[]){-1});
    if (axis_b < 0 || !tn__axes_fit("cross", opts->result, 1))
        return tn__failed_array();
    tn_array *x = tn_moveaxis(a, tn__axes_of(1, &axis_a), last), *y = tn_moveaxis(b, tn__axes_of(1, &axis_b), last);
    int64_t m = tn_dim(x, -1), n = tn_dim(y, -1);
    if (m < 2 || m > 3 || n < 2 || n > 3)
        return tn__refused(TN_ERR_SHAPE, "cross", "vectors of %lld and %lld elements; expected 2 or 3", (long long)m,
                           (long long)n);
    if (m == 2 && n == 2)
        return minor(x, y, 0, 1);
    tn_array *parts[] = {minor(x, y, 1, 2), minor(x, y, 2, 0), minor(x, y, 0, 1)};
    tn_array *common[3];
    tn_broadcast_arrays(3, (const tn_array *const *)parts, common);
    return tn_moveaxis(tn_stack(3, (const tn_array *const *)common, -1), last, tn__axes_of(1, &axis));
}

tn_array *tn_cross_with(const tn_array *a, const tn_array *b, const tn_cross_opts *opts)
{
    TN__COMPOSE(cross(a, b, opts));
}
