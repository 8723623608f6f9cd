/* SPDX-License-Identifier: MIT */
/*
 * Loops of kernels in C. Three shapes:
 *
 *     elementwise   items are (outer loops, stretches of the last loop); the last loop vectorises; where an operand
 *                   lies transposed, items are several rounds of the loop along which it is contiguous, done in tiles,
 *                   for which what is needed of it is copied first; short rows are done several at once
 *                   (short.c)
 *     rows          the last loop is reduced: an item is a row, or a block of one (rows.c); rows of few elements
 *                   are written out (few.c)
 *     columns       the last loop is kept: an item is a block of columns (columns.c)
 */

#include "compile/emit/c/c.h"

#include <stdio.h>

#include "device/order.h"
#include "ops/dialect.h"
#include "tn_embed.h"

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
    tn__line(p, "const tn_i64 tiles = (n[%d] + %d) / %d, row = item / n[%d];", TN__EXTENT(tiled), TILE_ROWS - 1,
             TILE_ROWS, TN__EXTENT(p->nest->loop_count));
    tn__line(p, "const tn_i64 r0 = row %% tiles * %d;", TILE_ROWS);
    tn__line(p, "const tn_i64 r1 = r0 + %d < n[%d] ? r0 + %d : n[%d];", TILE_ROWS, TN__EXTENT(tiled), TILE_ROWS,
             TN__EXTENT(tiled));
    if (others) {
        tn__line(p, "const tn_i64 rest = row / tiles;");
        tn__emit_decode(p, others, "rest");
    }
}

void tn__c_stage(tn__printer *p, int access, int row, int column, char from, int rows, int columns)
{
    const tn__access *a = &p->nest->access[access];
    int bits = 8 * tn__dtypes[a->dtype].size;
    tn__line(p, "struct { %s e[%d]; } c%d[%d];", tn__dtypes[a->dtype].ctype, columns, access, rows);
    tn__access_note_of(p, a)->staged = true;
    p->vector_loop = row;
    if (a->stride[row] == 1 && bits <= 64) {
        tn__line(p, "{");
        tn__line(p, "const tn_i64 x%d = r0, x%d = %c0;", row, column, from);
        tn__emit_indent(p);
        tn__text_addf(p->text, "tn_transpose_%d(c%d[0].e, %d, &p%d[", bits, access, columns, access);
        tn__print_position(p, a);
        tn__text_addf(p->text, "], n[%d], r1 - r0, %c1 - %c0);\n", tn__stride_param(a, column), from, from);
        tn__line(p, "}");
        p->vector_loop = column;
        return;
    }
    tn__line(p, "for (tn_i64 x%d = %c0; x%d < %c1; x%d++)", column, from, column, from, column);
    tn__line(p, "    for (tn_i64 x%d = r0; x%d < r1; x%d++)", row, row, row);
    tn__emit_indent(p);
    tn__text_addf(p->text, "        c%d[x%d - r0].e[x%d - %c0] = p%d[", access, row, column, from, access);
    tn__print_position(p, a);
    p->vector_loop = column;
    tn__text_add(p->text, "];\n");
}

static void open_tile(tn__printer *p, int tiled, int last)
{
    int columns = tile_columns(p->nest, tiled);
    tn__line(p, "for (tn_i64 t0 = c0; t0 < c1; t0 += %d) {", columns);
    tn__line(p, "const tn_i64 t1 = t0 + %d < c1 ? t0 + %d : c1;", columns, columns);
    for (int i = 0; i < p->nest->access_count; i++)
        if (crosses(p->nest, &p->nest->access[i], tiled))
            tn__c_stage(p, i, tiled, last, 't', TILE_ROWS, columns);
    tn__line(p, "for (tn_i64 x%d = r0; x%d < r1; x%d++) {", tiled, tiled, tiled);
}

/*
 * The stretch of an item and the coordinates of its row: found by division for the first item alone, then counted on.
 * Where rows are short, as of windows, divisions took longer than what is done with the elements.
 */
static void open_count(tn__printer *p, int last)
{
    int stretches = TN__EXTENT(last + 1);
    tn__line(p, "if (begin >= end) return;");
    tn__line(p, "tn_i64 stretch = begin %% n[%d], q = begin / n[%d];", stretches, stretches);
    for (int l = last - 1; l > 0; l--)
        tn__line(p, "tn_i64 x%d = q %% n[%d]; q /= n[%d];", l, TN__EXTENT(l), TN__EXTENT(l));
    tn__line(p, "tn_i64 x0 = q;");
}

