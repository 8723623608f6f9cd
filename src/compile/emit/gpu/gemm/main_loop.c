/* SPDX-License-Identifier: MIT */
/*
 * The first half of a kernel around a matrix product, in CUDA C++: which tile a block computes, where its factors are,
 * the main loop, and the loads of the second half (kernel.c) that can be under way meanwhile.
 */
#include "compile/emit/gpu/gemm/kernel.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_AHEAD 32 /* registers of a thread for what is loaded before the product */
#define SEVERAL 3     /* from so many elements a thread on, the address of the tile's first element is kept in a
                         variable */

/* ---- factors ---- */

const char *tn__product_type(const tn__nest *n) { return tn__dtypes[n->product.dtype].ctype; }

/* Writes the text of an access's stride along a loop, which is a parameter in n[]; "0" if it does not vary with the
 * loop. */
static const char *stride_text(const tn__access *a, int loop, char *text, size_t size)
{
    if (loop < 0 || !a->stride[loop])
        return "0";
    snprintf(text, size, "n[%d]", tn__stride_param(a, loop));
    return text;
}

/* The index in n[] of an access's stride along k; the extent of k is at the next index. */
static int k_param(const tn__nest *n, const tn__access *a) { return tn__stride_param(a, n->loop_count); }

static const char *extent_text(int loop, char *text, size_t size)
{
    snprintf(text, size, "n[%d]", TN__EXTENT(loop));
    return loop < 0 ? "1" : text;
}

/* Prints the code that writes into shared memory the offset of each gathered line of the tile, or, if a is gathered
 * along k, the offset of each position of k. */
static void emit_offsets(tn__printer *p, bool early)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->product.access[0]];
    char step[24], extent[24];
    snprintf(extent, sizeof extent, "(int)n[%d]", k_param(n, a) + 1);
    p->in_tile = false;
    tn__line(p, "static_assert(main_loop::ROWS * sizeof(tn_i64) <= sizeof tn_lines, \"lines of a tile\");");
    tn__line(p, "for (int line = threadIdx.x; line < %s; line += main_loop::THREADS) {", a->by_k ? extent : "rows");
    tn__line(p, "const tn_i64 x%d = %sline;", n->product.row_loop, a->by_k ? "" : "top + ");
    tn__emit_scope(p);
    p->early = early;
    tn__emit_need(p, a->lines_at);
    p->early = false;
    snprintf(extent, sizeof extent, "n[%d]", k_param(n, a));
    tn__line(p, "tn_lines[line] = v%d * %s;", a->lines_at,
             a->by_k ? extent : stride_text(a, n->product.row_loop, step, sizeof step));
    tn__line(p, "}");
}

static void use_offsets(tn__printer *p)
{
    tn__line(p, "__syncthreads();");
    tn__line(p, "factor0.offsets = tn_lines;");
}

/* Prints the tn_factor of factor k: 0 is a, whose lines are the result's rows; 1 is b, whose lines are the result's
 * columns. */
static void emit_factor(tn__printer *p, int k)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->product.access[k]];
    int loop = k ? n->product.column_loop : n->product.row_loop;
    char step[24], lines[24];
    tn__emit_indent(p);
    tn__text_addf(p->text, "factor%d = tn_factor_of<%s, %s>(p%d + ", k, tn__product_type(n),
                  tn__product_along_k(n, k) ? "true" : "false", n->product.access[k]);
    tn__print_position(p, a);
    tn__text_addf(p->text, ", %s, n[%d], n[%d], %s, %s);\n", stride_text(a, loop, step, sizeof step), k_param(n, a),
                  k_param(n, a) + 1, k ? "columns" : "rows", extent_text(loop, lines, sizeof lines));
}

/* Does the main loop keep a thread's part of b in registers? */
static bool in_registers(const tn__nest *n)
{
    return n->product.tile.main_loop == TN__MAIN_LOOP_SKINNY || n->product.tile.main_loop == TN__MAIN_LOOP_SHORT;
}

/* Is all of a in shared memory before the first copy of b is started? */
static bool is_whole(const tn__nest *n) { return n->product.tile.main_loop == TN__MAIN_LOOP_RESIDENT; }

