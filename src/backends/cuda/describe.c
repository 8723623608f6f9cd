/* SPDX-License-Identifier: MIT */
/* Descriptions of a GPU, for people. */
#include <string.h>

#include "backends/cuda/convolution/convolution.h"
#include "backends/cuda/linalg/library.h"
#include "backends/cuda/runtime/backend.h"

void tn__cuda_describe(tn__device *owner, tn_device_info *info)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    const tn__cuda_driver *driver = device->driver;
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } numbers[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->multiprocessors},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &info->warp},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info->block_threads},
    };
    const struct {
        CUdevice_attribute attribute;
        size_t *value;
    } sizes[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &info->block_shared},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &info->cache},
    };
    int value = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        driver->cuDeviceGetAttribute(numbers[i].value, numbers[i].attribute, device->device);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (driver->cuDeviceGetAttribute(&value, sizes[i].attribute, device->device) == CUDA_SUCCESS)
            *sizes[i].value = (size_t)value;
    memcpy(info->product, device->product, sizeof device->product);
    driver->cuDeviceGetPCIBusId(info->bus, sizeof info->bus, device->device);
    info->capability = device->architecture;
    info->driver = device->libraries->driver_version;
    info->compiler = device->libraries->compiler_version;
    size_t total = 0;
    if (driver->cuCtxSetCurrent(device->context) == CUDA_SUCCESS)
        driver->cuMemGetInfo(&info->memory_free, &total);
}

/* This opens the libraries that are otherwise opened at their first use. */
const char *tn__cuda_missing(tn__device *owner, int i)
{
    tn__cuda_fft_library(tn__cuda_of(owner));
    tn__cuda_solver_library(tn__cuda_of(owner));
    tn__cuda_dnn_there(tn__cuda_of(owner));
    for (int part = 0; part < TN__CUDA_PARTS; part++) {
        const char *text = tn__cuda_missing_part((tn__cuda_part)part);
        if (*text && i-- == 0)
            return text;
    }
    return NULL;
}
