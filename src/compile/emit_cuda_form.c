/* SPDX-License-Identifier: MIT */
/*
 * How a nest is spread over the threads of a GPU: which loop neighbours lie along, how many of them a thread takes at
 * once, how many threads share a row, how blocks share the work. What the text holds depends on the nest's structure,
 * on the chip, and on the length of rows that stay in registers; the number of rows or elements is an argument.
 */
#include "compile/emit_cuda.h"

#define MOST_POSITION   ((int64_t)1 << 30) /* that 32 bits are used for: sums of two fit, too */
#define MOST_WIDTH      8
#define IN_FLIGHT       32   /* bytes that a thread of an elementwise nest should have under way */
#define RANDOM_CHUNKS   4    /* for which the generator's keys are made ready together */
#define HELD_REGISTERS  64   /* for values that stay from pass to pass; a quarter where a block has all its threads */
#define REGISTERS       65536 /* of a multiprocessor */
#define OTHER_REGISTERS 9    /* of a thread, for what it computes with */
#define EXPENSIVE_WORDS 10   /* twice those for what exp and its like compute with */
#define OTHER_WORDS     16   /* the same of a thread that goes through columns, for simple sums */
#define MOST_THREADS    1536 /* of a multiprocessor that are worth having fewer registers each */
#define ENOUGH_THREADS  1024 /* the same where each holds 9 to 16 words, and must not have to put them away */
#define MANY_WORDS      24   /* registers of a thread with which one block keeps the memory busy by loads of whole
                                chunks */
#define CLUSTER_WORDS   160  /* registers of a thread that a row may take which several blocks hold together */
#define MOST_CLUSTERED  8    /* blocks of a cluster */
#define FEWEST_CLUSTERED ((int64_t)1 << 20) /* elements: smaller nests may share a launch */
#define OTHER_SHARED    4096 /* bytes that a reduction needs of shared memory besides */
#define STREAMED        4    /* chunks under way where rows are longer than that */
#define STREAMED_BYTES  64   /* of them, for a thread of columns in pieces: a chip full of such threads needs no more */
#define SHORTEST_TILED  16   /* extent of a loop that is worth turning */
#define TILE_BYTES      40000
#define FEWEST_TILED    65536 /* elements; fewer may share a kernel with other nests, whose blocks have other sizes */
#define AT_ONCE         6    /* blocks of a multiprocessor */
#define PIECES          32   /* the same of rows in pieces, most of which wait until others have ended */
#define SPLIT_CHUNKS    16   /* chunks or rows a thread has to go through at least before a reduction is split */

static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t power_of_two(int64_t least)
{
    int64_t n = 1;
    while (n < least)
        n *= 2;
    return n;
}

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- facts ---- */

static bool counts(const tn__access *a)
{
    return (a->kind == TN__ACCESS_LOAD && !a->raw && !a->factor) || (a->kind == TN__ACCESS_STORE && a->value >= 0);
}

static bool is_wide(const tn__nest *n)
{
    if (tn__nest_points(n) > MOST_POSITION)
        return true;
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        int64_t low = a->offset, high = a->offset;
        for (int l = 0; l < n->loop_count; l++)
            *(a->stride[l] < 0 ? &low : &high) += a->stride[l] * (n->extent[l] - 1);
        if (low < -MOST_POSITION || high > MOST_POSITION)
            return true;
    }
    return false;
}

static bool has_positions(const tn__nest *n)
{
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__ops[n->reduction[r].op].props & TN_ARG)
            return true;
    return false;
}

/* Does it vary with what is reduced? */
static bool goes_down(const tn__nest *n, const tn__access *a)
{
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1 && a->stride[l])
            return true;
    return false;
}

/* Of the given loops the one that most accesses are contiguous along, the last of several; how many they are. Of a
 * reduction's, those of every element count, not results. -1: there are no loops. */
static int contiguous_loop(const tn__nest *n, uint32_t loops, int *score)
{
    int best = -1;
    *score = -1;
    for (int l = n->loop_count - 1; l >= 0; l--) {
        int found = 0;
        for (int i = 0; i < n->access_count; i++)
            found += counts(&n->access[i]) && !n->access[i].gathered && n->access[i].stride[l] == 1 &&
                     (!n->reduced || goes_down(n, &n->access[i]));
        if (loops >> l & 1 && found > *score) {
            best = l;
            *score = found;
        }
    }
    return best;
}

