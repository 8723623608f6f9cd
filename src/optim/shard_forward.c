/* SPDX-License-Identifier: MIT */
/*
 * The forward of marked layers, which an optimizer runs. Parameters are brought together before it (stage 3) and put
 * away after it: the output is computed at once, without anything for backward, and inputs are kept. Backward, which
 * comes through a CUSTOM node, brings parameters together again, does forward once more, with the random numbers of the
 * first time, goes back through that alone, and sends the gradients on by a reduce-scatter: so never are those of two
 * layers there as wholes.
 */
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/random.h>

#include "array/build_parts.h"
#include "array/user.h"
#include "autograd/backward.h"
#include "engine/engine.h"
#include "optim/shard.h"

/* Its place among the optimizer's layers, from 1. */
static int place_of(const tn__shard_layer *l)
{
    const tn__shard *s = l->optimizer->shard;
    int place = 0;
    for (size_t k = 0; k < s->layer_count; k++)
        place = s->layer[k] == l ? (int)k + 1 : place;
    return place;
}

static bool has_parts(const tn__shard_layer *l)
{
    const tn__shard *s = l->optimizer->shard;
    bool has = false;
    for (size_t k = 0; k < s->bucket_count; k++)
        has |= s->bucket[k].layer == place_of(l);
    return has;
}

/* ---- forward ---- */

/* What backward reads of a call, as an array that the nodes hold. */
enum { OF_LAYER, OF_KEY, OF_COUNTER, OF_OUTPUT, OF_OUTPUTS, OF_INPUTS, OF_CALL };

static void gradient(const tn_gradient_call *call);
static const tn_kernel in_parts = {.kind = TN__USER_ELEMENTWISE,
                                   .name = "layer in parts",
                                   .part[TN__PART_MAP].out_count = 1,
                                   .gradient = gradient};

/* An output as backward sees it. Bits of OF_INPUTS: inputs that were not left out. */
static tn__node *output(const tn__shard_layer *l, const tn__flow *flow, int k, uint64_t facts[OF_CALL])
{
    tn__node *y = flow->out[k], *in[TN__MAX_INPUTS] = {y, tn__array_node(l->token)};
    const tn__shape *shape = tn__shape_intern(1, (int64_t[]){OF_CALL});
    int count = 3;
    facts[OF_OUTPUT] = (uint64_t)k;
    facts[OF_INPUTS] = 0;
    if (!tn__dtype_inexact((tn_dtype)y->dtype))
        return y;
    for (int i = 0; i < flow->in_count && count < TN__MAX_INPUTS; i++)
        if (flow->in[i]) {
            facts[OF_INPUTS] |= (uint64_t)1 << i;
            in[count++] = flow->in[i];
        }
    in[2] = shape ? tn__value_from_host(facts, TN_UINT64, shape, y->device) : tn__failed();
    if (tn__node_is_error(in[2]))
        return in[2];
    return tn__node_new(TN__OP_CUSTOM, (tn_dtype)y->dtype, y->shape, y->device, count, in,
                        (tn__attr){.custom = {&in_parts, 0}});
}

/* Inputs too: backward begins from their values. */
static tn_status compute(const tn__flow *flow)
{
    int count = 0, most = flow->in_count + flow->out_count;
    TN__FREED tn__node **node = tn__alloc((size_t)most * sizeof *node);
    if (!node)
        return tn__fail_memory("forward", (size_t)most * sizeof *node);
    for (int i = 0; i < flow->in_count; i++)
        if (flow->in[i])
            node[count++] = flow->in[i];
    for (int k = 0; k < flow->out_count; k++) {
        if (tn__node_is_error(flow->out[k]))
            return tn__error_raise(flow->out[k]->error);
        node[count++] = flow->out[k];
    }
    return tn__evaluate(count, node);
}

static tn_status run_whole(tn__shard_layer *l, const tn__flow *flow)
{
    int place = place_of(l);
    tn_status status = tn__comm_usable(l->optimizer->comm, "forward");
    if (status == TN_OK)
        status = tn__shard_cut_params(l->optimizer);
    if (status == TN_OK)
        status = tn__shard_params_together(l->optimizer, place, true);
    if (status != TN_OK)
        return status;
    l->keeper.inside = true;
    tn__layer_flow(l->layer, flow);
    l->keeper.inside = false;
    status = compute(flow);
    tn__shard_put_away(l->optimizer, place);
    return status;
}

static tn_status check_inputs(const tn__flow *flow)
{
    if (flow->in_count <= TN__MAX_INPUTS - 3)
        return TN_OK;
    return tn__fail(TN_ERR_UNSUPPORTED, "forward", "a layer in parts (tn_layer_shard) takes %d inputs, and %d came",
                    TN__MAX_INPUTS - 3, flow->in_count);
}

