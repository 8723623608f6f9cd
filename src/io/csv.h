/* SPDX-License-Identifier: MIT */
/* Numbers in text, whatever the locale. */
#ifndef TN_IO_CSV_H
#define TN_IO_CSV_H

#include "core/dtype.h"

/* The number that [begin, end) is, all of it, as an element of a dtype; false if it is none, or none of the dtype:
 * integers take no fraction and nothing beyond their range. */
bool tn__csv_number(const char *begin, const char *end, tn_dtype dtype, tn__scalar *value);

#endif
