/* SPDX-License-Identifier: MIT */
/* Losses over elements: distances, likelihoods, divergences, margins of single numbers. */
#include "nn/loss_parts.h"

#include <inttypes.h>
#include <math.h>
#include <tanso/array.h>
#include "nn/activation.h"
#include "nn/cross_entropy.h"

/* ---- operands ---- */

/* The floating dtype that the operands promote to, integers following; an error if none is floating. */
static tn_dtype common_dtype(int count, tn__node *const *x)
{
    tn_dtype dtype = TN_DTYPE_DEFAULT;
    for (int i = 0; i < count; i++) {
        tn_dtype own = (tn_dtype)x[i]->dtype;
        if (tn_dtype_is_float(own))
            dtype = dtype ? tn_dtype_promote(dtype, own) : own;
    }
    return dtype;
}

tn__operands tn__operands_of(const char *operation, int count, const tn_array *const *arrays, const char *const *names)
{
    tn__operands o = {.dtype = TN_DTYPE_DEFAULT};
    for (int i = 0; i < count; i++)
        o.x[i] = tn__node_of(arrays[i], operation);
    if ((o.error = tn__first_error(count, o.x)))
        return o;
    o.dtype = common_dtype(count, o.x);
    if (!o.dtype) {
        tn__fail(TN_ERR_DTYPE, operation, "expected floating %s, got %s: cast them with tn_cast", names[0],
                 tn_dtype_name((tn_dtype)o.x[0]->dtype));
        o.error = tn__failed();
    }
    tn_dtype wide = o.dtype ? (tn_dtype)tn__dtypes[o.dtype].compute : o.dtype;
    for (int i = 0; i < count && !o.error; i++) {
        if (i > 0 && !tn__same_shape(operation, names[0], o.x[0], names[i], o.x[i]))
            o.error = tn__failed();
        o.x[i] = tn__cast(o.x[i], wide);
    }
    return o;
}

tn__node *tn__loss(const char *operation, const tn__operands *o, tn__node *loss, const tn_loss_opts *opts)
{
    return tn__reduced(operation, loss, opts ? opts->reduction : TN_REDUCTION_MEAN, o->dtype);
}

