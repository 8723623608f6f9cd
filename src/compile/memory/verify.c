/* SPDX-License-Identifier: MIT */
/* Checks a finished plan, whoever made it: the safety net under the memory planner. */

#include "compile/memory/planner.h"
#include "compile/memory/segments.h"
#include "core/memory.h"

#include <stdlib.h>

/* First and last element an operand can touch; false for empty ones. */
static bool reach(const tn__operand *o, int64_t *low, int64_t *high)
{
    *low = *high = o->offset;
    for (int d = 0; d < o->ndim; d++) {
        if (o->dim[d] == 0)
            return false;
        int64_t span = (o->dim[d] - 1) * o->stride[d];
        *(span < 0 ? low : high) += span;
    }
    return true;
}

static const char *check_operands(const tn__program *p, const tn__step *s)
{
    for (int i = 0; i < s->operand_count; i++) {
        const tn__operand *o = &s->operand[i];
        int64_t low, high;
        if (o->buffer < 0 || o->buffer >= p->buffer_count)
            return "an operand without a buffer";
        const tn__buffer *b = &p->buffer[o->buffer];
        if (i < s->output_count && p->buffer[tn__buffer_whole(p, o->buffer)].kind == TN__BUFFER_INPUT)
            return "a step writes to an input";
        if (b->kind == TN__BUFFER_INPUT || !reach(o, &low, &high))
            continue;
        if (low < 0 || (size_t)(high + 1) * tn_dtype_size(o->dtype) > b->bytes)
            return "an operand reaches outside its buffer";
    }
    return NULL;
}

typedef struct span {
    int first, last;
} span;

/* The steps between which each buffer is used. */
static void find_spans(const tn__program *p, span *spans)
{
    for (int b = 0; b < p->buffer_count; b++)
        spans[b] = (span){p->step_count, -1};
    for (int i = 0; i < p->step_count; i++)
        for (int k = 0; k < p->step[i].operand_count; k++) {
            span *s = &spans[tn__buffer_whole(p, p->step[i].operand[k].buffer)];
            s->first = i < s->first ? i : s->first;
            s->last = i;
        }
}

static bool first_touch_writes(const tn__program *p, int buffer, span used)
{
    for (int i = used.first; i <= used.last; i++) {
        const tn__step *s = &p->step[i];
        for (int k = 0; k < s->output_count; k++)
            if (tn__buffer_whole(p, s->operand[k].buffer) == buffer)
                return true;
        for (int k = s->output_count; k < s->operand_count; k++)
            if (tn__buffer_whole(p, s->operand[k].buffer) == buffer)
                return false;
    }
    return true;
}

static const char *check_buffers(const tn__program *p, const span *spans)
{
    for (int a = 0; a < p->buffer_count; a++) {
        const tn__buffer *x = &p->buffer[a];
        if (x->kind == TN__BUFFER_SHIFTED) /* what is true of the whole is true of it */
            continue;
        if (x->kind == TN__BUFFER_DONATED && p->buffer[x->donor].kind != TN__BUFFER_INPUT)
            return "a donation from what is no input";
        if (x->kind == TN__BUFFER_DONATED && spans[x->donor].last > spans[a].first)
            return "a donated input is read after it is overwritten";
        if (x->kind == TN__BUFFER_OUTPUT && spans[a].last < 0)
            return "a result that no step writes";
        if (x->kind != TN__BUFFER_INPUT && !first_touch_writes(p, a, spans[a]))
            return "what no step has written yet is read";
        if (x->kind != TN__BUFFER_TEMPORARY)
            continue;
        if (x->offset + x->bytes > p->arena_bytes)
            return "a temporary lies outside the arena";
    }
    return NULL;
}

/*
 * Temporaries are gone through by their offsets, with those in hand whose memory the offset lies in: two of them must
 * not live at the same time. The steps in which one does are a few nodes (segments.h); here is counted how many of
 * those in hand have a node, and how many have one below it.
 */
typedef struct hand {
    int leaves;
    int *own, *below;
} hand;

/* An end of a temporary's memory; ends come before beginnings. */
typedef struct edge {
    size_t offset;
    int begins, buffer;
} edge;

static int by_offset(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset) : x->begins - y->begins;
}

static void count_in(hand *h, span s, int by)
{
    int node[TN__MOST_SEGMENTS], count = tn__segments(h->leaves, s.first, s.last, node);
    for (int i = 0; i < count; i++) {
        h->own[node[i]] += by;
        for (int n = node[i]; n; n /= 2)
            h->below[n] += by;
    }
}

static bool lives_beside(const hand *h, span s)
{
    int node[TN__MOST_SEGMENTS], count = tn__segments_above(h->leaves, s.first, s.last, node);
    for (int i = 0; i < count; i++)
        if (h->own[node[i]])
            return true;
    count = tn__segments(h->leaves, s.first, s.last, node);
    for (int i = 0; i < count; i++)
        if (h->below[node[i]])
            return true;
    return false;
}

static const char *check_temporaries(const tn__program *p, const span *spans)
{
    hand h = {.leaves = tn__segment_leaves(p->step_count)};
    h.own = tn__calloc(2 * (size_t)h.leaves, sizeof *h.own);
    h.below = tn__calloc(2 * (size_t)h.leaves, sizeof *h.below);
    edge *edges = tn__alloc(2 * sizeof *edges * ((size_t)p->buffer_count + 1));
    const char *wrong = h.own && h.below && edges ? NULL : tn__verify_no_memory;
    size_t count = 0;
    for (int b = 0; b < p->buffer_count && !wrong; b++) {
        const tn__buffer *x = &p->buffer[b];
        if (x->kind != TN__BUFFER_TEMPORARY || !x->bytes || spans[b].last < 0)
            continue;
        edges[count++] = (edge){x->offset, true, b};
        edges[count++] = (edge){x->offset + x->bytes, false, b};
    }
    if (count)
        qsort(edges, count, sizeof *edges, by_offset);
    for (size_t i = 0; i < count && !wrong; i++) {
        span s = spans[edges[i].buffer];
        if (edges[i].begins && lives_beside(&h, s))
            wrong = "two live temporaries overlap";
        count_in(&h, s, edges[i].begins ? 1 : -1);
    }
    tn__free(edges);
    tn__free(h.own);
    tn__free(h.below);
    return wrong;
}

const char tn__verify_no_memory[] = "no memory for the verifier";

const char *tn__plan_verify(const tn__plan *plan)
{
    const tn__program *p = &plan->program;
    for (int i = 0; i < p->step_count; i++) {
        const char *wrong = check_operands(p, &p->step[i]);
        if (wrong)
            return wrong;
    }
    span *spans = tn__alloc((size_t)(p->buffer_count + 1) * sizeof *spans);
    if (!spans)
        return tn__verify_no_memory;
    find_spans(p, spans);
    const char *wrong = check_buffers(p, spans);
    if (!wrong)
        wrong = check_temporaries(p, spans);
    tn__free(spans);
    return wrong;
}
