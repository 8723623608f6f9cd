/* SPDX-License-Identifier: MIT */
/*
 * Copies and fills of parts of a value, which joining, padding and assignments to slices are lowered to: a fill is cut
 * down to what is not written over before it is read; and on a GPU, where launches cost most, copies and fills that do
 * not overlap become one step.
 */
#include "compile/memory/planner.h"

#include "core/memory.h"

#include <string.h>

#define MOST_GAPS     16         /* a fill is cut into at most so many */
#define LITTLE        (64 << 10) /* bytes: a smaller fill stays whole, as a step more costs more */
#define MOST_TOGETHER 128        /* copies and fills in a step */
#define SHORT         (1 << 20)  /* bytes of copies that are put off to join others: their sources stay in use */

/* A part of a value that is a range along each axis. */
typedef struct box {
    int64_t start[TN_MAX_NDIM], extent[TN_MAX_NDIM];
} box;

static const tn__shape *shape_of(const tn__draft *draft, const tn__draft_operand *o)
{
    return draft->graph->value[o->value].shape;
}

/* Finds the box that an operand covers; false if it is none, or lies elsewhere in each run. */
static bool box_of(const tn__draft *draft, const tn__draft_operand *o, box *b)
{
    const tn__shape *shape = shape_of(draft, o);
    int64_t stride[TN_MAX_NDIM], left = o->offset;
    memset(b, 0, sizeof *b);
    if (o->shift || o->ndim != shape->ndim || shape->size == 0)
        return false;
    tn__strides_contiguous(shape->ndim, shape->dim, stride);
    for (int d = 0; d < shape->ndim; d++) {
        b->start[d] = left / stride[d];
        b->extent[d] = o->dim[d];
        left -= b->start[d] * stride[d];
        if (o->dim[d] < 1 || (o->dim[d] > 1 && o->stride[d] != stride[d]) || b->start[d] < 0 ||
            b->start[d] + o->dim[d] > shape->dim[d])
            return false;
    }
    return left == 0;
}

static int64_t size_of(const box *b, int ndim)
{
    int64_t size = 1;
    for (int d = 0; d < ndim; d++)
        size *= b->extent[d];
    return size;
}

static bool apart(const box *a, const box *b, int ndim)
{
    for (int d = 0; d < ndim; d++)
        if (a->start[d] + a->extent[d] <= b->start[d] || b->start[d] + b->extent[d] <= a->start[d])
            return true;
    return false;
}

static int home_of(const tn__draft *draft, const tn__draft_operand *o) { return draft->home[o->value]; }

static bool reads(const tn__draft *draft, const tn__draft_step *s, int home)
{
    for (int i = s->output_count; i < s->operand_count; i++)
        if (home_of(draft, &s->operand[i]) == home)
            return true;
    return false;
}

static bool writes(const tn__draft *draft, const tn__draft_step *s, int home)
{
    for (int i = 0; i < s->output_count; i++)
        if (home_of(draft, &s->operand[i]) == home)
            return true;
    return false;
}

/* A copy, or a fill, of one window each. */
static bool is_copy(const tn__draft_step *s)
{
    return s->step.kind == TN__STEP_OP && !s->adopts && (s->step.op == TN__OP_COPY || s->step.op == TN__OP_CONST);
}

/* ---- fills ---- */

/* Does the step fill a part of its value, or all of it, with one element? */
static bool fills(const tn__draft *draft, const tn__draft_step *s, box *part)
{
    if (s->step.kind != TN__STEP_OP || (s->step.op != TN__OP_CONST && s->step.op != TN__OP_COPY) ||
        !box_of(draft, &s->operand[0], part))
        return false;
    if (s->operand_count > 1 && s->operand[1].ndim != s->operand[0].ndim)
        return false;
    for (int d = 0; d < s->operand[0].ndim && s->operand_count > 1; d++)
        if (s->operand[1].stride[d] != 0)
            return false;
    return s->operand_count == 1 || draft->graph->value[s->operand[1].value].op == TN__OP_CONST;
}

