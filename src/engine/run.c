/* SPDX-License-Identifier: MIT */
/* Running plans: binding a collection's leaves and fresh storages to a plan's buffers, and giving nodes their
 * values. */
#include "engine/run.h"

#include "core/clock.h"
#include "core/memory.h"
#include "engine/engine.h"
#include "engine/timing.h"

#include <string.h>

typedef tn__running binding;

static tn__node *leaf_node(const tn__collection *c, int slot) { return c->entry[c->leaf[slot]].node; }

/* The storage of an input, which of its elements is the first, and their dtype: a leaf's, or a window's that moves. */
static tn__storage *input_storage(const tn__collection *c, int slot, int64_t *offset, tn_dtype *dtype)
{
    bool moves = (size_t)slot >= c->leaf_count;
    const tn__moving *m = moves ? &c->moving[(size_t)slot - c->leaf_count] : NULL;
    const tn__node *leaf = leaf_node(c, moves ? m->leaf : slot);
    *offset = leaf->offset + (moves ? m->offset : 0);
    *dtype = (tn_dtype)leaf->dtype;
    return leaf->storage;
}

static inline bool bind_buffer(const tn__collection *c, const tn__program *p, int b, binding *bind)
{
    const tn__buffer *buffer = &p->buffer[b];
    tn__storage *storage = NULL;
    switch (buffer->kind) {
    case TN__BUFFER_INPUT: {
        int64_t offset;
        tn_dtype dtype;
        storage = input_storage(c, buffer->slot, &offset, &dtype);
        if (tn__storage_check(storage) != TN_OK)
            return false;
        bind->storage[b] = tn__storage_retain(storage);
        bind->address[b] = (char *)storage->memory + offset * (int64_t)tn_dtype_size(dtype);
        return true;
    }
    case TN__BUFFER_DONATED:
        storage = tn__storage_retain(leaf_node(c, p->buffer[buffer->donor].slot)->storage);
        break;
    case TN__BUFFER_OUTPUT:
        storage = tn__storage_new(c->device, buffer->bytes);
        if (!storage)
            return false;
        atomic_store_explicit(&storage->run, TN__STARTING, memory_order_relaxed);
        break;
    case TN__BUFFER_TEMPORARY: /* these are bound by bind_all */
    case TN__BUFFER_SHIFTED:
        return true;
    }
    bind->storage[b] = storage;
    bind->address[b] = storage->memory;
    return true;
}

/* Notes which run computes what is fresh, should it fail after it has returned. */
static inline void note_run(const tn__collection *c, const tn__plan *plan, const binding *bind)
{
    uint64_t run = atomic_load_explicit(&c->device->runs, memory_order_relaxed);
    for (size_t r = 0; r < c->root_count; r++) {
        int b = plan->result[r].buffer;
        if (plan->program.buffer[b].kind == TN__BUFFER_OUTPUT)
            atomic_store_explicit(&bind->storage[b]->run, run, memory_order_relaxed);
    }
}

static inline void unbind(const tn__collection *c, const tn__program *p, binding *bind)
{
    for (int b = 0; b < p->buffer_count; b++)
        if (bind->storage[b])
            tn__storage_release(bind->storage[b]);
    if (bind->arena)
        tn__device_release(c->device, bind->arena, p->arena_bytes);
    if (bind->address != bind->few_addresses) {
        tn__free(bind->address);
        tn__free(bind->storage);
    }
}

/* Buffers that are parts of others, which have their addresses by now. */
static void bind_shifted(const tn__collection *c, const tn__program *p, binding *bind)
{
    for (int b = 0; b < p->buffer_count && c->moves; b++) {
        const tn__buffer *x = &p->buffer[b];
        if (x->kind == TN__BUFFER_SHIFTED) {
            const tn__moving *m = &c->moving[x->slot];
            bind->address[b] = (char *)bind->address[x->donor] +
                               m->offset * (int64_t)tn_dtype_size(c->entry[m->base].node->dtype);
        }
    }
}

