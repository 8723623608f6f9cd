/* SPDX-License-Identifier: MIT */
/*
 * Rows: reduced elements are neighbours in memory, and 2^n threads take a row: few for a short row, so that a warp has
 * several rows; a whole block for a long one. Values that several passes need stay in registers if the row fits; else
 * its loads stay in shared memory; if they do not fit there either, each pass reads the row again.
 */
#include "compile/emit/gpu/form.h"

#include <stdio.h>

/* Opens the loop over a thread's vectors: those in registers, or the next few of a longer row. `full`: all of them are
 * complete. */
static void open_vector(tn__printer *p, const tn__gpu_form *f, bool full)
{
    tn__line(p, "@unroll");
    tn__line(p, "for (int q = 0; q < %d; q++) {", f->batch);
    tn__line(p, "const ix id = at + q * %d;", f->lanes);
    tn__gpu_decode(p, f, p->nest->reduced, "id");
    if (full)
        tn__line(p, "const int live = %d;", f->width);
    else if (f->in_registers &&
             f->lanes == TN__GPU_MOST) /* the row has as few vectors as possible: all of a thread's but its last are
                                          there */
        tn__line(p, "const int live = q < %d || id < end ? %d : 0;", f->batch - 1, f->width);
    else
        tn__line(p, "const int live = id < end ? %d : 0;", f->width);
}

static void vectors(tn__printer *p, const tn__gpu_form *f, int level, bool full)
{
    open_vector(p, f, full);
    tn__gpu_load(p, f, level);
    tn__line(p, "}");
    open_vector(p, f, full);
    if (!full)
        tn__line(p, "if (!live) continue;");
    tn__gpu_load_late(p, f, level);
    tn__gpu_keep(p, f, level);
    tn__gpu_declare_stores(p, f, false, level);
    tn__gpu_elements(p, f, level);
    tn__gpu_count_few(p, f, level, false);
    if (tn__nest_has_stores(p->nest, level)) {
        tn__line(p, "if (there) {");
        tn__gpu_store(p, f, false, level);
        tn__line(p, "}");
    }
    tn__line(p, "}");
    tn__gpu_count_few(p, f, level, true);
}

static void all_vectors(tn__printer *p, const tn__gpu_form *f, int level, bool in_full)
{
    if (f->in_registers) {
        tn__line(p, "{");
        tn__line(p, "const ix at = lane;");
        vectors(p, f, level, false);
        tn__line(p, "}");
        return;
    }
    char step[16];
    snprintf(step, sizeof step, "%d", f->batch * f->lanes);
    tn__line(p, "ix at = begin + lane;");
    for (int full = in_full; full >= 0; full--) { /* the text without tests first: there the loads of vectors do not
                                                     wait for one another */
        tn__line(p, "for (; at < end - %d; at += %s) {", full ? (f->batch - 1) * f->lanes : 0,
                 p->nest->part == TN__PART_PARTIAL ? "step" : step);
        tn__gpu_declare(p, f, level);
        vectors(p, f, level, full);
        tn__line(p, "}");
    }
}

static void pass(tn__printer *p, const tn__gpu_form *f, int level)
{
    p->pass = level;
    tn__gpu_declare_inverses(p, level);
    if (f->in_registers)
        tn__gpu_declare(p, f, level);
    tn__line(p, "{");
    tn__gpu_declare_few(p, f, level);
    p->whole = tn__gpu_repeats(p, f, level) && tn__gpu_begin_unchecked(p, level);
    p->unchecked = p->whole;
    all_vectors(p, f, level, true);
    p->unchecked = false;
    if (p->whole) {
        tn__line(p, "if (!sure) {");
        all_vectors(p, f, level, false);
        tn__line(p, "}");
    }
    p->whole = false;
    tn__gpu_add_few(p, f, level);
    tn__line(p, "}");
}

/* Declares the results of a level as variables of the row. */
static void finish(tn__printer *p, const tn__gpu_form *f, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        if (p->nest->reduction[r].level != level)
            continue;
        int e = tn__nest_reduced_expr(p->nest, r);
        if (tn__ops[p->nest->reduction[r].op].props & TN_ARG)
            tn__line(p, "const tn_i64 v%d = at%d < R ? at%d : 0;", e, r, r);
        else
            tn__line(p, "const %s v%d = %s(%s%d);", tn__emit_result_type(p, r), e, tn__gpu_narrowing(p, f, r),
                     tn__gpu_sum(p->nest, f, r), r);
        p->expr_note[e].printed = TN__SCOPE_ITEM;
    }
}

