/* SPDX-License-Identifier: MIT */
/* Whole files read, folders made and locked, and what to do where the system refuses. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/error.h"
#include "core/memory.h"

static const struct {
    int error;
    const char *advice;
} advices[] = {
    {ENOSPC, "free some space on that disk, or write elsewhere"},
    {EDQUOT, "free some of your quota on that disk, or write elsewhere"},
    {EFBIG, "the file would be larger than this system or the process's limit allows"},
    {EACCES, "check the permissions of the file and its folder"},
    {EPERM, "check the permissions of the file and its folder"},
    {EROFS, "that file system is read-only: write elsewhere"},
    {ENOENT, "check the path"},
    {ENOTDIR, "a part of the path is not a folder: check the path"},
    {EISDIR, "that is a folder: name a file"},
    {ELOOP, "its links lead in a circle: check them"},
    {EMFILE, "the process has too many open files"},
    {ENFILE, "the system has too many open files"},
    {ENAMETOOLONG, "use a shorter name"},
};

tn_status tn__fail_errno(const char *operation, const char *action, const char *path, int error)
{
    const char *advice = "try again, or use another path";
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].error == error)
            advice = advices[i].advice;
    char text[128];
    return tn__fail(TN_ERR_IO, operation, "cannot %s '%s': %s; %s", action, path,
                    strerror_r(error, text, sizeof text), advice);
}

tn_status tn__fail_no_path(const char *operation)
{
    return tn__fail(TN_ERR_VALUE, operation, "expected the path of a file, got NULL");
}

tn_status tn__folder_make(const char *operation, const char *path)
{
    char *partial = tn__strdup(path);
    if (!partial)
        return tn__fail_memory(operation, strlen(path) + 1);
    tn_status status = TN_OK;
    for (char *end = partial + 1; status == TN_OK && *partial; end++) {
        if (*end != '/' && *end != '\0')
            continue;
        char mark = *end;
        *end = '\0';
        struct stat there;
        int error = mkdir(partial, 0777) == 0 ? 0 : errno;
        if (error == EEXIST) /* as what: a file is no folder, and a link may lead nowhere */
            error = stat(partial, &there) != 0 ? errno : S_ISDIR(there.st_mode) ? 0 : ENOTDIR;
        if (error)
            status = tn__fail_errno(operation, "make the folder", partial, error);
        *end = mark;
        if (mark == '\0')
            break;
    }
    tn__free(partial);
    return status;
}

/* What a killed run has begun, as a compiler, holds its lock until it is another program: tried again so many times, a
 * hundredth of a second apart. */
#define LOCK_TRIES 100

tn_status tn__folder_lock(const char *operation, const char *path, int *folder)
{
    bool locked = false;
    *folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; *folder >= 0 && i < LOCK_TRIES; i++) {
        locked = flock(*folder, LOCK_EX | LOCK_NB) == 0;
        if (locked || (errno != EWOULDBLOCK && errno != EINTR))
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        errno = EWOULDBLOCK;
    }
    if (*folder < 0 || locked)
        return TN_OK;
    bool others = errno == EWOULDBLOCK;
    close(*folder);
    *folder = -1;
    if (!others)
        return TN_OK;
    return tn__fail(TN_ERR_STATE, operation,
                    "another run is training into '%s': wait until it has ended, or give this one another folder",
                    path);
}

/* ---- reading ---- */

static tn_status too_large(const char *operation, const char *path, uint64_t limit)
{
    return tn__fail(TN_ERR_FORMAT, operation,
                    "'%s' is larger than the %llu bytes expected at most: is it the right file?", path,
                    (unsigned long long)limit);
}

/* The size is a first guess only: files may grow, and those of /proc have none. */
static tn_status read_open(const char *operation, const char *path, int fd, uint64_t limit, tn__text *text)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tn__fail_errno(operation, "read", path, errno);
    if (S_ISDIR(info.st_mode))
        return tn__fail_errno(operation, "read", path, EISDIR);
    if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > limit)
        return too_large(operation, path, limit);
    size_t guess = info.st_size > 0 ? (size_t)info.st_size : 0;
    for (;;) {
        size_t want = text->length < guess ? guess - text->length + 1 : TN__FILE_BUFFER;
        if (!tn__grow((void **)&text->data, &text->capacity, text->length + want + 1, 1))
            return tn__fail_memory(operation, text->length + want + 1);
        ssize_t got = read(fd, text->data + text->length, want < TN__FILE_PIECE ? want : TN__FILE_PIECE);
        if (got < 0 && errno != EINTR)
            return tn__fail_errno(operation, "read", path, errno);
        if (got == 0)
            break;
        text->length += got > 0 ? (size_t)got : 0;
        if (text->length > limit)
            return too_large(operation, path, limit);
    }
    text->data[text->length] = '\0';
    return TN_OK;
}

tn_status tn__file_read(const char *operation, const char *path, uint64_t limit, uint8_t **data, size_t *size)
{
    tn__text text = {0};
    *data = NULL;
    *size = 0;
    if (!path)
        return tn__fail_no_path(operation);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tn__fail_errno(operation, "read", path, errno);
    tn_status status = read_open(operation, path, fd, limit, &text);
    close(fd);
    if (status != TN_OK) {
        tn__free(text.data);
        return status;
    }
    *data = (uint8_t *)text.data;
    *size = text.length;
    return TN_OK;
}
