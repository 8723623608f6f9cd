/* SPDX-License-Identifier: MIT */
/* What is said of an index out of range, by every device alike. */
#ifndef TN_CORE_POSITION_H
#define TN_CORE_POSITION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Subtracted from what is no position, though a kernel would take it for one: negative labels, which do not count from
 * the end; lengths below 1; the blank where a label is to be. So these are out of the range of any axis, and can still
 * be named as they were given. Kernels know an index alone: those of a few 2^31 about -2^62 are taken for such, and
 * what is less than an int32 can be is shifted as the least int32.
 */
#define TN__LABEL_SHIFT  (INT64_C(1) << 62)
#define TN__LENGTH_SHIFT (TN__LABEL_SHIFT + (INT64_C(1) << 33))
#define TN__BLANK_SHIFT  (TN__LABEL_SHIFT + (INT64_C(1) << 34))
#define TN__LABEL_LEAST  INT32_MIN

/* What an index may be at least. */
typedef enum tn__position_least { TN__FROM_END, TN__FROM_ZERO, TN__FROM_ONE } tn__position_least;

enum { TN__POSITION_TEXT = 512 };

/* `index`: as it was given. `where`: " at position ...", or "". `note` is said of the index. Returns `text`. */
static inline const char *tn__position_words(char text[TN__POSITION_TEXT], int64_t index, tn__position_least least,
                                             const char *where, int64_t extent, const char *note)
{
    long long given = index, e = extent;
    if (extent == 0 || (extent == 1 && least == TN__FROM_ONE))
        snprintf(text, TN__POSITION_TEXT, "index %lld%s is out of range for an axis of extent %lld: none is valid%s",
                 given, where, e, note);
    else
        snprintf(text, TN__POSITION_TEXT,
                 "index %lld%s is out of range for an axis of extent %lld: valid are %lld to %lld%s", given, where, e,
                 least == TN__FROM_END ? -e : least == TN__FROM_ZERO ? 0LL : 1LL, e - 1, note);
    return text;
}

static inline const char *tn__position_text(char text[TN__POSITION_TEXT], int64_t index, tn__position_least least,
                                            const char *where, int64_t extent)
{
    return tn__position_words(text, index, least, where, extent,
                              index == INT64_MAX ? " (what is larger is shown as the largest int64)" : "");
}

/* Of an index as a kernel met it: what was shifted, or what was given. */
static inline const char *tn__position_met(char text[TN__POSITION_TEXT], int64_t index, const char *where,
                                           int64_t extent)
{
    int64_t label = index + TN__LABEL_SHIFT, length = index + TN__LENGTH_SHIFT, blank = index + TN__BLANK_SHIFT;
    if (blank >= 0 && blank < extent) {
        snprintf(text, TN__POSITION_TEXT, "the label %lld%s is the blank: expected others of 0 to %lld",
                 (long long)blank, where, (long long)extent - 1);
        return text;
    }
    bool is_label = label < 0 && label >= TN__LABEL_LEAST, is_length = length <= 0 && length >= TN__LABEL_LEAST;
    if (!is_label && !is_length)
        return tn__position_text(text, index, TN__FROM_END, where, extent);
    int64_t given = is_label ? label : length;
    return tn__position_words(text, given, is_label ? TN__FROM_ZERO : TN__FROM_ONE, where, extent,
                              given == TN__LABEL_LEAST ? " (what is less is shown as the least int32)" : "");
}

#endif
