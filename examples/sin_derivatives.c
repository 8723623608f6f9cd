/* SPDX-License-Identifier: MIT */
/* sin and its first three derivatives, each the gradient of the one before. Writes columns to plot:
 * x sin sin' ... */
#include <math.h>
#include <stdio.h>
#include <tanso.h>

enum { POINTS = 21, ORDERS = 4 };

int main(void)
{
    double value[ORDERS][POINTS], place[POINTS], worst = 0;
    tn_array *x = tn_requires_grad(tn_linspace(-7, 7, POINTS, .dtype = TN_FLOAT64)), *y = tn_sin(x);
    if (tn_to_host(x, place, sizeof place) != TN_OK)
        return fprintf(stderr, "%s\n", tn_error()), 1;
    for (int order = 0; order < ORDERS; order++) {
        if (order > 0)
            tn_gradients(y, TN_ARRAYS(x), true, &y);
        if (tn_to_host(y, value[order], sizeof value[order]) != TN_OK)
            return fprintf(stderr, "%s\n", tn_error()), 1;
    }
    for (int i = 0; i < POINTS; i++) {
        printf("%6.2f", place[i]);
        for (int order = 0; order < ORDERS; order++) {
            printf(" %9.6f", value[order][i]);
            worst = fmax(worst, fabs(value[order][i] - sin(place[i] + order * acos(0))));
        }
        printf("\n");
    }
    fprintf(stderr, "largest error: %g\n", worst);
    return tn_ok() && worst < 1e-14 ? 0 : 1;
}
