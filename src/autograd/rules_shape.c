/* SPDX-License-Identifier: MIT */
/* Gradient rules of reductions, views, indexing, products and moves between devices. */
#include "array/build_pool.h"
#include "autograd/rules.h"

static tn__node *zeros_like(tn__node *x)
{
    return tn__const_like(x, 0);
}

/* ---- reductions: the output keeps the reduced axes with extent 1 ---- */

void tn__grad_sum(tn__chain *c)
{
    c->in[0] = tn__expand(c->g, c->node->in[0]->shape);
}

/* Elements that tie for the largest (or smallest) share the gradient equally. They are counted in the dtype that x is
 * computed in: float16 ends at 65,504, and bfloat16 counts exactly up to 256. */
void tn__grad_max(tn__chain *c)
{
    tn__node *x = c->node->in[0];
    tn_dtype dtype = (tn_dtype)x->dtype, wide = (tn_dtype)tn__dtypes[dtype].compute;
    tn__node *chosen = tn__binary(TN__OP_EQUAL, x, c->node);
    tn__node *count = tn__reduce(TN__OP_SUM, tn__cast(chosen, wide), c->node->attr.axes);
    tn__node *share = tn__cast(tn__binary(TN__OP_DIVIDE, tn__cast(c->g, wide), count), dtype);
    c->in[0] = tn__where(chosen, share, zeros_like(x));
}

/* Where each element is among those of the axes, in C order. */
static tn__node *place_among(tn__node *x, uint32_t axes)
{
    tn__node *place = NULL;
    for (int d = 0; d < x->shape->ndim; d++) {
        if (!(axes >> d & 1))
            continue;
        tn__node *along = tn__iota(x->shape, d, x->device);
        place = place ? tn__with(TN__OP_MULTIPLY, place, (double)x->shape->dim[d]) : NULL;
        place = place ? tn__binary(TN__OP_ADD, place, along) : along;
    }
    return place;
}

void tn__grad_first_max(tn__chain *c)
{
    tn__node *x = c->node->in[1], *place = place_among(x, c->node->attr.axes);
    tn__node *first = tn__reduce(TN__OP_ARGMAX, x, c->node->attr.axes);
    c->in[0] = NULL;
    c->in[1] = place ? tn__where(tn__binary(TN__OP_EQUAL, place, first), c->g, zeros_like(x)) : c->g;
}

void tn__grad_pool(tn__chain *c)
{
    c->in[0] = NULL;
    c->in[1] = tn__pooling_gradient(c->node, c->g);
}

/* Input 0 has no gradient of its own: it is what the node is made of. Where it was rounded, sums are in input 1's
 * dtype. */
void tn__grad_softmax(tn__chain *c)
{
    tn_dtype dtype = (tn_dtype)c->node->in[1]->dtype;
    tn__node *y = tn__cast(c->node, dtype), *g = tn__cast(c->g, dtype);
    tn__node *sum = tn__reduce(TN__OP_SUM, tn__binary(TN__OP_MULTIPLY, g, y), c->node->attr.axes);
    c->in[0] = NULL;
    c->in[1] = tn__binary(TN__OP_MULTIPLY, y, tn__binary(TN__OP_SUBTRACT, g, sum));
}

void tn__grad_log_softmax(tn__chain *c)
{
    tn__node *y = c->node, *sum = tn__reduce(TN__OP_SUM, c->g, y->attr.axes);
    c->in[0] = NULL;
    c->in[1] = tn__binary(TN__OP_SUBTRACT, c->g, tn__binary(TN__OP_MULTIPLY, tn__unary(TN__OP_EXP, y), sum));
}

/* The mean depends on the elements, too, but moving it changes nothing: they differ from it by 0 in all. */
void tn__grad_deviations(tn__chain *c)
{
    tn__node *x = c->node->in[1], *mean = tn__average(x, c->node->attr.axes);
    tn__node *twice = tn__with(TN__OP_MULTIPLY, c->g, 2);
    c->in[0] = NULL;
    c->in[1] = tn__binary(TN__OP_MULTIPLY, twice, tn__binary(TN__OP_SUBTRACT, x, mean));
}

/* Every other element of the last axis of a matrix, from the first one given. */
static tn__node *every_other(tn__node *a, int first, int64_t rows, int64_t count)
{
    return tn__slice_node(a, (int64_t[]){0, first}, (int64_t[]){1, 2}, (int64_t[]){rows, count});
}

/*
 * g times the product of all elements of a row but each one, for a (rows, columns) matrix x and a
 * (rows, 1) matrix g, with no division, so that zeros need no care in any derivative. Up a binary
 * tree of products, then down: what is outside a child is what is outside its parent times the
 * child's sibling.
 */
