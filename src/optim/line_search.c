/* SPDX-License-Identifier: MIT */
/*
 * A step along a direction for which the function falls enough and its slope flattens enough (the strong Wolfe
 * conditions): Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, by cubic interpolation (their 3.59).
 * How far an interpolated step may go, and when it is moved away from the ends of the bracket, is as in Schmidt's
 * minFunc, which PyTorch follows, too, so that both try the same steps.
 */
#include "optim/line_search.h"

#include <math.h>
#include <string.h>
#include "array/node.h"

#define ENOUGH_FALL 1e-4    /* of what the slope at the start promises */
#define ENOUGH_FLAT 0.9     /* of the slope at the start */
#define SHORTEST    1e-9    /* a bracket in which no element moves by more is not halved again */
#define MOST_STEPS  25

typedef tn__line_point point;

void tn__line_point_free(point *p)
{
    tn__array_free_kept(p->gradient);
    p->gradient = NULL;
}

/* A copy, with a handle of its own for the gradient. */
static tn_status copy(point *to, const point *from)
{
    tn_array *gradient = from->gradient ? tn__array_own_new(tn__array_node(from->gradient)) : NULL;
    if (gradient && tn__handle_of(gradient)->is_static)
        return TN_ERR_MEMORY;
    tn__line_point_free(to);
    *to = *from;
    to->gradient = gradient;
    return TN_OK;
}

/* Where the cubic through both points, with their slopes, is least, within bounds. */
static double least_of_cubic(const point *p, const point *q, double low, double high)
{
    const point *a = p->at <= q->at ? p : q, *b = a == p ? q : p;
    double mean = p->slope + q->slope - 3 * (p->value - q->value) / (p->at - q->at);
    double square = mean * mean - p->slope * q->slope;
    if (!(square >= 0))
        return (low + high) / 2;
    double root = sqrt(square);
    double least = b->at - (b->at - a->at) * ((b->slope + root - mean) / (b->slope - a->slope + 2 * root));
    return fmin(fmax(least, low), high);
}

static bool falls_enough(const tn__line *line, const point *p)
{
    return !(p->value > line->start.value + ENOUGH_FALL * p->at * line->start.slope);
}

static bool is_flat_enough(const tn__line *line, const point *p)
{
    return fabs(p->slope) <= -ENOUGH_FLAT * line->start.slope;
}

static tn_status look(tn__line *line, point *p, double at)
{
    tn__line_point_free(p);
    p->at = at;
    line->evaluations++;
    return line->look(line->user, p);
}

/* Goes further until two points have a good one between them, or one is good; *done then. */
static tn_status bracket(tn__line *line, double first, point ends[2], int *steps, bool *done)
{
    point before = {0}, now = {0};
    tn_status status = copy(&before, &line->start);
    if (status == TN_OK)
        status = look(line, &now, first);
    bool found = false;
    for (*steps = 0; status == TN_OK && *steps < MOST_STEPS; ++*steps) {
        bool rises = !falls_enough(line, &now) || (*steps > 1 && now.value >= before.value);
        *done = !rises && is_flat_enough(line, &now);
        found = rises || *done || now.slope >= 0;
        if (found)
            break;
        double further = least_of_cubic(&before, &now, now.at + 0.01 * (now.at - before.at), now.at * 10);
        status = copy(&before, &now);
        if (status == TN_OK)
            status = look(line, &now, further);
    }
    if (status == TN_OK && !found) /* no end in sight: between the start and the last one */
        status = copy(&before, &line->start);
    if (status == TN_OK)
        status = copy(&ends[0], *done ? &now : &before);
    if (status == TN_OK)
        status = copy(&ends[1], &now);
    tn__line_point_free(&before);
    tn__line_point_free(&now);
    return status;
}

/* Where to look within the bracket. Steps near its ends make no progress: the second one in a row is moved inwards. */
static double within(const point ends[2], bool *stuck)
{
    double low = fmin(ends[0].at, ends[1].at), high = fmax(ends[0].at, ends[1].at), margin = 0.1 * (high - low);
    double at = least_of_cubic(&ends[0], &ends[1], low, high);
    if (!(fmin(high - at, at - low) < margin)) {
        *stuck = false;
        return at;
    }
    bool moves = *stuck || at >= high || at <= low;
    *stuck = !moves;
    return !moves ? at : fabs(at - high) < fabs(at - low) ? high - margin : low + margin;
}

/* Makes the bracket smaller; the best of its ends is *low. */
static tn_status zoom(tn__line *line, point ends[2], int *low, int steps)
{
    point now = {0};
    bool stuck = false, done = false;
    tn_status status = TN_OK;
    for (; status == TN_OK && !done && steps < MOST_STEPS; steps++) {
        if (fabs(ends[1].at - ends[0].at) * line->longest < SHORTEST)
            break;
        status = look(line, &now, within(ends, &stuck));
        if (status != TN_OK)
            break;
        int high = 1 - *low;
        if (!falls_enough(line, &now) || now.value >= ends[*low].value) {
            status = copy(&ends[high], &now);
            *low = ends[0].value <= ends[1].value ? 0 : 1;
            continue;
        }
        done = is_flat_enough(line, &now);
        if (!done && now.slope * (ends[high].at - ends[*low].at) >= 0)
            status = copy(&ends[high], &ends[*low]);
        if (status == TN_OK)
            status = copy(&ends[*low], &now);
    }
    tn__line_point_free(&now);
    return status;
}

tn_status tn__line_search(tn__line *line, double first, point *found)
{
    point ends[2] = {{.at = 0}, {.at = 0}};
    bool done = false;
    int steps = 0, low = 0;
    line->evaluations = 0;
    tn_status status = bracket(line, first, ends, &steps, &done);
    if (status == TN_OK && !done) {
        low = ends[0].value <= ends[1].value ? 0 : 1;
        status = zoom(line, ends, &low, steps);
    }
    if (status == TN_OK)
        status = copy(found, &ends[low]);
    for (int i = 0; i < 2; i++)
        tn__line_point_free(&ends[i]);
    return status;
}
