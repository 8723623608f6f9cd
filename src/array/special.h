/* SPDX-License-Identifier: MIT */
/* Special functions over borrowed nodes: real operands in, results in float64. */
#ifndef TN_ARRAY_SPECIAL_H
#define TN_ARRAY_SPECIAL_H

#include <tanso/special.h>
#include "array/build.h"

tn__node *tn__lgamma(tn__node *x);
tn__node *tn__digamma(tn__node *x);
tn__node *tn__zeta(tn__node *s, tn__node *q);

#endif
