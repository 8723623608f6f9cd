/* SPDX-License-Identifier: MIT */
/* What is said of an index out of range, by every device alike. */
#ifndef TN_CORE_POSITION_H
#define TN_CORE_POSITION_H

#include <stdint.h>
#include <stdio.h>

/* Added (negated) to negative labels, which do not count from the end: so they are out of the range of any axis, and
 * can still be named as they were given. */
#define TN__LABEL_SHIFT (INT64_C(1) << 62)

enum { TN__POSITION_TEXT = 512 };

/* `where`: " at position ...", or "". no_negative: it is known to be a label. Returns `text`. */
static inline const char *tn__position_text(char text[TN__POSITION_TEXT], int64_t index, int no_negative,
                                            const char *where, int64_t extent)
{
    int label = index < -TN__LABEL_SHIFT;
    long long given = index + (label ? TN__LABEL_SHIFT : 0), e = extent;
    if (extent == 0)
        snprintf(text, TN__POSITION_TEXT, "index %lld%s is out of range for an axis of extent 0: none is valid", given,
                 where);
    else
        snprintf(text, TN__POSITION_TEXT,
                 "index %lld%s is out of range for an axis of extent %lld: valid are %lld to %lld%s", given, where, e,
                 label || no_negative ? 0 : -e, e - 1,
                 given == INT64_MAX ? " (what is larger is shown as the largest int64)" : "");
    return text;
}

#endif
