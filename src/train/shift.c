/* SPDX-License-Identifier: MIT */
/* The table of shifts, see shift.h. */
#include "train/shift.h"

#include <math.h>

/* first a^t */
static double exponential(const tn__shift *s, double t) { return s->first * pow(s->a, t); }
static bool rate_grows(const tn__shift *s) { return s->a > 1; }

/* first (1 + a t)^-b */
static double inverse(const tn__shift *s, double t) { return s->first * pow(1 + s->a * t, -s->b); }
static bool inverse_grows(const tn__shift *s) { return s->b < 0; }

/* From a at c to b at d along a line. */
static double linear(const tn__shift *s, double t)
{
    return t <= s->c ? s->a : t >= s->d ? s->b : s->a + (t - s->c) / (s->d - s->c) * (s->b - s->a);
}

/* first a^k, k the number of steps at or before t. */
static double multistep(const tn__shift *s, double t)
{
    int k = 0;
    while (k < s->step_count && s->steps[k] <= t)
        k++;
    return s->first * pow(s->a, k);
}

/* first (1 - t / b)^a */
static double polynomial(const tn__shift *s, double t) { return s->first * pow(fmax(1 - t / s->b, 0), s->a); }
static bool polynomial_grows(const tn__shift *s) { return s->a < 0; }

/* first a^floor(t / b) */
static double step(const tn__shift *s, double t) { return s->first * pow(s->a, floor(t / s->b)); }

/* From a to first over b calls along a line; left alone behind them (NaN). */
static double warmup(const tn__shift *s, double t)
{
    return t <= s->b ? (t * s->first + (s->b - t) * s->a) / s->b : NAN;
}

/* Half a cosine from one value to another, for shares from 0 to 1. */
static double half_cosine(double from, double to, double share)
{
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return to + (from - to) * (1 + cos(M_PI * share)) / 2;
}

/* From a to first along a line until c, then to b along half a cosine (Loshchilov and Hutter 2017). */
static double cosine(const tn__shift *s, double t)
{
    if (t < s->c)
        return s->a + (s->first - s->a) * t / s->c;
    return half_cosine(s->first, s->b, s->length > s->c ? (t - s->c) / (s->length - s->c) : 1);
}

/* From first / a up to first in the share c of the run, and down to first / a / b (Smith and Topin 2019), along half a
 * cosine each. */
static double one_cycle(const tn__shift *s, double t)
{
    double top = s->c * s->length, start = s->first / s->a;
    return t < top ? half_cosine(start, s->first, t / top)
                   : half_cosine(s->first, start / s->b, (t - top) / (s->length - top));
}

const tn__shift_kind tn__shift_exponential = {"ExponentialShift", exponential, false, rate_grows};
const tn__shift_kind tn__shift_inverse = {"InverseShift", inverse, false, inverse_grows};
const tn__shift_kind tn__shift_linear = {"LinearShift", linear, false, NULL};
const tn__shift_kind tn__shift_multistep = {"MultistepShift", multistep, false, NULL};
const tn__shift_kind tn__shift_polynomial = {"PolynomialShift", polynomial, false, polynomial_grows};
const tn__shift_kind tn__shift_step = {"StepShift", step, false, rate_grows};
const tn__shift_kind tn__shift_warmup = {"WarmupShift", warmup, false, NULL};
const tn__shift_kind tn__shift_cosine = {"CosineShift", cosine, true, NULL};
const tn__shift_kind tn__shift_one_cycle = {"OneCycleShift", one_cycle, true, NULL};

double tn__shift_value(const tn__shift *s, double t, double old)
{
    double value = s->kind->value(s, t);
    if (isnan(value) && !isnan(s->first))
        return old;
    if (!s->kind->grows || isnan(s->target))
        return value;
    bool passed = s->kind->grows(s) ? fabs(value) > fabs(s->target) : fabs(value) < fabs(s->target);
    return passed ? s->target : value;
}
