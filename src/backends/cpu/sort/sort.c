/* SPDX-License-Identifier: MIT */
/*
 * Sorting: elements become keys, unsigned numbers in the order of the elements, which radix.c sorts, quick.c those of
 * rows of middle length, or network.c those of several short rows.
 *
 * Sorted values are made of the sorted keys, which tell them but for zeros' signs and NaNs' bits: where a row has such,
 * these come from the row itself, in its order. Places travel with the keys, in one word if both fit.
 */
#include "backends/cpu/sort/sort.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/sort/keys.h"
#include "backends/cpu/sort/network.h"
#include "backends/cpu/sort/quick.h"
#include "backends/cpu/sort/radix.h"
#include "core/dtype.h"

/* ---- from elements to words and back ---- */

typedef struct job {
    const tn__cpu_sort_row *row;
    void *words;
    int64_t n;
    int chunks, form;           /* number of chunks of words; tn__radix_form */
    _Atomic uint64_t any, all; /* bits that some keys, that all keys have */
    _Atomic bool odd;          /* the row has negative zeros, or NaNs */
} job;

static void note_keys(job *j, uint64_t any, uint64_t all, bool odd)
{
    if (j->chunks == 1) { /* no other thread does */
        atomic_store_explicit(&j->any, any, memory_order_relaxed);
        atomic_store_explicit(&j->all, all, memory_order_relaxed);
        atomic_store_explicit(&j->odd, odd, memory_order_relaxed);
        return;
    }
    atomic_fetch_or(&j->any, any);
    atomic_fetch_and(&j->all, all);
    if (odd)
        atomic_store(&j->odd, true);
}

#define CHUNK_START(j, c) ((j)->n * (c) / (j)->chunks)

#define VALUE_UNSIGNED(U, k) (k)
#define VALUE_SIGNED(U, k)   ((U)((k) ^ SIGN(U)))
#define VALUE_FLOAT(U, k)    ((U)((U)(((U)((k) - SIGN(U)) ^ TOP(U, ~(k))) - TOP(U, ~(k))) | (TOP(U, ~(k)) & SIGN(U))))
#define ODD_UNSIGNED(U, u, INF) 0
#define ODD_SIGNED(U, u, INF)   0
#define ODD_FLOAT(U, u, INF)    ((U)((u) == SIGN(U)) | NAN_MASK(U, u, INF))

/* Words of the elements of chunks begin to end: `WORD` of the key k and the place i. */
#define KEYS_FUNCTION(name, s, U, KIND, INF, W, WORD) \
    static void name##_##s(void *context, int64_t begin, int64_t end) \
    { \
        job *j = context; \
        const char *from = j->row->from; \
        const int64_t step = j->row->from_step; \
        W *restrict words = j->words; \
        U any = 0, all = (U) ~(U)0, odd = 0; \
        int64_t i = CHUNK_START(j, begin), stop = CHUNK_START(j, end); \
        if (step == sizeof(U)) /* loads side by side, which are vectors */ \
            for (; i < stop; i++) { \
                const U u = ((const U *)from)[i], k = KEY_##KIND(U, u, INF); \
                odd |= (U)ODD_##KIND(U, u, INF), any |= k, all &= k; \
                words[i] = WORD; \
            } \
        for (; i < stop; i++) { \
            const U u = *(const U *)(from + i * step), k = KEY_##KIND(U, u, INF); \
            odd |= (U)ODD_##KIND(U, u, INF), any |= k, all &= k; \
            words[i] = WORD; \
        } \
        note_keys(j, any, all, odd != 0); \
    }
