/* SPDX-License-Identifier: MIT */
/*
 * Optimizers. tn_step records the update of every parameter that has a gradient, evaluates everything in one plan,
 * points the parameters at their new values (their memory is reused) and clears their gradients.
 *
 * What a step releases: arrays recorded before it that depend on the parameters' old values. The loss on which
 * backward was called, small ones (up to 16,384 elements) and gradients of all other parameters are computed along with
 * the step; larger ones that were not tn_eval'ed before it can no longer be read, and say so. So one backward serves
 * several optimizers, of parts of a network or of several; gradients that nobody wants cost nothing where
 * tn_layer_clear_grads clears them before the step.
 */
#ifndef TANSO_OPTIM_H
#define TANSO_OPTIM_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_optimizer tn_optimizer;

typedef struct tn_optimizer_opts {
    const char *_;
    double lr;           /* default: SGD kinds 0.01, Adam kinds 0.001 */
    double momentum;     /* momentum, Nesterov: default 0.9 */
    double beta1, beta2; /* Adam kinds: default 0.9, 0.999 */
    double eps;          /* Adam kinds: default 1e-8 */
    double weight_decay; /* SGD kinds and Adam: added to the gradient as decay * p; AdamW: decoupled, default 0.01 */
    double clip_norm;    /* scales all gradients down so that their joint L2 norm is at most this; default: 0, off */
    double clip_value;   /* clamps each element to [-v, v] first; default: 0, off */
} tn_optimizer_opts;

/* p -= lr g. The optimizer borrows the layer, which must outlive it, and sees parameters inferred later too. */
TN_API tn_optimizer *tn_sgd_with(tn_layer *layer, const tn_optimizer_opts *opts);
/* v = momentum v - lr g; p += v (Polyak 1964). */
TN_API tn_optimizer *tn_momentum_sgd_with(tn_layer *layer, const tn_optimizer_opts *opts);
/* v = momentum v - lr g; p += momentum v - lr g (Nesterov's, in the form of Sutskever et al. 2013). */
TN_API tn_optimizer *tn_nesterov_with(tn_layer *layer, const tn_optimizer_opts *opts);
/* m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g²; p -= lr m^ / (sqrt(v^) + eps), where after t steps m^ is
 * m / (1 - beta1^t) and v^ is v / (1 - beta2^t) (Kingma and Ba 2015). */
TN_API tn_optimizer *tn_adam_with(tn_layer *layer, const tn_optimizer_opts *opts);
/* The same with decoupled decay: p -= lr weight_decay p, too (Loshchilov and Hutter 2019). */
TN_API tn_optimizer *tn_adamw_with(tn_layer *layer, const tn_optimizer_opts *opts);
/* "sgd", "sgd:lr=0.1", "adamw:lr=1e-3,weight_decay=0.1": kinds sgd momentum nesterov adam adamw; keys the fields of
 * tn_optimizer_opts. An unknown word's error names the nearest valid one. */
TN_API tn_optimizer *tn_optimizer_parse(const char *text, tn_layer *layer);

/* One update, see above: hooks, clipping by value, clipping by norm, weight decay, the rule. The status is latched
 * too. A parameter without a gradient is left alone; if none has one, tn_backward was forgotten: TN_ERR_STATE. After
 * a failure the parameters and the state have their old values, and the gradients are cleared. On a GPU a failure may
 * be told of later (engine.h): then those have their old values that were overwritten in place, as all are whose old
 * values nobody else holds. */
TN_API tn_status tn_step(tn_optimizer *optimizer);
/* Frees it with its state; the layer stays. NULL is ignored. */
TN_API void tn_optimizer_free(tn_optimizer *optimizer);
/* TN_OK, or why making it failed. */
TN_API tn_status tn_optimizer_status(const tn_optimizer *optimizer);

/* The learning rate and the number of steps done; both may change freely during training. */
TN_API double tn_optimizer_lr(const tn_optimizer *optimizer);
TN_API void tn_optimizer_set_lr(tn_optimizer *optimizer, double lr);
TN_API int64_t tn_optimizer_steps(const tn_optimizer *optimizer);
TN_API void tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t steps);

/* A hook runs before each update, with gradient recording off, and may change gradients (tn_set_grad). Hooks run in
 * the order they were added; one that returns an error ends the step. */
typedef tn_status (*tn_gradient_hook)(tn_optimizer *optimizer, tn_layer *layer, void *user);
TN_API tn_status tn_optimizer_add_hook(tn_optimizer *optimizer, tn_gradient_hook hook, void *user);

/* The state arrays (momenta and such), named "<parameter path>.<name>": for snapshots and moves. They come with the
 * first step; arrays and names are the optimizer's. Out of range: an error array, "", and TN_ERR_INDEX latched. */
TN_API int tn_optimizer_state_count(const tn_optimizer *optimizer);
TN_API tn_array *tn_optimizer_state(const tn_optimizer *optimizer, int i);
TN_API const char *tn_optimizer_state_name(const tn_optimizer *optimizer, int i);
/* Sets (makes, if it is not there yet) the state of that name. */
TN_API tn_status tn_optimizer_set_state(tn_optimizer *optimizer, const char *name, const tn_array *value);

#ifndef TN_NO_MACROS
#define tn_optimizer_parse(...) TN_HERE(tn_optimizer_parse(__VA_ARGS__))
#define tn_optimizer_add_hook(...) TN_HERE(tn_optimizer_add_hook(__VA_ARGS__))
#define tn_optimizer_state(...) TN_HERE(tn_optimizer_state(__VA_ARGS__))
#define tn_optimizer_state_name(...) TN_HERE(tn_optimizer_state_name(__VA_ARGS__))
#define tn_optimizer_set_state(...) TN_HERE(tn_optimizer_set_state(__VA_ARGS__))
#define tn_optimizer_set_lr(...) TN_HERE(tn_optimizer_set_lr(__VA_ARGS__))
#define tn_optimizer_set_steps(...) TN_HERE(tn_optimizer_set_steps(__VA_ARGS__))
#define tn_step(optimizer) TN_HERE(tn_step(optimizer))
#define tn_sgd(...) TN__CALL_V(tn_sgd_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_momentum_sgd(...) TN__CALL_V(tn_momentum_sgd_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_nesterov(...) TN__CALL_V(tn_nesterov_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adam(...) TN__CALL_V(tn_adam_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adamw(...) TN__CALL_V(tn_adamw_with, tn_optimizer_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
