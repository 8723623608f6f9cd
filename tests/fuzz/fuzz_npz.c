/* SPDX-License-Identifier: MIT */
/* Any bytes as an .npz file. */
#include "fuzz/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return fuzz_archive(tn__npz_parse, data, size); }
