/* SPDX-License-Identifier: MIT */
/* Objects of kernels: compiling texts into the folder, and opening what lies there. */
#include "backends/cpu/jit/objects.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"

void tn__cpu_object_name(char final[TN__KERNEL_NAME], const char *key)
{
    snprintf(final, TN__KERNEL_NAME, "%.60s.so", key);
}

void tn__cpu_job_start(tn__cpu_call *c, tn__cpu_job *j, const char *name, const char *text)
{
    char unique[TN__KERNEL_NAME];
    tn__kernel_unique(unique, name);
    snprintf(j->n.source, TN__KERNEL_NAME, "%.60s.c", unique);
    snprintf(j->n.object, TN__KERNEL_NAME, "%.60s.tmp", unique);
    snprintf(j->n.log, TN__KERNEL_NAME, "%.60s.log", unique);
    j->began = tn__seconds();
    j->bytes = strlen(text);
    j->run = (tn__compiling){.compiler = &c->compiler, .watch = &c->watch, .folder = c->folder.file,
                             .source = j->n.source, .object = j->n.object, .log = j->n.log};
    j->status = tn__kernel_put(&c->folder, j->n.source, text, j->bytes);
    if (j->status == TN_OK)
        j->status = tn__compiler_start(&j->run);
    j->running = j->status == TN_OK;
}

void tn__cpu_job_look(tn__cpu_call *c, tn__cpu_job *j, bool wait)
{
    bool done;
    j->status = tn__compiler_look(&j->run, wait, &done);
    if (!done)
        return;
    j->running = false;
    if (j->status == TN_OK)
        j->status = tn__kernel_seal(&c->folder, j->n.object);
    j->compiled = j->status == TN_OK;
    if (j->compiled)
        tn__log(TN__LOG_INFO, "kernels", "compiled %zu bytes in %.0f ms: %s", j->bytes,
                1e3 * (tn__seconds() - j->began), c->folder.path);
}

void tn__cpu_job_end(tn__cpu_call *c, tn__cpu_job *j)
{
    while (j->running)
        tn__cpu_job_look(c, j, true);
    unlinkat(c->folder.file, j->n.source, 0);
    unlinkat(c->folder.file, j->n.log, 0);
    unlinkat(c->folder.file, j->n.object, 0);
}

/* Opens a shared object that has all the kernels; NULL, with the reason in *why, if it has not. */
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

void *tn__cpu_object_find(tn__cpu_call *c, const char *key, int count, const char *const *kernel)
{
    char final[TN__KERNEL_NAME];
    const char *why = "";
    tn__cpu_object_name(final, key);
    int before = c->file_count;
    tn__kernel_file only, *file = c->file ? tn__kernel_file_of(&c->folder, final, c->file, &c->file_count) : &only;
    if (file && (file == &only || c->file_count > before))
        file->good = tn__kernel_intact(&c->folder, final);
    if (!file)
        return NULL;
    if (!file->good) { /* by any of its names: else a new file would find this one taken */
        unlinkat(c->folder.file, final, 0);
        return NULL;
    }
    void *handle = open_object(&c->folder, final, count, kernel, &why);
    if (handle) {
        atomic_fetch_add(&tn__kernels_found, 1);
        tn__log(TN__LOG_DEBUG, "kernels", "found %s/%s", c->folder.path, final);
        return handle;
    }
    tn__log(TN__LOG_WARN, "kernels", "%s/%s cannot be loaded (%s): compiling it again", c->folder.path, final, why);
    unlinkat(c->folder.file, final, 0);
    return NULL;
}

tn_status tn__cpu_object_take(tn__cpu_call *c, const tn__cpu_job *j, const char *key, int count,
                              const char *const *kernel, void **handle)
{
    char final[TN__KERNEL_NAME];
    const char *why = "";
    tn__cpu_object_name(final, key);
    tn_status status = tn__kernel_link(&c->folder, j->n.object, final);
    if (status != TN_OK)
        return status;
    *handle = open_object(&c->folder, final, count, kernel, &why);
    if (c->folder.temporary || *handle == NULL)
        unlinkat(c->folder.file, final, 0);
    if (*handle == NULL)
        return tn__fail(TN_ERR_COMPILE, "kernels", "compiled code cannot be loaded: %s", why);
    atomic_fetch_add(&tn__kernels_compiled, 1);
    return TN_OK;
}