/* Replaces each piece that meets the hole by what it leaves of it, axis by axis; the number of pieces, -1: too many. */
static int cut(box *piece, int count, const box *hole, int ndim)
{
    for (int i = count - 1; i >= 0; i--) {
        box b = piece[i];
        if (apart(&b, hole, ndim))
            continue;
        piece[i] = piece[--count];
        for (int d = 0; d < ndim; d++) {
            int64_t low = hole->start[d] - b.start[d],
                    high = b.start[d] + b.extent[d] - hole->start[d] - hole->extent[d];
            if (count + (low > 0) + (high > 0) > MOST_GAPS)
                return -1;
            if (low > 0) {
                piece[count] = b;
                piece[count++].extent[d] = low;
            }
            if (high > 0) {
                piece[count] = b;
                piece[count].start[d] = hole->start[d] + hole->extent[d];
                piece[count++].extent[d] = high;
            }
            b.start[d] += low > 0 ? low : 0;
            b.extent[d] -= (low > 0 ? low : 0) + (high > 0 ? high : 0);
        }
    }
    return count;
}

/* What is left to fill once the steps behind have written what they do before anybody reads the value. -1: too many
 * pieces. */
static int gaps(const tn__draft *draft, int fill, box *piece)
{
    const tn__draft_operand *to = &draft->step[fill].operand[0];
    int home = home_of(draft, to), ndim = to->ndim, count = 1;
    for (int i = fill + 1; i < draft->step_count && count > 0; i++) {
        const tn__draft_step *s = &draft->step[i];
        box hole;
        if (reads(draft, s, home))
            break;
        if (!writes(draft, s, home))
            continue;
        if (!is_copy(s))
            break;
        if (shape_of(draft, &s->operand[0]) == shape_of(draft, to) && box_of(draft, &s->operand[0], &hole))
            count = cut(piece, count, &hole, ndim);
    }
    return count;
}

/* The step with another window of what it fills. */
static void narrow(const tn__draft *draft, tn__draft_step *s, const box *b)
{
    int64_t stride[TN_MAX_NDIM], before = 1;
    for (int d = 0; d < s->operand[0].ndim; d++)
        before *= s->operand[0].dim[d];
    tn__strides_contiguous(s->operand[0].ndim, shape_of(draft, &s->operand[0])->dim, stride);
    s->operand[0].offset = 0;
    for (int d = 0; d < s->operand[0].ndim; d++)
        s->operand[0].offset += b->start[d] * stride[d];
    for (int i = 0; i < s->operand_count; i++)
        memcpy(s->operand[i].dim, b->extent, sizeof(int64_t) * (size_t)s->operand[i].ndim);
    s->adopts = false;
    int64_t size = size_of(b, s->operand[0].ndim);
    s->step.bytes = s->step.bytes / before * size;
    s->step.operations = size;
}

/* A copy of the step at the end of the draft. */
static tn__draft_step *repeat(tn__draft *draft, int step)
{
    tn__draft_step *to = tn__draft_add_op(draft, draft->step[step].step.op), *from = &draft->step[step];
    if (!to)
        return NULL;
    tn__step own = from->step;
    own.scalar = NULL;
    own.scalar_count = 0;
    to->step = own;
    to->output_count = from->output_count;
    for (int i = 0; i < from->operand_count; i++) {
        if (!tn__grow((void **)&to->operand, &to->operand_capacity, (size_t)i + 1, sizeof *to->operand))
            return NULL;
        to->operand[to->operand_count++] = from->operand[i];
    }
    return !from->step.scalar_count || tn__draft_scalars(to, from->step.scalar[0], from->step.scalar_count) ? to : NULL;
}

/* Puts the last step behind another one. */
static void put_behind(tn__draft *draft, int step)
{
    tn__draft_step last = draft->step[draft->step_count - 1];
    memmove(&draft->step[step + 2], &draft->step[step + 1], sizeof last * (size_t)(draft->step_count - step - 2));
    draft->step[step + 1] = last;
}

