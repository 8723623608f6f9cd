/* SPDX-License-Identifier: MIT */
/* What the fuzzers of archives share: a parser gives arrays that can be found, or a latched error, never a crash. */
#ifndef TN_TESTS_FUZZ_ARCHIVE_H
#define TN_TESTS_FUZZ_ARCHIVE_H

#include <tanso/base.h>
#include "io/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int fuzz_archive(tn_status (*parse)(const char *operation, const char *path, const uint8_t *data,
                                                  size_t size, tn_archive *archive),
                               const uint8_t *data, size_t size)
{
    tn_archive *archive = tn_archive_new();
    tn_status status = parse("fuzz", "input", data, size, archive);
    if ((status == TN_OK) != tn_ok())
        __builtin_trap();
    for (int i = 0; i < tn_archive_count(archive); i++)
        if (tn_archive_find(archive, tn_archive_name(archive, i)) != tn_archive_array(archive, i))
            __builtin_trap();
    tn_archive_free(archive);
    tn_clear_error();
    return 0;
}

#endif
