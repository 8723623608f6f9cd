/* SPDX-License-Identifier: MIT */
/* Vectors: what a thread loads, computes and stores together in a pass. */
#include "compile/emit/gpu/form.h"

#include <stdio.h>

/* ---- what passes compute ---- */

/* Notes that a pass needs expression e and its operands; values that stay in registers may have been computed in an
 * earlier pass. What varies with columns alone is computed again in each pass: to keep it would take registers for each
 * row. */
static void visit(tn__printer *p, const tn__gpu_form *f, int index, uint32_t inner, int pass)
{
    const tn__expr *e = &p->nest->expr[index];
    tn__expr_note *note = &p->expr_note[index];
    uint32_t bit = 1u << (pass < 31 ? pass : 31);
    if (e->kind == TN__EXPR_REDUCED || !(e->loops & inner) || note->passes & bit)
        return;
    if (note->passes && f->in_registers && e->loops & p->nest->reduced && !tn__gpu_widens(p->nest, e)) {
        note->kept = e->kind != TN__EXPR_LOAD || e->arity;
        return;
    }
    note->passes |= bit;
    for (int i = 0; i < e->arity; i++)
        visit(p, f, e->arg[i], inner, pass);
}

void tn__gpu_find(tn__printer *p, const tn__gpu_form *f, uint32_t inner)
{
    const tn__nest *n = p->nest;
    for (int pass = 0, passes = tn__nest_passes(n); pass < passes || pass == 0; pass++) {
        for (int r = 0; r < n->reduction_count; r++)
            if (n->reduction[r].level == pass)
                visit(p, f, n->reduction[r].arg, inner, pass);
        for (int s = 0; s < n->store_count; s++)
            if (!n->reduced || (!n->store[s].row && n->store[s].level == pass))
                visit(p, f, n->store[s].expr, inner, pass);
    }
}

/* Is e a load, or a draw of random numbers, that this pass does a vector at a time? */
static bool brings(const tn__printer *p, const tn__gpu_form *f, int index, int pass)
{
    const tn__expr *e = &p->nest->expr[index];
    const tn__expr_note *note = &p->expr_note[index];
    if (!(note->passes >> (pass < 31 ? pass : 31) & 1) || note->printed == TN__SCOPE_ITEM)
        return false;
    if (e->kind == TN__EXPR_LOAD)
        return !e->arity;
    return tn__gpu_is_random(e) && f->width > 1 && p->nest->access[e->access].stride[f->loop] == 1;
}

/* ---- vectors ---- */

static int vector_width(const tn__gpu_form *f, const tn__access *a)
{
    return f->loop >= 0 && a->stride[f->loop] ? f->width : 1;
}

static const char *stored_type(const tn__printer *p, const tn__expr *e)
{
    const tn__access *a = &p->nest->access[e->access];
    return tn__dtypes[e->kind == TN__EXPR_LOAD ? a->dtype : tn__dtypes[e->dtype].compute].ctype;
}

void tn__gpu_declare(tn__printer *p, const tn__gpu_form *f, int pass)
{
    const tn__nest *n = p->nest;
    for (int e = 0; e < n->expr_count; e++) {
        const tn__expr *x = &n->expr[e];
        if (brings(p, f, e, pass))
            tn__line(p, "@vector(%s, %d) c%d[%d];", stored_type(p, x), vector_width(f, &n->access[x->access]),
                     x->access, f->batch);
        if (p->expr_note[e].kept && p->expr_note[e].passes >> (pass < 31 ? pass : 31) & 1)
            tn__line(p, "%s k%d[%d][%d];", tn__dtypes[tn__dtypes[x->dtype].compute].ctype, e, f->batch, f->width);
    }
}

