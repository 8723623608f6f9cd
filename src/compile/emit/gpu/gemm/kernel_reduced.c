/* SPDX-License-Identifier: MIT */
/*
 * Kernels around a matrix product that reduce its rows or columns, in CUDA C++: a warp reduces whole rows; whole
 * columns are reduced by the threads of a block, each of which combines its share of a column (see kernel.c).
 */
#include "compile/emit/gpu/form.h"
#include "compile/emit/gpu/gemm/kernel.h"

#define MOST_TURNS 4 /* most rows a warp may have for their loads to be issued before the product */

/* Prints a pass over the elements of an item (a row or a column). The thread's elements are at lane, lane + lanes,
 * ... */
static void emit_pass(tn__printer *p, int level, const char *row, const char *column, const char *inner)
{
    const tn__nest *n = p->nest;
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s t%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
    TN__EACH_POSITION(p, r, level)
        tn__line(p, "%s t%d = %s; tn_i64 at%d = R;", tn__emit_type(p, r), r, tn__emit_identity(p, r), r);
    tn__line(p, "if (rows > 0 && columns > 0) {");
    tn__product_declare_kept(p, level);
    for (int pass = 0; pass < 2; pass++) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < each; u++) {");
        tn__product_open_element(p, pass == 0, row, column);
        if (pass == 0) {
            tn__product_keep_values(p, level);
        } else {
            TN__EACH_PLAIN(p, r, level)
                tn__line(p, "t%d = %s(t%d, part%d[u]);", r, tn__emit_function(p, r), r, r);
            TN__EACH_POSITION(p, r, level)
            tn__line(p, "if (at%d == R || %s(t%d, part%d[u])) { t%d = part%d[u]; at%d = %s; }", r,
                     tn__emit_function(p, r), r, r, r, r, r, inner);
            tn__product_store_kept(p, level);
        }
        tn__line(p, "}");
        tn__line(p, "}");
    }
    tn__line(p, "}");
    for (int r = 0; r < n->reduction_count; r++) /* values computed for an element are in scope in this pass only */
        if (n->reduction[r].level == level && p->expr_note[n->reduction[r].arg].printed != TN__SCOPE_ITEM)
            p->expr_note[n->reduction[r].arg].printed = TN__SCOPE_NONE;
}

/* Combines a warp's partial results by halves, until every lane that has an element of the row has the result. */
static void combine_row(tn__printer *p, int level)
{
    int half = 16;
    while (half >= p->nest->product.tile.columns)
        half /= 2;
    TN__EACH_PLAIN(p, r, level) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int h = %d; h; h /= 2) t%d = %s(t%d, tn_from_lane(t%d, lane ^ h));", half, r,
                 tn__emit_function(p, r), r, r);
    }
    TN__EACH_POSITION(p, r, level) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int h = %d; h; h /= 2) {", half);
        tn__line(p, "const %s b = tn_from_lane(t%d, lane ^ h);", tn__emit_type(p, r), r);
        tn__line(p, "const tn_i64 j = tn_from_lane(at%d, lane ^ h);", r);
        tn__line(p, "if (j < R && (at%d == R || %s(t%d, b) || (!%s(b, t%d) && j < at%d))) { t%d = b; at%d = j; }", r,
                 tn__emit_function(p, r), r, tn__emit_function(p, r), r, r, r, r);
        tn__line(p, "}");
    }
}

/* Combines the partial results of a column's threads: within a warp by halves, then over the warps in order, through
 * shared memory. */
static void combine_column(tn__printer *p, int level)
{
    TN__EACH_PLAIN(p, r, level) {
        const char *type = tn__emit_type(p, r);
        tn__line(p, "{");
        tn__line(p, "%s *const part = (%s *)tn_parts;", type, type);
        tn__line(p, "#pragma unroll");
        tn__line(p,
                 "for (int h = 16; h >= main_loop::COLUMNS; h /= 2) t%d = %s(t%d, tn_from_lane(t%d, threadIdx.x %% 32 "
                 "^ h));",
                 r, tn__emit_function(p, r), r, r);
        tn__line(p,
                 "if (threadIdx.x %% 32 < main_loop::COLUMNS) part[threadIdx.x / 32 * main_loop::COLUMNS + own_column] "
                 "= t%d;",
                 r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "t%d = part[own_column];", r);
        tn__line(p, "#pragma unroll");
        tn__line(p,
                 "for (int w = 1; w < main_loop::THREADS / 32; w++) t%d = %s(t%d, part[w * main_loop::COLUMNS + "
                 "own_column]);",
                 r, tn__emit_function(p, r), r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
    }
}

static void finish(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++) {
        if (n->reduction[r].level != level)
            continue;
        int e = tn__nest_reduced_expr(n, r);
        if (tn__ops[n->reduction[r].op].props & TN_ARG)
            tn__line(p, "const tn_i64 v%d = at%d < R ? at%d : 0;", e, r, r);
        else
            tn__line(p, "const %s v%d = %s(t%d);", tn__emit_type(p, r), e, tn__emit_rounding(p, r), r);
        p->expr_note[e].printed = TN__SCOPE_ITEM;
    }
}

