/* SPDX-License-Identifier: MIT */
/* The gradient rule of users' kernels: by a second kernel, or by the user's function over arrays. */
#include "autograd/rules.h"

#include <string.h>

#include "array/build_parts.h"
#include "array/user.h"

/* The inputs, all outputs, and the gradients of the outputs: that of this one, zeros for the others. */
typedef struct surroundings {
    int inputs, outputs;
    tn__node *node[3 * TN__USER_PARAMS];
} surroundings;

static bool look_around(const tn__chain *c, const tn_kernel *kernel, surroundings *s)
{
    int own = (int)c->node->attr.custom.output;
    s->inputs = c->node->arity - 1;
    s->outputs = kernel->kind == TN__USER_REDUCTION ? 1 : kernel->part[TN__PART_MAP].out_count;
    memcpy(s->node, c->node->in + 1, sizeof *s->node * (size_t)s->inputs);
    tn__node **out = s->node + s->inputs, **g = out + s->outputs;
    if (s->outputs > 1 && !tn__user_apply(kernel, s->inputs, s->node, &(tn__user_wish){.shape = c->node->shape}, out))
        return false;
    out[own] = c->node; /* and not its input, which has no gradient of its own */
    for (int k = 0; k < s->outputs; k++)
        g[k] = k == own ? c->g : tn__const_like(out[k], 0);
    return true;
}

static void fail(tn__chain *c)
{
    for (int k = 1; k < c->node->arity; k++)
        c->in[k] = tn__failed();
}

static void by_kernel(tn__chain *c, const tn_kernel *kernel, const surroundings *s)
{
    const tn_kernel *gradient = kernel->gradient_kernel;
    tn__node *out[TN__USER_PARAMS];
    if (!tn__user_apply(gradient, s->inputs + 2 * s->outputs, s->node, &(tn__user_wish){.shape = c->node->shape},
                        out)) {
        fail(c);
        return;
    }
    const tn__user_part *part = &gradient->part[TN__PART_MAP];
    for (int k = 0; k < s->inputs; k++) {
        const char *input = kernel->part[TN__PART_MAP].in[k].name;
        for (int j = 0; j < part->out_count; j++)
            if (strcmp(part->out[j].name + 1, input) == 0)
                c->in[k + 1] = out[j];
        if (tn__wanted(c, k + 1) && !c->in[k + 1])
            c->in[k + 1] =
                tn__node_error(tn__error_new(TN_ERR_STATE, kernel->name,
                                             "the gradient's text sets no g%s: set it (to 0 if it is zero)", input));
    }
}

/* A handle in the innermost scope. */
static tn_array *handle(tn__node *node) { return tn__leave_array(tn__enter(), node); }

static void by_function(tn__chain *c, const tn_kernel *kernel, const surroundings *s)
{
    int count = s->inputs + 2 * s->outputs;
    tn_array *x[3 * TN__USER_PARAMS], *result[TN__USER_PARAMS] = {NULL};
    tn_scope_push();
    for (int k = 0; k < count; k++)
        x[k] = handle(s->node[k]);
    kernel->gradient(
        &(tn_gradient_call){.input_count = s->inputs - (kernel->function != NULL), /* but for its address */
                            .output_count = s->outputs,
                            .inputs = x,
                            .outputs = x + s->inputs,
                            .gradients = x + s->inputs + s->outputs,
                            .result = result,
                            .user = kernel->user});
    for (int k = 0; k < s->inputs; k++)
        if (result[k] && tn__wanted(c, k + 1)) {
            tn__node *to = c->node->in[k + 1];
            c->in[k + 1] = tn__node_borrow(tn__assignable(kernel->name, to, tn__node_of(result[k], kernel->name)));
        }
    tn_scope_pop();
}

void tn__grad_custom(tn__chain *c)
{
    const tn_kernel *kernel = c->node->attr.custom.kernel;
    surroundings s;
    if (!kernel) { /* tied: the value is a function of its own, of which the rest is known to be no part */
        c->in[0] = c->g;
        return;
    }
    if (tn__wanted(c, 0))
        c->in[0] = NULL; /* what computes the value has no gradient of its own */
    if (!kernel->gradient && !kernel->gradient_kernel) {
        tn__fail(TN_ERR_STATE, kernel->name,
                 "the kernel has no gradient: give .gradient or .backward where it is made");
        fail(c);
    } else if (!look_around(c, kernel, &s)) {
        fail(c);
    } else if (kernel->gradient) {
        by_function(c, kernel, &s);
    } else {
        by_kernel(c, kernel, &s);
    }
}
