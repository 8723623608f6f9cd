/* SPDX-License-Identifier: MIT */
/* Index arithmetic: where vectors and rows are, and which vectors can be loaded or stored as a whole. */
#include "compile/emit/gpu/form.h"

#include <stdio.h>

#define INDEX_OF(f) ((f)->wide ? "tn_i64" : "tn_i32")

/* ---- places ---- */

/* Prints an expression for whether all strides of an access, other than along the form's loop, are whole multiples of a
 * vector. */
static void print_alignment(tn__printer *p, const tn__gpu_form *f, int i)
{
    const tn__access *a = &p->nest->access[i];
    int bytes = f->width * (int)tn_dtype_size(a->dtype),
        elements = (bytes < 16 ? bytes : 16) / (int)tn_dtype_size(a->dtype);
    tn__text_addf(p->text, "const bool w%d = tn_aligned(p%d + n[%d], %d) && (0", i, i, a->param + 1,
                  bytes < 16 ? bytes : 16);
    for (int l = 0; l < p->nest->loop_count; l++)
        if (a->stride[l] && l != f->loop)
            tn__text_addf(p->text, " | n[%d]", tn__stride_param(a, l));
    tn__text_addf(p->text, ") %% %d == 0;\n", elements);
}

bool tn__gpu_in_one_piece(const tn__printer *p, const tn__gpu_form *f, int i)
{
    const tn__access *a = &p->nest->access[i];
    return f->width > 1 && a->operand >= 0 && !a->gathered && a->kind != TN__ACCESS_INDEX && a->stride[f->loop] == 1;
}

/* Whether the counters of a stream's elements may carry into their upper half. */
static void print_carries(tn__printer *p, int i)
{
    const tn__access *a = &p->nest->access[i];
    tn__emit_indent(p);
    tn__text_addf(p->text, "const bool carries%d = (counter%d & 0xffffffffu) + ((tn_u64)(n[%d]", i, i, a->param + 1);
    for (int l = 0; l < p->nest->loop_count; l++)
        if (a->stride[l])
            tn__text_addf(p->text, " + (n[%d] > 0 ? n[%d] * (n[%d] - 1) : 0)", tn__stride_param(a, l),
                          tn__stride_param(a, l), TN__EXTENT(l));
    tn__text_add(p->text, ") >> 1) > 0xffffff00u;\n"); /* a block of the generator has at least two elements, and a
                                                          vector may reach beyond the last one */
}

void tn__gpu_begin(tn__printer *p, const tn__gpu_form *f)
{
    p->index = "(ix)";
    p->vector_loop = f->loop;
    tn__line(p, "typedef %s ix;", INDEX_OF(f));
    for (int i = 0; i < p->nest->access_count; i++)
        if (tn__gpu_in_one_piece(p, f, i)) {
            tn__emit_indent(p);
            print_alignment(p, f, i);
        }
    for (int e = 0; e < p->nest->expr_count && f->width > 1; e++) /* printed here, as the test has the same result in
                                                                     all threads */
        if (tn__gpu_is_random(&p->nest->expr[e])) {
            const int i = p->nest->expr[e].access, slot = p->nest->expr[e].scalar;
            tn__line(p, "const tn_u64 key%d = s[n[%d]], counter%d = s[n[%d]];", i, tn__scalar_param(p, slot), i,
                     tn__scalar_param(p, slot + 1));
            print_carries(p, i);
            tn__line(p, "(void)key%d, (void)counter%d, (void)carries%d;", i, i, i);
        }
    for (int r = 0; r < p->nest->reduction_count && p->nest->part != TN__PART_WHOLE; r++)
        if (p->nest->reduction[r].about_mean)
            tn__line(p, "@memory tn_deviations *const d%d = (@memory tn_deviations *)p%d;", p->nest->partial[r][0],
                     p->nest->partial[r][0]);
    if (p->nest->reduced) {
        tn__emit_extent(p);
        tn__line(p, "(void)R;");
    }
}

bool tn__gpu_print_aligned(tn__printer *p, const tn__gpu_form *f)
{
    bool any = false;
    for (int i = 0; i < p->nest->access_count; i++) {
        if (!tn__gpu_in_one_piece(p, f, i))
            continue;
        if (!any) {
            tn__emit_indent(p);
            tn__text_addf(p->text, "const bool aligned = n[%d] %% %d == 0", TN__EXTENT(f->loop), f->width);
        }
        tn__text_addf(p->text, " & w%d", i);
        any = true;
    }
    if (any)
        tn__text_add(p->text, ";\n");
    return any;
}

void tn__gpu_print_whole(tn__printer *p, const tn__gpu_form *f)
{
    for (int i = 0; i < p->nest->access_count; i++)
        if (tn__gpu_in_one_piece(p, f, i))
            tn__line(p, "const bool w%d = true; (void)w%d;", i, i);
}

void tn__gpu_decode(tn__printer *p, const tn__gpu_form *f, uint32_t loops, const char *from)
{
    const tn__nest *n = p->nest;
    int count = __builtin_popcount(loops);
    if (!count)
        return;
    if (count > 1)
        tn__line(p, "ix d = %s;", from);
    uint32_t left = loops;
    for (int step = 0; step < count; step++) {
        bool vector = f->loop >= 0 && left >> f->loop & 1;
        int l = vector ? f->loop : 31 - __builtin_clz(left);
        int extent = vector ? TN__GPU_VECTORS(n) : TN__EXTENT(l), magic = vector ? extent + 1 : TN__GPU_MAGIC(n, l);
        left &= ~(1u << l);
        const char *name = vector ? "b" : "x";
        char times[24] = "";
        if (vector && f->width > 1)
            snprintf(times, sizeof times, " * %d", f->width);
        if (!left) {
            tn__line(p, "const ix %s%d = %s%s;", name, l, count > 1 ? "d" : from, times);
            continue;
        }
        tn__line(p, "const ix e%d = tn_quotient(d, n[%d], n[%d], n[%d]);", l, extent, magic, magic + 1);
        tn__line(p, "const ix %s%d = (d - e%d * (ix)n[%d])%s;", name, l, l, extent, times);
        tn__line(p, "d = e%d;", l);
    }
}

void tn__gpu_open_segment(tn__printer *p, bool partial, const char *name)
{
    const tn__nest *n = p->nest;
    if (!partial) {
        tn__line(p, "const ix %s = item, begin = 0, end = (ix)n[%d];", name, TN__GPU_ROWS_AT(n));
        return;
    }
    tn__line(p, "const ix part = item / (ix)n[%d], %s = item - part * (ix)n[%d];", TN__GPU_GROUPS(n), name,
             TN__GPU_GROUPS(n));
    tn__line(p, "const ix begin = part * (ix)n[%d], left = (ix)n[%d] - begin;", TN__GPU_SEGMENT(n),
             TN__GPU_ROWS_AT(n));
    tn__line(p, "const ix end = begin + (left < (ix)n[%d] ? left : (ix)n[%d]);", TN__GPU_SEGMENT(n),
             TN__GPU_SEGMENT(n));
}
