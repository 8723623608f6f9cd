/* SPDX-License-Identifier: MIT */
/* Initialisers as a table: a distribution, and how its scale follows from fan_in and fan_out (Chainer's formulas). */
#include "nn/init.h"

#include <math.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/special.h>

typedef enum fans { FANS_NONE, FANS_IN, FANS_BOTH } fans;

typedef struct initializer {
    const char *name;
    tn_array *(*fill)(double scale, tn_shape shape, const tn_random_opts *opts);
    fans fans;     /* by what the variance is divided: nothing, fan_in, fan_in + fan_out */
    double factor; /* scale = gain * sqrt(factor / fans) */
    bool spread;   /* the scale is a deviation or half a width, which is not below 0 */
} initializer;

static tn_array *fill_constant(double scale, tn_shape shape, const tn_random_opts *opts)
{
    return tn_full_with(shape, scale, &(tn_create_opts){.dtype = opts->dtype, .device = opts->device});
}

static tn_array *fill_zeros(double scale, tn_shape shape, const tn_random_opts *opts)
{
    (void)scale;
    return fill_constant(0, shape, opts);
}

static tn_array *fill_ones(double scale, tn_shape shape, const tn_random_opts *opts)
{
    (void)scale;
    return fill_constant(1, shape, opts);
}

static tn_array *fill_normal(double scale, tn_shape shape, const tn_random_opts *opts)
{
    tn_random_opts normal = *opts;
    normal.loc = 0;
    normal.scale = scale;
    return tn_random_normal_with(shape, &normal);
}

static tn_array *fill_uniform(double scale, tn_shape shape, const tn_random_opts *opts)
{
    tn_random_opts uniform = *opts;
    uniform.low = -scale;
    uniform.high = scale;
    return tn_random_uniform_with(shape, &uniform);
}

/* Uniform chances between those of the ends, of float64, whose numbers lie close enough together near 0. */
static tn_array *fill_truncated(double scale, tn_shape shape, const tn_random_opts *opts)
{
    const double end = 2;
    tn_random_opts chances = *opts;
    chances.dtype = TN_FLOAT64;
    chances.low = erfc(end / scale * M_SQRT1_2) / 2;
    chances.high = 1 - chances.low;
    tn_array *x = tn_multiply(tn_ndtri(tn_random_uniform_with(shape, &chances)), tn_weak_float(scale));
    return tn_cast(tn_clip(x, tn_weak_float(-end), tn_weak_float(end)), opts->dtype);
}

static tn_array *fill_identity(double scale, tn_shape shape, const tn_random_opts *opts)
{
    char text[TN__SHAPE_TEXT];
    if (shape.ndim != 2 || shape.dim[0] != shape.dim[1])
        return tn__error_array(tn__error_new(TN_ERR_SHAPE, "initialize",
                                             "identity: expected a square matrix, got shape %s",
                                             tn__shape_text(shape.ndim, shape.dim, text)));
    tn_array *eye = tn_eye_with(shape.dim[0], -1, &(tn_create_opts){.dtype = opts->dtype, .device = opts->device});
    return scale == 1 ? eye : tn_multiply(eye, tn_weak_float(scale));
}

static const initializer initializers[TN_INIT_COUNT] = {
    [TN_INIT_DEFAULT] = {"default", fill_normal, FANS_IN, 1, true},
    [TN_INIT_ZEROS] = {"zeros", fill_zeros, FANS_NONE, 1},
    [TN_INIT_ONES] = {"ones", fill_ones, FANS_NONE, 1},
    [TN_INIT_CONSTANT] = {"constant", fill_constant, FANS_NONE, 1},
    [TN_INIT_NORMAL] = {"normal", fill_normal, FANS_NONE, 1, true},
    [TN_INIT_UNIFORM] = {"uniform", fill_uniform, FANS_NONE, 1, true},
    [TN_INIT_LECUN_NORMAL] = {"lecun_normal", fill_normal, FANS_IN, 1, true},
    [TN_INIT_LECUN_UNIFORM] = {"lecun_uniform", fill_uniform, FANS_IN, 3, true},
    [TN_INIT_GLOROT_NORMAL] = {"glorot_normal", fill_normal, FANS_BOTH, 2, true},
    [TN_INIT_GLOROT_UNIFORM] = {"glorot_uniform", fill_uniform, FANS_BOTH, 6, true},
    [TN_INIT_HE_NORMAL] = {"he_normal", fill_normal, FANS_IN, 2, true},
    [TN_INIT_HE_UNIFORM] = {"he_uniform", fill_uniform, FANS_IN, 6, true},
    [TN_INIT_ORTHOGONAL] = {"orthogonal", tn__fill_orthogonal, FANS_NONE, 1},
    [TN_INIT_IDENTITY] = {"identity", fill_identity, FANS_NONE, 1},
    [TN_INIT_TRUNCATED_NORMAL] = {"truncated_normal", fill_truncated, FANS_NONE, 1, true},
};

