/* SPDX-License-Identifier: MIT */
/*
 * What a layer is inside the library: its kind, its slots for parameters, its children.
 *
 * A slot is a parameter by name with the shape it must have; an extent of -1 stands for the layer's number of input
 * features while that is still to be inferred (all such extents of one layer are the same number). Its array is made,
 * by the slot's initialiser, as soon as the shape is known.
 */
#ifndef TN_NN_LAYER_H
#define TN_NN_LAYER_H

#include <tanso/io.h>
#include <tanso/hooks.h>
#include <tanso/nn.h>
#include "array/build.h"
#include "core/memory.h"
#include "core/object.h"

typedef struct tn__slot {
    char *name;
    tn_array *value; /* owned; NULL: still to be inferred */
    tn_shape shape;  /* -1: the inferred extent */
    tn_dtype dtype;
    tn_init init;
    bool persistent; /* no parameter: kept, saved and moved with the layer, but not trained */
    bool frozen;     /* a parameter without gradient */
    size_t *holders; /* how many slots have this array, of layers that share it; NULL: this one alone */
} tn__slot;

typedef struct tn__child {
    char *name;
    tn_layer *layer;
} tn__child;

/* What a layer of several inputs and outputs is called with: nodes, borrowed. Inputs that were left out are NULL. */
typedef struct tn__flow {
    int in_count, out_count;
    tn__node *const *in;
    tn__node **out; /* to be filled */
} tn__flow;

/* How many arrays a layer takes and gives. */
typedef struct tn__ports {
    int inputs;   /* -1: any number, at least one */
    int optional; /* of these, from the end, may be left out */
    int outputs;
} tn__ports;

typedef struct tn__layer_kind {
    const char *name;
    /* The function of the layer over nodes (borrowed ones, see array/node.h): no handles are made, so that the compiler
     * sees that nobody looks at what lies between. */
    tn__node *(*forward)(tn_layer *layer, tn__node *x);
    /* The same of a layer of several inputs or outputs, instead. */
    void (*flow)(tn_layer *layer, const tn__flow *flow);
    /* The parameter that Chainer keeps as (out, in); NULL: none. */
    const char *transposed;
    /* What a file of Chainer's has for a slot under other names, which begin with `before`; NULL: nothing, or, if there
     * is no such function, that names are the same. An array of the open scope. */
    tn_array *(*from_chainer)(const tn_layer *layer, const tn__slot *slot, const tn_archive *archive,
                              const char *before);
    /* Appends the arguments to the kind's name as tn_layer_parse reads them; NULL: none. */
    void (*describe)(const tn_layer *layer, tn__text *text);
    size_t settings; /* bytes of what a layer of this kind has in its `settings` */
    bool kernels;    /* weights are (out, in, extents...), which says what their initialiser's fans are */
} tn__layer_kind;

/* A parameter in the flat list of a layer and everything below it. */
typedef struct tn__param {
    char *path;
    tn_array *value;
} tn__param;

/*
 * Somebody who keeps arrays beside a layer's parameters, each on its parameter's device, as an optimizer keeps its
 * state: tn_layer_to takes them along. It is a part of its owner; the layer lists it.
 */
typedef struct tn__follower {
    tn_layer *layer; /* NULL: listed nowhere, or the layer has been freed */
    struct tn__follower *next;
    void *owner;
    /* Gives each array with its parameter to `take`, as long as that gives TN_OK; what it gave last. */
    tn_status (*each)(const void *owner, tn_status (*take)(void *user, const tn_array *param, tn_array *array),
                      void *user);
} tn__follower;

/* Who runs a layer's forward, in the place of the layer, but where it is `inside` that. */
typedef struct tn__keeper {
    void *owner;
    void (*flow)(struct tn__keeper *keeper, tn_layer *layer, const tn__flow *flow);
    bool inside;
} tn__keeper;

/* Called around a layer's forward. */
typedef struct tn__layer_hook {
    tn_layer_hook run;
    void *user;
    void (*free_user)(void *user); /* with the layer; NULL: the program's */
} tn__layer_hook;

