/* SPDX-License-Identifier: MIT */
/* The number of a histogram's bins by a rule. */
#ifndef TN_NUMPY_BINS_H
#define TN_NUMPY_BINS_H

#include <tanso/array.h>

/* How many equal bins between low and high the rule gives for x's elements there; own: these are the least and the
 * largest of them. 0 and a latched failure without such a rule. */
int64_t tn__bins_by_rule(const tn_array *x, const char *rule, double low, double high, bool own);

#endif
