/* SPDX-License-Identifier: MIT */
/* One folder for a program's tests, made when its first path is asked for; it goes when the program ends. */
#ifndef TN_TESTS_SCRATCH_H
#define TN_TESTS_SCRATCH_H

#include <dirent.h>
#include <stdint.h>

#include "support/folder.h"

static char scratch_folder[256];

static inline void scratch_end(void) { test_folder_remove(scratch_folder); }

/* The path of NAME in the folder. */
static inline const char *scratch_path(const char *name)
{
    if (!scratch_folder[0]) {
        test_folder_make(scratch_folder);
        atexit(scratch_end);
    }
    return test_path(scratch_folder, name);
}

/* The contents, with a NUL after them, for the caller to free. */
static inline uint8_t *scratch_read(const char *path, size_t *size)
{
    uint8_t *data = (uint8_t *)test_read(path, size);
    if (!data) {
        perror(path);
        exit(1);
    }
    return data;
}

/* Number of files and folders in the folder. */
static inline int scratch_count(void)
{
    DIR *folder = opendir(scratch_folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return count;
}

#endif
