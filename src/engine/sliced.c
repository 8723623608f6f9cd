/* SPDX-License-Identifier: MIT */
/*
 * Slices whose starts each run tells (moving.c). One of a value is an input of its own, with an address of its own. One
 * of what the plan computes by elements is computed by slices of what that is computed from, down to values; what is
 * not computed by elements, as products and sums, is stored, and a PART of it read, at an address in its memory.
 */
#include "engine/collect.h"

#include "compile/ir/draft.h"
#include "core/memory.h"

#include <string.h>

#define MOST_VIEWS 8  /* between a slice and what it is a window of */
#define MOST_STEPS 64 /* operations that a slice goes down through; those that it meets by two ways count twice */

/* A slice under way: noted, or made. */
typedef struct slicer {
    const tn__collection *c;
    tn__collection *note; /* the same: its windows are noted. NULL: it is made, in `graph` */
    int32_t slice;      /* the entry */
    bool pending;       /* may it be of what is computed? */
    int steps;          /* taken so far */
    tn__graph *graph;
    const int *number;  /* of entries' values */
    size_t next;        /* the window that is made next */
} slicer;

/* The elements of an array that are wanted: start, step and how many an axis. */
typedef struct range {
    int64_t start[TN_MAX_NDIM], step[TN_MAX_NDIM], dim[TN_MAX_NDIM];
} range;

/* The window of which entry, -1: of no single one, an entry is by views alone. */
static int window_of(const tn__collection *c, int entry, tn__window *w)
{
    int view[MOST_VIEWS], count = 0;
    const tn__entry *e = &c->entry[entry];
    for (; e->leaf < 0 && tn__ops[e->node->op].kind == TN__KIND_VIEW; e = &c->entry[tn__collection_input(c, e, 0)]) {
        if (count == MOST_VIEWS)
            return -1;
        view[count++] = (int)(e - c->entry);
    }
    const tn__shape *shape = e->node->shape;
    *w = (tn__window){.ndim = shape->ndim};
    memcpy(w->dim, shape->dim, sizeof w->dim);
    tn__strides_contiguous(w->ndim, w->dim, w->stride);
    if (e->leaf >= 0 && e->node->strides)
        memcpy(w->stride, e->node->strides->v, sizeof(int64_t) * (size_t)w->ndim);
    while (count--) {
        tn__value v;
        tn__collection_value(c, &c->entry[view[count]], &v);
        if (!tn__window_through(w, &v))
            return -1;
    }
    return (int)(e - c->entry);
}

/* Is it stored, in C order, wherever it is computed? */
static bool is_stored(const tn__entry *e)
{
    int kind = tn__ops[e->node->op].kind;
    return kind != TN__KIND_MAP && kind != TN__KIND_CONST && kind != TN__KIND_CUSTOM && kind != TN__KIND_TIED;
}

/* A window of a leaf, or of what is stored. */
static int add_window(slicer *s, int base, const tn__window *w)
{
    const tn__collection *c = s->c;
    int64_t plain[TN_MAX_NDIM], least = 0;
    bool contiguous = true, leaf = c->entry[base].leaf >= 0;
    tn__strides_contiguous(w->ndim, w->dim, plain);
    for (int d = 0; d < w->ndim; d++) {
        contiguous = contiguous && (w->dim[d] == 1 || w->stride[d] == plain[d]);
        least += w->stride[d] < 0 && !leaf ? (w->dim[d] - 1) * -w->stride[d] : 0;
    }
    const tn__ints *strides = contiguous && leaf ? NULL : tn__ints_intern(w->ndim, w->stride);
    if (!strides && !(contiguous && leaf))
        return -1;
    tn__collection *note = s->note;
    if (note) {
        if (!tn__grow((void **)&note->moving, &note->moving_capacity, note->moving_count + 1, sizeof *note->moving))
            return -1;
        note->moving[note->moving_count++] =
            (tn__moving){s->slice, base, c->entry[base].leaf, w->offset - least, strides};
        return 0;
    }
    int window = (int)s->next++;
    tn__value v = {.op = leaf ? TN__OP_VALUE : TN__OP_PART, .dtype = (tn_dtype)c->entry[base].node->dtype,
                   .shape = tn__shape_intern(w->ndim, w->dim), .scalar = -1, .leaf = -1};
    if (leaf) {
        v.leaf = (int)c->leaf_count + window;
        v.strides = strides;
    } else {
        v.arity = 1;
        v.in[0] = s->number[base];
        v.attr.ints = strides;
        v.attr.shift = window + 1;
    }
    return v.shape ? tn__graph_add(s->graph, &v) : -1;
}

static int wanted(slicer *s, int entry, const range *r);

/* The value of an entry's operation with such an input, or such a shape alone. */
static int add_value(slicer *s, int entry, const tn__value *with, const int64_t *dim)
{
    if (s->note)
        return 0;
    tn__value v = *with;
    v.shape = tn__shape_intern(s->c->entry[entry].node->shape->ndim, dim);
    return v.shape ? tn__graph_add(s->graph, &v) : -1;
}

/* The axes of a reshape from `first` up to `end`, which lie in one axis of its input: of that the same elements, which
 * have to be equally far apart. Whether they are does not depend on where the slice starts. */
