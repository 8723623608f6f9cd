/* SPDX-License-Identifier: MIT */
/* Where plug-ins lie: in the folder that $TANSO_PLUGIN_DIR names, else beside the object that holds this code. */
#include "core/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The folder of the object that holds this code. */
static bool own_folder(char *folder, size_t size)
{
    static const char here;
    Dl_info info;
    char path[PATH_MAX];
    if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, path))
        return false;
    char *end = strrchr(path, '/');
    if (end == NULL || (size_t)(end - path) >= size)
        return false;
    memcpy(folder, path, (size_t)(end - path));
    folder[end - path] = 0;
    return true;
}

bool tn__plugin_path(const char *file, char *path, size_t size)
{
    char folder[PATH_MAX];
    const char *given = secure_getenv("TANSO_PLUGIN_DIR");
    if ((!given || !*given) && !own_folder(folder, sizeof folder))
        return false;
    snprintf(path, size, "%.4000s/%s", given && *given ? given : folder, file);
    return true;
}
