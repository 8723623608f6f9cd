/* SPDX-License-Identifier: MIT */
/*
 * Columns: kept elements lie side by side. Some threads of a block lie across, each with a vector of columns;
 * the others have the same columns at other rows (every n-th one), and their results are combined through shared memory
 * at the end. If columns are short, values that several passes need stay in registers; else each pass reads them again.
 */
#include "compile/emit/gpu/form.h"

static void open_row(tn__printer *p, const tn__gpu_form *f)
{
    tn__line(p, "@unroll");
    tn__line(p, "for (int q = 0; q < %d; q++) {", f->batch);
    tn__line(p, "const ix row = at + q * down;");
    tn__line(p, "const ix live = row < end ? columns : 0;");
    tn__gpu_decode(p, f, p->nest->reduced, "row");
}

static void pass(tn__printer *p, const tn__gpu_form *f, int level)
{
    p->pass = level;
    tn__gpu_declare_few(p, f, level);
    if (f->in_registers) {
        tn__gpu_declare(p, f, level);
        tn__line(p, "{");
        tn__line(p, "const ix at = begin + cy;");
    } else {
        tn__line(p, "for (ix at = begin + cy; at < end; at += %d * down) {", f->batch);
        tn__gpu_declare(p, f, level);
    }
    open_row(p, f);
    tn__gpu_load(p, f, level);
    tn__line(p, "}");
    open_row(p, f);
    tn__line(p, "if (live <= 0) continue;");
    tn__gpu_load_late(p, f, level);
    tn__gpu_declare_stores(p, f, false, level);
    tn__gpu_declare_inverses(p, level);
    tn__gpu_elements(p, f, level);
    tn__gpu_store(p, f, false, level);
    tn__gpu_count_few(p, f, level, false);
    tn__line(p, "}");
    tn__gpu_count_few(p, f, level, true);
    tn__line(p, "}");
    tn__gpu_add_few(p, f, level);
}

/* Prints the results of a level, one for each column of the vector. */
static void finish(tn__printer *p, const tn__gpu_form *f, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        if (p->nest->reduction[r].level != level)
            continue;
        bool position = tn__ops[p->nest->reduction[r].op].props & TN_ARG;
        tn__line(p, "%s a%d[%d];", position ? "tn_i64" : tn__emit_result_type(p, r), r, f->width);
        if (position)
            tn__line(p, "for (int u = 0; u < %d; u++) a%d[u] = at%d[u] < R ? at%d[u] : 0;", f->width, r, r, r);
        else
            tn__line(p, "for (int u = 0; u < %d; u++) a%d[u] = %s(%s%d[u]);", f->width, r, tn__gpu_narrowing(p, f, r),
                     tn__gpu_sum(p->nest, f, r), r);
    }
}

static void store_row_values(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    for (int i = 0; i < n->access_count; i++)
        p->access_note[i].staged = false;
    tn__line(p, "if (cy == 0 && columns > 0) {");
    tn__line(p, "const ix live = columns;");
    tn__gpu_declare_stores(p, f, true, 0);
    for (int s = 0; s < n->store_count; s++)
        if (n->store[s].row && f->loop >= 0)
            tn__emit_hoist(p, n->store[s].expr, n->reduced | 1u << f->loop);
    tn__gpu_open_elements(p, f);
    tn__line(p, "if (u >= live) continue;");
    tn__gpu_values(p, true, 0);
    tn__line(p, "}");
    p->lane = NULL;
    tn__gpu_store(p, f, true, 0);
    tn__line(p, "}");
}

/* Prints the index of the result of the vector's column u among all results of a segment. */
static void print_place(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    bool first = true;
    for (int l = 0; l < n->loop_count; l++) {
        if (n->reduced >> l & 1)
            continue;
        if (l == f->loop)
            tn__text_addf(p->text, "%s(b%d + u)", first ? "" : " + ", l);
        else
            tn__text_addf(p->text, "%sx%d", first ? "" : " + ", l);
        for (int k = l + 1; k < n->loop_count; k++)
            if (!(n->reduced >> k & 1))
                tn__text_addf(p->text, " * n[%d]", TN__EXTENT(k));
        first = false;
    }
}