static bool in_one_axis(const tn__shape *out, int first, int end, const range *r, int axis, range *of)
{
    int64_t pitch = 1, count = 1, step = 1, start = 0;
    for (int d = end - 1; d >= first; pitch *= out->dim[d--]) {
        start += r->start[d] * pitch;
        if (r->dim[d] == 1)
            continue;
        if (count == 1)
            step = r->step[d] * pitch;
        else if (r->step[d] * pitch != count * step)
            return false;
        count *= r->dim[d];
    }
    of->start[axis] = start;
    of->step[axis] = step;
    of->dim[axis] = count;
    return true;
}

/* What is wanted of a reshape: of its input, by groups of axes that go into one another. Several axes that have become
 * one are wanted wholly, or not had like this. */
static bool through_reshape(const tn__shape *in, const tn__shape *out, const range *r, range *of)
{
    for (int d = 0; d < out->ndim; d++)
        if (r->dim[d] == 0)
            return false;
    for (int i = 0, o = 0; i < in->ndim || o < out->ndim;) {
        int first = o, axis = -1, longer = 0; /* how many of the input's axes are longer than 1, and the last of them */
        int64_t left = 1, right = 1;
        do {
            if (i == in->ndim || left > right) {
                right *= out->dim[o++];
                continue;
            }
            axis = in->dim[i] > 1 ? i : axis;
            longer += in->dim[i] > 1;
            of->start[i] = 0;
            of->step[i] = 1;
            of->dim[i] = in->dim[i];
            left *= in->dim[i++];
        } while (left != right);
        while (o < out->ndim && out->dim[o] == 1)
            o++;
        if (longer == 1 && !in_one_axis(out, first, o, r, axis, of))
            return false;
        for (int d = first; d < o && longer > 1; d++)
            if (r->dim[d] != out->dim[d] || r->step[d] != 1)
                return false;
    }
    return true;
}

/* What is wanted of a view, of what is not stored: of its input. */
static int through_view(slicer *s, int entry, const tn__value *view, const range *r)
{
    int input = view->in[0];
    const tn__shape *shape = s->c->entry[input].node->shape;
    range of = *r;
    if (view->op == TN__OP_RESHAPE && !through_reshape(shape, view->shape, r, &of))
        return -1;
    for (int d = 0; d < shape->ndim && view->op != TN__OP_RESHAPE; d++)
        switch (view->op) {
        case TN__OP_EXPAND:
            if (shape->dim[d] != view->shape->dim[d]) {
                of.start[d] = 0;
                of.step[d] = of.dim[d] = 1;
            }
            break;
        case TN__OP_PERMUTE:
            of.start[view->attr.perm[d]] = r->start[d];
            of.step[view->attr.perm[d]] = r->step[d];
            of.dim[view->attr.perm[d]] = r->dim[d];
            break;
        case TN__OP_SLICE:
            of.start[d] = view->attr.ints->v[2 * d] + r->start[d] * view->attr.ints->v[2 * d + 1];
            of.step[d] = r->step[d] * view->attr.ints->v[2 * d + 1];
            break;
        default:
            return -1;
        }
    tn__value v = *view;
    v.in[0] = wanted(s, input, &of);
    return v.in[0] < 0 || view->op == TN__OP_SLICE ? v.in[0] : add_value(s, entry, &v, r->dim);
}

/* The number of what is wanted of an entry; -1: it can't be had like this, or without memory. */
static int wanted(slicer *s, int entry, const range *r)
{
    const tn__collection *c = s->c;
    tn__window w;
    tn__value v;
    int base = window_of(c, entry, &w);
    if (base >= 0 && (c->entry[base].leaf >= 0 || (s->pending && is_stored(&c->entry[base])))) {
        for (int d = 0; d < w.ndim; d++) {
            w.offset += r->start[d] * w.stride[d];
            w.stride[d] *= r->step[d];
            w.dim[d] = r->dim[d];
        }
        return add_window(s, base, &w);
    }
    if (!s->pending || ++s->steps > MOST_STEPS)
        return -1;
    tn__collection_value(c, &c->entry[entry], &v);
    switch (tn__value_kind(&v)) {
    case TN__KIND_VIEW:
        return through_view(s, entry, &v, r);
    case TN__KIND_CUSTOM:
        return wanted(s, v.in[0], r);
    case TN__KIND_MAP:
        for (int i = 0; i < v.arity; i++)
            if ((v.in[i] = wanted(s, v.in[i], r)) < 0)
                return -1;
        return add_value(s, entry, &v, r->dim);
    case TN__KIND_CONST:
        return add_value(s, entry, &v, r->dim);
    default:
        return -1;
    }
}

static int begin(slicer *s)
{
    const tn__node *slice = s->c->entry[s->slice].node;
    range r = {.dim = {0}};
    for (int d = 0; d < slice->shape->ndim; d++) {
        r.start[d] = slice->attr.ints->v[2 * d];
        r.step[d] = slice->attr.ints->v[2 * d + 1];
        r.dim[d] = slice->shape->dim[d];
    }
    return wanted(s, s->c->entry[s->slice].in[0], &r);
}

bool tn__slice_note(tn__collection *c, int entry, bool pending)
{
    slicer s = {.c = c, .note = c, .slice = entry, .pending = pending};
    return begin(&s) >= 0;
}

int tn__slice_values(const tn__collection *c, size_t *window, const int *number, tn__graph *graph)
{
    slicer s = {.c = c, .slice = c->moving[*window].entry, .pending = true, .graph = graph, .number = number,
                .next = *window};
    int value = begin(&s);
    *window = s.next;
    return value;
}
