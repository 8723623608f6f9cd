/* SPDX-License-Identifier: MIT */
/* The table of optimizers: what each reads and remembers, and its update as a graph. The formulas are those of
 * tanso/optim.h; those that need norms or means of a parameter are in rules_shape.c. */
#include "optim/rules.h"

#include <math.h>

/* Exactly p - lr g: the form that folds into the matrix product which makes g. */
static tn__node *sgd(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    (void)state;
    return tn__minus(p, tn__scaled(u->set.lr, g));
}

static tn__node *momentum(const tn__settings *u, tn__node *p, tn__node *g, tn__node **v)
{
    v[0] = tn__minus(tn__scaled(u->set.momentum, v[0]), tn__scaled(u->set.lr, g));
    return tn__plus(p, v[0]);
}

static tn__node *corrected_momentum(const tn__settings *u, tn__node *p, tn__node *g, tn__node **v)
{
    v[0] = tn__minus(tn__scaled(u->set.momentum, v[0]), g);
    return tn__plus(p, tn__scaled(u->set.lr, v[0]));
}

static tn__node *nesterov(const tn__settings *u, tn__node *p, tn__node *g, tn__node **v)
{
    tn__node *change = tn__scaled(u->set.lr, g);
    v[0] = tn__minus(tn__scaled(u->set.momentum, v[0]), change);
    return tn__plus(p, tn__minus(tn__scaled(u->set.momentum, v[0]), change));
}

static tn__node *adagrad(const tn__settings *u, tn__node *p, tn__node *g, tn__node **h)
{
    h[0] = tn__plus(h[0], tn__squared(g));
    return tn__minus(p, tn__over(tn__scaled(u->set.lr, g), tn__raised(tn__root(h[0]), u->set.eps)));
}

static tn__node *adadelta(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    double rho = u->set.rho, eps = u->set.eps;
    tn__node *s = tn__mixed(rho, state[0], tn__squared(g));
    tn__node *d = tn__times(tn__root(tn__over(tn__raised(state[1], eps), tn__raised(s, eps))), g);
    state[0] = s;
    state[1] = tn__mixed(rho, state[1], tn__squared(d));
    return tn__minus(p, tn__scaled(u->set.lr, d));
}

static tn__node *rmsprop(const tn__settings *u, tn__node *p, tn__node *g, tn__node **s)
{
    s[0] = tn__mixed(u->set.rho, s[0], tn__squared(g));
    return tn__minus(p, tn__over(tn__scaled(u->set.lr, g), tn__raised(tn__root(s[0]), u->set.eps)));
}

static tn__node *rmsprop_graves(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__node *n = tn__mixed(u->set.rho, state[0], tn__squared(g)), *a = tn__mixed(u->set.rho, state[1], g);
    tn__node *below = tn__root(tn__raised(tn__minus(n, tn__squared(a)), u->set.eps));
    state[0] = n;
    state[1] = a;
    state[2] = tn__minus(tn__scaled(u->set.momentum, state[2]), tn__over(tn__scaled(u->set.lr, g), below));
    return tn__plus(p, state[2]);
}

static tn__node *smorms3(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__node *r = tn__unary(TN__OP_RECIPROCAL, tn__raised(state[0], 1));
    tn__node *a = tn__plus(state[1], tn__times(r, tn__minus(g, state[1])));
    tn__node *b = tn__plus(state[2], tn__times(r, tn__minus(tn__squared(g), state[2])));
    tn__node *x = tn__over(tn__squared(a), tn__raised(b, u->set.eps));
    tn__node *rate = tn__binary(TN__OP_MINIMUM, x, tn__const_like(x, u->set.lr));
    state[0] = tn__raised(tn__times(state[0], tn__minus(tn__const_like(x, 1), x)), 1);
    state[1] = a;
    state[2] = b;
    return tn__minus(p, tn__over(tn__times(g, rate), tn__raised(tn__root(b), u->set.eps)));
}

/* ---- the family of Adam ---- */

