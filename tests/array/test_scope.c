/* SPDX-License-Identifier: MIT */
/* Scopes: what they free, what leaves them, and how they are left. */
#include "array/graphs.h"

static size_t live_before;
static size_t live(void) { return tn_live_arrays() - live_before; }

static int start(void **state)
{
    (void)state;
    live_before = tn_live_arrays();
    return 0;
}

static void pop_frees_what_was_made_inside(void **state)
{
    (void)state;
    tn_array *outside = graph_array(graph_const);
    tn_scope_push();
    assert_int_equal(tn_scope_depth(), 1);
    int released = graph_released;
    for (int i = 0; i < 3; i++)
        graph_exp(graph_array(graph_value));
    assert_int_equal(live(), 7);
    tn_scope_pop();
    assert_int_equal(tn_scope_depth(), 0);
    assert_int_equal(live(), 1);
    assert_int_equal(graph_released - released, 3);
    tn_free(outside);
}

static void scopes_nest(void **state)
{
    (void)state;
    tn_scope_push();
    graph_array(graph_const);
    tn_scope_push();
    graph_array(graph_const);
    graph_array(graph_const);
    assert_int_equal(tn_scope_depth(), 2);
    tn_scope_pop();
    assert_int_equal(live(), 1);
    graph_array(graph_const);
    assert_int_equal(live(), 2);
    tn_scope_pop();
    assert_int_equal(live(), 0);
}

static void keep_hands_to_the_enclosing_scope(void **state)
{
    (void)state;
    tn_scope_push();
    tn_scope_push();
    tn_array *x = graph_array(graph_const);
    graph_array(graph_const);
    assert_ptr_equal(tn_keep(x), x);
    tn_scope_pop();
    assert_int_equal(live(), 1);
    tn_scope_push();
    tn_keep(x); /* outlives the innermost scope already */
    tn_scope_pop();
    assert_int_equal(live(), 1);
    tn_keep(x);
    tn_scope_pop();
    assert_int_equal(live(), 1);
    tn_keep(x); /* the thread's already */
    assert_int_equal(tn__array_node(x)->op, TN__OP_CONST);
    tn_free(x);
    assert_int_equal(live(), 0);
    assert_null(tn_keep(NULL));
}

static void own_takes_out_of_every_scope(void **state)
{
    (void)state;
    tn_scope_push();
    graph_array(graph_const);
    tn_array *x = graph_array(graph_const);
    graph_array(graph_const);
    assert_ptr_equal(tn_own(x), x);
    assert_ptr_equal(tn_keep(x), x); /* belongs to no scope: nothing to hand on */
    tn_scope_pop();
    assert_int_equal(live(), 1);
    assert_ptr_equal(tn_own(x), x);
    tn_free(x);
    assert_int_equal(live(), 0);
    assert_null(tn_own(NULL));
}

static void free_takes_out_of_the_scope(void **state)
{
    (void)state;
    tn_scope_push();
    tn_array *x[5];
    for (int i = 0; i < 5; i++)
        x[i] = graph_array(graph_const);
    static const int order[] = {2, 4, 0}; /* the middle, the newest, the oldest */
    for (int i = 0; i < 3; i++)
        tn_free(x[order[i]]);
    assert_int_equal(live(), 2);
    tn_free(NULL);
    tn_scope_pop();
    assert_int_equal(live(), 0);
}

static void pop_without_push_is_an_error(void **state)
{
    (void)state;
    tn_array *x = graph_array(graph_const);
    tn_scope_pop();
    assert_int_equal(tn_error_code(), TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), "tn_scope_pop"));
    assert_int_equal(tn_scope_depth(), 0);
    assert_int_equal(live(), 1); /* the thread's own arrays are untouched */
    tn_clear_error();
    tn_free(x);
}

static int leave_by_return(void)
{
    TN_SCOPE
    {
        graph_array(graph_const);
        return (int)live();
    }
    return -1;
}

static void blocks_are_left_however_they_end(void **state)
{
    (void)state;
    TN_SCOPE { graph_array(graph_const); }
    assert_int_equal(live(), 0);
    int turns = 0;
    for (int i = 0; i < 3; i++) {
        TN_SCOPE
        {
            graph_array(graph_const);
            if (i == 1)
                break; /* leaves the scope's block only */
            if (i == 2)
                continue;
        }
        assert_int_equal(live(), 0);
        turns++;
    }
    assert_int_equal(turns, 3);
    assert_int_equal(leave_by_return(), 1);
    assert_int_equal(live(), 0);
    TN_SCOPE
    {
        graph_array(graph_const);
        goto out;
    }
out:
    assert_int_equal(live(), 0);
    assert_int_equal(tn_scope_depth(), 0);
}

