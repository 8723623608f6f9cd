/* SPDX-License-Identifier: MIT */
/* How a hyperparameter changes in a run, as functions of the number of calls or of the place in the run. */
#ifndef TN_TRAIN_SHIFT_H
#define TN_TRAIN_SHIFT_H

#include <tanso/base.h>

typedef struct tn__shift tn__shift;
typedef struct tn__shift_kind {
    const char *name; /* of the extension */
    /* The value at t, which is the number of calls, or, if `placed`, the place in a run of `length`. */
    double (*value)(const tn__shift *s, double t);
    bool placed;
    /* Whether values grow away from the first one, for the target; NULL: there is none. */
    bool (*grows)(const tn__shift *s);
} tn__shift_kind;

struct tn__shift {
    const tn__shift_kind *kind;
    double first;      /* the attribute's value before */
    double a, b, c, d; /* what the kind makes of them, see shift.c */
    const double *steps;
    int step_count;
    double target; /* NaN: none */
    double length; /* of the run; 0: not known */
};

extern const tn__shift_kind tn__shift_exponential, tn__shift_inverse, tn__shift_linear, tn__shift_multistep,
    tn__shift_polynomial, tn__shift_step, tn__shift_warmup, tn__shift_cosine, tn__shift_one_cycle;

/* The value at t, not beyond the target. `old`: the value before, which a kind that has ended leaves alone. */
double tn__shift_value(const tn__shift *s, double t, double old);

#endif
