/* SPDX-License-Identifier: MIT */
/*
 * The different elements of a vector, by a table of those met so far: its slots are found by multiplicative hashing
 * (Knuth, The Art of Computer Programming 3, 6.4), and the next one is looked at where another element has one. That is
 * faster than sorting as long as the table stays in the caches; once more elements are met than that, or than a
 * fraction of all, the table is given up.
 */
#include "numpy/distinct.h"

#include <string.h>

#include "core/memory.h"
#include "numpy/compose.h"

enum { FIRST_BITS = 10, MOST_BITS = 16, FEWEST = 1024, WORTH = 16 /* of so many elements one may be new */ };
#define GOLDEN 0x9e3779b97f4a7c15u /* 2^64 over the golden ratio */

typedef struct slot {
    uint64_t key;
    int64_t number; /* of the element among the different ones, from 1 on; 0: the slot is free */
} slot;

typedef struct table {
    slot *slot;
    int64_t *place; /* where each first occurs */
    int64_t count, most;
    int bits;
} table;

/* Where the key is, or may be put. */
static slot *find(const table *t, uint64_t key)
{
    const uint64_t mask = ((uint64_t)1 << t->bits) - 1;
    uint64_t at = key * GOLDEN >> (64 - t->bits);
    while (t->slot[at].number && t->slot[at].key != key)
        at = (at + 1) & mask;
    return &t->slot[at];
}

/* Room for four times as many. */
static bool grow(table *t)
{
    table larger = *t;
    larger.bits = t->bits ? t->bits + 2 : FIRST_BITS;
    larger.slot = tn__calloc((size_t)1 << larger.bits, sizeof(slot));
    larger.place = tn__realloc(t->place, sizeof(int64_t) << larger.bits);
    for (int64_t i = 0; larger.slot && larger.place && t->bits && i < (int64_t)1 << t->bits; i++)
        if (t->slot[i].number)
            *find(&larger, t->slot[i].key) = t->slot[i];
    bool done = larger.slot && larger.place;
    if (larger.place)
        t->place = larger.place;
    if (!done) {
        tn__free(larger.slot);
        return false;
    }
    tn__free(t->slot);
    *t = larger;
    return true;
}

/* Puts in a key that is not there; false if that is one too many. */
static bool put(table *t, slot *s, uint64_t key, int64_t place)
{
    if (t->count == t->most)
        return false;
    if (2 * t->count >= (int64_t)1 << t->bits) {
        if (t->bits + 2 > MOST_BITS || !grow(t))
            return false;
        s = find(t, key);
    }
    t->place[t->count] = place;
    *s = (slot){key, ++t->count};
    return true;
}

/* Elements of the unsigned type U; of floats, all NaNs and both zeros have one key each. */
#define WHOLE(U, u, INF) (u)
#define FLOAT(U, u, INF) ((U)((u) << 1) > (U)((U)(INF) << 1) ? (U)(INF) + 1 : (U)((u) << 1) ? (u) : 0)
#define MEET(name, U, KEY, INF) \
    static bool meet_##name(table *t, const void *elements, int64_t n) \
    { \
        const U *x = elements; \
        for (int64_t i = 0; i < n; i++) { \
            const uint64_t key = KEY(U, x[i], INF); \
            slot *s = find(t, key); \
            if (!s->number && !put(t, s, key, i)) \
                return false; \
        } \
        return true; \
    }
MEET(1, uint8_t, WHOLE, 0)
MEET(2, uint16_t, WHOLE, 0)
MEET(4, uint32_t, WHOLE, 0)
MEET(8, uint64_t, WHOLE, 0)
MEET(f16, uint16_t, FLOAT, 0x7c00u)
MEET(bf16, uint16_t, FLOAT, 0x7f80u)
MEET(f32, uint32_t, FLOAT, 0x7f800000u)
MEET(f64, uint64_t, FLOAT, 0x7ff0000000000000u)

typedef bool (*meet)(table *t, const void *elements, int64_t n);
static const meet meets[TN_DTYPE_COUNT] = {
    [TN_BOOL] = meet_1,      [TN_INT8] = meet_1,        [TN_UINT8] = meet_1,     [TN_INT16] = meet_2,
    [TN_UINT16] = meet_2,    [TN_INT32] = meet_4,       [TN_UINT32] = meet_4,    [TN_INT64] = meet_8,
    [TN_UINT64] = meet_8,    [TN_FLOAT16] = meet_f16,   [TN_BFLOAT16] = meet_bf16,
    [TN_FLOAT32] = meet_f32, [TN_FLOAT64] = meet_f64,
};

tn_array *tn__first_places(const tn_array *x)
{
    int64_t n = tn_is_error(x) ? 0 : tn_size(x);
    meet all = n >= FEWEST && tn_device_of(x).kind == TN_DEVICE_CPU ? meets[tn_dtype_of(x)] : NULL;
    const void *elements = all ? tn_data(x) : NULL;
    if (!elements)
        return NULL;
    table t = {.most = n / WORTH};
    tn_array *places = grow(&t) && all(&t, elements, n) ? tn__positions_like(x, t.place, t.count) : NULL;
    tn__free(t.slot);
    tn__free(t.place);
    return places;
}
