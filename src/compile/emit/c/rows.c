/* SPDX-License-Identifier: MIT */
/*
 * Rows in C: nests whose last loop is reduced. An item is a row; passes over it accumulate in lanes (lanes.c).
 * In two steps, an item of the first is a block of a row.
 */
#include "compile/emit/c/c.h"

#include <stdio.h>

#include "device/order.h"

#define TOGETHER    128 /* elements of a search for a position, */
#define CLOSER      16  /* and of these where one is better */

static void begin_position(tn__printer *p, int r)
{
    tn__line(p, "%s best%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
    tn__line(p, "tn_i64 at%d = 0;", r);
}

/* What is looked at of the element r. */
static void element_of(tn__printer *p, int reduction)
{
    tn__emit_decode(p, p->nest->reduced, "r");
    tn__emit_scope(p);
    tn__emit_need(p, p->nest->reduction[reduction].arg);
}

/* Goes on with the next elements where none of so many from `start` on is the best so far; at the end there may be
 * fewer. */
static void look_together(tn__printer *p, int r, const char *start, const char *end, int count)
{
    tn__line(p, "int better_%s = %s + %d > %s;", start, start, count, end);
    tn__line(p, "if (!better_%s) {", start);
    tn__line(p, "TN_LANES");
    tn__line(p, "for (int j = 0; j < %d; j++) {", count);
    tn__line(p, "const tn_i64 r = %s + j;", start);
    element_of(p, r);
    tn__line(p, "better_%s |= %s(best%d, v%d);", start, tn__emit_function(p, r), r, p->nest->reduction[r].arg);
    tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, "if (!better_%s)", start);
    tn__line(p, "    continue;");
}

/* Of the elements numbered from `first` up to `end`: some, always as many, are looked at together, fewer where one of
 * them is the best so far, and one after the other where that is found. Before the pass's stores, which may overwrite
 * what is looked at. */
static void row_positions(tn__printer *p, int level, const char *first, const char *end)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        int arg = p->nest->reduction[r].arg;
        if (!tn__c_is_position(p->nest, r, level))
            continue;
        begin_position(p, r);
        tn__line(p, "for (tn_i64 r0 = %s; r0 < %s; r0 += %d) {", first, end, TOGETHER);
        look_together(p, r, "r0", end, TOGETHER);
        tn__line(p, "for (tn_i64 q0 = r0; q0 < %s && q0 < r0 + %d; q0 += %d) {", end, TOGETHER, CLOSER);
        look_together(p, r, "q0", end, CLOSER);
        tn__line(p, "for (tn_i64 r = q0; r < %s && r < q0 + %d; r++) {", end, CLOSER);
        element_of(p, r);
        tn__line(p, "if (%s(best%d, v%d)) { best%d = v%d; at%d = r; }", tn__emit_function(p, r), r, arg, r, arg, r);
        for (int open = 3; open; open--)
            tn__line(p, "}");
    }
}

static void name_positions(tn__printer *p, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++)
        if (tn__c_is_position(p->nest, r, level)) {
            int e = tn__nest_reduced_expr(p->nest, r);
            tn__line(p, "const tn_i64 v%d = at%d;", e, r);
            p->expr_note[e].printed = TN__SCOPE_ITEM;
        }
}

static void find_vector_loop(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1)
            p->vector_loop = l;
    if (__builtin_popcount(n->reduced) > 1)
        p->vector_loop = -1;
}

