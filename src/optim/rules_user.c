/* SPDX-License-Identifier: MIT */
/* Optimizers of the program's own: a row of the table made for one optimizer, whose update calls the program's function
 * with handles, in a scope out of which only the results are kept. */
#include "optim/optimizer.h"

#include <string.h>

/* The node that a handle stands for, as one of the caller's temporaries, of the shape and dtype that it must have. */
static tn__node *kept(const tn_array *x, const tn__node *like)
{
    char wanted[TN__SHAPE_TEXT], got[TN__SHAPE_TEXT];
    if (!x)
        return tn__node_error(tn__error_new(TN_ERR_VALUE, "step", "the update function gave NULL; expected an array"));
    tn__node *node = tn__node_of(x, "step");
    if (tn__node_is_error(node))
        return tn__node_error(tn__error_retain(node->error));
    if (node->shape != like->shape)
        return tn__node_error(tn__error_new(TN_ERR_SHAPE, "step",
                                            "the update function gave an array of shape %s for one of shape %s",
                                            tn__shape_text(node->shape->ndim, node->shape->dim, got),
                                            tn__shape_text(like->shape->ndim, like->shape->dim, wanted)));
    node = tn__cast(node, (tn_dtype)like->dtype);
    return tn__node_new(TN__OP_RESHAPE, node->dtype, node->shape, node->device, 1, &node, (tn__attr){0});
}

static tn_array *shown(tn__node *node) { return tn__leave_array(tn__enter(), node); }

static tn__node *user_update(const tn__settings *u, tn__node *p, tn__node *g, tn__node **state)
{
    const tn_optimizer *optimizer = u->optimizer;
    if (tn__node_is_error(g) || tn__node_is_error(p))
        return tn__node_is_error(g) ? g : p;
    tn_update update = {.set = &u->set, .t = u->t, .user = optimizer->user.data};
    tn_array *states[TN__MAX_STATE] = {NULL};
    tn__scope_guard scope = tn__scope_enter();
    for (int s = 0; s < optimizer->states; s++)
        states[s] = shown(state[s]);
    tn__node *value = kept(optimizer->user.update(&update, shown(p), shown(g), states), p);
    for (int s = 0; s < optimizer->states; s++)
        state[s] = kept(states[s], state[s]);
    tn__scope_leave(&scope);
    return value;
}

/* Cuts "m v" into the rule's names. */
static tn_status read_names(tn_optimizer *optimizer, tn__optimizer_rule *rule)
{
    char *rest;
    int count = 0;
    for (char *name = strtok_r(optimizer->user.names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        bool taken = false;
        for (int i = 0; i < count; i++)
            taken = taken || strcmp(rule->state[i], name) == 0;
        if (count == TN__MAX_STATE || strpbrk(name, "./") || taken)
            return tn__fail(TN_ERR_VALUE, "optimizer_new",
                            "expected %d names of states at most, without '.' and '/'; '%s' is %s", TN__MAX_STATE, name,
                            taken ? "there twice" : count == TN__MAX_STATE ? "one more" : "none");
        rule->state[count++] = name;
    }
    optimizer->states = count;
    return TN_OK;
}

static const tn__optimizer_rule user_rule = {
    .name = "optimizer", .fields = (1u << TN__FIELD_COUNT) - 1, .update = user_update, .whole = true};

tn_optimizer *tn_optimizer_new_with(tn_layer *layer, const char *states, tn_update_fn update, void *user,
                                    const tn_optimizer_opts *opts)
{
    static const char operation[] = "optimizer_new";
    if (!update)
        return tn__optimizer_error(tn__error_new(TN_ERR_VALUE, operation, "expected an update function, got NULL"));
    tn_optimizer *optimizer = tn__optimizer_make(operation, &user_rule, layer, opts, 0);
    if (tn_optimizer_status(optimizer) != TN_OK)
        return optimizer;
    optimizer->user.update = update;
    optimizer->user.data = user;
    optimizer->user.rule = user_rule;
    optimizer->rule = &optimizer->user.rule;
    optimizer->user.names = tn__strdup(states ? states : "");
    tn_status status = optimizer->user.names ? read_names(optimizer, &optimizer->user.rule)
                                             : tn__fail_memory(operation, strlen(states ? states : "") + 1);
    if (status == TN_OK)
        return optimizer;
    tn__error *error = tn__error_retain(tn__error_last());
    tn_optimizer_free(optimizer);
    return tn__optimizer_error(error);
}
