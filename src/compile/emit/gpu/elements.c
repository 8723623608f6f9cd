/* SPDX-License-Identifier: MIT */
/*
 * The elements of a vector, and how their divisions are computed. An IEEE division or square root of float32 takes a
 * few instructions unless an operand is near the ends of the range. These few are printed for all elements of a vector,
 * without a branch (unchecked operations); they clear the variable `sure` where an operand may have been near the ends.
 * Then the vector, or the whole pass if it can be repeated, is computed once more by the complete operations.
 */
#include "compile/emit/gpu/form.h"

/* Is e a division or square root that the pass computes unchecked? Not in a pass that accumulates. */
static bool is_unchecked(const tn__printer *p, int e, int pass)
{
    const tn__nest *n = p->nest;
    const tn__expr_note *note = &p->expr_note[e];
    const tn__expr *x = &n->expr[e];
    bool accumulates = n->reduced && (tn__nest_reductions(n, pass, false) || tn__nest_reductions(n, pass, true));
    return !accumulates && note->passes >> (pass < 31 ? pass : 31) & 1 && note->printed != TN__SCOPE_ITEM &&
           tn__is_divided(x);
}

/* The divisor of e, if it is the same for all elements and no expression before e has it; else -1. */
static int common_divisor(const tn__printer *p, int e, int pass)
{
    const tn__nest *n = p->nest;
    int divisor = n->expr[e].op == TN__OP_DIVIDE && is_unchecked(p, e, pass) ? n->expr[e].arg[1] : -1;
    if (divisor < 0 || p->expr_note[divisor].printed != TN__SCOPE_ITEM)
        return -1;
    for (int i = 0; i < e; i++)
        if (n->expr[i].op == TN__OP_DIVIDE && is_unchecked(p, i, pass) && n->expr[i].arg[1] == divisor)
            return -1;
    return divisor;
}

void tn__gpu_declare_inverses(tn__printer *p, int pass)
{
    for (int e = 0; e < p->nest->expr_count; e++) {
        int d = common_divisor(p, e, pass);
        if (d >= 0)
            tn__line(p, "const tn_f32 y%d = tn_inverse(v%d); const bool divides%d = tn_divides(v%d);", d, d, d, d);
    }
}

bool tn__gpu_begin_unchecked(tn__printer *p, int pass)
{
    const tn__nest *n = p->nest;
    bool unchecked = false;
    for (int e = 0; e < n->expr_count; e++)
        unchecked = unchecked || is_unchecked(p, e, pass);
    if (!unchecked)
        return false;
    tn__emit_indent(p);
    tn__text_add(p->text, "bool sure = true");
    for (int e = 0; e < n->expr_count; e++)
        if (common_divisor(p, e, pass) >= 0)
            tn__text_addf(p->text, " & divides%d", common_divisor(p, e, pass));
    tn__text_add(p->text, ";\n");
    return true;
}

static void elements(tn__printer *p, const tn__gpu_form *f, int pass)
{
    tn__gpu_open_elements(p, f);
    if (p->nest->reduced)
        tn__gpu_accumulate(p, f, pass);
    tn__gpu_values(p, false, pass);
    tn__line(p, "}");
}

void tn__gpu_elements(tn__printer *p, const tn__gpu_form *f, int pass)
{
    if (!p->whole && tn__gpu_begin_unchecked(p, pass)) {
        p->unchecked = true;
        elements(p, f, pass);
        p->unchecked = false;
        tn__line(p, "if (!sure) {");
        elements(p, f, pass);
        tn__line(p, "}");
    } else {
        elements(p, f, pass);
    }
    p->lane = NULL;
}
