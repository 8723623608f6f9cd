/* SPDX-License-Identifier: MIT */
/*
 * Reporters: which layer goes by which name, and the thread's stack of who listens. A layer below a known one is found
 * by going up to that, so that children may come at any time.
 */
#include <string.h>
#include "array/guard.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/object.h"
#include "core/options.h"
#include "core/utf8.h"
#include "nn/layer.h"
#include "train/observation.h"

typedef struct known {
    const tn_layer *layer;
    char *name;
} known;

typedef struct watcher {
    char *key;
    void (*seen)(const tn_array *value, void *user);
    void *user;
} watcher;

struct tn_reporter {
    tn__object object;
    tn__error *error; /* of one that was freed; else NULL */
    bool is_static;   /* the out-of-memory one */
    known *known;
    size_t known_count, known_capacity;
    watcher *watchers;
    size_t watcher_count, watcher_capacity;
};

static tn_reporter memory_reporter = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_reporter, "reporter");

/* Nobody nests deeper: an evaluation in an iteration is two. The frames of a thread lie in memory of their own while
 * any is in use: what a library has for each thread must fit into the little that the C library keeps for libraries
 * which a running program loads. */
#define DEEPEST 64
typedef struct frame {
    tn_reporter *reporter; /* NULL: nobody listens */
    tn_observation *observation;
} frame;
static _Thread_local frame *stack; /* NULL: none is in use, or there was no memory for them */
static _Thread_local int depth;

tn_reporter *tn_reporter_new(void)
{
    tn_reporter *reporter = tn__object_new(&objects);
    if (reporter)
        return reporter;
    tn__fail_memory("reporter", sizeof *reporter);
    return &memory_reporter;
}

void tn__report_forget(const void *gone)
{
    for (int i = 0; stack && i < depth && i < DEEPEST; i++)
        if (stack[i].reporter == gone || stack[i].observation == gone)
            stack[i] = (frame){NULL, NULL};
}

void tn_reporter_free(tn_reporter *reporter)
{
    if (!reporter || reporter->is_static || !tn__object_may_go(&objects, &reporter->object))
        return;
    tn__report_forget(reporter);
    for (size_t i = 0; i < reporter->known_count; i++)
        tn__free(reporter->known[i].name);
    for (size_t i = 0; i < reporter->watcher_count; i++)
        tn__free(reporter->watchers[i].key);
    tn__free(reporter->known);
    tn__free(reporter->watchers);
    tn__object_end(&objects, &reporter->object);
}

static tn_status check_reporter(const tn_reporter *reporter)
{
    if (!reporter)
        return tn__fail_null("reporter", "a reporter");
    if (reporter->error)
        return tn__error_raise(reporter->error);
    return reporter->is_static ? tn__fail_memory("reporter", sizeof *reporter) : TN_OK;
}

void tn__reporter_own(tn_reporter *reporter, const char *owner)
{
    if (!reporter->is_static)
        reporter->object.owner = owner;
}

static known *known_of(const tn_reporter *reporter, const tn_layer *layer)
{
    for (size_t i = 0; i < reporter->known_count; i++)
        if (reporter->known[i].layer == layer)
            return &reporter->known[i];
    return NULL;
}

tn_status tn_reporter_add(tn_reporter *reporter, const char *name, const tn_layer *layer)
{
    tn_status status = check_reporter(reporter);
    if (status != TN_OK)
        return status;
    if (!name || !layer)
        return tn__fail(TN_ERR_VALUE, "reporter_add", "expected a name and a layer, got NULL");
    status = tn__check_utf8("reporter_add", "the name", name);
    if (status != TN_OK)
        return status;
    char *copy = tn__strdup(name);
    known *found = known_of(reporter, layer);
    if (!copy || (!found && !tn__grow((void **)&reporter->known, &reporter->known_capacity, reporter->known_count + 1,
                                      sizeof *reporter->known))) {
        tn__free(copy);
        return tn__fail_memory("reporter_add", strlen(name) + sizeof *found);
    }
    if (found)
        tn__free(found->name);
    else
        found = &reporter->known[reporter->known_count++];
    *found = (known){layer, copy};
    return TN_OK;
}

