/* SPDX-License-Identifier: MIT */
/*
 * Columns in C: nests whose last loop is kept. An item is a block of columns; passes over the rows accumulate in blocks
 * (device/order.h). In two steps, an item of the first is a block of rows of those.
 */
#include "compile/emit/c/c.h"

#include <stdio.h>

#include "device/order.h"

/*
 * In a block: of a wide matrix as many as make its rows' pieces as long as a page of memory, which is read several
 * times as fast as shorter ones; else few, so that blocks are shared out over threads, and accumulators stay in the
 * nearest cache.
 */
#define FEW_COLUMNS      256
#define MANY_COLUMNS     1024
#define WIDE             (2 * MANY_COLUMNS)
#define FEWEST_COLUMNS   8  /* whose elements are written out */
#define MOST_EXPRESSIONS 24 /* of one of these */
#define MOST_ACCUMULATED 4 /* reductions of a nest with blocks of many */

/*
 * Operands that lie across: neighbours down the rows, whole lines of which are copied before their rows are needed one
 * after the other. The last columns of a copy's row are nobody's: rows a power of two apart would push one another out
 * of the cache.
 */
#define ROWS_AHEAD 16
#define APART      16

static bool lies_across(const tn__nest *n, const tn__access *a)
{
    int row = 31 - __builtin_clz(n->reduced), column = n->loop_count - 1;
    return a->kind == TN__ACCESS_LOAD && !a->gathered && __builtin_popcount(n->reduced) == 1 && a->stride[row] == 1 &&
           (a->stride[column] > 1 || a->stride[column] < -1);
}

static bool any_across(const tn__nest *n)
{
    for (int i = 0; i < n->access_count; i++)
        if (lies_across(n, &n->access[i]))
            return true;
    return false;
}

static int most_columns(const tn__nest *n)
{
    return n->reduction_count <= MOST_ACCUMULATED && !any_across(n) ? MANY_COLUMNS : FEW_COLUMNS;
}

int64_t tn__c_column_blocks(const tn__nest *n)
{
    int64_t columns = n->extent[n->loop_count - 1];
    int64_t block = columns >= WIDE ? most_columns(n) : FEW_COLUMNS;
    return (columns + block - 1) / block;
}

/* The rows from `first` up to `end`: r, and where it is. */
static void open_rows(tn__printer *p, const char *first, const char *end)
{
    tn__nest *n = p->nest;
    int row = 31 - __builtin_clz(n->reduced), c = p->vector_loop;
    if (!any_across(n)) {
        tn__line(p, "for (tn_i64 r = %s; r < %s; r++) {", first, end);
        tn__emit_decode(p, n->reduced, "r");
        return;
    }
    tn__line(p, "for (tn_i64 r0 = %s; r0 < %s; r0 += %d) {", first, end, ROWS_AHEAD);
    tn__line(p, "const tn_i64 r1 = r0 + %d < %s ? r0 + %d : %s;", ROWS_AHEAD, end, ROWS_AHEAD, end);
    for (int i = 0; i < n->access_count; i++)
        if (lies_across(n, &n->access[i]))
            tn__c_stage(p, i, row, c, 'l', ROWS_AHEAD, most_columns(n) + APART);
    tn__line(p, "for (tn_i64 r = r0; r < r1; r++) {");
    tn__emit_decode(p, n->reduced, "r");
    snprintf(p->column, sizeof p->column, "x%d - l0", c);
    p->vector = "[r - r0]";
    p->lane = p->column;
}

static void close_rows(tn__printer *p)
{
    tn__line(p, "}");
    if (!any_across(p->nest))
        return;
    tn__line(p, "}");
    p->lane = NULL;
    for (int i = 0; i < p->nest->access_count; i++)
        p->nest->access[i].staged = false;
}

static void each_column(tn__printer *p)
{
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 x%d = l0; x%d < l1; x%d++) {", p->vector_loop, p->vector_loop, p->vector_loop);
}

/* A strip of each row's columns, or of the results' where `rows`; false: nothing needs one. */
static bool open_columns(tn__printer *p, tn__c_strip *strip, bool rows, int level)
{
    *strip = (tn__c_strip){.loop = p->vector_loop,
                           .first = "l0",
                           .end = "l1",
                           .size = most_columns(p->nest),
                           .rows = rows,
                           .level = level};
    bool strips = tn__c_has_strip(p, strip->loop, rows, level);
    if (strips)
        tn__c_open_strip(p, strip);
    return strips;
}

/* Columns so few that each has its sum in a register. */
static bool few_columns(const tn__nest *n)
{
    return n->extent[n->loop_count - 1] <= FEWEST_COLUMNS && n->expr_count <= MOST_EXPRESSIONS && !any_across(n);
}

