/* SPDX-License-Identifier: MIT */
/* Items as they become ready: each has a count of the needs that have not been taken, and joins a heap when it is 0. */
#include "compile/schedule/queue.h"

static bool fails(const tn__queue *q, int i) { return q->fuser->updates && tn__item_may_fail(q->fuser, i); }

#define LARGE (16 << 20) /* bytes of an array that should not be kept longer than need be */

static int64_t bytes_of(const tn__queue *q, int i)
{
    const tn__item *item = &q->fuser->item[i];
    int64_t bytes = 0;
    for (int t = 0; t < (item->nest ? item->nest->target_count : 1); t++) {
        const tn__value *v = &q->fuser->graph->value[item->nest ? item->nest->target[t] : item->value];
        bytes += v->shape->size * (int64_t)tn_dtype_size(v->dtype);
    }
    return bytes;
}

/* Does it make little of a large array, which may be let go then? Weights' gradients do, and reductions. */
static bool makes_less(const tn__queue *q, int i)
{
    const tn__item *item = &q->fuser->item[i];
    bool reduces = item->nest ? item->nest->reduced != 0
                              : q->fuser->graph->value[item->value].op == TN__OP_CONVOLVE_WEIGHTS;
    int64_t largest = 0;
    for (int k = 0; k < item->needs.count && reduces; k++) {
        int64_t bytes = bytes_of(q, tn__item_now(q->fuser, item->needs.at[k]));
        largest = bytes > largest ? bytes : largest;
    }
    return reduces && largest >= LARGE && bytes_of(q, i) <= largest / 2;
}

static bool put(tn__queue *q, int i)
{
    tn__heap *ready = &q->ready[q->small(q->fuser, &q->fuser->item[i])];
    return tn__heap_add(tn__item_chooses(q->fuser, i) ? &q->urgent : ready, makes_less(q, i) ? 0 : 1, i);
}

/* ---- items that overwrite are held back while others may fail ---- */

/* How many items that may fail need this one, directly or not; -1 without memory. */
static int failing_behind(tn__queue *q, int item, tn__numbers *list)
{
    int count = 0, search = ++q->searches;
    list->count = 0;
    if (!tn__numbers_add(list, item))
        return -1;
    for (int i = 0; i < list->count; i++)
        for (int k = q->first[list->at[i]]; k < q->first[list->at[i] + 1]; k++) {
            int user = q->users[k];
            if (q->seen[user] == search)
                continue;
            q->seen[user] = search;
            count += fails(q, user);
            if (!tn__numbers_add(list, user))
                return -1;
        }
    return count;
}

/* Are there items that may fail, other than this one and those that need it? */
static bool waits_for_failures(const tn__queue *q, int i) { return q->later[i] >= 0 && q->failing > q->later[i]; }

static bool let_go(tn__queue *q)
{
    bool done = true;
    while (done && q->limits.count && q->failing <= -tn__heap_key(&q->limits)) {
        int i = tn__heap_take(&q->limits);
        if (q->later[i] < 0)
            continue;
        q->later[i] = -1;
        done = put(q, i);
    }
    return done;
}

/* ---- what is ready ---- */

/* A constant in memory that others write into or read is made right before the first of them, not as soon as it could
 * be, which is at the start. */
static bool is_fill(const tn__queue *q, int i)
{
    const tn__item *item = &q->fuser->item[i];
    return item->value >= 0 && q->fuser->graph->value[item->value].op == TN__OP_CONST && q->first[i] < q->first[i + 1];
}

/* A fill that the item needs and that has not been taken, -1: none. */
static int fill_before(const tn__queue *q, int i)
{
    const tn__numbers *needs = &q->fuser->item[i].needs;
    for (int k = 0; k < needs->count; k++) {
        int need = tn__item_now(q->fuser, needs->at[k]);
        if (q->waits[need] == 0 && !q->fuser->item[need].dead && is_fill(q, need))
            return need;
    }
    return -1;
}

