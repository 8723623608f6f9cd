/* SPDX-License-Identifier: MIT */
/*
 * Kernels of programs, one by one: what each is called in the folder of compiled kernels, and which of them a compiler
 * gets together. A batch costs a compiler's start and the text in front of all kernels; several are compiled side by
 * side. What a batch becomes is one file with a name for each of its kernels.
 */
#ifndef TN_DEVICE_KERNEL_BATCHES_H
#define TN_DEVICE_KERNEL_BATCHES_H

#include "device/kernel_cache.h"
#include "device/program.h"

TN__PLUGIN_BEGIN
enum { TN__KEY = 33 };

/* The names of a program's kernels: hashes of all that their code depends on, the compiler's own part of which is
 * `identity`. TN_ERR_MEMORY. */
tn_status tn__kernel_keys(const tn__program *program, const char *identity, char (*key)[TN__KEY]);

/* How much of a kernel there is to compile: what comes in front of all kernels is parsed and left out. */
size_t tn__kernel_bytes(const tn__program *program, int kernel);

typedef struct tn__kernel_batches {
    int count;
    int *first;  /* where each one's kernels begin in `kernel`, and behind them all */
    int *kernel;
} tn__kernel_batches;

/* Batches of about the same length out of the kernels that are `missing`: at least as many as there are workers, of at
 * most `most` bytes where one kernel has no more, unless that makes them shorter than `least`. */
tn_status tn__kernel_batches_make(const tn__program *program, const bool *missing, int workers, size_t least,
                                  size_t most, tn__kernel_batches *batches);
void tn__kernel_batches_free(tn__kernel_batches *batches);

/* Gives a sealed file another name, beside those that it has; where the disk knows no such names, a copy of it. */
tn_status tn__kernel_link(const tn__kernel_folder *folder, const char *name, const char *other);

void tn__kernel_remove(const tn__kernel_folder *folder, const char *name);

/* A file of kernels that has been looked at, by whatever name. */
typedef struct tn__kernel_file {
    uint64_t device, inode;
    bool good;      /* for the backend: */
    void *loaded;
} tn__kernel_file;
/* The file of that name in a list that has room for one more, to which it is added if it is not there; NULL: the folder
 * has none. */
tn__kernel_file *tn__kernel_file_of(const tn__kernel_folder *folder, const char *name, tn__kernel_file *list,
                                    int *count);

/* How far kernels are that somebody waits for. After two seconds a line says so: on a terminal one that is kept up to
 * date. */
typedef struct tn__kernel_progress {
    double began;
    int done, all;
    bool told;
    double drawn; /* when last */
} tn__kernel_progress;
void tn__kernel_progress_tell(tn__kernel_progress *progress, const char *what);
void tn__kernel_progress_end(tn__kernel_progress *progress);
TN__PLUGIN_END

#endif
