/* SPDX-License-Identifier: MIT */
/* A program with a kernel of its own and other work behind it; "asks": whether all that was well. */
#include <stdio.h>
#include <string.h>
#include <tanso.h>

int main(int count, char **word)
{
    static const float x[4] = {1, 2, 3, 4};
    bool asks = count > 1 && strcmp(word[1], "asks") == 0;
    tn_kernel *stomp = tn_raw_kernel("extern \"C\" __global__ void stomp(float *y) { y[1ll << 45] = 1; }", "stomp");
    TN_SCOPE {
        tn_array *a = tn_to_cuda(tn_from_host(x, TN_SHAPE(4), TN_FLOAT32));
        (void)!tn_launch(stomp, TN_ARGS(TN_WRITES(a)), .grid = {1}, .block = {1});
        if (asks) {
            (void)!tn_eval(tn_exp(tn_to_cuda(tn_ones(TN_SHAPE(4)))));
            (void)!tn_synchronize(tn_cuda(0));
        }
    }
    if (!tn_ok())
        printf("%s\n", tn_error());
    return tn_ok() ? 0 : 1;
}