static void emit_type(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    const char *a_along = tn__product_along_k(n, 0) ? "true" : "false",
               *b_along = tn__product_along_k(n, 1) ? "true" : "false";
    const tn__access *a = &n->access[n->product.access[0]];
    const char *gathered = a->by_k ? ", true, true" : a->lines ? ", true" : "", *truth[] = {"false", "true"};
    bool few = a->gather_extent <= t->step * t->slices * t->stages;
    p->emitter->needs |= (t->main_loop == TN__MAIN_LOOP_TENSOR ? TN__NEEDS_TENSOR : 0) |
                         (t->main_loop == TN__MAIN_LOOP_RESIDENT ? TN__NEEDS_RESIDENT : 0) |
                         (in_registers(n) ? TN__NEEDS_SKINNY : 0);
    p->emitter->resident_products |= t->main_loop == TN__MAIN_LOOP_RESIDENT;
    if (t->main_loop == TN__MAIN_LOOP_TENSOR)
        tn__line(p, "typedef tn_tensor_product<%d, %d, %d, %d, %d, %d, %d, %s, %s%s> main_loop;", t->rows, t->columns,
                 t->rows_each, t->columns_each, t->slices, t->step, t->stages, a_along, b_along, gathered);
    else if (t->main_loop == TN__MAIN_LOOP_RESIDENT)
        tn__line(p, "typedef tn_resident_product<%s, %d, %d, %d, %d, %d, %d, %d, %d%s> main_loop;", tn__product_type(n),
                 t->rows, t->columns, t->rows_each, t->columns_each, t->lanes_down, t->slices, t->step, t->stages,
                 gathered);
    else if (t->main_loop == TN__MAIN_LOOP_SKINNY)
        tn__line(p, "typedef tn_skinny_product<%s, %d, %d, %d, %s, %s%s> main_loop;", tn__product_type(n), t->rows,
                 t->columns, t->slices, tn__product_in_one_piece(n) ? "true" : "false",
                 tn__product_skinny_once(n) ? "true" : "false", gathered);
    else if (t->main_loop == TN__MAIN_LOOP_SHORT)
        tn__line(p, "typedef tn_short_product<%s, %d, %d, %d, %d%s> main_loop;", tn__product_type(n), t->rows,
                 t->columns, t->threads, t->step, gathered);
    else
        tn__line(p, "typedef tn_product<%s, %d, %d, %d, %d, %d, %d, %d, %d, %s, %s, %s, %s, %s> main_loop;",
                 tn__product_type(n), t->rows, t->columns, t->rows_each, t->columns_each, t->lanes_down, t->slices,
                 t->step, t->stages, a_along, b_along, truth[a->lines != 0], truth[a->by_k], truth[few]);
}

/* ---- elements ---- */

void tn__product_open_element(tn__printer *p, bool values, const char *row, const char *column)
{
    const tn__nest_product *product = &p->nest->product;
    if (values) {
        tn__line(p, "{");
        tn__line(p, "const int row = min(%s, rows - 1), column = min(%s, columns - 1);", row, column);
    } else {
        tn__line(p, "if (%s < rows && %s < columns) {", row, column);
        tn__line(p, "const int row = %s, column = %s;", row, column);
    }
    if (product->row_loop >= 0)
        tn__line(p, "const tn_i64 x%d = top + row;", product->row_loop);
    if (product->column_loop >= 0)
        tn__line(p, "const tn_i64 x%d = left + column;", product->column_loop);
    tn__emit_scope(p);
    p->in_tile = true;
}

void tn__product_print_place(tn__printer *p, const tn__access *a, const char *row, const char *column)
{
    const tn__nest *n = p->nest;
    tn__text_addf(p->text, "n[%d]", a->param + 1);
    for (int l = 0; l < n->loop_count; l++) {
        if (!a->stride[l])
            continue;
        if (l == n->product.row_loop || l == n->product.column_loop)
            tn__text_addf(p->text, " + %s * n[%d]", l == n->product.row_loop ? row : column, tn__stride_param(a, l));
        else
            tn__text_addf(p->text, " + x%d * n[%d]", l, tn__stride_param(a, l));
    }
}

