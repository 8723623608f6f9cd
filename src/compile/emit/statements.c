/* SPDX-License-Identifier: MIT */
/* What the kernels of every target share: the expressions of a nest as statements, in their order and their scopes. */
#include "compile/emit/emit.h"

#include <stdio.h>
#include <string.h>

const char *tn__emit_variable_type(tn_dtype dtype) { return tn__dtypes[tn__dtypes[dtype].compute].ctype; }

void tn__emit_indent(tn__printer *p)
{
    for (int i = 0; i < p->depth; i++)
        tn__text_add(p->text, "    ");
}

/* The scope that expressions are hoisted to. */
static int outer_scope(const tn__printer *p) { return p->outer ? p->outer : TN__SCOPE_ITEM; }

static bool is_hoisted(const tn__printer *p, int index)
{
    int printed = p->expr_note[index].printed;
    return printed == TN__SCOPE_ITEM || printed == outer_scope(p);
}

void tn__emit_need(tn__printer *p, int index)
{
    const tn__expr *e = &p->nest->expr[index];
    tn__expr_note *note = &p->expr_note[index];
    if (is_hoisted(p, index) || note->printed == p->scope)
        return;
    if (note->kept && !(note->passes >> p->pass & 1)) {
        tn__line(p, "const %s v%d = k%d%s[%s];", tn__emit_variable_type(e->dtype), index, index, p->vector, p->lane);
        note->printed = p->scope;
        return;
    }
    for (int i = 0; i < e->arity; i++)
        tn__emit_need(p, e->arg[i]);
    tn__emit_indent(p);
    if (e->kind == TN__EXPR_RAW) { /* a variable of another type, with a statement of its own */
        tn__print_raw(p, e, index);
        note->printed = p->scope;
        return;
    }
    tn__text_addf(p->text, "const %s v%d = ", tn__emit_variable_type(e->dtype), index);
    tn__print_value(p, e);
    tn__text_add(p->text, ";\n");
    note->printed = p->scope;
    if (note->kept && p->lane)
        tn__line(p, "k%d%s[%s] = v%d;", index, p->vector, p->lane, index);
}

/* Whether the index of a gather is in range, and where it points to, where it is hoisted to: a loop over the rest only
 * copies. It reads no extents, which gcc would leave behind the choice, and then not see that neighbours are read. */
static void check_ahead(tn__printer *p, int index, uint32_t inner)
{
    const tn__expr *e = &p->nest->expr[index];
    tn__expr_note *note = &p->expr_note[index];
    const tn__access *a = e->kind == TN__EXPR_LOAD ? &p->nest->access[e->access] : NULL;
    if (!p->checks_ahead || note->checked || !a || !a->gathered || a->known ||
        !is_hoisted(p, e->arg[0]))
        return;
    int v = e->arg[0], extra = tn__stride_param(a, p->nest->loop_count);
    tn__line(p, "const int in%d = tn_in_range(v%d, n[%d], fault, n[%d] + 1);", index, v, extra + 1, a->param);
    tn__emit_indent(p);
    tn__text_addf(p->text, "const tn_i64 at%d = tn_wrap(v%d, n[%d]) * n[%d] + n[%d]", index, v, extra + 1, extra,
                  a->param + 1);
    tn__print_steps(p, a, ~inner);
    tn__text_add(p->text, ";\n");
    note->checked = true;
    note->ahead = inner;
}

/* Each expression once: there are exponentially many ways down where values are used twice, and their users too. */
static void hoist(tn__printer *p, int index, uint32_t inner)
{
    const tn__expr *e = &p->nest->expr[index];
    tn__expr_note *note = &p->expr_note[index];
    if (is_hoisted(p, index) || note->walk == p->walk)
        return;
    note->walk = p->walk;
    if (!(e->loops & inner) && e->kind != TN__EXPR_REDUCED) {
        int scope = p->scope;
        p->scope = outer_scope(p);
        tn__emit_need(p, index);
        p->scope = scope;
        return;
    }
    for (int i = 0; i < e->arity; i++)
        hoist(p, e->arg[i], inner);
    check_ahead(p, index, inner);
}

void tn__emit_hoist(tn__printer *p, int index, uint32_t inner)
{
    p->walk++;
    hoist(p, index, inner);
}

static void print_store(tn__printer *p, const tn__store *s)
{
    const tn__access *a = &p->nest->access[s->access];
    tn__emit_need(p, s->expr);
    if (tn__access_note_of(p, a)->wide) {
        tn__line(p, "w%d[%s] = v%d;", s->access, p->strip, s->expr);
        return;
    }
    tn__emit_indent(p);
    tn__print_element(p, s->access);
    if (a->dtype == TN_FLOAT16 || a->dtype == TN_BFLOAT16)
        tn__text_addf(p->text, " = tn_f32_to_%s(v%d);\n", tn__dtypes[a->dtype].suffix, s->expr);
    else
        tn__text_addf(p->text, " = v%d;\n", s->expr);
}