bool tn__gpu_is_transposed(const tn__printer *p, const tn__gpu_form *f, const tn__expr *e)
{
    if (f->kind != TN__GPU_TILES || e->kind != TN__EXPR_LOAD || e->arity)
        return false;
    const tn__access *a = &p->nest->access[e->access];
    int64_t along = a->stride[f->tiled], across = a->stride[f->loop];
    return (along == 1 || along == -1) && (across > 1 || across < -1);
}

/* ---- rows in shared memory: each thread finds what it has put there itself ---- */

static bool stays(const tn__printer *p, const tn__gpu_form *f, const tn__expr *e)
{
    uint32_t passes = tn__note_of(p, e)->passes;
    return f->shared && e->kind == TN__EXPR_LOAD && !e->arity && (passes & (passes - 1));
}

static bool later(const tn__printer *p, const tn__gpu_form *f, const tn__expr *e, int pass)
{
    return stays(p, f, e) && tn__note_of(p, e)->passes & ((1u << pass) - 1);
}

int64_t tn__gpu_shared_bytes(const tn__gpu_form *f, const tn__access *a, int64_t vectors)
{
    return (vector_width(f, a) * (int64_t)tn_dtype_size(a->dtype) * vectors + 15) / 16 * 16;
}

void tn__gpu_declare_shared(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    if (!f->shared)
        return;
    tn__line(p, "@shared unsigned char *free = tn_shared;");
    for (int e = 0; e < n->expr_count; e++) {
        if (!stays(p, f, &n->expr[e]))
            continue;
        const tn__access *a = &n->access[n->expr[e].access];
        int width = vector_width(f, a), bytes = width * (int)tn_dtype_size(a->dtype), i = n->expr[e].access;
        const char *type = tn__dtypes[a->dtype].ctype;
        tn__line(p, "@shared @vector(%s, %d) *const h%d = (@shared @vector(%s, %d) *)free;", type, width, i, type,
                 width);
        tn__line(p, "free += (%d * (int)n[%d] + 15) / 16 * 16;", bytes, TN__GPU_ROWS_AT(n));
    }
}

void tn__gpu_keep(tn__printer *p, const tn__gpu_form *f, int pass)
{
    const tn__nest *n = p->nest;
    for (int e = 0; e < n->expr_count; e++)
        if (stays(p, f, &n->expr[e]) && brings(p, f, e, pass) && !later(p, f, &n->expr[e], pass))
            tn__line(p, "h%d[id] = c%d%s;", n->expr[e].access, n->expr[e].access, p->vector);
}

static void print_random(tn__printer *p, const tn__gpu_form *f, const tn__expr *e, bool apart)
{
    const tn__access *a = &p->nest->access[e->access];
    tn__text_addf(p->text, "tn_%s%s(c%d%s, key%d, counter%d, (tn_u64)%s(", tn__ops[e->op].name, apart ? "_apart" : "",
                  e->access, p->vector, e->access, e->access, f->wide ? "" : "(tn_u32)");
    tn__print_position(p, a);
    if (apart)
        tn__text_addf(p->text, "), carries%d);\n", e->access);
    else
        tn__text_add(p->text, "));\n");
}

static void round_random(tn__printer *p, const tn__gpu_form *f, const tn__expr *e)
{
    if (tn__dtypes[e->dtype].compute != e->dtype && !tn__note_of(p, e)->loose)
        tn__line(p, "for (int u = 0; u < %d; u++) c%d%s.e[u] = tn_round_%s(c%d%s.e[u]);", f->width, e->access,
                 p->vector, tn__dtypes[e->dtype].suffix, e->access, p->vector);
}

