/* SPDX-License-Identifier: MIT */
/* The verifiers of nests and drafts: sound ones pass, and each thing that is broken in one is found. */
#include "graphs.h"

#include "compile/loops/nest.h"
#include "compile/lower/lower.h"

enum { ROWS = 3, COLUMNS = 5 };

/* y = exp(x - max of x's rows), and the rows' sums of y: two reductions, the second of a later pass. */
typedef struct made {
    tn__graph graph;
    tn__draft draft;
    tn__fusion fusion;
    tn__nest nest;
    int *owner;
} made;

static void make_nest(made *m)
{
    memset(m, 0, sizeof *m);
    const tn__shape *whole = shape(2, ROWS, COLUMNS);
    int x = graph_leaf(&m->graph, whole, false), most = graph_reduce(&m->graph, TN__OP_MAX, x, 2);
    int less = graph_op(&m->graph, TN__OP_SUBTRACT, whole, x, graph_expand(&m->graph, most, whole));
    int y = graph_op(&m->graph, TN__OP_EXP, whole, less, -1), sum = graph_reduce(&m->graph, TN__OP_SUM, y, 2);
    graph_result(&m->graph, y);
    graph_result(&m->graph, sum);
    assert_true(tn__draft_init(&m->draft, &m->graph));
    m->owner = calloc((size_t)m->graph.count, sizeof *m->owner);
    assert_non_null(m->owner);
    for (int v = 0; v < m->graph.count; v++)
        m->owner[v] = -1;
    m->owner[most] = m->owner[y] = m->owner[sum] = 0;
    m->draft.stored[most] = m->draft.stored[y] = m->draft.stored[sum] = true;
    m->fusion = (tn__fusion){.draft = &m->draft, .graph = &m->graph, .stored = m->draft.stored, .owner = m->owner};
    assert_true(tn__nest_start(&m->fusion, most, &m->nest));
    assert_true(tn__nest_add_target(&m->nest, sum) && tn__nest_add_target(&m->nest, y));
    assert_int_equal(tn__nest_build(&m->fusion, &m->nest), TN__BUILT);
}

static void free_nest(made *m)
{
    tn__nest_free(&m->nest);
    tn__draft_free(&m->draft);
    tn__graph_free(&m->graph);
    free(m->owner);
}

/* Something of the nest changed, checked, and set back. */
#define BROKEN(place, value, message) \
    do { \
        __typeof__(place) *at = &(place), before = *at; \
        *at = (value); \
        const char *wrong = tn__nest_verify(&m.graph, &m.nest); \
        assert_non_null(wrong); \
        assert_string_equal(wrong, message); \
        *at = before; \
        assert_null(tn__nest_verify(&m.graph, &m.nest)); \
    } while (0)

static int expr_of(const tn__nest *n, tn__expr_kind kind)
{
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kind == kind)
            return e;
    fail_msg("no expression of kind %d", kind);
    return 0;
}

static void test_nests(void **state)
{
    (void)state;
    made m;
    make_nest(&m);
    tn__nest *n = &m.nest;
    assert_null(tn__nest_verify(&m.graph, n));
    int load = expr_of(n, TN__EXPR_LOAD), op = expr_of(n, TN__EXPR_OP), reduced = expr_of(n, TN__EXPR_REDUCED);
    tn__access *read = &n->access[n->expr[load].access];
    BROKEN(n->reduced, 1u << 5, "reduced loops that are not there");
    BROKEN(n->extent[0], -1, "a loop of a negative extent");
    BROKEN(n->extent[0], ROWS + 1, "an access reaches outside its value");
    BROKEN(n->target[0], n->target[1], "targets out of order");
    BROKEN(read->offset, -1, "an access reaches outside its value");
    BROKEN(read->stride[0], COLUMNS + 1, "an access reaches outside its value");
    BROKEN(read->stride[2], 1, "an access varies with a loop that is not there");
    BROKEN(read->value, m.graph.count, "an access to no value");
    BROKEN(read->dtype, TN_FLOAT64, "an access in another dtype than its value's");
    BROKEN(n->access[n->store[0].access].gathered, true, "a store through an index");
    BROKEN(n->expr[load].access, n->access_count, "an expression of no access");
    BROKEN(n->expr[load].access, n->store[0].access, "an expression of another kind than its access");
    BROKEN(n->expr[load].loops, 0, "an expression varies with fewer loops than its access");
    BROKEN(n->expr[op].loops, 1u << 7, "an expression varies with a loop that is not there");
    BROKEN(n->expr[op].arg[0], op, "an expression that comes before its argument");
    BROKEN(n->expr[op].loops, 0, "an expression varies with fewer loops than its argument");
    BROKEN(n->expr[op].level, 0, "an expression in an earlier pass than its argument");
    BROKEN(n->expr[reduced].reduction, n->reduction_count, "an expression of no reduction");
    BROKEN(n->expr[reduced].loops, 3, "a reduction's result varies with a reduced loop");
    BROKEN(n->expr[reduced].level, 0, "a reduction's result before its pass");
    BROKEN(n->expr[load].kind, TN__EXPR_PRODUCT, "an expression of no product");
    BROKEN(n->reduction[0].value, 0, "a reduction that is no target");
    BROKEN(n->reduction[0].arg, -1, "a reduction of no expression");
    BROKEN(n->store[0].value, 0, "a store of what is no target");
    BROKEN(n->store[0].expr, n->expr_count, "a store of no expression or access");
    BROKEN(n->store[0].access, n->store[1].access, "a store through another value's access");
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row)
            BROKEN(n->store[s].row, true, "a row's store varies with a reduced loop");
    BROKEN(n->store[0].level, -1, "a store in an earlier pass than its expression");
    free_nest(&m);
}

