/* SPDX-License-Identifier: MIT */
/* Handles and nodes that pass between threads: who may free what, and when it goes. */
#include "array/graphs.h"

#include <pthread.h>
#include <stdatomic.h>

#include <tanso/array.h>

/* Runs f in another thread that lives until graph_in_thread returns. */
static void elsewhere(void *(*f)(void *), void *user) { graph_in_thread(f, user, 0); }

static void *free_it(void *user)
{
    tn_free(user);
    return NULL;
}

static void evaluated_handles_without_owner_go_at_once(void **state)
{
    (void)state;
    tn_array *x = tn_own(graph_array(graph_value));
    int released = graph_released;
    elsewhere(free_it, x);
    assert_int_equal(graph_released, released + 1);
    assert_int_equal(tn_live_arrays(), 0);
}

static void handles_in_a_scope_go_at_the_owners_next_call(void **state)
{
    (void)state;
    tn_scope_push();
    tn_array *x[3];
    for (int i = 0; i < 3; i++)
        x[i] = graph_array(graph_value);
    int released = graph_released;
    elsewhere(free_it, x[1]);
    elsewhere(free_it, x[0]);
    assert_int_equal(graph_released, released);
    tn__leave(tn__enter());
    assert_int_equal(graph_released, released + 2);
    assert_int_equal(tn_live_arrays(), 1);
    elsewhere(free_it, x[2]);
    tn_scope_pop(); /* takes the post before it frees the scope */
    assert_int_equal(graph_released, released + 3);
}

static void pending_handles_go_at_the_owners_next_call(void **state)
{
    (void)state;
    tn_array *value = tn_own(graph_array(graph_value)), *x = tn_own(graph_exp(value)), *y = tn_own(graph_exp(x));
    tn__handle *const *handles;
    assert_int_equal(tn__pending_handles(&handles), 2);
    elsewhere(free_it, x);
    assert_int_equal(tn__pending_handles(&handles), 1);
    assert_ptr_equal(handles[0], tn__handle_of(y));
    assert_int_equal(tn__array_node(y)->in[0]->references, 1);
    tn_free(y);
    tn_free(value);
}

/* ---- owners that have ended ---- */

typedef struct made {
    tn_array *pending, *value, *kept_inputs;
} made;

static void *make_and_end(void *user)
{
    made *m = user;
    tn_array *value = graph_array(graph_value);
    m->pending = tn_own(graph_exp(value));
    m->value = tn_own(value);
    /* A value that keeps its inputs, which are still pending, for a backward. */
    m->kept_inputs = tn_own(graph_add(m->pending, graph_exp(m->pending)));
    tn__storage *storage = graph_storage();
    tn__node_set_value(tn__array_node(m->kept_inputs), storage, 0, NULL, false);
    tn__storage_release(storage);
    tn__pending_sweep();
    return NULL;
}

static void what_an_ended_thread_leaves_can_be_freed(void **state)
{
    (void)state;
    for (int order = 0; order < 6; order++) {
        int released = graph_released;
        made m;
        elsewhere(make_and_end, &m);
        assert_int_equal(tn_live_arrays(), 3);
        assert_int_equal(tn__handle_of(m.pending)->pending, 0);
        tn_array *x[] = {m.pending, m.value, m.kept_inputs};
        static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        for (int i = 0; i < 3; i++)
            tn_free(x[orders[order][i]]);
        assert_int_equal(graph_released, released + 2);
        assert_int_equal(tn_live_arrays(), 0);
    }
}

static void *use_operand(void *user)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(user, "add");
    bool error = tn__node_is_error(node) && tn_error_code() == TN_ERR_STATE && strstr(tn_error(), "tn_eval");
    tn__leave(call);
    tn_clear_error();
    return error ? user : NULL;
}

static void *check_operand(void *user)
{
    tn_array **x = user;
    if (!use_operand(*x))
        *x = NULL;
    return NULL;
}

static void pending_operands_of_other_threads_are_errors(void **state)
{
    (void)state;
    tn_array *x = graph_array(graph_const), *seen = x;
    elsewhere(check_operand, &seen);
    assert_ptr_equal(seen, x);
    graph_compute(x, true);
    elsewhere(check_operand, &seen);
    assert_null(seen);
    tn_free(x);
}

