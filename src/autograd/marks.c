/* SPDX-License-Identifier: MIT */
/* The table of what one traversal says of values. */
#include "autograd/marks.h"

#include <string.h>

static bool grow(tn__marks *marks)
{
    tn__marks larger = {.size = 4 * marks->size};
    larger.values = tn__calloc(larger.size, sizeof *larger.values);
    if (!larger.values)
        return false;
    for (size_t i = 0; i < marks->size; i++)
        if (marks->values[i].node)
            *tn__marks_place(&larger, marks->values[i].node) = marks->values[i];
    tn__marks_end(marks);
    marks->values = larger.values;
    marks->size = larger.size;
    return true;
}

bool tn__marks_set_value(tn__marks *marks, const tn__node *node, uint32_t number)
{
    if (2 * marks->count + 2 > marks->size && !grow(marks))
        return false;
    tn__value_mark *place = tn__marks_place(marks, node);
    marks->count += !place->node;
    *place = (tn__value_mark){node, number};
    return true;
}

void tn__marks_begin(tn__marks *marks)
{
    marks->stamp = tn__stamp();
    if (!marks->values) {
        marks->values = marks->few;
        marks->size = sizeof marks->few / sizeof *marks->few;
    }
    if (marks->count)
        memset(marks->values, 0, marks->size * sizeof *marks->values);
    marks->count = 0;
}
