/* SPDX-License-Identifier: MIT */
/* Names that end up in files have to be UTF-8: logs and safetensors are JSON. Told where they are given, not when a run
 * is to be saved. */
#ifndef TN_CORE_UTF8_H
#define TN_CORE_UTF8_H

#include <tanso/base.h>

/* Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing beyond U+10FFFF. */
bool tn__is_utf8(const char *text);
/* TN_ERR_VALUE, latched, for what is not, with its other bytes as \xNN; `what` is "the key". */
tn_status tn__check_utf8(const char *operation, const char *what, const char *text);

#endif
