/* SPDX-License-Identifier: MIT */
/*
 * Columns in C: nests whose last loop is kept. An item is a block of columns; passes over the rows accumulate in blocks
 * (column_sums.c). In two steps, an item of the first is a block of rows of those.
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
#define MOST_ACCUMULATED 4 /* reductions of a nest with blocks of many */

/*
 * Operands that lie across: neighbours down the rows, whole lines of which are copied before their rows are needed one
 * after the other. The last columns of a copy's row are nobody's: rows a power of two apart would push one another out
 * of the cache.
 */
#define ROWS_AHEAD 16
#define APART      16

/* Rows that are looked up in a table are asked for so many rows before they are needed. */
#define FETCHED_AHEAD 8

static bool lies_across(const tn__nest *n, const tn__access *a)
{
    int row = 31 - __builtin_clz(n->reduced), column = n->loop_count - 1;
    return a->kind == TN__ACCESS_LOAD && !a->gathered && __builtin_popcount(n->reduced) == 1 && a->stride[row] == 1 &&
           (a->stride[column] > 1 || a->stride[column] < -1);
}

bool tn__c_any_across(const tn__nest *n)
{
    for (int i = 0; i < n->access_count; i++)
        if (lies_across(n, &n->access[i]))
            return true;
    return false;
}

int tn__c_most_columns(const tn__nest *n)
{
    return n->reduction_count <= MOST_ACCUMULATED && !tn__c_any_across(n) ? MANY_COLUMNS : FEW_COLUMNS;
}

int64_t tn__c_column_blocks(const tn__nest *n)
{
    int64_t columns = n->extent[n->loop_count - 1];
    int64_t block = columns >= WIDE ? tn__c_most_columns(n) : FEW_COLUMNS;
    return (columns + block - 1) / block;
}

void tn__c_open_rows(tn__printer *p, const char *first, const char *end)
{
    const tn__nest *n = p->nest;
    int row = 31 - __builtin_clz(n->reduced), c = p->vector_loop;
    if (!tn__c_any_across(n)) {
        tn__line(p, "for (tn_i64 r = %s; r < %s; r++) {", first, end);
        tn__emit_decode(p, n->reduced, "r");
        return;
    }
    tn__line(p, "for (tn_i64 r0 = %s; r0 < %s; r0 += %d) {", first, end, ROWS_AHEAD);
    tn__line(p, "const tn_i64 r1 = r0 + %d < %s ? r0 + %d : %s;", ROWS_AHEAD, end, ROWS_AHEAD, end);
    for (int i = 0; i < n->access_count; i++)
        if (lies_across(n, &n->access[i]))
            tn__c_stage(p, i, row, c, 'l', ROWS_AHEAD, tn__c_most_columns(n) + APART);
    tn__line(p, "for (tn_i64 r = r0; r < r1; r++) {");
    tn__emit_decode(p, n->reduced, "r");
    snprintf(p->column, sizeof p->column, "x%d - l0", c);
    p->vector = "[r - r0]";
    p->lane = p->column;
}

bool tn__c_chooses_rows(const tn__nest *n)
{
    for (int e = 0; e < n->expr_count; e++) {
        const tn__expr *x = &n->expr[e];
        if (x->kind == TN__EXPR_LOAD && n->access[x->access].gathered &&
            !(n->expr[x->arg[0]].loops >> (n->loop_count - 1) & 1))
            return true;
    }
    return false;
}

bool tn__c_is_row_of_table(const tn__nest *n, const tn__expr *x)
{
    int row = 31 - __builtin_clz(n->reduced), column = n->loop_count - 1;
    if (x->kind != TN__EXPR_LOAD || !n->access[x->access].gathered || __builtin_popcount(n->reduced) != 1)
        return false;
    const tn__access *table = &n->access[x->access];
    const tn__expr *index = &n->expr[x->arg[0]];
    for (int l = 0; l < column; l++)
        if (table->stride[l])
            return false;
    return table->stride[column] == 1 && index->kind == TN__EXPR_LOAD && !n->access[index->access].gathered &&
           n->access[index->access].stride[row] && !n->access[index->access].stride[column];
}

