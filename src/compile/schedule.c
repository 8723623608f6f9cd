/* SPDX-License-Identifier: MIT */
/*
 * From items to steps: their order, and which of them share a kernel. Small nests that follow one another are run through by one
 * worker. On a GPU products and such groups also lie beside one another in a launch, as different blocks of it, where none needs
 * another: a training step's last updates and its loss are then one kernel, and a step is a chain of few of them.
 */
#include "compile/emit.h"
#include "compile/fuse.h"
#include "compile/product.h"

#include <string.h>

#define SMALL_POINTS 32768 /* of a nest that is run by one worker together with its neighbours */
#define SMALL_POINTS_GPU 8192 /* the same, where a worker is one of a hundred multiprocessors */
#define MAX_TOGETHER 16
#define MOST_WORDS 480     /* of parameters together, on a GPU: 4 KiB, with what the backend adds */
#define BLOCKS_BESIDE 4    /* a multiprocessor, of products that share a launch */
#define POINTS_BESIDE (1 << 18) /* of what else does */
#define THREADS_BESIDE 256 /* of a block, so that each has the registers that products need */

/* Items that come together: nests that one worker runs through, or a single nest, or an operation. */
typedef struct unit {
    tn__nest *nest[MAX_TOGETHER];
    int count;
    int words;       /* of parameters, about */
    int value;       /* of an operation, -1: nests */
    uint64_t *items;
    bool small;      /* nests for one worker */
    int launch;      /* the unit in whose launch it lies: itself, or another one */
} unit;

typedef struct schedule {
    tn__fuser *fuser;
    tn__emitter *emitter;
    unit *unit;
    int count;
    size_t capacity;
} schedule;

/* ---- order ---- */

static bool is_small(const tn__fuser *f, const tn__item *item)
{
    int64_t most = f->device->capabilities.multiprocessors ? SMALL_POINTS_GPU : SMALL_POINTS;
    return item->nest && !item->nest->product.there && tn__nest_points(item->nest) <= most;
}

static bool ready(const tn__fuser *f, int i, const uint64_t *done)
{
    for (int w = 0; w < f->words; w++)
        if (f->item[i].needs[w] & ~done[w])
            return false;
    return true;
}

/* The next item: small nests wait until nothing else can go on, and then come together; what overwrites waits for what may fail;
 * otherwise in recording order. -1 at the end. */
static int next_item(const tn__fuser *f, const uint64_t *done, bool after_small)
{
    int other = -1, waiting = -1;
    bool failing = tn__failing_left(f, done);
    for (int i = 0; i < f->item_count; i++) {
        if (f->item[i].dead || tn__set_has(done, i) || !ready(f, i, done))
            continue;
        if (failing && tn__must_wait(f, i, done)) {
            waiting = waiting < 0 ? i : waiting;
            continue;
        }
        if (is_small(f, &f->item[i]) == after_small)
            return i;
        if (other < 0)
            other = i;
    }
    return other < 0 ? waiting : other;
}

/* ---- units ---- */

/* What a nest asks of a kernel's parameter block: addresses, extents and strides, scalars and where they are. */
static int words_of(const tn__nest *nest)
{
    int words = 3 + nest->loop_count + nest->access_count * (5 + nest->loop_count);
    for (int e = 0; e < nest->expr_count; e++)
        words += nest->expr[e].kind == TN__EXPR_SCALAR ? 2 : nest->expr[e].kind == TN__EXPR_INDEX ? 4 : 0;
    return words;
}

static bool by_value(const tn__fuser *f) { return f->device->capabilities.target == TN__TARGET_CUDA; }

/* On a GPU parameters come by value, and there is only so much room. */
static bool is_full(const tn__fuser *f, const unit *u, const tn__nest *nest)
{
    return u->count == MAX_TOGETHER || (by_value(f) && u->count && u->words + words_of(nest) > MOST_WORDS);
}

static bool apart(const tn__fuser *f, const unit *u, const tn__nest *nest)
{
    for (int i = 0; i < u->count; i++)
        if (tn__apart(f, u->nest[i], nest))
            return true;
    return false;
}

/* The number of a new one, -1 without memory. */
static int add_unit(schedule *s)
{
    if (!tn__grow((void **)&s->unit, &s->capacity, (size_t)s->count + 1, sizeof *s->unit))
        return -1;
    unit *u = &s->unit[s->count];
    *u = (unit){.value = -1, .launch = s->count, .items = tn__calloc((size_t)s->fuser->words, sizeof(uint64_t))};
    return u->items ? s->count++ : -1;
}

