/* SPDX-License-Identifier: MIT */
/*
 * Kernels around a matrix product, in CUDA C++. A block computes a tile of the result by the core in product.cuh or
 * product_tensor.cuh, which leaves it in shared memory (emit_cuda_core.c). The rest of the nest is computed from there, element
 * by element at the place where it belongs:
 *
 *     sums          where a thread has the whole sums, it computes their elements, from its registers: neighbours are read and
 *                   stored together
 *     elementwise   threads go down the rows of a column, several elements each at a time: all their loads first, then all
 *                   their stores, so that the loads do not wait for each other
 *     rows          results of few columns: the tile has whole rows, a warp reduces one
 *     columns       results of few rows: the tile has whole columns, the threads of one combine by halves
 *
 * Where the first two have whole rows of a thin product, their blocks may go on with the product of these rows by the transpose
 * of the factor that is in their registers (emit_back), whose elements never leave registers before they are stored.
 */
#include "compile/emit_cuda.h"
#include "compile/emit_cuda_product.h"

#include <stdio.h>
#include <string.h>

#define AT_ONCE 16   /* elements a thread keeps in registers between its loads and its stores, if none is fetched ahead */
#define MOST_TURNS 4 /* rows of a warp for which something is */
/* Of the 64 K registers of a multiprocessor, for each of the threads of two blocks of TN__CUDA_THREADS: more than half of them, and the
 * rest; and words of a thread's sums for which half of them are enough. */
#define MORE_REGISTERS 136
#define LESS_REGISTERS 120
#define FEW_WORDS 32

/* ---- passes ---- */

/* Numbers of elements kept between loads and stores. */
static bool keeps(const tn__nest *n, int s, int level) { return !n->reduced || (!n->store[s].row && n->store[s].level == level); }

static void declare_kept(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++)
        if (keeps(n, s, level))
            tn__line(p, "%s kept%d[each];", tn__emit_variable_type(n->expr[n->store[s].expr].dtype), s);
    EACH_PLAIN(p, r, level)
        tn__line(p, "%s part%d[each];", tn__emit_type(p, r), r);
    EACH_POSITION(p, r, level)
        tn__line(p, "%s part%d[each];", tn__emit_type(p, r), r);
}

/* The values of an element of a pass. */
static void keep_values(tn__printer *p, int level)
{
    tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level) {
            tn__emit_need(p, n->reduction[r].arg);
            tn__line(p, "part%d[u] = v%d;", r, n->reduction[r].arg);
        }
    for (int s = 0; s < n->store_count; s++)
        if (keeps(n, s, level)) {
            tn__emit_need(p, n->store[s].expr);
            tn__line(p, "kept%d[u] = v%d;", s, n->store[s].expr);
        }
}

/* Are a tile's elements computed by the threads that have their sums, without a way through shared memory? Where b lies along k, a
 * thread's columns are no neighbours. */
static bool from_sums(const tn__nest *n)
{
    const tn__product_tile *t = &n->product.tile;
    return t->core == TN__CORE_PLAIN && !n->reduced && !n->product.goes_on && !tn__product_along_k(n, 1) &&
           t->columns_each * tn_dtype_size(n->product.dtype) % (16 * t->slices) == 0;
}

/* Does a thread store neighbouring elements at once? Where it has sums, or behind another product. */
static bool in_quads(const tn__nest *n, int s)
{
    const tn__access *a = &n->access[n->store[s].access];
    bool sums = from_sums(n) && a->near && a->dtype == n->product.dtype;
    return (sums || n->product.tile.core == TN__CORE_BACK) && n->product.column_loop >= 0 && a->stride[n->product.column_loop] == 1 &&
           tn__dtypes[a->dtype].compute == a->dtype;
}

static int stored_apart(const tn__nest *n)
{
    int count = 0;
    for (int s = 0; s < n->store_count; s++)
        count += !in_quads(n, s);
    return count;
}

static void store_kept(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        const tn__access *a = &n->access[n->store[s].access];
        if (!keeps(n, s, level) || in_quads(n, s))
            continue;
        tn__emit_indent(p);
        tn__print_element(p, n->store[s].access);
        if (a->dtype == TN_FLOAT16 || a->dtype == TN_BFLOAT16)
            tn__text_addf(p->text, " = tn_f32_to_%s(kept%d[u]);\n", tn__dtypes[a->dtype].suffix, s);
        else
            tn__text_addf(p->text, " = kept%d[u];\n", s);
        if (n->product.goes_on && a->value == n->product.next_value)
            tn__line(p, "((%s *)tn_lines)[row * core::COLUMNS + column] = kept%d[u];", tn__product_type(n), s);
    }
}