/* The rows of tables that are looked up some rows on, in a block's columns. */
static void fetch_ahead(tn__printer *p)
{
    const tn__nest *n = p->nest;
    int row = 31 - __builtin_clz(n->reduced);
    for (int e = 0; e < n->expr_count; e++) {
        const tn__expr *x = &n->expr[e];
        if (!tn__c_is_row_of_table(n, x))
            continue;
        int list = n->expr[x->arg[0]].access;
        const tn__access *table = &n->access[x->access], *index = &n->access[list];
        int extra = tn__stride_param(table, n->loop_count), size = tn__dtypes[table->dtype].size;
        tn__emit_indent(p);
        tn__text_addf(p->text, "if (x%d + %d < R) tn_fetch(p%d, ((tn_u64)tn_wrap(p%d[", row, FETCHED_AHEAD, x->access,
                      list);
        tn__print_position(p, index);
        tn__text_addf(p->text, " + %d * n[%d]], n[%d]) * n[%d] + n[%d] + l0) * %du, width * %d);\n", FETCHED_AHEAD,
                      tn__stride_param(index, row), extra + 1, extra, table->param + 1, size, size);
    }
}

void tn__c_begin_row(tn__printer *p, int level)
{
    if (!tn__c_chooses_rows(p->nest))
        return;
    if (!tn__c_any_across(p->nest))
        fetch_ahead(p);
    p->outer = tn__emit_scope(p);
    p->checks_ahead = true;
    tn__emit_hoist_pass(p, level, 1u << p->vector_loop);
}

void tn__c_close_rows(tn__printer *p)
{
    tn__line(p, "}");
    if (p->outer)
        for (int e = 0; e < p->nest->expr_count; e++)
            p->expr_note[e].checked = false;
    p->outer = 0;
    p->checks_ahead = false;
    if (!tn__c_any_across(p->nest))
        return;
    tn__line(p, "}");
    p->lane = NULL;
    for (int i = 0; i < p->nest->access_count; i++)
        p->access_note[i].staged = false;
}

void tn__c_each_column(tn__printer *p)
{
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 x%d = l0; x%d < l1; x%d++) {", p->vector_loop, p->vector_loop, p->vector_loop);
}

bool tn__c_open_columns(tn__printer *p, tn__c_strip *strip, bool rows, int level)
{
    *strip = (tn__c_strip){.loop = p->vector_loop,
                           .first = "l0",
                           .end = "l1",
                           .size = tn__c_most_columns(p->nest),
                           .rows = rows,
                           .level = level};
    bool strips = tn__c_has_strip(p, strip->loop, rows, level);
    if (strips)
        tn__c_open_strip(p, strip);
    return strips;
}

static void begin_positions(tn__printer *p, int r)
{
    tn__line(p, "%s best%d[%d];", tn__emit_type(p, r), r, tn__c_most_columns(p->nest));
    tn__line(p, "TN_COLUMNS { best%d[w + c] = %s; a%d[w + c] = 0; }", r, tn__emit_identity(p, r), r);
}

/* Of the rows from `first` up to `end`, before the pass's stores, which may overwrite what is looked at. */
static void column_positions(tn__printer *p, int r, const char *first, const char *end)
{
    int c = p->vector_loop, arg = p->nest->reduction[r].arg;
    begin_positions(p, r);
    tn__c_open_rows(p, first, end);
    tn__c_begin_row(p, p->nest->reduction[r].level);
    tn__c_each_column(p);
    tn__emit_scope(p);
    tn__emit_need(p, arg);
    tn__line(p, "if (%s(best%d[x%d - l0], v%d)) { best%d[x%d - l0] = v%d; a%d[x%d - l0] = r; }",
             tn__emit_function(p, r), r, c, arg, r, c, arg, r, c);
    tn__line(p, "}");
    tn__c_close_rows(p);
}

static void pass_without_sums(tn__printer *p, int level, const char *first, const char *end)
{
    tn__c_strip strip;
    tn__c_open_rows(p, first, end);
    tn__c_begin_row(p, level);
    bool strips = tn__c_open_columns(p, &strip, false, level);
    tn__c_each_column(p);
    tn__emit_scope(p);
    tn__emit_element(p, level);
    tn__line(p, "}");
    if (strips)
        tn__c_close_strip(p, &strip);
    tn__c_close_rows(p);
}

