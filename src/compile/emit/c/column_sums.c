/* SPDX-License-Identifier: MIT */
/* Sums and other reductions of columns in C: rows go into accumulators, one a column, in turn (device/order.h). */
#include "compile/emit/c/c.h"

#include <stdio.h>

#include "device/order.h"

#define FEWEST_COLUMNS   7  /* whose elements are written out */
#define MOST_EXPRESSIONS 24 /* of one of these */
#define TOGETHER         4  /* rows whose elements are written out, so that accumulators are fetched once, */
#define MOST_TOGETHER    3  /* where these are of so few expressions: others take longer, and long to compile */
#define MOST_LOOKED_UP   5  /* the same of tables' rows, with the index, and a weight of the row */

/* A block's stretches, from s0 up to s1. */
static void open_stretches(tn__printer *p)
{
    tn__line(p, "for (tn_i64 s0 = b; s0 < e; s0 += %d) {", TN__REDUCE_OUTER_STRETCH);
    tn__line(p, "const tn_i64 s1 = s0 + %d < e ? s0 + %d : e;", TN__REDUCE_OUTER_STRETCH, TN__REDUCE_OUTER_STRETCH);
}

/* Columns so few that each has its sum in a register. */
static bool few_columns(const tn__nest *n)
{
    return n->extent[n->loop_count - 1] <= FEWEST_COLUMNS && n->expr_count <= MOST_EXPRESSIONS && !tn__c_any_across(n);
}

/* What accumulators that are begun anew for each stretch are called, of sums that are widened; others have a block's
 * alone. */
static const char *stretch_sum(const tn__nest *n, int r) { return tn__nest_widens(n, r) ? "turn" : "part"; }
/* The same of a result's: those of all blocks, if there are several. */
static const char *total(const tn__nest *n, int r)
{
    bool blocks = n->part == TN__PART_FINAL || tn__nest_length(n) > TN__REDUCE_OUTER_BLOCK;
    return !tn__nest_widens(n, r) ? "a" : blocks ? "total" : "part";
}

/* ---- columns so few that accumulators are registers ---- */

static void few_sums(tn__printer *p, int level, const char *first, const char *end)
{
    const tn__nest *n = p->nest;
    int c = p->vector_loop, columns = (int)n->extent[c];
    for (int x = 0; x < columns; x++)
        TN__EACH_PLAIN(p, r, level)
            if (tn__nest_widens(n, r))
                tn__line(p, "%s sum%d_%d = %s;", tn__emit_type(p, r), r, x, tn__emit_identity(p, r));
    tn__c_open_rows(p, first, end);
    p->literal = true;
    for (int x = 0; x < columns; x++) {
        tn__line(p, "{");
        tn__line(p, "const tn_i64 x%d = %d;", c, x);
        tn__emit_scope(p);
        tn__emit_element(p, level);
        TN__EACH_PLAIN(p, r, level)
            tn__line(p, "sum%d_%d = %s(sum%d_%d, v%d);", r, x, tn__emit_function(p, r), r, x, n->reduction[r].arg);
        tn__line(p, "}");
    }
    p->literal = false;
    tn__c_close_rows(p);
    for (int x = 0; x < columns; x++)
        TN__EACH_PLAIN(p, r, level)
            if (tn__nest_widens(n, r))
                tn__line(p, "wide%d_%d = %s(wide%d_%d, %s(sum%d_%d));", r, x, tn__emit_wide_function(p, r), r, x,
                         tn__emit_widening(p, r), r, x);
}

/* In registers: a block's, and what each stretch adds to those that are widened. */
static void few_columns_sums(tn__printer *p, int level, bool widens)
{
    const tn__nest *n = p->nest;
    int columns = (int)n->extent[p->vector_loop];
    for (int x = 0; x < columns; x++)
        TN__EACH_PLAIN(p, r, level)
            tn__line(p, "%s %s%d_%d = %s;", tn__emit_wide_type(p, r), tn__nest_widens(n, r) ? "wide" : "sum", r, x,
                     tn__emit_wide_identity(p, r));
    if (widens) {
        open_stretches(p);
        few_sums(p, level, "s0", "s1");
        tn__line(p, "}");
    } else {
        few_sums(p, level, "b", "e");
    }
    for (int x = 0; x < columns; x++)
        TN__EACH_PLAIN(p, r, level)
            tn__line(p, "part%d[%d] = %s%d_%d;", r, x, tn__nest_widens(n, r) ? "wide" : "sum", r, x);
}

/* ---- others ---- */

/* The element in hand goes into the accumulator of its column. */
static void combine(tn__printer *p, int r, const char *to)
{
    tn__line(p, "%s = %s(%s, v%d);", to, tn__emit_function(p, r), to, p->nest->reduction[r].arg);
}

/* The accumulator of the column in hand. */
static const char *accumulator(tn__printer *p, int r, char text[48])
{
    snprintf(text, 48, "%s%d[x%d - l0]", stretch_sum(p->nest, r), r, p->vector_loop);
    return text;
}

