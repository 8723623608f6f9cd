/* SPDX-License-Identifier: MIT */
/* The system's C compiler: which one, what it makes for this machine, and running it. */
#ifndef TN_BACKENDS_CPU_COMPILER_H
#define TN_BACKENDS_CPU_COMPILER_H

#include <limits.h>
#include <tanso/base.h>

#include "core/memory.h"

typedef struct tn__compiler {
    char path[PATH_MAX];
} tn__compiler;

/* TANSO_CC if it is set, else the compiler Tanso was built with, cc, gcc or clang. TN_ERR_COMPILE if there is none. */
tn_status tn__compiler_find(tn__compiler *compiler);
/* Adds all that the compiler's output depends on beside its input: which binary it is, its flags, this processor. */
void tn__compiler_identity(const tn__compiler *compiler, tn__text *text);
/* Compiles a C file to a shared object; `log` is a file for what the compiler says, which goes into the message of a
 * TN_ERR_COMPILE. All are names in the open folder, in which the compiler is started. */
tn_status tn__compiler_run(const tn__compiler *compiler, int folder, const char *source, const char *object,
                           const char *log);

#endif
