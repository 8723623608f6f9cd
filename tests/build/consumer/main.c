/* SPDX-License-Identifier: MIT */
/* A user's program: an installed library has the version of its header, and runs; blocks in blocks warn of nothing. */
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
    double sum = 0;
    TN_SCOPE {
        tn_array *x = tn_linspace(0, 1, 5);
        TN_NO_GRAD {
            TN_ON_DEVICE(tn_cpu()) {
                TN_SCOPE {
                    sum = tn_item(tn_sum(tn_multiply(x, 2), .axis = TN_AXES(0)));
                }
            }
        }
    }
    return !tn_ok() || sum != 5;
}
