/* SPDX-License-Identifier: MIT */
/*
 * Strips in C: of what a loop through neighbours reads as float16, a strip is widened ahead of it, into memory that
 * stays in the nearest cache; what it writes as float16 or bfloat16 is narrowed behind it; and random numbers are made
 * ahead, by blocks of the generator.
 */
#include "compile/emit/c/c.h"

#include <stdio.h>

#define SHORTEST 64 /* a loop that pays for it */

static bool neighbours(const tn__printer *p, const tn__access *a, int loop)
{
    return (a->stride[loop] == 1 || tn__access_note_of(p, a)->staged) && p->nest->extent[loop] >= SHORTEST;
}

/* Loads of bfloat16 are shifts, which need no strip. */
static bool is_wide(const tn__printer *p, const tn__access *a, int loop)
{
    bool converts = a->dtype == TN_FLOAT16 || (a->dtype == TN_BFLOAT16 && a->kind == TN__ACCESS_STORE);
    return a->kind != TN__ACCESS_INDEX && converts && a->operand >= 0 && !a->gathered && !a->raw &&
           neighbours(p, a, loop);
}

static bool is_made(const tn__printer *p, const tn__expr *e, int loop)
{
    return e->kind == TN__EXPR_INDEX && e->op != TN__OP_IOTA && neighbours(p, &p->nest->access[e->access], loop);
}

static bool is_stored(const tn__nest *n, const tn__store *s, bool rows, int level)
{
    return !n->reduced || (s->row == rows && (rows || s->level == level));
}

/* Marks what a pass computes in its loop. An expression stands behind those that it needs. */
static void reach(const tn__printer *p, bool rows, int level)
{
    const tn__nest *n = p->nest;
    for (int e = 0; e < n->expr_count; e++)
        p->expr_note[e].reached = false;
    for (int r = 0; r < n->reduction_count && !rows; r++)
        if (n->reduction[r].level == level && !tn__c_is_position(n, r, level))
            p->expr_note[n->reduction[r].arg].reached = true;
    for (int s = 0; s < n->store_count; s++)
        if (is_stored(n, &n->store[s], rows, level))
            p->expr_note[n->store[s].expr].reached = true;
    for (int e = n->expr_count - 1; e >= 0; e--) {
        const tn__expr *x = &n->expr[e];
        tn__expr_note *note = &p->expr_note[e];
        note->reached = note->reached && note->printed != TN__SCOPE_ITEM && x->kind != TN__EXPR_REDUCED;
        for (int i = 0; i < x->arity && note->reached; i++)
            p->expr_note[x->arg[i]].reached = true;
    }
}

bool tn__c_has_strip(tn__printer *p, int loop, bool rows, int level)
{
    const tn__nest *n = p->nest;
    bool any = false;
    reach(p, rows, level);
    for (int e = 0; e < n->expr_count; e++) {
        const tn__expr *x = &n->expr[e];
        any |= p->expr_note[e].reached &&
               (is_made(p, x, loop) || (x->kind == TN__EXPR_LOAD && is_wide(p, &n->access[x->access], loop)));
    }
    for (int s = 0; s < n->store_count; s++)
        any |= is_stored(n, &n->store[s], rows, level) && is_wide(p, &n->access[n->store[s].access], loop);
    return any;
}

/* The address of a strip's first element. */
static void print_first(tn__printer *p, int access)
{
    if (p->access_note[access].staged) {
        tn__text_addf(p->text, "c%d%s.e", access, p->vector);
        return;
    }
    tn__text_addf(p->text, "&p%d[", access);
    tn__print_position(p, &p->nest->access[access]);
    tn__text_add(p->text, "]");
}

void tn__c_open_strip(tn__printer *p, const tn__c_strip *strip)
{
    const tn__nest *n = p->nest;
    int loop = strip->loop;
    reach(p, strip->rows, strip->level);
    for (int e = 0; e < n->expr_count; e++) {
        const tn__expr *x = &n->expr[e];
        bool made = is_made(p, x, loop), loads = x->kind == TN__EXPR_LOAD && is_wide(p, &n->access[x->access], loop);
        if (!p->expr_note[e].reached || (!made && (!loads || p->access_note[x->access].wide)))
            continue;
        const char *type = tn__emit_variable_type(x->dtype), *suffix = tn__dtypes[tn__dtypes[x->dtype].compute].suffix;
        tn__line(p, "%s %c%d[%d];", type, made ? 'g' : 'w', made ? e : x->access, strip->size);
        tn__emit_indent(p);
        tn__text_addf(p->text, "{ const tn_i64 x%d = %s; ", loop, strip->first);
        if (made) {
            tn__function(p, x->op, x->dtype); /* for the parts of the prelude that it needs */
            tn__text_addf(p->text, "tn_strip_%s_%s(g%d, s[n[%d]], s[n[%d]], (tn_u64)(", tn__ops[x->op].name, suffix, e,
                          tn__scalar_param(p, x->scalar), tn__scalar_param(p, x->scalar + 1));
            tn__print_position(p, &n->access[x->access]);
            tn__text_add(p->text, ")");
        } else {
            tn__text_addf(p->text, "tn_widen_%s(w%d, ", tn__dtypes[x->dtype].suffix, x->access);
            print_first(p, x->access);
        }
        tn__text_addf(p->text, ", %s - %s); }\n", strip->end, strip->first);
        p->expr_note[e].made = made;
        p->access_note[x->access].wide = loads;
    }
    for (int s = 0; s < n->store_count; s++) {
        int access = n->store[s].access;
        if (!is_stored(n, &n->store[s], strip->rows, strip->level) || !is_wide(p, &n->access[access], loop))
            continue;
        tn__line(p, "tn_f32 w%d[%d];", access, strip->size);
        p->access_note[access].wide = true;
    }
    snprintf(p->strip, sizeof p->strip, "x%d - %s", loop, strip->first);
}

void tn__c_close_strip(tn__printer *p, const tn__c_strip *strip)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        int access = n->store[s].access;
        if (!p->access_note[access].wide)
            continue;
        tn__emit_indent(p);
        tn__text_addf(p->text, "{ const tn_i64 x%d = %s; tn_narrow_%s(", strip->loop, strip->first,
                      tn__dtypes[n->access[access].dtype].suffix);
        print_first(p, access);
        tn__text_addf(p->text, ", w%d, %s - %s); }\n", access, strip->end, strip->first);
    }
    for (int i = 0; i < n->access_count; i++)
        p->access_note[i].wide = false;
    for (int e = 0; e < n->expr_count; e++)
        p->expr_note[e].made = false;
}
