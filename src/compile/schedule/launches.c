/* SPDX-License-Identifier: MIT */
/*
 * Horizontal fusion, and back-to-back products, on a GPU: which groups share a launch. Where none needs another,
 * products and groups of small nests become different blocks of one launch; and the blocks of one product may compute a
 * second one behind it. A training step's last updates and its loss are then one kernel, and a step is a few of them.
 */
#include "compile/schedule/horizontal.h"

/*
 * Two groups keep their order if one needs the other, or overwrites what the other reads, or may fail where the other
 * overwrites; operations keep theirs with all groups, as they may overwrite. The groups are gone through from the first
 * to the last, or the other way; these are the nearest ones so far that are an operation, may fail, and overwrite.
 */
typedef struct nearest {
    int operation, fails, overwrites;
} nearest;

static void forget(tn__horizontal *h, int none)
{
    for (int v = 0; v < h->f->graph->count; v++)
        h->nearest[v] = none;
}

/* ---- back-to-back products ---- */

static bool is_product(const tn__fusion_group *u) { return u->count == 1 && u->nest[0]->product.there; }

static int later(int a, int b) { return a > b ? a : b; }

/* The last group that this one has to come behind for another reason than that it needs it. */
static int behind(const tn__horizontal *h, int i, const nearest *last)
{
    const tn__fusion_group_facts *of = &h->of[i];
    int at = later(last->operation, of->overwrites ? last->fails : -1);
    at = later(at, of->fails ? last->overwrites : -1);
    for (int k = 0; k < of->takes.count; k++)
        at = later(at, h->nearest[of->takes.at[k]]);
    return at;
}

/* Notes a group, which has become part of group (or launch) `at`, as one that later groups may have to come behind. */
static void pass(tn__horizontal *h, int i, int at, nearest *last)
{
    const tn__fusion_group_facts *of = &h->of[i];
    if (tn__fusion_group_is_operation(h, i))
        last->operation = later(last->operation, at);
    if (of->fails)
        last->fails = later(last->fails, at);
    if (of->overwrites)
        last->overwrites = later(last->overwrites, at);
    for (int k = 0; k < of->reads.count; k++)
        h->nearest[of->reads.at[k]] = later(h->nearest[of->reads.at[k]], at);
}

/* The group whose blocks can compute this group's product behind their own: the last one that it has to come behind, if
 * that is a product that it fits. -1: none. */
static int goes_on_from(const tn__horizontal *h, int i, const nearest *last)
{
    const tn__fusion_group *u = &h->s->group[i];
    if (!is_product(u))
        return -1;
    int at = later(behind(h, i, last), tn__last_needed(h, i, false));
    const tn__fusion_group *first = at < 0 ? NULL : &h->s->group[at];
    if (!first || !is_product(first) || tn__numbers_meet(&h->of[at].reads, &h->of[i].takes) ||
        tn__fusion_groups_apart(h, at, i) || tn__fusion_group_is_full(h->f, first, u->nest[0]) ||
        !h->f->base.draft->policy->fits_back_to_back(first->nest[0], u->nest[0], h->f->device))
        return -1;
    return at;
}

/* Takes groups that have become part of others out of the table, and numbers the rest anew. */
static void close_ranks(tn__horizontal *h, const int *part_of)
{
    tn__fusion_groups *s = h->s;
    int kept = 0;
    for (int i = 0; i < s->count; i++) {
        if (part_of[i] >= 0) {
            tn__fusion_group_facts_free(&h->of[i]);
            continue;
        }
        h->of[kept] = h->of[i];
        s->group[kept] = s->group[i];
        s->group[kept].launch = kept;
        for (int k = 0; k < tn__fusion_group_items(h, kept); k++)
            tn__fusion_group_item(h, kept, k)->group = kept;
        kept++;
    }
    for (int i = kept; i < s->count; i++)
        h->of[i] = (tn__fusion_group_facts){0};
    s->count = kept;
}

