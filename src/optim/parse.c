/* SPDX-License-Identifier: MIT */
/* Optimizers written as text: "adamw:lr=1e-3,weight_decay=0.1". */
#include "optim/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"

static const char operation[] = "optimizer_parse";

static const tn__optimizer_rule *find_rule(const char *name)
{
    const char *names[16];
    int count = tn__optimizer_rule_count < 16 ? tn__optimizer_rule_count : 16;
    for (int i = 0; i < tn__optimizer_rule_count; i++) {
        if (strcmp(tn__optimizer_rules[i].name, name) == 0)
            return &tn__optimizer_rules[i];
    }
    for (int i = 0; i < count; i++)
        names[i] = tn__optimizer_rules[i].name;
    const char *near = tn__nearest_name(name, names, count);
    if (near)
        tn__fail(TN_ERR_NAME, operation, "there is no optimizer '%s': did you mean '%s'?", name, near);
    else
        tn__fail(TN_ERR_NAME, operation, "there is no optimizer '%s': expected sgd, momentum, nesterov, adam or adamw",
                 name);
    return NULL;
}

/* The number of a field, or -1, latched. */
static int find_field(const tn__optimizer_rule *rule, const char *name)
{
    const char *names[TN__FIELD_COUNT];
    int count = 0;
    for (int i = 0; i < TN__FIELD_COUNT; i++) {
        if (strcmp(tn__optimizer_fields[i].name, name) == 0)
            return i;
        if (rule->fields >> i & 1)
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
        int field = find_field(rule, item);
        if (field < 0)
            return false;
        if (*given >> field & 1) {
            tn__fail(TN_ERR_VALUE, operation, "%s is given twice", item);
            return false;
        }
        *tn__field_of(set, field) = tn__read_double(equals + 1, &end);
        *given |= 1u << field;
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
