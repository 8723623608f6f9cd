/* SPDX-License-Identifier: MIT */
/* What is said of an index out of range, by every device alike. */
#ifndef TN_CORE_POSITION_H
#define TN_CORE_POSITION_H

#include <stdint.h>
#include <stdio.h>

/*
 * Subtracted from negative labels, which do not count from the end: so they are out of the range of any axis, and can
 * still be named as they were given. Kernels know an index alone: those of the 2^31 below -2^62 are taken for labels,
 * and labels that are less than an int32 can be are shifted as the least int32.
 */
#define TN__LABEL_SHIFT (INT64_C(1) << 62)
#define TN__LABEL_LEAST INT32_MIN

enum { TN__POSITION_TEXT = 512 };

/* `index`: as it was given. `where`: " at position ...", or "". no_negative: it does not count from the end. `note` is
 * said of the index. Returns `text`. */
static inline const char *tn__position_words(char text[TN__POSITION_TEXT], int64_t index, int no_negative,
                                             const char *where, int64_t extent, const char *note)
{
    long long given = index, e = extent;
    if (extent == 0)
        snprintf(text, TN__POSITION_TEXT, "index %lld%s is out of range for an axis of extent 0: none is valid%s",
                 given, where, note);
    else
        snprintf(text, TN__POSITION_TEXT,
                 "index %lld%s is out of range for an axis of extent %lld: valid are %lld to %lld%s", given, where, e,
                 no_negative ? 0 : -e, e - 1, note);
    return text;
}

static inline const char *tn__position_text(char text[TN__POSITION_TEXT], int64_t index, int no_negative,
                                            const char *where, int64_t extent)
{
    return tn__position_words(text, index, no_negative, where, extent,
                              index == INT64_MAX ? " (what is larger is shown as the largest int64)" : "");
}

/* Of an index as a kernel met it: a label that was shifted, or what was given. */
static inline const char *tn__position_met(char text[TN__POSITION_TEXT], int64_t index, const char *where,
                                           int64_t extent)
{
    if (index >= -TN__LABEL_SHIFT || index < TN__LABEL_LEAST - TN__LABEL_SHIFT)
        return tn__position_text(text, index, 0, where, extent);
    int64_t label = index + TN__LABEL_SHIFT;
    return tn__position_words(text, label, 1, where, extent,
                              label == TN__LABEL_LEAST ? " (what is less is shown as the least int32)" : "");
}

#endif
