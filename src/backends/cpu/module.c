/* SPDX-License-Identifier: MIT */
/*
 * Modules: a program's kernels, loaded once in a process whoever asks, from the cache if they are there. Compiling
 * happens outside the lock: two threads, or two processes, may compile the same text at once, and one result wins.
 */
#include "backends/cpu/module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/compiler.h"
#include "device/kernel_cache.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"

struct tn__cpu_module {
    char name[33]; /* hash of all that the code depends on */
    int references;
    void *handle;
    tn__cpu_module *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__cpu_module *loaded;

/* ---- the table ---- */

static tn__cpu_module *find_and_retain(const char *name)
{
    tn__cpu_module *module = loaded;
    while (module && strcmp(module->name, name) != 0)
        module = module->next;
    if (module)
        module->references++;
    return module;
}

/* Enters a loaded handle; if another thread was first, its module is taken. */
static tn_status enter(const char *name, void *handle, tn__cpu_module **module)
{
    tn__cpu_module *fresh = tn__calloc(1, sizeof(*fresh));
    if (fresh == NULL) {
        dlclose(handle);
        return tn__fail_memory("kernels", sizeof(*fresh));
    }
    pthread_mutex_lock(&lock);
    *module = find_and_retain(name);
    if (*module == NULL) {
        memcpy(fresh->name, name, sizeof(fresh->name));
        fresh->references = 1;
        fresh->handle = handle;
        fresh->next = loaded;
        loaded = *module = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (fresh) {
        tn__free(fresh);
        dlclose(handle);
    }
    return TN_OK;
}

void tn__cpu_module_release(tn__cpu_module *module)
{
    pthread_mutex_lock(&lock);
    bool last = --module->references == 0;
    if (last) {
        tn__cpu_module **link = &loaded;
        while (*link != module)
            link = &(*link)->next;
        *link = module->next;
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        dlclose(module->handle);
        tn__free(module);
    }
}

tn__cpu_kernel tn__cpu_module_kernel(const tn__cpu_module *module, const char *name)
{
    tn__cpu_kernel kernel;
    void *symbol = dlsym(module->handle, name);
    memcpy(&kernel, &symbol, sizeof(kernel)); /* ISO C has no cast from an object to a function */
    return kernel;
}

/* ---- compiling and opening ---- */

/* Names in the folder. */
typedef struct names {
    char source[TN__KERNEL_NAME], object[TN__KERNEL_NAME], log[TN__KERNEL_NAME], final[TN__KERNEL_NAME];
} names;

static void name_files(names *n, const char *name)
{
    char unique[TN__KERNEL_NAME];
    tn__kernel_unique(unique, name);
    snprintf(n->final, TN__KERNEL_NAME, "%.60s.so", name);
    snprintf(n->source, TN__KERNEL_NAME, "%.60s.c", unique);
    snprintf(n->object, TN__KERNEL_NAME, "%.60s.tmp", unique);
    snprintf(n->log, TN__KERNEL_NAME, "%.60s.log", unique);
}

/* Leaves the compiled text at n->final. */
static tn_status compile(const tn__compiler *compiler, const tn__kernel_folder *folder, const char *source,
                         const names *n)
{
    double start = tn__seconds();
    tn_status status = tn__kernel_put(folder, n->source, source, strlen(source));
    if (status != TN_OK)
        return status;
    status = tn__compiler_run(compiler, folder->file, n->source, n->object, n->log);
    if (status == TN_OK)
        status = tn__kernel_seal(folder, n->object);
    if (status == TN_OK)
        status = tn__kernel_rename(folder, n->object, n->final);
    unlinkat(folder->file, n->source, 0);
    unlinkat(folder->file, n->log, 0);
    unlinkat(folder->file, n->object, 0);
    if (status == TN_OK) {
        atomic_fetch_add(&tn__kernels_compiled, 1);
        tn__log(TN__LOG_INFO, "kernels", "compiled %zu bytes in %.0f ms: %s/%s", strlen(source),
                1e3 * (tn__seconds() - start), folder->path, n->final);
    }
    return status;
}

/* Opens a file that has every kernel; NULL with *why if it is not so. */
static void *open_object(const tn__kernel_folder *folder, const char *name, int count, const char *const *kernel,
                         const char **why)
{
    char path[PATH_MAX];
    if (tn__kernel_path(folder, name, path) == NULL) {
        *why = "there is no /proc, and others can change what its path leads to";
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; handle && i < count; i++)
        if (dlsym(handle, kernel[i]) == NULL) {
            *why = kernel[i];
            dlclose(handle);
            return NULL;
        }
    if (handle == NULL)
        *why = dlerror();
    return handle;
}

/* From the folder, compiled if it is not there. */
static tn_status obtain(const tn__compiler *compiler, tn__kernel_folder *folder, const char *name, const char *source,
                        int count, const char *const *kernel, void **handle)
{
    names n;
    const char *why = "";
    name_files(&n, name);
    if (tn__kernel_intact(folder, n.final)) {
        *handle = open_object(folder, n.final, count, kernel, &why);
        if (*handle) {
            atomic_fetch_add(&tn__kernels_found, 1);
            tn__log(TN__LOG_DEBUG, "kernels", "found %s/%s", folder->path, n.final);
            return TN_OK;
        }
        tn__log(TN__LOG_WARN, "kernels", "%s/%s cannot be loaded (%s): compiling it again", folder->path, n.final,
                why);
        unlinkat(folder->file, n.final, 0);
    }
    tn_status status = tn__kernel_folder_with_room(folder);
    if (status == TN_OK)
        status = compile(compiler, folder, source, &n);
    if (status != TN_OK)
        return status;
    *handle = open_object(folder, n.final, count, kernel, &why);
    if (folder->temporary || *handle == NULL)
        unlinkat(folder->file, n.final, 0);
    return *handle ? TN_OK : tn__fail(TN_ERR_COMPILE, "kernels", "compiled code cannot be loaded: %s", why);
}

tn_status tn__cpu_module_load(const char *source, int count, const char *const *kernel, tn__cpu_module **module)
{
    tn__compiler compiler;
    tn_status status = tn__compiler_find(&compiler);
    if (status != TN_OK)
        return status;
    char name[33];
    tn__text key = {0};
    tn__text_add(&key, "tanso kernels 1\n");
    tn__compiler_identity(&compiler, &key);
    tn__text_add(&key, "\n");
    tn__text_add(&key, source);
    if (!key.failed)
        tn__hash_name(key.data, key.length, name);
    size_t length = key.length;
    bool failed = key.failed;
    tn__free(tn__text_take(&key));
    if (failed)
        return tn__fail_memory("kernels", length);

    pthread_mutex_lock(&lock);
    *module = find_and_retain(name);
    pthread_mutex_unlock(&lock);
    if (*module) {
        atomic_fetch_add(&tn__kernels_found, 1);
        return TN_OK;
    }
    tn__kernel_folder folder;
    status = tn__kernel_folder_open(&folder);
    if (status != TN_OK)
        return status;
    void *handle = NULL;
    status = obtain(&compiler, &folder, name, source, count, kernel, &handle);
    tn__kernel_folder_close(&folder);
    return status == TN_OK ? enter(name, handle, module) : status;
}
