/* SPDX-License-Identifier: MIT */
/* Pictures made ready for a network: scaled, padded, cropped, mirrored and normalized, as a transform of a dataset. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <tanso/dataset.h>
#include "core/error.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/scale.h"
#include "data/source.h"

static const char operation[] = "dataset_images";

typedef struct size {
    int64_t height, width;
} size;

/* What is done, with every size settled. The two lists behind it are a number a channel each. */
typedef struct plan {
    int64_t channels;
    size from, scaled, out; /* of a channel: as it comes, after scaling, after cropping */
    int64_t pad;
    bool bytes; /* pixels come as uint8 */
    bool centre, flip;
    size_t t_bytes;
    const float *mean, *inverse; /* of the deviations */
    float numbers[];
} plan;

/* ---- one picture ---- */

/* Where the piece that is taken begins, along one axis of `whole` pixels, padding included. */
static int64_t begin(const plan *p, int64_t whole, int64_t piece, tn_generator *generator)
{
    return p->centre ? (whole - piece) / 2 : tn_generator_below(generator, whole - piece + 1);
}

static tn_status make_ready(void *user, const void *x, const void *t, tn_generator *generator, void *new_x, void *new_t)
{
    const plan *p = user;
    int64_t top = begin(p, p->scaled.height + 2 * p->pad, p->out.height, generator) - p->pad;
    int64_t left = begin(p, p->scaled.width + 2 * p->pad, p->out.width, generator) - p->pad;
    bool mirrored = p->flip && tn_generator_below(generator, 2);
    float *to = new_x;
    for (int64_t c = 0; c < p->channels; c++) {
        size_t before = (size_t)(c * p->from.height * p->from.width) * (p->bytes ? 1 : sizeof(float));
        tn__plane plane = {(const char *)x + before, p->bytes, p->from.height, p->from.width, 1};
        for (int64_t i = 0; i < p->out.height; i++)
            for (int64_t j = 0; j < p->out.width; j++) {
                int64_t row = top + i, column = left + (mirrored ? p->out.width - 1 - j : j);
                bool inside = row >= 0 && row < p->scaled.height && column >= 0 && column < p->scaled.width;
                float value = inside ? tn__plane_scaled(&plane, p->scaled.height, p->scaled.width, row, column) : 0;
                *to++ = (value - p->mean[c]) * p->inverse[c];
            }
    }
    if (p->t_bytes)
        memcpy(new_t, t, p->t_bytes);
    return TN_OK;
}

/* ---- the plan ---- */

static tn_status settle_sizes(plan *p, const tn_image_opts *opts)
{
    const int given[] = {opts->height, opts->width, opts->pad, opts->crop_height, opts->crop_width};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i] < 0 || given[i] > SHRT_MAX)
            return tn__fail(TN_ERR_VALUE, operation, "expected sizes of 0 to %d pixels, got %d", SHRT_MAX, given[i]);
    p->scaled = p->from;
    double ratio =
        opts->height ? (double)opts->height / (double)p->from.height : (double)opts->width / (double)p->from.width;
    if (opts->height || opts->width) {
        p->scaled.height = opts->height ? opts->height : llround((double)p->from.height * ratio);
        p->scaled.width = opts->width ? opts->width : llround((double)p->from.width * ratio);
    }
    p->scaled.height += p->scaled.height == 0;
    p->scaled.width += p->scaled.width == 0;
    p->pad = opts->pad;
    size whole = {p->scaled.height + 2 * p->pad, p->scaled.width + 2 * p->pad};
    p->out = whole;
    if (opts->crop_height || opts->crop_width) {
        p->out.height = opts->crop_height ? opts->crop_height : opts->crop_width;
        p->out.width = opts->crop_width ? opts->crop_width : opts->crop_height;
    }
    if (p->out.height <= whole.height && p->out.width <= whole.width)
        return TN_OK;
    return tn__fail(
        TN_ERR_SHAPE, operation,
        "expected a piece of at most %lld x %lld pixels, which is what pictures have, padding included, got "
        "%lld x %lld",
        (long long)whole.height, (long long)whole.width, (long long)p->out.height, (long long)p->out.width);
}

static tn_status settle_colours(plan *p, const tn_image_opts *opts)
{
    float *mean = p->numbers, *inverse = p->numbers + p->channels;
    for (int64_t c = 0; c < p->channels; c++) {
        float deviation = opts->deviation ? opts->deviation[c] : 1;
        mean[c] = opts->mean ? opts->mean[c] : 0;
        if (!(deviation > 0) || !isfinite(deviation) || !isfinite(mean[c]))
            return tn__fail(TN_ERR_VALUE, operation,
                            "expected a finite mean and a deviation above 0 for channel %lld, got %g and %g",
                            (long long)c, (double)mean[c], (double)deviation);
        inverse[c] = 1 / deviation;
    }
    p->mean = mean;
    p->inverse = inverse;
    return TN_OK;
}

/* What is to be done with the pictures of a dataset, in memory of the caller's; NULL with a latched error. */
static plan *plan_new(const tn_dataset *dataset, const tn_image_opts *opts)
{
    if (tn__dataset_raise(operation, dataset) != TN_OK)
        return NULL;
    tn_sample_type x = tn__dataset_type(dataset, false), t = tn__dataset_type(dataset, true);
    char text[TN__SHAPE_TEXT];
    if (x.shape.ndim != 3 || x.shape.dim[1] == 0 || x.shape.dim[2] == 0 ||
        (x.dtype != TN_FLOAT32 && x.dtype != TN_UINT8)) {
        tn__fail(TN_ERR_SHAPE, operation,
                 "expected pictures of shape (channels, height, width), float32 or uint8, got %s %s",
                 tn_dtype_name(x.dtype), tn__shape_text(x.shape.ndim, x.shape.dim, text));
        return NULL;
    }
    plan *p = tn__calloc(1, sizeof *p + 2 * (size_t)x.shape.dim[0] * sizeof *p->numbers);
    if (!p) {
        tn__fail_memory(operation, sizeof *p);
        return NULL;
    }
    p->channels = x.shape.dim[0];
    p->from = (size){x.shape.dim[1], x.shape.dim[2]};
    p->bytes = x.dtype == TN_UINT8;
    p->centre = opts->centre;
    p->flip = opts->flip;
    p->t_bytes = tn__dtypes[t.dtype].size;
    for (int i = 0; i < t.shape.ndim; i++)
        p->t_bytes *= (size_t)t.shape.dim[i];
    if (settle_sizes(p, opts) == TN_OK && settle_colours(p, opts) == TN_OK)
        return p;
    tn__free(p);
    return NULL;
}

tn_dataset *tn_dataset_images_with(const tn_dataset *dataset, const tn_image_opts *opts)
{
    static const tn_image_opts defaults;
    plan *p = plan_new(dataset, opts ? opts : &defaults);
    if (!p)
        return tn__dataset_of_source(operation, NULL, 0);
    tn_sample_type x = {TN_FLOAT32, {3, {p->channels, p->out.height, p->out.width}}};
    return tn_dataset_transform_with(dataset, x, tn__dataset_type(dataset, true), make_ready, p,
                                     &(tn_sample_opts){.classes = dataset->classes, .free_user = tn__free});
}
