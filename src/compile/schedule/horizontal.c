/* SPDX-License-Identifier: MIT */
/*
 * What groups read and may overwrite, and which launches have room, noted once for each: launches.c then takes time by
 * the number of groups, not of pairs of them.
 */
#include "compile/emit/emit.h"
#include "compile/schedule/horizontal.h"

#define FUSED_BLOCKS   4         /* a product that shares a launch has at most so many blocks a multiprocessor */
#define FUSED_POINTS  (1 << 18) /* another nest that does has at most so many: a larger one fills the GPU alone */
#define FUSED_THREADS  256       /* of a block of a shared launch: each then has the registers that products need */

/* ---- what groups read and may overwrite ---- */

static bool is_taken(const tn__fuser *f, const tn__access *a)
{
    int leaf = a->kind == TN__ACCESS_LOAD ? f->graph->value[a->value].leaf : -1;
    return leaf >= 0 && f->graph->leaf[leaf].donatable;
}

static bool add_once(tn__numbers *list, int number)
{
    for (int i = 0; i < list->count; i++)
        if (list->at[i] == number)
            return true;
    return tn__numbers_add(list, number);
}

/* A nest with a result is taken to overwrite every donatable leaf that it reads, as the memory plan may have it do. */
static bool note_nest(tn__horizontal *h, tn__fusion_group_facts *of, const tn__nest *nest)
{
    bool gives = false, done = true;
    for (int t = 0; t < nest->target_count; t++)
        gives = gives || h->results[nest->target[t]];
    for (int a = 0; a < nest->access_count && done; a++)
        if (is_taken(h->f, &nest->access[a]))
            done =
                add_once(&of->reads, nest->access[a].value) && (!gives || add_once(&of->takes, nest->access[a].value));
    of->fails = of->fails || tn__may_fail(nest);
    of->overwrites = of->overwrites || tn__overwrites(h->f, nest);
    return done;
}

bool tn__note_fusion_groups(tn__horizontal *h)
{
    const tn__graph *graph = h->f->graph;
    bool done = true;
    for (int r = 0; r < graph->result_count; r++)
        h->results[tn__view_base(graph, graph->result[r])] = true;
    for (int i = 0; i < h->s->count && done; i++)
        for (int k = 0; k < h->s->group[i].count && done; k++)
            done = note_nest(h, &h->of[i], h->s->group[i].nest[k]);
    return done;
}

bool tn__numbers_meet(const tn__numbers *a, const tn__numbers *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++)
            if (a->at[i] == b->at[k])
                return true;
    return false;
}

bool tn__fusion_group_is_operation(const tn__horizontal *h, int i) { return h->s->group[i].value >= 0; }

bool tn__fusion_groups_apart(const tn__horizontal *h, int i, int k)
{
    const tn__fusion_group_facts *a = &h->of[i], *b = &h->of[k];
    return h->f->updates && ((a->fails && b->overwrites) || (a->overwrites && b->fails));
}

tn__item *tn__fusion_group_item(const tn__horizontal *h, int group, int k)
{
    const tn__fusion_group *u = &h->s->group[group];
    return &h->f->item[u->count ? u->nest[k]->number : h->f->item_of[u->value]];
}

int tn__fusion_group_items(const tn__horizontal *h, int group)
{
    return h->s->group[group].count ? h->s->group[group].count : 1;
}

int tn__last_needed(const tn__horizontal *h, int group, bool by_launch)
{
    int last = -1;
    for (int k = 0; k < tn__fusion_group_items(h, group); k++) {
        const tn__numbers *needs = &tn__fusion_group_item(h, group, k)->needs;
        for (int n = 0; n < needs->count; n++) {
            int other = h->f->item[tn__item_now(h->f, needs->at[n])].group;
            int at = other < 0 || other == group ? -1 : by_launch ? h->s->group[other].launch : other;
            last = at > last ? at : last;
        }
    }
    return last;
}

bool tn__fusion_group_facts_join(tn__fusion_group_facts *to, const tn__fusion_group_facts *from)
{
    bool done = true;
    for (int i = 0; i < from->reads.count; i++)
        done = done && add_once(&to->reads, from->reads.at[i]);
    for (int i = 0; i < from->takes.count; i++)
        done = done && add_once(&to->takes, from->takes.at[i]);
    to->fails |= from->fails;
    to->overwrites |= from->overwrites;
    return done;
}