/* Moves products into the groups whose blocks compute them behind their own. False without memory. */
static bool go_on(tn__horizontal *h)
{
    tn__fusion_groups *s = h->s;
    nearest last = {-1, -1, -1};
    int *part_of = tn__alloc(sizeof *part_of * ((size_t)s->count + 1));
    bool done = part_of != NULL;
    forget(h, -1);
    for (int i = 0; i < s->count && done; i++) {
        tn__fusion_group *u = &s->group[i];
        int at = part_of[i] = goes_on_from(h, i, &last);
        if (at >= 0) {
            tn__fusion_group *first = &s->group[at];
            h->f->base.draft->policy->join_back_to_back(first->nest[0], u->nest[0]);
            first->nest[first->count++] = u->nest[0];
            first->words += u->words;
            h->f->item[u->nest[0]->number].group = at;
            done = tn__fusion_group_facts_join(&h->of[at], &h->of[i]);
        }
        pass(h, i, at < 0 ? i : at, &last);
    }
    if (done)
        close_ranks(h, part_of);
    tn__free(part_of);
    return done;
}

/* ---- horizontal fusion ---- */

static int sooner(int a, int b) { return a < b ? a : b; }

/* The first of the later groups that has to stay behind this one; what needs it through others comes behind that. */
static int in_front(const tn__horizontal *h, int i, const int *first_user, const nearest *next)
{
    const tn__fusion_group_facts *of = &h->of[i];
    int at = sooner(next->operation, first_user[i]);
    at = of->overwrites ? sooner(at, next->fails) : at;
    at = of->fails ? sooner(at, next->overwrites) : at;
    for (int k = 0; k < of->reads.count; k++)
        at = sooner(at, h->nearest[of->reads.at[k]]);
    return at;
}

/* Notes a group as one that earlier groups may have to stay in front of. */
static void pass_back(tn__horizontal *h, int i, int *first_user, nearest *next)
{
    const tn__fusion_group_facts *of = &h->of[i];
    next->operation = tn__fusion_group_is_operation(h, i) ? i : next->operation;
    next->fails = of->fails ? i : next->fails;
    next->overwrites = of->overwrites ? i : next->overwrites;
    for (int k = 0; k < of->takes.count; k++)
        h->nearest[of->takes.at[k]] = i;
    for (int k = 0; k < tn__fusion_group_items(h, i); k++) {
        const tn__numbers *needs = &tn__fusion_group_item(h, i, k)->needs;
        for (int n = 0; n < needs->count; n++) {
            int other = h->f->item[tn__item_now(h->f, needs->at[n])].group;
            if (other >= 0)
                first_user[other] = i;
        }
    }
}

/* Each group goes as late as it can: into the last launch that it fits in, if nothing before that needs it. */
static bool go_late(tn__horizontal *h)
{
    const tn__fusion_groups *s = h->s;
    int count = s->count;
    nearest next = {count, count, count};
    int *first_user = tn__alloc(sizeof *first_user * ((size_t)count + 1));
    if (!first_user)
        return false;
    for (int i = 0; i < count; i++)
        first_user[i] = count;
    forget(h, count);
    for (int i = count - 1; i >= 0; i--) {
        if (h->of[i].shares) {
            int k = tn__open_before(h, in_front(h, i, first_user, &next) - 1);
            while (k > i && !tn__fits_in_launch(h, i, k))
                k = tn__open_before(h, k - 1);
            if (k > i)
                tn__put_in_launch(h, i, k);
        }
        pass_back(h, i, first_user, &next);
    }
    tn__free(first_user);
    return true;
}

/* One that is still alone goes into the launch before it that it fits in, if it needs nothing in between. */
static void go_early(tn__horizontal *h)
{
    tn__fusion_groups *s = h->s;
    nearest last = {-1, -1, -1}; /* launches, here */
    forget(h, -1);
    for (int i = 0; i < s->count; i++) {
        if (i && s->group[i].launch == i && h->of[i].shares && h->launch[i].groups == 1) {
            nearest of = last;
            of.operation = -1;
            int stop = later(behind(h, i, &of), tn__last_needed(h, i, true)), k = tn__open_before(h, i - 1);
            while (k > stop && !tn__fits_in_launch(h, i, k))
                k = tn__open_before(h, k - 1);
            if (k > stop)
                tn__put_in_launch(h, i, k);
        }
        pass(h, i, s->group[i].launch, &last);
    }
}

/* The last launch before `start` of a group that has to come before this one, which needs none. */
static int held_back(const tn__horizontal *h, int i, int start)
{
    const tn__fusion_group_facts *of = &h->of[i];
    int at = -1;
    for (int k = 0; k < h->s->count && (of->takes.count || of->fails || of->overwrites); k++) {
        int l = h->s->group[k].launch;
        if (k != i && l > at && l <= start &&
            (tn__numbers_meet(&h->of[k].reads, &of->takes) || tn__fusion_groups_apart(h, i, k)))
            at = l;
    }
    return at;
}

