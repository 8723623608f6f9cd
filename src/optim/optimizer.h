/* SPDX-License-Identifier: MIT */
/*
 * What an optimizer is inside: a row of the table of rules, its settings, and for each parameter the arrays that the
 * rule remembers from step to step.
 */
#ifndef TN_OPTIM_OPTIMIZER_H
#define TN_OPTIM_OPTIMIZER_H

#include <tanso/optim.h>
#include "array/build.h"
#include "core/memory.h"
#include "nn/layer.h"

#define TN__MAX_STATE 2

/* What a rule sees of a step. Everything here becomes constants of the graph, which are arguments of kernels: a new
 * learning rate or step needs no new plan. */
typedef struct tn__settings {
    tn_optimizer_opts set;
    double correction1, correction2; /* Adam: 1 - beta^t */
} tn__settings;

/* The fields of tn_optimizer_opts as bits, in the order of tn__optimizer_fields. */
enum {
    TN__FIELD_LR = 1,
    TN__FIELD_MOMENTUM = 2,
    TN__FIELD_BETA1 = 4,
    TN__FIELD_BETA2 = 8,
    TN__FIELD_EPS = 16,
    TN__FIELD_WEIGHT_DECAY = 32,
    TN__FIELD_CLIP_NORM = 64,
    TN__FIELD_CLIP_VALUE = 128,
    TN__FIELD_COUNT = 8,
    TN__FIELDS_ALL_KINDS = TN__FIELD_LR | TN__FIELD_WEIGHT_DECAY | TN__FIELD_CLIP_NORM | TN__FIELD_CLIP_VALUE
};

typedef struct tn__field {
    const char *name;
    size_t offset;   /* in tn_optimizer_opts */
    double below;    /* values are finite, >= 0 and below this */
} tn__field;
extern const tn__field tn__optimizer_fields[TN__FIELD_COUNT];
double *tn__field_of(tn_optimizer_opts *opts, int field);

typedef struct tn__optimizer_rule {
    const char *name;
    unsigned fields;            /* those that the rule reads */
    tn_optimizer_opts defaults;
    int states;
    const char *state[TN__MAX_STATE]; /* names of the remembered arrays */
    bool decoupled_decay;       /* the rule applies weight decay itself; else it is added to the gradient */
    /* The new parameter from p and its gradient; replaces the state nodes by their new ones. */
    tn__node *(*update)(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state);
} tn__optimizer_rule;
extern const tn__optimizer_rule tn__optimizer_rules[];
extern const int tn__optimizer_rule_count;

/* A parameter as the optimizer knows it. */
typedef struct tn__tracked {
    tn_array *param;                 /* the layer's */
    char *path;
    tn_array *state[TN__MAX_STATE];  /* owned; NULL until the first step */
    char *state_name[TN__MAX_STATE];
} tn__tracked;

/* Of one parameter during a step. Borrowed nodes. */
typedef struct tn__work {
    tn__node *gradient; /* NULL: the parameter is left alone */
    tn__node *value;
    tn__node *state[TN__MAX_STATE];
} tn__work;

typedef struct tn__hook {
    tn_gradient_hook run;
    void *user;
} tn__hook;

struct tn_optimizer {
    tn__error *error; /* why construction failed, else NULL */
    bool is_static;   /* the out-of-memory optimizer */
    const tn__optimizer_rule *rule;
    tn_layer *layer;
    tn__follower follower; /* of the layer: the state moves with the parameters */
    tn_optimizer_opts set;
    int64_t steps;
    tn__tracked *tracked;
    size_t tracked_count, tracked_capacity;
    uint64_t seen;    /* the layer's count of changes when `tracked` was made */
    tn__work *work;   /* scratch of a step: one a tracked parameter */
    tn__node **roots; /* scratch: 1 + TN__MAX_STATE a tracked parameter */
    size_t work_capacity, root_capacity;
    tn__hook *hooks;
    size_t hook_count, hook_capacity;
};

/* An optimizer by its rule; `given` has the bits of fields that count although they are 0, besides those that the
 * options' own text names. */
tn_optimizer *tn__optimizer_make(const char *operation, const tn__optimizer_rule *rule, tn_layer *layer,
                                 const tn_optimizer_opts *opts, unsigned given);
/* An inert one that carries the error; takes over one reference to the record. */
tn_optimizer *tn__optimizer_error(tn__error *error);
tn_status tn__optimizer_raise(const tn_optimizer *optimizer);
/* Follows parameters that the layer has got since; latches. */
tn_status tn__optimizer_sync(tn_optimizer *optimizer);
/* The dtype that a parameter's update computes in, and its state has. */
tn_dtype tn__update_dtype(const tn__node *param);

/* Clips the gradients in place of the list; NULL entries are parameters without one. */
tn_status tn__clip(const tn_optimizer_opts *set, int count, tn__node **gradient);

#endif