void tn__emit_stores(tn__printer *p, bool rows, int level)
{
    const tn__nest *n = p->nest;
    for (int pass = 0; pass < 2; pass++) /* values, then stores */
        for (int s = 0; s < n->store_count; s++) {
            if (n->reduced && (n->store[s].row != rows || (!rows && n->store[s].level != level)))
                continue;
            if (pass == 0)
                tn__emit_need(p, n->store[s].expr);
            else
                print_store(p, &n->store[s]);
        }
}

void tn__line(tn__printer *p, const char *format, ...)
{
    char text[512]; /* before words are expanded */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (text[0] == '}')
        p->depth--;
    tn__emit_indent(p);
    tn__words_expand(p->emitter->target, text, p->text);
    tn__text_add(p->text, "\n");
    size_t length = strlen(text);
    if (length && text[length - 1] == '{')
        p->depth++;
}

int tn__emit_scope(tn__printer *p) { return p->scope = ++p->scopes; }

/* Variables of the given loops from a number that counts through them, last fastest. */
void tn__emit_decode(tn__printer *p, uint32_t loops, const char *from)
{
    int count = __builtin_popcount(loops);
    if (count > 1)
        tn__line(p, "tn_i64 q = %s;", from);
    for (int l = p->nest->loop_count - 1; l >= 0; l--) {
        if (!(loops >> l & 1))
            continue;
        if (count == 1)
            tn__line(p, "const tn_i64 x%d = %s;", l, __builtin_popcount(loops) > 1 ? "q" : from);
        else
            tn__line(p, "const tn_i64 x%d = q %% n[%d]; q /= n[%d];", l, TN__EXTENT(l), TN__EXTENT(l));
        count--;
    }
}

void tn__emit_bases(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        if (!tn__has_base(a))
            continue;
        tn__emit_indent(p);
        tn__text_addf(p->text, "const tn_i64 base%d = n[%d]", i, a->param + 1);
        tn__print_steps(p, a, ~(1u << p->vector_loop));
        tn__text_add(p->text, ";\n");
        if (a->stride[p->vector_loop] && a->stride[p->vector_loop] != 1)
            tn__line(p, "const tn_i64 step%d = n[%d];", i, tn__stride_param(a, p->vector_loop));
    }
    p->based = true;
}

/* ---- passes ---- */

/* A pass's work on one element: stores of its level, and the reductions' elements left in variables. */
void tn__emit_element(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level && !(tn__ops[n->reduction[r].op].props & TN_ARG))
            tn__emit_need(p, n->reduction[r].arg);
    tn__emit_stores(p, false, level);
}

void tn__emit_hoist_pass(tn__printer *p, int level, uint32_t inner)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level)
            tn__emit_hoist(p, n->reduction[r].arg, inner);
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row && n->store[s].level == level)
            tn__emit_hoist(p, n->store[s].expr, inner);
}

/* ---- a nest ---- */

/* What nobody but stores needs is rounded by these. */
static void find_loose(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++)
        p->expr_note[n->store[s].expr].loose = true;
    for (int s = 0; s < n->store_count; s++)
        p->expr_note[n->store[s].expr].loose &= n->expr[n->store[s].expr].dtype == n->access[n->store[s].access].dtype;
    for (int e = 0; e < n->expr_count; e++)
        for (int i = 0; i < n->expr[e].arity; i++)
            p->expr_note[n->expr[e].arg[i]].loose = false;
    for (int r = 0; r < n->reduction_count; r++)
        p->expr_note[n->reduction[r].arg].loose = false;
}

static void print_body(tn__printer *p)
{
    const tn__nest *n = p->nest;
    find_loose(p);
    tn__line(p, "{");
    tn__line(p, "(void)s, (void)fault;");
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        if (a->operand < 0)
            continue;
        const char *type = tn__dtypes[a->dtype].ctype, *constant = a->kind == TN__ACCESS_LOAD ? "const " : "";
        p->emitter->needs |= tn_dtype_is_complex(a->dtype) ? TN__NEEDS_COMPLEX : 0;
        tn__line(p, "%s@memory %s *const p%d = (%s@memory %s *)p[n[%d]];", constant, type, i, constant, type, a->param);
    }
    p->emitter->target->loops(p);
    tn__line(p, "}");
    tn__text_add(p->text, "\n");
}

void tn__print_nest(tn__printer *p)
{
    const tn__nest *n = p->nest;
    p->scopes = TN__SCOPE_FIRST;
    p->scope = TN__SCOPE_NONE;
    p->outer = 0;
    p->depth = 0;
    p->index = "";
    p->literal = false;
    p->expr_note = tn__calloc((size_t)n->expr_count + 1, sizeof *p->expr_note);
    p->access_note = tn__calloc((size_t)n->access_count + 1, sizeof *p->access_note);
    if (p->expr_note && p->access_note)
        print_body(p);
    else
        p->text->failed = true;
    tn__free(p->expr_note);
    tn__free(p->access_note);
}
