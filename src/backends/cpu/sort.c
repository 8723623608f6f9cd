/* SPDX-License-Identifier: MIT */
/*
 * Sorting by radix: elements become keys, unsigned numbers in the order of the elements, which are dealt out by a byte of theirs
 * at a time from the lowest. Each pass keeps the order of what it finds equal, so the whole does.
 *
 * Sorted values are made of the sorted keys, which tell them but for zeros' signs and NaNs' bits: where a row has such, these come
 * from the row itself, in its order. Places travel with the keys, in one word if both fit.
 */
#include "backends/cpu/sort.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/parallel.h"
#include "core/dtype.h"

#define MOST_CHUNKS 16
#define FEW 48 /* sorted by insertion */
enum { DIGITS = 256 };

typedef struct pair {
    uint64_t key;
    int64_t place;
} pair;

/* ---- one pass over words: each chunk of them counts its digits, then deals them out behind those of the chunks before ---- */

typedef struct pass {
    const void *from;
    void *to;
    int64_t n;
    int chunks, shift;
    int digit;         /* of a split */
    int64_t count[MOST_CHUNKS][DIGITS];
} pass;

typedef struct word_functions {
    tn__cpu_body count, deal, split;
    void (*insert)(void *words, int64_t n);
    size_t size;
} word_functions;

#define CHUNK_START(j, c) ((j)->n * (c) / (j)->chunks)
#define WORDS(name, W, KEY) \
    static void count_##name(void *context, int64_t begin, int64_t end) \
    { \
        pass *p = context; \
        const W *from = p->from; \
        for (int64_t c = begin; c < end; c++) { \
            int64_t *count = p->count[c]; \
            memset(count, 0, sizeof p->count[c]); \
            for (int64_t i = CHUNK_START(p, c), stop = CHUNK_START(p, c + 1); i < stop; i++) \
                count[KEY(from[i]) >> p->shift & (DIGITS - 1)]++; \
        } \
    } \
    static void deal_##name(void *context, int64_t begin, int64_t end) \
    { \
        pass *p = context; \
        const W *from = p->from; \
        W *to = p->to; \
        for (int64_t c = begin; c < end; c++) { \
            int64_t *at = p->count[c]; \
            for (int64_t i = CHUNK_START(p, c), stop = CHUNK_START(p, c + 1); i < stop; i++) \
                to[at[KEY(from[i]) >> p->shift & (DIGITS - 1)]++] = from[i]; \
        } \
    } \
    /* Those of lower digits than `digit`, those of it, those of higher ones: each kind in its order. */ \
    static void split_##name(void *context, int64_t begin, int64_t end) \
    { \
        pass *p = context; \
        const W *from = p->from; \
        W *to = p->to; \
        for (int64_t c = begin; c < end; c++) { \
            int64_t *at = p->count[c]; \
            for (int64_t i = CHUNK_START(p, c), stop = CHUNK_START(p, c + 1); i < stop; i++) { \
                int d = (int)(KEY(from[i]) >> p->shift & (DIGITS - 1)); \
                to[at[(d >= p->digit) + (d > p->digit)]++] = from[i]; \
            } \
        } \
    } \
    static void insert_##name(void *words, int64_t n) \
    { \
        W *w = words; \
        for (int64_t i = 1; i < n; i++) { \
            W moving = w[i]; \
            int64_t j = i; \
            for (; j > 0 && KEY(w[j - 1]) > KEY(moving); j--) \
                w[j] = w[j - 1]; \
            w[j] = moving; \
        } \
    }
#define ITSELF(w) (w)
#define KEY_OF(w) ((w).key)
WORDS(u32, uint32_t, ITSELF)
WORDS(u64, uint64_t, ITSELF)
WORDS(pair, pair, KEY_OF)

enum { KEYS32, KEYS64, PACKED, PAIRS };
static const word_functions words[] = {[KEYS32] = {count_u32, deal_u32, split_u32, insert_u32, sizeof(uint32_t)},
                                       [KEYS64] = {count_u64, deal_u64, split_u64, insert_u64, sizeof(uint64_t)},
                                       [PACKED] = {count_u64, deal_u64, split_u64, insert_u64, sizeof(uint64_t)},
                                       [PAIRS] = {count_pair, deal_pair, split_pair, insert_pair, sizeof(pair)}};

