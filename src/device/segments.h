/* SPDX-License-Identifier: MIT */
/*
 * Segments of a device's memory, and the blocks that they are cut into; a block given back stays cached for the next
 * request. For the allocator, under its lock.
 *
 * Four pools, by the size asked for: scalars share segments of 64 KiB, so that where an evaluation's other memory lies
 * does not depend on how many of them the program holds, small blocks segments of 2 MiB, middle ones segments of 32
 * MiB, and each large one is a segment of its own that is never cut, so that small requests cannot break up what the
 * next evaluation of the same program will ask for again. Free blocks hang in bins, eight to a power of two; a block
 * given back joins its free neighbours. Where work goes on several streams, each gets what it had before, or new
 * memory, as long as there is some: else two streams would take the same memory by turns, and wait for each other. So
 * blocks of different streams stay apart until memory is short. When the device or the limit has no room, segments that
 * are wholly free go back.
 */
#ifndef TN_DEVICE_SEGMENTS_H
#define TN_DEVICE_SEGMENTS_H

#include "device/blocks.h"

enum { TN__POOLS = 4 };

typedef struct tn__segments {
    tn__device *device;
    tn__bins pools[TN__POOLS];
    tn__block_records records;
    size_t used, cached, peak, limit; /* bytes of blocks in use, of free ones; most ever used; 0: no limit to both */
    size_t cache_most;                /* beyond it whole segments go back to the system */
    bool apart;                       /* there may be free neighbours of different streams */
} tn__segments;

/* A block of at least so many bytes, in no bin; NULL: neither the device nor the limit has room. */
tn__block *tn__segments_take(tn__segments *segments, size_t bytes);
void tn__segments_give(tn__segments *segments, tn__block *block);
/* Gives back free segments, largest first, until at most `keep` bytes are cached; how many bytes. */
size_t tn__segments_shrink(tn__segments *segments, size_t keep);

#endif
