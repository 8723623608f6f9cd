/* SPDX-License-Identifier: MIT */
/*
 * How a reduction is spread over the threads of a GPU: rows, whose threads lie along what is reduced, or columns, whose
 * threads lie along what is kept; whether a row or a column stays in registers; into how many segments few rows or
 * columns are split.
 *
 * The order in which a reduction combines follows from the logical shape and the chip alone, so that a sum gives the
 * same bits whatever it is fused with and however its operands lie. Only the choice of the loop along which neighbours
 * lie depends on strides, and only where that gains much.
 */
#include "compile/emit/gpu/choose.h"

#define KEPT_REGISTERS  64   /* registers of a thread for values that stay from pass to pass; a quarter of that in
                                blocks of 1024 threads */
#define REGISTERS       65536 /* of a multiprocessor */
#define OTHER_REGISTERS 9    /* registers of a thread for addresses and intermediate values */
#define EXPENSIVE_WORDS 10   /* twice the registers for intermediate values of exp and the like */
#define OTHER_WORDS     16   /* registers for intermediate values of a thread of columns, for plain sums */
#define MOST_THREADS    1536 /* threads of a multiprocessor beyond which more are not worth fewer registers each */
#define MOST_RESIDENT   2048 /* threads of a multiprocessor, of 32 registers each */
#define ENOUGH_THREADS  1024 /* the same where each keeps 9 to 16 words, which must not be spilled */
#define MANY_WORDS      24   /* registers of a thread with which one block keeps the memory busy by loads of whole
                                vectors */
#define CLUSTER_WORDS   160  /* registers of a thread that a row may take that several blocks keep */
#define MOST_CLUSTERED  8    /* blocks of a cluster */
#define FEWEST_CLUSTERED ((int64_t)1 << 20) /* elements: smaller nests may share a launch */
#define OTHER_SHARED    4096 /* bytes that a reduction needs of shared memory besides */
#define STREAMED        4    /* vectors under way where rows are longer than that */
#define STREAMED_BYTES  64   /* of them, for a thread of split columns: a chip full of such threads needs no more */
#define AT_ONCE         4    /* blocks of a multiprocessor: with more, few kernels have registers for all at once */
#define SPLIT_STREAMED  32   /* the same of split rows, most of which wait until others have ended */
#define SPLIT_VECTORS   16   /* vectors or rows a thread has to go through at least before a reduction is split */
#define KEPT_ROWS       16   /* of a thread of columns: their vectors of float32 take all of KEPT_REGISTERS */
#define FEWEST_ACROSS   8    /* threads side by side, whose vectors of 16 bytes are a cache's line of 128 */
#define WIDTH   4  /* elements of a vector, where extents allow */
#define NARROW_WIDTH 8 /* the same of many elements of 16 bits, so that a vector is 16 bytes */
#define NARROW_KEPT  40 /* registers of a thread that a row's values may take which are loaded as 16 bits */
#define EACH    4  /* vectors of a row that a thread takes before more threads take part */
#define ALONE   16 /* longest row that a single thread takes, in elements */
#define SHARED  2  /* vectors of a thread where a row needs less than a warp: with fewer threads a row, finding the
                      row and combining take less time */
#define MANY    65536
#define APART   ((int64_t)1 << 20) /* with more elements, columns that several passes would read by part of the chip
                                      have their sums computed apart, and what follows by the whole chip */

static bool has_positions(const tn__nest *n)
{
    for (int r = 0; r < n->reduction_count; r++)
        if (tn__ops[n->reduction[r].op].props & TN_ARG)
            return true;
    return false;
}

/* Does the access vary with a reduced loop? */
static bool goes_down(const tn__nest *n, const tn__access *a)
{
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1 && a->stride[l])
            return true;
    return false;
}

/* Of the given loops the one along which most accesses that are made for every element (not those of results) are
 * contiguous; of several, the last. *score: how many accesses. -1: there are no loops. */
