/* SPDX-License-Identifier: MIT */
/* Whether text is UTF-8. */
#include "core/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include "core/error.h"

/* The bytes of the character that begins here, 1 to 4; 0 if there is none. A NUL among them is no continuation. */
static int character(const unsigned char *at)
{
    static const struct {
        uint32_t mask, lead, least;
    } form[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (int more = 0; more < 4; more++) {
        if ((*at & form[more].mask) != form[more].lead)
            continue;
        uint32_t code = *at & ~form[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (at[i] & 0x3f);
        }
        bool exists = code >= form[more].least && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
        return exists ? more + 1 : 0;
    }
    return 0;
}

bool tn__is_utf8(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int length = character(at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

tn_status tn__check_utf8(const char *operation, const char *what, const char *text)
{
    if (tn__is_utf8(text))
        return TN_OK;
    char shown[200];
    size_t end = 0;
    for (const char *at = text; *at && end + 5 < sizeof shown; at++)
        end += (size_t)snprintf(shown + end, sizeof shown - end, *at >= ' ' && *at <= '~' ? "%c" : "\\x%02x",
                                (unsigned char)*at);
    return tn__fail(TN_ERR_VALUE, operation, "%s \"%s\" is not valid UTF-8, which logs and snapshots need", what,
                    shown);
}
