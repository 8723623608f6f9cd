/* SPDX-License-Identifier: MIT */
/* Handles: arrays as users hold them, who owns them, and the list of those whose value is still to be computed. */
#include "array/build.h"
#include "array/fresh.h"
#include "array/places.h"

/* ---- exhausted memory -------------------------------------------------------------------------------------- */

static tn__handle no_memory __attribute__((aligned(TN__HANDLE_ALIGNMENT))) = {.is_static = 1};

static tn_array *array_no_memory(void)
{
    /* Every thread stores the same pointer. */
    __atomic_store_n(&no_memory.node, tn__node_no_memory(), __ATOMIC_RELEASE);
    __atomic_store_n(&no_memory.generation, tn__generation_of((tn_array *)&no_memory), __ATOMIC_RELEASE);
    return tn__handle_array(&no_memory);
}

/* ---- pending handles --------------------------------------------------------------------------------------- */


static inline void pending_remove(tn__thread *self, tn__handle *x)
{
    tn__handle *last = self->pending[--self->pending_count];
    self->pending[x->pending - 1] = last;
    if (x->written & TN__WRITTEN_COUNTED) {
        self->pending_written--;
        /* a thread that was given the array may be about to free it, and looks */
        __atomic_store_n(&x->written, (uint8_t)(x->written & ~TN__WRITTEN_COUNTED), __ATOMIC_RELAXED);
    }
    tn__pending_place(last, x->pending);
    tn__pending_place(x, 0);
}

int tn__pending_handles(tn__handle *const **handles)
{
    tn__thread *self = tn__self();
    tn__thread_ready(self);
    *handles = self->pending;
    return (int)self->pending_count;
}

bool tn__any_written(void) { return tn__self()->pending_written != 0; }

/* From so many on, a list is gone through when it has doubled only: not by each of many evaluations of little. */
#define MANY 1024

void tn__pending_sweep(void)
{
    tn__thread *self = tn__self();
    tn__thread_ready(self);
    if (self->pending_count > MANY && self->pending_count < 2 * (size_t)self->pending_swept)
        return;
    for (size_t i = self->pending_count; i-- > 0;)
        if (!tn__node_pending(self->pending[i]->node))
            pending_remove(self, self->pending[i]);
    self->pending_swept = (uint32_t)self->pending_count;
}

void tn__pending_leave(const tn_array *array)
{
    tn__thread *self = tn__self();
    tn__handle *x = tn__handle_of(array);
    if (x->pending && x->owner == self->number)
        pending_remove(self, x);
}

void tn__pending_end(void)
{
    tn__thread *self = tn__self();
    while (self->pending_count)
        pending_remove(self, self->pending[self->pending_count - 1]);
    tn__free(self->pending);
    self->pending = NULL;
    self->pending_capacity = 0;
}

/* ---- making ------------------------------------------------------------------------------------------------ */

static inline void scope_remove(tn__handle *x)
{
    if (x->previous)
        x->previous->next = x->next;
    else
        x->scope->first = x->next;
    if (x->next)
        x->next->previous = x->previous;
    x->scope = NULL;
}

/* A handle that takes over one reference to its node. */
static inline tn_array *handle_new(tn__thread *self, tn__node *node, tn__scope *scope)
{
    tn__handle *x = node == &tn__no_memory ? NULL : tn__thread_take(self, TN__SLAB_ARRAY);
    if (x) {
        tn__handle_begin(self, x, node);
        if (!tn__node_pending(node) || tn__pending_add(self, x)) {
            if (scope)
                tn__scope_add(scope, x);
            tn__thread_count_live(self, 1);
            if (__builtin_expect(tn__history_is_kept(), 0))
                tn__history_made(tn__handle_array(x), node);
            return tn__handle_array(x);
        }
        tn__thread_put(self, TN__SLAB_ARRAY, x);
    }
    tn__fail_memory("array", sizeof *x);
    tn__node_release(node);
    return array_no_memory();
}

tn_array *tn__leave_array(tn__call call, tn__node *node)
{
    tn__thread *self = tn__self();
    /* The result is nearly always the newest temporary: its reference changes hands. */
    if (self->temporary_count > call && self->temporaries[self->temporary_count - 1] == node) {
        self->temporary_count--;
        tn__node_not_temporary(node);
    } else {
        tn__node_retain(node);
    }
    tn_array *x = handle_new(self, node, self->innermost);
    if (self->temporary_count > call)
        tn__leave(call);
    return x;
}

tn_array *tn__leave_error(tn__call call)
{
    return tn__leave_array(call, tn__node_error(tn__error_retain(tn__error_last())));
}

tn_status tn__give_all(tn__call call, int count, tn__node *const *node, tn_array **const *out)
{
    tn__node *failed = NULL;
    for (int i = 0; i < count; i++)
        if (!failed && tn__node_is_error(node[i]))
            failed = node[i];
    tn_status status = failed ? tn__error_raise(failed->error) : TN_OK;
    for (int i = 0; i < count; i++)
        if (out[i])
            *out[i] = tn__leave_array(tn__enter(), failed ? failed : node[i]);
    tn__leave(call);
    return status;
}