#define ELEMENTS(name, U, KIND, INF, K) \
    KEYS_FUNCTION(keys, name, U, KIND, INF, K, k) \
    KEYS_FUNCTION(packed, name, U, KIND, INF, uint64_t, (uint64_t)k << 32 | (uint64_t)i) \
    KEYS_FUNCTION(pairs, name, U, KIND, INF, tn__radix_pair, ((tn__radix_pair){k, i})) \
    /* Where words lie in the row's memory, each is as large as the element that takes its place. */ \
    static void values_##name(void *context, int64_t begin, int64_t end) \
    { \
        job *j = context; \
        const tn__cpu_sort_row *row = j->row; \
        const K *words = j->words; \
        int64_t i = CHUNK_START(j, begin), stop = CHUNK_START(j, end); \
        if (row->to_step == sizeof(U)) \
            for (; i < stop; i++) \
                ((U *)row->to)[i] = VALUE_##KIND(U, (U)words[i]); \
        for (; i < stop; i++) \
            *(U *)(row->to + i * row->to_step) = VALUE_##KIND(U, (U)words[i]); \
    } \
    /* Where zeros and NaNs begin among sorted keys. */ \
    static void find_odd_##name(const job *j, int64_t at[2]) \
    { \
        const K *keys = j->words, wanted[] = {SIGN(U), (U) ~(U)0}; \
        for (int w = 0; w < 2; w++) { \
            int64_t low = 0, high = j->n; \
            while (low < high) { \
                int64_t middle = low + (high - low) / 2; \
                if (keys[middle] < wanted[w]) \
                    low = middle + 1; \
                else \
                    high = middle; \
            } \
            at[w] = low; \
        } \
    } \
    /* Zeros and NaNs as they lie in the row. */ \
    static void odd_##name(const tn__cpu_sort_row *row, int64_t at[2]) \
    { \
        for (int64_t i = 0; i < row->n; i++) { \
            const U u = *(const U *)(row->from + i * row->from_step), k = KEY_##KIND(U, u, INF); \
            if (k == SIGN(U) || k == (U) ~(U)0) \
                *(U *)(row->to + at[k != SIGN(U)]++ * row->to_step) = u; \
        } \
    }
/* What words hold: keys of 4 bytes, or of 8. */
#define WORD_uint8_t uint32_t
#define WORD_uint16_t uint32_t
#define WORD_uint32_t uint32_t
#define WORD_uint64_t uint64_t
#define ELEMENTS_OF(dtype, name, U, KIND, INF) ELEMENTS(name, U, KIND, INF, WORD_##U)
TN__CPU_KEYED(ELEMENTS_OF)

static const struct elements {
    tn__cpu_body keys, packed, pairs, values;
    void (*find_odd)(const job *j, int64_t at[2]);
    void (*odd)(const tn__cpu_sort_row *row, int64_t at[2]);
} elements[TN_DTYPE_COUNT] = {
#define ENTRY(dtype, s, U, KIND, INF) [dtype] = {keys_##s, packed_##s, pairs_##s, values_##s, find_odd_##s, odd_##s},
    TN__CPU_KEYED(ENTRY)};

/* ---- rows ---- */

static tn__radix_form form_of(tn_dtype dtype, bool positions, int64_t n)
{
    bool wide = tn__dtypes[dtype].size > 4;
    return positions ? (wide || n > UINT32_MAX ? TN__RADIX_PAIRS : TN__RADIX_PACKED)
           : wide    ? TN__RADIX_KEYS64
                     : TN__RADIX_KEYS32;
}

/* Is the output's memory contiguous and large enough to be used for the words? */
static bool room_in_result(tn_dtype dtype, bool positions, int64_t n, int64_t to_step)
{
    size_t size = positions ? sizeof(int64_t) : tn__dtypes[dtype].size;
    return to_step == (int64_t)size && tn__radix_size(form_of(dtype, positions, n)) == size;
}

size_t tn__cpu_sort_scratch(tn_dtype dtype, bool positions, int64_t n, int64_t to_step)
{
    int parts = room_in_result(dtype, positions, n, to_step) ? 1 : 2;
    return (size_t)parts * tn__radix_size(form_of(dtype, positions, n)) * (size_t)n;
}

static void places(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    const tn__cpu_sort_row *row = j->row;
    bool packed = j->form == TN__RADIX_PACKED;
    for (int64_t i = CHUNK_START(j, begin), stop = CHUNK_START(j, end); i < stop; i++) {
        int64_t place = packed ? (int64_t)(((const uint64_t *)j->words)[i] & UINT32_MAX)
                               : ((const tn__radix_pair *)j->words)[i].place;
        memcpy(row->to + i * row->to_step, &place, sizeof place);
    }
}

static void by_team(job *j, tn__cpu_body body)
{
    if (j->chunks == 1)
        body(j, 0, 1);
    else
        tn__cpu_share(j->chunks, j->chunks, body, j);
}

