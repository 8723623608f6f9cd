/* SPDX-License-Identifier: MIT */
/*
 * Rows in C: nests whose last loop is reduced. An item is a row; passes over it accumulate in lanes (device/order.h).
 * In two steps, an item of the first is a block of a row.
 */
#include "compile/emit/c/c.h"

#include <stdio.h>

#include "device/order.h"

#define TOGETHER    128 /* elements of a search for a position, */
#define CLOSER      16  /* and of these where one is better */
#define LANES_BYTES 256 /* of lanes that may be as many as one likes */

static void combine_lanes(tn__printer *p, int level)
{
    tn__emit_scope(p);
    tn__emit_element(p, level);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "lane%d[j] = %s(lane%d[j], v%d);", r, tn__emit_function(p, r), r, p->nest->reduction[r].arg);
}

/* Lanes that a row has elements for, of a short row; their number as a constant is what makes vectors of them. */
static int lanes_of(const tn__nest *n)
{
    int64_t length = n->extent[n->loop_count - 1];
    bool short_rows = __builtin_popcount(n->reduced) == 1 && length < TN__REDUCE_LANES;
    for (int r = 0; r < n->reduction_count; r++)
        short_rows &= !n->reduction[r].user; /* whose identity may change what it is combined with */
    return !short_rows ? TN__REDUCE_LANES : length <= 4 ? 4 : length <= 8 ? 8 : TN__REDUCE_LANES;
}

/* Of the reductions of a pass: more lanes, which fill some vectors, where the order changes nothing: integers, bool. */
static int lanes_of_pass(const tn__nest *n, int level)
{
    int size = 1;
    for (int r = 0; r < n->reduction_count; r++) {
        if (n->reduction[r].level != level || tn__c_is_position(n, r, level))
            continue;
        if (n->reduction[r].user || tn__dtypes[n->reduction[r].dtype].class >= TN__CLASS_FLOAT)
            return TN__REDUCE_LANES;
        size = tn__dtypes[n->reduction[r].dtype].size > size ? tn__dtypes[n->reduction[r].dtype].size : size;
    }
    int lanes = LANES_BYTES / size;
    while (lanes > TN__REDUCE_LANES && 2 * lanes > n->extent[n->loop_count - 1])
        lanes /= 2;
    return lanes;
}

static void halve(tn__printer *p, int level, const char *lanes, int count)
{
    for (int h = count / 2; h; h /= 2) {
        tn__line(p, "TN_LANES");
        tn__line(p, "for (int j = 0; j < %d; j++) {", h);
        TN__EACH_PLAIN(p, r, level)
            tn__line(p, "%s%d[j] = %s(%s%d[j], %s%d[j + %d]);", lanes, r, tn__emit_function(p, r), lanes, r, lanes, r,
                     h);
        tn__line(p, "}");
    }
}

/* Of several reduced loops: lanes that lie in one round of the last of them, so that this is a loop over neighbours. */
static void lanes_of_one_round(tn__printer *p, int level, int all)
{
    int last = p->nest->loop_count - 1;
    char rounds[32];
    snprintf(rounds, sizeof rounds, "r / n[%d]", TN__EXTENT(last));
    tn__line(p, "const tn_i64 inside = r %% n[%d];", TN__EXTENT(last));
    tn__line(p, "if (inside + %d <= n[%d]) {", all, TN__EXTENT(last));
    tn__emit_decode(p, p->nest->reduced & ~(1u << last), rounds);
    p->vector_loop = last;
    tn__line(p, "TN_LANES");
    tn__line(p, "for (int j = 0; j < %d; j++) {", all);
    tn__line(p, "const tn_i64 x%d = inside + j;", last);
    combine_lanes(p, level);
    tn__line(p, "}");
    p->vector_loop = -1;
    tn__line(p, "continue;");
    tn__line(p, "}");
}

/* The lanes of the block from b to e, combined in lane 0. */
static void block_lanes(tn__printer *p, int level)
{
    uint32_t reduced = p->nest->reduced;
    bool one = __builtin_popcount(reduced) == 1;
    int all = lanes_of_pass(p->nest, level), lanes = lanes_of(p->nest);
    bool few = lanes < TN__REDUCE_LANES;
    lanes = few ? lanes : all;
    tn__line(p, "for (int j = 0; j < %d; j++) {", all);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "lane%d[j] = %s;", r, tn__emit_identity(p, r));
    tn__line(p, "}");
    tn__line(p, "tn_i64 r = b;");
    tn__c_strip strip = {.loop = p->vector_loop, .first = "t0", .end = "t1", .size = TN__C_STRIP, .level = level};
    bool strips = one && tn__c_has_strip(p, strip.loop, false, level);
    if (strips) {
        tn__line(p, "for (tn_i64 t0 = b; t0 < e; t0 += %d) {", TN__C_STRIP);
        tn__line(p, "const tn_i64 t1 = t0 + %d < e ? t0 + %d : e;", TN__C_STRIP, TN__C_STRIP);
        tn__c_open_strip(p, &strip);
    }
    const char *end = strips ? "t1" : "e";
    if (!few) {
        tn__line(p, "for (; r + %d <= %s; r += %d) {", all, end, all);
        if (!one)
            lanes_of_one_round(p, level, all);
        tn__line(p, "TN_LANES");
        tn__line(p, "for (int j = 0; j < %d; j++) {", all);
        tn__emit_decode(p, reduced, "r + j");
        combine_lanes(p, level);
        tn__line(p, "}");
        tn__line(p, "}");
    }
    if (one) {
        tn__line(p, "if (r < %s) {", end);
        tn__line(p, "TN_LANES");
        tn__line(p, "for (int j = 0; j < %d; j++) {", lanes);
        tn__line(p, "if (r + j < %s) {", end);
    } else {
        tn__line(p, "for (int j = 0; r + j < e; j++) {");
    }
    tn__emit_decode(p, reduced, "r + j");
    combine_lanes(p, level);
    for (int open = one ? 3 : 1; open; open--)
        tn__line(p, "}");
    if (strips) {
        tn__c_close_strip(p, &strip);
        tn__line(p, "}");
    }
    halve(p, level, "lane", lanes);
}