tn_array *tn__array_own_new(tn__node *node)
{
    return tn__array_keep(handle_new(tn__self(), tn__node_retain(node), NULL));
}

/* ---- freeing ----------------------------------------------------------------------------------------------- */

static void var_free(tn__var *var)
{
    tn__var_hold(var, NULL);
    tn__array_free_kept(var->handle);
    if (var->grad)
        tn__node_release_anywhere(var->grad);
    tn__free(var->name);
    tn__free(var);
}

/* Takes a handle out of its lists, and says where it died. */
static inline tn__node *withdraw(tn__thread *self, tn__handle *x, uint32_t place)
{
    x->died = place;
    x->generation += TN__GENERATION;
    if (x->scope)
        scope_remove(x);
    if (x->pending)
        pending_remove(self, x);
    return x->node;
}

/* With a gradient's record, to a full list of free handles, or where the lives of handles are written down. */
static __attribute__((noinline)) void free_slowly(tn__thread *self, tn__handle *x, uint32_t place)
{
    if (tn__history_is_kept())
        tn__history_died(tn__handle_array(x), place);
    tn__node *node = withdraw(self, x, place);
    tn__var *var = x->var;
    if (var && node->var == var)
        node->var = NULL;
    tn__thread_put(self, TN__SLAB_ARRAY, x);
    tn__thread_count_live(self, -1);
    if (var)
        var_free(var);
    tn__node_release(node);
}

void tn__handle_free(tn__handle *x, uint32_t place)
{
    tn__thread *self = tn__self();
    bool fast = !x->var && self->slabs[TN__SLAB_ARRAY].room && tn__thread_state(self) & TN__CALM;
    if (__builtin_expect(!fast, 0)) {
        free_slowly(self, x, place);
        return;
    }
    tn__node *node = withdraw(self, x, place);
    tn__slab_put_listed(&self->slabs[TN__SLAB_ARRAY], TN__SLAB_ARRAY, x);
    tn__thread_count_live(self, -1);
    tn__node_release(node);
}

/* A handle of another thread is freed here only if it is in none of that thread's lists and its node has a value. */
static __attribute__((noinline)) void free_elsewhere(tn__handle *x)
{
    tn__thread_register(); /* so that the count of live arrays is kept; freeing works without */
    if (x->scope || __atomic_load_n(&x->pending, __ATOMIC_ACQUIRE))
        tn__thread_post_array(x, x->owner);
    else if (tn__node_pending(x->node) && x->node->owner != tn__self()->number)
        tn__thread_post_array(x, x->node->owner);
    else
        tn__handle_free(x, tn__place_here());
}

static bool refuse_kept(void)
{
    tn__fail(TN_ERR_STATE, "tn_free",
             "the array belongs to an object (a layer, a dataset, a loader, an optimizer, an archive, or the array "
             "whose gradient it is), which frees it");
    return true;
}

void tn_free(tn_array *array)
{
    if (!array || !tn__array_lives(array, "tn_free"))
        return;
    tn__handle *x = tn__handle_of(array);
    if (x->is_static || __builtin_expect(__atomic_load_n(&x->written, __ATOMIC_RELAXED) & TN__KEPT && refuse_kept(), 0))
        return;
    if (__builtin_expect(x->owner == tn__self()->number, 1))
        tn__handle_free(x, tn__place_here());
    else
        free_elsewhere(x);
}

void tn__array_free_kept(tn_array *array)
{
    if (array && tn__handle_is_live(array))
        tn__handle_of(array)->written &= (uint8_t)~TN__KEPT;
    tn_free(array);
}

/* ---- owners ------------------------------------------------------------------------------------------------ */

tn_array *tn_keep(tn_array *array)
{
    /* One that is in no scope, or in an outer one, outlives the innermost already. */
    tn__scope *scope = tn__self()->innermost;
    if (!array || !tn__array_lives(array, "tn_keep"))
        return array;
    tn__handle *x = tn__handle_of(array);
    if (!scope || x->is_static || x->scope != scope || !scope->outer)
        return array;
    scope_remove(x);
    tn__scope_add(scope->outer, x);
    return array;
}

tn_array *tn_own(tn_array *array)
{
    if (!array || !tn__array_lives(array, "tn_own"))
        return array;
    tn__handle *x = tn__handle_of(array);
    if (x->is_static || !x->scope)
        return array;
    if (x->owner != tn__self()->number)
        tn__fail(TN_ERR_STATE, "tn_own", "the array is in a scope of another thread: call tn_own in that thread");
    else
        scope_remove(x);
    return array;
}

tn_array *tn__array_keep(tn_array *array)
{
    tn_own(array);
    if (array && !tn__handle_of(array)->is_static)
        tn__handle_of(array)->written |= TN__KEPT;
    return array;
}