/* Neighbours along a loop that are 16 bytes of the smallest elements, at most 32 of the largest; random numbers come
 * four at once, those of 64 bits two: twice 16 bytes a thread would be stored by halves. */
static int natural_width(const tn__nest *n, int loop)
{
    size_t smallest = 0, largest = 1;
    int together = 1;
    for (int e = 0; e < n->expr_count && loop >= 0; e++) {
        const tn__expr *x = &n->expr[e];
        if (x->kind == TN__EXPR_INDEX && n->access[x->access].stride[loop] == 1)
            together = (int)at_least(together, tn_dtype_size(x->dtype) == 8 && tn__cu_is_random(x) ? 2 : 4);
    }
    for (int i = 0; i < n->access_count && loop >= 0; i++) {
        const tn__access *a = &n->access[i];
        if (!counts(a) || a->gathered || a->stride[loop] != 1)
            continue;
        size_t size = tn_dtype_size(a->dtype);
        smallest = !smallest || size < smallest ? size : smallest;
        largest = size > largest ? size : largest;
    }
    if (!smallest)
        return 1;
    int width = (int)at_most(16 / (int64_t)smallest, at_least(32 / (int64_t)largest, 1));
    width = (int)at_least(width, together);
    return width > MOST_WIDTH ? MOST_WIDTH : width;
}

/* Bytes that are loaded for a chunk. What other chunks load as well comes from caches and does not count. */
static int64_t loaded_bytes(const tn__nest *n, int loop, int width)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->access_count; i++) {
        bool all = true;
        for (int l = 0; l < n->loop_count; l++)
            all = all && (n->access[i].stride[l] || n->extent[l] == 1);
        if (n->access[i].kind == TN__ACCESS_LOAD && loop >= 0 && n->access[i].stride[loop] && all)
            bytes += (int64_t)tn_dtype_size(n->access[i].dtype) * width;
    }
    return bytes;
}

/* ---- elementwise, tiles ---- */

static bool turned(const tn__access *a, int last, int l)
{
    return a->kind == TN__ACCESS_LOAD && !a->gathered && (a->stride[l] == 1 || a->stride[l] == -1) && a->stride[last] &&
           (a->stride[last] > 1 || a->stride[last] < -1);
}

/* The loop along which a load is contiguous that skips along the last one, and the bytes of one element of each such
 * load; -1: no load does, or the loop is short. */
static int tiled_loop(const tn__nest *n, int64_t *bytes)
{
    int last = n->loop_count - 1, loop = -1;
    for (int i = 0; i < n->access_count && last > 0 && loop < 0; i++)
        for (int l = 0; l < last; l++)
            if (turned(&n->access[i], last, l) && n->extent[l] >= SHORTEST_TILED && n->extent[last] >= SHORTEST_TILED)
                loop = l;
    *bytes = 0;
    for (int i = 0; i < n->access_count && loop >= 0; i++)
        if (turned(&n->access[i], last, loop))
            *bytes += (int64_t)tn_dtype_size(n->access[i].dtype);
    return loop;
}

static void elementwise(const tn__nest *n, tn__cu_form *f)
{
    int last = n->loop_count - 1;
    int64_t points = tn__nest_points(n), bytes;
    f->loop = last;
    f->tiled = tiled_loop(n, &bytes);
    f->tile = bytes * 65 * 64 <= TILE_BYTES ? 64 : 32;
    f->threads = TN__CUDA_THREADS;
    f->width = f->batch = 1;
    if (f->tiled >= 0 && bytes * 33 * 32 <= TILE_BYTES && points >= FEWEST_TILED) {
        f->kind = TN__CUDA_TILES;
        f->exchanged = bytes * f->tile * (f->tile + 1);
        f->chunks = n->extent[last];
        f->groups = points ? points / n->extent[last] / n->extent[f->tiled] * up(n->extent[last], f->tile) *
                                 up(n->extent[f->tiled], f->tile) : 0;
        return;
    }
    f->kind = TN__CUDA_ELEMENTWISE;
    f->width = natural_width(n, last);
    int64_t loaded = loaded_bytes(n, last, f->width);
    f->batch = loaded && loaded * 2 <= IN_FLIGHT ? 2 : 1;
    f->batch = tn__cu_makes_random(n) ? RANDOM_CHUNKS : f->batch;
    f->chunks = last >= 0 ? up(n->extent[last], f->width) : 1;
    f->groups = !points ? 0 : last >= 0 ? points / n->extent[last] * f->chunks : 1;
}

