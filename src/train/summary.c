/* SPDX-License-Identifier: MIT */
/* Summaries: a meter a key, another one of squares where deviations are wanted. */
#include <math.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "array/build.h"
#include "comm/comm.h"
#include "core/memory.h"
#include "core/object.h"
#include "core/utf8.h"
#include "engine/engine.h"
#include "train/meter.h"
#include "train/observation.h"
#include "train/chainer.h"

typedef struct entry {
    char *key;
    tn_meter *value, *square; /* square: NULL without deviations */
    tn_device device;
} entry;

struct tn_summary {
    tn__object object;
    tn__error *error; /* of one that was freed; else NULL */
    bool is_static, deviations;
    entry *entries;
    size_t count, capacity;
    size_t next; /* after the one that was added to last: keys mostly come in the same order each time */
};

static tn_summary memory_summary = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_summary, "summary");

/* Whether it was freed, which is latched then. */
static bool is_gone(const tn_summary *summary)
{
    if (!summary || !summary->error)
        return false;
    tn__error_raise(summary->error);
    return true;
}

tn_summary *tn_summary_new_with(const tn_summary_opts *opts)
{
    tn_summary *summary = tn__object_new(&objects);
    if (!summary) {
        tn__fail_memory("summary", sizeof *summary);
        return &memory_summary;
    }
    summary->deviations = opts && opts->deviations;
    return summary;
}

static void entry_free(entry *e)
{
    tn__free(e->key);
    tn_meter_free(e->value);
    tn_meter_free(e->square);
}

void tn_summary_clear(tn_summary *summary)
{
    if (!summary || is_gone(summary))
        return;
    for (size_t i = 0; i < summary->count; i++)
        entry_free(&summary->entries[i]);
    summary->count = 0;
}

void tn_summary_free(tn_summary *summary)
{
    if (!summary || summary->is_static || !tn__object_may_go(&objects, &summary->object))
        return;
    tn_summary_clear(summary);
    tn__free(summary->entries);
    tn__object_end(&objects, &summary->object);
}

static entry *find(const tn_summary *summary, const char *key)
{
    if (is_gone(summary))
        return NULL;
    for (size_t i = 0; summary && key && i < summary->count; i++)
        if (strcmp(summary->entries[i].key, key) == 0)
            return &summary->entries[i];
    return NULL;
}

/* The key's entry, made on the device if there is none; NULL with a latched error. */
static entry *place(tn_summary *summary, const char *key, tn_device device)
{
    if (is_gone(summary))
        return NULL;
    if (!summary || !key || summary->is_static) {
        if (summary && key)
            tn__fail_memory("summary", sizeof *summary);
        else
            tn__fail(TN_ERR_VALUE, "summary", "expected a summary and a key, got NULL");
        return NULL;
    }
    bool expected = summary->next < summary->count && strcmp(summary->entries[summary->next].key, key) == 0;
    entry *found = expected ? &summary->entries[summary->next] : find(summary, key);
    if (found) {
        summary->next = (size_t)(found + 1 - summary->entries) % summary->count;
        return found;
    }
    if (tn__check_utf8("summary", "the key", key) != TN_OK)
        return NULL;
    entry made = {.key = tn__strdup(key),
                  .value = tn_meter_new(device),
                  .square = summary->deviations ? tn_meter_new(device) : NULL,
                  .device = device};
    if (!made.key || !tn__grow((void **)&summary->entries, &summary->capacity, summary->count + 1,
                               sizeof *summary->entries)) {
        entry_free(&made);
        tn__fail_memory("summary", strlen(key) + sizeof made);
        return NULL;
    }
    summary->entries[summary->count] = made;
    return &summary->entries[summary->count++];
}

static void add_number(entry *e, double value, double weight)
{
    tn__meter_add_number(e->value, value, weight);
    if (e->square)
        tn__meter_add_number(e->square, value * value, weight);
}

tn_status tn_summary_add_number(tn_summary *summary, const char *key, double value, double weight)
{
    entry *e = place(summary, key, tn_cpu());
    if (!e)
        return tn__error_status(tn__error_last());
    add_number(e, value, weight == 0 ? 1 : weight);
    return TN_OK;
}

