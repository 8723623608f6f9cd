/* SPDX-License-Identifier: MIT */
/*
 * Backends in shared objects of their own. libtanso-<name>.so exports one tn__plugin as tn__plugin_<name>, which the
 * library looks up: CUDA's when a CUDA device is first asked about, that of another kind when a device of that name is.
 * A program that links a backend's objects in has it without loading anything: CUDA's by a weak symbol, another kind by
 * tn__backend_register.
 */
#ifndef TN_BACKENDS_PLUGIN_H
#define TN_BACKENDS_PLUGIN_H

#include "device/device.h"

typedef struct tn__plugin {
    const char *version; /* TN_BUILD_VERSION of the build: internal structs may differ between versions */
    const tn__backend *backend;
} tn__plugin;

TN__PLUGIN_BEGIN
/* CUDA's plug-in if its objects are linked into the program. Weak: NULL if they are not. */
extern const tn__plugin tn__plugin_cuda __attribute__((weak));
TN__PLUGIN_END

/* The entry for CUDA in the library's table of backends; it loads the plug-in when a CUDA device is first asked
 * about. */
extern const tn__backend tn__backend_cuda;

#endif