/* A fill without what is written over; *fill: the last step that is left of it. `cheap`: further steps cost next to
 * nothing. */
static bool leave_out(tn__draft *draft, int *fill, bool cheap)
{
    tn__draft_step *s = &draft->step[*fill];
    box piece[MOST_GAPS];
    if (!fills(draft, s, &piece[0]))
        return true;
    box whole = piece[0];
    int64_t size = size_of(&whole, s->operand[0].ndim), bytes = size * (int64_t)tn_dtype_size(s->operand[0].dtype);
    if (!cheap && size != shape_of(draft, &s->operand[0])->size)
        return true;
    int count = gaps(draft, *fill, piece), first = *fill;
    if (count < 0 || (count == 1 && memcmp(&piece[0], &whole, sizeof whole) == 0) ||
        (count > 0 && !cheap && bytes <= LITTLE))
        return true;
    if (count == 0) {
        tn__draft_remove(draft, (*fill)--);
        return true;
    }
    for (int i = 1; i < count; i++, ++*fill) {
        tn__draft_step *more = repeat(draft, first);
        if (!more)
            return false;
        narrow(draft, more, &piece[i]);
        put_behind(draft, first);
    }
    narrow(draft, &draft->step[first], &piece[0]);
    return true;
}

/* ---- constants ---- */

/* Of all homes: does a step read it, or lies a result there? NULL without memory. */
static bool *find_needed(const tn__draft *draft)
{
    const tn__graph *graph = draft->graph;
    bool *needed = tn__calloc((size_t)graph->count + 1, sizeof *needed);
    for (int i = 0; i < draft->step_count && needed; i++)
        for (int k = draft->step[i].output_count; k < draft->step[i].operand_count; k++)
            needed[home_of(draft, &draft->step[i].operand[k])] = true;
    for (int r = 0; r < graph->result_count && needed; r++) {
        tn__window w;
        int blocked, base = graph->result[r];
        if (tn__window_of(graph, base, draft->stored, &w, &blocked))
            base = w.base;
        needed[draft->home[base]] = true;
    }
    return needed;
}

/* A copy of a constant is a fill, and the element that it was to read goes if nobody else wants it. */
static bool fill_directly(tn__draft *draft)
{
    bool any = false;
    for (int i = 0; i < draft->step_count; i++) {
        tn__draft_step *s = &draft->step[i];
        if (!is_copy(s) || s->operand_count < 2)
            continue;
        const tn__value *from = &draft->graph->value[s->operand[1].value];
        if (from->op != TN__OP_CONST || home_of(draft, &s->operand[1]) != s->operand[1].value)
            continue;
        if (!tn__draft_scalars(s, from->scalar, 1))
            return false;
        s->step.op = TN__OP_CONST;
        s->operand_count = 1;
        any = true;
    }
    bool *needed = any ? find_needed(draft) : NULL;
    for (int i = draft->step_count - 1; i >= 0 && needed; i--)
        if (draft->step[i].step.op == TN__OP_CONST && is_copy(&draft->step[i]) &&
            !needed[home_of(draft, &draft->step[i].operand[0])])
            tn__draft_remove(draft, i);
    tn__free(needed);
    return !any || needed;
}

/* ---- copies in one step ---- */

typedef struct group {
    int count, member[MOST_TOGETHER];
    int64_t bytes;
} group;

/* Does the order of two copies matter? */
static bool meet(const tn__draft *draft, const tn__draft_step *a, const tn__draft_step *b)
{
    int to = home_of(draft, &a->operand[0]), other = home_of(draft, &b->operand[0]);
    box x, y;
    if (reads(draft, a, other) || reads(draft, b, to))
        return true;
    return to == other && (shape_of(draft, &a->operand[0]) != shape_of(draft, &b->operand[0]) ||
                           !box_of(draft, &a->operand[0], &x) || !box_of(draft, &b->operand[0], &y) ||
                           !apart(&x, &y, a->operand[0].ndim));
}