void tn__shard_forward(tn__keeper *keeper, tn_layer *layer, const tn__flow *flow)
{
    tn__shard_layer *l = keeper->owner;
    const tn_generator *g = tn_default_generator();
    uint64_t facts[OF_CALL] = {l->number, g->key, g->counter, 0, (uint64_t)flow->out_count, 0};
    bool records = tn__no_grad_depth == 0;
    if (!has_parts(l) || (!records && l->optimizer->shard->stage < 3)) {
        keeper->inside = true;
        tn__layer_flow(layer, flow);
        keeper->inside = false;
        return;
    }
    tn__call call = tn__enter(); /* so that wholes go with it, though a larger call is under way */
    tn__no_grad_depth++;
    tn_status status = check_inputs(flow);
    if (status == TN_OK)
        status = run_whole(l, flow);
    tn__no_grad_depth--;
    for (int k = 0; k < flow->out_count; k++)
        flow->out[k] = tn__node_retain(status != TN_OK ? tn__failed()
                                       : records       ? output(l, flow, k, facts)
                                                       : flow->out[k]);
    tn__leave(call);
    for (int k = 0; k < flow->out_count; k++) {
        tn__node_borrow(flow->out[k]);
        tn__node_release(flow->out[k]);
    }
}

/* ---- backward ---- */

/* What is differentiated by: inputs, of which those left out are NULL, and parameters behind them. */
typedef struct again {
    tn__shard_layer *l;
    const uint64_t *facts;
    int in_count, x_count, out_count;
    tn__node **in, **out;
    tn__node **by, **gradient; /* inputs that are not integers, parameters */
    size_t by_count, params;   /* of all; from where on they are parameters */
    size_t *tracked;           /* of parameters: which they are */
} again;

/* Input k of the call as a leaf. */
static tn__node *leaf_of(tn_array *x)
{
    tn_array *leaf = tn_detach(x);
    return tn__node_of(tn_dtype_is_float(tn_dtype_of(x)) ? tn_requires_grad(leaf) : leaf, "tn_backward");
}

static tn_status prepare(again *a, const tn_gradient_call *call)
{
    tn_optimizer *optimizer = a->l->optimizer;
    int place = place_of(a->l), x = 2;
    for (int i = 0; i < a->in_count; i++) {
        a->in[i] = a->facts[OF_INPUTS] >> i & 1 ? leaf_of(call->inputs[x++]) : NULL;
        if (a->in[i] && tn__node_is_error(a->in[i]))
            return tn__error_raise(a->in[i]->error);
        if (a->in[i] && a->in[i]->flags & TN__NODE_LEAF_VAR)
            a->by[a->by_count++] = a->in[i];
    }
    a->params = a->by_count;
    for (size_t i = 0; i < optimizer->tracked_count; i++)
        if (optimizer->tracked[i].shard.layer == place && optimizer->tracked[i].shard.bucket) {
            a->tracked[a->by_count] = i;
            a->by[a->by_count++] = tn__array_node(optimizer->tracked[i].param);
        }
    return TN_OK;
}

static tn_status forward_again(again *a, tn__node *g)
{
    tn_generator *generator = tn_default_generator(), now = *generator;
    tn__keeping k = {0};
    int depth = tn__no_grad_depth;
    tn_status status = tn__persistents_keep(a->l->layer, &k);
    generator->key = a->facts[OF_KEY];
    generator->counter = a->facts[OF_COUNTER];
    tn__no_grad_depth = 0;
    a->l->keeper.inside = true;
    if (status == TN_OK)
        tn__layer_flow(a->l->layer, &(tn__flow){a->in_count, a->out_count, a->in, a->out});
    a->l->keeper.inside = false;
    tn__no_grad_depth = depth;
    *generator = now;
    tn__persistents_put_back(&k);
    tn__node *y = status == TN_OK ? a->out[a->facts[OF_OUTPUT]] : NULL;
    if (y && tn__node_is_error(y))
        return tn__error_raise(y->error);
    return y && y->flags & TN__NODE_NEEDS_GRAD
               ? tn__gradients("tn_backward", y, g, (int)a->by_count, a->by, true, false, a->gradient)
               : status;
}

static tn__node *gradient_piece(tn_optimizer *optimizer, size_t i, int64_t *at, int64_t *size)
{
    *at = optimizer->tracked[i].shard.place;
    *size = tn__array_node(optimizer->tracked[i].param)->shape->size;
    return optimizer->shard->gradient[i];
}

