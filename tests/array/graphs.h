/* SPDX-License-Identifier: MIT */
/* Small graphs for the tests of nodes, handles and scopes, made below the public functions. */
#ifndef TESTS_ARRAY_GRAPHS_H
#define TESTS_ARRAY_GRAPHS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tanso/device.h>

#include "array/build.h"
#include "core/memory.h"

/* Everything here is float32 of shape (2, 3) on the CPU. */
tn__device *graph_device(void);
const tn__shape *graph_shape(void);

/* A storage whose release is counted in graph_released. */
tn__storage *graph_storage(void);
extern _Atomic int graph_released;

/* Borrowed nodes, to be called between tn__enter and tn__leave. */
tn__node *graph_const(void);
tn__node *graph_unary(tn__op op, tn__node *a);
tn__node *graph_binary(tn__op op, tn__node *a, tn__node *b);
/* A value with a storage of its own. */
tn__node *graph_value(void);

/* Handles in the innermost scope. */
tn_array *graph_array(tn__node *(*make)(void));
tn_array *graph_exp(const tn_array *x);
tn_array *graph_add(const tn_array *x, const tn_array *y);
/* Gives a handle's node a value with a storage of its own, as evaluation would. */
void graph_compute(tn_array *x, bool drop_inputs);

/* Runs f(user) in a thread of its own, with `stack` bytes (0: as usual), and waits for its end. */
void graph_in_thread(void *(*f)(void *), void *user, size_t stack);
/* Numbers below `bound` of support/random.h's seed; graph_seed is for messages. */
extern uint64_t graph_seed;
uint32_t graph_random(uint32_t bound);

/* For cmocka_unit_test_teardown: nothing latched, no scope open, no array alive. */
int graph_nothing_left(void **state);

#endif
