/* SPDX-License-Identifier: MIT */
/*
 * Loops of kernels in C. Three shapes:
 *
 *     elementwise   items are (outer loops, stretches of the last loop); the last loop vectorises; where an operand lies
 *                   transposed, items are several rounds of the loop along which it is contiguous, done in tiles, for
 *                   which what is needed of it is copied first
 *     rows          the last loop is reduced: an item is a row; passes over it accumulate in lanes (device/order.h)
 *     columns       the last loop is kept: an item is a block of columns; passes over the rows accumulate in blocks
 */

#include "compile/emit.h"

#include <stdio.h>

#include "device/order.h"

/* ---- elementwise ---- */

#define TILE_ROWS  64          /* of a tile, along which operands that lie across are read: some lines of the cache */
#define TILE_BYTES (16 << 10)  /* of an operand's part of it, in the nearest cache */

/* Loads that skip along the last loop and are contiguous along another. */
static bool crosses(const tn__nest *n, const tn__access *a, int other)
{
    int last = n->loop_count - 1;
    return a->kind == TN__ACCESS_LOAD && !a->gathered && (a->stride[last] < -1 || a->stride[last] > 1) &&
           (a->stride[other] == 1 || a->stride[other] == -1);
}

/* The loop along which such a load is contiguous; -1: there is none. */
static int tiled_loop(const tn__nest *n)
{
    for (int i = 0; i < n->access_count; i++)
        for (int l = 0; l < n->loop_count - 1; l++)
            if (crosses(n, &n->access[i], l))
                return l;
    return -1;
}

static int tile_columns(const tn__nest *n, int tiled)
{
    int widest = 4;
    for (int i = 0; i < n->access_count; i++)
        if (crosses(n, &n->access[i], tiled) && tn__dtypes[n->access[i].dtype].size > widest)
            widest = tn__dtypes[n->access[i].dtype].size;
    return TILE_BYTES / TILE_ROWS / widest;
}

static void open_tiles(tn__printer *p, int tiled, int last)
{
    uint32_t others = tn__nest_loops(p->nest) & ~(1u << last) & ~(1u << tiled);
    tn__line(p, "const tn_i64 tiles = (n[%d] + %d) / %d, row = item / n[%d];", EXTENT(tiled), TILE_ROWS - 1, TILE_ROWS,
             EXTENT(p->nest->loop_count));
    tn__line(p, "const tn_i64 r0 = row %% tiles * %d;", TILE_ROWS);
    tn__line(p, "const tn_i64 r1 = r0 + %d < n[%d] ? r0 + %d : n[%d];", TILE_ROWS, EXTENT(tiled), TILE_ROWS, EXTENT(tiled));
    if (others) {
        tn__line(p, "const tn_i64 rest = row / tiles;");
        tn__emit_decode(p, others, "rest");
    }
}

/*
 * Copies what a tile needs of an operand that lies across, line by line: read where it lies, its lines would be far apart and push
 * one another out of the caches, above all where extents are powers of two.
 */
static void stage(tn__printer *p, int access, int tiled, int last)
{
    tn__access *a = &p->nest->access[access];
    tn__line(p, "struct { %s e[%d]; } c%d[%d];", tn__dtypes[a->dtype].ctype, tile_columns(p->nest, tiled), access, TILE_ROWS);
    tn__line(p, "for (tn_i64 x%d = t0; x%d < t1; x%d++)", last, last, last);
    tn__line(p, "    for (tn_i64 x%d = r0; x%d < r1; x%d++)", tiled, tiled, tiled);
    tn__text_addf(p->text, "        c%d[x%d - r0].e[x%d - t0] = p%d[", access, tiled, last, access);
    p->vector_loop = tiled;
    tn__print_position(p, a);
    p->vector_loop = last;
    tn__text_add(p->text, "];\n");
    a->staged = true;
}

static void open_tile(tn__printer *p, int tiled, int last)
{
    int columns = tile_columns(p->nest, tiled);
    tn__line(p, "for (tn_i64 t0 = c0; t0 < c1; t0 += %d) {", columns);
    tn__line(p, "const tn_i64 t1 = t0 + %d < c1 ? t0 + %d : c1;", columns, columns);
    for (int i = 0; i < p->nest->access_count; i++)
        if (crosses(p->nest, &p->nest->access[i], tiled))
            stage(p, i, tiled, last);
    tn__line(p, "for (tn_i64 x%d = r0; x%d < r1; x%d++) {", tiled, tiled, tiled);
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 x%d = t0; x%d < t1; x%d++) {", last, last, last);
}

