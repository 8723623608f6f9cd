/* SPDX-License-Identifier: MIT */
/* Facts of nests that whoever writes their loops asks for: passes, and what belongs to each. */
#include "compile/loops/nest.h"

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
