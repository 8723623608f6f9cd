/* SPDX-License-Identifier: MIT */
/*
 * Numbers of places, and the error of who uses a handle that is dead. A place is looked up once a scope, or once a
 * tn_free, without a lock; the table only grows, and what finds no room in it has no number.
 */
#include "array/places.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#define ROOM   4096 /* a power of two */
#define PROBES 16

typedef struct place {
    const char *file; /* as the caller gave it: compared, not read, as a library that it lay in may be gone */
    int line;
    bool known;       /* set last */
    bool scope;
    char name[46];    /* of the file, the end of a long one */
} place;

/* No memory is asked for: handles are freed where there is none, too. */
static place places[ROOM];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Makes the place in a slot the given one, if there is none yet. */
static void settle(place *p, const char *file, int line, bool scope)
{
    pthread_mutex_lock(&lock);
    if (!p->known) {
        const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
        size_t length = strlen(name), most = sizeof p->name - 1;
        snprintf(p->name, sizeof p->name, "%s", name + (length > most ? length - most : 0));
        p->file = file;
        p->line = line;
        p->scope = scope;
        __atomic_store_n(&p->known, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

static inline bool is_at(const place *p, const char *file, int line, bool scope)
{
    return p->file == file && p->line == line && p->scope == scope;
}

/* Of a place that is not in the slot `at`, where it is looked for first. */
static __attribute__((noinline)) uint32_t number_from(uint32_t at, const char *file, int line, bool scope)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        place *p = &places[(at + i) & (ROOM - 1)];
        if (!__atomic_load_n(&p->known, __ATOMIC_ACQUIRE))
            settle(p, file, line, scope);
        if (is_at(p, file, line, scope))
            return (uint32_t)(p - places) + 1;
    }
    return 0;
}

static inline uint32_t number_of(const char *file, int line, bool scope)
{
    if (!file)
        return 0;
    uint64_t mixed = ((uintptr_t)file ^ (uintptr_t)line << 20 ^ scope) * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(mixed >> 40) & (ROOM - 1);
    const place *p = &places[at];
    bool there = __atomic_load_n(&p->known, __ATOMIC_ACQUIRE) && is_at(p, file, line, scope);
    return __builtin_expect(there, 1) ? at + 1 : number_from(at, file, line, scope);
}

uint32_t tn__place_here(void)
{
    int line;
    const char *file = tn__caller(&line);
    return number_of(file, line, false);
}

uint32_t tn__place_of_scope(const char *file, int line) { return number_of(file, line, true); }

const char *tn__place_text(uint32_t number, char text[TN__DEATH_TEXT])
{
    const place *p = number ? &places[number - 1] : NULL;
    if (!p)
        snprintf(text, TN__DEATH_TEXT, "freed");
    else if (p->scope)
        snprintf(text, TN__DEATH_TEXT, "freed with the scope opened at %s:%d", p->name, p->line);
    else
        snprintf(text, TN__DEATH_TEXT, "freed at %s:%d", p->name, p->line);
    return text;
}

tn__error *tn__dead_error(const tn_array *x, const char *operation)
{
    const tn__handle *handle = tn__handle_of(x);
    /* The last death of the place is this handle's, unless another has lain there and died since. */
    bool last = handle->generation - tn__generation_of(x) == TN__GENERATION;
    char death[TN__DEATH_TEXT], history[TN__HISTORY_TEXT];
    tn__place_text(last ? handle->died : 0, death);
    tn__history_text(x, history);
    return tn__error_new(TN_ERR_STATE, operation,
                         "this array is no more: it was %s; keep what outlives its scope with tn_keep or tn_own%s%s",
                         death, *history ? ": " : last || tn__history_is_kept() ? "" : " (TANSO_DEBUG=1 tells where)",
                         history);
}
