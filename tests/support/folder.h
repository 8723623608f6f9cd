/* SPDX-License-Identifier: MIT */
/* A folder for a test's files, made fresh and removed with all that is in it; whole files as strings. */
#ifndef TN_TESTS_FOLDER_H
#define TN_TESTS_FOLDER_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void test_folder_make(char path[256])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, 256, "%.200s/tanso-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path)) {
        perror(path);
        exit(1);
    }
}

static inline int test_folder_remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static inline void test_folder_remove(const char *path) { nftw(path, test_folder_remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* FOLDER/NAME; kept until the program ends. */
static inline const char *test_path(const char *folder, const char *name)
{
    static struct kept {
        struct kept *next;
        char path[];
    } * all;
    size_t size = strlen(folder) + strlen(name) + 2;
    struct kept *one = malloc(sizeof *one + size);
    if (!one)
        exit(1);
    one->next = all;
    all = one;
    snprintf(one->path, size, "%s/%s", folder, name);
    return one->path;
}

static inline bool test_exists(const char *path) { return access(path, F_OK) == 0; }

/* A file's contents with a NUL after them, malloc's; NULL if it can't be read. */
static inline char *test_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = 1 << 16, length = 0;
    char *data = file ? malloc(capacity) : NULL;
    while (data) {
        length += fread(data + length, 1, capacity - length - 1, file);
        if (length < capacity - 1)
            break;
        data = realloc(data, capacity *= 2);
    }
    if (file)
        fclose(file);
    if (data)
        data[length] = '\0';
    if (size)
        *size = length;
    return data;
}

static inline bool test_same_files(const char *a, const char *b)
{
    size_t a_size = 0, b_size = 0;
    char *a_data = test_read(a, &a_size), *b_data = test_read(b, &b_size);
    bool same = a_data && b_data && a_size == b_size && memcmp(a_data, b_data, a_size) == 0;
    free(a_data);
    free(b_data);
    return same;
}

static inline void test_write_bytes(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static inline void test_write(const char *path, const char *text) { test_write_bytes(path, text, strlen(text)); }

/* The figures of a log that do not depend on the clock, as text: two runs that went the same way give the same. */
static inline char *test_log_figures(const char *path)
{
    char *log = test_read(path, NULL), *out = log ? calloc(strlen(log) + 1, 1) : NULL;
    for (char *line = log; out && line && *line;) {
        char *end = strchr(line, '\n'), *seconds = strstr(line, "\"seconds\"");
        size_t length = seconds && (!end || seconds < end) ? (size_t)(seconds - line)
                        : end                              ? (size_t)(end - line)
                                                           : strlen(line);
        memcpy(out + strlen(out), line, length);
        strcat(out, "\n");
        line = end ? end + 1 : NULL;
    }
    free(log);
    return out;
}

#endif