void tn__product_emit_origins(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__nest_product *product = &n->product;
    const tn__product_tile *t = &product->tile;
    bool many = t->rows * t->columns >= SEVERAL * t->threads &&
                !(product->column_loop >= 0 && n->reduced >> product->column_loop & 1);
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        tn__access_note *note = &p->access_note[i];
        int64_t reach = 0;
        for (int l = 0; l < n->loop_count; l++)
            if (l == product->row_loop || l == product->column_loop)
                reach += llabs(a->stride[l]) * (l == product->row_loop ? product->tile.rows : product->tile.columns);
        bool plain = a->kind != TN__ACCESS_INDEX && !a->gathered && !a->factor && !a->raw && !a->counted && !a->idle;
        note->near = many && plain && !a->in_registers && !note->own && a->value >= 0 && reach < INT32_MAX;
        if (!note->near)
            continue;
        tn__emit_indent(p);
        tn__text_addf(p->text, "auto *const q%d = tn_kept(p%d + ", i, i);
        tn__product_print_place(p, a, "top", "left");
        tn__text_add(p->text, ");\n");
        for (int l = 0; l < n->loop_count; l++)
            if (a->stride[l] && (l == product->row_loop || l == product->column_loop))
                tn__line(p, "const int %s%d = tn_kept((int)n[%d]);", l == product->row_loop ? "down" : "across", i,
                         tn__stride_param(a, l));
    }
}

/* ---- what elements need besides the product ---- */

void tn__product_find(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int e = 0; e < n->expr_count; e++) { /* operands come before the expressions that use them */
        const tn__expr *x = &n->expr[e];
        const tn__access *a = x->kind == TN__EXPR_LOAD ? &n->access[x->access] : NULL;
        tn__expr_note *note = &p->expr_note[e];
        note->early = !a || a->early;
        note->free = x->kind != TN__EXPR_PRODUCT && x->kind != TN__EXPR_REDUCED && x->kind != TN__EXPR_SINGLE &&
                     x->kind != TN__EXPR_RAW && !(a && a->gathered && !a->known);
        note->same = x->kind == TN__EXPR_SCALAR || (x->kind == TN__EXPR_OP && !x->user && !tn__is_divided(x));
        for (int i = 0; i < x->arity; i++) {
            const tn__expr_note *arg = &p->expr_note[x->arg[i]];
            note->early = note->early && arg->early;
            note->free = note->free && arg->free;
            note->same = note->same && arg->same;
        }
    }
}

/* Marks the loads that expression e depends on and that can be issued before the product, while there are registers
 * left. */
static void mark(tn__printer *p, int e, int each, int *registers)
{
    const tn__nest *n = p->nest;
    const tn__expr *x = &n->expr[e];
    tn__expr_note *note = &p->expr_note[e];
    if (note->kept || note->seen)
        return;
    note->seen = true;
    if (x->kind == TN__EXPR_LOAD && note->free) {
        bool down = n->product.row_loop >= 0 && x->loops >> n->product.row_loop & 1;
        int size = (int)tn_dtype_size(tn__dtypes[x->dtype].compute),
            needs = (down ? each : 1) * (size < 8 ? 1 : size / 4);
        if (needs > *registers)
            return;
        *registers -= needs;
        note->kept = true;
        note->passes = 1; /* of the first pass, after which all others come */
        return;
    }
    for (int i = 0; i < x->arity; i++)
        mark(p, x->arg[i], each, registers);
}

void tn__product_mark(tn__printer *p, int each)
{
    const tn__nest *n = p->nest;
    int registers = MOST_AHEAD;
    for (int r = 0; r < n->reduction_count; r++)
        mark(p, n->reduction[r].arg, each, &registers);
    for (int s = 0; s < n->store_count; s++)
        mark(p, n->store[s].expr, each, &registers);
}

static bool any_ahead(const tn__printer *p, bool first)
{
    for (int e = 0; e < p->nest->expr_count; e++)
        if (p->expr_note[e].kept && p->expr_note[e].early == first)
            return true;
    return false;
}

void tn__product_steps(const tn__nest *n, int access, char down[24], char across[24])
{
    const tn__nest_product *product = &n->product;
    const int64_t *stride = n->access[access].stride;
    snprintf(down, 24, product->row_loop >= 0 && stride[product->row_loop] ? "down%d" : "0", access);
    snprintf(across, 24, product->column_loop >= 0 && stride[product->column_loop] ? "across%d" : "0", access);
}

/* Does the main loop fetch this element's value in one load with the thread's neighbouring elements? */
static bool fetched(const tn__printer *p, const tn__product_spread *spread, int e)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->expr[e].access];
    return spread->sums && tn__access_note_of(p, a)->near && a->dtype == n->product.dtype;
}

