/* SPDX-License-Identifier: MIT */
/*
 * Kernels from text: NVRTC's machine code for the GPU that is there, from the folder of compiled kernels if it has been
 * made before, loaded once a device.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/kernel_cache.h"

struct tn__cuda_module {
    char name[33]; /* hash of all that the code depends on */
    int references;
    CUmodule handle;
    tn__cuda_module *next;
};

/* No fused multiply-add, so that the CPU computes the same bits; division, square roots and small numbers are
 * IEEE's. */
static const char *const options[] = {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
                                      "--std=c++17",  "-default-device"};
enum { OPTIONS = sizeof options / sizeof *options };

/* ---- the compiler ---- */

static tn_status compiler_failed(const tn__cuda_compiler *compiler, nvrtcResult result)
{
    return tn__fail(result == NVRTC_ERROR_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_COMPILE, "kernels", "NVRTC: %s",
                    compiler->nvrtcGetErrorString(result));
}

/* Machine code is for the GPU that is there: from compute capability 9.0 on, with the instructions that only its like
 * have. */
static const char *features(int architecture) { return architecture >= 90 ? "a" : ""; }

/* The architecture to compile for: the GPU's own, or the newest one before it that the compiler knows. */
static int known_architecture(const tn__cuda_compiler *compiler, int wanted)
{
    int list[64], count = 0, best = 0;
    if (compiler->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count > 64 ||
        compiler->nvrtcGetSupportedArchs(list) != NVRTC_SUCCESS)
        return wanted;
    for (int i = 0; i < count; i++)
        if (list[i] <= wanted && list[i] > best)
            best = list[i];
    return best ? best : wanted;
}

static tn_status show_log(const tn__cuda_compiler *compiler, nvrtcProgram program, nvrtcResult result)
{
    size_t length = 0;
    compiler->nvrtcGetProgramLogSize(program, &length);
    char *log = tn__calloc(1, length + 1);
    if (log)
        compiler->nvrtcGetProgramLog(program, log);
    tn_status status = tn__fail(TN_ERR_COMPILE, "kernels", "NVRTC: %s\n%s", compiler->nvrtcGetErrorString(result),
                                log ? log : "(no memory for its log)");
    tn__free(log);
    return status;
}

static tn_status take_image(const tn__cuda_compiler *compiler, nvrtcProgram program, bool machine_code, char **image,
                            size_t *length)
{
    nvrtcResult result = machine_code ? compiler->nvrtcGetCUBINSize(program, length)
                                      : compiler->nvrtcGetPTXSize(program, length);
    if (result != NVRTC_SUCCESS)
        return compiler_failed(compiler, result);
    *image = tn__alloc(*length);
    if (*image == NULL)
        return tn__fail_memory("kernels", *length);
    result = machine_code ? compiler->nvrtcGetCUBIN(program, *image) : compiler->nvrtcGetPTX(program, *image);
    if (result == NVRTC_SUCCESS)
        return TN_OK;
    tn__free(*image);
    return compiler_failed(compiler, result);
}

tn_status tn__cuda_compile(const tn__cuda_libraries *libraries, int architecture, const char *source, char **image,
                           size_t *length)
{
    const tn__cuda_compiler *compiler = &libraries->compiler;
    nvrtcProgram program;
    nvrtcResult result = compiler->nvrtcCreateProgram(&program, source, "kernels.cu", 0, NULL, NULL);
    if (result != NVRTC_SUCCESS)
        return compiler_failed(compiler, result);
    int known = known_architecture(compiler, architecture);
    const char *all[OPTIONS + 1];
    char target[40];
    snprintf(target, sizeof target, "--gpu-architecture=%s_%d%s", known == architecture ? "sm" : "compute", known,
             known == architecture ? features(architecture) : "");
    memcpy(all, options, sizeof options);
    all[OPTIONS] = target;
    result = tn__cuda_compile_program(compiler, program, OPTIONS + 1, all);
    tn_status status = result == NVRTC_SUCCESS
                           ? take_image(compiler, program, known == architecture, image, length)
                           : show_log(compiler, program, result);
    compiler->nvrtcDestroyProgram(&program);
    return status;
}

/* ---- the folder ---- */

/* Hash of all that the code depends on. */
static tn_status name_of(const tn__cuda_device *device, const char *source, char name[33])
{
    tn__text key = {0};
    tn__text_addf(&key, "tanso cuda kernels 1\nNVRTC %d, sm_%d%s\n", device->libraries->compiler_version,
                  device->architecture, features(device->architecture));
    for (int i = 0; i < OPTIONS; i++)
        tn__text_addf(&key, "%s\n", options[i]);
    tn__text_add(&key, source);
    bool failed = key.failed;
    size_t length = key.length;
    if (!failed)
        tn__hash_name(key.data, length, name);
    tn__free(tn__text_take(&key));
    return failed ? tn__fail_memory("kernels", length) : TN_OK;
}

typedef struct place {
    tn__kernel_folder folder;
    char file[48], path[PATH_MAX];
} place;

/* A GPU's code can be had without any folder: it only is compiled anew then. */
static void find_folder(tn__kernel_folder *folder)
{
    bool clean = !tn__latched();
    if (tn__kernel_folder_open(folder) == TN_OK)
        return;
    if (clean)
        tn_clear_error();
    *folder = (tn__kernel_folder){.file = -1, .temporary = true};
}