static void close_count(tn__printer *p, int last)
{
    tn__line(p, "if (++stretch < n[%d]) continue;", TN__EXTENT(last + 1));
    tn__line(p, "stretch = 0;");
    for (int l = last - 1; l > 0; l--) {
        tn__line(p, "if (++x%d < n[%d]) continue;", l, TN__EXTENT(l));
        tn__line(p, "x%d = 0;", l);
    }
    tn__line(p, "x0++;");
}

static void emit_elementwise(tn__printer *p)
{
    const tn__nest *n = p->nest;
    int last = n->loop_count - 1, tiled = tiled_loop(n);
    uint32_t inner = (last >= 0 ? 1u << last : 0) | (tiled >= 0 ? 1u << tiled : 0);
    bool counts = tiled < 0 && last > 0;
    p->vector_loop = last;
    if (counts)
        open_count(p, last);
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    if (counts)
        tn__line(p, "const tn_i64 c0 = stretch * n[%d];", TN__EXTENT(n->loop_count + 1));
    else if (last >= 0)
        tn__line(p, "const tn_i64 c0 = item %% n[%d] * n[%d];", TN__EXTENT(n->loop_count),
                 TN__EXTENT(n->loop_count + 1));
    if (last >= 0) {
        tn__line(p, "const tn_i64 c1 = c0 + n[%d] < n[%d] ? c0 + n[%d] : n[%d];", TN__EXTENT(n->loop_count + 1),
             TN__EXTENT(last), TN__EXTENT(n->loop_count + 1), TN__EXTENT(last));
    }
    if (tiled >= 0)
        open_tiles(p, tiled, last);
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, inner);
    char vector[32], lane[32];
    if (tiled >= 0) {
        open_tile(p, tiled, last);
        snprintf(vector, sizeof vector, "[x%d - r0]", tiled);
        snprintf(lane, sizeof lane, "x%d - t0", last);
        p->vector = vector;
        p->lane = lane;
    }
    bool strips = last >= 0 && tn__c_has_strip(p, last, false, 0);
    tn__c_strip strip = {.loop = last, .first = "t0", .end = "t1", .size = TN__C_STRIP};
    if (strips && tiled < 0) {
        tn__line(p, "for (tn_i64 t0 = c0; t0 < c1; t0 += %d) {", TN__C_STRIP);
        tn__line(p, "const tn_i64 t1 = t0 + %d < c1 ? t0 + %d : c1;", TN__C_STRIP, TN__C_STRIP);
    }
    if (strips)
        tn__c_open_strip(p, &strip);
    if (last >= 0) {
        bool parts = strips || tiled >= 0;
        tn__line(p, "TN_INDEPENDENT");
        tn__line(p, "for (tn_i64 x%d = %s; x%d < %s; x%d++) {", last, parts ? "t0" : "c0", last, parts ? "t1" : "c1",
                 last);
    } else {
        tn__line(p, "{");
    }
    tn__emit_scope(p);
    tn__emit_stores(p, false, 0);
    p->lane = NULL;
    tn__line(p, "}");
    if (strips)
        tn__c_close_strip(p, &strip);
    for (int open = tiled >= 0 ? 3 : strips ? 2 : 1; open; open--) {
        if (open == 1 && counts)
            close_count(p, last);
        tn__line(p, "}");
    }
}

/* ---- the target ---- */

static void loops(tn__printer *p)
{
    p->checks_ahead = true;
    if (!p->nest->reduced && tiled_loop(p->nest) < 0 && tn__c_is_short(p->nest))
        tn__c_emit_short(p);
    else if (!p->nest->reduced)
        emit_elementwise(p);
    else if (p->nest->last_kept)
        tn__c_emit_columns(p);
    else if (tn__c_is_few(p->nest))
        tn__c_emit_few(p);
    else
        tn__c_emit_rows(p);
}

