/* SPDX-License-Identifier: MIT */
/* One download with libcurl. */
#ifndef TN_DATA_DOWNLOAD_H
#define TN_DATA_DOWNLOAD_H

#include <tanso/base.h>

typedef struct tn__download {
    const char *file;      /* its name, for `progress` */
    uint64_t most_bytes;   /* more than that is refused */
    void (*progress)(const char *file, int64_t done, int64_t total, void *user); /* may be NULL */
    void *user;
} tn__download;

/* Appends what is missing of `url` to the open file `fd` (called `path` in messages): it asks for the bytes after those
 * the file has; a server that sends all of them instead has the file begun anew. */
tn_status tn__download_run(const char *url, int fd, const char *path, const tn__download *how);

#endif
