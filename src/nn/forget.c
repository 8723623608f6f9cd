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
#include "nn/rnn.h"

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

static void let_go(tn__keeping *k)
{
    for (size_t i = 0; i < k->count; i++)
        tn__node_release(k->kept[i].node);
    tn__free(k->kept);
}
#define BEFORE __attribute__((cleanup(let_go))) tn__keeping

/* ---- forward ---- */

/* What backward reads of a call, as an array that the node holds; it is the first of the node's inputs behind the
 * value, then come x, the parameters, and the persistent values that the call began with. */
enum { OF_LAYER, OF_NUMBER, OF_KEY, OF_COUNTER, OF_MODES, OF_CALL };
enum { AT_FACTS, AT_X, AT_PARAMS, MOST_VALUES = TN__USER_PARAMS - AT_PARAMS };

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

/* Which layers are training, as a number (FNV-1a). */
static uint64_t modes_of(const tn_layer *layer, uint64_t modes)
{
    modes = (modes ^ (layer->evaluating ? 1 : 2)) * 0x100000001b3;
    for (size_t i = 0; i < layer->child_count; i++)
        modes = modes_of(layer->children[i].layer, modes);
    return modes;
}
#define MODES_OF(layer) modes_of(layer, 0xcbf29ce484222325)

/* Layers that keep what a second forward would change, and nothing here can put back. */
static tn_status check_states(const tn_layer *layer)
{
    tn_status status = TN_OK;
    if (layer->kind->flow == tn__rnn_flow && ((const tn__rnn *)layer->user.data)->stateful)
        status = tn__fail(TN_ERR_UNSUPPORTED, operation,
                          "expected layers that keep no state, got %s, which goes on from its last call",
                          tn__layer_name(layer));
    for (size_t i = 0; i < layer->child_count && status == TN_OK; i++)
        status = check_states(layer->children[i].layer);
    return status;
}

static tn__node *output(tn_layer *layer, tn__node *x, tn__node *y, const tn__keeping *before, uint64_t facts[OF_CALL])
{
    tn__node *in[1 + TN__USER_PARAMS] = {y, NULL, x};
    const tn__shape *shape = tn__shape_intern(1, (int64_t[]){OF_CALL});
    const tn__param *param;
    int count;
    if (!tn__layer_flat(layer, &param, &count))
        return tn__failed();
    int values = count + (int)before->count;
    if (values > MOST_VALUES)
        TN__REFUSE(TN_ERR_UNSUPPORTED, operation,
                   "expected a layer of at most %d parameters and persistent values, got %s of %d: forget its parts, "
                   "one by one",
                   MOST_VALUES, tn__layer_name(layer), values);
    facts[OF_NUMBER] = number_of(layer);
    in[1 + AT_FACTS] = shape ? tn__value_from_host(facts, TN_UINT64, shape, y->device) : tn__failed();
    TN__PASS_ERROR(in[1 + AT_FACTS]);
    for (int i = 0; i < count; i++)
        in[1 + AT_PARAMS + i] = tn__array_node(param[i].value);
    for (size_t i = 0; i < before->count; i++)
        in[1 + AT_PARAMS + count + (int)i] = before->kept[i].node;
    return tn__node_new(TN__OP_CUSTOM, (tn_dtype)y->dtype, y->shape, y->device, 1 + AT_PARAMS + values, in,
                        (tn__attr){.custom = {&again, 0}});
}

/* What a call begins with is not known of persistent values that it makes itself. */
static tn_status check_made(tn_layer *layer, const tn__keeping *before)
{
    BEFORE after = {0};
    tn_status status = tn__persistents_keep(layer, &after);
    if (status == TN_OK && after.count != before->count)
        status = tn__fail(TN_ERR_STATE, operation,
                          "this first call made persistent values of %s, which backward needs as they were before: "
                          "call tn_forward once, then this",
                          tn__layer_name(layer));
    return status;
}

/* x and y at once, as backward begins from x's value, and persistent values, which would else hold on to what they were
 * computed from. */
static tn_status compute(tn__node *x, tn__node *y, const tn__keeping *before)
{
    tn__node *roots[2 + MOST_VALUES] = {y, x};
    int count = 2;
    for (size_t i = 0; i < before->count && i < MOST_VALUES; i++)
        roots[count++] = before->kept[i].node;
    return tn__evaluate(count, roots);
}