/* ---- gradients recorded elsewhere ---- */

static void *give_gradient(void *user)
{
    tn_array *w = user;
    tn__call call = tn__enter();
    tn__var *var = tn__array_var(w);
    var->grad = tn__node_retain(graph_unary(TN__OP_EXP, tn__array_node(w)));
    var->handle = tn__array_own_new(var->grad);
    tn__leave(call);
    return NULL;
}

static void a_gradient_recorded_by_an_ended_thread_goes(void **state)
{
    (void)state;
    tn_array *w = tn_own(graph_array(graph_value));
    elsewhere(give_gradient, w);
    int released = graph_released;
    tn_free(w);
    assert_int_equal(graph_released, released + 1);
    assert_int_equal(tn_live_arrays(), 0);
}

static void a_handle_is_adopted_by_who_updates_it(void **state)
{
    (void)state;
    made m;
    elsewhere(make_and_end, &m);
    tn__handle *const *handles;
    tn__call call = tn__enter();
    tn__array_set(m.value, graph_const());
    tn__leave(call);
    assert_int_equal(tn__pending_handles(&handles), 1);
    assert_ptr_equal(handles[0], tn__handle_of(m.value));
    tn_free(m.value);
    assert_int_equal(tn__pending_handles(&handles), 0);
    tn_free(m.pending);
    tn_free(m.kept_inputs);
}

static tn_status evaluate(tn__node *node)
{
    tn__storage *storage = graph_storage();
    tn__node_set_value(node, storage, 0, NULL, true);
    tn__storage_release(storage);
    return TN_OK;
}

static void *update(void *user)
{
    tn__call call = tn__enter();
    tn__array_set(user, graph_const());
    tn__leave(call);
    return NULL;
}

static void an_update_of_a_foreign_scopes_array_is_evaluated(void **state)
{
    (void)state;
    tn_status (*hook)(tn__node *) = tn__engine.evaluate;
    tn__engine.evaluate = evaluate;
    tn_scope_push();
    tn_array *x = graph_array(graph_value);
    elsewhere(update, x);
    assert_non_null(tn__array_node(x)->storage);
    assert_int_equal(tn__array_node(x)->op, TN__OP_CONST);
    assert_int_equal(tn__handle_of(x)->pending, 0);
    tn_scope_pop();
    tn__engine.evaluate = hook;
}

static void *own_it(void *user)
{
    tn_own(user);
    int *code = malloc(sizeof *code);
    *code = tn_error_code();
    tn_clear_error();
    return code;
}

static void arrays_in_a_foreign_scope_cannot_be_owned(void **state)
{
    (void)state;
    tn_scope_push();
    tn_array *x = graph_array(graph_const);
    pthread_t thread;
    int *code;
    assert_int_equal(pthread_create(&thread, NULL, own_it, x), 0);
    pthread_join(thread, (void **)&code);
    assert_int_equal(*code, TN_ERR_STATE);
    free(code);
    assert_non_null(tn__handle_of(x)->scope);
    tn_scope_pop();
}

/* ---- numbers ---- */

enum { THREADS = 40 };
static pthread_barrier_t barrier;

static void *report_number(void *user)
{
    *(int *)user = tn__thread_number();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void numbers_are_unique_and_reused(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        pthread_t threads[THREADS];
        int number[THREADS];
        pthread_barrier_init(&barrier, NULL, THREADS + 1);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, report_number, &number[i]), 0);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < THREADS; i++) {
            assert_in_range(number[i], 1, THREADS + 1); /* the numbers of earlier rounds again */
            assert_int_not_equal(number[i], tn__thread_number());
            for (int j = 0; j < i; j++)
                assert_int_not_equal(number[i], number[j]);
        }
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&barrier);
    }
}

static void stamps_differ(void **state)
{
    (void)state;
    uint32_t last = tn__stamp();
    assert_int_not_equal(last, 0);
    assert_int_not_equal(tn__stamp(), last);
}

/* ---- streams ---- */

