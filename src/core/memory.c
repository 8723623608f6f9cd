/* SPDX-License-Identifier: MIT */
/* Host memory for the library's own records, with a hook that makes a chosen allocation fail. */
#include "core/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/number.h"

/* Blocks from here on are made of huge pages where the system has them: a first touch then costs one fault a 2 MiB
 * instead of 512. */
#define HUGE_BLOCK ((size_t)4 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

static atomic_long allocations;        /* since the last tn__fail_allocation_after */
static atomic_long allowed = -1;       /* successes left before the failure; negative: no failure is due */

static bool permitted(void)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    long left = atomic_load_explicit(&allowed, memory_order_relaxed);
    while (left >= 0) /* 0 becomes -1: a single failure, then all is well again */
        if (atomic_compare_exchange_weak(&allowed, &left, left - 1))
            return left > 0;
    return true;
}

long tn__fail_allocation_after(long count)
{
    atomic_store(&allowed, count < 0 ? -1 : count);
    return atomic_exchange(&allocations, 0);
}

void *tn__alloc(size_t bytes)
{
    return permitted() ? malloc(bytes ? bytes : 1) : NULL;
}

void *tn__calloc(size_t count, size_t bytes)
{
    return permitted() ? calloc(count ? count : 1, bytes ? bytes : 1) : NULL;
}

void *tn__realloc(void *old, size_t bytes)
{
    return permitted() ? realloc(old, bytes ? bytes : 1) : NULL;
}

void *tn__alloc_aligned(size_t bytes)
{
    size_t alignment = bytes >= HUGE_BLOCK ? HUGE_PAGE : TN__ALIGNMENT;
    if (!permitted() || bytes > SIZE_MAX - alignment)
        return NULL;
    size_t rounded = bytes ? (bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT : TN__ALIGNMENT;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, rounded))
        return NULL;
    if (bytes >= HUGE_BLOCK) /* advice: a system without huge pages may refuse it */
        (void)madvise(memory, rounded / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return memory;
}

void tn__free(void *memory)
{
    free(memory);
}

char *tn__strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tn__alloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *tn__vformat(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = tn__vprint_into(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : tn__alloc((size_t)length + 1);
    if (text)
        tn__vprint_into(text, (size_t)length + 1, format, args);
    return text;
}

char *tn__format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tn__vformat(format, args);
    va_end(args);
    return text;
}

bool tn__grow_now(void **items, size_t *capacity, size_t needed, size_t size)
{
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed && wanted <= SIZE_MAX / 2)
        wanted *= 2;
    if (wanted < needed || (size && wanted > SIZE_MAX / size))
        return false;
    void *grown = tn__realloc(*items, wanted * size);
    if (!grown)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

/* Room for `count` more characters and the NUL. */
static bool text_reserve(tn__text *text, size_t count)
{
    if (text->failed || count >= SIZE_MAX - text->length ||
        !tn__grow((void **)&text->data, &text->capacity, text->length + count + 1, 1))
        text->failed = true;
    return !text->failed;
}

void tn__text_addn(tn__text *text, const char *bytes, size_t count)
{
    if (!text_reserve(text, count))
        return;
    if (count)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void tn__text_add(tn__text *text, const char *string)
{
    tn__text_addn(text, string, strlen(string));
}

void tn__text_addf(tn__text *text, const char *format, ...)
{
    if (text->failed)
        return;
    /* Into the room that is there, which is nearly always enough; once more if it was not. */
    size_t room = text->capacity - text->length;
    char *end = room ? text->data + text->length : NULL;
    va_list args;
    va_start(args, format);
    int length = tn__vprint_into(end, room, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < room) {
        text->length += (size_t)length;
        return;
    }
    if (room)
        *end = '\0';
    if (length < 0) {
        text->failed = true;
        return;
    }
    if (!text_reserve(text, (size_t)length))
        return;
    va_start(args, format);
    tn__vprint_into(text->data + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

char *tn__text_take(tn__text *text)
{
    tn__text_addn(text, "", 0); /* an empty text is a string too */
    char *data = text->data;
    if (text->failed) {
        tn__free(data);
        data = NULL;
    }
    *text = (tn__text){0};
    return data;
}
