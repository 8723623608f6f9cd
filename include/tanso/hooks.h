/* SPDX-License-Identifier: MIT */
/*
 * What is called around the forwards of layers: functions of the program's own, and some that are of use to many.
 */
#ifndef TANSO_HOOKS_H
#define TANSO_HOOKS_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A hook is called before each forward of the layer and after it, to time, count or look at it; it gets the layer as it
 * is then, whose weights it may change before (tn_assign). A status other than TN_OK makes forward give an error. Hooks
 * before run in the order they were added, those after in the other one; copies of the layer have none. */
typedef tn_status (*tn_layer_hook)(tn_layer *layer, bool after, void *user);
TN_API tn_status tn_layer_add_hook(tn_layer *layer, tn_layer_hook hook, void *user);
/* Takes away those that were added with both; not from inside one. */
TN_API void tn_layer_remove_hook(tn_layer *layer, tn_layer_hook hook, void *user);
/* In a hook: the inputs that the layer was called with and, after forward, its outputs. */
TN_API tn_array *tn_hook_input(const tn_layer *layer, int i);
TN_API tn_array *tn_hook_output(const tn_layer *layer, int i);

/* tn_forward(layer, x) of which only x and the result are kept for backward: what is in between is computed again
 * there, with the same random numbers and running statistics, so that a deep network takes the memory of its widest
 * part (Chen et al. 2016; Chainer's forget, PyTorch's checkpoint). x and the result are evaluated at once. Running
 * statistics change once. A layer has at most 14 parameters and persistent values; the latter are made before the call
 * (TN_ERR_STATE). None in it goes on from its last call (.stateful: TN_ERR_UNSUPPORTED), and functions of the program's
 * own give the same again. Backward latches TN_ERR_STATE if the layer is gone, has other weights or another
 * tn_layer_train than it had, or uses a parameter or marked array that is neither x nor its own. Gradients of any
 * order; those of .create_graph keep what they need. */
TN_API tn_array *tn_forget(tn_layer *layer, const tn_array *x);

typedef struct tn_spectral_norm_opts {
    const char *_;
    const char *weight; /* default "W" */
    int iterations;     /* of the power method, a forward; default 1 */
    double eps;         /* beside norms; default 1e-6 */
    double factor;      /* the largest singular value is to be; default 1 */
    int axis;           /* of the weight's outputs; default the last */
} tn_spectral_norm_opts;
/* From now on the layer is called with its weight divided by the largest singular value, which power iterations
 * estimate (Miyato et al. 2018); in training they go on from the last call's, the persistent value "W_u". The parameter
 * itself stays as it is. The weight must have its shape. */
TN_API tn_status tn_spectral_norm_with(tn_layer *layer, const tn_spectral_norm_opts *opts);

typedef struct tn_weight_hook_opts {
    const char *_;
    const char *weight; /* default "W" */
    int axis;           /* of the weight's outputs; default the last (of convolutions it is 0) */
    double eps;         /* of standardization; default 1e-6 */
} tn_weight_hook_opts;
/* From now on the layer is called with g W / |W|, the length being that of what makes one output (Salimans and Kingma
 * 2016, PyTorch's weight_norm): lengths g (outputs), a new parameter "W_g", learn apart from W's directions. At first g
 * is |W|, so that nothing changes; optimizers are made afterwards. The weight must have its shape. */
TN_API tn_status tn_weight_norm_hook_with(tn_layer *layer, const tn_weight_hook_opts *opts);
/* From now on the layer is called with (W - mean) / (deviation + eps), of what makes one output (Qiao et al. 2019,
 * Chainer's WeightStandardization). The parameter itself stays as it is. The weight must have its shape. */
TN_API tn_status tn_weight_standardization_with(tn_layer *layer, const tn_weight_hook_opts *opts);

/* Called for each operation that any thread records, by its name ("add", "matmul"), with its result's dtype and shape,
 * gradients' included: to count or to trace what functions do. Operations are fused and run later, so their time is
 * that of plans (tn_profile). One at a time in a process; NULL: none. What the hook itself records is not told. */
typedef void (*tn_function_hook)(const char *operation, tn_dtype dtype, tn_shape shape, void *user);
TN_API void tn_set_function_hook(tn_function_hook hook, void *user);

/* Counts and times the forwards of a layer and of all below it, by path ("" for the layer itself). To tell their times
 * apart each output is computed and waited for, so a network is slower while it is timed. Never NULL; freed before the
 * layer is. */
typedef struct tn_timer tn_timer;
TN_API tn_timer *tn_timer_new(tn_layer *layer);
TN_API void tn_timer_free(tn_timer *timer);
TN_API tn_status tn_timer_status(const tn_timer *timer);
/* 0, with TN_ERR_NAME latched, for another path. */
TN_API int64_t tn_timer_calls(const tn_timer *timer, const char *path);
TN_API double tn_timer_seconds(const tn_timer *timer, const char *path);
/* A table of all; freed with tn_string_free. */
TN_API char *tn_timer_string(const tn_timer *timer);

#ifndef TN_NO_MACROS
#define tn_layer_add_hook(...) TN_HERE(tn_layer_add_hook(__VA_ARGS__))
#define tn_forget(...) TN_HERE(tn_forget(__VA_ARGS__))
#define tn_spectral_norm(...) TN__CALL_V(tn_spectral_norm_with, tn_spectral_norm_opts, __VA_ARGS__, )
#define tn_weight_norm_hook(...) TN__CALL_V(tn_weight_norm_hook_with, tn_weight_hook_opts, __VA_ARGS__, )
#define tn_weight_standardization(...) \
    TN__CALL_V(tn_weight_standardization_with, tn_weight_hook_opts, __VA_ARGS__, )
#define tn_hook_input(...) TN_HERE(tn_hook_input(__VA_ARGS__))
#define tn_hook_output(...) TN_HERE(tn_hook_output(__VA_ARGS__))
#define tn_timer_new(...) TN_HERE(tn_timer_new(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