/* Inputs' gradients and vectors of parameters' by one evaluation; then the vectors are sent. */
static tn_status send_gradients(again *a)
{
    tn_optimizer *optimizer = a->l->optimizer;
    tn__shard *s = optimizer->shard;
    size_t most = a->by_count + s->bucket_count, count = 0, first;
    TN__FREED tn__node **roots = tn__alloc((most + 1) * sizeof *roots);
    TN__FREED tn__node **gradients = tn__calloc(optimizer->tracked_count + 1, sizeof *gradients);
    TN__FREED size_t *bucket = tn__alloc((s->bucket_count + 1) * sizeof *bucket);
    if (!roots || !gradients || !bucket)
        return tn__fail_memory("tn_backward", (most + 1) * sizeof *roots);
    for (size_t k = 0; k < a->params; k++)
        if (a->gradient[k])
            roots[count++] = a->gradient[k];
    for (size_t k = a->params; k < a->by_count; k++) {
        gradients[a->tracked[k]] = a->gradient[k];
        optimizer->tracked[a->tracked[k]].shard.reached |= a->gradient[k] != NULL;
    }
    first = count;
    s->gradient = gradients;
    for (size_t k = 0; k < s->bucket_count; k++)
        if (s->bucket[k].layer == place_of(a->l)) {
            bucket[count - first] = k;
            roots[count++] = tn__shard_put_together(optimizer, &s->bucket[k],
                                                    s->bucket[k].share * optimizer->comm->place.size, gradient_piece);
        }
    s->gradient = NULL;
    tn_status status = TN_OK;
    for (size_t k = 0; k < count && status == TN_OK; k++)
        status = tn__node_is_error(roots[k]) ? tn__error_raise(roots[k]->error) : TN_OK;
    if (status == TN_OK)
        status = tn__evaluate((int)count, roots);
    for (size_t k = first; k < count && status == TN_OK; k++)
        status = tn__shard_scatter(optimizer, &s->bucket[bucket[k - first]], roots[k]);
    return status;
}

static tn_status go_back(again *a, const tn_gradient_call *call, tn__node *g)
{
    tn_optimizer *optimizer = a->l->optimizer;
    int place = place_of(a->l);
    tn_status status = tn__evaluate(1, &g); /* before parameters come together */
    if (status == TN_OK)
        status = tn__comm_usable(optimizer->comm, "tn_backward");
    if (status == TN_OK)
        status = tn__shard_params_together(optimizer, place, true);
    if (status == TN_OK)
        status = prepare(a, call);
    if (status == TN_OK)
        status = forward_again(a, g);
    if (status == TN_OK)
        status = send_gradients(a);
    else
        tn__comm_break(optimizer->comm, true); /* the others wait */
    tn__shard_put_away(optimizer, place);
    for (int i = 0, x = 2, k = 0; i < a->in_count && status == TN_OK; i++) {
        if (!a->in[i])
            continue;
        if (a->in[i]->flags & TN__NODE_LEAF_VAR && a->gradient[k++])
            call->result[x] = tn__leave_array(tn__enter(), a->gradient[k - 1]);
        x++;
    }
    return status;
}

static tn_status start(tn__shard_layer *l, const uint64_t *facts, const tn_gradient_call *call)
{
    again a = {.l = l, .facts = facts, .out_count = (int)facts[OF_OUTPUTS]};
    while (facts[OF_INPUTS] >> a.in_count)
        a.in_count++;
    size_t most = (size_t)a.in_count + l->optimizer->tracked_count + 1;
    TN__FREED tn__node **nodes = tn__calloc(3 * most + (size_t)a.out_count, sizeof *nodes);
    TN__FREED size_t *tracked = tn__calloc(most, sizeof *tracked);
    if (!nodes || !tracked)
        return tn__fail_memory("tn_backward", 3 * most * sizeof *nodes);
    a.in = nodes;
    a.by = nodes + most;
    a.gradient = nodes + 2 * most;
    a.out = nodes + 3 * most;
    a.tracked = tracked;
    return go_back(&a, call, tn__node_of(call->gradients[0], "tn_backward"));
}

static void gradient(const tn_gradient_call *call)
{
    uint64_t facts[OF_CALL];
    tn_status status = tn__read(tn__node_of(call->inputs[1], "tn_backward"), facts);
    tn__shard_layer *l = status == TN_OK ? tn__shard_layer_numbered(facts[OF_LAYER]) : NULL;
    if (status == TN_OK && !l)
        status = tn__fail(TN_ERR_STATE, "tn_backward",
                          "this goes through a layer in parts (tn_layer_shard), whose optimizer has been freed or "
                          "distributed anew since: call tn_backward before");
    if (status == TN_OK && tn__no_grad_depth == 0)
        status = tn__fail(TN_ERR_UNSUPPORTED, "tn_backward",
                          "gradients through a layer in parts (tn_layer_shard) have no gradients themselves: leave out "
                          ".create_graph, or the mark");
    if (status == TN_OK) {
        tn__call inner = tn__enter(); /* so that wholes go with it */
        status = start(l, facts, call);
        tn__leave(inner);
    }
    for (int k = 0; k < call->input_count && status != TN_OK; k++)
        call->result[k] = tn__failed_array();
}
