/* SPDX-License-Identifier: MIT */
/*
 * From items to steps: their order, and which of them share a kernel. Small nests that follow one another are run
 * through by one worker, a unit; on a GPU several units lie in a launch (launches.c).
 */
#include "compile/emit.h"
#include "compile/product.h"
#include "compile/units.h"

#define SMALL_POINTS 32768 /* of a nest that is run by one worker together with its neighbours */
#define SMALL_POINTS_GPU 8192 /* the same, where a worker is one of a hundred multiprocessors */

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

/* The next item: small nests wait until nothing else can go on, and then come together; what overwrites waits for what
 * may fail; otherwise in recording order. -1 at the end. */
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

/* On a GPU parameters come by value, and there is only so much room. */
bool tn__unit_is_full(const tn__fuser *f, const tn__unit *u, const tn__nest *nest)
{
    return u->count == TN__MOST_NESTS ||
           (tn__on_gpu(f->device) && u->count && u->words + words_of(nest) > TN__MOST_WORDS);
}

bool tn__unit_apart(const tn__fuser *f, const tn__unit *u, const tn__nest *nest)
{
    for (int i = 0; i < u->count; i++)
        if (tn__apart(f, u->nest[i], nest))
            return true;
    return false;
}

int64_t tn__unit_work(const tn__unit *u)
{
    bool product = u->count && u->nest[0]->product.there;
    return product ? tn__nest_points(u->nest[0]) * tn__product_extents_of(u->nest[0]).depth : 0;
}

/* The number of a new one, -1 without memory. */
static int add_unit(tn__units *s)
{
    if (!tn__grow((void **)&s->unit, &s->capacity, (size_t)s->count + 1, sizeof *s->unit))
        return -1;
    tn__unit *u = &s->unit[s->count];
    *u = (tn__unit){.value = -1, .launch = s->count, .items = tn__calloc((size_t)s->fuser->words, sizeof(uint64_t))};
    return u->items ? s->count++ : -1;
}

/* Nobody needs it, and it needs nothing of the open unit, if there is one: better beside it than behind it. */
static bool on_its_own(const tn__fuser *f, const tn__unit *open, int item)
{
    for (int w = 0; w < f->words && open; w++)
        if (f->item[item].needs[w] & open->items[w])
            return false;
    for (int i = 0; i < f->item_count; i++)
        if (i != item && !f->item[i].dead && tn__set_has(f->item[i].needs, item))
            return false;
    return tn__on_gpu(f->device);
}

static bool gather(tn__units *s, bool fusion)
{
    tn__fuser *f = s->fuser;
    uint64_t *done = tn__calloc((size_t)f->words, sizeof *done);
    bool good = done != NULL;
    int open = -1; /* the unit of small nests that others may follow */
    for (int i; good && (i = next_item(f, done, open >= 0)) >= 0;) {
        tn__item *item = &f->item[i];
        tn__set_add(done, i);
        bool small = fusion && is_small(f, item), joins = small && open >= 0;
        joins =
            joins && !tn__unit_is_full(f, &s->unit[open], item->nest) && !tn__unit_apart(f, &s->unit[open], item->nest);
        bool alone = small && on_its_own(f, open >= 0 ? &s->unit[open] : NULL, i);
        int at = joins && !alone ? open : add_unit(s);
        good = at >= 0;
        if (!good)
            break;
        tn__unit *u = &s->unit[at];
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

static bool is_last(const tn__units *s, int launch)
{
    for (int i = launch + 1; i < s->count; i++)
        if (s->unit[i].launch == i)
            return false;
    return true;
}

/* The units of a launch, the largest first, as the last ones to start are the last to end. */
static bool emit_launch(tn__units *s, tn__draft *draft, int launch, int *kernels)
{
    tn__emitter *emitter = s->emitter;
    tn__kernel_part part[TN__MOST_NESTS];
    int64_t work[TN__MOST_NESTS];
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        const tn__unit *u = &s->unit[i];
        if (u->launch != launch || u->value >= 0)
            continue;
        int at = count++;
        int64_t own = tn__unit_work(u);
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
        return tn__emit_in_pieces(draft, emitter, part[0].nest[0], kernels);
    tn__draft_step *step = tn__draft_add(draft, TN__STEP_KERNEL);
    if (step)
        step->step.late = first || is_last(s, launch);
    return step && tn__emit_step(emitter, part, count, (*kernels)++, step);
}

static bool emit_units(tn__units *s, tn__draft *draft)
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
    tn__units s = {.fuser = fuser, .emitter = emitter};
    bool done = gather(&s, fusion);
    if (done && fusion && tn__on_gpu(fuser->device))
        tn__share_launches(&s);
    done = done && emit_units(&s, draft);
    for (int i = 0; i < s.count; i++)
        tn__free(s.unit[i].items);
    tn__free(s.unit);
    return done;
}