static void declare_lanes(tn__printer *p, int level, const char *lanes, int count)
{
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s %s%d[%d];", tn__emit_type(p, r), lanes, r, count);
}

static void begin_totals(tn__printer *p, int level)
{
    declare_lanes(p, level, "total", TN__REDUCE_LANES);
    tn__line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "total%d[j] = %s;", r, tn__emit_identity(p, r));
    tn__line(p, "}");
}

/* The reductions' results from t0, t1, ... */
static void name_results(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level) {
        int e = tn__nest_reduced_expr(p->nest, r);
        tn__line(p, "const %s v%d = %s(t%d);", tn__emit_type(p, r), e, tn__emit_rounding(p, r), r);
        p->nest->expr[e].printed = TN__SCOPE_ITEM;
    }
}

static void row_sums(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s t%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
    tn__line(p, "{");
    declare_lanes(p, level, "lane", lanes_of_pass(p->nest, level));
    if (lanes_of(p->nest) < TN__REDUCE_LANES) {
        tn__line(p, "const tn_i64 b = 0, e = R;");
        block_lanes(p, level);
        TN__EACH_PLAIN(p, r, level)
            tn__line(p, "t%d = lane%d[0];", r, r);
        tn__line(p, "}");
        name_results(p, level);
        return;
    }
    begin_totals(p, level);
    tn__line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_BLOCK);
    tn__line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_BLOCK, TN__REDUCE_BLOCK);
    block_lanes(p, level);
    tn__line(p, "const int k = (int)(b / %d %% %d);", TN__REDUCE_BLOCK, TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, level) {
        tn__line(p, "t%d = lane%d[0];", r, r);
        tn__line(p, "total%d[k] = %s(total%d[k], lane%d[0]);", r, tn__emit_function(p, r), r, r);
    }
    tn__line(p, "}");
    tn__line(p, "if (R > %d) {", TN__REDUCE_BLOCK);
    halve(p, level, "total", TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "t%d = total%d[0];", r, r);
    tn__line(p, "}");
    tn__line(p, "}");
    name_results(p, level);
}

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
            p->nest->expr[e].printed = TN__SCOPE_ITEM;
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
    tn__nest *n = p->nest;
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
    tn__nest *n = p->nest;
    tn__emit_decode(p, tn__nest_loops(n) & ~n->reduced, "item");
    tn__emit_extent(p);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, n->reduced);
        row_positions(p, level, "0", "R");
        if (tn__nest_reductions(n, level, false))
            row_sums(p, level);
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
    tn__nest *n = p->nest;
    tn__emit_extent(p);
    tn__line(p, "const tn_i64 blocks = (R + %d) / %d, row = item / blocks;", TN__REDUCE_BLOCK - 1, TN__REDUCE_BLOCK);
    tn__line(p, "const tn_i64 b = item %% blocks * %d, e = b + %d < R ? b + %d : R;", TN__REDUCE_BLOCK,
             TN__REDUCE_BLOCK, TN__REDUCE_BLOCK);
    tn__emit_decode(p, tn__nest_loops(n) & ~n->reduced, "row");
    tn__emit_hoist_pass(p, 0, n->reduced);
    row_positions(p, 0, "b", "e");
    if (tn__nest_reductions(n, 0, false)) {
        tn__line(p, "{");
        declare_lanes(p, 0, "lane", lanes_of_pass(n, 0));
        block_lanes(p, 0);
        TN__EACH_PLAIN(p, r, 0)
            tn__line(p, "p%d[item] = lane%d[0];", n->partial[r][0], r);
        tn__line(p, "}");
    } else if (tn__nest_has_stores(n, 0)) {
        pass_without_sums(p, 0, "b", "e");
    }
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0)) {
            tn__line(p, "p%d[item] = best%d;", n->partial[r][0], r);
            tn__line(p, "p%d[item] = at%d;", n->partial[r][1], r);
        }
}

static void row_results(tn__printer *p)
{
    tn__nest *n = p->nest;
    tn__emit_decode(p, tn__nest_loops(n) & ~n->reduced, "item");
    tn__emit_extent(p);
    tn__line(p, "const tn_i64 blocks = (R + %d) / %d, first = item * blocks;", TN__REDUCE_BLOCK - 1, TN__REDUCE_BLOCK);
    if (tn__nest_reductions(n, 0, false)) {
        begin_totals(p, 0);
        tn__line(p, "for (tn_i64 b = 0; b < blocks; b++) {");
        tn__line(p, "const int k = (int)(b %% %d);", TN__REDUCE_LANES);
        TN__EACH_PLAIN(p, r, 0)
            tn__line(p, "total%d[k] = %s(total%d[k], p%d[first + b]);", r, tn__emit_function(p, r), r,
                     n->partial[r][0]);
        tn__line(p, "}");
        halve(p, 0, "total", TN__REDUCE_LANES);
        TN__EACH_PLAIN(p, r, 0)
            tn__line(p, "const %s t%d = total%d[0];", tn__emit_type(p, r), r, r);
        name_results(p, 0);
    }
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