static int64_t items(const tn__emitter *emitter, const tn__nest *n)
{
    (void)emitter;
    int64_t points = tn__nest_points(n), rows = tn__nest_rows(n);
    int64_t last = n->loop_count ? n->extent[n->loop_count - 1] : 1;
    if (!n->loop_count || !last)
        return n->loop_count == 0 || (n->reduced && !n->last_kept) ? rows : 0;
    if (!n->reduced && tiled_loop(n) < 0 && tn__c_is_short(n))
        return tn__c_short_items(n);
    if (!n->reduced) {
        int tiled = points ? tiled_loop(n) : -1;
        int64_t outer = points / last, rows_of = tiled >= 0 ? n->extent[tiled] : 1;
        int64_t groups = tiled >= 0 ? (rows_of + TILE_ROWS - 1) / TILE_ROWS : 1;
        return outer / rows_of * groups * ((last + TN__STRETCH - 1) / TN__STRETCH);
    }
    int64_t items = n->last_kept ? rows / last * tn__c_column_blocks(n) : rows;
    return n->part == TN__PART_PARTIAL ? items * n->segments : items;
}

/*
 * Reductions of few items, and over long stretches, are done in two steps: of the first an item is a block of
 * device/order.h, the second combines what the blocks gave, in their order.
 */
#define FEW_ITEMS   64        /* are no work for many threads */
#define MANY_POINTS (1 << 18) /* pay for a second step */
#define SEGMENTS    4         /* do, too */

static bool splits(const tn__emitter *emitter, tn__nest *n)
{
    n->part = TN__PART_WHOLE;
    if (!n->reduction_count || n->reduction_count > TN__MAX_PARTIALS || tn__nest_passes(n) > 1 ||
        tn__nest_points(n) < MANY_POINTS || items(emitter, n) >= FEW_ITEMS)
        return false;
    int64_t block = n->last_kept ? TN__REDUCE_OUTER_BLOCK : TN__REDUCE_BLOCK;
    n->segments = (tn__nest_points(n) / tn__nest_rows(n) + block - 1) / block;
    return n->segments >= SEGMENTS;
}

static void entry(tn__text *text, const tn__step *step, const char *name, int count, const tn__nest_call *call,
                  const tn__part_launch *launch)
{
    (void)step, (void)launch;
    tn__text_addf(
        text,
        "void %s(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 begin, tn_i64 end, tn_i64 *fault)\n{\n",
        name);
    if (count == 1) {
        tn__text_addf(text, "    %s(p, n, s, begin, end, fault);\n}\n\n", call[0].name);
        return;
    }
    tn__text_add(text, "    for (; begin < end; begin++) {\n");
    for (int i = 0; i < count; i++)
        tn__text_addf(text, "        %s(p, n + %d, s, 0, n[%d], fault);\n", call[i].name, call[i].param,
                      call[i].param);
    tn__text_add(text, "    }\n}\n\n");
}

/* For elementwise nests: how many stretches the last loop has, and their length. */
static int extras(const tn__emitter *emitter, const tn__nest *n, int64_t *extra)
{
    (void)emitter;
    if (n->reduced || !n->loop_count)
        return 0;
    if (tiled_loop(n) < 0 && tn__c_is_short(n))
        return tn__c_short_extras(n, extra);
    extra[0] = (n->extent[n->loop_count - 1] + TN__STRETCH - 1) / TN__STRETCH;
    extra[1] = TN__STRETCH;
    return 2;
}

static const tn__word words[] = {{"memory", ""}, {NULL, NULL}};

const tn__emit_target tn__emit_target_c = {
    .words = words,
    .nest_head = "static void %s(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 begin, tn_i64 end, "
                 "tn_i64 *fault)\n",
    /* restrict: what is written might else be extents, which would be read again for each element, in loops that are
     * not of vectors: negative indices of 51,200 counted from the end take 10 us instead of 46. Compiling takes half
     * as long again. */
    .restrict_head =
        "static void %s(void *const *p, const tn_i64 *restrict n, const tn_u64 *restrict s, tn_i64 begin, "
        "tn_i64 end, tn_i64 *fault)\n",
    .functions = TN__DIALECT_CPU,
    .helpers = (const char *)tn__embed_c_helpers,
    .rounding = "",
    .random_helpers = (const char *)tn__embed_c_random,
    .splits = splits,
    .loops = loops,
    .items = items,
    .extras = extras,
    .entry = entry,
};
