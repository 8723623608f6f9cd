/* SPDX-License-Identifier: MIT */
/*
 * From items to steps: their order (queue.c), and which of them share a kernel. Small nests that follow one another
 * make a fusion group, which one block runs; on a GPU several groups may share a launch (launches.c).
 */
#include "compile/emit/emit.h"
#include "compile/lower/lower.h"
#include "compile/schedule/groups.h"
#include "compile/schedule/queue.h"

#include <string.h>

#define SMALL_POINTS     32768 /* a nest of at most so many points is grouped with others, and run by one worker */
#define SMALL_POINTS_GPU 8192  /* the same, where a worker is one of a hundred multiprocessors */

static bool is_small(const tn__fuser *f, const tn__item *item)
{
    int64_t most = f->device->capabilities.multiprocessors ? SMALL_POINTS_GPU : SMALL_POINTS;
    return item->nest && !item->nest->product.there && tn__nest_points(item->nest) <= most;
}

/* ---- groups ---- */

/* What a nest asks of a kernel's parameter block: addresses, extents and strides, scalars and where they are. */
static int words_of(const tn__nest *nest)
{
    int words = 3 + nest->loop_count + nest->access_count * (5 + nest->loop_count);
    for (int e = 0; e < nest->expr_count; e++)
        words += nest->expr[e].kind == TN__EXPR_SCALAR ? 2 : nest->expr[e].kind == TN__EXPR_INDEX ? 4 : 0;
    return words;
}

/* On a GPU parameters come by value, and there is only so much room. */
bool tn__fusion_group_is_full(const tn__fuser *f, const tn__fusion_group *u, const tn__nest *nest)
{
    return u->count == TN__MOST_NESTS ||
           (tn__on_gpu(f->device) && u->count && u->words + words_of(nest) > TN__MOST_WORDS);
}

bool tn__fusion_group_apart(const tn__fuser *f, const tn__fusion_group *u, const tn__nest *nest)
{
    for (int i = 0; i < u->count; i++)
        if (tn__apart(f, u->nest[i], nest))
            return true;
    return false;
}

int64_t tn__fusion_group_work(const tn__fusion_group *u)
{
    bool product = u->count && u->nest[0]->product.there;
    return product ? tn__nest_points(u->nest[0]) * tn__product_extents_of(u->nest[0]).depth : 0;
}

/* The number of a new group, -1 without memory. */
static int add_group(tn__fusion_groups *s)
{
    if (!tn__grow((void **)&s->group, &s->capacity, (size_t)s->count + 1, sizeof *s->group))
        return -1;
    tn__fusion_group *u = &s->group[s->count];
    *u = (tn__fusion_group){.value = -1, .launch = s->count};
    return s->count++;
}

/* Nobody needs it, and it needs nothing of the open group, if there is one: horizontal fusion may take it. */
static bool on_its_own(tn__fuser *f, int open, int i)
{
    const tn__item *item = &f->item[i];
    for (int k = 0; k < item->needs.count && open >= 0; k++)
        if (f->item[tn__item_now(f, item->needs.at[k])].group == open)
            return false;
    return tn__on_gpu(f->device) && !item->used;
}

/* Puts an item into a group: the open one, or another; which of them is open then. -1: none, -2: no memory. */
static int put(tn__fusion_groups *s, int i, int open, bool fusion)
{
    tn__fuser *f = s->fuser;
    tn__item *item = &f->item[i];
    bool small = fusion && is_small(f, item), joins = small && open >= 0;
    joins = joins && !tn__fusion_group_is_full(f, &s->group[open], item->nest) &&
            !tn__fusion_group_apart(f, &s->group[open], item->nest);
    bool alone = small && on_its_own(f, open, i);
    int at = joins && !alone ? open : add_group(s);
    if (at < 0)
        return -2;
    tn__fusion_group *u = &s->group[at];
    item->group = at;
    u->small = small;
    u->value = item->nest ? -1 : item->value;
    if (item->nest) {
        tn__nest_collapse(item->nest);
        if (item->nest->product.there)
            f->base.draft->policy->settle(item->nest, f->device);
        u->nest[u->count++] = item->nest;
        u->words += words_of(item->nest);
    }
    return alone ? open : small ? at : -1;
}

