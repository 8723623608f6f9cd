/* SPDX-License-Identifier: MIT */
/* What comes behind a library's product and is folded into its step: a bias along the columns, where the sum has memory
 * anyway; and what is not. */
#include <tanso.h>

#include "graphs.h"

enum { ROWS = 1021, COLUMNS = 517, DEPTH = 333 };

/* A GPU that nobody runs anything on, whose library takes epilogues. */
static const tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .product_kernels = true, .epilogues = true,
                                                .threads = 132, .multiprocessors = 132, .shared_memory = 227 << 10}};

static tn__plan *plan_on(const tn__device *device, tn__graph *graph, tn_matmul_precision precision)
{
    tn__plan *plan = graph_plan(graph, device, precision);
    tn__graph_free(graph);
    return plan;
}

static tn__plan *plan_of(tn__graph *graph) { return plan_on(&gpu, graph, TN_MATMUL_FLOAT32); }

static int product(tn__graph *graph, int rows, int depth, int columns)
{
    int x = graph_leaf(graph, shape(2, rows, depth), false), w = graph_leaf(graph, shape(2, depth, columns), false);
    return graph_op(graph, TN__OP_MATMUL, shape(2, rows, columns), x, w);
}

/* product + a vector of shape (1, COLUMNS) or, `down`, (ROWS, 1). */
static int with_bias(tn__graph *graph, int v, bool down)
{
    const tn__shape *out = graph->value[v].shape;
    int b = graph_leaf(graph, down ? shape(2, (int)out->dim[0], 1) : shape(2, 1, (int)out->dim[1]), false);
    return graph_op(graph, TN__OP_ADD, out, v, graph_expand(graph, b, out));
}

static bool adds_bias(const tn__step *step) { return step->kind == TN__STEP_PRODUCT && step->product.bias; }

static void check_folded(const tn__plan *plan, int step, int64_t columns)
{
    const tn__step *s = &plan->program.step[step];
    assert_int_equal(s->kind, TN__STEP_PRODUCT);
    assert_int_equal(s->op, TN__OP_MATMUL);
    assert_true(s->product.bias);
    assert_int_equal(s->operand_count, 4);
    assert_int_equal(s->operand[0].ndim, 2);
    assert_int_equal(s->operand[3].ndim, 1);
    assert_int_equal(s->operand[3].dim[0], columns);
    assert_int_equal(s->operand[3].stride[0], 1);
    assert_int_equal(s->product.alpha, -1);
    assert_int_equal(s->product.beta, 0);
    assert_string_equal(s->label, "product + bias");
}

/* The bias on either side of the sum, whatever the precision but that of own kernels. */
static void test_layer(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        tn__graph graph = {0};
        const tn__shape *out = shape(2, ROWS, COLUMNS);
        int b = graph_expand(&graph, graph_leaf(&graph, shape(2, 1, COLUMNS), true), out);
        int p = product(&graph, ROWS, DEPTH, COLUMNS);
        graph_result(&graph, graph_op(&graph, TN__OP_ADD, out, i % 2 ? p : b, i % 2 ? b : p));
        tn__plan *plan = plan_on(&gpu, &graph, i < 2 ? TN_MATMUL_FLOAT32 : TN_MATMUL_TF32);
        assert_int_equal(plan->program.step_count, 1);
        assert_int_equal(plan->program.arena_bytes, 0);
        check_folded(plan, 0, COLUMNS);
        assert_int_equal(plan->program.buffer[plan->program.step[0].operand[0].buffer].kind, TN__BUFFER_OUTPUT);
        tn__text text = {0};
        tn__plan_print(plan, &text);
        char *described = tn__text_take(&text);
        assert_non_null(strstr(described, "matmul   product + bias"));
        tn__free(described);
        tn__plan_free(plan);
    }
}

/* A part of a longer vector, from its second element on. */
static void test_part_of_a_vector(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *out = shape(2, ROWS, COLUMNS);
    int b = graph_leaf(&graph, shape(2, 1, COLUMNS + 3), false);
    b = graph_slice(&graph, b, (int64_t[]){0, 1}, (int64_t[]){1, 1}, shape(2, 1, COLUMNS));
    int p = product(&graph, ROWS, DEPTH, COLUMNS);
    graph_result(&graph, graph_op(&graph, TN__OP_ADD, out, p, graph_expand(&graph, b, out)));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 1);
    check_folded(plan, 0, COLUMNS);
    assert_int_equal(plan->program.step[0].operand[3].offset, 1);
    tn__plan_free(plan);
}

/* Rows in two axes: the product of all of them, reshaped before the sum. */
static void test_more_axes(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *out = shape(3, 7, 150, COLUMNS);
    int p = graph_op(&graph, TN__OP_RESHAPE, out, product(&graph, 7 * 150, DEPTH, COLUMNS), -1);
    int b = graph_leaf(&graph, shape(3, 1, 1, COLUMNS), false);
    graph_result(&graph, graph_op(&graph, TN__OP_ADD, out, p, graph_expand(&graph, b, out)));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 1);
    check_folded(plan, 0, COLUMNS);
    assert_int_equal(plan->program.step[0].operand[0].dim[0], 7 * 150);
    tn__plan_free(plan);
}