static tn__node *times_others(tn__node *x, tn__node *g, int64_t rows, int64_t columns)
{
    tn__node *products[64];
    int top = 0;
    int64_t width = 1;
    while (width < columns)
        width *= 2;
    if (width > columns) {
        const tn__shape *padded = tn__shape_intern(2, (int64_t[]){rows, width});
        if (!padded)
            return tn__node_error(tn__error_new(TN_ERR_MEMORY, "prod", "no memory for a gradient"));
        x = tn__update_along(tn__const(1, (tn_dtype)x->dtype, padded, x->device), x, 1, 0);
    }
    products[0] = x;
    for (int64_t n = width / 2; n >= 1; n /= 2, top++)
        products[top + 1] = tn__binary(TN__OP_MULTIPLY, every_other(products[top], 0, rows, n),
                                       every_other(products[top], 1, rows, n));
    tn__node *outside = g;
    for (int64_t n = 1; n < width; n *= 2) {
        const int64_t pairs[] = {rows, n, 2};
        tn__node *children = tn__reshape(products[--top], 3, pairs);
        tn__node *siblings =
            tn__slice_node(children, (int64_t[]){0, 0, 1}, (int64_t[]){1, 1, -1}, pairs);
        outside =
            tn__binary(TN__OP_MULTIPLY, tn__reshape(outside, 3, (int64_t[]){rows, n, 1}), siblings);
        outside = tn__reshape(outside, 2, (int64_t[]){rows, 2 * n});
    }
    return tn__slice_node(outside, (int64_t[]){0, 0}, (int64_t[]){1, 1},
                          (int64_t[]){rows, columns});
}

void tn__grad_prod(tn__chain *c)
{
    tn__node *x = c->node->in[0];
    const tn__shape *shape = x->shape;
    if (shape->size == 0) {
        c->in[0] = zeros_like(x);
        return;
    }
    /* The kept axes, then the reduced ones. */
    uint8_t order[TN_MAX_NDIM] = {0}, back[TN_MAX_NDIM] = {0};
    int64_t ordered[TN_MAX_NDIM];
    int n = 0;
    for (int reduced = 0; reduced <= 1; reduced++)
        for (int axis = 0; axis < shape->ndim; axis++)
            if ((c->node->attr.axes >> axis & 1) == (unsigned)reduced) {
                ordered[n] = shape->dim[axis];
                back[axis] = (uint8_t)n;
                order[n++] = (uint8_t)axis;
            }
    int64_t rows = c->node->shape->size, columns = shape->size / rows;
    tn__node *matrix = tn__reshape(tn__permute(x, order), 2, (int64_t[]){rows, columns});
    tn__node *gradient =
        times_others(matrix, tn__reshape(c->g, 2, (int64_t[]){rows, 1}), rows, columns);
    c->in[0] = tn__permute(tn__reshape(gradient, n, ordered), back);
}

/* ---- views ---- */

void tn__grad_reshape(tn__chain *c)
{
    c->in[0] = tn__reshape_like(c->g, c->node->in[0]->shape);
}

void tn__grad_permute(tn__chain *c)
{
    uint8_t back[TN_MAX_NDIM] = {0};
    for (int i = 0; i < c->node->shape->ndim; i++)
        back[c->node->attr.perm[i]] = (uint8_t)i;
    c->in[0] = tn__permute(c->g, back);
}

static bool was_summed(const tn__summed *sums, const tn__node *g, const tn__shape *shape)
{
    for (int i = 0; i < TN__SUMMED; i++)
        if (sums->gradient[i] == g && sums->shape[i] == shape)
            return true;
    return false;
}

/* Of a product whose other factor is the same wherever the sum goes along, the sum is that of one factor, times the
 * other. Where that is a sum that another gradient is already, as the shift's of a normalization is whose mean this is
 * for, there is one pass less; alone it might overflow where the products' doesn't. Numbers of 16 bits would be rounded
 * once more. */
static tn__node *sum_of_product(const tn__summed *sums, tn__node *g, const tn__shape *shape)
{
    if (tn__node_is_error(g))
        return g;
    bool negative = g->op == TN__OP_NEGATIVE;
    const tn__node *product = negative ? g->in[0] : g;
    if (product->op != TN__OP_MULTIPLY || tn_dtype_size((tn_dtype)product->dtype) < sizeof(float))
        return NULL;
    for (int i = 0; i < 2; i++) {
        tn__node *same = product->in[i];
        if (same->op != TN__OP_EXPAND || same->in[0]->shape != shape || !was_summed(sums, product->in[1 - i], shape))
            continue;
        tn__node *sum = tn__binary(TN__OP_MULTIPLY, tn__sum_to(product->in[1 - i], shape), same->in[0]);
        return negative ? tn__unary(TN__OP_NEGATIVE, sum) : sum;
    }
    return NULL;
}

void tn__grad_expand(tn__chain *c)
{
    const tn__shape *shape = c->node->in[0]->shape;
    tn__node *sum = sum_of_product(c->summed, c->g, shape);
    c->in[0] = sum ? sum : tn__sum_to(c->g, shape);
    if (sum)
        return;
    unsigned at = c->summed->next++ % TN__SUMMED;
    c->summed->gradient[at] = c->g;
    c->summed->shape[at] = shape;
}

void tn__grad_slice(tn__chain *c)
{
    c->in[0] = c->g;
    c->place = TN__IN_WINDOW;
}