static void emit_elementwise(tn__printer *p)
{
    tn__nest *n = p->nest;
    int last = n->loop_count - 1, tiled = tiled_loop(n);
    uint32_t inner = (last >= 0 ? 1u << last : 0) | (tiled >= 0 ? 1u << tiled : 0);
    p->vector_loop = last;
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    if (last >= 0) {
        tn__line(p, "const tn_i64 c0 = item %% n[%d] * n[%d];", EXTENT(n->loop_count), EXTENT(n->loop_count + 1));
        tn__line(p, "const tn_i64 c1 = c0 + n[%d] < n[%d] ? c0 + n[%d] : n[%d];", EXTENT(n->loop_count + 1),
             EXTENT(last), EXTENT(n->loop_count + 1), EXTENT(last));
    }
    if (tiled >= 0) {
        open_tiles(p, tiled, last);
    } else if (last > 0) {
        tn__line(p, "const tn_i64 row = item / n[%d];", EXTENT(n->loop_count));
        tn__emit_decode(p, tn__nest_loops(n) & ~inner, "row");
    }
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, inner);
    if (tiled >= 0) {
        open_tile(p, tiled, last);
    } else if (last >= 0) {
        tn__line(p, "TN_INDEPENDENT");
        tn__line(p, "for (tn_i64 x%d = c0; x%d < c1; x%d++) {", last, last, last);
    } else {
        tn__line(p, "{");
    }
    char chunk[32], lane[32];
    if (tiled >= 0) {
        snprintf(chunk, sizeof chunk, "[x%d - r0]", tiled);
        snprintf(lane, sizeof lane, "x%d - t0", last);
        p->chunk = chunk;
        p->lane = lane;
    }
    tn__emit_scope(p);
    tn__emit_stores(p, false, 0);
    p->lane = NULL;
    for (int open = tiled >= 0 ? 4 : 2; open; open--)
        tn__line(p, "}");
}

/* ---- rows ---- */

static void lane_body(tn__printer *p, int level, uint32_t reduced, const char *position)
{
    tn__emit_decode(p, reduced, position);
    tn__emit_scope(p);
    tn__emit_element(p, level);
    EACH_PLAIN(p, r, level)
        tn__line(p, "lane%d[j] = %s(lane%d[j], v%d);", r, tn__emit_function(p, r), r, p->nest->reduction[r].arg);
}

static void halve(tn__printer *p, int level, const char *lanes)
{
    tn__line(p, "for (int h = %d; h; h /= 2)", TN__REDUCE_LANES / 2);
    tn__line(p, "    for (int j = 0; j < h; j++) {");
    EACH_PLAIN(p, r, level)
        tn__line(p, "%s%d[j] = %s(%s%d[j], %s%d[j + h]);", lanes, r, tn__emit_function(p, r), lanes, r, lanes, r);
    tn__line(p, "}");
}

