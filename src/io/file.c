/* SPDX-License-Identifier: MIT */
/* Reading and writing whole files. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/error.h"
#include "core/memory.h"

#define BUFFER (64 * 1024)
/* Linux writes at most 2 GiB a call, and a smaller piece makes a full disk known sooner. */
#define PIECE ((size_t)64 << 20)

struct tn__writer {
    const char *operation, *path;
    int fd;
    size_t used;
    tn_status status;
    uint8_t buffer[BUFFER];
};

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

/* ---- writing ---- */

static tn_status write_all(tn__writer *writer, const uint8_t *data, size_t bytes)
{
    while (bytes > 0 && writer->status == TN_OK) {
        ssize_t done = write(writer->fd, data, bytes < PIECE ? bytes : PIECE);
        if (done > 0) {
            data += done;
            bytes -= (size_t)done;
        } else if (done == 0 || errno != EINTR) {
            writer->status = tn__fail_errno(writer->operation, "write", writer->path, done == 0 ? ENOSPC : errno);
        }
    }
    return writer->status;
}

static tn_status flush(tn__writer *writer)
{
    size_t used = writer->used;
    writer->used = 0;
    return write_all(writer, writer->buffer, used);
}

tn_status tn__write(tn__writer *writer, const void *data, size_t bytes)
{
    if (writer->status != TN_OK)
        return writer->status;
    if (bytes > BUFFER - writer->used && flush(writer) != TN_OK)
        return writer->status;
    if (bytes > BUFFER)
        return write_all(writer, data, bytes);
    if (bytes)
        memcpy(writer->buffer + writer->used, data, bytes);
    writer->used += bytes;
    return TN_OK;
}

static tn_status no_path(const char *operation)
{
    return tn__fail(TN_ERR_VALUE, operation, "expected the path of a file, got NULL");
}

/* The folder of a path, with the slash at its end ("" for the current one), to be freed; NULL: no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return tn__format("%.*s", slash ? (int)(slash - path) + 1 : 0, path);
}

/* As the kernel has it for what it opens (proc(5), protected_symlinks): a link that somebody else put where all may
 * write is not followed. */
static bool planted(const struct stat *link, const char *folder)
{
    struct stat around;
    return link->st_uid != geteuid() && stat(*folder ? folder : ".", &around) == 0 && (around.st_mode & S_ISVTX) &&
           (around.st_mode & S_IWOTH) && around.st_uid != link->st_uid;
}

/* Goes one link on from *path, whose memory is replaced; *more: whether there was one. */
static tn_status follow(const char *operation, char **path, bool *more)
{
    struct stat link;
    char target[PATH_MAX];
    *more = lstat(*path, &link) == 0 && S_ISLNK(link.st_mode);
    if (!*more)
        return TN_OK;
    ssize_t length = readlink(*path, target, sizeof target - 1);
    if (length < 0)
        return tn__fail_errno(operation, "write", *path, errno);
    target[length] = '\0';
    char *folder = folder_of(*path);
    bool refused = folder && planted(&link, folder);
    char *next = folder && !refused ? tn__format("%s%s", *target == '/' ? "" : folder, target) : NULL;
    tn__free(folder);
    if (refused)
        return tn__fail(TN_ERR_IO, operation,
                        "'%s' is another user's link in a folder that all may write: remove it, or name another file",
                        *path);
    if (!next)
        return tn__fail_memory(operation, strlen(*path) + (size_t)length);
    tn__free(*path);
    *path = next;
    return TN_OK;
}

/* The file that a path leads to, through links, there or not: a link stays one, and what it leads to is replaced. */
static tn_status end_of_links(const char *operation, const char *path, char **end)
{
    enum { MOST_LINKS = 40 };
    tn_status status = TN_OK;
    bool more = true;
    *end = tn__strdup(path);
    if (!*end)
        return tn__fail_memory(operation, strlen(path));
    for (int i = 0; more && i < MOST_LINKS && status == TN_OK; i++)
        status = follow(operation, end, &more);
    if (status == TN_OK && more)
        status = tn__fail_errno(operation, "write", path, ELOOP);
    if (status != TN_OK)
        tn__free(*end);
    return status;
}

#define TEMPORARY ".tmp-"

/* Opens a new file next to `path`, a file that no link leads to, with the rights that the final file will have. */
static tn_status open_beside(const char *operation, const char *path, char **temporary, int *fd)
{
    static atomic_uint counter;
    struct stat old;
    mode_t mode = 0666;
    if (stat(path, &old) == 0) {
        if (S_ISDIR(old.st_mode))
            return tn__fail_errno(operation, "write", path, EISDIR);
        if (!S_ISREG(old.st_mode))
            return tn__fail(TN_ERR_IO, operation, "'%s' is not a regular file, and a rename would replace it; "
                            "name a regular or a new file", path);
        mode = old.st_mode & 0777;
    }
    for (;;) {
        char *name = tn__format("%s" TEMPORARY "%ld-%u", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        if (!name)
            return tn__fail_memory(operation, strlen(path) + 32);
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (*fd >= 0) {
            *temporary = name;
            return TN_OK;
        }
        int error = errno;
        tn__free(name);
        if (error != EEXIST && error != EINTR)
            return tn__fail_errno(operation, "write", path, error);
    }
}

static tn_status open_temporary(const char *operation, const char *path, char **temporary, int *fd)
{
    char *end;
    *temporary = NULL;
    if (!path)
        return no_path(operation);
    tn_status status = end_of_links(operation, path, &end);
    if (status != TN_OK)
        return status;
    status = open_beside(operation, end, temporary, fd);
    tn__free(end);
    return status;
}

void tn__folder_sync(const char *path)
{
    char *folder = folder_of(path);
    int fd = folder ? open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd); /* not every file system can; the rename itself has succeeded */
        close(fd);
    }
    tn__free(folder);
}

