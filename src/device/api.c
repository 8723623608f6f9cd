/* SPDX-License-Identifier: MIT */
/* The public functions of devices: values, names, availability, memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "device/allocator.h"
#include "device/registry.h"

tn_device tn_cpu(void)
{
    return (tn_device){TN_DEVICE_CPU, 0};
}

/* An index that does not fit a short is none that exists. */
static tn_device of_kind(int kind, int index)
{
    return (tn_device){(short)kind, (short)(index < INT16_MIN || index > INT16_MAX ? -1 : index)};
}

tn_device tn_cuda(int index)
{
    return of_kind(TN_DEVICE_CUDA, index);
}

tn_device tn_virtual(int index)
{
    return of_kind(TN_DEVICE_VIRTUAL, index);
}

tn_device tn_device_best(void)
{
    return tn_device_available(tn_cuda(0), NULL) ? tn_cuda(0) : tn_cpu();
}

bool tn_device_equal(tn_device a, tn_device b)
{
    return a.kind == b.kind && a.index == b.index;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* Kinds of which there is one have no number in their name. */
static bool numbered(int kind)
{
    return kind != TN_DEVICE_CPU && kind != TN_DEVICE_NULL;
}

static char names[TN__DEVICE_KINDS][TN__MAX_DEVICES][24];

/* Those of a kind, when the first of them is asked for: plug-ins' kinds come at any time. */
static void make_names(int kind)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic bool made[TN__DEVICE_KINDS];
    if (atomic_load_explicit(&made[kind], memory_order_acquire))
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < TN__MAX_DEVICES && !atomic_load(&made[kind]); i++)
        snprintf(names[kind][i], sizeof names[kind][i], numbered(kind) || i ? "%s:%d" : "%s",
                 tn__device_kind_name(kind), i);
    atomic_store_explicit(&made[kind], true, memory_order_release);
    pthread_mutex_unlock(&lock);
}

const char *tn_device_name(tn_device device)
{
    device = tn__device_resolve(device);
    if (!tn__device_kind_name(device.kind))
        return "an unknown device";
    if (device.index < 0 || device.index >= TN__MAX_DEVICES)
        return "a device beyond the last";
    make_names(device.kind);
    return names[device.kind][device.index];
}

static tn_device parse_failed(tn_status *status, tn_status why)
{
    if (status)
        *status = why;
    return (tn_device){0};
}