/* A view of a constant that is a result finds all of it in memory. */
static void test_constant_results(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int number = graph_const(&graph, shape(2, ROWS, COLUMNS));
    int turned = graph_op(&graph, TN__OP_RESHAPE, shape(2, COLUMNS, ROWS), number, -1);
    graph_result(&graph, turned);
    tn__graph_count_uses(&graph);
    tn__draft draft;
    assert_true(tn__draft_init(&draft, &graph) && tn__lower_operations(&draft));
    assert_null(tn__draft_verify(&draft));
    assert_int_equal(draft.step_count, 1);
    assert_int_equal(draft.step[0].operand[0].ndim, 2);
    draft.stored[number] = false;
    assert_non_null(tn__draft_verify(&draft));
    assert_string_equal(tn__draft_verify(&draft), "a result is of a constant stored once");
    tn__draft_free(&draft);
    tn__graph_free(&graph);
}

/* A product and a sum as steps of their own. */
static void test_drafts(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *out = shape(2, ROWS, COLUMNS);
    int a = graph_leaf(&graph, shape(2, ROWS, 2), false), b = graph_leaf(&graph, shape(2, 2, COLUMNS), false);
    int product = graph_op(&graph, TN__OP_MATMUL, out, a, b), e = graph_op(&graph, TN__OP_EXP, out, product, -1);
    graph_result(&graph, e);
    tn__graph_count_uses(&graph);
    tn__draft draft;
    assert_true(tn__draft_init(&draft, &graph) && tn__lower_operations(&draft));
    assert_null(tn__draft_verify(&draft));
    assert_int_equal(draft.step_count, 2);
    struct {
        tn__draft_step *step;
        int operand, value, dtype;
        int64_t offset;
        const char *message;
    } cases[] = {
        {&draft.step[0], 0, graph.count, TN_FLOAT32, 0, "an operand that is no value"},
        {&draft.step[0], 0, product, TN_FLOAT64, 0, "an operand in another dtype than its memory's"},
        {&draft.step[0], 0, product, TN_FLOAT32, 1, "an operand reaches outside its value"},
        {&draft.step[0], 0, product, TN_FLOAT32, -1, "an operand reaches outside its value"},
        {&draft.step[0], 0, a, TN_FLOAT32, 0, "a step writes to a leaf"},
        {&draft.step[1], 1, e, TN_FLOAT32, 3, "an operand reaches outside its value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__draft_operand *at = &cases[i].step->operand[cases[i].operand], before = *at;
        at->value = cases[i].value;
        at->dtype = (tn_dtype)cases[i].dtype;
        at->offset = cases[i].offset;
        assert_non_null(tn__draft_verify(&draft));
        assert_string_equal(tn__draft_verify(&draft), cases[i].message);
        *at = before;
    }
    assert_null(tn__draft_verify(&draft));
    draft.step[1].output_count = 3;
    assert_string_equal(tn__draft_verify(&draft), "a step with more outputs than operands");
    draft.step[1].output_count = 1;
    draft.step[0].operand_count--;
    assert_string_equal(tn__draft_verify(&draft), "a product without its factors");
    draft.step[0].operand_count++;
    draft.home[product] = -1;
    assert_string_equal(tn__draft_verify(&draft), "a value that lives in no buffer");
    draft.home[product] = product;
    assert_null(tn__draft_verify(&draft));
    tn__draft_free(&draft);
    tn__graph_free(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nests),
        cmocka_unit_test(test_constant_results), cmocka_unit_test(test_drafts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
