/* SPDX-License-Identifier: MIT */
/* Shared objects of kernels in the folder of compiled kernels: made of texts by the system's C compiler, and opened. */
#ifndef TN_BACKENDS_CPU_JIT_OBJECTS_H
#define TN_BACKENDS_CPU_JIT_OBJECTS_H

#include "backends/cpu/jit/compiler.h"
#include "device/kernel_batches.h"

/* The names of a job's files in the folder. */
typedef struct tn__cpu_names {
    char source[TN__KERNEL_NAME], object[TN__KERNEL_NAME], log[TN__KERNEL_NAME];
} tn__cpu_names;

/* A text that is being compiled. */
typedef struct tn__cpu_job {
    tn__cpu_names n;
    tn__compiling run;
    double began;
    size_t bytes;
    bool running, compiled;
    tn_status status;
} tn__cpu_job;

/* What one call of tn__cpu_module(s)_load works with. */
typedef struct tn__cpu_call {
    tn__compiler compiler;
    tn__compiler_watch watch;
    tn__kernel_folder folder;
    tn__kernel_progress progress;
    tn__kernel_file *file; /* files of the folder whose seals have been checked; NULL: the text is a single kernel's */
    int file_count;
} tn__cpu_call;

/* An object's name in the folder, by the hash of all that its code depends on. */
void tn__cpu_object_name(char name[TN__KERNEL_NAME], const char *key);
/* Has a text compiled, under a name of its own; looks, or waits, whether it is done, and seals its object if it is; and
 * removes all files of the job, once it is done. */
void tn__cpu_job_start(tn__cpu_call *c, tn__cpu_job *j, const char *name, const char *text);
void tn__cpu_job_look(tn__cpu_call *c, tn__cpu_job *j, bool wait);
void tn__cpu_job_end(tn__cpu_call *c, tn__cpu_job *j);
/* Opens the object of a key from the folder, if it is there, intact, and has the kernels. */
void *tn__cpu_object_find(tn__cpu_call *c, const char *key, int count, const char *const *kernel);
/* Gives a compiled job's object its final name, and opens it. */
tn_status tn__cpu_object_take(tn__cpu_call *c, const tn__cpu_job *j, const char *key, int count,
                              const char *const *kernel, void **handle);

#endif
