/* SPDX-License-Identifier: MIT */
/* Any bytes as a .safetensors file. */
#include "fuzz/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return fuzz_archive(tn__safetensors_parse, data, size); }
