/* SPDX-License-Identifier: MIT */
/* Matrix products by NumPy's rules, and reading and adding at positions along an axis. */
#include "array/build_parts.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/number.h"

typedef struct product {
    int64_t m, k, n;
    int leading; /* axes of the batch */
    int64_t batch[TN_MAX_NDIM];
} product;

/* Latches the failure of two shapes, which the message begins with, for a reason. */
static void TN_PRINTF(4, 5) fail_shapes(const char *operation, const tn__shape *a,
                                        const tn__shape *b, const char *format, ...)
{
    char first[TN__SHAPE_TEXT], second[TN__SHAPE_TEXT], reason[256];
    va_list args;
    va_start(args, format);
    tn__vprint_into(reason, sizeof reason, format, args);
    va_end(args);
    tn__fail(TN_ERR_SHAPE, operation, "shapes %s and %s: %s",
             tn__shape_text(a->ndim, a->dim, first), tn__shape_text(b->ndim, b->dim, second),
             reason);
}

static bool product_shapes(const tn__shape *a, const tn__shape *b, product *p)
{
    if (a->ndim == 0 || b->ndim == 0) {
        fail_shapes("matmul", a, b, "expected at least 1 axis each; use tn_multiply for scalars");
        return false;
    }
    p->m = a->ndim == 1 ? 1 : a->dim[a->ndim - 2];
    p->k = a->dim[a->ndim - 1];
    p->n = b->ndim == 1 ? 1 : b->dim[b->ndim - 1];
    int64_t rows = b->ndim == 1 ? b->dim[0] : b->dim[b->ndim - 2];
    if (p->k != rows) {
        fail_shapes("matmul", a, b,
                    "the first's last extent is %lld, the second's %s is %lld, and they must agree; transpose one "
                    "(tn_swapaxes) or check the order of the operands",
                    (long long)p->k, b->ndim == 1 ? "extent" : "next to last", (long long)rows);
        return false;
    }
    int na = a->ndim < 2 ? 0 : a->ndim - 2, nb = b->ndim < 2 ? 0 : b->ndim - 2;
    p->leading = na > nb ? na : nb;
    for (int i = 1; i <= p->leading; i++) {
        int64_t da = i <= na ? a->dim[na - i] : 1, db = i <= nb ? b->dim[nb - i] : 1;
        if (da != db && da != 1 && db != 1) {
            fail_shapes("matmul", a, b,
                        "the leading extents %lld and %lld do not broadcast; expected them equal, or one of them 1",
                        (long long)da, (long long)db);
            return false;
        }
        p->batch[p->leading - i] = da == 1 ? db : da;
    }
    return true;
}

/* The operand as (..., rows, columns) with `leading` axes of the batch in front. */
static tn__node *matrix(tn__node *a, const product *p, int leading, int64_t rows, int64_t columns)
{
    if (leading == 0 && a->shape->ndim == 2 && a->shape->dim[0] == rows && a->shape->dim[1] == columns)
        return a;
    tn_shape value = {.ndim = leading + 2};
    for (int i = 0; i < leading; i++)
        value.dim[i] = p->batch[i];
    value.dim[leading] = rows;
    value.dim[leading + 1] = columns;
    if (a->shape->ndim == 1)
        a = tn__reshape(a, 2, &value.dim[leading]);
    const tn__shape *shape = tn__shape_make("matmul", value, a->dtype);
    return shape ? tn__expand(a, shape) : tn__failed();
}

static tn__node *product_of(tn__node *a, tn__node *b, const product *p)
{
    /* One matrix for the whole batch: a single product of all rows, not many small ones. */
    bool rows = b->shape->ndim <= 2 && p->leading > 0;
    int leading = rows ? 0 : p->leading;
    int64_t m = p->m;
    if (rows) {
        for (int i = 0; i < p->leading; i++)
            m *= p->batch[i];
        a = tn__reshape(a, 2, (int64_t[]){m, p->k});
        TN__PASS_ERROR(a);
    }
    tn__node *in[] = {matrix(a, p, leading, m, p->k), matrix(b, p, leading, p->k, p->n)};
    for (int i = 0; i < 2; i++)
        TN__PASS_ERROR(in[i]);
    tn_shape value = tn__shape_value(in[0]->shape);
    value.dim[leading + 1] = p->n;
    const tn__shape *shape = tn__shape_make("matmul", value, in[0]->dtype);
    return shape ? tn__apply(TN__OP_MATMUL, in[0]->dtype, shape, 2, in, (tn__attr){.raw = {0}})
                 : tn__failed();
}

