/* SPDX-License-Identifier: MIT */
/*
 * tanh differentiated eight times. Each derivative's graph is differentiated for the next, so that
 * the number of operations grows fast; equal parts are computed once.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

/* The n-th derivative of tanh is a polynomial in t = tanh: p' = dp/dt (1 - t²). */
static double expected(double x, int order)
{
    double p[16] = {0, 1}, t = tanh(x), value = 0;
    for (int n = 0; n < order; n++) {
        double next[16] = {0};
        for (int k = 1; k < 15; k++) {
            next[k - 1] += k * p[k];
            next[k + 1] -= k * p[k];
        }
        for (int k = 0; k < 16; k++)
            p[k] = next[k];
    }
    for (int k = 15; k >= 0; k--)
        value = value * t + p[k];
    return value;
}

int main(int argc, char **argv)
{
    const char *drawing =
        argc > 1 ? argv[1] : NULL; /* a file for the graph of the eighth derivative, in DOT */
    const double at = 0.7;
    double worst = 0;
    tn_array *x = tn_set_name(tn_requires_grad(tn_scalar(at, .dtype = TN_FLOAT64)), "x"),
             *y = tn_tanh(x);
    for (int order = 1; order <= 8; order++) {
        if (tn_gradients(y, TN_ARRAYS(x), true, &y) != TN_OK)
            break;
        double got = tn_item(y), right = expected(at, order);
        printf("derivative %d of tanh at %g: %.12g\n", order, at, got);
        worst = fmax(worst, fabs(got - right) / fabs(right));
    }
    FILE *file = drawing ? fopen(drawing, "w") : NULL;
    if (file && (tn_graph_dot(y, file) != TN_OK || fclose(file) != 0))
        return EXIT_FAILURE;
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return tn_ok() && worst < 1e-11 ? 0 : 1;
}
