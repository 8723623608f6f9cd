/* SPDX-License-Identifier: MIT */
/* Files written so that their names hold the old contents or all of the new ones. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/error.h"
#include "core/memory.h"

struct tn__writer {
    const char *operation, *path;
    int fd;
    size_t used;
    tn_status status;
    uint8_t buffer[TN__FILE_BUFFER];
};

static tn_status write_all(tn__writer *writer, const uint8_t *data, size_t bytes)
{
    while (bytes > 0 && writer->status == TN_OK) {
        ssize_t done = write(writer->fd, data, bytes < TN__FILE_PIECE ? bytes : TN__FILE_PIECE);
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
    if (bytes > TN__FILE_BUFFER - writer->used && flush(writer) != TN_OK)
        return writer->status;
    if (bytes > TN__FILE_BUFFER)
        return write_all(writer, data, bytes);
    if (bytes)
        memcpy(writer->buffer + writer->used, data, bytes);
    writer->used += bytes;
    return TN_OK;
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

/* Goes one link on from *path, whose memory is replaced; *more: whether there was one. *info is of what is there, of
 * mode 0 if nothing is. */
static tn_status follow(const char *operation, char **path, struct stat *info, bool *more)
{
    char target[PATH_MAX];
    if (lstat(*path, info) != 0)
        info->st_mode = 0;
    *more = S_ISLNK(info->st_mode);
    if (!*more)
        return TN_OK;
    ssize_t length = readlink(*path, target, sizeof target - 1);
    if (length < 0)
        return tn__fail_errno(operation, "write", *path, errno);
    target[length] = '\0';
    char *folder = folder_of(*path);
    bool refused = folder && planted(info, folder);
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
static tn_status end_of_links(const char *operation, const char *path, char **end, struct stat *info)
{
    enum { MOST_LINKS = 40 };
    tn_status status = TN_OK;
    bool more = true;
    *end = tn__strdup(path);
    if (!*end)
        return tn__fail_memory(operation, strlen(path));
    for (int i = 0; more && i < MOST_LINKS && status == TN_OK; i++)
        status = follow(operation, end, info, &more);
    if (status == TN_OK && more)
        status = tn__fail_errno(operation, "write", path, ELOOP);
    if (status != TN_OK)
        tn__free(*end);
    return status;
}

#define TEMPORARY ".tmp-"

/* Opens a new file next to `path`, which is no link, with the rights that the final file will have. */
static tn_status open_beside(const char *operation, const char *path, mode_t old, char **temporary, int *fd)
{
    static atomic_uint counter;
    if (S_ISDIR(old))
        return tn__fail_errno(operation, "write", path, EISDIR);
    if (old && !S_ISREG(old))
        return tn__fail(TN_ERR_IO, operation, "'%s' is not a regular file, and a rename would replace it; "
                        "name a regular or a new file", path);
    mode_t mode = old ? old & 0777 : 0666;
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
    struct stat old;
    *temporary = NULL;
    if (!path)
        return tn__fail_no_path(operation);
    tn_status status = end_of_links(operation, path, &end, &old);
    if (status != TN_OK)
        return status;
    status = open_beside(operation, end, old.st_mode, temporary, fd);
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