/* Makes the words of a row. */
static void make_words(job *j, void *words, int team)
{
    const tn__cpu_sort_row *row = j->row;
    const struct elements *e = &elements[row->dtype];
    j->n = row->n;
    j->form = form_of(row->dtype, row->positions, row->n);
    j->chunks = team < 1 ? 1 : team > TN__RADIX_TEAM ? TN__RADIX_TEAM : team;
    j->words = words;
    j->all = UINT64_MAX;
    by_team(j, j->form == TN__RADIX_PACKED ? e->packed : j->form == TN__RADIX_PAIRS ? e->pairs : e->keys);
}

static tn__radix begin_row(job *j, void *scratch, void *room, int team)
{
    const tn__cpu_sort_row *row = j->row;
    make_words(j, scratch, team);
    uint64_t vary = j->any & ~j->all;
    return (tn__radix){.form = j->form, .n = row->n, .words = scratch, .room = room, .team = j->chunks,
                       .low = vary ? __builtin_ctzll(vary) : 0, .high = vary ? 64 - __builtin_clzll(vary) : 0};
}

/* Writes the results of sorted words. */
static void end_row(job *j)
{
    const struct elements *e = &elements[j->row->dtype];
    bool odd = !j->row->positions && atomic_load(&j->odd);
    int64_t at[2];
    if (odd)
        e->find_odd(j, at);
    by_team(j, j->row->positions ? places : e->values);
    if (odd)
        e->odd(j->row, at);
}

void tn__cpu_sort(const tn__cpu_sort_row *row, void *scratch, int team)
{
    bool in_result = room_in_result(row->dtype, row->positions, row->n, row->to_step);
    size_t size = tn__radix_size(form_of(row->dtype, row->positions, row->n));
    job j = {.row = row};
    tn__radix r = begin_row(&j, scratch, in_result ? row->to : (char *)scratch + size * (size_t)row->n, team);
    if (tn__quick_suits(&r))
        tn__quick_sort(&r);
    else
        j.words = tn__radix_sort(&r);
    end_row(&j);
}

/* ---- short rows ---- */

size_t tn__cpu_sort_scratch_together(tn_dtype dtype, bool positions, int64_t n)
{
    /* bytes have a digit, or two */
    int64_t most = tn__dtypes[dtype].size == 1 ? TN__NETWORK_MOST / 2 : TN__NETWORK_MOST;
    bool short_ones = n > 1 && n <= most && tn__network_here();
    return short_ones ? 2 * TN__NETWORK_ROWS * (size_t)n * tn__radix_size(form_of(dtype, positions, n)) : 0;
}

void tn__cpu_sort_together(const tn__cpu_sort_row *row, int count, void *scratch)
{
    job j[TN__NETWORK_ROWS];
    size_t bytes = tn__radix_size(form_of(row->dtype, row->positions, row->n)) * (size_t)row->n;
    for (int i = 0; i < TN__NETWORK_ROWS; i++) { /* missing rows are replaced by row 0, whose result is dropped */
        j[i] = (job){.row = &row[i < count ? i : 0]};
        make_words(&j[i], (char *)scratch + (size_t)i * bytes, 1);
    }
    tn__network_sort((tn__radix_form)j[0].form, scratch, row->n, (char *)scratch + TN__NETWORK_ROWS * bytes);
    for (int i = 0; i < count; i++)
        end_row(&j[i]);
}

/* ---- partitions ---- */

typedef struct selected {
    const tn__cpu_sort_row *row;
    int form, team;
} selected;

/* Results begin..end of the row, of words. */
static void write_out(void *context, const void *words, int64_t begin, int64_t end)
{
    const selected *s = context;
    tn__cpu_sort_row part = *s->row;
    part.n = end - begin;
    part.to += begin * part.to_step;
    job j = {.row = &part,
             .words = (void *)words,
             .n = part.n,
             .chunks = part.n < s->team ? 1 : s->team,
             .form = s->form};
    if (part.n > 0)
        by_team(&j, part.positions ? places : elements[part.dtype].values);
}

void tn__cpu_select(const tn__cpu_sort_row *row, int64_t place, void *scratch, int team)
{
    size_t size = tn__radix_size(form_of(row->dtype, row->positions, row->n));
    job j = {.row = row};
    tn__radix r = begin_row(&j, scratch, (char *)scratch + size * (size_t)row->n, team);
    if (!row->positions && atomic_load(&j.odd)) /* whose words do not tell them: sorting finds them again */
        tn__cpu_sort(row, scratch, team);
    else
        tn__radix_select(&r, place, write_out, &(selected){row, j.form, j.chunks});
}