/* Opens the loop over the segments of a row, which are interleaved, so that at any time all blocks read neighbouring
 * memory. */
static void open_turns(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    int each = f->batch * f->lanes;
    tn__line(p, "const ix part = item / (ix)n[%d], row = item - part * (ix)n[%d];", TN__GPU_GROUPS(n),
             TN__GPU_GROUPS(n));
    tn__line(p, "const ix begin = part * %d, end = (ix)n[%d], step = (ix)n[%d] * %d;", each, TN__GPU_ROWS_AT(n),
             TN__GPU_SEGMENTS(n), each);
}

static void store_pieces(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    tn__line(p, "if (there && lane == 0) {");
    for (int r = 0; r < n->reduction_count; r++) {
        tn__line(p, "%c%d[(tn_i64)part * n[%d] + row] = %s%d;", tn__gpu_partial(n, r), n->partial[r][0],
                 TN__GPU_GROUPS(n), tn__gpu_sum(n, f, r), r);
        if (tn__ops[n->reduction[r].op].props & TN_ARG)
            tn__line(p, "p%d[(tn_i64)part * n[%d] + row] = at%d;", n->partial[r][1], TN__GPU_GROUPS(n), r);
    }
    tn__line(p, "}");
}

/* Declares at the top of the kernel the variables of expressions that are the same for all elements and known before
 * the first pass. */
static void hoist_constants(tn__printer *p, int index)
{
    const tn__expr *e = &p->nest->expr[index];
    if (p->expr_note[index].seen)
        return;
    p->expr_note[index].seen = true;
    if (e->level == 0 && !e->loops) {
        tn__emit_hoist(p, index, tn__nest_loops(p->nest));
        return;
    }
    for (int i = 0; i < e->arity; i++)
        hoist_constants(p, e->arg[i]);
}

void tn__gpu_emit_rows(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    int combinations = 0;
    bool partial = n->part == TN__PART_PARTIAL;
    p->vector = "[q]";
    tn__gpu_begin(p, f);
    for (int r = 0; r < n->reduction_count; r++)
        hoist_constants(p, n->reduction[r].arg);
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row)
            hoist_constants(p, n->store[s].expr);
    tn__gpu_find(p, f, n->reduced);
    tn__gpu_declare_shared(p, f);
    if (f->cluster) {
        tn__line(p, "const int lane = tn_rank() * %d + @thread;", f->threads);
        tn__line(p, "for (ix mine = block / %d; mine < (ix)n[0]; mine += blocks / %d) {", f->cluster, f->cluster);
    } else {
        tn__line(p, "const int lane = @thread %% %d, together = @threads / %d;", f->lanes, f->lanes);
        tn__line(p, "for (ix first = (ix)block * together; first < (ix)n[0]; first += (ix)blocks * together) {");
        tn__line(p, "const ix mine = first + (ix)@thread / %d;", f->lanes);
    }
    tn__line(p, "const bool there = mine < (ix)n[0];");
    tn__line(p, "const ix item = there ? mine : (ix)n[0] - 1;");
    if (partial)
        open_turns(p, f);
    else
        tn__gpu_open_segment(p, false, "row");
    tn__gpu_decode(p, f, tn__nest_loops(n) & ~n->reduced, "row");
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, n->reduced);
        tn__gpu_start(p, f, level, 0);
        pass(p, f, level);
        tn__gpu_combine_lanes(p, f, level, &combinations);
        if (!partial)
            finish(p, f, level);
    }
    if (partial) {
        store_pieces(p, f);
    } else if (tn__gpu_has_row_values(n)) {
        bool shuffled = f->lanes <= 32; /* then shuffles have combined the values, which is no memory barrier */
        if (f->lanes > 1 && (shuffled || tn__gpu_ends_uncombined(n)))
            tn__line(p, f->cluster ? "tn_join();" : shuffled ? "@warp_barrier;" : "@barrier;");
        tn__line(p, "if (there && lane == 0) {");
        p->scope = TN__SCOPE_ITEM;
        tn__emit_stores(p, true, 0);
        tn__line(p, "}");
    }
    if (combinations % 2) /* after an odd number, the next row's first combination would use the same area as this
                             row's last one */
        tn__line(p, f->cluster ? "tn_join();" : "@barrier;");
    tn__line(p, "}");
}
