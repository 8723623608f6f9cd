/* SPDX-License-Identifier: MIT */
/* Products as nests: which are ours, what joins them, and the choice of a tile. */
#include "compile/product.h"

#define MOST_WORK ((int64_t)1 << 27) /* multiplications; a library is as fast or faster beyond */
#define MOST_WORK_BESIDE_TENSOR_CORES ((int64_t)1 << 23)
#define SHORT_ROW 32    /* columns of a result whose rows one block reduces */
#define SHORT_COLUMN 128 /* rows of a result whose columns one block reduces, if their sums over k are short, too */
#define SHORT_DEPTH 64

bool tn__product_own(const tn__draft *draft, int v, const tn__device *device)
{
    const tn__graph *graph = draft->graph;
    const tn__value *value = &graph->value[v];
    bool tensor_cores = value->dtype == TN_FLOAT32 && draft->precision != TN_MATMUL_FLOAT32;
    const tn__shape *a = graph->value[value->in[0]].shape;
    if (!device->capabilities.product_kernels || (value->dtype != TN_FLOAT32 && value->dtype != TN_FLOAT64))
        return false;
    return value->shape->size * a->dim[a->ndim - 1] <= (tensor_cores ? MOST_WORK_BESIDE_TENSOR_CORES : MOST_WORK);
}

void tn__product_unfold(tn__draft *draft, const tn__device *device)
{
    const tn__graph *graph = draft->graph;
    for (int v = 0; v < graph->count; v++) {
        if (draft->fold[v] != TN__FOLD_UPDATE)
            continue;
        int product = tn__folded_product(graph, v);
        if (tn__product_own(draft, product, device))
            draft->fold[v] = draft->fold[product] = draft->fold[graph->value[v].in[1]] = TN__FOLD_NONE;
    }
}

/* ---- what joins ---- */

static bool same_loops(const tn__nest *a, const tn__nest *b)
{
    if (a->loop_count != b->loop_count)
        return false;
    for (int l = 0; l < a->loop_count; l++)
        if (a->extent[l] != b->extent[l])
            return false;
    return true;
}

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
    const tn__nest *product = a->product.there ? a : b, *other = a->product.there ? b : a;
    if (!same_loops(product, other)) /* then at most values of its rows or columns */
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

/* ---- tiles ---- */

tn__product_extents tn__product_extents_of(const tn__nest *nest)
{
    const tn__nest_product *p = &nest->product;
    tn__product_extents e = {1, 1, 1, nest->access[p->access[0]].gather_extent};
    for (int l = 0; l < nest->loop_count; l++)
        *(l == p->row_loop ? &e.rows : l == p->column_loop ? &e.columns : &e.batch) *= nest->extent[l];
    return e;
}

bool tn__product_along_k(const tn__nest *nest, int factor)
{
    const tn__nest_product *p = &nest->product;
    const tn__access *a = &nest->access[p->access[factor]];
    int loop = factor ? p->column_loop : p->row_loop;
    int64_t line = loop < 0 ? INT64_MAX : a->stride[loop], k = a->gather_stride;
    return (k < 0 ? -k : k) < (line < 0 ? -line : line);
}

/* Tiles by size, most of them for both halves of a multiprocessor's warps. */
static const tn__product_tile tiles[] = {
    {.rows = 16, .columns = 16, .rows_each = 2, .columns_each = 4, .lanes_down = 8, .slices = 8, .step = 8, .stages = 2},
    {.rows = 16, .columns = 32, .rows_each = 4, .columns_each = 4, .lanes_down = 4, .slices = 8, .step = 8, .stages = 3},
    {.rows = 28, .columns = 32, .rows_each = 7, .columns_each = 4, .lanes_down = 4, .slices = 8, .step = 16, .stages = 3},
    {.rows = 32, .columns = 32, .rows_each = 4, .columns_each = 8, .lanes_down = 8, .slices = 8, .step = 8, .stages = 3},
    {.rows = 32, .columns = 64, .rows_each = 8, .columns_each = 8, .lanes_down = 4, .slices = 4, .step = 8, .stages = 3},
    {.rows = 64, .columns = 64, .rows_each = 8, .columns_each = 8, .lanes_down = 8, .slices = 2, .step = 8, .stages = 3},
    {.rows = 64, .columns = 64, .rows_each = 8, .columns_each = 8, .lanes_down = 8, .slices = 4, .step = 8, .stages = 3},
    {.rows = 128, .columns = 64, .rows_each = 8, .columns_each = 8, .lanes_down = 4, .slices = 2, .step = 8, .stages = 3},
};
/* For short sums over whole columns: a few columns at a time. */
static const tn__product_tile tall_tiles[] = {
    {.rows = 32, .columns = 16, .rows_each = 2, .columns_each = 2, .lanes_down = 4, .slices = 2, .step = 8, .stages = 2},
    {.rows = 64, .columns = 8, .rows_each = 2, .columns_each = 2, .lanes_down = 8, .slices = 2, .step = 8, .stages = 2},
    {.rows = 128, .columns = 8, .rows_each = 2, .columns_each = 2, .lanes_down = 8, .slices = 1, .step = 16, .stages = 2},
};
#define COUNT(list) (int)(sizeof(list) / sizeof *(list))

