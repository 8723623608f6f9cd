/* SPDX-License-Identifier: MIT */
/* Files of compiled kernels: sealed when they are written, looked at before they are used. */
#include "device/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"

_Atomic uint64_t tn__kernels_compiled, tn__kernels_found;

#define LARGEST (256 << 20) /* bytes of a kernel file; more is no kernel file */
#define MOST    ((uint64_t)512 << 20) /* bytes of all of them */

/* ---- seals ---- */

typedef struct seal {
    char magic[8];
    uint64_t length;
    char hash[40]; /* 32 digits, a NUL, and padding */
} seal;

static const char magic[8] = {'T', 'A', 'N', 'S', 'O', 'K', '1', '\n'};

/* A file's contents, of a file that is ours alone: TN_OK, TN_ERR_IO or TN_ERR_MEMORY, not latched. */
static tn_status read_whole(int folder, const char *name, char **data, size_t *length)
{
    struct stat info;
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return TN_ERR_IO;
    bool ours = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
                !(info.st_mode & (S_IWGRP | S_IWOTH)) && info.st_size > 0 && info.st_size <= LARGEST;
    *length = ours ? (size_t)info.st_size : 0;
    *data = ours ? tn__alloc(*length) : NULL;
    size_t done = 0;
    while (*data && done < *length) {
        ssize_t got = read(file, *data + done, *length - done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            break;
    }
    close(file);
    if (ours && *data == NULL)
        return TN_ERR_MEMORY;
    if (*data && done == *length)
        return TN_OK;
    tn__free(*data);
    return TN_ERR_IO;
}

/* Once a process, when a kernel is added: looking through thousands of files takes milliseconds, compiling takes
 * longer. */
static void prune(const tn__kernel_folder *folder)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (!folder->temporary && !atomic_flag_test_and_set(&done))
        tn__kernel_prune(folder, MOST);
}

void tn__kernel_unique(char unique[TN__KERNEL_NAME], const char *name)
{
    static _Atomic uint64_t counter;
    uint64_t random = 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random = (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
    snprintf(unique, TN__KERNEL_NAME, "%.42s-%016llx", name,
             (unsigned long long)(random + atomic_fetch_add(&counter, 1)));
}

tn_status tn__kernel_seal(const tn__kernel_folder *folder, const char *name)
{
    prune(folder);
    size_t length;
    char *data;
    tn_status status = read_whole(folder->file, name, &data, &length);
    if (status == TN_ERR_MEMORY)
        return tn__fail_memory("kernels", length);
    if (status != TN_OK)
        return tn__fail(TN_ERR_COMPILE, "kernels", "the compiler left no output in %s/%s", folder->path, name);
    seal end = {.length = length};
    memcpy(end.magic, magic, sizeof(magic));
    tn__hash_name(data, length, end.hash);
    tn__free(data);
    int file = openat(folder->file, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    /* Nobody waits for the disk, which takes milliseconds a file: what a crash has cut off is seen by the seal. */
    bool good = file >= 0 && write(file, &end, sizeof(end)) == (ssize_t)sizeof(end) && fchmod(file, 0700) == 0;
    int failed = errno;
    if (file >= 0 && close(file) != 0)
        good = false;
    return good ? TN_OK
                : tn__fail(TN_ERR_COMPILE, "kernels", "cannot write %s/%s: %s", folder->path, name, strerror(failed));
}

tn_status tn__kernel_rename(const tn__kernel_folder *folder, const char *name, const char *final)
{
    if (renameat(folder->file, name, folder->file, final) == 0)
        return TN_OK;
    return tn__fail(TN_ERR_COMPILE, "kernels", "cannot rename %s/%s to %s: %s", folder->path, name, final,
                    strerror(errno));
}

char *tn__kernel_read(const tn__kernel_folder *folder, const char *name, size_t *length)
{
    if (faccessat(folder->file, name, F_OK, 0) != 0)
        return NULL;
    char *data;
    bool intact = false;
    tn_status status = read_whole(folder->file, name, &data, length);
    if (status == TN_ERR_MEMORY)
        return NULL;
    if (status == TN_OK && *length > sizeof(seal)) {
        seal end;
        char hash[33];
        *length -= sizeof(end);
        memcpy(&end, data + *length, sizeof(end));
        tn__hash_name(data, *length, hash);
        intact = memcmp(end.magic, magic, sizeof(magic)) == 0 && end.length == *length &&
                 memcmp(end.hash, hash, sizeof(hash)) == 0;
    }
    if (intact)
        return data;
    if (status == TN_OK)
        tn__free(data);
    tn__log(TN__LOG_WARN, "kernels", "%s/%s is damaged: compiling it again", folder->path, name);
    unlinkat(folder->file, name, 0);
    return NULL;
}

bool tn__kernel_intact(const tn__kernel_folder *folder, const char *name)
{
    size_t length;
    char *data = tn__kernel_read(folder, name, &length);
    tn__free(data);
    return data != NULL;
}

tn_status tn__kernel_put(const tn__kernel_folder *folder, const char *name, const char *data, size_t length)
{
    int file = openat(folder->file, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), failed = errno;
    bool made = file >= 0, good = made;
    for (size_t done = 0; good && done < length;) {
        ssize_t written = write(file, data + done, length - done);
        good = written > 0 || (written < 0 && errno == EINTR);
        failed = errno;
        done += written > 0 ? (size_t)written : 0;
    }
    if (made && close(file) != 0 && good) {
        failed = errno;
        good = false;
    }
    if (made && !good)
        unlinkat(folder->file, name, 0);
    return good ? TN_OK
                : tn__fail(TN_ERR_COMPILE, "kernels", "cannot write %s/%s: %s", folder->path, name, strerror(failed));
}

tn_status tn__kernel_write(const tn__kernel_folder *folder, const char *name, const char *data, size_t length)
{
    char unique[TN__KERNEL_NAME];
    tn__kernel_unique(unique, name);
    strcat(unique, ".tmp");
    tn_status status = tn__kernel_put(folder, unique, data, length);
    if (status != TN_OK)
        return status;
    status = tn__kernel_seal(folder, unique);
    if (status == TN_OK)
        status = tn__kernel_rename(folder, unique, name);
    if (status != TN_OK)
        unlinkat(folder->file, unique, 0);
    return status;
}

void tn__kernel_keep(const tn__kernel_folder *folder, const char *name, const char *data, size_t length)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    bool clean = !tn__latched();
    if (folder->temporary || tn__kernel_write(folder, name, data, length) == TN_OK)
        return;
    if (!atomic_flag_test_and_set(&told))
        tn__log(TN__LOG_WARN, "kernels", "%s; going on without keeping what is compiled",
                tn__error_message(tn__error_last()));
    if (clean)
        tn_clear_error();
}
