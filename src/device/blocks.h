/* SPDX-License-Identifier: MIT */
/* Blocks of device memory: their records, and the bins that free ones hang in. For the allocator, under its lock. */
#ifndef TN_DEVICE_BLOCKS_H
#define TN_DEVICE_BLOCKS_H

#include "device/device.h"

/* A piece of a segment. In use it carries the storage made of it. */
typedef struct tn__block {
    tn__storage storage;
    struct tn__block *left, *right;    /* neighbours in the segment; both NULL: the whole segment */
    struct tn__block *previous, *next; /* in a bin; or, for memory that is no storage, in a list by address */
    size_t size;
    uint8_t pool;
    uint8_t home; /* 1 + the stream that took it last, where streams have memory of their own; 0: anybody's */
    bool free;
} tn__block;

/* Eight bins to a power of two. */
#define TN__BINS_LOG 3
#define TN__BINS (64 << TN__BINS_LOG)
typedef struct tn__bins {
    uint64_t filled[TN__BINS / 64]; /* bit set: the bin holds a block */
    tn__block *bin[TN__BINS];
} tn__bins;

void tn__bins_insert(tn__bins *bins, tn__block *block);
void tn__bins_remove(tn__bins *bins, tn__block *block);
/* A free block of at least `size` and at most `most` bytes whose home is in the set `homes`, or NULL. */
tn__block *tn__bins_find(const tn__bins *bins, size_t size, size_t most, uint64_t homes);
#define TN__ALL_HOMES UINT64_MAX

/* Records of blocks come from slabs, which are given back all together. */
typedef struct tn__block_records {
    tn__block *spare;
    struct tn__block_slab *slabs;
} tn__block_records;
/* Makes sure that two records are at hand: one for a segment, one for the rest of a cut. */
bool tn__records_reserve(tn__block_records *records);
/* A zeroed record; one must be at hand. */
tn__block *tn__records_take(tn__block_records *records);
void tn__records_give(tn__block_records *records, tn__block *block);
void tn__records_free(tn__block_records *records);
/* Calls a function for each record that is not spare. */
void tn__records_each(const tn__block_records *records, void (*visit)(tn__block *block, void *user), void *user);

#endif