/* Of vectors so long that a library, which adds in float32 throughout, would lose digits: sums go on in float64. */
#define LONG 65536
static bool is_long_dot(const tn__node *a, const tn__node *b, tn_dtype dtype)
{
    return a->shape->ndim == 1 && b->shape->ndim == 1 && dtype == TN_FLOAT32 && a->shape->size >= LONG;
}

tn__node *tn__matmul_node(tn__node *a, tn__node *b)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(b);
    tn__node *in[] = {tn__strong(a), tn__strong(b)};
    for (int i = 0; i < 2; i++)
        TN__PASS_ERROR(in[i]);
    product p;
    tn__device *device =
        product_shapes(a->shape, b->shape, &p) ? tn__common_device("matmul", 2, in) : NULL;
    if (!device)
        return tn__failed();
    bool weak;
    tn_dtype dtype = tn__common_dtype(2, in, &weak);
    if (tn_dtype_is_complex(dtype))
        return tn__cast(tn__complex_matmul(in[0], in[1]), dtype);
    /* The product of bool is whether any pair is true: counted, then asked. */
    tn_dtype compute = dtype == TN_BOOL ? TN_INT64 : dtype;
    for (int i = 0; i < 2; i++) {
        in[i] = tn__adapt(in[i], compute, in[i]->shape, device);
        TN__PASS_ERROR(in[i]);
    }

    if (is_long_dot(in[0], in[1], compute))
        return tn__drop_axes(tn__reduce(TN__OP_SUM, tn__binary(TN__OP_MULTIPLY, in[0], in[1]), 1u << 0), 1u << 0);
    tn_shape value = {.ndim = p.leading};
    for (int i = 0; i < p.leading; i++)
        value.dim[i] = p.batch[i];
    if (a->shape->ndim > 1)
        value.dim[value.ndim++] = p.m;
    if (b->shape->ndim > 1)
        value.dim[value.ndim++] = p.n;
    const tn__shape *shape = tn__shape_make("matmul", value, compute);
    return shape ? tn__cast(tn__reshape_like(product_of(in[0], in[1], &p), shape), dtype)
                 : tn__failed();
}

/* The shape where the extents of the array (but for the axis) and of the indices broadcast; NULL
 * with a latched failure. `from_array` gets the array's side of it, with the array's own extent
 * along the axis. */
static const tn__shape *positions_shape(const char *operation, tn__node *a, tn__node *indices,
                                        int axis, const tn__shape **from_array)
{
    const tn__shape *x = a->shape, *y = indices->shape;
    if (x->ndim != y->ndim) {
        fail_shapes(operation, x, y,
                    "the array and the indices must have as many axes; reshape the indices");
        return NULL;
    }
    tn_shape value = {.ndim = x->ndim}, full = {.ndim = x->ndim};
    /* Mostly the one or the other is there already, and need not be looked up: a shape of elements as wide. */
    bool is_x = true, is_y = tn_dtype_size(a->dtype) <= tn_dtype_size(indices->dtype);
    for (int i = 0; i < x->ndim; i++) {
        int64_t m = x->dim[i], n = y->dim[i];
        if (i != axis && m != n && m != 1 && n != 1) {
            fail_shapes(operation, x, y,
                        "extents %lld and %lld of the array and the indices do not broadcast at "
                        "axis %d; all axes but %d must",
                        (long long)m, (long long)n, i, axis);
            return NULL;
        }
        value.dim[i] = i == axis || m == 1 ? n : m;
        full.dim[i] = i == axis ? m : value.dim[i];
        is_x &= full.dim[i] == m;
        is_y &= value.dim[i] == n;
    }
    const tn__shape *shape = is_y ? y : tn__shape_make(operation, value, a->dtype);
    *from_array = is_x ? x : shape ? tn__shape_make(operation, full, a->dtype) : NULL;
    if (!shape || !*from_array)
        return NULL;
    if (x->dim[axis] == 0 && y->size > 0) {
        tn__fail(TN_ERR_INDEX, operation,
                 "axis %d of the array has extent 0: no index is in its range", axis);
        return NULL;
    }
    /* where nothing is moved, nothing would look; indices that were spread over nothing are still there */
    if (shape->size == 0 && tn__positions_look(operation, indices, x->dim[axis]) != TN_OK)
        return NULL;
    return shape;
}

