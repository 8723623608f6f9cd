/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 and libnvrtc (cuda/library.h) of a GPU of the generation TANSO_TEXTS_GPU (80, 90, 100) whose kernels do
 * nothing; each text that it would run is kept as $TANSO_TEXTS_FOLDER/<hash>.cu. See tests/kernel_texts.
 */
#include "cuda/library.h"

#include "core/hash.h"

#include <unistd.h>

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

__attribute__((constructor)) static void prepare(void)
{
    library_prepare();
    libraries.driver.cuDeviceGetAttribute = attribute;
    libraries.driver.cuModuleLoadData = keep;
}
