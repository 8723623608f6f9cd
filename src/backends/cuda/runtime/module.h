/* SPDX-License-Identifier: MIT */
/* Between module.c (code that is loaded once, texts as a whole), modules.c (a program's kernels) and nvrtc.c. */
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

/* All that code depends on beside its text (nvrtc.c). */
void tn__cuda_add_identity(const tn__cuda_device *device, tn__text *key);

/* ---- the folder ---- */

/* The folder; none where there can be none. */
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

/* Held while a text is looked for on the disk or compiled, and not a device's: for as long, the device is others', and
 * GPUs of a kind that all want a text have it compiled once. */
extern pthread_mutex_t tn__cuda_loading;
/* Loads code, for one user. */
tn_status tn__cuda_image_load(tn__cuda_device *device, const char *code, tn__cuda_image **loaded);
/* The same of a file, if it is there and good; else NULL. */
tn__cuda_image *tn__cuda_image_find(tn__cuda_device *device, const tn__kernel_folder *folder, const char *file);
void tn__cuda_image_release(tn__cuda_device *device, tn__cuda_image *loaded);
/* The loaded module of that name, with one more user, or NULL. */
tn__cuda_module *tn__cuda_module_take(tn__cuda_device *device, const char *name);
/* A new module of loaded code, which becomes one more user of that. */
tn_status tn__cuda_module_add(tn__cuda_device *device, const char *name, tn__cuda_image *loaded,
                              tn__cuda_module **module);

#endif
