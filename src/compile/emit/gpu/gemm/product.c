/* SPDX-License-Identifier: MIT */
/* Products as nests: which products are computed by generated kernels, which other nests join their loops, and how a
 * tile is chosen. */
#include "compile/emit/gpu/gemm/product.h"
#include "compile/emit/gpu/form.h"
#include "device/products.h"

#define MOST_WORK ((int64_t)1 << 27) /* most multiplications of a generated kernel: beyond that, a library is as fast
                                        or faster */
#define MOST_WORK_WITH_TENSOR_CORES ((int64_t)1 << 23)
#define SHORT_ROW 32    /* most columns of a result whose rows are reduced in a block */
#define SHORT_COLUMN 128 /* most rows of a result whose columns are reduced in a block, if k is short, too */
#define SHORT_DEPTH 64
#define MOST_SKINNY 16    /* most columns of a skinny product */
#define MOST_SHORT 16   /* largest extent of k of a short product */
#define RESERVED (8 << 10) /* bytes of shared memory that a kernel's other parts may take */
#define LONG_WORK (1 << 17) /* multiplications that keep a block busy for about a microsecond */
#define CYCLES_OF_TALL 24000 /* a product that takes more cycles than that is faster split along k, by two kernels of
                                its own and a third for what might have joined it */
#define LEFT_BY_RESIDENT 40 /* percent of a multiprocessor's shared memory to be left for other kernels by a product
                               that keeps a whole factor in it */

/* ---- what joins ---- */

static bool finds_positions(const tn__nest *nest)
{
    for (int r = 0; r < nest->reduction_count; r++)
        if (tn__ops[nest->reduction[r].op].props & TN_ARG)
            return true;
    return false;
}

bool tn__product_joins(const tn__nest *a, const tn__nest *b)
{
    if (a->product.there && b->product.there)
        return false;
    if (tn__nest_deviates(a) || tn__nest_deviates(b)) /* a product's block reduces elements by plain accumulators,
                                                         not by those of variances */
        return false;
    const tn__nest *product = a->product.there ? a : b, *other = a->product.there ? b : a;
    if (!tn__nest_same_loops(product, other)) /* then `other` may only be values of the product's rows or columns */
        return product->reduced && !other->reduced && other->loop_count < product->loop_count;
    uint32_t reduced = product->reduced | other->reduced;
    const tn__nest_product *p = &product->product;
    if (!reduced)
        return true;
    if (p->column_loop >= 0 && reduced == 1u << p->column_loop)
        return product->extent[p->column_loop] <= SHORT_ROW;
    return p->row_loop >= 0 && reduced == 1u << p->row_loop && product->extent[p->row_loop] <= SHORT_COLUMN &&
           product->access[p->access[0]].gather_extent <= SHORT_DEPTH && !finds_positions(other);
}

/* ---- one behind another, in its blocks ---- */

/* Does each element of `next` read, of what `first` stores, only elements of its own row? */
static bool reads_own_rows(const tn__nest *next, const tn__nest *first)
{
    int row = next->product.row_loop;
    for (int i = 0; i < next->access_count; i++)
        for (int s = 0; s < first->store_count; s++) {
            const tn__access *a = &next->access[i], *to = &first->access[first->store[s].access];
            int64_t step = to->stride[first->product.row_loop], low = a->offset - to->offset, high = low;
            if (a->kind != TN__ACCESS_LOAD || a->value != to->value)
                continue;
            if (a->gathered || a->raw || a->lines || a->stride[row] != step)
                return false;
            for (int l = 0; l <= next->loop_count; l++) { /* the last is k */
                int64_t span = l < next->loop_count ? (next->extent[l] - 1) * a->stride[l]
                               : a->factor          ? (a->gather_extent - 1) * a->gather_stride
                                                    : 0;
                if (l != row)
                    *(span < 0 ? &low : &high) += span;
            }
            if (low < 0 || high >= step)
                return false;
        }
    return true;
}

/* Is the first factor of `next` what `first` stores, element by element? */
static bool multiplies(const tn__nest *next, const tn__nest *first)
{
    const tn__nest_product *p = &first->product, *q = &next->product;
    const tn__access *a = &next->access[q->access[0]];
    for (int s = 0; s < first->store_count; s++) {
        const tn__access *to = &first->access[first->store[s].access];
        if (to->value == a->value)
            return !first->store[s].row && a->offset == to->offset &&
                   a->stride[q->row_loop] == to->stride[p->row_loop] && a->gather_stride == to->stride[p->column_loop];
    }
    return false;
}