/* The rows from `first` up to `end`, in turn. */
static void rows_in_turn(tn__printer *p, int level, const char *first, const char *end)
{
    tn__c_strip strip;
    char to[48];
    tn__c_open_rows(p, first, end);
    tn__c_begin_row(p, level);
    bool strips = tn__c_open_columns(p, &strip, false, level);
    tn__c_each_column(p);
    tn__emit_scope(p);
    tn__emit_element(p, level);
    TN__EACH_PLAIN(p, r, level)
        combine(p, r, accumulator(p, r, to));
    tn__line(p, "}");
    if (strips)
        tn__c_close_strip(p, &strip);
    tn__c_close_rows(p);
}

/* Whether rows may be taken several at a time: their elements are short, and nothing of them is copied or stored. */
static bool may_together(tn__printer *p, int level, int most)
{
    const tn__nest *n = p->nest;
    return tn__nest_is_short(n, level, most) && __builtin_popcount(n->reduced) == 1 && !tn__c_any_across(n) &&
           !tn__c_has_strip(p, p->vector_loop, false, level);
}

static bool takes_together(tn__printer *p, int level)
{
    return may_together(p, level, MOST_TOGETHER) && !tn__c_chooses_rows(p->nest);
}

/* Whether all that is looked up are rows of tables, several of which may be taken at a time. */
static bool looks_up_together(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kind == TN__EXPR_LOAD && n->access[n->expr[e].access].gathered &&
            (n->access[n->expr[e].access].known || !tn__c_is_row_of_table(n, &n->expr[e])))
            return false;
    return tn__c_chooses_rows(n) && may_together(p, level, MOST_LOOKED_UP);
}

/* What a stretch has come to, in single precision, goes into the block's sum of the column in hand. */
static void end_stretch(tn__printer *p, int level)
{
    char from[48];
    TN__EACH_PLAIN(p, r, level)
        if (tn__nest_widens(p->nest, r))
            tn__line(p, "part%d[x%d - l0] = %s(part%d[x%d - l0], %s(%s));", r, p->vector_loop,
                     tn__emit_wide_function(p, r), r, p->vector_loop, tn__emit_widening(p, r), accumulator(p, r, from));
}

static void begin_stretch(tn__printer *p, int level)
{
    char to[48];
    TN__EACH_PLAIN(p, r, level)
        if (tn__nest_widens(p->nest, r))
            tn__line(p, "%s = %s;", accumulator(p, r, to), tn__emit_identity(p, r));
}

/* The rows from r on. The first of a stretch end the one before, while they are waited for. */
static void rows_together(tn__printer *p, int level, bool first)
{
    char place[16], at[48], u[16];
    tn__c_each_column(p);
    if (first)
        end_stretch(p, level);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s u%d = %s;", tn__emit_type(p, r), r,
                 first && tn__nest_widens(p->nest, r) ? tn__emit_identity(p, r) : accumulator(p, r, at));
    for (int k = 0; k < TOGETHER; k++) {
        tn__line(p, "{");
        snprintf(place, sizeof place, "r + %d", k);
        tn__emit_decode(p, p->nest->reduced, place);
        for (int e = 0; e < p->nest->expr_count; e++)
            if (p->expr_note[e].checked)
                tn__line(p, "const tn_i64 in%d = 1, at%d = row%d[%d];", e, e, e, k);
        tn__emit_scope(p);
        tn__emit_element(p, level);
        TN__EACH_PLAIN(p, r, level)
        {
            snprintf(u, sizeof u, "u%d", r);
            combine(p, r, u);
        }
        tn__line(p, "}");
    }
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s = u%d;", accumulator(p, r, at), r);
    tn__line(p, "}");
}

/* Where the tables' rows are that the rows from r on look up; out of the loop if one is not there, so that what follows
 * finds that once more, in turn. */
static void find_rows(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int e = 0; e < n->expr_count; e++)
        if (tn__c_is_row_of_table(n, &n->expr[e]))
            tn__line(p, "tn_i64 row%d[%d];", e, TOGETHER);
    tn__line(p, "int there = 1;");
    tn__line(p, "for (int k = 0; k < %d; k++) {", TOGETHER);
    tn__emit_decode(p, n->reduced, "r + k");
    tn__c_begin_row(p, level);
    for (int e = 0; e < n->expr_count; e++)
        if (p->expr_note[e].checked) {
            tn__line(p, "there &= in%d;", e);
            tn__line(p, "row%d[k] = at%d;", e, e);
        }
    tn__line(p, "}");
    tn__line(p, "if (!there) break;");
    p->outer = 0;
    p->checks_ahead = false;
}

