/* SPDX-License-Identifier: MIT */
/*
 * Kernels around a matrix product, in CUDA C++. A block computes a tile of the result by the core in product.cuh or
 * product_tensor.cuh, which leaves it in shared memory. The rest of the nest is computed from there, element by element at the place where it belongs:
 *
 *     elementwise   threads go down the rows of a column, several elements each at a time: all their loads first, then all
 *                   their stores, so that the loads do not wait for each other
 *     rows          results of few columns: the tile has whole rows, a warp reduces one
 *     columns       results of few rows: the tile has whole columns, the threads of one combine by halves
 */
#include "compile/emit.h"

#include "compile/product.h"

#include <stdio.h>
#include <string.h>

#define AT_ONCE 16 /* elements a thread keeps in registers between its loads and its stores, if it has fetched nothing of each ahead */
#define MOST_AHEAD 24 /* registers for what is fetched ahead */
#define MOST_TURNS 4  /* rows of a warp for which something is */
#define LONG_WORK (1 << 17) /* multiplications of a block, about a microsecond's */

/* ---- the core ---- */

static const char *element_type(const tn__nest *n) { return tn__dtypes[n->product.dtype].ctype; }

/* Where in n[] the stride of an access along a loop is, as text: "0" if it has none. */
static const char *stride_text(const tn__access *a, int loop, char *text, size_t size)
{
    int param = a->param + 2;
    if (loop < 0 || !a->stride[loop])
        return "0";
    for (int l = 0; l < loop; l++)
        param += a->stride[l] != 0;
    snprintf(text, size, "n[%d]", param);
    return text;
}

/* Where in n[] the step along k is; the extent of k follows it. */
static int k_param(const tn__nest *n, const tn__access *a)
{
    int param = a->param + 2;
    for (int l = 0; l < n->loop_count; l++)
        param += a->stride[l] != 0;
    return param;
}

static const char *extent_text(int loop, char *text, size_t size)
{
    snprintf(text, size, "n[%d]", EXTENT(loop));
    return loop < 0 ? "1" : text;
}

/* Where the gathered lines of the tile begin, into shared memory. */
static void emit_places(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->product.access[0]];
    char step[24];
    tn__line(p, "static_assert(core::ROWS * sizeof(tn_i64) <= sizeof tn_lines, \"lines of a tile\");");
    tn__line(p, "for (int line = threadIdx.x; line < rows; line += core::THREADS) {");
    tn__line(p, "const tn_i64 x%d = top + line;", n->product.row_loop);
    tn__emit_scope(p);
    tn__emit_need(p, a->lines_at);
    tn__line(p, "tn_lines[line] = v%d * %s;", a->lines_at, stride_text(a, n->product.row_loop, step, sizeof step));
    tn__line(p, "}");
    tn__line(p, "__syncthreads();");
    tn__line(p, "factor0.places = tn_lines;");
}

/* The first of the two is that of the rows of a, the second that of the columns of b. */
static void emit_factor(tn__printer *p, int k)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->product.access[k]];
    int loop = k ? n->product.column_loop : n->product.row_loop;
    char step[24], lines[24];
    tn__emit_indent(p);
    tn__text_addf(p->text, "factor%d = tn_factor_of<%s, %s>(p%d + ", k, element_type(n),
                  tn__product_along_k(n, k) ? "true" : "false", n->product.access[k]);
    tn__print_position(p, a);
    tn__text_addf(p->text, ", %s, n[%d], n[%d], %s, %s);\n", stride_text(a, loop, step, sizeof step), k_param(n, a),
                  k_param(n, a) + 1, k ? "columns" : "rows", extent_text(loop, lines, sizeof lines));
}

static void emit_type(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    const char *a_along = tn__product_along_k(n, 0) ? "true" : "false", *b_along = tn__product_along_k(n, 1) ? "true" : "false";
    const char *gathered = n->access[n->product.access[0]].lines ? ", true" : "";
    p->emitter->tensor_products |= t->tensor;
    if (t->tensor)
        tn__line(p, "typedef tn_tensor_product<%d, %d, %d, %d, %d, %d, %d, %s, %s%s> core;", t->rows, t->columns, t->rows_each,
                 t->columns_each, t->slices, t->step, t->stages, a_along, b_along, gathered);
    else
        tn__line(p, "typedef tn_product<%s, %d, %d, %d, %d, %d, %d, %d, %d, %s, %s%s> core;", element_type(n), t->rows, t->columns,
                 t->rows_each, t->columns_each, t->lanes_down, t->slices, t->step, t->stages, a_along, b_along, gathered);
}

/* ---- elements ---- */

