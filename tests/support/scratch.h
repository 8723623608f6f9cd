/* SPDX-License-Identifier: MIT */
/* A folder of its own for a test, and whole files in it. The folder goes when the program ends. */
#ifndef TN_TESTS_SCRATCH_H
#define TN_TESTS_SCRATCH_H

#include <dirent.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_folder[512];

static inline int scratch_remove(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline void scratch_end(void)
{
    nftw(scratch_folder, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of NAME in the folder, in one of eight buffers used in turn. */
static inline const char *scratch_path(const char *name)
{
    static char paths[8][1024];
    static int turn;
    if (!scratch_folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(scratch_folder, sizeof scratch_folder, "%s/tanso-test-XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(scratch_folder)) {
            perror(scratch_folder);
            exit(1);
        }
        atexit(scratch_end);
    }
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

static inline void scratch_write(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* The contents, with a NUL after them, for the caller to free. */
static inline uint8_t *scratch_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = (uint8_t *)malloc(*size + 1);
    if (!data || fread(data, 1, *size, file) != *size)
        exit(1);
    data[*size] = 0;
    fclose(file);
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
