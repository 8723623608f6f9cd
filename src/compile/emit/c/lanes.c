/* SPDX-License-Identifier: MIT */
/* Sums and other reductions of rows in C: elements go into lanes (device/order.h), which make vectors. */
#include "compile/emit/c/c.h"

#include <stdio.h>

#include "device/order.h"

#define LANES_BYTES 256 /* of lanes that may be as many as one likes */

static void each_lane(tn__printer *p, int count)
{
    tn__line(p, "TN_LANES");
    tn__line(p, "for (int j = 0; j < %d; j++) {", count);
}

/* `to`: what the accumulators are called. */
static void combine(tn__printer *p, int level, const char *to, const char *subscript)
{
    tn__emit_scope(p);
    tn__emit_element(p, level);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s%d%s = %s(%s%d%s, v%d);", to, r, subscript, tn__emit_function(p, r), to, r, subscript,
                 p->nest->reduction[r].arg);
}

static void combine_lanes(tn__printer *p, int level) { combine(p, level, "lane", "[j]"); }

/* Lanes that a row has elements for, of a short row; their number as a constant is what makes vectors of them. */
static int lanes_of(const tn__nest *n)
{
    int64_t length = n->extent[n->loop_count - 1];
    bool short_rows = __builtin_popcount(n->reduced) == 1 && length < TN__REDUCE_LANES;
    for (int r = 0; r < n->reduction_count; r++)
        short_rows &= tn__nest_start_is_neutral(n, r);
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

/* What a block's lanes are called: of sums that are widened, those that its stretches' lanes go into. */
static const char *block_lane(const tn__nest *n, int r) { return tn__nest_widens(n, r) ? "sum" : "lane"; }

/* `lanes`: NULL for a block's. */
static void halve(tn__printer *p, int level, const char *lanes, int count)
{
    for (int h = count / 2; h; h /= 2) {
        each_lane(p, h);
        TN__EACH_PLAIN(p, r, level)
        {
            const char *name = lanes ? lanes : block_lane(p->nest, r);
            tn__line(p, "%s%d[j] = %s(%s%d[j], %s%d[j + %d]);", name, r, tn__emit_wide_function(p, r), name, r, name, r,
                     h);
        }
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
    each_lane(p, all);
    tn__line(p, "const tn_i64 x%d = inside + j;", last);
    combine_lanes(p, level);
    tn__line(p, "}");
    p->vector_loop = -1;
    tn__line(p, "continue;");
    tn__line(p, "}");
}

/* The elements from r on, one for each lane. */
static void all_lanes(tn__printer *p, int level, int all)
{
    each_lane(p, all);
    tn__emit_decode(p, p->nest->reduced, "r + j");
    combine_lanes(p, level);
    tn__line(p, "}");
}

/*
 * The last elements, for which there are more lanes. Those without one stay what they are, rather than being left out,
 * and nothing but elements is read behind the condition: vectors come of this, a mask of which is a comparison of
 * numbers as wide as float32.
 */
static void last_lanes(tn__printer *p, int level, const char *end, int lanes)
{
    if (__builtin_popcount(p->nest->reduced) > 1) {
        tn__line(p, "for (int j = 0; r + j < %s; j++) {", end);
        tn__emit_decode(p, p->nest->reduced, "r + j");
        combine_lanes(p, level);
        tn__line(p, "}");
        return;
    }
    tn__line(p, "if (r < %s) {", end);
    tn__line(p, "const int rest = (int)(%s - r);", end);
    tn__emit_bases(p);
    each_lane(p, lanes);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s to%d = lane%d[j];", tn__emit_type(p, r), r, r);
    tn__line(p, "if (j < rest) {");
    tn__emit_decode(p, p->nest->reduced, "r + j");
    combine(p, level, "to", "");
    tn__line(p, "}");
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "lane%d[j] = to%d;", r, r);
    tn__line(p, "}");
    tn__line(p, "}");
    p->based = false;
}

/* The elements from r up to `end` in lanes. */
static void in_lanes(tn__printer *p, int level, const char *end)
{
    int all = lanes_of_pass(p->nest, level), lanes = lanes_of(p->nest);
    bool few = lanes < TN__REDUCE_LANES;
    if (!few) {
        tn__line(p, "for (; r + %d <= %s; r += %d) {", all, end, all);
        if (__builtin_popcount(p->nest->reduced) > 1)
            lanes_of_one_round(p, level, all);
        all_lanes(p, level, all);
        tn__line(p, "}");
    }
    last_lanes(p, level, end, few ? lanes : all);
}

/* Sets lanes to the identity: those of the reductions that are widened, or those of the others. */
static void begin_lanes(tn__printer *p, int level, int count, bool widened)
{
    tn__line(p, "for (int j = 0; j < %d; j++) {", count);
    TN__EACH_PLAIN(p, r, level)
        if (tn__nest_widens(p->nest, r) == widened)
            tn__line(p, "lane%d[j] = %s;", r, tn__emit_identity(p, r));
    tn__line(p, "}");
}

/* What a stretch's lanes come to goes into those of double precision. */
static void end_stretch(tn__printer *p, int level)
{
    each_lane(p, TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, level)
        if (tn__nest_widens(p->nest, r))
            tn__line(p, "sum%d[j] = %s(sum%d[j], %s(lane%d[j]));", r, tn__emit_wide_function(p, r), r,
                     tn__emit_widening(p, r), r);
    tn__line(p, "}");
}

/*
 * The elements from r up to `end`, a stretch at a time. Where elements are short they are written out once more, for
 * the stretches that are whole, whose lanes stay in registers: else the last stretch's end sends all of them through
 * memory. There may be nothing left for the last stretch, which changes nothing.
 */
static void in_stretches(tn__printer *p, int level, const char *end)
{
    bool one = __builtin_popcount(p->nest->reduced) == 1;
    if (one && tn__nest_is_short(p->nest, level, TN__C_SHORT)) {
        tn__line(p, "while (r + %d <= %s) {", TN__REDUCE_STRETCH, end);
        begin_lanes(p, level, TN__REDUCE_LANES, true);
        tn__line(p, "for (int i = 0; i < %d; i++, r += %d) {", TN__REDUCE_STRETCH / TN__REDUCE_LANES, TN__REDUCE_LANES);
        all_lanes(p, level, TN__REDUCE_LANES);
        tn__line(p, "}");
        end_stretch(p, level);
        tn__line(p, "}");
        begin_lanes(p, level, TN__REDUCE_LANES, true);
        in_lanes(p, level, end);
        end_stretch(p, level);
        return;
    }
    tn__line(p, "for (tn_i64 s0 = r; s0 < %s; s0 += %d) {", end, TN__REDUCE_STRETCH);
    tn__line(p, "const tn_i64 s1 = s0 + %d < %s ? s0 + %d : %s;", TN__REDUCE_STRETCH, end, TN__REDUCE_STRETCH, end);
    begin_lanes(p, level, TN__REDUCE_LANES, true);
    in_lanes(p, level, "s1");
    end_stretch(p, level);
    tn__line(p, "}");
}

static void declare_lanes(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
    {
        tn__line(p, "%s lane%d[%d];", tn__emit_type(p, r), r, lanes_of_pass(p->nest, level));
        if (tn__nest_widens(p->nest, r))
            tn__line(p, "%s sum%d[%d];", tn__emit_wide_type(p, r), r, TN__REDUCE_LANES);
    }
}

/* Lanes of double precision at the identity: a block's, or those of all blocks. */
static void begin_wide(tn__printer *p, int level, const char *name, bool widened)
{
    tn__line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, level)
        if (!widened || tn__nest_widens(p->nest, r))
            tn__line(p, "%s%d[j] = %s;", name, r, tn__emit_wide_identity(p, r));
    tn__line(p, "}");
}