enum { ITEMS = 200000, RING = 64 };
static tn_array *_Atomic ring[RING];

static void *produce(void *user)
{
    int kind = *(int *)user;
    tn__storage *storage = graph_storage();
    for (int i = 0; i < ITEMS; i++) {
        while (atomic_load(&ring[i % RING]))
            sched_yield();
        tn__call call = tn__enter();
        tn__node *node = kind == 2 ? graph_const() : tn__node_value(storage, TN_FLOAT32, graph_shape(), 0, NULL);
        tn_array *x = tn__leave_array(call, node);
        atomic_store(&ring[i % RING], kind == 0 ? tn_own(x) : x);
    }
    for (int i = 0; i < RING; i++)
        while (atomic_load(&ring[i]))
            sched_yield();
    tn__storage_release(storage);
    return NULL;
}

/* One thread makes arrays and another frees them: memory must come back to the one that makes. Kinds: owned values,
 * values in a scope, pending. */
static void streams_of_arrays_need_bounded_memory(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        pthread_t thread;
        graph_device();
        tn__fail_allocation_after(-1);
        assert_int_equal(pthread_create(&thread, NULL, produce, &kind), 0);
        for (int i = 0; i < ITEMS; i++) {
            tn_array *x;
            while (!(x = atomic_load(&ring[i % RING])))
                sched_yield();
            tn_free(x);
            atomic_store(&ring[i % RING], NULL);
        }
        pthread_join(thread, NULL);
        assert_true(tn__fail_allocation_after(-1) < 60);
        assert_int_equal(tn_live_arrays(), 0);
    }
}

/* Several threads make, exchange and free at once. */
static void *exchange(void *user)
{
    uint32_t state = *(uint32_t *)user;
    int bad = 0;
    for (int i = 0; i < 20000; i++) {
        state = state * 1664525u + 1013904223u;
        tn_scope_push();
        tn_array *x = graph_array(graph_const), *y = graph_exp(x), *z = graph_add(x, y);
        tn__storage *storage = graph_storage();
        tn__node_set_value(tn__array_node(z), storage, 0, NULL, state >> 30 & 1); /* keeps pending inputs, or not */
        tn__storage_release(storage);
        tn__pending_sweep();
        if (state >> 29 & 1)
            tn_own(z);
        else
            z = tn_own(graph_array(graph_value));
        tn_array *other = atomic_exchange(&ring[state >> 24 & 7], z);
        if (other) {
            tn__call call = tn__enter();
            tn__node *node = tn__node_of(other, "test");
            bad += tn__node_is_error(node);
            tn__leave(call);
            tn_free(other);
        }
        tn_scope_pop();
    }
    *(uint32_t *)user = (uint32_t)bad;
    return NULL;
}

static void threads_exchange_arrays(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    pthread_t threads[COUNT];
    uint32_t result[COUNT];
    int released = graph_released;
    for (int i = 0; i < COUNT; i++) {
        result[i] = graph_random(1u << 30);
        assert_int_equal(pthread_create(&threads[i], NULL, exchange, &result[i]), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(result[i], 0);
    }
    for (int i = 0; i < RING; i++)
        tn_free(atomic_exchange(&ring[i], NULL));
    assert_int_equal(tn_live_arrays(), 0);
    assert_true(graph_released - released >= COUNT * 20000);
}

#define TEST(name) cmocka_unit_test_teardown(name, graph_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(evaluated_handles_without_owner_go_at_once),
        TEST(handles_in_a_scope_go_at_the_owners_next_call),
        TEST(pending_handles_go_at_the_owners_next_call),
        TEST(what_an_ended_thread_leaves_can_be_freed),
        TEST(pending_operands_of_other_threads_are_errors),
        TEST(a_gradient_recorded_by_an_ended_thread_goes),
        TEST(a_handle_is_adopted_by_who_updates_it),
        TEST(an_update_of_a_foreign_scopes_array_is_evaluated),
        TEST(arrays_in_a_foreign_scope_cannot_be_owned),
        TEST(numbers_are_unique_and_reused),
        TEST(stamps_differ),
        TEST(streams_of_arrays_need_bounded_memory),
        TEST(threads_exchange_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
