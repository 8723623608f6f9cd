/* SPDX-License-Identifier: MIT */
/* Facts of nests that whoever writes their loops asks for: passes, and what belongs to each. */
#include "compile/loops/nest.h"
#include "device/order.h"

uint32_t tn__nest_loops(const tn__nest *n) { return (1u << n->loop_count) - 1; }

bool tn__nest_has_stores(const tn__nest *n, int level)
{
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row && n->store[s].level == level)
            return true;
    return false;
}

int tn__nest_reductions(const tn__nest *n, int level, bool arg)
{
    int count = 0;
    for (int r = 0; r < n->reduction_count; r++)
        count += n->reduction[r].level == level && !!(tn__ops[n->reduction[r].op].props & TN_ARG) == arg;
    return count;
}

int tn__nest_passes(const tn__nest *n)
{
    int passes = 0;
    for (int r = 0; r < n->reduction_count; r++)
        passes = n->reduction[r].level + 1 > passes ? n->reduction[r].level + 1 : passes;
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row)
            passes = n->store[s].level + 1 > passes ? n->store[s].level + 1 : passes;
    return passes;
}

int tn__nest_reduced_expr(const tn__nest *n, int r)
{
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kind == TN__EXPR_REDUCED && n->expr[e].reduction == r)
            return e;
    return -1;
}

int64_t tn__nest_length(const tn__nest *n)
{
    int64_t length = 1;
    for (int l = 0; l < n->loop_count; l++)
        length *= n->reduced >> l & 1 ? n->extent[l] : 1;
    return length;
}

bool tn__nest_widens(const tn__nest *n, int r)
{
    const tn__reduction *red = &n->reduction[r];
    bool may = !red->user && !red->about_mean && tn__ops[red->op].props & TN_WIDENED;
    int stretch = n->last_kept ? TN__REDUCE_OUTER_STRETCH : TN__REDUCE_STRETCH;
    return may && tn__dtype_wide(red->dtype) != red->dtype && tn__nest_length(n) > stretch;
}

bool tn__nest_start_is_neutral(const tn__nest *n, int r)
{
    const tn__reduction *red = &n->reduction[r];
    return !red->user && !(red->op == TN__OP_PROD && tn_dtype_is_complex(red->dtype));
}

bool tn__nest_widens_any(const tn__nest *n, int level)
{
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level && tn__nest_widens(n, r))
            return true;
    return false;
}

/* Of the expressions that e needs, itself included, those that vary with the reduced loops; no more than `most` + 1. */
static int varying(const tn__nest *n, int e, int most)
{
    const tn__expr *x = &n->expr[e];
    int count = (x->loops & n->reduced) != 0;
    for (int i = 0; count && i < x->arity && count <= most; i++)
        count += varying(n, x->arg[i], most - count);
    return count;
}

bool tn__nest_is_short(const tn__nest *n, int level, int most)
{
    int count = 0;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level && count <= most)
            count += varying(n, n->reduction[r].arg, most - count);
    return count <= most && !tn__nest_has_stores(n, level);
}
