/* SPDX-License-Identifier: MIT */
/* What L-BFGS is inside, for its life and its directions (lbfgs.c) and its steps (lbfgs_step.c). */
#ifndef TN_OPTIM_LBFGS_H
#define TN_OPTIM_LBFGS_H

#include "optim/optimizer.h"

/* A movement s of the parameters, the change y of the gradient with it, and 1 / (s y). */
typedef struct tn__movement {
    tn_array *s, *y;
    double rho;
} tn__movement;

struct tn_lbfgs {
    tn__object object;
    tn__error *error; /* why construction failed, else NULL */
    bool is_static;   /* the out-of-memory one */
    tn_layer *layer;
    tn__follower follower; /* only to know when the layer is freed */
    tn_lbfgs_opts set;
    tn__movement *movements; /* the oldest first; room for set.history */
    int movement_count;
    tn_array *direction, *gradient; /* of the last iteration; NULL: there was none */
    double moved;                   /* along the direction */
    double scale;                   /* of the first guess of the inverse Hessian */
    int64_t iterations;
};

/* TN_OK, or why it cannot be used, latched. */
tn_status tn__lbfgs_raise(const tn_lbfgs *lbfgs);
/* As it was before its first iteration. */
void tn__lbfgs_begin_anew(tn_lbfgs *lbfgs);
/* Takes the gradient into account, and makes the direction of the next movement. */
tn_status tn__lbfgs_choose_direction(tn_lbfgs *lbfgs, const tn_array *gradient);

/* ---- vectors ---- */

tn_status tn__lbfgs_number(const tn_array *x, double *value);
tn_array *tn__lbfgs_product(const tn_array *a, const tn_array *b);
tn_array *tn__lbfgs_times(const tn_array *x, double factor);
/* Keeps x's value beyond the scope, in the place of what is there; and frees such a one. */
tn_status tn__lbfgs_keep(tn_array **place, tn_array *x);
void tn__lbfgs_forget(tn_array **x);

#endif
