/* SPDX-License-Identifier: MIT */
/* The search along a direction for a step that satisfies the strong Wolfe conditions. */
#ifndef TN_OPTIM_LINE_SEARCH_H
#define TN_OPTIM_LINE_SEARCH_H

#include <tanso/base.h>

/* What is known of the function at a distance along the direction. */
typedef struct tn__line_point {
    double at, value, slope;
    tn_array *gradient; /* owned; NULL: none */
} tn__line_point;

typedef struct tn__line {
    /* Fills in all of a point but `at`. */
    tn_status (*look)(void *user, tn__line_point *point);
    void *user;
    tn__line_point start; /* at 0 */
    double longest;       /* the direction's largest element */
    int evaluations;      /* out: how many there were */
} tn__line;

/* Begins at the distance `first`; what it found goes into *found, whose gradient is the caller's then. */
tn_status tn__line_search(tn__line *line, double first, tn__line_point *found);

void tn__line_point_free(tn__line_point *point);

#endif
