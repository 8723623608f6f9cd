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

#include <tanso/comm.h>
#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_optimizer tn_optimizer;

/*
 * The hyperparameters of all optimizers: type, name, least value, what it is below, and its default, but where an
 * optimizer's own line below says another. Those that an optimizer does not read are refused. New ones come last.
 */
#define TN_OPTIMIZER_FIELDS(F) \
    F(double, lr, 0, INFINITY, 0.01)                /* learning rate */ \
    F(double, momentum, 0, 1, 0.9) \
    F(double, beta1, 0, 1, 0.9)                     /* of the running mean of gradients */ \
    F(double, beta2, 0, 1, 0.999)                   /* of the running mean of their squares */ \
    F(double, eps, 0, INFINITY, 1e-8) \
    F(double, weight_decay, 0, INFINITY, 0) /* added to the gradient as decay * p, unless a line below has it */ \
    F(double, clip_norm, 0, INFINITY, 0)            /* scales gradients to a joint L2 norm of at most this; 0: off */ \
    F(double, clip_value, 0, INFINITY, 0)           /* clamps each element to [-v, v] first; 0: off */ \
    F(double, clip_low, -INFINITY, INFINITY, -INFINITY)   /* clamps each element from below, */ \
    F(double, clip_high, -INFINITY, INFINITY, INFINITY)   /* and from above */ \
    F(double, lasso, 0, INFINITY, 0)                /* added to the gradient as lasso * sign(p) */ \
    F(double, noise, 0, INFINITY, 0)                /* adds N(0, noise / t^0.55) (Neelakantan et al. 2015) */ \
    F(bool, lars, 0, 2, 0)                          /* g = r (g + decay p), r = |p| / (1e-9 + |g| + decay |p|) */ \
    F(double, lars_threshold, 0, INFINITY, 0.01)    /* where |p| is above this, else r = 1 (You et al. 2017) */ \
    F(bool, skip_nonfinite, 0, 2, 0)                /* leaves out updates whose joint norm is not finite */ \
    F(double, rho, 0, 1, 0.95)                      /* of running means of squares */ \
    F(double, final_lr, 0, INFINITY, 0.1) \
    F(double, gamma, 0, INFINITY, 0.001) \
    F(double, average_after, 0, INFINITY, 1e6)      /* asgd: updates before its mean begins */

#define TN__OPTIMIZER_MEMBER(type, name, ...) type name;
typedef struct tn_optimizer_opts {
    const char *_;
    TN_OPTIMIZER_FIELDS(TN__OPTIMIZER_MEMBER)
} tn_optimizer_opts;

/*
 * The optimizers, by name, with their update: g is the gradient after what the options do to it, t the parameter's
 * updates from 1, m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t); states begin as zeros. For each NAME there is
 * tn_NAME(layer, .option = ...), and tn_optimizer_parse knows it by the name, too.
 */
