/* SPDX-License-Identifier: MIT */
/*
 * Products that are better not products, on devices whose products are kernels of their own, with tiles for matrices.
 * A large matrix times a vector becomes a sum of elementwise products, which is read as fast as memory goes, by the
 * whole chip, and which other elementwise values join. Small ones stay products, which join others in a kernel. Of
 * k = 1, as the gradient by that matrix is, only the elementwise product is left. Where backward has put the factors of
 * a few of these side by side, as one product (autograd/products.c), they are added up instead; and of a product with
 * such a factor, the lines that are chosen one by one are products with a vector.
 */
#include "compile/rewrite/rewrite.h"

#include "core/memory.h"

#define FEW_JOINED  4                  /* vectors side by side that are seen one by one */
#define VECTOR_WORK ((int64_t)1 << 21) /* multiplications of a vector's product from which on it is a sum */

typedef struct products {
    const tn__graph *from;
    tn__graph to;
    int *number; /* of each old value, in the new graph */
} products;

/* What a chain of transposes is of. *across: whether it is the transpose of that. */
static int untransposed(const tn__graph *graph, int v, bool *across)
{
    for (*across = false; graph->value[v].op == TN__OP_PERMUTE; v = graph->value[v].in[0])
        *across ^= graph->value[v].attr.perm[0] == 1;
    return v;
}

static bool is_joined(const tn__graph *graph, int v)
{
    bool across;
    return graph->value[untransposed(graph, v, &across)].op == TN__OP_UPDATE;
}

static bool is_product(const tn__value *v)
{
    return v->op == TN__OP_MATMUL && v->shape->ndim == 2 && (v->dtype == TN_FLOAT32 || v->dtype == TN_FLOAT64);
}

static int64_t depth_of(const tn__graph *graph, const tn__value *product)
{
    return graph->value[product->in[0]].shape->dim[1];
}

/* Is it a large product with a vector? *factor: which of the two is that. */
static bool is_with_vector(const tn__graph *graph, const tn__value *v, int *factor)
{
    *factor = is_product(v) && v->shape->dim[1] == 1;
    int64_t k = is_product(v) ? depth_of(graph, v) : 0;
    return k > 1 && v->shape->dim[*factor] == 1 && v->shape->size > VECTOR_WORK / k;
}

/* Is it a large product of vectors, or the sum of a few of these? */
static bool is_of_vectors(const tn__graph *graph, const tn__value *v)
{
    if (!is_product(v) || v->shape->size <= VECTOR_WORK)
        return false;
    int64_t k = depth_of(graph, v);
    return k == 1 || (k > 1 && k <= FEW_JOINED && is_joined(graph, v->in[0]) && is_joined(graph, v->in[1]));
}

/* Is it a row (column) of a product whose first (second) factor is a few vectors side by side? *factor: which. */
static bool is_line(const tn__graph *graph, const tn__value *v, int *factor)
{
    const tn__value *product = &graph->value[v->in[0]];
    if (v->op != TN__OP_SLICE || v->attr.shift || !is_product(product))
        return false;
    const tn__shape *whole = product->shape;
    const int64_t *window = v->attr.ints->v, k = depth_of(graph, product);
    for (*factor = 0; *factor < 2; ++*factor) {
        int other = !*factor;
        if (k > 1 && v->shape->dim[*factor] == 1 && v->shape->dim[other] == whole->dim[other] &&
            window[2 * other] == 0 && window[2 * other + 1] == 1 && whole->dim[*factor] <= FEW_JOINED &&
            whole->dim[other] > VECTOR_WORK / k && is_joined(graph, product->in[*factor]))
            return true;
    }
    return false;
}

/* Adds a value of one or, unless b is -1, two inputs of the new graph. Returns its number; -1 without memory, which a
 * and the shape may say already. */
static int add(products *p, tn__op op, int a, int b, const tn__shape *shape)
{
    if (a < 0 || !shape)
        return -1;
    tn__value value = {.op = op, .dtype = p->to.value[a].dtype, .arity = 1 + (b >= 0), .in = {a, b < 0 ? 0 : b},
                       .shape = shape, .leaf = -1, .scalar = -1};
    return tn__graph_add(&p->to, &value);
}

static int view(products *p, tn__op op, int a, const tn__shape *shape)
{
    return a >= 0 && shape && p->to.value[a].shape == shape ? a : add(p, op, a, -1, shape);
}

