/* SPDX-License-Identifier: MIT */
/* Plans of kernels over long rows on a GPU: in whose registers a row stays, and when it does not fit. */
#include <stdio.h>

#include <tanso.h>

#include "graphs.h"

/* GPUs that nobody runs anything on: one whose blocks form clusters, one whose do not. */
static tn__device gpus[2] = {
    {.capabilities = {.target = TN__TARGET_CUDA, .threads = 132, .multiprocessors = 132, .shared_memory = 227 << 10}},
    {.capabilities = {.target = TN__TARGET_CUDA, .clusters = true, .threads = 132, .multiprocessors = 132,
                      .shared_memory = 227 << 10}}};

static tn__plan *plan_of(tn__graph *graph, bool clusters) { return graph_plan_once(graph, &gpus[clusters]); }

/* exp(x - max) / sum, x a leaf. */
static int softmax(tn__graph *graph, int x, const tn__shape *whole)
{
    int most = graph_expand(graph, graph_reduce(graph, TN__OP_MAX, x, 2), whole);
    int e = graph_op(graph, TN__OP_EXP, whole, graph_op(graph, TN__OP_SUBTRACT, whole, x, most), -1);
    return graph_op(graph, TN__OP_DIVIDE, whole, e, graph_expand(graph, graph_reduce(graph, TN__OP_SUM, e, 2), whole));
}

typedef struct row_case {
    bool clusters;
    int rows, columns;
    bool twice;  /* the last pass needs the operand, too: two registers an element */
    int cluster; /* 0: one block has the row */
    bool shared; /* loads stay in shared memory */
    bool held;   /* they stay in registers; neither: each pass reads the row */
} row_case;

static void check(const row_case *c)
{
    tn__graph graph = {0};
    const tn__shape *whole = shape(2, c->rows, c->columns);
    int x = graph_leaf(&graph, whole, false), y = softmax(&graph, x, whole);
    graph_result(&graph, c->twice ? graph_op(&graph, TN__OP_ADD, whole, y, x) : y);
    tn__plan *plan = plan_of(&graph, c->clusters);
    const tn__kernel_launch *launch = &plan->program.step[0].kernel.launch;
    assert_int_equal(plan->program.step_count, 1);
    assert_int_equal(launch->cluster, c->cluster);
    assert_int_equal(launch->threads, c->cluster ? 1024 / c->cluster : 1024);
    assert_int_equal(launch->blocks, (c->cluster ? c->cluster : 1) * c->rows);
    assert_int_equal(launch->shared > 0, c->shared);
    char dims[32];
    snprintf(dims, sizeof dims, "__cluster_dims__(%d, 1, 1)", c->cluster);
    assert_int_equal(strstr(plan->program.source, c->cluster ? dims : "__cluster_dims__") != NULL, c->cluster > 0);
    assert_int_equal(strstr(plan->program.source, "const ix at = lane;") != NULL, c->held);
    if (c->cluster) /* as many blocks as have the registers for their elements */
        assert_true(launch->resident >= 2 && launch->resident * launch->threads <= 1536);
    else if (c->columns <= 16384) /* two would have too few registers each, and spill where more is computed */
        assert_int_equal(launch->resident, 1);
    tn__plan_free(plan);
}

