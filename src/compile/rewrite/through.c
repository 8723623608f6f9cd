/* SPDX-License-Identifier: MIT */
/*
 * Windows of what windows were written into. A loop that writes a row of an array in each round and reads the row
 * before has n arrays, each of which is the one before with a row replaced. Read from any of them, that one has to stay
 * as it is, and the next row is written into a copy. So what lies in one of the windows is read from what was written
 * there, and what lies in none from the array before them all; then nothing reads the arrays between, and all rows are
 * written into one.
 */
#include "compile/rewrite/rewrite.h"

#define MOST_LOOKS 1000 /* arrays that a window is looked for in */

typedef enum relation { APART, WITHIN, ACROSS } relation;

/* The first and last element that a window has along an axis, and how far apart they are. */
typedef struct extent {
    int64_t first, last, step;
} extent;

static extent extent_of(const tn__ints *window, int axis, int64_t count)
{
    int64_t start = window->v[2 * axis], step = window->v[2 * axis + 1], end = start + (count - 1) * step;
    return (extent){start < end ? start : end, start < end ? end : start, count == 1 ? 1 : step < 0 ? -step : step};
}

/* How a window lies to the one that was written: within it only where its elements are neighbours. */
static relation relate(const tn__graph *graph, const tn__value *slice, const tn__value *update)
{
    const tn__shape *part = graph->value[update->in[1]].shape;
    bool within = true;
    if (update->attr.shift) /* it lies somewhere else in each run */
        return ACROSS;
    for (int d = 0; d < part->ndim; d++) {
        extent s = extent_of(slice->attr.ints, d, slice->shape->dim[d]);
        extent u = extent_of(update->attr.ints, d, part->dim[d]);
        if (s.last < u.first || u.last < s.first || (s.step == u.step && (s.first - u.first) % s.step != 0))
            return APART;
        bool neighbours = update->attr.ints->v[2 * d + 1] == 1 || part->dim[d] == 1;
        within = within && neighbours && s.first >= u.first && s.last <= u.last;
    }
    return within ? WITHIN : ACROSS;
}

/* The list of a window within another one, whose elements are neighbours. */
static const tn__ints *within(const tn__value *slice, const tn__value *update)
{
    int64_t list[2 * TN_MAX_NDIM];
    for (int d = 0; d < slice->shape->ndim; d++) {
        list[2 * d] = slice->attr.ints->v[2 * d] - update->attr.ints->v[2 * d];
        list[2 * d + 1] = slice->attr.ints->v[2 * d + 1];
    }
    return tn__ints_intern(2 * slice->shape->ndim, list);
}

bool tn__look_through(const tn__graph *graph, tn__value *slice)
{
    tn__value now = *slice;
    if (slice->shape->size == 0)
        return false;
    for (int i = 0; i < MOST_LOOKS && graph->value[now.in[0]].op == TN__OP_UPDATE; i++) {
        const tn__value *update = &graph->value[now.in[0]];
        relation r = relate(graph, &now, update);
        if (r == ACROSS || (r == WITHIN && !(now.attr.ints = within(&now, update))))
            return false;
        now.in[0] = update->in[r == WITHIN];
    }
    if (now.in[0] == slice->in[0] || graph->value[now.in[0]].op == TN__OP_UPDATE)
        return false;
    *slice = now;
    return true;
}