/* The lanes of the block from b to e, combined in the first of them. */
static void block_lanes(tn__printer *p, int level)
{
    int all = lanes_of_pass(p->nest, level), lanes = lanes_of(p->nest);
    bool widens = tn__nest_widens_any(p->nest, level);
    begin_lanes(p, level, all, false);
    if (widens)
        begin_wide(p, level, "sum", true);
    tn__line(p, "tn_i64 r = b;");
    tn__c_strip strip = {.loop = p->vector_loop, .first = "t0", .end = "t1", .size = TN__C_STRIP, .level = level};
    bool strips = __builtin_popcount(p->nest->reduced) == 1 && tn__c_has_strip(p, strip.loop, false, level);
    if (strips) {
        tn__line(p, "for (tn_i64 t0 = b; t0 < e; t0 += %d) {", TN__C_STRIP);
        tn__line(p, "const tn_i64 t1 = t0 + %d < e ? t0 + %d : e;", TN__C_STRIP, TN__C_STRIP);
        tn__c_open_strip(p, &strip);
    }
    if (widens)
        in_stretches(p, level, strips ? "t1" : "e");
    else
        in_lanes(p, level, strips ? "t1" : "e");
    if (strips) {
        tn__c_close_strip(p, &strip);
        tn__line(p, "}");
    }
    halve(p, level, NULL, lanes < TN__REDUCE_LANES ? lanes : all);
}

