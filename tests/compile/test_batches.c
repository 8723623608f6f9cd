/* SPDX-License-Identifier: MIT */
/* Batches of a library's products on a GPU: which operands are copied into one batch, and which are left as they
 * are. */
#include <tanso.h>

#include "compile/compile.h"
#include "graphs.h"

/* A GPU that nobody runs anything on. */
static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .product_kernels = true, .threads = 132,
                                          .multiprocessors = 132, .shared_memory = 227 << 10}};

static tn__plan *plan_of(tn__graph *graph) { return graph_plan_once(graph, &gpu); }

static const tn__step *product(const tn__plan *plan, int which)
{
    for (int i = 0; i < plan->program.step_count; i++)
        if (plan->program.step[i].kind == TN__STEP_PRODUCT && which-- == 0)
            return &plan->program.step[i];
    fail_msg("there is no such product");
    return NULL;
}

/* The batch axes of an operand are one. */
static bool is_one(const tn__operand *o) { return o->stride[0] == o->stride[1] * o->dim[1]; }

static const uint8_t heads[] = {0, 2, 1, 3}, heads_across[] = {0, 2, 3, 1}, across[] = {0, 1, 3, 2};

/* Rows of all heads, as a layer with a bias leaves them. */
static int rows_of(tn__graph *graph)
{
    const tn__shape *s = shape(4, 8, 512, 4, 64);
    int bias = graph_expand(graph, graph_leaf(graph, shape(4, 1, 1, 4, 64), false), s);
    return graph_op(graph, TN__OP_ADD, s, graph_leaf(graph, s, false), bias);
}

/* q k^T and q^T m: each operand is stored as one batch by what computes it, q once for both. */
static void test_heads(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *scores = shape(4, 8, 4, 512, 512), *mixed = shape(4, 8, 4, 64, 512);
    int q = rows_of(&graph), k = rows_of(&graph), m = graph_leaf(&graph, scores, false);
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, scores, graph_permute(&graph, q, heads),
                                  graph_permute(&graph, k, heads_across)));
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, mixed, graph_permute(&graph, q, heads_across), m));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 4);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 3; i++)
            assert_true(is_one(&product(plan, p)->operand[i]));
    assert_int_equal(product(plan, 0)->operand[1].buffer, product(plan, 1)->operand[1].buffer);
    assert_int_equal(product(plan, 0)->operand[1].stride[3], 1);
    assert_int_equal(product(plan, 1)->operand[1].stride[2], 1);
    tn__plan_free(plan);
}

/* A batch that is one, few calls, calls that are large, operands that repeat, integers: one step, no copy. */
static void test_left_alone(void **state)
{
    (void)state;
    static const struct {
        int batch, heads, rows, width;
        const uint8_t *perm;
        bool repeats;
        tn_dtype dtype;
    } cases[] = {{8, 4, 512, 64, across, false, TN_FLOAT32},  {3, 12, 512, 64, heads, false, TN_FLOAT32},
                 {8, 4, 8192, 64, heads, false, TN_FLOAT32},  {8, 4, 512, 64, heads, true, TN_FLOAT32},
                 {8, 4, 512, 64, heads, false, TN_INT32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int b = cases[i].batch, h = cases[i].heads, t = cases[i].rows, d = cases[i].width;
        bool apart = cases[i].perm == heads;
        tn__graph graph = {0};
        const tn__shape *rows = apart ? shape(4, b, t, h, d) : shape(4, b, h, d, t);
        int x = graph_leaf(&graph, cases[i].repeats ? shape(4, 1, t, h, d) : rows, false);
        if (cases[i].repeats)
            x = graph_expand(&graph, x, rows);
        int y = graph_leaf(&graph, shape(4, b, h, d, t), false), a = graph_permute(&graph, x, cases[i].perm);
        graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, shape(4, b, h, t, t), a, y));
        for (int v = 0; v < graph.count; v++)
            graph.value[v].dtype = cases[i].dtype;
        tn__plan *plan = plan_of(&graph);
        if (plan->program.step_count != 1)
            fail_msg("case %zu: %d steps", i, plan->program.step_count);
        tn__plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heads), cmocka_unit_test(test_left_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