void tn__fusion_group_facts_free(tn__fusion_group_facts *of)
{
    tn__free(of->reads.at);
    tn__free(of->takes.at);
}

/* ---- launches ---- */

static bool shares_launches(const tn__fusion_groups *s, const tn__fusion_group *u)
{
    const tn__emit_target *target = s->emitter->target;
    tn__part_launch launch = {0};
    if (!u->count)
        return false;
    target->launch(s->emitter, &(tn__kernel_part){.nest = u->nest, .count = u->count}, false, &launch);
    if (launch.threads > FUSED_THREADS)
        return false;
    if (u->small)
        return true;
    if (u->nest[0]->product.there)
        return launch.blocks <= (int64_t)FUSED_BLOCKS  * s->fuser->device->capabilities.multiprocessors;
    return tn__nest_points(u->nest[0]) <= FUSED_POINTS && !target->splits(s->emitter, u->nest[0]);
}

/* Notes whether a launch has room for any group. */
static void note_room(tn__horizontal *h, int at)
{
    const tn__launch_facts *l = &h->launch[at];
    bool open = h->s->group[at].launch == at && l->nests < TN__MOST_NESTS && l->words + h->least <= TN__MOST_WORDS;
    for (int k = l->first; k >= 0 && open; k = h->of[k].next)
        open = h->of[k].shares;
    uint64_t bit = (uint64_t)1 << at % 64;
    h->open[at / 64] = open ? h->open[at / 64] | bit : h->open[at / 64] & ~bit;
}

void tn__begin_launches(tn__horizontal *h)
{
    const tn__fusion_groups *s = h->s;
    h->least = TN__MOST_WORDS;
    for (int i = 0; i < s->count; i++) {
        const tn__fusion_group *u = &s->group[i];
        h->of[i].shares = shares_launches(s, u);
        h->of[i].next = -1;
        h->launch[i] = (tn__launch_facts){.first = i, .groups = 1, .nests = u->count, .words = u->words};
        h->least = u->count && u->words < h->least ? u->words : h->least;
    }
    for (int i = 0; i < s->count; i++)
        note_room(h, i);
}

int tn__open_before(const tn__horizontal *h, int at)
{
    if (at < 0)
        return -1;
    uint64_t bits = h->open[at / 64] << (63 - at % 64);
    if (bits)
        return at - __builtin_clzll(bits);
    for (int w = at / 64 - 1; w >= 0; w--)
        if (h->open[w])
            return 64 * w + 63 - __builtin_clzll(h->open[w]);
    return -1;
}

int tn__open_behind(const tn__horizontal *h, int at)
{
    for (int w = at / 64; w <= h->s->count / 64; w++) {
        uint64_t bits = h->open[w] >> (w == at / 64 ? at % 64 : 0) << (w == at / 64 ? at % 64 : 0);
        if (bits)
            return 64 * w + __builtin_ctzll(bits);
    }
    return -1;
}

bool tn__fits_in_launch(const tn__horizontal *h, int i, int at)
{
    const tn__launch_facts *l = &h->launch[at];
    const tn__fusion_group *u = &h->s->group[i];
    if (l->nests + u->count > TN__MOST_NESTS || l->words + u->words > TN__MOST_WORDS)
        return false;
    for (int k = l->first; k >= 0; k = h->of[k].next)
        if (tn__numbers_meet(&h->of[k].reads, &h->of[i].takes) || tn__numbers_meet(&h->of[i].reads, &h->of[k].takes) ||
            tn__fusion_groups_apart(h, i, k))
            return false;
    return true;
}

void tn__put_in_launch(tn__horizontal *h, int i, int at)
{
    tn__fusion_group *u = &h->s->group[i];
    tn__launch_facts *from = &h->launch[u->launch], *to = &h->launch[at];
    int *link = &from->first;
    while (*link != i)
        link = &h->of[*link].next;
    *link = h->of[i].next;
    from->groups--;
    from->nests -= u->count;
    from->words -= u->words;
    h->of[i].next = to->first;
    to->first = i;
    to->groups++;
    to->nests += u->count;
    to->words += u->words;
    int old = u->launch;
    u->launch = at;
    note_room(h, old);
    note_room(h, at);
}
