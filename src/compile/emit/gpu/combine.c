/* SPDX-License-Identifier: MIT */
/*
 * Reductions: the accumulators of a thread, and how threads combine theirs. The order depends on the form alone,
 * never on which thread comes first: lanes of a warp combine by halves, by shuffles; warps through shared memory.
 */
#include "compile/emit/gpu/form.h"

#include <stdio.h>

/* ---- accumulators ---- */

/*
 * Sums of many float32 numbers: a thread adds up FEW of them in float32, then adds that to a sum in float64; the sums
 * of threads and segments are combined in float64. For shorter sums this would take longer than loading the numbers:
 * sums of at most TN__GPU_SINGLE elements, and rows that are not split of at most SINGLE_ROW, stay in float32
 * throughout.
 */
#define SINGLE_ROW 262144
#define FEW        16 /* numbers that a thread adds up in float32 at a time */

bool tn__gpu_widens_pieces(const tn__nest *n, int r)
{
    return tn__nest_widens(n, r) && tn__nest_length(n) > TN__GPU_SINGLE;
}

static bool widens(const tn__nest *n, const tn__gpu_form *f, int r)
{
    bool whole_rows = n->part == TN__PART_WHOLE && f->kind == TN__GPU_ROWS;
    return tn__gpu_widens_pieces(n, r) && (!whole_rows || tn__nest_length(n) > SINGLE_ROW);
}

bool tn__gpu_widens_any(const tn__nest *n, const tn__gpu_form *f, int level)
{
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level && widens(n, f, r))
            return true;
    return false;
}

/* Is the accumulator float64 from the first number on? It is where the partial results of segments are combined: they
 * are float64 themselves. */
static bool begins_wide(const tn__nest *n, const tn__gpu_form *f, int r)
{
    return f->kind == TN__GPU_COMBINE && widens(n, f, r);
}

const char *tn__gpu_sum(const tn__nest *n, const tn__gpu_form *f, int r)
{
    return widens(n, f, r) && f->kind != TN__GPU_COMBINE ? "sum" : "t";
}

const char *tn__gpu_sum_type(const tn__printer *p, const tn__gpu_form *f, int r)
{
    return widens(p->nest, f, r) ? tn__emit_wide_type(p, r) : tn__emit_type(p, r);
}

const char *tn__gpu_sum_function(tn__printer *p, const tn__gpu_form *f, int r)
{
    return widens(p->nest, f, r) ? tn__emit_wide_function(p, r) : tn__emit_function(p, r);
}

const char *tn__gpu_narrowing(const tn__printer *p, const tn__gpu_form *f, int r)
{
    return widens(p->nest, f, r) ? tn__emit_narrowing(p, r) : tn__emit_rounding(p, r);
}

/* How many vectors or rows a thread adds up in float32 at a time, and by how many it counts them: by batches of a loop,
 * as a test behind each would cost the memory's time, where these make up that number. */
static int few(const tn__gpu_form *f) { return f->kind == TN__GPU_COLUMNS ? FEW : FEW / f->width; }
static int counted(const tn__gpu_form *f) { return f->in_registers || few(f) % f->batch ? 1 : f->batch; }

void tn__gpu_declare_few(tn__printer *p, const tn__gpu_form *f, int level)
{
    if (tn__gpu_widens_any(p->nest, f, level) && few(f) > counted(f))
        tn__line(p, "int few%d = 0;", level);
}

void tn__gpu_count_few(tn__printer *p, const tn__gpu_form *f, int level, bool batch)
{
    int times = few(f) / counted(f);
    if (!tn__gpu_widens_any(p->nest, f, level) || batch != (counted(f) > 1))
        return;
    if (times > 1)
        tn__line(p, "if (++few%d == %d) {", level, times);
    tn__gpu_add_few(p, f, level);
    if (times > 1) {
        tn__line(p, "few%d = 0;", level);
        tn__line(p, "}");
    }
}

