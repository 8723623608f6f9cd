/* SPDX-License-Identifier: MIT */
/* Descriptions of what an evaluation would do, which evaluates nothing. */
#include "engine/plans.h"

#include "core/error.h"
#include "core/memory.h"
#include "engine/regions.h"

#include <tanso/engine.h>

static tn_status collect(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode)
{
    tn_status status = tn__collect(c, count, roots, mode);
    if (status != TN_OK)
        tn__collection_forget(c);
    return status;
}

/* Prints the plan of what was collected, and forgets that it was. */
static tn_status print_plan(tn__collection *c, tn__text *text)
{
    const tn__capabilities *device = &c->device->capabilities;
    bool compiled = tn__engine_switches.compile != TN_COMPILE_NEVER || c->users || !device->operations;
    tn__plan *plan = tn__plan_make(c, compiled && device->target != TN__TARGET_NONE, "plan_describe");
    if (plan)
        tn__plan_print(plan, text);
    tn__plan_free(plan);
    tn__collection_forget(c);
    return plan ? TN_OK : tn__error_status(tn__error_last());
}

/* ---- several devices ---- */

/* Storages that stand for the values of earlier regions while later ones are described, and what the nodes were. */
typedef struct stand_in {
    tn__storage storage;
    tn__node *node;
    uint32_t depth;
} stand_in;

typedef struct description {
    tn__collection *c;
    tn__regions r;
    tn__text *text;
    stand_in *stand_in; /* as many as items */
    size_t count;
    int regions;
} description;

static void put_value(description *d, tn__node *node)
{
    if (node->storage)
        return;
    stand_in *s = &d->stand_in[d->count++];
    *s = (stand_in){.node = node, .depth = node->depth};
    s->storage = (tn__storage){.device = node->device, .bytes = (size_t)node->shape->size * tn_dtype_size(node->dtype)};
    atomic_init(&s->storage.references, 1);
    node->storage = &s->storage;
    node->depth = 0;
}

static void take_back(description *d)
{
    for (size_t i = 0; i < d->count; i++) {
        tn__node *node = d->stand_in[i].node;
        node->storage = NULL;
        node->depth = d->stand_in[i].depth;
    }
}

static tn_status describe_region(description *d, int count)
{
    if (!count)
        return TN_OK;
    tn_status status = collect(d->c, count, d->r.part, TN__COLLECT_ONLY);
    if (status != TN_OK)
        return status;
    tn__text_addf(d->text, "region %d on %s\n", ++d->regions, d->c->device->name);
    status = print_plan(d->c, d->text);
    for (int i = 0; i < count; i++)
        put_value(d, d->r.part[i]);
    return status;
}

static void describe_transfer(description *d, tn__node *node)
{
    char shape[TN__SHAPE_TEXT];
    tn__text_addf(d->text, "copy %s%s from %s to %s\n", tn_dtype_name((tn_dtype)node->dtype),
                  tn__shape_text(node->shape->ndim, node->shape->dim, shape), node->in[0]->device->name,
                  node->device->name);
    put_value(d, node);
}

static tn_status describe_all(description *d, tn__node *root)
{
    tn__regions *r = &d->r;
    tn_status status = tn__regions_make(r, 1, &root);
    if (status == TN_OK && !(d->stand_in = tn__calloc(r->count + 1, sizeof *d->stand_in)))
        status = tn__fail_memory("plan_describe", r->count * sizeof *d->stand_in);
    for (size_t from = 0, to; from < r->count && status == TN_OK; from = to) {
        to = tn__regions_phase(r, from);
        for (size_t i = from; i < to; i++)
            if (r->item[r->order[i]].transfers)
                describe_transfer(d, r->item[r->order[i]].node);
        for (size_t k = 0; k < r->device_count && status == TN_OK; k++)
            status = describe_region(d, tn__regions_part(r, from, to, r->device[k]));
    }
    for (size_t k = 0; k < r->device_count && status == TN_OK; k++)
        status = describe_region(d, tn__regions_last(r, r->device[k]));
    take_back(d);
    tn__free(d->stand_in);
    tn__regions_free(r);
    return status;
}

/* ---- the public call ---- */

static tn_status describe(tn__node *node, tn__text *text)
{
    tn__collection *c = tn__collection_get();
    if (!c)
        return tn__fail_memory("plan_describe", sizeof *c);
    tn_status status = collect(c, 1, &node, TN__COLLECT_ALONG);
    if (c->crosses)
        return describe_all(&(description){.c = c, .r.mode = TN__COLLECT_ONLY, .text = text}, node);
    if (status != TN_OK)
        return status;
    if (c->root_count)
        return print_plan(c, text);
    tn__text_add(text, "the array has its value already\n");
    return TN_OK;
}

char *tn_plan_describe(const tn_array *x)
{
    tn__call call = tn__enter();
    tn__text text = {0};
    tn_status status = describe(tn__node_of(x, "plan_describe"), &text);
    char *string = tn__text_take(&text);
    if (status == TN_OK && !string)
        tn__fail_memory("plan_describe", 0);
    if (status != TN_OK) {
        tn__free(string);
        string = NULL;
    }
    tn__leave(call);
    return string;
}