static tn_status add_square(entry *e, const tn_array *value, double weight)
{
    TN_SCOPE
        TN_NO_GRAD {
            tn_array *x = tn_cast(value, TN_FLOAT64);
            tn_meter_add(e->square, tn_multiply(x, x), weight);
        }
    return tn_error_code();
}

tn_status tn_summary_add(tn_summary *summary, const char *key, const tn_array *value, double weight)
{
    tn__node *node = tn__node_of(value, "summary_add");
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    entry *e = place(summary, key, node->device->id);
    if (!e)
        return tn__error_status(tn__error_last());
    weight = weight == 0 ? 1 : weight;
    double number;
    if (tn__item_here(node, &number)) {
        add_number(e, number, weight);
        return TN_OK;
    }
    bool fine = !tn__latched();
    tn_meter_add(e->value, value, weight);
    if (e->square && (!tn__latched() || !fine))
        add_square(e, value, weight);
    return fine ? tn_error_code() : TN_OK;
}

/* Two numbers a key, what was added up and its weight, go round. */
static tn_status add_up(tn_comm *comm, int64_t count, double *numbers)
{
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_create_opts on_host = {.device = tn_cpu()};
        tn_shape shape = {.ndim = 1, .dim = {2 * count}};
        tn_array *sums = tn_comm_all_reduce(comm, tn_from_host_with(numbers, shape, TN_FLOAT64, &on_host), TN_COMM_SUM);
        status = tn_to_host(sums, numbers, 2 * (size_t)count * sizeof *numbers);
    }
    return status;
}

tn_status tn__summary_share(tn_summary *summary, tn_comm *comm)
{
    size_t count = summary->count;
    TN__FREED double *numbers = tn__alloc(2 * count * sizeof *numbers);
    tn_status status = numbers ? TN_OK : tn__fail_memory("summary", 2 * count * sizeof *numbers);
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        tn__meter_sums own = {0};
        status = tn__meter_read(summary->entries[i].value, &own);
        numbers[2 * i] = own.total + own.at_once;
        numbers[2 * i + 1] = own.weight;
    }
    if (status == TN_OK)
        status = add_up(comm, (int64_t)count, numbers);
    else
        tn__comm_break(comm, true); /* the others wait */
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        const tn__meter_sums all = {.at_once = numbers[2 * i], .weight = numbers[2 * i + 1]};
        status = tn__meter_restore(summary->entries[i].value, &all);
    }
    return status;
}

tn_status tn__summary_read(tn_summary *summary, const char *key, tn__meter_sums *sums)
{
    const entry *e = find(summary, key);
    *sums = (tn__meter_sums){0};
    return e ? tn__meter_read(e->value, sums) : TN_OK;
}

tn_status tn__summary_restore(tn_summary *summary, const char *key, tn_device device, const tn__meter_sums *sums)
{
    const entry *e = place(summary, key, device);
    return e ? tn__meter_restore(e->value, sums) : tn__error_status(tn__error_last());
}

tn_status tn_summary_add_observation(tn_summary *summary, const tn_observation *observation)
{
    tn_status status = TN_OK;
    if (!summary || !observation)
        return tn__fail(TN_ERR_VALUE, "summary", "expected a summary and an observation, got NULL");
    if (is_gone(summary))
        return tn__error_status(summary->error);
    status = tn__observation_raise(observation);
    tn__observed seen;
    for (int i = 0; status == TN_OK && tn__observation_at(observation, i, &seen); i++)
        status = seen.array ? tn_summary_add(summary, seen.key, seen.array, seen.weight)
                            : tn_summary_add_number(summary, seen.key, seen.number, seen.weight);
    return status;
}

/* ---- reading ---- */

int tn_summary_count(const tn_summary *summary) { return summary && !is_gone(summary) ? (int)summary->count : 0; }

const char *tn_summary_key(const tn_summary *summary, int i)
{
    if (summary && i >= 0 && (size_t)i < summary->count)
        return summary->entries[i].key;
    if (is_gone(summary))
        return "";
    tn__fail(TN_ERR_INDEX, "summary_key", "index %d is out of range: the summary has %d keys", i,
             tn_summary_count(summary));
    return "";
}

