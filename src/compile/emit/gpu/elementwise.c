/* SPDX-License-Identifier: MIT */
/*
 * Elementwise nests: a thread takes several vectors of the last loop at once, all of whose loads come first and all of
 * whose stores last. If all of a thread's vectors are complete and every access is in one piece, which nearly all
 * threads find out by a single test (`whole`), no other test is made.
 */
#include "compile/emit/gpu/form.h"

/* `whole`: where all vectors of a thread are there in full. */
static void open_vector(tn__printer *p, const tn__gpu_form *f, bool whole)
{
    tn__line(p, "@unroll");
    tn__line(p, "for (int q = 0; q < %d; q++) {", f->batch);
    tn__line(p, "const ix id = first + q * (ix)@threads;");
    tn__gpu_decode(p, f, tn__nest_loops(p->nest), "id");
    if (whole)
        tn__line(p, "const int live = %d;", f->width);
    else if (f->loop >= 0 &&
             tn__nest_loops(p->nest) == 1u << f->loop) /* then the last vector is complete, too */
        tn__line(p, "const ix live = (ix)n[%d] - b%d;", TN__EXTENT(f->loop), f->loop);
    else if (f->loop >= 0)
        tn__line(p, "const ix live = id < (ix)n[0] ? (ix)n[%d] - b%d : 0;", TN__EXTENT(f->loop), f->loop);
    else
        tn__line(p, "const ix live = id < (ix)n[0];");
}

/* Declares the variables of what is stored, for all vectors of a thread or for vector q alone. */
static void declare_results(tn__printer *p, const tn__gpu_form *f, bool all)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        int i = n->store[s].access;
        const char *type = tn__dtypes[n->access[i].dtype].ctype;
        if (n->access[i].operand < 0)
            continue;
        if (all)
            tn__line(p, "@vector(%s, %d) all%d[%d];", type, f->width, i, f->batch);
        else
            tn__line(p, "@reference(%s, %d)o%d = all%d[q];", type, f->width, i, i);
    }
}

static void loads(tn__printer *p, const tn__gpu_form *f, bool whole)
{
    open_vector(p, f, whole);
    tn__gpu_load(p, f, 0);
    tn__line(p, "}");
}

/* Prints all loads of a thread's vectors, which are not in a branch, and after them the random numbers that need
 * mending (see tn__gpu_mend_random). */
static void print_loads(tn__printer *p, const tn__gpu_form *f, bool aligned)
{
    if (aligned && !tn__gpu_makes_random(p->nest)) {
        tn__line(p, "if (whole) {");
        tn__gpu_print_whole(p, f);
        loads(p, f, true);
        tn__line(p, "} else {");
        loads(p, f, false);
        tn__line(p, "}");
    } else {
        loads(p, f, false);
    }
    if (!tn__gpu_makes_random(p->nest))
        return;
    tn__gpu_print_random_apart(p, f, 0);
    open_vector(p, f, false);
    tn__line(p, "(void)live;");
    tn__gpu_mend_random(p, f, 0);
    tn__line(p, "}");
    tn__line(p, "}");
}

/* The elements of each vector, and their stores: on the aligned path, all behind the last one's elements. */
static void print_results(tn__printer *p, const tn__gpu_form *f, bool aligned, uint32_t inner)
{
    const tn__nest *n = p->nest;
    if (aligned)
        declare_results(p, f, true);
    open_vector(p, f, false);
    tn__line(p, aligned && !tn__gpu_skips_absent(n) ? "(void)live;" : "if (live <= 0) continue;");
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, inner);
    if (aligned)
        declare_results(p, f, false);
    else
        tn__gpu_declare_stores(p, f, false, 0);
    tn__gpu_declare_inverses(p, 0);
    tn__gpu_elements(p, f, 0);
    if (aligned) {
        tn__line(p, "}");
        tn__line(p, "if (whole) {");
        tn__gpu_print_whole(p, f);
        open_vector(p, f, true);
        declare_results(p, f, false);
        tn__gpu_store(p, f, false, 0);
        tn__line(p, "}");
        tn__line(p, "continue;");
        tn__line(p, "}");
        open_vector(p, f, false);
        tn__line(p, "if (live <= 0) continue;");
        declare_results(p, f, false);
    }
    tn__gpu_store(p, f, false, 0);
    tn__line(p, "}");
}

void tn__gpu_emit_elementwise(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    uint32_t all = tn__nest_loops(n), inner = f->loop >= 0 ? 1u << f->loop : 0;
    p->vector = "[q]";
    tn__gpu_begin(p, f);
    bool aligned = tn__word_of(p->emitter->target, "reference") && tn__gpu_print_aligned(p, f);
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, all);
    tn__gpu_find(p, f, all);
    tn__line(p, "for (ix first = (ix)block * (ix)(%d * @threads) + @thread; first < (ix)n[0];", f->batch);
    tn__line(p, "     first += (ix)blocks * (ix)(%d * @threads)) {", f->batch);
    tn__gpu_declare(p, f, 0);
    if (aligned)
        tn__line(p, "const bool whole = aligned && first + (ix)(%d * @threads) < (ix)n[0];", f->batch - 1);
    print_loads(p, f, aligned);
    print_results(p, f, aligned, inner);
    tn__line(p, "}");
}