static bool is_matrix(const tn__nest *nest)
{
    const tn__nest_product *p = &nest->product;
    return p->there && nest->loop_count == 2 && p->row_loop >= 0 && p->column_loop >= 0 &&
           !nest->access[p->access[0]].lines;
}

bool tn__product_skinny_once(const tn__nest *nest)
{
    const tn__nest_product *p = &nest->product;
    return tn__product_extents_of(nest).depth <= (int64_t)p->tile.threads * 16 / (int)tn_dtype_size(p->dtype);
}

bool tn__product_fits_back_to_back(const tn__nest *first, const tn__nest *next, const tn__device *device)
{
    const tn__nest_product *p = &first->product, *q = &next->product;
    if (!is_matrix(first) || !is_matrix(next) || next->reduced || p->dtype != q->dtype)
        return false;
    const tn__access *first_b = &first->access[p->access[1]], *b = &next->access[q->access[1]];
    tn__product_extents e = tn__product_extents_of(first), f = tn__product_extents_of(next);
    if (e.rows != f.rows || e.columns != f.depth || e.depth != f.columns || first_b->value != b->value ||
        first_b->offset != b->offset || first_b->stride[p->column_loop] != b->gather_stride ||
        first_b->gather_stride != b->stride[q->column_loop] || !multiplies(next, first) ||
        !reads_own_rows(next, first))
        return false;
    tn__nest settled = *first;
    tn__product_settle(&settled, device);
    return settled.product.tile.main_loop == TN__MAIN_LOOP_SKINNY && tn__product_skinny_once(&settled);
}

/* Does access a of `next` read the elements of the first factor of `first`, each at the position where `first` reads
 * it? */
static bool reads_factor(const tn__nest *next, const tn__access *a, const tn__nest *first)
{
    const tn__nest_product *p = &first->product, *q = &next->product;
    const tn__access *factor = &first->access[p->access[0]];
    return a->kind == TN__ACCESS_LOAD && a->value == factor->value && !a->factor && !a->gathered && !a->raw &&
           !a->counted && a->offset == factor->offset && a->stride[q->row_loop] == factor->stride[p->row_loop] &&
           a->stride[q->column_loop] == factor->gather_stride;
}

void tn__product_join_back_to_back(tn__nest *first, tn__nest *next)
{
    tn__product_tile tile = first->product.tile;
    tile.main_loop = TN__MAIN_LOOP_BACK_TO_BACK;
    tile.step = tile.columns;
    tile.columns = tile.threads * 16 / (int)tn_dtype_size(first->product.dtype);
    next->product.tile = tile;
    for (int i = 0; i < next->access_count; i++)
        next->access[i].in_registers = reads_factor(next, &next->access[i], first);
    first->product.back_to_back = true;
    first->product.next_value = next->access[next->product.access[0]].value;
}

/* ---- tiles ---- */

bool tn__product_along_k(const tn__nest *nest, int factor)
{
    const tn__nest_product *p = &nest->product;
    const tn__access *a = &nest->access[p->access[factor]];
    int loop = factor ? p->column_loop : p->row_loop;
    int64_t line = loop < 0 ? INT64_MAX : a->stride[loop], k = a->gather_stride;
    return (k < 0 ? -k : k) < (line < 0 ? -line : line);
}

/* Tiles for any result. The fields: rows and columns of the tile, rows and columns of a thread, lanes below one
 * another, slices, step, stages (see product.cuh). */
