/* SPDX-License-Identifier: MIT */
/* Observations: small ordered maps from keys to scalars. Keys are few, and found by their hashes one after another. */
#include "train/observation.h"

#include <math.h>
#include <string.h>
#include <tanso/engine.h>
#include "array/build.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/object.h"
#include "core/utf8.h"

/* Those behind the last one keep their keys, as the next iteration's are mostly the same in the same order. */
typedef struct entry {
    char *key;
    uint64_t hash;
    tn_array *array; /* owned; NULL: a number */
    double number, weight;
} entry;

struct tn_observation {
    tn__object object;
    tn__error *error; /* of one that was freed; else NULL */
    bool is_static;   /* the out-of-memory one */
    entry *entries;
    size_t count, keyed, capacity; /* keyed: how many have keys, count or more */
};

static tn_observation memory_observation = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_observation, "observation");

tn_observation *tn_observation_new(void)
{
    tn_observation *observation = tn__object_new(&objects);
    if (observation)
        return observation;
    tn__fail_memory("observation", sizeof *observation);
    return &memory_observation;
}

/* Whether it was freed, which is latched then. */
static bool is_gone(const tn_observation *observation)
{
    if (!observation || !observation->error)
        return false;
    tn__error_raise(observation->error);
    return true;
}

void tn__observation_own(tn_observation *observation, const char *owner)
{
    if (!observation->is_static)
        observation->object.owner = owner;
}

void tn_observation_clear(tn_observation *observation)
{
    if (!observation || is_gone(observation))
        return;
    for (size_t i = 0; i < observation->count; i++)
        tn__array_free_kept(observation->entries[i].array);
    observation->count = 0;
}

void tn_observation_free(tn_observation *observation)
{
    if (!observation || observation->is_static || !tn__object_may_go(&objects, &observation->object))
        return;
    tn__report_forget(observation);
    tn_observation_clear(observation);
    for (size_t i = 0; i < observation->keyed; i++)
        tn__free(observation->entries[i].key);
    tn__free(observation->entries);
    tn__object_end(&objects, &observation->object);
}

static entry *find_hashed(const tn_observation *observation, const char *key, uint64_t hash)
{
    for (size_t i = 0; i < observation->count; i++)
        if (observation->entries[i].hash == hash && strcmp(observation->entries[i].key, key) == 0)
            return &observation->entries[i];
    return NULL;
}

static entry *find(const tn_observation *observation, const char *key)
{
    if (!observation || !key || is_gone(observation))
        return NULL;
    return find_hashed(observation, key, tn__hash(key, strlen(key), 0));
}

/* Whether the key is that which came here in the last iteration: no entry before it has the same one then. */
static bool is_next(const tn_observation *observation, const char *key)
{
    return observation->count < observation->keyed && strcmp(observation->entries[observation->count].key, key) == 0;
}

static entry *append_kept(tn_observation *observation)
{
    entry *next = &observation->entries[observation->count++];
    *next = (entry){.key = next->key, .hash = next->hash};
    return next;
}

/* A new last entry of another key than is_next's; NULL without memory. */
static entry *append(tn_observation *observation, const char *key, uint64_t hash)
{
    for (size_t i = observation->count; i < observation->keyed; i++)
        tn__free(observation->entries[i].key);
    observation->keyed = observation->count;
    char *copy = tn__strdup(key);
    if (!copy || !tn__grow((void **)&observation->entries, &observation->capacity, observation->count + 1,
                           sizeof *observation->entries)) {
        tn__free(copy);
        return NULL;
    }
    observation->entries[observation->keyed++] = (entry){.key = copy, .hash = hash};
    return append_kept(observation);
}

/* The key's entry, made if there is none; NULL with a latched error. */
static entry *place(tn_observation *observation, const char *key)
{
    if (is_gone(observation))
        return NULL;
    if (!observation || !key || observation->is_static) {
        if (observation && key)
            tn__fail_memory("report", sizeof *observation);
        else
            tn__fail(TN_ERR_VALUE, "report", "expected an observation and a key, got NULL");
        return NULL;
    }
    if (is_next(observation, key))
        return append_kept(observation);
    uint64_t hash = tn__hash(key, strlen(key), 0);
    entry *found = find_hashed(observation, key, hash);
    if (!found && tn__check_utf8("report", "the key", key) != TN_OK)
        return NULL;
    if (!found)
        found = append(observation, key, hash);
    if (!found)
        tn__fail_memory("report", strlen(key) + sizeof *found);
    return found;
}

