/* SPDX-License-Identifier: MIT */
/*
 * The folder of compiled kernels: $TANSO_CACHE_DIR, else $XDG_CACHE_HOME/tanso, else ~/.cache/tanso, and in it
 * kernels/<32 hexadecimal digits>.so. Each file ends in a seal (length and hash of what precedes it), so that a truncated or
 * damaged one is noticed before it is loaded.
 */
#ifndef TN_BACKENDS_CPU_KERNEL_CACHE_H
#define TN_BACKENDS_CPU_KERNEL_CACHE_H

#include <limits.h>
#include <tanso/base.h>

/* A place to compile in. */
typedef struct tn__kernel_folder {
    char path[PATH_MAX - 128];
    bool temporary; /* of this call alone: nothing stays */
} tn__kernel_folder;

/* The cache, made if need be; a fresh temporary folder where the cache cannot be used or is not safe. */
tn_status tn__kernel_folder_open(tn__kernel_folder *folder);
/* Makes a temporary folder in place of the cache. */
tn_status tn__kernel_folder_private(tn__kernel_folder *folder);
/* Removes a temporary folder, which must be empty. */
void tn__kernel_folder_close(tn__kernel_folder *folder);

/* Adds the seal to a finished file and brings it to the disk. */
tn_status tn__kernel_seal(const char *path);
/* True if the file is there, ours, and unharmed. A harmed one is removed. */
bool tn__kernel_intact(const char *path);

#endif
