/* SPDX-License-Identifier: MIT */
/* What the options do to a parameter's gradient before its rule sees it: noise, lasso, LARS, decay. */
#include "optim/rules.h"

#include <math.h>
#include "array/draw.h"

/* N(0, noise / t^0.55), from the thread's generator; where each rank updates all parameters, which are to stay the
 * same, from one that is the same on all. */
static tn__node *noisy(const tn__settings *u, tn__node *g)
{
    tn_random_opts opts = {.dtype = (tn_dtype)g->dtype, .device = g->device->id, .generator = u->noise};
    tn__draw d = tn__draw_new("step", tn__shape_value(g->shape), TN_FLOAT32, &opts);
    if (!d.shape)
        return tn__failed();
    tn__node *z = tn__draw_next(&d, TN__OP_RANDOM_NORMAL, (tn_dtype)g->dtype);
    return tn__plus(g, tn__scaled(sqrt(u->set.noise / pow((double)u->t, 0.55)), z));
}

static tn__node *decayed(const tn__settings *u, tn__node *p, tn__node *g)
{
    return tn__plus(g, tn__scaled(u->set.weight_decay, p));
}

/* The decay belongs to the ratio here (You, Gitman, Ginsburg 2017), whatever the rule does with it else. */
static tn__node *with_local_rate(const tn__settings *u, tn__node *p, tn__node *g)
{
    tn__node *size = tn__norm_of(p), *below = tn__raised(tn__norm_of(g), 1e-9);
    if (u->set.weight_decay > 0) {
        below = tn__plus(below, tn__scaled(u->set.weight_decay, size));
        g = decayed(u, p, g);
    }
    tn__node *ratio = tn__over(size, below);
    tn__node *large = tn__with(TN__OP_GREATER, size, u->set.lars_threshold);
    return tn__times(g, tn__where(large, ratio, tn__const_like(ratio, 1)));
}

bool tn__changes_gradients(const tn__settings *u)
{
    return u->set.noise > 0 || u->set.lasso > 0 || u->set.lars ||
           (u->set.weight_decay > 0 && !u->optimizer->rule->decoupled_decay);
}

tn__node *tn__gradient_changed(const tn__settings *u, tn__node *p, tn__node *g)
{
    if (tn__node_is_error(g) || tn__node_is_error(p))
        return tn__node_is_error(g) ? g : p;
    if (u->set.noise > 0)
        g = noisy(u, g);
    if (u->set.lasso > 0)
        g = tn__plus(g, tn__scaled(u->set.lasso, tn__unary(TN__OP_SIGN, p)));
    if (u->set.lars)
        return with_local_rate(u, p, g);
    return u->set.weight_decay > 0 && !u->optimizer->rule->decoupled_decay ? decayed(u, p, g) : g;
}
