/* SPDX-License-Identifier: MIT */
/*
 * Forwards whose results on the way are dropped, and computed again when backward comes: what is kept of one is its
 * input and its output, a node whose gradient is a function of the input and the layer's parameters.
 */
#include <stdatomic.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/hooks.h>
#include <tanso/random.h>

#include "array/build_parts.h"
#include "array/guard.h"
#include "array/user.h"
#include "autograd/backward.h"
#include "engine/engine.h"
#include "nn/layer.h"

static const char operation[] = "forget";

/* ---- persistent values ---- */

static tn_status keep_one(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer, (void)path;
    tn__keeping *k = user;
    if (!slot->persistent || !slot->value)
        return TN_OK;
    if (!tn__grow((void **)&k->kept, &k->capacity, k->count + 1, sizeof *k->kept))
        return tn__fail_memory("tn_backward", sizeof *k->kept);
    k->kept[k->count].array = slot->value;
    k->kept[k->count++].node = tn__node_retain(tn__array_node(slot->value));
    return TN_OK;
}

tn_status tn__persistents_keep(tn_layer *layer, tn__keeping *k) { return tn__visit_slots(layer, "", keep_one, k); }

void tn__persistents_put_back(tn__keeping *k)
{
    for (size_t i = 0; i < k->count; i++) {
        tn__state_point(k->kept[i].array, k->kept[i].node);
        tn__node_release(k->kept[i].node);
    }
    tn__free(k->kept);
}

/* ---- forward ---- */

/* What backward reads of a call, as an array that the node holds; it is the first of the node's inputs behind the
 * value, then come x and the parameters. */
enum { OF_LAYER, OF_NUMBER, OF_KEY, OF_COUNTER, OF_CALL };
enum { AT_FACTS, AT_X, AT_PARAMS, MOST_PARAMS = TN__USER_PARAMS - AT_PARAMS };

static void gradient(const tn_gradient_call *call);
static const tn_kernel again = {.kind = TN__USER_ELEMENTWISE,
                                .name = "forget",
                                .part[TN__PART_MAP].out_count = 1,
                                .gradient = gradient};

/* The layer's number, which one that comes to lie in its place does not have. */
static uint64_t number_of(tn_layer *layer)
{
    static _Atomic uint64_t last;
    if (!layer->forgotten)
        layer->forgotten = atomic_fetch_add(&last, 1) + 1;
    return layer->forgotten;
}

static tn__node *output(tn_layer *layer, tn__node *x, tn__node *y, uint64_t facts[OF_CALL])
{
    tn__node *in[1 + TN__USER_PARAMS] = {y, NULL, x};
    const tn__shape *shape = tn__shape_intern(1, (int64_t[]){OF_CALL});
    const tn__param *param;
    int count;
    if (!tn__layer_flat(layer, &param, &count))
        return tn__failed();
    if (count > MOST_PARAMS)
        TN__REFUSE(TN_ERR_UNSUPPORTED, operation,
                   "expected a layer of at most %d parameters, got %s of %d: forget its parts, one by one", MOST_PARAMS,
                   tn__layer_name(layer), count);
    facts[OF_NUMBER] = number_of(layer);
    in[1 + AT_FACTS] = shape ? tn__value_from_host(facts, TN_UINT64, shape, y->device) : tn__failed();
    TN__PASS_ERROR(in[1 + AT_FACTS]);
    for (int i = 0; i < count; i++)
        in[1 + AT_PARAMS + i] = tn__array_node(param[i].value);
    return tn__node_new(TN__OP_CUSTOM, (tn_dtype)y->dtype, y->shape, y->device, 1 + AT_PARAMS + count, in,
                        (tn__attr){.custom = {&again, 0}});
}

/* Both at once: backward begins from x's value. */
static tn__node *forward(tn_layer *layer, tn__node *x)
{
    const tn_generator *g = tn_default_generator();
    uint64_t facts[OF_CALL] = {(uintptr_t)layer, 0, g->key, g->counter};
    if (tn__no_grad_depth > 0)
        return tn__layer_forward(layer, x);
    tn__no_grad_depth++;
    tn__node *y = tn__layer_forward(layer, x);
    tn_status status = tn__node_is_error(y) ? TN_OK : tn__evaluate(2, (tn__node *[]){y, x});
    tn__no_grad_depth--;
    TN__PASS_ERROR(y);
    if (status != TN_OK)
        return tn__failed();
    return tn_dtype_is_float((tn_dtype)y->dtype) ? output(layer, x, y, facts) : y;
}