static void row_sums(tn__printer *p, int level)
{
    uint32_t reduced = p->nest->reduced;
    EACH_PLAIN(p, r, level)
        tn__line(p, "%s t%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
    tn__line(p, "{");
    EACH_PLAIN(p, r, level)
        tn__line(p, "%s total%d[%d], lane%d[%d];", tn__emit_type(p, r), r, TN__REDUCE_LANES, r, TN__REDUCE_LANES);
    tn__line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    EACH_PLAIN(p, r, level)
        tn__line(p, "total%d[j] = %s;", r, tn__emit_identity(p, r));
    tn__line(p, "}");
    tn__line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_BLOCK);
    tn__line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_BLOCK, TN__REDUCE_BLOCK);
    tn__line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    EACH_PLAIN(p, r, level)
        tn__line(p, "lane%d[j] = %s;", r, tn__emit_identity(p, r));
    tn__line(p, "}");
    tn__line(p, "tn_i64 r = b;");
    tn__line(p, "for (; r + %d <= e; r += %d) {", TN__REDUCE_LANES, TN__REDUCE_LANES);
    tn__line(p, "TN_LANES");
    tn__line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    lane_body(p, level, reduced, "r + j");
    tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, "for (int j = 0; r + j < e; j++) {");
    lane_body(p, level, reduced, "r + j");
    tn__line(p, "}");
    halve(p, level, "lane");
    tn__line(p, "const int k = (int)(b / %d %% %d);", TN__REDUCE_BLOCK, TN__REDUCE_LANES);
    EACH_PLAIN(p, r, level) {
        tn__line(p, "t%d = lane%d[0];", r, r);
        tn__line(p, "total%d[k] = %s(total%d[k], lane%d[0]);", r, tn__emit_function(p, r), r, r);
    }
    tn__line(p, "}");
    tn__line(p, "if (R > %d) {", TN__REDUCE_BLOCK);
    halve(p, level, "total");
    EACH_PLAIN(p, r, level)
        tn__line(p, "t%d = total%d[0];", r, r);
    tn__line(p, "}");
    tn__line(p, "}");
    EACH_PLAIN(p, r, level) {
        int e = tn__nest_reduced_expr(p->nest, r);
        tn__line(p, "const %s v%d = %s(t%d);", tn__emit_type(p, r), e, tn__emit_rounding(p, r), r);
        p->nest->expr[e].printed = ITEM;
    }
}

static void row_positions(tn__printer *p, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        const tn__reduction *red = &p->nest->reduction[r];
        if (red->level != level || !(tn__ops[red->op].props & TN_ARG))
            continue;
        int e = tn__nest_reduced_expr(p->nest, r);
        tn__line(p, "%s best%d = %s;", tn__emit_type(p, r), r, tn__emit_identity(p, r));
        tn__line(p, "tn_i64 v%d = 0;", e);
        tn__line(p, "for (tn_i64 r = 0; r < R; r++) {");
        tn__emit_decode(p, p->nest->reduced, "r");
        tn__emit_scope(p);
        tn__emit_need(p, red->arg);
        tn__line(p, "if (%s(best%d, v%d)) { best%d = v%d; v%d = r; }", tn__emit_function(p, r), r, red->arg, r, red->arg, e);
        tn__line(p, "}");
        p->nest->expr[e].printed = ITEM;
    }
}

static void emit_rows(tn__printer *p)
{
    tn__nest *n = p->nest;
    uint32_t kept = tn__nest_loops(n) & ~n->reduced;
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1)
            p->vector_loop = l;
    if (__builtin_popcount(n->reduced) > 1)
        p->vector_loop = -1;
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    tn__emit_decode(p, kept, "item");
    tn__emit_extent(p);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, n->reduced);
        if (tn__nest_reductions(n, level, false)) {
            row_sums(p, level);
        } else if (tn__nest_has_stores(n, level)) {
            tn__line(p, "TN_INDEPENDENT");
            tn__line(p, "for (tn_i64 r = 0; r < R; r++) {");
            tn__emit_decode(p, n->reduced, "r");
            tn__emit_scope(p);
            tn__emit_element(p, level);
            tn__line(p, "}");
        }
        if (tn__nest_reductions(n, level, true))
            row_positions(p, level);
    }
    p->scope = ITEM;
    tn__emit_stores(p, true, 0);
    tn__line(p, "}");
}

/* ---- columns ---- */

/*
 * In a block: of a wide matrix as many as make its rows' pieces as long as a page of memory, which is read several times as
 * fast as shorter ones; else few, so that blocks are shared out over threads, and accumulators stay in the nearest cache.
 */
#define FEW_COLUMNS      256
#define MANY_COLUMNS     1024
#define WIDE             (2 * MANY_COLUMNS)
#define MOST_ACCUMULATED 4 /* reductions of a nest with blocks of many */

static int most_columns(const tn__nest *n)
{
    return n->reduction_count <= MOST_ACCUMULATED ? MANY_COLUMNS : FEW_COLUMNS;
}

static int64_t column_blocks(const tn__nest *n, int64_t columns)
{
    int64_t block = columns >= WIDE ? most_columns(n) : FEW_COLUMNS;
    return (columns + block - 1) / block;
}