static int contiguous_loop(const tn__nest *n, uint32_t loops, int *score)
{
    int best = -1;
    *score = -1;
    for (int l = n->loop_count - 1; l >= 0; l--) {
        int found = 0;
        for (int i = 0; i < n->access_count; i++)
            found += counts(&n->access[i]) && !n->access[i].gathered && n->access[i].stride[l] == 1 &&
                     goes_down(n, &n->access[i]);
        if (loops >> l & 1 && found > *score) {
            best = l;
            *score = found;
        }
    }
    return best;
}

/* ---- rows ---- */

/* Registers of those values of a vector that are loaded or computed in one pass and used in another. */
static int64_t kept_words(const tn__nest *n, int width)
{
    int64_t words = 0;
    for (int i = 0; i < n->access_count; i++) {
        bool varies = false;
        for (int l = 0; l < n->loop_count; l++)
            varies = varies || (n->reduced >> l & 1 && n->access[i].stride[l]);
        if (n->access[i].kind == TN__ACCESS_LOAD && varies && !tn__gpu_same_in_rows(n, &n->access[i]))
            words += at_least(width * (int64_t)tn_dtype_size(n->access[i].dtype) / 4, 1);
    }
    return at_least(words, width);
}

/* Bytes of the loads of a row that several passes need: see tn__gpu_find. */
static int64_t shared_bytes(const tn__nest *n, const tn__gpu_form *f)
{
    uint32_t passes[TN__GPU_EXPRS] = {0};
    int64_t bytes = 0;
    if (n->expr_count > TN__GPU_EXPRS || tn__nest_passes(n) > 31)
        return 0;
    for (int r = 0; r < n->reduction_count; r++)
        passes[n->reduction[r].arg] |= 1u << n->reduction[r].level;
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row)
            passes[n->store[s].expr] |= 1u << n->store[s].level;
    for (int e = n->expr_count - 1; e >= 0; e--) { /* operands come before the expressions that use them */
        const tn__expr *x = &n->expr[e];
        if (x->kind == TN__EXPR_REDUCED || !(x->loops & n->reduced))
            continue;
        for (int i = 0; i < x->arity; i++)
            passes[x->arg[i]] |= passes[e];
        if (x->kind == TN__EXPR_LOAD && !x->arity && (passes[e] & (passes[e] - 1)))
            bytes += tn__gpu_shared_bytes(f, &n->access[x->access], f->rows);
    }
    return bytes;
}

/* How many blocks keep a row together, if the row takes `words` registers: few, as they wait for one another; but
 * enough that two of them fit on a multiprocessor, which measured best (see bench/README.md), and that few rows occupy
 * most multiprocessors. */
static int blocks_of_cluster(int64_t words, int64_t rows, int64_t multiprocessors)
{
    int blocks = words <= 40 ? 2 : words <= 108 ? 4 : MOST_CLUSTERED;
    while (blocks < MOST_CLUSTERED && rows * blocks < multiprocessors)
        blocks *= 2;
    return blocks;
}

/* A row that takes all threads of a block and is too long for a quarter of their registers. A block that keeps such a
 * row in registers is alone on its multiprocessor. The blocks of a cluster, each of which keeps a part of the row, are
 * not: while some compute, others move bytes. If many 16-byte loads are under way in a block anyway, it is faster
 * without a cluster, whose blocks wait for each other. */
static void long_rows(const tn__capabilities *chip, const tn__nest *n, tn__gpu_form *f)
{
    int64_t each = tn__gpu_kept_words(n, f->loop, f->width), batch = up(at_least(f->vectors, 1), f->lanes);
    int64_t words = batch * each, others = OTHER_REGISTERS + each;
    for (int i = 0; i < n->access_count; i++)
        others += 2 * counts(&n->access[i]); /* an address */
    bool alone = words <= REGISTERS / TN__GPU_MOST - others; /* the row fits in the registers of one block, which is
                                                                then alone on its multiprocessor */
    bool together = chip->clusters && tn__nest_points(n) >= FEWEST_CLUSTERED;
    if (alone && f->width >= WIDTH && words >= MANY_WORDS && tn__nest_rows(n) >= chip->multiprocessors)
        together = false;
    if (!alone && (!together || words > CLUSTER_WORDS))
        return;
    f->in_registers = true;
    f->batch = (int)batch;
    if (!together)
        return;
    f->cluster = blocks_of_cluster(words, tn__nest_rows(n), chip->multiprocessors);
    f->threads = f->lanes / f->cluster;
    f->resident = (int)at_most(REGISTERS / (f->threads * up(words + others, 8) * 8), MOST_THREADS / f->threads);
}

