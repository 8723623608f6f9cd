/* SPDX-License-Identifier: MIT */
/*
 * An order of the items, each behind what it needs, that stays one while nests are merged: an item's place. When an
 * item begins to need others, only those in between change places (Pearce and Kelly, A dynamic topological sort
 * algorithm for directed acyclic graphs, 2007); and whether one needs another is seen without a look at what has its
 * place before that. Merging thus takes time by what lies between two nests, not by the whole graph.
 */
#include "compile/fuse/fuse.h"

#include <stdlib.h>
#include <string.h>

/* Marks of items, by what they were marked for: a search's needs, what these need, and what it has been through. */
enum { DIRECT, BEYOND, SEEN };

int tn__item_now(tn__fuser *f, int i)
{
    tn__item *item = f->item;
    while (item[i].into != i)
        i = item[i].into = item[item[i].into].into;
    return i;
}

static bool mark(tn__fuser *f, int i, int what)
{
    bool fresh = f->item[i].mark[what] != f->search;
    f->item[i].mark[what] = f->search;
    return fresh;
}

static bool is_marked(const tn__fuser *f, int i, int what) { return f->item[i].mark[what] == f->search; }

/* ---- who needs whom ---- */

bool tn__order_search(tn__fuser *f, int item)
{
    f->search++;
    f->ahead.count = 0;
    const tn__numbers *needs = &f->item[item].needs;
    bool done = true;
    for (int k = 0; k < needs->count && done; k++) {
        int need = tn__item_now(f, needs->at[k]);
        mark(f, need, DIRECT);
        if (mark(f, need, SEEN))
            done = tn__heap_add(&f->ahead, -f->item[need].place, need);
    }
    return done;
}

bool tn__order_needs(const tn__fuser *f, int other) { return is_marked(f, other, DIRECT); }

tn__known tn__order_needs_through(tn__fuser *f, int other)
{
    while (f->ahead.count && -tn__heap_key(&f->ahead) > f->item[other].place) {
        const tn__numbers *needs = &f->item[tn__heap_take(&f->ahead)].needs;
        for (int k = 0; k < needs->count; k++) {
            int need = tn__item_now(f, needs->at[k]);
            mark(f, need, BEYOND);
            if (mark(f, need, SEEN) && !tn__heap_add(&f->ahead, -f->item[need].place, need))
                return TN__KNOWN_NO_MEMORY;
        }
    }
    return is_marked(f, other, BEYOND) ? TN__KNOWN_TRUE : TN__KNOWN_FALSE;
}

/* ---- places ---- */

static int by_place(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What can be reached from the items of a list, through needs or through users, between two places: onto the list. */
static bool reach(tn__fuser *f, tn__numbers *list, bool users, int from, int to)
{
    for (int i = 0; i < list->count; i++) {
        const tn__item *item = &f->item[list->at[i]];
        const tn__numbers *next = users ? &item->users : &item->needs;
        for (int k = 0; k < next->count; k++) {
            int n = tn__item_now(f, next->at[k]);
            if (f->item[n].place >= from && f->item[n].place <= to && mark(f, n, SEEN) && !tn__numbers_add(list, n))
                return false;
        }
    }
    return true;
}

/* The items of two lists share the places that they have, each list in its order, the first one in front. */
static bool reorder(tn__fuser *f, const tn__numbers *first, const tn__numbers *second)
{
    size_t count = (size_t)(first->count + second->count);
    int64_t *item = tn__alloc(sizeof *item * count), *place = tn__alloc(sizeof *place * count);
    if (item && place) {
        for (size_t i = 0; i < count; i++) {
            int n = (int)i < first->count ? first->at[i] : second->at[i - (size_t)first->count];
            place[i] = f->item[n].place;
            item[i] = place[i] << 32 | n;
        }
        qsort(item, (size_t)first->count, sizeof *item, by_place);
        qsort(item + first->count, (size_t)second->count, sizeof *item, by_place);
        qsort(place, count, sizeof *place, by_place);
        for (size_t i = 0; i < count; i++)
            f->item[item[i] & INT32_MAX].place = (int)place[i];
    }
    bool done = item && place;
    tn__free(item);
    tn__free(place);
    return done;
}

/* `into` goes behind the needs of an item that becomes part of it. */
static bool put_behind(tn__fuser *f, int into, const tn__numbers *needs)
{
    tn__numbers first = {0}, second = {0};
    int from = f->item[into].place, to = -1;
    bool done = true;
    f->search++;
    for (int k = 0; k < needs->count && done; k++) {
        int need = tn__item_now(f, needs->at[k]), place = f->item[need].place;
        if (place <= from || !mark(f, need, SEEN))
            continue;
        to = place > to ? place : to;
        done = tn__numbers_add(&first, need);
    }
    if (to >= 0)
        done = done && mark(f, into, SEEN) && tn__numbers_add(&second, into) && reach(f, &first, false, from, to) &&
               reach(f, &second, true, from, to) && reorder(f, &first, &second);
    tn__free(first.at);
    tn__free(second.at);
    return done;
}

/* Notes that `item` uses what its list of needs names from `from` on; what is named twice, or is itself, goes. */
static bool note_needs(tn__fuser *f, int item, int from)
{
    tn__numbers *needs = &f->item[item].needs;
    bool done = true;
    int kept = 0;
    f->search++;
    for (int k = 0; k < needs->count; k++) {
        int need = tn__item_now(f, needs->at[k]);
        if (need == item || !mark(f, need, DIRECT)) {
            f->item[need].used--;
            continue;
        }
        needs->at[kept++] = need;
        if (k >= from)
            done = done && tn__numbers_add(&f->item[need].users, item);
    }
    needs->count = kept;
    return done;
}

bool tn__order_add(tn__fuser *f, int item)
{
    f->item[item].place = item;
    return note_needs(f, item, 0);
}

bool tn__order_join(tn__fuser *f, int into, int item)
{
    tn__item *to = &f->item[into], *from = &f->item[item];
    int before = to->needs.count;
    from->into = into;
    from->dead = true;
    to->used += from->used;
    bool done = put_behind(f, into, &from->needs);
    for (int k = 0; k < from->needs.count; k++)
        done = done && tn__numbers_add(&to->needs, from->needs.at[k]);
    from->needs.count = 0;
    return done && note_needs(f, into, before);
}
