/* SPDX-License-Identifier: MIT */
/*
 * Loads backends from libtanso-<name>.so: from the folder $TANSO_PLUGIN_DIR, else from beside the object that contains
 * this code. The CUDA kind is registered even without its plug-in: if that cannot be loaded, the reason is kept for
 * error messages. Other kinds are registered when a device of that name is first asked for.
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

#define FILE_NAME "libtanso-%s.so"

/* Why a plug-in cannot be used. */
typedef struct reason {
    char text[2 * PATH_MAX];
} reason;

/* The plug-in that an opened object exports, if its version fits this library; NULL with the reason. */
static const tn__plugin *accept(void *handle, const char *name, const char *path, reason *why)
{
    char symbol[48];
    snprintf(symbol, sizeof symbol, "tn__plugin_%s", name);
    const tn__plugin *plugin = dlsym(handle, symbol);
    if (plugin == NULL || plugin->version == NULL || strcmp(plugin->version, TN_BUILD_VERSION) != 0) {
        snprintf(why->text, sizeof why->text, "%s is of tanso %s, and this is %s: install both of one version", path,
                 plugin && plugin->version ? plugin->version : "(unknown)", TN_BUILD_VERSION);
        return NULL;
    }
    if (dlsym(handle, "tn__backend_register") != (void *)tn__backend_register) {
        snprintf(why->text, sizeof why->text,
                 "%s works with libtanso.so, which this program does not use: link the backend's objects in", path);
        return NULL;
    }
    return plugin;
}

/* Loads a plug-in; `title` is its name in messages, such as "CUDA". NULL with the reason. */
static const tn__plugin *load_from(const char *name, const char *title, const char *path, reason *why)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        snprintf(why->text, sizeof why->text, "the %s plug-in cannot be loaded: %s", title, dlerror());
        return NULL;
    }
    const tn__plugin *plugin = accept(handle, name, path, why);
    if (plugin == NULL)
        dlclose(handle); /* an accepted one stays loaded until the process ends */
    else
        tn__log(TN__LOG_DEBUG, "backends", "loaded %s", path);
    return plugin;
}

/* ---- kinds of plug-ins' own ---- */

tn_status tn__plugin_load(const char *name)
{
    char file[48], path[PATH_MAX];
    reason why;
    snprintf(file, sizeof file, FILE_NAME, name);
    if (!tn__plugin_path(file, path, sizeof path) || access(path, F_OK) != 0)
        return TN_ERR_NAME;
    const tn__plugin *plugin = load_from(name, name, path, &why);
    if (plugin == NULL)
        return tn__fail(TN_ERR_DEVICE, name, "%s", why.text);
    return strcmp(plugin->backend->name, name) == 0
               ? tn__backend_register(plugin->backend)
               : tn__fail(TN_ERR_DEVICE, name, "%s brings devices of another name, %s", path, plugin->backend->name);
}

/* ---- CUDA ---- */

static reason why_absent;
static const tn__backend *backend; /* NULL: why_absent says why */

static void load(void)
{
#ifdef TN_CUDA_PLUGIN_BUILT
    const char *hint = "";
#else
    const char *hint = "; this tanso was built without the plug-in, as CUDA's headers were not found";
#endif
    char path[PATH_MAX];
    const tn__plugin *plugin = &tn__plugin_cuda;
    if (plugin == NULL && !tn__plugin_path("libtanso-cuda.so", path, sizeof path))
        snprintf(why_absent.text, sizeof why_absent.text,
                 "the folder of the CUDA plug-in is unknown: set TANSO_PLUGIN_DIR to it");
    else if (plugin == NULL && access(path, F_OK) != 0)
        snprintf(why_absent.text, sizeof why_absent.text, "the CUDA plug-in is not there: no file %s%s", path, hint);
    else if (plugin == NULL)
        plugin = load_from("cuda", "CUDA", path, &why_absent);
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
    *why = why_absent.text;
    return 0;
}

static tn_status cuda_open(int index, tn__device *device)
{
    return loaded() ? backend->open(index, device) : tn__fail(TN_ERR_DEVICE, "cuda", "%s", why_absent.text);
}

const tn__backend tn__backend_cuda = {.name = "cuda", .kind = TN_DEVICE_CUDA, .count = cuda_count, .open = cuda_open};