tn_array *tn_forget(tn_layer *layer, const tn_array *x)
{
    TN__GUARD_OF("forget", layer);
    tn__call call = tn__enter();
    if (!layer) {
        tn__fail(TN_ERR_VALUE, operation, "expected a layer, got NULL");
        return tn__leave_error(call);
    }
    tn__node *in = tn__node_of(x, operation);
    return tn__leave_array(call, tn__node_is_error(in) ? in : forward(layer, in));
}

/* ---- backward ---- */

/* The layer, if it is the one that was called, with the parameters that it had; else NULL, latched. */
static tn_layer *layer_of(const tn_gradient_call *call, const uint64_t facts[OF_CALL])
{
    tn_layer *layer = (tn_layer *)(uintptr_t)facts[OF_LAYER];
    const tn__param *param;
    int count;
    if (layer->error || layer->forgotten != facts[OF_NUMBER]) {
        tn__fail(TN_ERR_STATE, "tn_backward", "this goes through a layer (tn_forget) that has been freed since");
        return NULL;
    }
    if (!tn__layer_flat(layer, &param, &count))
        return NULL;
    bool same = AT_PARAMS + count == call->input_count;
    for (int i = 0; same && i < count; i++)
        same = tn__array_node(param[i].value) == tn__node_of(call->inputs[AT_PARAMS + i], "tn_backward");
    if (!same)
        tn__fail(TN_ERR_STATE, "tn_backward",
                 "this goes through a layer (tn_forget) whose parameters have changed since: call tn_backward before");
    return same ? layer : NULL;
}

/* Forward as it was, with the random numbers of then; what it does to persistent values is undone. */
static tn__node *forward_again(tn_layer *layer, tn__node *x, const uint64_t facts[OF_CALL])
{
    tn_generator *generator = tn_default_generator(), now = *generator;
    tn__keeping k = {0};
    int depth = tn__no_grad_depth;
    tn_status status = tn__persistents_keep(layer, &k);
    generator->key = facts[OF_KEY];
    generator->counter = facts[OF_COUNTER];
    tn__no_grad_depth = 0;
    tn__node *y = status == TN_OK ? tn__layer_forward(layer, x) : tn__failed();
    tn__no_grad_depth = depth;
    *generator = now;
    tn__persistents_put_back(&k);
    return y;
}

/* Gradients that are differentiated in turn stay expressions of x itself; else they are computed here and now, so that
 * what is needed for them goes before backward comes to the layer below. */
static tn_status go_back(const tn_gradient_call *call, const uint64_t facts[OF_CALL])
{
    bool higher = tn__no_grad_depth == 0;
    tn_layer *layer = layer_of(call, facts);
    tn__node *g = tn__node_of(call->gradients[0], "tn_backward"), *by[TN__USER_PARAMS], *found[TN__USER_PARAMS];
    tn__node *x = tn__node_of(call->inputs[AT_X], "tn_backward"), *roots[TN__USER_PARAMS];
    tn_status status = layer ? TN_OK : TN_ERR_STATE;
    int count = call->input_count - AT_X, root_count = 0;
    if (status == TN_OK && !higher)
        status = tn__evaluate(1, &g);
    if (status != TN_OK)
        return status;
    if (!higher && tn_dtype_is_float((tn_dtype)x->dtype))
        x = tn__node_of(tn_requires_grad(tn_detach(call->inputs[AT_X])), "tn_backward");
    for (int i = 0; i < count; i++)
        by[i] = i == 0 ? x : tn__node_of(call->inputs[AT_X + i], "tn_backward");
    tn__node *y = forward_again(layer, x, facts);
    if (tn__node_is_error(y))
        return tn__error_raise(y->error);
    if (!(y->flags & TN__NODE_NEEDS_GRAD))
        return TN_OK;
    status = tn__gradients("tn_backward", y, g, count, by, higher, found);
    for (int i = 0; i < count && status == TN_OK; i++)
        if (found[i])
            roots[root_count++] = found[i];
    if (status == TN_OK && !higher)
        status = tn__evaluate(root_count, roots);
    for (int i = 0; i < count && status == TN_OK; i++)
        if (found[i])
            call->result[AT_X + i] = tn__leave_array(tn__enter(), found[i]);
    return status;
}

static void gradient(const tn_gradient_call *call)
{
    uint64_t facts[OF_CALL];
    tn_status status = tn__read(tn__node_of(call->inputs[AT_FACTS], "tn_backward"), facts);
    if (status == TN_OK)
        status = go_back(call, facts);
    for (int k = 0; k < call->input_count && status != TN_OK; k++)
        call->result[k] = tn__failed_array();
}
