/* SPDX-License-Identifier: MIT */
/*
 * Large graphs: what grows with the square of their size, or worse, or with the number of ways through values that are
 * used twice, does not end in the time of a test.
 */
#include <tanso.h>

#include "graphs.h"

/* A GPU that nobody runs anything on. */
static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA,
                                          .late_failures = true,
                                          .product_kernels = true,
                                          .threads = 132,
                                          .multiprocessors = 132,
                                          .shared_memory = 227 << 10}};

/* Plans of all kinds; the number of steps of the last, a GPU's. */
static int steps_of(tn__graph *graph)
{
    int steps = 0;
    for (int i = 0; i < 3; i++) {
        tn__compile_options options = {.kernels = i > 0, .fusion = true, .plan_memory = true};
        tn__plan *plan = tn__compile(graph, i < 2 ? tn__device_get(tn_cpu()) : &gpu, &options);
        if (!plan)
            fail_msg("%s", tn_error());
        steps = plan->program.step_count;
        tn__plan_free(plan);
    }
    tn__graph_free(graph);
    return steps;
}

enum { MANY = 8000 };

/* Sums of leaves of their own, each with a result; and updates of leaves that all read one more. */
static void test_many_apart(void **state)
{
    (void)state;
    tn__graph sums = {0}, updates = {0};
    for (int i = 0; i < MANY; i++)
        graph_result(&sums, graph_reduce(&sums, TN__OP_SUM, graph_leaf(&sums, shape(1, 2 + i % 3), true), 1));
    assert_true(steps_of(&sums) < MANY / 4);
    int x = graph_leaf(&updates, shape(1, 5), false);
    for (int i = 0; i < MANY; i++)
        graph_result(&updates, graph_op(&updates, TN__OP_ADD, shape(1, 5), graph_leaf(&updates, shape(1, 5), true), x));
    assert_true(steps_of(&updates) < MANY / 4);
}

/* A chain of sums and what is computed with them, each of which all later ones need. */
static void test_long_chain(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *whole = shape(2, 3, 4);
    int y = graph_leaf(&graph, whole, true);
    for (int i = 0; i < MANY / 2; i++) {
        int mean = graph_expand(&graph, graph_reduce(&graph, TN__OP_SUM, y, 2), whole);
        y = graph_op(&graph, TN__OP_SUBTRACT, whole, graph_op(&graph, TN__OP_TANH, whole, y, -1), mean);
    }
    graph_result(&graph, y);
    steps_of(&graph);
}

/* Layers with residual connections, and updates of their weights by what looks like gradients: as many products as
 * results, that all live until the end. */
static void test_many_layers(void **state)
{
    (void)state;
    enum { LAYERS = 800 };
    tn__graph graph = {0};
    const tn__shape *square = shape(2, 4, 4);
    int w[LAYERS], h[LAYERS + 1];
    h[0] = graph_leaf(&graph, square, false);
    for (int i = 0; i < LAYERS; i++) {
        w[i] = graph_leaf(&graph, square, true);
        int product = graph_op(&graph, TN__OP_MATMUL, square, h[i], w[i]);
        h[i + 1] = graph_op(&graph, TN__OP_ADD, square, h[i], graph_op(&graph, TN__OP_TANH, square, product, -1));
    }
    int g = h[LAYERS];
    for (int i = LAYERS - 1; i >= 0; i--) {
        int own = graph_op(&graph, TN__OP_MULTIPLY, square, g, h[i + 1]);
        int gradient = graph_op(&graph, TN__OP_MATMUL, square, graph_permute(&graph, h[i], (uint8_t[]){1, 0}), own);
        int back = graph_op(&graph, TN__OP_MATMUL, square, own, graph_permute(&graph, w[i], (uint8_t[]){1, 0}));
        g = graph_op(&graph, TN__OP_ADD, square, g, back);
        int step = graph_op(&graph, TN__OP_MULTIPLY, square, gradient, graph_const(&graph, square));
        graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, square, w[i], step));
    }
    steps_of(&graph);
}

/* ---- values that are used twice, time and again ---- */

enum { ROUNDS = 60 };

/* x (1 - x), so many times. */
static int rounds(tn__graph *graph, int x)
{
    const tn__shape *whole = graph->value[x].shape;
    for (int i = 0; i < ROUNDS; i++) {
        int rest = graph_op(graph, TN__OP_SUBTRACT, whole, graph_const(graph, whole), x);
        x = graph_op(graph, TN__OP_MULTIPLY, whole, x, rest);
    }
    return x;
}

static void test_used_twice(void **state)
{
    (void)state;
    static const int columns[] = {16, 64};
    for (int kind = 0; kind < 6; kind++)
        for (int c = 0; c < 2; c++) {
            tn__graph graph = {0};
            const tn__shape *whole = shape(2, 16, columns[c]), *row = shape(2, 1, columns[c]);
            int a = graph_leaf(&graph, shape(2, 16, 32), false),
                b = graph_leaf(&graph, shape(2, 32, columns[c]), false);
            int product = graph_op(&graph, TN__OP_MATMUL, whole, a, b), y = product;
            if (kind < 3) /* of the product's elements */
                y = rounds(&graph, product);
            else if (kind == 3) /* of what is read beside them */
                y = graph_op(&graph, TN__OP_ADD, whole, product,
                             graph_expand(&graph, rounds(&graph, graph_leaf(&graph, row, true)), whole));
            else if (kind == 4) /* of constants */
                y = graph_op(&graph, TN__OP_ADD, whole, product, rounds(&graph, graph_const(&graph, whole)));
            else /* without a product */
                y = rounds(&graph, graph_leaf(&graph, whole, false));
            graph_result(&graph, kind == 1   ? graph_reduce(&graph, TN__OP_SUM, y, 2)
                                 : kind == 2 ? graph_reduce(&graph, TN__OP_SUM, y, 1)
                                             : y);
            assert_true(steps_of(&graph) <= 6);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_apart),
        cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_many_layers),
        cmocka_unit_test(test_used_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
