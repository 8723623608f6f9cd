/* SPDX-License-Identifier: MIT */
/* Where compiled kernels are kept, and whether they may be trusted. */
#include "device/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <tanso/device.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"

_Atomic uint64_t tn__kernels_compiled, tn__kernels_found;

#define LARGEST (256 << 20) /* bytes of a kernel file; more is no kernel file */
#define MOST    ((uint64_t)512 << 20) /* bytes of all of them */
#define ROOM    (2 << 20)              /* bytes that a text, what the compiler says and what comes of it may take */

/* ---- folders ---- */

/* Makes a folder and the ones above it; 0, or an errno. */
static int make_folders(char *path)
{
    for (char *p = path + 1;; p++) {
        char end = *p;
        if (end != '/' && end != 0)
            continue;
        *p = 0;
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST && errno != EISDIR ? errno : 0;
        *p = end;
        if (failed == EROFS || failed == EACCES) { /* so say some systems of a folder that exists, too */
            struct stat info;
            *p = 0;
            failed = stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? 0 : failed;
            *p = end;
        }
        if (failed || end == 0)
            return failed;
    }
}

/* NULL if nobody else can change what is in the folder, else why it is not so. */
static const char *unsafe(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return "is not a folder";
    if (info.st_uid != geteuid())
        return "belongs to another user";
    if (info.st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by others (chmod go-w mends it)";
    return access(path, W_OK | X_OK) == 0 ? NULL : "cannot be written";
}

/* The cache's own folder; false if the environment names none. */
static bool cache_folder(char *path, size_t size)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"TANSO_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/tanso"}, {"HOME", "/.cache/tanso"}};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        const char *value = getenv(places[i].variable);
        if (value && value[0] == '/' && (size_t)snprintf(path, size, "%s%s", value, places[i].below) < size)
            return true;
    }
    return false;
}

static const char no_folder[] = "none of TANSO_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder by its whole path";

char *tn_kernel_cache(void)
{
    char path[PATH_MAX - 128];
    if (!cache_folder(path, sizeof(path) - sizeof("/kernels"))) {
        tn__fail(TN_ERR_IO, "kernel_cache", "%s", no_folder);
        return NULL;
    }
    char *text = tn__format("%s/kernels", path);
    if (!text)
        tn__fail_memory("kernel_cache", strlen(path));
    return text;
}

tn_status tn__kernel_folder_private(tn__kernel_folder *folder)
{
    const char *place = getenv("TMPDIR");
    if (place == NULL || place[0] != '/' || strlen(place) > sizeof(folder->path) - 32)
        place = "/tmp";
    snprintf(folder->path, sizeof(folder->path), "%.2048s/tanso-XXXXXX", place);
    folder->temporary = mkdtemp(folder->path) != NULL;
    if (!folder->temporary)
        return tn__fail(TN_ERR_COMPILE, "kernels",
                        "cannot make a folder %s to compile in: %s; set TMPDIR or TANSO_CACHE_DIR",
                        folder->path, strerror(errno));
    return TN_OK;
}

/* Says once why nothing is kept. */
static void tell(const char *what, const char *path, const char *why)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        tn__log(TN__LOG_WARN, "kernels", "%s%s: %s; kernels will be compiled anew in each process", what, path, why);
}

tn_status tn__kernel_folder_open(tn__kernel_folder *folder)
{
    *folder = (tn__kernel_folder){.temporary = false};
    if (!cache_folder(folder->path, sizeof(folder->path) - sizeof("/kernels"))) {
        tell("no cache", "", no_folder);
        return tn__kernel_folder_private(folder);
    }
    char *end = folder->path + strlen(folder->path);
    strcpy(end, "/kernels");
    int failed = make_folders(folder->path);
    const char *why = failed ? strerror(failed) : unsafe(folder->path);
    if (why == NULL) {
        *end = 0;
        why = unsafe(folder->path);
        *end = '/';
    }
    if (why == NULL)
        return TN_OK;
    tell("not using the cache ", folder->path, why);
    return tn__kernel_folder_private(folder);
}

tn_status tn__kernel_folder_with_room(tn__kernel_folder *folder)
{
    struct statvfs disk;
    if (folder->temporary || statvfs(folder->path, &disk) != 0 || disk.f_blocks == 0 ||
        (uint64_t)disk.f_bavail * disk.f_frsize >= ROOM)
        return TN_OK;
    tell("not using the cache ", folder->path, strerror(ENOSPC));
    return tn__kernel_folder_private(folder);
}