/* A number that needs nothing of this run, such as where the next one's minibatch begins, goes into the first launch
 * that it fits in: so the next run's first kernel can be started, and read it, while this one's last is not done (see
 * series.c). One that overwrites what it reads moves once. */
static void bring_forward(tn__horizontal *h)
{
    for (int i = 1; i < h->s->count; i++) {
        const tn__fusion_group *u = &h->s->group[i];
        const tn__fusion_group_facts *of = &h->of[i];
        bool once = of->takes.count || tn__fusion_groups_apart(h, i, i);
        if (!u->small || u->count != 1 || tn__nest_points(u->nest[0]) != 1 || tn__last_needed(h, i, false) >= 0 ||
            h->launch[i].groups > (u->launch == i) || (once && u->launch != i))
            continue;
        int start = u->launch - (u->launch == i), stop = held_back(h, i, start);
        int k = once ? tn__open_before(h, start) : tn__open_behind(h, stop + 1);
        while (k > stop && k <= start && (k == u->launch || !tn__fits_in_launch(h, i, k)))
            k = once ? tn__open_before(h, k - 1) : tn__open_behind(h, k + 1);
        if (k > stop && k <= start)
            tn__put_in_launch(h, i, k);
    }
}

/* ---- multiprocessors ---- */

/* What is fused horizontally with a product makes do with the multiprocessors that it leaves idle, each group by
 * itself. */
static void share_idle(tn__fusion_groups *s, int largest, int64_t idle)
{
    const tn__nest *main = s->group[largest].nest[0];
    int launch = s->group[largest].launch;
    for (int m = s->first[launch]; m < s->first[launch + 1]; m++) {
        const tn__fusion_group *u = &s->group[s->member[m]];
        if (s->member[m] == largest || u->count != 1)
            continue;
        if (is_product(u))
            s->fuser->base.draft->policy->settle_horizontal(u->nest[0], main, idle, s->fuser->device);
        else
            u->nest[0]->horizontal = true;
    }
}

/* A product that has a block for most multiprocessors leaves the others to what is fused horizontally with it: the last
 * of many small blocks would begin when those of that product end. */
static void make_room(tn__fusion_groups *s)
{
    int64_t all = s->fuser->device->capabilities.multiprocessors;
    for (int l = 0; l < s->count; l++) {
        int largest = l;
        if (s->group[l].launch != l || s->first[l + 1] - s->first[l] < 2)
            continue;
        for (int m = s->first[l]; m < s->first[l + 1]; m++)
            if (s->group[s->member[m]].count &&
                tn__fusion_group_work(&s->group[s->member[m]]) > tn__fusion_group_work(&s->group[largest]))
                largest = s->member[m];
        if (!tn__fusion_group_work(&s->group[largest]))
            continue;
        int64_t idle = all - tn__product_blocks(s->group[largest].nest[0]);
        if (idle > 0 && idle <= all / 2)
            share_idle(s, largest, idle);
    }
}

bool tn__fuse_horizontally(tn__fusion_groups *s)
{
    size_t groups = (size_t)s->count + 1, values = (size_t)s->fuser->graph->count + 1;
    tn__horizontal h = {.s = s,
                    .f = s->fuser,
                    .of = tn__calloc(groups, sizeof *h.of),
                    .launch = tn__alloc(groups * sizeof *h.launch),
                    .results = tn__calloc(values, sizeof *h.results),
                    .nearest = tn__alloc(values * sizeof *h.nearest),
                    .open = tn__calloc(groups / 64 + 1, sizeof *h.open)};
    bool done = h.of && h.launch && h.results && h.nearest && h.open && tn__note_fusion_groups(&h) && go_on(&h);
    if (done) {
        tn__begin_launches(&h);
        done = go_late(&h);
    }
    if (done) {
        go_early(&h);
        bring_forward(&h);
        done = tn__list_launches(s);
    }
    if (done)
        make_room(s);
    for (size_t i = 0; h.of && i < groups; i++)
        tn__fusion_group_facts_free(&h.of[i]);
    tn__free(h.of);
    tn__free(h.launch);
    tn__free(h.results);
    tn__free(h.nearest);
    tn__free(h.open);
    return done;
}
