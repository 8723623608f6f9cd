/* SPDX-License-Identifier: MIT */
#include "cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/plugin.h"

fake_driver fake;

/* ---- the stream ---- */

typedef enum work_kind { COPY, SET, LAUNCH } work_kind;

typedef struct work {
    work_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    char name[64];
    int64_t words[32];
    const uint64_t *scalars;
    int64_t *fault;
} work;

#define LONGEST 4096
static work queue[LONGEST];
static size_t first, last; /* of what waits, counted from the start of the test */

static CUresult put(work w)
{
    if (last - first == LONGEST)
        abort();
    queue[last++ % LONGEST] = w;
    return CUDA_SUCCESS;
}

static void flush_until(size_t end)
{
    for (; first < end; first++) {
        work *w = &queue[first % LONGEST];
        if (w->kind == COPY)
            memmove(w->to, w->from, w->bytes);
        else if (w->kind == SET)
            memset(w->to, 0, w->bytes);
        else if (fake.kernel_runs)
            fake.kernel_runs(w->name, w->words, w->scalars, w->fault);
    }
}

void fake_flush(void) { flush_until(last); }

/* ---- the driver ---- */

static CUresult fake_init(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

static CUresult fake_version(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

static CUresult fake_error(CUresult result, const char **text)
{
    *text = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "FAKE_ILLEGAL_ADDRESS" : "FAKE_ERROR";
    return CUDA_SUCCESS;
}

static CUresult fake_device_count(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

static CUresult fake_device_get(CUdevice *device, int index)
{
    *device = index;
    return CUDA_SUCCESS;
}

static CUresult fake_name(char *name, int size, CUdevice device)
{
    snprintf(name, size, "Fake %d", device);
    return CUDA_SUCCESS;
}

static CUresult fake_attribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return CUDA_SUCCESS;
}

static CUresult fake_total(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

static CUresult fake_retain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)&fake;
    return CUDA_SUCCESS;
}

static CUresult fake_let_go(CUdevice device) { return (void)device, CUDA_SUCCESS; }
static CUresult fake_current(CUcontext context) { return (void)context, CUDA_SUCCESS; }

static CUresult fake_stream(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = (CUstream)&queue;
    return CUDA_SUCCESS;
}

static CUresult fake_stream_end(CUstream stream) { return (void)stream, CUDA_SUCCESS; }

static CUresult fake_wait(CUstream stream)
{
    (void)stream;
    fake.count.waits++;
    fake_flush();
    return fake.next_wait;
}

/* An event is the end of the queue when it was recorded. */
static CUresult fake_event(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(size_t));
    return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_event_end(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

static CUresult fake_record(CUevent event, CUstream stream)
{
    (void)stream;
    *(size_t *)event = last;
    return CUDA_SUCCESS;
}

static CUresult fake_event_wait(CUevent event)
{
    fake.count.event_waits++;
    flush_until(*(size_t *)event > first ? *(size_t *)event : first);
    return CUDA_SUCCESS;
}

static CUresult fake_allocate(CUdeviceptr *memory, size_t bytes)
{
    if (bytes > fake.memory_left)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *block = calloc(1, bytes);
    if (block == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.memory_left -= bytes;
    fake.count.allocations++;
    *memory = (CUdeviceptr)block;
    return CUDA_SUCCESS;
}

static CUresult fake_free(CUdeviceptr memory)
{
    fake_flush();
    fake.count.releases++;
    free((void *)memory);
    return CUDA_SUCCESS;
}

static CUresult fake_pin(void **memory, size_t bytes)
{
    fake.count.pinned++;
    *memory = calloc(1, bytes);
    return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_unpin(void *memory)
{
    fake.count.unpinned++;
    free(memory);
    return CUDA_SUCCESS;
}

static CUresult fake_to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    fake.count.host_to_device++;
    return put((work){.kind = COPY, .to = (void *)to, .from = from, .bytes = bytes});
}

static CUresult fake_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    fake.count.device_to_host++;
    return put((work){.kind = COPY, .to = to, .from = (void *)from, .bytes = bytes});
}

static CUresult fake_inside(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    fake.count.device_to_device++;
    return put((work){.kind = COPY, .to = (void *)to, .from = (void *)from, .bytes = bytes});
}

static CUresult fake_set(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream, (void)value; /* the backend only ever clears */
    fake.count.sets++;
    return put((work){.kind = SET, .to = (void *)to, .bytes = bytes});
}

static CUresult fake_module(CUmodule *module, const void *image)
{
    fake.count.modules++;
    *module = (CUmodule)strdup(image);
    return CUDA_SUCCESS;
}

static CUresult fake_unload(CUmodule module)
{
    fake.count.unloads++;
    free(module);
    return CUDA_SUCCESS;
}

/* A function is the place of its name in the module's text. */
static CUresult fake_function(CUfunction *function, CUmodule module, const char *name)
{
    *function = (CUfunction)strstr((const char *)module, name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult fake_function_set(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    fake.count.sets++;
    return CUDA_SUCCESS;
}

static CUresult fake_launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                            unsigned shared, CUstream stream, void **params, void **extra)
{
    (void)stream, (void)extra;
    if (y != 1 || z != 1 || ty != 1 || tz != 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake.next_launch != CUDA_SUCCESS)
        return fake.next_launch;
    fake.count.launches++;
    fake.blocks = x;
    fake.threads = tx;
    fake.shared = shared;
    sscanf((const char *)function, "%63[a-z_0-9]", fake.kernel);
    work w = {.kind = LAUNCH};
    int number;
    if (sscanf(fake.kernel, "k%d", &number) != 1)
        return CUDA_SUCCESS;
    strcpy(w.name, fake.kernel);
    memcpy(w.words, params[0], fake.words * sizeof *w.words);
    w.scalars = *(const uint64_t **)params[1];
    w.fault = *(int64_t **)params[2];
    return put(w);
}

/* ---- the compiler: its machine code is the text ---- */

static nvrtcResult fake_compiler_version(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

static const char *fake_compiler_error(nvrtcResult result) { return result ? "FAKE_COMPILATION" : "none"; }

static nvrtcResult fake_arch_count(int *count)
{
    *count = 2;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_archs(int *list)
{
    list[0] = 80;
    list[1] = 90;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_create(nvrtcProgram *program, const char *source, const char *name, int count,
                               const char *const *headers, const char *const *names)
{
    (void)name, (void)count, (void)headers, (void)names;
    *program = (nvrtcProgram)strdup(source);
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_destroy(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_compile(nvrtcProgram program, int count, const char *const *options)
{
    bool fmad = true;
    for (int i = 0; i < count; i++)
        fmad = fmad && strcmp(options[i], "--fmad=false") != 0;
    fake.count.compilations++;
    return fmad || strstr((const char *)program, "#error") ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}

static nvrtcResult fake_size(nvrtcProgram program, size_t *size)
{
    *size = strlen((const char *)program) + 1;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_code(nvrtcProgram program, char *code)
{
    strcpy(code, (const char *)program);
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_log_size(nvrtcProgram program, size_t *size)
{
    (void)program;
    *size = sizeof "the compiler's log";
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_log(nvrtcProgram program, char *log)
{
    (void)program;
    strcpy(log, "the compiler's log");
    return NVRTC_SUCCESS;
}

/* ---- together ---- */

static const tn__cuda_libraries libraries = {
    .driver = {.cuInit = fake_init, .cuDriverGetVersion = fake_version, .cuGetErrorName = fake_error,
               .cuGetErrorString = fake_error, .cuDeviceGetCount = fake_device_count, .cuDeviceGet = fake_device_get,
               .cuDeviceGetName = fake_name, .cuDeviceGetAttribute = fake_attribute, .cuDeviceTotalMem = fake_total,
               .cuDevicePrimaryCtxRetain = fake_retain, .cuDevicePrimaryCtxRelease = fake_let_go,
               .cuCtxSetCurrent = fake_current, .cuStreamCreate = fake_stream, .cuStreamDestroy = fake_stream_end,
               .cuStreamSynchronize = fake_wait, .cuEventCreate = fake_event, .cuEventDestroy = fake_event_end,
               .cuEventRecord = fake_record, .cuEventSynchronize = fake_event_wait, .cuMemAlloc = fake_allocate,
               .cuMemFree = fake_free, .cuMemAllocHost = fake_pin, .cuMemFreeHost = fake_unpin,
               .cuMemcpyHtoDAsync = fake_to_device, .cuMemcpyDtoHAsync = fake_to_host, .cuMemcpyDtoDAsync = fake_inside,
               .cuMemsetD8Async = fake_set, .cuModuleLoadData = fake_module, .cuModuleUnload = fake_unload,
               .cuModuleGetFunction = fake_function, .cuFuncSetAttribute = fake_function_set,
               .cuLaunchKernel = fake_launch},
    .compiler = {.nvrtcVersion = fake_compiler_version, .nvrtcGetErrorString = fake_compiler_error,
                 .nvrtcGetNumSupportedArchs = fake_arch_count, .nvrtcGetSupportedArchs = fake_archs,
                 .nvrtcCreateProgram = fake_create, .nvrtcDestroyProgram = fake_destroy,
                 .nvrtcCompileProgram = fake_compile, .nvrtcGetProgramLogSize = fake_log_size,
                 .nvrtcGetProgramLog = fake_log, .nvrtcGetCUBINSize = fake_size, .nvrtcGetCUBIN = fake_code,
                 .nvrtcGetPTXSize = fake_size, .nvrtcGetPTX = fake_code},
    .driver_version = 13000,
    .compiler_version = 10, /* no real one: what it leaves in the cache is not for a GPU */
    .device_count = 1,
};

tn__device *fake_open(void)
{
    static tn__device device;
    fake_flush();
    tn__cuda_use(&libraries);
    memset(&fake, 0, sizeof fake);
    fake.memory_left = (size_t)1 << 30;
    fake.words = 4;
    free(device.backend_data);
    memset(&device, 0, sizeof device);
    return tn__plugin_cuda.backend->open(0, &device) == TN_OK ? &device : NULL;
}