bool tn_summary_has(const tn_summary *summary, const char *key) { return find(summary, key) != NULL; }

/* Computes all sums, in one evaluation, before one of them is waited for. */
static tn_status settle(tn_summary *summary)
{
    bool any = false;
    for (size_t i = 0; i < summary->count && !any; i++) {
        const entry *e = &summary->entries[i];
        any = tn__meter_pending(e->value) || (e->square && tn__meter_pending(e->square));
    }
    if (!any)
        return TN_OK;
    TN__FREED const tn_array **pending = tn__alloc(2 * summary->count * sizeof *pending);
    if (!pending)
        return tn__fail_memory("summary", 2 * summary->count * sizeof *pending);
    int count = 0;
    for (size_t i = 0; i < summary->count; i++) {
        const entry *e = &summary->entries[i];
        const tn_array *value = tn__meter_pending(e->value), *square = e->square ? tn__meter_pending(e->square) : NULL;
        if (value)
            pending[count++] = value;
        if (square)
            pending[count++] = square;
    }
    return count ? tn_eval_all(count, pending) : TN_OK;
}

/* A total that is still to be read and lies where the host can't, or NULL. */
static tn__node *far_total(const tn_meter *meter)
{
    const tn_array *total = meter ? tn__meter_unread(meter) : NULL;
    tn__node *node = total ? tn__array_node(total) : NULL;
    return node && !node->device->capabilities.host_memory ? node : NULL;
}

/* Entry i / 2's sum, or that of the squares. */
static tn_meter *meter_at(const tn_summary *summary, size_t i)
{
    const entry *e = &summary->entries[i / 2];
    return i % 2 ? e->square : e->value;
}

tn_status tn__summary_far(tn_summary *summary, int *count, tn_meter ***far)
{
    *count = 0;
    *far = NULL;
    tn_status status = settle(summary);
    for (size_t i = 0; i < 2 * summary->count && status == TN_OK; i++)
        *count += far_total(meter_at(summary, i)) != NULL;
    if (!*count)
        return status;
    *far = tn__alloc((size_t)*count * sizeof **far);
    if (!*far)
        return tn__fail_memory("summary", (size_t)*count * sizeof **far);
    for (size_t i = 0, place = 0; i < 2 * summary->count; i++)
        if (far_total(meter_at(summary, i)))
            (*far)[place++] = meter_at(summary, i);
    return TN_OK;
}

/* Reads these sums by one copy that is waited for: each by itself would be a wait a key. */
static tn_status read_together(int count, tn_meter **meters)
{
    TN__FREED tn__node **totals = tn__alloc((size_t)count * sizeof *totals);
    if (!totals)
        return tn__fail_memory("summary", (size_t)count * sizeof *totals);
    for (int i = 0; i < count; i++)
        totals[i] = far_total(meters[i]);
    tn__call call = tn__enter();
    tn_status status = tn__put_aside(count, totals);
    if (status == TN_OK)
        status = tn__fetch_aside(count, totals);
    for (int i = 0; i < count && status == TN_OK; i++)
        tn__meter_know(meters[i], ((const double *)totals[i]->storage->memory)[totals[i]->offset]);
    tn__leave(call);
    return status;
}

static tn_status read_totals(tn_summary *summary)
{
    int count;
    tn_meter **far;
    tn_status status = tn__summary_far(summary, &count, &far);
    if (count > 1 && status == TN_OK)
        status = read_together(count, far);
    tn__free(far);
    return status;
}

double tn_summary_mean(tn_summary *summary, const char *key)
{
    entry *e = find(summary, key);
    return e && read_totals(summary) == TN_OK ? tn__meter_mean(e->value) : NAN;
}

double tn_summary_deviation(tn_summary *summary, const char *key)
{
    entry *e = find(summary, key);
    if (!e || !e->square || read_totals(summary) != TN_OK)
        return NAN;
    double mean = tn__meter_mean(e->value), variance = tn__meter_mean(e->square) - mean * mean;
    return isnan(variance) ? NAN : sqrt(fmax(variance, 0)); /* rounding may take it below 0 */
}

