/* SPDX-License-Identifier: MIT */
/* Plans of what is joined and padded: on a GPU copies and fills that do not meet are one step, on a CPU a step each;
 * what is computed to be joined is so in its place. */
#include <tanso.h>

#include "graphs.h"

static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .threads = 132, .multiprocessors = 132,
                                          .shared_memory = 227 << 10}};

static tn__plan *plan_of(const tn__graph *graph, bool on_gpu)
{
    return graph_plan(graph, on_gpu ? &gpu : tn__device_get(tn_cpu()), TN_MATMUL_FLOAT32);
}

/* `base` with `part` in the rows from `row` on and the columns from `column` on. */
static int write_part(tn__graph *graph, int base, int part, int64_t row, int64_t column)
{
    int v = graph_op(graph, TN__OP_UPDATE, graph->value[base].shape, base, part);
    graph->value[v].attr.ints = tn__ints_intern(4, (int64_t[]){row, 1, column, 1});
    return v;
}

static void check_steps(tn__graph *graph, int on_cpu, int on_gpu)
{
    tn__plan *plan = plan_of(graph, false);
    assert_int_equal(plan->program.step_count, on_cpu);
    for (int i = 0; i < on_cpu; i++)
        assert_true(plan->program.step[i].kind == TN__STEP_KERNEL || plan->program.step[i].output_count == 1);
    tn__plan_free(plan);
    plan = plan_of(graph, true);
    assert_int_equal(plan->program.step_count, on_gpu);
    tn__plan_free(plan);
}

/* The last step writes so many windows, so many of them from inputs. */
static void check_last(const tn__graph *graph, int outputs, int inputs)
{
    tn__plan *plan = plan_of(graph, true);
    const tn__step *s = &plan->program.step[plan->program.step_count - 1];
    assert_int_equal(s->kind, TN__STEP_OP);
    assert_int_equal(s->op, inputs ? TN__OP_COPY : TN__OP_CONST);
    assert_int_equal(s->output_count, outputs);
    assert_int_equal(s->operand_count, outputs + inputs);
    assert_int_equal(s->scalar_count, outputs - inputs);
    tn__plan_free(plan);
}

static void test_joined(void **state)
{
    (void)state;
    static const int counts[] = {2, 3, 128, 129, 300};
    for (int i = 0; i < 5; i++) {
        tn__graph graph = {0};
        int count = counts[i], y = graph_const(&graph, shape(2, 4, 5 * count));
        for (int k = 0; k < count; k++)
            y = write_part(&graph, y, graph_leaf(&graph, shape(2, 4, 5), false), 0, 5 * k);
        graph_result(&graph, y);
        check_steps(&graph, count, (count + 127) / 128);
        check_last(&graph, count % 128 ? count % 128 : 128, count % 128 ? count % 128 : 128);
        tn__graph_free(&graph);
    }
}

/* What is computed is so first, and then copied together. */
static void test_computed(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int y = graph_const(&graph, shape(2, 4, 20));
    for (int k = 0; k < 4; k++) {
        int x = graph_leaf(&graph, shape(2, 4, 5), false);
        for (int i = 0; i < k; i++)
            x = graph_op(&graph, TN__OP_EXP, shape(2, 4, 5), x, -1);
        y = write_part(&graph, y, x, 0, 5 * k);
    }
    graph_result(&graph, y);
    check_last(&graph, 4, 4);
    tn__plan *plan = plan_of(&graph, true);
    for (int i = 0; i < plan->program.step_count - 1; i++)
        assert_int_equal(plan->program.step[i].kind, TN__STEP_KERNEL);
    tn__plan_free(plan);
    tn__graph_free(&graph);
}

static void test_padded(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int y = graph_const(&graph, shape(2, 6, 6)), x = graph_leaf(&graph, shape(2, 4, 4), false);
    graph_result(&graph, write_part(&graph, y, x, 1, 1));
    check_steps(&graph, 2, 1); /* so little is filled whole where that is a step less */
    check_last(&graph, 5, 1);
    tn__graph_free(&graph);
}

/* A constant that is a part is no element that is read. */
static void test_constant(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int y = graph_const(&graph, shape(2, 4, 10));
    y = write_part(&graph, y, graph_const(&graph, shape(2, 4, 3)), 0, 0);
    y = write_part(&graph, y, graph_leaf(&graph, shape(2, 4, 7), false), 0, 3);
    graph_result(&graph, y);
    check_steps(&graph, 3, 1);
    check_last(&graph, 2, 1);
    tn__graph_free(&graph);
}

/* One of its results, too: then it is there for itself. */
static void test_constant_result(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int y = graph_const(&graph, shape(2, 4, 10)), c = graph_const(&graph, shape(2, 4, 3));
    y = write_part(&graph, y, c, 0, 0);
    y = write_part(&graph, y, graph_leaf(&graph, shape(2, 4, 7), false), 0, 3);
    graph_result(&graph, y);
    graph_result(&graph, c);
    tn__plan *plan = plan_of(&graph, true);
    assert_int_equal(plan->result_count, 2);
    int written = 0;
    for (int i = 0; i < plan->program.step_count; i++)
        for (int k = 0; k < plan->program.step[i].output_count; k++)
            written += plan->program.step[i].operand[k].buffer == plan->result[1].buffer;
    assert_int_equal(written, 1);
    tn__plan_free(plan);
    tn__graph_free(&graph);
}

/* What is written over stays in front of what writes over it. */
static void test_meeting(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int y = graph_leaf(&graph, shape(2, 6, 6), true);
    y = write_part(&graph, y, graph_leaf(&graph, shape(2, 4, 4), false), 0, 0);
    y = write_part(&graph, y, graph_leaf(&graph, shape(2, 2, 2), false), 4, 4); /* beside it */
    y = write_part(&graph, y, graph_leaf(&graph, shape(2, 4, 4), false), 2, 2); /* on both */
    graph_result(&graph, y);
    check_steps(&graph, 3, 2);
    check_last(&graph, 1, 1);
    tn__graph_free(&graph);
}

/* Pieces that are computed, each as long as wanted, and joined in any order, for something that reads what they come
 * to. They are computed where they lie; where neighbours are few, they are copied. */
static void test_computed_in_place(void **state)
{
    (void)state;
    static const int order[] = {2, 0, 3, 1};
    for (int64_t width = 7; width <= 8; width++) {
        tn__graph graph = {0};
        int y = graph_const(&graph, shape(2, 5, 4 * width)), w = graph_leaf(&graph, shape(2, 4 * width, 3), false);
        int turned = graph_leaf(&graph, shape(2, 5, width), false), steps = 0;
        for (int k = 0; k < 4; k++) {
            int x = graph_op(&graph, TN__OP_EXP, shape(2, 5, width), turned, -1);
            x = graph_op(&graph, TN__OP_MULTIPLY, shape(2, 5, width), x, graph_leaf(&graph, shape(2, 5, width), false));
            y = write_part(&graph, y, x, 0, order[k] * width);
        }
        graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, shape(2, 5, 3), y, w));
        tn__plan *plan = plan_of(&graph, false);
        for (int i = 0; i < plan->program.step_count; i++)
            steps += plan->program.step[i].kind != TN__STEP_KERNEL;
        assert_int_equal(steps, width < 8 ? 5 : 1); /* the product, and copies */
        tn__plan_free(plan);
        tn__graph_free(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joined),   cmocka_unit_test(test_computed),        cmocka_unit_test(test_padded),
        cmocka_unit_test(test_constant), cmocka_unit_test(test_constant_result), cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_computed_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
