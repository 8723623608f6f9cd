/* SPDX-License-Identifier: MIT */
/* Random expressions: the same seed builds the same graph, whatever way it is then evaluated. */
#ifndef TN_TESTS_ENGINE_RANDOM_GRAPH_H
#define TN_TESTS_ENGINE_RANDOM_GRAPH_H

#include <tanso.h>

#define GRAPH_MAX 48 /* arrays of one graph */

typedef struct random_graph {
    tn_array *x[GRAPH_MAX];  /* those still held are the results */
    bool product[GRAPH_MAX]; /* of matrices: not multiplied by a number, which may become one
                                product with another rounding */
    int at[GRAPH_MAX];       /* on which device: 0 to 2 */
    int count;
    char *trace; /* what was recorded, one line an array */
    size_t trace_size;
} random_graph;

/* Records a graph, of arrays in the innermost scope; some are evaluated on the way. */
void random_graph_build(random_graph *g, uint64_t seed);
void random_graph_free(random_graph *g);
/* Graphs that are built from now on are of three devices, which may be one and the same; NULL: of the current one. */
void random_graph_devices(const tn_device *three);

#endif
