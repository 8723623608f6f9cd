/* SPDX-License-Identifier: MIT */
/* What plans store: sums that go on from layer to layer, so that no kernel adds them up anew from all layers; and not
 * casts that only a few elements are chosen of. */
#include <tanso.h>

#include "graphs.h"

enum { N = 48, LAYERS = 9 };

static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .threads = 132, .multiprocessors = 132,
                                          .shared_memory = 227 << 10}};

static const tn__device *device(int k) { return k ? &gpu : tn__device_get(tn_cpu()); }

static int64_t elements(const tn__operand *o)
{
    int64_t count = 1;
    for (int d = 0; d < o->ndim; d++)
        count *= o->stride[d] ? o->dim[d] : 1;
    return count;
}

/* Operands of a step, its outputs or its inputs, that are as large as the arrays here. */
static int large(const tn__step *s, bool outputs)
{
    int count = 0;
    for (int i = outputs ? 0 : s->output_count; i < (outputs ? s->output_count : s->operand_count); i++)
        count += elements(&s->operand[i]) == N * N;
    return count;
}

/* Rows divided by their sums. */
static int normalized(tn__graph *graph, int v)
{
    int sum = graph_expand(graph, graph_reduce(graph, TN__OP_SUM, v, 2), shape(2, N, N));
    return graph_op(graph, TN__OP_DIVIDE, shape(2, N, N), v, sum);
}

static void test_layers(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int h = graph_leaf(&graph, shape(2, N, N), false), w = graph_leaf(&graph, shape(2, N, N), false);
    for (int i = 0; i < LAYERS; i++) {
        int product = graph_op(&graph, TN__OP_MATMUL, shape(2, N, N), normalized(&graph, h), w);
        h = graph_op(&graph, TN__OP_ADD, shape(2, N, N), h, product);
    }
    graph_result(&graph, h);
    for (int k = 0; k < 2; k++) {
        tn__plan *plan = graph_plan(&graph, device(k), TN_MATMUL_FLOAT32);
        int stored = 0;
        for (int i = 0; i < plan->program.step_count; i++) {
            const tn__step *s = &plan->program.step[i];
            assert_in_range(large(s, false), 0, 3);
            stored += large(s, true);
        }
        assert_in_range(stored, 2 * LAYERS + 1, 3 * LAYERS); /* normalized, products, every other sum */
        tn__plan_free(plan);
    }
    tn__graph_free(&graph);
}

/* A sum of three that one kernel needs, however often, stays in it. */
static void test_one_kernel(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        tn__graph graph = {0};
        int sum = graph_leaf(&graph, shape(2, N, N), false);
        for (int i = 0; i < 2; i++)
            sum = graph_op(&graph, TN__OP_ADD, shape(2, N, N), sum, graph_leaf(&graph, shape(2, N, N), false));
        graph_result(&graph, normalized(&graph, sum));
        tn__plan *plan = graph_plan_once(&graph, device(k));
        assert_int_equal(plan->program.step_count, 1);
        assert_int_equal(large(&plan->program.step[0], true), 1);
        tn__plan_free(plan);
    }
}

/* A loss of 16-bit logits: their exponentials are summed up as float32, one logit of each row is chosen. */
static void test_chosen(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int a = graph_leaf(&graph, shape(2, N, N), false), b = graph_leaf(&graph, shape(2, N, N), false);
    int labels = graph_leaf(&graph, shape(2, N, 1), false);
    int logits = graph_op(&graph, TN__OP_MATMUL, shape(2, N, N), a, b);
    graph.value[labels].dtype = TN_INT64;
    graph.value[a].dtype = graph.value[b].dtype = graph.value[logits].dtype = TN_FLOAT16;
    int wide = graph_op(&graph, TN__OP_CAST, shape(2, N, N), logits, -1);
    int chosen = graph_op(&graph, TN__OP_GATHER, shape(2, N, 1), wide, labels);
    graph.value[chosen].attr.axis = 1;
    graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, graph_op(&graph, TN__OP_EXP, shape(2, N, N), wide, -1), 2));
    graph_result(&graph, chosen);
    for (int k = 0; k < 2; k++) {
        tn__plan *plan = graph_plan(&graph, device(k), TN_MATMUL_FLOAT32);
        for (int i = 0; i < plan->program.step_count; i++) {
            const tn__step *s = &plan->program.step[i];
            for (int o = 0; o < s->output_count; o++)
                assert_true(elements(&s->operand[o]) < N * N || s->operand[o].dtype == TN_FLOAT16);
        }
        tn__plan_free(plan);
    }
    tn__graph_free(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_one_kernel),
                                       cmocka_unit_test(test_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
