/* SPDX-License-Identifier: MIT */
/* Handles in one thread: references, the list of pending ones, gradient records, and pointing at other nodes. */
#include "array/graphs.h"

#include <tanso/array.h>

static void a_result_takes_over_the_temporary(void **state)
{
    (void)state;
    tn_array *x = graph_array(graph_const);
    assert_int_equal(tn__array_node(x)->references, 1);
    assert_false(tn__array_node(x)->flags & TN__NODE_TEMPORARY);
    tn__call call = tn__enter();
    tn__node *first = graph_const(), *second = graph_unary(TN__OP_EXP, tn__array_node(x));
    tn_array *y = tn__leave_array(call, first); /* not the newest; the other one goes */
    (void)second;
    assert_int_equal(tn__array_node(y)->references, 1);
    assert_int_equal(tn__array_node(x)->references, 1);
    call = tn__enter();
    tn_array *z = tn__leave_array(call, tn__node_of(x, "same")); /* no new node at all */
    assert_ptr_equal(tn__array_node(z), tn__array_node(x));
    assert_int_equal(tn__array_node(x)->references, 2);
    tn_free(x);
    assert_int_equal(tn__array_node(z)->references, 1);
    tn_free(y);
    tn_free(z);
}

static void failures_become_error_arrays(void **state)
{
    (void)state;
    tn__call call = tn__enter();
    graph_const();
    tn__fail(TN_ERR_SHAPE, "test", "expected this, got that");
    tn_array *x = tn__leave_error(call);
    assert_int_equal(tn__enter(), call);
    assert_true(tn_is_error(x));
    assert_int_equal(tn_status_of(x), TN_ERR_SHAPE);
    assert_non_null(strstr(tn_message_of(x), "expected this, got that"));
    assert_int_equal(tn_ndim(x), 0);
    assert_int_equal(tn_dtype_of(x), TN_DTYPE_DEFAULT);
    assert_int_equal(tn_device_of(x).kind, TN_DEVICE_DEFAULT);
    tn_clear_error();
    tn_free(x);
}

static void facts_of_arrays(void **state)
{
    (void)state;
    tn_array *x = graph_array(graph_const);
    assert_int_equal(tn_ndim(x), 2);
    assert_int_equal(tn_size(x), 6);
    assert_int_equal(tn_shape_of(x).dim[1], 3);
    assert_int_equal(tn_dtype_of(x), TN_FLOAT32);
    assert_true(tn_device_equal(tn_device_of(x), tn_cpu()));
    assert_int_equal(tn_dim(x, 0), 2);
    assert_int_equal(tn_dim(x, -1), 3);
    assert_true(tn_ok());
    static const int bad[] = {2, -3};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tn_dim(x, bad[i]), -1);
        assert_int_equal(tn_error_code(), TN_ERR_INDEX);
        tn_clear_error();
    }
    int64_t strides[TN_MAX_NDIM];
    tn_strides_of(x, strides);
    assert_int_equal(strides[0], 12);
    assert_int_equal(strides[1], 4);
    assert_int_equal(strides[2], 0);
    tn__storage *storage = graph_storage();
    tn__node_set_value(tn__array_node(x), storage, 5, tn__ints_intern(2, (int64_t[]){-1, -2}), true);
    tn__storage_release(storage);
    tn_strides_of(x, strides);
    assert_int_equal(strides[0], -4);
    assert_int_equal(strides[1], -8);
    assert_false(tn_is_error(x));
    assert_string_equal(tn_message_of(x), "");
    assert_int_equal(tn_status_of(x), TN_OK);
    tn_free(x);
    assert_true(tn_is_error(NULL));
    assert_int_equal(tn_status_of(NULL), TN_ERR_VALUE);
    assert_int_equal(tn_ndim(NULL), 0);
}

static void operands_that_are_none(void **state)
{
    (void)state;
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(NULL, "add");
    assert_true(tn__node_is_error(node));
    assert_int_equal(tn_error_code(), TN_ERR_VALUE);
    assert_non_null(strstr(tn_error(), "NULL"));
    tn_clear_error();
    tn__leave(call);

    tn_array *x = graph_exp(graph_array(graph_const));
    tn__node_set_released(tn__array_node(x), tn__error_new(TN_ERR_STATE, "step", "consumed"));
    tn_clear_error();
    call = tn__enter();
    node = tn__node_of(x, "add");
    assert_true(tn__node_is_error(node));
    assert_ptr_equal(node->error, tn__array_node(x)->error);
    tn__leave(call);
    assert_true(tn_is_error(x));
}

/* ---- pending handles ---- */