/* The rows from `first` up to `end`, those of tables several at a time. */
static void rows_of_tables(tn__printer *p, int level, const char *first, const char *end)
{
    if (!looks_up_together(p, level)) {
        rows_in_turn(p, level, first, end);
        return;
    }
    tn__line(p, "tn_i64 r = %s;", first);
    tn__line(p, "for (; r + %d <= %s; r += %d) {", TOGETHER, end, TOGETHER);
    find_rows(p, level);
    rows_together(p, level, false);
    for (int e = 0; e < p->nest->expr_count; e++)
        p->expr_note[e].checked = false;
    tn__line(p, "}");
    tn__line(p, "const tn_i64 last = r;");
    rows_in_turn(p, level, "last", end);
}

static void stretch_together(tn__printer *p, int level)
{
    tn__line(p, "tn_i64 r = s0;");
    tn__line(p, "if (r + %d <= s1) {", TOGETHER);
    rows_together(p, level, true);
    tn__line(p, "r += %d;", TOGETHER);
    tn__line(p, "} else {");
    tn__c_each_column(p);
    end_stretch(p, level);
    begin_stretch(p, level);
    tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, "for (; r + %d <= s1; r += %d) {", TOGETHER, TOGETHER);
    rows_together(p, level, false);
    tn__line(p, "}");
    tn__line(p, "const tn_i64 s2 = r;");
    rows_in_turn(p, level, "s2", "s1");
}

/* The stretches from b up to e. */
static void stretches(tn__printer *p, int level)
{
    bool together = takes_together(p, level);
    if (together) {
        tn__c_each_column(p);
        begin_stretch(p, level);
        tn__line(p, "}");
    }
    open_stretches(p);
    if (together) {
        stretch_together(p, level);
    } else {
        tn__c_each_column(p);
        begin_stretch(p, level);
        tn__line(p, "}");
        rows_of_tables(p, level, "s0", "s1");
        tn__c_each_column(p);
        end_stretch(p, level);
        tn__line(p, "}");
    }
    tn__line(p, "}");
    if (together) {
        tn__c_each_column(p);
        end_stretch(p, level);
        tn__line(p, "}");
    }
}

/* The rows from b up to e. */
static void block_sums(tn__printer *p, int level)
{
    bool widens = tn__nest_widens_any(p->nest, level);
    if (few_columns(p->nest)) {
        few_columns_sums(p, level, widens);
        return;
    }
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "TN_COLUMNS part%d[w + c] = %s;", r, tn__emit_wide_identity(p, r));
    if (!widens) {
        rows_of_tables(p, level, "b", "e");
        return;
    }
    stretches(p, level);
}

static void declare_parts(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
    {
        tn__line(p, "%s part%d[%d];", tn__emit_wide_type(p, r), r, tn__c_most_columns(p->nest));
        if (tn__nest_widens(p->nest, r))
            tn__line(p, "%s turn%d[%d];", tn__emit_type(p, r), r, tn__c_most_columns(p->nest));
    }
}

void tn__c_begin_columns(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
    {
        const char *to = total(p->nest, r);
        if (*to == 't')
            tn__line(p, "%s total%d[%d];", tn__emit_wide_type(p, r), r, tn__c_most_columns(p->nest));
        if (*to != 'p')
            tn__line(p, "TN_COLUMNS %s%d[w + c] = %s;", to, r, tn__emit_wide_identity(p, r));
    }
}

void tn__c_end_columns(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level)
        if (*tn__emit_narrowing(p, r)) {
            tn__c_each_column(p);
            tn__line(p, "a%d[x%d - l0] = %s(%s%d[x%d - l0]);", r, p->vector_loop, tn__emit_narrowing(p, r),
                     total(p->nest, r), r, p->vector_loop);
            tn__line(p, "}");
        }
}

void tn__c_column_sums(tn__printer *p, int level)
{
    tn__line(p, "{");
    declare_parts(p, level);
    tn__c_begin_columns(p, level);
    tn__line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_OUTER_BLOCK);
    tn__line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_OUTER_BLOCK, TN__REDUCE_OUTER_BLOCK);
    block_sums(p, level);
    TN__EACH_PLAIN(p, r, level)
    {
        const char *to = total(p->nest, r);
        if (*to != 'p')
            tn__line(p, "TN_COLUMNS %s%d[w + c] = R > %d ? %s(%s%d[w + c], part%d[w + c]) : part%d[w + c];", to, r,
                     TN__REDUCE_OUTER_BLOCK, tn__emit_wide_function(p, r), to, r, r, r);
    }
    tn__line(p, "}");
    tn__c_end_columns(p, level);
    tn__line(p, "}");
}

void tn__c_column_block(tn__printer *p)
{
    declare_parts(p, 0);
    block_sums(p, 0);
}

void tn__c_join_columns(tn__printer *p)
{
    int c = p->vector_loop;
    TN__EACH_PLAIN(p, r, 0)
    {
        const char *to = total(p->nest, r);
        tn__line(p, "%s%d[x%d - l0] = %s(%s%d[x%d - l0], p%d[piece + x%d]);", to, r, c, tn__emit_wide_function(p, r),
                 to, r, c, p->nest->partial[r][0], c);
    }
}
