/* SPDX-License-Identifier: MIT */
/* Words that hold keys, unsigned numbers, sorted and partitioned by radix. */
#ifndef TN_BACKENDS_CPU_SORT_RADIX_H
#define TN_BACKENDS_CPU_SORT_RADIX_H

#include <tanso/base.h>

/* Keys alone, of 32 or 64 bits; a key of 32 bits above a place of 32 bits; a key and a place of 64 bits. */
typedef enum tn__radix_form { TN__RADIX_KEYS32, TN__RADIX_KEYS64, TN__RADIX_PACKED, TN__RADIX_PAIRS } tn__radix_form;

typedef struct tn__radix_pair {
    uint64_t key;
    int64_t place;
} tn__radix_pair;

/* Words to be sorted, and room for as many more. */
typedef struct tn__radix {
    tn__radix_form form;
    int64_t n;
    void *words, *room;
    int low, high; /* the words may differ in bits low <= bit < high, not counting places */
    int team;      /* number of threads; the result does not depend on it */
} tn__radix;

/* The most threads. */
enum { TN__RADIX_TEAM = 16 };

size_t tn__radix_size(tn__radix_form form);
/* Sorts the words by key, stably. Returns where they are now: `words` or `room`. */
void *tn__radix_sort(const tn__radix *r);

/*
 * Partitions: afterwards the word at `place` is the one that sorting would put there, none before it is greater, and
 * none after it is less; equal words keep their order. Calls `done` for stretches begin ... end - 1 of places as they
 * become final; word 0 of a stretch is at `words`.
 */
typedef void (*tn__radix_done)(void *context, const void *words, int64_t begin, int64_t end);
void tn__radix_select(const tn__radix *r, int64_t place, tn__radix_done done, void *context);

#endif