/* Nobody needs it, and it needs nothing of the open unit, if there is one: better beside it than behind it. */
static bool on_its_own(const tn__fuser *f, const unit *open, int item)
{
    for (int w = 0; w < f->words && open; w++)
        if (f->item[item].needs[w] & open->items[w])
            return false;
    for (int i = 0; i < f->item_count; i++)
        if (i != item && !f->item[i].dead && tn__set_has(f->item[i].needs, item))
            return false;
    return by_value(f);
}

static bool gather(schedule *s, bool fusion)
{
    tn__fuser *f = s->fuser;
    uint64_t *done = tn__calloc((size_t)f->words, sizeof *done);
    bool good = done != NULL;
    int open = -1; /* the unit of small nests that others may follow */
    for (int i; good && (i = next_item(f, done, open >= 0)) >= 0;) {
        tn__item *item = &f->item[i];
        tn__set_add(done, i);
        bool small = fusion && is_small(f, item), joins = small && open >= 0;
        joins = joins && !is_full(f, &s->unit[open], item->nest) && !apart(f, &s->unit[open], item->nest);
        bool alone = small && on_its_own(f, open >= 0 ? &s->unit[open] : NULL, i);
        int at = joins && !alone ? open : add_unit(s);
        good = at >= 0;
        if (!good)
            break;
        unit *u = &s->unit[at];
        tn__set_add(u->items, i);
        u->small = small;
        u->value = item->nest ? -1 : item->value;
        if (item->nest) {
            tn__nest_collapse(item->nest);
            if (item->nest->product.there)
                tn__product_settle(item->nest, f->device);
            u->nest[u->count++] = item->nest;
            u->words += words_of(item->nest);
        }
        if (!alone)
            open = small ? at : -1;
    }
    tn__free(done);
    return good;
}

/* ---- beside one another ---- */

static bool needs(const tn__fuser *f, const unit *u, const unit *other)
{
    for (int i = 0; i < f->item_count; i++)
        for (int w = 0; w < f->words && tn__set_has(u->items, i); w++)
            if (f->item[i].needs[w] & other->items[w])
                return true;
    return false;
}

static bool needs_any(const schedule *s, const unit *u)
{
    for (int i = 0; i < s->count; i++)
        if (&s->unit[i] != u && needs(s->fuser, u, &s->unit[i]))
            return true;
    return false;
}

static bool reads(const tn__nest *nest, int value)
{
    for (int i = 0; i < nest->access_count; i++)
        if (nest->access[i].kind == TN__ACCESS_LOAD && nest->access[i].value == value)
            return true;
    return false;
}

/* May the memory plan let a result of `nest` take over the memory of a leaf that it reads? */
static bool takes_over(const tn__fuser *f, const tn__nest *nest, int value)
{
    const tn__value *v = &f->graph->value[value];
    if (v->leaf < 0 || !f->graph->leaf[v->leaf].donatable || !reads(nest, value))
        return false;
    for (int t = 0; t < nest->target_count; t++)
        for (int r = 0; r < f->graph->result_count; r++)
            if (tn__view_base(f->graph, f->graph->result[r]) == nest->target[t])
                return true;
    return false;
}

/* Would `u` come too late, behind or beside something that overwrites what it reads? */
static bool late(const tn__fuser *f, const unit *u, const unit *other)
{
    for (int i = 0; i < u->count; i++)
        for (int a = 0; a < u->nest[i]->access_count; a++)
            for (int k = 0; k < other->count; k++)
                if (u->nest[i]->access[a].kind == TN__ACCESS_LOAD && takes_over(f, other->nest[k], u->nest[i]->access[a].value))
                    return true;
    return other->value >= 0; /* operations may overwrite, too */
}

static bool any_apart(const tn__fuser *f, const unit *u, const unit *other)
{
    for (int i = 0; i < u->count; i++)
        if (apart(f, other, u->nest[i]))
            return true;
    return false;
}

static bool shares_launches(const schedule *s, const unit *u)
{
    const tn__emit_target *target = s->emitter->target;
    tn__part_launch launch = {0};
    if (!u->count)
        return false;
    target->launch(s->emitter, &(tn__kernel_part){.nest = u->nest, .count = u->count}, false, &launch);
    if (launch.threads > THREADS_BESIDE)
        return false;
    if (u->small)
        return true;
    if (u->nest[0]->product.there)
        return launch.blocks <= (int64_t)BLOCKS_BESIDE * s->fuser->device->capabilities.multiprocessors;
    return tn__nest_points(u->nest[0]) <= POINTS_BESIDE && !target->splits(s->emitter, u->nest[0]);
}

