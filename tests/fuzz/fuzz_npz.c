/* SPDX-License-Identifier: MIT */
/* Any bytes as an .npz file: arrays that can be found, or a latched error, never a crash. */
#include <tanso/base.h>
#include "io/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_archive *archive = tn_archive_new();
    tn_status status = tn__npz_parse("fuzz", "input", data, size, archive);
    if ((status == TN_OK) != tn_ok())
        __builtin_trap();
    for (int i = 0; i < tn_archive_count(archive); i++)
        if (tn_archive_find(archive, tn_archive_name(archive, i)) != tn_archive_array(archive, i))
            __builtin_trap();
    tn_archive_free(archive);
    tn_clear_error();
    return 0;
}
