/* SPDX-License-Identifier: MIT */
/* The table of what one traversal says of values. */
#include "autograd/marks.h"

#include <string.h>

/* The place of a value in the table, which has free ones, or where it would come. */
static tn__value_mark *place_of(const tn__marks *marks, const tn__node *node)
{
    size_t mask = marks->size - 1, at = ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
    while (marks->values[at].node && marks->values[at].node != node)
        at = (at + 1) & mask;
    return &marks->values[at];
}

bool tn__marks_find_value(const tn__marks *marks, const tn__node *node, uint32_t *number)
{
    const tn__value_mark *place = place_of(marks, node);
    *number = place->number;
    return place->node != NULL;
}

static bool grow(tn__marks *marks)
{
    if (!marks->values) {
        marks->values = memset(marks->few, 0, TN__FEW_MARKS * sizeof *marks->few);
        marks->size = TN__FEW_MARKS;
        return true;
    }
    tn__marks larger = {.size = 4 * marks->size};
    larger.values = tn__calloc(larger.size, sizeof *larger.values);
    if (!larger.values)
        return false;
    for (size_t i = 0; i < marks->size; i++)
        if (marks->values[i].node)
            *place_of(&larger, marks->values[i].node) = marks->values[i];
    tn__marks_end(marks);
    marks->values = larger.values;
    marks->size = larger.size;
    return true;
}

bool tn__marks_set_value(tn__marks *marks, const tn__node *node, uint32_t number)
{
    if (4 * marks->count + 4 > 3 * marks->size && !grow(marks))
        return false;
    tn__value_mark *place = place_of(marks, node);
    marks->count += !place->node;
    *place = (tn__value_mark){node, number};
    return true;
}

void tn__marks_begin(tn__marks *marks)
{
    marks->stamp = tn__stamp();
    marks->owner = tn__thread_number();
    if (marks->count)
        memset(marks->values, 0, marks->size * sizeof *marks->values);
    marks->count = 0;
}