/* The next layer's product reads the sum, and so does a kernel: it has memory in any case. */
static void test_sum_used_twice(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *out = shape(2, ROWS, COLUMNS);
    int sum = with_bias(&graph, product(&graph, ROWS, DEPTH, COLUMNS), false);
    int w = graph_leaf(&graph, shape(2, COLUMNS, DEPTH), false);
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, shape(2, ROWS, DEPTH), sum, w));
    graph_result(&graph, graph_op(&graph, TN__OP_TANH, out, sum, -1));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 3);
    check_folded(plan, 0, COLUMNS);
    for (int i = 1; i < 3; i++)
        assert_false(adds_bias(&plan->program.step[i]));
    tn__plan_free(plan);
}

enum {
    READ_BY_KERNEL, PRODUCT_NEEDED, SMALL, DOWN, ONE_NUMBER, CONSTANT, COMPUTED, EVERY_OTHER, A_MATRIX, BATCHES, CASES
};

static void build(tn__graph *graph, int which)
{
    const tn__shape *out = shape(2, ROWS, COLUMNS);
    int p = which == SMALL ? product(graph, 100, 100, 100) : -1, sum;
    if (which == BATCHES) {
        int x = graph_leaf(graph, shape(3, 3, ROWS, DEPTH), false);
        out = shape(3, 3, ROWS, COLUMNS);
        p = graph_op(graph, TN__OP_MATMUL, out, x, graph_leaf(graph, shape(3, 3, DEPTH, COLUMNS), false));
        int b = graph_leaf(graph, shape(3, 1, 1, COLUMNS), false);
        graph_result(graph, graph_op(graph, TN__OP_ADD, out, p, graph_expand(graph, b, out)));
        return;
    }
    p = p < 0 ? product(graph, ROWS, DEPTH, COLUMNS) : p;
    if (which == ONE_NUMBER)
        sum = graph_op(graph, TN__OP_ADD, out, p, graph_expand(graph, graph_leaf(graph, shape(2, 1, 1), false), out));
    else if (which == CONSTANT)
        sum = graph_op(graph, TN__OP_ADD, out, p, graph_const(graph, out));
    else if (which == A_MATRIX)
        sum = graph_op(graph, TN__OP_ADD, out, p, graph_leaf(graph, out, false));
    else if (which == COMPUTED || which == EVERY_OTHER) {
        const tn__shape *row = shape(2, 1, COLUMNS);
        int b = graph_leaf(graph, which == COMPUTED ? row : shape(2, 1, 2 * COLUMNS), false);
        b = which == COMPUTED ? graph_op(graph, TN__OP_EXP, row, b, -1)
                              : graph_slice(graph, b, (int64_t[]){0, 0}, (int64_t[]){1, 2}, row);
        sum = graph_op(graph, TN__OP_ADD, out, p, graph_expand(graph, b, out));
    } else {
        sum = with_bias(graph, p, which == DOWN);
    }
    graph_result(graph, which == READ_BY_KERNEL ? graph_op(graph, TN__OP_TANH, out, sum, -1) : sum);
    if (which == PRODUCT_NEEDED)
        graph_result(graph, p);
}

static void check_unfolded(const tn__plan *plan, const char *what, int which)
{
    int kernels = 0;
    for (int i = 0; i < plan->program.step_count; i++) {
        if (adds_bias(&plan->program.step[i]))
            fail_msg("%s %d: folded", what, which);
        kernels += plan->program.step[i].kind == TN__STEP_KERNEL;
    }
    assert_int_equal(kernels, 1);
}

static void test_not_folded(void **state)
{
    (void)state;
    for (int which = 0; which < CASES; which++) {
        tn__graph graph = {0};
        build(&graph, which);
        tn__plan *plan = plan_of(&graph);
        check_unfolded(plan, "case", which);
        assert_int_equal(plan->program.step_count, which == SMALL ? 1 : 2);
        tn__plan_free(plan);
    }
}

/* Other dtypes are rounded twice or have no such algorithms; kernels of our own, other devices, or no fusion: none. */
static void test_not_there(void **state)
{
    (void)state;
    static const tn_dtype others[] = {TN_BFLOAT16, TN_FLOAT16, TN_FLOAT64};
    tn__device without = gpu;
    without.capabilities.epilogues = false;
    for (int which = 0; which < 6; which++) {
        tn__graph graph = {0};
        graph_result(&graph, with_bias(&graph, product(&graph, ROWS, DEPTH, COLUMNS), false));
        for (int v = 0; v < graph.count && which < 3; v++)
            graph.value[v].dtype = others[which];
        tn__compile_options options = {.kernels = true, .fusion = which != 3, .plan_memory = true,
                                       .precision = which == 4 ? TN_MATMUL_TF32X3 : TN_MATMUL_FLOAT32};
        tn__plan *plan = tn__compile(&graph, which == 5 ? &without : &gpu, &options);
        if (!plan)
            fail_msg("%s", tn_error());
        check_unfolded(plan, "way", which);
        tn__plan_free(plan);
        tn__graph_free(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer),          cmocka_unit_test(test_part_of_a_vector),
        cmocka_unit_test(test_more_axes),      cmocka_unit_test(test_sum_used_twice),
        cmocka_unit_test(test_not_folded),     cmocka_unit_test(test_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
