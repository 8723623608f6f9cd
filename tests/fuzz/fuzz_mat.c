/* SPDX-License-Identifier: MIT */
/* Any bytes as a file of MATLAB: an array or a latched error, never a crash. */
#include <tanso/base.h>
#include "io/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn__values values;
    tn_status status = tn__mat_parse("fuzz", "input", "x", data, size, &values);
    if ((status == TN_OK) != tn_ok() || (status == TN_OK) != (values.storage != NULL))
        __builtin_trap();
    tn__values_free(&values);
    tn_clear_error();
    return 0;
}
