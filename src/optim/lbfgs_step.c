/* SPDX-License-Identifier: MIT */
/* Steps of L-BFGS: where to look, how far to go, when to end. */
#include <math.h>

#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>
#include "array/guard.h"
#include "optim/lbfgs.h"
#include "optim/line_search.h"

/* The gradients of all parameters in a row, zeros for those that have none, as frozen ones; clears them. */
static tn_array *take_gradients(tn_layer *layer)
{
    int count = tn_param_count(layer), given = 0;
    TN__FREED tn_array **rows = tn__alloc(((size_t)count + 1) * sizeof *rows);
    if (!rows) {
        tn__fail_memory("lbfgs_step", ((size_t)count + 1) * sizeof *rows);
        return tn__failed_array();
    }
    for (int i = 0; i < count; i++) {
        tn_array *param = tn_param(layer, i);
        bool has = tn_has_grad(param);
        given += has;
        rows[i] = tn_reshape(has ? tn_grad(param) : tn_zeros_like(param),
                             (tn_shape){1, {tn_size(param)}});
    }
    if (!given) {
        tn__fail(TN_ERR_STATE, "lbfgs_step", "the loss gave no parameter a gradient: compute it from the layer's");
        return tn__failed_array();
    }
    return tn_concatenate(count, (const tn_array *const *)rows, 0);
}

/* ---- the loss and its gradient somewhere ---- */

typedef struct run {
    tn_lbfgs *lbfgs;
    tn_loss_fn loss;
    void *user;
    tn_array *from; /* the parameters where the iteration began; owned, as the next two are the run's alone */
    tn_array *direction; /* borrowed */
    int evaluations;
} run;

/* The loss with the parameters as they are, and its gradient. */
static tn_status evaluate(run *r, double *value, tn_array **gradient)
{
    tn_layer *layer = r->lbfgs->layer;
    tn__scope_guard scope = tn__scope_enter();
    tn_layer_clear_grads(layer);
    r->evaluations++;
    int depth = tn__no_grad_depth;
    tn__no_grad_depth = 0;
    tn_array *loss = r->loss(r->user);
    tn_status status = loss ? tn_status_of(loss) : tn__fail_null("lbfgs_step", "a loss from the function");
    if (status == TN_OK && tn_size(loss) != 1)
        status = tn__fail(TN_ERR_SHAPE, "lbfgs_step", "expected a loss of one element, got %lld",
                          (long long)tn_size(loss));
    if (status == TN_OK)
        status = tn_backward_with(loss, NULL);
    tn__no_grad_depth = depth;
    if (status == TN_OK)
        status = tn__lbfgs_keep(gradient, take_gradients(layer));
    if (status == TN_OK)
        status = tn__lbfgs_number(tn_reshape(loss, (tn_shape){0}), value);
    tn_layer_clear_grads(layer);
    tn__scope_leave(&scope);
    return status;
}

/* Gives each parameter that trains its elements of the vector. Zero times what is no number is none: in the direction,
 * where the loss was none, frozen ones may have such, too. */
static tn_status write_trained(const tn_array *vector, tn_layer *layer)
{
    int count = tn_param_count(layer);
    int64_t at = 0;
    tn_status status = TN_OK;
    for (int i = 0; i < count && status == TN_OK; i++) {
        tn_array *param = tn_param(layer, i);
        int64_t size = tn_size(param);
        if (tn__array_node(param)->flags & TN__NODE_LEAF_VAR)
            status = tn_assign(param, tn_reshape(tn_slice_axis(vector, 0, at, at + size, 1), tn_shape_of(param)));
        at += size;
    }
    return status;
}

/* The parameters at a distance along the direction. */
static tn_status go_to(run *r, double distance)
{
    tn__scope_guard scope = tn__scope_enter();
    tn_array *x = tn_add(r->from, tn__lbfgs_times(r->direction, distance));
    tn_status status = tn_eval(x);
    if (status == TN_OK)
        status = write_trained(x, r->lbfgs->layer);
    tn__scope_leave(&scope);
    return status;
}

static tn_status look(void *user, tn__line_point *p)
{
    run *r = user;
    tn_status status = go_to(r, p->at);
    if (status == TN_OK)
        status = evaluate(r, &p->value, &p->gradient);
    return status == TN_OK ? tn__lbfgs_number(tn__lbfgs_product(p->gradient, r->direction), &p->slope) : status;
}

/* ---- a step ---- */

/* Of elements, by their size. */
static tn_status largest(const tn_array *x, double *value)
{
    return tn__lbfgs_number(tn_max_with(tn_abs(x), NULL), value);
}

typedef struct standing {
    double value;
    tn_array *gradient; /* owned */
    double steepest;    /* its largest element */
} standing;

/* Moves along the direction; *at is where that ends, unless it is the last iteration, after which nobody looks. */
static tn_status move(run *r, standing *at, double slope, bool last)
{
    tn_lbfgs *lbfgs = r->lbfgs;
    double sum = 0, distance = lbfgs->set.lr;
    tn_status status = TN_OK;
    if (lbfgs->iterations == 1) {
        status = tn__lbfgs_number(tn_sum_with(tn_abs(at->gradient), NULL), &sum);
        distance *= fmin(1, 1 / sum);
    }
    if (status != TN_OK)
        return status;
    if (!lbfgs->set.strong_wolfe) {
        lbfgs->moved = distance;
        status = go_to(r, distance);
        return status == TN_OK && !last ? evaluate(r, &at->value, &at->gradient) : status;
    }
    tn__line line = {.look = look, .user = r, .start = {0, at->value, slope, at->gradient}};
    tn__line_point found = {0};
    status = largest(r->direction, &line.longest);
    if (status == TN_OK)
        status = tn__line_search(&line, distance, &found);
    if (status == TN_OK)
        status = go_to(r, found.at);
    if (status != TN_OK) {
        tn__line_point_free(&found);
        return status;
    }
    lbfgs->moved = found.at;
    tn__lbfgs_forget(&at->gradient);
    at->gradient = found.gradient;
    at->value = found.value;
    return TN_OK;
}

