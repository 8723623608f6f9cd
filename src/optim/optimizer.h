/* SPDX-License-Identifier: MIT */
/*
 * What an optimizer is inside: a row of the table of rules, its settings, and for each parameter the arrays that the
 * rule remembers from step to step. To add one: its name in TN_OPTIMIZER_KINDS of tanso/optim.h, its row in rules.c.
 */
#ifndef TN_OPTIM_OPTIMIZER_H
#define TN_OPTIM_OPTIMIZER_H

#include <tanso/comm.h>
#include <tanso/io.h>
#include <tanso/optim.h>
#include <tanso/random.h>
#include "array/build.h"
#include "core/memory.h"
#include "core/object.h"
#include "nn/layer.h"

#define TN__MAX_STATE 3

/* What a rule sees of a step. Everything here becomes constants of the graph, which are arguments of kernels: a new
 * learning rate or step needs no new plan. */
typedef struct tn__settings {
    tn_optimizer_opts set;
    const tn_optimizer *optimizer;
    int64_t t;                       /* the parameter's updates, this one included */
    double first_lr;                 /* the learning rate when the optimizer was made */
    tn_generator *noise;             /* of `noise`; NULL: the thread's */
    double correction1, correction2; /* 1 - beta1^t, 1 - beta2^t */
} tn__settings;

/* The fields of tn_optimizer_opts, numbered, and as bits. */
#define TN__FIELD_NUMBER(type, name, ...) TN__FIELD_##name,
enum { TN_OPTIMIZER_FIELDS(TN__FIELD_NUMBER) TN__FIELD_COUNT };
#define TN__FIELD(name) (1u << TN__FIELD_##name)
/* Those that are read whatever the rule, as they change the gradient. */
#define TN__FIELDS_ALL_KINDS \
    (TN__FIELD(lr) | TN__FIELD(weight_decay) | TN__FIELD(clip_norm) | TN__FIELD(clip_value) | TN__FIELD(clip_low) | \
     TN__FIELD(clip_high) | TN__FIELD(lasso) | TN__FIELD(noise) | TN__FIELD(lars) | TN__FIELD(lars_threshold) | \
     TN__FIELD(skip_nonfinite))
/* Those that are of all parameters together. */
#define TN__FIELDS_JOINT (TN__FIELD(clip_norm) | TN__FIELD(skip_nonfinite))

typedef struct tn__field {
    const char *name;
    size_t offset;               /* in tn_optimizer_opts */
    bool flag;                   /* a bool, else a double */
    double least, below, usual;  /* values are at least `least`, and below `below`; the default of most rules */
} tn__field;
extern const tn__field tn__optimizer_fields[TN__FIELD_COUNT];
double tn__field_get(const tn_optimizer_opts *opts, int field);
void tn__field_put(tn_optimizer_opts *opts, int field, double value);

typedef struct tn__optimizer_rule {
    const char *name, *alias;   /* the latter for tn_optimizer_parse, or NULL */
    unsigned fields;            /* those that the rule reads, besides those that all do */
    tn_optimizer_opts defaults; /* that are not 0 and not the field's usual ones */
    const char *state[TN__MAX_STATE]; /* names of the remembered arrays */
    bool whole;                 /* it looks at a parameter as a whole: elements cannot be updated apart */
    bool decoupled_decay;       /* the rule applies weight decay itself; else it is added to the gradient */
    bool still;                 /* it changes nothing where the gradient is 0 */
    bool starts_at_one;         /* the first state begins as ones, not zeros */
    /* The new parameter from p and its gradient; replaces the state nodes by their new ones. */
    tn__node *(*update)(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state);
    /* The shape of a state; NULL: the parameter's. */
    tn_shape (*state_shape)(const tn__shape *param, int which);
} tn__optimizer_rule;
extern const tn__optimizer_rule tn__optimizer_rules[];
extern const int tn__optimizer_rule_count;
/* All fields that a rule reads, as bits. */
static inline unsigned tn__rule_fields(const tn__optimizer_rule *rule) { return rule->fields | TN__FIELDS_ALL_KINDS; }

