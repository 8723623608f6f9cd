/* SPDX-License-Identifier: MIT */
/* Losses that have weights of their own, over large vocabularies and along chains, as layers of features and labels. */
#include <inttypes.h>
#include <math.h>
#include <tanso/array.h>
#include <tanso/random.h>

#include "core/memory.h"
#include "nn/layer.h"
#include "nn/loss_parts.h"

/* Adds an array of the open scope as a persistent value. */
static tn_status keep(tn_layer *layer, const char *name, tn_array *value)
{
    tn_array *kept = tn_layer_persistent(layer, name, value);
    return tn_is_error(kept) ? tn_status_of(kept) : TN_OK;
}

static tn_status add_weight(tn_layer *layer, int64_t rows, int64_t in, tn_init init)
{
    layer->ports = (tn__ports){.inputs = 2, .outputs = 1};
    return tn__slot_add(layer, "W", (tn_shape){2, {rows, in}}, TN_FLOAT32, init);
}

static tn_layer *no_features(const char *name, int64_t in)
{
    return tn__layer_error(tn__error_new(TN_ERR_VALUE, name, "expected at least one feature, got %" PRId64, in));
}

/* ---- hierarchical softmax ---- */

static void tree_flow(tn_layer *layer, const tn__flow *flow)
{
    flow->out[0] = tn__hierarchical_softmax(flow->in[0], flow->in[1], tn__slot_node(layer, 0), tn__slot_node(layer, 1),
                                            tn__slot_node(layer, 2), TN_REDUCTION_MEAN);
}

static const tn__layer_kind tree_kind = {.name = "hierarchical_softmax", .flow = tree_flow};

tn_layer *tn_hierarchical_softmax_layer(int64_t in, const tn_array *counts)
{
    if (in < 1)
        return no_features(tree_kind.name, in);
    tn_layer *layer = tn__layer_make(&tree_kind);
    if (layer->is_static)
        return layer;
    tn__scope_guard scope = tn__scope_enter();
    tn_array *paths = NULL, *codes = NULL;
    tn_status status = tn_huffman_tree(counts, &paths, &codes);
    if (status == TN_OK)
        status = add_weight(layer, tn_dim(paths, 0) - 1, in, (tn_init){.kind = TN_INIT_UNIFORM, .gain = 1});
    if (status == TN_OK)
        status = keep(layer, "paths", paths);
    if (status == TN_OK)
        status = keep(layer, "codes", codes);
    tn__scope_leave(&scope);
    return tn__layer_finish(layer, status);
}

/* ---- negative sampling ---- */

/* A word i, drawn evenly, is kept with chance[i], else it is other[i]: any distribution over the words. */
static void share_out(int64_t words, double *chance, int64_t *other, int64_t *small, int64_t *large)
{
    int64_t smalls = 0, larges = 0;
    for (int64_t i = 0; i < words; i++) {
        other[i] = i;
        if (chance[i] < 1)
            small[smalls++] = i;
        else
            large[larges++] = i;
    }
    while (smalls > 0 && larges > 0) {
        int64_t less = small[--smalls], more = large[larges - 1];
        other[less] = more;
        chance[more] -= 1 - chance[less];
        if (chance[more] < 1) {
            larges--;
            small[smalls++] = more;
        }
    }
    while (smalls > 0) /* what rounding has left */
        chance[small[--smalls]] = 1;
}

/* The counts' powers as multiples of their mean. */
static tn_status to_chances(int64_t words, double *values, double power)
{
    double sum = 0;
    for (int64_t i = 0; i < words; i++) {
        if (!(values[i] >= 0) || isinf(values[i]))
            return tn__fail(TN_ERR_VALUE, "negative_sampling", "expected counts >= 0, got %g at %" PRId64, values[i],
                            i);
        values[i] = values[i] > 0 ? pow(values[i], power) : 0;
        sum += values[i];
    }
    if (!(sum > 0) || isinf(sum))
        return tn__fail(TN_ERR_VALUE, "negative_sampling", "expected counts whose powers have a finite sum above 0");
    for (int64_t i = 0; i < words; i++)
        values[i] *= (double)words / sum;
    return TN_OK;
}

static tn_status add_tables(tn_layer *layer, int64_t words, double *chance)
{
    int64_t *room = tn__calloc((size_t)words * 3, sizeof *room);
    if (!room)
        return tn__fail_memory("negative_sampling", (size_t)words * 3 * sizeof *room);
    share_out(words, chance, room, room + words, room + 2 * words);
    const tn_shape shape = {1, {words}};
    tn_status status = keep(layer, "chance", tn_cast(tn_from_host_with(chance, shape, TN_FLOAT64, NULL), TN_FLOAT32));
    if (status == TN_OK)
        status = keep(layer, "other", tn_from_host_with(room, shape, TN_INT64, NULL));
    tn__free(room);
    return status;
}