static void each_column(tn__printer *p)
{
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (tn_i64 x%d = c0; x%d < c1; x%d++) {", p->vector_loop, p->vector_loop, p->vector_loop);
}

static void column_sums(tn__printer *p, int level)
{
    int c = p->vector_loop;
    EACH_PLAIN(p, r, level) {
        tn__line(p, "%s part%d[%d];", tn__emit_type(p, r), r, most_columns(p->nest));
        tn__line(p, "TN_COLUMNS a%d[w + c] = %s;", r, tn__emit_identity(p, r));
    }
    tn__line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_OUTER_BLOCK);
    tn__line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_OUTER_BLOCK, TN__REDUCE_OUTER_BLOCK);
    EACH_PLAIN(p, r, level)
        tn__line(p, "TN_COLUMNS part%d[w + c] = %s;", r, tn__emit_identity(p, r));
    tn__line(p, "for (tn_i64 r = b; r < e; r++) {");
    tn__emit_decode(p, p->nest->reduced, "r");
    each_column(p);
    tn__emit_scope(p);
    tn__emit_element(p, level);
    EACH_PLAIN(p, r, level)
        tn__line(p, "part%d[x%d - c0] = %s(part%d[x%d - c0], v%d);", r, c, tn__emit_function(p, r), r, c,
             p->nest->reduction[r].arg);
    tn__line(p, "}");
    tn__line(p, "}");
    EACH_PLAIN(p, r, level)
        tn__line(p, "TN_COLUMNS a%d[w + c] = R > %d ? %s(a%d[w + c], part%d[w + c]) : part%d[w + c];", r,
             TN__REDUCE_OUTER_BLOCK, tn__emit_function(p, r), r, r, r);
    tn__line(p, "}");
    EACH_PLAIN(p, r, level)
        if (*tn__emit_rounding(p, r))
            tn__line(p, "TN_COLUMNS a%d[w + c] = %s(a%d[w + c]);", r, tn__emit_rounding(p, r), r);
}

static void column_positions(tn__printer *p, int level)
{
    int c = p->vector_loop;
    for (int r = 0; r < p->nest->reduction_count; r++) {
        const tn__reduction *red = &p->nest->reduction[r];
        if (red->level != level || !(tn__ops[red->op].props & TN_ARG))
            continue;
        tn__line(p, "%s best%d[%d];", tn__emit_type(p, r), r, most_columns(p->nest));
        tn__line(p, "TN_COLUMNS { best%d[w + c] = %s; a%d[w + c] = 0; }", r, tn__emit_identity(p, r), r);
        tn__line(p, "for (tn_i64 r = 0; r < R; r++) {");
        tn__emit_decode(p, p->nest->reduced, "r");
        each_column(p);
        tn__emit_scope(p);
        tn__emit_need(p, red->arg);
        tn__line(p, "if (%s(best%d[x%d - c0], v%d)) { best%d[x%d - c0] = v%d; a%d[x%d - c0] = r; }", tn__emit_function(p, r), r,
             c, red->arg, r, c, red->arg, r, c);
        tn__line(p, "}");
        tn__line(p, "}");
    }
}

static void emit_columns(tn__printer *p)
{
    tn__nest *n = p->nest;
    int c = n->loop_count - 1;
    uint32_t column = 1u << c, outer = tn__nest_loops(n) & ~n->reduced & ~column;
    p->vector_loop = c;
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    tn__line(p, "const tn_i64 block = n[%d] >= %d ? %d : %d;", EXTENT(c), WIDE, most_columns(n), FEW_COLUMNS);
    tn__line(p, "const tn_i64 blocks = (n[%d] + block - 1) / block;", EXTENT(c));
    tn__line(p, "const tn_i64 c0 = item %% blocks * block;");
    tn__line(p, "const tn_i64 c1 = c0 + block < n[%d] ? c0 + block : n[%d];", EXTENT(c), EXTENT(c));
    tn__line(p, "const int width = (int)(c1 - c0);");
    tn__line(p, "const tn_i64 row = item / blocks;");
    tn__emit_decode(p, outer, "row");
    tn__emit_extent(p);
    for (int r = 0; r < n->reduction_count; r++)
        tn__line(p, "%s a%d[%d];", tn__ops[n->reduction[r].op].props & TN_ARG ? "tn_i64" : tn__emit_type(p, r), r,
                 most_columns(n));
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        tn__emit_hoist_pass(p, level, n->reduced | column);
        if (tn__nest_reductions(n, level, false)) {
            tn__line(p, "{");
            column_sums(p, level);
            tn__line(p, "}");
        } else if (tn__nest_has_stores(n, level)) {
            tn__line(p, "for (tn_i64 r = 0; r < R; r++) {");
            tn__emit_decode(p, n->reduced, "r");
            each_column(p);
            tn__emit_scope(p);
            tn__emit_element(p, level);
            tn__line(p, "}");
            tn__line(p, "}");
        }
        if (tn__nest_reductions(n, level, true)) {
            tn__line(p, "{");
            column_positions(p, level);
            tn__line(p, "}");
        }
    }
    bool any = false;
    for (int s = 0; s < n->store_count; s++)
        any = any || n->store[s].row;
    if (any) {
        for (int s = 0; s < n->store_count; s++)
            if (n->store[s].row)
                tn__emit_hoist(p, n->store[s].expr, n->reduced | column);
        each_column(p);
        tn__emit_scope(p);
        tn__emit_stores(p, true, 0);
        tn__line(p, "}");
    }
    tn__line(p, "}");
}

