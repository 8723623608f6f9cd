/* SPDX-License-Identifier: MIT */
/* Operands and results of linear algebra, and the steps that several of its functions are made of. */
#include "linalg/matrix.h"

#include "engine/engine.h"

tn__node *tn__matrix_operand(const char *operation, tn__node *a, int ndim)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    TN__PASS_ERROR(a);
    if (a->shape->ndim < ndim)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected an array of at least %d axes, got %d", ndim, a->shape->ndim);
    if (a->dtype == TN_FLOAT16 || a->dtype == TN_BFLOAT16)
        TN__REFUSE(TN_ERR_DTYPE, operation, "is not computed in %s; cast the array to float32",
                   tn_dtype_name((tn_dtype)a->dtype));
    return tn__dtype_inexact((tn_dtype)a->dtype) ? a : tn__cast(a, TN_FLOAT64);
}

tn__node *tn__square_operand(const char *operation, tn__node *a)
{
    a = tn__matrix_operand(operation, a, 2);
    TN__PASS_ERROR(a);
    if (tn__row_count(a) != tn__column_count(a))
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected square matrices, got %lld rows and %lld columns",
                   (long long)tn__row_count(a), (long long)tn__column_count(a));
    return a;
}

tn__node *tn__packed(tn__op op, tn_dtype dtype, tn__node *a, int64_t n, int modes, const int64_t *mode)
{
    TN__PASS_ERROR(a);
    const tn__ints *ints = modes ? tn__ints_intern(modes, mode) : NULL;
    if (modes && !ints) {
        tn__fail_memory(tn__ops[op].name, sizeof(tn__ints));
        return tn__failed();
    }
    tn_shape shape = tn__shape_value(a->shape);
    shape.dim[shape.ndim - 2] = 1;
    shape.dim[shape.ndim - 1] = n;
    return tn__library(op, dtype, shape, 1, &a, ints);
}

/* Matrices whose leading axes are those that both broadcast to. */
static bool broadcast_leading(const char *operation, tn__node *in[2])
{
    tn__node *batch[2];
    for (int i = 0; i < 2; i++) {
        tn_shape shape = tn__shape_value(in[i]->shape);
        shape.ndim -= 2;
        const tn__shape *leading = tn__shape_make(operation, shape, TN_BOOL);
        if (!leading)
            return false;
        batch[i] = tn__const(0, TN_BOOL, leading, in[i]->device);
    }
    const tn__shape *common = tn__common_shape(operation, 2, batch, TN_BOOL);
    for (int i = 0; common && i < 2; i++) {
        tn_shape shape = tn__shape_value(common);
        shape.dim[shape.ndim] = tn__row_count(in[i]);
        shape.dim[shape.ndim + 1] = tn__column_count(in[i]);
        shape.ndim += 2;
        const tn__shape *whole = tn__shape_make(operation, shape, (tn_dtype)in[i]->dtype);
        if (!whole)
            return false;
        in[i] = tn__expand(in[i], whole);
        if (tn__node_is_error(in[i])) {
            tn__error_raise(in[i]->error);
            return false;
        }
    }
    return common != NULL;
}

tn__node *tn__solve(const char *operation, tn__node *a, tn__node *b, bool loose)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(b);
    if (tn__row_count(b) != tn__row_count(a))
        TN__REFUSE(TN_ERR_SHAPE, operation, "the matrix has %lld rows, the right-hand side %lld: they must agree",
                   (long long)tn__row_count(a), (long long)tn__row_count(b));
    bool weak;
    tn__node *in[] = {a, b};
    tn_dtype dtype = tn__common_dtype(2, in, &weak);
    tn__device *device = tn__common_device(operation, 2, in);
    if (!device)
        return tn__failed();
    for (int i = 0; i < 2; i++) {
        in[i] = tn__adapt(in[i], dtype, in[i]->shape, device);
        TN__PASS_ERROR(in[i]);
    }
    if (!broadcast_leading(operation, in))
        return tn__failed();
    const tn__ints *modes = loose ? tn__ints_intern(1, (int64_t[]){1}) : NULL;
    if (loose && !modes) {
        tn__fail_memory(operation, sizeof(tn__ints));
        return tn__failed();
    }
    return tn__library(TN__OP_SOLVE, dtype, tn__shape_value(in[1]->shape), 2, in, modes);
}

tn__node *tn__eye_like(tn__node *a, int64_t n)
{
    TN__PASS_ERROR(a);
    tn_shape shape = tn__shape_value(a->shape);
    shape.dim[shape.ndim - 2] = shape.dim[shape.ndim - 1] = n;
    const tn__shape *square = tn__shape_make("identity", shape, (tn_dtype)a->dtype);
    if (!square)
        return tn__failed();
    return tn__cast(tn__on_diagonal(tn__const(0, TN_BOOL, square, a->device)), (tn_dtype)a->dtype);
}

