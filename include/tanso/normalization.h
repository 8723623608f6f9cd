/* SPDX-License-Identifier: MIT */
/*
 * Normalization: functions, and layers with parameters and running statistics. Statistics are computed in at least
 * float32, and the result has x's dtype, which is floating. gamma and beta are what is multiplied and added
 * afterwards; either may be NULL. tn_layer_norm is in nn.h.
 */
#ifndef TANSO_NORMALIZATION_H
#define TANSO_NORMALIZATION_H

#include <tanso/comm.h>
#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- batch normalization (Ioffe and Szegedy 2015) ---- */

typedef struct tn_batch_norm_opts {
    const char *_;
    int axis;        /* of the channels, negative from the end; default 1 */
    double eps;      /* added to the variances; default 1e-5 (PyTorch's; Chainer's is 2e-5) */
    double momentum; /* running = (1 - momentum) running + momentum batch; default 0.1; Chainer's decay is 1 less it */
    bool cumulative; /* running statistics are the means over all batches so far (PyTorch's momentum=None) */
    bool no_gamma, no_beta;
    bool no_running; /* no running statistics: those of the batch in evaluation mode, too */
    double rmax, dmax; /* batch renormalization (Ioffe 2017): the correction toward the running statistics is up to rmax
                          times and dmax deviations; default rmax 0: none */
    tn_dtype dtype;  /* of parameters and statistics; default float32 */
} tn_batch_norm_opts;

/* (x - mean) / sqrt(var + eps) gamma + beta, mean and var those of each channel over all other axes; gamma and beta
 * (channels). Of opts axis and eps are read. The divisor of var is the number of elements, which is one or more. */
TN_API tn_array *tn_batch_norm_function_with(const tn_array *x, const tn_array *gamma, const tn_array *beta,
                                             const tn_batch_norm_opts *opts);
/* The same with statistics (channels) that are given. */
TN_API tn_array *tn_fixed_batch_norm_with(const tn_array *x, const tn_array *gamma, const tn_array *beta,
                                          const tn_array *mean, const tn_array *var, const tn_batch_norm_opts *opts);

/*
 * The layer: parameters "gamma", "beta", of ones and zeros at first, and persistent values "avg_mean", "avg_var" (zeros
 * and ones) and "N" (int64, how many batches they are of), named as Chainer's; PyTorch's load by tn_layer_load's
 * .rename = "gamma=weight beta=bias avg_mean=running_mean avg_var=running_var N=num_batches_tracked". channels 0:
 * inferred at the first forward.
 *
 * In training mode it normalizes by the batch's statistics and has the running ones follow, their variance with the
 * divisor n - 1 (1 of a single element), as both frameworks have it; in evaluation mode by the running ones. Statistics
 * that are to stay as they are during training: tn_layer_train(batch_norm, false); parameters: tn_layer_freeze.
 */
TN_API tn_layer *tn_batch_norm_with(int64_t channels, const tn_batch_norm_opts *opts);

/*
 * Batch normalizations in a layer, and those below it, take their statistics over the minibatches of all ranks from now
 * on (ChainerMN's create_mnbn_model), as if these were one; gradients go through all of them, too. Each forward by the
 * batch's statistics is then a call of tn_comm_all_gather, and each backward through it another: all ranks make them in
 * the same order, with as many channels. A communicator of one rank ends that. Copies of the layer go on as it does,
 * files know nothing of it. A forward after the communicator was freed fails with TN_ERR_STATE.
 */
TN_API tn_status tn_layer_share_statistics(tn_layer *layer, tn_comm *comm);
/* Persistent floating values of a layer and all below it, as running statistics, become their means over all ranks
 * (ChainerMN's AllreducePersistent). All ranks call it, with layers alike. */
TN_API tn_status tn_layer_average_persistents(tn_layer *layer, tn_comm *comm);

/* ---- groups, instances, features ---- */

/* (x - mean) / sqrt(var + eps) gamma + beta over each of `groups` groups of neighbouring channels, axis 1, and all axes
 * behind it, for each sample, axis 0 (Wu and He 2018); gamma and beta (channels); eps 0 stands for 1e-5. As many groups
 * as channels: instance normalization (Ulyanov et al. 2016). */
TN_API tn_array *tn_group_norm_function(const tn_array *x, int64_t groups, const tn_array *gamma, const tn_array *beta,
                                        double eps);
/* Layers of it with parameters "gamma" and "beta" (channels; 0: inferred). Instances have these if .affine is given, as
 * in PyTorch. */
TN_API tn_layer *tn_group_norm(int64_t groups, int64_t channels, double eps);
typedef struct tn_instance_norm_opts {
    const char *_;
    double eps;  /* default 1e-5 */
    bool affine; /* with gamma and beta; default: without */
} tn_instance_norm_opts;
TN_API tn_layer *tn_instance_norm_with(int64_t channels, const tn_instance_norm_opts *opts);

/* x / sqrt(mean(x²) + eps) gamma over the axes of gamma, the last ones of x, or over the last axis if gamma is NULL
 * (Zhang and Sennrich 2019); eps 0 stands for the dtype's epsilon, as in PyTorch. */
TN_API tn_array *tn_rms_norm_function(const tn_array *x, const tn_array *gamma, double eps);
/* The layer with parameter "gamma" (features; 0: inferred), of the last axis. */
TN_API tn_layer *tn_rms_norm(int64_t features, double eps);
/* tn_layer_norm over as many last axes as the shape has, of these extents; parameters "gamma", "beta" of it. */
TN_API tn_layer *tn_layer_norm_over(tn_shape shape, double eps);

/* ---- norms ---- */

/* x over its norm of order p >= 1 along an axis, or over eps where that is larger; eps 0 stands for 1e-12 (PyTorch's
 * normalize). The slope where the norm is 0 is that of x / eps. */
TN_API tn_array *tn_normalize(const tn_array *x, double p, int axis, double eps);
/* g v / |v|, |v| the norm of v over all axes but `axis`, along which g lies: a weight whose length and direction are
 * parameters of their own (Salimans and Kingma 2016). */
TN_API tn_array *tn_weight_norm(const tn_array *v, const tn_array *g, int axis);

#ifndef TN_NO_MACROS
#define tn_batch_norm_function(...) TN__CALL_VVV(tn_batch_norm_function_with, tn_batch_norm_opts, __VA_ARGS__, )
#define tn_fixed_batch_norm(...) TN__CALL_VVVVV(tn_fixed_batch_norm_with, tn_batch_norm_opts, __VA_ARGS__, )
#define tn_batch_norm(...) TN__CALL_V(tn_batch_norm_with, tn_batch_norm_opts, __VA_ARGS__, )
#define tn_instance_norm(...) TN__CALL_V(tn_instance_norm_with, tn_instance_norm_opts, __VA_ARGS__, )
#define tn_group_norm_function(...) TN_HERE(tn_group_norm_function(__VA_ARGS__))
#define tn_group_norm(...) TN_HERE(tn_group_norm(__VA_ARGS__))
#define tn_rms_norm_function(...) TN_HERE(tn_rms_norm_function(__VA_ARGS__))
#define tn_rms_norm(...) TN_HERE(tn_rms_norm(__VA_ARGS__))
#define tn_layer_norm_over(...) TN_HERE(tn_layer_norm_over(__VA_ARGS__))
#define tn_normalize(...) TN_HERE(tn_normalize(__VA_ARGS__))
#define tn_weight_norm(...) TN_HERE(tn_weight_norm(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
