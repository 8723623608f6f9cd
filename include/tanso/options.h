/* SPDX-License-Identifier: MIT */
/*
 * Keyword arguments and lists, of which C and C++ have their own. Every header gets them by tanso/base.h.
 *
 * TN_OPTS(tn_reduce_opts, .axis = TN_AXES(1)) is the address of options, which live to the end of the block in C, to
 * the end of the full expression in C++. C++ wants them in the order of the struct's fields, and since C++20: before,
 * gcc and clang take them, and -pedantic warns.
 *
 * One rule for all options: one that is written counts, whatever its value, so that .lr = 0 is a learning rate of 0;
 * one that is left out has its default. A zero alone could not tell the two apart. So every option struct starts with a
 * field `_`, in which TN_OPTS, and so every macro with keywords, keeps the text of what was written. In a struct that
 * is filled without it, as by another language, zeros are defaults, but for those that `_` names:
 * ._ = ".lr, .momentum". NULL instead of a struct leaves out all options.
 *
 * An option that is a list or another structure, such as axes, takes no bare number in C: `.axis = 1` does not compile,
 * `.axis = TN_AXES(1)` is meant. By itself C would let the number initialise the structure's first member, here the
 * count of axes, so that `.axis = 1` meant axis 0 and `.axis = 0` that none was given. Both compilers can tell, by
 * warnings; TN_OPTS makes these errors for the options alone. With all warnings off (-w) they say nothing: a call then
 * gives TN_ERR_VALUE where the text is a number, as it is here; what a variable holds is not seen. In C++ one axis may
 * be a number and several braces: `.axis = 1`, `.axis = {0, -1}`. Options written without TN_OPTS,
 * &(tn_reduce_opts){...}, are the compiler's own matter: -Wall warns (-Wmissing-braces).
 *
 * An option that is an array takes no number at all. `.initial = 0` compiles, as 0 is a null pointer to C, and is
 * TN_ERR_VALUE where an array of zeros would be another thing than none; NULL is none. `.initial = tn_scalar(0)` is
 * meant.
 */
#ifndef TANSO_OPTIONS_H
#define TANSO_OPTIONS_H

#define TN_OPTS(type, ...) TN__OPTS(type, __VA_ARGS__)

#ifdef __cplusplus
#include <initializer_list>

#if defined(__GNUC__)
/* For -Wextra of C++ compilers, which else warns of every option that a program leaves out. */
#pragma GCC system_header
#endif

template <class T> inline const T *tn__address(const T &x) { return &x; }
template <class... T> char (&tn__counted(const T &...))[sizeof...(T)];
/* A list as it stands between braces, of which `room` fit: of more the receiver tells by their count. */
template <class T> inline void tn__list_into(T *list, int room, std::initializer_list<T> elements)
{
    for (const T *from = elements.begin(); from != elements.end() && room-- > 0;)
        *list++ = *from++;
}

#define TN__CAST(type, x) static_cast<type>(x)
#define TN__OPTS(type, ...) tn__address(type{._ = #__VA_ARGS__, __VA_ARGS__})
#define TN__LIST(type, ...) \
    static_cast<int>(sizeof tn__counted(__VA_ARGS__)), (std::initializer_list<type>{__VA_ARGS__}.begin())
#else
#define TN__CAST(type, x) ((type)(x))
#if defined(__clang__)
/* The count of a list in C: what holds any number, but is named no small one, so that `.axis = {0}` is told of. */
typedef enum tn__count { TN__COUNT_LEAST = -2147483647 - 1, TN__COUNT_MOST = 2147483647 } tn__count;
#define TN__LISTED
#define TN__OPTS(type, ...) \
    (_Pragma("clang diagnostic push") _Pragma("clang diagnostic error \"-Wmissing-braces\"") \
         _Pragma("clang diagnostic error \"-Wassign-enum\"") \
             &(type){._ = #__VA_ARGS__, __VA_ARGS__} _Pragma("clang diagnostic pop"))
#elif defined(__GNUC__)
typedef int tn__count;
/* gcc takes a pragma within an expression where that declares a structure. It keeps quiet about macros of the system's
 * headers, which an installed tanso's are, unless -Wsystem-headers is on; and the attribute lets it tell of
 * `.axis = {1}`, which elsewhere is nobody's mistake. */
#pragma GCC diagnostic ignored "-Wdesignated-init"
#define TN__LISTED __attribute__((designated_init))
#define TN__STRICTLY \
    0 * sizeof(struct { \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wmissing-braces\"") \
            _Pragma("GCC diagnostic error \"-Wdesignated-init\"") \
                _Pragma("GCC diagnostic warning \"-Wsystem-headers\"") char tn__; \
    })
#define TN__AS_BEFORE \
    0 * sizeof(struct { \
        _Pragma("GCC diagnostic pop") _Pragma("GCC diagnostic ignored \"-Wsystem-headers\"") char tn__; \
    })
#define TN__OPTS(type, ...) (TN__STRICTLY + &(type){._ = #__VA_ARGS__, __VA_ARGS__} + TN__AS_BEFORE)
#else
typedef int tn__count;
#define TN__LISTED
#define TN__OPTS(type, ...) (&(type){._ = #__VA_ARGS__, __VA_ARGS__})
#endif
#define TN__COUNT(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))
#define TN__LIST(type, ...) TN__COUNT(type, __VA_ARGS__), ((type[]){__VA_ARGS__})
#endif

#endif