static bool listed(const tn_array *x)
{
    tn__handle *const *handles;
    int count = tn__pending_handles(&handles), times = 0;
    for (int i = 0; i < count; i++)
        times += handles[i] == tn__handle_of(x);
    assert_true(times <= 1);
    assert_int_equal(tn__handle_of(x)->pending != 0, times);
    if (times)
        assert_ptr_equal(handles[tn__handle_of(x)->pending - 1], tn__handle_of(x));
    return times;
}

static void handles_of_pending_nodes_are_listed(void **state)
{
    (void)state;
    tn_array *constant = graph_array(graph_const), *value = graph_array(graph_value), *sum = graph_add(constant, value);
    tn__call call = tn__enter();
    tn__fail(TN_ERR_VALUE, "test", "x");
    tn_array *error = tn__leave_error(call);
    tn_clear_error();
    assert_true(listed(constant));
    assert_false(listed(value));
    assert_true(listed(sum));
    assert_false(listed(error));
    graph_compute(sum, true);
    assert_false(listed(sum));
    assert_true(listed(constant));
    tn__node_set_released(tn__array_node(constant), tn__error_new(TN_ERR_STATE, "step", "consumed"));
    tn_clear_error();
    tn__pending_sweep();
    assert_false(listed(constant));
}

static void the_list_follows_every_change(void **state)
{
    (void)state;
    enum { COUNT = 64 };
    tn_array *x[COUNT] = {0};
    for (int step = 0; step < 20000; step++) {
        uint32_t i = graph_random(COUNT), what = graph_random(6);
        if (!x[i]) {
            x[i] = tn_own(graph_array(what % 2 ? graph_const : graph_value));
        } else if (what == 0) {
            tn_free(x[i]);
            x[i] = NULL;
        } else if (what == 1 && tn__node_pending(tn__array_node(x[i]))) {
            graph_compute(x[i], true);
        } else if (what < 5) {
            tn__call call = tn__enter();
            tn__array_set(x[i], what % 2 ? graph_const() : graph_value());
            tn__leave(call);
        }
        tn__handle *const *handles;
        int count = tn__pending_handles(&handles), expected = 0;
        for (int k = 0; k < COUNT; k++) {
            if (!x[k])
                continue;
            bool pending = tn__node_pending(tn__array_node(x[k]));
            expected += pending;
            const tn__handle *handle = tn__handle_of(x[k]);
            if ((handle->pending != 0) != pending || (pending && handles[handle->pending - 1] != handle))
                fail_msg("step %d, seed %llu", step, (unsigned long long)graph_seed);
        }
        if (count != expected)
            fail_msg("step %d, seed %llu", step, (unsigned long long)graph_seed);
    }
    for (int i = 0; i < COUNT; i++)
        tn_free(x[i]);
}

/* ---- pointing at other nodes ---- */

static tn_array *leaf(tn__node *(*make)(void))
{
    tn_array *x = graph_array(make);
    tn__array_node(x)->var = tn__array_var(x);
    tn__array_node(x)->flags |= TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD;
    return x;
}

static bool marked(const tn_array *x)
{
    const tn__node *node = tn__array_node(x);
    return node->flags & TN__NODE_LEAF_VAR && node->flags & TN__NODE_NEEDS_GRAD && node->var == tn__handle_of(x)->var;
}

static void plain_handles_just_move(void **state)
{
    (void)state;
    tn_array *x = graph_array(graph_const), *y = graph_array(graph_value);
    int released = graph_released;
    tn__array_set(x, tn__array_node(y));
    assert_ptr_equal(tn__array_node(x), tn__array_node(y));
    assert_int_equal(tn__array_node(y)->references, 2);
    tn__array_set(x, tn__array_node(y));
    assert_int_equal(tn__array_node(y)->references, 2);
    tn_free(y);
    assert_int_equal(graph_released, released);
    tn_free(x);
    assert_int_equal(graph_released, released + 1);
}

static void the_mark_moves_with_a_leaf(void **state)
{
    (void)state;
    tn_array *w = leaf(graph_value);
    tn__node *old = tn__node_retain(tn__array_node(w));
    /* A pending result of this very call is marked itself. */
    tn__call call = tn__enter();
    tn__node *update = graph_unary(TN__OP_NEGATIVE, tn__array_node(w));
    tn__array_set(w, update);
    tn__leave(call);
    assert_ptr_equal(tn__array_node(w), update);
    assert_true(marked(w));
    assert_null(old->var);
    tn__node_release(old);

    /* A pending node that others hold is copied: its other handles get no mark. */
    tn_array *y = graph_exp(graph_array(graph_const));
    tn__array_set(w, tn__array_node(y));
    assert_int_equal(tn__array_node(w)->op, TN__OP_COPY);
    assert_ptr_equal(tn__array_node(w)->in[0], tn__array_node(y));
    assert_true(marked(w));
    assert_int_equal(tn__array_node(y)->flags, 0);
    assert_null(tn__array_node(y)->var);

    /* So is a value, by another window of its storage. */
    graph_compute(y, true);
    tn__array_set(w, tn__array_node(y));
    assert_ptr_not_equal(tn__array_node(w), tn__array_node(y));
    assert_ptr_equal(tn__array_node(w)->storage, tn__array_node(y)->storage);
    assert_true(marked(w));
    assert_int_equal(tn__array_node(y)->flags & (TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD), 0);
    assert_int_equal(tn__enter(), 0); /* leaves no temporaries */
}

