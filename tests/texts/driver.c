/* SPDX-License-Identifier: MIT */
/*
 * The tests' driver and compiler (cuda/fake.c) as libcuda.so.1 and libnvrtc: with them in front of the real ones any
 * program finds a GPU of the generation TANSO_TEXTS_GPU (80, 90, 100) whose kernels do nothing, and each text that it
 * would run is kept as $TANSO_TEXTS_FOLDER/<hash>.cu. See tests/kernel_texts.
 */
#include "cuda/fake.c"

#include "core/hash.h"

#include <unistd.h>

/* What the fake's own ways of opening a device want, which nobody uses here. */
const tn__plugin tn__plugin_cuda;
void tn__cuda_use(const tn__cuda_libraries *given) { (void)given; }

#define MEMORY ((size_t)64 << 30)

/* What kernels are chosen by. */
static const struct gpu {
    int generation, multiprocessors, shared; /* KiB of shared memory that a block may ask for */
} gpus[] = {{90, 132, 227}, {80, 108, 163}, {100, 148, 227}};

static const struct gpu *gpu(void)
{
    const char *wanted = getenv("TANSO_TEXTS_GPU");
    for (size_t i = 0; wanted && i < sizeof gpus / sizeof *gpus; i++)
        if (gpus[i].generation == atoi(wanted))
            return &gpus[i];
    return gpus;
}

static CUresult attribute(int *value, CUdevice_attribute which, CUdevice device)
{
    if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = gpu()->generation / 10;
    else if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = gpu()->multiprocessors;
    else if (which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        *value = gpu()->shared << 10;
    else
        return fake_attribute(value, which, device);
    return CUDA_SUCCESS;
}

static CUresult memory(size_t *left, size_t *total)
{
    *left = fake.memory_left;
    *total = MEMORY;
    return CUDA_SUCCESS;
}

static CUresult total(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = MEMORY;
    return CUDA_SUCCESS;
}

/* The machine code of that compiler is the text. Several processes may meet the same one: each writes a file of its
 * own. */
static CUresult keep(CUmodule *module, const void *image)
{
    const char *folder = getenv("TANSO_TEXTS_FOLDER"), *text = image;
    char path[4096], written[4120];
    uint64_t hash = tn__hash(text, strlen(text), 0);
    snprintf(path, sizeof path, "%s/%016llx.cu", folder ? folder : ".", (unsigned long long)hash);
    snprintf(written, sizeof written, "%s.%ld", path, (long)getpid());
    if (folder && access(path, F_OK) != 0) {
        FILE *file = fopen(written, "w");
        if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(written, path) != 0) {
            perror(written);
            abort();
        }
    }
    return fake_module(module, image);
}

/* What it leaves among compiled kernels is for no real driver: another version, another name. */
static nvrtcResult version(int *major, int *minor)
{
    *major = CUDA_VERSION / 1000;
    *minor = 99;
    return NVRTC_SUCCESS;
}

static CUresult serves(int *answer)
{
    *answer = CUDA_VERSION;
    return CUDA_SUCCESS;
}

__attribute__((constructor)) static void prepare(void)
{
    fake.memory_left = MEMORY;
    libraries.driver.cuDriverGetVersion = serves;
    libraries.driver.cuDeviceGetAttribute = attribute;
    libraries.driver.cuMemGetInfo = memory;
    libraries.driver.cuDeviceTotalMem = total;
    libraries.driver.cuModuleLoadData = keep;
    libraries.compiler.nvrtcVersion = version;
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
