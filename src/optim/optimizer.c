/* SPDX-License-Identifier: MIT */
/* The life of optimizers: settings and their checks, the parameters they follow, hooks. */
#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tanso/device.h>
#include "core/options.h"

/* ---- settings ---- */

#define FIELD(name) #name, offsetof(tn_optimizer_opts, name)
const tn__field tn__optimizer_fields[TN__FIELD_COUNT] = {
    {FIELD(lr), INFINITY},        {FIELD(momentum), 1},         {FIELD(beta1), 1},
    {FIELD(beta2), 1},            {FIELD(eps), INFINITY},       {FIELD(weight_decay), INFINITY},
    {FIELD(clip_norm), INFINITY}, {FIELD(clip_value), INFINITY},
};

double *tn__field_of(tn_optimizer_opts *opts, int field)
{
    return (double *)((char *)opts + tn__optimizer_fields[field].offset);
}

/* Names of the rules that read a field: "momentum, nesterov". */
static void rules_with(unsigned bit, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < tn__optimizer_rule_count && length < size; i++) {
        if (tn__optimizer_rules[i].fields & bit)
            length +=
                (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", tn__optimizer_rules[i].name);
    }
}

/* The options with the rule's defaults filled in; an error record's status if a value can't be. */
static tn_status settle(const char *operation, const tn__optimizer_rule *rule, unsigned given, tn_optimizer_opts *set)
{
    tn_optimizer_opts defaults = rule->defaults;
    for (int i = 0; i < TN__FIELD_COUNT; i++) {
        const tn__field *field = &tn__optimizer_fields[i];
        double *value = tn__field_of(set, i);
        unsigned bit = 1u << i;
        if (*value == 0 && !(given & bit) && !tn__option_written(set->_, field->name)) {
            *value = *tn__field_of(&defaults, i);
            continue;
        }
        if (!(rule->fields & bit)) {
            char others[80];
            rules_with(bit, others, sizeof others);
            return tn__fail(TN_ERR_VALUE, operation, "%s has no use for %s, which belongs to %s: leave it out",
                            rule->name, field->name, others);
        }
        if (!(*value >= 0 && *value < field->below))
            return tn__fail(TN_ERR_VALUE, operation, "expected %s >= 0 and %s, got %g", field->name,
                            field->below == 1 ? "< 1" : "finite", *value);
    }
    set->_ = NULL; /* the caller's */
    return TN_OK;
}

/* ---- making and freeing ---- */

static tn_optimizer memory_optimizer = {.is_static = true};

static tn_optimizer *new_optimizer(void)
{
    tn_optimizer *optimizer = tn__calloc(1, sizeof *optimizer);
    if (optimizer)
        return optimizer;
    tn__fail_memory("optimizer", sizeof *optimizer);
    return &memory_optimizer;
}

tn_optimizer *tn__optimizer_error(tn__error *error)
{
    tn_optimizer *optimizer = new_optimizer();
    if (optimizer->is_static)
        tn__error_release(error);
    else
        optimizer->error = error;
    return optimizer;
}

static tn_status each_state(const void *owner, tn_status (*take)(void *user, const tn_array *param, tn_array *array),
                            void *user)
{
    const tn_optimizer *optimizer = owner;
    tn_status status = TN_OK;
    for (size_t i = 0; i < optimizer->tracked_count; i++) {
        const tn__tracked *tracked = &optimizer->tracked[i];
        for (int s = 0; s < optimizer->rule->states && status == TN_OK; s++) {
            if (tracked->state[s])
                status = take(user, tracked->param, tracked->state[s]);
        }
    }
    return status;
}

tn_optimizer *tn__optimizer_make(const char *operation, const tn__optimizer_rule *rule, tn_layer *layer,
                                 const tn_optimizer_opts *opts, unsigned given)
{
    tn_optimizer_opts set = opts ? *opts : (tn_optimizer_opts){0};
    tn_status status = layer ? tn__layer_raise(layer)
                             : tn__fail(TN_ERR_VALUE, operation, "expected a layer, got NULL");
    if (status == TN_OK)
        status = settle(operation, rule, given, &set);
    if (status != TN_OK)
        return tn__optimizer_error(tn__error_retain(tn__error_last()));
    tn_optimizer *optimizer = new_optimizer();
    if (optimizer->is_static)
        return optimizer;
    optimizer->rule = rule;
    optimizer->layer = layer;
    optimizer->set = set;
    optimizer->follower = (tn__follower){.owner = optimizer, .each = each_state};
    tn__layer_follow(layer, &optimizer->follower);
    return optimizer;
}

static void free_tracked(tn__tracked *tracked)
{
    for (int i = 0; i < TN__MAX_STATE; i++) {
        tn_free(tracked->state[i]);
        tn__free(tracked->state_name[i]);
    }
    tn__free(tracked->path);
}