/* Opens the scope of the tile's element at `row` and `column`, which are expressions: variables of those names, and the loops'.
 * Values are computed without a condition, at the nearest element that there is, so that the loads of several elements are under
 * way together; what is done with them asks whether the element is there. */
static void open_element(tn__printer *p, bool values, const char *row, const char *column)
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
}

/* ---- what elements need beside the product ---- */

/* How a form spreads a tile's elements over threads: each has the elements u = 0, 1, ... < each. */
typedef struct ahead {
    int each;
    const char *row, *column; /* of element u */
} ahead;

/* Is all that an expression reads given before the program starts? */
static bool given(const tn__nest *n, int e)
{
    const tn__expr *x = &n->expr[e];
    if (x->kind == TN__EXPR_LOAD && !n->access[x->access].given)
        return false;
    for (int i = 0; i < x->arity; i++)
        if (!given(n, x->arg[i]))
            return false;
    return true;
}

/* Does neither the product nor a reduction nor an index that may be out of range come into it? */
static bool is_free(const tn__nest *n, int e)
{
    const tn__expr *x = &n->expr[e];
    if (x->kind == TN__EXPR_PRODUCT || x->kind == TN__EXPR_REDUCED || x->kind == TN__EXPR_SINGLE || x->kind == TN__EXPR_RAW ||
        (x->kind == TN__EXPR_LOAD && n->access[x->access].gathered && !n->access[x->access].known))
        return false;
    for (int i = 0; i < x->arity; i++)
        if (!is_free(n, x->arg[i]))
            return false;
    return true;
}

/* Marks the loads under an expression that can be done ahead, as long as there are registers. */
static void mark(tn__nest *n, int e, int each, int *registers)
{
    tn__expr *x = &n->expr[e];
    if (x->kept)
        return;
    if (x->kind == TN__EXPR_LOAD && is_free(n, e)) {
        bool down = n->product.row_loop >= 0 && x->loops >> n->product.row_loop & 1;
        int size = (int)tn_dtype_size(tn__dtypes[x->dtype].compute), needs = (down ? each : 1) * (size < 8 ? 1 : size / 4);
        if (needs > *registers)
            return;
        *registers -= needs;
        x->kept = true;
        x->passes = 1; /* which all other passes are behind */
        return;
    }
    for (int i = 0; i < x->arity; i++)
        mark(n, x->arg[i], each, registers);
}

static void mark_all(tn__nest *n, int each)
{
    int registers = MOST_AHEAD;
    for (int r = 0; r < n->reduction_count; r++)
        mark(n, n->reduction[r].arg, each, &registers);
    for (int s = 0; s < n->store_count; s++)
        mark(n, n->store[s].expr, each, &registers);
}

static bool any_ahead(const tn__nest *n, bool first)
{
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kept && given(n, e) == first)
            return true;
    return false;
}

/* Loads what has been marked, that which the program is given or the rest. */
static void emit_ahead(tn__printer *p, const ahead *ahead, bool first)
{
    tn__nest *n = p->nest;
    if (!any_ahead(n, first))
        return;
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kept && given(n, e) == first)
            tn__line(p, "%s k%d[each];", tn__emit_variable_type(n->expr[e].dtype), e);
    tn__line(p, "if (rows > 0 && columns > 0) {");
    tn__line(p, "#pragma unroll");
    tn__line(p, "for (int u = 0; u < each; u++) {");
    open_element(p, true, ahead->row, ahead->column);
    p->pass = 0;
    p->lane = "u";
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kept && given(n, e) == first)
            tn__emit_need(p, e);
    tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, "}");
}

/* Which tile is the block's. */
static void emit_place(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__nest_product *product = &n->product;
    char rows[24], columns[24];
    extent_text(product->row_loop, rows, sizeof rows);
    extent_text(product->column_loop, columns, sizeof columns);
    emit_type(p);
    tn__line(p, "unsigned q = (unsigned)block;");
    tn__line(p, "const tn_i64 left = (tn_i64)(q %% (unsigned)n[%d]) * core::COLUMNS;", product->param + 1);
    tn__line(p, "q /= (unsigned)n[%d];", product->param + 1);
    tn__line(p, "const tn_i64 top = (tn_i64)(q %% (unsigned)n[%d]) * core::ROWS;", product->param);
    tn__line(p, "q /= (unsigned)n[%d];", product->param);
    for (int l = n->loop_count - 1; l >= 0; l--)
        if (l != product->row_loop && l != product->column_loop) {
            tn__line(p, "const tn_i64 x%d = q %% (unsigned)n[%d];", l, EXTENT(l));
            tn__line(p, "q /= (unsigned)n[%d];", EXTENT(l));
        }
    tn__line(p, "const int rows = tn_within(%s - top, core::ROWS);", rows);
    tn__line(p, "const int columns = tn_within(%s - left, core::COLUMNS);", columns);
    tn__line(p, "%s *const tile = (%s *)tn_shared;", element_type(n), element_type(n));
}

