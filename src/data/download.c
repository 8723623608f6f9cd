/* SPDX-License-Identifier: MIT */
/* One download with libcurl, which is loaded for the first one; without libcurl, the reason why there is none. */
#include "data/download.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/error.h"
#include "io/file.h"
#include "tn_build_config.h"

#define OPERATION "data_fetch"

#ifndef TN_HAVE_CURL

tn_status tn__download_run(const char *url, int fd, const char *path, const tn__download *how)
{
    (void)fd;
    (void)how;
    return tn__fail(TN_ERR_UNSUPPORTED, OPERATION, "this build has no libcurl: fetch %s by other means, put it "
                    "beside '%s', and call this again to check it", url, path);
}

#else

#define CURL_DISABLE_TYPECHECK /* whose macros take functions of libcurl only by their own names */
#include <curl/curl.h>
#include <dlfcn.h>

#define CONNECT_SECONDS 30L
#define STALL_SECONDS 60L

/*
 * Loaded, not linked: libcurl and the thirty libraries below it take 10 ms to load, and of a hundred runs one
 * downloads.
 */
#define FILE_NAME "libcurl.so.4"
static struct {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
    CURLcode (*easy_perform)(CURL *curl);
    void (*easy_cleanup)(CURL *curl);
    const char *(*easy_strerror)(CURLcode code);
    bool complete;
} lib;

typedef struct transfer {
    CURL *curl;
    const char *path;
    int fd;
    int64_t have;  /* bytes of the file before this transfer */
    int64_t size;  /* bytes of the file now */
    bool begun;
    tn_status status;
    const tn__download *how;
} transfer;

/* Whether the server's answer holds the rest of the file, as asked, or all of it. */
static void begin(transfer *t)
{
    long code = 0;
    t->begun = true;
    lib.easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &code);
    if (t->have > 0 && code == 200) {
        t->have = t->size = 0;
        if (ftruncate(t->fd, 0) != 0)
            t->status = tn__fail_errno(OPERATION, "write", t->path, errno);
    }
    lseek(t->fd, t->have, SEEK_SET);
}

static size_t receive(char *data, size_t size, size_t count, void *user)
{
    transfer *t = user;
    size_t bytes = size * count, left = bytes;
    if (!t->begun)
        begin(t);
    if (t->status == TN_OK && (uint64_t)t->size + bytes > t->how->most_bytes)
        t->status = tn__fail(TN_ERR_FORMAT, OPERATION, "%s is larger than the %llu bytes expected at most",
                             t->how->file, (unsigned long long)t->how->most_bytes);
    while (t->status == TN_OK && left > 0) {
        ssize_t done = write(t->fd, data, left);
        if (done < 0 && errno != EINTR) {
            t->status = tn__fail_errno(OPERATION, "write", t->path, errno);
        } else if (done > 0) {
            data += done;
            left -= (size_t)done;
        }
    }
    t->size += (int64_t)(bytes - left);
    return t->status == TN_OK ? bytes : 0;
}

static int report(void *user, curl_off_t total, curl_off_t done, curl_off_t up_total, curl_off_t up)
{
    transfer *t = user;
    (void)up_total;
    (void)up;
    (void)done;
    if (t->how->progress && (t->begun || total > 0))
        t->how->progress(t->how->file, t->size, total > 0 ? t->have + total : 0, t->how->user);
    return 0;
}

static void set_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    lib.easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
    lib.easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    lib.easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS | CURLPROTO_FILE));
    lib.easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static tn_status perform(transfer *t, const char *url)
{
    char range[32], reason[CURL_ERROR_SIZE] = "";
    CURL *curl = t->curl;
    lib.easy_setopt(curl, CURLOPT_URL, url);
    lib.easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    lib.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    lib.easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    lib.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    lib.easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
    lib.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    lib.easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    lib.easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
    lib.easy_setopt(curl, CURLOPT_USERAGENT, "tanso");
    set_protocols(curl);
    lib.easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    lib.easy_setopt(curl, CURLOPT_WRITEDATA, t);
    lib.easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    lib.easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, report);
    lib.easy_setopt(curl, CURLOPT_XFERINFODATA, t);
    if (t->have > 0) {
        snprintf(range, sizeof range, "%lld-", (long long)t->have);
        lib.easy_setopt(curl, CURLOPT_RANGE, range);
    }
    CURLcode result = lib.easy_perform(curl);
    if (t->status != TN_OK || result == CURLE_OK)
        return t->status;
    long code = 0;
    lib.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    /* The file has every byte already, or more: the checksum tells. file: URLs say so by these two codes. */
    if (t->have > 0 && (code == 416 || result == CURLE_BAD_DOWNLOAD_RESUME || result == CURLE_RANGE_ERROR))
        return TN_OK;
    return tn__fail(TN_ERR_IO, OPERATION,
                    "cannot fetch %s: %s; check the network, and call this again to go on where it stopped",
                    url, *reason ? reason : lib.easy_strerror(result));
}

static void load(void)
{
    void *handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return;
#define LOAD(name) (*(void **)&lib.name = dlsym(handle, "curl_" #name))
    lib.complete = LOAD(global_init) && LOAD(easy_init) && LOAD(easy_setopt) && LOAD(easy_getinfo) &&
                   LOAD(easy_perform) && LOAD(easy_cleanup) && LOAD(easy_strerror) &&
                   lib.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
#undef LOAD
}

tn_status tn__download_run(const char *url, int fd, const char *path, const tn__download *how)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!lib.complete)
        return tn__fail(TN_ERR_UNSUPPORTED, OPERATION,
                        "cannot load " FILE_NAME " (package libcurl4): install it, or fetch %s by "
                        "other means, put it beside '%s', and call this again to check it",
                        url, path);
    int64_t have = lseek(fd, 0, SEEK_END);
    if (have < 0)
        return tn__fail_errno(OPERATION, "write", path, errno);
    transfer t = {.curl = lib.easy_init(), .path = path, .fd = fd, .have = have, .size = have, .how = how};
    if (!t.curl)
        return tn__fail_memory(OPERATION, 0);
    tn_status status = perform(&t, url);
    lib.easy_cleanup(t.curl);
    return status;
}

#endif