/*
 * ---- reductions ----
 *
 * The order in which one combines follows from the logical shape and the chip: so that the same sum gives the same bits
 * whatever it is fused with, and however its operands lie. Only which loop neighbours lie along depends on strides, and
 * that only where there is much to gain.
 */

#define WIDTH   4  /* elements of a chunk, where extents allow */
#define EACH    4  /* chunks of a row that a thread takes before more threads take part */
#define ALONE   16 /* elements of a row that a single thread takes */
#define SHARED  2  /* chunks a thread of rows that do not need a warp, which take less each if fewer threads look for
                      their row and combine */
#define MANY    65536

/* Registers that the values of a chunk take which are loaded or computed in one pass and used in another. */
static int64_t held_words(const tn__nest *n, int width)
{
    int64_t words = 0;
    for (int i = 0; i < n->access_count; i++) {
        bool varies = false;
        for (int l = 0; l < n->loop_count; l++)
            varies = varies || (n->reduced >> l & 1 && n->access[i].stride[l]);
        if (n->access[i].kind == TN__ACCESS_LOAD && varies && !tn__cu_same_in_rows(n, &n->access[i]))
            words += at_least(width * (int64_t)tn_dtype_size(n->access[i].dtype) / 4, 1);
    }
    return at_least(words, width);
}

/* Bytes of the loads of a row that several passes need: see tn__cu_find. */
static int64_t shared_bytes(const tn__nest *n, const tn__cu_form *f)
{
    uint32_t passes[TN__CUDA_EXPRS] = {0};
    int64_t bytes = 0;
    if (n->expr_count > TN__CUDA_EXPRS || tn__nest_passes(n) > 31)
        return 0;
    for (int r = 0; r < n->reduction_count; r++)
        passes[n->reduction[r].arg] |= 1u << n->reduction[r].level;
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row)
            passes[n->store[s].expr] |= 1u << n->store[s].level;
    for (int e = n->expr_count - 1; e >= 0; e--) { /* what an expression is made of comes before it */
        const tn__expr *x = &n->expr[e];
        if (x->kind == TN__EXPR_REDUCED || !(x->loops & n->reduced))
            continue;
        for (int i = 0; i < x->arity; i++)
            passes[x->arg[i]] |= passes[e];
        if (x->kind == TN__EXPR_LOAD && !x->arity && (passes[e] & (passes[e] - 1)))
            bytes += tn__cu_shared_bytes(f, &n->access[x->access], f->rows);
    }
    return bytes;
}

/* Blocks that hold a row together, of which a thread has so many registers: few, as they wait for one another; but so
 * many that two of them fit on a multiprocessor, as measured (see bench/README.md), and that few rows have most
 * multiprocessors. */
static int blocks_of_cluster(int64_t words, int64_t rows, int64_t multiprocessors)
{
    int blocks = words <= 40 ? 2 : words <= 108 ? 4 : MOST_CLUSTERED;
    while (blocks < MOST_CLUSTERED && rows * blocks < multiprocessors)
        blocks *= 2;
    return blocks;
}

/* A row that has all threads of a block and is too long for a quarter of their registers. A block that holds it is
 * alone on its multiprocessor, but not those of a cluster, each of which holds a part of it: while some compute, others
 * move bytes. Loads of 16 bytes, of which a block has enough under way if they are many, are better off without waiting
 * for other blocks. */
static void long_rows(const tn__capabilities *chip, const tn__nest *n, tn__cu_form *f)
{
    int64_t each = tn__cu_kept_words(n, f->loop, f->width), batch = up(at_least(f->chunks, 1), f->lanes);
    int64_t words = batch * each, others = OTHER_REGISTERS + each;
    for (int i = 0; i < n->access_count; i++)
        others += 2 * counts(&n->access[i]); /* an address */
    bool alone = words <= REGISTERS / TN__CUDA_MOST - others; /* fits in those of one block */
    bool together = chip->clusters && tn__nest_points(n) >= FEWEST_CLUSTERED;
    if (alone && f->width == WIDTH && words >= MANY_WORDS && tn__nest_rows(n) >= chip->multiprocessors)
        together = false;
    if (!alone && (!together || words > CLUSTER_WORDS))
        return;
    f->held = true;
    f->batch = (int)batch;
    if (!together)
        return;
    f->cluster = blocks_of_cluster(words, tn__nest_rows(n), chip->multiprocessors);
    f->threads = f->lanes / f->cluster;
    f->resident = (int)at_most(REGISTERS / (f->threads * up(words + others, 8) * 8), MOST_THREADS / f->threads);
}