void tn__gpu_add_few(tn__printer *p, const tn__gpu_form *f, int level)
{
    TN__EACH_PLAIN(p, r, level) {
        if (!widens(p->nest, f, r) || f->kind == TN__GPU_COMBINE)
            continue;
        if (f->kind == TN__GPU_ROWS) {
            tn__line(p, "sum%d = %s(sum%d, %s(t%d));", r, tn__emit_wide_function(p, r), r, tn__emit_widening(p, r), r);
            tn__line(p, "t%d = %s;", r, tn__emit_identity(p, r));
            continue;
        }
        tn__line(p, "@unroll");
        tn__line(p, "for (int u = 0; u < %d; u++) {", f->width * f->streams);
        tn__line(p, "sum%d[u %% %d] = %s(sum%d[u %% %d], %s(t%d[u]));", r, f->width, tn__emit_wide_function(p, r), r,
                 f->width, tn__emit_widening(p, r), r);
        tn__line(p, "t%d[u] = %s;", r, tn__emit_identity(p, r));
        tn__line(p, "}");
    }
}

/* Declares an accumulator (or an array of `count`) at the identity. */
static void start(tn__printer *p, const char *type, const char *name, int r, int count, const char *identity)
{
    if (!count) {
        tn__line(p, "%s %s%d = %s;", type, name, r, identity);
        return;
    }
    tn__line(p, "%s %s%d[%d];", type, name, r, count);
    tn__line(p, "for (int u = 0; u < %d; u++)", count);
    tn__line(p, "%s%d[u] = %s;", name, r, identity);
}

void tn__gpu_start(tn__printer *p, const tn__gpu_form *f, int level, int width)
{
    char size[24] = "";
    const char *u = width ? "[u]" : "";
    TN__EACH_PLAIN(p, r, level) {
        int count = p->nest->reduction[r].about_mean ? width : width * f->streams;
        if (widens(p->nest, f, r))
            start(p, tn__emit_wide_type(p, r), tn__gpu_sum(p->nest, f, r), r, width, tn__emit_wide_identity(p, r));
        if (!begins_wide(p->nest, f, r))
            start(p, tn__emit_type(p, r), "t", r, count, tn__emit_identity(p, r));
    }
    TN__EACH_POSITION(p, r, level) {
        if (width)
            snprintf(size, sizeof size, "[%d]", width);
        tn__line(p, "%s t%d%s; tn_i64 at%d%s;", tn__emit_type(p, r), r, size, r, size);
        if (width)
            tn__line(p, "for (int u = 0; u < %d; u++)", width);
        tn__line(p, "t%d%s = %s, at%d%s = R;", r, u, tn__emit_identity(p, r), r, u);
    }
}

/* Prints the current element's position in the C order of the reduced loops, as an expression. */
static void print_reduced_position(tn__printer *p)
{
    const tn__nest *n = p->nest;
    bool first = true;
    for (int l = 0; l < n->loop_count; l++) {
        if (!(n->reduced >> l & 1))
            continue;
        tn__text_addf(p->text, "%s(tn_i64)x%d", first ? "" : " + ", l);
        for (int k = l + 1; k < n->loop_count; k++)
            if (n->reduced >> k & 1)
                tn__text_addf(p->text, " * n[%d]", TN__EXTENT(k));
        first = false;
    }
}

/* Prints the accumulation of the current element into the accumulators of its level. A thread goes through positions in
 * ascending order, so that the first of equal elements wins. */
void tn__gpu_accumulate(tn__printer *p, const tn__gpu_form *f, int level)
{
    const tn__nest *n = p->nest;
    const char *u = f->kind == TN__GPU_COLUMNS ? "[u]" : "";
    char turn[40];
    snprintf(turn, sizeof turn, "[q %% %d * %d + u]", f->streams, f->width);
    TN__EACH_PLAIN(p, r, level) {
        const char *mine = f->streams > 1 && !n->reduction[r].about_mean ? turn : u;
        tn__emit_need(p, n->reduction[r].arg);
        tn__line(p, "t%d%s = %s(t%d%s, v%d);", r, mine, tn__emit_function(p, r), r, mine, n->reduction[r].arg);
    }
    TN__EACH_POSITION(p, r, level) {
        int v = n->reduction[r].arg;
        tn__emit_need(p, v);
        tn__line(p, "if (at%d%s == R || %s(t%d%s, v%d)) {", r, u, tn__emit_function(p, r), r, u, v);
        tn__line(p, "t%d%s = v%d;", r, u, v);
        tn__emit_indent(p);
        tn__text_addf(p->text, "at%d%s = ", r, u);
        print_reduced_position(p);
        tn__text_add(p->text, ";\n");
        tn__line(p, "}");
    }
}

/* Prints the update of accumulator r and its position (named `mine`) by those of another thread, if these are better,
 * or equal and at an earlier position. */