tn_status tn_reporter_watch(tn_reporter *reporter, const char *key, void (*seen)(const tn_array *value, void *user),
                            void *user)
{
    tn_status status = check_reporter(reporter);
    if (status != TN_OK)
        return status;
    if (!key || !seen)
        return tn__fail(TN_ERR_VALUE, "reporter_watch", "expected a key and a function, got NULL");
    char *copy = tn__strdup(key);
    if (!copy || !tn__grow((void **)&reporter->watchers, &reporter->watcher_capacity, reporter->watcher_count + 1,
                           sizeof *reporter->watchers)) {
        tn__free(copy);
        return tn__fail_memory("reporter_watch", strlen(key));
    }
    reporter->watchers[reporter->watcher_count++] = (watcher){copy, seen, user};
    return TN_OK;
}

void tn_reporter_unwatch(tn_reporter *reporter, void *user)
{
    size_t left = 0;
    if (reporter && check_reporter(reporter) != TN_OK)
        return;
    for (size_t i = 0; reporter && i < reporter->watcher_count; i++) {
        if (reporter->watchers[i].user == user)
            tn__free(reporter->watchers[i].key);
        else
            reporter->watchers[left++] = reporter->watchers[i];
    }
    if (reporter && !reporter->is_static)
        reporter->watcher_count = left;
}

/* ---- the stack ---- */

/* A frame in which nobody listens yet; NULL with a latched error if there is no room, though it counts. */
static frame *push(void)
{
    static tn__reports reports = {tn__report_depth, tn__report_back_to};
    int at = depth++;
    __atomic_store_n(&tn__guard_reports, &reports, __ATOMIC_RELEASE);
    if (at == 0)
        stack = tn__calloc(DEEPEST, sizeof *stack);
    if (at >= DEEPEST) {
        tn__fail(TN_ERR_STATE, "reporter_push", "%d reporters are in use already: pop each when it is done with",
                 DEEPEST);
        return NULL;
    }
    if (!stack) {
        tn__fail_memory("reporter_push", DEEPEST * sizeof *stack);
        return NULL;
    }
    stack[at] = (frame){NULL, NULL};
    return &stack[at];
}

static void pop_to(int to)
{
    depth = to;
    if (depth > 0)
        return;
    tn__free(stack);
    stack = NULL;
}

/* The innermost frame; one in which nobody listens if there is none. */
static frame top(void)
{
    int at = depth > DEEPEST ? DEEPEST - 1 : depth - 1;
    return stack && at >= 0 ? stack[at] : (frame){NULL, NULL};
}

tn_status tn_reporter_push(tn_reporter *reporter, tn_observation *observation)
{
    frame *in = push();
    if (!in)
        return tn__error_status(tn__error_last());
    if (!reporter || !observation)
        return tn__fail(TN_ERR_VALUE, "reporter_push", "expected a reporter and an observation, got NULL");
    tn_status status = reporter->error ? check_reporter(reporter) : tn__observation_raise(observation);
    if (status != TN_OK)
        return status;
    *in = (frame){reporter, observation};
    return TN_OK;
}

tn_status tn_report_scope_push(tn_observation *observation)
{
    tn_reporter *reporter = top().reporter;
    if (reporter && observation)
        return tn_reporter_push(reporter, observation);
    if (!push())
        return tn__error_status(tn__error_last());
    return observation ? TN_OK : tn__fail_null("report_scope_push", "an observation");
}

void tn_reporter_pop(void)
{
    if (depth == 0)
        tn__fail(TN_ERR_STATE, "reporter_pop", "no reporter is in use: there was no tn_reporter_push before");
    else
        pop_to(depth - 1);
}

tn_status tn__report_twin(const tn_layer *copy, const tn_layer *layer)
{
    tn_reporter *reporter = top().reporter;
    const known *found = reporter && !known_of(reporter, copy) ? known_of(reporter, layer) : NULL;
    return found ? tn_reporter_add(reporter, found->name, copy) : TN_OK;
}

int tn__report_depth(void) { return depth; }

void tn__report_hold(void)
{
    frame before = top(), *in = push();
    if (in)
        *in = before;
}

void tn__report_back_to(int to)
{
    if (depth > to)
        pop_to(to);
}

tn_observation *tn_current_observation(void)
{
    frame in = top();
    return in.reporter ? in.observation : NULL;
}

tn__report_guard tn__report_enter(tn_reporter *reporter, tn_observation *observation)
{
    tn_reporter_push(reporter, observation);
    return (tn__report_guard){0};
}

