/* SPDX-License-Identifier: MIT */
/* The arena's layout is the one that looking at all temporaries before each one gives; what ends where another
 * temporary begins, element by element, shares its memory. */
#include <tanso.h>

#include "compile/memory/arena.h"
#include "graphs.h"

static bool meet(const tn__lifetime *a, const tn__lifetime *b) { return a->first <= b->last && b->first <= a->last; }

static size_t aligned(size_t bytes) { return (bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT; }

static bool comes_before(const tn__lifetime *life, int a, int b)
{
    size_t x = aligned(life[a].bytes), y = aligned(life[b].bytes);
    if (x != y)
        return x > y;
    return life[a].first != life[b].first ? life[a].first < life[b].first : a < b;
}

/* The lowest offset at which a temporary meets none of those that come before it: larger ones, and of its size those
 * that live before it. */
static size_t lowest(const tn__lifetime *life, int count, int own, bool reuse)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int v = 0; v < count; v++) {
            const tn__lifetime *o = &life[v], *l = &life[own];
            bool before = o->temporary && o->bytes && comes_before(life, v, own);
            if (!before || (reuse && !meet(o, l)) || at >= o->offset + o->bytes || o->offset >= at + aligned(l->bytes))
                continue;
            at = aligned(o->offset + o->bytes);
            moved = true;
        }
    }
    return at;
}

static void test_layouts(void **state)
{
    (void)state;
    enum { MOST = 60 };
    test_random chance = test_random_new();
    for (int round = 0; round < 300; round++) {
        tn__lifetime life[MOST];
        int count = (int)test_random_int(&chance, 0, MOST), steps = (int)test_random_int(&chance, 1, 40);
        int64_t most = test_random_int(&chance, 0, 2000);
        bool reuse = test_random_int(&chance, 0, 3) > 0;
        size_t arena = 12345, end = 0;
        for (int v = 0; v < count; v++) {
            int first = (int)test_random_int(&chance, 0, steps - 1),
                last = (int)test_random_int(&chance, first, steps - 1);
            life[v] = (tn__lifetime){.first = first,
                                     .last = last,
                                     .bytes = (size_t)test_random_int(&chance, 0, most),
                                     .temporary = test_random_int(&chance, 0, 9) > 0};
        }
        assert_true(tn__arena_lay_out(life, count, steps, reuse, &arena));
        for (int v = 0; v < count; v++) {
            if (!life[v].temporary)
                continue;
            assert_int_equal(life[v].offset, life[v].bytes ? lowest(life, count, v, reuse) : 0);
            size_t own = life[v].offset + aligned(life[v].bytes);
            end = own > end ? own : end;
        }
        assert_int_equal(arena, end);
    }
}

/* Very many of one size, whose lives are nested by turns, as in a chain that is differentiated twice: no more memory
 * than lives at any time, and found without looking at all for each. */
static void test_many(void **state)
{
    (void)state;
    enum { CHAIN = 30000, STEPS = 2 * CHAIN };
    tn__lifetime *life = calloc(2 * CHAIN, sizeof *life);
    int *change = calloc(STEPS + 1, sizeof *change);
    assert_true(life && change);
    for (int i = 0; i < 2 * CHAIN; i++) {
        int k = i / 2, last = i % 2 ? CHAIN + (int)((int64_t)k * 7919 % CHAIN) : STEPS - 1 - k;
        life[i] = (tn__lifetime){.first = k, .last = last, .bytes = 4, .temporary = true};
        change[k]++;
        change[last + 1]--;
    }
    size_t arena = 0, alive = 0, most = 0;
    assert_true(tn__arena_lay_out(life, 2 * CHAIN, STEPS, true, &arena));
    for (int i = 0; i < STEPS; i++) {
        alive += (size_t)change[i];
        most = alive > most ? alive : most;
    }
    assert_int_equal(arena, most * TN__ALIGNMENT);
    free(life);
    free(change);
}

enum { N = 512, HUGE = 4096 };

static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .threads = 132, .multiprocessors = 132,
                                          .shared_memory = 227 << 10, .late_failures = true}};

static int product(tn__graph *graph, int a, int b)
{
    return graph_op(graph, TN__OP_MATMUL, graph->value[a].shape, a, b);
}

/* What differs from its row's largest element. */
static int below_largest(tn__graph *graph, int a, const tn__shape *shape)
{
    int largest = graph_expand(graph, graph_reduce(graph, TN__OP_MAX, a, 2), shape);
    return graph_op(graph, TN__OP_SUBTRACT, shape, a, largest);
}

/* Between two products, the second is computed of what lies where the first one's result was; not if that is needed
 * once more. */
static void test_in_place(void **state)
{
    (void)state;
    const tn__shape *of = shape(2, N, N);
    size_t one = sizeof(float) * N * N;
    for (int k = 0; k < 4; k++) {
        tn__graph graph = {0};
        int w = graph_leaf(&graph, of, false), a = product(&graph, w, w);
        int c = product(&graph, below_largest(&graph, a, of), w);
        graph_result(&graph, k / 2 ? graph_op(&graph, TN__OP_ADD, of, a, c) : c);
        tn__plan *plan = graph_plan_once(&graph, k % 2 ? &gpu : tn__device_get(tn_cpu()));
        assert_in_range(plan->program.arena_bytes, (k / 2 ? 3 : 1) * one, (k / 2 ? 3 : 1) * one + one / 2);
        tn__plan_free(plan);
    }
}

/* A loss's gradient lies where its logits were, of which one a row was chosen before; in a step that overwrites a
 * parameter, so that what may fail has kernels of its own. */
static void test_chosen_before(void **state)
{
    (void)state;
    const tn__shape *of = shape(2, HUGE, HUGE);
    size_t one = sizeof(float) * HUGE * HUGE;
    tn__graph graph = {0};
    int w = graph_leaf(&graph, of, false), labels = graph_leaf(&graph, shape(2, HUGE, 1), false);
    graph.value[labels].dtype = TN_INT64;
    int logits = product(&graph, w, w), below = below_largest(&graph, logits, of);
    int chosen = graph_op(&graph, TN__OP_GATHER, shape(2, HUGE, 1), logits, labels);
    graph.value[chosen].attr.axis = 1;
    int sum = graph_reduce(&graph, TN__OP_SUM, graph_op(&graph, TN__OP_EXP, of, below, -1), 2);
    graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, shape(2, HUGE, 1), chosen, sum));
    graph_result(&graph, product(&graph, below, w));
    int parameter = graph_leaf(&graph, shape(1, 3), true);
    graph_result(&graph, graph_op(&graph, TN__OP_NEGATIVE, shape(1, 3), parameter, -1));
    tn__plan *plan = graph_plan_once(&graph, &gpu);
    assert_in_range(plan->program.arena_bytes, one, one + one / 8);
    tn__plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_in_place), cmocka_unit_test(test_chosen_before)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
