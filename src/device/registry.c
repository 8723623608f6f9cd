/* SPDX-License-Identifier: MIT */
/* The backends that are there, their devices, opened when first asked for and kept, and each thread's current
 * device. */
#include "device/registry.h"

#include <pthread.h>
#include <stdio.h>

#include "core/error.h"
#include "core/memory.h"
#include "device/allocator.h"

static const struct {
    const char *name, *missing;
} kinds[TN__DEVICE_KINDS] = {
    [TN_DEVICE_CPU] = {"cpu", "CPU backend not built into this installation"},
    [TN_DEVICE_CUDA] = {"cuda", "CUDA plug-in not built into this installation"},
    [TN_DEVICE_NULL] = {"null", "null backend not built into this installation"},
    [TN_DEVICE_VIRTUAL] = {"virtual", "virtual backend not built into this installation"},
};

/* Recursive: opening a virtual device opens the device behind it. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static const tn__backend *_Atomic backends[TN__DEVICE_KINDS];
static tn__device *_Atomic devices[TN__DEVICE_KINDS][TN__MAX_DEVICES];
static uint16_t opened;
static _Thread_local tn__device *current; /* NULL: cpu */

/* ---- backends -------------------------------------------------------------------------------------------------- */

tn_status tn__backend_register(const tn__backend *backend)
{
    const char *name = backend->name ? backend->name : "a backend without a name";
    int kind = backend->kind;
    if (!backend->name || kind <= TN_DEVICE_DEFAULT || kind >= TN__DEVICE_KINDS || !backend->count || !backend->open)
        return tn__fail(TN_ERR_STATE, "tn__backend_register", "%s: expected a name, a kind, count and open", name);
    const tn__backend *before = NULL;
    if (!atomic_compare_exchange_strong(&backends[kind], &before, backend))
        return tn__fail(TN_ERR_STATE, "tn__backend_register", "%s: the backend %s serves this kind of device already",
                        name, before->name);
    return TN_OK;
}

static void register_builtin(void)
{
    for (int i = 0; i < tn__builtin_backend_count; i++)
        if (tn__builtin_backends[i])
            (void)tn__backend_register(tn__builtin_backends[i]); /* a failure stays latched for the caller */
}

static const tn__backend *backend_of(int kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_builtin);
    return atomic_load(&backends[kind]);
}

const char *tn__device_kind_name(int kind)
{
    return kind > TN_DEVICE_DEFAULT && kind < TN__DEVICE_KINDS ? kinds[kind].name : NULL;
}

int tn__device_kind_count(int kind, const char **why)
{
    const char *reason = NULL;
    int count = 0;
    if (!tn__device_kind_name(kind)) {
        reason = "no such kind of device";
    } else {
        const tn__backend *backend = backend_of(kind);
        count = backend ? backend->count(&reason) : 0;
        if (!backend)
            reason = kinds[kind].missing;
    }
    if (count <= 0 && why)
        *why = reason ? reason : "there is none in this machine";
    return count < 0 ? 0 : count > TN__MAX_DEVICES ? TN__MAX_DEVICES : count;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

static bool complete(const tn__device_ops *ops)
{
    return ops && ops->allocate && ops->release && ops->read && ops->write && ops->copy && ops->load && ops->run &&
           ops->unload;
}

static tn__device *open_device(const tn__backend *backend, tn_device id)
{
    tn__device *device = tn__calloc(1, sizeof *device);
    if (!device) {
        tn__fail_memory(backend->name, sizeof *device);
        return NULL;
    }
    device->id = id;
    snprintf(device->name, sizeof device->name, "%s", tn_device_name(id));
    tn_status status = backend->open(id.index, device);
    if (status == TN_OK && !complete(device->ops))
        status = tn__fail(TN_ERR_STATE, device->name, "its backend lacks a required function");
    if (status == TN_OK)
        device->allocator = tn__allocator_new(device);
    if (!device->allocator) {
        tn__free(device);
        return NULL;
    }
    device->number = opened++; /* only now: a backend may open another device, whose number is another */
    return device;
}

tn_device tn__device_resolve(tn_device id)
{
    if (id.kind != TN_DEVICE_DEFAULT)
        return id;
    return current ? current->id : (tn_device){TN_DEVICE_CPU, 0};
}

tn__device *tn__device_get(tn_device id)
{
    if (id.kind == TN_DEVICE_DEFAULT)
        return tn__device_current();
    bool in_table = tn__device_kind_name(id.kind) && id.index >= 0 && id.index < TN__MAX_DEVICES;
    tn__device *device =
        in_table ? atomic_load_explicit(&devices[id.kind][id.index], memory_order_acquire) : NULL;
    if (device)
        return device;
    const char *why;
    if (!tn_device_available(id, &why)) {
        tn__fail(TN_ERR_DEVICE, "device", "%s is not available: %s", tn_device_name(id), why);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    device = atomic_load(&devices[id.kind][id.index]);
    if (!device) {
        device = open_device(backend_of(id.kind), id);
        atomic_store_explicit(&devices[id.kind][id.index], device, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return device;
}

tn__device *tn__device_current(void)
{
    return current ? current : tn__device_get((tn_device){TN_DEVICE_CPU, 0});
}

void tn__device_make_current(tn__device *device)
{
    current = device;
}

/* Virtual devices are last among the kinds: they go before the ones that they stand on. A device with memory in use
 * stays, as whoever holds the memory may still release it. */
__attribute__((destructor(TN__EXIT_DEVICE))) static void close_at_exit(void)
{
    current = NULL;
    for (int kind = TN__DEVICE_KINDS - 1; kind > TN_DEVICE_DEFAULT; kind--)
        for (int i = 0; i < TN__MAX_DEVICES; i++) {
            tn__device *device = atomic_load(&devices[kind][i]);
            if (!device)
                continue;
            tn__allocator_close(device->allocator);
            if (device->allocator)
                continue;
            atomic_store(&devices[kind][i], NULL);
            tn__free(device);
        }
}
