/* SPDX-License-Identifier: MIT */
/*
 * L-BFGS: its life, what it remembers, and the direction that this gives. Unlike the optimizers of the table it asks
 * for the loss several times a step, and has no state a parameter: all parameters are one vector, and what it remembers
 * are its last movements and what the gradient did meanwhile.
 */
#include "optim/lbfgs.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <tanso/array.h>
#include <tanso/engine.h>
#include "array/guard.h"
#include "core/options.h"

#define LEAST_CURVATURE 1e-10 /* movements along which the gradient hardly changes say nothing of its curvature */

/* ---- making and freeing ---- */

static tn_lbfgs memory_lbfgs = {.is_static = true};
static tn__object_kind objects = TN__OBJECT_KIND(tn_lbfgs, "lbfgs");

static tn_status each_array(const void *owner, tn_status (*take)(void *user, const tn_array *param, tn_array *array),
                            void *user)
{
    (void)owner, (void)take, (void)user; /* vectors are of no one parameter: they move when they are needed */
    return TN_OK;
}

static tn_status settle(const tn_lbfgs_opts *given, tn_lbfgs_opts *set)
{
    set->lr = TN__OPTION(given, lr, 1);
    set->iterations = TN__OPTION(given, iterations, 20);
    int more = set->iterations > 0 ? set->iterations / 4 : 0;
    more = set->iterations < INT_MAX - more ? more : 0;
    set->evaluations = TN__OPTION(given, evaluations, set->iterations + more);
    set->gradient_tolerance = TN__OPTION(given, gradient_tolerance, 1e-7);
    set->change_tolerance = TN__OPTION(given, change_tolerance, 1e-9);
    set->history = TN__OPTION(given, history, 100);
    if (!(set->lr > 0) || !isfinite(set->lr))
        return tn__fail(TN_ERR_VALUE, "lbfgs", "expected an lr above 0, got %g", set->lr);
    if (set->iterations < 1 || set->evaluations < 1 || set->history < 1)
        return tn__fail(TN_ERR_VALUE, "lbfgs",
                        "expected 1 or more iterations, evaluations and history; got %d, %d and %d", set->iterations,
                        set->evaluations, set->history);
    if (!(set->gradient_tolerance >= 0) || !(set->change_tolerance >= 0))
        return tn__fail(TN_ERR_VALUE, "lbfgs", "expected tolerances of 0 or more, got %g and %g",
                        set->gradient_tolerance, set->change_tolerance);
    return TN_OK;
}

static tn_lbfgs *failed(void)
{
    tn_lbfgs *lbfgs = tn__object_new(&objects);
    if (!lbfgs)
        return &memory_lbfgs;
    lbfgs->error = tn__error_retain(tn__error_last());
    return lbfgs;
}

tn_lbfgs *tn_lbfgs_with(tn_layer *layer, const tn_lbfgs_opts *opts)
{
    tn_lbfgs_opts set = {.strong_wolfe = opts && opts->strong_wolfe};
    tn_status status = layer ? tn__layer_raise(layer) : tn__fail_null("lbfgs", "a layer");
    if (status == TN_OK)
        status = settle(opts, &set);
    if (status != TN_OK)
        return failed();
    tn__movement *movements = tn__calloc((size_t)set.history, sizeof *movements);
    tn_lbfgs *lbfgs = movements ? tn__object_new(&objects) : NULL;
    if (!lbfgs) {
        tn__free(movements);
        tn__fail_memory("lbfgs", (size_t)set.history * sizeof *movements);
        return &memory_lbfgs;
    }
    lbfgs->layer = layer;
    lbfgs->set = set;
    lbfgs->movements = movements;
    lbfgs->scale = 1;
    lbfgs->follower = (tn__follower){.owner = lbfgs, .each = each_array};
    tn__layer_follow(layer, &lbfgs->follower);
    return lbfgs;
}

void tn__lbfgs_forget(tn_array **x)
{
    tn__array_free_kept(*x);
    *x = NULL;
}

static void forget_movement(tn__movement *m)
{
    tn__lbfgs_forget(&m->s);
    tn__lbfgs_forget(&m->y);
}

void tn__lbfgs_begin_anew(tn_lbfgs *lbfgs)
{
    for (int i = 0; i < lbfgs->movement_count; i++)
        forget_movement(&lbfgs->movements[i]);
    lbfgs->movement_count = 0;
    tn__lbfgs_forget(&lbfgs->direction);
    tn__lbfgs_forget(&lbfgs->gradient);
    lbfgs->scale = 1;
    lbfgs->iterations = 0;
}

void tn_lbfgs_free(tn_lbfgs *lbfgs)
{
    if (!lbfgs || lbfgs->is_static || !tn__object_may_go(&objects, &lbfgs->object) || tn__at_work(lbfgs, "lbfgs"))
        return;
    tn__layer_unfollow(&lbfgs->follower);
    tn__lbfgs_begin_anew(lbfgs);
    tn__free(lbfgs->movements);
    if (lbfgs->error)
        tn__error_release(lbfgs->error);
    tn__object_end(&objects, &lbfgs->object);
}

