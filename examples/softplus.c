/* SPDX-License-Identifier: MIT */
/* A function written once runs where its argument is: on the CPU, and on a GPU if there is one. */
#include <math.h>
#include <stdio.h>
#include <tanso.h>

/* log(1 + exp(x)), without overflow for large x. */
static tn_array *softplus(const tn_array *x)
{
    return tn_add(tn_maximum(x, 0), tn_log1p(tn_exp(tn_negative(tn_abs(x)))));
}

int main(void)
{
    const tn_device devices[] = {tn_cpu(), tn_cuda(0)};
    double largest_difference = 0;
    TN_SCOPE {
        tn_array *x = tn_linspace(-30, 30, 7), *first = softplus(x);
        for (int i = 0; i < (tn_cuda_available() ? 2 : 1); i++) {
            tn_array *there = tn_to(x, devices[i]), *y = softplus(there);
            printf("on %s\n", tn_device_name(tn_device_of(y)));
            tn_print(y);
            double difference = tn_item(tn_max(tn_abs(tn_subtract(tn_to_cpu(y), first))));
            largest_difference = fmax(largest_difference, difference);
        }
    }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return tn_ok() && largest_difference < 1e-5 ? 0 : 1;
}
