/* SPDX-License-Identifier: MIT */
/*
 * Windows that move from run to run: slices of values, and parts that are written over, whose starts a loop changes. A
 * plan with the starts in it would serve one round. So where a graph comes again with other starts (plans.c), they
 * leave its key, and each run tells them, as it tells scalars: a slice becomes an input of its own, with an address of
 * its own (one of what is computed: sliced.c), and what is written goes to an address in its array's memory. What such
 * a plan can't know is which windows meet; so it overwrites no value that it has a window of, and leaves out nothing
 * that is written over.
 */
#include "engine/collect.h"

#include "compile/ir/draft.h"
#include "core/memory.h"

#include <string.h>

#define MOST_WRITES 8 /* into one array, one after another */
#define MOST_SLICES 8 /* of one that is computed: more are a loop's over all of it, which always has the same */
#define MOVED       ((uint64_t)1 << 62) /* in the word of an attribute, beside the number of a list */

/* The list of a window of so many elements an axis, with the steps of another list and the least starts. */
static const tn__ints *with_least_starts(const tn__ints *list, const tn__shape *window)
{
    int64_t least[2 * TN_MAX_NDIM];
    for (int d = 0; d < window->ndim; d++) {
        int64_t step = list->v[2 * d + 1];
        least[2 * d] = step < 0 ? (window->dim[d] - 1) * -step : 0;
        least[2 * d + 1] = step;
    }
    return tn__ints_intern(2 * window->ndim, least);
}

/* ---- updates ---- */

static bool is_update(const tn__entry *e) { return e->leaf < 0 && e->node->op == TN__OP_UPDATE; }

/* Windows of a filled array are mostly pieces that are written side by side, which is better known; a single one is a
 * slice's gradient. The same of many that are written into one array. */
static bool may_move(const tn__collection *c, int entry)
{
    int base = entry, writes = 0;
    for (; is_update(&c->entry[base]) && writes <= MOST_WRITES; base = c->entry[base].in[0])
        writes++;
    bool filled = c->entry[base].leaf < 0 && c->entry[base].node->op == TN__OP_CONST;
    return writes <= MOST_WRITES && (!filled || (writes == 1 && !c->entry[entry].overwritten));
}

static bool add_update(tn__collection *c, int entry)
{
    const tn__node *node = c->entry[entry].node;
    const tn__shape *window = node->in[1]->shape;
    int64_t stride[TN_MAX_NDIM], offset = 0;
    const tn__ints *least = window->size && may_move(c, entry) ? with_least_starts(node->attr.ints, window) : NULL;
    if (!least)
        return false;
    tn__strides_contiguous(node->shape->ndim, node->shape->dim, stride);
    for (int d = 0; d < node->shape->ndim; d++)
        offset += (node->attr.ints->v[2 * d] - least->v[2 * d]) * stride[d];
    if (!tn__grow((void **)&c->moving, &c->moving_capacity, c->moving_count + 1, sizeof *c->moving))
        return false;
    c->moving[c->moving_count++] = (tn__moving){entry, entry, -1, offset, least};
    return true;
}

/* ---- the key ---- */

/* Words of an entry in the key: as add_leaf and add_pending in collect.c write them. */
static size_t words_of(const tn__entry *e)
{
    int arity = e->node->arity;
    if (e->leaf >= 0)
        return 2;
    bool third = arity >= 3 || tn__attribute_of[tn__ops[e->node->op].kind] != TN__ATTRIBUTE_NONE;
    return 1 + (size_t)(arity > 0) + third + (arity > TN__MAX_ARITY ? 1 + (size_t)(arity - TN__MAX_ARITY) : 0);
}

/* What is one of many slices of an array keeps its start. */
static bool add_slice(tn__collection *c, int entry, bool pending)
{
    size_t count = c->moving_count;
    if (c->entry[entry].node->shape->size == 0 || c->entry[c->entry[entry].in[0]].slices > MOST_SLICES ||
        !tn__slice_note(c, entry, pending))
        c->moving_count = count;
    return c->moving_count > count;
}

bool tn__collection_loosen(tn__collection *c, bool pending)
{
    if (!tn__grow((void **)&c->loose, &c->loose_capacity, c->key_count, sizeof *c->loose))
        return false;
    memcpy(c->loose, c->key, c->key_count * sizeof *c->key);
    c->moving_count = 0;
    for (size_t i = 0; i < c->count; i++) {
        tn__entry *e = &c->entry[i], *of = e->leaf < 0 && e->node->arity ? &c->entry[e->in[0]] : NULL;
        e->slices = 0;
        if (is_update(e))
            of->overwritten = true;
        else if (of && of->leaf < 0 && pending && e->node->op == TN__OP_SLICE)
            of->slices += of->slices <= MOST_SLICES;
    }
    uint64_t *word = c->loose + 1;
    for (size_t i = 0; i < c->count; word += words_of(&c->entry[i++])) {
        const tn__entry *e = &c->entry[i];
        bool slice = e->leaf < 0 && e->node->op == TN__OP_SLICE, update = is_update(e);
        if (!(slice && add_slice(c, (int)i, pending)) && !(update && add_update(c, (int)i)))
            continue;
        const tn__ints *least =
            with_least_starts(e->node->attr.ints, slice ? e->node->shape : e->node->in[1]->shape);
        if (!least)
            return false;
        word[2] = least->id | MOVED;
    }
    return c->moving_count > 0;
}
