/* SPDX-License-Identifier: MIT */
/*
 * Elementwise nests with transposed loads: a block takes a tile, loads it along the loop that these accesses are
 * contiguous along, and reads it from shared memory along the last loop.
 */
#include "compile/emit/gpu/form.h"

#define AT_ONCE 4 /* elements of a thread whose other loads are under way together */

static void load_tiles(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    int at = 0;
    for (int e = 0; e < n->expr_count; e++) {
        if (!tn__gpu_is_transposed(p, f, &n->expr[e]))
            continue;
        const tn__access *a = &n->access[n->expr[e].access];
        const char *type = tn__dtypes[a->dtype].ctype;
        tn__line(p, "@shared %s (*const tile%d)[%d] = (@shared %s (*)[%d])(tn_shared + %d);", type, n->expr[e].access,
                 f->tile + 1, type, f->tile + 1, at);
        at += (int)tn_dtype_size(a->dtype) * f->tile * (f->tile + 1); /* a multiple of 16 */
    }
    tn__line(p, "@unroll");
    tn__line(p, "for (int k = 0; k < %d; k++) {", f->tile * f->tile / TN__GPU_THREADS);
    tn__line(p, "const int i = @thread %% %d, j = @thread / %d + k * %d;", f->tile, f->tile,
             TN__GPU_THREADS / f->tile);
    tn__line(p, "const ix x%d = top + i, x%d = left + j;", f->tiled, f->loop);
    tn__line(p, "if (x%d < (ix)n[%d] && x%d < (ix)n[%d]) {", f->tiled, TN__EXTENT(f->tiled), f->loop,
             TN__EXTENT(f->loop));
    for (int e = 0; e < n->expr_count; e++) {
        if (!tn__gpu_is_transposed(p, f, &n->expr[e]))
            continue;
        int i = n->expr[e].access;
        tn__emit_indent(p);
        tn__text_addf(p->text, "tile%d[j][i] = p%d[", i, i);
        tn__print_position(p, &n->access[i]);
        tn__text_add(p->text, "];\n");
    }
    tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, "@barrier;");
}

static void open_element(tn__printer *p, const tn__gpu_form *f)
{
    tn__line(p, "@unroll");
    tn__line(p, "for (int q = 0; q < %d; q++) {", AT_ONCE);
    tn__line(p, "const int j = @thread %% %d, i = @thread / %d + (k + q) * %d;", f->tile, f->tile,
             TN__GPU_THREADS / f->tile);
    tn__line(p, "const ix x%d = top + i, b%d = left + j;", f->tiled, f->loop);
    tn__line(p, "const int live = x%d < (ix)n[%d] && b%d < (ix)n[%d];", f->tiled, TN__EXTENT(f->tiled), f->loop,
             TN__EXTENT(f->loop));
}

void tn__gpu_emit_tiles(tn__printer *p, const tn__gpu_form *f)
{
    const tn__nest *n = p->nest;
    uint32_t all = tn__nest_loops(n), inner = 1u << f->loop | 1u << f->tiled;
    p->vector = "[q]";
    tn__gpu_begin(p, f);
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, all);
    tn__gpu_find(p, f, inner);
    tn__line(p, "const ix down = ((ix)n[%d] + %d) / %d, across = ((ix)n[%d] + %d) / %d;", TN__EXTENT(f->tiled),
             f->tile - 1, f->tile, TN__EXTENT(f->loop), f->tile - 1, f->tile);
    tn__line(p, "for (ix item = block; item < (ix)n[0]; item += blocks) {");
    tn__line(p, "const ix over = item / across, left = (item - over * across) * %d;", f->tile);
    tn__line(p, "const ix rest = over / down, top = (over - rest * down) * %d;", f->tile);
    tn__line(p, "(void)rest;");
    tn__gpu_decode(p, f, all & ~inner, "rest");
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, inner);
    load_tiles(p, f);
    tn__line(p, "@unroll");
    tn__line(p, "for (int k = 0; k < %d; k += %d) {", f->tile * f->tile / TN__GPU_THREADS, AT_ONCE);
    tn__gpu_form batch = *f;
    batch.batch = AT_ONCE;
    tn__gpu_declare(p, &batch, 0);
    open_element(p, f);
    tn__gpu_load(p, &batch, 0);
    tn__line(p, "}");
    open_element(p, f);
    tn__line(p, "if (!live) continue;");
    tn__gpu_declare_stores(p, &batch, false, 0);
    tn__gpu_declare_inverses(p, 0);
    tn__gpu_elements(p, &batch, 0);
    tn__gpu_store(p, &batch, false, 0);
    tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, "@barrier;");
    tn__line(p, "}");
}
