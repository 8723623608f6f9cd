/* SPDX-License-Identifier: MIT */
/* Making graphs for the tests of the compiler. */
#include "graphs.h"

const tn__shape *shape(int ndim, ...)
{
    int64_t dim[TN_MAX_NDIM] = {0};
    va_list args;
    va_start(args, ndim);
    for (int d = 0; d < ndim; d++)
        dim[d] = va_arg(args, int);
    va_end(args);
    const tn__shape *made = tn__shape_intern(ndim, dim);
    assert_non_null(made);
    return made;
}

static void *grown(void *items, int count, size_t size)
{
    void *more = tn__realloc(items, ((size_t)count + 1) * size);
    assert_non_null(more);
    return more;
}

static int add(tn__graph *graph, tn__value value)
{
    value.dtype = TN_FLOAT32;
    int number = tn__graph_add(graph, &value);
    assert_true(number >= 0);
    return number;
}

int graph_leaf(tn__graph *graph, const tn__shape *shape, bool donatable)
{
    graph->leaf = grown(graph->leaf, graph->leaf_count, sizeof *graph->leaf);
    graph->leaf[graph->leaf_count] = (tn__leaf){graph->leaf_count, donatable, (size_t)shape->size * sizeof(float)};
    return add(graph, (tn__value){.op = TN__OP_VALUE, .shape = shape, .leaf = graph->leaf_count++, .scalar = -1});
}

int graph_const(tn__graph *graph, const tn__shape *shape)
{
    graph->scalar_dtype = grown(graph->scalar_dtype, graph->scalar_count, sizeof *graph->scalar_dtype);
    graph->scalar_dtype[graph->scalar_count] = TN_FLOAT32;
    return add(graph, (tn__value){.op = TN__OP_CONST, .shape = shape, .leaf = -1, .scalar = graph->scalar_count++});
}

int graph_op(tn__graph *graph, tn__op op, const tn__shape *shape, int a, int b)
{
    return add(graph, (tn__value){.op = op,
                                  .arity = b < 0 ? 1 : 2,
                                  .in = {a, b < 0 ? 0 : b},
                                  .shape = shape,
                                  .leaf = -1,
                                  .scalar = -1});
}

int graph_expand(tn__graph *graph, int a, const tn__shape *to) { return graph_op(graph, TN__OP_EXPAND, to, a, -1); }

int graph_reduce(tn__graph *graph, tn__op op, int a, uint32_t axes)
{
    tn_shape kept = tn__shape_value(graph->value[a].shape);
    for (int d = 0; d < kept.ndim; d++)
        kept.dim[d] = axes >> d & 1 ? 1 : kept.dim[d];
    int number = graph_op(graph, op, tn__shape_intern(kept.ndim, kept.dim), a, -1);
    graph->value[number].attr.axes = axes;
    return number;
}

int graph_permute(tn__graph *graph, int a, const uint8_t *perm)
{
    const tn__shape *from = graph->value[a].shape;
    int64_t dim[TN_MAX_NDIM] = {0};
    for (int d = 0; d < from->ndim; d++)
        dim[d] = from->dim[perm[d]];
    int number = graph_op(graph, TN__OP_PERMUTE, tn__shape_intern(from->ndim, dim), a, -1);
    memcpy(graph->value[number].attr.perm, perm, (size_t)from->ndim);
    return number;
}

int graph_slice(tn__graph *graph, int a, const int64_t *start, const int64_t *step, const tn__shape *shape)
{
    int64_t window[2 * TN_MAX_NDIM];
    for (int d = 0; d < shape->ndim; d++) {
        window[2 * d] = start[d];
        window[2 * d + 1] = step[d];
    }
    int number = graph_op(graph, TN__OP_SLICE, shape, a, -1);
    graph->value[number].attr.ints = tn__ints_intern(2 * shape->ndim, window);
    assert_non_null(graph->value[number].attr.ints);
    return number;
}

void graph_result(tn__graph *graph, int v)
{
    graph->result = grown(graph->result, graph->result_count, sizeof *graph->result);
    graph->result[graph->result_count++] = v;
}

tn__plan *graph_plan(const tn__graph *graph, const tn__device *device, tn_matmul_precision precision)
{
    tn__compile_options options = {.kernels = true, .fusion = true, .plan_memory = true, .precision = (int)precision};
    tn__plan *plan = tn__compile(graph, device, &options);
    if (!plan)
        fail_msg("%s", tn_error());
    assert_null(tn__plan_verify(plan));
    return plan;
}

tn__plan *graph_plan_once(tn__graph *graph, const tn__device *device)
{
    tn__plan *plan = graph_plan(graph, device, TN_MATMUL_FLOAT32);
    tn__graph_free(graph);
    return plan;
}

void graph_random(tn__graph *graph, test_random *chance)
{
    static const tn__op unary[] = {TN__OP_EXP, TN__OP_NEGATIVE, TN__OP_SQRT};
    static const tn__op binary[] = {TN__OP_ADD, TN__OP_SUBTRACT, TN__OP_MULTIPLY, TN__OP_MATMUL};
    static const uint8_t swapped[] = {1, 0};
    int n = (int)test_random_int(chance, 1, 12);
    const tn__shape *square = shape(2, n, n);
    int full[80], count = 0; /* the values of shape (n, n) */
    for (int i = (int)test_random_int(chance, 1, 4); i > 0; i--)
        full[count++] = graph_leaf(graph, square, test_random_int(chance, 0, 1));
    for (int i = (int)test_random_int(chance, 1, 40); i > 0; i--) {
        int a = full[test_random_int(chance, 0, count - 1)], b = full[test_random_int(chance, 0, count - 1)];
        switch (test_random_int(chance, 0, 7)) {
        case 0:
            full[count++] = graph_op(graph, unary[test_random_int(chance, 0, 2)], square, a, -1);
            break;
        case 1:
            full[count++] = graph_permute(graph, a, swapped);
            break;
        case 2:
            full[count++] = graph_const(graph, square);
            break;
        case 3: /* as in softmax */
            b = graph_reduce(graph, TN__OP_SUM, a, (uint32_t)test_random_int(chance, 1, 3));
            full[count++] = graph_op(graph, TN__OP_DIVIDE, square, a, graph_op(graph, TN__OP_EXPAND, square, b, -1));
            break;
        case 4: /* a reshape that no strides express, mostly */
            b = graph_op(graph, TN__OP_RESHAPE, shape(1, n * n), graph_permute(graph, a, swapped), -1);
            full[count++] = graph_op(graph, TN__OP_RESHAPE, square, b, -1);
            break;
        case 5: { /* one row of `a` becomes one of `b` */
            int64_t start[] = {test_random_int(chance, 0, n - 1), 0}, step[] = {1, 1};
            b = graph_slice(graph, b, start, step, shape(2, 1, n));
            int64_t window[] = {test_random_int(chance, 0, n - 1), 1, 0, 1};
            full[count++] = graph_op(graph, TN__OP_UPDATE, square, a, b);
            graph->value[full[count - 1]].attr.ints = tn__ints_intern(4, window);
            break;
        }
        default:
            full[count++] = graph_op(graph, binary[test_random_int(chance, 0, 3)], square, a, b);
        }
    }
    for (int i = (int)test_random_int(chance, 1, 5); i > 0; i--)
        graph_result(graph, full[test_random_int(chance, 0, count - 1)]);
    graph_result(graph, full[count - 1]);
}