static void pass_without_sums(tn__printer *p, int level, const char *first, const char *end)
{
    const tn__nest *n = p->nest;
    int last = n->loop_count - 1;
    if (__builtin_popcount(n->reduced) > 1) {
        char rounds[32];
        snprintf(rounds, sizeof rounds, "r / n[%d]", TN__EXTENT(last));
        tn__line(p, "for (tn_i64 r = %s, after; r < %s; r = after) {", first, end);
        tn__line(p, "const tn_i64 inside = r %% n[%d], rest = n[%d] - inside;", TN__EXTENT(last), TN__EXTENT(last));
        tn__line(p, "after = r + rest < %s ? r + rest : %s;", end, end);
        tn__emit_decode(p, n->reduced & ~(1u << last), rounds);
        p->vector_loop = last;
        tn__line(p, "TN_INDEPENDENT");
        tn__line(p, "for (tn_i64 x%d = inside; x%d < inside + after - r; x%d++) {", last, last, last);
        tn__emit_scope(p);
        tn__emit_element(p, level);
        tn__line(p, "}");
        tn__line(p, "}");
        p->vector_loop = -1;
        return;
    }
    tn__c_strip strip = {.loop = p->vector_loop, .first = "t0", .end = "t1", .size = TN__C_STRIP, .level = level};
    bool strips = tn__c_has_strip(p, strip.loop, false, level);
    if (strips) {
        tn__line(p, "for (tn_i64 t0 = %s; t0 < %s; t0 += %d) {", first, end, TN__C_STRIP);
        tn__line(p, "const tn_i64 t1 = t0 + %d < %s ? t0 + %d : %s;", TN__C_STRIP, end, TN__C_STRIP, end);
        tn__c_open_strip(p, &strip);
    }
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 r = %s; r < %s; r++) {", strips ? "t0" : first, strips ? "t1" : end);
    tn__emit_decode(p, p->nest->reduced, "r");
    tn__emit_scope(p);
    tn__emit_element(p, level);
    tn__line(p, "}");
    if (strips) {
        tn__c_close_strip(p, &strip);
        tn__line(p, "}");
    }
}

static void whole_rows(tn__printer *p)
{
    const tn__nest *n = p->nest;
    tn__emit_decode(p, tn__nest_loops(n) & ~n->reduced, "item");
    tn__emit_extent(p);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, n->reduced);
        row_positions(p, level, "0", "R");
        if (tn__nest_reductions(n, level, false))
            tn__c_row_sums(p, level);
        else if (tn__nest_has_stores(n, level))
            pass_without_sums(p, level, "0", "R");
        name_positions(p, level);
    }
    p->scope = TN__SCOPE_ITEM;
    tn__emit_stores(p, true, 0);
}

/* ---- in two steps ---- */

static void row_blocks(tn__printer *p)
{
    const tn__nest *n = p->nest;
    tn__emit_extent(p);
    tn__line(p, "const tn_i64 blocks = (R + %d) / %d, row = item / blocks;", TN__REDUCE_BLOCK - 1, TN__REDUCE_BLOCK);
    tn__line(p, "const tn_i64 b = item %% blocks * %d, e = b + %d < R ? b + %d : R;", TN__REDUCE_BLOCK,
             TN__REDUCE_BLOCK, TN__REDUCE_BLOCK);
    tn__emit_decode(p, tn__nest_loops(n) & ~n->reduced, "row");
    tn__emit_hoist_pass(p, 0, n->reduced);
    row_positions(p, 0, "b", "e");
    if (tn__nest_reductions(n, 0, false))
        tn__c_block_sums(p);
    else if (tn__nest_has_stores(n, 0))
        pass_without_sums(p, 0, "b", "e");
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0)) {
            tn__line(p, "p%d[item] = best%d;", n->partial[r][0], r);
            tn__line(p, "p%d[item] = at%d;", n->partial[r][1], r);
        }
}

static void row_results(tn__printer *p)
{
    const tn__nest *n = p->nest;
    tn__emit_decode(p, tn__nest_loops(n) & ~n->reduced, "item");
    tn__emit_extent(p);
    tn__line(p, "const tn_i64 blocks = (R + %d) / %d, first = item * blocks;", TN__REDUCE_BLOCK - 1, TN__REDUCE_BLOCK);
    if (tn__nest_reductions(n, 0, false))
        tn__c_join_blocks(p);
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0)) {
            begin_position(p, r);
            tn__line(p, "for (tn_i64 b = first; b < first + blocks; b++)");
            tn__line(p, "    if (%s(best%d, p%d[b])) { best%d = p%d[b]; at%d = p%d[b]; }", tn__emit_function(p, r), r,
                     n->partial[r][0], r, n->partial[r][0], r, n->partial[r][1]);
        }
    name_positions(p, 0);
    p->scope = TN__SCOPE_ITEM;
    tn__emit_stores(p, true, 0);
}

void tn__c_emit_rows(tn__printer *p)
{
    static void (*const of_part[])(tn__printer *) = {
        [TN__PART_WHOLE] = whole_rows, [TN__PART_PARTIAL] = row_blocks, [TN__PART_FINAL] = row_results};
    find_vector_loop(p);
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    of_part[p->nest->part](p);
    tn__line(p, "}");
}
