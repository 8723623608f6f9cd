/* SPDX-License-Identifier: MIT */
/*
 * Modules: a program's kernels, loaded once in a process whoever asks, from the cache if they are there. Compiling
 * happens outside the lock: two threads, or two processes, may compile the same text at once, and one result wins.
 */
#include "backends/cpu/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

typedef struct paths {
    char source[PATH_MAX], object[PATH_MAX], log[PATH_MAX], final[PATH_MAX];
} paths;

static void name_paths(paths *p, const tn__kernel_folder *folder, const char *name)
{
    static _Atomic unsigned counter;
    unsigned number = atomic_fetch_add(&counter, 1);
    int process = (int)getpid();
    snprintf(p->final, PATH_MAX, "%s/%s.so", folder->path, name);
    snprintf(p->source, PATH_MAX, "%s/%s-%d-%u.c", folder->path, name, process, number);
    snprintf(p->object, PATH_MAX, "%s/%s-%d-%u.tmp", folder->path, name, process, number);
    snprintf(p->log, PATH_MAX, "%s/%s-%d-%u.log", folder->path, name, process, number);
}

static tn_status write_source(const char *path, const char *source)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = file >= 0;
    for (size_t left = strlen(source); good && left > 0;) {
        ssize_t written = write(file, source, left);
        good = written > 0 || (written < 0 && errno == EINTR);
        if (written > 0) {
            source += written;
            left -= written;
        }
    }
    int failed = errno;
    if (file >= 0)
        close(file);
    return good ? TN_OK : tn__fail(TN_ERR_COMPILE, "kernels", "cannot write %s: %s", path, strerror(failed));
}

/* Leaves the compiled text at p->final. */
static tn_status compile(const tn__compiler *compiler, const char *source, const paths *p)
{
    double start = tn__seconds();
    tn_status status = write_source(p->source, source);
    if (status == TN_OK)
        status = tn__compiler_run(compiler, p->source, p->object, p->log);
    if (status == TN_OK)
        status = tn__kernel_seal(p->object);
    if (status == TN_OK && rename(p->object, p->final) != 0)
        status =
            tn__fail(TN_ERR_COMPILE, "kernels", "cannot rename %s to %s: %s", p->object, p->final, strerror(errno));
    unlink(p->source);
    unlink(p->log);
    unlink(p->object);
    if (status == TN_OK) {
        atomic_fetch_add(&tn__kernels_compiled, 1);
        tn__log(TN__LOG_INFO, "kernels", "compiled %zu bytes in %.0f ms: %s", strlen(source),
                1e3 * (tn__seconds() - start), p->final);
    }
    return status;
}

/* Opens a file that has every kernel; NULL with *why if it is not so. */
static void *open_object(const char *path, int count, const char *const *kernel, const char **why)
{
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
    paths p;
    const char *why = "";
    name_paths(&p, folder, name);
    if (tn__kernel_intact(p.final)) {
        *handle = open_object(p.final, count, kernel, &why);
        if (*handle) {
            atomic_fetch_add(&tn__kernels_found, 1);
            tn__log(TN__LOG_DEBUG, "kernels", "found %s", p.final);
            return TN_OK;
        }
        tn__log(TN__LOG_WARN, "kernels", "%s cannot be loaded (%s): compiling it again", p.final, why);
        unlink(p.final);
    }
    tn_status status = tn__kernel_folder_with_room(folder);
    if (status == TN_OK && folder->temporary)
        name_paths(&p, folder, name);
    if (status == TN_OK)
        status = compile(compiler, source, &p);
    if (status != TN_OK)
        return status;
    *handle = open_object(p.final, count, kernel, &why);
    if (folder->temporary || *handle == NULL)
        unlink(p.final);
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