static void take_better(tn__printer *p, int r, const char *mine)
{
    const char *f = tn__emit_function(p, r);
    tn__line(p, "if (j < R && (at%d%s == R || %s(t%d%s, b) || (!%s(b, t%d%s) && j < at%d%s))) {", r, mine, f, r, mine,
             f, r, mine, r, mine);
    tn__line(p, "t%d%s = b;", r, mine);
    tn__line(p, "at%d%s = j;", r, mine);
    tn__line(p, "}");
}

/* ---- rows ---- */

static void shuffle(tn__printer *p, const tn__gpu_form *f, int r, bool position, int lanes)
{
    if (lanes < 2)
        return;
    tn__line(p, "@unroll");
    tn__line(p, "for (int h = %d; h; h /= 2) {", lanes / 2);
    if (position) {
        tn__line(p, "const %s b = tn_down(t%d, h, %d);", tn__emit_type(p, r), r, lanes);
        tn__line(p, "const tn_i64 j = tn_down(at%d, h, %d);", r, lanes);
        take_better(p, r, "");
    } else {
        const char *sum = tn__gpu_sum(p->nest, f, r);
        tn__line(p, "%s%d = %s(%s%d, tn_down(%s%d, h, %d));", sum, r, tn__gpu_sum_function(p, f, r), sum, r, sum, r,
                 lanes);
    }
    tn__line(p, "}");
}

/* Combines over the warps of a row: each warp writes its result to shared memory (of every block of the cluster if
 * several share the row), then each warp combines all of them. Successive combinations alternate between two areas of
 * shared memory, so that one barrier each is enough. */
static void over_warps(tn__printer *p, const tn__gpu_form *f, int r, bool position, int *used)
{
    int warps = f->lanes / 32, half = *used % 2;
    const char *type = tn__gpu_sum_type(p, f, r), *sum = tn__gpu_sum(p->nest, f, r);
    const char *whose = f->cluster ? "tn_of(k, " : "(";
    const char *warp = f->cluster ? "lane / 32" : "@thread / 32";
    tn__line(p, "{");
    tn__line(p, "if (@thread %% 32 == 0) {");
    if (f->cluster)
        tn__line(p, "for (int k = 0; k < %d; k++) {", f->cluster);
    tn__line(p, "((@shared %s *)%stn_parts[%d]))[%s] = %s%d;", type, whose, half, warp, sum, r);
    if (position)
        tn__line(p, "%stn_places[%d])[%s] = at%d;", whose, half, warp, r);
    if (f->cluster)
        tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, f->cluster ? "tn_join();" : "@barrier;");
    if (f->cluster)
        tn__line(p, "const int w = @thread %% %d;", warps);
    else
        tn__line(p, "const int w = @thread / %d * %d + @thread %% %d;", f->lanes, warps, warps);
    tn__line(p, "%s%d = ((@shared %s *)tn_parts[%d])[w];", sum, r, type, half);
    if (position)
        tn__line(p, "at%d = tn_places[%d][w];", r, half);
    tn__line(p, "}");
    shuffle(p, f, r, position, warps);
    ++*used;
}

void tn__gpu_combine_lanes(tn__printer *p, const tn__gpu_form *f, int level, int *used)
{
    int lanes = f->lanes < 32 ? f->lanes : 32;
    for (int r = 0; r < p->nest->reduction_count; r++) {
        bool position = tn__ops[p->nest->reduction[r].op].props & TN_ARG;
        if (p->nest->reduction[r].level != level)
            continue;
        shuffle(p, f, r, position, lanes);
        if (f->lanes > 32)
            over_warps(p, f, r, position, used);
        int width = f->lanes > 32 ? f->lanes / 32 : lanes;
        if (width > 1) {
            const char *sum = tn__gpu_sum(p->nest, f, r);
            tn__line(p, "%s%d = tn_first(%s%d, %d);", sum, r, sum, r, width);
            if (position)
                tn__line(p, "at%d = tn_first(at%d, %d);", r, r, width);
        }
    }
}

/* ---- columns: a vector a thread, then its positions ---- */

#define DOWN_PARTS  16384
#define DOWN_PLACES 8192

int64_t tn__gpu_down_bytes(const tn__nest *n)
{
    bool position = false;
    for (int r = 0; r < n->reduction_count; r++)
        position = position || tn__ops[n->reduction[r].op].props & TN_ARG;
    return DOWN_PARTS + (position ? DOWN_PLACES : 0);
}