/* Must the two keep their order, u before other? */
static bool in_order(const tn__fuser *f, const unit *u, const unit *other)
{
    return needs(f, other, u) || late(f, u, other) || any_apart(f, u, other);
}

/* Whether unit i fits beside all that is in a launch. */
static bool fits_beside(const schedule *s, int i, int launch)
{
    int count = s->unit[i].count, words = s->unit[i].words;
    for (int k = 0; k < s->count; k++)
        if (s->unit[k].launch == launch) {
            count += s->unit[k].count;
            words += s->unit[k].words;
            if (!shares_launches(s, &s->unit[k]) || in_order(s->fuser, &s->unit[k], &s->unit[i]) ||
                in_order(s->fuser, &s->unit[i], &s->unit[k]))
                return false;
        }
    return count <= MAX_TOGETHER && words <= MOST_WORDS;
}

static bool is_product(const unit *u) { return u->count == 1 && u->nest[0]->product.there; }

/* Products that are computed in the blocks of others, one behind the other: the unit is taken to the last one that it has to come
 * behind, if it can go on from that. */
static void go_on(schedule *s)
{
    const tn__fuser *f = s->fuser;
    for (int i = 1; i < s->count; i++) {
        unit *u = &s->unit[i];
        int k = i - 1;
        while (k >= 0 && s->unit[k].value < 0 && !in_order(f, &s->unit[k], u))
            k--;
        unit *first = k < 0 ? NULL : &s->unit[k];
        if (!first || !is_product(u) || !is_product(first) || late(f, first, u) || any_apart(f, first, u) ||
            is_full(f, first, u->nest[0]) || !tn__product_goes_on(first->nest[0], u->nest[0], f->device))
            continue;
        tn__product_put_behind(first->nest[0], u->nest[0]);
        first->nest[first->count++] = u->nest[0];
        first->words += u->words;
        for (int w = 0; w < f->words; w++)
            first->items[w] |= u->items[w];
        tn__free(u->items);
        memmove(u, u + 1, sizeof *u * (size_t)(--s->count - i));
        i--;
    }
    for (int i = 0; i < s->count; i++)
        s->unit[i].launch = i;
}

/* Multiplications of a unit's product, if it is one. */
static int64_t work_of(const unit *u)
{
    bool product = u->count && u->nest[0]->product.there;
    return product ? tn__nest_points(u->nest[0]) * tn__product_extents_of(u->nest[0]).depth : 0;
}

static bool has_others(const schedule *s, int launch)
{
    for (int k = 0; k < s->count; k++)
        if (k != launch && s->unit[k].launch == launch)
            return true;
    return false;
}

/* Must u come behind a launch, in which there may also be units of before it? */
static bool waits_for(const schedule *s, const unit *u, int launch)
{
    for (int k = 0; k < s->count; k++)
        if (s->unit[k].launch == launch && in_order(s->fuser, &s->unit[k], u))
            return true;
    return false;
}

/* Each unit goes as late as it can: into the last launch that it fits in, if nothing before that needs it. One that is still alone
 * goes into the launch before it that it fits in, if it needs nothing in between. */
static void share_launches(schedule *s)
{
    for (int i = s->count - 2; i >= 0; i--) {
        unit *u = &s->unit[i];
        for (int k = i + 1; k < s->count && shares_launches(s, u); k++) {
            if (in_order(s->fuser, u, &s->unit[k]))
                break;
            if (s->unit[k].launch == k && fits_beside(s, i, k))
                u->launch = k;
        }
    }
    for (int i = 1; i < s->count; i++) {
        unit *u = &s->unit[i];
        if (u->launch != i || !shares_launches(s, u) || has_others(s, i))
            continue;
        for (int k = i - 1; k >= 0 && u->launch == i; k--) {
            if (s->unit[k].launch == k && fits_beside(s, i, k))
                u->launch = k;
            else if (waits_for(s, u, k))
                break;
        }
    }
}

/* A number that needs nothing of this run, such as where the next one's minibatch begins, goes into the first launch that it fits in:
 * so the next run's first kernel can be started, and read it, while this one's last is not done (see series.c). */