static void load_access(tn__printer *p, const tn__gpu_form *f, int index)
{
    const tn__expr *e = &p->nest->expr[index];
    const tn__access *a = &p->nest->access[e->access];
    int i = e->access;
    if (later(p, f, e, p->pass)) {
        tn__line(p, "if (live) c%d%s = h%d[id];", i, p->vector, i);
        tn__access_note_of(p, a)->staged = true;
        return;
    }
    tn__emit_indent(p);
    if (tn__gpu_is_random(e)) {
        tn__function(p, e->op, e->dtype); /* makes the generator part of the text */
        print_random(p, f, e, false);
        round_random(p, f, e);
    } else if (tn__gpu_is_transposed(p, f, e)) {
        tn__text_addf(p->text, "c%d%s.e[0] = tile%d[j][i];\n", i, p->vector, i);
    } else if (vector_width(f, a) == 1) {
        tn__text_addf(p->text, "if (live > 0) c%d%s.e[0] = p%d[", i, p->vector, i);
        tn__print_position(p, a);
        tn__text_add(p->text, "];\n");
    } else {
        bool piece = tn__gpu_in_one_piece(p, f, i);
        tn__text_addf(p->text, "%s(c%d%s, p%d + (", piece ? "tn_load" : "tn_load_apart", i, p->vector, i);
        tn__print_position(p, a);
        if (piece)
            tn__text_addf(p->text, "), live, w%d);\n", i);
        else
            tn__text_addf(p->text, "), live, (ix)n[%d]);\n", tn__stride_param(a, f->loop));
    }
    tn__access_note_of(p, a)->staged = true;
}

static void open_positions(tn__printer *p, const tn__gpu_form *f)
{
    tn__line(p, "{");
    if (f->loop >= 0) {
        tn__line(p, "const ix x%d = b%d;", f->loop, f->loop);
        tn__line(p, "(void)x%d;", f->loop);
    }
}

/* Prints a condition that has the same value in all threads: whether a vector may begin in the middle of one of the
 * generator's blocks (of at most four numbers), or the generator's counter may carry into its upper half within a
 * vector. */
void tn__gpu_print_random_apart(tn__printer *p, const tn__gpu_form *f, int pass)
{
    const tn__nest *n = p->nest;
    tn__emit_indent(p);
    tn__text_add(p->text, "if (false");
    for (int e = 0; e < n->expr_count; e++) {
        if (!tn__gpu_is_random(&n->expr[e]) || !brings(p, f, e, pass))
            continue;
        const tn__access *a = &n->access[n->expr[e].access];
        tn__text_addf(p->text, " | carries%d | (n[%d]", n->expr[e].access, a->param + 1);
        for (int l = 0; l < n->loop_count; l++)
            if (a->stride[l] && l != f->loop)
                tn__text_addf(p->text, " | n[%d]", tn__stride_param(a, l));
        tn__text_add(p->text, ") % 4 != 0");
    }
    tn__text_add(p->text, ") {\n");
}

void tn__gpu_mend_random(tn__printer *p, const tn__gpu_form *f, int pass)
{
    const tn__nest *n = p->nest;
    if (!tn__gpu_makes_random(n))
        return;
    open_positions(p, f);
    for (int e = 0; e < n->expr_count; e++)
        if (tn__gpu_is_random(&n->expr[e]) && brings(p, f, e, pass)) {
            tn__emit_indent(p);
            print_random(p, f, &n->expr[e], true);
            round_random(p, f, &n->expr[e]);
        }
    tn__line(p, "}");
}

/* Is e a load that is issued just before its use? Values that all rows share come from a cache, and registers are left
 * to those that differ. */
static bool loads_after_wait(const tn__printer *p, const tn__gpu_form *f, int e)
{
    const tn__nest *n = p->nest;
    return (f->in_registers || f->shared) && n->expr[e].kind == TN__EXPR_LOAD &&
           tn__gpu_same_in_rows(n, &n->access[n->expr[e].access]);
}

static void load(tn__printer *p, const tn__gpu_form *f, int pass, bool after_wait)
{
    open_positions(p, f);
    for (int e = 0; e < p->nest->expr_count; e++)
        if (brings(p, f, e, pass) && loads_after_wait(p, f, e) == after_wait)
            load_access(p, f, e);
    tn__line(p, "}");
}