/* Widest vector, in elements: 8 where something is read or written and all of that has 16 bits or fewer. */
static int widest_vector(const tn__nest *n)
{
    size_t largest = 0;
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        size_t size = tn_dtype_size(a->dtype);
        if (counts(a) && goes_down(n, a) && !tn__gpu_same_in_rows(n, a))
            largest = size > largest ? size : largest;
    }
    return tn__nest_points(n) >= MANY && (largest == 1 || largest == 2) ? NARROW_WIDTH : WIDTH;
}

static void rows(const tn__capabilities *chip, const tn__nest *n, tn__gpu_form *f)
{
    int64_t reduced = tn__nest_rows(n) ? tn__nest_points(n) / tn__nest_rows(n) : 0;
    int64_t extent = tn__nest_points(n) < MANY ? n->innermost : n->extent[f->loop];
    int widest = widest_vector(n);
    f->kind = TN__GPU_ROWS;
    for (f->width = 1; f->width < widest && extent % (2 * f->width) == 0;)
        f->width *= 2;
    f->vectors = f->rows = reduced / f->width;
    int64_t each = f->width == 1 ? 2 * EACH : EACH;
    bool simple = tn__nest_passes(n) == 1 && !has_positions(n), narrow = f->width > WIDTH;
    if (narrow && (simple || EACH * tn__gpu_kept_words(n, f->loop, f->width) > NARROW_KEPT))
        each = EACH / 2;
    int64_t lanes = f->vectors <= 32 ? power_of_two(up(f->vectors, SHARED))
                                    : at_least(power_of_two(up(f->vectors, each)), 32);
    f->lanes = reduced <= ALONE ? 1 : (int)at_most(lanes, TN__GPU_MOST);
    f->threads = f->lanes > TN__GPU_THREADS ? f->lanes : TN__GPU_THREADS;
    f->batch = (int)at_most(up(at_least(f->vectors, 1), f->lanes), 8 * EACH);
    int64_t words = f->batch * kept_words(n, f->width),
            room = f->lanes == TN__GPU_MOST ? KEPT_REGISTERS / 4 : KEPT_REGISTERS;
    f->in_registers = (int64_t)f->batch * f->lanes >= f->vectors &&
              (tn__nest_passes(n) == 1 ? f->batch <= 2 * each || f->lanes == 1 : words <= room);
    if (f->in_registers && f->lanes >= 32 && tn__nest_passes(n) > 1)
        f->resident = (words > 32                    ? 0
                       : words > 16 && !narrow       ? 768
                       : words > 8                   ? ENOUGH_THREADS
                       : f->threads == TN__GPU_MOST ? 2 * TN__GPU_MOST
                                                     : MOST_THREADS) /
                      f->threads;
    if (!f->in_registers && f->lanes == TN__GPU_MOST && n->part == TN__PART_WHOLE && tn__nest_passes(n) > 1)
        long_rows(chip, n, f);
    if (!f->in_registers) {
        f->batch = (int)at_most(f->batch, f->width == 1 ? 2 * STREAMED : STREAMED);
        f->shared = f->lanes == TN__GPU_MOST ? shared_bytes(n, f) : 0; /* a block of the most threads has a single
                                                                          row */
        f->shared = f->shared + OTHER_SHARED <= (int64_t)chip->shared_memory ? f->shared : 0;
        /* such a block has half as many registers a thread, so half as many vectors are in flight */
        f->batch = f->shared ? (int)at_least(2 * STREAMED / f->width, 2) : f->batch;
    }
    f->groups = tn__nest_rows(n);
}

/* ---- columns ---- */

/* How many of TN__GPU_THREADS threads lie side by side: fewer than 32 where that many would leave multiprocessors
 * idle. */
static int lanes_across(int64_t wanted, int64_t vectors)
{
    int lanes = 32;
    while (lanes > 1 && (lanes / 2 >= vectors || (lanes > 2 && up(vectors, lanes) < wanted)))
        lanes /= 2;
    return lanes;
}

