/* SPDX-License-Identifier: MIT */
/* Newton's method on x^4 - 2 x^2 from x = 2: the second derivative is the gradient of a gradient. */
#include <math.h>
#include <stdio.h>
#include <tanso.h>

static tn_array *f(const tn_array *x)
{
    return tn_subtract(tn_power(x, 4), tn_multiply(2, tn_power(x, 2)));
}

int main(void)
{
    double at = 2;
    for (int i = 0; i < 10; i++)
        TN_SCOPE {
            printf("%d x = %.15g\n", i, at);
            tn_array *x = tn_requires_grad(tn_scalar(at, .dtype = TN_FLOAT64));
            tn_backward(f(x), .create_graph = true);
            tn_array *slope = tn_grad(x), *curvature;
            if (tn_gradients(slope, TN_ARRAYS(x), false, &curvature) != TN_OK)
                break;
            at -= tn_item(slope) / tn_item(curvature);
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return tn_ok() && fabs(at - 1) < 1e-15 ? 0 : 1;
}
