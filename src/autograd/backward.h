/* SPDX-License-Identifier: MIT */
/* Backward over nodes, and the gradients that handles hold, for this room and those above it. */
#ifndef TN_AUTOGRAD_BACKWARD_H
#define TN_AUTOGRAD_BACKWARD_H

#include "array/node.h"

/* The gradient in a record, borrowed; NULL: none. (Once tn_grad has given out a handle, the handle
 * points to it: the user may have assigned to it.) */
tn__node *tn__var_grad(const tn__var *var);
/* Puts a gradient into a record, replacing what is there; NULL clears it. */
void tn__var_set_grad(tn__var *var, tn__node *grad);

/*
 * out[i]: the gradient of y with respect to the node xs[i], borrowed; NULL where y does not depend
 * on xs[i]. gy is the gradient of y (NULL: ones). The nodes xs need no marks, but then they are
 * found only through pending nodes, since evaluated nodes keep their inputs only where a mark asks
 * for it. Runs between tn__enter and tn__leave.
 *
 * partial: y is a part of a larger graph that backward is under way in, computed again from its inputs xs: only what
 * was recorded for backward is gone through, and nothing below any of xs, which the larger graph has. A leaf that is
 * none of xs is refused, since it would get no gradient. Of the same node twice among xs the first has all of it.
 */
tn_status tn__gradients(const char *operation, tn__node *y, tn__node *gy, int count,
                        tn__node *const *xs, bool partial, bool create_graph, tn__node **out);

#endif