static void rows(const tn__capabilities *chip, const tn__nest *n, tn__cu_form *f)
{
    int64_t reduced = tn__nest_rows(n) ? tn__nest_points(n) / tn__nest_rows(n) : 0;
    int64_t extent = tn__nest_points(n) < MANY ? n->innermost : n->extent[f->loop];
    f->kind = TN__CUDA_ROWS;
    for (f->width = 1; f->width < WIDTH && extent % (2 * f->width) == 0;)
        f->width *= 2;
    f->chunks = f->rows = reduced / f->width;
    int64_t each = f->width == 1 ? 2 * EACH : EACH;
    int64_t lanes = f->chunks <= 32 ? power_of_two(up(f->chunks, SHARED))
                                    : at_least(power_of_two(up(f->chunks, each)), 32);
    f->lanes = reduced <= ALONE ? 1 : (int)at_most(lanes, TN__CUDA_MOST);
    f->threads = f->lanes > TN__CUDA_THREADS ? f->lanes : TN__CUDA_THREADS;
    f->batch = (int)at_most(up(at_least(f->chunks, 1), f->lanes), 8 * EACH);
    int64_t words = f->batch * held_words(n, f->width),
            room = f->lanes == TN__CUDA_MOST ? HELD_REGISTERS / 4 : HELD_REGISTERS;
    f->held = (int64_t)f->batch * f->lanes >= f->chunks &&
              (tn__nest_passes(n) == 1 ? f->batch <= 2 * each || f->lanes == 1 : words <= room);
    if (f->held && f->lanes >= 32 && tn__nest_passes(n) > 1)
        f->resident = (words > 32                    ? 0
                       : words > 16                  ? 768
                       : words > 8                   ? ENOUGH_THREADS
                       : f->threads == TN__CUDA_MOST ? 2 * TN__CUDA_MOST
                                                     : MOST_THREADS) /
                      f->threads;
    if (!f->held && f->lanes == TN__CUDA_MOST && n->part == TN__PART_WHOLE && tn__nest_passes(n) > 1)
        long_rows(chip, n, f);
    if (!f->held) {
        f->batch = (int)at_most(f->batch, f->width == 1 ? 2 * STREAMED : STREAMED);
        f->shared = f->lanes == TN__CUDA_MOST ? shared_bytes(n, f) : 0; /* of one row: such a block has no other */
        f->shared = f->shared + OTHER_SHARED <= (int64_t)chip->shared_memory ? f->shared : 0;
        /* such a block has half as many registers a thread */
        f->batch = f->shared ? 2 * STREAMED / f->width : f->batch;
    }
    f->groups = tn__nest_rows(n);
}

/* Of TN__CUDA_THREADS threads, so many lie across, fewer than 32 where that leaves multiprocessors idle. */
static int lanes_across(int64_t wanted, int64_t chunks)
{
    int lanes = 32;
    while (lanes > 1 && (lanes / 2 >= chunks || (lanes > 2 && up(chunks, lanes) < wanted)))
        lanes /= 2;
    return lanes;
}

static bool may_split_a_pass(const tn__nest *n)
{
    return n->reduction_count && n->reduction_count <= TN__MAX_PIECES && tn__nest_points(n) >= MANY;
}

static bool may_split(const tn__nest *n) { return may_split_a_pass(n) && tn__nest_passes(n) <= 1; }

/* How many segments there may be of a column, each of enough rows for a thread. */
static int64_t most_segments(int64_t rows, int64_t lanes) { return rows * lanes / TN__CUDA_THREADS / SPLIT_CHUNKS; }

/* Neighbours are read best by 32 threads side by side. Where columns are too few to fill the chip so, fewer lie across
 * and read less of each row, but for columns that are long enough to be split either way. (Those that are not have the
 * same order in a nest that may be split and in one that may not.) */
