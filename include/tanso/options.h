/* SPDX-License-Identifier: MIT */
/*
 * Keyword arguments and lists, of which C and C++ have their own. Every header gets them by tanso/base.h.
 *
 * TN_OPTS(tn_reduce_opts, .axis = TN_AXES(1)) is the address of options, which live to the end of the block in C, to
 * the end of the full expression in C++. Every option struct starts with an unused field `_`, so that none need be
 * given; an option left out is zero, which means its default. C++ wants them in the order of the struct's fields, and
 * since C++20: before, gcc and clang take them, and -pedantic warns.
 */
#ifndef TANSO_OPTIONS_H
#define TANSO_OPTIONS_H

#ifdef __cplusplus
#include <initializer_list>

#if defined(__GNUC__)
/* For -Wextra of C++ compilers, which else warns of every option that a program leaves out. */
#pragma GCC system_header
#endif

template <class T> inline const T *tn__address(const T &x) { return &x; }
template <class... T> char (&tn__counted(const T &...))[sizeof...(T)];

#define TN__CAST(type, x) static_cast<type>(x)
#define TN_OPTS(type, ...) tn__address(type{__VA_ARGS__})
#define TN__LIST(type, ...) \
    static_cast<int>(sizeof tn__counted(__VA_ARGS__)), (std::initializer_list<type>{__VA_ARGS__}.begin())
#else
#define TN__CAST(type, x) ((type)(x))
#define TN_OPTS(type, ...) (&(type){._ = 0, __VA_ARGS__})
#define TN__COUNT(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))
#define TN__LIST(type, ...) TN__COUNT(type, __VA_ARGS__), ((type[]){__VA_ARGS__})
#endif

#endif