#define OPERANDS(operation, first, second) \
    tn__call call = tn__enter(); \
    const tn_array *arrays[] = {first, second}; \
    static const char *const names[] = {#first, #second}; \
    tn__operands o = tn__operands_of(operation, 2, arrays, names)
#define OPERANDS_3(operation, first, second, third) \
    tn__call call = tn__enter(); \
    const tn_array *arrays[] = {first, second, third}; \
    static const char *const names[] = {#first, #second, #third}; \
    tn__operands o = tn__operands_of(operation, 3, arrays, names)
/* Evaluates the expression of the loss where the operands are right only. */
#define RETURN_LOSS(operation, expression) \
    return tn__leave_array(call, o.error ? o.error : tn__loss(operation, &o, expression, opts))

/* ---- distances ---- */

tn_array *tn_mean_absolute_error_with(const tn_array *a, const tn_array *b, const tn_loss_opts *opts)
{
    OPERANDS("mean_absolute_error", a, b);
    RETURN_LOSS("mean_absolute_error", map(ABS, sub(o.x[0], o.x[1])));
}

/* Both branches are finite wherever d is, so that neither spoils the other's gradient. */
static tn__node *huber(const tn__operands *o, double delta)
{
    tn__node *d = sub(o->x[0], o->x[1]);
    TN__PASS_ERROR(d);
    tn__node *quadratic = times(squared(d), 0.5), *size = map(ABS, d);
    return tn__where(with(LESS_EQUAL, size, delta), quadratic, times(plus(size, -delta / 2), delta));
}

tn_array *tn_huber_loss_with(const tn_array *x, const tn_array *t, double delta, const tn_loss_opts *opts)
{
    OPERANDS("huber_loss", x, t);
    if (!(delta > 0) || !isfinite(delta))
        o.error = tn__number_error("huber_loss", "delta > 0", delta);
    RETURN_LOSS("huber_loss", huber(&o, delta));
}

tn_array *tn_smooth_l1_loss_with(const tn_array *x, const tn_array *t, double beta, const tn_loss_opts *opts)
{
    OPERANDS("smooth_l1_loss", x, t);
    if (!(beta > 0) || !isfinite(beta))
        o.error = tn__number_error("smooth_l1_loss", "beta > 0", beta);
    RETURN_LOSS("smooth_l1_loss", times(huber(&o, beta), 1 / beta));
}

/* ---- likelihoods ---- */

static tn__node *gaussian_nll(tn__node *x, tn__node *mean, tn__node *ln_var)
{
    static const double log_2_pi = 1.8378770664093454836;
    tn__node *square = mul(squared(sub(x, mean)), map(EXP, minus(ln_var)));
    return times(plus(add(ln_var, square), log_2_pi), 0.5);
}

tn_array *tn_gaussian_nll_with(const tn_array *x, const tn_array *mean, const tn_array *ln_var,
                               const tn_loss_opts *opts)
{
    OPERANDS_3("gaussian_nll", x, mean, ln_var);
    RETURN_LOSS("gaussian_nll", gaussian_nll(o.x[0], o.x[1], o.x[2]));
}

tn_array *tn_bernoulli_nll_with(const tn_array *x, const tn_array *y, const tn_loss_opts *opts)
{
    OPERANDS("bernoulli_nll", x, y);
    RETURN_LOSS("bernoulli_nll", sub(map(SOFTPLUS, o.x[1]), mul(o.x[0], o.x[1])));
}

tn_array *tn_poisson_nll_with(const tn_array *y, const tn_array *t, const tn_loss_opts *opts)
{
    OPERANDS("poisson_nll", y, t);
    RETURN_LOSS("poisson_nll", sub(map(EXP, o.x[0]), mul(o.x[1], o.x[0])));
}

/* ---- divergences ---- */

static tn__node *gaussian_kl(tn__node *mean, tn__node *ln_var)
{
    return times(sub(add(squared(mean), map(EXPM1, ln_var)), ln_var), 0.5);
}

tn_array *tn_gaussian_kl_divergence_with(const tn_array *mean, const tn_array *ln_var, const tn_loss_opts *opts)
{
    OPERANDS("gaussian_kl_divergence", mean, ln_var);
    RETURN_LOSS("gaussian_kl_divergence", gaussian_kl(o.x[0], o.x[1]));
}

/* p log p is 0 where p is 0, and its slope there too: log's operand is another one. */
static tn__node *kl(tn__node *log_q, tn__node *p, bool log_target)
{
    if (log_target)
        return mul(map(EXP, p), sub(p, log_q));
    TN__PASS_ERROR(p);
    tn__node *positive = with(GREATER, p, 0);
    tn__node *entropy = mul(p, map(LOG, tn__where(positive, p, like(p, 1))));
    return sub(entropy, mul(p, log_q));
}

tn_array *tn_kl_divergence_with(const tn_array *log_q, const tn_array *p, const tn_kl_opts *opts)
{
    OPERANDS("kl_divergence", log_q, p);
    if (o.error)
        return tn__leave_array(call, o.error);
    bool rows = opts && opts->batch_mean;
    if (rows && o.x[0]->shape->ndim == 0) {
        tn__fail(TN_ERR_SHAPE, "kl_divergence", "batch_mean divides by the extent of axis 0, and scalars were given");
        return tn__leave_error(call);
    }
    tn__node *loss = kl(o.x[0], o.x[1], opts && opts->log_target);
    if (rows)
        return tn__leave_array(call, tn__cast(times(tn__sum_all(loss), 1 / (double)o.x[0]->shape->dim[0]), o.dtype));
    return tn__leave_array(call, tn__reduced("kl_divergence", loss, opts ? opts->reduction : TN_REDUCTION_MEAN,
                                             o.dtype));
}

/* ---- margins of elements ---- */

tn_array *tn_soft_margin_loss_with(const tn_array *x, const tn_array *y, const tn_loss_opts *opts)
{
    OPERANDS("soft_margin_loss", x, y);
    RETURN_LOSS("soft_margin_loss", map(SOFTPLUS, minus(mul(o.x[0], o.x[1]))));
}

static tn__node *hinge_embedding(tn__node *x, tn__node *y, double margin)
{
    return tn__where(with(GREATER, y, 0), x, map(RELU, plus(minus(x), margin)));
}

tn_array *tn_hinge_embedding_loss_with(const tn_array *x, const tn_array *y, double margin, const tn_loss_opts *opts)
{
    OPERANDS("hinge_embedding_loss", x, y);
    RETURN_LOSS("hinge_embedding_loss", hinge_embedding(o.x[0], o.x[1], margin));
}

tn_array *tn_margin_ranking_loss_with(const tn_array *a, const tn_array *b, const tn_array *y, double margin,
                                      const tn_loss_opts *opts)
{
    OPERANDS_3("margin_ranking_loss", a, b, y);
    RETURN_LOSS("margin_ranking_loss", map(RELU, plus(minus(mul(o.x[2], sub(o.x[0], o.x[1]))), margin)));
}
