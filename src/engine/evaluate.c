/* SPDX-License-Identifier: MIT */
/* Running plans: binding a collection's leaves and fresh storages to a plan's buffers, and giving nodes their
 * values. */
#include "engine/engine.h"

#include "core/memory.h"
#include "engine/plans.h"

#include <string.h>
#include <tanso/engine.h>

#define ON_STACK 256 /* buffers: most plans have fewer, even of single operations */

/* The addresses of one run. */
typedef struct binding {
    void **address;
    tn__storage **storage;  /* by buffer: of outputs and inputs; NULL for temporaries */
    void *address_on_stack[ON_STACK];
    tn__storage *storage_on_stack[ON_STACK];
    void *arena;
} binding;

static tn__node *leaf_node(const tn__collection *c, int slot) { return c->entry[c->leaf[slot]].node; }

static bool bind_buffer(const tn__collection *c, const tn__program *p, int b, binding *bind)
{
    const tn__buffer *buffer = &p->buffer[b];
    tn__storage *storage = NULL;
    switch (buffer->kind) {
    case TN__BUFFER_INPUT: {
        tn__node *leaf = leaf_node(c, buffer->slot);
        if (tn__storage_check(leaf->storage) != TN_OK)
            return false;
        bind->storage[b] = tn__storage_retain(leaf->storage);
        bind->address[b] = (char *)leaf->storage->memory + leaf->offset * (int64_t)tn_dtype_size(leaf->dtype);
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
    case TN__BUFFER_TEMPORARY: /* bound by bind_all */
        return true;
    }
    bind->storage[b] = storage;
    bind->address[b] = storage->memory;
    return true;
}

/* Notes which run computes what is fresh, should it fail after it has returned. */
static void note_run(const tn__collection *c, const tn__plan *plan, const binding *bind)
{
    uint64_t run = atomic_load_explicit(&c->device->runs, memory_order_relaxed);
    for (size_t r = 0; r < c->root_count; r++) {
        int b = plan->result[r].buffer;
        if (plan->program.buffer[b].kind == TN__BUFFER_OUTPUT)
            atomic_store_explicit(&bind->storage[b]->run, run, memory_order_relaxed);
    }
}

static void unbind(const tn__collection *c, const tn__program *p, binding *bind)
{
    for (int b = 0; b < p->buffer_count; b++)
        if (bind->storage[b])
            tn__storage_release(bind->storage[b]);
    if (bind->arena)
        tn__device_release(c->device, bind->arena, p->arena_bytes);
    if (bind->address != bind->address_on_stack) {
        tn__free(bind->address);
        tn__free(bind->storage);
    }
}

static tn_status bind_all(const tn__collection *c, const tn__program *p, binding *bind)
{
    size_t n = (size_t)p->buffer_count;
    bind->address = bind->address_on_stack;
    bind->storage = bind->storage_on_stack;
    bind->arena = NULL;
    if (n > ON_STACK) {
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
    for (int b = 0; b < p->buffer_count && done; b++)
        if (p->buffer[b].kind == TN__BUFFER_TEMPORARY)
            bind->address[b] = (char *)bind->arena + p->buffer[b].offset;
        else
            done = bind_buffer(c, p, b, bind);
    if (done)
        return TN_OK;
    unbind(c, p, bind);
    return tn__error_status(tn__error_last());
}

/* Gives the roots their values; the nodes' references to each other go as they do. */
static void publish(tn__collection *c, const tn__plan *plan, const binding *bind, tn__error *released)
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
        int64_t offset = w->offset + (b->kind == TN__BUFFER_INPUT ? leaf_node(c, b->slot)->offset : 0);
        tn__storage *storage = bind->storage[w->buffer];
        tn__node_set_value(node, storage, offset, w->strides, false);
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

/* What a run reads and overwrites, where work goes on several lanes; what is fresh is in order since it was taken. */
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

static tn_status start(const tn__collection *c, const tn__loaded *loaded, const binding *bind)
{
    const tn__program *program = &loaded->plan->program;
    tn_status status = tn__has_lanes(c->device) ? begin_uses(c, program, bind) : TN_OK;
    if (status == TN_OK)
        status = loaded->ops->run(loaded->executable, bind->address, c->scalar);
    /* asked anew: in between lies the backend's lock, under which the first other lane is made */
    if (tn__has_lanes(c->device))
        end_uses(c, program, bind);
    return status;
}

static tn_status run(tn__collection *c, bool step)
{
    tn__cached *held;
    const tn__loaded *loaded = tn__plans_acquire(c, &held);
    if (!loaded)
        return tn__error_status(tn__error_last());
    binding bind;
    const tn__program *program = &loaded->plan->program;
    tn_status status = bind_all(c, program, &bind);
    if (status == TN_OK) {
        c->begun = true;
        if (program->step_count)
            status = start(c, loaded, &bind);
        if (status == TN_OK) {
            note_run(c, loaded->plan, &bind);
            tn__error *released = step ? released_record(c) : NULL;
            publish(c, loaded->plan, &bind, released);
            if (released)
                tn__error_release(released);
            tn__pending_sweep();
        }
        unbind(c, program, &bind);
    }
    atomic_fetch_add_explicit(&tn__engine_counters.evaluations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tn__engine_counters.kernels, (uint64_t)program->step_count, memory_order_relaxed);
    tn__plans_release(held);
    return status;
}

/* Whether an index out of range is one of what was collected. Where failures come late, it is another run's that is
 * told of, unless this one has not begun: then it reads what a failed run should have computed. */
static bool failed_itself(const tn__collection *c, tn_status status)
{
    return status == TN_ERR_INDEX && (!c->device->capabilities.late_failures || !c->begun);
}

/* Computes each of a step's pending handles by itself. Those that can't be are noted as refused: who reads them is
 * told, and the step goes on without them, unless it goes back through one. */
static tn_status compute_apart(tn__collection *c, tn__node **node, int count)
{
    for (int i = 0; i < count; i++) {
        tn_status status = tn__collect(c, 1, &node[i], TN__COLLECT_ONLY);
        if (status == TN_OK && c->root_count)
            status = run(c, false);
        if (status == TN_OK)
            continue;
        if (node[i]->flags & TN__NODE_BACKWARD || !failed_itself(c, status))
            return status;
        tn_clear_error();
        c->refused[c->refused_count++] = node[i];
    }
    return TN_OK;
}

/* A step again that met an index out of range, which may be of an array that it computed along. */
static tn_status step_again(tn__collection *c, int count, tn__node *const *roots)
{
    tn__handle *const *handle;
    int handles = tn__pending_handles(&handle), along = 0;
    tn__node **node = tn__alloc(2 * sizeof *node * ((size_t)handles + 1));
    if (!node)
        return tn__fail_memory("eval", 2 * sizeof *node * (size_t)handles);
    for (int i = 0; i < handles; i++)
        if (tn__computed_along(handle[i], c->device, TN__COLLECT_STEP))
            node[along++] = tn__node_retain(handle[i]->node);
    c->refused = node + handles + 1;
    tn_status status = compute_apart(c, node, along);
    if (status == TN_OK)
        status = tn__collect(c, count, roots, TN__COLLECT_STEP);
    c->refused_count = 0;
    c->refused = NULL;
    for (int i = 0; i < along; i++)
        tn__node_release(node[i]);
    tn__free(node);
    return status == TN_OK && c->root_count ? run(c, true) : status;
}

static tn_status attempt(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode)
{
    bool clean = !tn__latched();
    tn_status status = tn__collect(c, count, roots, mode);
    if (status != TN_OK || !c->root_count)
        return status;
    bool more = mode != TN__COLLECT_STEP && c->root_count > c->asked;
    status = run(c, mode == TN__COLLECT_STEP);
    if (mode == TN__COLLECT_STEP && clean && failed_itself(c, status)) {
        tn_clear_error();
        return step_again(c, count, roots);
    }
    if (status == TN_OK || !more)
        return status;
    if (clean) /* what nobody asked for may be what failed */
        tn_clear_error();
    status = tn__collect(c, count, roots, TN__COLLECT_ONLY);
    return status != TN_OK || !c->root_count ? status : run(c, false);
}

static tn_status evaluate(int count, tn__node *const *roots, tn__collect_mode mode)
{
    tn__collection *c = tn__collection_get();
    if (!c)
        return tn__fail_memory("eval", sizeof *c);
    bool clean = !tn__latched();
    tn_status status = attempt(c, count, roots, mode);
    if (status == TN_ERR_INDEX && clean && c->begun && !c->device->capabilities.late_failures)
        tn__collection_name_index(c);
    return status;
}

tn_status tn__evaluate(int count, tn__node *const *roots) { return evaluate(count, roots, TN__COLLECT_ALONG); }

tn_status tn__evaluate_step(int count, tn__node *const *roots) { return evaluate(count, roots, TN__COLLECT_STEP); }

/* ---- the public calls ---- */

tn_status tn_eval(const tn_array *x)
{
    if (x && tn__handle_is_live(x) && tn__array_node(x)->storage)
        return tn__storage_check(tn__array_node(x)->storage);
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "eval");
    tn_status status = tn__evaluate(1, &node);
    tn__leave(call);
    return status;
}

tn_status tn_eval_all(int count, const tn_array *const *arrays)
{
    if (count > 0 && !arrays)
        return tn__fail_null("eval_all", "arrays");
    tn__call call = tn__enter();
    tn__node **roots = tn__alloc(sizeof *roots * ((size_t)(count > 0 ? count : 0) + 1));
    tn_status status = roots ? TN_OK : tn__fail_memory("eval_all", sizeof *roots * (size_t)count);
    for (int i = 0; i < count && status == TN_OK; i++)
        roots[i] = tn__node_of(arrays[i], "eval_all");
    if (status == TN_OK)
        status = tn__evaluate(count, roots);
    tn__free(roots);
    tn__leave(call);
    return status;
}

/* ---- hooks of the rooms below ---- */

static tn_status evaluate_one(tn__node *node)
{
    return evaluate(1, &node, node->depth < TN__MAX_DEPTH ? TN__COLLECT_ALONG : TN__COLLECT_DEEP);
}

/* Backward's stretches compute the forward pass again by intention, as its values take memory. */
static tn_status evaluate_all(int count, tn__node *const *roots)
{
    return evaluate(count, roots, TN__COLLECT_WRITTEN);
}

__attribute__((constructor)) static void set_hooks(void)
{
    tn__evaluate_hook = evaluate_one;
    tn__evaluate_all_hook = evaluate_all;
}
