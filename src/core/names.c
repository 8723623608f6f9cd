/* SPDX-License-Identifier: MIT */
/* "Did you mean": the nearest of a list of names. */
#include <ctype.h>
#include <string.h>

#include "core/error.h"

#define LONGEST 63

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Edits (insertions, deletions, substitutions, swaps of neighbours: optimal string alignment) from a to b, letter case
 * aside; both at most LONGEST characters. */
static int edit_distance(const char *a, int a_length, const char *b, int b_length)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *previous = rows[1], *current = rows[2];
    for (int j = 0; j <= b_length; j++)
        previous[j] = j;
    for (int i = 1; i <= a_length; i++) {
        current[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            current[j] = least(previous[j - 1] + (x != y), 1 + least(previous[j], current[j - 1]));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]))
                current[j] = least(current[j], before[j - 2] + 1);
        }
        int *recycled = before;
        before = previous;
        previous = current;
        current = recycled;
    }
    return previous[b_length];
}

const char *tn__nearest_name(const char *word, const char *const *names, int count)
{
    size_t length = word ? strlen(word) : 0;
    if (length == 0 || length > LONGEST)
        return NULL;
    /* About one slip in three letters: more is another word. */
    int nearest = length < 3 ? 1 : ((int)length + 1) / 3;
    const char *found = NULL;
    for (int i = 0; i < count; i++) {
        size_t name_length = names[i] ? strlen(names[i]) : 0;
        if (name_length == 0 || name_length > LONGEST)
            continue;
        int distance = edit_distance(word, (int)length, names[i], (int)name_length);
        if (distance < nearest || (!found && distance == nearest)) {
            nearest = distance;
            found = names[i];
        }
    }
    return found;
}

const char *tn_nearest_name(const char *word, const char *const *names, int count)
{
    return tn__nearest_name(word, names, count);
}