static void by_team(int team, int chunks, tn__cpu_body body, void *context)
{
    if (chunks == 1)
        body(context, 0, 1);
    else
        tn__cpu_share(team, chunks, body, context);
}

/* Where each chunk's words of each digit go; false if all words have the same digit. */
static bool place_digits(pass *p)
{
    int64_t at = 0;
    for (int d = 0; d < DIGITS; d++) {
        int64_t before = at;
        for (int c = 0; c < p->chunks; c++) {
            int64_t next = at + p->count[c][d];
            p->count[c][d] = at;
            at = next;
        }
        if (at - before == p->n)
            return false;
    }
    return true;
}

/* The words in order, in one of the two arrays. */
static void *sorted_words(const word_functions *f, void *from, void *to, int64_t n, int first_bit, int bytes, int chunks)
{
    pass p = {.n = n, .chunks = chunks};
    if (n <= FEW) {
        f->insert(from, n);
        return from;
    }
    for (int b = 0; b < bytes; b++) {
        p.from = from;
        p.to = to;
        p.shift = first_bit + 8 * b;
        by_team(chunks, chunks, f->count, &p);
        if (!place_digits(&p))
            continue;
        by_team(chunks, chunks, f->deal, &p);
        void *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* ---- from elements to words and back ---- */

typedef struct job {
    const tn__cpu_sort_row *row;
    void *words;
    int64_t n;
    int chunks, form;  /* of words */
    _Atomic bool odd; /* there are zeros below zero, or NaNs */
} job;

#define SIGN(U) ((U)((U)1 << (8 * sizeof(U) - 1)))
#define KEY_UNSIGNED(U, u, INF) (u)
#define KEY_SIGNED(U, u, INF)   ((U)((u) ^ SIGN(U)))
#define KEY_FLOAT(U, u, INF) \
    ((U)((u) & (U)~SIGN(U)) > (U)(INF) ? (U) ~(U)0 : (u) & SIGN(U) ? (U)(SIGN(U) - ((u) & (U)~SIGN(U))) : (U)(SIGN(U) + (u)))
#define VALUE_UNSIGNED(U, k) (k)
#define VALUE_SIGNED(U, k)   ((U)((k) ^ SIGN(U)))
#define VALUE_FLOAT(U, k)    ((k) >= SIGN(U) ? (U)((k) - SIGN(U)) : (U)(SIGN(U) | (SIGN(U) - (k))))
#define ODD_UNSIGNED(U, u, INF) 0
#define ODD_SIGNED(U, u, INF)   0
#define ODD_FLOAT(U, u, INF)    ((u) == SIGN(U) || (U)((u) & (U)~SIGN(U)) > (U)(INF))

/* For all chunks from begin to end: i of the row, the element's bits u. */
#define EACH_ELEMENT(U, body) \
    job *j = context; \
    const tn__cpu_sort_row *row = j->row; \
    for (int64_t i = CHUNK_START(j, begin), stop = CHUNK_START(j, end); i < stop; i++) { \
        U u; \
        memcpy(&u, row->from + i * row->from_step, sizeof u); \
        body \
    }
#define ELEMENTS(name, U, KIND, INF, K) \
    static void keys_##name(void *context, int64_t begin, int64_t end) \
    { \
        bool odd = false; \
        EACH_ELEMENT(U, odd |= ODD_##KIND(U, u, INF); ((K *)j->words)[i] = KEY_##KIND(U, u, INF);) \
        if (odd) \
            atomic_store(&j->odd, true); \
    } \
    static void packed_##name(void *context, int64_t begin, int64_t end) \
    { \
        EACH_ELEMENT(U, ((uint64_t *)j->words)[i] = (uint64_t)KEY_##KIND(U, u, INF) << 32 | (uint64_t)i;) \
    } \
    static void pairs_##name(void *context, int64_t begin, int64_t end) \
    { \
        EACH_ELEMENT(U, ((pair *)j->words)[i] = ((pair){KEY_##KIND(U, u, INF), i});) \
    } \
    static void values_##name(void *context, int64_t begin, int64_t end) \
    { \
        job *j = context; \
        const tn__cpu_sort_row *row = j->row; \
        for (int64_t i = CHUNK_START(j, begin), stop = CHUNK_START(j, end); i < stop; i++) { \
            U k = (U)((const K *)j->words)[i], u = VALUE_##KIND(U, k); \
            memcpy(row->to + i * row->to_step, &u, sizeof u); \
        } \
    } \
    /* Zeros and NaNs as they lie in the row. */ \
    static void odd_##name(const job *j) \
    { \
        const tn__cpu_sort_row *row = j->row; \
        const K *keys = j->words, wanted[] = {SIGN(U), (U) ~(U)0}; \
        int64_t at[2]; \
        for (int w = 0; w < 2; w++) { \
            int64_t low = 0, high = row->n; \
            while (low < high) { \
                int64_t middle = low + (high - low) / 2; \
                if (keys[middle] < wanted[w]) \
                    low = middle + 1; \
                else \
                    high = middle; \
            } \
            at[w] = low; \
        } \
        for (int64_t i = 0; i < row->n; i++) { \
            U u; \
            memcpy(&u, row->from + i * row->from_step, sizeof u); \
            U k = KEY_##KIND(U, u, INF); \
            if (k == wanted[0] || k == wanted[1]) \
                memcpy(row->to + at[k == wanted[1]]++ * row->to_step, &u, sizeof u); \
        } \
    }
ELEMENTS(u8, uint8_t, UNSIGNED, 0, uint32_t)
ELEMENTS(u16, uint16_t, UNSIGNED, 0, uint32_t)
ELEMENTS(u32, uint32_t, UNSIGNED, 0, uint32_t)
ELEMENTS(u64, uint64_t, UNSIGNED, 0, uint64_t)
ELEMENTS(i8, uint8_t, SIGNED, 0, uint32_t)
ELEMENTS(i16, uint16_t, SIGNED, 0, uint32_t)
ELEMENTS(i32, uint32_t, SIGNED, 0, uint32_t)
ELEMENTS(i64, uint64_t, SIGNED, 0, uint64_t)
ELEMENTS(f16, uint16_t, FLOAT, 0x7c00u, uint32_t)
ELEMENTS(bf16, uint16_t, FLOAT, 0x7f80u, uint32_t)
ELEMENTS(f32, uint32_t, FLOAT, 0x7f800000u, uint32_t)
ELEMENTS(f64, uint64_t, FLOAT, 0x7ff0000000000000ull, uint64_t)

static const struct elements {
    tn__cpu_body keys, packed, pairs, values;
    void (*odd)(const job *j);
} elements[TN_DTYPE_COUNT] = {
#define ENTRY(dtype, s) [dtype] = {keys_##s, packed_##s, pairs_##s, values_##s, odd_##s}
    ENTRY(TN_BOOL, u8),   ENTRY(TN_INT8, i8),     ENTRY(TN_INT16, i16),   ENTRY(TN_INT32, i32),     ENTRY(TN_INT64, i64),
    ENTRY(TN_UINT8, u8),  ENTRY(TN_UINT16, u16),  ENTRY(TN_UINT32, u32),  ENTRY(TN_UINT64, u64),    ENTRY(TN_FLOAT16, f16),
    ENTRY(TN_BFLOAT16, bf16), ENTRY(TN_FLOAT32, f32), ENTRY(TN_FLOAT64, f64)};

/* ---- rows ---- */

bool tn__cpu_sorts(tn_dtype dtype)
{
    return elements[dtype].keys != NULL;
}

static int words_of(tn_dtype dtype, bool positions, int64_t n)
{
    bool wide = tn__dtypes[dtype].size > 4;
    return positions ? (wide || n > UINT32_MAX ? PAIRS : PACKED) : wide ? KEYS64 : KEYS32;
}

size_t tn__cpu_sort_scratch(tn_dtype dtype, bool positions, int64_t n)
{
    return 2 * words[words_of(dtype, positions, n)].size * (size_t)n;
}

static void places(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    const tn__cpu_sort_row *row = j->row;
    bool packed = j->form == PACKED;
    for (int64_t i = CHUNK_START(j, begin), stop = CHUNK_START(j, end); i < stop; i++) {
        int64_t place = packed ? (int64_t)(((const uint64_t *)j->words)[i] & UINT32_MAX) : ((const pair *)j->words)[i].place;
        memcpy(row->to + i * row->to_step, &place, sizeof place);
    }
}

void tn__cpu_sort(const tn__cpu_sort_row *row, void *scratch, int team)
{
    int form = words_of(row->dtype, row->positions, row->n), chunks = team < 1 ? 1 : team > MOST_CHUNKS ? MOST_CHUNKS : team;
    const word_functions *f = &words[form];
    const struct elements *e = &elements[row->dtype];
    job j = {.row = row, .words = scratch, .n = row->n, .chunks = chunks, .form = form};
    by_team(chunks, chunks, form == PACKED ? e->packed : form == PAIRS ? e->pairs : e->keys, &j);
    j.words = sorted_words(f, scratch, (char *)scratch + f->size * (size_t)row->n, row->n, form == PACKED ? 32 : 0,
                           tn__dtypes[row->dtype].size, chunks);
    by_team(chunks, chunks, row->positions ? places : e->values, &j);
    if (!row->positions && atomic_load(&j.odd))
        e->odd(&j);
}

/* ---- selecting: only the words that share the highest digits with the one that goes to `place` are looked at again ---- */

/* Results from..to of the row, of words. */
static void write_out(const tn__cpu_sort_row *row, int form, const void *words_at, int64_t from, int64_t to, int team)
{
    tn__cpu_sort_row part = *row;
    part.n = to - from;
    part.to += from * row->to_step;
    int chunks = part.n < team ? 1 : team;
    job j = {.row = &part, .words = (char *)words_at + from * (int64_t)words[form].size, .n = part.n, .chunks = chunks, .form = form};
    if (part.n > 0)
        by_team(chunks, chunks, row->positions ? places : elements[row->dtype].values, &j);
}

/* Where each chunk's words of the three kinds go; how many are of lower digits. */
static int64_t place_kinds(pass *p)
{
    int64_t kinds[MOST_CHUNKS][3] = {{0}}, at = 0, lower = 0;
    for (int c = 0; c < p->chunks; c++)
        for (int d = 0; d < DIGITS; d++)
            kinds[c][(d >= p->digit) + (d > p->digit)] += p->count[c][d];
    for (int k = 0; k < 3; k++)
        for (int c = 0; c < p->chunks; c++) {
            p->count[c][k] = at;
            at += kinds[c][k];
            lower += k == 0 ? kinds[c][k] : 0;
        }
    return lower;
}

/* The digit of the word that goes to place `wanted`, and how many words have it. */
static int64_t find_digit(pass *p, int64_t wanted)
{
    int64_t upto = 0, here = 0;
    for (p->digit = 0; p->digit < DIGITS; p->digit++) {
        here = 0;
        for (int c = 0; c < p->chunks; c++)
            here += p->count[c][p->digit];
        if (wanted < upto + here)
            break;
        upto += here;
    }
    return here;
}

static void select_words(const tn__cpu_sort_row *row, int form, char *from, char *to, int64_t place, int team)
{
    const word_functions *f = &words[form];
    int64_t begin = 0, end = row->n;
    pass p;
    for (int b = tn__dtypes[row->dtype].size - 1; b >= 0 && end - begin > FEW; b--) {
        p.n = end - begin;
        p.chunks = p.n < team ? 1 : team;
        p.shift = (form == PACKED ? 32 : 0) + 8 * b;
        p.from = from + begin * (int64_t)f->size;
        p.to = to + begin * (int64_t)f->size;
        by_team(p.chunks, p.chunks, f->count, &p);
        int64_t same = find_digit(&p, place - begin);
        if (same == p.n)
            continue;
        int64_t lower = place_kinds(&p);
        by_team(p.chunks, p.chunks, f->split, &p);
        write_out(row, form, to, begin, begin + lower, team);
        write_out(row, form, to, begin + lower + same, end, team);
        begin += lower;
        end = begin + same;
        char *swap = from;
        from = to;
        to = swap;
    }
    if (end - begin <= FEW)
        f->insert(from + begin * (int64_t)f->size, end - begin);
    write_out(row, form, from, begin, end, team);
}

void tn__cpu_select(const tn__cpu_sort_row *row, int64_t place, void *scratch, int team)
{
    int form = words_of(row->dtype, row->positions, row->n), chunks = team < 1 ? 1 : team > MOST_CHUNKS ? MOST_CHUNKS : team;
    const struct elements *e = &elements[row->dtype];
    job j = {.row = row, .words = scratch, .n = row->n, .chunks = chunks};
    by_team(chunks, chunks, form == PACKED ? e->packed : form == PAIRS ? e->pairs : e->keys, &j);
    if (!row->positions && atomic_load(&j.odd)) /* whose words do not tell them: sorting finds them again */
        tn__cpu_sort(row, scratch, team);
    else
        select_words(row, form, scratch, (char *)scratch + words[form].size * (size_t)row->n, place, chunks);
}
