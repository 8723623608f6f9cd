/* SPDX-License-Identifier: MIT */
/* Keeping the folder of compiled kernels small: what was not used for longest goes. */
#include "device/kernel_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/memory.h"

#define HOUR 3600

typedef struct found {
    char name[72];
    uint64_t bytes;
    int64_t used; /* seconds: when it was last read, as far as the file system notes it, or written */
    int64_t written;
} found;

static int by_use(const void *a, const void *b)
{
    int64_t x = ((const found *)a)->used, y = ((const found *)b)->used;
    return (x > y) - (x < y);
}

/* The folder's own files, to be freed. Files whose names are too long to be a kernel's are somebody else's. */
static found *list(DIR *folder, size_t *count, uint64_t *bytes)
{
    found *files = NULL;
    size_t room = 0;
    *count = 0;
    *bytes = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat info;
        if (strlen(entry->d_name) >= sizeof files->name ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (*count == room) {
            room = room ? 2 * room : 256;
            found *more = tn__realloc(files, room * sizeof *files);
            if (more == NULL)
                break; /* what is known so far will do */
            files = more;
        }
        found *file = &files[(*count)++];
        strcpy(file->name, entry->d_name);
        file->bytes = (uint64_t)info.st_size / (info.st_nlink > 1 ? (uint64_t)info.st_nlink : 1); /* of each name */
        file->written = info.st_mtime;
        file->used = info.st_atime > info.st_mtime ? info.st_atime : info.st_mtime;
        *bytes += file->bytes;
    }
    return files;
}

/* What a killed process left behind: a text, what the compiler said of it, what was half written. */
static bool abandoned(const found *file, int64_t now)
{
    static const char *const endings[] = {".tmp", ".c", ".log"};
    const char *ending = strrchr(file->name, '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(ending, endings[i]) == 0)
            return file->written < now - HOUR;
    return false;
}

void tn__kernel_prune(const tn__kernel_folder *of, uint64_t most)
{
    int file = openat(of->file, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = file >= 0 ? fdopendir(file) : NULL;
    if (folder == NULL) {
        if (file >= 0)
            close(file);
        return;
    }
    size_t count, removed = 0;
    uint64_t bytes;
    found *files = list(folder, &count, &bytes);
    uint64_t least = bytes > most ? most / 2 : bytes;
    int64_t now = (int64_t)time(NULL);
    if (count > 0)
        qsort(files, count, sizeof *files, by_use);
    for (size_t i = 0; i < count; i++)
        if ((bytes > least || abandoned(&files[i], now)) && unlinkat(dirfd(folder), files[i].name, 0) == 0) {
            bytes -= files[i].bytes;
            removed++;
        }
    if (removed > 0)
        tn__log(TN__LOG_INFO, "kernels", "%zu files that were not used for longest removed from %s", removed,
                of->path);
    tn__free(files);
    closedir(folder);
}