void tn__gpu_load(tn__printer *p, const tn__gpu_form *f, int pass)
{
    const tn__nest *n = p->nest;
    for (int i = 0; i < n->access_count; i++)
        p->access_note[i].staged = p->access_note[i].staged && f->in_registers;
    load(p, f, pass, false);
    if (f->kind != TN__GPU_ELEMENTWISE)
        tn__gpu_mend_random(p, f, pass);
}

void tn__gpu_load_late(tn__printer *p, const tn__gpu_form *f, int pass)
{
    bool any = false;
    for (int e = 0; e < p->nest->expr_count; e++)
        any = any || (brings(p, f, e, pass) && loads_after_wait(p, f, e));
    if (any)
        load(p, f, pass, true);
}

bool tn__gpu_repeats(const tn__printer *p, const tn__gpu_form *f, int pass)
{
    const tn__nest *n = p->nest;
    bool repeats = f->in_registers || f->shared;
    for (int e = 0; e < n->expr_count; e++)
        repeats = repeats && (!brings(p, f, e, pass) || loads_after_wait(p, f, e) || later(p, f, &n->expr[e], pass));
    return repeats;
}

void tn__gpu_open_elements(tn__printer *p, const tn__gpu_form *f)
{
    tn__line(p, "@unroll");
    tn__line(p, "for (int u = 0; u < %d; u++) {", f->width);
    if (f->loop >= 0) {
        tn__line(p, "const ix x%d = b%d + u;", f->loop, f->loop);
        tn__line(p, "(void)x%d;", f->loop);
    }
    if (tn__gpu_skips_absent(p->nest))
        tn__line(p, "if (u >= live) continue;");
    p->lane = "u";
    tn__emit_scope(p);
}

static bool stores(const tn__nest *n, int s, bool rows, int pass)
{
    return !n->reduced || (n->store[s].row == rows && (rows || n->store[s].level == pass));
}

void tn__gpu_declare_stores(tn__printer *p, const tn__gpu_form *f, bool rows, int pass)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++)
        if (stores(n, s, rows, pass) && n->access[n->store[s].access].operand >= 0)
            tn__line(p, "@vector(%s, %d) o%d;", tn__dtypes[n->access[n->store[s].access].dtype].ctype, f->width,
                     n->store[s].access);
}

void tn__gpu_values(tn__printer *p, bool rows, int pass)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        const tn__store *t = &n->store[s];
        if (!stores(n, s, rows, pass) || n->access[t->access].operand < 0)
            continue;
        tn__emit_need(p, t->expr);
        tn_dtype dtype = n->access[t->access].dtype;
        bool narrow = tn__dtypes[dtype].compute != dtype;
        tn__line(p, "o%d.e[u] = %s%s(v%d);", t->access, narrow ? "tn_f32_to_" : "",
                 narrow ? tn__dtypes[dtype].suffix : "", t->expr);
    }
}

void tn__gpu_store(tn__printer *p, const tn__gpu_form *f, bool rows, int pass)
{
    const tn__nest *n = p->nest;
    open_positions(p, f);
    for (int s = 0; s < n->store_count; s++) {
        int i = n->store[s].access;
        const tn__access *a = &n->access[i];
        if (!stores(n, s, rows, pass) || a->operand < 0)
            continue;
        bool piece = tn__gpu_in_one_piece(p, f, i);
        tn__emit_indent(p);
        tn__text_addf(p->text, "%s(o%d, p%d + (", piece ? "tn_store" : "tn_store_apart", i, i);
        tn__print_position(p, a);
        if (piece)
            tn__text_addf(p->text, "), live, w%d);\n", i);
        else if (f->loop >= 0 && a->stride[f->loop])
            tn__text_addf(p->text, "), live, (ix)n[%d]);\n", tn__stride_param(a, f->loop));
        else
            tn__text_add(p->text, "), live, (ix)1);\n");
    }
    tn__line(p, "}");
}
