/* SPDX-License-Identifier: MIT */
/* Counting and timing the forwards of layers. What goes in and comes out is computed and waited for. */
#include <inttypes.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/engine.h>
#include <tanso/stream.h>
#include "core/clock.h"
#include "nn/layer.h"

#define OPERATION "timer"

typedef struct watched {
    tn_timer *timer;
    tn_layer *layer;
    char *path;
    int64_t calls;
    double began, seconds;
} watched;

struct tn_timer {
    tn__object object;
    watched **items; /* each a hook's user pointer: they stay where they are */
    size_t count, capacity;
    tn__error *error;
    bool is_static;
};

static tn_timer memory_timer = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_timer, "timer");

static tn_status settle(const tn_array *x)
{
    tn_status status = tn_is_error(x) ? tn_status_of(x) : tn_eval(x);
    return status == TN_OK ? tn_synchronize(tn_device_of(x)) : status;
}

static tn_status hook(tn_layer *layer, bool after, void *user)
{
    watched *w = user;
    tn_status status = TN_OK;
    const tn__flow *call = layer->call;
    for (int i = 0; call && status == TN_OK && i < (after ? call->out_count : call->in_count); i++) {
        tn__node *node = after ? call->out[i] : call->in[i];
        if (node && !tn__node_is_error(node))
            status = settle(tn__leave_array(tn__enter(), node));
    }
    if (!after) {
        w->began = tn__seconds();
    } else {
        w->seconds += tn__seconds() - w->began;
        w->calls++;
    }
    return status;
}

static tn_status watch(const tn_layer_part *part, void *user)
{
    tn_timer *timer = user;
    if (part->kind != TN_PART_LAYER)
        return TN_OK;
    watched *w = tn__calloc(1, sizeof *w);
    if (!w || !(w->path = tn__strdup(part->path)) ||
        !tn__grow((void **)&timer->items, &timer->capacity, timer->count + 1, sizeof *timer->items)) {
        if (w)
            tn__free(w->path);
        tn__free(w);
        return tn__fail_memory(OPERATION, sizeof *w);
    }
    w->timer = timer;
    w->layer = part->layer;
    timer->items[timer->count++] = w;
    return tn_layer_add_hook(part->layer, hook, w);
}

tn_timer *tn_timer_new(tn_layer *layer)
{
    tn_timer *timer = tn__object_new(&objects);
    if (!timer) {
        tn__fail_memory(OPERATION, sizeof *timer);
        return &memory_timer;
    }
    tn_status status = layer ? tn_layer_walk(layer, watch, timer) : tn__fail_null(OPERATION, "a layer");
    if (status != TN_OK)
        timer->error = tn__error_retain(tn__error_last());
    return timer;
}

tn_status tn_timer_status(const tn_timer *timer)
{
    if (!timer || timer->is_static)
        return timer ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return timer->error ? tn__error_status(timer->error) : TN_OK;
}

void tn_timer_free(tn_timer *timer)
{
    if (!timer || timer->is_static || !tn__object_may_go(&objects, &timer->object))
        return;
    for (size_t i = 0; i < timer->count; i++) {
        tn_layer_remove_hook(timer->items[i]->layer, hook, timer->items[i]);
        tn__free(timer->items[i]->path);
        tn__free(timer->items[i]);
    }
    tn__free(timer->items);
    if (timer->error)
        tn__error_release(timer->error);
    tn__object_end(&objects, &timer->object);
}

static const watched *find(const tn_timer *timer, const char *path)
{
    for (size_t i = 0; timer && path && i < timer->count; i++)
        if (strcmp(timer->items[i]->path, path) == 0)
            return timer->items[i];
    if (timer && timer->object.dead)
        tn__error_raise(timer->error);
    else
        tn__fail(TN_ERR_NAME, OPERATION, "no layer of the path '%s' is watched", path ? path : "NULL");
    return NULL;
}

int64_t tn_timer_calls(const tn_timer *timer, const char *path)
{
    const watched *w = find(timer, path);
    return w ? w->calls : 0;
}

double tn_timer_seconds(const tn_timer *timer, const char *path)
{
    const watched *w = find(timer, path);
    return w ? w->seconds : 0;
}

char *tn_timer_string(const tn_timer *timer)
{
    if (timer && timer->object.dead) {
        tn__error_raise(timer->error);
        return NULL;
    }
    tn__text text = {0};
    tn__text_addf(&text, "%-32s %10s %12s\n", "layer", "calls", "seconds");
    for (size_t i = 0; timer && i < timer->count; i++) {
        const watched *w = timer->items[i];
        char *name = tn__format("%s%s%s", w->path, *w->path ? ": " : "", tn__layer_name(w->layer));
        tn__text_addf(&text, "%-32s %10" PRId64 " %12.6f\n", name ? name : w->path, w->calls, w->seconds);
        tn__free(name);
    }
    char *string = tn__text_take(&text);
    if (!string)
        tn__fail_memory(OPERATION, 64);
    return string;
}
