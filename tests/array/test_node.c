/* SPDX-License-Identifier: MIT */
/* Nodes: what a new one holds, values, release, and very deep graphs. */
#include "array/graphs.h"

static tn__call call;

static int enter(void **state)
{
    (void)state;
    call = tn__enter();
    return 0;
}

static int leave(void **state)
{
    tn__leave(call);
    return graph_nothing_left(state);
}

static void a_new_node_holds_its_inputs(void **state)
{
    (void)state;
    tn__node *a = graph_const(), *b = graph_value();
    tn__attr attr = {.raw = {0x0123456789abcdef, 42}};
    tn__node *in[] = {a, b};
    tn__node *c = tn__node_new(TN__OP_ADD, TN_FLOAT32, graph_shape(), graph_device(), 2, in, attr);
    assert_int_equal(c->op, TN__OP_ADD);
    assert_int_equal(c->dtype, TN_FLOAT32);
    assert_int_equal(c->arity, 2);
    assert_int_equal(c->owner, tn__thread_number());
    assert_ptr_equal(c->shape, graph_shape());
    assert_ptr_equal(c->device, graph_device());
    assert_ptr_equal(c->in[0], a);
    assert_ptr_equal(c->in[1], b);
    assert_memory_equal(&c->attr, &attr, sizeof attr);
    assert_int_equal(c->references, 1);
    assert_int_equal(a->references, 2);
    assert_int_equal(b->references, 2);
    assert_true(!c->in[2] && !c->storage && !c->strides && !c->error && !c->var && !c->mark && !c->offset);
    assert_true(tn__node_pending(c) && tn__node_pending(a) && !tn__node_pending(b));
}

static void depth_counts_pending_inputs(void **state)
{
    (void)state;
    tn__node *a = graph_const();
    assert_int_equal(a->depth, 1);
    tn__node *b = graph_unary(TN__OP_EXP, a), *c = graph_unary(TN__OP_EXP, b);
    assert_int_equal(c->depth, 3);
    assert_int_equal(graph_binary(TN__OP_ADD, a, c)->depth, 4);
    assert_int_equal(graph_unary(TN__OP_EXP, graph_value())->depth, 1);
    tn__storage *storage = graph_storage();
    tn__node_set_value(c, storage, 0, NULL, false);
    tn__storage_release(storage);
    assert_int_equal(graph_binary(TN__OP_ADD, a, c)->depth, 2);
}

static void gradients_are_wanted_where_they_flow(void **state)
{
    (void)state;
    tn__node *leaf = graph_const(), *plain = graph_const();
    leaf->flags |= TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD;
    assert_int_equal(graph_binary(TN__OP_ADD, plain, leaf)->flags & ~TN__NODE_TEMPORARY, TN__NODE_NEEDS_GRAD);
    assert_int_equal(graph_binary(TN__OP_ADD, plain, plain)->flags & ~TN__NODE_TEMPORARY, 0);
    assert_int_equal(graph_unary(TN__OP_FLOOR, leaf)->flags & ~TN__NODE_TEMPORARY, 0); /* no rule */
    tn__node *whole =
        tn__node_new(TN__OP_CAST, TN_INT32, graph_shape(), graph_device(), 1, &leaf, (tn__attr){.raw = {0}});
    assert_int_equal(whole->flags & ~TN__NODE_TEMPORARY, 0);
    tn__no_grad_depth++;
    assert_int_equal(graph_unary(TN__OP_EXP, leaf)->flags & ~TN__NODE_TEMPORARY, TN__NODE_NO_GRAD);
    tn__no_grad_depth--;
    assert_true(graph_unary(TN__OP_EXP, leaf)->flags & TN__NODE_NEEDS_GRAD);
}

static void errors_pass_through(void **state)
{
    (void)state;
    tn__node *error = tn__node_error(tn__error_new(TN_ERR_SHAPE, "test", "bad"));
    assert_true(tn__node_is_error(error));
    assert_false(tn__node_pending(error));
    assert_int_equal(error->shape->ndim, 0);
    assert_ptr_equal(graph_binary(TN__OP_ADD, graph_const(), error), error);
    tn_clear_error();
}

