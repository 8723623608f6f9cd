/* SPDX-License-Identifier: MIT */
/*
 * Loops of kernels in CUDA C. A nest runs over `blocks` blocks of threads, this one being number `block`:
 *
 *     elementwise   a thread takes every so-manieth element
 *     rows          a block takes a row; its threads accumulate every so-manieth element, then combine by halves
 *     columns       a thread takes a column and runs down its rows
 *
 * The order in which a reduction combines depends on the shape and the number of threads alone.
 */
#include "compile/emit.h"

#define THREADS 256
#define MAX_ROW_THREADS 512
#define MAX_BLOCKS 4096

/* ---- elementwise ---- */

static void each_thread(tn__printer *p, uint32_t loops)
{
    tn__line(p, "for (tn_i64 item = block * blockDim.x + threadIdx.x; item < n[0]; item += blocks * blockDim.x) {");
    tn__emit_decode(p, loops, "item");
}

static void emit_elementwise(tn__printer *p)
{
    tn__nest *n = p->nest;
    p->vector_loop = n->loop_count - 1;
    each_thread(p, tn__nest_loops(n));
    tn__emit_scope(p);
    tn__emit_stores(p, false, 0);
    tn__line(p, "}");
}

/* ---- reductions: what rows and columns share ---- */

static void start(tn__printer *p, int level)
{
    EACH_PLAIN(p, r, level)
        tn__line(p, "%s t%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
    EACH_POSITION(p, r, level)
        tn__line(p, "%s t%d = %s; tn_i64 at%d = R;", tn__emit_type(p, r), r, tn__emit_identity(p, r), r);
}

static void accumulate(tn__printer *p, int level, const char *first, const char *step)
{
    tn__nest *n = p->nest;
    tn__line(p, "for (tn_i64 r = %s; r < R; r += %s) {", first, step);
    tn__emit_decode(p, n->reduced, "r");
    tn__emit_scope(p);
    tn__emit_element(p, level);
    EACH_PLAIN(p, r, level)
        tn__line(p, "t%d = %s(t%d, v%d);", r, tn__emit_function(p, r), r, n->reduction[r].arg);
    EACH_POSITION(p, r, level) {
        tn__emit_need(p, n->reduction[r].arg);
        tn__line(p, "if (at%d == R || %s(t%d, v%d)) { t%d = v%d; at%d = r; }", r, tn__emit_function(p, r), r,
                 n->reduction[r].arg, r, n->reduction[r].arg, r);
    }
    tn__line(p, "}");
}

/* The results as variables of the item. */
static void finish(tn__printer *p, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        if (p->nest->reduction[r].level != level)
            continue;
        int e = tn__nest_reduced_expr(p->nest, r);
        if (tn__ops[p->nest->reduction[r].op].props & TN_ARG)
            tn__line(p, "const tn_i64 v%d = at%d < R ? at%d : 0;", e, r, r);
        else
            tn__line(p, "const %s v%d = %s(t%d);", tn__emit_type(p, r), e, tn__emit_rounding(p, r), r);
        p->nest->expr[e].printed = ITEM;
    }
}

static bool has_row_values(const tn__nest *n)
{
    for (int s = 0; s < n->store_count; s++)
        if (n->store[s].row)
            return true;
    return false;
}

static void store_row_values(tn__printer *p)
{
    p->scope = ITEM;
    tn__emit_stores(p, true, 0);
}

/* ---- rows ---- */

/* Combines the threads' accumulators by halves; all threads get the result. */
static void combine_threads(tn__printer *p, int level)
{
    EACH_PLAIN(p, r, level) {
        const char *type = tn__emit_type(p, r);
        tn__line(p, "{");
        tn__line(p, "%s *const part = (%s *)tn_parts;", type, type);
        tn__line(p, "part[threadIdx.x] = t%d;", r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "for (int h = blockDim.x / 2; h; h /= 2) {");
        tn__line(p, "if (threadIdx.x < h) part[threadIdx.x] = %s(part[threadIdx.x], part[threadIdx.x + h]);",
                 tn__emit_function(p, r));
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
        tn__line(p, "t%d = part[0];", r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
    }
    EACH_POSITION(p, r, level) {
        const char *type = tn__emit_type(p, r);
        tn__line(p, "{");
        tn__line(p, "%s *const part = (%s *)tn_parts;", type, type);
        tn__line(p, "part[threadIdx.x] = t%d;", r);
        tn__line(p, "tn_places[threadIdx.x] = at%d;", r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "for (int h = blockDim.x / 2; h; h /= 2) {");
        tn__line(p, "if (threadIdx.x < h) {");
        tn__line(p, "const %s a = part[threadIdx.x], b = part[threadIdx.x + h];", type);
        tn__line(p, "const tn_i64 i = tn_places[threadIdx.x], j = tn_places[threadIdx.x + h];");
        tn__line(p, "if (j < R && (i == R || %s(a, b) || (!%s(b, a) && j < i))) {", tn__emit_function(p, r),
                 tn__emit_function(p, r));
        tn__line(p, "part[threadIdx.x] = b;");
        tn__line(p, "tn_places[threadIdx.x] = j;");
        tn__line(p, "}");
        tn__line(p, "}");
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
        tn__line(p, "at%d = tn_places[0];", r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
    }
}

static void emit_rows(tn__printer *p)
{
    tn__nest *n = p->nest;
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1)
            p->vector_loop = l;
    if (__builtin_popcount(n->reduced) > 1)
        p->vector_loop = -1;
    tn__line(p, "for (tn_i64 item = block; item < n[0]; item += blocks) {");
    tn__emit_decode(p, tn__nest_loops(n) & ~n->reduced, "item");
    tn__emit_extent(p);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        bool reduces = tn__nest_reductions(n, level, false) + tn__nest_reductions(n, level, true) > 0;
        tn__emit_hoist_pass(p, level, n->reduced);
        start(p, level);
        accumulate(p, level, "threadIdx.x", "blockDim.x");
        if (reduces)
            combine_threads(p, level);
        finish(p, level);
    }
    if (has_row_values(n)) {
        tn__line(p, "if (threadIdx.x == 0) {");
        store_row_values(p);
        tn__line(p, "}");
    }
    tn__line(p, "}");
}

