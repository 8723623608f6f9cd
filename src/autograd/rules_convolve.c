/* SPDX-License-Identifier: MIT */
/* Gradient rules of convolutions: each of the three operations has the other two as gradients. Input 0 is the value. */
#include "array/build_convolve.h"
#include "autograd/rules.h"

void tn__grad_conv(tn__chain *c)
{
    tn__node *x = c->node->in[1], *w = c->node->in[2];
    tn__convolution of;
    tn__convolution_of(c->node, &of);
    c->in[0] = NULL;
    if (tn__wanted(c, 1))
        c->in[1] = tn__convolve_data(c->g, w, &of, x->shape);
    if (tn__wanted(c, 2))
        c->in[2] = tn__convolve_weights(x, c->g, &of, w->shape);
}

void tn__grad_conv_data(tn__chain *c)
{
    tn__node *y = c->node->in[1], *w = c->node->in[2];
    tn__convolution of;
    tn__convolution_of(c->node, &of);
    c->in[0] = NULL;
    if (tn__wanted(c, 1))
        c->in[1] = tn__convolve(c->g, w, &of, y->shape);
    if (tn__wanted(c, 2))
        c->in[2] = tn__convolve_weights(c->g, y, &of, w->shape);
}

void tn__grad_conv_weights(tn__chain *c)
{
    tn__node *x = c->node->in[1], *y = c->node->in[2];
    tn__convolution of;
    tn__convolution_of(c->node, &of);
    c->in[0] = NULL;
    if (tn__wanted(c, 1))
        c->in[1] = tn__convolve_data(y, c->g, &of, x->shape);
    if (tn__wanted(c, 2))
        c->in[2] = tn__convolve(x, c->g, &of, y->shape);
}