#define TN_OPTIMIZER_KINDS(O) \
    O(sgd)              /* p -= lr g */ \
    O(momentum_sgd)     /* v = momentum v - lr g; p += v (Polyak 1964). Parsed as "momentum", too */ \
    O(corrected_momentum_sgd) /* v = momentum v - g; p += lr v: a new lr holds for all of v, as in PyTorch's SGD */ \
    O(nesterov)         /* v = momentum v - lr g; p += momentum v - lr g (Nesterov's, as Sutskever et al. 2013) */ \
    O(adagrad)          /* h += g²; p -= lr g / (sqrt(h) + eps); lr 0.001 (Duchi et al. 2011) */ \
    O(adadelta)         /* s = rho s + (1 - rho) g²; d = sqrt((x + eps) / (s + eps)) g; x = rho x + (1 - rho) d²; \
                           p -= lr d; lr 1, eps 1e-6 (Zeiler 2012) */ \
    O(rmsprop)          /* s = rho s + (1 - rho) g²; p -= lr g / (sqrt(s) + eps); rho 0.99 (Tieleman, Hinton 2012) */ \
    O(rmsprop_graves)   /* n = rho n + (1 - rho) g²; a = rho a + (1 - rho) g; d = momentum d - lr g / sqrt(n - a² + \
                           eps); p += d; lr 1e-4, eps 1e-4 (Graves 2013) */ \
    O(smorms3)          /* r = 1 / (k + 1); a = (1 - r) a + r g; b = (1 - r) b + r g²; x = a² / (b + eps); \
                           p -= g min(x, lr) / (sqrt(b) + eps); k = 1 + k (1 - x), from 1; lr 0.001, eps 1e-16 */ \
    O(adam)             /* m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g²; p -= lr m^ / (sqrt(v^) + eps); \
                           lr 0.001 (Kingma and Ba 2015) */ \
    O(adamw)            /* adam, and p -= lr weight_decay p, 0.01 (Loshchilov and Hutter 2019); Chainer's decay is not \
                           multiplied by its alpha: weight_decay_rate is lr weight_decay here */ \
    O(amsgrad)          /* adam, with the largest v so far instead of v (Reddi et al. 2018) */ \
    O(adabound)         /* m, v as adam; p -= clip(a / (sqrt(v) + eps), l, u) m with a = lr sqrt(1 - beta2^t) / \
                           (1 - beta1^t), l = f (1 - 1 / (gamma t + 1)), u = f (1 + 1 / (gamma t)), f = final_lr \
                           lr / its first value; lr 0.001 */ \
    O(amsbound)         /* adabound, with the largest v so far instead of v (Luo et al. 2019) */ \
    O(msvag)            /* b = beta1^t; q = min((1 - beta1)² (1 - b²) / ((1 - b)² (1 - beta1²)), 0.9999); m, v as \
                           adam's with beta1; M = m / (1 - b); s = (v / (1 - b) - M²) / (1 - q); p -= lr M c, \
                           c = M² / (M² + q s) from 0 to 1; decoupled decay; lr 0.1 (Balles and Hennig 2018) */ \
    O(radam)            /* adam, its step rectified where t is large enough, else p -= lr m^ (Liu et al. 2020) */ \
    O(lion)             /* p -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay p); m = beta2 m + (1 - beta2) g; \
                           lr 1e-4, beta2 0.99 (Chen et al. 2023) */ \
    O(lamb)             /* u = m^ / (sqrt(v^) + eps) + weight_decay p; p -= lr |p| / |u| u, the ratio 1 where a norm \
                           is 0; lr 0.001, eps 1e-6 (You et al. 2020) */ \
    O(adafactor)        /* v from means of g² over rows and over columns, with 1 - t^-0.8 for beta2; u = g / sqrt(v); \
                           p -= max(eps, rms(p)) min(lr, 1 / sqrt(t)) u / max(1, rms(u)); decoupled decay; eps 0.001 \
                           (Shazeer and Stern 2018, in PyTorch's form) */ \
    O(adamax)           /* m as adam's; u = max(beta2 u, |g| + eps); p -= lr m^ / u; lr 0.002 (Kingma and Ba 2015) */ \
    O(nadam)            /* m, v as adam's; w_t = beta1 (1 - 0.96^(gamma t) / 2), P_t = w_1 ... w_t; p -= lr (w_t+1 m / \
                           (1 - P_t+1) + (1 - w_t) g / (1 - P_t)) / (sqrt(v^) + eps); lr 0.002, gamma 0.004 (Dozat \
                           2016) */ \
    O(asgd)             /* e = lr / (1 + gamma lr (t - 1))^rho; p -= e (g + gamma p); the state "a" is the mean of p \
                           over the updates from average_after on, until then p; gamma 1e-4, rho 0.75 (Polyak and \
                           Juditsky 1992) */ \
    O(rprop)            /* s, lr at first, times 1.2 where g has the sign of the last one, times 0.5, and g = 0, where \
                           it has the other one, within 1e-6 and 50; p -= s sign(g); for gradients of all samples at \
                           once (Riedmiller and Braun 1993) */ \
    O(muon)             /* m = momentum m + (1 - momentum) g; p -= lr sqrt(max(1, rows / columns)) X, X the mean of m \
                           and g by momentum with its singular values near 1 (five steps of Newton and Schulz, in g's \
                           dtype, PyTorch's in bfloat16), of what has more than two axes as a matrix of its first \
                           extent; vectors and scalars, which PyTorch refuses, by adamw; decoupled decay, 0.1; lr \
                           0.001, momentum 0.95, eps 1e-7 (Jordan et al. 2024) */ \
    O(sparse_adam)      /* adam, eps not divided by (1 - beta2^t)'s root, of the rows (along the first axis) whose \
                           gradient is not 0: the others' p, m and v stay, as embeddings want it; lr 0.001 */

