/* SPDX-License-Identifier: MIT */
/* A device with a small, counted memory and an allocator, outside of the registry. */
#ifndef TN_TESTS_DEVICE_FAKE_H
#define TN_TESTS_DEVICE_FAKE_H

#include "device/allocator.h"

typedef struct fake {
    tn__device device;
    size_t capacity;  /* bytes it can lend */
    size_t lent;      /* bytes lent now */
    long allocations; /* calls of allocate that gave memory */
} fake;

/* Opens it; the size of its memory is `capacity`. False without memory. */
bool fake_open(fake *f, size_t capacity);
/* Closes it; true if all memory came back. */
bool fake_close(fake *f);

#endif
