/* SPDX-License-Identifier: MIT */
/* Rewriting: equal expressions become one value, reshapes move to where they cost nothing, and results stay what they
 * are. */
#include "graphs.h"

#include "compile/rewrite/rewrite.h"

static int count_op(const tn__graph *graph, tn__op op)
{
    int count = 0;
    for (int v = 0; v < graph->count; v++)
        count += graph->value[v].op == op && graph->value[v].uses > 0;
    return count;
}

static void rewrite_for(tn__graph *graph, bool one_pass)
{
    assert_true(tn__rewrite(graph, one_pass));
    const char *wrong = tn__graph_verify(graph);
    if (wrong)
        fail_msg("%s", wrong);
}

static void rewrite(tn__graph *graph) { rewrite_for(graph, false); }

static void test_equal_expressions(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 3, 4);
    int x = graph_leaf(&graph, s, false), y = graph_leaf(&graph, s, false);
    int first = graph_op(&graph, TN__OP_ADD, s, graph_op(&graph, TN__OP_EXP, s, x, -1), y);
    int second = graph_op(&graph, TN__OP_ADD, s, graph_op(&graph, TN__OP_EXP, s, x, -1), y);
    int other = graph_op(&graph, TN__OP_ADD, s, graph_op(&graph, TN__OP_EXP, s, y, -1), y);
    graph_op(&graph, TN__OP_SQRT, s, other, -1); /* nobody needs it */
    graph_result(&graph, first);
    graph_result(&graph, second);
    graph_result(&graph, other);
    rewrite(&graph);
    assert_int_equal(graph.result[0], graph.result[1]);
    assert_int_not_equal(graph.result[0], graph.result[2]);
    assert_int_equal(count_op(&graph, TN__OP_EXP), 2);
    assert_int_equal(count_op(&graph, TN__OP_ADD), 2);
    assert_int_equal(count_op(&graph, TN__OP_SQRT), 0);
    assert_int_equal(graph.count, 6);
    tn__graph_free(&graph);
}

/* What differs in an attribute, a shape or a run-time scalar alone stays apart. */
static void test_unequal_expressions(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 4, 4), *part = shape(2, 2, 4);
    int x = graph_leaf(&graph, s, false);
    const int64_t one[] = {1, 1}, at[][2] = {{0, 0}, {1, 0}};
    const uint8_t turned[] = {1, 0}, as_is[] = {0, 1};
    int pairs[][2] = {
        {graph_slice(&graph, x, at[0], one, part), graph_slice(&graph, x, at[1], one, part)},
        {graph_permute(&graph, x, turned), graph_permute(&graph, x, as_is)},
        {graph_reduce(&graph, TN__OP_SUM, x, 1), graph_reduce(&graph, TN__OP_SUM, x, 2)},
        {graph_reduce(&graph, TN__OP_SUM, x, 1), graph_reduce(&graph, TN__OP_MAX, x, 1)},
        {graph_const(&graph, s), graph_const(&graph, s)},
        {graph_op(&graph, TN__OP_SUBTRACT, s, x, graph_op(&graph, TN__OP_EXP, s, x, -1)),
         graph_op(&graph, TN__OP_SUBTRACT, s, graph_op(&graph, TN__OP_EXP, s, x, -1), x)},
    };
    enum { PAIRS = sizeof pairs / sizeof *pairs };
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < 2; k++)
            graph_result(&graph, pairs[i][k]);
    rewrite(&graph);
    for (int i = 0; i < PAIRS; i++)
        assert_int_not_equal(graph.result[2 * i], graph.result[2 * i + 1]);
    tn__graph_free(&graph);
}

