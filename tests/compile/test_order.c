/* SPDX-License-Identifier: MIT */
/* Items that need one another: which may be merged, and in what order they are taken, against sets of all that each one
 * needs, through others too. */
#include <tanso.h>

#include "compile/schedule/queue.h"
#include "graphs.h"

enum { MOST = 40 };

typedef struct net {
    tn__fuser f;
    tn__graph graph;
    int count, now[MOST];    /* now: the item that one is part of */
    bool needs[MOST][MOST];  /* of those that are on their own: all, through others too */
    bool itself[MOST][MOST]; /* without these */
} net;

static bool is_constant(const net *n, int i) { return n->graph.value[i].op == TN__OP_CONST; }

/* Items, each with some of those before it; constants, which need nothing, are filled in memory. */
static void make(net *n, test_random *chance)
{
    memset(n, 0, sizeof *n);
    n->count = (int)test_random_int(chance, 1, MOST);
    n->f.graph = &n->graph;
    n->f.item = tn__calloc(MOST, sizeof *n->f.item);
    n->f.item_count = n->f.search = n->count;
    n->f.updates = tn__calloc(MOST, sizeof(bool));
    assert_true(n->f.item && n->f.updates);
    int many = (int)test_random_int(chance, 1, 12);
    for (int i = 0; i < n->count; i++) {
        bool fails = test_random_int(chance, 0, 5) == 0, constant = test_random_int(chance, 0, 4) == 0;
        tn__value value = {.op = constant ? TN__OP_CONST : fails ? TN__OP_SCATTER_ADD : TN__OP_COPY,
                           .leaf = -1,
                           .scalar = -1};
        assert_int_equal(tn__graph_add(&n->graph, &value), i);
        n->f.updates[i] = !constant && test_random_int(chance, 0, 3) == 0;
        n->f.item[i] = (tn__item){.value = i, .into = i, .group = -1, .mark = {-1, -1, -1}};
        n->now[i] = i;
        for (int k = 0; k < i; k++) {
            if (constant || test_random_int(chance, 0, many) || n->itself[i][k])
                continue;
            n->itself[i][k] = true;
            n->f.item[k].used++;
            assert_true(tn__numbers_add(&n->f.item[i].needs, k));
        }
    }
}

static void destroy(net *n)
{
    for (int i = 0; i < n->count; i++) {
        tn__free(n->f.item[i].needs.at);
        tn__free(n->f.item[i].users.at);
    }
    tn__free(n->f.item);
    tn__free(n->f.updates);
    tn__free(n->f.ahead.at);
    tn__graph_free(&n->graph);
}

/* Sets of what each item needs, after some have been merged. */
static void close_sets(net *n)
{
    memset(n->needs, 0, sizeof n->needs);
    for (int i = 0; i < n->count; i++)
        for (int k = 0; k < n->count; k++)
            n->needs[n->now[i]][n->now[k]] |= n->itself[i][k] && n->now[i] != n->now[k];
    for (int m = 0; m < n->count; m++)
        for (int i = 0; i < n->count; i++)
            for (int k = 0; k < n->count; k++)
                n->needs[i][k] |= n->needs[i][m] && n->needs[m][k];
}

static bool through(const net *n, int item, int other)
{
    for (int m = 0; m < n->count; m++)
        if (n->needs[item][m] && n->needs[m][other])
            return true;
    return false;
}

static bool has_user(const net *n, int item)
{
    for (int i = 0; i < n->count; i++)
        if (n->needs[i][item])
            return true;
    return false;
}