static void emit_factors(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    bool gathered = p->nest->access[product->access[0]].lines;
    tn__line(p, "tn_factor<%s> factor0, factor1;", element_type(p->nest));
    tn__line(p, "{");
    if (product->row_loop >= 0)
        tn__line(p, "const tn_i64 x%d = %s;", product->row_loop, gathered ? "0" : "top");
    if (product->column_loop >= 0)
        tn__line(p, "const tn_i64 x%d = left;", product->column_loop);
    emit_factor(p, 0);
    emit_factor(p, 1);
    tn__line(p, "}");
}

/* The tile into shared memory. A kernel is started while those before it still run: what the program is given is fetched at once, all
 * else when they have ended; and what elements need beside the product comes along with its factors, not behind them. */
static void emit_core(tn__printer *p, const ahead *ahead)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->product.access[0]], *b = &n->access[n->product.access[1]];
    int depth = k_param(n, a) + 1;
    bool places_first = a->lines && given(n, a->lines_at), a_first = a->given && (!a->lines || places_first), b_first = b->given;
    emit_factors(p);
    if (b_first)
        tn__line(p, "tn_start<core, false, true, false>(tile, factor0, factor1, n[%d]);", depth);
    if (places_first)
        emit_places(p);
    if (a_first)
        tn__line(p, "tn_start<core, true, false, %s>(tile, factor0, factor1, n[%d]);", b_first ? "true" : "false", depth);
    emit_ahead(p, ahead, true);
    tn__line(p, "tn_take_over();");
    tn__line(p, "TN_STOP_IF_FAILED((*(const tn_failure *)fault));");
    if (a->lines && !places_first)
        emit_places(p);
    if (!a_first || !b_first)
        tn__line(p, "tn_start<core, %s, %s, true>(tile, factor0, factor1, n[%d]);", a_first ? "false" : "true",
                 b_first ? "false" : "true", depth);
    emit_ahead(p, ahead, false);
    tn__line(p, "core::run(tile, factor0, factor1, n[%d]);", depth);
    tn__line(p, "const auto product = [&](int row, int column) { return core::at(tile, row, column); };");
    p->pass = 1;
}

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

static void store_kept(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        const tn__access *a = &n->access[n->store[s].access];
        if (!keeps(n, s, level))
            continue;
        tn__text_addf(p->text, "        p%d[", n->store[s].access);
        tn__print_position(p, a);
        if (a->dtype == TN_FLOAT16 || a->dtype == TN_BFLOAT16)
            tn__text_addf(p->text, "] = tn_f32_to_%s(kept%d[u]);\n", tn__dtypes[a->dtype].suffix, s);
        else
            tn__text_addf(p->text, "] = kept%d[u];\n", s);
    }
}

static bool differs_down(const tn__nest *n)
{
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kept && n->product.row_loop >= 0 && n->expr[e].loops >> n->product.row_loop & 1)
            return true;
    return false;
}

static void emit_elementwise(tn__printer *p)
{
    tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    int down = t->threads / t->columns, all = (t->rows + down - 1) / down;
    mark_all(n, all);
    int each = differs_down(n) ? all : t->rows / down < 1 ? 1 : t->rows / down < AT_ONCE ? t->rows / down : AT_ONCE;
    tn__line(p, "constexpr int across = core::COLUMNS, down = core::THREADS / across, each = %d;", each);
    tn__line(p, "const int own_column = threadIdx.x %% across, first = threadIdx.x / across;");
    emit_core(p, &(ahead){each, "first + u * down", "own_column"});
    tn__line(p, "for (int begin = first; begin < core::ROWS; begin += each * down) {");
    declare_kept(p, 0);
    for (int pass = 0; pass < 2; pass++) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < each; u++) {");
        open_element(p, pass == 0, "begin + u * down", "own_column");
        if (pass == 0)
            keep_values(p, 0);
        else
            store_kept(p, 0);
        tn__line(p, "}");
        tn__line(p, "}");
    }
    tn__line(p, "}");
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
        open_element(p, pass == 0, row, column);
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

