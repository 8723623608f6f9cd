/* SPDX-License-Identifier: MIT */
/*
 * The lives of all handles, which TANSO_DEBUG asks for: where each was made, by which operation, where and by which
 * thread it was freed. They are kept until the process ends, in a table by the array's own pointer, which no other
 * handle has had for as many lives as there are generations.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/places.h"
#include "array/thread.h"
#include "core/memory.h"

typedef struct life {
    const tn_array *array; /* NULL: a free place of the table */
    uint32_t made, died;   /* places */
    uint16_t op, thread;   /* what made it; who freed it, 0: nobody yet */
} life;

bool tn__history_kept;
static struct {
    pthread_mutex_t lock;
    life *lives;
    size_t count, room; /* room: 0 or a power of two */
} history = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void begin(void)
{
    const char *wanted = getenv("TANSO_DEBUG");
    tn__history_kept = wanted && *wanted && strcmp(wanted, "0") != 0 && strcmp(wanted, "off") != 0;
}

__attribute__((destructor(TN__EXIT_CORE))) static void end(void)
{
    tn__free(history.lives);
    history.lives = NULL;
    history.count = history.room = 0;
}

/* Where a life stands in a table, or would; there is a free place. */
static life *place_of(life *lives, size_t room, const tn_array *array)
{
    size_t i = (size_t)((uintptr_t)array * 0x9E3779B97F4A7C15u >> 20);
    while (lives[i & (room - 1)].array && lives[i & (room - 1)].array != array)
        i++;
    return &lives[i & (room - 1)];
}

/* Makes room for one more; false without memory. */
static bool grow(void)
{
    if (2 * (history.count + 1) <= history.room)
        return true;
    size_t room = history.room ? 2 * history.room : 1024;
    life *lives = tn__calloc(room, sizeof *lives);
    if (!lives)
        return false;
    for (size_t i = 0; i < history.room; i++)
        if (history.lives[i].array)
            *place_of(lives, room, history.lives[i].array) = history.lives[i];
    tn__free(history.lives);
    history.lives = lives;
    history.room = room;
    return true;
}

void tn__history_made(const tn_array *x, const tn__node *node)
{
    uint32_t place = tn__place_here();
    pthread_mutex_lock(&history.lock);
    if (grow()) { /* else this life is not written down */
        life *l = place_of(history.lives, history.room, x);
        history.count += !l->array;
        *l = (life){.array = x, .made = place, .op = node->op};
    }
    pthread_mutex_unlock(&history.lock);
}

void tn__history_died(const tn_array *x, uint32_t place)
{
    uint16_t thread = tn__thread_number();
    pthread_mutex_lock(&history.lock);
    life *l = history.room ? place_of(history.lives, history.room, x) : NULL;
    if (l && l->array) {
        l->died = place;
        l->thread = thread;
    }
    pthread_mutex_unlock(&history.lock);
}

const char *tn__history_text(const tn_array *x, char text[TN__HISTORY_TEXT])
{
    *text = '\0';
    pthread_mutex_lock(&history.lock);
    const life *found = history.room ? place_of(history.lives, history.room, x) : NULL;
    life l = found ? *found : (life){.array = NULL};
    pthread_mutex_unlock(&history.lock);
    if (!l.array)
        return text;
    char made[TN__DEATH_TEXT], died[TN__DEATH_TEXT];
    snprintf(text, TN__HISTORY_TEXT, "'%s' made it%s, thread %d has it %s", tn__ops[l.op].name,
             tn__place_text(l.made, made) + strlen("freed"), (int)l.thread, tn__place_text(l.died, died));
    return text;
}
