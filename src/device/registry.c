/* SPDX-License-Identifier: MIT */
/* The backends that are there, their devices, opened when first asked for and kept, and each thread's current
 * device. */
#include "device/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "device/allocator.h"

/* The kinds with an enumerator. */
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

/* Letters, digits and _, as a file's name is made of it. */
static bool is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length && length < 16 && !name[length];
}

static int find_kind(const char *name)
{
    for (int kind = TN_DEVICE_DEFAULT + 1; kind < TN__DEVICE_KINDS; kind++) {
        const char *own = tn__device_kind_name(kind);
        if (own && strcmp(own, name) == 0)
            return kind;
    }
    return TN_DEVICE_DEFAULT;
}

/* Takes the place of a kind: what is there already, or NULL. */
static const tn__backend *take(int kind, const tn__backend *backend)
{
    const tn__backend *before = NULL;
    atomic_compare_exchange_strong(&backends[kind], &before, backend);
    return before;
}

static tn_status register_open(const tn__backend *backend)
{
    if (!is_name(backend->name) || find_kind(backend->name))
        return tn__fail(TN_ERR_STATE, "tn__backend_register",
                        "'%s': expected the name of a kind that is not there yet, of letters a to z, digits and _",
                        backend->name);
    for (int kind = TN__DEVICE_KINDS - TN__OPEN_KINDS; kind < TN__DEVICE_KINDS; kind++)
        if (!take(kind, backend))
            return TN_OK;
    return tn__fail(TN_ERR_STATE, "tn__backend_register", "%s: there are %d kinds of plug-ins already, and no room",
                    backend->name, TN__OPEN_KINDS);
}

tn_status tn__backend_register(const tn__backend *backend)
{
    const char *name = backend->name ? backend->name : "a backend without a name";
    int kind = backend->kind;
    if (!backend->name || kind < TN_DEVICE_DEFAULT || kind > TN_DEVICE_VIRTUAL || !backend->count || !backend->open)
        return tn__fail(TN_ERR_STATE, "tn__backend_register", "%s: expected a name, a kind, count and open", name);
    if (kind == TN_DEVICE_DEFAULT)
        return register_open(backend);
    const tn__backend *before = take(kind, backend);
    if (before)
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
    if (kind <= TN_DEVICE_DEFAULT || kind >= TN__DEVICE_KINDS)
        return NULL;
    const tn__backend *open = kind > TN_DEVICE_VIRTUAL ? atomic_load(&backends[kind]) : NULL;
    return open ? open->name : kinds[kind].name;
}

tn_status tn__device_kind_named(const char *name, int *kind)
{
    tn_status status = TN_OK;
    *kind = find_kind(name);
    if (*kind || !is_name(name))
        return TN_OK;
    pthread_mutex_lock(&lock);
    if (!find_kind(name))
        status = tn__plugin_load(name);
    *kind = find_kind(name);
    pthread_mutex_unlock(&lock);
    return status == TN_ERR_NAME ? TN_OK : status;
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

/* Virtual devices go before the ones that they stand on, whose kinds are before theirs. A device with memory in use
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