void tn__kernel_folder_close(tn__kernel_folder *folder)
{
    if (folder->temporary)
        rmdir(folder->path);
}

/* ---- seals ---- */

typedef struct seal {
    char magic[8];
    uint64_t length;
    char hash[40]; /* 32 digits, a NUL, and padding */
} seal;

static const char magic[8] = {'T', 'A', 'N', 'S', 'O', 'K', '1', '\n'};

/* A file's contents, of a file that is ours alone: TN_OK, TN_ERR_IO or TN_ERR_MEMORY, not latched. */
static tn_status read_whole(const char *path, char **data, size_t *length)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
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
static void prune_around(const char *path)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    char folder[PATH_MAX];
    const char *end = strrchr(path, '/');
    if (end == NULL || atomic_flag_test_and_set(&done))
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(end - path), path);
    tn__kernel_prune(folder, MOST);
}

tn_status tn__kernel_seal(const char *path)
{
    prune_around(path);
    size_t length;
    char *data;
    tn_status status = read_whole(path, &data, &length);
    if (status == TN_ERR_MEMORY)
        return tn__fail_memory("kernels", length);
    if (status != TN_OK)
        return tn__fail(TN_ERR_COMPILE, "kernels", "the compiler left no output in %s", path);
    seal end = {.length = length};
    memcpy(end.magic, magic, sizeof(magic));
    tn__hash_name(data, length, end.hash);
    tn__free(data);
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    bool good = file >= 0 && write(file, &end, sizeof(end)) == (ssize_t)sizeof(end) && fchmod(file, 0700) == 0 &&
                fsync(file) == 0;
    int failed = errno;
    if (file >= 0 && close(file) != 0)
        good = false;
    return good ? TN_OK : tn__fail(TN_ERR_COMPILE, "kernels", "cannot write %s: %s", path, strerror(failed));
}

char *tn__kernel_read(const char *path, size_t *length)
{
    if (access(path, F_OK) != 0)
        return NULL;
    char *data;
    bool intact = false;
    tn_status status = read_whole(path, &data, length);
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
    tn__log(TN__LOG_WARN, "kernels", "%s is damaged: compiling it again", path);
    unlink(path);
    return NULL;
}

bool tn__kernel_intact(const char *path)
{
    size_t length;
    char *data = tn__kernel_read(path, &length);
    tn__free(data);
    return data != NULL;
}

tn_status tn__kernel_write(const tn__kernel_folder *folder, const char *name, const char *data, size_t length)
{
    static _Atomic unsigned counter;
    char path[PATH_MAX], final[PATH_MAX];
    snprintf(final, sizeof(final), "%s/%.64s", folder->path, name);
    snprintf(path, sizeof(path), "%s/%.64s-%d-%u.tmp", folder->path, name, (int)getpid(),
             atomic_fetch_add(&counter, 1));
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), failed = errno;
    bool good = file >= 0;
    for (size_t done = 0; good && done < length;) {
        ssize_t written = write(file, data + done, length - done);
        good = written > 0 || (written < 0 && errno == EINTR);
        failed = errno;
        done += written > 0 ? (size_t)written : 0;
    }
    if (file >= 0)
        close(file);
    tn_status status = good ? tn__kernel_seal(path)
                            : tn__fail(TN_ERR_COMPILE, "kernels", "cannot write %s: %s", path, strerror(failed));
    if (status == TN_OK && rename(path, final) != 0)
        status = tn__fail(TN_ERR_COMPILE, "kernels", "cannot rename %s to %s: %s", path, final, strerror(errno));
    if (status != TN_OK && file >= 0)
        unlink(path);
    return status;
}

void tn__kernel_keep(const tn__kernel_folder *folder, const char *name, const char *data, size_t length)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    bool clean = tn_ok();
    if (folder->temporary || tn__kernel_write(folder, name, data, length) == TN_OK)
        return;
    if (!atomic_flag_test_and_set(&told))
        tn__log(TN__LOG_WARN, "kernels", "%s; going on without keeping what is compiled",
                tn__error_message(tn__error_last()));
    if (clean)
        tn_clear_error();
}
