/* SPDX-License-Identifier: MIT */
/* A device with a small, counted memory. */
#include "device/fake.h"

#include <stdlib.h>

static void *fake_allocate(tn__device *device, size_t bytes)
{
    fake *f = device->backend_data;
    if (bytes > f->capacity - f->lent)
        return NULL;
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory) {
        f->lent += bytes;
        f->allocations++;
    }
    return memory;
}

static void fake_release(tn__device *device, void *memory, size_t bytes)
{
    fake *f = device->backend_data;
    ((char *)memory)[bytes - 1] = 0; /* all of it must be there: for the address sanitizer */
    free(memory);
    f->lent -= bytes;
}

static const tn__device_ops fake_ops = {.allocate = fake_allocate, .release = fake_release};

bool fake_open(fake *f, size_t capacity)
{
    *f = (fake){.capacity = capacity,
                .device = {.ops = &fake_ops, .name = "fake:0", .capabilities = {.total_memory = capacity}}};
    f->device.backend_data = f;
    f->device.allocator = tn__allocator_new(&f->device);
    return f->device.allocator != NULL;
}

bool fake_close(fake *f)
{
    tn__allocator_close(f->device.allocator);
    return f->device.allocator == NULL && f->lent == 0;
}
