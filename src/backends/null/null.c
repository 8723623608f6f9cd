/* SPDX-License-Identifier: MIT */
/*
 * The null device computes shapes only: its memory has addresses but no bytes, so arrays of any size can be planned and
 * "run" anywhere. Whatever is read from it is zero.
 */
#include <string.h>

#include "backends/builtin.h"
#include "device/program.h"

/* The next address to hand out; none is handed out twice, and there is no memory at them. The first page is left out,
 * so that no address is NULL. */
static _Atomic uintptr_t next_address = 4096;

static void *null_allocate(tn__device *device, size_t bytes)
{
    (void)device;
    uintptr_t rounded = (bytes + 63) / 64 * 64, address = atomic_load(&next_address);
    do {
        if (rounded < bytes || rounded > INTPTR_MAX - address)
            return NULL;
    } while (!atomic_compare_exchange_weak(&next_address, &address, address + rounded));
    return (void *)address;
}

static void null_release(tn__device *device, void *memory, size_t bytes)
{
    (void)device, (void)memory, (void)bytes;
}

static tn_status null_read(tn__device *device, void *host, const void *memory, size_t bytes)
{
    (void)device, (void)memory;
    if (bytes)
        memset(host, 0, bytes);
    return TN_OK;
}

static tn_status null_write(tn__device *device, void *memory, const void *host, size_t bytes)
{
    (void)device, (void)memory, (void)host, (void)bytes;
    return TN_OK;
}

/* All programs share one executable, which does nothing. */
struct tn__executable {
    char unused;
};
static tn__executable nothing;

static tn_status null_load(tn__device *device, const tn__program *program, tn__executable **executable)
{
    (void)device, (void)program;
    *executable = &nothing;
    return TN_OK;
}

static tn_status null_run(tn__executable *executable, void *const *buffers, const uint64_t *scalars)
{
    (void)executable, (void)buffers, (void)scalars;
    return TN_OK;
}

static void null_unload(tn__executable *executable)
{
    (void)executable;
}

static const tn__device_ops null_ops = {
    .allocate = null_allocate,
    .release = null_release,
    .read = null_read,
    .write = null_write,
    .copy = null_write,
    .load = null_load,
    .run = null_run,
    .unload = null_unload,
};

static int null_count(const char **why)
{
    (void)why;
    return 1;
}

static tn_status null_open(int index, tn__device *device)
{
    (void)index;
    device->ops = &null_ops;
    device->capabilities = (tn__capabilities){
        .target = TN__TARGET_NONE, .shapes_only = true, .operations = true, .threads = 1};
    return TN_OK;
}

const tn__backend tn__backend_null = {
    .name = "null", .kind = TN_DEVICE_NULL, .count = null_count, .open = null_open};