/* The optimizer borrows the layer, and sees parameters inferred later too. Once the layer has been freed, all that an
 * optimizer can do is to be freed; else it is TN_ERR_STATE. */
#define TN__OPTIMIZER_MAKER(name) TN_API tn_optimizer *tn_##name##_with(tn_layer *layer, const tn_optimizer_opts *opts);
TN_OPTIMIZER_KINDS(TN__OPTIMIZER_MAKER)
/* "sgd", "sgd:lr=0.1", "adamw:lr=1e-3,weight_decay=0.1": names and options as above. An unknown word's error names the
 * nearest valid one. */
TN_API tn_optimizer *tn_optimizer_parse(const char *text, tn_layer *layer);

/*
 * An optimizer of the program's own: `update` gives the new parameter from p and its gradient g (of float32 at least),
 * and puts new arrays of their shape in the place of those of `state`, which begin as zeros. It records with the
 * functions of array.h, once a parameter and step, in a scope of its own; its numbers had better be constants of the
 * graph, as C numbers are, so that each step finds the plan of the last. `states` has the names of the arrays that it
 * remembers, "m v", three at most; options are read as by all others (weight_decay is added to the gradient).
 */
typedef struct tn_update {
    const tn_optimizer_opts *set; /* as they are for this parameter in this step */
    int64_t t;                    /* the parameter's updates, this one included */
    void *user;
} tn_update;
typedef tn_array *(*tn_update_fn)(const tn_update *update, const tn_array *p, const tn_array *g, tn_array **state);
TN_API tn_optimizer *tn_optimizer_new_with(tn_layer *layer, const char *states, tn_update_fn update, void *user,
                                           const tn_optimizer_opts *opts);

/* One update, see above. In order: hooks; clip_value, clip_low and clip_high; clip_norm; noise; lasso; weight_decay;
 * the rule. The status is latched too. A parameter without a gradient is left alone, its count of updates too; if none
 * has one, tn_backward was forgotten: TN_ERR_STATE. Where gradients are clipped by their norm, one that is infinite or
 * NaN changes nothing and is TN_ERR_NAN, or left out with skip_nonfinite. After a failure the parameters and the state
 * have their old values, and the gradients are cleared. On a GPU a failure may be told of later (engine.h): then those
 * have their old values that were overwritten in place, as all are whose old values nobody else holds; of a norm it is
 * told some steps later, which change nothing either. */
TN_API tn_status tn_step(tn_optimizer *optimizer);
typedef struct tn_distribute_opts {
    const char *_;
    int shard; /* 1: states and updates are shared out; 2: and gradients of layers that are marked (tn_layer_shard);
                  3: and their parameters; 0: each rank has all of them */
    int64_t bucket; /* bytes of gradients that go from GPU to GPU by themselves, beside the rest of backward, the same
                       on all ranks; default: 32 MiB, or a quarter of all where that is more */
} tn_distribute_opts;
/*
 * Has an optimizer work for several ranks, each of which trains the same network with its own samples and calls tn_step
 * as often: parameters become rank 0's, now, or, of those that have no shape yet, in the first step that finds them;
 * and each step goes by the mean of all ranks' gradients, before hooks and clipping, so that parameters stay the same
 * everywhere. A rank without a gradient for a parameter counts as one of 0. Where ranks began with different
 * parameters that came in a step, this step only makes them equal, and updates nothing (give all ranks one tn_seed).
 * The communicator, which must last as long as the optimizer, may be of one rank: then nothing changes.
 *
 * With .shard = 1 each rank keeps the state of its share of the parameters' elements alone, and updates those, from the
 * sums of the gradients that it gets for them; then all get all new parameters (ZeRO, stage 1: Rajbhandari et al.
 * 2020). Results are as without, but for the order of sums; parameters are windows of the vectors that they came in,
 * of up to 2^24 elements each. Of a rule that looks at a parameter as a whole (lamb, adafactor, .lars,
 * tn_optimizer_new) each parameter is one rank's. Gradient hooks, which would see whole gradients, are
 * TN_ERR_UNSUPPORTED then. If one rank fails in an update, the others' states may be a step ahead: go on from a
 * snapshot.
 *
 * With .shard = 2 or 3 (ZeRO, stages 2 and 3) the forward of a marked layer computes its output at once and keeps its
 * inputs alone; backward does that forward again, with the same random numbers, and sends the gradients on before it
 * goes on to the layer below. So of one marked layer at a time there are whole gradients, and activations within it;
 * tn_grad of its parameters finds none. With 3, parameters of marked layers are brought together before each forward
 * and each backward of theirs and dropped after it: elsewhere they read as NaN, and cannot be saved, copied or moved
 * (TN_ERR_STATE); loading gives each rank its part. Then all ranks call forward (in evaluation, too), backward, and
 * step as often as each other, in the same order; frozen parameters, and those that layers share, stay whole.
 * Gradients that go through such a layer have none themselves (.create_graph). Distributing anew, without .shard, makes
 * everything whole, which an optimizer that is freed does not do.
 */