/* What a first run pauses for, told before it does; once a process. */
static void tell_of_pause(const tn__cuda_device *device, const place *p)
{
    static atomic_bool told;
    if (atomic_exchange(&told, true))
        return;
    bool kept = !p->folder.temporary;
    tn__log(TN__LOG_NOTE, "kernels", "compiling for %s, which a program's first run waits for: %s%s", device->product,
            kept ? "kept in " : "not kept, so the next run waits, too (see TANSO_CACHE_DIR)",
            kept ? p->folder.path : "");
}

/* Compiles a text and puts the code into the folder. */
static tn_status make(const tn__cuda_device *device, const place *p, const char *source, char **image)
{
    size_t length;
    tell_of_pause(device, p);
    double start = tn__seconds();
    tn_status status = tn__cuda_compile(device->libraries, device->architecture, source, image, &length);
    if (status != TN_OK)
        return status;
    atomic_fetch_add(&tn__kernels_compiled, 1);
    tn__log(TN__LOG_INFO, "kernels", "compiled %zu bytes in %.0f ms: %s", strlen(source), 1e3 * (tn__seconds() - start),
            p->folder.temporary ? "not kept" : p->path);
    tn__kernel_keep(&p->folder, p->file, *image, length);
    return TN_OK;
}

/* Code on the device; where that has no memory for it, after what can be had back. */
static CUresult load_code(tn__cuda_device *device, CUmodule *handle, const char *image)
{
    CUresult result;
    do
        result = device->driver->cuModuleLoadData(handle, image);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && tn__device_relieve(device->owner));
    return result;
}

/* Loads what the folder has, if the driver takes it. */
static bool load_found(tn__cuda_device *device, const place *p, CUmodule *handle)
{
    size_t length;
    char *image = p->folder.temporary ? NULL : tn__kernel_read(&p->folder, p->file, &length);
    if (image == NULL)
        return false;
    CUresult result = load_code(device, handle, image);
    tn__free(image);
    if (result != CUDA_SUCCESS) {
        tn__log(TN__LOG_WARN, "kernels", "%s cannot be loaded (error %d): compiling it again", p->path, (int)result);
        return false;
    }
    tn__log(TN__LOG_DEBUG, "kernels", "found %s", p->path);
    atomic_fetch_add(&tn__kernels_found, 1);
    return true;
}

/* ---- loaded modules ---- */

static tn_status load(tn__cuda_device *device, const char *name, const char *source, tn__cuda_module *module)
{
    place p;
    char *image;
    tn_status status = TN_OK;
    find_folder(&p.folder);
    snprintf(p.file, sizeof p.file, "%s.cubin", name);
    snprintf(p.path, sizeof p.path, "%s/%s", p.folder.path, p.file);
    if (!load_found(device, &p, &module->handle)) {
        status = make(device, &p, source, &image);
        if (status == TN_OK) {
            status = tn__cuda_check(device, load_code(device, &module->handle, image), "kernels");
            tn__free(image);
        }
    }
    tn__kernel_folder_close(&p.folder);
    return status;
}

/* The loaded module of that name, with one more user, or NULL. */
static tn__cuda_module *take(tn__cuda_device *device, const char *name)
{
    pthread_mutex_lock(&device->lock);
    tn__cuda_module *found = device->modules;
    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    if (found)
        found->references++;
    pthread_mutex_unlock(&device->lock);
    return found;
}

static tn_status add(tn__cuda_device *device, const char *name, const char *source, tn__cuda_module **module)
{
    tn__cuda_module *fresh = tn__calloc(1, sizeof *fresh);
    tn_status status = fresh ? load(device, name, source, fresh) : tn__fail_memory("kernels", sizeof *fresh);
    if (status != TN_OK) {
        tn__free(fresh);
        return status;
    }
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    fresh->references = 1;
    pthread_mutex_lock(&device->lock);
    fresh->next = device->modules;
    device->modules = fresh;
    pthread_mutex_unlock(&device->lock);
    *module = fresh;
    return TN_OK;
}

/* Held while a text is looked for on the disk or compiled, and not a device's: for as long, the device is others', and
 * GPUs of a kind that all want a text have it compiled once. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

tn_status tn__cuda_module_load(tn__cuda_device *device, const char *source, tn__cuda_module **module)
{
    char name[33];
    tn_status status = name_of(device, source, name);
    if (status != TN_OK)
        return status;
    tn__cuda_module *found = take(device, name);
    if (found == NULL) {
        pthread_mutex_lock(&loading);
        found = take(device, name);
        if (found == NULL)
            status = add(device, name, source, module);
        pthread_mutex_unlock(&loading);
    }
    if (found == NULL)
        return status;
    atomic_fetch_add(&tn__kernels_found, 1);
    *module = found;
    return TN_OK;
}

void tn__cuda_module_release(tn__cuda_device *device, tn__cuda_module *module)
{
    if (module == NULL)
        return;
    pthread_mutex_lock(&device->lock);
    bool last = --module->references == 0;
    if (last) {
        tn__cuda_module **link = &device->modules;
        while (*link != module)
            link = &(*link)->next;
        *link = module->next;
    }
    pthread_mutex_unlock(&device->lock);
    if (last) {
        device->driver->cuModuleUnload(module->handle);
        tn__free(module);
    }
}

const char *tn__cuda_module_name(const tn__cuda_module *module) { return module->name; }

tn_status tn__cuda_module_function(tn__cuda_device *device, tn__cuda_module *module, const char *name,
                                   CUfunction *function)
{
    CUresult result = device->driver->cuModuleGetFunction(function, module->handle, name);
    if (result == CUDA_ERROR_NOT_FOUND)
        return tn__fail(TN_ERR_COMPILE, name, "the source has no kernel of this name");
    return tn__cuda_check(device, result, name);
}
