/* SPDX-License-Identifier: MIT */
/* Marks internal declarations that backends in a shared object of their own need, so that the library exports them. */
#ifndef TN_CORE_PLUGIN_H
#define TN_CORE_PLUGIN_H

#if defined(__GNUC__)
#define TN__PLUGIN_BEGIN _Pragma("GCC visibility push(default)")
#define TN__PLUGIN_END _Pragma("GCC visibility pop")
#else
#define TN__PLUGIN_BEGIN
#define TN__PLUGIN_END
#endif

#endif