void tn__moments(const tn__settings *u, tn__node *g, tn__node **state)
{
    state[0] = tn__mixed(u->set.beta1, state[0], g);
    state[1] = tn__mixed(u->set.beta2, state[1], tn__squared(g));
}

/* lr m^ / (sqrt(v^) + eps), of `v` or what stands for it. */
static tn__node *adam_change(const tn__settings *u, tn__node *m, tn__node *v)
{
    tn__node *root = tn__root(tn__scaled(1 / u->correction2, v));
    return tn__over(tn__scaled(u->set.lr / u->correction1, m), tn__raised(root, u->set.eps));
}

static tn__node *adam(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__moments(u, g, state);
    return tn__minus(p, adam_change(u, state[0], state[1]));
}

tn__node *tn__adamw(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__node *decayed = tn__scaled(1 - u->set.lr * u->set.weight_decay, p);
    tn__moments(u, g, state);
    return tn__minus(decayed, adam_change(u, state[0], state[1]));
}

static void largest_so_far(tn__node **state) { state[2] = tn__binary(TN__OP_MAXIMUM, state[2], state[1]); }

static tn__node *amsgrad(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__moments(u, g, state);
    largest_so_far(state);
    return tn__minus(p, adam_change(u, state[0], state[2]));
}

/* Adam's step size an element, kept between bounds that meet at final_lr as t grows. */
static tn__node *bounded(const tn__settings *u, tn__node *p, tn__node *m, tn__node *v)
{
    double final = u->first_lr > 0 ? u->set.final_lr * u->set.lr / u->first_lr : 0;
    double low = final * (1 - 1 / (u->set.gamma * (double)u->t + 1));
    double high = final * (1 + 1 / fmax(u->set.gamma * (double)u->t, 1e-300));
    tn__node *below = tn__raised(tn__root(v), u->set.eps);
    tn__node *rate = tn__over(tn__const_like(below, u->set.lr * sqrt(u->correction2) / u->correction1), below);
    rate = tn__binary(TN__OP_MAXIMUM, rate, tn__const_like(rate, low));
    rate = tn__binary(TN__OP_MINIMUM, rate, tn__const_like(rate, high));
    return tn__minus(p, tn__times(rate, m));
}

static tn__node *adabound(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__moments(u, g, state);
    return bounded(u, p, state[0], state[1]);
}

static tn__node *amsbound(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__moments(u, g, state);
    largest_so_far(state);
    return bounded(u, p, state[0], state[2]);
}

static tn__node *msvag(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    double beta = u->set.beta1, b = pow(beta, (double)u->t), left = 1 - b;
    double q = (1 - beta) * (1 - beta) * (1 - b * b) / (left * left * (1 - beta * beta));
    q = fmin(q, 0.9999);
    state[0] = tn__mixed(beta, state[0], g);
    state[1] = tn__mixed(beta, state[1], tn__squared(g));
    tn__node *m = tn__scaled(1 / left, state[0]), *square = tn__squared(m);
    tn__node *s = tn__scaled(1 / (1 - q), tn__minus(tn__scaled(1 / left, state[1]), square));
    tn__node *factor = tn__over(square, tn__plus(square, tn__scaled(q, s)));
    factor = tn__binary(TN__OP_MINIMUM, tn__binary(TN__OP_MAXIMUM, factor, tn__const_like(factor, 0)),
                        tn__const_like(factor, 1));
    factor = tn__where(tn__binary(TN__OP_EQUAL, factor, factor), factor, tn__const_like(factor, 0)); /* 0 / 0 */
    tn__node *decayed = tn__scaled(1 - u->set.lr * u->set.weight_decay, p);
    return tn__minus(decayed, tn__scaled(u->set.lr, tn__times(m, factor)));
}

static tn__node *radam(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    double t = (double)u->t, most = 2 / (1 - u->set.beta2) - 1,
           length = most - 2 * t * (1 - u->correction2) / u->correction2;
    tn__moments(u, g, state);
    if (length <= 5) /* the variance of the step size is not known yet */
        return tn__minus(p, tn__scaled(u->set.lr / u->correction1, state[0]));
    double r = sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
    return tn__minus(p, tn__scaled(r, adam_change(u, state[0], state[1])));
}

