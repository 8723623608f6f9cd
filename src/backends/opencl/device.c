/* SPDX-License-Identifier: MIT */
/*
 * OpenCL devices and their memory, and what the plug-in exports. An address of device memory has to stay one when it is
 * added to, stored in tables and handed to kernels in them: so devices need shared virtual memory, fine-grained for the
 * tables that the host writes.
 */
#include "backends/opencl/opencl.h"

#include <stdio.h>

#include "backends/plugin.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "tn_build_config.h"

#define MOST_DEVICES 16

static cl_device_id devices[MOST_DEVICES];
static int device_count;
static const char *why_none;

tn_status tn__cl_check(const tn__cl_device *device, cl_int error, const char *what)
{
    return error == CL_SUCCESS ? TN_OK : tn__fail(TN_ERR_DEVICE, device->name, "%s: OpenCL's error %d", what, error);
}

/* ---- finding ---- */

static bool fits(cl_device_id id)
{
    cl_device_svm_capabilities shared = 0;
    cl_device_fp_config doubles = 0;
    cl_bool compiles = CL_FALSE;
    clGetDeviceInfo(id, CL_DEVICE_SVM_CAPABILITIES, sizeof shared, &shared, NULL);
    clGetDeviceInfo(id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, NULL);
    clGetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiles, &compiles, NULL);
    return shared & CL_DEVICE_SVM_FINE_GRAIN_BUFFER && doubles && compiles;
}

static void find(void)
{
    cl_platform_id platform[MOST_DEVICES];
    cl_uint platforms = 0, found = 0, seen = 0;
    if (clGetPlatformIDs(MOST_DEVICES, platform, &platforms) != CL_SUCCESS)
        platforms = 0;
    for (cl_uint i = 0; i < platforms && i < MOST_DEVICES; i++) {
        cl_device_id id[MOST_DEVICES];
        if (clGetDeviceIDs(platform[i], CL_DEVICE_TYPE_ALL, MOST_DEVICES, id, &found) != CL_SUCCESS)
            continue;
        for (cl_uint k = 0; k < found && k < MOST_DEVICES; k++, seen++)
            if (fits(id[k]) && device_count < MOST_DEVICES)
                devices[device_count++] = id[k];
    }
    why_none = seen ? "no OpenCL device here has a compiler, float64 and fine-grained shared virtual memory"
                    : "no OpenCL device is installed (one for the CPU is PoCL: package pocl-opencl-icd)";
}

static int cl_count(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    if (device_count == 0)
        *why = why_none;
    return device_count;
}

/* ---- memory ---- */

static tn__cl_device *own(const tn__device *device) { return device->backend_data; }

static void *cl_allocate(tn__device *device, size_t bytes)
{
    return clSVMAlloc(own(device)->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes ? bytes : 1, 64);
}

static void cl_release(tn__device *device, void *memory, size_t bytes)
{
    (void)bytes;
    clSVMFree(own(device)->context, memory);
}

static tn_status copy(tn__device *device, void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return TN_OK;
    cl_int error = clEnqueueSVMMemcpy(own(device)->queue, CL_TRUE, to, from, bytes, 0, NULL, NULL);
    return tn__cl_check(own(device), error, "copying memory");
}

/* ---- opening ---- */

static const tn__device_ops cl_ops = {
    .allocate = cl_allocate,
    .release = cl_release,
    .read = copy,
    .write = copy,
    .copy = copy,
    .load = tn__cl_load,
    .run = tn__cl_run,
    .unload = tn__cl_unload,
    .supports = tn__cl_supports,
};

static void find_capabilities(tn__device *device, cl_device_id id)
{
    cl_uint units = 1;
    cl_ulong local = 0, total = 0;
    clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    clGetDeviceInfo(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    clGetDeviceInfo(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof total, &total, NULL);
    const cl_ulong fixed = 24 << 10; /* tn_together, which every kernel has */
    device->capabilities = (tn__capabilities){
        .target = TN__TARGET_OPENCL,
        .threads = (int)units,
        .multiprocessors = (int)units,
        .shared_memory = local > fixed ? local - fixed : 0,
        .total_memory = total,
    };
}

static tn_status cl_open(int index, tn__device *device)
{
    cl_int error;
    tn__cl_device *made = tn__calloc(1, sizeof *made);
    if (made == NULL)
        return tn__fail_memory("opencl", sizeof *made);
    made->name = device->name;
    made->id = devices[index];
    made->context = clCreateContext(NULL, 1, &made->id, NULL, NULL, &error);
    if (error == CL_SUCCESS)
        made->queue = clCreateCommandQueueWithProperties(made->context, made->id, NULL, &error);
    if (error != CL_SUCCESS) {
        tn_status status = tn__cl_check(made, error, "opening the device");
        if (made->context)
            clReleaseContext(made->context);
        tn__free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL);
    device->ops = &cl_ops;
    device->backend_data = made;
    find_capabilities(device, made->id);
    return TN_OK;
}

static const tn__backend backend = {.name = "opencl", .count = cl_count, .open = cl_open};

TN__PLUGIN_BEGIN
extern const tn__plugin tn__plugin_opencl;
TN__PLUGIN_END
const tn__plugin tn__plugin_opencl = {.version = TN_BUILD_VERSION, .backend = &backend};
