/* SPDX-License-Identifier: MIT */
/*
 * Rows of few elements in C, of 3 coordinates or 10 classes, that are reduced: their elements stand one after the other
 * in the text, so that the loop that becomes one of vectors is that over rows. So do those of columns of few elements,
 * whose sums then stay in registers.
 */
#include <stdio.h>

#include "compile/emit/c/c.h"
#include "device/order.h"

#define LONGEST      16   /* rows that are written out */
#define HIGHEST      32   /* columns that are */
#define FEWEST       64   /* rows that pay, or columns */
#define MANY         4096 /* where there are as many in all, columns of fewer side by side do, too: */
#define NARROWEST    8
#define NEAR         4    /* elements that neighbours of columns lie apart at most */
#define MOST_WRITTEN 256 /* expressions of all elements */

/* Elements that are reduced to one; 0: more than are ever written out. */
static int64_t length_of(const tn__nest *n)
{
    int64_t length = 1;
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1)
            length = n->extent[l] <= HIGHEST ? length * n->extent[l] : 0;
    return length;
}

/* What is reduced is few, nothing may fail or lies anywhere. */
static bool is_written(const tn__nest *n, int64_t longest)
{
    int64_t length = length_of(n);
    if (n->part != TN__PART_WHOLE || length < 2 || length > longest || n->expr_count * length > MOST_WRITTEN)
        return false;
    for (int i = 0; i < n->access_count; i++)
        if (n->access[i].gathered || n->access[i].raw)
            return false;
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].user || (n->expr[e].kind == TN__EXPR_INDEX && n->expr[e].op != TN__OP_IOTA))
            return false;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].user)
            return false;
    return true;
}

/* Rows alone. */
bool tn__c_is_few(const tn__nest *n)
{
    for (int r = 0; r < n->reduction_count; r++)
        if (!tn__nest_start_is_neutral(n, r)) /* lanes without elements are left out */
            return false;
    return n->loop_count == 2 && !n->last_kept && n->reduced == 2 && n->extent[0] >= FEWEST && is_written(n, LONGEST);
}

/* What is of 16 bits is converted in strips, which these have not. */
bool tn__c_is_few_columns(const tn__nest *n)
{
    int column = n->loop_count - 1;
    int64_t columns = n->extent[column], all = 1;
    for (int l = 0; l < n->loop_count; l++)
        all *= n->reduced >> l & 1 ? 1 : n->extent[l];
    if (columns < (all >= MANY ? NARROWEST : FEWEST))
        return false;
    for (int i = 0; i < n->access_count; i++)
        if (n->access[i].dtype == TN_FLOAT16 || n->access[i].dtype == TN_BFLOAT16 ||
            (n->access[i].kind == TN__ACCESS_LOAD && !(n->access[i].stride[column] >= 0 &&
                                                       n->access[i].stride[column] <= NEAR)))
            return false;
    return n->last_kept && is_written(n, HIGHEST);
}

/* The loops that are reduced, at their element j. */
static void element_at(tn__printer *p, int j)
{
    const tn__nest *n = p->nest;
    for (int l = n->loop_count; l-- > 0;)
        if (n->reduced >> l & 1) {
            tn__line(p, "const tn_i64 x%d = %d;", l, j % (int)n->extent[l]);
            j /= (int)n->extent[l];
        }
}

/* Where a stretch of device/order.h has its last element at j, what it comes to goes into the sum that is wide. */
static void end_stretch(tn__printer *p, int level, int j, int length)
{
    if ((j + 1) % TN__REDUCE_OUTER_STRETCH && j + 1 < length)
        return;
    TN__EACH_PLAIN (p, r, level)
        if (tn__nest_widens(p->nest, r)) {
            tn__line(p, "sum%d = %s(sum%d, %s(lane%d_0));", r, tn__emit_wide_function(p, r), r, tn__emit_widening(p, r),
                     r);
            tn__line(p, "lane%d_0 = %s;", r, tn__emit_identity(p, r));
        }
}

