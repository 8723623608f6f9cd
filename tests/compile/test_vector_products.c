/* SPDX-License-Identifier: MIT */
/* Products with vectors, and those of k = 1, where products are kernels of their own: which become sums and elementwise
 * products, which stay, and that a program has them at no more than the matrix costs. */
#include <tanso.h>

#include "compile/compile.h"
#include "compile/rewrite/rewrite.h"
#include "graphs.h"

/* GPUs that nobody runs anything on, and a CPU. */
static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA,
                                          .product_kernels = true,
                                          .threads = 132,
                                          .multiprocessors = 132,
                                          .shared_memory = 227 << 10}};
static tn__device other = {
    .capabilities = {.target = TN__TARGET_CUDA, .threads = 132, .multiprocessors = 132, .shared_memory = 227 << 10}};

static int count_op(const tn__graph *graph, tn__op op)
{
    int count = 0;
    for (int v = 0; v < graph->count; v++)
        count += graph->value[v].op == op && graph->value[v].uses > 0;
    return count;
}

static const uint8_t across[] = {1, 0};

/* The product of m x k and k x n, whose factors may lie by columns. */
static int product(tn__graph *graph, int64_t m, int64_t k, int64_t n, bool a_across, bool b_across, tn_dtype dtype)
{
    int a = a_across ? graph_permute(graph, graph_leaf(graph, shape(2, (int)k, (int)m), false), across)
                     : graph_leaf(graph, shape(2, (int)m, (int)k), false);
    int b = b_across ? graph_permute(graph, graph_leaf(graph, shape(2, (int)n, (int)k), false), across)
                     : graph_leaf(graph, shape(2, (int)k, (int)n), false);
    int v = graph_op(graph, TN__OP_MATMUL, shape(2, (int)m, (int)n), a, b);
    for (int i = 0; i < graph->count; i++)
        graph->value[i].dtype = dtype;
    graph_result(graph, v);
    return v;
}

static void test_which(void **state)
{
    (void)state;
    static const struct {
        int64_t m, k, n;
        tn_dtype dtype;
        int sums, products; /* where products are kernels */
    } cases[] = {
        {2047, 1051, 1, TN_FLOAT32, 1, 0}, {1, 1051, 2047, TN_FLOAT64, 1, 0}, {2047, 1, 1051, TN_FLOAT32, 0, 0},
        {1, 3000000, 1, TN_FLOAT32, 1, 0}, {3000000, 1, 1, TN_FLOAT32, 0, 0}, {47, 1051, 1, TN_FLOAT32, 0, 1},
        {47, 1, 1051, TN_FLOAT32, 0, 1},   {2047, 1051, 2, TN_FLOAT32, 0, 1}, {2047, 2, 1051, TN_FLOAT32, 0, 1},
        {2047, 1051, 1, TN_FLOAT16, 0, 1}, {2048, 1024, 1, TN_FLOAT32, 0, 1}, /* 2^21 are not yet many */
        {2048, 0, 2048, TN_FLOAT32, 0, 1}, {1, 2097153, 1, TN_FLOAT32, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int lie = 0; lie < 4; lie++)
            for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
                tn__graph graph = {0};
                product(&graph, cases[i].m, cases[i].k, cases[i].n, lie & 1, lie & 2, cases[i].dtype);
                assert_true(tn__sum_vector_products(&graph, on_gpu ? &gpu : &other));
                assert_null(tn__graph_verify(&graph));
                const tn__value *result = &graph.value[graph.result[0]];
                assert_ptr_equal(result->shape, shape(2, (int)cases[i].m, (int)cases[i].n));
                assert_int_equal(result->dtype, cases[i].dtype);
                tn__graph_count_uses(&graph);
                assert_int_equal(count_op(&graph, TN__OP_MATMUL), on_gpu ? cases[i].products : 1);
                assert_int_equal(count_op(&graph, TN__OP_SUM), on_gpu ? cases[i].sums : 0);
                assert_int_equal(count_op(&graph, TN__OP_MULTIPLY), on_gpu && !cases[i].products);
                tn__graph_free(&graph);
            }
}

/* A matrix is read once, in the order in which it lies, by the one kernel that there is; and so is the update of a
 * matrix by its gradient, which is of k = 1. */
static void test_plans(void **state)
{
    (void)state;
    for (int lie = 0; lie < 4; lie++) {
        tn__graph graph = {0};
        int v = product(&graph, 2047, 1051, 1, lie & 1, lie & 2, TN_FLOAT32);
        graph.result[0] = graph_op(&graph, TN__OP_EXP, graph.value[v].shape, v, -1);
        tn__plan *plan = graph_plan_once(&graph, &gpu);
        assert_int_equal(plan->program.step_count, 1);
        assert_int_equal(plan->program.step[0].kind, TN__STEP_KERNEL);
        tn__plan_free(plan);
    }
    for (int lie = 0; lie < 4; lie++) {
        tn__graph graph = {0};
        const tn__shape *matrix = shape(2, 2047, 1051);
        int v = product(&graph, 2047, 1, 1051, lie & 1, lie & 2, TN_FLOAT32);
        int w = graph_leaf(&graph, matrix, true), rate = graph_const(&graph, matrix);
        graph.result[0] =
            graph_op(&graph, TN__OP_SUBTRACT, matrix, w, graph_op(&graph, TN__OP_MULTIPLY, matrix, rate, v));
        tn__plan *plan = graph_plan_once(&graph, &gpu);
        assert_int_equal(plan->program.step_count, 1);
        assert_int_equal(plan->program.step[0].kind, TN__STEP_KERNEL);
        tn__plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which), cmocka_unit_test(test_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
