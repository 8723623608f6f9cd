/* SPDX-License-Identifier: MIT */
/* Whether a program is work for a few multiprocessors only, so that its launches had better be phases of one kernel (chain.c), and
 * what each phase does. */
#include "compile/emit.h"
#include "compile/product.h"
#include "compile/schedule.h"

#define PHASE_POINTS 16384 /* of what may be a phase of a chain */
#define PHASE_CYCLES 2400  /* about what a phase takes however little it does */
#define LAUNCH_CYCLES 3600 /* the same of a kernel; as in product.c */
#define LAUNCH_SAVED 2500  /* what a chain spares the host and the GPU for each launch that it does without */

/* May the unit be part of a phase? */
static bool is_phase(const tn__schedule_state *s, const tn__unit *u)
{
    const tn__emit_target *target = s->emitter->target;
    tn__part_launch launch = {0};
    int64_t points = 0;
    for (int i = 0; i < u->count; i++) {
        points += tn__nest_points(u->nest[i]);
        for (int a = 0; a < u->nest[i]->access_count; a++)
            if (u->nest[i]->access[a].gathered && !u->nest[i]->access[a].known)
                return false; /* it may fail */
    }
    if (!u->count || points > PHASE_POINTS || (u->count == 1 && target->splits(s->emitter, u->nest[0])))
        return false;
    target->launch(s->emitter, &(tn__kernel_part){.nest = u->nest, .count = u->count}, false, &launch);
    return launch.threads == TN__THREADS_BESIDE || (launch.all_threads && launch.threads < TN__THREADS_BESIDE);
}

/* About how many cycles a launch takes, alone and as a phase, with the tiles of its products chosen for that; 0: it is no phase. */
static double phase_cycles(const tn__schedule_state *s, int launch, const tn__product_limits *limits, double *alone)
{
    double longest = LAUNCH_CYCLES, sum = 0;
    for (int k = 0; k < s->count; k++) {
        const tn__unit *u = &s->unit[k];
        if (u->launch != launch)
            continue;
        if (u->count == 1 && u->nest[0]->product.there) {
            double time = tn__product_settle(u->nest[0], s->fuser->device, NULL);
            longest = time > longest ? time : longest;
            time = tn__product_settle(u->nest[0], s->fuser->device, limits);
            if (time == 0)
                return 0;
            sum += time - LAUNCH_CYCLES;
        } else if (u->value < 0) {
            for (int i = 0; i < u->count; i++)
                sum += (double)(tn__nest_points(u->nest[i]) * u->nest[i]->expr_count) / (limits->multiprocessors * 64);
        }
        if (!is_phase(s, u))
            return 0;
    }
    *alone += longest;
    return PHASE_CYCLES + sum;
}

static int64_t blocks_of(const tn__schedule_state *s, int launch)
{
    int64_t blocks = 0;
    for (int i = 0; i < s->count; i++) {
        tn__part_launch part = {0};
        if (s->unit[i].launch == launch)
            s->emitter->target->launch(s->emitter, &(tn__kernel_part){s->unit[i].nest, s->unit[i].count}, false, &part);
        blocks += part.blocks;
    }
    return blocks;
}

static bool any_before(const tn__schedule_state *s, int launch, const tn__unit *u)
{
    for (int i = 0; i < s->count; i++)
        if (s->unit[i].launch == launch && tn__in_order(s->fuser, &s->unit[i], u))
            return true;
    return false;
}

/* A phase of more blocks than there are takes several rounds: what others have room for moves to them, and what is left gets larger
 * tiles. */
static void spread(tn__schedule_state *s, int64_t most)
{
    for (int i = s->count - 1; i >= 0; i--) {
        tn__unit *u = &s->unit[i], alone = *u;
        if (u->launch == i || blocks_of(s, u->launch) <= most)
            continue;
        int launch = u->launch;
        u->launch = -1;
        int64_t own = blocks_of(s, -1);
        for (int k = launch - 1; k >= 0 && u->launch < 0; k--)
            if (s->unit[k].launch == k) {
                if (any_before(s, k, &alone))
                    break;
                if (own + blocks_of(s, k) <= most && tn__fits_beside(s, i, k))
                    u->launch = k;
            }
        u->launch = u->launch < 0 ? launch : u->launch;
    }
    for (int i = 0; i < s->count; i++) {
        tn__unit *u = &s->unit[i];
        if (!u->nest[0]->product.there)
            continue;
        int64_t all = blocks_of(s, u->launch), others = all - tn__product_blocks(u->nest[0]);
        if (all > most && others < most)
            tn__product_settle(u->nest[0], s->fuser->device, &(tn__product_limits){(int)(most - others), TN__THREADS_BESIDE});
    }
}

bool tn__make_phases(tn__schedule_state *s)
{
    tn__product_limits limits = {s->fuser->device->capabilities.cluster, TN__THREADS_BESIDE};
    double alone = 0, together = LAUNCH_CYCLES - PHASE_CYCLES;
    bool phases = limits.multiprocessors > 0;
    int launches = 0;
    for (int i = 0; i < s->count && phases; i++) {
        if (s->unit[i].launch != i)
            continue;
        double time = phase_cycles(s, i, &limits, &alone);
        phases = time > 0;
        together += time;
        launches++;
    }
    phases = phases && launches > 1 && together < alone + LAUNCH_SAVED * (launches - 1);
    if (phases)
        spread(s, limits.multiprocessors);
    for (int i = 0; i < s->count && !phases; i++)
        if (s->unit[i].count == 1 && s->unit[i].nest[0]->product.there)
            tn__product_settle(s->unit[i].nest[0], s->fuser->device, NULL);
    return phases;
}
