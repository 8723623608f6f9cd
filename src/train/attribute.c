/* SPDX-License-Identifier: MIT */
/* Numbers of an optimizer by name, for schedules. */
#include <math.h>
#include <string.h>
#include "optim/optimizer.h"
#include "train/ext.h"

tn_status tn__attribute_find(tn_trainer *trainer, const char *operation, const char *optimizer, const char *name,
                             tn__attribute *attribute)
{
    attribute->optimizer = tn_trainer_optimizer(trainer, optimizer);
    if (!attribute->optimizer)
        return tn_error_code();
    const char *names[TN__FIELD_COUNT];
    int count = 0;
    for (int i = 0; i < TN__FIELD_COUNT; i++) {
        bool has = (attribute->optimizer->rule->fields | TN__FIELDS_ALL_KINDS) >> i & 1;
        if (has && strcmp(tn__optimizer_fields[i].name, name) == 0) {
            attribute->field = i;
            return TN_OK;
        }
        if (has)
            names[count++] = tn__optimizer_fields[i].name;
    }
    const char *near = tn__nearest_name(name, names, count);
    return tn__fail(TN_ERR_NAME, operation, "%s has no '%s' to be changed: %s'%s'%s", attribute->optimizer->rule->name,
                    name, near ? "did you mean " : "expected one as ", near ? near : "lr", near ? "?" : "");
}

double tn__attribute_get(const tn__attribute *a) { return *tn__field_of(&a->optimizer->set, a->field); }

tn_status tn__attribute_set(const tn__attribute *a, const char *operation, double value)
{
    const tn__field *field = &tn__optimizer_fields[a->field];
    if (!(value >= 0 && value < field->below && isfinite(value)))
        return tn__fail(TN_ERR_VALUE, operation, "%s would be %g, and has to be finite, 0 or more, and below %g",
                        field->name, value, field->below);
    *tn__field_of(&a->optimizer->set, a->field) = value;
    return TN_OK;
}
