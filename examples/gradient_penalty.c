/* SPDX-License-Identifier: MIT */
/*
 * A gradient penalty, as in Wasserstein networks: the loss contains the norm of the gradient of the
 * output with respect to the input, so that its own gradient needs second derivatives. A small
 * critic f(x) = v . tanh(W x) is trained by plain gradient descent until the slope at its inputs
 * is 1.
 */
#include <math.h>
#include <stdio.h>
#include <tanso.h>

int main(void)
{
    enum { BATCH = 32, INPUTS = 3, HIDDEN = 16, STEPS = 200 };
    tn_seed(1);
    tn_array *w = tn_requires_grad(tn_random_normal(TN_SHAPE(INPUTS, HIDDEN), .scale = 0.3));
    tn_array *v = tn_requires_grad(tn_random_normal(TN_SHAPE(HIDDEN, 1), .scale = 0.3));
    tn_array *x = tn_random_normal(TN_SHAPE(BATCH, INPUTS));
    double first = 0, penalty = 0;
    for (int step = 0; step < STEPS; step++)
        TN_SCOPE {
            tn_array *y = tn_matmul(tn_tanh(tn_matmul(x, w)), v), *gx;
            if (tn_gradients(y, TN_ARRAYS(x), true, &gx) != TN_OK)
                break;
            tn_array *norm = tn_sqrt(tn_sum(tn_square(gx), .axis = TN_AXES(1)));
            tn_array *loss = tn_mean(tn_square(tn_subtract(norm, 1)));
            tn_backward(loss);
            TN_NO_GRAD
            {
                tn_subtract_assign(w, tn_multiply(0.2, tn_grad(w)));
                tn_subtract_assign(v, tn_multiply(0.2, tn_grad(v)));
            }
            if (tn_eval_all(TN_ARRAYS(loss, w, v)) != TN_OK)
                break;
            tn_clear_grad(w);
            tn_clear_grad(v);
            penalty = tn_item(loss);
            if (step == 0)
                first = penalty;
            if (step % 40 == 0 || step == STEPS - 1)
                printf("step %3d, penalty %.6f\n", step, penalty);
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return tn_ok() && penalty < 0.1 * first ? 0 : 1;
}