static tn__node *gather(tn__node *a, tn__node *indices, int axis)
{
    TN__PASS_ERROR(a);
    a = tn__strong(a);
    indices = tn__positions("take", indices);
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(indices);
    axis = tn__axis_check("take", axis, a->shape->ndim);
    if (axis < 0)
        return tn__failed();
    tn__node *in[] = {a, indices};
    const tn__shape *full, *shape = positions_shape("take", a, indices, axis, &full);
    tn__device *device = shape ? tn__common_device("take", 2, in) : NULL;
    if (!device)
        return tn__failed();
    in[0] = tn__adapt(a, a->dtype, full, device);
    in[1] = tn__adapt(indices, TN_INT64, shape, device);
    for (int i = 0; i < 2; i++)
        TN__PASS_ERROR(in[i]);
    return tn__apply(TN__OP_GATHER, a->dtype, shape, 2, in, (tn__attr){.axis = axis});
}

static tn__node *looks(tn__node *node)
{
    if (!tn__node_is_error(node) && tn__node_pending(node))
        node->flags |= TN__NODE_LOOKS;
    return node;
}

tn__node *tn__gather(tn__node *a, tn__node *indices, int axis) { return looks(gather(a, indices, axis)); }

tn__node *tn__gather_known(tn__node *a, tn__node *indices, int axis, int64_t below)
{
    tn__node *node = gather(a, indices, axis);
    if (!tn__node_is_error(node)) {
        node->attr.known = 1;
        node->attr.below = below;
    }
    return node;
}

tn__node *tn__scatter_add_node(tn__node *base, tn__node *indices, tn__node *values, int axis)
{
    return tn__scatter_node(TN__OP_SCATTER_ADD, base, indices, values, axis);
}

tn__node *tn__scatter_node(tn__op op, tn__node *base, tn__node *indices, tn__node *values, int axis)
{
    const char *operation = tn__ops[op].name;
    TN__PASS_ERROR(base);
    TN__PASS_ERROR(values);
    base = tn__strong(base);
    indices = tn__positions(operation, indices);
    TN__PASS_ERROR(base);
    TN__PASS_ERROR(indices);
    if (op == TN__OP_SCATTER_ADD && base->dtype == TN_BOOL)
        TN__REFUSE(TN_ERR_DTYPE, "scatter_add",
                   "does not add to bool; cast the array to a number with tn_cast");
    axis = tn__axis_check(operation, axis, base->shape->ndim);
    if (axis < 0)
        return tn__failed();
    tn__node *in[] = {base, indices, values};
    const tn__shape *full, *shape = positions_shape(operation, base, indices, axis, &full);
    tn__device *device = shape ? tn__common_device(operation, 3, in) : NULL;
    if (!device)
        return tn__failed();
    if (full != base->shape) {
        fail_shapes(operation, base->shape, indices->shape,
                    "the indices do not broadcast to the array");
        return tn__failed();
    }
    in[0] = tn__adapt(base, base->dtype, base->shape, device);
    in[1] = tn__adapt(indices, TN_INT64, shape, device);
    in[2] = tn__adapt(values, base->dtype, shape, device);
    for (int i = 0; i < 3; i++)
        TN__PASS_ERROR(in[i]);
    return looks(tn__apply_anywhere(op, base->dtype, base->shape, 3, in, (tn__attr){.axis = axis}));
}
