/* SPDX-License-Identifier: MIT */
/* Telling an option that was written as zero from one that was left out: see tanso/options.h. */
#ifndef TN_CORE_OPTIONS_H
#define TN_CORE_OPTIONS_H

#include <stdbool.h>

/* True if `written`, the text that an option struct keeps in its field `_` (NULL: none), sets the field `name`. */
bool tn__option_written(const char *written, const char *name);

/* Whether the caller gave a number or an enumerator as an option; `opts` is not NULL. Only zeros cost a look at the
 * text. */
#define TN__GIVEN(opts, field) ((opts)->field != 0 || tn__option_written((opts)->_, #field))
/* An option's value, `absent` if it was left out. `opts` may be NULL. */
#define TN__OPTION(opts, field, absent) ((opts) && TN__GIVEN(opts, field) ? (opts)->field : (absent))

#endif