static const tn__product_tile plain_tiles[] = {
    {2, 16, 1, 1, 2, 8, 32, 4, 0, 0},   {4, 8, 1, 1, 4, 8, 32, 4, 0, 0},    {4, 32, 1, 4, 4, 8, 16, 4, 0, 0},
    {8, 16, 1, 4, 8, 4, 16, 2, 0, 0},   {16, 16, 2, 4, 8, 4, 28, 2, 0, 0},  {16, 32, 4, 4, 4, 8, 8, 4, 0, 0},
    {32, 32, 4, 4, 8, 2, 8, 2, 0, 0},   {28, 32, 7, 4, 4, 8, 16, 3, 0, 0},  {28, 32, 7, 4, 4, 8, 20, 2, 0, 0},
    {32, 32, 8, 4, 4, 8, 16, 3, 0, 0},  {32, 32, 4, 8, 8, 8, 8, 3, 0, 0},   {32, 64, 8, 8, 4, 8, 8, 3, 0, 0},
    {64, 64, 8, 4, 4, 1, 20, 3, 0, 0},  {64, 64, 8, 4, 4, 2, 16, 3, 0, 0},  {128, 64, 8, 4, 4, 1, 20, 5, 0, 0},
    {128, 64, 8, 8, 4, 2, 16, 3, 0, 0}, {112, 64, 7, 4, 4, 1, 20, 5, 0, 0},
};
/* Tall tiles, for sums over whole columns: all rows of a result and few of its columns. */
static const tn__product_tile tall_tiles[] = {
    {32, 16, 2, 2, 4, 2, 8, 2, 0, 0},
    {64, 8, 2, 2, 8, 2, 8, 2, 0, 0},
    {128, 8, 2, 2, 8, 1, 16, 2, 0, 0},
};
/* For any result of float32, on tensor cores. Fields three and four are the rows and columns of a warp; lanes below one
 * another do not apply. */
static const tn__product_tile tensor_tiles[] = {
    {32, 32, 32, 32, 0, 8, 16, 3, 0, 0}, {32, 64, 32, 32, 0, 4, 16, 3, 0, 0},  {64, 32, 32, 32, 0, 4, 16, 3, 0, 0},
    {64, 64, 32, 32, 0, 2, 16, 3, 0, 0}, {128, 64, 32, 32, 0, 1, 32, 3, 0, 0}, {128, 64, 32, 32, 0, 1, 56, 2, 0, 0},
};
/* For a result of few columns whose launch is shared with a larger product: it makes few blocks. */
static const tn__product_tile fused_tiles[] = {{64, 16, 4, 4, 8, 4, 28, 2, 0, 0}};
/* Skinny products: a long k and few columns, all in one tile. Also for sums over whole columns of a product with a
 * short k. */
static const tn__product_tile skinny_tiles[] = {{1, 32, 1, 1, 1, 8, 32, 4, 0, 0}, {2, 16, 1, 1, 2, 8, 32, 4, 0, 0}};
static const tn__product_tile short_tiles[] = {{128, 8, 2, 2, 8, 1, 16, 2, 0, 0}};
#define COUNT(list) (int)(sizeof(list) / sizeof *(list))

static const struct {
    const tn__product_tile *tile;
    int count;
    tn__main_loop main_loop;
    bool whole_columns, horizontal;
} lists[] = {{plain_tiles, COUNT(plain_tiles), TN__MAIN_LOOP_PLAIN, false, false},
             {tall_tiles, COUNT(tall_tiles), TN__MAIN_LOOP_PLAIN, true, false},
             {tensor_tiles, COUNT(tensor_tiles), TN__MAIN_LOOP_TENSOR, false, false},
             {skinny_tiles, COUNT(skinny_tiles), TN__MAIN_LOOP_SKINNY, false, false},
             {short_tiles, COUNT(short_tiles), TN__MAIN_LOOP_SHORT, true, false},
             {fused_tiles, COUNT(fused_tiles), TN__MAIN_LOOP_PLAIN, false, true}};

static int list_of(int *i)
{
    int list = 0;
    while (*i >= lists[list].count)
        *i -= lists[list++].count;
    return list;
}

int tn__product_tile_count(void)
{
    int count = 0;
    for (int list = 0; list < COUNT(lists); list++)
        count += lists[list].count;
    return count;
}

tn__product_tile tn__product_tile_of(int i)
{
    int list = list_of(&i);
    tn__product_tile tile = lists[list].tile[i];
    tile.main_loop = lists[list].main_loop;
    int together = tile.main_loop == TN__MAIN_LOOP_TENSOR ? 32 : 1; /* a warp's share, not a thread's */
    tile.threads = tile.rows * tile.columns / (tile.rows_each * tile.columns_each) * tile.slices * together;
    return tile;
}


/*
 * An estimate of the cycles that a product takes in these tiles: the work of its busiest multiprocessor, as a sum of
 * terms whose weights were fitted to timings of 12 shapes on an H200 (see bench/README.md). The terms are:
 * multiply-adds, at 55% of the chip's peak rate, or, on tensor cores, 16 x 8 x 8 pieces at 6.1 cycles each, three
 * times; reads from shared memory; bytes that all blocks fetch from the second-level cache, at 21 bytes a cycle and
 * multiprocessor; at least 1,000 cycles of latency for a stage, which the stages before it may hide; 200 cycles for the
 * barrier of a stage; the set-up and end of every warp of every block; and the launch, which costs less if the factors
 * stay in registers.
 */