static tn__node *adamax(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__node *size = tn__raised(tn__unary(TN__OP_ABS, g), u->set.eps);
    state[0] = tn__mixed(u->set.beta1, state[0], g);
    state[1] = tn__binary(TN__OP_MAXIMUM, tn__scaled(u->set.beta2, state[1]), size);
    return tn__minus(p, tn__over(tn__scaled(u->set.lr / u->correction1, state[0]), state[1]));
}

static double nadam_weight(const tn__settings *u, double t)
{
    return u->set.beta1 * (1 - 0.5 * pow(0.96, t * u->set.gamma));
}

static tn__node *nadam(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    double t = (double)u->t, product = 1;
    for (double i = 1; i <= t && product > 1e-20; i++) /* then 1 - product is 1 for good */
        product *= nadam_weight(u, i);
    double now = nadam_weight(u, t), next = nadam_weight(u, t + 1);
    tn__moments(u, g, state);
    tn__node *below = tn__raised(tn__root(tn__scaled(1 / u->correction2, state[1])), u->set.eps);
    tn__node *above = tn__plus(tn__scaled(u->set.lr * next / (1 - product * next), state[0]),
                               tn__scaled(u->set.lr * (1 - now) / (1 - product), g));
    return tn__minus(p, tn__over(above, below));
}

static tn__node *lion(const tn__settings *u, tn__node *p, tn__node *g, tn__node **m)
{
    tn__node *way = tn__unary(TN__OP_SIGN, tn__mixed(u->set.beta1, m[0], g));
    tn__node *decayed = tn__scaled(1 - u->set.lr * u->set.weight_decay, p);
    m[0] = tn__mixed(u->set.beta2, m[0], g);
    return tn__minus(decayed, tn__scaled(u->set.lr, way));
}

/* ---- those that are neither ---- */

static tn__node *asgd(const tn__settings *u, tn__node *p, tn__node *g, tn__node **mean)
{
    double t = (double)u->t, rate = u->set.lr / pow(1 + u->set.gamma * u->set.lr * (t - 1), u->set.rho);
    double share = 1 / fmax(1, t - 1 - u->set.average_after);
    tn__node *now = tn__minus(tn__scaled(1 - u->set.gamma * rate, p), tn__scaled(rate, g));
    mean[0] = tn__mixed(1 - share, mean[0], now);
    return now;
}

/* The gradient is kept as it was used. A step size of 0 is none yet. */
static tn__node *rprop(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    tn__node *same = tn__times(g, state[0]), *size = state[1];
    tn__node *grows = tn__with(TN__OP_GREATER, same, 0), *shrinks = tn__with(TN__OP_LESS, same, 0);
    size = tn__where(tn__with(TN__OP_EQUAL, size, 0), tn__const_like(size, u->set.lr), size);
    size = tn__where(grows, tn__scaled(1.2, size), tn__where(shrinks, tn__scaled(0.5, size), size));
    size = tn__binary(TN__OP_MINIMUM, tn__binary(TN__OP_MAXIMUM, size, tn__const_like(size, 1e-6)),
                      tn__const_like(size, 50));
    state[0] = tn__where(shrinks, tn__const_like(g, 0), g);
    state[1] = size;
    return tn__minus(p, tn__times(size, tn__unary(TN__OP_SIGN, state[0])));
}

/* ---- the table ---- */

#define R(name)  TN__FIELD(name)
#define MOMENTUM R(momentum)
#define ADAM     (R(beta1) | R(beta2) | R(eps))
#define BOUND    (ADAM | R(final_lr) | R(gamma))