tn__node *tn__inverse(const char *operation, tn__node *a, bool loose)
{
    TN__PASS_ERROR(a);
    return tn__solve(operation, a, tn__eye_like(a, tn__row_count(a)), loose);
}

/* Of a row of eigenvalues, the positions from the largest size to the smallest. */
static tn__node *by_size(tn__node *sizes)
{
    TN__PASS_ERROR(sizes);
    return tn__reverse_rows(tn__sort_scan(TN__OP_ARGSORT, sizes, NULL));
}

tn__node *tn__singular_values(tn__node *a, bool hermitian)
{
    TN__PASS_ERROR(a);
    int64_t m = tn__row_count(a), n = tn__column_count(a), k = m < n ? m : n;
    if (!hermitian)
        return tn__drop_row(tn__real(tn__packed(TN__OP_SVD, (tn_dtype)a->dtype, a, k, 1, (int64_t[]){0})));
    tn__node *w = tn__real(tn__packed(TN__OP_EIGH, (tn_dtype)a->dtype, a, n, 2, (int64_t[]){0, 0}));
    tn__node *sizes = tn__unary(TN__OP_ABS, w), *order = by_size(sizes);
    TN__PASS_ERROR(order);
    return tn__drop_row(tn__gather(sizes, order, sizes->shape->ndim - 1));
}

void tn__singular_vectors(tn__node *a, bool hermitian, tn__node *part[3])
{
    int64_t m = tn__row_count(a), n = tn__column_count(a), k = m < n ? m : n;
    if (!hermitian) {
        tn__node *all = tn__packed(TN__OP_SVD, (tn_dtype)a->dtype, a, (m + n + 1) * k, 1, (int64_t[]){1});
        part[0] = tn__part(all, 0, m, k);
        part[1] = tn__real(tn__part(all, m * k, 1, k));
        part[2] = tn__part(all, (m + 1) * k, k, n);
        return;
    }
    /* a = v w v^H: u = v, s = |w|, v sign(w), in the order of the sizes */
    tn__node *all = tn__packed(TN__OP_EIGH, (tn_dtype)a->dtype, a, n + n * n, 2, (int64_t[]){1, 0});
    tn__node *w = tn__real(tn__part(all, 0, 1, n)), *v = tn__part(all, n, n, n),
             *order = by_size(tn__unary(TN__OP_ABS, w));
    int last = a->shape->ndim - 1;
    for (int i = 0; i < 3; i++)
        part[i] = order;
    if (tn__node_is_error(order))
        return;
    w = tn__gather(w, order, last);
    v = tn__gather(v, order, last);
    part[0] = v;
    part[1] = tn__unary(TN__OP_ABS, w);
    tn__node *sign = tn__unary(TN__OP_SIGN, w); /* of a zero 1: v stays orthonormal */
    if (!tn__node_is_error(sign))
        sign = tn__binary(TN__OP_ADD, sign, tn__cast(tn__with(TN__OP_EQUAL, w, 0), (tn_dtype)sign->dtype));
    part[2] = tn__adjoint(tn__binary(TN__OP_MULTIPLY, v, tn__cast(sign, (tn_dtype)a->dtype)));
}

tn__node *tn__largest(tn__node *a, uint32_t axes)
{
    TN__PASS_ERROR(a);
    tn_shape value = tn__shape_value(a->shape);
    bool none = false;
    for (int i = 0; i < value.ndim; i++)
        if (axes >> i & 1) {
            none = none || value.dim[i] == 0;
            value.dim[i] = 1;
        }
    if (!none)
        return tn__reduce(TN__OP_MAX, a, axes);
    const tn__shape *shape = tn__shape_make("norm", value, (tn_dtype)a->dtype);
    return shape ? tn__const(0, (tn_dtype)a->dtype, shape, a->device) : tn__failed();
}

tn__node *tn__squared_size(tn__node *a)
{
    TN__PASS_ERROR(a);
    if (!tn_dtype_is_complex((tn_dtype)a->dtype))
        return tn__unary(TN__OP_SQUARE, a);
    return tn__binary(TN__OP_ADD, tn__unary(TN__OP_SQUARE, tn__real(a)), tn__unary(TN__OP_SQUARE, tn__imaginary(a)));
}

bool tn__check_finite(const char *operation, tn__node *a)
{
    tn__node *all = tn__reduce(TN__OP_ALL, tn__unary(TN__OP_ISFINITE, a), (1u << a->shape->ndim) - 1);
    unsigned char finite = 1;
    if (tn__node_is_error(all))
        return tn__error_raise(all->error), false;
    if (tn__evaluate(1, &all) != TN_OK || tn__read(all, &finite) != TN_OK)
        return false;
    if (!finite)
        tn__fail(TN_ERR_VALUE, operation, "the array holds infinities or NaN: its eigenvalues are not defined");
    return finite;
}