void tn_optimizer_free(tn_optimizer *optimizer)
{
    if (!optimizer || optimizer->is_static)
        return;
    tn__layer_unfollow(&optimizer->follower);
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        free_tracked(&optimizer->tracked[i]);
    tn__free(optimizer->tracked);
    tn__free(optimizer->work);
    tn__free(optimizer->roots);
    tn__free(optimizer->hooks);
    if (optimizer->error)
        tn__error_release(optimizer->error);
    tn__free(optimizer);
}

tn_device tn_optimizer_device(const tn_optimizer *optimizer)
{
    if (!optimizer)
        tn__fail_null("device_of", "an optimizer");
    return optimizer && optimizer->layer ? tn_layer_device(optimizer->layer) : (tn_device){0};
}

tn_status tn_optimizer_status(const tn_optimizer *optimizer)
{
    if (!optimizer)
        return TN_ERR_VALUE;
    if (optimizer->is_static)
        return TN_ERR_MEMORY;
    return optimizer->error ? tn__error_status(optimizer->error) : TN_OK;
}

tn_status tn__optimizer_raise(const tn_optimizer *optimizer)
{
    if (!optimizer)
        return tn__fail_null("optimizer", "an optimizer");
    if (optimizer->is_static)
        return tn__fail_memory("optimizer", sizeof *optimizer);
    return optimizer->error ? tn__error_raise(optimizer->error) : TN_OK;
}

/* ---- the parameters ---- */

static bool track(tn_optimizer *optimizer, size_t at, const tn__param *param)
{
    if (!tn__grow((void **)&optimizer->tracked, &optimizer->tracked_capacity, optimizer->tracked_count + 1,
                  sizeof *optimizer->tracked))
        return false;
    tn__tracked tracked = {.param = param->value, .path = tn__strdup(param->path)};
    bool fine = tracked.path != NULL;
    for (int i = 0; i < optimizer->rule->states && fine; i++)
        fine = (tracked.state_name[i] = tn__format("%s.%s", param->path, optimizer->rule->state[i])) != NULL;
    if (!fine) {
        free_tracked(&tracked);
        return false;
    }
    tn__tracked *place = &optimizer->tracked[at];
    memmove(place + 1, place, (optimizer->tracked_count - at) * sizeof *place);
    *place = tracked;
    optimizer->tracked_count++;
    return true;
}

/* Parameters only ever come; those that came lie anywhere between the known ones, whose order stays. */
tn_status tn__optimizer_sync(tn_optimizer *optimizer)
{
    const tn__param *items;
    int count;
    if (optimizer->seen == optimizer->layer->changes)
        return TN_OK;
    if (!tn__layer_flat(optimizer->layer, &items, &count))
        return TN_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        bool known = (size_t)i < optimizer->tracked_count && optimizer->tracked[i].param == items[i].value;
        if (!known && !track(optimizer, (size_t)i, &items[i]))
            return tn__fail_memory("optimizer", sizeof(tn__tracked));
    }
    if (!tn__grow((void **)&optimizer->work, &optimizer->work_capacity, (size_t)count, sizeof *optimizer->work) ||
        !tn__grow((void **)&optimizer->roots, &optimizer->root_capacity, (1 + TN__MAX_STATE) * (size_t)count,
                  sizeof *optimizer->roots))
        return tn__fail_memory("optimizer", (size_t)count * sizeof *optimizer->work);
    optimizer->seen = optimizer->layer->changes;
    return TN_OK;
}

/* ---- settings that may change during training ---- */

double tn_optimizer_lr(const tn_optimizer *optimizer)
{
    return optimizer ? optimizer->set.lr : 0;
}

void tn_optimizer_set_lr(tn_optimizer *optimizer, double lr)
{
    if (tn__optimizer_raise(optimizer) != TN_OK)
        return;
    if (!(lr >= 0 && isfinite(lr)))
        tn__fail(TN_ERR_VALUE, "optimizer_set_lr", "expected a finite learning rate >= 0, got %g", lr);
    else
        optimizer->set.lr = lr;
}

int64_t tn_optimizer_steps(const tn_optimizer *optimizer)
{
    return optimizer ? optimizer->steps : 0;
}

void tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t steps)
{
    if (tn__optimizer_raise(optimizer) != TN_OK)
        return;
    if (steps < 0)
        tn__fail(TN_ERR_VALUE, "optimizer_set_steps", "expected a count >= 0, got %lld", (long long)steps);
    else
        optimizer->steps = steps;
}

tn_status tn_optimizer_add_hook(tn_optimizer *optimizer, tn_gradient_hook hook, void *user)
{
    tn_status status = tn__optimizer_raise(optimizer);
    if (status != TN_OK)
        return status;
    if (!hook)
        return tn__fail_null("optimizer_add_hook", "a function");
    if (!tn__grow((void **)&optimizer->hooks, &optimizer->hook_capacity, optimizer->hook_count + 1,
                  sizeof *optimizer->hooks))
        return tn__fail_memory("optimizer_add_hook", sizeof *optimizer->hooks);
    optimizer->hooks[optimizer->hook_count++] = (tn__hook){.run = hook, .user = user};
    return TN_OK;
}
