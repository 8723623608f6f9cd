/* SPDX-License-Identifier: MIT */
/*
 * Sorting by radix from the lowest digit (Knuth, The Art of Computer Programming 3, 5.2.5): words are dealt out by a
 * digit of theirs at a time. Each pass keeps the order of what it finds equal, so the whole does.
 *
 * A pass reads four words before it deals them out: what one word does to the counters then does not hold up the next
 * one's loads. Digits have nine bits: so many places to write to fit into the first-level cache, by a line each.
 *
 * Digits that all words share are left out. Where keys have more bits than their number needs, only the highest are
 * dealt out: keys that still are not in order share these and lie beside one another, and are inserted. That costs
 * nothing where they are few; where they turn out to be many, all digits are dealt out after all.
 */
#include "backends/cpu/sort/radix.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/base/parallel.h"

enum {
    DIGIT_BITS = 9,
    DIGITS = 1 << DIGIT_BITS,
    FEW = 48,       /* most words that are sorted by insertion */
    SPARE_BITS = 12 /* beyond the logarithm of their number, by which words are told apart well enough */
};

typedef struct pass {
    const void *from;
    void *to;
    int64_t n;
    int chunks, shift;
    int digit;           /* the digit that a split is about */
    _Atomic bool costly; /* there are too many insertions */
    int64_t (*count)[DIGITS]; /* counters of each chunk */
} pass;

typedef int64_t counters[TN__RADIX_TEAM][DIGITS];

typedef struct word_functions {
    tn__cpu_body count, deal, split, finish;
    void (*insert)(void *words, int64_t n);
    int64_t (*boundary)(const pass *p, int64_t i);
    size_t size;
} word_functions;

static int64_t chunk_start(const pass *p, int64_t c) { return p->n * c / p->chunks; }

