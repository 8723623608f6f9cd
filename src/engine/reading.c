/* SPDX-License-Identifier: MIT */
/*
 * Numbers of a device that are read later than they were there: what adds up the figures of an epoch would else wait
 * for the device at its end, which meanwhile has nothing to do.
 */
#include <string.h>

#include "array/build.h"
#include "core/memory.h"
#include "engine/engine.h"

struct tn__reading {
    tn__storage *block; /* of the copies: NULL once they have come */
    void *begun;
    int count;
    size_t *at; /* where each lies, in bytes */
    char *host; /* the block's bytes */
};

/* Where the copies lie; false unless all are in one block. */
static bool find_places(tn__reading *r, tn__node *const *copy)
{
    r->block = copy[0]->storage;
    for (int i = 0; i < r->count; i++) {
        if (copy[i]->storage != r->block || copy[i]->dtype != TN_FLOAT64)
            return false;
        r->at[i] = (size_t)copy[i]->offset * sizeof(double);
    }
    return true;
}

static void begin(tn__reading *r, tn__node *const *node)
{
    TN__FREED tn__node **copy = tn__alloc((size_t)r->count * sizeof *copy);
    if (!copy)
        return;
    memcpy(copy, node, (size_t)r->count * sizeof *copy);
    tn__device *device = node[0]->device;
    tn__storage *block = NULL;
    if (tn__put_aside(r->count, copy) == TN_OK && find_places(r, copy))
        block = r->block;
    r->block = NULL;
    r->host = block ? tn__alloc(block->bytes) : NULL;
    if (!r->host || tn__storage_check(block) != TN_OK || tn__use_begin(device, &block->use, false) != TN_OK)
        return;
    r->begun = device->ops->read_begin(device, block->memory, block->bytes);
    tn__use_end(device, &block->use, false);
    if (r->begun)
        r->block = tn__storage_retain(block);
}

tn__reading *tn__reading_begin(int count, tn__node *const *node)
{
    if (count < 1 || !node[0]->device->ops->read_begin || tn__latched())
        return NULL;
    tn__reading *r = tn__calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->count = count;
    r->at = tn__alloc((size_t)count * sizeof *r->at);
    tn__call call = tn__enter();
    if (r->at)
        begin(r, node);
    tn__leave(call);
    if (r->block)
        return r;
    tn__reading_free(r);
    tn_clear_error(); /* whoever reads at once finds it, too */
    return NULL;
}

tn__node *tn__reading_copy(const tn__reading *r, int i)
{
    return tn__node_value(r->block, TN_FLOAT64, tn__shape_scalar(), (int64_t)(r->at[i] / sizeof(double)), NULL);
}

tn_status tn__reading_end(tn__reading *r, bool wait, bool *done)
{
    *done = true;
    if (!r->block)
        return TN_OK;
    tn__device *device = r->block->device;
    tn_status status = device->ops->read_end(device, r->begun, r->host, r->block->bytes, wait, done);
    if (!*done)
        return status;
    if (status == TN_OK)
        status = tn__storage_check(r->block);
    tn__storage_release(r->block);
    r->block = NULL;
    return status;
}

double tn__reading_value(const tn__reading *r, int i)
{
    double value;
    memcpy(&value, r->host + r->at[i], sizeof value);
    return value;
}

void tn__reading_free(tn__reading *r)
{
    if (!r)
        return;
    if (r->block) { /* nobody wants it any more */
        bool clean = !tn__latched(), done;
        tn__device *device = r->block->device;
        device->ops->read_end(device, r->begun, NULL, r->block->bytes, true, &done);
        tn__storage_release(r->block);
        if (clean)
            tn_clear_error();
    }
    tn__free(r->host);
    tn__free(r->at);
    tn__free(r);
}
