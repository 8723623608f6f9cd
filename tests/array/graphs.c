/* SPDX-License-Identifier: MIT */
#include "array/graphs.h"

#include <pthread.h>
#include <stdatomic.h>

#include "support/random.h"

_Atomic int graph_released;
uint64_t graph_seed;

tn__device *graph_device(void)
{
    tn__device *device = tn__device_get(tn_cpu());
    assert_non_null(device);
    return device;
}

const tn__shape *graph_shape(void) { return tn__shape_intern(2, (int64_t[]){2, 3}); }

static void count_release(void *user, void *memory)
{
    (void)user;
    free(memory);
    atomic_fetch_add(&graph_released, 1);
}

tn__storage *graph_storage(void)
{
    tn__storage *storage =
        tn__storage_wrap(graph_device(), calloc(6, sizeof(float)), 6 * sizeof(float), count_release, NULL);
    assert_non_null(storage);
    return storage;
}

tn__node *graph_const(void)
{
    return tn__node_new(TN__OP_CONST, TN_FLOAT32, graph_shape(), graph_device(), 0, NULL, (tn__attr){.raw = {0}});
}

tn__node *graph_unary(tn__op op, tn__node *a)
{
    return tn__node_new(op, TN_FLOAT32, graph_shape(), graph_device(), 1, &a, (tn__attr){.raw = {0}});
}

tn__node *graph_binary(tn__op op, tn__node *a, tn__node *b)
{
    tn__node *in[] = {a, b};
    return tn__node_new(op, TN_FLOAT32, graph_shape(), graph_device(), 2, in, (tn__attr){.raw = {0}});
}

tn__node *graph_value(void)
{
    tn__storage *storage = graph_storage();
    tn__node *node = tn__node_value(storage, TN_FLOAT32, graph_shape(), 0, NULL);
    tn__storage_release(storage);
    return node;
}

tn_array *graph_array(tn__node *(*make)(void))
{
    tn__call call = tn__enter();
    return tn__leave_array(call, make());
}

tn_array *graph_exp(const tn_array *x)
{
    tn__call call = tn__enter();
    return tn__leave_array(call, graph_unary(TN__OP_EXP, tn__node_of(x, "exp")));
}

tn_array *graph_add(const tn_array *x, const tn_array *y)
{
    tn__call call = tn__enter();
    tn__node *a = tn__node_of(x, "add"), *b = tn__node_of(y, "add");
    return tn__leave_array(call, graph_binary(TN__OP_ADD, a, b));
}

void graph_compute(tn_array *x, bool drop_inputs)
{
    tn__storage *storage = graph_storage();
    tn__node_set_value(tn__array_node(x), storage, 0, NULL, drop_inputs);
    tn__storage_release(storage);
    tn__pending_sweep();
}

void graph_in_thread(void *(*f)(void *), void *user, size_t stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack)
        assert_int_equal(pthread_attr_setstacksize(&attributes, stack), 0);
    assert_int_equal(pthread_create(&thread, &attributes, f, user), 0);
    pthread_attr_destroy(&attributes);
    pthread_join(thread, NULL);
}

uint32_t graph_random(uint32_t bound)
{
    static uint64_t state;
    if (!graph_seed)
        state = graph_seed = test_random_new().state;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % bound);
}

int graph_nothing_left(void **unused)
{
    (void)unused;
    int left = (int)tn_live_arrays();
    if (left)
        print_error("%d arrays are still alive\n", left);
    if (!tn_ok())
        print_error("latched: %s\n", tn_error());
    return left || !tn_ok() || tn_scope_depth() || tn__enter() != 0;
}
