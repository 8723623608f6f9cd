/* SPDX-License-Identifier: MIT */
/* The table of optimizers: settings, what each remembers, and its update as a graph. */
#include "optim/optimizer.h"

static tn__node *scaled(double factor, tn__node *x)
{
    return tn__binary(TN__OP_MULTIPLY, tn__const_like(x, factor), x);
}

/* Exactly p - lr g: the form that folds into the matrix product which makes g. */
static tn__node *sgd(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    (void)state;
    return tn__binary(TN__OP_SUBTRACT, p, scaled(u->set.lr, g));
}

static tn__node *momentum(const tn__settings *u, tn__node *p, tn__node *g, tn__node **v)
{
    v[0] = tn__binary(TN__OP_SUBTRACT, scaled(u->set.momentum, v[0]), scaled(u->set.lr, g));
    return tn__binary(TN__OP_ADD, p, v[0]);
}

static tn__node *nesterov(const tn__settings *u, tn__node *p, tn__node *g, tn__node **v)
{
    tn__node *change = scaled(u->set.lr, g);
    v[0] = tn__binary(TN__OP_SUBTRACT, scaled(u->set.momentum, v[0]), change);
    return tn__binary(TN__OP_ADD, p, tn__binary(TN__OP_SUBTRACT, scaled(u->set.momentum, v[0]), change));
}

/* lr m^ / (sqrt(v^) + eps), with the bias-corrected moments m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t). */
static tn__node *adam_change(const tn__settings *u, tn__node *g, tn__node **state)
{
    const tn_optimizer_opts *set = &u->set;
    tn__node *m = tn__binary(TN__OP_ADD, scaled(set->beta1, state[0]), scaled(1 - set->beta1, g));
    tn__node *v = tn__binary(TN__OP_ADD, scaled(set->beta2, state[1]),
                             scaled(1 - set->beta2, tn__unary(TN__OP_SQUARE, g)));
    state[0] = m;
    state[1] = v;
    tn__node *root = tn__unary(TN__OP_SQRT, scaled(1 / u->correction2, v));
    tn__node *below = tn__binary(TN__OP_ADD, root, tn__const_like(root, set->eps));
    return tn__binary(TN__OP_DIVIDE, scaled(set->lr / u->correction1, m), below);
}

static tn__node *adam(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    return tn__binary(TN__OP_SUBTRACT, p, adam_change(u, g, state));
}

static tn__node *adamw(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__node *decayed = scaled(1 - u->set.lr * u->set.weight_decay, p);
    return tn__binary(TN__OP_SUBTRACT, decayed, adam_change(u, g, state));
}

#define MOMENTUM (TN__FIELDS_ALL_KINDS | TN__FIELD_MOMENTUM)
#define ADAM (TN__FIELDS_ALL_KINDS | TN__FIELD_BETA1 | TN__FIELD_BETA2 | TN__FIELD_EPS)
#define ADAM_DEFAULTS .lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8

const tn__optimizer_rule tn__optimizer_rules[] = {
    {"sgd", TN__FIELDS_ALL_KINDS, {.lr = 0.01}, 0, {NULL}, false, sgd},
    {"momentum", MOMENTUM, {.lr = 0.01, .momentum = 0.9}, 1, {"v"}, false, momentum},
    {"nesterov", MOMENTUM, {.lr = 0.01, .momentum = 0.9}, 1, {"v"}, false, nesterov},
    {"adam", ADAM, {ADAM_DEFAULTS}, 2, {"m", "v"}, false, adam},
    {"adamw", ADAM, {ADAM_DEFAULTS, .weight_decay = 0.01}, 2, {"m", "v"}, true, adamw},
};
const int tn__optimizer_rule_count = sizeof tn__optimizer_rules / sizeof *tn__optimizer_rules;

tn_optimizer *tn_sgd_with(tn_layer *layer, const tn_optimizer_opts *opts)
{
    return tn__optimizer_make("sgd", &tn__optimizer_rules[0], layer, opts, 0);
}

tn_optimizer *tn_momentum_sgd_with(tn_layer *layer, const tn_optimizer_opts *opts)
{
    return tn__optimizer_make("momentum_sgd", &tn__optimizer_rules[1], layer, opts, 0);
}

tn_optimizer *tn_nesterov_with(tn_layer *layer, const tn_optimizer_opts *opts)
{
    return tn__optimizer_make("nesterov", &tn__optimizer_rules[2], layer, opts, 0);
}

tn_optimizer *tn_adam_with(tn_layer *layer, const tn_optimizer_opts *opts)
{
    return tn__optimizer_make("adam", &tn__optimizer_rules[3], layer, opts, 0);
}

tn_optimizer *tn_adamw_with(tn_layer *layer, const tn_optimizer_opts *opts)
{
    return tn__optimizer_make("adamw", &tn__optimizer_rules[4], layer, opts, 0);
}
