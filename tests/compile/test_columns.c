/* SPDX-License-Identifier: MIT */
/* Sums down the columns of a matrix on a GPU: how they are split, which nothing but the shape may change. */
#include <tanso.h>

#include "compile/compile.h"
#include "graphs.h"

/* A GPU that nobody runs anything on. */
static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .product_kernels = true, .threads = 132,
                                          .multiprocessors = 132, .shared_memory = 227 << 10}};

static tn__plan *plan_of(tn__graph *graph) { return graph_plan_once(graph, &gpu); }

/* Bytes of the pieces of a sum of x, or of much that is made of x and another matrix. */
static size_t pieces_of(int rows, int columns, bool fused)
{
    tn__graph graph = {0};
    const tn__shape *whole = shape(2, rows, columns);
    int x = graph_leaf(&graph, whole, false);
    if (fused) {
        int y = graph_leaf(&graph, whole, false);
        x = graph_op(&graph, TN__OP_MULTIPLY, whole, graph_op(&graph, TN__OP_EXP, whole, x, -1),
                     graph_op(&graph, TN__OP_TANH, whole, y, -1));
    }
    graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, x, 1));
    tn__plan *plan = plan_of(&graph);
    size_t bytes = plan->program.arena_bytes;
    tn__plan_free(plan);
    return bytes;
}

static void test_pieces_by_shape(void **state)
{
    (void)state;
    static const struct {
        int rows, columns;
    } cases[] = {{1048576, 128}, {8192, 768}, {8192, 3072}, {8192, 8192}, {100000, 16}, {5000, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t plain = pieces_of(cases[i].rows, cases[i].columns, false);
        assert_true(plain > 0);
        assert_int_equal(pieces_of(cases[i].rows, cases[i].columns, true), plain);
    }
}

/* Few columns of many rows: 32 threads lie across, and there is a block for each multiprocessor at least. Fewer rows
 * than that takes are not split. */
static void test_few_columns(void **state)
{
    (void)state;
    static const struct {
        int rows, columns, steps, least;
    } cases[] = {{8192, 768, 2, 132}, {1024, 256, 1, 32}, {300, 1000, 1, 64}, {2048, 1152, 1, 132}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__graph graph = {0};
        graph_result(&graph, graph_reduce(&graph, TN__OP_SUM,
                                          graph_leaf(&graph, shape(2, cases[i].rows, cases[i].columns), false), 1));
        tn__plan *plan = plan_of(&graph);
        assert_int_equal(plan->program.step_count, cases[i].steps);
        assert_true(plan->program.step[0].kernel.launch.blocks >= cases[i].least);
        tn__plan_free(plan);
    }
}

/* Few columns that are gone through twice or more: by kernels of their own, each of which can be split, or has the
 * whole chip where it sums up nothing; not where they are short or few. */
static void test_passes(void **state)
{
    (void)state;
    static const struct {
        int rows, columns, steps;
    } cases[] = {{65536, 256, 5}, {8192, 768, 5}, {128, 1024, 1}, {2304, 512, 3}, {1024, 512, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__graph graph = {0};
        const tn__shape *whole = shape(2, cases[i].rows, cases[i].columns);
        int x = graph_leaf(&graph, whole, false);
        int most = graph_expand(&graph, graph_reduce(&graph, TN__OP_MAX, x, 1), whole);
        int e = graph_op(&graph, TN__OP_EXP, whole, graph_op(&graph, TN__OP_SUBTRACT, whole, x, most), -1);
        int sum = graph_expand(&graph, graph_reduce(&graph, TN__OP_SUM, e, 1), whole);
        graph_result(&graph, graph_op(&graph, TN__OP_DIVIDE, whole, e, sum));
        tn__plan *plan = plan_of(&graph);
        assert_int_equal(plan->program.step_count, cases[i].steps);
        /* no matrix of exponentials */
        assert_true(plan->program.arena_bytes < (size_t)whole->size * sizeof(float));
        tn__plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces_by_shape), cmocka_unit_test(test_few_columns),
                                       cmocka_unit_test(test_passes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
