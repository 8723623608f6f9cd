/* SPDX-License-Identifier: MIT */
/* Elementwise nests in CUDA C: a thread takes chunks of the last loop, several at once, all of whose loads come first. */
#include "compile/emit_cuda.h"

static void open_chunk(tn__printer *p, const tn__cu_form *f)
{
    tn__line(p, "#pragma unroll");
    tn__line(p, "for (int q = 0; q < %d; q++) {", f->batch);
    tn__line(p, "const ix id = first + q * (ix)blockDim.x;");
    tn__cu_decode(p, f, tn__nest_loops(p->nest), "id");
    if (f->loop >= 0 && tn__nest_loops(p->nest) == 1u << f->loop) /* then none is left behind the last chunk, either */
        tn__line(p, "const ix live = (ix)n[%d] - b%d;", EXTENT(f->loop), f->loop);
    else if (f->loop >= 0)
        tn__line(p, "const ix live = id < (ix)n[0] ? (ix)n[%d] - b%d : 0;", EXTENT(f->loop), f->loop);
    else
        tn__line(p, "const ix live = id < (ix)n[0];");
}

void tn__cu_emit_elementwise(tn__printer *p, const tn__cu_form *f)
{
    tn__nest *n = p->nest;
    uint32_t all = tn__nest_loops(n), inner = f->loop >= 0 ? 1u << f->loop : 0;
    p->chunk = "[q]";
    tn__cu_begin(p, f);
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, all);
    tn__cu_find(p, f, all);
    tn__line(p, "for (ix first = (ix)block * (ix)(%d * blockDim.x) + threadIdx.x; first < (ix)n[0];", f->batch);
    tn__line(p, "     first += (ix)blocks * (ix)(%d * blockDim.x)) {", f->batch);
    tn__cu_declare(p, f, 0);
    open_chunk(p, f);
    tn__cu_load(p, f, 0);
    tn__line(p, "}");
    if (tn__cu_makes_random(n)) { /* apart from the above, where nothing branches */
        tn__cu_print_random_apart(p, f, 0);
        open_chunk(p, f);
        tn__line(p, "(void)live;");
        tn__cu_mend_random(p, f, 0);
        tn__line(p, "}");
        tn__line(p, "}");
    }
    open_chunk(p, f);
    tn__line(p, "if (live <= 0) continue;");
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, inner);
    tn__cu_declare_stores(p, f, false, 0);
    tn__cu_declare_inverses(p, 0);
    tn__cu_elements(p, f, 0);
    tn__cu_store(p, f, false, 0);
    tn__line(p, "}");
    tn__line(p, "}");
}
