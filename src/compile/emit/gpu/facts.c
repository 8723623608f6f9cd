/* SPDX-License-Identifier: MIT */
/* Properties of nests that several of the files that print a GPU's loops ask for. */
#include "compile/emit/gpu/form.h"

bool tn__gpu_is_random(const tn__expr *e) { return e->kind == TN__EXPR_INDEX && e->op != TN__OP_IOTA; }

bool tn__gpu_makes_random(const tn__nest *nest)
{
    for (int e = 0; e < nest->expr_count; e++)
        if (tn__gpu_is_random(&nest->expr[e]))
            return true;
    return false;
}

bool tn__gpu_has_row_values(const tn__nest *nest)
{
    for (int s = 0; s < nest->store_count; s++)
        if (nest->store[s].row)
            return true;
    return false;
}

bool tn__gpu_ends_uncombined(const tn__nest *nest)
{
    int last = tn__nest_passes(nest) - 1;
    for (int r = 0; r < nest->reduction_count; r++)
        if (nest->reduction[r].level == last)
            return false;
    return true;
}

bool tn__gpu_skips_absent(const tn__nest *nest)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->access[i].gathered)
            return true;
    for (int e = 0; e < nest->expr_count; e++)
        if (nest->expr[e].kind == TN__EXPR_OP && tn__ops[nest->expr[e].op].kind == TN__KIND_USER)
            return true;
    return false;
}

bool tn__gpu_same_in_rows(const tn__nest *n, const tn__access *a)
{
    bool varies = false, kept = false;
    for (int l = 0; l < n->loop_count; l++) {
        kept = kept || !(n->reduced >> l & 1);
        varies = varies || (!(n->reduced >> l & 1) && a->stride[l]);
    }
    return kept && !varies;
}

bool tn__gpu_widens(const tn__nest *n, const tn__expr *e)
{
    const tn__expr *from = &n->expr[e->arg[0]];
    return e->kind == TN__EXPR_OP && e->op == TN__OP_CAST && from->kind == TN__EXPR_LOAD && !from->arity &&
           tn_dtype_size(from->dtype) == 2;
}

/* ---- registers ---- */

typedef struct span {
    int first, last; /* first and last pass that a value lives in; -1: none */
} span;

/* Notes that a pass needs expression e, and what e is made of, unless an earlier pass has it: as tn__gpu_find does. */
static void follow(const tn__nest *n, int e, int pass, span *of)
{
    const tn__expr *x = &n->expr[e];
    if (x->kind == TN__EXPR_REDUCED || !(x->loops & n->reduced))
        return;
    of[e].last = pass;
    if (of[e].first >= 0 && !tn__gpu_widens(n, x))
        return;
    of[e].first = pass;
    for (int i = 0; i < x->arity; i++)
        follow(n, x->arg[i], pass, of);
}

static bool is_load(const tn__expr *e) { return e->kind == TN__EXPR_LOAD && !e->arity; }

static int64_t words_of(const tn__nest *n, const tn__expr *e, int loop, int width)
{
    const tn__access *a = is_load(e) ? &n->access[e->access] : NULL;
    int64_t size = (int64_t)tn_dtype_size(a ? a->dtype : tn__dtypes[e->dtype].compute);
    int64_t count = a && !a->stride[loop] ? 1 : width;
    return a ? (count * size + 3) / 4 : count * ((size + 3) / 4); /* computed values have a 32-bit variable each,
                                                                     loaded ones share registers */
}

int64_t tn__gpu_kept_words(const tn__nest *n, int loop, int width)
{
    span of[TN__GPU_EXPRS];
    int64_t most = width;
    int passes = tn__nest_passes(n);
    if (n->expr_count > TN__GPU_EXPRS || passes > 31)
        return INT32_MAX;
    for (int e = 0; e < n->expr_count; e++)
        of[e] = (span){-1, -1};
    for (int pass = 0; pass < passes; pass++) {
        for (int r = 0; r < n->reduction_count; r++)
            if (n->reduction[r].level == pass)
                follow(n, n->reduction[r].arg, pass, of);
        for (int s = 0; s < n->store_count; s++)
            if (!n->store[s].row && n->store[s].level == pass)
                follow(n, n->store[s].expr, pass, of);
    }
    for (int pass = 0; pass < passes; pass++) {
        int64_t before = 0, after = 0; /* live before the pass's computations, when all its loads are done, and after
                                          them, for later passes */
        for (int e = 0; e < n->expr_count; e++) {
            const tn__expr *x = &n->expr[e];
            if (of[e].first < 0 || of[e].first > pass || of[e].last < pass || tn__gpu_widens(n, x) ||
                (is_load(x) && tn__gpu_same_in_rows(n, &n->access[x->access]))) /* loaded where it is used */
                continue;
            int64_t words = words_of(n, x, loop, width);
            before += of[e].first < pass || is_load(x) || tn__gpu_is_random(x) ? words : 0;
            after += of[e].last > pass ? words : 0;
        }
        most = before > most ? before : most;
        most = after > most ? after : most;
    }
    return most;
}
