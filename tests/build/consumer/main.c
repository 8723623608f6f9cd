/* SPDX-License-Identifier: MIT */
/* A user's program: an installed library has the version of its header, and runs. */
#include <stdio.h>
#include <string.h>
#include <tanso.h>

int main(void)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", TN_VERSION_MAJOR, TN_VERSION_MINOR, TN_VERSION_PATCH);
    if (strcmp(tn_version(), expected) != 0) {
        fprintf(stderr, "header %s, library %s\n", expected, tn_version());
        return 1;
    }
    return !tn_ok();
}