/* ---- ahead of the product ---- */

/* The same for all elements, and no load. */
static bool is_constant(const tn__nest *n, int e)
{
    const tn__expr *x = &n->expr[e];
    if (x->kind != TN__EXPR_SCALAR && (x->kind != TN__EXPR_OP || x->user || tn__is_divided(x)))
        return false;
    for (int i = 0; i < x->arity; i++)
        if (!is_constant(n, x->arg[i]))
            return false;
    return true;
}

static void emit_constants(tn__printer *p)
{
    int scope = p->scope;
    p->scope = ITEM;
    for (int e = 0; e < p->nest->expr_count; e++)
        if (is_constant(p->nest, e))
            tn__emit_need(p, e);
    p->scope = scope;
}

/* Where a thread's only element of each result is, when there is nothing else to do yet. */
static void aim_rows(tn__printer *p)
{
    tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        tn__access *a = &n->access[n->store[s].access];
        a->own = true;
        tn__emit_indent(p);
        tn__text_addf(p->text, "auto *const q%d = tn_settled(p%d + n[%d]", n->store[s].access, n->store[s].access, a->param + 1);
        for (int l = 0, param = a->param + 2; l < n->loop_count; param += a->stride[l++] != 0)
            if (a->stride[l] && l == n->product.row_loop)
                tn__text_addf(p->text, " + (top + warp) * n[%d]", param);
            else if (a->stride[l] && l == n->product.column_loop)
                tn__text_addf(p->text, " + (left + lane) * n[%d]", param);
            else if (a->stride[l])
                tn__text_addf(p->text, " + x%d * n[%d]", l, param);
        tn__text_add(p->text, ");\n");
    }
}

/* ---- behind another product ---- */

/* What the nest behind needs beside the block's rows is made ready along with the first one's. */
static void prepare_next(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    if (product->goes_on)
        tn__line(p, "const auto next = nest%d(p, n + n[%d], s, block, fault);", product->next, product->next_param);
}

/* The block's rows are in memory, and its threads have b: on with the nest behind. */
static void emit_next(tn__printer *p)
{
    if (!p->nest->product.goes_on)
        return;
    tn__line(p, "__syncthreads();");
    tn__line(p, "next(held);");
}

/* Where a thread stores them, before they are there. */
static void aim_quads(tn__printer *p)
{
    tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        tn__access *a = &n->access[n->store[s].access];
        bool down = a->stride[n->product.row_loop] != 0;
        int param = a->param + 2;
        a->own = in_quads(n, s);
        if (!a->own)
            continue;
        for (int l = 0; l < n->product.row_loop; l++)
            param += a->stride[l] != 0;
        tn__line(p, down ? "const tn_i64 step%d = n[%d];" : "const tn_i64 step%d = 0;", s, param);
        tn__line(p, "auto *const to%d = tn_settled(p%d + n[%d] + top * step%d + own);", s, n->store[s].access, a->param + 1, s);
    }
}

static void store_quads(tn__printer *p)
{
    const tn__nest *n = p->nest;
    tn__line(p, "#pragma unroll");
    tn__line(p, "for (int u = 0; u < each; u += core::QUAD) {");
    tn__line(p, "if (u / core::QUAD < rows && own < columns) {");
    for (int s = 0; s < n->store_count; s++) {
        if (!in_quads(n, s))
            continue;
        tn__line(p, "tn_pack<%s, core::QUAD> quad%d;", tn__dtypes[n->access[n->store[s].access].dtype].ctype, s);
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int i = 0; i < core::QUAD; i++) quad%d.e[i] = kept%d[u + i];", s, s);
        tn__line(p, "auto *const at%d = to%d + u / core::QUAD * step%d;", s, s, s);
        tn__line(p, "tn_store(quad%d, at%d, columns - own, tn_aligned(at%d, 16));", s, s, s);
    }
    tn__line(p, "}");
    tn__line(p, "}");
}

