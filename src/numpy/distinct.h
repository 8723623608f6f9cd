/* SPDX-License-Identifier: MIT */
/* The different elements of a vector that has few of them. */
#ifndef TN_NUMPY_DISTINCT_H
#define TN_NUMPY_DISTINCT_H

#include <tanso/array.h>

/* Where each first occurs in a vector in the host's memory, as a vector of int64 in that order; NaNs are one, and so
 * are zeros. NULL where that is not worth it, or fails: sorting tells, too. Evaluates x. */
tn_array *tn__first_places(const tn_array *x);

#endif
