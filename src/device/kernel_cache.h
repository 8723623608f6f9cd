/* SPDX-License-Identifier: MIT */
/*
 * The folder of compiled kernels, which every backend that compiles shares: $TANSO_CACHE_DIR, else
 * $XDG_CACHE_HOME/tanso, else ~/.cache/tanso, and in it kernels/<32 hexadecimal digits>.so (of the CPU) or .cubin (of a
 * GPU). Each file ends in a seal (length and hash of what precedes it), so that a truncated or damaged one is noticed
 * before it is loaded.
 */
#ifndef TN_DEVICE_KERNEL_CACHE_H
#define TN_DEVICE_KERNEL_CACHE_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <tanso/base.h>
#include "core/plugin.h"

TN__PLUGIN_BEGIN
/* Kernels, of all backends, since the process began: that went to a compiler, and that were found in the
 * folder or loaded already. */
extern _Atomic uint64_t tn__kernels_compiled, tn__kernels_found;

/* A place to compile in. It is reached by its descriptor alone: somebody might put another in the place of its path. */
typedef struct tn__kernel_folder {
    char path[PATH_MAX - 128]; /* for messages */
    int file;                  /* the open folder; -1 if there is none */
    bool temporary;            /* of this call alone: nothing stays */
} tn__kernel_folder;

/* The cache, made if need be; a fresh temporary folder where the cache cannot be used or is not safe: others may write
 * it, or a folder above it that is not sticky. */
tn_status tn__kernel_folder_open(tn__kernel_folder *folder);
/* Makes a temporary folder in place of the cache. */
tn_status tn__kernel_folder_private(tn__kernel_folder *folder);
/* Before something is compiled: a temporary folder where the cache's disk has no room for it, which is told once. */
tn_status tn__kernel_folder_with_room(tn__kernel_folder *folder);
/* Closes it, and removes a temporary one, which must be empty. */
void tn__kernel_folder_close(tn__kernel_folder *folder);

/*
 * Where a folder's files take more than `most` bytes, removes those not used for longest until half of that is left;
 * and, however few there are, what processes that were killed left behind an hour ago or more. A kernel that is loaded
 * stays so; one that is missed is compiled anew.
 */
void tn__kernel_prune(const tn__kernel_folder *folder, uint64_t most);

/* `name` with an ending that no other call has or had, in whatever process, container or machine: what is written
 * first and then renamed. There is room behind it for an ending like ".tmp". */
enum { TN__KERNEL_NAME = 72 };
void tn__kernel_unique(char unique[TN__KERNEL_NAME], const char *name);

/* The path to load a file of the folder by: leads through the descriptor. NULL where that is not possible (no /proc)
 * and the folder's own path is not safe. */
const char *tn__kernel_path(const tn__kernel_folder *folder, const char *name, char path[PATH_MAX]);

/* Makes a new file, without a seal. */
tn_status tn__kernel_put(const tn__kernel_folder *folder, const char *name, const char *data, size_t length);
/* Adds the seal to a finished file and brings it to the disk. */
tn_status tn__kernel_seal(const tn__kernel_folder *folder, const char *name);
tn_status tn__kernel_rename(const tn__kernel_folder *folder, const char *name, const char *final);
/* True if the file is there, ours, and unharmed. A harmed one is removed. */
bool tn__kernel_intact(const tn__kernel_folder *folder, const char *name);

/* An unharmed file's contents without the seal, to be freed with tn__free; NULL if there is none. */
char *tn__kernel_read(const tn__kernel_folder *folder, const char *name, size_t *length);
/* Puts contents under a name in the folder, sealed, all at once for whoever else looks. */
tn_status tn__kernel_write(const tn__kernel_folder *folder, const char *name, const char *data, size_t length);
/* The same for whoever can do without: nothing is put into a temporary folder, and a failure (a full disk) is told
 * once, as a warning, and not latched. */
void tn__kernel_keep(const tn__kernel_folder *folder, const char *name, const char *data, size_t length);
TN__PLUGIN_END

#endif
