/* SPDX-License-Identifier: MIT */
/* The library's version, from the numbers of the public header. */
#include <tanso/base.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *tn_version(void)
{
    return TEXT(TN_VERSION_MAJOR) "." TEXT(TN_VERSION_MINOR) "." TEXT(TN_VERSION_PATCH);
}