static bool gather(tn__fusion_groups *s, bool fusion)
{
    tn__queue queue;
    bool done = tn__queue_init(&queue, s->fuser, is_small);
    int open = -1; /* the group of small nests that others may follow */
    for (int i; done && (i = tn__queue_take(&queue, open >= 0)) != -1;) {
        open = i < 0 ? i : put(s, i, open, fusion);
        done = open != -2;
    }
    tn__queue_free(&queue);
    return done;
}

bool tn__list_launches(tn__fusion_groups *s)
{
    size_t n = (size_t)s->count + 1;
    if (!s->first) {
        s->first = tn__alloc((n + 1) * sizeof *s->first);
        s->member = tn__alloc(n * sizeof *s->member);
    }
    if (!s->first || !s->member)
        return false;
    memset(s->first, 0, (n + 1) * sizeof *s->first);
    for (int i = 0; i < s->count; i++) /* one place further than its end, which is where it is counted up to */
        s->first[s->group[i].launch + 2]++;
    for (size_t l = 2; l <= n; l++)
        s->first[l] += s->first[l - 1];
    for (int i = 0; i < s->count; i++)
        s->member[s->first[s->group[i].launch + 1]++] = i;
    return true;
}

/* ---- emission ---- */

static bool emit_operation(tn__draft *draft, int value)
{
    return tn__is_folded(draft, value) ? tn__lower_folded(draft, value) : tn__lower_value(draft, value);
}

/* What a run may overwrite is nothing that its first launch can read before the run in front of it is done. */
static void read_late(const tn__kernel_part *part)
{
    for (int i = 0; i < part->count; i++)
        for (int a = 0; a < part->nest[i]->access_count; a++) {
            tn__access *access = &part->nest[i]->access[a];
            access->early &= access->constant;
        }
}

/* The groups of a launch, the largest first, as the last ones to start are the last to end. */
static bool emit_launch(tn__fusion_groups *s, tn__draft *draft, int launch, bool last)
{
    tn__emitter *emitter = s->emitter;
    tn__kernel_part part[TN__MOST_NESTS];
    int64_t work[TN__MOST_NESTS];
    int count = 0;
    for (int m = s->first[launch]; m < s->first[launch + 1]; m++) {
        const tn__fusion_group *u = &s->group[s->member[m]];
        if (u->value >= 0)
            continue;
        int at = count++;
        int64_t own = tn__fusion_group_work(u);
        for (; at > 0 && work[at - 1] < own; at--) {
            part[at] = part[at - 1];
            work[at] = work[at - 1];
        }
        part[at] = (tn__kernel_part){.nest = u->nest, .count = u->count};
        work[at] = own;
    }
    bool first = draft->step_count == 0;
    for (int i = 0; i < count && first; i++)
        read_late(&part[i]);
    if (count == 1 && part[0].count == 1 && emitter->target->splits &&
        emitter->target->splits(emitter, part[0].nest[0]))
        return tn__emit_split(draft, emitter, part[0].nest[0]);
    tn__draft_step *step = tn__draft_add_kernel(draft);
    if (step)
        step->step.kernel.launch.late_trigger = first || last;
    return step && tn__emit_step(emitter, part, count, step);
}

static bool emit_groups(tn__fusion_groups *s, tn__draft *draft)
{
    int last = s->count - 1;
    while (last >= 0 && s->group[last].launch != last)
        last--;
    for (int i = 0; i < s->count; i++) {
        s->fuser->base.stored = draft->stored; /* it moves */
        if (s->group[i].value >= 0 ? !emit_operation(draft, s->group[i].value)
                                  : s->group[i].launch == i && !emit_launch(s, draft, i, i == last))
            return false;
    }
    return true;
}

bool tn__schedule(tn__fuser *fuser, tn__draft *draft, tn__emitter *emitter, bool fusion)
{
    tn__fusion_groups s = {.fuser = fuser, .emitter = emitter};
    bool done = gather(&s, fusion);
    if (done && fusion && emitter->target->parts)
        done = tn__fuse_horizontally(&s);
    done = done && tn__list_launches(&s) && emit_groups(&s, draft);
    tn__free(s.first);
    tn__free(s.member);
    tn__free(s.group);
    return done;
}