/* Outputs that are to lie side by side, in a storage that they share. */
static bool bind_together(const tn__collection *c, const tn__plan *plan, binding *bind)
{
    int64_t bytes = 0, at = 0;
    for (int i = 0; i < c->together_count; i++)
        bytes = tn__side_by_side(bytes, c->together[i]);
    TN__FREED int32_t *root = tn__calloc(c->count + 1, sizeof *root); /* which an entry is, from 1 */
    tn__storage *storage = root ? tn__storage_new(c->device, (size_t)bytes) : NULL;
    if (!root)
        tn__fail_memory("eval", (c->count + 1) * sizeof *root);
    if (!storage)
        return false;
    atomic_store_explicit(&storage->run, TN__STARTING, memory_order_relaxed);
    for (size_t r = 0; r < c->root_count; r++)
        root[c->root[r]] = (int32_t)r + 1;
    for (int i = 0; i < c->together_count; i++) {
        int entry = tn__collection_find(c, c->together[i]);
        const tn__result_window *w = entry >= 0 && root[entry] ? &plan->result[root[entry] - 1] : NULL;
        const tn__buffer *b = w ? &plan->program.buffer[w->buffer] : NULL;
        int64_t next = tn__side_by_side(at, c->together[i]);
        /* what is the beginning of something larger stays there: it would reach into the next one's place */
        if (b && b->kind == TN__BUFFER_OUTPUT && !w->strides && !w->offset && !bind->storage[w->buffer] &&
            b->bytes <= (size_t)(next - at)) {
            bind->storage[w->buffer] = tn__storage_retain(storage);
            bind->address[w->buffer] = (char *)storage->memory + at;
        }
        at = next;
    }
    tn__storage_release(storage);
    return true;
}

static inline tn_status bind_all(const tn__collection *c, const tn__plan *plan, binding *bind)
{
    const tn__program *p = &plan->program;
    size_t n = (size_t)p->buffer_count;
    bind->address = bind->few_addresses;
    bind->storage = bind->few_storages;
    bind->arena = NULL;
    if (n > TN__RUN_BUFFERS) {
        bind->address = tn__alloc(n * sizeof *bind->address);
        bind->storage = tn__alloc(n * sizeof *bind->storage);
        if (!bind->address || !bind->storage) {
            tn__free(bind->address);
            tn__free(bind->storage);
            return tn__fail_memory("eval", n * sizeof *bind->address);
        }
    }
    memset(bind->storage, 0, n * sizeof *bind->storage);
    bool done = !p->arena_bytes || (bind->arena = tn__device_allocate(c->device, p->arena_bytes));
    if (__builtin_expect(c->together != NULL, 0))
        done = done && bind_together(c, plan, bind);
    for (int b = 0; b < p->buffer_count && done; b++)
        if (p->buffer[b].kind == TN__BUFFER_TEMPORARY)
            bind->address[b] = (char *)bind->arena + p->buffer[b].offset;
        else if (!bind->storage[b])
            done = bind_buffer(c, p, b, bind);
    if (done) {
        bind_shifted(c, p, bind);
        return TN_OK;
    }
    unbind(c, p, bind);
    return tn__error_status(tn__error_last());
}

/* Gives the roots their values; the nodes' references to each other go as they do. */
static inline void publish(tn__collection *c, const tn__plan *plan, const binding *bind, tn__error *released)
{
    /* Dropping inputs may free nodes the collection names, so hold the ones still to be visited. */
    for (size_t r = 0; r < c->root_count; r++)
        tn__node_retain(c->entry[c->root[r]].node);
    for (size_t i = 0; i < c->count && released; i++)
        if (c->entry[i].released)
            tn__node_retain(c->entry[i].node);
    for (size_t r = 0; r < c->root_count; r++) {
        tn__node *node = c->entry[c->root[r]].node;
        const tn__result_window *w = &plan->result[r];
        const tn__buffer *b = &plan->program.buffer[w->buffer];
        int64_t offset = 0;
        tn_dtype dtype;
        if (b->kind == TN__BUFFER_INPUT)
            (void)input_storage(c, b->slot, &offset, &dtype);
        tn__storage *storage = bind->storage[w->buffer];
        if (c->together && b->kind == TN__BUFFER_OUTPUT)
            offset = ((char *)bind->address[w->buffer] - (char *)storage->memory) /
                     (int64_t)tn_dtype_size((tn_dtype)node->dtype);
        tn__node_set_value(node, storage, offset + w->offset, w->strides, false);
    }
    for (size_t r = 0; r < c->root_count; r++) {
        tn__node *node = c->entry[c->root[r]].node;
        if (!tn__keeps_inputs(node))
            tn__node_drop_inputs(node);
    }
    for (size_t i = 0; i < c->count && released; i++)
        if (c->entry[i].released) {
            tn__node_set_released(c->entry[i].node, tn__error_retain(released));
            tn__node_release(c->entry[i].node);
        }
    for (size_t r = 0; r < c->root_count; r++)
        tn__node_release(c->entry[c->root[r]].node);
}

