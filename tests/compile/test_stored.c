/* SPDX-License-Identifier: MIT */
/* What plans store: sums that go on from layer to layer, so that no kernel adds them up anew from all layers; what a
 * product reads, in whatever shape; and not casts that only a few elements are chosen of, nor what a few operations
 * compute again. */
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

static int stored_in(const tn__graph *graph, int k)
{
    tn__plan *plan = graph_plan(graph, device(k), TN_MATMUL_FLOAT32);
    int stored = 0;
    for (int i = 0; i < plan->program.step_count; i++)
        stored += large(&plan->program.step[i], true);
    tn__plan_free(plan);
    return stored;
}

/* Rows of a table by indices of two axes, and their sums along one of these: nothing as large as all the rows is
 * stored, though they come as those of a list of indices. Two users of the rows have them stored. */
static void test_looked_up(void **state)
{
    (void)state;
    const tn__shape *list = shape(2, N, N), *bags = shape(3, 6, N / 6, N);
    for (int users = 1; users < 3; users++) {
        tn__graph graph = {0};
        int table = graph_leaf(&graph, shape(2, 5, N), false), index = graph_leaf(&graph, shape(2, N, 1), false);
        graph.value[index].dtype = TN_INT64;
        index = graph_expand(&graph, index, list);
        graph.value[index].dtype = TN_INT64;
        int rows = graph_op(&graph, TN__OP_GATHER, list, table, index);
        graph.value[rows].attr.axis = 0;
        rows = graph_op(&graph, TN__OP_RESHAPE, bags, rows, -1);
        for (int i = 0; i < users; i++)
            graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, rows, 1u << (1 + i)));
        for (int k = 0; k < 2; k++)
            assert_int_equal(stored_in(&graph, k), users - 1);
        tn__graph_free(&graph);
    }
}

/* A layer between two products whose rows lie in two axes, as of a text's words: x is the sum of a product and a bias,
 * and x f(x) goes into the next one, and x f(x) times that one is the result. Only these four are stored: the reshapes
 * in front of the products do not have x and f(x) stored to be read in another shape. */
static void test_between_products(void **state)
{
    (void)state;
    const tn__shape *flat = shape(2, N, N), *split = shape(3, 6, N / 6, N);
    tn__graph graph = {0};
    int a = graph_leaf(&graph, flat, false), bias = graph_leaf(&graph, shape(3, 1, 1, N), false);
    int first = graph_op(&graph, TN__OP_RESHAPE, split, graph_op(&graph, TN__OP_MATMUL, flat, a, a), -1);
    int x = graph_op(&graph, TN__OP_ADD, split, first, graph_expand(&graph, bias, split));
    int f = graph_op(&graph, TN__OP_NEGATIVE, split, graph_op(&graph, TN__OP_SQUARE, split, x, -1), -1);
    int y = graph_op(&graph, TN__OP_MULTIPLY, split, x, f);
    int second = graph_op(&graph, TN__OP_MATMUL, flat, graph_op(&graph, TN__OP_RESHAPE, flat, y, -1), a);
    second = graph_op(&graph, TN__OP_RESHAPE, split, second, -1);
    graph_result(&graph, graph_op(&graph, TN__OP_MULTIPLY, split, graph_op(&graph, TN__OP_MULTIPLY, split, f, x),
                                  graph_op(&graph, TN__OP_ADD, split, f, second)));
    for (int k = 0; k < 2; k++)
        assert_int_equal(stored_in(&graph, k), 4);
    tn__graph_free(&graph);
}

/* The fourth square of a square takes four operations, though fifteen are written if each is written out; needed on
 * both sides of a product, it is computed twice. That of nine is stored. */
