/* SPDX-License-Identifier: MIT */
/*
 * Inside the CUDA backend. A device has one stream, on which everything happens in the order it was asked for. A loaded
 * program is a list of steps, each with the function that starts it.
 */
#ifndef TN_BACKENDS_CUDA_CUDA_H
#define TN_BACKENDS_CUDA_CUDA_H

#include <pthread.h>

#include "backends/cuda/driver.h"
#include "device/program.h"

/* The operations by the numbers of array/ops.h, whose room is out of a backend's sight. */
typedef enum tn__cuda_op {
#define TN_MAP(ID, ...) TN__CUDA_OP_##ID,
#define TN_REDUCE(ID, ...) TN__CUDA_OP_##ID,
#define TN_GENERATE(ID, ...) TN__CUDA_OP_##ID,
#define TN_OTHER(ID, ...) TN__CUDA_OP_##ID,
#include "array/ops.def"
    TN__CUDA_OP_COUNT
} tn__cuda_op;

/* ---- devices ---- */

typedef struct tn__cuda_module tn__cuda_module;

typedef struct tn__cuda_device {
    const tn__cuda_libraries *libraries;
    const tn__cuda_driver *driver;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    int architecture;          /* 90: compute capability 9.0 */
    char name[24], product[64];
    /* Recursive; held while work is put on the stream, so that a program's launches stay together. */
    pthread_mutex_t lock;
    tn__cuda_module *modules;  /* loaded ones */
    cublasLtHandle_t blas;     /* made when first needed */
    CUdeviceptr workspace;     /* of the library of products */
    char last_label[96];       /* of the work started most recently */
    bool blocking;             /* TANSO_CUDA_BLOCKING: each piece of work is waited for, so that a fault names its own */
    bool faulted;              /* the context is lost: every call fails with `fault` */
    char fault[256];
} tn__cuda_device;

static inline tn__cuda_device *tn__cuda_of(const tn__device *device)
{
    return device->backend_data;
}

/* Makes the device's context this thread's; fails if the device has faulted. */
tn_status tn__cuda_enter(tn__cuda_device *device, const char *what);
/* TN_OK for success; else latches the error, and what ruins the context for good. */
tn_status tn__cuda_check(tn__cuda_device *device, CUresult result, const char *what);
/* Notes what is started, for the message of a fault; waits for it where TANSO_CUDA_BLOCKING asks for that. */
tn_status tn__cuda_started(tn__cuda_device *device, CUresult result, const char *label);
/* Waits for the stream. */
tn_status tn__cuda_wait(tn__cuda_device *device, const char *what);

/* ---- code ---- */

/* A text's kernels, compiled if no cache has them, loaded once a device. */
tn_status tn__cuda_module_load(tn__cuda_device *device, const char *source, tn__cuda_module **module);
void tn__cuda_module_release(tn__cuda_device *device, tn__cuda_module *module);
tn_status tn__cuda_module_function(tn__cuda_device *device, tn__cuda_module *module, const char *name,
                                   CUfunction *function);
/* Compiles a text to machine code for an architecture that the compiler knows, else to the newest PTX before it: memory
 * for tn__free. */
tn_status tn__cuda_compile(const tn__cuda_libraries *libraries, int architecture, const char *source, char **image,
                           size_t *length);
/* For tests: how many texts this process has compiled. */
extern _Atomic unsigned long tn__cuda_compilations;

/* ---- programs ---- */

typedef struct tn__cuda_step tn__cuda_step;

/* What a run gives its steps. */
typedef struct tn__cuda_run {
    tn__cuda_device *device;
    void *const *buffers;
    const uint64_t *scalars;   /* the host's copy */
    CUdeviceptr device_scalars;
    CUdeviceptr faults;        /* a record of two words a step */
} tn__cuda_run;

struct tn__cuda_step {
    tn_status (*start)(const tn__cuda_step *step, const tn__cuda_run *run);
    void (*free)(const tn__cuda_step *step, tn__cuda_device *device); /* of data; NULL: nothing to do */
    const tn__step *step;
    const tn__program *program;
    int number;
    bool may_fail;
    bool overwrites;           /* writes into a donated buffer, whose old contents are lost then */
    int64_t fault_extent;      /* of an operation's indexed axis; -1: the last extent of the faulting operand */
    tn__cuda_module *module;   /* of an operation's own kernel */
    CUfunction function;
    void *data;                /* one block, or NULL */
};

tn_status tn__cuda_prepare_kernel(tn__cuda_step *step, tn__cuda_device *device, tn__cuda_module *module);
tn_status tn__cuda_prepare_move(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_scatter(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_matmul(tn__cuda_step *step, tn__cuda_device *device);
/* The product by cuBLASLt, where it can: sets start, or leaves it NULL. */
tn_status tn__cuda_prepare_matmul_library(tn__cuda_step *step, tn__cuda_device *device);

/* Address of an operand's element 0, or of its buffer. */
CUdeviceptr tn__cuda_address(const tn__cuda_run *run, const tn__operand *operand);

/* ---- kernels of the backend's own ---- */

/* A walk over strided operands of one shape, as its kernels take it: extents of 1 dropped, neighbouring axes merged where
 * every operand allows. Strides in elements. */
#define TN__CUDA_WALK_OPERANDS 3
typedef struct tn__cuda_walk {
    long long size;
    int ndim, unused;
    long long dim[TN_MAX_NDIM];
    long long stride[TN__CUDA_WALK_OPERANDS][TN_MAX_NDIM];
} tn__cuda_walk;

/* Of the axes in `mask` of shape dim; a NULL stride stands for zeros. */
void tn__cuda_walk_make(tn__cuda_walk *walk, uint32_t mask, int ndim, const int64_t *dim, int count,
                        const int64_t *const *stride);

/* Texts of kernels for a storage dtype; for tn__free, NULL without memory. */
char *tn__cuda_text_move(size_t itemsize);
char *tn__cuda_text_scatter(tn_dtype dtype);
char *tn__cuda_text_matmul(tn_dtype dtype);
/* Loads such a text (which it frees) as the step's own module, and finds the function. */
tn_status tn__cuda_own_kernel(tn__cuda_step *step, tn__cuda_device *device, char *text, const char *name);
/* Starts one thread for each of `size` elements, in blocks of a usual size. */
tn_status tn__cuda_start(tn__cuda_device *device, CUfunction function, int64_t size, void **params, const char *label);

#endif