static bool may_split(const tn__nest *n)
{
    return n->reduction_count && n->reduction_count <= TN__MAX_PARTIALS && tn__nest_points(n) >= MANY &&
           tn__nest_passes(n) <= 1;
}

/* The most segments that a column may be split into, so that each has enough rows for a thread. */
static int64_t most_segments(int64_t rows, int64_t lanes) { return rows * lanes / TN__GPU_THREADS / SPLIT_VECTORS; }

/* Could a block keep columns of so many rows in its registers? */
static bool are_short(int64_t rows) { return rows * FEWEST_ACROSS <= KEPT_ROWS * TN__GPU_THREADS; }

/* Threads side by side. Memory is read best by 32 of them. Where the columns are too few to fill the chip that way,
 * fewer threads lie side by side and read less of each row; but not for columns that are long enough to be split in
 * either case. (Columns that are not long enough have the same order in a nest that may be split as in one that may
 * not.) */
static int lanes_of_columns(const tn__capabilities *chip, const tn__nest *n, int64_t vectors, int64_t rows)
{
    int all = lanes_across(1, vectors), few = lanes_across(chip->multiprocessors, vectors);
    bool fills = may_split(n) && !are_short(rows) && most_segments(rows, few) >= 2 &&
                 up(vectors, all) * most_segments(rows, all) >= chip->multiprocessors;
    return fills || n->horizontal ? all : few;
}

/* Reduces the number of threads side by side until the threads of a block can keep short columns in registers. */
static int lanes_that_hold(int lanes, int64_t rows)
{
    while (are_short(rows) && rows * lanes > KEPT_ROWS * TN__GPU_THREADS)
        lanes /= 2;
    return lanes;
}

/* For few rows: so many threads side by side that each has several rows, at least `rows` of them. */
static int lanes_for_rows(const tn__capabilities *chip, const tn__gpu_form *f, int64_t vectors, int lanes, int64_t rows)
{
    while (lanes >= 32 && lanes < TN__GPU_THREADS && f->rows * lanes < rows * TN__GPU_THREADS &&
           vectors / (2 * lanes) >= 2 * AT_ONCE * chip->multiprocessors)
        lanes *= 2;
    return lanes;
}

/* The number of threads side by side, on which the order of sums depends. It is small where columns are short, so that
 * they can stay in registers if several passes need them. Variances, whose accumulators take long to combine, and nests
 * of a single pass have more threads side by side; then each thread computes, one after another, the sums of the
 * threads that it stands for. A nest that shares a launch with a product is spread as if the chip were full: there its
 * order may differ from that of the nest alone. */
static void spread_columns(const tn__capabilities *chip, const tn__nest *n, int64_t vectors, tn__gpu_form *f)
{
    int all = lanes_of_columns(chip, n, vectors, f->rows), lanes = lanes_that_hold(all, f->rows);
    if (n->horizontal) {
        f->lanes = all;
    } else {
        lanes = lanes_for_rows(chip, f, vectors, lanes, STREAMED);
        f->lanes = tn__nest_deviates(n) && up(vectors, all) >= 2 * chip->multiprocessors && all > lanes ? all : lanes;
        if (tn__nest_deviates(n) || tn__nest_passes(n) == 1)
            f->lanes = lanes_for_rows(chip, f, vectors, f->lanes, STREAMED * STREAMED);
    }
    f->streams = f->lanes / lanes;
}

/* Are there loads that vary with columns alone? To keep them would take registers for each row. */
static bool loads_of_columns(const tn__nest *n, int loop)
{
    for (int e = 0; e < n->expr_count; e++) {
        const tn__expr *x = &n->expr[e];
        if ((x->kind == TN__EXPR_LOAD || tn__gpu_is_random(x)) && x->loops >> loop & 1 && !(x->loops & n->reduced))
            return true;
    }
    return false;
}