static tn_status observe(entry *e, const char *prefix, tn_observation *observation)
{
    char *key = prefix ? tn__format("%s%s", prefix, e->key) : tn__strdup(e->key);
    if (!key)
        return tn__fail_memory("summary", strlen(e->key));
    tn_array *mean = tn__meter_array(e->value);
    tn_status status = mean ? tn_observation_set(observation, key, mean, 0)
                            : tn_observation_set_number(observation, key, tn__meter_mean(e->value), 0);
    tn__free(key);
    return status;
}

tn_status tn_summary_observe(tn_summary *summary, const char *prefix, tn_observation *observation)
{
    if (!summary || !observation)
        return tn__fail(TN_ERR_VALUE, "summary_observe", "expected a summary and an observation, got NULL");
    if (is_gone(summary))
        return tn__error_status(summary->error);
    tn_status status = tn__observation_raise(observation);
    if (status == TN_OK)
        status = settle(summary);
    TN_SCOPE
        for (size_t i = 0; i < summary->count && status == TN_OK; i++)
            status = observe(&summary->entries[i], prefix, observation);
    return status == TN_OK ? tn__observation_eval(observation) : status;
}

/* ---- saving ---- */

/* A total on a device is saved as it lies there: nobody waits for it before the file is written. */
static tn_status serialize_meter(const tn_serializer *s, const char *name, tn_meter *meter)
{
    tn_serializer at = tn_serializer_in(s, name);
    tn__meter_sums sums = {0};
    const tn_array *total = NULL;
    if (!s->loading && tn__meter_look(meter, &sums, &total) != TN_OK)
        return tn_error_code();
    tn_serialize_bool(&at, "on_device", &sums.has_total);
    if (total)
        tn__serializer_put(&at, "total", total);
    else
        tn_serialize_double(&at, "total", &sums.total);
    tn_serialize_double(&at, "at_once", &sums.at_once);
    tn_status status = tn_serialize_double(&at, "weight", &sums.weight);
    return status == TN_OK && s->loading ? tn__meter_restore(meter, &sums) : status;
}

/* An entry; its device is kept by name, and where there is no such device its sums go on on the CPU. */
static tn_status serialize_entry(const tn_serializer *s, int64_t i, tn_summary *summary)
{
    char name[24];
    tn__print_into(name, sizeof name, "%lld", (long long)i);
    tn_serializer at = tn_serializer_in(s, name);
    char *key = NULL, *device = NULL;
    if (!s->loading) {
        key = tn__strdup(summary->entries[i].key);
        device = tn__strdup(tn_device_name(summary->entries[i].device));
        if (!key || !device)
            tn__fail_memory("summary", sizeof *summary);
    }
    tn_serialize_text(&at, "key", &key);
    tn_status status = tn_serialize_text(&at, "device", &device);
    entry *e = NULL;
    if (status == TN_OK && s->loading)
        e = place(summary, key, tn__device_named(device));
    else if (status == TN_OK)
        e = &summary->entries[i];
    tn__free(key);
    tn__free(device);
    status = e ? serialize_meter(&at, "sum", e->value) : tn_error_code();
    return status == TN_OK && e->square ? serialize_meter(&at, "squares", e->square) : status;
}

static tn_status take_sums(void *user, const char *key, double x, double squares, double weight)
{
    entry *e = place(user, key, tn_cpu());
    tn_status status = e ? tn__meter_restore(e->value, &(tn__meter_sums){.at_once = x, .weight = weight})
                         : tn_error_code();
    return status == TN_OK && e->square
               ? tn__meter_restore(e->square, &(tn__meter_sums){.at_once = squares, .weight = weight})
               : status;
}

tn_status tn_serialize_summary(const tn_serializer *s, const char *name, tn_summary *summary)
{
    tn_status status = tn__serializer_check(s, name, summary);
    if (status != TN_OK)
        return status;
    tn_serializer at = tn_serializer_in(s, name);
    int64_t count = tn_summary_count(summary);
    if (s->loading)
        tn_summary_clear(summary);
    if (tn__of_chainer(s))
        return tn__chainer_summary(&at, take_sums, summary);
    status = tn__serialize_count(&at, "count", &count);
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = serialize_entry(&at, i, summary);
    return status;
}