static void few_sums(tn__printer *p, int level)
{
    int c = p->vector_loop, columns = (int)p->nest->extent[c];
    for (int x = 0; x < columns; x++)
        TN__EACH_PLAIN(p, r, level)
            tn__line(p, "%s sum%d_%d = %s;", tn__emit_type(p, r), r, x, tn__emit_identity(p, r));
    open_rows(p, "b", "e");
    p->literal = true;
    for (int x = 0; x < columns; x++) {
        tn__line(p, "{");
        tn__line(p, "const tn_i64 x%d = %d;", c, x);
        tn__emit_scope(p);
        tn__emit_element(p, level);
        TN__EACH_PLAIN(p, r, level)
        tn__line(p, "sum%d_%d = %s(sum%d_%d, v%d);", r, x, tn__emit_function(p, r), r, x, p->nest->reduction[r].arg);
        tn__line(p, "}");
    }
    p->literal = false;
    close_rows(p);
    for (int x = 0; x < columns; x++)
        TN__EACH_PLAIN(p, r, level)
            tn__line(p, "part%d[%d] = sum%d_%d;", r, x, r, x);
}

/* The rows from b up to e, in turn. */
static void block_sums(tn__printer *p, int level)
{
    int c = p->vector_loop;
    tn__c_strip strip;
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "TN_COLUMNS part%d[w + c] = %s;", r, tn__emit_identity(p, r));
    if (few_columns(p->nest)) {
        few_sums(p, level);
        return;
    }
    open_rows(p, "b", "e");
    bool strips = open_columns(p, &strip, false, level);
    each_column(p);
    tn__emit_scope(p);
    tn__emit_element(p, level);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "part%d[x%d - l0] = %s(part%d[x%d - l0], v%d);", r, c, tn__emit_function(p, r), r, c,
             p->nest->reduction[r].arg);
    tn__line(p, "}");
    if (strips)
        tn__c_close_strip(p, &strip);
    close_rows(p);
}

static void declare_parts(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s part%d[%d];", tn__emit_type(p, r), r, most_columns(p->nest));
}

static void begin_sums(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "TN_COLUMNS a%d[w + c] = %s;", r, tn__emit_identity(p, r));
}

static void round_sums(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
        if (*tn__emit_rounding(p, r))
            tn__line(p, "TN_COLUMNS a%d[w + c] = %s(a%d[w + c]);", r, tn__emit_rounding(p, r), r);
}

static void column_sums(tn__printer *p, int level)
{
    tn__line(p, "{");
    declare_parts(p, level);
    begin_sums(p, level);
    tn__line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_OUTER_BLOCK);
    tn__line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_OUTER_BLOCK, TN__REDUCE_OUTER_BLOCK);
    block_sums(p, level);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "TN_COLUMNS a%d[w + c] = R > %d ? %s(a%d[w + c], part%d[w + c]) : part%d[w + c];", r,
             TN__REDUCE_OUTER_BLOCK, tn__emit_function(p, r), r, r, r);
    tn__line(p, "}");
    round_sums(p, level);
    tn__line(p, "}");
}

static void begin_positions(tn__printer *p, int r)
{
    tn__line(p, "%s best%d[%d];", tn__emit_type(p, r), r, most_columns(p->nest));
    tn__line(p, "TN_COLUMNS { best%d[w + c] = %s; a%d[w + c] = 0; }", r, tn__emit_identity(p, r), r);
}

/* Of the rows from `first` up to `end`, before the pass's stores, which may overwrite what is looked at. */
static void column_positions(tn__printer *p, int r, const char *first, const char *end)
{
    int c = p->vector_loop, arg = p->nest->reduction[r].arg;
    begin_positions(p, r);
    open_rows(p, first, end);
    each_column(p);
    tn__emit_scope(p);
    tn__emit_need(p, arg);
    tn__line(p, "if (%s(best%d[x%d - l0], v%d)) { best%d[x%d - l0] = v%d; a%d[x%d - l0] = r; }",
             tn__emit_function(p, r), r, c, arg, r, c, arg, r, c);
    tn__line(p, "}");
    close_rows(p);
}

static void pass_without_sums(tn__printer *p, int level, const char *first, const char *end)
{
    tn__c_strip strip;
    open_rows(p, first, end);
    bool strips = open_columns(p, &strip, false, level);
    each_column(p);
    tn__emit_scope(p);
    tn__emit_element(p, level);
    tn__line(p, "}");
    if (strips)
        tn__c_close_strip(p, &strip);
    close_rows(p);
}

static void declare_results(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        tn__line(p, "%s a%d[%d];", tn__ops[n->reduction[r].op].props & TN_ARG ? "tn_i64" : tn__emit_type(p, r), r,
                 most_columns(n));
}

static void column_stores(tn__printer *p)
{
    tn__nest *n = p->nest;
    bool any = false;
    for (int s = 0; s < n->store_count; s++)
        if (n->store[s].row) {
            tn__emit_hoist(p, n->store[s].expr, n->reduced | 1u << p->vector_loop);
            any = true;
        }
    if (!any)
        return;
    tn__c_strip strip;
    bool strips = open_columns(p, &strip, true, 0);
    each_column(p);
    tn__emit_scope(p);
    tn__emit_stores(p, true, 0);
    tn__line(p, "}");
    if (strips)
        tn__c_close_strip(p, &strip);
}

static uint32_t outer_loops(const tn__printer *p)
{
    return tn__nest_loops(p->nest) & ~p->nest->reduced & ~(1u << p->vector_loop);
}

