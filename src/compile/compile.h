/* SPDX-License-Identifier: MIT */
/*
 * From a graph to a program: rewrite -> fuse -> schedule -> emit -> plan memory. Each pass has a file of its own; a
 * verifier looks at the graph before and after rewriting, and at the plan.
 */
#ifndef TN_COMPILE_COMPILE_H
#define TN_COMPILE_COMPILE_H

#include "compile/ir/graph.h"
#include "compile/ir/plan.h"

typedef struct tn__compile_options {
    bool kernels;        /* emit fused kernels; else operations one by one (the reference evaluator) */
    bool fusion;         /* with kernels: fuse; else a kernel an operation */
    bool plan_memory;    /* reuse arena space and donated storages; else every value has its own */
    int precision;       /* a tn_matmul_precision, for the steps that multiply float32 */
} tn__compile_options;

/* Compiles a copy of `graph`. NULL with a latched error (TN_ERR_MEMORY, TN_ERR_INTERNAL). */
tn__plan *tn__compile(const tn__graph *graph, const tn__device *device, const tn__compile_options *options);
void tn__plan_free(tn__plan *plan);

#endif