#define TN__SHARD_MOST 3 /* of tn_distribute_opts */

/* Where a parameter lies in the vectors of an optimizer whose work is shared out: shard.c. */
typedef struct tn__shard_place {
    int bucket;          /* the vector, from 1; 0: none */
    int64_t place;       /* where the parameter begins there */
    int64_t begin, size; /* which of its elements are this rank's to update */
    unsigned made;       /* the states that the ranks have of it, as bits */
    int layer;           /* which marked layer it belongs to, from 1; 0: none */
    bool reached;        /* backward has sent a gradient of it */
    tn_array *whole[TN__MAX_STATE]; /* what tn_optimizer_gather brought together; owned */
} tn__shard_place;

/* A parameter as the optimizer knows it. */
typedef struct tn__tracked {
    tn_array *param;                 /* the layer's */
    char *path;
    bool shared;                     /* is rank 0's on all ranks */
    int64_t steps;                   /* updates that it had */
    tn_optimizer_opts own;           /* options of its own: those of the bits; lr as a factor */
    unsigned own_given;
    tn_array *state[TN__MAX_STATE];  /* owned; NULL until the first step */
    char *state_name[TN__MAX_STATE];
    tn__shard_place shard;
} tn__tracked;

/* Of one parameter during a step. Borrowed nodes. */
typedef struct tn__work {
    tn__node *gradient; /* NULL: the parameter is left alone, here at least */
    tn__node *param;    /* what is updated: the parameter, or this rank's elements of it */
    tn__node *value;
    bool updated;       /* here or by another rank */
    tn__node *state[TN__MAX_STATE];
    int bucket;         /* distribute.c: the one that the gradient travels in, from 1; 0: none */
    int64_t place;      /* where it begins there */
} tn__work;

typedef struct tn__hook {
    tn_gradient_hook run;
    void *user;
} tn__hook;

/* Options for the parameters whose path matches a pattern. */
typedef struct tn__group {
    char *pattern;
    tn_optimizer_opts set; /* of which only those of `given` count; lr as a factor of the optimizer's */
    unsigned given;
} tn__group;