/* One iteration; *goes_on: it is not the last one. */
static tn_status iterate(run *r, standing *at, int iteration, bool *goes_on)
{
    tn_lbfgs *lbfgs = r->lbfgs;
    const tn_lbfgs_opts *set = &lbfgs->set;
    double slope = 0, longest = 0, before = at->value;
    bool last = iteration == set->iterations;
    *goes_on = false;
    lbfgs->iterations++;
    tn_status status = tn__lbfgs_choose_direction(lbfgs, at->gradient);
    if (status == TN_OK)
        status = tn__lbfgs_keep(&lbfgs->gradient, at->gradient);
    if (status == TN_OK)
        status = tn__lbfgs_number(tn__lbfgs_product(at->gradient, lbfgs->direction), &slope);
    if (status != TN_OK || slope > -set->change_tolerance) {
        lbfgs->moved = 0;
        return status;
    }
    r->direction = lbfgs->direction;
    status = tn__lbfgs_keep(&r->from, tn_params_to_vector(lbfgs->layer));
    if (status == TN_OK)
        status = move(r, at, slope, last);
    if (status == TN_OK)
        status = largest(at->gradient, &at->steepest);
    if (status == TN_OK)
        status = largest(lbfgs->direction, &longest);
    *goes_on = status == TN_OK && !last && r->evaluations < set->evaluations &&
               !(at->steepest <= set->gradient_tolerance) &&
               !(longest * lbfgs->moved <= set->change_tolerance) &&
               !(fabs(at->value - before) < set->change_tolerance);
    return status;
}

static tn_status step(run *r, double *loss)
{
    standing at = {0};
    tn_array *start = NULL; /* to go back to */
    tn_status status = evaluate(r, &at.value, &at.gradient);
    *loss = at.value;
    if (status == TN_OK)
        status = largest(at.gradient, &at.steepest);
    if (status == TN_OK)
        status = tn__lbfgs_keep(&start, tn_params_to_vector(r->lbfgs->layer));
    bool goes_on = status == TN_OK && !(at.steepest <= r->lbfgs->set.gradient_tolerance);
    for (int i = 1; goes_on; i++) {
        tn__scope_guard scope = tn__scope_enter();
        status = iterate(r, &at, i, &goes_on);
        tn__scope_leave(&scope);
    }
    if (status != TN_OK) {
        if (start)
            (void)write_trained(start, r->lbfgs->layer);
        tn__lbfgs_begin_anew(r->lbfgs);
    }
    tn__lbfgs_forget(&start);
    tn__lbfgs_forget(&at.gradient);
    tn__lbfgs_forget(&r->from);
    return status;
}

/* Vectors of an earlier step to where the parameters are now. */
static tn_status follow_parameters(tn_lbfgs *lbfgs)
{
    if (!lbfgs->gradient)
        return TN_OK;
    tn_device device = tn_layer_device(lbfgs->layer);
    tn_status status = TN_OK;
    tn__scope_guard scope = tn__scope_enter();
    int64_t size = tn_param_total(lbfgs->layer);
    if (size != tn_size(lbfgs->gradient))
        status = tn__fail(TN_ERR_STATE, "lbfgs_step",
                          "the layer had parameters of %lld elements and has some of %lld: make another tn_lbfgs",
                          (long long)tn_size(lbfgs->gradient), (long long)size);
    bool moves = status == TN_OK && !tn_device_equal(device, tn_device_of(lbfgs->gradient));
    for (int i = 0; i < lbfgs->movement_count && status == TN_OK && moves; i++) {
        status = tn__lbfgs_keep(&lbfgs->movements[i].s, tn_to(lbfgs->movements[i].s, device));
        if (status == TN_OK)
            status = tn__lbfgs_keep(&lbfgs->movements[i].y, tn_to(lbfgs->movements[i].y, device));
    }
    if (status == TN_OK && moves)
        status = tn__lbfgs_keep(&lbfgs->direction, tn_to(lbfgs->direction, device));
    if (status == TN_OK && moves)
        status = tn__lbfgs_keep(&lbfgs->gradient, tn_to(lbfgs->gradient, device));
    tn__scope_leave(&scope);
    return status;
}

tn_status tn_lbfgs_step(tn_lbfgs *lbfgs, tn_loss_fn loss, void *user, double *value)
{
    double ignored;
    tn_status status = tn__lbfgs_raise(lbfgs);
    if (status == TN_OK && !loss)
        status = tn__fail_null("lbfgs_step", "a function that gives the loss");
    if (status != TN_OK)
        return status;
    TN__GUARD_OF("lbfgs_step", lbfgs);
    run r = {.lbfgs = lbfgs, .loss = loss, .user = user};
    tn__no_grad_depth++;
    tn__scope_guard scope = tn__scope_enter();
    status = follow_parameters(lbfgs);
    if (status == TN_OK)
        status = step(&r, value ? value : &ignored);
    tn__scope_leave(&scope);
    tn__no_grad_depth--;
    return status;
}