static void test_softmax(void **state)
{
    (void)state;
    static const row_case cases[] = {
        {true, 300, 16384, false, 0, false, true},   {true, 300, 16385, false, 2, false, true},
        {true, 300, 20480, false, 2, false, true},   {true, 300, 20484, false, 0, false, true},
        {true, 300, 45056, false, 0, false, true},   {true, 300, 45060, false, 4, false, true},
        {true, 300, 40958, false, 2, false, true},   {true, 300, 40961, false, 4, false, true},
        {true, 300, 50257, false, 4, false, true},   {true, 300, 163840, false, 8, false, true},
        {true, 300, 163841, false, 0, false, false}, {true, 300, 56000, true, 8, false, true},
        {true, 300, 81920, true, 8, false, true},    {true, 300, 81921, true, 0, false, false},
        /* few rows: more blocks each, and never in pieces */
        {true, 64, 50257, false, 4, false, true},    {true, 64, 50256, false, 4, false, true},
        {true, 131, 45056, false, 4, false, true},   {true, 132, 45056, false, 0, false, true},
        {true, 30, 100001, false, 8, false, true},   {true, 63, 40000, false, 4, false, true},
        {true, 20, 56000, true, 8, false, true},
        {false, 300, 16384, false, 0, false, true},
        {false, 300, 16385, false, 0, false, true},  {false, 300, 51199, false, 0, false, true},
        {false, 300, 45056, false, 0, false, true},  {false, 300, 45060, false, 0, true, false},
        {false, 300, 51201, false, 0, true, false},  {false, 300, 57001, false, 0, true, false},
        {false, 300, 58001, false, 0, false, false}, {false, 300, 50257, true, 0, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* A row's values that later passes need are counted when they are most: here the operand goes as soon as its
 * exponential is there, while another operand comes in the last pass. */
static void test_two_operands(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        tn__graph graph = {0};
        const tn__shape *whole = shape(2, 300, 80001 + more * 2000);
        int x = graph_leaf(&graph, whole, false), z = graph_leaf(&graph, whole, false);
        graph_result(&graph, graph_op(&graph, TN__OP_MULTIPLY, whole, softmax(&graph, x, whole), z));
        tn__plan *plan = plan_of(&graph, true);
        assert_int_equal(plan->program.step[0].kernel.launch.cluster, more ? 0 : 8);
        tn__plan_free(plan);
    }
}

/* The logarithm of a softmax, whose difference from the largest is needed twice: while it is planned, results that only
 * the nest itself needs in the end do not make columns of its rows. */
static void test_logarithm(void **state)
{
    (void)state;
    static const int rows[] = {64, 2048};
    for (int i = 0; i < 2; i++) {
        tn__graph graph = {0};
        const tn__shape *whole = shape(2, rows[i], 50257), *each = shape(2, rows[i], 1);
        int x = graph_leaf(&graph, whole, false);
        int most = graph_expand(&graph, graph_reduce(&graph, TN__OP_MAX, x, 2), whole);
        int apart = graph_op(&graph, TN__OP_SUBTRACT, whole, x, most);
        int sum = graph_reduce(&graph, TN__OP_SUM, graph_op(&graph, TN__OP_EXP, whole, apart, -1), 2);
        int log = graph_expand(&graph, graph_op(&graph, TN__OP_LOG, each, sum, -1), whole);
        graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, whole, apart, log));
        tn__plan *plan = plan_of(&graph, true);
        assert_int_equal(plan->program.step_count, 1);
        assert_int_equal(plan->program.step[0].kernel.launch.cluster, 4);
        tn__plan_free(plan);
    }
}

/* Few rows, as a vector that is divided by its norm, too long for registers: no block goes through one of them by
 * itself. What it comes to is known before the next kernel goes through it. */
static void test_few(void **state)
{
    (void)state;
    static const struct {
        bool clusters;
        int rows, columns, steps;
    } cases[] = {{false, 1, 131072, 1}, {false, 1, 131076, 3}, {true, 1, 131072, 1}, {true, 1, 131076, 3},
                 {true, 1, 784000, 3},  {true, 8, 140000, 1},  {false, 8, 140000, 3}, {false, 131, 131076, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__graph graph = {0};
        const tn__shape *whole = shape(2, cases[i].rows, cases[i].columns), *each = shape(2, cases[i].rows, 1);
        int x = graph_leaf(&graph, whole, false);
        int sum = graph_reduce(&graph, TN__OP_SUM, graph_op(&graph, TN__OP_SQUARE, whole, x, -1), 2);
        int norm = graph_op(&graph, TN__OP_SQRT, each, sum, -1);
        graph_result(&graph, graph_op(&graph, TN__OP_DIVIDE, whole, x, graph_expand(&graph, norm, whole)));
        tn__plan *plan = plan_of(&graph, cases[i].clusters);
        assert_int_equal(plan->program.step_count, cases[i].steps);
        tn__plan_free(plan);
    }
}

/* What a cluster's blocks combine goes to all of them, and no barrier is of one block alone. */
static void test_text(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *whole = shape(2, 300, 50257);
    int x = graph_leaf(&graph, whole, false);
    graph_result(&graph, softmax(&graph, x, whole));
    tn__plan *plan = plan_of(&graph, true);
    assert_non_null(strstr(plan->program.source, "if (tn_begin_together<4>(f)) return;"));
    assert_non_null(strstr(plan->program.source, "for (int k = 0; k < 4; k++) {"));
    const char *row = strstr(plan->program.source, "void nest_");
    assert_non_null(row);
    assert_null(strstr(row, "__syncthreads"));
    tn__plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_two_operands),
        cmocka_unit_test(test_logarithm),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
