/* SPDX-License-Identifier: MIT */
/* A nest's loops by its form, and how the blocks and threads of a launch share it: the same in every GPU's language. */
#include "compile/emit/gpu/form.h"

#define MOST_BLOCKS ((int64_t)1 << 30)
#define BLOCKS_OF_RANDOM 64 /* blocks a multiprocessor for random numbers: few, so that a thread takes several
                               vectors and prepares its keys once */

void tn__gpu_loops(tn__printer *p)
{
    static void (*const emit[])(tn__printer *p, const tn__gpu_form *f) = {
        [TN__GPU_ELEMENTWISE] = tn__gpu_emit_elementwise, [TN__GPU_TILES] = tn__gpu_emit_tiles,
        [TN__GPU_ROWS] = tn__gpu_emit_rows,               [TN__GPU_COLUMNS] = tn__gpu_emit_columns,
        [TN__GPU_COMBINE] = tn__gpu_emit_combine,
    };
    if (p->nest->product.there) {
        p->emitter->target->product_loops(p);
        return;
    }
    tn__gpu_form f = tn__gpu_form_of(p->emitter->chip, p->nest);
    emit[f.kind](p, &f);
}

int64_t tn__gpu_items(const tn__emitter *emitter, const tn__nest *n)
{
    if (n->product.there)
        return tn__nest_points(n);
    tn__gpu_form f = tn__gpu_form_of(emitter->chip, n);
    return f.kind == TN__GPU_COMBINE ? f.groups : f.groups * f.segments;
}

/* Threads of a block for nests of so few rows that blocks of the usual size would leave multiprocessors idle. */
static int threads_of_rows(const tn__capabilities *chip, const tn__gpu_form *f)
{
    int threads = f->threads;
    while (threads > 32 && threads > f->lanes &&
           f->groups * f->segments * f->lanes <= (int64_t)threads / 2 * chip->multiprocessors)
        threads /= 2;
    return threads;
}

/* The launch of a single nest: one block a group, all of whose threads take part; for tiles the number of threads is
 * part of the text. */
static void launch_nest(const tn__emitter *emitter, const tn__nest *nest, bool alone, tn__part_launch *to)
{
    tn__gpu_form f = tn__gpu_form_of(emitter->chip, nest);
    to->shared = (int)(f.shared + f.exchanged);
    to->threads = f.kind == TN__GPU_ROWS && alone ? threads_of_rows(emitter->chip, &f) : f.threads;
    to->most_threads = f.threads;
    to->resident = f.resident;
    to->cluster = f.cluster;
    to->all_threads = f.kind != TN__GPU_TILES;
    int64_t share = f.cluster ? f.cluster : 1; /* blocks that share a row */
    int64_t each = f.kind == TN__GPU_ROWS          ? share * to->threads / f.lanes
                   : f.kind == TN__GPU_ELEMENTWISE ? (int64_t)to->threads * f.batch
                                                   : 1;
    int64_t blocks = (tn__gpu_items(emitter, nest) + each - 1) / each;
    int64_t most = MOST_BLOCKS;
    if (tn__gpu_makes_random(nest))
        most = (int64_t)BLOCKS_OF_RANDOM * emitter->chip->multiprocessors;
    to->blocks = share * (blocks > most / share ? most / share : blocks < 1 ? 1 : blocks);
}

/* Several nests: one block that runs through them. */
static void launch_nests(const tn__emitter *emitter, const tn__kernel_part *part, bool alone, tn__part_launch *to)
{
    to->blocks = 1;
    to->all_threads = true;
    to->threads = alone ? TN__GPU_TOGETHER : TN__GPU_THREADS;
    for (int i = 0; i < part->count; i++) {
        tn__gpu_form f = tn__gpu_form_of(emitter->chip, part->nest[i]);
        int shared = (int)(f.shared + f.exchanged);
        to->shared = shared > to->shared ? shared : to->shared;
        to->threads = f.threads > to->threads ? f.threads : to->threads;
    }
    to->most_threads = to->threads;
}

void tn__gpu_launch(const tn__emitter *emitter, const tn__kernel_part *part, bool alone, tn__part_launch *to)
{
    if (part->nest[0]->product.there)
        emitter->target->product_launch(part->nest[0], emitter->chip, to);
    else if (part->count == 1)
        launch_nest(emitter, part->nest[0], alone, to);
    else
        launch_nests(emitter, part, alone, to);
}