void tn__file_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* enough for fsync */
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

void tn__file_discard(char *temporary)
{
    if (temporary)
        unlink(temporary);
    tn__free(temporary);
}

tn_status tn__file_temporary(const char *operation, const char *path, char **temporary)
{
    int fd = -1;
    tn_status status = open_temporary(operation, path, temporary, &fd);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Gives a temporary file the name that it was made for; 0 or an errno. */
static int become_final(const char *temporary, bool lasting)
{
    size_t length = strlen(temporary) - strlen(TEMPORARY);
    while (memcmp(temporary + length, TEMPORARY, strlen(TEMPORARY)) != 0)
        length--;
    char *final = tn__format("%.*s", (int)length, temporary);
    if (!final)
        return ENOMEM;
    int error = rename(temporary, final) == 0 ? 0 : errno;
    if (!error && lasting)
        tn__folder_sync(final);
    tn__free(final);
    return error;
}

/* Closes fd in any case. `lasting`: the machine may go down now, and the file is there. */
static tn_status commit_open(const char *operation, int fd, char *temporary, const char *path, bool lasting)
{
    int error = !lasting || fsync(fd) == 0 ? 0 : errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error)
        error = become_final(temporary, lasting);
    if (error) {
        tn__file_discard(temporary);
        return error == ENOMEM ? tn__fail_memory(operation, strlen(path))
                               : tn__fail_errno(operation, "write", path, error);
    }
    tn__free(temporary);
    return TN_OK;
}

static tn_status commit(const char *operation, char *temporary, const char *path, bool lasting)
{
    int fd = open(temporary, O_RDONLY | O_CLOEXEC); /* enough for fsync */
    if (fd < 0) {
        int error = errno;
        tn__file_discard(temporary);
        return tn__fail_errno(operation, "write", path, error);
    }
    return commit_open(operation, fd, temporary, path, lasting);
}

tn_status tn__file_commit(const char *operation, char *temporary, const char *path)
{
    return commit(operation, temporary, path, true);
}

tn_status tn__file_rename(const char *operation, char *temporary, const char *path)
{
    return commit(operation, temporary, path, false);
}

static tn_status write_file(const char *operation, const char *path,
                            tn_status (*fill)(tn__writer *writer, void *user), void *user, bool lasting)
{
    tn__writer *writer = tn__alloc(sizeof *writer);
    if (!writer)
        return tn__fail_memory(operation, sizeof *writer);
    writer->operation = operation;
    writer->path = path;
    writer->used = 0;
    char *temporary;
    writer->status = open_temporary(operation, path, &temporary, &writer->fd);
    tn_status status = writer->status;
    if (status == TN_OK) {
        status = fill(writer, user);
        if (writer->status == TN_OK && status == TN_OK)
            flush(writer);
        if (writer->status != TN_OK)
            status = writer->status;
        if (status == TN_OK) {
            status = commit_open(operation, writer->fd, temporary, path, lasting);
        } else {
            close(writer->fd);
            tn__file_discard(temporary);
        }
    }
    tn__free(writer);
    return status;
}

tn_status tn__file_write_atomic(const char *operation, const char *path,
                                tn_status (*fill)(tn__writer *writer, void *user), void *user)
{
    return write_file(operation, path, fill, user, true);
}

static tn_status fill_text(tn__writer *writer, void *user)
{
    const tn__text *text = user;
    return tn__write(writer, text->data, text->length);
}

static tn_status write_text(const char *operation, const char *path, tn__text *text, bool lasting)
{
    tn_status status = text->failed ? tn__fail_memory(operation, text->capacity)
                                    : write_file(operation, path, fill_text, text, lasting);
    tn__free(text->data);
    return status;
}

tn_status tn__file_write_text(const char *operation, const char *path, tn__text *text)
{
    return write_text(operation, path, text, true);
}

tn_status tn__file_write_picture(const char *operation, const char *path, tn__text *text)
{
    return write_text(operation, path, text, false);
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
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
            status = tn__fail_errno(operation, "make the folder", partial, errno);
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
        size_t want = text->length < guess ? guess - text->length + 1 : BUFFER;
        if (!tn__grow((void **)&text->data, &text->capacity, text->length + want + 1, 1))
            return tn__fail_memory(operation, text->length + want + 1);
        ssize_t got = read(fd, text->data + text->length, want < PIECE ? want : PIECE);
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
        return no_path(operation);
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
