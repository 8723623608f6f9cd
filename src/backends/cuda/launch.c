/* SPDX-License-Identifier: MIT */
/* Users' raw kernels on a GPU: CUDA C, launched as asked for, on the thread's stream. */
#include "device/launch.h"

#include "backends/cuda/runtime/backend.h"
#include "core/error.h"
#include "core/memory.h"

/* A loaded kernel, found by source and name; it stays until the process ends. */
typedef struct launched {
    const char *source, *name;
    tn__cuda_device *device;
    tn__cuda_module *module;
    CUfunction function;
    int shared; /* most bytes of dynamic shared memory that the function has been allowed */
    tn__cuda_work work;
    struct launched *next;
} launched;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static launched *first;

#define USUAL_SHARED (48 << 10)

static launched *find(const tn__cuda_device *device, const tn__launch *l)
{
    launched *at = first;
    while (at && (at->source != l->source || at->name != l->name || at->device != device))
        at = at->next;
    return at;
}

static tn_status load(tn__cuda_device *device, const tn__launch *l, launched **made)
{
    launched *fresh = tn__calloc(1, sizeof *fresh);
    char *text = fresh ? tn__format("#line 1 \"%s\"\n%s\n", l->name, l->source) : NULL;
    tn_status status = text ? tn__cuda_module_load(device, text, &fresh->module)
                            : tn__fail_memory(l->name, sizeof *fresh);
    tn__free(text);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, fresh->module, l->name, &fresh->function);
    if (status != TN_OK) {
        tn__cuda_module_release(device, fresh->module);
        tn__free(fresh);
        return status;
    }
    fresh->source = l->source;
    fresh->name = l->name;
    fresh->device = device;
    fresh->work.kernel = l->name;
    *made = fresh;
    return TN_OK;
}

/* The lock is not held while a text is compiled. If two threads have loaded the same one, the second copy is
 * unloaded. */
static tn_status find_or_load(tn__cuda_device *device, const tn__launch *l, launched **entry)
{
    pthread_mutex_lock(&lock);
    *entry = find(device, l);
    pthread_mutex_unlock(&lock);
    launched *fresh;
    tn_status status = *entry ? TN_OK : load(device, l, &fresh);
    if (*entry || status != TN_OK)
        return status;
    pthread_mutex_lock(&lock);
    *entry = find(device, l);
    if (*entry == NULL) {
        tn__cuda_work_add(device, &fresh->work);
        fresh->next = first;
        *entry = first = fresh;
    }
    pthread_mutex_unlock(&lock);
    if (*entry != fresh) {
        tn__cuda_module_release(device, fresh->module);
        tn__free(fresh);
    }
    return TN_OK;
}

static bool is_refusal(CUresult result)
{
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/* The error of a refused launch, with the grid and the limits: the driver itself says only that an argument is invalid,
 * or that there are too few resources. */
static tn_status refuse(tn__cuda_device *device, const tn__launch *l, CUresult result)
{
    const char *words = "";
    int threads = 0, shared = 0;
    device->driver->cuGetErrorString(result, &words);
    device->driver->cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device->device);
    device->driver->cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                         device->device);
    return tn__fail(TN_ERR_VALUE, l->name,
                    "%s does not start a grid of (%u, %u, %u), blocks of (%u, %u, %u) and %u bytes of shared memory "
                    "(%s): its blocks have at most %d threads, fewer where a kernel needs many registers, and %d bytes",
                    device->name, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->shared,
                    words, threads, shared);
}

/* Allows the function as much dynamic shared memory as this launch wants; under the device's lock. */
static tn_status allow_shared(tn__cuda_device *device, const tn__launch *l, launched *entry)
{
    if (l->shared <= USUAL_SHARED || (int)l->shared <= entry->shared)
        return TN_OK;
    CUresult result = device->driver->cuFuncSetAttribute(entry->function,
                                                         CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                         (int)l->shared);
    if (result == CUDA_SUCCESS)
        entry->shared = (int)l->shared;
    return is_refusal(result) ? refuse(device, l, result) : tn__cuda_check(device, result, l->name);
}

static tn_status start(tn__cuda_device *device, const tn__launch *l, launched *entry)
{
    void *params[TN__LAUNCH_ARGS];
    for (int k = 0; k < l->count; k++)
        params[k] = (void *)&l->value[k];
    pthread_mutex_lock(&device->lock);
    tn_status status = allow_shared(device, l, entry);
    if (status == TN_OK) {
        int number = tn__stream_number(device->owner);
        CUstream stream = device->streams[number].handle;
        tn__cuda_run run = {.device = device, .stream = stream, .number = number, .work = &entry->work};
        CUresult result =
            device->driver->cuLaunchKernel(entry->function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                                           l->block[1], l->block[2], l->shared, stream, params, NULL);
        status = is_refusal(result) ? refuse(device, l, result) : tn__cuda_started(&run, result, l->name);
        tn__cuda_asked(device);
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

tn_status tn__cuda_launch_source(tn__device *owner, const tn__launch *l)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn_status status = tn__cuda_enter(device, l->name);
    if (status != TN_OK)
        return status;
    launched *entry;
    status = find_or_load(device, l, &entry);
    return status == TN_OK ? start(device, l, entry) : status;
}
