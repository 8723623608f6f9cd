/* SPDX-License-Identifier: MIT */
/* Short names for expressions over borrowed nodes (array/build.h), in which this room's functions are written. */
#ifndef TN_NN_TERMS_H
#define TN_NN_TERMS_H

#include <tanso/nn.h>
#include "array/build_parts.h"
#include "nn/functions.h"

#define map(OP, x)        tn__unary(TN__OP_##OP, x)
#define map2(OP, a, b)    tn__binary(TN__OP_##OP, a, b)
#define with(OP, x, c)    tn__with(TN__OP_##OP, x, c)
#define add(a, b)         map2(ADD, a, b)
#define sub(a, b)         map2(SUBTRACT, a, b)
#define mul(a, b)         map2(MULTIPLY, a, b)
#define over(a, b)        map2(DIVIDE, a, b)
#define times(x, number)  with(MULTIPLY, x, number)
#define plus(x, number)   with(ADD, x, number)
#define minus(x)          map(NEGATIVE, x)
#define squared(x)        map(SQUARE, x)
#define larger(a, b)      map2(MAXIMUM, a, b)
#define like(x, number)   tn__const_like(x, number)
#define less_from(number, x) sub(like(x, number), x)

/* An operand in its floating dtype; what is complex is refused. */
tn__node *tn__floating(const tn_array *x, const char *operation);
/* The same for one that has to be floating already, as what is trained. */
tn__node *tn__only_floating(const tn_array *x, const char *operation);
/* One of integers or bool. */
tn__node *tn__only_integers(const tn_array *x, const char *operation);
/* A vector of integers from `least`, 0 or 1, to `most`, (rows, 1) int64; one out of range is told of as an index is,
 * when it is evaluated. */
tn__node *tn__counts(const char *operation, const char *what, tn__node *counts, int64_t rows, int64_t least,
                     int64_t most);
/* The first error among nodes, NULL ones left out; NULL: none. */
tn__node *tn__first_error(int count, tn__node *const *nodes);
/* Are both of one shape? Latches if not. */
bool tn__same_shape(const char *operation, const char *a_name, const tn__node *a, const char *b_name,
                    const tn__node *b);

/* Does an array of the first shape broadcast to the second? */
bool tn__broadcasts_to(const tn__shape *shape, const tn__shape *to);

/* The sum over axes, which stay with extent 1; of all elements, as a 0-d array. */
tn__node *tn__sum_over(tn__node *x, uint32_t axes);
tn__node *tn__sum_all(tn__node *x);
/* The mean over axes, which stay. */
tn__node *tn__mean_over(tn__node *x, uint32_t axes);
/* x where the condition holds, else 0. */
tn__node *tn__only_where(tn__node *condition, tn__node *x);
/* x no smaller than low and no larger than high; where it is not between them its slope is 0. NaN stays. */
tn__node *tn__between(tn__node *x, double low, double high);
/* `count` elements of an axis from `start` on. */
tn__node *tn__piece(tn__node *x, int axis, int64_t start, int64_t count);
/* x with a new axis of extent 1 at that place; without the axis, whose extent is 1. */
tn__node *tn__spread(tn__node *x, int axis);
tn__node *tn__without_axis(tn__node *x, int axis);
/* x's elements with axes of extent 1 on both sides: x's axes are those of an array of `ndim` axes from `axis` on. */
tn__node *tn__along(tn__node *x, int axis, int ndim);
/* Rows of a table w (count, features), chosen by integers x in [0, count): x.shape + (features). */
tn__node *tn__embed(const char *operation, tn__node *w, tn__node *x);
/* The losses of all rows (elements): their mean, sum, or they themselves; in x's dtype. */
tn__node *tn__reduced(const char *operation, tn__node *loss, tn_reduction reduction, tn_dtype dtype);

#endif
