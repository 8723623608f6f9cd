/* SPDX-License-Identifier: MIT */
/*
 * Which units share a launch. On a GPU products and groups of small nests lie beside one another in one, as different
 * blocks of it, where none needs another, and a product's blocks may go on with another product: a training step's last
 * updates and its loss are then one kernel, and a step is a chain of few of them.
 */
#include "compile/emit.h"
#include "compile/product.h"
#include "compile/units.h"

#include <string.h>

#define BLOCKS_BESIDE 4    /* a multiprocessor, of products that share a launch */
#define POINTS_BESIDE (1 << 18) /* of what else does */
#define THREADS_BESIDE 256 /* of a block, so that each has the registers that products need */

/* ---- what may lie beside what ---- */

static bool needs(const tn__fuser *f, const tn__unit *u, const tn__unit *other)
{
    for (int i = 0; i < f->item_count; i++)
        for (int w = 0; w < f->words && tn__set_has(u->items, i); w++)
            if (f->item[i].needs[w] & other->items[w])
                return true;
    return false;
}

static bool needs_any(const tn__units *s, const tn__unit *u)
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

/* May `other` overwrite what `u` reads, so that u has to come before it? */
static bool may_overwrite(const tn__fuser *f, const tn__unit *other, const tn__unit *u)
{
    for (int i = 0; i < u->count; i++)
        for (int a = 0; a < u->nest[i]->access_count; a++)
            for (int k = 0; k < other->count; k++)
                if (u->nest[i]->access[a].kind == TN__ACCESS_LOAD &&
                    takes_over(f, other->nest[k], u->nest[i]->access[a].value))
                    return true;
    return other->value >= 0; /* operations may overwrite, too */
}

static bool any_apart(const tn__fuser *f, const tn__unit *u, const tn__unit *other)
{
    for (int i = 0; i < u->count; i++)
        if (tn__unit_apart(f, other, u->nest[i]))
            return true;
    return false;
}

static bool shares_launches(const tn__units *s, const tn__unit *u)
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
static bool in_order(const tn__fuser *f, const tn__unit *u, const tn__unit *other)
{
    return needs(f, other, u) || may_overwrite(f, other, u) || any_apart(f, u, other);
}

/* Whether unit i fits beside all that is in a launch. */
static bool fits_beside(const tn__units *s, int i, int launch)
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
    return count <= TN__MOST_NESTS && words <= TN__MOST_WORDS;
}

/* ---- behind one another ---- */

static bool is_product(const tn__unit *u) { return u->count == 1 && u->nest[0]->product.there; }

/* Products that are computed in the blocks of others, one behind the other: the unit is taken to the last one that it
 * has to come behind, if it can go on from that. */
static void go_on(tn__units *s)
{
    const tn__fuser *f = s->fuser;
    for (int i = 1; i < s->count; i++) {
        tn__unit *u = &s->unit[i];
        int k = i - 1;
        while (k >= 0 && s->unit[k].value < 0 && !in_order(f, &s->unit[k], u))
            k--;
        tn__unit *first = k < 0 ? NULL : &s->unit[k];
        if (!first || !is_product(u) || !is_product(first) || may_overwrite(f, u, first) || any_apart(f, first, u) ||
            tn__unit_is_full(f, first, u->nest[0]) || !tn__product_goes_on(first->nest[0], u->nest[0], f->device))
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

/* ---- beside one another ---- */

static bool has_others(const tn__units *s, int launch)
{
    for (int k = 0; k < s->count; k++)
        if (k != launch && s->unit[k].launch == launch)
            return true;
    return false;
}

/* Must u come behind a launch, in which there may also be units of before it? */
static bool waits_for(const tn__units *s, const tn__unit *u, int launch)
{
    for (int k = 0; k < s->count; k++)
        if (s->unit[k].launch == launch && in_order(s->fuser, &s->unit[k], u))
            return true;
    return false;
}

/* Each unit goes as late as it can: into the last launch that it fits in, if nothing before that needs it. One that is
 * still alone goes into the launch before it that it fits in, if it needs nothing in between. */
static void share_launches(tn__units *s)
{
    for (int i = s->count - 2; i >= 0; i--) {
        tn__unit *u = &s->unit[i];
        for (int k = i + 1; k < s->count && shares_launches(s, u); k++) {
            if (in_order(s->fuser, u, &s->unit[k]))
                break;
            if (s->unit[k].launch == k && fits_beside(s, i, k))
                u->launch = k;
        }
    }
    for (int i = 1; i < s->count; i++) {
        tn__unit *u = &s->unit[i];
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

/* A number that needs nothing of this run, such as where the next one's minibatch begins, goes into the first launch
 * that it fits in: so the next run's first kernel can be started, and read it, while this one's last is not done (see
 * series.c). */
static void bring_forward(tn__units *s)
{
    for (int i = 1; i < s->count; i++) {
        tn__unit *u = &s->unit[i];
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

/* ---- multiprocessors ---- */

/* What lies beside a product makes do with the multiprocessors that this leaves idle, each unit by itself. */
static void share_idle(tn__units *s, int largest, int64_t idle)
{
    const tn__nest *main = s->unit[largest].nest[0];
    for (int i = 0; i < s->count; i++) {
        const tn__unit *u = &s->unit[i];
        if (u->launch != s->unit[largest].launch || i == largest || u->count != 1)
            continue;
        if (is_product(u))
            tn__product_settle_beside(u->nest[0], main, idle, s->fuser->device);
        else
            u->nest[0]->beside = true;
    }
}

/* A product that has a block for most multiprocessors leaves the others to what lies beside it: the last of many small
 * blocks would begin when that product's end. */
static void make_room(tn__units *s)
{
    int64_t all = s->fuser->device->capabilities.multiprocessors;
    for (int l = 0; l < s->count; l++) {
        int largest = l;
        for (int i = 0; i < s->count; i++)
            if (s->unit[i].launch == l && s->unit[i].count &&
                tn__unit_work(&s->unit[i]) > tn__unit_work(&s->unit[largest]))
                largest = i;
        if (s->unit[l].launch != l || !has_others(s, l) || !tn__unit_work(&s->unit[largest]))
            continue;
        int64_t idle = all - tn__product_blocks(s->unit[largest].nest[0]);
        if (idle > 0 && idle <= all / 2)
            share_idle(s, largest, idle);
    }
}

void tn__share_launches(tn__units *s)
{
    go_on(s);
    share_launches(s);
    bring_forward(s);
    make_room(s);
}