/* The reductions' results from t0, t1, ... */
static void name_results(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
    {
        int e = tn__nest_reduced_expr(p->nest, r);
        tn__line(p, "const %s v%d = %s(t%d);", tn__emit_type(p, r), e, tn__emit_narrowing(p, r), r);
        p->expr_note[e].printed = TN__SCOPE_ITEM;
    }
}

/* A row that has elements, all of them in one block. */
static void one_block(tn__printer *p, int level)
{
    tn__line(p, "const tn_i64 b = 0, e = R;");
    block_lanes(p, level);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "t%d = %s%d[0];", r, block_lane(p->nest, r), r);
}

static void begin_totals(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s total%d[%d];", tn__emit_wide_type(p, r), r, TN__REDUCE_LANES);
    begin_wide(p, level, "total", false);
}

static void end_totals(tn__printer *p, int level)
{
    halve(p, level, "total", TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "t%d = total%d[0];", r, r);
}

static void all_blocks(tn__printer *p, int level)
{
    begin_totals(p, level);
    tn__line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_BLOCK);
    tn__line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_BLOCK, TN__REDUCE_BLOCK);
    block_lanes(p, level);
    tn__line(p, "const int k = (int)(b / %d %% %d);", TN__REDUCE_BLOCK, TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, level)
    {
        tn__line(p, "t%d = %s%d[0];", r, block_lane(p->nest, r), r);
        tn__line(p, "total%d[k] = %s(total%d[k], t%d);", r, tn__emit_wide_function(p, r), r, r);
    }
    tn__line(p, "}");
    tn__line(p, "if (R > %d) {", TN__REDUCE_BLOCK);
    end_totals(p, level);
    tn__line(p, "}");
}

void tn__c_row_sums(tn__printer *p, int level)
{
    int64_t length = tn__nest_length(p->nest);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s t%d = %s;", tn__emit_wide_type(p, r), r, tn__emit_wide_identity(p, r));
    tn__line(p, "{");
    declare_lanes(p, level);
    if (length > 0 && length <= TN__REDUCE_BLOCK)
        one_block(p, level);
    else
        all_blocks(p, level);
    tn__line(p, "}");
    name_results(p, level);
}

void tn__c_block_sums(tn__printer *p)
{
    tn__line(p, "{");
    declare_lanes(p, 0);
    block_lanes(p, 0);
    TN__EACH_PLAIN(p, r, 0)
        tn__line(p, "p%d[item] = %s%d[0];", p->nest->partial[r][0], block_lane(p->nest, r), r);
    tn__line(p, "}");
}

void tn__c_join_blocks(tn__printer *p)
{
    begin_totals(p, 0);
    tn__line(p, "for (tn_i64 b = 0; b < blocks; b++) {");
    tn__line(p, "const int k = (int)(b %% %d);", TN__REDUCE_LANES);
    TN__EACH_PLAIN(p, r, 0)
        tn__line(p, "total%d[k] = %s(total%d[k], p%d[first + b]);", r, tn__emit_wide_function(p, r), r,
                 p->nest->partial[r][0]);
    tn__line(p, "}");
    TN__EACH_PLAIN(p, r, 0)
        tn__line(p, "%s t%d;", tn__emit_wide_type(p, r), r);
    end_totals(p, 0);
    name_results(p, 0);
}