static const tn__shape *line_shape(int axis, int64_t extent)
{
    return tn__shape_intern(2, axis ? (int64_t[]){1, extent} : (int64_t[]){extent, 1});
}

/* What is at position j of an axis of an old value, as a row or as a column. */
static int line_of(products *p, int v, int axis, int64_t j)
{
    bool across;
    int of = untransposed(p->from, v, &across);
    axis ^= across;
    const tn__shape *shape = p->from->value[of].shape, *line = line_shape(!axis, shape->dim[!axis]);
    int64_t window[4] = {0, 1, 0, 1};
    window[2 * axis] = j;
    const tn__ints *ints = tn__ints_intern(4, window);
    if (line == shape || !ints)
        return ints ? p->number[of] : -1;
    int slice = add(p, TN__OP_SLICE, p->number[of], -1, line);
    if (slice >= 0)
        p->to.value[slice].attr.ints = ints;
    return slice;
}

/* The product of a matrix, an old value, and a vector along the axis that is summed over: by the matrix as it lies in
 * memory. */
static int with_vector(products *p, int matrix, int vector, int axis, const tn__shape *result)
{
    bool across;
    matrix = untransposed(p->from, matrix, &across);
    axis ^= across;
    const tn__shape *shape = p->from->value[matrix].shape;
    int factor = view(p, TN__OP_RESHAPE, vector, line_shape(axis, shape->dim[axis]));
    factor = view(p, TN__OP_EXPAND, factor, shape);
    int product = factor < 0 ? -1 : add(p, TN__OP_MULTIPLY, p->number[matrix], factor, shape);
    int sum = add(p, TN__OP_SUM, product, -1, line_shape(!axis, shape->dim[!axis]));
    if (sum >= 0)
        p->to.value[sum].attr.axes = 1u << axis;
    return view(p, TN__OP_RESHAPE, sum, result);
}

/* The vector at position j of k of a factor, as an array of the product's shape. */
static int spread(products *p, const tn__value *product, int factor, int64_t j)
{
    const tn__shape *line = line_shape(factor, product->shape->dim[factor]);
    return view(p, TN__OP_EXPAND, view(p, TN__OP_RESHAPE, line_of(p, product->in[factor], !factor, j), line),
                product->shape);
}

static int of_vectors(products *p, const tn__value *v)
{
    int sum = -1;
    for (int64_t j = 0; j < depth_of(p->from, v); j++) {
        int column = spread(p, v, 0, j), row = column < 0 ? -1 : spread(p, v, 1, j);
        int product = row < 0 ? -1 : add(p, TN__OP_MULTIPLY, column, row, v->shape);
        sum = j == 0 || product < 0 ? product : add(p, TN__OP_ADD, sum, product, v->shape);
        if (sum < 0)
            return -1;
    }
    return sum;
}

static bool add_value(products *p, int v)
{
    tn__value value = p->from->value[v];
    int factor;
    if (is_with_vector(p->from, &value, &factor)) {
        p->number[v] = with_vector(p, value.in[!factor], p->number[value.in[factor]], factor, value.shape);
    } else if (is_of_vectors(p->from, &value)) {
        p->number[v] = of_vectors(p, &value);
    } else if (is_line(p->from, &value, &factor)) {
        const tn__value *product = &p->from->value[value.in[0]];
        int vector = line_of(p, product->in[factor], factor, value.attr.ints->v[2 * factor]);
        p->number[v] = with_vector(p, product->in[!factor], vector, factor, value.shape);
    } else {
        for (int i = 0; i < value.arity; i++)
            value.in[i] = p->number[value.in[i]];
        p->number[v] = tn__graph_add(&p->to, &value);
    }
    return p->number[v] >= 0;
}

bool tn__sum_vector_products(tn__graph *graph, const tn__device *device)
{
    bool any = false;
    int factor;
    for (int v = 0; v < graph->count && device->capabilities.product_kernels && !any; v++)
        any = is_with_vector(graph, &graph->value[v], &factor) || is_of_vectors(graph, &graph->value[v]) ||
              is_line(graph, &graph->value[v], &factor);
    if (!any)
        return true;
    products p = {.from = graph, .number = tn__alloc(sizeof(int) * (size_t)graph->count)};
    bool done = p.number != NULL;
    for (int v = 0; v < graph->count && done; v++)
        done = add_value(&p, v);
    tn__graph_take(graph, &p.to, p.number, done);
    tn__free(p.number);
    return done;
}
