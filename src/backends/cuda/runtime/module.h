/* SPDX-License-Identifier: MIT */
/* What module.c (code loaded once a device, texts as a whole), modules.c (a program's kernels one by one) and nvrtc.c
 * (the compiler) share. */
#ifndef TN_BACKENDS_CUDA_RUNTIME_MODULE_H
#define TN_BACKENDS_CUDA_RUNTIME_MODULE_H

#include "backends/cuda/runtime/cuda.h"
#include "core/memory.h"
#include "device/kernel_batches.h"

/* What the driver has loaded: the kernels of one text, or of a batch. */
typedef struct tn__cuda_image {
    CUmodule handle;
    int references;
} tn__cuda_image;

/* Adds to a key all that compiled code depends on besides its text (nvrtc.c). */
void tn__cuda_add_identity(const tn__cuda_device *device, tn__text *key);

/* ---- the folder ---- */

/* Opens the folder; folder->file is -1 if none can be used. */
void tn__cuda_find_folder(tn__kernel_folder *folder);
/* The note that a first run waits for a compiler; once a process. */
void tn__cuda_tell_of_pause(const tn__cuda_device *device, const tn__kernel_folder *folder);
/* Counts and logs what has been compiled. */
void tn__cuda_compiled(const tn__kernel_folder *folder, size_t bytes, double began, int kernels);
enum { TN__CUDA_FILE = 48 };
void tn__cuda_file_name(char file[TN__CUDA_FILE], const char *key);
/* Puts code into the folder under the names of its kernels, as far as that is possible. */
void tn__cuda_keep(const tn__kernel_folder *folder, int count, char (*key)[TN__KEY], const int *kernel,
                   const char *code, size_t length);

/* ---- loaded code ---- */

/* Held while a text is looked up on the disk or compiled. The device's lock is not held meanwhile, so that others can
 * use the device; and GPUs of the same kind that all need a text have it compiled only once. Recursive. */
extern pthread_mutex_t tn__cuda_loading;
/* Loads code, with a use count of 1. */
tn_status tn__cuda_image_load(tn__cuda_device *device, const char *code, tn__cuda_image **loaded);
/* The same of a file, if it is there and good; else NULL. */
tn__cuda_image *tn__cuda_image_find(tn__cuda_device *device, const tn__kernel_folder *folder, const char *file);
void tn__cuda_image_release(tn__cuda_device *device, tn__cuda_image *loaded);
/* The loaded module of that name, with one more user, or NULL. */
tn__cuda_module *tn__cuda_module_take(tn__cuda_device *device, const char *name);
/* Makes a module of loaded code, whose use count it increments. */
tn_status tn__cuda_module_add(tn__cuda_device *device, const char *name, tn__cuda_image *loaded,
                              tn__cuda_module **module);

#endif