struct tn_optimizer {
    tn__object object;
    tn__error *error; /* why construction failed, else NULL */
    bool is_static;   /* the out-of-memory optimizer */
    const tn__optimizer_rule *rule;
    struct { /* of the program's own */
        tn__optimizer_rule rule; /* its names point into `names` */
        tn_update_fn update;
        void *data;
        char *names;
    } user;
    tn_layer *layer;
    tn__follower follower; /* of the layer: the state moves with the parameters */
    tn_optimizer_opts set;
    double first_lr;
    int states;       /* arrays that the rule remembers for a parameter */
    int64_t steps;
    int64_t base;     /* the updates that a parameter is taken to have had which comes later */
    tn__tracked *tracked;
    size_t tracked_count, tracked_capacity;
    uint64_t seen;    /* the layer's count of changes when `tracked` was made */
    tn__group *groups;
    size_t group_count, group_capacity;
    tn__work *work;   /* scratch of a step: one a tracked parameter */
    tn__node **roots; /* scratch: 1 + TN__MAX_STATE a tracked parameter, and one */
    tn__node **old;   /* of as many: what roots take the place of, held during evaluation */
    size_t work_capacity, root_capacity, old_capacity;
    tn_comm *comm;    /* borrowed: the ranks whose gradients' means it takes; NULL: this one alone */
    int64_t bucket;   /* bytes of gradients that travel together; 0: as many as is usual */
    struct tn__shard *shard; /* how they share the updates out; NULL: each does all of them */
    uint64_t noise_key;      /* the same on all ranks, of the noise that they add */
    tn_generator noise;      /* of a step of theirs */
    tn__hook *hooks;
    size_t hook_count, hook_capacity;
    struct { /* clip.c: of gradients whose norm is no finite number */
        tn_array *count; /* how many so far, a 0-d float32; owned, NULL: none yet */
        tn__node *next;  /* borrowed, during a step: its next value, or NULL */
        tn__node *keep;  /* borrowed, during a step: whether everything stays as it is, or NULL */
        int unread;      /* steps since it was read */
    } wrong;
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
/* Forgets all parameters with their state, until the next look at the layer. */
void tn__optimizer_forget(tn_optimizer *optimizer);

/* ---- settings.c ---- */
/* The options with the rule's defaults filled in; latches if a value can't be. */
tn_status tn__settings_settle(const char *operation, const tn__optimizer_rule *rule, unsigned given,
                              tn_optimizer_opts *set);
/* Finds the options that a parameter has of its own, by the groups that its path matches. */
void tn__settings_of_groups(const tn_optimizer *optimizer, tn__tracked *tracked);
/* TN_OK, or latched: a value that the field can't have, or a field that the rule does not read. */
tn_status tn__field_check(const char *operation, const tn__optimizer_rule *rule, int field, double value);
/* The number of a field, or -1, latched. */
int tn__field_find(const char *operation, const tn__optimizer_rule *rule, const char *name);
/* What the parameter's update goes by, its next one. */
tn__settings tn__settings_now(const tn_optimizer *optimizer, const tn__tracked *tracked);

/* ---- step.c ---- */
/* The dtype that a parameter's update computes in, and its state has. */
tn_dtype tn__update_dtype(const tn__node *param);

/* ---- state.c ---- */
/* TN_OK if there is a state of this name that the value fits; else latched. */
tn_status tn__optimizer_fits_state(const tn_optimizer *optimizer, const char *name, const tn_array *value);
/* The shape of a parameter's state. */
tn_shape tn__state_shape(const tn_optimizer *optimizer, const tn__shape *param, int which);

/* ---- save.c ---- */
/* Puts state, counts, kind and options into an archive, arrays by names after `prefix`, numbers as metadata; and takes
 * them from one again. */
tn_status tn__optimizer_archive(const tn_optimizer *optimizer, tn_archive *archive, const char *prefix);
tn_status tn__optimizer_restore(tn_optimizer *optimizer, const tn_archive *archive, const char *prefix,
                                const char *file);
/* The parameters' counts of updates in order, "3 3 0", for metadata; "" where all are the optimizer's. NULL, latched,
 * without memory. And setting them, after tn_optimizer_set_steps. */
char *tn__optimizer_counts(const tn_optimizer *optimizer);
tn_status tn__optimizer_set_counts(tn_optimizer *optimizer, const char *text);

/* ---- gradient.c ---- */
/* Whether noise, lasso, LARS or decay change gradients, and a parameter's gradient after them; p and g of one dtype. */
bool tn__changes_gradients(const tn__settings *u);
tn__node *tn__gradient_changed(const tn__settings *u, tn__node *p, tn__node *g);

/* ---- distribute.c ---- */
/* Before a step of several ranks: gradients become means over them. skip: some rank had other parameters than rank 0,
 * and so gradients of them, which nobody wants: all have rank 0's now, and no step is made. */
tn_status tn__optimizer_share(tn_optimizer *optimizer, bool *skip);
/* Elements of a vector from `begin` on, in a shape. */
tn__node *tn__part_of(tn__node *vector, int64_t begin, const tn__shape *shape);
/* The gradients that parameters have, into the scratch of the step; how many there are. */
int tn__look_for_gradients(tn_optimizer *optimizer);

/* ---- shard.c ---- */
/* Whether arrays of state are all that there are of them. And the same as TN_OK, or latched. */
bool tn__optimizer_has_all(const tn_optimizer *optimizer);
tn_status tn__optimizer_is_whole(const tn_optimizer *optimizer, const char *operation);

/* ---- clip.c ---- */
/* Clips the gradients in place of the list by their joint norm; NULL entries are parameters without one. Sets the
 * optimizer's wrong.next and wrong.keep. */
tn_status tn__clip_norm(tn_optimizer *optimizer, int count, tn__node **gradient);
/* Clamps one gradient's elements. */
tn__node *tn__clip_values(const tn_optimizer_opts *set, tn__node *g);
/* Before and after a step: whether a norm was not finite, if it is time to look. */
tn_status tn__clip_look(tn_optimizer *optimizer, bool now);

#endif