/* Prints the loads that have been marked. `first`: those of the program's inputs, which may be read before the kernel
 * waits for the kernels before it; else the others. */
static void emit_ahead(tn__printer *p, const tn__product_spread *spread, bool first)
{
    const tn__nest *n = p->nest;
    bool others = false;
    if (!any_ahead(p, first))
        return;
    for (int e = 0; e < n->expr_count; e++)
        if (p->expr_note[e].kept && p->expr_note[e].early == first) {
            tn__line(p, "%s k%d[each];", tn__emit_variable_type(n->expr[e].dtype), e);
            others |= !fetched(p, spread, e);
        }
    tn__line(p, "if (%s && columns > 0) {", spread->any ? spread->any : "rows > 0");
    for (int e = 0; e < n->expr_count; e++)
        if (p->expr_note[e].kept && p->expr_note[e].early == first && fetched(p, spread, e)) {
            char down[24], across[24];
            int access = n->expr[e].access;
            tn__product_steps(n, access, down, across);
            tn__line(p, "main_loop::fetch<%s>(k%d, q%d, %s, %s, rows, columns);", first ? "true" : "false", e, access,
                     down, across);
        }
    p->pass = 0;
    p->lane = "u";
    if (!others) {
        tn__line(p, "}");
        return;
    }
    tn__line(p, "#pragma unroll");
    tn__line(p, "for (int u = 0; u < each; u++) {");
    tn__product_open_element(p, true, spread->row, spread->column);
    p->early = first;
    for (int e = 0; e < n->expr_count; e++)
        if (p->expr_note[e].kept && p->expr_note[e].early == first && !fetched(p, spread, e))
            tn__emit_need(p, e);
    p->early = false;
    tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, "}");
}

void tn__product_emit_place(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__nest_product *product = &n->product;
    char rows[24], columns[24];
    extent_text(product->row_loop, rows, sizeof rows);
    extent_text(product->column_loop, columns, sizeof columns);
    emit_type(p);
    tn__line(p, "unsigned q = (unsigned)block;");
    tn__line(p, "const tn_i64 left = (tn_i64)(q %% (unsigned)n[%d]) * main_loop::COLUMNS;", product->param + 1);
    tn__line(p, "q /= (unsigned)n[%d];", product->param + 1);
    tn__line(p, "const tn_i64 top = (tn_i64)(q %% (unsigned)n[%d]) * main_loop::ROWS;", product->param);
    tn__line(p, "q /= (unsigned)n[%d];", product->param);
    for (int l = n->loop_count - 1; l >= 0; l--)
        if (l != product->row_loop && l != product->column_loop) {
            tn__line(p, "const tn_i64 x%d = q %% (unsigned)n[%d];", l, TN__EXTENT(l));
            tn__line(p, "q /= (unsigned)n[%d];", TN__EXTENT(l));
        }
    tn__line(p, "const int rows = tn_within(%s - top, main_loop::ROWS);", rows);
    tn__line(p, "const int columns = tn_within(%s - left, main_loop::COLUMNS);", columns);
    tn__line(p, "%s *const tile = (%s *)tn_shared;", tn__product_type(n), tn__product_type(n));
    tn__product_emit_origins(p);
}

static void emit_factors(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    const tn__access *a = &p->nest->access[product->access[0]];
    bool gathered = a->lines && !a->by_k;
    tn__line(p, "tn_factor<%s> factor0, factor1;", tn__product_type(p->nest));
    tn__line(p, "{");
    if (product->row_loop >= 0)
        tn__line(p, "const tn_i64 x%d = %s;", product->row_loop, gathered ? "0" : "top");
    if (product->column_loop >= 0)
        tn__line(p, "const tn_i64 x%d = left;", product->column_loop);
    emit_factor(p, 0);
    emit_factor(p, 1);
    tn__line(p, "}");
}

/* Prints the start of the asynchronous copies of a, of b, or of both; for a skinny product the loads of b into
 * registers. */
