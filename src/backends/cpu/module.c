/* SPDX-License-Identifier: MIT */
/* Modules: kernels loaded into the process. */
#include "backends/cpu/module.h"

#include "core/error.h"

_Atomic uint64_t tn__cpu_compilations, tn__cpu_kernel_hits;

tn_status tn__cpu_module_load(const char *source, int count, const char *const *kernel, tn__cpu_module **module)
{
    (void)source, (void)count, (void)kernel, (void)module;
    return tn__fail(TN_ERR_COMPILE, "kernels", "this build compiles no kernels");
}

tn__cpu_kernel tn__cpu_module_kernel(const tn__cpu_module *module, const char *name)
{
    (void)module, (void)name;
    return NULL;
}

void tn__cpu_module_release(tn__cpu_module *module)
{
    (void)module;
}