static void a_block_pops_what_was_pushed_inside(void **state)
{
    (void)state;
    TN_SCOPE
    {
        tn_scope_push();
        graph_array(graph_const);
        tn_scope_push();
        graph_array(graph_const);
    }
    assert_int_equal(tn_scope_depth(), 0);
    assert_int_equal(live(), 0);
    TN_SCOPE
    {
        tn_scope_pop(); /* one too many: the block has nothing left to pop */
    }
    assert_int_equal(tn_scope_depth(), 0);
    assert_true(tn_ok());
}

static void scopes_go_deep(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) {
        tn_scope_push();
        graph_array(graph_const);
    }
    assert_int_equal(tn_scope_depth(), 10000);
    assert_int_equal(live(), 10000);
    for (int i = 0; i < 9999; i++)
        tn_scope_pop();
    assert_int_equal(live(), 1);
    tn_scope_pop();
}

/* Callbacks that run while a scope is left may make and free arrays themselves. */
static void make_arrays(void *user, void *memory)
{
    (void)memory;
    graph_exp(graph_array(graph_const));
    if (*(tn_array **)user)
        tn_free(*(tn_array **)user);
    *(tn_array **)user = NULL;
}

static void leaving_may_reenter(void **state)
{
    (void)state;
    tn_scope_push();
    static float memory[6];
    tn_array *other = graph_array(graph_value);
    tn__storage *storage = tn__storage_wrap(graph_device(), memory, sizeof memory, make_arrays, &other);
    tn__call call = tn__enter();
    tn__leave_array(call, tn__node_value(storage, TN_FLOAT32, graph_shape(), 0, NULL));
    tn__storage_release(storage);
    tn_scope_pop();
    assert_null(other);
    assert_int_equal(live(), 0);
}

static void *thread_with_arrays(void *user)
{
    (void)user;
    graph_array(graph_value);
    tn_scope_push();
    graph_exp(graph_array(graph_value));
    tn_keep(graph_array(graph_value));
    return NULL; /* with a scope open */
}

static void a_threads_end_frees_its_arrays(void **state)
{
    (void)state;
    int released = graph_released;
    graph_in_thread(thread_with_arrays, NULL, 0);
    assert_int_equal(live(), 0);
    assert_int_equal(graph_released - released, 3);
}

/* Every allocation fails once in a thread that starts from nothing; pushes without memory still match their pops. */
static void *push_and_pop(void *user)
{
    long n = *(long *)user;
    tn__fail_allocation_after(n);
    enum { DEPTH = 200 };
    for (int i = 0; i < DEPTH; i++) {
        tn_scope_push();
        tn__call call = tn__enter();
        tn__leave_array(call,
                        tn__node_new(TN__OP_CONST, TN_FLOAT32, graph_shape(), NULL, 0, NULL, (tn__attr){.raw = {0}}));
    }
    long made = tn__fail_allocation_after(-1);
    bool failed = !tn_ok();
    if (tn_scope_depth() != DEPTH || (failed && tn_error_code() != TN_ERR_MEMORY))
        *(long *)user = -2;
    tn_clear_error();
    for (int i = 0; i < DEPTH; i++)
        tn_scope_pop();
    if (tn_scope_depth() != 0 || !tn_ok())
        *(long *)user = -2;
    if (*(long *)user >= 0 && !failed && made <= n)
        *(long *)user = -1;
    return NULL;
}

static void pushes_without_memory_still_pair(void **state)
{
    (void)state;
    graph_shape();
    for (long n = 0; n < 100; n++) {
        long result = n;
        graph_in_thread(push_and_pop, &result, 0);
        assert_int_not_equal(result, -2);
        assert_int_equal(live(), 0);
        if (result == -1)
            return; /* there were not so many allocations */
    }
    fail_msg("more allocations than expected");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, graph_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pushes_without_memory_still_pair), /* first: the pool is still empty */
        TEST(pop_frees_what_was_made_inside),
        TEST(scopes_nest),
        TEST(keep_hands_to_the_enclosing_scope),
        TEST(own_takes_out_of_every_scope),
        TEST(free_takes_out_of_the_scope),
        TEST(pop_without_push_is_an_error),
        TEST(blocks_are_left_however_they_end),
        TEST(a_block_pops_what_was_pushed_inside),
        TEST(scopes_go_deep),
        TEST(leaving_may_reenter),
        TEST(a_threads_end_frees_its_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