static double cycles(const tn__product_tile *t, const tn__product_extents *e, int multiprocessors, int size)
{
    double blocks = (double)(e->batch * tn__parts(e->rows, t->rows) * tn__parts(e->columns, t->columns));
    double each = (double)tn__parts((int64_t)blocks, multiprocessors), wide = size / 4.0;
    double rounds = (double)tn__parts(e->depth, t->step * t->slices), depth = rounds * t->step * t->slices;
    double columns = t->main_loop == TN__MAIN_LOOP_SKINNY ? (double)e->columns : t->columns; /* a tile has no columns
                                                                                                beyond the result's */
    double terms = each * t->rows * columns * depth, fma = terms / 128 * wide,
           pieces = terms / (16 * 8 * 8) / 4 * 3 * 6.1;
    double reads = fma * (1.0 / t->rows_each + 1.0 / t->columns_each);
    double bytes = blocks * (t->rows + columns) * (double)e->depth * size / (21.0 * multiprocessors);
    double busy =
        t->main_loop == TN__MAIN_LOOP_TENSOR ? 1.3 * pieces + 0.9 * bytes : 1.8 * fma + 0.85 * reads + 0.3 * bytes;
    double waits = rounds * 1000 / (t->stages - 1);
    double base = t->main_loop == TN__MAIN_LOOP_SKINNY || t->main_loop == TN__MAIN_LOOP_SHORT ? 2400 : 3600;
    return base + (busy > waits ? busy : waits) + each * (200 * rounds + 190 * t->threads / 32);
}

/* ---- which are ours ---- */

/* The fewest cycles that any tile takes, judged by the shape alone: whether a tile fits the layout of the factors is
 * not asked. */
static double least_cycles(const tn__product_extents *e, const tn__device *device, int size)
{
    double least = 0;
    for (int i = 0; i < tn__product_tile_count(); i++) {
        tn__product_tile tile = tn__product_tile_of(i);
        double time = cycles(&tile, e, device->capabilities.multiprocessors, size);
        if ((tile.main_loop == TN__MAIN_LOOP_PLAIN ||
             (tile.main_loop == TN__MAIN_LOOP_SKINNY && e->columns <= MOST_SKINNY)) &&
            (!least || time < least))
            least = time;
    }
    return least;
}

/* Is the product better computed by a special operation of the backend, which no other nest can join? */
static bool is_special(const tn__value *value, const tn__product_extents *e, const tn__draft *draft,
                       const tn__device *device)
{
    bool fast = value->dtype == TN_FLOAT32 && draft->precision == TN_MATMUL_TF32;
    if (tn__product_is_tiny(e->batch, e->rows, e->depth, e->columns))
        return true;
    return tn__product_is_tall(e->batch, e->rows, e->depth, e->columns, fast) &&
           least_cycles(e, device, (int)tn_dtype_size(value->dtype)) > CYCLES_OF_TALL;
}

static tn__product_extents extents_of(const tn__graph *graph, int v)
{
    const tn__shape *out = graph->value[v].shape, *a = graph->value[graph->value[v].in[0]].shape;
    tn__product_extents e = {1, out->dim[out->ndim - 2], out->dim[out->ndim - 1], a->dim[a->ndim - 1]};
    for (int d = 0; d < out->ndim - 2; d++)
        e.batch *= out->dim[d];
    return e;
}

bool tn__product_own(const tn__draft *draft, int v, const tn__device *device)
{
    const tn__value *value = &draft->graph->value[v];
    bool tensor_cores = value->dtype == TN_FLOAT32 && draft->precision == TN_MATMUL_TF32;
    if (!device->capabilities.product_kernels || (value->dtype != TN_FLOAT32 && value->dtype != TN_FLOAT64))
        return false;
    tn__product_extents e = extents_of(draft->graph, v);
    return value->shape->size * e.depth <= (tensor_cores ? MOST_WORK_WITH_TENSOR_CORES : MOST_WORK) &&
           !is_special(value, &e, draft, device);
}