static int lanes_of_columns(const tn__capabilities *chip, const tn__nest *n, int64_t chunks, int64_t rows)
{
    int all = lanes_across(1, chunks), few = lanes_across(chip->multiprocessors, chunks);
    bool fills = may_split(n) && most_segments(rows, few) >= 2 &&
                 up(chunks, all) * most_segments(rows, all) >= chip->multiprocessors;
    return fills || n->beside ? all : few;
}

/* Columns in pieces: as many blocks a multiprocessor as leave their threads the registers for what is under way, sums,
 * what is stored, addresses, and what is computed in between, as far as that is known here. */
static void settle_pieces(const tn__nest *n, tn__cu_form *f)
{
    int64_t loaded = loaded_bytes(n, f->loop, WIDTH), words = OTHER_WORDS + WIDTH * n->reduction_count, computed = 0;
    f->batch = (int)(loaded ? at_least(at_most(STREAMED_BYTES / loaded, STREAMED), 1) : STREAMED);
    words += loaded / 4 * f->batch;
    for (int r = 0; r < n->reduction_count; r++)
        words += n->reduction[r].about_mean ? 3 * WIDTH : 0;
    for (int i = 0; i < n->access_count; i++)
        if (counts(&n->access[i]) && goes_down(n, &n->access[i]))
            words += n->access[i].kind == TN__ACCESS_LOAD ? 2 : 2 + WIDTH;
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].arity > 0 && n->expr[e].loops & n->reduced)
            computed += tn__ops[n->expr[e].op].props & TN_EXPENSIVE ? EXPENSIVE_WORDS : 1;
    words += computed / 2;
    f->resident = (int)at_least(at_most(REGISTERS / TN__CUDA_THREADS / (up(words, 8) * 8), AT_ONCE), 2);
}

static void columns(const tn__capabilities *chip, const tn__nest *n, tn__cu_form *f)
{
    int64_t kept = tn__nest_rows(n), extent = n->extent[f->loop];
    f->kind = TN__CUDA_COLUMNS;
    f->exchanged = tn__cu_down_bytes(n);
    f->width = WIDTH;
    f->chunks = up(extent, WIDTH);
    f->rows = kept ? tn__nest_points(n) / kept : 0;
    f->batch = STREAMED;
    f->threads = TN__CUDA_THREADS;
    f->lanes = lanes_of_columns(chip, n, up(kept, WIDTH), f->rows);
    /* of few rows, so many across that each thread has several */
    while (!n->beside && f->lanes >= 32 && f->lanes < TN__CUDA_THREADS &&
           f->rows * f->lanes < STREAMED * TN__CUDA_THREADS &&
           up(kept, WIDTH) / (2 * f->lanes) >= 2 * AT_ONCE * chip->multiprocessors)
        f->lanes *= 2;
    f->groups = extent ? up(kept / extent * f->chunks, f->lanes) : 0;
}

/* What the pieces of a split reduction gave: columns of partial results. */
static void combination(const tn__capabilities *chip, const tn__nest *n, tn__cu_form *f)
{
    int64_t kept = tn__nest_rows(n);
    f->kind = TN__CUDA_COMBINE;
    f->exchanged = tn__cu_down_bytes(n);
    f->loop = -1;
    f->rows = f->segments = n->segments;
    f->threads = TN__CUDA_THREADS;
    f->lanes = lanes_across(chip->multiprocessors, kept);
    f->groups = up(kept, f->lanes);
}

static void reduction(const tn__capabilities *chip, const tn__nest *n, tn__cu_form *f)
{
    uint32_t kept = tn__nest_loops(n) & ~n->reduced;
    bool down = n->last_kept;
    int row = 31 - __builtin_clz(n->reduced), column = kept ? 31 - __builtin_clz(kept) : -1, row_score, column_score;
    if (tn__nest_points(n) >= MANY) {
        int best = contiguous_loop(n, n->reduced, &row_score), across = contiguous_loop(n, kept, &column_score);
        row = has_positions(n) ? row : best; /* a thread comes by positions in order */
        column = across;
        down = column_score > row_score || (column_score == row_score && n->last_kept);
    }
    f->loop = down ? column : row;
    if (down)
        columns(chip, n, f);
    else
        rows(chip, n, f);
}

