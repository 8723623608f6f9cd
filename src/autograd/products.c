/* SPDX-License-Identifier: MIT */
/*
 * Sums of products as one product. The gradient of a weight that is used T times, as by a recurrence, is the sum over
 * all uses of a product of two matrices: what went into a use, transposed, by the gradient of what came out. Each alone
 * writes an array of the weight's extents, which the sum reads again. Where the two factors are less than that, they
 * are put side by side, [a b] [c; d] = a c + b d, and one product writes the gradient once.
 */
#include "autograd/tape.h"

static bool is_transposed(const tn__node *node) { return node->op == TN__OP_PERMUTE && tn__node_pending(node); }

static bool is_product(const tn__node *node) { return node->op == TN__OP_MATMUL && tn__node_pending(node); }

tn__node *tn__tape_product(tn__node *gradient)
{
    if (gradient->shape->ndim != 2)
        return NULL;
    const tn__node *below = is_transposed(gradient) ? gradient->in[0] : NULL;
    if (below && is_product(below)) /* (a b)^T = b^T a^T */
        return tn__matmul_node(tn__swap_last(below->in[1]), tn__swap_last(below->in[0]));
    return is_product(gradient) ? gradient : NULL;
}

/* The factors of products side by side along an axis, across which they all have `extent`. */
static tn__node *side_by_side(int count, tn__node *const *product, int input, int axis, int64_t sum, int64_t extent)
{
    bool transposed = true;
    for (int i = 0; i < count; i++)
        transposed = transposed && is_transposed(product[i]->in[input]);
    if (transposed)
        axis = 1 - axis;
    const tn__node *first = product[0]->in[input];
    const tn__shape *shape = tn__shape_intern(2, axis ? (int64_t[]){extent, sum} : (int64_t[]){sum, extent});
    if (!shape) {
        tn__fail_memory("matmul", sizeof *shape);
        return tn__failed();
    }
    tn__node *all = tn__const(0, (tn_dtype)first->dtype, shape, first->device);
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        tn__node *part = product[i]->in[input];
        part = transposed ? tn__swap_last(part) : part;
        all = tn__update_along(all, part, axis, at);
        if (tn__node_is_error(all) || tn__node_is_error(part))
            return all;
        at += part->shape->dim[axis];
    }
    return transposed ? tn__swap_last(all) : all;
}

static tn__node *sum_of_pending(int count, tn__node *const *product)
{
    int64_t rows = product[0]->shape->dim[0], columns = product[0]->shape->dim[1], between = 0;
    for (int i = 0; i < count; i++)
        between += product[i]->in[0]->shape->dim[1];
    if (count > 1 && (double)between * (double)(rows + columns) < (double)count * (double)rows * (double)columns)
        return tn__matmul_node(side_by_side(count, product, 0, 1, between, rows),
                               side_by_side(count, product, 1, 0, between, columns));
    tn__node *sum = product[0];
    for (int i = 1; i < count; i++)
        sum = tn__binary(TN__OP_ADD, sum, product[i]);
    return sum;
}

/* Those that a stretch has computed by now are arrays like any other. */
tn__node *tn__tape_sum_products(int count, tn__node **product)
{
    tn__node *sum = NULL;
    int pending = 0;
    for (int i = 0; i < count; i++) {
        if (is_product(product[i]))
            product[pending++] = product[i];
        else
            sum = sum ? tn__binary(TN__OP_ADD, sum, product[i]) : product[i];
    }
    tn__node *rest = pending ? sum_of_pending(pending, product) : NULL;
    return sum && rest ? tn__binary(TN__OP_ADD, sum, rest) : sum ? sum : rest;
}
