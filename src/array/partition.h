/* SPDX-License-Identifier: MIT */
/* Partitions of rows about one place, and the largest of them. */
#ifndef TN_ARRAY_PARTITION_H
#define TN_ARRAY_PARTITION_H

#include <tanso/array.h>

/* Whether x's device partitions x along a checked axis otherwise than by sorting it, and it pays. */
bool tn__partitions(const tn_array *x, int axis);
/* x along a checked axis, or with `positions` where its elements come from: at `place` stands what sorting puts there,
 * nothing greater before it, nothing less behind it. Of equal elements, those at higher positions count as greater. */
tn_array *tn__partitioned(const char *operation, const tn_array *x, int axis, int64_t place, bool positions,
                          tn_array *out);

/* Whether x's device has an operation for the k largest along a checked axis. The CPU partitions. */
bool tn__finds_largest(const tn_array *x, int axis, int64_t k);
/* Their positions, the greatest first; of equal ones, those at higher positions count as greater. */
tn_array *tn__largest_places(const char *operation, const tn_array *x, int axis, int64_t k);

#endif
