/* SPDX-License-Identifier: MIT */
/*
 * Kernels from text: NVRTC's machine code for the GPU that is there, from the folder of compiled kernels if it has been
 * made before, loaded once a device.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/runtime/module.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"

struct tn__cuda_module {
    char name[33]; /* hash of all that the code depends on */
    int references;
    tn__cuda_image *image;
    tn__cuda_module *next;
};

/* ---- the folder ---- */

/* Without a folder a GPU's code is compiled anew in each process. */
void tn__cuda_find_folder(tn__kernel_folder *folder)
{
    bool clean = !tn__latched();
    if (tn__kernel_folder_open(folder) == TN_OK)
        return;
    if (clean)
        tn_clear_error();
    *folder = (tn__kernel_folder){.file = -1, .temporary = true};
}

/* Tells, once a process and before it happens, that a first run waits for the compiler. */
void tn__cuda_tell_of_pause(const tn__cuda_device *device, const tn__kernel_folder *folder)
{
    static atomic_bool told;
    if (atomic_exchange(&told, true))
        return;
    tn__log(TN__LOG_NOTE, "kernels", "compiling for %s, which a program's first run waits for: %s%s", device->product,
            folder->temporary ? "not kept, so the next run waits, too (see TANSO_CACHE_DIR)" : "kept in ",
            folder->temporary ? "" : folder->path);
}

void tn__cuda_file_name(char file[TN__CUDA_FILE], const char *key)
{
    snprintf(file, TN__CUDA_FILE, "%.32s.cubin", key);
}

/* Code is kept under its kernels' names. */
void tn__cuda_keep(const tn__kernel_folder *folder, int count, char (*key)[TN__KEY], const int *kernel,
                   const char *code, size_t length)
{
    char unique[TN__KERNEL_NAME], file[TN__CUDA_FILE];
    bool clean = !tn__latched(), kept = !folder->temporary;
    if (!kept)
        return;
    tn__kernel_unique(unique, key[kernel[0]]);
    strcat(unique, ".tmp");
    tn__kernel_keep(folder, unique, code, length);
    for (int i = 0; i < count && kept; i++) {
        tn__cuda_file_name(file, key[kernel[i]]);
        kept = tn__kernel_link(folder, unique, file) == TN_OK;
    }
    if (!kept && clean)
        tn_clear_error(); /* tn__kernel_keep has told */
    tn__kernel_remove(folder, unique);
}

/* Loads code onto the device; if there is no memory for it, once more after freeing what can be freed. */
static CUresult load_code(tn__cuda_device *device, CUmodule *handle, const char *code)
{
    CUresult result;
    do
        result = device->driver->cuModuleLoadData(handle, code);
    while (result == CUDA_ERROR_OUT_OF_MEMORY && tn__device_relieve(device->owner));
    return result;
}

/* ---- loaded modules ---- */

void tn__cuda_image_release(tn__cuda_device *device, tn__cuda_image *loaded)
{
    pthread_mutex_lock(&device->lock);
    bool last = --loaded->references == 0;
    pthread_mutex_unlock(&device->lock);
    if (last) {
        device->driver->cuModuleUnload(loaded->handle);
        tn__free(loaded);
    }
}

/* The loaded module of that name, with one more user, or NULL. */
tn__cuda_module *tn__cuda_module_take(tn__cuda_device *device, const char *name)
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

/* Makes a module of loaded code; several modules may share that. */
tn_status tn__cuda_module_add(tn__cuda_device *device, const char *name, tn__cuda_image *loaded,
                              tn__cuda_module **module)
{
    tn__cuda_module *fresh = tn__calloc(1, sizeof *fresh);
    if (!fresh)
        return tn__fail_memory("kernels", sizeof *fresh);
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    fresh->references = 1;
    fresh->image = loaded;
    pthread_mutex_lock(&device->lock);
    loaded->references++;
    fresh->next = device->modules;
    device->modules = fresh;
    pthread_mutex_unlock(&device->lock);
    *module = fresh;
    return TN_OK;
}

/* Loads code, with a use count of 1. */
tn_status tn__cuda_image_load(tn__cuda_device *device, const char *code, tn__cuda_image **loaded)
{
    tn__cuda_image *fresh = tn__calloc(1, sizeof *fresh);
    if (!fresh)
        return tn__fail_memory("kernels", sizeof *fresh);
    tn_status status = tn__cuda_check(device, load_code(device, &fresh->handle, code), "kernels");
    fresh->references = 1;
    if (status != TN_OK)
        tn__free(fresh);
    else
        *loaded = fresh;
    return status;
}

