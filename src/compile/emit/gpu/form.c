/* SPDX-License-Identifier: MIT */
/*
 * How a nest is spread over the threads of a GPU: which loop the neighbours of a vector lie along, how many of them a
 * thread takes at once, how blocks share the work (reduced.c decides that for reductions). The kernel's text depends
 * on the nest's structure, on the chip, and on the length of rows that stay in registers; the number of rows or
 * elements is an argument of the kernel.
 */
#include "compile/emit/gpu/choose.h"

#define MOST_POSITION   ((int64_t)1 << 30) /* largest extent for which positions are 32-bit: the sum of two positions
                                              fits, too */
#define MOST_WIDTH      8
#define IN_FLIGHT       32   /* bytes that a thread of an elementwise nest should have under way */
#define RANDOM_VECTORS  4    /* vectors of random numbers for which a thread prepares the generator's keys once */
#define SHORTEST_TILED  16   /* shortest loop for which a transposing tile pays */
#define TILE_BYTES      40000
#define FEWEST_TILED    65536 /* elements: smaller nests may share a kernel with others, whose blocks have other
                                 sizes */

/* ---- facts ---- */

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

/* The natural width of a vector along a loop: as many elements as make 16 bytes of the smallest dtype, but at most 32
 * bytes of the largest. Random numbers come four at once, 64-bit ones two at once: vectors of 32 bytes would be stored
 * in two halves. */
static int natural_width(const tn__nest *n, int loop)
{
    size_t smallest = 0, largest = 1;
    int together = 1;
    for (int e = 0; e < n->expr_count && loop >= 0; e++) {
        const tn__expr *x = &n->expr[e];
        if (x->kind == TN__EXPR_INDEX && n->access[x->access].stride[loop] == 1)
            together = (int)at_least(together, tn_dtype_size(x->dtype) == 8 && tn__gpu_is_random(x) ? 2 : 4);
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

int64_t tn__gpu_loaded_bytes(const tn__nest *n, int loop, int width, size_t least)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->access_count; i++) {
        bool all = true;
        for (int l = 0; l < n->loop_count; l++)
            all = all && (n->access[i].stride[l] || n->extent[l] == 1);
        size_t size = tn_dtype_size(n->access[i].dtype);
        if (n->access[i].kind == TN__ACCESS_LOAD && loop >= 0 && n->access[i].stride[loop] && all)
            bytes += (int64_t)(size < least ? least : size) * width;
    }
    return bytes;
}

/* ---- elementwise, tiles ---- */

static bool transposed(const tn__access *a, int last, int l)
{
    return a->kind == TN__ACCESS_LOAD && !a->gathered && (a->stride[l] == 1 || a->stride[l] == -1) && a->stride[last] &&
           (a->stride[last] > 1 || a->stride[last] < -1);
}

/* The loop along which those loads are contiguous that are strided along the last loop, and the bytes of one element of
 * each of them. -1: there is no such load, or the loop is short. */
static int tiled_loop(const tn__nest *n, int64_t *bytes)
{
    int last = n->loop_count - 1, loop = -1;
    for (int i = 0; i < n->access_count && last > 0 && loop < 0; i++)
        for (int l = 0; l < last; l++)
            if (transposed(&n->access[i], last, l) && n->extent[l] >= SHORTEST_TILED &&
                n->extent[last] >= SHORTEST_TILED)
                loop = l;
    *bytes = 0;
    for (int i = 0; i < n->access_count && loop >= 0; i++)
        if (transposed(&n->access[i], last, loop))
            *bytes += (int64_t)tn_dtype_size(n->access[i].dtype);
    return loop;
}

static void elementwise(const tn__nest *n, tn__gpu_form *f)
{
    int last = n->loop_count - 1;
    int64_t points = tn__nest_points(n), bytes;
    f->loop = last;
    f->tiled = tiled_loop(n, &bytes);
    f->tile = bytes * 65 * 64 <= TILE_BYTES ? 64 : 32;
    f->threads = TN__GPU_THREADS;
    f->width = f->batch = 1;
    if (f->tiled >= 0 && bytes * 33 * 32 <= TILE_BYTES && points >= FEWEST_TILED) {
        f->kind = TN__GPU_TILES;
        f->exchanged = bytes * f->tile * (f->tile + 1);
        f->vectors = n->extent[last];
        f->groups = points ? points / n->extent[last] / n->extent[f->tiled] * up(n->extent[last], f->tile) *
                                 up(n->extent[f->tiled], f->tile) : 0;
        return;
    }
    f->kind = TN__GPU_ELEMENTWISE;
    f->width = natural_width(n, last);
    int64_t loaded = tn__gpu_loaded_bytes(n, last, f->width, 1);
    f->batch = loaded && loaded * 2 <= IN_FLIGHT ? 2 : 1;
    f->batch = tn__gpu_makes_random(n) ? RANDOM_VECTORS: f->batch;
    f->vectors = last >= 0 ? up(n->extent[last], f->width) : 1;
    f->groups = !points ? 0 : last >= 0 ? points / n->extent[last] * f->vectors : 1;
}

/* ---- a nest's form ---- */

tn__gpu_form tn__gpu_form_of(const tn__capabilities *chip, const tn__nest *n)
{
    tn__gpu_form f = {.loop = -1, .width = 1, .batch = 1, .tiled = -1, .segments = 1, .streams = 1};
    f.wide = is_wide(n);
    if (n->part == TN__PART_FINAL)
        tn__gpu_form_combination(chip, n, &f);
    else if (n->reduced)
        tn__gpu_form_reduction(chip, n, &f);
    else
        elementwise(n, &f);
    f.segment = at_least(f.rows, 1);
    if (n->part == TN__PART_PARTIAL)
        tn__gpu_form_partial(n, &f);
    return f;
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

int tn__gpu_extras(const tn__emitter *emitter, const tn__nest *n, int64_t *extra)
{
    if (n->product.there)
        return 0;
    tn__gpu_form f = tn__gpu_form_of(emitter->chip, n);
    for (int l = 0; l < n->loop_count; l++)
        magic(f.wide ? 1 : n->extent[l], extra + 2 * l);
    int64_t *after = extra + 2 * n->loop_count;
    after[0] = f.vectors;
    if (f.kind == TN__GPU_ROWS && f.loop >= 0)
        after[0] = n->extent[f.loop] / f.width;
    magic(f.wide ? 1 : after[0], after + 1);
    after[3] = f.groups;
    after[4] = f.segment;
    after[5] = f.segments;
    after[6] = f.lanes;
    after[7] = f.rows;
    return 2 * n->loop_count + 8;
}