static tn__node *forward(tn_layer *layer, tn__node *x)
{
    const tn_generator *g = tn_default_generator();
    uint64_t facts[OF_CALL] = {(uintptr_t)layer, 0, g->key, g->counter, 0};
    if (tn__no_grad_depth > 0 || layer->error)
        return tn__layer_forward(layer, x);
    BEFORE before = {0};
    if (check_states(layer) != TN_OK || tn__persistents_keep(layer, &before) != TN_OK)
        return tn__failed();
    facts[OF_MODES] = MODES_OF(layer);
    tn__no_grad_depth++;
    tn__node *y = tn__layer_forward(layer, x);
    tn_status status = tn__node_is_error(y) ? TN_OK : check_made(layer, &before);
    if (status == TN_OK && !tn__node_is_error(y))
        status = compute(x, y, &before);
    tn__no_grad_depth--;
    TN__PASS_ERROR(y);
    if (status != TN_OK)
        return tn__failed();
    return tn_dtype_is_float((tn_dtype)y->dtype) ? output(layer, x, y, &before, facts) : y;
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

/* The layer, if it is the one that was called, with the parameters and modes that it had; else NULL, latched. */
static tn_layer *layer_of(const tn_gradient_call *call, const uint64_t facts[OF_CALL], int *params)
{
    tn_layer *layer = (tn_layer *)(uintptr_t)facts[OF_LAYER];
    const tn__param *param;
    if (layer->error || layer->forgotten != facts[OF_NUMBER]) {
        tn__fail(TN_ERR_STATE, "tn_backward", "this goes through a layer (tn_forget) that has been freed since");
        return NULL;
    }
    if (!tn__layer_flat(layer, &param, params))
        return NULL;
    bool same = AT_PARAMS + *params <= call->input_count;
    for (int i = 0; same && i < *params; i++)
        same = tn__array_node(param[i].value) == tn__node_of(call->inputs[AT_PARAMS + i], "tn_backward");
    if (!same)
        tn__fail(TN_ERR_STATE, "tn_backward",
                 "this goes through a layer (tn_forget) whose parameters have changed since: call tn_backward before");
    else if (!(same = MODES_OF(layer) == facts[OF_MODES]))
        tn__fail(TN_ERR_STATE, "tn_backward",
                 "this goes through a layer (tn_forget) that was training, or was not, as it is no more "
                 "(tn_layer_train): call tn_backward before");
    return same ? layer : NULL;
}

/* Has the persistent values be those of then. */
static tn_status put_in(const tn_gradient_call *call, int params, const tn__keeping *now)
{
    int first = AT_PARAMS + params;
    bool same = first + (int)now->count == call->input_count;
    for (int i = 0; same && i < (int)now->count; i++) {
        const tn__node *a = now->kept[i].node, *b = tn__node_of(call->inputs[first + i], "tn_backward");
        same = a->shape == b->shape && a->dtype == b->dtype && a->device == b->device;
    }
    if (!same)
        return tn__fail(TN_ERR_STATE, "tn_backward",
                        "this goes through a layer (tn_forget) that has other persistent values than it was called "
                        "with: call tn_backward before, and tn_forward once before what makes them");
    for (int i = 0; i < (int)now->count; i++)
        tn__state_point(now->kept[i].array, tn__node_of(call->inputs[first + i], "tn_backward"));
    return TN_OK;
}

/* Forward as it was, with the random numbers and persistent values of then; what it does to these is undone. */
static tn__node *forward_again(tn_layer *layer, const tn_gradient_call *call, int params,
                               const uint64_t facts[OF_CALL])
{
    tn_generator *generator = tn_default_generator(), now = *generator;
    tn__keeping k = {0};
    int depth = tn__no_grad_depth;
    tn_status status = tn__persistents_keep(layer, &k);
    if (status == TN_OK)
        status = put_in(call, params, &k);
    generator->key = facts[OF_KEY];
    generator->counter = facts[OF_COUNTER];
    tn__no_grad_depth = 0;
    tn__node *y = status == TN_OK ? tn__layer_forward(layer, tn__node_of(call->inputs[AT_X], "tn_backward"))
                                  : tn__failed();
    tn__no_grad_depth = depth;
    *generator = now;
    tn__persistents_put_back(&k);
    return y;
}

/* Gradients that are differentiated in turn stay expressions; else they are computed here and now, so that what is
 * needed for them goes before backward comes to the layer below. */
static tn_status go_back(const tn_gradient_call *call, const uint64_t facts[OF_CALL])
{
    bool higher = tn__no_grad_depth == 0;
    int count = 0, root_count = 0;
    tn_layer *layer = layer_of(call, facts, &count);
    tn__node *g = tn__node_of(call->gradients[0], "tn_backward"), *by[TN__USER_PARAMS], *found[TN__USER_PARAMS];
    tn__node *roots[TN__USER_PARAMS];
    tn_status status = layer ? TN_OK : TN_ERR_STATE;
    if (status == TN_OK && !higher)
        status = tn__evaluate(1, &g);
    if (status != TN_OK)
        return status;
    count += AT_PARAMS - AT_X;
    for (int i = 0; i < count; i++)
        by[i] = tn__node_of(call->inputs[AT_X + i], "tn_backward");
    tn__node *y = forward_again(layer, call, count + AT_X - AT_PARAMS, facts);
    if (tn__node_is_error(y))
        return tn__error_raise(y->error);
    if (!(y->flags & TN__NODE_NEEDS_GRAD))
        return TN_OK;
    status = tn__gradients("tn_backward", y, g, count, by, true, higher, found);
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