/* Loads code from the folder, if it is there and the driver accepts it; NULL also without memory. */
tn__cuda_image *tn__cuda_image_find(tn__cuda_device *device, const tn__kernel_folder *folder, const char *file)
{
    size_t length;
    char *code = folder->temporary ? NULL : tn__kernel_read(folder, file, &length);
    tn__cuda_image *loaded = code ? tn__calloc(1, sizeof *loaded) : NULL;
    if (loaded) {
        CUresult result = load_code(device, &loaded->handle, code);
        loaded->references = 1;
        if (result == CUDA_SUCCESS) {
            tn__log(TN__LOG_DEBUG, "kernels", "found %s/%s", folder->path, file);
        } else {
            tn__log(TN__LOG_WARN, "kernels", "%s/%s cannot be loaded (error %d): compiling it again", folder->path,
                    file, (int)result);
            tn__kernel_remove(folder, file);
            tn__free(loaded);
            loaded = NULL;
        }
    }
    tn__free(code);
    return loaded;
}

/* Held while a text is looked up on the disk or compiled. The device's lock is not held meanwhile, so that others can
 * use the device; and GPUs of the same kind that all need a text have it compiled only once. Recursive, as whoever has
 * a program's kernels compiled may load another text meanwhile. */
pthread_mutex_t tn__cuda_loading = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* ---- a text as a whole ---- */

void tn__cuda_compiled(const tn__kernel_folder *folder, size_t bytes, double began, int kernels)
{
    atomic_fetch_add(&tn__kernels_compiled, (uint64_t)kernels);
    tn__log(TN__LOG_INFO, "kernels", "compiled %zu bytes in %.0f ms: %s", bytes, 1e3 * (tn__seconds() - began),
            folder->temporary ? "not kept" : folder->path);
}

static tn_status make_whole(tn__cuda_device *device, const tn__kernel_folder *folder, char (*key)[TN__KEY],
                            const char *source, tn__cuda_image **loaded)
{
    size_t length;
    char *code;
    double began = tn__seconds();
    tn__cuda_tell_of_pause(device, folder);
    tn_status status = tn__cuda_compile(device->libraries, device->architecture, source, &code, &length);
    if (status != TN_OK)
        return status;
    tn__cuda_compiled(folder, strlen(source), began, 1);
    tn__cuda_keep(folder, 1, key, &(int){0}, code, length);
    status = tn__cuda_image_load(device, code, loaded);
    tn__free(code);
    return status;
}

static tn_status load_whole(tn__cuda_device *device, char (*key)[TN__KEY], const char *source, tn__cuda_module **module)
{
    tn__kernel_folder folder;
    char file[TN__CUDA_FILE];
    tn_status status = TN_OK;
    tn__cuda_find_folder(&folder);
    tn__cuda_file_name(file, *key);
    tn__cuda_image *loaded = tn__cuda_image_find(device, &folder, file);
    if (loaded)
        atomic_fetch_add(&tn__kernels_found, 1);
    else
        status = make_whole(device, &folder, key, source, &loaded);
    tn__kernel_folder_close(&folder);
    if (status != TN_OK)
        return status;
    status = tn__cuda_module_add(device, *key, loaded, module);
    tn__cuda_image_release(device, loaded);
    return status;
}

tn_status tn__cuda_module_load(tn__cuda_device *device, const char *source, tn__cuda_module **module)
{
    char key[1][TN__KEY];
    tn__text text = {0};
    tn__cuda_add_identity(device, &text);
    tn__text_add(&text, source);
    bool failed = text.failed;
    size_t length = text.length;
    if (!failed)
        tn__hash_name(text.data, length, *key);
    tn__free(text.data);
    if (failed)
        return tn__fail_memory("kernels", length);
    tn_status status = TN_OK;
    tn__cuda_module *found = tn__cuda_module_take(device, *key);
    if (found == NULL) {
        pthread_mutex_lock(&tn__cuda_loading);
        found = tn__cuda_module_take(device, *key);
        if (found == NULL)
            status = load_whole(device, key, source, module);
        pthread_mutex_unlock(&tn__cuda_loading);
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
        tn__cuda_image_release(device, module->image);
        tn__free(module);
    }
}

const char *tn__cuda_module_name(const tn__cuda_module *module) { return module->name; }

tn_status tn__cuda_module_function(tn__cuda_device *device, tn__cuda_module *module, const char *name,
                                   CUfunction *function)
{
    CUresult result = device->driver->cuModuleGetFunction(function, module->image->handle, name);
    if (result == CUDA_ERROR_NOT_FOUND)
        return tn__fail(TN_ERR_COMPILE, name, "the source has no kernel of this name");
    return tn__cuda_check(device, result, name);
}