static tn_status check_scalar(const tn_array *value, const char *key)
{
    tn__node *node = tn__node_of(value, "report");
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    char text[TN__SHAPE_TEXT];
    if (node->shape->size == 1)
        return TN_OK;
    return tn__fail(TN_ERR_SHAPE, "report",
                    "expected one element to report as \"%s\", got shape %s: reduce it, with tn_mean for instance",
                    key ? key : "", tn__shape_text(node->shape->ndim, node->shape->dim, text));
}

tn_status tn_observation_set(tn_observation *observation, const char *key, const tn_array *value, double weight)
{
    tn_status status = check_scalar(value, key);
    entry *e = status == TN_OK ? place(observation, key) : NULL;
    if (!e)
        return status != TN_OK ? status : tn__error_status(tn__error_last());
    tn_array *array = tn__array_own_new(tn__array_node(value));
    tn__array_free_kept(e->array);
    e->array = array;
    e->weight = weight;
    return tn_status_of(array);
}

tn_status tn_observation_set_number(tn_observation *observation, const char *key, double value, double weight)
{
    entry *e = place(observation, key);
    if (!e)
        return tn__error_status(tn__error_last());
    tn__array_free_kept(e->array);
    *e = (entry){.key = e->key, .hash = e->hash, .number = value, .weight = weight};
    return TN_OK;
}

int tn_observation_count(const tn_observation *observation)
{
    return observation && !is_gone(observation) ? (int)observation->count : 0;
}

const char *tn_observation_key(const tn_observation *observation, int i)
{
    if (observation && i >= 0 && (size_t)i < observation->count)
        return observation->entries[i].key;
    if (is_gone(observation))
        return "";
    tn__fail(TN_ERR_INDEX, "observation_key", "index %d is out of range: the observation has %d entries", i,
             tn_observation_count(observation));
    return "";
}

bool tn_observation_has(const tn_observation *observation, const char *key) { return find(observation, key) != NULL; }

tn_array *tn_observation_array(const tn_observation *observation, const char *key)
{
    const entry *e = find(observation, key);
    return e ? e->array : NULL;
}

double tn_observation_number(const tn_observation *observation, const char *key)
{
    const entry *e = find(observation, key);
    return !e ? NAN : e->array ? tn_item(e->array) : e->number;
}

double tn_observation_weight(const tn_observation *observation, const char *key)
{
    const entry *e = find(observation, key);
    return e ? e->weight : 0;
}

tn_status tn__observation_raise(const tn_observation *observation)
{
    return is_gone(observation) ? tn__error_status(observation->error) : TN_OK;
}

bool tn__observation_find(const tn_observation *observation, const char *key, tn__observed *seen)
{
    const entry *e = find(observation, key);
    if (e)
        *seen = (tn__observed){e->key, e->array, e->number, e->weight};
    return e != NULL;
}

bool tn__observation_at(const tn_observation *observation, int i, tn__observed *seen)
{
    if (!observation || (size_t)i >= observation->count)
        return false;
    const entry *e = &observation->entries[i];
    *seen = (tn__observed){e->key, e->array, e->number, e->weight};
    return true;
}

#define FEW 16

static bool is_pending(const entry *e) { return e->array && tn__node_pending(tn__array_node(e->array)); }

tn_status tn__observation_eval(tn_observation *observation)
{
    const tn_array *few[FEW], **pending = few;
    int count = 0;
    if (observation->count > FEW && !(pending = tn__alloc(observation->count * sizeof *pending)))
        return tn__fail_memory("report", observation->count * sizeof *pending);
    for (size_t i = 0; i < observation->count; i++)
        if (is_pending(&observation->entries[i]))
            pending[count++] = observation->entries[i].array;
    tn_status status = count ? tn_eval_all(count, pending) : TN_OK;
    if (pending != few)
        tn__free(pending);
    return status;
}