TN_API tn_status tn_optimizer_distribute_with(tn_optimizer *optimizer, tn_comm *comm,
                                              const tn_distribute_opts *opts) TN_MUST_CHECK;
/*
 * Where updates are shared out, the states (tn_optimizer_state) that a rank has are vectors of the elements that are
 * its own, and each may set all of a state, or that. All ranks call this before one of them saves the optimizer, alone
 * or in a snapshot: afterwards, until the next step, rank 0 has all states, whole, in the host's memory, and until the
 * next forward all parameters, where they are. Any number of ranks loads them. TN_OK, and nothing, for others.
 */
TN_API tn_status tn_optimizer_gather(tn_optimizer *optimizer) TN_MUST_CHECK;

/* Frees it with its state; the layer stays. NULL is ignored. */
TN_API void tn_optimizer_free(tn_optimizer *optimizer);
/* TN_OK, or why making it failed. */
TN_API tn_status tn_optimizer_status(const tn_optimizer *optimizer);

/* Any option by its name, which may change during training as the learning rate does. NaN and TN_ERR_NAME
 * latched for a name that there is not. */
TN_API double tn_optimizer_get(const tn_optimizer *optimizer, const char *name);
TN_API tn_status tn_optimizer_set(tn_optimizer *optimizer, const char *name, double value);
/* Options of those parameters whose path matches a pattern of the shell ("*.b", "0.*", "*"; see fnmatch), present ones
 * and those to come: tn_optimizer_for(opt, "*.b", .lr = 0.1, .weight_decay = 0). Later calls go before earlier ones. A
 * "*." at the beginning may stand for nothing: "*.b" is also a bare layer's "b". A pattern that matches no parameter of
 * the layer, nor one that it has yet to infer, is TN_ERR_NAME, which says what names there are.
 * A learning rate stays in its proportion to the optimizer's, which must not be 0. clip_norm and skip_nonfinite are of
 * all parameters. Hyperparameters of a pattern are the program's: they are not saved with the state. */
TN_API tn_status tn_optimizer_for_with(tn_optimizer *optimizer, const char *pattern, const tn_optimizer_opts *opts);

/* The learning rate and the number of steps done; both may change freely during training. Each parameter has a count of
 * its own updates, which bias corrections go by; set_steps sets all of them. */
TN_API double tn_optimizer_lr(const tn_optimizer *optimizer);
TN_API void tn_optimizer_set_lr(tn_optimizer *optimizer, double lr);
TN_API int64_t tn_optimizer_steps(const tn_optimizer *optimizer);
TN_API void tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t steps);
/* The updates that parameter i of the layer had. TN_ERR_INDEX and 0 out of range. */
TN_API int64_t tn_optimizer_param_steps(const tn_optimizer *optimizer, int i);