static void a_value_holds_its_storage(void **state)
{
    (void)state;
    int released = graph_released;
    tn__storage *storage = graph_storage();
    tn__call inner = tn__enter();
    tn__node *value = tn__node_value(storage, TN_FLOAT32, graph_shape(), 3, tn__ints_intern(2, (int64_t[]){3, 1}));
    assert_int_equal(value->op, TN__OP_VALUE);
    assert_int_equal(value->offset, 3);
    assert_false(tn__node_contiguous(value));
    assert_ptr_equal(value->device, graph_device());
    tn__storage_release(storage);
    tn__node_retain(value);
    tn__leave(inner);
    assert_int_equal(graph_released, released);
    tn__node_release(value);
    assert_int_equal(graph_released, released + 1);
}

static void setting_a_value_keeps_or_drops_inputs(void **state)
{
    (void)state;
    tn__node *a = graph_const(), *b = graph_unary(TN__OP_EXP, a), *c = graph_unary(TN__OP_EXP, a);
    int released = graph_released;
    tn__storage *storage = graph_storage();
    tn__node_set_value(b, storage, 1, NULL, false);
    assert_ptr_equal(b->in[0], a);
    assert_int_equal(b->op, TN__OP_EXP);
    assert_int_equal(b->offset, 1);
    tn__node_set_value(c, storage, 0, NULL, true);
    assert_int_equal(c->arity, 0);
    assert_int_equal(c->op, TN__OP_VALUE);
    assert_null(c->in[0]);
    assert_int_equal(a->references, 2); /* the list's and b's */
    tn__storage_release(storage);
    tn__node_drop_inputs(b);
    assert_int_equal(a->references, 1);
    /* A constant stays one: its scalar may still be folded. */
    storage = graph_storage();
    tn__node_set_value(a, storage, 0, NULL, true);
    tn__storage_release(storage);
    assert_int_equal(a->op, TN__OP_CONST);
    assert_int_equal(graph_released, released);
    storage = graph_storage();
    tn__node_set_value(a, storage, 0, NULL, true);
    tn__storage_release(storage);
    assert_int_equal(graph_released, released + 1);
}

static void released_nodes_are_errors_when_used(void **state)
{
    (void)state;
    tn__node *a = graph_const(), *b = graph_unary(TN__OP_EXP, a);
    tn__error *error = tn__error_new(TN_ERR_STATE, "step", "gone");
    tn__node_set_released(b, error);
    assert_int_equal(a->references, 1);
    assert_true(b->flags & TN__NODE_RELEASED);
    assert_ptr_equal(b->error, error);
    tn__node *c = graph_unary(TN__OP_EXP, b);
    assert_true(tn__node_is_error(c));
    assert_ptr_equal(c->error, error);
    tn__node *value = graph_value();
    tn__node_set_released(value, tn__error_retain(error)); /* has a value: stays usable */
    assert_null(value->error);
    tn_clear_error();
}

static void temporaries_go_when_their_call_ends(void **state)
{
    (void)state;
    int released = graph_released;
    tn__call outer = tn__enter();
    tn__node *a = graph_value();
    tn__call inner = tn__enter();
    graph_unary(TN__OP_EXP, graph_value());
    tn__leave(inner);
    assert_int_equal(graph_released, released + 1);
    assert_int_equal(a->references, 1);
    assert_true(a->flags & TN__NODE_TEMPORARY);
    tn__node_retain(a);
    tn__leave(outer);
    assert_int_equal(graph_released, released + 1);
    assert_false(a->flags & TN__NODE_TEMPORARY);
    tn__node_release(a);
    assert_int_equal(graph_released, released + 2);
}

/* ---- depth ---- */

#define LONG 200000

static void *free_long_chain(void *user)
{
    bool evaluated = *(bool *)user;
    tn__storage *storage = graph_storage();
    tn__call outer = tn__enter();
    tn__node *node = tn__node_retain(graph_const());
    for (int i = 0; i < LONG; i++) {
        tn__call inner = tn__enter();
        tn__node *next = tn__node_retain(i % 2 ? graph_unary(TN__OP_EXP, node) : graph_binary(TN__OP_ADD, node, node));
        tn__node_release(node);
        tn__leave(inner);
        node = next;
        if (evaluated)
            tn__node_set_value(node, storage, 0, NULL, false);
    }
    tn__storage_release(storage);
    tn__leave(outer);
    int released = graph_released;
    tn__node_release(node);
    if (evaluated)
        *(bool *)user = graph_released == released + 1;
    return NULL;
}

static void long_chains_are_freed_on_a_small_stack(void **state)
{
    (void)state;
    tn_status (*hook)(tn__node *) = tn__engine.evaluate;
    tn__engine.evaluate = NULL;
    for (int evaluated = 0; evaluated < 2; evaluated++) {
        bool mode = evaluated;
        graph_in_thread(free_long_chain, &mode, 128 << 10);
        assert_int_equal(mode, evaluated);
    }
    tn__engine.evaluate = hook;
}