tn__report_guard tn__report_scope_enter(tn_observation *observation)
{
    tn_report_scope_push(observation);
    return (tn__report_guard){0};
}

void tn__report_leave(tn__report_guard *guard)
{
    if (guard)
        tn_reporter_pop();
}

/* ---- reporting ---- */

static const char *child_name(const tn_layer *parent, const tn_layer *child)
{
    for (size_t i = 0; i < parent->child_count; i++)
        if (parent->children[i].layer == child)
            return parent->children[i].name;
    return "";
}

/* Most keys are no longer, and take no memory of their own. */
#define SHORT_KEY 128

/* What a layer adds to a key: the name that the reporter knows it by, where the path begins, or that which the layer
 * above has for it. */
static const char *part_of(const tn_reporter *reporter, const tn_layer *layer, bool *begins)
{
    const known *found = known_of(reporter, layer);
    *begins = found != NULL;
    return found ? found->name : layer->parent ? child_name(layer->parent, layer) : NULL;
}

static char *put_before(char *end, const char *text, size_t length)
{
    memcpy(end - length, text, length);
    return end - length;
}

/* The key: `brief`, or what is for tn__free; NULL with a latched error. */
static char *key_of(const tn_reporter *reporter, const tn_layer *observer, const char *name, char brief[SHORT_KEY])
{
    size_t own = strlen(name), length = own;
    bool begins = !observer;
    for (const tn_layer *layer = observer; !begins; layer = layer->parent) {
        const char *part = part_of(reporter, layer, &begins);
        if (!part) {
            tn__fail(TN_ERR_NAME, "report",
                     "\"%s\" comes from a layer (%s) that is in none of the models that the reporter knows: give it "
                     "as observer a layer of an optimizer's model, or NULL",
                     name, tn__layer_name(observer));
            return NULL;
        }
        length += strlen(part) + 1;
    }
    char *key = length < SHORT_KEY ? brief : tn__alloc(length + 1);
    if (!key) {
        tn__fail_memory("report", length);
        return NULL;
    }
    key[length] = '\0';
    char *at = put_before(key + length, name, own);
    begins = !observer;
    for (const tn_layer *layer = observer; !begins; layer = layer->parent) {
        const char *part = part_of(reporter, layer, &begins);
        at = put_before(at, "/", 1);
        at = put_before(at, part, strlen(part));
    }
    return key;
}

static void tell_watchers(tn_reporter *reporter, const char *key, const tn_array *value)
{
    if (!reporter->watcher_count)
        return;
    TN__GUARD("report");
    for (size_t i = reporter->watcher_count; i-- > 0;) /* backwards: one may take itself away */
        if (strcmp(reporter->watchers[i].key, key) == 0)
            reporter->watchers[i].seen(value, reporter->watchers[i].user);
}

/* A value (an array, or else the number) into the current observation. */
static tn_status report(const tn_layer *observer, const char *name, const tn_array *value, double number,
                        const tn_report_opts *opts)
{
    frame in = top();
    if (!name)
        return tn__fail_null("report", "a name");
    if (!in.reporter)
        return TN_OK;
    if (opts && TN__GIVEN(opts, weight) && !(opts->weight > 0))
        return tn__fail(TN_ERR_VALUE, "report", "expected a weight above 0 for \"%s\", got %g", name, opts->weight);
    char brief[SHORT_KEY], *key = key_of(in.reporter, observer, name, brief);
    if (!key)
        return tn__error_status(tn__error_last());
    TN__FREED char *own = key == brief ? NULL : key; /* also where a watcher throws an exception */
    (void)own;
    double weight = opts ? opts->weight : 0;
    tn_status status = value ? tn_observation_set(in.observation, key, value, weight)
                             : tn_observation_set_number(in.observation, key, number, weight);
    if (status == TN_OK && value)
        tell_watchers(in.reporter, key, value);
    return status;
}

tn_status tn_report_with(const tn_layer *observer, const char *name, const tn_array *value, const tn_report_opts *opts)
{
    if (!value)
        return tn__fail_null("report", "an array");
    return report(observer, name, value, 0, opts);
}

tn_status tn_report_number_with(const tn_layer *observer, const char *name, double value, const tn_report_opts *opts)
{
    return report(observer, name, NULL, value, opts);
}
