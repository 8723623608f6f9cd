/* SPDX-License-Identifier: MIT */
/*
 * The arena's layout. What is taken is known by stretches of steps (segments.h): for each node, the memory of those
 * that live in all of its steps, and of those of whose nodes it is one, or is above one. A temporary then looks for a
 * place in as many lists of memory as the tree is deep, in which neighbours are one piece, instead of at all that live
 * along with it.
 */
#include "compile/memory/arena.h"

#include "compile/memory/segments.h"
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

/* Pieces of memory, in order, that do not touch. */
typedef struct piece {
    size_t begin, end;
} piece;
typedef struct pieces {
    piece *at;
    size_t count, capacity;
} pieces;

typedef struct layout {
    int leaves;
    pieces *throughout; /* by node: of those that live in all of its steps */
    pieces *sometime;   /* of those that live in some of them, as far as nodes tell */
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

/* The offset itself if so many bytes are free there, else where what is there ends. */
static size_t past(const pieces *p, size_t offset, size_t bytes)
{
    size_t i = first_behind(p, offset, false);
    return i < p->count && p->at[i].begin < offset + bytes ? p->at[i].end : offset;
}

static size_t lowest(const layout *l, const tn__lifetime *life, size_t bytes)
{
    int above[TN__MOST_SEGMENTS], own[TN__MOST_SEGMENTS];
    int above_count = tn__segments_above(l->leaves, life->first, life->last, above);
    int own_count = tn__segments(l->leaves, life->first, life->last, own);
    size_t at = 0, before;
    do {
        before = at;
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

/* Larger ones first; equal ones in their order. */
static int by_size(const void *a, const void *b)
{
    const tn__lifetime *x = *(tn__lifetime *const *)a, *y = *(tn__lifetime *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : (x > y) - (x < y);
}

static bool place(layout *l, tn__lifetime *life, bool reuse, size_t *arena)
{
    size_t bytes = (life->bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT;
    life->offset = 0;
    if (!bytes)
        return true;
    life->offset = reuse ? lowest(l, life, bytes) : *arena;
    *arena = life->offset + bytes > *arena ? life->offset + bytes : *arena;
    return !reuse || take(l, life, bytes);
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
    for (size_t i = 0; i < temporaries && done; i++)
        done = place(&l, order[i], reuse, bytes);
    for (size_t i = 0; i < nodes; i++) {
        tn__free(l.throughout ? l.throughout[i].at : NULL);
        tn__free(l.sometime ? l.sometime[i].at : NULL);
    }
    tn__free(l.throughout);
    tn__free(l.sometime);
    tn__free(order);
    return done;
}
