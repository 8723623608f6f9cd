/* SPDX-License-Identifier: MIT */
/* Files mapped into memory, read-only: their pages are read when they are touched. */
#ifndef TN_IO_MAP_H
#define TN_IO_MAP_H

#include "device/device.h"

typedef struct tn__mapping {
    tn__storage *storage; /* of the CPU; the mapping goes when the last reference to it does */
    const uint8_t *data;
    size_t size;
} tn__mapping;

/* Maps a whole regular file. TN_ERR_UNSUPPORTED, not latched, for what cannot be mapped (pipes, files without bytes):
 * read it instead. */
tn_status tn__file_map(const char *operation, const char *path, tn__mapping *mapping);
void tn__mapping_end(tn__mapping *mapping);

#endif
