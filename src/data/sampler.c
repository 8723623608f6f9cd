/* SPDX-License-Identifier: MIT */
/* Samplers: by weight, by length, by a user's function. */
#include "data/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "core/memory.h"
#include "core/options.h"
#include "data/dataset.h"
#include "ops/scalar.h"

#define DEFAULT_WINDOW 100
/* Keeps the parts of an order that are drawn apart. */
enum { STREAM_SAMPLES = 1, STREAM_BATCHES };

static tn_sampler out_of_memory = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_sampler, "sampler");

/* ---- all samplers ---- */

tn_sampler *tn__sampler_new(tn_status (*order)(const tn_sampler *sampler, const tn__epoch_order *want))
{
    tn_sampler *sampler = tn__object_new(&objects);
    if (!sampler) {
        tn__fail_memory("sampler", sizeof *sampler);
        return &out_of_memory;
    }
    sampler->order = order;
    sampler->size = -1;
    return sampler;
}

tn_sampler *tn__sampler_done(tn_sampler *sampler, tn_status status)
{
    if (status != TN_OK && !sampler->is_static)
        sampler->error = tn__error_retain(tn__error_last());
    return sampler;
}

void tn_sampler_free(tn_sampler *sampler)
{
    if (!sampler || sampler->is_static || !tn__object_may_go(&objects, &sampler->object))
        return;
    if (sampler->free_user)
        sampler->free_user(sampler->user);
    tn__free(sampler->weights);
    tn__free(sampler->lengths);
    if (sampler->error)
        tn__error_release(sampler->error);
    tn__object_end(&objects, &sampler->object);
}

tn_status tn__sampler_take(tn_sampler *sampler, const char *owner)
{
    return !sampler || sampler->is_static ? TN_OK : tn__object_take(&objects, &sampler->object, owner);
}

void tn__sampler_free_taken(tn_sampler *sampler)
{
    if (sampler && !sampler->is_static)
        sampler->object.owner = NULL;
    tn_sampler_free(sampler);
}

tn_status tn_sampler_status(const tn_sampler *sampler)
{
    if (!sampler || sampler->is_static)
        return sampler ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return sampler->error ? tn__error_status(sampler->error) : TN_OK;
}

tn_status tn__sampler_check(const tn_sampler *sampler, int64_t size, int64_t *samples)
{
    if (sampler->is_static)
        return tn__fail_memory("sampler", sizeof *sampler);
    if (sampler->error)
        return tn__error_raise(sampler->error);
    if (sampler->size >= 0 && sampler->size != size)
        return tn__fail(TN_ERR_VALUE, "loader", "the sampler was made for %lld samples, and the dataset has %lld",
                        (long long)sampler->size, (long long)size);
    *samples = sampler->samples ? sampler->samples : size;
    if (size == 0 && *samples)
        return tn__fail(TN_ERR_VALUE, "loader", "a sampler draws %lld samples of a dataset that has none",
                        (long long)*samples);
    return TN_OK;
}

tn_status tn__sampler_order(const tn_sampler *sampler, const tn__epoch_order *want)
{
    tn_status status = sampler->order(sampler, want);
    for (int64_t i = 0; i < want->count && status == TN_OK; i++) {
        int64_t row = want->rows[i];
        want->rows[i] = row < 0 ? row + want->size : row;
        if (want->rows[i] < 0 || want->rows[i] >= want->size)
            status = tn__fail(TN_ERR_INDEX, "sampler", "expected positions of %lld samples, got %lld at place %lld of "
                              "epoch %lld", (long long)want->size, (long long)row, (long long)i,
                              (long long)want->epoch);
    }
    return status;
}

/* ---- by weight ---- */

