/* SPDX-License-Identifier: MIT */
/* Sources of samples: a user's function, a transform of another dataset's samples, chosen and joined ones. */
#include "data/source.h"

#include <string.h>
#include "core/error.h"
#include "core/hash.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "ops/scalar.h"

/* Keeps the random numbers of samples apart from the orders that are drawn with the same seed. */
#define SAMPLE_STREAM 0x73616D706C650000u

/* ---- all sources ---- */

static tn_status check_type(const char *operation, const char *which, tn_sample_type type, size_t *bytes)
{
    if (type.dtype <= TN_DTYPE_DEFAULT || type.dtype >= TN_DTYPE_COUNT)
        return tn__fail(TN_ERR_DTYPE, operation,
                        "expected a dtype of a sample's %s, got none: {TN_FLOAT32, TN_SHAPE(3)}", which);
    if (type.shape.ndim >= TN_MAX_NDIM)
        return tn__fail(TN_ERR_SHAPE, operation, "expected a sample's %s of fewer than %d axes, got %d", which,
                        TN_MAX_NDIM, type.shape.ndim);
    tn_status status = tn__shape_check(operation, type.shape, tn__dtypes[type.dtype].size);
    *bytes = tn__dtypes[type.dtype].size;
    for (int i = 0; i < type.shape.ndim; i++)
        *bytes *= (size_t)type.shape.dim[i];
    return status;
}

tn_status tn__source_init(tn__source *source, const char *operation, int64_t count, tn_sample_type x, tn_sample_type t)
{
    atomic_init(&source->references, 1);
    source->operation = operation;
    source->count = count;
    source->x = x;
    source->t = t;
    if (count < 0)
        return tn__fail(TN_ERR_VALUE, operation, "expected a number of samples of 0 or more, got %lld",
                        (long long)count);
    tn_status status = check_type(operation, "x", x, &source->x_bytes);
    return status == TN_OK ? check_type(operation, "t", t, &source->t_bytes) : status;
}

tn__source *tn__source_retain(tn__source *source)
{
    atomic_fetch_add_explicit(&source->references, 1, memory_order_relaxed);
    return source;
}

void tn__source_release(tn__source *source)
{
    if (!source || atomic_fetch_sub_explicit(&source->references, 1, memory_order_acq_rel) > 1)
        return;
    if (source->release)
        source->release(source);
    tn__free(source);
}

tn_status tn__source_get(tn__source *source, uint64_t seed, int64_t epoch, int64_t i, void *x, void *t)
{
    uint64_t key = tn__hash_mix(tn__hash_mix(SAMPLE_STREAM, seed), (uint64_t)epoch);
    tn_generator generator = {.key = tn__hash_mix(key, (uint64_t)i)};
    return source->get(source, i, &generator, x, t);
}

/* A new source of `size` bytes, or NULL with a latched error. What `release` lets go must be set afterwards. */
static void *source_new(size_t size, const char *operation, int64_t count, tn_sample_type x, tn_sample_type t)
{
    tn__source *source = tn__calloc(1, size);
    if (!source)
        tn__fail_memory(operation, size);
    else if (tn__source_init(source, operation, count, x, t) != TN_OK) {
        tn__free(source);
        source = NULL;
    }
    return source;
}

/* What a user's function gave is latched, with a reason if it has not latched one itself. */
static tn_status tell(const tn__source *source, tn_status status, int64_t i)
{
    if (status != TN_OK && tn_error_code() != status)
        return tn__fail(status, source->operation, "the function that makes samples gave %s for sample %lld",
                        tn_status_name(status), (long long)i);
    return status;
}

/* ---- a user's function ---- */

typedef struct made {
    tn__source source;
    tn_sample_fn get;
    void *user;
    void (*free_user)(void *user);
} made;

static tn_status made_get(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t)
{
    made *m = (made *)source;
    return tell(source, m->get(m->user, i, generator, x, t), i);
}

static void made_release(tn__source *source)
{
    made *m = (made *)source;
    if (m->free_user)
        m->free_user(m->user);
}

