/* SPDX-License-Identifier: MIT */
/* Hyperparameters: the table of fields, defaults and checks, those of a pattern of parameters, and reading and setting
 * them by name. */
#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/options.h"

#define FIELD(type, name, least, below, usual) \
    {#name, offsetof(tn_optimizer_opts, name), sizeof(type) == sizeof(bool), least, below, usual},
const tn__field tn__optimizer_fields[TN__FIELD_COUNT] = {TN_OPTIMIZER_FIELDS(FIELD)};

double tn__field_get(const tn_optimizer_opts *opts, int field)
{
    const void *at = (const char *)opts + tn__optimizer_fields[field].offset;
    return tn__optimizer_fields[field].flag ? (double)*(const bool *)at : *(const double *)at;
}

void tn__field_put(tn_optimizer_opts *opts, int field, double value)
{
    void *at = (char *)opts + tn__optimizer_fields[field].offset;
    if (tn__optimizer_fields[field].flag)
        *(bool *)at = value != 0;
    else
        *(double *)at = value;
}

/* ---- checks ---- */

/* Names of the rules that read a field: "momentum_sgd, nesterov". */
static void rules_with(unsigned bit, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < tn__optimizer_rule_count && length < size; i++) {
        if (tn__rule_fields(&tn__optimizer_rules[i]) & bit)
            length +=
                (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", tn__optimizer_rules[i].name);
    }
}

static tn_status check_value(const char *operation, int i, double value)
{
    const tn__field *field = &tn__optimizer_fields[i];
    if (value >= field->least && value < field->below)
        return TN_OK;
    if (field->least != 0)
        return tn__fail(TN_ERR_VALUE, operation, "expected %s to be a number, got %g", field->name, value);
    return tn__fail(TN_ERR_VALUE, operation, "expected %s >= 0 and %s, got %g", field->name,
                    field->below == 1 ? "< 1" : field->below == 2 ? "0 or 1" : "finite", value);
}

tn_status tn__field_check(const char *operation, const tn__optimizer_rule *rule, int i, double value)
{
    unsigned bit = 1u << i;
    if (tn__rule_fields(rule) & bit)
        return check_value(operation, i, value);
    char others[400];
    rules_with(bit, others, sizeof others);
    return tn__fail(TN_ERR_VALUE, operation, "%s has no use for %s, which belongs to %s: leave it out", rule->name,
                    tn__optimizer_fields[i].name, others);
}

static bool is_given(const tn_optimizer_opts *set, unsigned given, int i)
{
    return tn__field_get(set, i) != 0 || given >> i & 1 ||
           tn__option_written(set->_, tn__optimizer_fields[i].name);
}

static double default_of(const tn__optimizer_rule *rule, int i)
{
    double own = tn__field_get(&rule->defaults, i);
    return own != 0 ? own : tn__optimizer_fields[i].usual;
}

tn_status tn__settings_settle(const char *operation, const tn__optimizer_rule *rule, unsigned given,
                              tn_optimizer_opts *set)
{
    tn_status status = TN_OK;
    for (int i = 0; i < TN__FIELD_COUNT && status == TN_OK; i++) {
        if (is_given(set, given, i))
            status = tn__field_check(operation, rule, i, tn__field_get(set, i));
        else
            tn__field_put(set, i, default_of(rule, i));
    }
    if (status == TN_OK && set->clip_low > set->clip_high)
        status = tn__fail(TN_ERR_VALUE, operation, "clip_low %g is above clip_high %g", set->clip_low, set->clip_high);
    set->_ = NULL; /* the caller's */
    return status;
}

/* ---- by name ---- */

int tn__field_find(const char *operation, const tn__optimizer_rule *rule, const char *name)
{
    const char *names[TN__FIELD_COUNT];
    int count = 0;
    for (int i = 0; i < TN__FIELD_COUNT; i++) {
        if (strcmp(tn__optimizer_fields[i].name, name) == 0)
            return i;
        if (tn__rule_fields(rule) >> i & 1)
            names[count++] = tn__optimizer_fields[i].name;
    }
    const char *near = tn__nearest_name(name, names, count);
    if (near) {
        tn__fail(TN_ERR_NAME, operation, "%s has no setting '%s': did you mean '%s'?", rule->name, name, near);
        return -1;
    }
    tn__text all = {0};
    for (int i = 0; i < count; i++)
        tn__text_addf(&all, "%s%s", !i ? "" : i + 1 < count ? ", " : " or ", names[i]);
    char *list = tn__text_take(&all);
    tn__fail(TN_ERR_NAME, operation, "%s has no setting '%s': expected %s", rule->name, name,
             list ? list : "one of its own");
    tn__free(list);
    return -1;
}

double tn_optimizer_get(const tn_optimizer *optimizer, const char *name)
{
    if (tn__optimizer_raise(optimizer) != TN_OK)
        return NAN;
    if (!name) {
        tn__fail_null("optimizer_get", "a name");
        return NAN;
    }
    int field = tn__field_find("optimizer_get", optimizer->rule, name);
    return field < 0 ? NAN : tn__field_get(&optimizer->set, field);
}

tn_status tn_optimizer_set(tn_optimizer *optimizer, const char *name, double value)
{
    tn_status status = tn__optimizer_raise(optimizer);
    if (status != TN_OK)
        return status;
    if (!name)
        return tn__fail_null("optimizer_set", "a name");
    int field = tn__field_find("optimizer_set", optimizer->rule, name);
    status = field < 0 ? TN_ERR_NAME : tn__field_check("optimizer_set", optimizer->rule, field, value);
    if (status == TN_OK)
        tn__field_put(&optimizer->set, field, value);
    return status;
}

double tn_optimizer_lr(const tn_optimizer *optimizer) { return optimizer ? optimizer->set.lr : 0; }

void tn_optimizer_set_lr(tn_optimizer *optimizer, double lr)
{
    if (tn__optimizer_raise(optimizer) != TN_OK)
        return;
    if (!(lr >= 0 && isfinite(lr)))
        tn__fail(TN_ERR_VALUE, "optimizer_set_lr", "expected a finite learning rate >= 0, got %g", lr);
    else
        optimizer->set.lr = lr;
}

/* ---- of a pattern ---- */

/* Puts those of `given` over others. */
static void overlay(tn_optimizer_opts *set, const tn_optimizer_opts *own, unsigned given)
{
    for (int i = 0; given >> i; i++) {
        if (given >> i & 1)
            tn__field_put(set, i, tn__field_get(own, i));
    }
}

void tn__settings_of_groups(const tn_optimizer *optimizer, tn__tracked *tracked)
{
    tracked->own_given = 0;
    for (size_t k = 0; k < optimizer->group_count; k++) {
        const tn__group *group = &optimizer->groups[k];
        if (!tn__path_matches(group->pattern, tracked->path))
            continue;
        overlay(&tracked->own, &group->set, group->given);
        tracked->own_given |= group->given;
    }
}

static tn_status read_group(const tn_optimizer *optimizer, const tn_optimizer_opts *opts, tn__group *group)
{
    static const char operation[] = "optimizer_for";
    tn_status status = TN_OK;
    for (int i = 0; i < TN__FIELD_COUNT && status == TN_OK; i++) {
        if (!is_given(opts, 0, i))
            continue;
        status = tn__field_check(operation, optimizer->rule, i, tn__field_get(opts, i));
        if (status == TN_OK && TN__FIELDS_JOINT >> i & 1)
            status = tn__fail(TN_ERR_VALUE, operation, "%s is of all parameters together: give it to the optimizer",
                              tn__optimizer_fields[i].name);
        tn__field_put(&group->set, i, tn__field_get(opts, i));
        group->given |= 1u << i;
    }
    if (status == TN_OK && group->given & TN__FIELD(lr)) {
        if (optimizer->set.lr == 0)
            return tn__fail(TN_ERR_VALUE, operation,
                            "the optimizer's learning rate is 0, and that of a pattern is kept in proportion to it: "
                            "set it first");
        group->set.lr /= optimizer->set.lr;
    }
    return status;
}

tn_status tn_optimizer_for_with(tn_optimizer *optimizer, const char *pattern, const tn_optimizer_opts *opts)
{
    tn_status status = tn__optimizer_raise(optimizer);
    if (status == TN_OK && (!pattern || !opts))
        status = tn__fail_null("optimizer_for", "a pattern and options");
    tn__group group = {0};
    if (status == TN_OK)
        status = read_group(optimizer, opts, &group);
    if (status == TN_OK)
        status = tn__pattern_check("optimizer_for", "", pattern, optimizer->layer, false);
    if (status == TN_OK)
        status = tn__optimizer_sync(optimizer);
    if (status != TN_OK)
        return status;
    group.pattern = tn__strdup(pattern);
    if (!group.pattern || !tn__grow((void **)&optimizer->groups, &optimizer->group_capacity,
                                    optimizer->group_count + 1, sizeof group)) {
        tn__free(group.pattern);
        return tn__fail_memory("optimizer_for", sizeof group);
    }
    optimizer->groups[optimizer->group_count++] = group;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        tn__settings_of_groups(optimizer, &optimizer->tracked[i]);
    return TN_OK;
}

tn__settings tn__settings_now(const tn_optimizer *optimizer, const tn__tracked *tracked)
{
    tn__settings u = {.set = optimizer->set,
                      .optimizer = optimizer,
                      .t = tracked->steps + 1,
                      .first_lr = optimizer->first_lr};
    if (optimizer->comm && !optimizer->shard)
        u.noise = (tn_generator *)&optimizer->noise; /* which is scratch of a step */
    overlay(&u.set, &tracked->own, tracked->own_given);
    if (tracked->own_given & TN__FIELD(lr))
        u.set.lr *= optimizer->set.lr;
    if (optimizer->rule->fields & (TN__FIELD(beta1) | TN__FIELD(beta2))) {
        u.correction1 = 1 - pow(u.set.beta1, (double)u.t);
        u.correction2 = 1 - pow(u.set.beta2, (double)u.t);
    }
    return u;
}