static void store_pieces(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    tn__line(p, "if (cy == 0) {");
    tn__line(p, "for (int u = 0; u < %d; u++) {", f->width);
    tn__line(p, "if (u >= columns) break;");
    tn__emit_indent(p);
    tn__text_add(p->text, "const tn_i64 place = ");
    print_place(p, f);
    tn__text_add(p->text, ";\n");
    for (int r = 0; r < n->reduction_count; r++) {
        tn__line(p, "%c%d[part * kept + place] = %s%d[u];", tn__gpu_partial(n, r), n->partial[r][0],
                 tn__gpu_sum(n, f, r), r);
        if (tn__ops[n->reduction[r].op].props & TN_ARG)
            tn__line(p, "p%d[part * kept + place] = at%d[u];", n->partial[r][1], r);
    }
    tn__line(p, "}");
    tn__line(p, "}");
}

static void print_kept(tn__printer *p)
{
    tn__emit_indent(p);
    tn__text_add(p->text, "const tn_i64 kept = 1");
    for (int l = 0; l < p->nest->loop_count; l++)
        if (!(p->nest->reduced >> l & 1))
            tn__text_addf(p->text, " * n[%d]", TN__EXTENT(l));
    tn__text_add(p->text, ";\n");
}

static void open_groups(tn__printer *p)
{
    const tn__nest *n = p->nest;
    tn__line(p, "const int across = (int)n[%d], down = %d / across;", TN__GPU_LANES(n), TN__GPU_THREADS);
    tn__line(p, "const int cy = @thread / across, cx = @thread - cy * across;");
    tn__line(p, "for (ix item = block; item < (ix)n[0]; item += blocks) {");
}

void tn__gpu_emit_columns(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    bool partial = n->part == TN__PART_PARTIAL;
    uint32_t inner = n->reduced | 1u << f->loop, kept = tn__nest_loops(n) & ~n->reduced;
    p->vector = "[q]";
    tn__gpu_begin(p, f);
    if (partial)
        print_kept(p);
    tn__gpu_find(p, f, inner);
    open_groups(p);
    tn__gpu_open_segment(p, partial, "group");
    tn__line(p, "const ix number = group * across + cx;");
    tn__gpu_decode(p, f, kept, "number");
    tn__emit_indent(p);
    tn__text_addf(p->text, "const ix columns = number < (ix)n[%d]", TN__GPU_VECTORS(n));
    for (int l = 0; l < n->loop_count; l++)
        if (kept >> l & 1 && l != f->loop)
            tn__text_addf(p->text, " * (ix)n[%d]", TN__EXTENT(l));
    tn__text_addf(p->text, " && cy < down ? (ix)n[%d] - b%d : 0;\n", TN__EXTENT(f->loop), f->loop);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, inner);
        tn__gpu_start(p, f, level, f->width);
        pass(p, f, level);
        tn__gpu_combine_down(p, f, level);
        if (!partial)
            finish(p, f, level);
    }
    if (partial) {
        store_pieces(p, f);
    } else if (tn__gpu_has_row_values(n)) {
        if (tn__gpu_ends_uncombined(n))
            tn__line(p, "@barrier;");
        store_row_values(p, f);
    }
    tn__line(p, "}");
}

/* ---- the final pass of a split reduction ---- */

void tn__gpu_emit_combine(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    uint32_t kept = tn__nest_loops(n) & ~n->reduced;
    p->vector = "";
    tn__gpu_begin(p, f);
    print_kept(p);
    open_groups(p);
    tn__line(p, "const ix number = item * across + cx;");
    tn__line(p, "const ix columns = number < kept && cy < down;");
    tn__gpu_start(p, f, 0, 1);
    tn__line(p, "if (columns) {");
    tn__line(p, "@unroll_by(4)");
    tn__line(p, "for (ix part = cy; part < (ix)n[%d]; part += down) {", TN__GPU_SEGMENTS(n));
    TN__EACH_PLAIN(p, r, 0)
        tn__line(p, "t%d[0] = %s(t%d[0], %c%d[part * kept + number]);", r, tn__gpu_sum_function(p, f, r), r,
                 tn__gpu_partial(n, r), n->partial[r][0]);
    TN__EACH_POSITION(p, r, 0) {
        tn__line(p, "{");
        tn__line(p, "const %s b = p%d[part * kept + number];", tn__emit_type(p, r), n->partial[r][0]);
        tn__line(p, "const tn_i64 j = p%d[part * kept + number];", n->partial[r][1]);
        tn__line(p, "if (j < R && (at%d[0] == R || %s(t%d[0], b))) { t%d[0] = b; at%d[0] = j; }", r,
                 tn__emit_function(p, r), r, r, r);
        tn__line(p, "}");
    }
    tn__line(p, "}");
    tn__line(p, "}");
    tn__gpu_combine_down(p, f, 0);
    tn__gpu_decode(p, f, kept, "number");
    finish(p, f, 0);
    store_row_values(p, f);
    tn__line(p, "}");
}