#define DIGIT(KEY, w) ((KEY(w) >> shift) & (DIGITS - 1))
#define WORDS(name, W, K, KEY) \
    static void count_##name(void *context, int64_t begin, int64_t end) \
    { \
        pass *p = context; \
        const W *from = p->from; \
        const int shift = p->shift; \
        for (int64_t c = begin; c < end; c++) { \
            int64_t *restrict count = p->count[c], i = chunk_start(p, c), stop = chunk_start(p, c + 1); \
            memset(count, 0, sizeof *p->count); \
            for (; i + 4 <= stop; i += 4) { \
                K d0 = DIGIT(KEY, from[i]), d1 = DIGIT(KEY, from[i + 1]), d2 = DIGIT(KEY, from[i + 2]), \
                  d3 = DIGIT(KEY, from[i + 3]); \
                count[d0]++, count[d1]++, count[d2]++, count[d3]++; \
            } \
            for (; i < stop; i++) \
                count[DIGIT(KEY, from[i])]++; \
        } \
    } \
    static void deal_##name(void *context, int64_t begin, int64_t end) \
    { \
        pass *p = context; \
        const W *restrict from = p->from; \
        const int shift = p->shift; \
        for (int64_t c = begin; c < end; c++) { \
            int64_t i = chunk_start(p, c), stop = chunk_start(p, c + 1); \
            W *restrict at[DIGITS]; \
            for (int d = 0; d < DIGITS; d++) \
                at[d] = (W *)p->to + p->count[c][d]; \
            for (; i + 4 <= stop; i += 4) { \
                const W w0 = from[i], w1 = from[i + 1], w2 = from[i + 2], w3 = from[i + 3]; \
                const K d0 = DIGIT(KEY, w0), d1 = DIGIT(KEY, w1), d2 = DIGIT(KEY, w2), d3 = DIGIT(KEY, w3); \
                *at[d0]++ = w0, *at[d1]++ = w1, *at[d2]++ = w2, *at[d3]++ = w3; \
            } \
            for (; i < stop; i++) \
                *at[DIGIT(KEY, from[i])]++ = from[i]; \
        } \
    } \
    /* Those of lower digits than `digit`, those of it, those of higher ones: each kind in its order. */ \
    static void split_##name(void *context, int64_t begin, int64_t end) \
    { \
        pass *p = context; \
        const W *from = p->from; \
        W *to = p->to; \
        const int shift = p->shift; \
        const K digit = (K)p->digit; \
        for (int64_t c = begin; c < end; c++) { \
            int64_t lower = p->count[c][0], same = p->count[c][1], higher = p->count[c][2]; \
            for (int64_t i = chunk_start(p, c), stop = chunk_start(p, c + 1); i < stop; i++) { \
                const W w = from[i]; \
                const K d = DIGIT(KEY, w); \
                const int64_t is_lower = d < digit, is_same = d == digit; /* chosen by masks: which one is chance */ \
                to[higher ^ ((higher ^ lower) & -is_lower) ^ ((higher ^ same) & -is_same)] = w; \
                lower += is_lower, same += is_same, higher += 1 - is_lower - is_same; \
            } \
        } \
    } \
    static int64_t insert_between_##name(W *w, int64_t begin, int64_t end, int64_t most) \
    { \
        int64_t moves = 0; \
        for (int64_t i = begin + 1; i < end && moves <= most; i++) { \
            const W moving = w[i]; \
            int64_t j = i; \
            for (; j > begin && KEY(w[j - 1]) > KEY(moving); j--) \
                w[j] = w[j - 1]; \
            w[j] = moving; \
            moves += i - j; \
        } \
        return moves; \
    } \
    static void insert_##name(void *words, int64_t n) { insert_between_##name(words, 0, n, INT64_MAX); } \
    /* The first place from i on whose word has other digits from p->shift on than the one before it. */ \
    static int64_t boundary_##name(const pass *p, int64_t i) \
    { \
        const W *w = p->to; \
        while (i > 0 && i < p->n && KEY(w[i]) >> p->shift == KEY(w[i - 1]) >> p->shift) \
            i++; \
        return i; \
    } \
    /* Puts in order what shares these digits, between the boundaries in p->count. */ \
    static void finish_##name(void *context, int64_t begin, int64_t end) \
    { \
        pass *p = context; \
        for (int64_t c = begin; c < end; c++) \
            if (insert_between_##name(p->to, p->count[c][0], p->count[c][1], 4 * p->n) > 4 * p->n) \
                atomic_store(&p->costly, true); \
    }
#define ITSELF(w) (w)
#define KEY_OF(w) ((w).key)
#define HIGH_HALF(w) ((uint32_t)((w) >> 32))
WORDS(u32, uint32_t, uint32_t, ITSELF)
WORDS(u64, uint64_t, uint64_t, ITSELF)
WORDS(packed, uint64_t, uint32_t, HIGH_HALF)
WORDS(pair, tn__radix_pair, uint64_t, KEY_OF)

#define FORM(name, W) \
    { \
        count_##name, deal_##name, split_##name, finish_##name, insert_##name, boundary_##name, sizeof(W) \
    }
static const word_functions forms[] = {[TN__RADIX_KEYS32] = FORM(u32, uint32_t),
                                       [TN__RADIX_KEYS64] = FORM(u64, uint64_t),
                                       [TN__RADIX_PACKED] = FORM(packed, uint64_t),
                                       [TN__RADIX_PAIRS] = FORM(pair, tn__radix_pair)};

size_t tn__radix_size(tn__radix_form form)
{
    return forms[form].size;
}

static void by_team(const pass *p, tn__cpu_body body)
{
    if (p->chunks == 1)
        body((void *)p, 0, 1);
    else
        tn__cpu_share(p->chunks, p->chunks, body, (void *)p);
}

/* Computes where each chunk's words of each digit go; false if all words have the same digit. */
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

/* Distributes the words by their digits from bit `low` on, one pass a digit; afterwards they are at p->from. */
static void deal_digits(pass *p, const word_functions *f, int low, int high)
{
    for (p->shift = low; p->shift < high; p->shift += DIGIT_BITS) {
        by_team(p, f->count);
        if (!place_digits(p))
            continue;
        by_team(p, f->deal);
        void *swap = (void *)p->from;
        p->from = p->to;
        p->to = swap;
    }
}

/* Sorts, by insertion, words that are in order of their digits from bit `low` on; false if that took too many
 * insertions. */
static bool finish(pass *p, const word_functions *f, int low)
{
    counters bounds;
    pass rest = {.count = bounds, .from = p->from, .to = (void *)p->from, .n = p->n, .chunks = p->chunks, .shift = low};
    for (int c = 0; c <= p->chunks; c++) {
        int64_t at = f->boundary(&rest, chunk_start(p, c));
        if (c < p->chunks)
            bounds[c][0] = at;
        if (c > 0)
            bounds[c - 1][1] = at;
    }
    by_team(&rest, f->finish);
    return !atomic_load(&rest.costly);
}

void *tn__radix_sort(const tn__radix *r)
{
    const word_functions *f = &forms[r->form];
    if (r->n <= FEW) {
        f->insert(r->words, r->n);
        return r->words;
    }
    int told_by = 64 - __builtin_clzll((unsigned long long)r->n) + SPARE_BITS;
    int passes = (r->high - r->low + DIGIT_BITS - 1) / DIGIT_BITS, needed = (told_by + DIGIT_BITS - 1) / DIGIT_BITS;
    int low = needed < passes ? r->high - needed * DIGIT_BITS : r->low;
    counters count;
    pass p = {.count = count, .from = r->words, .to = r->room, .n = r->n, .chunks = r->team};
    deal_digits(&p, f, low, r->high);
    if (low > r->low && !finish(&p, f, low))
        deal_digits(&p, f, r->low, r->high);
    return (void *)p.from;
}

/* ---- selecting ---- */

/* Only the words that share the highest digits with the one that goes to `place` are looked at again. */

/* Computes where each chunk's words of the three kinds go; returns how many have lower digits. */
static int64_t place_kinds(pass *p)
{
    int64_t kinds[TN__RADIX_TEAM][3] = {{0}}, at = 0, lower = 0;
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

/* Finds the digit of the word that sorting puts at `wanted`; returns how many words have it. */
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

void tn__radix_select(const tn__radix *r, int64_t place, tn__radix_done done, void *context)
{
    const word_functions *f = &forms[r->form];
    int64_t begin = 0, end = r->n;
    char *from = r->words, *to = r->room;
    counters count;
    pass p = {.count = count};
    for (int high = r->high; high > r->low && end - begin > FEW; high -= DIGIT_BITS) {
        p.n = end - begin;
        p.chunks = p.n < r->team ? 1 : r->team;
        p.shift = high - DIGIT_BITS > r->low ? high - DIGIT_BITS : r->low;
        p.from = from + begin * (int64_t)f->size;
        p.to = to + begin * (int64_t)f->size;
        by_team(&p, f->count);
        int64_t same = find_digit(&p, place - begin);
        if (same == p.n)
            continue;
        int64_t lower = place_kinds(&p);
        by_team(&p, f->split);
        done(context, to + begin * (int64_t)f->size, begin, begin + lower);
        done(context, to + (begin + lower + same) * (int64_t)f->size, begin + lower + same, end);
        begin += lower;
        end = begin + same;
        char *swap = from;
        from = to;
        to = swap;
    }
    if (end - begin <= FEW)
        f->insert(from + begin * (int64_t)f->size, end - begin);
    done(context, from + begin * (int64_t)f->size, begin, end);
}
