/* SPDX-License-Identifier: MIT */
/*
 * Virtual devices: the CPU seen as several devices, each with its own memory and statistics, so that all that is about
 * many devices can be tested on any machine. Programs run on the CPU's backend.
 *
 * As on a GPU, the host cannot read the memory through its addresses: a virtual address is the real one plus a fixed
 * distance at which no program has memory, so that code that reads it regardless crashes at once.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tanso/base.h>

#include "backends/builtin.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/launch.h"
#include "device/program.h"

#define USUAL_COUNT 4
#define MOST_COUNT 16

static int virtual_count(const char **why)
{
    const char *text = getenv("TANSO_VIRTUAL_DEVICES");
    char *end = NULL;
    long count = text && *text ? strtol(text, &end, 10) : USUAL_COUNT;
    if (end && (end == text || *end)) {
        static atomic_bool said; /* programs ask for devices repeatedly */
        if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
            tn__log(TN__LOG_WARN, "device",
                    "TANSO_VIRTUAL_DEVICES: expected a number, 0 to %d; got '%s': going on with %d", MOST_COUNT, text,
                    USUAL_COUNT);
        count = USUAL_COUNT;
    }
    if (count <= 0)
        *why = "TANSO_VIRTUAL_DEVICES asks for none";
    return count <= 0 ? 0 : count > MOST_COUNT ? MOST_COUNT : (int)count;
}

/* The CPU device that a virtual one is part of; virtual_open has opened it. */
static tn__device *behind(const tn__device *device)
{
    return device->backend_data;
}

#define DISTANCE ((uintptr_t)1 << 55)

static void *hidden(void *memory)
{
    return memory ? (void *)((uintptr_t)memory + DISTANCE) : NULL;
}

static void *real(const void *address)
{
    return address ? (void *)((uintptr_t)address - DISTANCE) : NULL;
}

static void *virtual_allocate(tn__device *device, size_t bytes)
{
    return hidden(behind(device)->ops->allocate(behind(device), bytes));
}

static void virtual_release(tn__device *device, void *memory, size_t bytes)
{
    behind(device)->ops->release(behind(device), real(memory), bytes);
}

static tn_status virtual_read(tn__device *device, void *host, const void *memory, size_t bytes)
{
    return behind(device)->ops->read(behind(device), host, real(memory), bytes);
}

/* A read that has begun: as from a GPU, the bytes are not there at once. */
typedef struct begun {
    bool asked;
    char bytes[];
} begun;

static void *virtual_read_begin(tn__device *device, const void *memory, size_t bytes)
{
    bool clean = !tn__latched();
    begun *made = tn__alloc(sizeof *made + bytes);
    if (!made)
        return NULL;
    made->asked = false;
    if (virtual_read(device, made->bytes, memory, bytes) == TN_OK)
        return made;
    tn__free(made);
    if (clean)
        tn_clear_error();
    return NULL;
}

static tn_status virtual_read_end(tn__device *device, void *reading, void *host, size_t bytes, bool wait, bool *done)
{
    (void)device;
    begun *from = reading;
    *done = wait || from->asked;
    from->asked = true;
    if (!*done)
        return TN_OK;
    if (host)
        memcpy(host, from->bytes, bytes);
    tn__free(from);
    return TN_OK;
}

static tn_status virtual_write(tn__device *device, void *memory, const void *host, size_t bytes)
{
    return behind(device)->ops->write(behind(device), real(memory), host, bytes);
}

static tn_status virtual_copy(tn__device *device, void *to, const void *from, size_t bytes)
{
    return behind(device)->ops->copy(behind(device), real(to), real(from), bytes);
}

static tn_status virtual_synchronize(tn__device *device)
{
    return behind(device)->ops->synchronize ? behind(device)->ops->synchronize(behind(device)) : TN_OK;
}

static bool virtual_supports(tn__device *device, int op, tn_dtype dtype, const tn__shape *shape)
{
    return behind(device)->ops->supports && behind(device)->ops->supports(behind(device), op, dtype, shape);
}

static bool virtual_convolves(tn__device *device, const tn__step *step)
{
    return behind(device)->ops->convolves(behind(device), step);
}

/* Pointers of a launch are translated to real addresses; a virtual address that is passed as a number cannot be told
 * from other numbers. */
static tn_status virtual_launch(tn__device *device, const tn__launch *launch)
{
    tn__launch real_launch = *launch;
    for (int k = 0; k < launch->count; k++)
        if (!launch->dtype[k])
            real_launch.value[k].bits = (uintptr_t)real((void *)(uintptr_t)launch->value[k].bits);
    return behind(device)->ops->launch(behind(device), &real_launch);
}

/* ---- programs ---- */

struct tn__executable {
    tn__device *cpu;
    tn__executable *loaded; /* loaded by the CPU's backend, which has a different struct of this name */
    int buffer_count;
};

static tn_status virtual_load(tn__device *device, const tn__program *program, tn__executable **executable)
{
    tn__executable *made = tn__alloc(sizeof *made);
    if (!made)
        return tn__fail_memory("load", sizeof *made);
    *made = (tn__executable){.cpu = behind(device), .buffer_count = program->buffer_count};
    tn_status status = made->cpu->ops->load(made->cpu, program, &made->loaded);
    if (status == TN_OK)
        *executable = made;
    else
        tn__free(made);
    return status;
}

static tn_status virtual_run(tn__executable *executable, void *const *buffers, const uint64_t *scalars)
{
    enum { USUAL = 64 };
    int count = executable->buffer_count;
    void *few[USUAL] = {NULL}, **addresses = count <= USUAL ? few : tn__alloc((size_t)count * sizeof *addresses);
    if (!addresses)
        return tn__fail_memory("run", (size_t)count * sizeof *addresses);
    for (int i = 0; i < count; i++)
        addresses[i] = real(buffers[i]);
    tn_status status = executable->cpu->ops->run(executable->loaded, addresses, scalars);
    if (addresses != few)
        tn__free(addresses);
    return status;
}

static int64_t virtual_pause(tn__device *device, const tn__program *program)
{
    return behind(device)->ops->pause(behind(device), program);
}

static void virtual_unload(tn__executable *executable)
{
    if (!executable)
        return;
    executable->cpu->ops->unload(executable->loaded);
    tn__free(executable);
}

static const tn__device_ops virtual_ops = {
    .allocate = virtual_allocate,
    .release = virtual_release,
    .read = virtual_read,
    .read_begin = virtual_read_begin,
    .read_end = virtual_read_end,
    .write = virtual_write,
    .copy = virtual_copy,
    .load = virtual_load,
    .run = virtual_run,
    .unload = virtual_unload,
    .synchronize = virtual_synchronize,
    .supports = virtual_supports,
    .convolves = virtual_convolves,
    .launch = virtual_launch,
    .pause = virtual_pause,
};

static tn_status virtual_open(int index, tn__device *device)
{
    (void)index;
    tn__device *cpu = tn__device_get(tn_cpu());
    if (!cpu)
        return TN_ERR_DEVICE;
    device->ops = &virtual_ops;
    device->capabilities = cpu->capabilities;
    device->capabilities.host_memory = false;
    device->backend_data = cpu;
    return TN_OK;
}

const tn__backend tn__backend_virtual = {
    .name = "virtual", .kind = TN_DEVICE_VIRTUAL, .count = virtual_count, .open = virtual_open};