static bool joins(const tn__draft *draft, const group *g, const tn__draft_step *s)
{
    bool joins = g->count < MOST_TOGETHER;
    for (int i = 0; i < g->count && joins; i++) {
        const tn__draft_step *m = &draft->step[g->member[i]];
        joins = tn_dtype_size(m->operand[0].dtype) == tn_dtype_size(s->operand[0].dtype) && !meet(draft, m, s);
    }
    return joins;
}

/* Can the copies be made behind another step as well? */
static bool can_wait(const tn__draft *draft, const group *g, const tn__draft_step *s)
{
    bool can = g->bytes <= SHORT;
    for (int i = 0; i < g->count && can; i++) {
        const tn__draft_step *m = &draft->step[g->member[i]];
        int to = home_of(draft, &m->operand[0]);
        can = !reads(draft, s, to) && !writes(draft, s, to);
        for (int k = 1; k < m->operand_count && can; k++)
            can = !writes(draft, s, home_of(draft, &m->operand[k]));
    }
    return can;
}

/* Makes the last of the copies the step of all of them: outputs of copies, then those of fills, what is copied, what
 * fills. The others are left without operands. */
static bool close_group(tn__draft *draft, group *g)
{
    int count = g->count, copies = 0, fills = 0;
    tn__draft_step *last = count ? &draft->step[g->member[count - 1]] : NULL;
    g->count = 0;
    g->bytes = 0;
    if (count < 2)
        return true;
    for (int i = 0; i < count; i++)
        copies += draft->step[g->member[i]].operand_count - 1;
    tn__draft_operand *operand = tn__alloc(sizeof *operand * (size_t)(count + copies));
    int *scalar = tn__alloc(sizeof *scalar * (size_t)(count - copies + 1));
    if (!operand || !scalar) {
        tn__free(operand);
        tn__free(scalar);
        return false;
    }
    int64_t bytes = 0, operations = 0;
    for (int i = 0, done = 0; i < count; i++) {
        const tn__draft_step *m = &draft->step[g->member[i]];
        bool copy = m->operand_count > 1;
        tn__draft_operand *to = &operand[copy ? done : copies + fills];
        *to = m->operand[0];
        to->part = i; /* they are made at the same time */
        if (copy) {
            operand[count + done] = m->operand[1];
            operand[count + done++].part = i;
        } else {
            scalar[fills++] = m->step.scalar[0];
        }
        bytes += m->step.bytes;
        operations += m->step.operations;
    }
    tn__step own = {.kind = TN__STEP_OP, .op = copies ? TN__OP_COPY : TN__OP_CONST, .compute = last->step.compute,
                    .scalar = scalar, .scalar_count = fills, .bytes = bytes, .operations = operations};
    for (int i = 0; i < count; i++) {
        tn__draft_step_free(&draft->step[g->member[i]]);
        draft->step[g->member[i]] = (tn__draft_step){.operand_count = 0};
    }
    *last = (tn__draft_step){.step = own, .operand = operand, .operand_count = count + copies,
                             .operand_capacity = (size_t)(count + copies), .output_count = count};
    return true;
}

static bool put_together(tn__draft *draft)
{
    group g = {.count = 0};
    bool done = true;
    for (int i = 0; i < draft->step_count && done; i++) {
        const tn__draft_step *s = &draft->step[i];
        bool copies = is_copy(s);
        if (copies ? !joins(draft, &g, s) : !can_wait(draft, &g, s))
            done = close_group(draft, &g);
        if (copies) {
            g.member[g.count++] = i;
            g.bytes += s->step.bytes;
        }
    }
    done = done && close_group(draft, &g);
    int kept = 0;
    for (int i = 0; i < draft->step_count; i++)
        if (draft->step[i].operand_count || !done)
            draft->step[kept++] = draft->step[i];
    draft->step_count = kept;
    return done;
}

bool tn__join_copies(tn__draft *draft, bool together)
{
    if (together && !fill_directly(draft))
        return false;
    for (int i = 0; i < draft->step_count; i++)
        if (!leave_out(draft, &i, together))
            return false;
    return !together || put_together(draft);
}