/* ---- the target ---- */

static void loops(tn__printer *p)
{
    if (!p->nest->reduced)
        emit_elementwise(p);
    else if (p->nest->last_kept)
        emit_columns(p);
    else
        emit_rows(p);
}

static int64_t items(const tn__emitter *emitter, const tn__nest *n)
{
    (void)emitter;
    int64_t points = tn__nest_points(n), rows = tn__nest_rows(n);
    int64_t last = n->loop_count ? n->extent[n->loop_count - 1] : 1;
    if (!n->loop_count || !last)
        return n->loop_count == 0 || (n->reduced && !n->last_kept) ? rows : 0;
    if (!n->reduced) {
        int tiled = points ? tiled_loop(n) : -1;
        int64_t outer = points / last, rows_of = tiled >= 0 ? n->extent[tiled] : 1;
        int64_t groups = tiled >= 0 ? (rows_of + TILE_ROWS - 1) / TILE_ROWS : 1;
        return outer / rows_of * groups * ((last + TN__STRETCH - 1) / TN__STRETCH);
    }
    return n->last_kept ? rows / last * column_blocks(n, last) : rows;
}

static void entry(tn__text *text, const tn__step *step, int number, int count, const tn__nest_call *call,
                  const tn__part_launch *launch)
{
    (void)step, (void)launch;
    tn__text_addf(text, "void k%d(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 begin, tn_i64 end, tn_i64 *fault)\n{\n",
                  number);
    if (count == 1) {
        tn__text_addf(text, "    nest%d(p, n, s, begin, end, fault);\n}\n\n", call[0].function);
        return;
    }
    tn__text_add(text, "    for (; begin < end; begin++) {\n");
    for (int i = 0; i < count; i++)
        tn__text_addf(text, "        nest%d(p, n + %d, s, 0, n[%d], fault);\n", call[i].function, call[i].param,
                      call[i].param);
    tn__text_add(text, "    }\n}\n\n");
}

/* For elementwise nests: how many stretches the last loop has, and their length. */
static int extras(const tn__emitter *emitter, const tn__nest *n, int64_t *extra)
{
    (void)emitter;
    if (n->reduced || !n->loop_count)
        return 0;
    extra[0] = (n->extent[n->loop_count - 1] + TN__STRETCH - 1) / TN__STRETCH;
    extra[1] = TN__STRETCH;
    return 2;
}

const tn__emit_target tn__emit_target_c = {
    .nest_head = "static void nest%d(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 begin, tn_i64 end, tn_i64 *fault)\n",
    .helpers = "#define TN_INDEPENDENT _Pragma(\"GCC ivdep\")\n"
               /* over a block's accumulators, in pieces of FEW_COLUMNS: a constant number needs no remainder loop */
               "#define TN_COLUMNS for (int w = 0; w < width; w += 256) for (int c = 0; c < 256; c++)\n"
               "#define TN_LANES _Pragma(\"GCC ivdep\")\n",
    .random_helpers = "",
    .loops = loops,
    .items = items,
    .extras = extras,
    .entry = entry,
};