tn_dataset *tn_dataset_of_with(int64_t count, tn_sample_type x, tn_sample_type t, tn_sample_fn get, void *user,
                               const tn_sample_opts *opts)
{
    made *m = NULL;
    if (!get)
        tn__fail_null("dataset_of", "a function that makes samples");
    else
        m = source_new(sizeof *m, "dataset_of", count, x, t);
    if (m) {
        m->source.get = made_get;
        m->source.release = made_release;
        m->get = get;
        m->user = user;
        m->free_user = opts ? opts->free_user : NULL;
    } else if (opts && opts->free_user) {
        opts->free_user(user);
    }
    return tn__dataset_of_source("dataset_of", m ? &m->source : NULL, opts ? opts->classes : 0);
}

/* ---- a transform ---- */

typedef struct transformed {
    tn__source source;
    tn__source *inner;
    tn_transform_fn function;
    void *user;
    void (*free_user)(void *user);
} transformed;

static tn_status transformed_get(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t)
{
    transformed *f = (transformed *)source;
    size_t x_bytes = (f->inner->x_bytes + 63) / 64 * 64;
    TN__FREED char *before = tn__alloc_aligned(x_bytes + f->inner->t_bytes + 1);
    if (!before)
        return tn__fail_memory(source->operation, x_bytes + f->inner->t_bytes);
    tn_status status = f->inner->get(f->inner, i, generator, before, before + x_bytes);
    if (status == TN_OK)
        status = tell(source, f->function(f->user, before, before + x_bytes, generator, x, t), i);
    return status;
}

static void transformed_release(tn__source *source)
{
    transformed *f = (transformed *)source;
    tn__source_release(f->inner);
    if (f->free_user)
        f->free_user(f->user);
}

tn_dataset *tn_dataset_transform_with(const tn_dataset *dataset, tn_sample_type x, tn_sample_type t,
                                      tn_transform_fn function, void *user, const tn_sample_opts *opts)
{
    transformed *f = NULL;
    bool more = tn_dataset_status(dataset) == TN_OK && dataset->more;
    tn__source *inner = function && !more ? tn__source_of(dataset) : NULL;
    if (!function)
        tn__fail_null("dataset_transform", "a function that transforms samples");
    else if (more)
        tn__fail(TN_ERR_UNSUPPORTED, "dataset_transform", "a function transforms x and t, and the samples have %d "
                 "arrays: transform datasets of two before tn_dataset_zip", tn_dataset_field_count(dataset));
    if (inner)
        f = source_new(sizeof *f, "dataset_transform", inner->count, x, t);
    if (f) {
        f->source.get = transformed_get;
        f->source.release = transformed_release;
        f->inner = inner;
        f->function = function;
        f->user = user;
        f->free_user = opts ? opts->free_user : NULL;
    } else {
        tn__source_release(inner);
        if (opts && opts->free_user)
            opts->free_user(user);
    }
    int64_t classes = opts && opts->classes        ? opts->classes
                      : tn_dtype_is_float(t.dtype) ? 0
                                                   : tn_dataset_classes(dataset);
    return tn__dataset_of_source("dataset_transform", f ? &f->source : NULL, classes);
}

/* ---- a dataset in memory ---- */

typedef struct stored {
    tn__source source;
    tn__storage *x, *t;
    const char *x_data, *t_data;
} stored;

static tn_status stored_get(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t)
{
    (void)generator;
    const stored *s = (const stored *)source;
    if (source->x_bytes)
        memcpy(x, s->x_data + (size_t)i * source->x_bytes, source->x_bytes);
    if (source->t_bytes)
        memcpy(t, s->t_data + (size_t)i * source->t_bytes, source->t_bytes);
    return TN_OK;
}

static void stored_release(tn__source *source)
{
    stored *s = (stored *)source;
    tn__storage_release(s->x);
    tn__storage_release(s->t);
}

static tn_sample_type type_of(const tn_array *all)
{
    const tn__node *node = tn__array_node(all);
    tn_sample_type type = {.dtype = node->dtype, .shape = {.ndim = node->shape->ndim - 1}};
    for (int i = 0; i < type.shape.ndim; i++)
        type.shape.dim[i] = node->shape->dim[i + 1];
    return type;
}

tn_sample_type tn__dataset_type(const tn_dataset *dataset, bool targets)
{
    if (dataset->source)
        return targets ? dataset->source->t : dataset->source->x;
    return type_of(targets ? dataset->t : dataset->x);
}

