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
    return tn__reduced(operation, loss, TN__REDUCTION(opts), o->dtype);
}

/* ---- distances ---- */

TN__LOSS_2(mean_absolute_error, a, b) { return map(ABS, sub(a, b)); }

static tn_array *difference(const char *operation, const tn_array *a, const tn_array *b, tn__op op)
{
    tn__call call = tn__enter();
    tn__operands o = TN__OPERANDS_2(operation, a, b);
    return tn__leave_array(call, o.error ? o.error : tn__cast(tn__unary(op, sub(o.x[0], o.x[1])), o.dtype));
}

tn_array *tn_absolute_error(const tn_array *a, const tn_array *b)
{
    return difference("absolute_error", a, b, TN__OP_ABS);
}

tn_array *tn_squared_error(const tn_array *a, const tn_array *b)
{
    return difference("squared_error", a, b, TN__OP_SQUARE);
}

/* Both branches are finite wherever d is, so that neither spoils the other's gradient. */
static tn__node *huber(tn__node *x, tn__node *t, double delta)
{
    tn__node *d = sub(x, t);
    TN__PASS_ERROR(d);
    tn__node *quadratic = times(squared(d), 0.5), *size = map(ABS, d);
    return tn__where(with(LESS_EQUAL, size, delta), quadratic, times(plus(size, -delta / 2), delta));
}

TN__LOSS_2N(huber_loss, x, t, delta)
{
    if (!(delta > 0) || !isfinite(delta))
        return tn__number_error("huber_loss", "delta > 0", delta);
    return huber(x, t, delta);
}

TN__LOSS_2N(smooth_l1_loss, x, t, beta)
{
    if (!(beta > 0) || !isfinite(beta))
        return tn__number_error("smooth_l1_loss", "beta > 0", beta);
    return times(huber(x, t, beta), 1 / beta);
}

/* ---- likelihoods ---- */

TN__LOSS_3(gaussian_nll, x, mean, ln_var)
{
    static const double log_2_pi = 1.8378770664093454836;
    tn__node *square = mul(squared(sub(x, mean)), map(EXP, minus(ln_var)));
    return times(plus(add(ln_var, square), log_2_pi), 0.5);
}

TN__LOSS_2(bernoulli_nll, x, y) { return sub(map(SOFTPLUS, y), mul(x, y)); }

TN__LOSS_2(poisson_nll, y, t) { return sub(map(EXP, y), mul(t, y)); }

/* ---- divergences ---- */

TN__LOSS_2(gaussian_kl_divergence, mean, ln_var)
{
    return times(sub(add(squared(mean), map(EXPM1, ln_var)), ln_var), 0.5);
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

static tn__node *kl_divergence(tn__operands o, const tn_kl_opts *opts)
{
    static const char operation[] = "kl_divergence";
    if (o.error)
        return o.error;
    bool rows = opts && opts->batch_mean;
    if (rows && o.x[0]->shape->ndim == 0)
        TN__REFUSE(TN_ERR_SHAPE, operation, "batch_mean divides by the extent of axis 0, and scalars were given");
    tn__node *loss = kl(o.x[0], o.x[1], opts && opts->log_target);
    return rows ? tn__cast(times(tn__sum_all(loss), 1 / (double)o.x[0]->shape->dim[0]), o.dtype)
                : tn__reduced(operation, loss, TN__REDUCTION(opts), o.dtype);
}

tn_array *tn_kl_divergence_with(const tn_array *log_q, const tn_array *p, const tn_kl_opts *opts)
{
    TN__RETURN(kl_divergence(TN__OPERANDS_2("kl_divergence", log_q, p), opts));
}

/* ---- margins of elements ---- */

TN__LOSS_2(soft_margin_loss, x, y) { return map(SOFTPLUS, minus(mul(x, y))); }

TN__LOSS_2N(hinge_embedding_loss, x, y, margin)
{
    return tn__where(with(GREATER, y, 0), x, map(RELU, plus(minus(x), margin)));
}

TN__LOSS_3N(margin_ranking_loss, a, b, y, margin)
{
    return map(RELU, plus(minus(mul(y, sub(a, b))), margin));
}
