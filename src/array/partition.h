/* SPDX-License-Identifier: MIT */
/* Partitions of rows about one place. */
#ifndef TN_ARRAY_PARTITION_H
#define TN_ARRAY_PARTITION_H

#include <tanso/array.h>

/* Whether x's device partitions x along a checked axis otherwise than by sorting it, and it pays. */
bool tn__partitions(const tn_array *x, int axis);
/* x along a checked axis, or with `positions` where its elements come from: at `place` stands what sorting puts there,
 * nothing greater before it, nothing less behind it. Of equal elements, those at higher positions count as greater. */
tn_array *tn__partitioned(const char *operation, const tn_array *x, int axis, int64_t place, bool positions,
                          tn_array *out);

#endif
