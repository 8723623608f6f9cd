/* SPDX-License-Identifier: MIT */
/*
 * Rows of few elements in C, of 3 coordinates or 10 classes, that are reduced: their elements stand one after the other
 * in the text, so that the loop that becomes one of vectors is that over rows.
 */
#include <stdio.h>

#include "compile/emit_c.h"
#include "device/order.h"

#define LONGEST      16  /* rows that are written out */
#define FEWEST       64  /* rows that pay */
#define MOST_WRITTEN 256 /* expressions of all elements */

/* Rows alone, and nothing that may fail or lies anywhere. */
bool tn__c_is_few(const tn__nest *n)
{
    if (n->part != TN__PART_WHOLE || n->loop_count != 2 || n->reduced != 2u || n->last_kept || n->extent[1] < 2 ||
        n->extent[1] > LONGEST || n->extent[0] < FEWEST || n->expr_count * n->extent[1] > MOST_WRITTEN)
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

/* Of device/order.h's lanes those that have elements: an identity changes nothing that has been combined with one. */
static void pass(tn__printer *p, int level)
{
    tn__nest *n = p->nest;
    int length = (int)n->extent[1];
    tn__emit_hoist_pass(p, level, n->reduced);
    TN__EACH_PLAIN (p, r, level)
        for (int j = 0; j < length; j++)
            tn__line(p, "%s lane%d_%d = %s;", tn__emit_type(p, r), r, j, tn__emit_identity(p, r));
    TN__EACH_POSITION (p, r, level) {
        tn__line(p, "%s best%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
        tn__line(p, "tn_i32 at%d = 0;", r);
    }
    for (int j = 0; j < length; j++) {
        tn__line(p, "{");
        tn__line(p, "const tn_i64 x1 = %d;", j);
        tn__emit_scope(p);
        tn__emit_element(p, level);
        TN__EACH_PLAIN (p, r, level)
            tn__line(p, "lane%d_%d = %s(lane%d_%d, v%d);", r, j, tn__emit_function(p, r), r, j, n->reduction[r].arg);
        TN__EACH_POSITION (p, r, level) {
            int arg = n->reduction[r].arg;
            tn__emit_need(p, arg);
            tn__line(p, "const tn_b8 better%d = %s(best%d, v%d);", r, tn__emit_function(p, r), r, arg);
            tn__line(p, "best%d = better%d ? v%d : best%d;", r, r, arg, r);
            tn__line(p, "at%d = better%d ? %d : at%d;", r, r, j, r);
        }
        tn__line(p, "}");
    }
    for (int half = TN__REDUCE_LANES / 2; half; half /= 2)
        for (int j = 0; j < half && j + half < length; j++)
            TN__EACH_PLAIN (p, r, level)
                tn__line(p, "lane%d_%d = %s(lane%d_%d, lane%d_%d);", r, j, tn__emit_function(p, r), r, j, r, j + half);
    TN__EACH_PLAIN (p, r, level) {
        int e = tn__nest_reduced_expr(n, r);
        tn__line(p, "const %s v%d = %s(lane%d_0);", tn__emit_type(p, r), e, tn__emit_rounding(p, r), r);
        n->expr[e].printed = TN__SCOPE_ITEM;
    }
    TN__EACH_POSITION (p, r, level) {
        int e = tn__nest_reduced_expr(n, r);
        tn__line(p, "const tn_i64 v%d = at%d;", e, r);
        n->expr[e].printed = TN__SCOPE_ITEM;
    }
}

void tn__c_emit_few(tn__printer *p)
{
    p->vector_loop = -1;
    int64_t length = p->nest->extent[1];
    p->literal =
        length == 3 || (length & (length - 1)) == 0; /* gcc takes no other numbers of neighbours apart as vectors */
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 x0 = begin; x0 < end; x0++) {");
    for (int level = 0, passes = tn__nest_passes(p->nest); level < passes; level++)
        pass(p, level);
    p->scope = TN__SCOPE_ITEM;
    tn__emit_stores(p, true, 0);
    tn__line(p, "}");
    p->literal = false;
}