static void bring_forward(schedule *s)
{
    for (int i = 1; i < s->count; i++) {
        unit *u = &s->unit[i];
        if (!u->small || u->count != 1 || tn__nest_points(u->nest[0]) != 1 || has_others(s, i) || needs_any(s, u))
            continue;
        for (int k = u->launch - (u->launch == i); k >= 0; k--) {
            if (s->unit[k].launch != k)
                continue;
            if (k != u->launch && fits_beside(s, i, k))
                u->launch = k;
            if (waits_for(s, u, k))
                break;
        }
    }
}

/* What lies beside a product makes do with the multiprocessors that this leaves idle, each unit by itself. */
static void share_idle(schedule *s, int largest, int64_t idle)
{
    const tn__nest *main = s->unit[largest].nest[0];
    for (int i = 0; i < s->count; i++) {
        const unit *u = &s->unit[i];
        if (u->launch != s->unit[largest].launch || i == largest || u->count != 1)
            continue;
        if (is_product(u))
            tn__product_settle_beside(u->nest[0], main, idle, s->fuser->device);
        else
            u->nest[0]->beside = true;
    }
}

/* A product that has a block for most multiprocessors leaves the others to what lies beside it: the last of many small blocks would
 * begin when that product's end. */
static void make_room(schedule *s)
{
    int64_t all = s->fuser->device->capabilities.multiprocessors;
    for (int l = 0; l < s->count; l++) {
        int largest = l;
        for (int i = 0; i < s->count; i++)
            if (s->unit[i].launch == l && s->unit[i].count && work_of(&s->unit[i]) > work_of(&s->unit[largest]))
                largest = i;
        if (s->unit[l].launch != l || !has_others(s, l) || !work_of(&s->unit[largest]))
            continue;
        int64_t idle = all - tn__product_blocks(s->unit[largest].nest[0]);
        if (idle > 0 && idle <= all / 2)
            share_idle(s, largest, idle);
    }
}

/* ---- emission ---- */

static bool emit_operation(tn__draft *draft, int value)
{
    return draft->fold[value] == TN__FOLD_UPDATE ? tn__lower_folded(draft, value) : tn__lower_value(draft, value);
}

/* What a run may overwrite is nothing that its first launch can read before the run in front of it is done. */
static void read_late(const tn__kernel_part *part)
{
    for (int i = 0; i < part->count; i++)
        for (int a = 0; a < part->nest[i]->access_count; a++) {
            tn__access *access = &part->nest[i]->access[a];
            access->given &= access->constant;
        }
}

static bool is_last(const schedule *s, int launch)
{
    for (int i = launch + 1; i < s->count; i++)
        if (s->unit[i].launch == i)
            return false;
    return true;
}

/* The units of a launch, the largest first, as the last ones to start are the last to end. */
static bool emit_launch(schedule *s, tn__draft *draft, int launch, int *kernels)
{
    tn__emitter *emitter = s->emitter;
    tn__kernel_part part[MAX_TOGETHER];
    int64_t work[MAX_TOGETHER];
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        const unit *u = &s->unit[i];
        if (u->launch != launch || u->value >= 0)
            continue;
        int at = count++;
        int64_t own = work_of(u);
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
    if (count == 1 && part[0].count == 1 && emitter->target->splits && emitter->target->splits(emitter, part[0].nest[0]))
        return tn__emit_in_pieces(draft, emitter, part[0].nest[0], kernels);
    tn__draft_step *step = tn__draft_add(draft, TN__STEP_KERNEL);
    if (step)
        step->step.late = first || is_last(s, launch);
    return step && tn__emit_step(emitter, part, count, (*kernels)++, step);
}

static bool emit_units(schedule *s, tn__draft *draft)
{
    int kernels = 0;
    for (int i = 0; i < s->count; i++) {
        s->fuser->base.stored = draft->stored; /* it moves */
        if (s->unit[i].value >= 0 ? !emit_operation(draft, s->unit[i].value)
                                  : s->unit[i].launch == i && !emit_launch(s, draft, i, &kernels))
            return false;
    }
    return true;
}

bool tn__schedule(tn__fuser *fuser, tn__draft *draft, tn__emitter *emitter, bool fusion)
{
    schedule s = {.fuser = fuser, .emitter = emitter};
    bool done = gather(&s, fusion);
    if (done && fusion && by_value(fuser)) {
        go_on(&s);
        share_launches(&s);
        bring_forward(&s);
        make_room(&s);
    }
    done = done && emit_units(&s, draft);
    for (int i = 0; i < s.count; i++)
        tn__free(s.unit[i].items);
    tn__free(s.unit);
    return done;
}