static void errors_take_no_mark(void **state)
{
    (void)state;
    tn_array *w = leaf(graph_value);
    tn__call call = tn__enter();
    tn__array_set(w, tn__node_error(tn__error_new(TN_ERR_VALUE, "test", "x")));
    tn__leave(call);
    tn_clear_error();
    assert_true(tn_is_error(w));
    assert_null(tn__array_node(w)->var);
}

static void a_handle_owns_its_gradient_record(void **state)
{
    (void)state;
    tn_array *w = leaf(graph_value), *other = graph_exp(w);
    tn__var *var = tn__handle_of(w)->var;
    assert_ptr_equal(tn__array_var(w), var);
    tn__call call = tn__enter();
    var->grad = tn__node_retain(graph_value());
    tn__leave(call);
    var->handle = tn__array_own_new(var->grad);
    var->name = tn__strdup("w");
    assert_null(tn__handle_of(var->handle)->scope);
    tn__node *node = tn__node_retain(tn__array_node(w));
    int released = graph_released;
    tn_free(w);
    assert_int_equal(graph_released, released + 1);
    assert_null(node->var); /* nobody may reach the freed record */
    tn__node_release(node);
    tn_free(other);
    assert_int_equal(graph_released, released + 2);
}

/* ---- memory ---- */

typedef struct attempt {
    long n;
    bool wrong, last;
} attempt;

static void *record(void *user)
{
    attempt *a = user;
    enum { COUNT = 700 };
    tn_array *x[COUNT];
    tn_scope_push();
    tn__fail_allocation_after(a->n);
    for (int i = 0; i < COUNT; i++)
        x[i] = i ? graph_exp(x[i - 1]) : graph_array(graph_const);
    bool failed = !tn_ok();
    a->last = tn__fail_allocation_after(-1) <= a->n;
    a->wrong = a->last == failed || (failed && tn_error_code() != TN_ERR_MEMORY) || tn_is_error(x[COUNT - 1]) != failed;
    tn_clear_error();
    for (int i = 0; i < COUNT; i++) {
        if (!tn__handle_of(x[i])->is_static)
            continue;
        /* The static error array takes everything. */
        tn__call call = tn__enter();
        tn__array_set(x[i], graph_const());
        tn__leave(call);
        if (tn_status_of(x[i]) != TN_ERR_MEMORY || tn_keep(x[i]) != x[i] || tn_own(x[i]) != x[i] || tn__array_var(x[i]))
            a->wrong = true;
        tn_free(x[i]);
    }
    tn_scope_pop();
    if (!tn_ok())
        a->wrong = true;
    tn_clear_error();
    return NULL;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    graph_device();
    graph_shape();
    attempt a = {0};
    for (; a.n < 100 && !a.last; a.n++) {
        graph_in_thread(record, &a, 0);
        if (a.wrong)
            fail_msg("allocation %ld", a.n);
        assert_int_equal(tn_live_arrays(), 0);
    }
    assert_true(a.last);
    assert_true(a.n > 4); /* slabs, and the list of pending handles as it grew */
}

static int free_thread_arrays(void **state)
{
    /* What a test left in the thread's own scope goes with a scope around the test. */
    while (tn_scope_depth())
        tn_scope_pop();
    return graph_nothing_left(state);
}

static int in_a_scope(void **state)
{
    (void)state;
    tn_scope_push();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, in_a_scope, free_thread_arrays)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail), /* first: the pool is still empty */
        TEST(a_result_takes_over_the_temporary),
        TEST(failures_become_error_arrays),
        TEST(facts_of_arrays),
        TEST(operands_that_are_none),
        TEST(handles_of_pending_nodes_are_listed),
        TEST(the_list_follows_every_change),
        TEST(plain_handles_just_move),
        TEST(the_mark_moves_with_a_leaf),
        TEST(errors_take_no_mark),
        TEST(a_handle_owns_its_gradient_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
