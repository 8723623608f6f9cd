/* SPDX-License-Identifier: MIT */
/*
 * Whole files: read into memory, or written so that the final name holds the old contents or all of the new ones, never
 * a part: a temporary file in the same folder is written, synced and renamed. Where the name is a link, so is what it
 * leads to, and the link stays. Failures latch TN_ERR_IO with the path, the system's reason and what to do.
 */
#ifndef TN_IO_FILE_H
#define TN_IO_FILE_H

#include <tanso/base.h>
#include "core/memory.h"

typedef struct tn__writer tn__writer;
/* Appends. Once it has failed, further calls do nothing and the whole write fails. */
tn_status tn__write(tn__writer *writer, const void *data, size_t bytes);

/* Writes `path` with what `fill` writes; if it gives anything but TN_OK, the file stays as it was. */
tn_status tn__file_write_atomic(const char *operation, const char *path,
                                tn_status (*fill)(tn__writer *writer, void *user), void *user);
/* The same of a text, which is freed; one that there was no memory for is TN_ERR_MEMORY. */
tn_status tn__file_write_text(const char *operation, const char *path, tn__text *text);
/* The same of what can be made again, as a picture: it does not wait for the disk. The name holds the old contents or
 * the new ones whatever happens to the process; the machine's end may take both. */
tn_status tn__file_write_picture(const char *operation, const char *path, tn__text *text);
/* The same for a libzip or the like that writes files by itself: makes an empty temporary file, named in *temporary
 * (owned by the caller); then tn__file_commit syncs and renames it, tn__file_rename does so without waiting for the
 * disk, or tn__file_discard removes it. All free the name. */
tn_status tn__file_temporary(const char *operation, const char *path, char **temporary);
tn_status tn__file_commit(const char *operation, char *temporary, const char *path);
tn_status tn__file_rename(const char *operation, char *temporary, const char *path);
void tn__file_discard(char *temporary);

/* Contents of a file, in memory the caller gives to tn__free; a NUL follows them. More than `limit` bytes:
 * TN_ERR_FORMAT. */
tn_status tn__file_read(const char *operation, const char *path, uint64_t limit, uint8_t **data, size_t *size);

/* Bytes of a buffer, and of one call at most: Linux writes up to 2 GiB a call, and a smaller piece makes a full disk
 * known sooner. */
#define TN__FILE_BUFFER (64 * 1024)
#define TN__FILE_PIECE  ((size_t)64 << 20)

/* Latches TN_ERR_VALUE. */
tn_status tn__fail_no_path(const char *operation);
/* Latches TN_ERR_IO for what was done ("open", "write") to a path, with errno's text and advice. */
tn_status tn__fail_errno(const char *operation, const char *action, const char *path, int error);
/* Makes a folder and those above it, with the user's rights. */
tn_status tn__folder_make(const char *operation, const char *path);
/* Keeps other runs out of a folder, in this process and others, until *folder is closed or the process ends, however
 * it does: TN_ERR_STATE if one is in it. *folder is -1 where the file system has no such locks. */
tn_status tn__folder_lock(const char *operation, const char *path, int *folder);
/* Syncs the folder that holds `path`, so that a rename in it lasts. */
void tn__folder_sync(const char *path);
/* Syncs a file that is there already; not every file system can. */
void tn__file_sync(const char *path);

#endif