static int64_t parts(int64_t extent, int64_t size) { return (extent + size - 1) / size; }

static tn__product_tile complete(tn__product_tile tile)
{
    if (tile.columns)
        tile.threads = tile.rows * tile.columns / (tile.rows_each * tile.columns_each) * tile.slices;
    return tile;
}

/*
 * About how many cycles a tile takes: the multiply-adds of the busiest multiprocessor at the rate its register tile allows,
 * the bytes that all blocks read at what the second-level cache gives (2,800 a cycle on an H200, 21 for each
 * multiprocessor), and, per stage, what the first copies and barriers cost when nothing else goes on.
 */
static double cycles(const tn__product_tile *t, const tn__product_extents *e, int multiprocessors, int size)
{
    double blocks = (double)(e->batch * parts(e->rows, t->rows) * parts(e->columns, t->columns));
    double each = (double)parts((int64_t)blocks, multiprocessors);
    double stages = (double)parts(e->depth, t->step * t->slices), depth = stages * t->step * t->slices;
    double loads = 0.5 / t->rows_each + 0.5 / t->columns_each; /* reads from shared memory for each multiply-add */
    double fma = each * t->rows * t->columns * depth / 128 * (1 + 2.5 * loads) * (size / 4);
    double bytes = blocks * (t->rows + t->columns) * (double)e->depth * size / (21.0 * multiprocessors);
    double epilogue = each * t->rows * t->columns / t->threads * (20 + 2 * t->slices);
    double wait = stages * 250 + 900;
    return (fma > bytes ? fma + 0.3 * bytes : bytes + 0.3 * fma) + epilogue + wait;
}

static tn__product_tile choose(const tn__nest *nest, int multiprocessors)
{
    tn__product_extents e = tn__product_extents_of(nest);
    const tn__nest_product *p = &nest->product;
    int size = (int)tn_dtype_size(p->dtype);
    if (p->row_loop >= 0 && nest->reduced == 1u << p->row_loop) {
        int i = 0;
        while (i < COUNT(tall_tiles) - 1 && tall_tiles[i].rows < e.rows)
            i++;
        return complete(tall_tiles[i]);
    }
    bool rows = nest->reduced != 0;
    if (e.columns > 0 && e.columns <= SHORT_ROW && e.batch * e.rows <= 4 * multiprocessors && e.depth >= 256) {
        int each = (int)parts(e.batch * e.rows, multiprocessors);
        return (tn__product_tile){.rows = each > 2 ? 4 : each > 1 ? 2 : 1, .threads = 512};
    }
    tn__product_tile best = complete(tiles[rows && e.columns > 16 ? 1 : 0]);
    double least = cycles(&best, &e, multiprocessors, size);
    for (int i = 1; i < COUNT(tiles); i++) {
        tn__product_tile tile = complete(tiles[i]);
        double time = cycles(&tile, &e, multiprocessors, size);
        if (time < least && (!rows || tile.columns >= e.columns)) {
            best = tile;
            least = time;
        }
    }
    return best;
}

void tn__product_settle(tn__nest *nest, const tn__device *device)
{
    nest->product.tile = choose(nest, device->capabilities.threads);
}

int64_t tn__product_tiles_down(const tn__nest *nest)
{
    int64_t tiles = parts(tn__product_extents_of(nest).rows, nest->product.tile.rows);
    return tiles ? tiles : 1; /* what is reduced over no rows at all has a result, too */
}

int64_t tn__product_tiles_across(const tn__nest *nest)
{
    const tn__product_tile *t = &nest->product.tile;
    int64_t tiles = t->columns ? parts(tn__product_extents_of(nest).columns, t->columns) : 1;
    return tiles ? tiles : 1;
}

int tn__product_shared(const tn__nest *nest)
{
    const tn__product_tile *t = &nest->product.tile;
    /* As BYTES of product.cuh. */
    int size = (int)tn_dtype_size(nest->product.dtype), quad = 16 / size, depth = t->step * t->slices, stage = 0;
    if (!t->columns)
        return t->rows * t->threads * size;
    for (int k = 0; k < 2; k++) {
        int lines = k ? t->columns : t->rows;
        bool along_k = tn__product_along_k(nest, k);
        int inner = along_k ? depth : lines, outer = along_k ? lines : depth;
        stage += (inner + (inner / quad % 2 ? 0 : quad)) * outer;
    }
    int result = t->slices * t->rows * (t->columns + quad);
    return size * (t->stages * stage > result ? t->stages * stage : result);
}