bool tn__product_of_library(const tn__draft *draft, int v, const tn__device *device)
{
    const tn__value *value = &draft->graph->value[v];
    tn__product_extents e = extents_of(draft->graph, v);
    return !tn__product_own(draft, v, device) &&
           !tn__product_is_tall(e.batch, e.rows, e.depth, e.columns,
                                value->dtype == TN_FLOAT32 && draft->precision == TN_MATMUL_TF32) &&
           !tn__product_is_tiny(e.batch, e.rows, e.depth, e.columns);
}

/* ---- whether a tile fits ---- */

/* Elements of shared memory that a factor's part of a stage takes: SIZE of tn_side (product_factors.cuh). */
static int part_of_stage(const tn__nest *nest, const tn__product_tile *t, int factor, int depth)
{
    int quad = 16 / (int)tn_dtype_size(nest->product.dtype), lines = factor ? t->columns : t->rows;
    bool along_k = tn__product_along_k(nest, factor);
    int inner = along_k ? depth : lines, outer = along_k ? lines : depth;
    int odd = t->main_loop == TN__MAIN_LOOP_TENSOR && !along_k ? 2 * quad : quad;
    return (inner + (inner / odd % 2 ? 0 : odd)) * outer;
}

bool tn__product_in_one_piece(const tn__nest *nest)
{
    const tn__nest_product *p = &nest->product;
    const tn__access *b = &nest->access[p->access[1]];
    return (p->column_loop < 0 || b->stride[p->column_loop] == 1) &&
           b->gather_stride == tn__product_extents_of(nest).columns;
}

static int64_t shared(const tn__nest *nest, const tn__product_tile *t)
{
    int size = (int)tn_dtype_size(nest->product.dtype), quad = 16 / size, depth = t->step * t->slices;
    int64_t a = part_of_stage(nest, t, 0, depth), b = part_of_stage(nest, t, 1, depth);
    int64_t result = t->slices * t->rows * (t->columns + (t->main_loop == TN__MAIN_LOOP_TENSOR ? 8 : quad));
    if (t->main_loop == TN__MAIN_LOOP_SKINNY)
        return size * (t->slices * t->rows * MOST_SKINNY +
                       (tn__product_in_one_piece(nest) ? tn__product_extents_of(nest).columns * t->threads * quad : 0));
    if (t->main_loop == TN__MAIN_LOOP_SHORT)
        return 0;
    if (t->main_loop == TN__MAIN_LOOP_RESIDENT)
        return size * (tn__parts(tn__product_extents_of(nest).depth, depth) * a +
                       (t->stages * b > result ? t->stages * b : result));
    bool by_k = t->main_loop == TN__MAIN_LOOP_PLAIN && t->step % 2 == 0 && !tn__product_along_k(nest, 0) &&
                !tn__product_along_k(nest, 1);
    int64_t stage = a + b + (by_k ? b / depth : 0); /* the main loop reads so much beyond the end of a stage */
    return size * (t->stages * stage > result ? t->stages * stage : result);
}

bool tn__product_is_long(const tn__nest *nest)
{
    return nest->product.tile.rows * nest->product.tile.columns * tn__product_extents_of(nest).depth >= LONG_WORK;
}

/* Does an expression read only memory that no run of the program writes? */
static bool is_constant(const tn__nest *n, int e)
{
    const tn__expr *x = &n->expr[e];
    bool constant = x->kind != TN__EXPR_LOAD || n->access[x->access].constant;
    for (int i = 0; i < x->arity; i++)
        constant = constant && is_constant(n, x->arg[i]);
    return constant;
}

/* Can the first factor lie in shared memory as a whole, copied there before the run's first kernel waits for the
 * kernels before it? That pays where the product is long work and each slice is a single warp (product_resident.cuh),
 * and where enough shared memory is left for kernels that run at the same time. */
static bool fits_whole(const tn__nest *nest, const tn__device *device)
{
    const tn__access *a = &nest->access[nest->product.access[0]];
    tn__product_tile tile = nest->product.tile;
    if (tile.main_loop != TN__MAIN_LOOP_PLAIN || tile.columns != 32 || tile.threads != 32 * tile.slices ||
        !tn__product_is_long(nest) || !a->constant || (a->lines && !is_constant(nest, a->lines_at)) || a->by_k ||
        !tn__product_along_k(nest, 0) || tn__product_along_k(nest, 1))
        return false;
    tile.main_loop = TN__MAIN_LOOP_RESIDENT;
    int64_t memory = (int64_t)device->capabilities.shared_memory;
    return shared(nest, &tile) <= memory - memory * LEFT_BY_RESIDENT / 100;
}