/* Short columns that several passes need stay in registers; not those of 16 bits, which are as fast to read again. */
static void hold_columns(const tn__nest *n, tn__gpu_form *f)
{
    if (tn__nest_passes(n) == 1 || n->part != TN__PART_WHOLE || widest_vector(n) > WIDTH ||
        loads_of_columns(n, f->loop))
        return;
    int64_t batch = at_least(up(f->rows * f->lanes, TN__GPU_THREADS), 1);
    int64_t words = batch * tn__gpu_kept_words(n, f->loop, f->width);
    if (batch > KEPT_ROWS || words > KEPT_REGISTERS)
        return;
    f->in_registers = true;
    f->batch = (int)batch;
    f->resident = words > 32 ? 2 : words > 16 ? 3 : 4;
}

/* Split columns: as many blocks a multiprocessor as leave each thread the registers for its loads in flight, sums,
 * stores, addresses and intermediate values, as far as these are known here. */
static void settle_columns(const tn__nest *n, tn__gpu_form *f)
{
    int64_t words = OTHER_WORDS + f->width * n->reduction_count, computed = 0, most = 2 * STREAMED;
    int64_t loaded = tn__gpu_loaded_bytes(n, f->loop, f->width, 1);
    for (int e = 0; e < n->expr_count; e++) {
        bool expensive = tn__ops[n->expr[e].op].props & TN_EXPENSIVE;
        if (n->expr[e].arity > 0 && n->expr[e].loops & n->reduced) {
            computed += expensive ? EXPENSIVE_WORDS : 1;
            most = expensive ? STREAMED * WIDTH / f->width : most;
        }
    }
    f->batch = (int)(loaded ? at_least(at_most(STREAMED_BYTES / loaded, most), 1) : STREAMED);
    words += tn__gpu_loaded_bytes(n, f->loop, f->width, 4) / 4 * f->batch;
    for (int r = 0; r < n->reduction_count; r++)
        words += n->reduction[r].about_mean ? 3 * f->width : tn__gpu_widens_pieces(n, r) ? 2 * f->width : 0;
    for (int i = 0; i < n->access_count; i++)
        if (counts(&n->access[i]) && goes_down(n, &n->access[i]))
            words += n->access[i].kind == TN__ACCESS_LOAD ? 2 : 2 + f->width;
    words += computed / 2;
    f->resident = (int)at_least(at_most(REGISTERS / TN__GPU_THREADS / (up(words, 8) * 8), AT_ONCE), 2);
}

/* Vectors may be wider if the results exchanged through shared memory are small enough that the same space suffices. */
static int down_width(const tn__nest *n, int64_t extent)
{
    bool small = extent % NARROW_WIDTH == 0 && !has_positions(n);
    for (int r = 0; r < n->reduction_count; r++)
        small = small && !n->reduction[r].about_mean && tn_dtype_size(tn__dtype_wide(n->reduction[r].dtype)) <= 8;
    return small ? widest_vector(n) : WIDTH;
}

static void columns(const tn__capabilities *chip, const tn__nest *n, tn__gpu_form *f)
{
    int64_t kept = tn__nest_rows(n), extent = n->extent[f->loop];
    f->kind = TN__GPU_COLUMNS;
    f->exchanged = tn__gpu_down_bytes(n);
    f->width = down_width(n, extent);
    f->vectors = up(extent, f->width);
    f->rows = kept ? tn__nest_points(n) / kept : 0;
    f->batch = STREAMED;
    f->threads = TN__GPU_THREADS;
    spread_columns(chip, n, up(kept, f->width), f);
    hold_columns(n, f);
    f->groups = extent ? up(kept / extent * f->vectors, f->lanes) : 0;
}

/* ---- split reductions, and either of the two ---- */

/* The form of the final pass of a split reduction, which reduces columns of partial results. */
void tn__gpu_form_combination(const tn__capabilities *chip, const tn__nest *n, tn__gpu_form *f)
{
    int64_t kept = tn__nest_rows(n);
    f->kind = TN__GPU_COMBINE;
    f->exchanged = tn__gpu_down_bytes(n);
    f->loop = -1;
    f->rows = f->segments = n->segments;
    f->threads = TN__GPU_THREADS;
    f->lanes = lanes_across(chip->multiprocessors, kept);
    f->groups = up(kept, f->lanes);
}

/* Is it a sum in float64 of what is loaded? That has registers for all threads of a multiprocessor if the compiler is
 * told to see to it, else two too many. */
