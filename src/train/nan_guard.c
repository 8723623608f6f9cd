/* SPDX-License-Identifier: MIT */
/*
 * Ending a run whose parameters are not finite any more. Whether all are is one value on the device that each iteration
 * adds its own to; it is read where that costs nothing, and elsewhere now and then, as reading waits.
 */
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>
#include "array/build.h"
#include "optim/optimizer.h"
#include "train/ext.h"

#define OPERATION "fail_on_nan"

typedef struct guard {
    int every;
    int64_t looked;   /* the iteration that was read last */
    tn_array **sound; /* one an optimizer: whether all of its parameters have been finite since the last look */
    int count;
} guard;

/* Whether all elements of a layer's parameters are finite, and `before` is true (NULL: it is). */
static tn_array *all_finite(const tn_layer *layer, const tn_array *before)
{
    tn_array *all = NULL;
    for (int i = -1; i < tn_param_count(layer); i++) {
        const tn_array *one = i < 0 ? before : tn_all_with(tn_isfinite(tn_param(layer, i)), NULL);
        if (one)
            all = all ? tn_logical_and(all, one) : (tn_array *)one;
    }
    return all;
}

static tn_status fail(const char *name, const tn_layer *layer)
{
    for (int i = 0; i < tn_param_count(layer); i++)
        if (!tn_item(tn_all_with(tn_isfinite(tn_param(layer, i)), NULL)))
            return tn__fail(TN_ERR_NAN, OPERATION,
                            "the parameter '%s' that the optimizer '%s' trains is not finite any more: go on from an "
                            "earlier snapshot with a lower learning rate, or clip the gradients",
                            tn_param_name(layer, i), name);
    return tn__fail(TN_ERR_NAN, OPERATION, "a parameter that the optimizer '%s' trains was not finite", name);
}

static tn_status look(guard *g, int i, tn_named_optimizer named, bool due)
{
    const tn_layer *layer = named.optimizer->layer;
    if (tn_param_count(layer) == 0)
        return TN_OK;
    tn_status status = TN_OK;
    TN_SCOPE
        TN_NO_GRAD {
            tn_array *all = all_finite(layer, g->sound[i]);
            bool waits = !tn__device_get(tn_device_of(all))->capabilities.host_memory;
            status = tn_eval(all);
            tn__array_free_kept(g->sound[i]);
            g->sound[i] = status == TN_OK && waits && !due ? tn__array_own_new(tn__node_of(all, OPERATION)) : NULL;
            if (status == TN_OK && !g->sound[i] && !tn_item(all))
                status = tn__or_latched(fail(named.name, layer));
        }
    return tn__or_latched(status);
}

static tn_status call(tn_trainer *trainer, void *user)
{
    guard *g = user;
    int64_t iteration = tn_trainer_iteration(trainer);
    bool due = iteration - g->looked >= g->every || tn_trainer_is_new_epoch(trainer);
    g->looked = due ? iteration : g->looked;
    tn_status status = TN_OK;
    for (int i = 0; i < g->count && status == TN_OK; i++)
        status = look(g, i, tn_updater_optimizer_at(tn_trainer_updater(trainer), i), due);
    return status;
}

static void forget(guard *g)
{
    for (int i = 0; i < g->count; i++)
        tn__array_free_kept(g->sound[i]);
    tn__free(g->sound);
    g->sound = NULL;
    g->count = 0;
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    guard *g = user;
    forget(g);
    while (tn_updater_optimizer_at(tn_trainer_updater(trainer), g->count).optimizer)
        g->count++;
    g->looked = tn_trainer_iteration(trainer);
    g->sound = tn__calloc((size_t)g->count + 1, sizeof *g->sound);
    if (g->sound)
        return TN_OK;
    g->count = 0;
    return tn__fail_memory(OPERATION, sizeof *g->sound);
}

static void free_guard(void *user)
{
    forget(user);
    tn__free(user);
}

static const tn_extension_kind kind = {.name = "FailOnNonNumber",
                                       .priority = TN_PRIORITY_READER,
                                       .initialize = initialize,
                                       .call = call,
                                       .free = free_guard};

tn_extension *tn_fail_on_nan_with(const tn_fail_on_nan_opts *opts)
{
    guard *g = tn__calloc(1, sizeof *g);
    tn_status status = TN_OK;
    if (g)
        g->every = TN__OPTION(opts, every, 100);
    if (g && g->every < 1)
        status = tn__fail(TN_ERR_VALUE, OPERATION, "expected a look each 1 or more iterations, got %d", g->every);
    return tn__extension_of(&kind, g, status);
}
