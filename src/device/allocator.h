/* SPDX-License-Identifier: MIT */
/* The caching allocator of one device, for the registry, storages and tests. Thread-safe. */
#ifndef TN_DEVICE_ALLOCATOR_H
#define TN_DEVICE_ALLOCATOR_H

#include "device/device.h"

typedef struct tn__allocator tn__allocator;

/* Makes the allocator of a device whose ops and capabilities are set; NULL with a latched error. */
tn__allocator *tn__allocator_new(tn__device *device);
/* Gives cached memory back and, if nothing is in use, frees the allocator; else leaves it as it is. */
void tn__allocator_close(tn__allocator *allocator);

/* A block for a storage: memory is set, the rest is the caller's to fill in. NULL with a latched error. */
tn__storage *tn__allocator_take(tn__allocator *allocator, size_t bytes);
void tn__allocator_give(tn__allocator *allocator, tn__storage *storage);

/* What tn_memory_stats and its kin do, see tanso/device.h: trim gives the bytes that went back, 0 is no limit. */
tn_memory_info tn__allocator_stats(tn__allocator *allocator);
void tn__allocator_reset_peak(tn__allocator *allocator);
size_t tn__allocator_trim(tn__allocator *allocator);
void tn__allocator_limit(tn__allocator *allocator, size_t bytes);

/* Bytes of "512M", "4G", "1048576" or "25%" (of `total`); 0 if the text is none of these. */
size_t tn__parse_bytes(const char *text, size_t total);
/* The limit that TANSO_MEMORY_LIMIT sets the device: a value as above for every device, or one a kind,
 * "cuda=80%,cpu=4G". */
size_t tn__limit_given(const tn__device *device);

#endif