tn__source *tn__source_of(const tn_dataset *dataset)
{
    if (tn__dataset_raise("dataset", dataset) != TN_OK)
        return NULL;
    if (dataset->source)
        return tn__source_retain(dataset->source);
    stored *s = source_new(sizeof *s, "dataset", dataset->size, type_of(dataset->x), type_of(dataset->t));
    if (!s)
        return NULL;
    s->source.get = stored_get;
    s->source.release = stored_release;
    s->x = tn__storage_retain(tn__array_node(dataset->x)->storage);
    s->t = tn__storage_retain(tn__array_node(dataset->t)->storage);
    s->x_data = tn__dataset_data(dataset->x);
    s->t_data = tn__dataset_data(dataset->t);
    return &s->source;
}

/* ---- chosen samples ---- */

typedef struct chosen {
    tn__source source;
    tn__source *inner;
    int64_t *rows;
} chosen;

/* A sample has the random numbers of its place in the choice: one that was chosen twice looks different each time. */
static tn_status chosen_get(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t)
{
    chosen *c = (chosen *)source;
    return c->inner->get(c->inner, c->rows[i], generator, x, t);
}

static int64_t chosen_length(const tn__source *source, int64_t i)
{
    const chosen *c = (const chosen *)source;
    return c->inner->length(c->inner, c->rows[i]);
}

static void chosen_release(tn__source *source)
{
    chosen *c = (chosen *)source;
    tn__source_release(c->inner);
    tn__free(c->rows);
}

tn__source *tn__source_chosen(tn__source *inner, const char *operation, int64_t count, const int64_t *rows)
{
    int64_t *own = tn__calloc((size_t)count + 1, sizeof *own);
    chosen *c = own ? source_new(sizeof *c, operation, count, inner->x, inner->t) : NULL;
    if (!c) {
        if (!own)
            tn__fail_memory(operation, (size_t)count * sizeof *own);
        tn__free(own);
        return NULL;
    }
    if (count)
        memcpy(own, rows, (size_t)count * sizeof *own);
    c->source.get = chosen_get;
    c->source.length = inner->length ? chosen_length : NULL;
    c->source.multiple = inner->multiple;
    c->source.release = chosen_release;
    c->inner = tn__source_retain(inner);
    c->rows = own;
    return &c->source;
}

/* ---- joined ones ---- */

typedef struct joined {
    tn__source source;
    int parts;
    tn__source **inner;
} joined;

static tn_status joined_get(tn__source *source, int64_t i, tn_generator *generator, void *x, void *t)
{
    joined *j = (joined *)source;
    int part = 0;
    while (i >= j->inner[part]->count)
        i -= j->inner[part++]->count;
    return j->inner[part]->get(j->inner[part], i, generator, x, t);
}

static void joined_release(tn__source *source)
{
    joined *j = (joined *)source;
    for (int i = 0; i < j->parts; i++)
        tn__source_release(j->inner[i]);
    tn__free(j->inner);
}

tn__source *tn__source_joined(int count, tn__source *const *sources)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total += sources[i]->count;
    tn__source **own = tn__calloc((size_t)count, sizeof *own);
    joined *j = own ? source_new(sizeof *j, "dataset_concat", total, sources[0]->x, sources[0]->t) : NULL;
    if (!j) {
        if (!own)
            tn__fail_memory("dataset_concat", (size_t)count * sizeof *own);
        tn__free(own);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        own[i] = tn__source_retain(sources[i]);
    j->source.get = joined_get;
    j->source.release = joined_release;
    j->parts = count;
    j->inner = own;
    return &j->source;
}

/* ---- random numbers for users' functions ---- */

double tn_generator_uniform(tn_generator *generator)
{
    return generator ? tns_random_uniform_f64(generator->key, generator->counter++, 0) : 0;
}

double tn_generator_normal(tn_generator *generator)
{
    return generator ? tns_random_normal_f64(generator->key, generator->counter++, 0) : 0;
}

int64_t tn_generator_below(tn_generator *generator, int64_t n)
{
    return generator && n > 0 ? (int64_t)tns_random_below_u64(generator->key, generator->counter++, 0, (tn_u64)n) : 0;
}