/* name, fields, defaults, states, update, and what else there is to say */
#define ROW(n, f, d, s, u, ...) {.name = n, .fields = f, .defaults = {d}, .state = {s}, .update = u, __VA_ARGS__}
#define _(...) __VA_ARGS__
#define APART  .decoupled_decay = true
const tn__optimizer_rule tn__optimizer_rules[] = {
    ROW("sgd", 0, , , sgd, .still = true),
    ROW("momentum_sgd", MOMENTUM, , "v", momentum, .alias = "momentum"),
    ROW("corrected_momentum_sgd", MOMENTUM, , "v", corrected_momentum, ),
    ROW("nesterov", MOMENTUM, , "v", nesterov, ),
    ROW("adagrad", R(eps), .lr = 0.001, "h", adagrad, ),
    ROW("adadelta", R(rho) | R(eps), _(.lr = 1, .eps = 1e-6), _("s", "x"), adadelta, ),
    ROW("rmsprop", R(rho) | R(eps), .rho = 0.99, "s", rmsprop, ),
    ROW("rmsprop_graves", MOMENTUM | R(rho) | R(eps), _(.lr = 1e-4, .eps = 1e-4), _("n", "a", "d"), rmsprop_graves, ),
    ROW("smorms3", R(eps), _(.lr = 0.001, .eps = 1e-16), _("k", "a", "b"), smorms3, .starts_at_one = true),
    ROW("adam", ADAM, .lr = 0.001, _("m", "v"), adam, ),
    ROW("adamw", ADAM, _(.lr = 0.001, .weight_decay = 0.01), _("m", "v"), tn__adamw, APART),
    ROW("amsgrad", ADAM, .lr = 0.001, _("m", "v", "vhat"), amsgrad, ),
    ROW("adabound", BOUND, .lr = 0.001, _("m", "v"), adabound, ),
    ROW("amsbound", BOUND, .lr = 0.001, _("m", "v", "vhat"), amsbound, ),
    ROW("msvag", R(beta1), .lr = 0.1, _("m", "v"), msvag, APART),
    ROW("radam", ADAM, .lr = 0.001, _("m", "v"), radam, ),
    ROW("lion", R(beta1) | R(beta2), _(.lr = 1e-4, .beta2 = 0.99), "m", lion, APART),
    ROW("lamb", ADAM, _(.lr = 0.001, .eps = 1e-6), _("m", "v"), tn__lamb, APART, .whole = true),
    ROW("adafactor", R(eps), .eps = 1e-3, _("row", "column"), tn__adafactor, APART, .whole = true,
        .state_shape = tn__adafactor_shape),
    ROW("adamax", ADAM, .lr = 0.002, _("m", "u"), adamax, ),
    ROW("nadam", ADAM | R(gamma), _(.lr = 0.002, .gamma = 0.004), _("m", "v"), nadam, ),
    ROW("asgd", R(gamma) | R(rho) | R(average_after), _(.gamma = 1e-4, .rho = 0.75), "a", asgd, ),
    ROW("rprop", 0, , _("g", "s"), rprop, ),
    ROW("muon", MOMENTUM | ADAM, _(.lr = 0.001, .momentum = 0.95, .eps = 1e-7, .weight_decay = 0.1), _("m", "v"),
        tn__muon, APART, .whole = true, .state_shape = tn__muon_shape),
    ROW("sparse_adam", ADAM, .lr = 0.001, _("m", "v"), tn__sparse_adam, .whole = true),
};
const int tn__optimizer_rule_count = sizeof tn__optimizer_rules / sizeof *tn__optimizer_rules;

/* Their constructors. */
#define NUMBER(name) RULE_##name,
enum { TN_OPTIMIZER_KINDS(NUMBER) RULE_COUNT };
_Static_assert(RULE_COUNT == sizeof tn__optimizer_rules / sizeof *tn__optimizer_rules,
               "TN_OPTIMIZER_KINDS and the table have the same rows in the same order");
#define MAKER(name) \
    tn_optimizer *tn_##name##_with(tn_layer *layer, const tn_optimizer_opts *opts) \
    { \
        return tn__optimizer_make(#name, &tn__optimizer_rules[RULE_##name], layer, opts, 0); \
    }
TN_OPTIMIZER_KINDS(MAKER)