static bool sums_alone(const tn__nest *n)
{
    int loads = 0;
    for (int i = 0; i < n->access_count; i++)
        loads += n->access[i].kind == TN__ACCESS_LOAD;
    return loads == 1 && n->reduction_count == 1 && tn__gpu_widens_pieces(n, 0) && !n->reduction[0].about_mean &&
           n->expr[n->reduction[0].arg].kind == TN__EXPR_LOAD;
}

void tn__gpu_form_partial(const tn__nest *n, tn__gpu_form *f)
{
    f->segments = n->segments;
    f->segment = up(f->rows, n->segments);
    if (f->kind == TN__GPU_COLUMNS)
        settle_columns(n, f);
    if (f->kind == TN__GPU_ROWS) {
        f->in_registers = false;
        f->shared = 0;
        f->lanes = f->threads = TN__GPU_THREADS;
        f->batch = f->width == 1 ? 2 * STREAMED : STREAMED;
        f->resident = sums_alone(n) ? MOST_RESIDENT / TN__GPU_THREADS : 0;
    }
}

void tn__gpu_form_reduction(const tn__capabilities *chip, const tn__nest *n, tn__gpu_form *f)
{
    uint32_t kept = tn__nest_loops(n) & ~n->reduced;
    bool down = n->last_kept;
    int row = 31 - __builtin_clz(n->reduced), column = kept ? 31 - __builtin_clz(kept) : -1, row_score, column_score;
    if (tn__nest_points(n) >= MANY) {
        int best = contiguous_loop(n, n->reduced, &row_score), across = contiguous_loop(n, kept, &column_score);
        row = has_positions(n) ? row : best; /* a thread goes through positions in ascending order */
        column = across;
        down = column_score > row_score || (column_score == row_score && n->last_kept);
    }
    f->loop = down ? column : row;
    if (down)
        columns(chip, n, f);
    else
        rows(chip, n, f);
}

/* ---- whether it is better split ---- */

bool tn__gpu_holds_rows(const tn__capabilities *chip, const tn__nest *n)
{
    tn__gpu_form f = tn__gpu_form_of(chip, n);
    return f.kind == TN__GPU_ROWS && f.in_registers && f.cluster;
}

/* The best number of segments for a reduction's rows or columns. */
static int64_t best_segments(const tn__capabilities *chip, const tn__gpu_form *f)
{
    /* as many threads as keep memory busy. Those of columns are resident all at once, or nearly: each segment ends in a
     * combination. Their number must not depend on what is fused, as registers do. */
    int64_t wanted =
        (f->kind == TN__GPU_ROWS ? SPLIT_STREAMED : AT_ONCE) * (int64_t)chip->multiprocessors * TN__GPU_THREADS;
    int64_t threads = f->kind == TN__GPU_ROWS ? f->groups * f->lanes : f->groups * f->threads;
    int64_t most = most_segments(f->rows, f->kind == TN__GPU_ROWS ? 1 : f->lanes / f->streams);
    return at_most(threads ? wanted / threads : 0, most);
}

bool tn__gpu_splits(const tn__emitter *emitter, tn__nest *n)
{
    n->part = TN__PART_WHOLE;
    if (!may_split(n))
        return false;
    tn__gpu_form f = tn__gpu_form_of(emitter->chip, n);
    int64_t segments = best_segments(emitter->chip, &f);
    if (segments < 2)
        return false;
    n->segments = up(f.rows, up(f.rows, segments));
    return true;
}

bool tn__gpu_needs_splitting(const tn__capabilities *chip, const tn__nest *n)
{
    bool again = tn__nest_passes(n) > 1, many = n->reduction_count > TN__MAX_PARTIALS;
    if (n->product.there || n->reduction_count == 0 || tn__nest_points(n) < MANY || !(again || many))
        return false;
    tn__gpu_form f = tn__gpu_form_of(chip, n);
    bool idles = again && f.kind == TN__GPU_COLUMNS && !f.in_registers && f.groups < chip->multiprocessors;
    return (idles && tn__nest_points(n) >= APART) ||
           (best_segments(chip, &f) >= 2 && (f.kind == TN__GPU_COLUMNS || !again));
}
