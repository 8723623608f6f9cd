/* SPDX-License-Identifier: MIT */
/* Joining a curve's points, see thinned.h. */
#include "train/thinned.h"

#include <math.h>
#include <string.h>
#include "core/error.h"
#include "core/memory.h"

void tn__thinned_free(tn__thinned *curve)
{
    tn__free(curve->spans);
    *curve = (tn__thinned){0};
}

/* b goes into a. Means are moved on, not summed up, so that no sum overflows. */
static void join(tn__span *a, const tn__span *b)
{
    a->points += b->points;
    a->x += (b->x - a->x) * (b->points / a->points);
    if (b->finite == 0)
        return;
    if (a->finite == 0) {
        a->y = b->y;
        a->low = b->low;
        a->high = b->high;
    } else {
        double share = b->finite / (a->finite + b->finite);
        a->y = a->y * (1 - share) + b->y * share;
        a->low = fmin(a->low, b->low);
        a->high = fmax(a->high, b->high);
    }
    a->finite += b->finite;
}

static void halve(tn__thinned *curve)
{
    for (size_t i = 0; i < curve->count / 2; i++) {
        tn__span joined = curve->spans[2 * i];
        join(&joined, &curve->spans[2 * i + 1]);
        curve->spans[i] = joined;
    }
    curve->count /= 2;
    curve->stride *= 2;
}

tn_status tn__thinned_add(tn__thinned *curve, double x, double y)
{
    bool finite = isfinite(y);
    tn__span point = {x, finite ? y : NAN, finite ? y : NAN, finite ? y : NAN, finite, 1};
    if (curve->count == 0)
        curve->stride = 1;
    tn__span *last = curve->count ? &curve->spans[curve->count - 1] : NULL;
    if (last && last->points < curve->stride) {
        join(last, &point);
        return TN_OK;
    }
    if (curve->count == TN__THINNED_MOST)
        halve(curve);
    if (!tn__grow((void **)&curve->spans, &curve->capacity, curve->count + 1, sizeof point))
        return tn__fail_memory("train", sizeof point);
    curve->spans[curve->count++] = point;
    return TN_OK;
}

/* Every span but the last one has `stride` points, the first one's. */
static bool sound(const tn__span *spans, size_t count)
{
    double stride = spans[0].points;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(spans[i].x) || !(spans[i].points >= 1) || !(spans[i].finite >= 0) ||
            spans[i].finite > spans[i].points || (spans[i].finite > 0 && !isfinite(spans[i].y)) ||
            (i + 1 < count ? spans[i].points != stride : count > 1 && spans[i].points > stride))
            return false;
    return true;
}

tn_status tn__thinned_restore(tn__thinned *curve, const double *rows, size_t count)
{
    tn__thinned fresh = {0};
    if (count > TN__THINNED_MOST || (count && !sound((const tn__span *)rows, count)))
        return tn__fail(TN_ERR_FORMAT, "train", "the snapshot's %zu points of a plot are none: it is damaged", count);
    if (!tn__grow((void **)&fresh.spans, &fresh.capacity, count, sizeof(tn__span)))
        return tn__fail_memory("train", count * sizeof(tn__span));
    if (count)
        memcpy(fresh.spans, rows, count * sizeof(tn__span));
    fresh.count = count;
    /* A lone span of several points is what halving two leaves, which takes more than one: it is full. */
    fresh.stride = count ? fresh.spans[0].points : 0;
    tn__thinned_free(curve);
    *curve = fresh;
    return TN_OK;
}