/* ---- a nest's form ---- */

tn__cu_form tn__cu_form_of(const tn__capabilities *chip, const tn__nest *n)
{
    tn__cu_form f = {.loop = -1, .width = 1, .batch = 1, .tiled = -1, .segments = 1};
    f.wide = is_wide(n);
    if (n->part == TN__PART_RESULTS)
        combination(chip, n, &f);
    else if (n->reduced)
        reduction(chip, n, &f);
    else
        elementwise(n, &f);
    f.segment = at_least(f.rows, 1);
    if (n->part == TN__PART_PIECES) {
        f.segments = n->segments;
        f.segment = up(f.rows, n->segments);
        if (f.kind == TN__CUDA_COLUMNS)
            settle_pieces(n, &f);
        if (f.kind == TN__CUDA_ROWS) {
            f.held = false;
            f.shared = 0;
            f.lanes = f.threads = TN__CUDA_THREADS;
            f.batch = f.width == 1 ? 2 * STREAMED : STREAMED;
        }
    }
    return f;
}

bool tn__cu_holds_rows(const tn__capabilities *chip, const tn__nest *n)
{
    tn__cu_form f = tn__cu_form_of(chip, n);
    return f.kind == TN__CUDA_ROWS && f.held && f.cluster;
}

/* How many segments a reduction's rows or columns would best be in. */
static int64_t best_segments(const tn__capabilities *chip, const tn__cu_form *f)
{
    /* threads that keep the memory busy; those of columns all at once, or nearly: each piece ends in a combination, and
     * how many there are must not depend on what is fused, as registers do */
    int64_t wanted = (f->kind == TN__CUDA_ROWS ? PIECES : AT_ONCE) * (int64_t)chip->multiprocessors * TN__CUDA_THREADS;
    int64_t threads = f->kind == TN__CUDA_ROWS ? f->groups * f->lanes : f->groups * f->threads;
    int64_t most = most_segments(f->rows, f->kind == TN__CUDA_ROWS ? 1 : f->lanes);
    return at_most(threads ? wanted / threads : 0, most);
}

bool tn__cu_splits(const tn__emitter *emitter, tn__nest *n)
{
    n->part = TN__PART_WHOLE;
    if (!may_split(n))
        return false;
    tn__cu_form f = tn__cu_form_of(emitter->chip, n);
    int64_t segments = best_segments(emitter->chip, &f);
    if (segments < 2)
        return false;
    n->segments = up(f.rows, up(f.rows, segments));
    return true;
}

bool tn__cu_needs_splitting(const tn__capabilities *chip, const tn__nest *n)
{
    if (n->product.there || !may_split_a_pass(n))
        return false;
    tn__cu_form f = tn__cu_form_of(chip, n);
    return f.kind == TN__CUDA_COLUMNS && best_segments(chip, &f) >= 2;
}

/* ---- arguments ---- */

/* x / d is (x m / 2^32 + x) / 2^shift, rounded down, for 0 <= x < 2^31 (Granlund and Montgomery, "Division by invariant
 * integers using multiplication", PLDI 1994). */
static void magic(int64_t d, int64_t *to)
{
    int shift = 0;
    while (((int64_t)1 << shift) < d && shift < 31)
        shift++;
    to[0] = d > 0 ? (int64_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - (uint64_t)d)) / (uint64_t)d + 1) : 0;
    to[1] = shift;
}

int tn__cu_extras(const tn__emitter *emitter, const tn__nest *n, int64_t *extra)
{
    if (n->product.there)
        return 0;
    tn__cu_form f = tn__cu_form_of(emitter->chip, n);
    for (int l = 0; l < n->loop_count; l++)
        magic(f.wide ? 1 : n->extent[l], extra + 2 * l);
    int64_t *after = extra + 2 * n->loop_count;
    after[0] = f.chunks;
    if (f.kind == TN__CUDA_ROWS && f.loop >= 0)
        after[0] = n->extent[f.loop] / f.width;
    magic(f.wide ? 1 : after[0], after + 1);
    after[3] = f.groups;
    after[4] = f.segment;
    after[5] = f.segments;
    after[6] = f.lanes;
    after[7] = f.rows;
    return 2 * n->loop_count + 8;
}
