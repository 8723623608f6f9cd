/* SPDX-License-Identifier: MIT */
/* Facts of nests that more than one of the files that write CUDA C asks for. */
#include "compile/emit_cuda.h"

bool tn__cu_is_random(const tn__expr *e) { return e->kind == TN__EXPR_INDEX && e->op != TN__OP_IOTA; }

bool tn__cu_makes_random(const tn__nest *nest)
{
    for (int e = 0; e < nest->expr_count; e++)
        if (tn__cu_is_random(&nest->expr[e]))
            return true;
    return false;
}

bool tn__cu_has_row_values(const tn__nest *nest)
{
    for (int s = 0; s < nest->store_count; s++)
        if (nest->store[s].row)
            return true;
    return false;
}

bool tn__cu_skips_absent(const tn__nest *nest)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->access[i].gathered)
            return true;
    for (int e = 0; e < nest->expr_count; e++)
        if (nest->expr[e].kind == TN__EXPR_OP && tn__ops[nest->expr[e].op].kind == TN__KIND_USER)
            return true;
    return false;
}

bool tn__cu_same_in_rows(const tn__nest *n, const tn__access *a)
{
    bool varies = false, kept = false;
    for (int l = 0; l < n->loop_count; l++) {
        kept = kept || !(n->reduced >> l & 1);
        varies = varies || (!(n->reduced >> l & 1) && a->stride[l]);
    }
    return kept && !varies;
}