static int hook_calls;
static uint32_t hook_depth;
static tn_status hook_result;
static tn_status evaluate(tn__node *node)
{
    hook_calls++;
    hook_depth = node->depth;
    if (hook_result)
        return tn__fail(hook_result, "test", "the hook fails");
    tn__storage *storage = graph_storage();
    tn__node_set_value(node, storage, 0, NULL, true);
    tn__storage_release(storage);
    return TN_OK;
}

static void deep_recordings_are_evaluated_on_the_way(void **state)
{
    (void)state;
    tn_status (*hook)(tn__node *) = tn__engine.evaluate;
    tn__engine.evaluate = evaluate;
    hook_calls = 0;
    tn__node *node = graph_const();
    for (int i = 0; i < TN__MAX_DEPTH - 1; i++)
        node = graph_unary(TN__OP_EXP, node);
    assert_int_equal(hook_calls, 0);
    assert_int_equal(node->depth, TN__MAX_DEPTH);
    node = graph_unary(TN__OP_EXP, node);
    assert_int_equal(hook_calls, 1);
    assert_int_equal(hook_depth, TN__MAX_DEPTH);
    assert_int_equal(node->depth, 1);
    for (int i = 0; i < TN__MAX_DEPTH - 1; i++)
        node = graph_unary(TN__OP_EXP, node);
    hook_result = TN_ERR_COMPILE;
    tn__node *error = graph_unary(TN__OP_EXP, node);
    hook_result = TN_OK;
    assert_true(tn__node_is_error(error));
    assert_int_equal(tn__error_status(error->error), TN_ERR_COMPILE);
    assert_int_equal(tn_error_code(), TN_ERR_COMPILE);
    tn_clear_error();
    tn__engine.evaluate = hook;
}

/* ---- memory ---- */

/* Builds a graph in a fresh thread, with the Nth allocation failing. -1: there were not so many; -2: something
 * broke. */
static void *build(void *user)
{
    long n = *(long *)user;
    tn__storage *storage = graph_storage();
    tn__fail_allocation_after(n);
    tn__call outer = tn__enter();
    tn__node *nodes[1500];
    int errors = 0;
    for (int i = 0; i < 1500; i++) {
        if (i % 3 == 0)
            nodes[i] = tn__node_value(storage, TN_FLOAT32, graph_shape(), 0, NULL);
        else
            nodes[i] = graph_binary(TN__OP_ADD, nodes[i - 1], nodes[graph_random((uint32_t)i)]);
        errors += tn__node_is_error(nodes[i]);
    }
    tn_array *x = tn__leave_array(outer, nodes[1499]);
    bool failed = !tn_ok();
    long made = tn__fail_allocation_after(-1);
    bool is_static = tn__handle_of(x)->is_static;
    bool right = failed ? tn_error_code() == TN_ERR_MEMORY && (errors || is_static) : !errors && !is_static;
    if (tn__handle_of(x)->is_static && tn__error_status(tn__array_node(x)->error) != TN_ERR_MEMORY)
        right = false;
    *(long *)user = !right ? -2 : !failed && made <= n ? -1 : n;
    tn_clear_error();
    tn_free(x);
    tn__storage_release(storage);
    return NULL;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    graph_device();
    graph_shape();
    int released = graph_released;
    for (long n = 0; n < 100; n++) {
        long result = n;
        graph_in_thread(build, &result, 0);
        if (result == -2)
            fail_msg("allocation %ld, seed %llu", n, (unsigned long long)graph_seed);
        assert_int_equal(graph_released, released + n + 1);
        if (result == -1) {
            assert_true(n > 2); /* the list of temporaries grew several times */
            return;
        }
    }
    fail_msg("more allocations than expected");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_allocation_may_fail), /* first: the pool is still empty */
        TEST(a_new_node_holds_its_inputs),
        TEST(depth_counts_pending_inputs),
        TEST(gradients_are_wanted_where_they_flow),
        TEST(errors_pass_through),
        TEST(a_value_holds_its_storage),
        TEST(setting_a_value_keeps_or_drops_inputs),
        TEST(released_nodes_are_errors_when_used),
        TEST(temporaries_go_when_their_call_ends),
        TEST(long_chains_are_freed_on_a_small_stack),
        TEST(deep_recordings_are_evaluated_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
