/* SPDX-License-Identifier: MIT */
/*
 * The tests' driver and compiler (cuda/fake.c) as libcuda.so.1 and libnvrtc: with them in front of the real ones any
 * program finds a GPU. For one file of such a library, which says what is different before library_prepare().
 */
#ifndef TN_TESTS_CUDA_LIBRARY_H
#define TN_TESTS_CUDA_LIBRARY_H

#include "cuda/fake.c"

/* What the fake's own ways of opening a device want, which nobody uses here. */
const tn__plugin tn__plugin_cuda;
void tn__cuda_use(const tn__cuda_libraries *given) { (void)given; }

#define MEMORY ((size_t)64 << 30)

/* What kernels are chosen by. */
static const struct library_gpu {
    int generation, multiprocessors, shared; /* KiB of shared memory that a block may ask for */
} library_gpus[] = {{90, 132, 227}, {80, 108, 163}, {100, 148, 227}};
static const struct library_gpu *library_gpu = library_gpus;

/* Which GPU it is, where there is one of this generation. */
static void library_choose(int generation)
{
    for (size_t i = 0; i < sizeof library_gpus / sizeof *library_gpus; i++)
        if (library_gpus[i].generation == generation)
            library_gpu = &library_gpus[i];
}

static CUresult library_attribute(int *value, CUdevice_attribute which, CUdevice device)
{
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = library_gpu->generation / 10;
    else if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = library_gpu->multiprocessors;
    else if (which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        *value = library_gpu->shared << 10;
    else
        return fake_attribute(value, which, device);
    return CUDA_SUCCESS;
}

static CUresult library_function_set(CUfunction function, CUfunction_attribute attribute, int value)
{
    return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value > library_gpu->shared << 10
               ? CUDA_ERROR_INVALID_VALUE
               : fake_function_set(function, attribute, value);
}

static CUresult library_memory(size_t *left, size_t *total)
{
    *left = fake.memory_left;
    *total = MEMORY;
    return CUDA_SUCCESS;
}

static CUresult library_total(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = MEMORY;
    return CUDA_SUCCESS;
}

/* What it leaves among compiled kernels is for no real driver: another version, another name. */
static nvrtcResult library_version(int *major, int *minor)
{
    *major = CUDA_VERSION / 1000;
    *minor = 99;
    return NVRTC_SUCCESS;
}

static CUresult library_serves(int *answer)
{
    *answer = CUDA_VERSION;
    return CUDA_SUCCESS;
}

static void library_prepare(void)
{
    fake.memory_left = MEMORY;
    libraries.driver.cuDriverGetVersion = library_serves;
    libraries.driver.cuDeviceGetAttribute = library_attribute;
    libraries.driver.cuFuncSetAttribute = library_function_set;
    libraries.driver.cuMemGetInfo = library_memory;
    libraries.driver.cuDeviceTotalMem = library_total;
    libraries.compiler.nvrtcVersion = library_version;
}

/* NVRTC opens whatever libcuda.so.1 there is and calls this: a library without it makes a real NVRTC fault. */
__attribute__((visibility("default"))) CUresult cuGetExportTable(const void **table, const CUuuid *which)
{
    (void)which;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- under the names that dlsym is asked for ---- */

#define RESOLVED(table, name) \
    static __typeof__(&name) of_##name(void) { return libraries.table.name; } \
    __typeof__(name) name __attribute__((ifunc("of_" #name), visibility("default")));
#define DRIVER(name)   RESOLVED(driver, name)
#define GRAPHS(name)   RESOLVED(graphs, name)
#define COMPILER(name) RESOLVED(compiler, name)
TN__CUDA_DRIVER(DRIVER)
TN__CUDA_GRAPHS(GRAPHS)
TN__CUDA_COMPILER(COMPILER)

#endif