/* Of device/order.h's lanes those that have elements: the others change nothing (tn__c_is_few). Of columns, one for
 * all, and for sums of several stretches another one that is wide; rows are no longer than one. */
static void pass(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    int length = (int)length_of(n), lanes = n->last_kept ? 1 : length;
    tn__emit_hoist_pass(p, level, n->reduced);
    TN__EACH_PLAIN (p, r, level)
        for (int j = 0; j < lanes; j++)
            tn__line(p, "%s lane%d_%d = %s;", tn__emit_type(p, r), r, j, tn__emit_identity(p, r));
    TN__EACH_PLAIN (p, r, level)
        if (tn__nest_widens(n, r))
            tn__line(p, "%s sum%d = %s;", tn__emit_wide_type(p, r), r, tn__emit_wide_identity(p, r));
    TN__EACH_POSITION (p, r, level) {
        tn__line(p, "%s best%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
        tn__line(p, "tn_i32 at%d = 0;", r);
    }
    for (int j = 0; j < length; j++) {
        tn__line(p, "{");
        element_at(p, j);
        tn__emit_scope(p);
        TN__EACH_POSITION (p, r, level)
            tn__emit_need(p, n->reduction[r].arg); /* before stores overwrite it */
        tn__emit_element(p, level);
        TN__EACH_PLAIN (p, r, level)
            tn__line(p, "lane%d_%d = %s(lane%d_%d, v%d);", r, j % lanes, tn__emit_function(p, r), r, j % lanes,
                     n->reduction[r].arg);
        TN__EACH_POSITION (p, r, level) {
            int arg = n->reduction[r].arg;
            tn__line(p, "const tn_b8 better%d = %s(best%d, v%d);", r, tn__emit_function(p, r), r, arg);
            tn__line(p, "best%d = better%d ? v%d : best%d;", r, r, arg, r);
            tn__line(p, "at%d = better%d ? %d : at%d;", r, r, j, r);
        }
        tn__line(p, "}");
        end_stretch(p, level, j, length);
    }
    for (int half = TN__REDUCE_LANES / 2; half; half /= 2)
        for (int j = 0; j < half && j + half < lanes; j++)
            TN__EACH_PLAIN (p, r, level)
                tn__line(p, "lane%d_%d = %s(lane%d_%d, lane%d_%d);", r, j, tn__emit_function(p, r), r, j, r, j + half);
    TN__EACH_PLAIN (p, r, level) {
        int e = tn__nest_reduced_expr(n, r);
        bool widens = tn__nest_widens(n, r);
        tn__line(p, "const %s v%d = %s(%s%d%s);", tn__emit_type(p, r), e, tn__emit_narrowing(p, r),
                 widens ? "sum" : "lane", r, widens ? "" : "_0");
        p->expr_note[e].printed = TN__SCOPE_ITEM;
    }
    TN__EACH_POSITION (p, r, level) {
        int e = tn__nest_reduced_expr(n, r);
        tn__line(p, "const tn_i64 v%d = at%d;", e, r);
        p->expr_note[e].printed = TN__SCOPE_ITEM;
    }
}

static void passes(tn__printer *p)
{
    for (int level = 0, count = tn__nest_passes(p->nest); level < count; level++)
        pass(p, level);
    p->scope = TN__SCOPE_ITEM;
    tn__emit_stores(p, true, 0);
}

void tn__c_emit_few(tn__printer *p)
{
    p->vector_loop = -1;
    int64_t length = p->nest->extent[1];
    p->literal =
        length == 3 || (length & (length - 1)) == 0; /* gcc takes no other numbers of neighbours apart as vectors */
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 x0 = begin; x0 < end; x0++) {");
    passes(p);
    tn__line(p, "}");
    p->literal = false;
}

void tn__c_emit_few_columns(tn__printer *p)
{
    int c = p->vector_loop;
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 x%d = l0; x%d < l1; x%d++) {", c, c, c);
    passes(p);
    tn__line(p, "}");
}