/* What is chosen of a cast, or a cast seen in two shapes: the cast comes last, where it is needed. */
static void test_casts_come_last(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 30, 4), *flat = shape(1, 120), *some = shape(2, 7, 4);
    int x = graph_leaf(&graph, s, false), places = graph_leaf(&graph, shape(1, 7), false);
    graph.value[x].dtype = TN_BFLOAT16;
    graph.value[places].dtype = TN_INT64;
    int wide = graph_op(&graph, TN__OP_CAST, s, x, -1);
    graph_result(&graph, graph_op(&graph, TN__OP_EXP, s, wide, -1));
    graph_result(&graph, graph_op(&graph, TN__OP_GATHER, some, wide, places));
    graph_result(&graph, graph_op(&graph, TN__OP_EXP, flat, graph_op(&graph, TN__OP_RESHAPE, flat, wide, -1), -1));
    rewrite(&graph);
    const tn__value *chosen = &graph.value[graph.result[1]], *reshaped = &graph.value[graph.result[2]];
    assert_int_equal(chosen->op, TN__OP_CAST);
    assert_int_equal(chosen->dtype, TN_FLOAT32);
    assert_ptr_equal(chosen->shape, some);
    chosen = &graph.value[chosen->in[0]];
    assert_int_equal(chosen->op, TN__OP_GATHER);
    assert_int_equal(chosen->dtype, TN_BFLOAT16);
    assert_int_equal(graph.value[chosen->in[0]].op, TN__OP_VALUE);
    reshaped = &graph.value[reshaped->in[0]];
    assert_int_equal(reshaped->op, TN__OP_CAST);
    assert_int_equal(graph.value[reshaped->in[0]].op, TN__OP_RESHAPE);
    tn__graph_free(&graph);
}

static void test_reshapes_move_to_leaves(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 3, 4), *flat = shape(1, 12);
    int x = graph_leaf(&graph, s, false), y = graph_leaf(&graph, s, false);
    int sum = graph_op(&graph, TN__OP_ADD, s, graph_op(&graph, TN__OP_EXP, s, x, -1), y);
    graph_result(&graph, graph_op(&graph, TN__OP_RESHAPE, flat, sum, -1));
    rewrite(&graph);
    const tn__value *result = &graph.value[graph.result[0]];
    assert_int_equal(result->op, TN__OP_ADD);
    assert_ptr_equal(result->shape, flat);
    for (int v = 0; v < graph.count; v++)
        if (graph.value[v].op == TN__OP_RESHAPE)
            assert_int_equal(graph.value[graph.value[v].in[0]].op, TN__OP_VALUE);
    assert_int_equal(count_op(&graph, TN__OP_RESHAPE), 2);
    tn__graph_free(&graph);
}

/* A value that is needed in both shapes is computed once, and there and back again is nowhere. */
static void test_reshapes_that_stay_or_vanish(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 3, 4), *flat = shape(1, 12);
    int x = graph_leaf(&graph, s, false), exp = graph_op(&graph, TN__OP_EXP, s, x, -1);
    int there = graph_op(&graph, TN__OP_RESHAPE, flat, exp, -1);
    int back = graph_op(&graph, TN__OP_RESHAPE, s, there, -1);
    graph_result(&graph, exp);
    graph_result(&graph, there);
    graph_result(&graph, back);
    rewrite(&graph);
    assert_int_equal(count_op(&graph, TN__OP_EXP), 1);
    assert_int_equal(graph.result[0], graph.result[2]);
    assert_int_equal(graph.value[graph.result[1]].op, TN__OP_RESHAPE);
    assert_int_equal(graph.value[graph.result[1]].in[0], graph.result[0]);
    tn__graph_free(&graph);
}

/* What is permuted and then read in a shape that no strides express is computed in the permuted order, where nothing
 * else reads it, and not copied; elsewhere the view stays one. */
