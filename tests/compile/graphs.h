/* SPDX-License-Identifier: MIT */
/* The compiler's graphs, made by hand for its tests. What can't be made fails the test. */
#ifndef TESTS_COMPILE_GRAPHS_H
#define TESTS_COMPILE_GRAPHS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "compile/compile.h"
#include "compile/memory/planner.h"
#include "core/memory.h"
#include "support/random.h"

/* Interned shapes: shape(2, 3, 4) is (3, 4). */
const tn__shape *shape(int ndim, ...);

/* A float32 leaf in C order with a storage of its own. */
int graph_leaf(tn__graph *graph, const tn__shape *shape, bool donatable);
/* A float32 constant with a scalar of its own. */
int graph_const(tn__graph *graph, const tn__shape *shape);
/* A float32 value of one or two (b >= 0) inputs. */
int graph_op(tn__graph *graph, tn__op op, const tn__shape *shape, int a, int b);
int graph_expand(tn__graph *graph, int a, const tn__shape *to);
int graph_reduce(tn__graph *graph, tn__op op, int a, uint32_t axes);
int graph_permute(tn__graph *graph, int a, const uint8_t *perm);
/* start and step an axis, extents in `shape`. */
int graph_slice(tn__graph *graph, int a, const int64_t *start, const int64_t *step, const tn__shape *shape);
void graph_result(tn__graph *graph, int v);
/* The graph's plan of fused kernels for a device, verified. */
tn__plan *graph_plan(const tn__graph *graph, const tn__device *device, tn_matmul_precision precision);
/* The same in float32, and the graph is freed. */
tn__plan *graph_plan_once(tn__graph *graph, const tn__device *device);

/* A graph of elementwise values, reductions, views, products and updates, all of shape (n, n) or reduced ones of it,
 * with some results; a stranger one with every call. */
void graph_random(tn__graph *graph, test_random *chance);

#endif