/* fan_out is the last extent, of kernels the first one times those behind the second; fan_in the product of the others;
 * what divides by nothing has no elements either. */
static double fan_sum(fans fans, tn_shape shape, bool kernels)
{
    int out = kernels ? 0 : shape.ndim - 1;
    double fan_in = 1, fan_out = (double)shape.dim[out];
    for (int i = 0; i < shape.ndim; i++) {
        fan_in *= i == out ? 1 : (double)shape.dim[i];
        fan_out *= kernels && i > 1 ? (double)shape.dim[i] : 1;
    }
    return fmax(1, fans == FANS_IN ? fan_in : fan_in + fan_out);
}

tn_array *tn_initialize(tn_init init, tn_shape shape, const tn_random_opts *opts)
{
    return tn__initialize(init, shape, false, opts);
}

tn_array *tn__initialize(tn_init init, tn_shape shape, bool kernels, const tn_random_opts *opts)
{
    static const char operation[] = "initialize";
    const tn_random_opts none = {0};
    tn_random_opts filled = opts ? *opts : none;
    if (filled.dtype == TN_DTYPE_DEFAULT)
        filled.dtype = TN_FLOAT32;
    if ((int)init.kind < 0 || init.kind >= TN_INIT_COUNT)
        return tn__error_array(
            tn__error_new(TN_ERR_VALUE, operation, "expected a kind below TN_INIT_COUNT, got %d", (int)init.kind));
    if (!tn_dtype_is_float(filled.dtype))
        return tn__error_array(
            tn__error_new(TN_ERR_DTYPE, operation, "expected a floating dtype, got %s", tn_dtype_name(filled.dtype)));
    if (tn__shape_check(operation, shape, tn_dtype_size(filled.dtype)) != TN_OK)
        return tn__error_array(tn__error_retain(tn__error_last()));
    const initializer *row = &initializers[init.kind];
    double scale = init.gain == 0 && init.kind != TN_INIT_CONSTANT ? 1 : init.gain;
    if (row->spread && !(scale >= 0 && isfinite(scale)))
        return tn__error_array(tn__error_new(TN_ERR_VALUE, operation, "%s: expected a finite gain >= 0, got %g",
                                             row->name, init.gain));
    if (row->fans != FANS_NONE) {
        char text[TN__SHAPE_TEXT];
        if (shape.ndim < 2)
            return tn__error_array(
                tn__error_new(TN_ERR_SHAPE, operation,
                              "%s: expected at least two axes, fan_in and fan_out; got shape %s: use zeros, "
                              "constant, normal or uniform",
                              row->name, tn__shape_text(shape.ndim, shape.dim, text)));
        scale *= sqrt(row->factor / fan_sum(row->fans, shape, kernels));
    }
    tn__scope_guard scope = tn__scope_enter();
    tn_array *x = tn_keep(row->fill(scale, shape, &filled));
    tn__scope_leave(&scope);
    return x;
}

tn_init_kind tn_init_parse(const char *name)
{
    for (int i = TN_INIT_DEFAULT + 1; name && i < TN_INIT_COUNT; i++) {
        if (strcmp(name, initializers[i].name) == 0)
            return (tn_init_kind)i;
    }
    return TN_INIT_COUNT;
}
