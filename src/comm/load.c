/* SPDX-License-Identifier: MIT */
/* Whether this process is one of several, by what launchers put into the environment; and the plug-ins that connect
 * them. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"
#include "core/log.h"
#include "core/plugin.h"
#include "tn_build_config.h"

bool tn__launched(void)
{
    /* Of Open MPI's mpirun; of MPICH's and Intel's; of PMIx, as srun --mpi=pmix has it. */
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return true;
    }
    return false;
}

tn_status tn__comm_check_launch(void)
{
    const char *rank = getenv("RANK"), *size = getenv("WORLD_SIZE");
    if (tn__launched() || !rank || !*rank || !size || atol(size) <= 1)
        return TN_OK;
    return tn__fail(TN_ERR_UNSUPPORTED, "comm",
                    "this process is rank %.16s of %.16s (RANK, WORLD_SIZE), which nothing connects: expected one that "
                    "mpirun or srun has started, or WORLD_SIZE unset",
                    rank, size);
}

static const tn__transport *refuse(void *handle, const char *path, const char *version)
{
    tn__fail(TN_ERR_UNSUPPORTED, "comm", "%s is of tanso %s, and this is %s: install both of one version", path,
             version ? version : "(unknown)", TN_BUILD_VERSION);
    dlclose(handle);
    return NULL;
}

const tn__transport *tn__transport_load(const char *name)
{
    char file[64], path[PATH_MAX];
    snprintf(file, sizeof file, "libtanso-%s.so", name);
    if (!tn__plugin_path(file, path, sizeof path)) {
        tn__fail(TN_ERR_UNSUPPORTED, "comm", "the folder of %s is unknown: set TANSO_PLUGIN_DIR to it", file);
        return NULL;
    }
    if (access(path, F_OK) != 0) {
        tn__fail(TN_ERR_UNSUPPORTED, "comm",
                 "this process was launched as one of several, which %s connects, and there is no file %s: build "
                 "tanso where mpi.h is (packages libopenmpi-dev, openmpi-bin), or set TANSO_PLUGIN_DIR to the "
                 "plug-in's folder",
                 file, path);
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        tn__fail(TN_ERR_UNSUPPORTED, "comm", "%s cannot be loaded: %s", file, dlerror());
        return NULL;
    }
    const tn__transport *transport = dlsym(handle, "tn__transport_plugin");
    if (!transport || !transport->version || strcmp(transport->version, TN_BUILD_VERSION) != 0)
        return refuse(handle, path, transport ? transport->version : NULL);
    tn__log(TN__LOG_DEBUG, "comm", "loaded %s", path);
    return transport; /* stays for the process */
}