static bool add(tn__queue *q, int i)
{
    if (q->failing && tn__item_overwrites(q->fuser, i)) {
        tn__numbers list = {0};
        int behind = failing_behind(q, i, &list);
        tn__free(list.at);
        if (behind < 0)
            return false;
        q->later[i] = behind + fails(q, i);
        if (waits_for_failures(q, i))
            return tn__heap_add(&q->held, 0, i) && tn__heap_add(&q->limits, -q->later[i], i);
        q->later[i] = -1;
    }
    return put(q, i);
}

/* Fills in users and first: the lists of needs the other way round. */
static bool list_users(tn__queue *q)
{
    tn__fuser *f = q->fuser;
    size_t edges = 0;
    for (int i = 0; i < f->item_count; i++)
        for (int k = 0; !f->item[i].dead && k < f->item[i].needs.count; k++) {
            q->first[tn__item_now(f, f->item[i].needs.at[k]) + 1]++;
            edges++;
        }
    for (int i = 0; i < f->item_count; i++)
        q->first[i + 1] += q->first[i];
    q->users = tn__alloc(sizeof *q->users * (edges + 1));
    int *end = tn__calloc((size_t)f->item_count + 1, sizeof *end);
    bool done = q->users && end;
    for (int i = 0; i < f->item_count && done; i++)
        for (int k = 0; !f->item[i].dead && k < f->item[i].needs.count; k++) {
            int need = tn__item_now(f, f->item[i].needs.at[k]);
            q->users[q->first[need] + end[need]++] = i;
            q->waits[i] += !f->item[need].dead && !is_fill(q, need);
        }
    tn__free(end);
    return done;
}

bool tn__queue_init(tn__queue *q, tn__fuser *f, bool (*small)(const tn__fuser *fuser, const tn__item *item))
{
    size_t n = (size_t)f->item_count + 1;
    *q = (tn__queue){.fuser = f,
                     .small = small,
                     .waits = tn__calloc(n, sizeof(int)),
                     .first = tn__calloc(n + 1, sizeof(int)),
                     .later = tn__alloc(n * sizeof(int)),
                     .seen = tn__calloc(n, sizeof(int))};
    if (!q->waits || !q->first || !q->later || !q->seen || !list_users(q))
        return false;
    for (int i = 0; i < f->item_count; i++) {
        q->later[i] = -1;
        q->failing += !f->item[i].dead && fails(q, i);
    }
    bool done = true;
    for (int i = 0; i < f->item_count && done; i++)
        done = f->item[i].dead || q->waits[i] || is_fill(q, i) || add(q, i);
    return done;
}

static int first_of(tn__queue *q, bool after_small)
{
    if (q->urgent.count)
        return tn__heap_take(&q->urgent);
    for (int k = 0; k < 2; k++) {
        tn__heap *ready = &q->ready[k ? !after_small : after_small];
        if (ready->count)
            return tn__heap_take(ready);
    }
    while (q->held.count) {
        int i = tn__heap_take(&q->held);
        if (q->later[i] >= 0) {
            q->later[i] = -1;
            return i;
        }
    }
    return -1;
}

int tn__queue_take(tn__queue *q, bool after_small)
{
    int i = first_of(q, after_small), fill = i < 0 ? -1 : fill_before(q, i);
    if (i < 0)
        return -1;
    if (fill >= 0) {
        q->waits[fill] = -1;
        return put(q, i) ? fill : -2;
    }
    bool done = true;
    if (fails(q, i)) {
        q->failing--;
        done = let_go(q);
    }
    for (int k = q->first[i]; k < q->first[i + 1] && done; k++)
        done = --q->waits[q->users[k]] || add(q, q->users[k]);
    return done ? i : -2;
}

void tn__queue_free(tn__queue *q)
{
    tn__free(q->waits);
    tn__free(q->users);
    tn__free(q->first);
    tn__free(q->later);
    tn__free(q->seen);
    tn__free(q->urgent.at);
    tn__free(q->ready[0].at);
    tn__free(q->ready[1].at);
    tn__free(q->held.at);
    tn__free(q->limits.at);
}