/* A warp's partial results, by halves; all lanes get the result. */
static void combine_row(tn__printer *p, int level)
{
    EACH_PLAIN(p, r, level) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int h = 16; h; h /= 2) t%d = %s(t%d, tn_from_lane(t%d, lane ^ h));", r, tn__emit_function(p, r), r, r);
    }
    EACH_POSITION(p, r, level) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int h = 16; h; h /= 2) {");
        tn__line(p, "const %s b = tn_from_lane(t%d, lane ^ h);", tn__emit_type(p, r), r);
        tn__line(p, "const tn_i64 j = tn_from_lane(at%d, lane ^ h);", r);
        tn__line(p, "if (j < R && (at%d == R || %s(t%d, b) || (!%s(b, t%d) && j < at%d))) { t%d = b; at%d = j; }", r,
                 tn__emit_function(p, r), r, tn__emit_function(p, r), r, r, r, r);
        tn__line(p, "}");
    }
}

/* The partial results of a column's threads, through shared memory. */
static void combine_column(tn__printer *p, int level)
{
    EACH_PLAIN(p, r, level) {
        const char *type = tn__emit_type(p, r);
        tn__line(p, "{");
        tn__line(p, "%s *const part = (%s *)tn_parts;", type, type);
        tn__line(p, "part[threadIdx.x] = t%d;", r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "for (int h = lanes / 2; h; h /= 2) {");
        tn__line(p, "if (lane < h) part[threadIdx.x] = %s(part[threadIdx.x], part[threadIdx.x + h * core::COLUMNS]);",
                 tn__emit_function(p, r));
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
        tn__line(p, "t%d = part[own_column];", r);
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
    p->scope = ITEM;
    tn__emit_stores(p, true, 0);
    tn__line(p, "}");
}

static void emit_rows(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    int warps = product->tile.threads / 32, turns = (product->tile.rows + warps - 1) / warps;
    if (turns <= MOST_TURNS)
        mark_all(p->nest, turns);
    tn__line(p, "const int lane = threadIdx.x %% 32, warp = threadIdx.x / 32, lanes = 32;");
    tn__line(p, "{");
    tn__line(p, "constexpr int each = %d;", turns);
    emit_core(p, &(ahead){turns, "warp + u * (core::THREADS / 32)", "lane"});
    tn__line(p, "#pragma unroll%s", turns <= MOST_TURNS ? "" : " 1");
    tn__line(p, "for (int turn = 0; turn < %d; turn++) {", turns);
    tn__line(p, "const int own_row = warp + turn * (core::THREADS / 32);");
    tn__line(p, "if (own_row >= rows) break;");
    tn__line(p, "constexpr int each = 1;");
    if (product->row_loop >= 0)
        tn__line(p, "const tn_i64 x%d = top + own_row;", product->row_loop);
    tn__line(p, "const %s own = core::at(tile, own_row, min(lane, core::COLUMNS - 1));", element_type(p->nest));
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
    tn__line(p, "}");
}

static void emit_columns(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    const tn__product_tile *t = &product->tile;
    int each = t->rows * t->columns / t->threads;
    mark_all(p->nest, each);
    tn__line(p, "const int own_column = threadIdx.x %% core::COLUMNS, lane = threadIdx.x / core::COLUMNS;");
    tn__line(p, "constexpr int lanes = core::THREADS / core::COLUMNS, each = core::ROWS / lanes;");
    emit_core(p, &(ahead){each, "lane + u * lanes", "own_column"});
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
    emit_place(p);
    if (!n->reduced)
        emit_elementwise(p);
    else if (n->product.column_loop >= 0 && n->reduced == 1u << n->product.column_loop)
        emit_rows(p);
    else
        emit_columns(p);
}

/* Kernels are started while those before them still run, and go where there is room: without this, two blocks of a launch would
 * be on one multiprocessor while others have none. So a block that computes for long takes as much shared memory as it may if
 * all blocks are to be there at once. */
static int shared_alone(const tn__nest *nest, const tn__capabilities *chip)
{
    const tn__product_tile *t = &nest->product.tile;
    int least = tn__product_shared(nest);
    int64_t blocks = tn__product_blocks(nest), work = t->rows * t->columns * tn__product_extents_of(nest).depth;
    if (!chip->multiprocessors || work < LONG_WORK)
        return least;
    int64_t each = (blocks + chip->multiprocessors - 1) / chip->multiprocessors;
    int64_t most = ((int64_t)chip->shared_memory + (1 << 10)) / (each + 1);
    return least < most ? (int)most : least;
}

void tn__launch_cuda_product(const tn__nest *nest, const tn__capabilities *chip, tn__part_launch *launch)
{
    launch->threads = nest->product.tile.threads;
    launch->blocks = nest->loop_count && tn__nest_points(nest) == 0 && !nest->reduced ? 0 : tn__product_blocks(nest);
    launch->shared = shared_alone(nest, chip);
}
