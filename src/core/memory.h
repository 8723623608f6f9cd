/* SPDX-License-Identifier: MIT */
/*
 * Host memory for the library's own records. Everything goes through these, so that tests can make the Nth allocation
 * fail. They return NULL on failure and latch nothing: the caller says what it was doing.
 */
#ifndef TN_CORE_MEMORY_H
#define TN_CORE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <tanso/base.h>
#include "core/plugin.h"

/* Clean-up at exit: functions with __attribute__((destructor(ORDER))) run from rooms above (no order given) down to
 * device and then core, so that what is torn down first may still use what lies below. */
#define TN__EXIT_CORE 101
#define TN__EXIT_DEVICE 102

TN__PLUGIN_BEGIN
/* Zero bytes give memory too. tn__realloc leaves the old memory alone when it fails. */
void *tn__alloc(size_t bytes);
void *tn__calloc(size_t count, size_t bytes);
void *tn__realloc(void *old, size_t bytes);
/* Bytes that array elements are aligned to, here and in arenas: a cache line, and the longest vector. */
#define TN__ALIGNMENT 64
/* So aligned, for array elements; freed with tn__free. From 4 MiB on, on huge pages where the system has them. */
void *tn__alloc_aligned(size_t bytes);
void tn__free(void *memory);
/* A pointer to memory that is freed when it goes out of scope, also by an exception that a function of the program's
 * throws: TN__FREED int *list = tn__alloc(bytes). */
#define TN__FREED __attribute__((cleanup(tn__free_pointer)))
static inline void tn__free_pointer(void *pointer) { tn__free(*(void **)pointer); }
char *tn__strdup(const char *text);
/* printf into fresh memory. */
char *tn__format(const char *format, ...) TN_PRINTF(1, 2);
char *tn__vformat(const char *format, va_list args);

/* Test hook: lets the next `count` allocations of this process succeed and fails the one after (count < 0: off).
 * Returns the number of allocations made since the last call. */
TN_API long tn__fail_allocation_after(long count);

/* A growing array: grows `*items` (of `size` bytes each) so that it holds `needed`; false without memory. */
bool tn__grow_now(void **items, size_t *capacity, size_t needed, size_t size);
static inline bool tn__grow(void **items, size_t *capacity, size_t needed, size_t size)
{
    return __builtin_expect(needed <= *capacity, 1) || tn__grow_now(items, capacity, needed, size);
}

/* A growing string; once an append fails, `failed` stays set and data keeps what fitted. */
typedef struct tn__text {
    char *data;
    size_t length, capacity;
    bool failed;
} tn__text;
void tn__text_add(tn__text *text, const char *string);
void tn__text_addn(tn__text *text, const char *bytes, size_t count);
void tn__text_addf(tn__text *text, const char *format, ...) TN_PRINTF(2, 3);
/* The string, owned by the caller, or NULL if anything failed (then it is freed). */
char *tn__text_take(tn__text *text);
TN__PLUGIN_END

#endif
