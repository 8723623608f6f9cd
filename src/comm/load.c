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

static bool launched_by_mpi(void)
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

/* A whole number of the environment; -1: none there. */
static long number(const char *name)
{
    const char *value = getenv(name);
    char *end;
    long given = value && *value ? strtol(value, &end, 10) : -1;
    return given >= 0 && given <= INT_MAX && !*end ? given : -1;
}

/* ---- plug-ins ---- */

/* The table that a plug-in exports, once it has been loaded; NULL with why not. Its first member is its version. */
static const void *load(const char *file, const char *symbol, const char *missing, tn__why *why)
{
    char path[PATH_MAX];
    if (!tn__plugin_path(file, path, sizeof path)) {
        snprintf(why->text, sizeof why->text, "the folder of %s is unknown: set TANSO_PLUGIN_DIR to it", file);
        return NULL;
    }
    if (access(path, F_OK) != 0) {
        snprintf(why->text, sizeof why->text, "there is no file %.200s: build tanso where %s, or set TANSO_PLUGIN_DIR "
                 "to the plug-in's folder", path, missing);
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why->text, sizeof why->text, "%s cannot be loaded: %.400s", file, dlerror());
        return NULL;
    }
    const char *const *table = dlsym(handle, symbol);
    if (table && *table && strcmp(*table, TN_BUILD_VERSION) == 0) {
        tn__log(TN__LOG_DEBUG, "comm", "loaded %s", path);
        return table; /* stays for the process */
    }
    snprintf(why->text, sizeof why->text, "%.200s is of tanso %.40s, and this is %s: install both of one version", path,
             table && *table ? *table : "(unknown)", TN_BUILD_VERSION);
    dlclose(handle);
    return NULL;
}

static const tn__transport *load_mpi(void)
{
    tn__why why;
    const void *table = load("libtanso-mpi.so", "tn__transport_plugin",
                             "mpi.h is (packages libopenmpi-dev, openmpi-bin)", &why);
    if (!table)
        tn__fail(TN_ERR_UNSUPPORTED, "comm",
                 "this process was launched as one of several, which libtanso-mpi.so connects: %s", why.text);
    return table;
}

const tn__link_transport *tn__link_transport_load(tn__why *why)
{
    return load("libtanso-nccl.so", "tn__link_plugin", "nccl.h is (CUDA's toolkit)", why);
}

const tn__transport *tn__transport_of_launch(void)
{
    long size = number("WORLD_SIZE"), rank = number("RANK");
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    if (launched_by_mpi())
        return load_mpi();
    if (size <= 1 || rank < 0)
        return &tn__transport_alone;
    if (rank < size && address && *address && port && *port)
        return &tn__transport_sockets;
    tn__fail(TN_ERR_UNSUPPORTED, "comm",
             "this process is rank %ld of %ld (RANK, WORLD_SIZE), and the others cannot be found: expected a rank "
             "below that, and rank 0's address in MASTER_ADDR and MASTER_PORT, as 'tanso launch' sets them, or mpirun "
             "or srun to have started it, or WORLD_SIZE unset",
             rank, size);
    return NULL;
}