/* ---- operands ---------------------------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) tn__node *no_operand(const tn_array *x, const char *operation)
{
    if (!x)
        return tn__node_error(tn__error_new(TN_ERR_VALUE, operation, "an operand is NULL: expected an array"));
    return tn__node_error(tn__dead_error(x, operation));
}

/* Of a node that is not this thread's own pending one, and has no value. */
static __attribute__((noinline, cold)) tn__node *other_operand(tn__node *node, const char *operation)
{
    if (tn__node_is_error(node))
        return node;
    if (node->error)
        return tn__node_error(tn__error_retain(node->error));
    if (node->owner == tn__thread_number())
        return node;
    return tn__node_error(tn__error_new(TN_ERR_STATE, operation,
                                        "an operand was recorded in another thread and is not evaluated yet: "
                                        "call tn_eval on it there before sharing it"));
}

tn__node *tn__node_of(const tn_array *x, const char *operation)
{
    if (__builtin_expect(!x || !tn__handle_is_live(x), 0))
        return no_operand(x, operation);
    tn__node *node = tn__array_node(x);
    bool own = node->storage || (!node->error && node->owner == tn__self()->number);
    return __builtin_expect(own, 1) ? node : other_operand(node, operation);
}

bool tn__array_lives(const tn_array *x, const char *operation)
{
    if (__builtin_expect(tn__handle_is_live(x), 1))
        return true;
    tn__error_release(tn__dead_error(x, operation));
    return false;
}

/* ---- changing what a handle points at ------------------------------------------------------------------------ */

/* A node with the value of `node` that may be marked as a leaf: not seen through any other handle. */
static tn__node *unshared(tn__node *node)
{
    if (node->error)
        return node;
    if (node->storage)
        return tn__node_value(node->storage, node->dtype, node->shape, node->offset, node->strides);
    if (node->references == 1 && node->flags & TN__NODE_TEMPORARY)
        return node;
    return tn__node_new(TN__OP_COPY, node->dtype, node->shape, node->device, 1, &node, (tn__attr){0});
}

/* Makes a handle's place in the list of pending handles fit a new node; the node that x can be given. */
static tn__node *relist(tn__handle *x, tn__node *node)
{
    tn__thread *self = tn__self();
    if (x->owner != self->number) {
        if (!tn__node_pending(node))
            return node;
        if (!x->scope && !x->pending) {
            x->owner = self->number;
        } else {
            /* The lists of another thread hold x, so it cannot be in ours: give it a value at once. */
            if (!tn__engine.evaluate || tn__engine.evaluate(node) != TN_OK)
                return tn__node_error(tn__error_retain(tn__error_last()));
            return node;
        }
    }
    if (!tn__node_pending(node)) {
        if (x->pending)
            pending_remove(self, x);
    } else if (!x->pending && !tn__pending_add(self, x)) {
        tn__fail_memory("array", sizeof *x);
        return tn__node_no_memory();
    }
    return node;
}

void tn__array_set(tn_array *array, tn__node *node)
{
    tn__handle *x = tn__handle_of(array);
    tn__node *old = x->node;
    if (x->is_static || node == old)
        return;
    tn__call call = tn__enter();
    tn__var *var = x->var;
    bool leaf = var && (old->flags & TN__NODE_LEAF_VAR);
    if (leaf)
        node = unshared(node);
    node = relist(x, node);
    if (var && old->var == var)
        old->var = NULL;
    if (leaf)
        old->flags |= TN__NODE_SPENT; /* what was recorded with it cannot be differentiated any more */
    if (leaf && !node->error) {
        node->flags |= TN__NODE_LEAF_VAR | TN__NODE_NEEDS_GRAD;
        node->var = var;
    }
    x->node = tn__node_retain(node);
    tn__node_release(old);
    tn__leave(call);
}

/* Whether a handle that is about to be written into was so TN__MAX_WRITES times since it had a value, this time
 * included. */
static bool written_often(tn__handle *x)
{
    int writes = x->written / TN__WRITE;
    writes = !tn__node_pending(x->node) ? 1 : writes < TN__MAX_WRITES ? writes + 1 : writes;
    x->written = (uint8_t)(x->written % TN__WRITE + writes * TN__WRITE);
    return writes == TN__MAX_WRITES;
}

tn_status tn__array_write(tn_array *array, tn__node *node)
{
    tn__handle *x = tn__handle_of(array);
    if (node->flags & TN__NODE_LOOKS && !node->device->capabilities.late_failures) {
        tn_status status = tn__indices_look(node);
        if (status != TN_OK)
            return status;
    }
    bool often = !x->is_static && written_often(x);
    tn__array_set(array, node);
    if (x->is_static)
        return TN_OK;
    tn__thread *self = tn__self();
    x->written |= TN__WRITTEN;
    if (x->pending && x->owner == self->number)
        tn__pending_count_written(self, x);
    bool deep = tn__node_pending(x->node) && x->node->depth >= TN__MAX_WRITTEN_DEPTH;
    if (!often || !deep || !tn__engine.evaluate || self->evaluating)
        return TN_OK;
    self->evaluating = true;
    tn_status status = tn__engine.evaluate(x->node);
    self->evaluating = false;
    return status;
}

tn__var *tn__array_var(tn_array *array)
{
    tn__handle *x = tn__handle_of(array);
    if (!x->var && !x->is_static)
        x->var = tn__calloc(1, sizeof *x->var);
    return x->var;
}