struct tn_layer {
    tn__object object;
    const tn__layer_kind *kind;
    tn__error *error; /* why construction failed, else NULL */
    bool is_static;   /* the out-of-memory layer: shared by all threads and never freed or changed */
    bool evaluating;  /* not training */
    tn_device device; /* where parameters still to be inferred are made; zero: where the first input is */
    tn_layer *parent;
    tn__slot *slots;
    tn__child *children;
    size_t slot_count, slot_capacity, child_count, child_capacity;
    uint64_t changes; /* grows with every parameter or layer that comes, here or below */
    struct {
        tn__param *items; /* up to date when made_at == changes */
        int count;
        uint64_t made_at;
    } flat;
    tn__follower *followers;
    tn__layer_hook *hooks;
    size_t hook_count, hook_capacity;
    const tn__flow *call; /* while hooks run: what they are called around */
    bool in_parts;        /* marked by tn_layer_shard */
    tn__keeper *keeper;   /* an optimizer's, of a marked layer; NULL: none */
    uint64_t forgotten;   /* forget.c: its number among those called by tn_forget; 0: none */
    double number; /* of the kinds: slope, ratio, eps */
    int axis;
    tn__ports ports;    /* of kinds with `flow` */
    struct { /* of a layer of the user's own; of the others, its data alone */
        char *name;
        tn_forward_fn forward;
        tn_flow_fn flow;
        tn_array *(*function)(const tn_array *x, void *user);
        void *data;
        size_t size; /* of the data, which lie in memory of the layer's; 0: the program's pointer */
        void (*free_data)(void *data);
        tn_status (*copied)(tn_layer *copy, void *data);
    } user;
    void *settings; /* of the kinds: plain data, copied with the layer */
};

/* ---- layer.c ---- */
/* A new layer; without memory the static error layer. */
tn_layer *tn__layer_make(const tn__layer_kind *kind);
/* An inert layer that carries the error; takes over one reference to the record. */
tn_layer *tn__layer_error(tn__error *error);
/* The layer, or, if the status is an error, frees it and gives an error layer with the last failure. */
tn_layer *tn__layer_finish(tn_layer *layer, tn_status status);
/* Frees a layer that was to be taken over, unless it is another layer's or has been freed. NULL is ignored. */
void tn__layer_discard(tn_layer *layer);
/* tn_layer_status, latched again. */
tn_status tn__layer_raise(const tn_layer *layer);
/* The user's own name of a layer, or its kind's. */
const char *tn__layer_name(const tn_layer *layer);
/* Notes that parameters or children came, up to the root. */
void tn__layer_changed(tn_layer *layer);

/* ---- flow.c ---- */
/* A layer's output for one input; of several the first. */
tn__node *tn__layer_forward(tn_layer *layer, tn__node *x);
/* Its outputs for several inputs; fills all that are asked for, with error nodes should it fail. */
void tn__layer_flow(tn_layer *layer, const tn__flow *flow);
/* How many arrays it takes and gives. */
tn__ports tn__layer_ports(const tn_layer *layer);

/* ---- own.c ---- */
/* Zeros of that size for a layer of the library's to keep its options in, in layer->user.data: copied as bytes and
 * freed with it. NULL and latched without memory. */
void *tn__layer_data(tn_layer *layer, size_t size);
/* Frees what a layer of the user's own has beside parameters and children. */
void tn__own_free(tn_layer *layer);
/* Gives a copy of a layer its name, functions and data; `tn__own_copied` lets the program finish the data once the
 * copy has its parameters and children. */
tn_status tn__own_copy(tn_layer *copy, const tn_layer *layer);
tn_status tn__own_copied(tn_layer *copy, const tn_layer *layer);

/* ---- hooks.c ---- */
/* Adds one whose data the layer frees. */
tn_status tn__layer_add_own_hook(tn_layer *layer, tn_layer_hook hook, void *user, void (*free_user)(void *user));
void tn__layer_free_hooks(tn_layer *layer);
/* Calls the layer's hooks in the order they were added, after forward in the other one; the first failure ends it. One
 * before forward has those that ran called as after it. */
tn_status tn__layer_run_hooks(tn_layer *layer, bool after);

/* ---- slots.c ---- */
/* Adds a slot and, if the shapes of all slots so far are known, its array. */
tn_status tn__slot_add(tn_layer *layer, const char *name, tn_shape shape, tn_dtype dtype, tn_init init);
/* The same of a persistent value. */
tn_status tn__slot_add_persistent(tn_layer *layer, const char *name, tn_shape shape, tn_dtype dtype, tn_init init);
/* Checks that a new parameter or child may have this name. */
tn_status tn__layer_check_name(const tn_layer *layer, const char *operation, const char *name);
/* Makes the arrays of all slots still to be inferred, for `features` input features, on the layer's device or, when
 * none was chosen, on `device`. */
tn_status tn__slots_infer(tn_layer *layer, int64_t features, tn__device *device);
/* For layers whose first parameter has one element a feature of the last axis: makes what is still to be inferred, and
 * latches TN_ERR_SHAPE if x has another number of them. */
bool tn__fits_features(tn_layer *layer, const tn__node *x);
/* Frees a slot's array, unless others hold it, and name. */
void tn__slot_free(tn__slot *slot);
/* Has a new slot hold another one's array, too. Allocates, and latches. */
tn_status tn__slot_share(tn_layer *layer, tn__slot *slot);
/* The node of a slot's array. */
static inline tn__node *tn__slot_node(const tn_layer *layer, int i)
{
    return tn__array_node(layer->slots[i].value);
}

