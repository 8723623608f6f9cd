/* SPDX-License-Identifier: MIT */
/* Optimizers written as text: "adamw:lr=1e-3,weight_decay=0.1". */
#include "optim/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"

static const char operation[] = "optimizer_parse";

static bool has_name(const tn__optimizer_rule *rule, const char *name)
{
    return strcmp(rule->name, name) == 0 || (rule->alias && strcmp(rule->alias, name) == 0);
}

static const tn__optimizer_rule *find_rule(const char *name)
{
    int count = tn__optimizer_rule_count;
    for (int i = 0; i < count; i++) {
        if (has_name(&tn__optimizer_rules[i], name))
            return &tn__optimizer_rules[i];
    }
    tn__text all = {0};
    const char **names = tn__alloc((size_t)count * sizeof *names);
    for (int i = 0; i < count; i++) {
        const tn__optimizer_rule *rule = &tn__optimizer_rules[i];
        if (names)
            names[i] = rule->name;
        tn__text_addf(&all, "%s%s", !i ? "" : i + 1 < count ? ", " : " or ", rule->alias ? rule->alias : rule->name);
    }
    const char *near = names ? tn__nearest_name(name, names, count) : NULL;
    char *list = tn__text_take(&all);
    if (near)
        tn__fail(TN_ERR_NAME, operation, "there is no optimizer '%s': did you mean '%s'?", name, near);
    else
        tn__fail(TN_ERR_NAME, operation, "there is no optimizer '%s': expected %s", name, list ? list : "another");
    tn__free(list);
    tn__free(names);
    return NULL;
}

/* Reads "key=value,key=value" into set; false and latched if it is not that. */
static bool read_settings(const tn__optimizer_rule *rule, char *text, tn_optimizer_opts *set, unsigned *given)
{
    char *state;
    for (char *item = strtok_r(text, ",", &state); item; item = strtok_r(NULL, ",", &state)) {
        char *equals = strchr(item, '='), *end;
        if (!equals || !equals[1]) {
            tn__fail(TN_ERR_VALUE, operation, "expected settings as name=number, such as lr=0.01; got '%s'", item);
            return false;
        }
        *equals = 0;
        int field = tn__field_find(operation, rule, item);
        if (field < 0)
            return false;
        if (*given >> field & 1) {
            tn__fail(TN_ERR_VALUE, operation, "%s is given twice", item);
            return false;
        }
        double value = tn__read_double(equals + 1, &end);
        *given |= 1u << field;
        if (!*end && tn__field_check(operation, rule, field, value) != TN_OK)
            return false;
        tn__field_put(set, field, value);
        if (*end) {
            tn__fail(TN_ERR_VALUE, operation, "expected a number for %s, got '%s'", item, equals + 1);
            return false;
        }
    }
    return true;
}

tn_optimizer *tn_optimizer_parse(const char *text, tn_layer *layer)
{
    if (!text || !*text)
        return tn__optimizer_error(tn__error_new(TN_ERR_VALUE, operation,
                                                 "expected words such as \"sgd:lr=0.01\", got %s",
                                                 text ? "none" : "NULL"));
    char *name = tn__strdup(text);
    if (!name) {
        tn__fail_memory(operation, strlen(text) + 1);
        return tn__optimizer_error(tn__error_retain(tn__error_last()));
    }
    char *settings = strchr(name, ':');
    if (settings)
        *settings++ = 0;
    tn_optimizer_opts set = {0};
    unsigned given = 0;
    const tn__optimizer_rule *rule = find_rule(name);
    bool fine = rule && (!settings || read_settings(rule, settings, &set, &given));
    tn_optimizer *optimizer = fine ? tn__optimizer_make(operation, rule, layer, &set, given)
                                   : tn__optimizer_error(tn__error_retain(tn__error_last()));
    tn__free(name);
    return optimizer;
}