static void emit_back(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    p->emitter->thin_products = true;
    tn__line(p, "typedef tn_back_product<%s, %d, %d, %d> core;", tn__product_type(n), t->rows, t->threads, t->step);
    tn__line(p, "const tn_i64 top = block * core::ROWS, left = 0;");
    tn__line(p, "const int rows = tn_within(n[%d] - top, core::ROWS);", EXTENT(n->product.row_loop));
    tn__line(p, "const int columns = tn_within(n[%d], core::COLUMNS);", EXTENT(n->product.column_loop));
    tn__line(p, "const int own = (int)threadIdx.x * core::QUAD;");
    aim_quads(p);
    tn__product_emit_origins(p);
    emit_constants(p);
    tn__line(p, "return [=](const auto &held) {");
    tn__line(p, "if (rows == 0 || columns == 0) return;");
    tn__line(p, "constexpr int each = core::EACH;");
    tn__line(p, "%s sum[each];", tn__product_type(n));
    tn__line(p, "core::multiply(sum, (const %s *)tn_lines, held);", tn__product_type(n));
    declare_kept(p, 0);
    for (int pass = 0; pass < 1 + (stored_apart(n) > 0); pass++) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < each; u++) {");
        if (pass == 0)
            tn__line(p, "const auto product = [&](int, int) { return sum[u]; };");
        tn__product_open_element(p, pass == 0, "u / core::QUAD", "own + u % core::QUAD");
        if (pass == 0)
            keep_values(p, 0);
        else
            store_kept(p, 0);
        tn__line(p, "}");
        tn__line(p, "}");
    }
    if (stored_apart(n) < n->store_count)
        store_quads(p);
    tn__line(p, "};");
}

/* ---- elements of a tile ---- */

static bool differs_down(const tn__nest *n)
{
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kept && n->product.row_loop >= 0 && n->expr[e].loops >> n->product.row_loop & 1)
            return true;
    return false;
}

static void emit_from_sums(tn__printer *p)
{
    tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    int each = t->rows_each * t->columns_each / t->slices;
    tn__product_mark(n, each);
    tn__line(p, "constexpr int each = core::EACH;");
    tn__product_emit_core(p, &(tn__product_spread){each, "core::own_row(u)", "core::own_column(u)", .sums = true});
    declare_kept(p, 0);
    for (int pass = 0; pass < 1 + (stored_apart(n) > 0); pass++) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < each; u++) {");
        if (pass == 0)
            tn__line(p, "const auto product = [&](int, int) { return sum[u]; };");
        tn__product_open_element(p, pass == 0, "core::own_row(u)", "core::own_column(u)");
        if (pass == 0)
            keep_values(p, 0);
        else
            store_kept(p, 0);
        tn__line(p, "}");
        tn__line(p, "}");
    }
    for (int s = 0; s < n->store_count; s++) {
        char down[24], across[24];
        if (!in_quads(n, s))
            continue;
        tn__product_steps(n, n->store[s].access, down, across);
        tn__line(p, "core::put(kept%d, q%d, %s, %s, rows, columns);", s, n->store[s].access, down, across);
    }
}

static void emit_elementwise(tn__printer *p)
{
    tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    int down = t->threads / t->columns, all = (t->rows + down - 1) / down;
    tn__product_mark(n, all);
    int each = differs_down(n) ? all : t->rows / down < 1 ? 1 : t->rows / down < AT_ONCE ? t->rows / down : AT_ONCE;
    tn__line(p, "constexpr int across = core::COLUMNS, down = core::THREADS / across, each = %d;", each);
    tn__line(p, "const int own_column = threadIdx.x %% across, first = threadIdx.x / across;");
    tn__product_emit_core(p, &(tn__product_spread){each, "first + u * down", "own_column", .ready = prepare_next});
    tn__line(p, "for (int begin = first; begin < core::ROWS; begin += each * down) {");
    declare_kept(p, 0);
    for (int pass = 0; pass < 2; pass++) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < each; u++) {");
        tn__product_open_element(p, pass == 0, "begin + u * down", "own_column");
        if (pass == 0)
            keep_values(p, 0);
        else
            store_kept(p, 0);
        tn__line(p, "}");
        tn__line(p, "}");
    }
    tn__line(p, "}");
    emit_next(p);
}

/* ---- reductions over the tile's rows or columns ---- */