/* The record that values given up by a step carry; NULL if there are none (or no memory: then they stay pending). */
static tn__error *released_record(const tn__collection *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->entry[i].released)
            return tn__error_record(
                TN_ERR_STATE, "step",
                "this array was not computed before tn_step changed the parameters it depends on; call "
                "tn_eval on it before the step to keep it");
    return NULL;
}

/* What a run reads and overwrites, where work goes on several streams; what is fresh is in order since it was taken. */
static tn_status begin_uses(const tn__collection *c, const tn__program *p, const binding *bind)
{
    tn_status status = TN_OK;
    for (int b = 0; b < p->buffer_count && status == TN_OK; b++)
        if (p->buffer[b].kind == TN__BUFFER_INPUT || p->buffer[b].kind == TN__BUFFER_DONATED)
            status = tn__use_begin(c->device, &bind->storage[b]->use, p->buffer[b].kind == TN__BUFFER_DONATED);
    return status;
}

static void end_uses(const tn__collection *c, const tn__program *p, const binding *bind)
{
    for (int b = 0; b < p->buffer_count; b++)
        if (bind->storage[b])
            tn__use_end(c->device, &bind->storage[b]->use, p->buffer[b].kind != TN__BUFFER_INPUT);
}

static inline tn_status launch(const tn__collection *c, const tn__loaded *loaded, const binding *bind)
{
    const tn__program *program = &loaded->plan->program;
    tn_status status = tn__has_streams(c->device) ? begin_uses(c, program, bind) : TN_OK;
    if (status == TN_OK)
        status = loaded->ops->run(loaded->executable, bind->address, c->scalar);
    /* asked anew: in between lies the backend's lock, under which the first other stream is made */
    if (tn__has_streams(c->device))
        end_uses(c, program, bind);
    return status;
}

/* Between two events, for whoever measures. */
static __attribute__((noinline)) tn_status launch_timed(const tn__collection *c, const tn__loaded *loaded,
                                                        const binding *bind)
{
    tn__timed *timed;
    tn_status status = tn__timed_begin(loaded, c->device, &timed);
    if (status != TN_OK)
        return status;
    status = launch(c, loaded, bind);
    tn__timed_end(timed);
    return status;
}

static inline void count_and_release(tn__running *r)
{
    uint64_t steps = (uint64_t)r->loaded->plan->program.step_count;
    atomic_fetch_add_explicit(&tn__engine_counters.evaluations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tn__engine_counters.kernels, steps, memory_order_relaxed);
    tn__plans_release(r->held);
}

static inline __attribute__((always_inline)) tn_status prepare(tn__collection *c, tn__running *r)
{
    r->loaded = tn__plans_acquire(c, &r->held);
    if (!r->loaded)
        return tn__error_status(tn__error_last());
    tn_status status = bind_all(c, r->loaded->plan, r);
    if (status != TN_OK)
        count_and_release(r);
    return status;
}

static inline __attribute__((always_inline)) tn_status start(tn__collection *c, const tn__running *r)
{
    c->begun = true;
    int64_t began = tn__plans_wait(r->held) ? tn__nanoseconds() : 0;
    tn_status status = TN_OK;
    if (r->loaded->plan->program.step_count)
        status = tn__timing_any() ? launch_timed(c, r->loaded, r) : launch(c, r->loaded, r);
    if (began)
        tn__plans_spent(r->held, tn__nanoseconds() - began);
    return status;
}

static inline __attribute__((always_inline)) void end(tn__collection *c, tn__running *r, tn_status status,
                                                      bool step)
{
    if (status == TN_OK) {
        c->begun = false; /* what was collected goes */
        note_run(c, r->loaded->plan, r);
        tn__error *released = step ? released_record(c) : NULL;
        publish(c, r->loaded->plan, r, released);
        if (released)
            tn__error_release(released);
        tn__pending_sweep();
    }
    unbind(c, &r->loaded->plan->program, r);
    count_and_release(r);
}

tn_status tn__run_prepare(tn__collection *c, tn__running *r) { return prepare(c, r); }
tn_status tn__run_start(tn__collection *c, tn__running *r) { return start(c, r); }
void tn__run_end(tn__collection *c, tn__running *r, tn_status status, bool step) { end(c, r, status, step); }

/* Without a call in between: an evaluation of something small consists of what is here. */
tn_status tn__run(tn__collection *c, bool step)
{
    tn__running r;
    tn_status status = prepare(c, &r);
    if (status != TN_OK)
        return status;
    status = start(c, &r);
    end(c, &r, status, step);
    return status;
}
