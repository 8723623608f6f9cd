/* SPDX-License-Identifier: MIT */
/*
 * Where compiled kernels are kept, and whether that may be trusted: code is loaded from there. The folder is looked at
 * once it is open, and all files are reached through its descriptor: whatever becomes of its path, they are in the
 * folder that was looked at.
 */
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
#include "core/log.h"
#include "core/memory.h"
#include "device/kernel_cache.h"

#define ROOM (2 << 20) /* bytes that a text, what the compiler says and what comes of it may take */

/* ---- whose it is ---- */

#define BY_OTHERS (S_IWGRP | S_IWOTH)
#define UNKNOWN_USER 65534 /* whom the system names where a container does not know the owner */

typedef struct reason {
    char text[640];
} reason;

/* True in a container that knows some users only: then the system's own folders may be an unknown user's. */
static bool some_users_only(void)
{
    unsigned long first, outside, count;
    FILE *map = fopen("/proc/self/uid_map", "re");
    bool some = map && fscanf(map, "%lu %lu %lu", &first, &outside, &count) == 3 && count < 0xffffffff;
    if (map)
        fclose(map);
    return some;
}

static bool trusted(uid_t owner)
{
    return owner == 0 || owner == geteuid() || (owner == UNKNOWN_USER && some_users_only());
}

/* True, with why, if somebody else could change what is in the folder. */
static bool unsafe_itself(int folder, reason *why)
{
    struct stat info;
    const char *text = NULL;
    if (fstat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        text = "is not a folder";
    else if (info.st_uid != geteuid())
        text = "belongs to another user";
    else if (info.st_mode & BY_OTHERS)
        text = "can be written by others (chmod go-w mends it)";
    else if (faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        text = "cannot be written";
    if (text)
        snprintf(why->text, sizeof why->text, "%s", text);
    return text != NULL;
}

static void tell_which(int folder, const char *text, reason *why)
{
    char link[40], name[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    snprintf(why->text, sizeof why->text, "is below a folder%s%s that %s", *name ? ", " : "", name, text);
}

/* True, with why, if somebody else could put another folder in its place. From the folder upwards, as its path may
 * lead through links. */
static bool unsafe_above(int folder, reason *why)
{
    struct stat below = {0}, info = {0};
    const char *text = fstat(folder, &below) == 0 ? NULL : "cannot be looked at";
    int at = folder;
    for (bool done = text != NULL; !done;) {
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (up < 0 || fstat(up, &info) != 0)
            text = "cannot be looked at";
        else if ((info.st_mode & BY_OTHERS) && !(info.st_mode & S_ISVTX))
            text = "others can write (chmod go-w mends it)";
        else if (!trusted(info.st_uid))
            text = "belongs to another user";
        if (text)
            tell_which(up, text, why);
        done = text || (info.st_ino == below.st_ino && info.st_dev == below.st_dev); /* above the root is the root */
        if (at != folder)
            close(at);
        at = up;
        below = info;
    }
    if (at != folder && at >= 0)
        close(at);
    return text != NULL;
}

/* ---- the cache ---- */

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

static int open_folder(const char *path, int more) { return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | more); }

tn_status tn__kernel_folder_private(tn__kernel_folder *folder)
{
    const char *place = getenv("TMPDIR");
    if (place == NULL || place[0] != '/' || strlen(place) > sizeof(folder->path) - 32)
        place = "/tmp";
    snprintf(folder->path, sizeof(folder->path), "%.2048s/tanso-XXXXXX", place);
    folder->temporary = mkdtemp(folder->path) != NULL;
    folder->file = folder->temporary ? open_folder(folder->path, O_NOFOLLOW) : -1;
    reason why;
    if (folder->file < 0)
        snprintf(why.text, sizeof why.text, "%s", strerror(errno));
    else if (!unsafe_itself(folder->file, &why)) /* else it isn't the one just made */
        return TN_OK;
    tn__kernel_folder_close(folder);
    return tn__fail(TN_ERR_COMPILE, "kernels",
                    "cannot make a folder %s to compile in: %s; set TMPDIR or TANSO_CACHE_DIR", folder->path,
                    why.text);
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
    *folder = (tn__kernel_folder){.file = -1};
    if (!cache_folder(folder->path, sizeof(folder->path) - sizeof("/kernels"))) {
        tell("no cache", "", no_folder);
        return tn__kernel_folder_private(folder);
    }
    reason why;
    strcat(folder->path, "/kernels");
    int failed = make_folders(folder->path);
    folder->file = failed ? -1 : open_folder(folder->path, 0);
    if (folder->file < 0)
        snprintf(why.text, sizeof why.text, "%s", strerror(failed ? failed : errno));
    else if (!unsafe_itself(folder->file, &why) && !unsafe_above(folder->file, &why))
        return TN_OK;
    tell("not using the cache ", folder->path, why.text);
    tn__kernel_folder_close(folder);
    return tn__kernel_folder_private(folder);
}

tn_status tn__kernel_folder_with_room(tn__kernel_folder *folder)
{
    struct statvfs disk;
    if (folder->temporary || fstatvfs(folder->file, &disk) != 0 || disk.f_blocks == 0 ||
        (uint64_t)disk.f_bavail * disk.f_frsize >= ROOM)
        return TN_OK;
    tell("not using the cache ", folder->path, strerror(ENOSPC));
    tn__kernel_folder_close(folder);
    return tn__kernel_folder_private(folder);
}

void tn__kernel_folder_close(tn__kernel_folder *folder)
{
    if (folder->file >= 0)
        close(folder->file);
    folder->file = -1;
    if (folder->temporary)
        rmdir(folder->path);
}

const char *tn__kernel_path(const tn__kernel_folder *folder, const char *name, char path[PATH_MAX])
{
    reason why;
    snprintf(path, PATH_MAX, "/proc/self/fd/%d/%.100s", folder->file, name);
    if (access(path, F_OK) == 0)
        return path;
    snprintf(path, PATH_MAX, "%s/%.100s", folder->path, name);
    return unsafe_above(folder->file, &why) ? NULL : path;
}
