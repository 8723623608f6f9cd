/* SPDX-License-Identifier: MIT */
/* Any bytes as a table of numbers, read with options that the first bytes choose: an array or a latched error, never a
 * crash. */
#include <tanso/base.h>
#include "io/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_INT8,  TN_UINT64,
                                      TN_BOOL,    TN_FLOAT16, TN_INT64, TN_INT32};
    static const int columns[] = {1, -1, 0};
    if (size < 2)
        return 0;
    tn_csv_opts opts = {.dtype = dtypes[data[0] & 7],
                        .fill = data[0] & 8,
                        .delimiter = data[0] & 16   ? ' '
                                     : data[0] & 32 ? '\t'
                                                    : 0,
                        .skip = data[1] & 3,
                        .rows = data[1] >> 2 & 7,
                        .columns = columns,
                        .column_count = data[1] >> 5 & 3};
    tn__values values;
    tn_status status = tn__csv_parse("fuzz", "input", (const char *)data + 2, size - 2, &opts, &values);
    if ((status == TN_OK) != tn_ok() || (status == TN_OK) != (values.storage != NULL))
        __builtin_trap();
    tn__values_free(&values);
    tn_clear_error();
    return 0;
}
