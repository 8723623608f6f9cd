/* SPDX-License-Identifier: MIT */
#include "compile/compile.h"

bool tn__lower_kernels(tn__draft *draft, const tn__device *device, bool fusion)
{
    (void)device;
    (void)fusion;
    return tn__lower_operations(draft);
}