/* A hook runs before each update, with gradient recording off, and may change gradients (tn_set_grad). Hooks run in
 * the order they were added; one that returns an error ends the step. */
typedef tn_status (*tn_gradient_hook)(tn_optimizer *optimizer, tn_layer *layer, void *user);
TN_API tn_status tn_optimizer_add_hook(tn_optimizer *optimizer, tn_gradient_hook hook, void *user);
/* Takes away those that were added with both; not from inside one. */
TN_API void tn_optimizer_remove_hook(tn_optimizer *optimizer, tn_gradient_hook hook, void *user);

/* The state arrays (momenta and such), named "<parameter path>.<name>": for snapshots and moves. They come with the
 * first step; arrays and names are the optimizer's. Out of range: an error array, "", and TN_ERR_INDEX latched. */
TN_API int tn_optimizer_state_count(const tn_optimizer *optimizer);
TN_API tn_array *tn_optimizer_state(const tn_optimizer *optimizer, int i);
TN_API const char *tn_optimizer_state_name(const tn_optimizer *optimizer, int i);
/* Sets (makes, if it is not there yet) the state of that name. */
TN_API tn_status tn_optimizer_set_state(tn_optimizer *optimizer, const char *name, const tn_array *value);

/* Saves state, options and counts to a file of its own, .safetensors or .npz; and loads them into an optimizer of the
 * same kind for a layer with the same parameters. Nothing changes if that fails. */
TN_API tn_status tn_optimizer_save(const tn_optimizer *optimizer, const char *path) TN_MUST_CHECK;
TN_API tn_status tn_optimizer_load(tn_optimizer *optimizer, const char *path) TN_MUST_CHECK;

/* ---- L-BFGS ---- */

/*
 * The limited-memory BFGS method (Liu and Nocedal 1989), for losses that are the same each time, of all samples at
 * once. It asks for the loss several times a step, so it is not one of the optimizers above: the program gives it a
 * function instead of a backward.
 *
 *     static tn_array *loss(void *user) { return tn_mean(tn_square(tn_subtract(tn_forward(net, x), t))); }
 *     tn_lbfgs *lbfgs = tn_lbfgs(net, .strong_wolfe = true);
 *     for (int i = 0; i < 10; i++)
 *         tn_lbfgs_step(lbfgs, loss, NULL, &value);
 *
 * Values are those of PyTorch's LBFGS, whose names of options stand in parentheses where they are others.
 */
typedef struct tn_lbfgs tn_lbfgs;
/* The loss, floating and of one element, recorded from the layer's parameters as they are now; an array of the scope
 * that is around the call, with the recording of gradients on. It must not step, nor change parameters. */
typedef tn_array *(*tn_loss_fn)(void *user);
typedef struct tn_lbfgs_opts {
    const char *_;
    double lr;                 /* how far to go along the direction, and where the line search begins; default 1 */
    int iterations;            /* movements a step, at most (max_iter); default 20 */
    int evaluations;           /* of the loss a step; no movement begins after so many (max_eval); default 1.25
                                  iterations */
    double gradient_tolerance; /* a step ends where no element of the gradient is larger (tolerance_grad); default
                                  1e-7 */
    double change_tolerance;   /* or where neither a parameter nor the loss changes by more (tolerance_change); default
                                  1e-9 */
    int history;               /* movements that are remembered, of two vectors each (history_size); default 100 */
    bool strong_wolfe;         /* search along the direction for a step that satisfies the strong Wolfe conditions
                                  (Nocedal and Wright, algorithms 3.5 and 3.6) */
} tn_lbfgs_opts;
/* Borrows the layer, all of whose parameters must be on one device; frozen ones stay as they are. Never NULL; one that
 * could not be made has its reason as its status. */
TN_API tn_lbfgs *tn_lbfgs_with(tn_layer *layer, const tn_lbfgs_opts *opts);
/* Moves the parameters until it is time to end, see the options, and clears their gradients. *value (NULL: not wanted)
 * is the loss at its beginning. The status is latched, too: of the function, of backward; TN_ERR_STATE if no parameter
 * has part in the loss, TN_ERR_SHAPE if it is not of one element. After a failure the parameters have the values that
 * they had before, and the movements are forgotten. A loss that is no number ends the step with nothing said. */
