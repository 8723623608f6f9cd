/* SPDX-License-Identifier: MIT */
/* Telling an option that was written as zero from one that was left out: see tanso/options.h. */
#ifndef TN_CORE_OPTIONS_H
#define TN_CORE_OPTIONS_H

#include <stdbool.h>

/* True if `written`, the text that an option struct keeps in its field `_` (NULL: none), sets the field `name`. */
bool tn__option_written(const char *written, const char *name);

/* True if `written` sets a field to digits, with a sign or in parentheses or not; or the field `name`. */
bool tn__option_any_number(const char *written);
bool tn__option_is_number(const char *written, const char *name);
/* Latches that the option, a structure, was written as a number, for which `instead` stands. False. */
bool tn__option_refused(const char *operation, const char *name, const char *instead);

/* Is an option that is a list of axes, a list of extents, or another structure none that was written as a bare number?
 * Where a program is compiled without warnings (-w), C takes that for the structure's first member, with zeros behind.
 * Only zeros cost a look at the text. */
#define TN__GIVEN_AS(operation, opts, field, instead) \
    (!tn__option_is_number((opts)->_, #field) || tn__option_refused(operation, #field, instead))
#define TN__AXES_GIVEN(operation, opts, field) \
    ((opts)->field.axis[0] != 0 || TN__GIVEN_AS(operation, opts, field, "TN_AXES(1)"))
#define TN__SHAPE_GIVEN(operation, opts, field) \
    ((opts)->field.dim[0] != 0 || TN__GIVEN_AS(operation, opts, field, "TN_SHAPE(1)"))
#define TN__DEVICE_GIVEN(operation, opts) \
    ((opts)->device.index != 0 || TN__GIVEN_AS(operation, opts, device, "tn_cuda(1)"))

/* Is an option that is an array none that was written as 0? To C that is a null pointer, no array, without a word. Not
 * asked where both mean the same, as a bias or a mask of zeros does. The last: those of a reduction. */
#define TN__ARRAY_GIVEN(operation, opts, field, instead) \
    ((opts)->field != NULL || TN__GIVEN_AS(operation, opts, field, instead))
#define TN__ARRAY_WRITTEN(operation, opts, field) TN__ARRAY_GIVEN(operation, opts, field, "tn_scalar(0)")
#define TN__OPERANDS_GIVEN(operation, opts) \
    (!tn__option_any_number((opts)->_) || (TN__ARRAY_WRITTEN(operation, opts, initial) && \
                                           TN__ARRAY_WRITTEN(operation, opts, mean) && \
                                           TN__ARRAY_GIVEN(operation, opts, where, "tn_weak_bool(false)")))

/* Whether the caller gave a number or an enumerator as an option; `opts` is not NULL. Only zeros cost a look at the
 * text. */
#define TN__GIVEN(opts, field) ((opts)->field != 0 || tn__option_written((opts)->_, #field))
/* An option's value, `absent` if it was left out. `opts` may be NULL. */
#define TN__OPTION(opts, field, absent) ((opts) && TN__GIVEN(opts, field) ? (opts)->field : (absent))

#endif