static void whole_columns(tn__printer *p)
{
    tn__nest *n = p->nest;
    tn__line(p, "const tn_i64 row = item / blocks;");
    tn__emit_decode(p, outer_loops(p), "row");
    if (tn__c_is_few_columns(n)) {
        tn__c_emit_few_columns(p);
        return;
    }
    declare_results(p);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, n->reduced | 1u << p->vector_loop);
        for (int r = 0; r < n->reduction_count; r++)
            if (tn__c_is_position(n, r, level)) {
                tn__line(p, "{");
                column_positions(p, r, "0", "R");
                tn__line(p, "}");
            }
        if (tn__nest_reductions(n, level, false))
            column_sums(p, level);
        else if (tn__nest_has_stores(n, level))
            pass_without_sums(p, level, "0", "R");
    }
    column_stores(p);
}

/* ---- in two steps ---- */

static void segments(tn__printer *p)
{
    tn__line(p, "const tn_i64 segments = (R + %d) / %d;", TN__REDUCE_OUTER_BLOCK - 1, TN__REDUCE_OUTER_BLOCK);
}

static void column_pieces(tn__printer *p)
{
    tn__nest *n = p->nest;
    int c = p->vector_loop;
    segments(p);
    tn__line(p, "const tn_i64 segment = item / blocks %% segments, row = item / blocks / segments;");
    tn__line(p, "const tn_i64 b = segment * %d, e = b + %d < R ? b + %d : R;", TN__REDUCE_OUTER_BLOCK,
             TN__REDUCE_OUTER_BLOCK, TN__REDUCE_OUTER_BLOCK);
    tn__line(p, "const tn_i64 piece = (row * segments + segment) * n[%d];", TN__EXTENT(c));
    tn__emit_decode(p, outer_loops(p), "row");
    declare_results(p);
    declare_parts(p, 0);
    tn__emit_hoist_pass(p, 0, n->reduced | 1u << c);
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0))
            column_positions(p, r, "b", "e");
    if (tn__nest_reductions(n, 0, false))
        block_sums(p, 0);
    else if (tn__nest_has_stores(n, 0))
        pass_without_sums(p, 0, "b", "e");
    each_column(p);
    for (int r = 0; r < n->reduction_count; r++) {
        bool position = tn__c_is_position(n, r, 0);
        tn__line(p, "p%d[piece + x%d] = %s%d[x%d - l0];", n->partial[r][0], c, position ? "best" : "part", r, c);
        if (position)
            tn__line(p, "p%d[piece + x%d] = a%d[x%d - l0];", n->partial[r][1], c, r, c);
    }
    tn__line(p, "}");
}

static void column_results(tn__printer *p)
{
    tn__nest *n = p->nest;
    int c = p->vector_loop;
    segments(p);
    tn__line(p, "const tn_i64 row = item / blocks;");
    tn__emit_decode(p, outer_loops(p), "row");
    declare_results(p);
    begin_sums(p, 0);
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0))
            begin_positions(p, r);
    tn__line(p, "for (tn_i64 segment = 0; segment < segments; segment++) {");
    tn__line(p, "const tn_i64 piece = (row * segments + segment) * n[%d];", TN__EXTENT(c));
    each_column(p);
    TN__EACH_PLAIN(p, r, 0)
    tn__line(p, "a%d[x%d - l0] = %s(a%d[x%d - l0], p%d[piece + x%d]);", r, c, tn__emit_function(p, r), r, c,
             n->partial[r][0], c);
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0)) {
            tn__line(p, "if (%s(best%d[x%d - l0], p%d[piece + x%d])) {", tn__emit_function(p, r), r, c,
                     n->partial[r][0], c);
            tn__line(p, "best%d[x%d - l0] = p%d[piece + x%d];", r, c, n->partial[r][0], c);
            tn__line(p, "a%d[x%d - l0] = p%d[piece + x%d];", r, c, n->partial[r][1], c);
            tn__line(p, "}");
        }
    tn__line(p, "}");
    tn__line(p, "}");
    round_sums(p, 0);
    column_stores(p);
}

void tn__c_emit_columns(tn__printer *p)
{
    static void (*const of_part[])(tn__printer *) = {
        [TN__PART_WHOLE] = whole_columns, [TN__PART_PARTIAL] = column_pieces, [TN__PART_FINAL] = column_results};
    tn__nest *n = p->nest;
    int c = p->vector_loop = n->loop_count - 1;
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    tn__line(p, "const tn_i64 block = n[%d] >= %d ? %d : %d;", TN__EXTENT(c), WIDE, most_columns(n), FEW_COLUMNS);
    tn__line(p, "const tn_i64 blocks = (n[%d] + block - 1) / block;", TN__EXTENT(c));
    tn__line(p, "const tn_i64 l0 = item %% blocks * block;");
    tn__line(p, "const tn_i64 l1 = l0 + block < n[%d] ? l0 + block : n[%d];", TN__EXTENT(c), TN__EXTENT(c));
    tn__line(p, "const int width = (int)(l1 - l0);");
    tn__emit_extent(p);
    of_part[n->part](p);
    tn__line(p, "}");
}
