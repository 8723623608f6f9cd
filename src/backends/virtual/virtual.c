/* SPDX-License-Identifier: MIT */
/*
 * Virtual devices: the CPU seen as several devices, each with its own memory and statistics, so that all that is about
 * many devices can be tested on any machine. Programs run on the CPU's backend.
 */
#include <stdlib.h>

#include "backends/builtin.h"
#include "device/program.h"

#define USUAL_COUNT 4
#define MOST_COUNT 16

static int virtual_count(const char **why)
{
    const char *text = getenv("TANSO_VIRTUAL_DEVICES");
    long count = text && *text ? strtol(text, NULL, 10) : USUAL_COUNT;
    if (count <= 0)
        *why = "TANSO_VIRTUAL_DEVICES asks for none";
    return count <= 0 ? 0 : count > MOST_COUNT ? MOST_COUNT : (int)count;
}

/* The device behind; there whenever a virtual one is, because virtual_open opened it. */
static tn__device *behind(const tn__device *device)
{
    return device->backend_data;
}

static void *virtual_allocate(tn__device *device, size_t bytes)
{
    return behind(device)->ops->allocate(behind(device), bytes);
}

static void virtual_release(tn__device *device, void *memory, size_t bytes)
{
    behind(device)->ops->release(behind(device), memory, bytes);
}

static tn_status virtual_read(tn__device *device, void *host, const void *memory, size_t bytes)
{
    return behind(device)->ops->read(behind(device), host, memory, bytes);
}

static tn_status virtual_write(tn__device *device, void *memory, const void *host, size_t bytes)
{
    return behind(device)->ops->write(behind(device), memory, host, bytes);
}

static tn_status virtual_copy(tn__device *device, void *to, const void *from, size_t bytes)
{
    return behind(device)->ops->copy(behind(device), to, from, bytes);
}

static tn_status virtual_load(tn__device *device, const tn__program *program, tn__executable **executable)
{
    return behind(device)->ops->load(behind(device), program, executable);
}

static tn_status virtual_synchronize(tn__device *device)
{
    return behind(device)->ops->synchronize ? behind(device)->ops->synchronize(behind(device)) : TN_OK;
}

static bool virtual_supports(tn__device *device, int op, tn_dtype dtype)
{
    return behind(device)->ops->supports && behind(device)->ops->supports(behind(device), op, dtype);
}

/* Executables are the CPU's own, so these two only have to find its functions. */
static tn_status virtual_run(tn__executable *executable, void *const *buffers, const uint64_t *scalars)
{
    return tn__device_get(tn_cpu())->ops->run(executable, buffers, scalars);
}

static void virtual_unload(tn__executable *executable)
{
    tn__device_get(tn_cpu())->ops->unload(executable);
}

static const tn__device_ops virtual_ops = {
    .allocate = virtual_allocate,
    .release = virtual_release,
    .read = virtual_read,
    .write = virtual_write,
    .copy = virtual_copy,
    .load = virtual_load,
    .run = virtual_run,
    .unload = virtual_unload,
    .synchronize = virtual_synchronize,
    .supports = virtual_supports,
};

static tn_status virtual_open(int index, tn__device *device)
{
    (void)index;
    tn__device *cpu = tn__device_get(tn_cpu());
    if (!cpu)
        return TN_ERR_DEVICE;
    device->ops = &virtual_ops;
    device->capabilities = cpu->capabilities;
    device->backend_data = cpu;
    return TN_OK;
}

const tn__backend tn__backend_virtual = {
    .name = "virtual", .kind = TN_DEVICE_VIRTUAL, .count = virtual_count, .open = virtual_open};
