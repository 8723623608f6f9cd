/* SPDX-License-Identifier: MIT */
/* Diagnostics to stderr, by TANSO_LOG = error | warn | note (default) | info | debug. And switches of TANSO_DUMP. */
#ifndef TN_CORE_LOG_H
#define TN_CORE_LOG_H

#include <stdbool.h>
#include <tanso/base.h>
#include "core/plugin.h"

TN__PLUGIN_BEGIN
/* A note is what explains to anybody what they notice, such as a pause; a warning is of what should not be so. */
typedef enum tn__log_level { TN__LOG_ERROR, TN__LOG_WARN, TN__LOG_NOTE, TN__LOG_INFO, TN__LOG_DEBUG } tn__log_level;
void tn__log(tn__log_level level, const char *room, const char *format, ...) TN_PRINTF(3, 4);
/* Whether lines of that level are written. */
bool tn__log_shows(tn__log_level level);
/* Warnings and errors only, unless TANSO_LOG asks for something. */
void tn__log_quiet(void);
/* True if `what` ("graph", "plan", "kernels") is in the comma-separated list TANSO_DUMP. */
bool tn__dump_enabled(const char *what);
TN__PLUGIN_END

#endif
