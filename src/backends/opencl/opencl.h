/* SPDX-License-Identifier: MIT */
/*
 * What the files of the OpenCL backend share: device.c (devices, memory), kernels.c (compiled kernels), program.c
 * (programs and their runs), operations.c (steps that are no kernels). It is a sketch of a second language for a GPU's
 * kernels: correct, and not fast. Each run is waited for.
 */
#ifndef TN_BACKENDS_OPENCL_OPENCL_H
#define TN_BACKENDS_OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <pthread.h>

#include "device/program.h"

typedef struct tn__cl_kernel {
    char name[40];
    cl_kernel kernel;
    struct tn__cl_kernel *next;
} tn__cl_kernel;

typedef struct tn__cl_device {
    const char *name;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    pthread_mutex_t lock;   /* held while a text is compiled, and while a kernel's arguments are set and it is
                               started */
    tn__cl_kernel *kernels; /* all compiled kernels; kept until the device ends */
} tn__cl_device;

/* A launch: a kernel over a table of words, which lies in device memory. */
typedef struct tn__cl_launch {
    cl_kernel kernel;
    uint64_t *words;
    size_t blocks, threads, shared;
    const void *const *reached; /* device memory that addresses among the words point to */
    int reached_count;
} tn__cl_launch;

/* TN_OK, or TN_ERR_DEVICE with what was called and OpenCL's error number. */
tn_status tn__cl_check(const tn__cl_device *device, cl_int error, const char *what);

/* ---- kernels.c ---- */

/* The kernels of a program's text, by their numbers in it. */
tn_status tn__cl_program_kernels(tn__cl_device *device, const tn__program *program, cl_kernel *kernel);
/* A kernel of operations.cl for a dtype. */
tn_status tn__cl_operation_kernel(tn__cl_device *device, const char *name, tn_dtype dtype, cl_kernel *kernel);
/* Starts a launch; `fault`: three words of device memory. */
tn_status tn__cl_start(tn__cl_device *device, const tn__cl_launch *launch, int64_t *fault);

/* ---- operations.c ---- */

#define TN__CL_OPERATION_WORDS 64

/* Whether operation `op` can be a step. */
bool tn__cl_supports(tn__device *device, int op, tn_dtype dtype, const tn__shape *shape);
/* The kernel of an operation's step. */
tn_status tn__cl_prepare_operation(tn__cl_device *device, const tn__step *step, cl_kernel *kernel);
/* How many launches it takes, each with a table of TN__CL_OPERATION_WORDS; fills in launch i's table and geometry. */
int tn__cl_operation_launches(const tn__step *step);
void tn__cl_operation_launch(const tn__program *program, const tn__step *step, int i, void *const *buffers,
                             const uint64_t *scalars, tn__cl_launch *launch);

/* ---- program.c ---- */

tn_status tn__cl_load(tn__device *device, const tn__program *program, tn__executable **executable);
tn_status tn__cl_run(tn__executable *executable, void *const *buffers, const uint64_t *scalars);
void tn__cl_unload(tn__executable *executable);

#endif
