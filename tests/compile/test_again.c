/* SPDX-License-Identifier: MIT */
/* What is computed again by those who need it much later: which values, that nothing else changes, and that the kernels
 * of a layer's gradient then read one array less. */
#include <tanso.h>

#include "core/hash.h"
#include "graphs.h"

#include "compile/rewrite/rewrite.h"

enum { N = 1024, WIDE = 1 << 20 }; /* (N, N) is as large as need be */

static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .threads = 132, .multiprocessors = 132,
                                          .shared_memory = 227 << 10}};

/* ---- a layer: a product, normalized and cut off at zero, the next product, and the gradient ---- */

typedef struct layer {
    tn__op op;     /* that cuts off */
    bool kept;     /* the first product is read by the gradient */
    bool residual; /* another array is added before the cut */
    bool late;     /* the cut is read behind the next product */
} layer;

/* *cut: the value that is cut off; *first: the first product. */
static void make(tn__graph *graph, const layer *l, int *cut, int *first)
{
    const tn__shape *s = shape(2, N, N), *row = shape(2, 1, N);
    int x = graph_leaf(graph, s, false), w = graph_leaf(graph, s, false), other = graph_leaf(graph, s, false);
    int scale = graph_expand(graph, graph_leaf(graph, row, false), s);
    int shift = graph_expand(graph, graph_leaf(graph, row, false), s);
    *first = graph_op(graph, TN__OP_MATMUL, s, x, w);
    int norm = graph_op(graph, TN__OP_ADD, s, graph_op(graph, TN__OP_MULTIPLY, s, *first, scale), shift);
    if (l->residual)
        norm = graph_op(graph, TN__OP_ADD, s, norm, other);
    *cut = graph_op(graph, l->op, s, norm, -1);
    int next = graph_op(graph, TN__OP_MATMUL, s, *cut, w);
    int mask = graph_op(graph, TN__OP_GREATER, s, *cut, graph_const(graph, s));
    int gradient = graph_op(graph, TN__OP_MULTIPLY, s, mask, l->late ? next : x);
    graph_result(graph, graph_reduce(graph, TN__OP_SUM, gradient, 1));
    graph_result(graph, next);
    int by = l->kept ? *first : other;
    graph_result(graph, graph_reduce(graph, TN__OP_SUM, graph_op(graph, TN__OP_MULTIPLY, s, gradient, by), 1));
}

static int count_op(const tn__graph *graph, tn__op op)
{
    int count = 0;
    for (int v = 0; v < graph->count; v++)
        count += graph->value[v].op == op && graph->value[v].uses > 0;
    return count;
}

static const struct {
    layer layer;
    bool again;
} layers[] = {
    {{TN__OP_RELU, true, false, true}, true},
    {{TN__OP_RELU, false, false, true}, false}, /* what it is made of is not there any more */
    {{TN__OP_RELU, true, true, true}, false},   /* two arrays would be read */
    {{TN__OP_EXP, true, false, true}, false},   /* is much work */
    {{TN__OP_RELU, true, false, false}, false}, /* a kernel in front of the product has it */
};

static void test_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int large = 0; large < 2; large++) {
            tn__graph graph = {0};
            int cut, first;
            make(&graph, &layers[i].layer, &cut, &first);
            tn__graph_count_uses(&graph);
            assert_true(tn__make_again(&graph, WIDE + !large));
            assert_null(tn__graph_verify(&graph));
            assert_int_equal(count_op(&graph, layers[i].layer.op), 1 + (layers[i].again && large));
            tn__graph_free(&graph);
        }
}

/* Arrays of (N, N) that the steps behind the second product read. */
static int64_t read_behind(const tn__plan *plan)
{
    int64_t bytes = 0;
    int products = 0;
    for (int i = 0; i < plan->program.step_count; i++) {
        const tn__step *s = &plan->program.step[i];
        bool product = s->kind == TN__STEP_PRODUCT;
        for (int k = s->output_count; k < s->operand_count && products == 2 && !product; k++) {
            const tn__operand *o = &s->operand[k];
            int64_t count = 1;
            for (int d = 0; d < o->ndim; d++)
                count *= o->stride[d] ? o->dim[d] : 1;
            bytes += count == WIDE;
        }
        products += product;
    }
    return bytes;
}

static void test_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tn__graph graph = {0};
        int cut, first;
        make(&graph, &layers[i].layer, &cut, &first);
        tn__plan *plan = graph_plan_once(&graph, &gpu);
        assert_int_equal(read_behind(plan), layers[i].again ? 2 : 3);
        tn__plan_free(plan);
    }
}

/* ---- what results are, written out ---- */

static uint64_t meaning(const tn__graph *graph, int v, uint64_t *known)
{
    const tn__value *value = &graph->value[v];
    if (known[v])
        return known[v];
    uint64_t h = tn__hash_mix((uint64_t)value->op << 8 | (uint64_t)value->dtype, value->shape->id);
    uint64_t perm;
    memcpy(&perm, value->attr.perm, sizeof perm);
    h = tn__hash_mix(h, (uint64_t)value->attr.axes << 32 | (uint32_t)value->attr.axis);
    h = tn__hash_mix(h, perm ^ (value->attr.ints ? value->attr.ints->id : 0));
    h = tn__hash_mix(h, (uint64_t)(value->leaf + 1) << 32 | (uint32_t)(value->scalar + 1));
    for (int i = 0; i < value->arity; i++)
        h = tn__hash_mix(h, meaning(graph, value->in[i], known));
    return known[v] = h | 1;
}

static void meanings(const tn__graph *graph, uint64_t *of)
{
    uint64_t *known = tn__calloc((size_t)graph->count + 1, sizeof *known);
    assert_non_null(known);
    for (int r = 0; r < graph->result_count; r++)
        of[r] = meaning(graph, graph->result[r], known);
    tn__free(known);
}

/* Random graphs, and layers of either kind among them: results stay what they are. */
static void test_random_graphs(void **state)
{
    (void)state;
    test_random chance = test_random_new();
    for (int round = 0; round < 100; round++) {
        tn__graph graph = {0};
        int cut, first, expected = 0;
        graph_random(&graph, &chance);
        for (int i = (int)test_random_int(&chance, 0, 4); i > 0; i--) {
            size_t which = (size_t)test_random_int(&chance, 0, sizeof layers / sizeof *layers - 1);
            make(&graph, &layers[which].layer, &cut, &first);
            expected += layers[which].again;
        }
        tn__graph_count_uses(&graph);
        int cuts = count_op(&graph, TN__OP_RELU), results = graph.result_count;
        uint64_t *before = tn__calloc((size_t)results + 1, sizeof *before);
        uint64_t *after = tn__calloc((size_t)results + 1, sizeof *after);
        assert_true(before && after);
        meanings(&graph, before);
        assert_true(tn__make_again(&graph, test_random_int(&chance, 0, 1) ? WIDE : 1));
        assert_null(tn__graph_verify(&graph));
        assert_int_equal(graph.result_count, results);
        assert_true(count_op(&graph, TN__OP_RELU) >= cuts + expected);
        meanings(&graph, after);
        assert_memory_equal(before, after, sizeof *before * (size_t)results);
        tn__free(before);
        tn__free(after);
        tn__graph_free(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_plans),
                                       cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