static void test_permuted(void **state)
{
    (void)state;
    static const struct {
        uint8_t perm[3];
        bool twice, moves;
    } cases[] = {{{0, 2, 1}, false, true}, {{0, 2, 1}, true, false}, {{1, 2, 0}, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__graph graph = {0};
        const tn__shape *s = shape(3, 3, 4, 5);
        int x = graph_expand(&graph, graph_leaf(&graph, shape(3, 3, 1, 5), false), s), number = graph_const(&graph, s);
        int sum = graph_op(&graph, TN__OP_ADD, s, x, number), permuted = graph_permute(&graph, sum, cases[i].perm);
        const tn__shape *order = graph.value[permuted].shape, *flat = shape(2, order->dim[0] * order->dim[1], 3);
        flat = cases[i].moves || cases[i].twice ? shape(1, 60) : flat;
        graph_result(&graph, graph_op(&graph, TN__OP_RESHAPE, flat, permuted, -1));
        if (cases[i].twice)
            graph_result(&graph, sum);
        rewrite(&graph);
        const tn__value *result = &graph.value[graph.result[0]], *of = &graph.value[result->in[0]];
        assert_int_equal(result->op, TN__OP_RESHAPE);
        assert_int_equal(of->op, cases[i].moves ? TN__OP_ADD : TN__OP_PERMUTE);
        assert_ptr_equal(of->shape, order);
        if (cases[i].moves) {
            assert_int_equal(graph.value[of->in[0]].op, TN__OP_PERMUTE);
            assert_int_equal(graph.value[of->in[1]].op, TN__OP_CONST);
        }
        tn__plan *plan = graph_plan_once(&graph, tn__device_get(tn_cpu()));
        assert_int_equal(plan->program.step_count, 1);
        tn__plan_free(plan);
    }
}

/* Squared deviations of x from its mean down columns, or along rows: one reduction where one pass is wanted, of much
 * that no registers hold, and the two passes elsewhere. */
static void test_deviations(void **state)
{
    (void)state;
    static const struct {
        int rows, columns, axes;
        bool one_pass, becomes_one;
    } cases[] = {{65536, 64, 1, true, true}, {65536, 64, 1, false, false}, {65535, 64, 1, true, false},
                 {64, 65536, 2, true, true}, {256, 16384, 2, true, false}, {3000, 5000, 3, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__graph graph = {0};
        uint32_t axes = (uint32_t)cases[i].axes;
        const tn__shape *whole = shape(2, cases[i].rows, cases[i].columns);
        const tn__shape *each = shape(2, axes & 1 ? 1 : cases[i].rows, axes & 2 ? 1 : cases[i].columns);
        int x = graph_leaf(&graph, whole, false), sum = graph_reduce(&graph, TN__OP_SUM, x, axes);
        int mean = graph_op(&graph, TN__OP_DIVIDE, each, sum, graph_const(&graph, each));
        int apart = graph_op(&graph, TN__OP_SUBTRACT, whole, x, graph_expand(&graph, mean, whole));
        int squares = graph_reduce(&graph, TN__OP_SUM, graph_op(&graph, TN__OP_SQUARE, whole, apart, -1), axes);
        graph_result(&graph, graph_op(&graph, TN__OP_DEVIATIONS, each, squares, x));
        rewrite_for(&graph, cases[i].one_pass);
        const tn__value *result = &graph.value[graph.result[0]];
        assert_int_equal(result->op, TN__OP_SUM);
        assert_int_equal(result->attr.axes, axes);
        assert_int_equal(result->attr.about_mean, cases[i].becomes_one);
        assert_int_equal(count_op(&graph, TN__OP_SUM), cases[i].becomes_one ? 1 : 2);
        tn__graph_free(&graph);
    }
}

static bool same_value(const tn__value *a, const tn__value *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->shape == b->shape && a->leaf == b->leaf &&
           a->scalar == b->scalar && memcmp(a->in, b->in, sizeof(int) * (size_t)a->arity) == 0 &&
           a->attr.axes == b->attr.axes && a->attr.ints == b->attr.ints &&
           memcmp(a->attr.perm, b->attr.perm, sizeof a->attr.perm) == 0;
}

/* Results keep number and shapes, and nothing is left twice. */
static void test_random_graphs(void **state)
{
    (void)state;
    test_random chance = test_random_new();
    for (int round = 0; round < 500; round++) {
        tn__graph graph = {0};
        graph_random(&graph, &chance);
        int results = graph.result_count;
        const tn__shape *square = graph.value[graph.result[0]].shape;
        rewrite(&graph);
        assert_int_equal(graph.result_count, results);
        for (int r = 0; r < results; r++)
            assert_ptr_equal(graph.value[graph.result[r]].shape, square);
        for (int a = 0; a < graph.count; a++)
            for (int b = a + 1; b < graph.count; b++)
                assert_false(same_value(&graph.value[a], &graph.value[b]));
        tn__graph_free(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_expressions),
        cmocka_unit_test(test_unequal_expressions),
        cmocka_unit_test(test_casts_come_last),
        cmocka_unit_test(test_reshapes_move_to_leaves),
        cmocka_unit_test(test_reshapes_that_stay_or_vanish),
        cmocka_unit_test(test_permuted),
        cmocka_unit_test(test_deviations),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