static void declare_results(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        tn__line(p, "%s a%d[%d];", tn__ops[n->reduction[r].op].props & TN_ARG ? "tn_i64" : tn__emit_type(p, r), r,
                 tn__c_most_columns(n));
}

static void column_stores(tn__printer *p)
{
    const tn__nest *n = p->nest;
    bool any = false;
    for (int s = 0; s < n->store_count; s++)
        if (n->store[s].row) {
            tn__emit_hoist(p, n->store[s].expr, n->reduced | 1u << p->vector_loop);
            any = true;
        }
    if (!any)
        return;
    tn__c_strip strip;
    bool strips = tn__c_open_columns(p, &strip, true, 0);
    tn__c_each_column(p);
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
    const tn__nest *n = p->nest;
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
            tn__c_column_sums(p, level);
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

static void partial_columns(tn__printer *p)
{
    const tn__nest *n = p->nest;
    int c = p->vector_loop;
    segments(p);
    tn__line(p, "const tn_i64 segment = item / blocks %% segments, row = item / blocks / segments;");
    tn__line(p, "const tn_i64 b = segment * %d, e = b + %d < R ? b + %d : R;", TN__REDUCE_OUTER_BLOCK,
             TN__REDUCE_OUTER_BLOCK, TN__REDUCE_OUTER_BLOCK);
    tn__line(p, "const tn_i64 piece = (row * segments + segment) * n[%d];", TN__EXTENT(c));
    tn__emit_decode(p, outer_loops(p), "row");
    declare_results(p);
    tn__emit_hoist_pass(p, 0, n->reduced | 1u << c);
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0))
            column_positions(p, r, "b", "e");
    if (tn__nest_reductions(n, 0, false))
        tn__c_column_block(p);
    else if (tn__nest_has_stores(n, 0))
        pass_without_sums(p, 0, "b", "e");
    tn__c_each_column(p);
    for (int r = 0; r < n->reduction_count; r++) {
        bool position = tn__c_is_position(n, r, 0);
        tn__line(p, "p%d[piece + x%d] = %s%d[x%d - l0];", n->partial[r][0], c, position ? "best" : "part", r, c);
        if (position)
            tn__line(p, "p%d[piece + x%d] = a%d[x%d - l0];", n->partial[r][1], c, r, c);
    }
    tn__line(p, "}");
}

static void final_columns(tn__printer *p)
{
    const tn__nest *n = p->nest;
    int c = p->vector_loop;
    segments(p);
    tn__line(p, "const tn_i64 row = item / blocks;");
    tn__emit_decode(p, outer_loops(p), "row");
    declare_results(p);
    tn__c_begin_columns(p, 0);
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__c_is_position(n, r, 0))
            begin_positions(p, r);
    tn__line(p, "for (tn_i64 segment = 0; segment < segments; segment++) {");
    tn__line(p, "const tn_i64 piece = (row * segments + segment) * n[%d];", TN__EXTENT(c));
    tn__c_each_column(p);
    tn__c_join_columns(p);
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
    tn__c_end_columns(p, 0);
    column_stores(p);
}

void tn__c_emit_columns(tn__printer *p)
{
    static void (*const of_part[])(tn__printer *) = {
        [TN__PART_WHOLE] = whole_columns, [TN__PART_PARTIAL] = partial_columns, [TN__PART_FINAL] = final_columns};
    const tn__nest *n = p->nest;
    int c = p->vector_loop = n->loop_count - 1;
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    tn__line(p, "const tn_i64 block = n[%d] >= %d ? %d : %d;", TN__EXTENT(c), WIDE, tn__c_most_columns(n), FEW_COLUMNS);
    tn__line(p, "const tn_i64 blocks = (n[%d] + block - 1) / block;", TN__EXTENT(c));
    tn__line(p, "const tn_i64 l0 = item %% blocks * block;");
    tn__line(p, "const tn_i64 l1 = l0 + block < n[%d] ? l0 + block : n[%d];", TN__EXTENT(c), TN__EXTENT(c));
    tn__line(p, "const int width = (int)(l1 - l0);");
    tn__emit_extent(p);
    of_part[n->part](p);
    tn__line(p, "}");
}
