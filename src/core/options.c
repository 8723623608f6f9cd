/* SPDX-License-Identifier: MIT */
/* Which options a call wrote, read from the text of its arguments: ".lr = 0, .betas = {0, 0.9}" as the preprocessor
 * gives it. A designator stands at the beginning or after a comma that lies in no bracket and no literal. */
#include "core/options.h"

#include "core/error.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static const char *past_spaces(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* Past a literal of characters, whose first quote `at` points to. */
static const char *past_literal(const char *at)
{
    char quote = *at++;
    while (*at && *at != quote)
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return *at ? at + 1 : at;
}

/* Past the next comma that separates options, or the end. */
static const char *next_option(const char *at)
{
    unsigned char before = 0;
    for (int depth = 0; *at && !(*at == ',' && depth == 0);) {
        depth += (strchr("([{", *at) != NULL) - (strchr(")]}", *at) != NULL);
        bool separator = *at == '\'' && isdigit(before); /* of digits, in C++ */
        before = (unsigned char)*at;
        at = (*at == '"' || *at == '\'') && !separator ? past_literal(at) : at + 1;
    }
    return *at ? at + 1 : at;
}

/* Past the designator of `name`, if one stands there; else NULL. */
static const char *past_designator(const char *at, const char *name, size_t length)
{
    at = past_spaces(at);
    if (*at != '.')
        return NULL;
    at = past_spaces(at + 1);
    bool same = strncmp(at, name, length) == 0 && !isalnum((unsigned char)at[length]) && at[length] != '_';
    return same ? at + length : NULL;
}

/* What follows the designator of `name` in a text, NULL: there is none. */
static const char *find_option(const char *written, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = written ? written : ""; *at; at = next_option(at)) {
        const char *behind = past_designator(at, name, length);
        if (behind)
            return behind;
    }
    return NULL;
}

bool tn__option_written(const char *written, const char *name) { return find_option(written, name) != NULL; }

/* Do an equals sign and digits stand there, with signs and parentheses, up to the next comma? */
static bool is_set_to_number(const char *at)
{
    if (*(at = past_spaces(at)) != '=')
        return false;
    bool digits = false;
    for (at++; *at && *at != ','; at++) {
        bool digit = *at >= '0' && *at <= '9', around = *at == '(' || *at == ')' || *at == '+' || *at == '-';
        if (!digit && !around && !isspace((unsigned char)*at))
            return false;
        digits |= digit;
    }
    return digits;
}

bool tn__option_any_number(const char *written)
{
    for (const char *at = written ? strchr(written, '=') : NULL; at; at = strchr(at + 1, '='))
        if (is_set_to_number(at))
            return true;
    return false;
}

/* Asked by nearly each call that takes options: the text is read as such only where it has a number. */
bool tn__option_is_number(const char *written, const char *name)
{
    const char *at = tn__option_any_number(written) ? find_option(written, name) : NULL;
    return at && is_set_to_number(at);
}

bool tn__option_refused(const char *operation, const char *name, const char *instead)
{
    tn__fail(TN_ERR_VALUE, operation,
             "the option %s is no number, and got one: .%s = %s is meant", name, name, instead);
    return false;
}
