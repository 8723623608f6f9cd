/* SPDX-License-Identifier: MIT */
/* Elements that are not finite, told by their bits: an exponent of ones. */
#include "train/sound.h"

#include <stdint.h>
#include <string.h>
#include <tanso/array.h>
#include "core/error.h"
#include "core/log.h"
#include "io/archive.h"
#include "train/snapshot.h"

#define OPERATION "snapshot"

/* One function a width; the exponent's bits are an argument, as there are two kinds of 16. */
#define ALL_FINITE(bits) \
    static bool all_finite_##bits(const void *data, size_t count, uint64_t exponent) \
    { \
        const uint##bits##_t *at = data, ones = (uint##bits##_t)exponent; \
        size_t wrong = 0; \
        for (size_t i = 0; i < count; i++) \
            wrong += (at[i] & ones) == ones; \
        return wrong == 0; \
    }
ALL_FINITE(16)
ALL_FINITE(32)
ALL_FINITE(64)

static const struct {
    bool (*all_finite)(const void *data, size_t count, uint64_t exponent); /* NULL: whole numbers */
    uint64_t exponent;
    size_t width; /* of what is looked at: half of a complex number */
} kinds[] = {
    [TN_FLOAT16] = {all_finite_16, 0x7c00, 2},
    [TN_BFLOAT16] = {all_finite_16, 0x7f80, 2},
    [TN_FLOAT32] = {all_finite_32, 0x7f800000, 4},
    [TN_FLOAT64] = {all_finite_64, 0x7ff0000000000000, 8},
    [TN_COMPLEX64] = {all_finite_32, 0x7f800000, 4},
    [TN_COMPLEX128] = {all_finite_64, 0x7ff0000000000000, 8},
};

static bool is_sound(const tn__host_view *view)
{
    size_t kind = (size_t)view->dtype;
    if (kind >= sizeof kinds / sizeof *kinds || !kinds[kind].all_finite)
        return true;
    return kinds[kind].all_finite(view->data, view->bytes / kinds[kind].width, kinds[kind].exponent);
}

/* The name of the first array that is not; NULL if there is none, or with a latched error. */
static const char *first_unsound(const tn_archive *archive, const char *prefix)
{
    for (size_t i = 0; i < archive->count; i++) {
        const tn__archive_entry *e = &archive->entries[i];
        tn__host_view view;
        if (strncmp(e->name, prefix, strlen(prefix)) != 0 || tn_is_error(e->array)) /* Chainer's None */
            continue;
        if (tn__host_view_of(OPERATION, e->array, &view) != TN_OK)
            return NULL;
        bool sound = is_sound(&view);
        tn__host_view_end(&view);
        if (!sound)
            return e->name;
    }
    return NULL;
}

tn_status tn__soundness_begin(tn__soundness *weights, int count, const tn_layer *const *layers)
{
    bool sound = true;
    tn_status status = TN_OK;
    for (int i = 0; i < count && sound && status == TN_OK; i++) {
        tn_archive *archive = tn_archive_new();
        status = tn__archive_params(archive, layers[i]);
        sound = status == TN_OK && !first_unsound(archive, "");
        tn_archive_free(archive);
        status = status == TN_OK ? tn_error_code() : status;
    }
    weights->sound |= sound && status == TN_OK;
    return status;
}

bool tn__soundness_look(tn__soundness *weights, const tn_archive *archive, int64_t iteration)
{
    const char *wrong = weights->prefix ? first_unsound(archive, weights->prefix) : NULL;
    bool refused = wrong && weights->sound;
    if (refused && !weights->refused)
        tn__log(TN__LOG_WARN, OPERATION,
                "'%s' is not finite in iteration %lld: nothing is saved until it is, so that the last good snapshot "
                "stays; tn_fail_on_nan ends a run that goes wrong", wrong, (long long)iteration);
    if (wrong && !weights->sound && !weights->doubted)
        tn__log(TN__LOG_WARN, OPERATION,
                "'%s' is not finite in iteration %lld, the first that is looked at: it is saved all the same, as that "
                "may be meant; tn_fail_on_nan ends a run that goes wrong", wrong, (long long)iteration);
    weights->doubted |= wrong && !weights->sound;
    weights->refused = refused;
    weights->sound = weights->sound || !wrong;
    return !refused && !tn__latched();
}
