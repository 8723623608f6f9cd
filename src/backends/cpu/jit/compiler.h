/* SPDX-License-Identifier: MIT */
/* The system's C compiler: which one, what its output depends on, and running it. */
#ifndef TN_BACKENDS_CPU_JIT_COMPILER_H
#define TN_BACKENDS_CPU_JIT_COMPILER_H

#include <limits.h>
#include <sys/types.h>
#include <tanso/base.h>

#include "core/memory.h"

typedef struct tn__compiler {
    char path[PATH_MAX];
} tn__compiler;

/* TANSO_CC if it is set, else the compiler Tanso was built with, cc, gcc or clang. TN_ERR_COMPILE if there is none. */
tn_status tn__compiler_find(tn__compiler *compiler);
/* Adds all that the compiler's output depends on beside its input: which binary it is, its flags, this processor. */
void tn__compiler_identity(const tn__compiler *compiler, tn__text *text);

/* Compilers started between begin and end are killed when this process ends, for whatever reason. `group`: their
 * process group; 0: none could be made, and they are in this process's own. */
typedef struct tn__compiler_watch {
    pid_t group;
    int hold;
} tn__compiler_watch;
void tn__compiler_watch_begin(tn__compiler_watch *watch);
void tn__compiler_watch_end(tn__compiler_watch *watch);

/* A C file that is compiled to a shared object; `log` is a file for what the compiler says, which goes into the message
 * of a TN_ERR_COMPILE. All are names in the open folder, in which the compiler is started. */
typedef struct tn__compiling {
    const tn__compiler *compiler;
    const tn__compiler_watch *watch;
    int folder;
    const char *source, *object, *log;
    pid_t child;
    int level;
} tn__compiling;
tn_status tn__compiler_start(tn__compiling *compiling);
/* Checks, or waits, whether a started compiler is done; the status is its result. */
tn_status tn__compiler_look(tn__compiling *compiling, bool wait, bool *done);

#endif
