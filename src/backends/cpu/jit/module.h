/* SPDX-License-Identifier: MIT */
/* Kernels as loaded code: source text compiled by the system's C compiler, cached on disk and in memory. */
#ifndef TN_BACKENDS_CPU_JIT_MODULE_H
#define TN_BACKENDS_CPU_JIT_MODULE_H

#include "device/program.h"

typedef struct tn__cpu_module tn__cpu_module;
/* The entry point that device/program.h describes. */
typedef void (*tn__cpu_kernel)(void *const *p, const int64_t *n, const uint64_t *s, int64_t begin, int64_t end,
                               int64_t *fault);

/* The module of a source text, compiled if need be; released by tn__cpu_module_release. Every name in `kernel` must be
 * an entry point of it. TN_ERR_COMPILE without a compiler, or with the compiler's first lines. */
tn_status tn__cpu_module_load(const char *source, int count, const char *const *kernel, tn__cpu_module **module);
/* A module for each kernel of a program whose text marks where each kernel begins. Kernels that are found neither in
 * the process nor on disk are compiled in parallel. `module` has room for all of them, and keeps those that were found
 * even if others fail. */
tn_status tn__cpu_modules_load(const tn__program *program, tn__cpu_module **module);
/* An estimate of how long tn__cpu_modules_load would wait for the compiler, in nanoseconds. */
int64_t tn__cpu_modules_pause(const tn__program *program);
tn__cpu_kernel tn__cpu_module_kernel(const tn__cpu_module *module, const char *name);
void tn__cpu_module_release(tn__cpu_module *module);

#endif