/* ---- walk.c ---- */
/* Calls `visit` for every slot of a layer and below it, made or not, with its path, as long as that gives TN_OK. */
typedef tn_status (*tn__slot_visitor)(tn_layer *layer, tn__slot *slot, const char *path, void *user);
tn_status tn__visit_slots(tn_layer *layer, const char *prefix, tn__slot_visitor visit, void *user);
/* Persistent values as they are, of a layer and below it, for a second forward, which would change them again; and
 * putting them back. What is kept begins as zeros, and is put back in any case. */
typedef struct tn__keeping {
    struct {
        tn_array *array;
        tn__node *node;
    } *kept;
    size_t count, capacity;
} tn__keeping;
tn_status tn__persistents_keep(tn_layer *layer, tn__keeping *k);
void tn__persistents_put_back(tn__keeping *k);
/* The slot of a path; NULL if there is none. */
tn__slot *tn__slot_at(const tn_layer *layer, const char *path);
/* Makes a slot's parameter one without gradient, or with one again. */
void tn__slot_freeze(tn__slot *slot, bool frozen);
/* Puts parameters and persistent values into an archive, by their paths; in the place of those whose shape is still to
 * be inferred a text, TN__TO_INFER, so that loading knows that they were. */
#define TN__TO_INFER "to be inferred"
tn_status tn__layer_archive(const tn_layer *layer, tn_archive *archive);

/* ---- params.c ---- */
/* The flat list of parameters that have arrays, made anew when the layer has changed; false and latched without
 * memory. */
bool tn__layer_flat(const tn_layer *layer, const tn__param **items, int *count);

/* TN_OK if the value of a parameter, or of all of a layer's, is here; else latched. */
tn_status tn__param_is_here(const char *operation, const tn_array *param, const char *path);
tn_status tn__layer_is_here(const char *operation, const tn_layer *layer);
/* Points a parameter at a node that no handle shows yet, which becomes the leaf, unless it is frozen. The node has a
 * value, or gets it before the parameter is used. Allocates nothing: it can't fail, and can be undone. */
void tn__param_point(tn_array *param, tn__node *node);
/* The same for an array that is kept beside a parameter, which is no leaf. */
void tn__state_point(tn_array *state, tn__node *node);
/* The same two; they return what the handle pointed to, whose reference is the caller's now. */
tn__node *tn__param_replace(tn_array *param, tn__node *node);
tn__node *tn__state_replace(tn_array *state, tn__node *node);

/* ---- copy.c ---- */
/* tn_layer_copy_params for several layers at once. */
tn_status tn__layers_copy_params(int count, tn_layer *const *to, const tn_layer *from);

/* ---- ops/copy.c ---- */
/* Lists a follower, whose owner and function are set, and takes it off the list of whatever layer it is in. */
void tn__layer_follow(tn_layer *layer, tn__follower *follower);
void tn__layer_unfollow(tn__follower *follower);

/* ---- patterns.c ---- */
/* Whether a path matches a pattern of the shell, whose first "*." may stand for nothing: "*.W" is also a bare layer's
 * "W". */
bool tn__path_matches(const char *pattern, const char *path);
/* TN_ERR_NAME, with the names there are, if the pattern matches no parameter of the layer, nor persistent value where
 * these are asked for; what is to be inferred has its name already. `option` follows the pattern: "", " of .ignore". */
tn_status tn__pattern_check(const char *operation, const char *option, const char *pattern, const tn_layer *layer,
                            bool persistent);
/* The same of several patterns, which spaces separate and may have slashes for dots: whether one of them matches, and
 * whether each of them matches something, persistent values too. NULL: there are none. */
bool tn__patterns_match(const char *operation, const char *patterns, const char *path, tn_status *status);
tn_status tn__patterns_check(const char *operation, const char *option, const char *patterns, const tn_layer *layer);

/* Of a load into several layers: notes which of the patterns of .transpose and .ignore match something in this one, a
 * bit each; and TN_ERR_NAME, if one of the first 64 of each has matched nothing in any of them. */
enum { TN__LOAD_PATTERNS = 2 };
tn_status tn__load_patterns_note(const tn_load_opts *opts, const tn_layer *layer, unsigned long long *met);
tn_status tn__load_patterns_check(const char *operation, const tn_load_opts *opts, const unsigned long long *met);

/* ---- layer_io.c ---- */
/* tn_layer_load from an archive that was read already; `file` names it in messages; opts may be NULL. */
tn_status tn__layer_load_from(tn_layer *layer, const tn_archive *archive, const char *file, const tn_load_opts *opts);

/* Whether a file of these options has the slot of a path transposed; *status: without memory. */
bool tn__load_turns(const tn_load_opts *opts, const tn_layer *layer, const tn__slot *slot, const char *path,
                    tn_status *status);

/* ---- sequential.c ---- */
extern const tn__layer_kind tn__sequential_kind;

/* ---- parse.c ---- */
/* A layer from one word of tn_layer_parse, "linear:10". */
tn_layer *tn__layer_from_word(const char *operation, const char *word);

#endif
