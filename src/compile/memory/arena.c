/* SPDX-License-Identifier: MIT */
/*
 * The arena's layout. Occupied memory is kept in a segment tree over the steps (segments.h). Each node has two lists of
 * pieces: those of temporaries alive in all of its steps, and those of temporaries alive in some of them. A temporary
 * looks for a gap in as many lists as the tree is deep, where adjoining pieces have become one, instead of at all
 * temporaries that live along with it. Temporaries of one size, which may be many, are placed in the order in which
 * they begin to live, with a list of their own: then whatever of it is alive is all that can be in the way.
 */
#include "compile/memory/arena.h"

#include "compile/ir/numbers.h"
#include "compile/memory/segments.h"
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

/* A list of occupied ranges, ascending and not adjoining. */
typedef struct piece {
    size_t begin, end;
} piece;
typedef struct pieces {
    piece *at;
    size_t count, capacity;
} pieces;

typedef struct layout {
    int leaves;
    pieces *throughout; /* by node: of temporaries alive in all of its steps */
    pieces *sometime;   /* by node: of temporaries alive in some of its steps */
} layout;

/* The first piece that ends behind an offset, or at it where `touching`. */
static size_t first_behind(const pieces *p, size_t offset, bool touching)
{
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->at[middle].end > offset || (touching && p->at[middle].end == offset))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool add_piece(pieces *p, size_t begin, size_t end)
{
    size_t i = first_behind(p, begin, true), joined = i;
    for (; joined < p->count && p->at[joined].begin <= end; joined++) {
        begin = p->at[joined].begin < begin ? p->at[joined].begin : begin;
        end = p->at[joined].end > end ? p->at[joined].end : end;
    }
    if (joined == i && !tn__grow((void **)&p->at, &p->capacity, p->count + 1, sizeof *p->at))
        return false;
    memmove(&p->at[i + 1], &p->at[joined], sizeof *p->at * (p->count - joined));
    p->count = p->count + 1 - (joined - i);
    p->at[i] = (piece){begin, end};
    return true;
}

/* Takes out what lies within one piece. */
static bool remove_piece(pieces *p, size_t begin, size_t end)
{
    size_t i = first_behind(p, begin, false);
    piece whole = p->at[i];
    size_t left = (whole.begin < begin) + (size_t)(whole.end > end);
    if (left == 2 && !tn__grow((void **)&p->at, &p->capacity, p->count + 1, sizeof *p->at))
        return false;
    memmove(&p->at[i + left], &p->at[i + 1], sizeof *p->at * (p->count - i - 1));
    p->count += left - 1;
    if (whole.begin < begin)
        p->at[i++] = (piece){whole.begin, begin};
    if (whole.end > end)
        p->at[i] = (piece){end, whole.end};
    return true;
}

/* The offset itself if so many bytes are free there, else where what is there ends. */
static size_t past(const pieces *p, size_t offset, size_t bytes)
{
    size_t i = first_behind(p, offset, false);
    return i < p->count && p->at[i].begin < offset + bytes ? p->at[i].end : offset;
}

static size_t lowest(const layout *l, const pieces *alive, const tn__lifetime *life, size_t bytes)
{
    int above[TN__MOST_SEGMENTS], own[TN__MOST_SEGMENTS];
    int above_count = tn__segments_above(l->leaves, life->first, life->last, above);
    int own_count = tn__segments(l->leaves, life->first, life->last, own);
    size_t at = 0, before;
    do {
        before = at;
        at = past(alive, at, bytes);
        for (int i = 0; i < above_count; i++)
            at = past(&l->throughout[above[i]], at, bytes);
        for (int i = 0; i < own_count; i++)
            at = past(&l->sometime[own[i]], at, bytes);
    } while (at != before);
    return at;
}

static bool take(layout *l, const tn__lifetime *life, size_t bytes)
{
    int own[TN__MOST_SEGMENTS], count = tn__segments(l->leaves, life->first, life->last, own);
    bool done = true;
    for (int i = 0; i < count && done; i++) {
        done = add_piece(&l->throughout[own[i]], life->offset, life->offset + bytes);
        for (int node = own[i]; node && done; node /= 2)
            done = add_piece(&l->sometime[node], life->offset, life->offset + bytes);
    }
    return done;
}

static size_t aligned(const tn__lifetime *life)
{
    return (life->bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT;
}

/* Larger ones first; of one size, who lives first. */
static int by_size(const void *a, const void *b)
{
    const tn__lifetime *x = *(tn__lifetime *const *)a, *y = *(tn__lifetime *const *)b;
    if (aligned(x) != aligned(y))
        return aligned(x) < aligned(y) ? 1 : -1;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : (x > y) - (x < y);
}

/* Places those of one size, in the order in which they begin to live. last: there are none behind them. */
static bool place_alike(layout *l, tn__lifetime **life, int count, bool last, size_t *arena)
{
    size_t bytes = aligned(life[0]);
    pieces alive = {0};
    tn__heap ends = {0};
    bool done = true;
    for (int i = 0; i < count && done; i++) {
        while (done && ends.count && tn__heap_key(&ends) < life[i]->first) {
            size_t gone = life[tn__heap_take(&ends)]->offset;
            done = remove_piece(&alive, gone, gone + bytes);
        }
        size_t at = life[i]->offset = lowest(l, &alive, life[i], bytes);
        *arena = at + bytes > *arena ? at + bytes : *arena;
        done = done && add_piece(&alive, at, at + bytes) && tn__heap_add(&ends, life[i]->last, i);
    }
    for (int i = 0; i < count && done && !last; i++)
        done = take(l, life[i], bytes);
    tn__free(alive.at);
    tn__free(ends.at);
    return done;
}

/* Places each behind the last one. */
static void place_apart(tn__lifetime **life, size_t count, size_t *arena)
{
    for (size_t i = 0; i < count; i++) {
        life[i]->offset = aligned(life[i]) ? *arena : 0;
        *arena += aligned(life[i]);
    }
}

bool tn__arena_lay_out(tn__lifetime *life, int count, int steps, bool reuse, size_t *bytes)
{
    layout l = {.leaves = tn__segment_leaves(steps)};
    size_t nodes = 2 * (size_t)l.leaves;
    tn__lifetime **order = tn__alloc(sizeof *order * ((size_t)count + 1));
    l.throughout = tn__calloc(nodes, sizeof *l.throughout);
    l.sometime = tn__calloc(nodes, sizeof *l.sometime);
    bool done = order && l.throughout && l.sometime;
    size_t temporaries = 0;
    for (int v = 0; v < count && done; v++)
        if (life[v].temporary)
            order[temporaries++] = &life[v];
    if (done && temporaries)
        qsort(order, temporaries, sizeof *order, by_size);
    *bytes = 0;
    if (done && !reuse)
        place_apart(order, temporaries, bytes);
    for (size_t i = 0, end; i < temporaries && done && reuse && aligned(order[i]); i = end) {
        for (end = i + 1; end < temporaries && aligned(order[end]) == aligned(order[i]);)
            end++;
        done = place_alike(&l, order + i, (int)(end - i), end == temporaries, bytes);
    }
    for (size_t i = 0; i < nodes; i++) {
        tn__free(l.throughout ? l.throughout[i].at : NULL);
        tn__free(l.sometime ? l.sometime[i].at : NULL);
    }
    tn__free(l.throughout);
    tn__free(l.sometime);
    tn__free(order);
    return done;
}