tn_status tn__lbfgs_raise(const tn_lbfgs *lbfgs)
{
    if (!lbfgs)
        return tn__fail_null("lbfgs", "one that tn_lbfgs gave");
    if (lbfgs->is_static)
        return tn__fail_memory("lbfgs", sizeof *lbfgs);
    if (lbfgs->error)
        return tn__error_raise(lbfgs->error);
    return lbfgs->follower.layer ? TN_OK
                                 : tn__fail(TN_ERR_STATE, "lbfgs",
                                            "the layer whose parameters this updates has been freed: free this, too");
}

tn_status tn_lbfgs_status(const tn_lbfgs *lbfgs)
{
    if (!lbfgs)
        return TN_ERR_VALUE;
    return lbfgs->is_static ? TN_ERR_MEMORY : lbfgs->error ? tn__error_status(lbfgs->error) : TN_OK;
}

int64_t tn_lbfgs_iterations(const tn_lbfgs *lbfgs) { return lbfgs ? lbfgs->iterations : 0; }

/* ---- vectors ---- */

tn_status tn__lbfgs_number(const tn_array *x, double *value)
{
    return tn_to_host(tn_cast(x, TN_FLOAT64), value, sizeof *value);
}

tn_array *tn__lbfgs_product(const tn_array *a, const tn_array *b) { return tn_sum_with(tn_multiply(a, b), NULL); }

tn_array *tn__lbfgs_times(const tn_array *x, double factor)
{
    return tn_multiply(x, tn_weak_float(factor));
}

tn_status tn__lbfgs_keep(tn_array **place, tn_array *x)
{
    tn_status status = tn_eval(x);
    if (status != TN_OK)
        return status;
    tn_array *kept = tn__array_own_new(tn__array_node(x));
    if (tn__handle_of(kept)->is_static)
        return TN_ERR_MEMORY;
    tn__lbfgs_forget(place);
    *place = kept;
    return TN_OK;
}

/* ---- the direction ---- */

/* Remembers the last movement, in the place of the oldest if there is no room, unless it says nothing. */
static tn_status remember(tn_lbfgs *lbfgs, const tn_array *gradient)
{
    tn__movement m = {0};
    double sy = 0, yy = 0;
    tn_status status = tn__lbfgs_keep(&m.y, tn_subtract(gradient, lbfgs->gradient));
    if (status == TN_OK)
        status = tn__lbfgs_keep(&m.s, tn__lbfgs_times(lbfgs->direction, lbfgs->moved));
    if (status == TN_OK)
        status = tn__lbfgs_number(tn__lbfgs_product(m.y, m.s), &sy);
    if (status == TN_OK)
        status = tn__lbfgs_number(tn__lbfgs_product(m.y, m.y), &yy);
    if (status != TN_OK || !(sy > LEAST_CURVATURE)) {
        forget_movement(&m);
        return status;
    }
    if (lbfgs->movement_count == lbfgs->set.history) {
        forget_movement(&lbfgs->movements[0]);
        memmove(lbfgs->movements, lbfgs->movements + 1, (size_t)--lbfgs->movement_count * sizeof m);
    }
    m.rho = 1 / sy;
    lbfgs->scale = sy / yy;
    lbfgs->movements[lbfgs->movement_count++] = m;
    return TN_OK;
}

/* Minus the gradient times the inverse Hessian, as the movements tell of it: the two loops of Nocedal 1980. */
static tn_array *two_loops(const tn_lbfgs *lbfgs, const tn_array *gradient)
{
    int count = lbfgs->movement_count;
    TN__FREED tn_array **alpha = tn__alloc(((size_t)count + 1) * sizeof *alpha);
    if (!alpha) {
        tn__fail_memory("lbfgs_step", ((size_t)count + 1) * sizeof *alpha);
        return tn__failed_array();
    }
    tn_array *q = tn_negative(gradient);
    for (int i = count - 1; i >= 0; i--) {
        const tn__movement *m = &lbfgs->movements[i];
        alpha[i] = tn__lbfgs_times(tn__lbfgs_product(m->s, q), m->rho);
        q = tn_subtract(q, tn_multiply(m->y, alpha[i]));
    }
    q = tn__lbfgs_times(q, lbfgs->scale);
    for (int i = 0; i < count; i++) {
        const tn__movement *m = &lbfgs->movements[i];
        q = tn_add(q, tn_multiply(m->s, tn_subtract(alpha[i], tn__lbfgs_times(tn__lbfgs_product(m->y, q), m->rho))));
    }
    return q;
}

tn_status tn__lbfgs_choose_direction(tn_lbfgs *lbfgs, const tn_array *gradient)
{
    tn_status status = lbfgs->iterations > 1 ? remember(lbfgs, gradient) : TN_OK;
    return status == TN_OK ? tn__lbfgs_keep(&lbfgs->direction, two_loops(lbfgs, gradient)) : status;
}
