/* SPDX-License-Identifier: MIT */
/* The backends of this build, which the registry registers on first use. */
#include "backends/builtin.h"
#include "backends/plugin.h"

const tn__backend *const tn__builtin_backends[] = {&tn__backend_cpu, &tn__backend_cuda, &tn__backend_null,
                                                    &tn__backend_virtual};
const int tn__builtin_backend_count = sizeof tn__builtin_backends / sizeof *tn__builtin_backends;
