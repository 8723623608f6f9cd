/* SPDX-License-Identifier: MIT */
/* What the steps of all operations ask for. */
#include "backends/cpu/base/step.h"

#include "core/dtype.h"
#include "core/error.h"

void tn__cpu_addresses(const tn__cpu_step *step, int count, void *const *buffers, char **address)
{
    for (int k = 0; k < count; k++) {
        const tn__operand *operand = &step->step->operand[k];
        address[k] = tn__cpu_address(operand, tn__dtypes[operand->dtype].size, buffers);
    }
}

tn_status tn__cpu_no_such_operation(const tn__cpu_step *step)
{
    return tn__fail(TN_ERR_UNSUPPORTED, tn__cpu_ops[step->step->op].name, "cannot be computed in %s on the CPU",
                    tn_dtype_name(step->step->compute));
}