/* ---- columns ---- */

static void emit_columns(tn__printer *p)
{
    tn__nest *n = p->nest;
    p->vector_loop = n->loop_count - 1;
    each_thread(p, tn__nest_loops(n) & ~n->reduced);
    tn__emit_extent(p);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, n->reduced);
        start(p, level);
        accumulate(p, level, "0", "1");
        finish(p, level);
    }
    store_row_values(p);
    tn__line(p, "}");
}

/* ---- the target ---- */

static void loops(tn__printer *p)
{
    if (!p->nest->reduced)
        emit_elementwise(p);
    else if (p->nest->last_kept)
        emit_columns(p);
    else
        emit_rows(p);
}

static int64_t items(const tn__nest *n) { return n->reduced ? tn__nest_rows(n) : tn__nest_points(n); }

/* All that a kernel needs comes by value, so that a graph's node holds it: addresses, words, scalars. What overwrites does
 * nothing after a failure (see program.h). */
static void entry(tn__text *text, const tn__step *step, int number, int count, const tn__nest_call *call)
{
    tn__text_addf(text,
                  "struct tn_k%d { void *p[%d]; tn_i64 n[%d]; tn_u64 s[%d]; };\n"
                  "extern \"C\" __global__ void k%d(const __grid_constant__ tn_k%d a, const __grid_constant__ tn_failure f)\n"
                  "{\n"
                  "    TN_STOP_IF_FAILED(f);\n"
                  "    tn_i64 *const fault = (tn_i64 *)&f;\n",
                  number, step->operand_count, step->param_count, step->scalar_count ? step->scalar_count : 1, number,
                  number);
    for (int i = 0; i < count; i++)
        tn__text_addf(text, "%s    nest%d(a.p, a.n + %d, a.s, blockIdx.x, gridDim.x, fault);\n",
                      i ? "    __syncthreads();\n" : "", call[i].function, call[i].param);
    tn__text_add(text, "}\n\n");
}

/* A block for each row or THREADS elements; for several nests, one block that runs through them. */
static void launch(tn__nest *const *nest, int count, tn__step *step)
{
    bool rows = nest[0]->reduced && !nest[0]->last_kept;
    int64_t reduced = rows && tn__nest_rows(nest[0]) ? tn__nest_points(nest[0]) / tn__nest_rows(nest[0]) : 0;
    step->threads = THREADS;
    step->blocks = 1;
    if (count > 1)
        return;
    if (rows)
        for (step->threads = 32; step->threads < MAX_ROW_THREADS && step->threads < reduced;)
            step->threads *= 2;
    step->blocks = rows ? step->items : (step->items + THREADS - 1) / THREADS;
    step->blocks = step->blocks > MAX_BLOCKS ? MAX_BLOCKS : step->blocks < 1 ? 1 : step->blocks;
}

const tn__emit_target tn__emit_target_cuda = {
    .nest_head = "static __device__ __forceinline__ void nest%d(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 block, "
                 "tn_i64 blocks, tn_i64 *fault)\n",
    .own_scalars = true,
    .helpers = "struct tn_failure { tn_u64 guard, latch, report, run, who; };\n"
               "#define TN_STOP_IF_FAILED(f) if (f.guard && *(const volatile tn_u64 *)f.guard) return\n"
               "#define TN_FAULT(fault, operand, index) tn_fail((const tn_failure *)fault, operand, index)\n"
               "static __device__ __noinline__ void tn_fail(const tn_failure *f, tn_i64 operand, tn_i64 index)\n"
               "{\n"
               "    volatile tn_i64 *report = (volatile tn_i64 *)f->report;\n"
               "    if (atomicCAS((tn_u64 *)f->latch, 0ull, 1ull) != 0)\n"
               "        return;\n"
               "    report[1] = (tn_i64)f->run;\n"
               "    report[2] = (tn_i64)f->who;\n"
               "    report[3] = operand;\n"
               "    report[4] = index;\n"
               "    __threadfence_system();\n"
               "    report[0] = 1;\n"
               "}\n"
               "__shared__ tn_u64 tn_parts[512];\n"
               "__shared__ tn_i64 tn_places[512];\n",
    .loops = loops,
    .items = items,
    .entry = entry,
    .launch = launch,
};