/* A pass over an item's elements: the thread's are at lane, lane + lanes, ... */
static void emit_pass(tn__printer *p, int level, const char *row, const char *column, const char *inner)
{
    tn__nest *n = p->nest;
    EACH_PLAIN(p, r, level)
        tn__line(p, "%s t%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
    EACH_POSITION(p, r, level)
        tn__line(p, "%s t%d = %s; tn_i64 at%d = R;", tn__emit_type(p, r), r, tn__emit_identity(p, r), r);
    tn__line(p, "if (rows > 0 && columns > 0) {");
    declare_kept(p, level);
    for (int pass = 0; pass < 2; pass++) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < each; u++) {");
        tn__product_open_element(p, pass == 0, row, column);
        if (pass == 0) {
            keep_values(p, level);
        } else {
            EACH_PLAIN(p, r, level)
                tn__line(p, "t%d = %s(t%d, part%d[u]);", r, tn__emit_function(p, r), r, r);
            EACH_POSITION(p, r, level)
                tn__line(p, "if (at%d == R || %s(t%d, part%d[u])) { t%d = part%d[u]; at%d = %s; }", r, tn__emit_function(p, r), r,
                         r, r, r, r, inner);
            store_kept(p, level);
        }
        tn__line(p, "}");
        tn__line(p, "}");
    }
    tn__line(p, "}");
    for (int r = 0; r < n->reduction_count; r++) /* what was computed for one element is not there for the next pass */
        if (n->reduction[r].level == level && n->expr[n->reduction[r].arg].printed != ITEM)
            n->expr[n->reduction[r].arg].printed = NOWHERE;
}

/* A warp's partial results, by halves; as many lanes get the result as have elements, at least. */
static void combine_row(tn__printer *p, int level)
{
    int half = 16;
    while (half >= p->nest->product.tile.columns)
        half /= 2;
    EACH_PLAIN(p, r, level) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int h = %d; h; h /= 2) t%d = %s(t%d, tn_from_lane(t%d, lane ^ h));", half, r, tn__emit_function(p, r), r, r);
    }
    EACH_POSITION(p, r, level) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int h = %d; h; h /= 2) {", half);
        tn__line(p, "const %s b = tn_from_lane(t%d, lane ^ h);", tn__emit_type(p, r), r);
        tn__line(p, "const tn_i64 j = tn_from_lane(at%d, lane ^ h);", r);
        tn__line(p, "if (j < R && (at%d == R || %s(t%d, b) || (!%s(b, t%d) && j < at%d))) { t%d = b; at%d = j; }", r,
                 tn__emit_function(p, r), r, tn__emit_function(p, r), r, r, r, r);
        tn__line(p, "}");
    }
}

/* The partial results of a column's threads: those of a warp by halves, those of the warps in order, through shared memory. */
static void combine_column(tn__printer *p, int level)
{
    EACH_PLAIN(p, r, level) {
        const char *type = tn__emit_type(p, r);
        tn__line(p, "{");
        tn__line(p, "%s *const part = (%s *)tn_parts;", type, type);
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int h = 16; h >= core::COLUMNS; h /= 2) t%d = %s(t%d, tn_from_lane(t%d, threadIdx.x %% 32 ^ h));", r,
                 tn__emit_function(p, r), r, r);
        tn__line(p, "if (threadIdx.x %% 32 < core::COLUMNS) part[threadIdx.x / 32 * core::COLUMNS + own_column] = t%d;", r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "t%d = part[own_column];", r);
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int w = 1; w < core::THREADS / 32; w++) t%d = %s(t%d, part[w * core::COLUMNS + own_column]);", r,
                 tn__emit_function(p, r), r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
    }
}

static void finish(tn__printer *p, int level)
{
    tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++) {
        if (n->reduction[r].level != level)
            continue;
        int e = tn__nest_reduced_expr(n, r);
        if (tn__ops[n->reduction[r].op].props & TN_ARG)
            tn__line(p, "const tn_i64 v%d = at%d < R ? at%d : 0;", e, r, r);
        else
            tn__line(p, "const %s v%d = %s(t%d);", tn__emit_type(p, r), e, tn__emit_rounding(p, r), r);
        n->expr[e].printed = ITEM;
    }
}

static void store_items(tn__printer *p)
{
    bool any = false;
    for (int s = 0; s < p->nest->store_count; s++)
        any = any || p->nest->store[s].row;
    if (!any)
        return;
    tn__line(p, "if (lane == 0) {");
    p->in_tile = false;
    p->scope = ITEM;
    tn__emit_stores(p, true, 0);
    tn__line(p, "}");
}

/* Of a warp. */
static int turns_of(const tn__product_tile *t) { return (t->rows + t->threads / 32 - 1) / (t->threads / 32); }

static void ready_rows(tn__printer *p)
{
    const tn__product_tile *t = &p->nest->product.tile;
    prepare_next(p);
    emit_constants(p);
    if (t->core == TN__CORE_THIN && turns_of(t) == 1)
        aim_rows(p);
}

