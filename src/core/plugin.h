/* SPDX-License-Identifier: MIT */
/* Plug-ins: marks of internal declarations that backends in a shared object of their own need, so that the library
 * exports them; and where such objects lie. */
#ifndef TN_CORE_PLUGIN_H
#define TN_CORE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__)
#define TN__PLUGIN_BEGIN _Pragma("GCC visibility push(default)")
#define TN__PLUGIN_END _Pragma("GCC visibility pop")
#else
#define TN__PLUGIN_BEGIN
#define TN__PLUGIN_END
#endif

/* Where the plug-in of a file's name, "libtanso-cuda.so", is to lie; false: that is unknown, and TANSO_PLUGIN_DIR not
 * set. */
bool tn__plugin_path(const char *file, char *path, size_t size);

#endif