void tn__grad_windows(tn__chain *c)
{
    tn__window_axis window[TN_MAX_NDIM];
    const tn__ints *ints = c->node->attr.ints;
    int count = ints->count / 3, first = c->node->in[0]->shape->ndim;
    for (int i = 0; i < count; i++)
        window[i] = (tn__window_axis){(int)ints->v[3 * i], c->node->shape->dim[first + i], ints->v[3 * i + 1],
                                      ints->v[3 * i + 2]};
    c->in[0] = tn__fold(c->g, count, window, c->node->in[0]->shape);
}

void tn__grad_update(tn__chain *c)
{
    tn__node *value = c->node->in[1];
    const tn__ints *window = c->node->attr.ints;
    c->in[0] = c->g;
    c->place = TN__BUT_WINDOW;
    if (tn__wanted(c, 1)) {
        int64_t start[TN_MAX_NDIM], step[TN_MAX_NDIM];
        for (int i = 0; i < value->shape->ndim; i++) {
            start[i] = window->v[2 * i];
            step[i] = window->v[2 * i + 1];
        }
        c->in[1] = tn__slice_node(c->g, start, step, value->shape->dim);
    }
}

/* ---- indexing ---- */

/* One index a row takes no scatter: x's gradient is g at the index and 0 elsewhere, which is
 * elementwise. Else g is added to what other gradients of x come to, but where sums are rounded to 16 bits: there, what
 * is much would swallow what is little. */
void tn__grad_gather(tn__chain *c)
{
    tn__node *x = c->node->in[0], *indices = c->node->in[1];
    int axis = c->node->attr.axis;
    if (c->node->shape->dim[axis] != 1) {
        bool exact = tn__dtypes[x->dtype].compute == x->dtype;
        c->in[0] = exact ? c->g : tn__scatter_add_node(zeros_like(x), indices, c->g, axis);
        c->place = exact ? TN__AT_INDICES : TN__ALL;
        return;
    }
    /* the forward gather may never be computed, so this looks at the positions, too */
    tn__node *position = c->node->attr.known ? indices : tn__positions_within(indices, axis, x->shape->dim[axis]);
    tn__node *chosen = tn__binary(TN__OP_EQUAL, tn__iota(x->shape, axis, x->device), position);
    c->in[0] = tn__where(chosen, c->g, zeros_like(x));
}

/* A gradient that no position comes into, where a position out of range is an error all the same. */
static tn__node *looked_at(tn__node *g, tn__node *indices, int axis)
{
    if (indices->shape->size == 0 || g->shape->size == 0)
        return g;
    tn__node *place = tn__positions_within(indices, axis, g->shape->dim[axis]);
    if (tn__node_is_error(place))
        return place;
    tn__node *least = tn__reduce(TN__OP_MIN, place, (1u << place->shape->ndim) - 1);
    return tn__where(tn__binary(TN__OP_LESS, least, zeros_like(least)), zeros_like(g), g);
}

void tn__grad_scatter_add(tn__chain *c)
{
    tn__node *indices = c->node->in[1];
    int axis = c->node->attr.axis;
    if (tn__wanted(c, 0))
        c->in[0] = looked_at(c->g, indices, axis);
    if (tn__wanted(c, 2))
        c->in[2] = tn__gather(c->g, indices, axis);
}

/* Of positions that repeat, the last one's value stands: only that one has a gradient. */
void tn__grad_scatter_set(tn__chain *c)
{
    tn__node *indices = c->node->in[1], *values = c->node->in[2];
    int axis = c->node->attr.axis;
    if (tn__wanted(c, 0))
        c->in[0] = tn__scatter_node(TN__OP_SCATTER_SET, c->g, indices, zeros_like(values), axis);
    if (tn__wanted(c, 2)) {
        tn__node *place = tn__iota(indices->shape, axis, indices->device);
        tn__node *none = tn__cast(zeros_like(c->node), TN_INT64);
        tn__node *last = tn__gather(tn__scatter_node(TN__OP_SCATTER_SET, none, indices, place, axis), indices, axis);
        c->in[2] =
            tn__where(tn__binary(TN__OP_EQUAL, last, place), tn__gather(c->g, indices, axis), zeros_like(values));
    }
}

/* Each element is in the sums from its own place on. */
void tn__grad_cumsum(tn__chain *c)
{
    c->in[0] = tn__reverse_rows(tn__sort_scan(TN__OP_CUMSUM, tn__reverse_rows(c->g), NULL));
}

/* ---- products and moves ---- */

void tn__grad_matmul(tn__chain *c)
{
    tn__node *a = c->node->in[0], *b = c->node->in[1];
    if (tn__wanted(c, 0))
        c->in[0] = tn__matmul_node(c->g, tn__swap_last(b));
    if (tn__wanted(c, 1))
        c->in[1] = tn__matmul_node(tn__swap_last(a), c->g);
}

void tn__grad_transfer(tn__chain *c)
{
    c->in[0] = tn__to(c->g, c->node->in[0]->device);
}