/* May tile number i compute the nest? The smallest tiles fit any GPU. */
static bool fits(const tn__nest *nest, const tn__product_extents *e, const tn__device *device, int i, bool horizontal)
{
    tn__product_tile tile = tn__product_tile_of(i);
    int list = list_of(&i);
    bool whole_columns = nest->product.row_loop >= 0 && nest->reduced == 1u << nest->product.row_loop;
    size_t limit = device->capabilities.shared_memory ? device->capabilities.shared_memory : 48 << 10;
    if ((lists[list].horizontal && !horizontal) || (size_t)shared(nest, &tile) + RESERVED > limit ||
        lists[list].whole_columns != whole_columns || (tile.main_loop == TN__MAIN_LOOP_TENSOR && !nest->product.tensor))
        return false;
    if (tile.main_loop == TN__MAIN_LOOP_SKINNY &&
        (!tn__product_along_k(nest, 0) || e->columns < 1 || e->columns > MOST_SKINNY))
        return false;
    if (tile.main_loop == TN__MAIN_LOOP_SHORT && (e->depth < 1 || e->depth > MOST_SHORT))
        return false;
    if (tile.main_loop != TN__MAIN_LOOP_PLAIN && nest->access[nest->product.access[0]].by_k)
        return false;
    int quad = 16 / (int)tn_dtype_size(nest->product.dtype); /* a line along k is read four elements (16 bytes) at a
                                                                time */
    if (tile.step % quad && (tn__product_along_k(nest, 0) || tn__product_along_k(nest, 1)))
        return false;
    return !nest->reduced || (whole_columns ? tile.rows >= e->rows : tile.columns >= e->columns);
}

static double cycles_of(const tn__nest *nest, const tn__product_tile *tile, const tn__device *device)
{
    tn__product_extents e = tn__product_extents_of(nest);
    return cycles(tile, &e, device->capabilities.threads, (int)tn_dtype_size(nest->product.dtype));
}

/* Chooses, of the tiles that make at most `blocks` blocks and take at most `most` cycles, the one that takes the fewest
 * cycles. */
static void settle(tn__nest *nest, const tn__device *device, bool horizontal, int64_t blocks, double most)
{
    tn__product_extents e = tn__product_extents_of(nest);
    double least = 0;
    bool any = false;
    for (int i = 0; i < tn__product_tile_count(); i++) {
        tn__product_tile tile = tn__product_tile_of(i);
        double time = cycles_of(nest, &tile, device);
        if (!fits(nest, &e, device, i, horizontal) || (any && time >= least) ||
            (horizontal &&
             (time > most || e.batch * tn__parts(e.rows, tile.rows) * tn__parts(e.columns, tile.columns) > blocks)))
            continue;
        nest->product.tile = tile;
        least = time;
        any = true;
    }
    if (!any)
        return;
    if (nest->product.tile.main_loop == TN__MAIN_LOOP_SKINNY)
        nest->product.tile.columns = (int)e.columns;
    if (nest->product.tile.main_loop == TN__MAIN_LOOP_SHORT)
        nest->product.tile.step = (int)e.depth;
    if (!horizontal && fits_whole(nest, device))
        nest->product.tile.main_loop = TN__MAIN_LOOP_RESIDENT;
}

void tn__product_settle(tn__nest *nest, const tn__device *device) { settle(nest, device, false, 0, 0); }

void tn__product_settle_horizontal(tn__nest *nest, const tn__nest *main, int64_t blocks, const tn__device *device)
{
    settle(nest, device, true, blocks, cycles_of(main, &main->product.tile, device));
}

int tn__product_shared(const tn__nest *nest) { return (int)shared(nest, &nest->product.tile); }

const tn__target_policy tn__gpu_policy = {
    .owns = tn__product_own,
    .leaves_to_library = tn__product_of_library,
    .joins = tn__product_joins,
    .fits_back_to_back = tn__product_fits_back_to_back,
    .join_back_to_back = tn__product_join_back_to_back,
    .settle = tn__product_settle,
    .settle_horizontal = tn__product_settle_horizontal,
    .needs_splitting = tn__gpu_needs_splitting,
    .holds_rows = tn__gpu_holds_rows,
};