static void test_few_operations(void **state)
{
    (void)state;
    const tn__shape *s = shape(2, N, N);
    for (int squares = 4; squares <= 9; squares += 5) {
        tn__graph graph = {0};
        int a = graph_leaf(&graph, s, false), power = a;
        for (int i = 0; i < squares; i++)
            power = graph_op(&graph, TN__OP_MULTIPLY, s, power, power);
        int before = graph_op(&graph, TN__OP_NEGATIVE, s, power, -1);
        int product = graph_op(&graph, TN__OP_MATMUL, s, before, a);
        graph_result(&graph, graph_op(&graph, TN__OP_ADD, s, power, product));
        assert_int_equal(stored_in(&graph, 0), squares > 8 ? 4 : 3);
        tn__graph_free(&graph);
    }
}

/* A GPU computes a sigmoid again, of a large array and of what is read anyway, however often its argument reads it. */
static void test_large_sigmoid(void **state)
{
    (void)state;
    const tn__shape *s = shape(2, 1024, 1024);
    for (int k = 0; k < 2; k++) {
        tn__graph graph = {0};
        int a = graph_leaf(&graph, s, false), x = graph_op(&graph, TN__OP_MATMUL, s, a, a);
        int cubed = graph_op(&graph, TN__OP_MULTIPLY, s, x, graph_op(&graph, TN__OP_SQUARE, s, x, -1));
        int gate = graph_op(&graph, TN__OP_SIGMOID, s, cubed, -1);
        int product = graph_op(&graph, TN__OP_MATMUL, s, graph_op(&graph, TN__OP_MULTIPLY, s, x, gate), a);
        graph_result(&graph, graph_op(&graph, TN__OP_MULTIPLY, s, gate, product));
        tn__plan *plan = graph_plan_once(&graph, device(k));
        int outputs = 0;
        for (int i = 0; i < plan->program.step_count; i++)
            outputs += plan->program.step[i].output_count;
        assert_int_equal(outputs, k ? 4 : 5); /* both products, what goes into the second, the result; the sigmoid */
        tn__plan_free(plan);
    }
}

/* What is one number for a column of much is computed once, by who sums up the columns, if it takes long; a kernel that
 * goes along rows has a row's once a row, and of little, or on a CPU, it costs nothing. */
static void test_column_factors(void **state)
{
    (void)state;
    static const struct {
        int device, extent;
        uint32_t axes; /* that are summed up: 1 leaves columns */
        tn__op op;
        bool stored;
    } cases[] = {{1, 1024, 1, TN__OP_RSQRT, true},  {1, 1024, 1, TN__OP_RECIPROCAL, true},
                 {1, 1024, 1, TN__OP_EXP, true},    {1, 1024, 1, TN__OP_NEGATIVE, false},
                 {1, 1024, 2, TN__OP_RSQRT, false}, {1, 512, 1, TN__OP_RSQRT, false},
                 {0, 1024, 1, TN__OP_RSQRT, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__graph graph = {0};
        int n = cases[i].extent;
        const tn__shape *s = shape(2, n, n), *few = shape(2, cases[i].axes == 1 ? 1 : n, cases[i].axes == 1 ? n : 1);
        int a = graph_leaf(&graph, s, false);
        int factor = graph_op(&graph, cases[i].op, few, graph_reduce(&graph, TN__OP_SUM, a, cases[i].axes), -1);
        int all = graph_expand(&graph, factor, s), before = graph_op(&graph, TN__OP_MULTIPLY, s, a, all);
        int product = graph_op(&graph, TN__OP_MATMUL, s, before, a);
        graph_result(&graph, graph_op(&graph, TN__OP_MULTIPLY, s, product, all));
        tn__plan *plan = graph_plan_once(&graph, device(cases[i].device));
        const tn__step *last = &plan->program.step[plan->program.step_count - 1];
        assert_int_equal(strstr(last->label, tn__ops[cases[i].op].name) == NULL, cases[i].stored);
        tn__plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers),           cmocka_unit_test(test_one_kernel),
                                       cmocka_unit_test(test_chosen),           cmocka_unit_test(test_between_products),
                                       cmocka_unit_test(test_few_operations),   cmocka_unit_test(test_large_sigmoid),
                                       cmocka_unit_test(test_looked_up),
                                       cmocka_unit_test(test_column_factors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