static void emit_start(tn__printer *p, bool a, bool b, bool last, int depth)
{
    const char *names[] = {"false", "true"};
    if (is_whole(p->nest)) {
        if (a)
            tn__line(p, "main_loop::bring_a(tile, factor0, n[%d]);", depth);
        if (b)
            tn__line(p, "main_loop::bring_b(tile, factor1, n[%d]);", depth);
    } else if (!in_registers(p->nest))
        tn__line(p, "tn_start<main_loop, %s, %s, %s>(tile, factor0, factor1, n[%d]);", names[a], names[b], names[last],
                 depth);
    else if (b && p->nest->product.tile.main_loop == TN__MAIN_LOOP_SKINNY)
        tn__line(p, "main_loop::load_registers(in_registers, tile, factor1, n[%d]);", depth);
    else if (b)
        tn__line(p, "main_loop::load_registers(in_registers, factor1, own_column);");
}

static void emit_run(tn__printer *p, const tn__product_spread *spread, int depth)
{
    const tn__product_tile *t = &p->nest->product.tile;
    if (spread->sums) {
        tn__line(p, "%s sum[each];", tn__product_type(p->nest));
        tn__line(p, "main_loop::run(sum, tile, factor0, factor1, n[%d]);", depth);
        return;
    }
    if (t->main_loop == TN__MAIN_LOOP_SHORT) {
        tn__line(p, "const auto product = [&](int row, int) { return main_loop::at(factor0, in_registers, row); };");
        return;
    }
    tn__line(p, "main_loop::run(tile, factor0, factor1, n[%d]%s);", depth,
             in_registers(p->nest) ? ", in_registers" : "");
    tn__line(p, "const auto product = [&](int row, int column) { return main_loop::at(tile, row, column); };");
}

/* Prints the check that ends the block if an earlier kernel has failed; asynchronous copies that are under way end
 * first. */
static void emit_stop(tn__printer *p)
{
    tn__line(p, in_registers(p->nest) ? "if (failed) return;" : "if (failed) { tn_copies_wait<0>(); return; }");
}

/* A kernel is started while the kernels before it still run: inputs of the program are fetched at once, everything else
 * when those kernels have ended. What the elements need besides the product is loaded along with the factors, not after
 * them. The failure flag is loaded first, but tested only when the loads after it are under way, unless these are at
 * positions that a failure may have left invalid. */
void tn__product_emit_main_loop(tn__printer *p, const tn__product_spread *spread)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->product.access[0]], *b = &n->access[n->product.access[1]];
    int depth = k_param(n, a) + 1;
    bool offsets_early = a->lines && p->expr_note[a->lines_at].early, offsets_late = a->lines && !offsets_early;
    bool a_first = a->early && !offsets_late, b_first = is_whole(n) ? b->constant : b->early;
    emit_factors(p);
    if (in_registers(n))
        tn__line(p, "main_loop::registers in_registers;");
    else if (a_first || b_first)
        tn__line(p, "tn_evict_stale<main_loop, %s, %s>(factor0, factor1);", a_first ? "true" : "false",
                 b_first ? "true" : "false");
    if (offsets_early) /* some threads compute the gathered positions while others start b's copies */
        emit_offsets(p, true);
    if (b_first && !is_whole(n))
        emit_start(p, false, true, false, depth);
    if (offsets_early)
        use_offsets(p);
    if (a_first)
        emit_start(p, true, b_first && is_whole(n), b_first, depth);
    emit_ahead(p, spread, true);
    bool aims = n->product.tile.main_loop == TN__MAIN_LOOP_SKINNY, lines_known = !a->lines || offsets_early;
    if (spread->ready)
        spread->ready(p);
    if (aims && b_first)
        tn__line(p, "main_loop::take(in_registers, tile, factor1, n[%d]);", depth);
    if (aims && lines_known)
        tn__line(p, "main_loop::aim(in_registers, factor0);");
    tn__line(p, "tn_await_dependencies();");
    tn__line(p, "const tn_u64 failed = TN_FAILED((*(const tn_failure *)fault));");
    if (offsets_late) {
        emit_stop(p);
        emit_offsets(p, false);
        use_offsets(p);
    }
    if (aims && !lines_known)
        tn__line(p, "main_loop::aim(in_registers, factor0);");
    if (!a_first || !b_first)
        emit_start(p, !a_first, !b_first, true, depth);
    if (aims && !b_first)
        tn__line(p, "main_loop::take(in_registers, tile, factor1, n[%d]);", depth);
    emit_ahead(p, spread, false);
    if (!offsets_late && !in_registers(n))
        emit_stop(p);
    emit_run(p, spread, depth);
    if (!offsets_late && in_registers(n))
        emit_stop(p);
    p->pass = 1;
}