/* Words (rows, samples); two random numbers make one of 48 bits, enough for a place and what lies between places. */
static tn__node *drawn(const tn_layer *layer, const tn__node *x, int64_t samples)
{
    tn__node *chance = tn__slot_node(layer, 1), *other = tn__slot_node(layer, 2);
    int64_t words = chance->shape->dim[0], rows = x->shape->ndim ? x->shape->dim[0] : 0;
    const tn__shape *shape = tn__shape_make("negative_sampling", (tn_shape){2, {rows, samples}}, TN_FLOAT64);
    if (!shape)
        return tn__failed();
    tn__node *place = tn__const(0, TN_FLOAT32, shape, x->device);
    tn__node *high = tn__cast(tn__uniform_like(place, NULL), TN_FLOAT64);
    tn__node *low = tn__cast(tn__uniform_like(place, NULL), TN_FLOAT64);
    place = times(add(high, times(low, 0x1p-24)), (double)words);
    tn__node *word = with(MINIMUM, tn__cast(map(FLOOR, place), TN_INT64), (double)(words - 1));
    tn__node *part = tn__cast(sub(place, map(FLOOR, place)), TN_FLOAT32);
    tn__node *flat = tn__reshape(word, 1, (int64_t[]){rows * samples});
    chance = tn__reshape_like(tn__gather_known(chance, flat, 0, words), shape);
    other = tn__reshape_like(tn__gather_known(other, flat, 0, words), shape);
    return tn__where(map2(LESS, part, chance), word, other);
}

static void sampling_flow(tn_layer *layer, const tn__flow *flow)
{
    tn__node *samples = drawn(layer, flow->in[0], *(const int64_t *)layer->user.data);
    flow->out[0] = tn__negative_sampling(flow->in[0], flow->in[1], tn__slot_node(layer, 0), samples, TN_REDUCTION_MEAN);
}

static void black_out_flow(tn_layer *layer, const tn__flow *flow)
{
    tn__node *samples = drawn(layer, flow->in[0], *(const int64_t *)layer->user.data);
    flow->out[0] = tn__black_out(flow->in[0], flow->in[1], tn__slot_node(layer, 0), samples, TN_REDUCTION_MEAN);
}

static const tn__layer_kind sampling_kind = {.name = "negative_sampling", .flow = sampling_flow},
                            black_out_kind = {.name = "black_out", .flow = black_out_flow};

static tn_status set_up(tn_layer *layer, int64_t in, const tn_array *counts, int64_t samples, double power)
{
    double *values = NULL;
    int64_t words = 0, *data = tn__layer_data(layer, sizeof *data);
    tn_status status = data ? tn__read_counts(sampling_kind.name, counts, &values, &words) : TN_ERR_MEMORY;
    if (status == TN_OK) {
        *data = samples;
        status = to_chances(words, values, power);
    }
    if (status == TN_OK)
        status = add_weight(layer, words, in, (tn_init){.kind = TN_INIT_ZEROS});
    if (status == TN_OK)
        status = add_tables(layer, words, values);
    tn__free(values);
    return status;
}

static tn_layer *of_words(const tn__layer_kind *kind, int64_t in, const tn_array *counts, int64_t samples, double power)
{
    if (in < 1)
        return no_features(kind->name, in);
    if (samples < 1 || samples > INT32_MAX || !isfinite(power))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, kind->name,
                                             "expected one sample or more and a finite power, got %" PRId64 " and %g",
                                             samples, power));
    tn_layer *layer = tn__layer_make(kind);
    if (layer->is_static)
        return layer;
    tn__scope_guard scope = tn__scope_enter();
    tn_status status = set_up(layer, in, counts, samples, power);
    tn__scope_leave(&scope);
    return tn__layer_finish(layer, status);
}

tn_layer *tn_negative_sampling_layer(int64_t in, const tn_array *counts, int64_t samples, double power)
{
    return of_words(&sampling_kind, in, counts, samples, power);
}

tn_layer *tn_black_out_layer(int64_t in, const tn_array *counts, int64_t samples)
{
    return of_words(&black_out_kind, in, counts, samples, 1);
}

/* ---- conditional random fields ---- */

static void crf_flow(tn_layer *layer, const tn__flow *flow)
{
    tn__node *lengths = flow->in_count > 2 ? flow->in[2] : NULL;
    flow->out[0] = tn__crf_loss(tn__slot_node(layer, 0), flow->in[0], flow->in[1], lengths, TN_REDUCTION_MEAN);
}

static const tn__layer_kind crf_kind = {.name = "crf", .flow = crf_flow};

tn_layer *tn_crf_layer(int64_t classes)
{
    if (classes < 1)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, crf_kind.name, "expected one class or more, got %" PRId64,
                                             classes));
    tn_layer *layer = tn__layer_make(&crf_kind);
    if (layer->is_static)
        return layer;
    layer->ports = (tn__ports){.inputs = 3, .optional = 1, .outputs = 1};
    tn_init zeros = {.kind = TN_INIT_ZEROS};
    return tn__layer_finish(layer, tn__slot_add(layer, "cost", (tn_shape){2, {classes, classes}}, TN_FLOAT32, zeros));
}