/* Combines a thread's interleaved accumulators (`streams`), as if they were threads'. */
static void fold_streams(tn__printer *p, const tn__gpu_form *f, int r)
{
    const char *combine = tn__emit_function(p, r);
    for (int h = f->streams / 2; h && !p->nest->reduction[r].about_mean; h /= 2)
        tn__line(p, "for (int u = 0; u < %d; u++) t%d[u] = %s(t%d[u], t%d[u + %d]);", h * f->width, r, combine, r, r,
                 h * f->width);
}

/* Is a level's result only needed by the threads of the first row, which store it? */
static bool ends_there(const tn__nest *n) { return n->part != TN__PART_WHOLE || tn__nest_passes(n) == 1; }

/* Combines the rows of a block by halves: through shared memory while the other half is another warp's, then by
 * shuffles, which need no barrier; but positions, and deviations, whose words are too many for that, go through shared
 * memory to the end. */
void tn__gpu_combine_down(tn__printer *p, const tn__gpu_form *f, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        bool position = tn__ops[p->nest->reduction[r].op].props & TN_ARG;
        bool shuffled = !position && !p->nest->reduction[r].about_mean;
        const char *type = tn__gpu_sum_type(p, f, r), *sum = tn__gpu_sum(p->nest, f, r);
        if (p->nest->reduction[r].level != level)
            continue;
        if (!position && !widens(p->nest, f, r)) /* a widened sum has had its streams added already */
            fold_streams(p, f, r);
        tn__line(p, "{");
        tn__line(p, "@shared @vector(%s, %d) *const part = (@shared @vector(%s, %d) *)tn_shared;", type, f->width, type,
                 f->width);
        if (position)
            tn__line(p, "@shared @vector(tn_i64, %d) *const place = (@shared @vector(tn_i64, %d) *)(tn_shared + %d);",
                     f->width, f->width, DOWN_PARTS);
        tn__line(p, "if (cy < down) {");
        tn__line(p, "for (int u = 0; u < %d; u++) part[@thread].e[u] = %s%d[u];", f->width, sum, r);
        if (position)
            tn__line(p, "for (int u = 0; u < %d; u++) place[@thread].e[u] = at%d[u];", f->width, r);
        tn__line(p, "}");
        tn__line(p, "int h = down / 2;");
        tn__line(p, "for (; h%s; h /= 2) {", shuffled ? " * across >= 32" : "");
        tn__line(p, "@barrier;");
        tn__line(p, "if (cy < h) {");
        tn__line(p, "const int other = @thread + h * across;");
        tn__line(p, "@unroll");
        tn__line(p, "for (int u = 0; u < %d; u++) {", f->width);
        tn__line(p, "const %s b = part[other].e[u];", type);
        if (position) {
            tn__line(p, "const tn_i64 j = place[other].e[u];");
            take_better(p, r, "[u]");
            tn__line(p, "place[@thread].e[u] = at%d[u];", r);
        } else {
            tn__line(p, "%s%d[u] = %s(%s%d[u], b);", sum, r, tn__gpu_sum_function(p, f, r), sum, r);
        }
        tn__line(p, "part[@thread].e[u] = %s%d[u];", sum, r);
        tn__line(p, "}");
        tn__line(p, "}");
        tn__line(p, "}");
        if (shuffled) {
            tn__line(p, "for (; h; h /= 2) {");
            tn__line(p, "@unroll");
            tn__line(p, "for (int u = 0; u < %d; u++)", f->width);
            tn__line(p, "%s%d[u] = %s(%s%d[u], tn_down(%s%d[u], h * across, 32));", sum, r,
                     tn__gpu_sum_function(p, f, r), sum, r, sum, r);
            tn__line(p, "}");
        }
        if (!ends_there(p->nest)) {
            if (shuffled) {
                tn__line(p, "if (cy == 0) {");
                tn__line(p, "for (int u = 0; u < %d; u++) part[@thread].e[u] = %s%d[u];", f->width, sum, r);
                tn__line(p, "}");
            }
            tn__line(p, "@barrier;");
            tn__line(p, "for (int u = 0; u < %d; u++) %s%d[u] = part[cx].e[u];", f->width, sum, r);
            if (position)
                tn__line(p, "for (int u = 0; u < %d; u++) at%d[u] = place[cx].e[u];", f->width, r);
        }
        tn__line(p, "@barrier;");
        tn__line(p, "}");
    }
}
