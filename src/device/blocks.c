/* SPDX-License-Identifier: MIT */
/* Free blocks by size, and the records that describe blocks. */
#include "device/blocks.h"

#include "core/memory.h"

#define LOOKS 16 /* blocks looked at in a bin whose blocks may be too small */

/* ---- bins ------------------------------------------------------------------------------------------------------ */

/* The bin of the blocks of a size: the exponent and the next three bits. */
static int bin_of(size_t size)
{
    int exponent = 63 - __builtin_clzll(size);
    return exponent << TN__BINS_LOG | (int)(size >> (exponent - TN__BINS_LOG) & ((1 << TN__BINS_LOG) - 1));
}

void tn__bins_insert(tn__bins *p, tn__block *b)
{
    int bin = bin_of(b->size);
    b->free = true;
    b->previous = NULL;
    b->next = p->bin[bin];
    if (b->next)
        b->next->previous = b;
    p->bin[bin] = b;
    p->filled[bin / 64] |= (uint64_t)1 << bin % 64;
}

void tn__bins_remove(tn__bins *p, tn__block *b)
{
    int bin = bin_of(b->size);
    if (b->previous)
        b->previous->next = b->next;
    else
        p->bin[bin] = b->next;
    if (b->next)
        b->next->previous = b->previous;
    if (!p->bin[bin])
        p->filled[bin / 64] &= ~((uint64_t)1 << bin % 64);
    b->free = false;
}

/* The first filled bin from `bin` on, or TN__BINS. */
static int next_filled(const tn__bins *p, int bin)
{
    if (bin >= TN__BINS)
        return TN__BINS;
    int word = bin / 64;
    uint64_t bits = p->filled[word] & (UINT64_MAX << bin % 64);
    while (!bits && ++word < TN__BINS / 64)
        bits = p->filled[word];
    return bits ? word * 64 + __builtin_ctzll(bits) : TN__BINS;
}

static bool suits(const tn__block *b, uint64_t homes) { return homes >> b->home & 1; }

/* The best of those looked at in the size's own bin, else any of the next bin that holds one. */
tn__block *tn__bins_find(const tn__bins *p, size_t size, size_t most, uint64_t homes)
{
    int bin = bin_of(size), looks = LOOKS;
    tn__block *best = NULL;
    for (tn__block *b = p->bin[bin]; b && looks > 0; b = b->next, looks--)
        if (b->size >= size && suits(b, homes) && (!best || b->size < best->size)) {
            best = b;
            if (b->size == size)
                break;
        }
    while (!best && (bin = next_filled(p, bin + 1)) < TN__BINS) {
        best = p->bin[bin];
        for (looks = LOOKS; best && !suits(best, homes); looks--)
            best = looks > 0 ? best->next : NULL;
    }
    return best && best->size <= most ? best : NULL;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

#define SLAB_BLOCKS 64
typedef struct tn__block_slab {
    struct tn__block_slab *next;
    tn__block blocks[SLAB_BLOCKS];
} slab;

bool tn__records_reserve(tn__block_records *r)
{
    if (r->spare && r->spare->next)
        return true;
    slab *s = tn__calloc(1, sizeof *s);
    if (!s)
        return false;
    s->next = r->slabs;
    r->slabs = s;
    for (int i = 0; i < SLAB_BLOCKS; i++)
        tn__records_give(r, &s->blocks[i]);
    return true;
}

tn__block *tn__records_take(tn__block_records *r)
{
    tn__block *b = r->spare;
    r->spare = b->next;
    *b = (tn__block){0};
    return b;
}

void tn__records_give(tn__block_records *r, tn__block *b)
{
    b->next = r->spare;
    b->size = 0;
    r->spare = b;
}

void tn__records_each(const tn__block_records *r, void (*visit)(tn__block *block, void *user), void *user)
{
    for (slab *s = r->slabs; s; s = s->next)
        for (int i = 0; i < SLAB_BLOCKS; i++)
            if (s->blocks[i].size)
                visit(&s->blocks[i], user);
}

void tn__records_free(tn__block_records *r)
{
    for (slab *s = r->slabs, *next; s; s = next) {
        next = s->next;
        tn__free(s);
    }
    *r = (tn__block_records){0};
}