static void store_items(tn__printer *p)
{
    if (!tn__gpu_has_row_values(p->nest))
        return;
    tn__line(p, "if (lane == 0) {");
    p->in_tile = false;
    p->scope = TN__SCOPE_ITEM;
    tn__emit_stores(p, true, 0);
    tn__line(p, "}");
}

/* ---- rows ---- */

/* Prints the address of the element that a thread stores, where it has one of each result: there is nothing else to do
 * yet at that point. */
static void aim_rows(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        const tn__access *a = &n->access[n->store[s].access];
        tn__access_note_of(p, a)->own = true;
        tn__emit_indent(p);
        tn__text_addf(p->text, "auto *const q%d = tn_settled(p%d + ", n->store[s].access, n->store[s].access);
        tn__product_print_place(p, a, "(top + warp)", "(left + lane)");
        tn__text_add(p->text, ");\n");
    }
}

/* Rows that each warp of the tile reduces, one after another. */
static int turns_of(const tn__product_tile *t) { return (t->rows + t->threads / 32 - 1) / (t->threads / 32); }

static void ready_rows(tn__printer *p)
{
    const tn__product_tile *t = &p->nest->product.tile;
    tn__product_prepare_next(p);
    tn__product_emit_constants(p);
    if (t->main_loop == TN__MAIN_LOOP_SKINNY && turns_of(t) == 1)
        aim_rows(p);
}

void tn__product_emit_rows(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    int turns = turns_of(&product->tile);
    if (turns <= MOST_TURNS)
        tn__product_mark(p, turns);
    tn__line(p, "const int lane = threadIdx.x %% 32, warp = threadIdx.x / 32, lanes = 32;");
    tn__line(p, "{");
    tn__line(p, "constexpr int each = %d;", turns);
    tn__product_spread spread = {turns, "warp + u * (main_loop::THREADS / 32)", "lane", .any = "warp < rows",
                                 .ready = ready_rows};
    tn__product_emit_main_loop(p, &spread);
    tn__line(p, "#pragma unroll%s", turns <= MOST_TURNS ? "" : " 1");
    tn__line(p, "for (int turn = 0; turn < %d; turn++) {", turns);
    tn__line(p, "const int own_row = warp + turn * (main_loop::THREADS / 32);");
    tn__line(p, "if (own_row >= rows) break;");
    tn__line(p, "constexpr int each = 1;");
    if (product->row_loop >= 0)
        tn__line(p, "const tn_i64 x%d = top + own_row;", product->row_loop);
    tn__line(p, "const %s own = main_loop::at(tile, own_row, min(lane, main_loop::COLUMNS - 1));",
             tn__product_type(p->nest));
    tn__line(p, "const auto product = [&](int, int) { return own; };");
    tn__emit_extent(p);
    p->lane = "turn";
    for (int level = 0, passes = tn__nest_passes(p->nest); level < passes; level++) {
        emit_pass(p, level, "own_row", "lane + u * lanes", "column");
        combine_row(p, level);
        finish(p, level);
    }
    if (tn__gpu_has_row_values(p->nest)) /* a shuffle is no memory barrier: other lanes may still read an element
                                            that the stored value overwrites */
        tn__line(p, "__syncwarp();");
    store_items(p);
    tn__line(p, "}");
    tn__product_emit_next(p);
    tn__line(p, "}");
}

void tn__product_emit_columns(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    const tn__product_tile *t = &product->tile;
    int each = t->rows * t->columns / t->threads;
    tn__product_mark(p, each);
    tn__line(p, "const int own_column = threadIdx.x %% main_loop::COLUMNS, lane = threadIdx.x / main_loop::COLUMNS;");
    tn__line(p, "constexpr int lanes = main_loop::THREADS / main_loop::COLUMNS, each = main_loop::ROWS / lanes;");
    tn__product_emit_main_loop(p, &(tn__product_spread){each, "lane + u * lanes", "own_column", .ready = NULL});
    if (product->column_loop >= 0)
        tn__line(p, "const tn_i64 x%d = left + own_column;", product->column_loop);
    tn__emit_extent(p);
    for (int level = 0, passes = tn__nest_passes(p->nest); level < passes; level++) {
        emit_pass(p, level, "lane + u * lanes", "own_column", "row");
        combine_column(p, level);
        finish(p, level);
    }
    if (tn__gpu_has_row_values(p->nest) && tn__gpu_ends_uncombined(p->nest)) /* else combine_column waited */
        tn__line(p, "__syncthreads();");
    tn__line(p, "if (own_column >= columns) return;");
    p->lane = "0";
    store_items(p);
}