static void emit_rows(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    int turns = turns_of(&product->tile);
    if (turns <= MOST_TURNS)
        tn__product_mark(p->nest, turns);
    tn__line(p, "const int lane = threadIdx.x %% 32, warp = threadIdx.x / 32, lanes = 32;");
    tn__line(p, "{");
    tn__line(p, "constexpr int each = %d;", turns);
    tn__product_spread spread = {turns, "warp + u * (core::THREADS / 32)", "lane", .any = "warp < rows", .ready = ready_rows};
    tn__product_emit_core(p, &spread);
    tn__line(p, "#pragma unroll%s", turns <= MOST_TURNS ? "" : " 1");
    tn__line(p, "for (int turn = 0; turn < %d; turn++) {", turns);
    tn__line(p, "const int own_row = warp + turn * (core::THREADS / 32);");
    tn__line(p, "if (own_row >= rows) break;");
    tn__line(p, "constexpr int each = 1;");
    if (product->row_loop >= 0)
        tn__line(p, "const tn_i64 x%d = top + own_row;", product->row_loop);
    tn__line(p, "const %s own = core::at(tile, own_row, min(lane, core::COLUMNS - 1));", tn__product_type(p->nest));
    tn__line(p, "const auto product = [&](int, int) { return own; };");
    tn__emit_extent(p);
    p->lane = "turn";
    for (int level = 0, passes = tn__nest_passes(p->nest); level < passes; level++) {
        emit_pass(p, level, "own_row", "lane + u * lanes", "column");
        combine_row(p, level);
        finish(p, level);
    }
    store_items(p);
    tn__line(p, "}");
    emit_next(p);
    tn__line(p, "}");
}

static void emit_columns(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    const tn__product_tile *t = &product->tile;
    int each = t->rows * t->columns / t->threads;
    tn__product_mark(p->nest, each);
    tn__line(p, "const int own_column = threadIdx.x %% core::COLUMNS, lane = threadIdx.x / core::COLUMNS;");
    tn__line(p, "constexpr int lanes = core::THREADS / core::COLUMNS, each = core::ROWS / lanes;");
    tn__product_emit_core(p, &(tn__product_spread){each, "lane + u * lanes", "own_column", .ready = NULL});
    if (product->column_loop >= 0)
        tn__line(p, "const tn_i64 x%d = left + own_column;", product->column_loop);
    tn__emit_extent(p);
    for (int level = 0, passes = tn__nest_passes(p->nest); level < passes; level++) {
        emit_pass(p, level, "lane + u * lanes", "own_column", "row");
        combine_column(p, level);
        finish(p, level);
    }
    tn__line(p, "if (own_column >= columns) return;");
    p->lane = "0";
    store_items(p);
}

void tn__emit_cuda_product(tn__printer *p)
{
    const tn__nest *n = p->nest;
    p->emitter->products = true;
    p->vector_loop = -1;
    p->chunk = "";
    if (n->product.tile.core == TN__CORE_BACK) {
        emit_back(p);
        return;
    }
    tn__product_emit_place(p);
    if (from_sums(n))
        emit_from_sums(p);
    else if (!n->reduced)
        emit_elementwise(p);
    else if (n->product.column_loop >= 0 && n->reduced == 1u << n->product.column_loop)
        emit_rows(p);
    else
        emit_columns(p);
}

/* Kernels are started while those before them still run, and go where there is room: so that no two blocks of a launch are on one
 * multiprocessor while others have none, one that computes for long asks to be spread. The first kernel of a run begins beside the
 * last one of the run in front of it, if both have a block on each multiprocessor: the first has most of its shared memory and less
 * than half of its registers, the last one has it the other way round. */
void tn__launch_cuda_product(const tn__nest *nest, const tn__capabilities *chip, tn__part_launch *launch)
{
    const tn__product_tile *t = &nest->product.tile;
    int64_t blocks = tn__product_blocks(nest);
    launch->threads = nest->product.tile.threads;
    launch->most_threads = launch->threads;
    launch->blocks = nest->loop_count && tn__nest_points(nest) == 0 && !nest->reduced ? 0 : blocks;
    launch->shared = tn__product_shared(nest);
    if (chip->multiprocessors && tn__product_is_long(nest))
        launch->spread = (int)((blocks + chip->multiprocessors - 1) / chip->multiprocessors);
    int words = t->rows_each * t->columns_each * (int)tn_dtype_size(nest->product.dtype) / 4;
    if (launch->spread == 1 && t->threads == TN__CUDA_THREADS && words <= FEW_WORDS)
        launch->registers = t->core == TN__CORE_WHOLE ? LESS_REGISTERS : t->core == TN__CORE_PLAIN ? MORE_REGISTERS : 0;
}