/* Each item in turn is put behind those before it, or made part of one of them. */
static void merge(net *n, test_random *chance)
{
    for (int i = 0; i < n->count; i++) {
        int into = -1;
        close_sets(n);
        assert_true(tn__order_search(&n->f, i));
        for (int tries = (int)test_random_int(chance, 0, i); tries > 0 && into < 0; tries--) {
            int k = (int)test_random_int(chance, 0, i - 1);
            if (n->now[k] != k || is_constant(n, i) || is_constant(n, k))
                continue;
            bool cycle = through(n, i, k);
            assert_int_equal(tn__order_needs_through(&n->f, k), cycle ? TN__KNOWN_TRUE : TN__KNOWN_FALSE);
            if (!cycle && test_random_int(chance, 0, 1))
                into = k;
        }
        if (into < 0) {
            assert_true(tn__order_add(&n->f, i));
        } else {
            assert_true(tn__order_join(&n->f, into, i));
            for (int k = 0; k < n->count; k++)
                n->now[k] = n->now[k] == i ? into : n->now[k];
        }
        close_sets(n);
        for (int a = 0; a <= i; a++)
            for (int b = 0; b <= i; b++)
                assert_true(!n->needs[a][b] || n->f.item[a].place > n->f.item[b].place);
    }
    for (int i = 0; i < n->count; i++) {
        assert_int_equal(tn__item_now(&n->f, i), n->now[i]);
        assert_int_equal(n->f.item[i].dead, n->now[i] != i);
        if (n->now[i] == i)
            assert_int_equal(n->f.item[i].used > 0, has_user(n, i));
    }
}

static bool is_small(const tn__fuser *f, const tn__item *item)
{
    (void)f;
    return item->value % 3 == 0;
}

static bool may_fail(const net *n, int i) { return n->graph.value[i].op == TN__OP_SCATTER_ADD; }

/* Must an item that overwrites wait for one that may fail? */
static bool must_wait(const net *n, const bool *done, int i)
{
    for (int k = 0; k < n->count && n->f.updates[i]; k++)
        if (k != i && n->now[k] == k && !done[k] && may_fail(n, k) && !n->needs[k][i])
            return true;
    return false;
}

/* A constant comes right before the first item that needs it, not as soon as it could. */
static bool is_fill(const net *n, int i) { return is_constant(n, i) && has_user(n, i); }

static bool lacks_fill(const net *n, const bool *done, int item, int fill)
{
    for (int i = 0; i < n->count; i++)
        if (n->now[i] == item && n->itself[i][fill])
            return is_fill(n, fill) && !done[fill];
    return false;
}

/* Is `got` what is to be taken where `item` is the next: that, or a fill that it needs? */
static bool takes(const net *n, const bool *done, int item, int got)
{
    for (int k = 0; k < n->count && item >= 0; k++)
        if (lacks_fill(n, done, item, k))
            return got >= 0 && lacks_fill(n, done, item, got);
    return got == item;
}

static int next_item(const net *n, const bool *done, bool after_small)
{
    int other = -1, waiting = -1;
    for (int i = 0; i < n->count; i++) {
        bool ready = n->now[i] == i && !done[i] && !is_fill(n, i);
        for (int k = 0; k < n->count && ready; k++)
            ready = !n->needs[i][k] || done[k] || is_fill(n, k);
        if (!ready)
            continue;
        if (must_wait(n, done, i))
            waiting = waiting < 0 ? i : waiting;
        else if (is_small(&n->f, &n->f.item[i]) == after_small)
            return i;
        else if (other < 0)
            other = i;
    }
    return other < 0 ? waiting : other;
}

static void test_merging_and_taking(void **state)
{
    (void)state;
    test_random chance = test_random_new();
    for (int round = 0; round < 150; round++) {
        net n;
        tn__queue queue;
        bool done[MOST] = {false}, after_small = false;
        make(&n, &chance);
        merge(&n, &chance);
        assert_true(tn__queue_init(&queue, &n.f, is_small));
        for (int i = 0; i >= 0;) {
            i = tn__queue_take(&queue, after_small);
            assert_true(takes(&n, done, next_item(&n, done, after_small), i));
            if (i >= 0)
                done[i] = true;
            after_small = test_random_int(&chance, 0, 1);
        }
        tn__queue_free(&queue);
        destroy(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_merging_and_taking)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
