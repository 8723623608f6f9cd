/* SPDX-License-Identifier: MIT */
/*
 * Generations of snapshots, see generations.h. A file is of the pattern if it has digits where that has braces and the
 * same text around: "model_best_3" is none of "model_{epoch}".
 *
 * The one to go on from is that of the largest number: a copy of a folder has other times than the folder had. Those
 * that stay are the newest by time, so that the files of a run which began anew are not removed for the larger numbers
 * that an earlier one has left.
 */
#include "train/generations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "io/file.h"

typedef struct generation {
    char *name;
    struct timespec written;
    double number; /* the last one in the name */
} generation;

typedef struct generations {
    generation *items;
    size_t count, capacity;
} generations;

/* What of the name is behind the pattern; NULL if it does not begin so. */
static const char *match(const char *pattern, const char *name, double *number)
{
    *number = 0;
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *name++)
                return NULL;
            continue;
        }
        char *end = (char *)name;
        if (*name >= '0' && *name <= '9')
            *number = (double)strtoull(name, &end, 10);
        if (end == name)
            return NULL;
        name = end;
        pattern += strcspn(pattern, "}");
        pattern += *pattern == '}';
    }
    return name;
}

bool tn__generations_match(const char *pattern, const char *name)
{
    double number;
    const char *rest = match(pattern, name, &number);
    return rest && !*rest;
}

static void generations_free(generations *found)
{
    for (size_t i = 0; i < found->count; i++)
        tn__free(found->items[i].name);
    tn__free(found->items);
    *found = (generations){0};
}

static tn_status add(generations *found, const char *name, const struct stat *status, double number)
{
    char *copy = tn__strdup(name);
    if (!copy || !tn__grow((void **)&found->items, &found->capacity, found->count + 1, sizeof *found->items)) {
        tn__free(copy);
        return tn__fail_memory("snapshot", strlen(name));
    }
    found->items[found->count++] = (generation){copy, status->st_mtim, number};
    return TN_OK;
}

/* Of two that have the same time, that of the larger number. */
static int newest_first(const void *left, const void *right)
{
    const generation *a = left, *b = right;
    if (a->written.tv_sec != b->written.tv_sec)
        return a->written.tv_sec < b->written.tv_sec ? 1 : -1;
    if (a->written.tv_nsec != b->written.tv_nsec)
        return a->written.tv_nsec < b->written.tv_nsec ? 1 : -1;
    return a->number < b->number ? 1 : a->number > b->number ? -1 : strcmp(b->name, a->name);
}

/* All of a folder, newest first; a folder that is not there holds none. */
static tn_status find(const char *folder, const char *pattern, generations *found)
{
    tn_status status = TN_OK;
    DIR *open = opendir(folder);
    if (!open)
        return errno == ENOENT ? TN_OK : tn__fail_errno("snapshot", "read the folder", folder, errno);
    for (struct dirent *entry; status == TN_OK && (entry = readdir(open));) {
        double number;
        struct stat file;
        const char *rest = match(pattern, entry->d_name, &number);
        if (rest && !*rest && fstatat(dirfd(open), entry->d_name, &file, 0) == 0 && S_ISREG(file.st_mode))
            status = add(found, entry->d_name, &file, number);
    }
    closedir(open);
    if (found->count)
        qsort(found->items, found->count, sizeof *found->items, newest_first);
    return status;
}

char *tn__generations_newest(const char *folder, const char *pattern)
{
    generations found = {0};
    char *path = NULL;
    if (find(folder, pattern, &found) == TN_OK && found.count) {
        const generation *newest = &found.items[0], *last = newest;
        for (size_t i = 1; i < found.count; i++)
            if (found.items[i].number > last->number)
                last = &found.items[i];
        if (last != newest)
            tn__log(TN__LOG_WARN, "snapshot",
                    "going on from '%s', whose number is the largest, though '%s' was written later: remove what is "
                    "not wanted", last->name, newest->name);
        path = tn__format("%s/%s", folder, last->name);
        if (!path)
            tn__fail_memory("snapshot", strlen(folder));
    }
    generations_free(&found);
    return path;
}

tn_status tn__generations_keep(const char *folder, const char *pattern, int keep)
{
    generations found = {0};
    tn_status status = find(folder, pattern, &found);
    for (size_t i = (size_t)keep; i < found.count && status == TN_OK; i++) {
        char *path = tn__format("%s/%s", folder, found.items[i].name);
        if (!path)
            status = tn__fail_memory("snapshot", strlen(folder));
        else if (unlink(path) != 0 && errno != ENOENT)
            status = tn__fail_errno("snapshot", "remove", path, errno);
        tn__free(path);
    }
    generations_free(&found);
    return status;
}

/* "….tmp-77-3", see tn__file_temporary, when there is no process 77. */
static bool is_left_over(const char *rest)
{
    long process;
    unsigned number;
    int end = 0;
    return sscanf(rest, ".tmp-%ld-%u%n", &process, &number, &end) == 2 && rest[end] == 0 && process > 0 &&
           kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

void tn__generations_clear(const char *folder, const char *pattern)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        double number;
        const char *rest = match(pattern, entry->d_name, &number);
        if (rest && is_left_over(rest))
            unlinkat(dirfd(open), entry->d_name, 0);
    }
    if (open)
        closedir(open);
}
