/* SPDX-License-Identifier: MIT */
/*
 * Downloading datasets into the user's cache. A file grows as NAME.part, which a later run goes on with, and gets its
 * name once its checksum is right. The environment variable TANSO_MIRROR names a place (a URL of http, https or file)
 * to take the files from instead of the usual ones; its subfolder of the set's name is tried first.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "data/catalog.h"
#include "data/download.h"
#include "io/digest.h"
#include "io/file.h"
#include "io/unpack.h"

#define OPERATION "data_fetch"
/* No file of a set is larger, packed or not. */
#define MOST_BYTES ((uint64_t)1 << 28)
#define MOST_MIRRORS 4

/* One file's fetching. */
typedef struct job {
    const tn__set *set;
    const tn__set_file *file;
    tn__download how;
    bool was_ok; /* no error was latched before */
} job;

/* The digest of a file; unpacked, if that is what the set's are of. Damaged gzip data has none: "". */
static tn_status file_digest(const char *path, bool unpacked, char digest[33])
{
    uint8_t *data, buffer[1 << 14];
    size_t size, got;
    digest[0] = '\0';
    tn_status status = tn__file_read(OPERATION, path, MOST_BYTES, &data, &size);
    if (status != TN_OK)
        return status;
    tn__md5 md5;
    tn__md5_begin(&md5);
    if (!unpacked) {
        tn__md5_add(&md5, data, size);
        tn__md5_end(&md5, digest);
    } else {
        tn__unpack stream;
        status = tn__unpack_open(&stream, OPERATION, path, data, size);
        stream.limit = MOST_BYTES;
        if (status == TN_OK) {
            do {
                if ((status = tn__unpack_read(&stream, buffer, sizeof buffer, &got)) == TN_OK)
                    tn__md5_add(&md5, buffer, got);
            } while (status == TN_OK && got == sizeof buffer);
            tn__unpack_close(&stream);
        }
        if (status == TN_OK)
            tn__md5_end(&md5, digest);
    }
    tn__free(data);
    return status;
}

static tn_status check_file(const job *j, const char *path)
{
    char digest[33];
    bool unpacked = j->set->md5_of_unpacked;
    tn_status status = file_digest(path, unpacked, digest);
    if (status != TN_OK || strcmp(digest, j->file->md5) == 0)
        return status;
    return tn__fail(TN_ERR_FORMAT, OPERATION, "'%s' is not %s of %s: expected the MD5 %s%s, found %s; fetch it again",
                    path, j->file->name, j->set->name, j->file->md5, unpacked ? " of its unpacked contents" : "",
                    digest);
}

/* Forgets an error that another attempt may make good. */
static void forget_error(const job *j)
{
    if (j->was_ok)
        tn_clear_error();
}

/* True if a complete file lies there. Says nothing if not: it will be fetched. */
static bool is_complete(const job *j, const char *path)
{
    if (access(path, R_OK) != 0)
        return false;
    bool complete = check_file(j, path) == TN_OK;
    if (!complete)
        forget_error(j);
    return complete;
}

/* The .part file, opened and locked against other processes that fetch the same; -1 with a latched error. */
static int open_part(const char *part)
{
    for (;;) {
        struct stat mine, named;
        int fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) {
            tn__fail_errno(OPERATION, "write", part, errno);
            return -1;
        }
        while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
            ;
        /* Whoever had the lock before may have renamed or removed the file. */
        if (fstat(fd, &mine) == 0 && stat(part, &named) == 0 && mine.st_ino == named.st_ino)
            return fd;
        close(fd);
    }
}

/* From one mirror, going on where the part ends. A part that turns out wrong is emptied, and the mirror asked once
 * more. */
static tn_status fetch_from(const job *j, const char *mirror, const char *part, int fd)
{
    char *url = tn__format("%s%s", mirror, j->file->name);
    tn_status status = url ? TN_OK : tn__fail_memory(OPERATION, strlen(mirror) + 64);
    bool resumed = lseek(fd, 0, SEEK_END) > 0;
    for (int attempt = 0; url && attempt < 1 + resumed; attempt++) {
        if ((status = tn__download_run(url, fd, part, &j->how)) != TN_OK)
            break;
        if ((status = check_file(j, part)) == TN_OK)
            break;
        if (ftruncate(fd, 0) != 0) {
            status = tn__fail_errno(OPERATION, "write", part, errno);
            break;
        }
        if (attempt == 0 && resumed)
            forget_error(j);
    }
    tn__free(url);
    return status;
}

static int list_mirrors(const tn__set *set, char *mirrors[MOST_MIRRORS])
{
    const char *own = getenv("TANSO_MIRROR");
    int count = 0;
    if (own && *own) {
        const char *slash = own[strlen(own) - 1] == '/' ? "" : "/";
        mirrors[count++] = tn__format("%s%s%s/", own, slash, set->name);
        mirrors[count++] = tn__format("%s%s", own, slash);
    } else {
        for (; count < MOST_MIRRORS && set->mirrors[count]; count++)
            mirrors[count] = tn__strdup(set->mirrors[count]);
    }
    return count;
}

static tn_status fetch_part(const job *j, const char *path, const char *part, int fd)
{
    char *mirrors[MOST_MIRRORS];
    int count = list_mirrors(j->set, mirrors);
    tn_status status = TN_ERR_IO;
    for (int i = 0; i < count && status != TN_OK; i++) {
        if (!mirrors[i]) {
            status = tn__fail_memory(OPERATION, 256);
            break;
        }
        if (i > 0) {
            tn__log(TN__LOG_INFO, "data", "%s; trying %s", tn__error_message(tn__error_last()), mirrors[i]);
            forget_error(j);
        }
        status = fetch_from(j, mirrors[i], part, fd);
    }
    for (int i = 0; i < count; i++)
        tn__free(mirrors[i]);
    if (status == TN_OK && (fsync(fd) != 0 || rename(part, path) != 0))
        status = tn__fail_errno(OPERATION, "write", path, errno);
    if (status == TN_OK)
        tn__folder_sync(path);
    return status;
}

static tn_status fetch_file(const job *j, const char *folder)
{
    char *path = tn__format("%s/%s", folder, j->file->name), *part = tn__format("%s/%s.part", folder, j->file->name);
    tn_status status = path && part ? TN_OK : tn__fail_memory(OPERATION, strlen(folder) + 64);
    if (status == TN_OK && !is_complete(j, path)) {
        int fd = open_part(part);
        if (fd < 0)
            status = TN_ERR_IO;
        else if (!is_complete(j, path)) /* nobody else has fetched it meanwhile */
            status = fetch_part(j, path, part, fd);
        else
            unlink(part);
        if (fd >= 0)
            close(fd);
    }
    tn__free(path);
    tn__free(part);
    return status;
}

tn_status tn_data_fetch(const char *name, void (*progress)(const char *file, int64_t done, int64_t total, void *user),
                        void *user)
{
    TN__NO_PLACE();
    bool was_ok = !tn__latched();
    const tn__set *set = tn__set_asked(OPERATION, name);
    char *folder = set ? tn__set_cache(OPERATION, set) : NULL;
    if (!folder)
        return tn__error_status(tn__error_last());
    tn_status status = tn__folder_make(OPERATION, folder);
    for (int i = 0; i < TN__SET_FILES && set->file[i].name && status == TN_OK; i++) {
        job j = {set, &set->file[i], {set->file[i].name, MOST_BYTES, progress, user}, was_ok};
        status = fetch_file(&j, folder);
    }
    tn__free(folder);
    return status;
}
