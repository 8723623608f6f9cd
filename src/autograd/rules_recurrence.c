/* SPDX-License-Identifier: MIT */
/* Gradient rules of recurrent networks that are one operation (ops/recurrence.h). */
#include "array/build_parts.h"
#include "array/build_recurrence.h"
#include "autograd/backward.h"
#include "autograd/rules.h"

static tn__node *zero_rows(tn__node *like, int64_t rows)
{
    TN__PASS_ERROR(like);
    const tn__shape *shape = tn__shape_intern(2, (int64_t[]){rows, like->shape->dim[1]});
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, "recur", "no memory for a shape");
    return tn__const(0, (tn_dtype)like->dtype, shape, like->device);
}

/* Of U, the states before all steps times what comes to h U + b; of the bias that one's sum. */
static tn__node *by_weights(const tn__recurrence *of, tn__node *value, tn__node *by_hu)
{
    tn__node *before = tn__recurrence_part(of, value, 0, of->backwards ? 1 : 0, of->steps);
    tn__node *u = tn__matmul_node(tn__swap_last(before), by_hu);
    return of->bias ? tn__joined(2, (tn__node *[]){u, tn__reduce(TN__OP_SUM, by_hu, 1)}, 0) : u;
}

void tn__grad_recur(tn__chain *c)
{
    tn__recurrence of;
    tn__recurrence_of(c->node, &of);
    tn__recurrence_row row = tn__recurrence_row_of(&of);
    int64_t sums = of.steps * of.rows;
    tn__node *back = tn__recur_back(&of, c->node, c->g, c->node->in[1]);
    if (tn__wanted(c, 0))
        c->in[0] = tn__rows_of(back, 0, sums);
    if (tn__wanted(c, 1))
        c->in[1] = by_weights(&of, c->node, tn__rows_of(back, (row.products - 1) * sums, sums));
    if (!tn__wanted(c, 2))
        return;
    tn__node *state = tn__rows_of(back, row.products * sums, row.states * of.rows);
    if (!tn__node_is_error(state))
        state = tn__slice_node(state, (int64_t[]){0, 0}, (int64_t[]){1, 1},
                               (int64_t[]){row.states * of.rows, of.units});
    c->in[2] = of.lengths ? tn__joined(2, (tn__node *[]){state, zero_rows(state, of.rows)}, 0) : state;
}

/* Nobody computes it in one operation: it is recorded step by step, and differentiated so. */
void tn__grad_recur_back(tn__chain *c)
{
    tn__recurrence of;
    tn__recurrence_of(c->node, &of);
    tn__node *xs[3], *out[3] = {NULL};
    bool higher = tn__no_grad_depth == 0;
    int depth = tn__no_grad_depth;
    tn__no_grad_depth = 0;
    for (int i = 0; i < 3; i++) /* they themselves were computed from one another */
        xs[i] = tn__tied(c->node->in[i], 0, NULL);
    tn__node *y = tn__recur_back_by_steps(&of, xs[0], xs[1], xs[2]);
    tn__no_grad_depth = depth;
    tn_status status = tn__node_is_error(y)
                           ? tn__error_raise(y->error)
                           : tn__gradients("tn_backward", y, c->g, 3, xs, false, higher, out);
    for (int i = 0; i < 3; i++)
        if (tn__wanted(c, i))
            c->in[i] = status == TN_OK ? out[i] : tn__failed();
}