static tn_status with_replacement(const tn_sampler *sampler, const tn__epoch_order *want)
{
    const double *sums = sampler->weights, total = sums[want->size - 1];
    for (int64_t i = 0; i < want->count; i++) {
        double at = tns_random_uniform_f64(want->key, 0, (tn_u64)i) * total;
        int64_t low = 0, high = want->size - 1; /* the first whose sum is above `at` */
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (sums[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        while (low > 0 && sums[low] == sums[low - 1]) /* rounded up to the total, past samples of weight 0 */
            low--;
        want->rows[i] = low;
    }
    return TN_OK;
}

typedef struct keyed {
    double key;
    int64_t row;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Exponential waiting times of the rates `weights`: the samples that come first are drawn without replacement (P.
 * Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir", 2006). */
static tn_status without_replacement(const tn_sampler *sampler, const tn__epoch_order *want)
{
    keyed *all = tn__calloc((size_t)want->size, sizeof *all);
    if (!all)
        return tn__fail_memory("sampler", (size_t)want->size * sizeof *all);
    for (int64_t i = 0; i < want->size; i++) {
        double uniform = 1 - tns_random_uniform_f64(want->key, 0, (tn_u64)i), weight = sampler->weights[i];
        all[i] = (keyed){weight > 0 ? -log(uniform) / weight : INFINITY, i};
    }
    qsort(all, (size_t)want->size, sizeof *all, by_key);
    for (int64_t i = 0; i < want->count; i++)
        want->rows[i] = all[i].row;
    tn__free(all);
    return TN_OK;
}

static tn_status take_weights(tn_sampler *sampler, int64_t size, const double *weights, bool distinct)
{
    int64_t positive = 0;
    double sum = 0;
    sampler->weights = tn__calloc((size_t)size, sizeof *weights);
    if (!sampler->weights)
        return tn__fail_memory("weighted_sampler", (size_t)size * sizeof *weights);
    for (int64_t i = 0; i < size; i++) {
        if (!(weights[i] >= 0) || !isfinite(sum += weights[i]))
            return tn__fail(TN_ERR_VALUE, "weighted_sampler",
                            "expected weights of 0 or more whose sum is finite, got %g at place %lld", weights[i],
                            (long long)i);
        positive += weights[i] > 0;
        sampler->weights[i] = distinct ? weights[i] : sum;
    }
    if (positive < (distinct ? sampler->samples : 1))
        return tn__fail(TN_ERR_VALUE, "weighted_sampler", "%lld weights are above 0, and %lld distinct samples are "
                        "to be drawn", (long long)positive, (long long)(distinct ? sampler->samples : 1));
    return TN_OK;
}

tn_sampler *tn_weighted_sampler_with(int64_t size, const double *weights, const tn_weighted_sampler_opts *opts)
{
    bool distinct = opts && opts->distinct;
    tn_sampler *sampler = tn__sampler_new(distinct ? without_replacement : with_replacement);
    int64_t samples = TN__OPTION(opts, samples, size);
    tn_status status = TN_OK;
    if (sampler->is_static)
        return sampler;
    if (size < 1 || size > PTRDIFF_MAX / (int64_t)sizeof(keyed) || !weights || samples < 1)
        status = tn__fail(TN_ERR_VALUE, "weighted_sampler",
                          "expected the weights of 1 sample or more, and 1 to be drawn or more, got %lld%s and %lld",
                          (long long)size, weights ? "" : " (NULL)", (long long)samples);
    sampler->size = size;
    sampler->samples = samples;
    if (status == TN_OK)
        status = take_weights(sampler, size, weights, distinct);
    return tn__sampler_done(sampler, status);
}

/* ---- by length ---- */

typedef struct measured {
    int64_t length, place, row; /* place: in the random order, which decides between equal lengths */
} measured;

static int by_length(const void *a, const void *b)
{
    const measured *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* The random order with each window sorted, in all[]; minibatches out of it, in another random order. */
static tn_status sort_windows(const tn_sampler *sampler, const tn__epoch_order *want, measured *all, int64_t *turn)
{
    int64_t batches = want->count / want->batch, window = sampler->window;
    tn__permutation(tn__hash_mix(want->key, STREAM_SAMPLES), want->count, want->rows);
    for (int64_t i = 0; i < want->count; i++)
        all[i] = (measured){sampler->lengths[want->rows[i]], i, want->rows[i]};
    int64_t step = window > want->count / want->batch ? want->count : window * want->batch;
    for (int64_t i = 0; i < want->count; i += step)
        qsort(all + i, (size_t)(i + step < want->count ? step : want->count - i), sizeof *all, by_length);
    tn__permutation(tn__hash_mix(want->key, STREAM_BATCHES), batches, turn);
    for (int64_t k = 0; k < batches; k++)
        for (int64_t j = 0; j < want->batch; j++)
            want->rows[k * want->batch + j] = all[turn[k] * want->batch + j].row;
    for (int64_t i = batches * want->batch; i < want->count; i++)
        want->rows[i] = all[i].row;
    return TN_OK;
}

static tn_status in_windows(const tn_sampler *sampler, const tn__epoch_order *want)
{
    measured *all = tn__calloc((size_t)want->count + 1, sizeof *all);
    int64_t *turn = tn__calloc((size_t)(want->count / want->batch) + 1, sizeof *turn);
    tn_status status = all && turn ? sort_windows(sampler, want, all, turn)
                                   : tn__fail_memory("sampler", (size_t)want->count * sizeof *all);
    tn__free(all);
    tn__free(turn);
    return status;
}

tn_sampler *tn_length_sampler_with(int64_t size, const int64_t *lengths, const tn_length_sampler_opts *opts)
{
    tn_sampler *sampler = tn__sampler_new(in_windows);
    int64_t window = TN__OPTION(opts, window, DEFAULT_WINDOW);
    tn_status status = TN_OK;
    if (sampler->is_static)
        return sampler;
    if (size < 0 || size > PTRDIFF_MAX / (int64_t)sizeof(measured) || !lengths || window < 1)
        status = tn__fail(TN_ERR_VALUE, "length_sampler", "expected the lengths of 0 samples or more, and a window of "
                          "1 minibatch or more, got %lld%s and %lld", (long long)size, lengths ? "" : " (NULL)",
                          (long long)window);
    else if (!(sampler->lengths = tn__calloc((size_t)size + 1, sizeof *lengths)))
        status = tn__fail_memory("length_sampler", (size_t)size * sizeof *lengths);
    sampler->size = size;
    sampler->window = window;
    if (status == TN_OK && size)
        memcpy(sampler->lengths, lengths, (size_t)size * sizeof *lengths);
    return tn__sampler_done(sampler, status);
}

/* ---- by a user's function ---- */

static tn_status by_function(const tn_sampler *sampler, const tn__epoch_order *want)
{
    tn_generator generator = {.key = want->key};
    tn_status status = sampler->function(sampler->user, want->epoch, &generator, want->count, want->rows);
    if (status != TN_OK && tn_error_code() != status)
        return tn__fail(status, "sampler", "the function that orders samples gave %s for epoch %lld",
                        tn_status_name(status), (long long)want->epoch);
    return status;
}

tn_sampler *tn_sampler_of_with(int64_t samples, tn_order_fn order, void *user, const tn_sampler_opts *opts)
{
    tn_sampler *sampler = tn__sampler_new(by_function);
    tn_status status = TN_OK;
    if (sampler->is_static) {
        if (opts && opts->free_user)
            opts->free_user(user);
        return sampler;
    }
    sampler->samples = samples;
    sampler->function = order;
    sampler->user = user;
    sampler->free_user = opts ? opts->free_user : NULL;
    if (!order)
        status = tn__fail_null("sampler_of", "a function that orders samples");
    else if (samples < 1)
        status = tn__fail(TN_ERR_VALUE, "sampler_of", "expected an epoch of 1 sample or more, got %lld",
                          (long long)samples);
    return tn__sampler_done(sampler, status);
}
