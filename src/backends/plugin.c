/* SPDX-License-Identifier: MIT */
/*
 * Loads the CUDA backend from libtanso-cuda.so: in the folder $TANSO_PLUGIN_DIR names, else beside the object that
 * holds this code. Where it cannot be had, the reason is kept for whoever asks.
 */
#include "backends/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "core/plugin.h"
#include "tn_build_config.h"

#define FILE_NAME "libtanso-cuda.so"

static char why_absent[2 * PATH_MAX];
static const tn__backend *backend; /* NULL: why_absent says why */

/* The plug-in of an opened object, if it may be used with this library. */
static const tn__plugin *accept(void *handle, const char *path)
{
    const tn__plugin *plugin = dlsym(handle, "tn__plugin_cuda");
    if (plugin == NULL || plugin->version == NULL || strcmp(plugin->version, TN_BUILD_VERSION) != 0) {
        snprintf(why_absent, sizeof why_absent, "%s is of tanso %s, and this is %s: install both of one version", path,
                 plugin && plugin->version ? plugin->version : "(unknown)", TN_BUILD_VERSION);
        return NULL;
    }
    if (dlsym(handle, "tn__backend_register") != (void *)tn__backend_register) {
        snprintf(why_absent, sizeof why_absent,
                 "%s works with libtanso.so, which this program does not use: link the backend's objects in", path);
        return NULL;
    }
    return plugin;
}

static const tn__plugin *load_from(const char *path)
{
    if (access(path, F_OK) != 0) {
#ifdef TN_CUDA_PLUGIN_BUILT
        const char *hint = "";
#else
        const char *hint = "; this tanso was built without the plug-in, as CUDA's headers were not found";
#endif
        snprintf(why_absent, sizeof why_absent, "the CUDA plug-in is not there: no file %s%s", path, hint);
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        snprintf(why_absent, sizeof why_absent, "the CUDA plug-in cannot be loaded: %s", dlerror());
        return NULL;
    }
    const tn__plugin *plugin = accept(handle, path);
    if (plugin == NULL)
        dlclose(handle); /* an accepted one stays for the process */
    else
        tn__log(TN__LOG_DEBUG, "backends", "loaded %s", path);
    return plugin;
}

static void load(void)
{
    char path[PATH_MAX];
    const tn__plugin *plugin = &tn__plugin_cuda;
    if (plugin == NULL && tn__plugin_path(FILE_NAME, path, sizeof path))
        plugin = load_from(path);
    else if (plugin == NULL)
        snprintf(why_absent, sizeof why_absent,
                 "the folder of the CUDA plug-in is unknown: set TANSO_PLUGIN_DIR to it");
    backend = plugin ? plugin->backend : NULL;
}

static const tn__backend *loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return backend;
}

static int cuda_count(const char **why)
{
    if (loaded())
        return backend->count(why);
    *why = why_absent;
    return 0;
}

static tn_status cuda_open(int index, tn__device *device)
{
    return loaded() ? backend->open(index, device) : tn__fail(TN_ERR_DEVICE, "cuda", "%s", why_absent);
}

const tn__backend tn__backend_cuda = {.name = "cuda", .kind = TN_DEVICE_CUDA, .count = cuda_count, .open = cuda_open};