tn_device tn_device_parse(const char *name, tn_status *status)
{
    static const char *const known[] = {"auto", "cpu", "cuda", "null", "virtual"};
    char own[24];
    if (status)
        *status = TN_OK;
    if (!name)
        name = "";
    if (strcmp(name, "auto") == 0)
        return tn_device_best();
    tn_device device = {0};
    size_t length = strcspn(name, ":");
    snprintf(own, sizeof own, "%.*s", length < sizeof own ? (int)length : 0, name);
    int kind;
    tn_status loaded = tn__device_kind_named(own, &kind);
    if (loaded != TN_OK)
        return parse_failed(status, loaded);
    device.kind = (short)kind;
    bool good = device.kind != TN_DEVICE_DEFAULT;
    if (good && name[length]) {
        const char *digits = name + length + 1;
        char *end;
        long index = strtol(digits, &end, 10);
        good = *digits >= '0' && *digits <= '9' && *end == '\0';
        device.index = (short)(index > TN__MAX_DEVICES ? TN__MAX_DEVICES : index);
    }
    if (!good) {
        const char *near = strncmp(name, "gpu", 3) == 0 ? "cuda"
                                                          : tn__nearest_name(name, known, sizeof known / sizeof *known);
        tn__fail(TN_ERR_NAME, "tn_device_parse",
                 "'%s' is no device; expected auto, cpu, cuda, cuda:1, null, virtual:0 or one of a plug-in's%s%s%s",
                 name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return parse_failed(status, TN_ERR_NAME);
    }
    const char *why;
    if (!tn_device_available(device, &why)) {
        tn__fail(TN_ERR_DEVICE, "tn_device_parse", "%s is not available: %s", name, why);
        return parse_failed(status, TN_ERR_DEVICE);
    }
    return device;
}

bool tn_device_available(tn_device device, const char **why)
{
    static _Thread_local char text[48];
    const char *reason = NULL;
    device = tn__device_resolve(device);
    int count = tn__device_kind_count(device.kind, &reason);
    if (count > 0 && device.index >= 0 && device.index < count)
        return true;
    if (count > 0) {
        if (count == 1)
            snprintf(text, sizeof text, "there is only %s", tn_device_name((tn_device){device.kind, 0}));
        else
            snprintf(text, sizeof text, "there are only %s:0 to %s:%d", tn__device_kind_name(device.kind),
                     tn__device_kind_name(device.kind), count - 1);
        reason = text;
    }
    if (why)
        *why = reason;
    return false;
}

int tn_device_count(tn_device_kind kind)
{
    return tn__device_kind_count(kind == TN_DEVICE_DEFAULT ? tn_current_device().kind : (int)kind, NULL);
}

bool tn_cuda_available(void)
{
    return tn_device_available(tn_cuda(0), NULL);
}

int tn_cuda_count(void)
{
    return tn_device_count(TN_DEVICE_CUDA);
}

tn_device_info tn_device_properties(tn_device device)
{
    tn_device_info info = {0};
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return info;
    info.memory = opened->capabilities.total_memory;
    info.multiprocessors = opened->capabilities.threads;
    if (opened->ops->describe)
        opened->ops->describe(opened, &info);
    return info;
}

/* ---- the current device ---------------------------------------------------------------------------------------- */

tn_device tn_current_device(void)
{
    return tn__device_resolve((tn_device){0});
}

static tn_status set_device(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return tn__error_status(tn__error_last());
    tn__device_make_current(opened);
    return TN_OK;
}

tn_status tn_set_device(tn_device device)
{
    TN__NO_PLACE();
    return set_device(device);
}

tn__device_guard tn__device_enter(tn_device device)
{
    tn__device_guard guard = {tn_current_device()};
    (void)set_device(device); /* a failure is latched; the block runs all the same, on the device of before */
    return guard;
}

void tn__device_leave(tn__device_guard *guard)
{
    (void)set_device(guard->before);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

tn_memory_info tn_memory_stats(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return (tn_memory_info){0};
    tn_memory_info info = tn__allocator_stats(opened->allocator);
    info.pinned = atomic_load_explicit(&opened->pinned, memory_order_relaxed);
    return info;
}

void tn_memory_reset_peak(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    if (opened)
        tn__allocator_reset_peak(opened->allocator);
}

size_t tn_memory_trim(tn_device device)
{
    tn__device *opened = tn__device_get(device);
    return opened ? tn__allocator_trim(opened->allocator) : 0;
}

tn_status tn_memory_limit(tn_device device, size_t bytes)
{
    TN__NO_PLACE();
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return tn__error_status(tn__error_last());
    tn__allocator_limit(opened->allocator, bytes);
    return TN_OK;
}

tn_status tn_memory_limit_parse(tn_device device, const char *text)
{
    TN__NO_PLACE();
    tn__device *opened = tn__device_get(device);
    if (!opened)
        return tn__error_status(tn__error_last());
    bool none = text && strcmp(text, "none") == 0;
    size_t bytes = text && !none ? tn__parse_bytes(text, opened->capabilities.total_memory) : 0;
    if (bytes == 0 && !none)
        return tn__fail(TN_ERR_VALUE, "memory_limit",
                        "expected bytes as 512M or 4G, a share of the device's memory up to 100%% as 80%%, or "
                        "none, got '%s'",
                        text ? text : "(NULL)");
    tn__allocator_limit(opened->allocator, bytes);
    return TN_OK;
}
