/* SPDX-License-Identifier: MIT */
/* Keeping gradients, see gradients.h. */
#include "train/gradients.h"

#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>
#include "core/error.h"
#include "core/memory.h"

#define OPERATION "gradients"

static tn__kept_gradient *place(tn__gradients *g, const tn_array *param)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->items[i].param == param)
            return &g->items[i];
    if (!tn__grow((void **)&g->items, &g->capacity, g->count + 1, sizeof *g->items)) {
        tn__fail_memory(OPERATION, sizeof *g->items);
        return NULL;
    }
    g->items[g->count] = (tn__kept_gradient){.param = param};
    return &g->items[g->count++];
}

static tn_status keep(tn__gradients *g, const tn_array *param)
{
    tn__kept_gradient *kept = place(g, param);
    tn_array *value = kept ? tn_detach(tn_grad(param)) : NULL;
    if (!value || tn_is_error(value))
        return tn_error_code();
    tn_free(kept->value);
    kept->value = tn_own(value);
    return TN_OK;
}

static tn_status evaluate(tn_layer *layer)
{
    int count = tn_param_count(layer), found = 0;
    const tn_array **all = tn__calloc((size_t)count + 1, sizeof *all);
    if (!all)
        return tn__fail_memory(OPERATION, (size_t)count * sizeof *all);
    for (int i = 0; i < count; i++)
        if (tn_has_grad(tn_param(layer, i)))
            all[found++] = tn_grad(tn_param(layer, i));
    tn_status status = tn_eval_all(found, all);
    tn__free(all);
    return status;
}

static tn_status hook(tn_optimizer *optimizer, tn_layer *layer, void *user)
{
    (void)optimizer;
    tn_status status = evaluate(layer);
    for (int i = 0; i < tn_param_count(layer) && status == TN_OK; i++)
        if (tn_has_grad(tn_param(layer, i)))
            status = keep(user, tn_param(layer, i));
    return status;
}

tn_status tn__gradients_watch(tn__gradients *gradients, tn_trainer *trainer)
{
    if (gradients->trainer)
        return TN_OK;
    gradients->trainer = trainer;
    tn_named_optimizer named;
    tn_status status = TN_OK;
    for (int i = 0; status == TN_OK && (named = tn_updater_optimizer_at(tn_trainer_updater(trainer), i)).optimizer; i++)
        status = tn_optimizer_add_hook(named.optimizer, hook, gradients);
    return status;
}

const tn_array *tn__gradients_of(const tn__gradients *gradients, const tn_array *param)
{
    for (size_t i = 0; i < gradients->count; i++)
        if (gradients->items[i].param == param)
            return gradients->items[i].value;
    return NULL;
}

void tn__gradients_free(tn__gradients *gradients)
{
    tn_named_optimizer named;
    const tn_updater *updater = gradients->trainer ? tn_trainer_updater(gradients->trainer) : NULL;
    for (int i = 0; updater && (named = tn_updater_optimizer_at(updater, i)).optimizer; i++)
        tn_optimizer_remove_hook(named.optimizer, hook, gradients);
    for (size_t i = 0; i < gradients->count; i++)
        tn_free(gradients->items[i].value);
    tn__free(gradients->items);
    *gradients = (tn__gradients){0};
}
