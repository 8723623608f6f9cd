/* SPDX-License-Identifier: MIT */
/* Diagnostics to stderr, and the switches of TANSO_DUMP. */
#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

static const char *const level_names[] = {"error", "warn", "note", "info", "debug"};
static atomic_int without = TN__LOG_NOTE; /* the level where TANSO_LOG is not set */

/* TANSO_LOG is read once. */
static int threshold(void)
{
    enum { NOT_READ, NOT_SET, FIRST };
    static atomic_int known; /* or FIRST + level */
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (now >= FIRST)
        return now - FIRST;
    int level = atomic_load_explicit(&without, memory_order_relaxed);
    if (now == NOT_SET)
        return level;
    const char *wanted = getenv("TANSO_LOG");
    int found = -1;
    for (int i = 0; wanted && i <= TN__LOG_DEBUG; i++)
        if (strcmp(wanted, level_names[i]) == 0)
            found = i;
    atomic_store_explicit(&known, found < 0 ? NOT_SET : FIRST + found, memory_order_relaxed);
    if (found < 0 && wanted && *wanted)
        tn__log(TN__LOG_WARN, "core",
                "TANSO_LOG: expected error, warn, note, info or debug; got '%s': going on with note", wanted);
    return found < 0 ? level : found;
}

void tn__log_quiet(void)
{
    atomic_store_explicit(&without, TN__LOG_WARN, memory_order_relaxed);
    (void)threshold(); /* there may be nothing else to say, but a wrong word in TANSO_LOG is told */
}

bool tn__log_shows(tn__log_level level) { return (int)level <= threshold(); }

void tn__log(tn__log_level level, const char *room, const char *format, ...)
{
    if ((int)level > threshold())
        return;
    char text[1024]; /* one write a line, so that the lines of threads do not mix; longer ones are cut */
    va_list args;
    va_start(args, format);
    tn__vprint_into(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "tanso: %s: %s: %s\n", level_names[level], room, text);
}

/* Says once what of TANSO_DUMP means nothing. */
static void check_dumps(const char *list)
{
    static const char *const known[] = {"graph", "plan", "kernels"};
    static atomic_bool said;
    if (atomic_exchange_explicit(&said, true, memory_order_relaxed))
        return;
    for (size_t item; *list; list += item + (list[item] == ',')) {
        item = strcspn(list, ",");
        bool good = item == 0;
        for (int i = 0; i < 3; i++)
            good |= strlen(known[i]) == item && strncmp(list, known[i], item) == 0;
        if (!good)
            tn__log(TN__LOG_WARN, "core", "TANSO_DUMP: expected any of graph,plan,kernels; got '%.*s'", (int)item,
                    list);
    }
}

bool tn__dump_enabled(const char *what)
{
    const char *list = getenv("TANSO_DUMP");
    size_t length = strlen(what);
    if (list && *list)
        check_dumps(list);
    while (list && *list) {
        size_t item = strcspn(list, ",");
        if (item == length && strncmp(list, what, length) == 0)
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}