TN_API tn_status tn_lbfgs_step(tn_lbfgs *lbfgs, tn_loss_fn loss, void *user, double *value);
/* Movements so far. */
TN_API int64_t tn_lbfgs_iterations(const tn_lbfgs *lbfgs);
/* TN_OK, or why making it failed. */
TN_API tn_status tn_lbfgs_status(const tn_lbfgs *lbfgs);
/* Frees it with what it remembers; the layer stays. NULL is ignored. */
TN_API void tn_lbfgs_free(tn_lbfgs *lbfgs);

#ifndef TN_NO_MACROS
#define tn_lbfgs(...) TN__CALL_V(tn_lbfgs_with, tn_lbfgs_opts, __VA_ARGS__, )
#define tn_lbfgs_step(...) TN_HERE(tn_lbfgs_step(__VA_ARGS__))
#define tn_optimizer_parse(...) TN_HERE(tn_optimizer_parse(__VA_ARGS__))
#define tn_optimizer_add_hook(...) TN_HERE(tn_optimizer_add_hook(__VA_ARGS__))
#define tn_optimizer_state(...) TN_HERE(tn_optimizer_state(__VA_ARGS__))
#define tn_optimizer_state_name(...) TN_HERE(tn_optimizer_state_name(__VA_ARGS__))
#define tn_optimizer_set_state(...) TN_HERE(tn_optimizer_set_state(__VA_ARGS__))
#define tn_optimizer_set_lr(...) TN_HERE(tn_optimizer_set_lr(__VA_ARGS__))
#define tn_optimizer_set_steps(...) TN_HERE(tn_optimizer_set_steps(__VA_ARGS__))
#define tn_optimizer_get(...) TN_HERE(tn_optimizer_get(__VA_ARGS__))
#define tn_optimizer_set(...) TN_HERE(tn_optimizer_set(__VA_ARGS__))
#define tn_step(optimizer) TN_HERE(tn_step(optimizer))
#define tn_optimizer_distribute(...) \
    TN__CALL_VV(tn_optimizer_distribute_with, tn_distribute_opts, __VA_ARGS__, )
#define tn_optimizer_gather(optimizer) TN_HERE(tn_optimizer_gather(optimizer))
#define tn_optimizer_for(...) TN__CALL_VV(tn_optimizer_for_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_optimizer_new(...) TN__CALL_VVVV(tn_optimizer_new_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_sgd(...) TN__CALL_V(tn_sgd_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_momentum_sgd(...) TN__CALL_V(tn_momentum_sgd_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_corrected_momentum_sgd(...) TN__CALL_V(tn_corrected_momentum_sgd_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_nesterov(...) TN__CALL_V(tn_nesterov_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adagrad(...) TN__CALL_V(tn_adagrad_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adadelta(...) TN__CALL_V(tn_adadelta_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_rmsprop(...) TN__CALL_V(tn_rmsprop_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_rmsprop_graves(...) TN__CALL_V(tn_rmsprop_graves_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_smorms3(...) TN__CALL_V(tn_smorms3_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adam(...) TN__CALL_V(tn_adam_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adamw(...) TN__CALL_V(tn_adamw_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_amsgrad(...) TN__CALL_V(tn_amsgrad_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adabound(...) TN__CALL_V(tn_adabound_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_amsbound(...) TN__CALL_V(tn_amsbound_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_msvag(...) TN__CALL_V(tn_msvag_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_radam(...) TN__CALL_V(tn_radam_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_lion(...) TN__CALL_V(tn_lion_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_lamb(...) TN__CALL_V(tn_lamb_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adafactor(...) TN__CALL_V(tn_adafactor_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_adamax(...) TN__CALL_V(tn_adamax_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_nadam(...) TN__CALL_V(tn_nadam_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_asgd(...) TN__CALL_V(tn_asgd_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_rprop(...) TN__CALL_V(tn_rprop_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_muon(...) TN__CALL_V(tn_muon_with, tn_optimizer_opts, __VA_ARGS__, )
#define tn_sparse_adam(...) TN__CALL_V(tn_sparse_adam_with, tn_optimizer_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
