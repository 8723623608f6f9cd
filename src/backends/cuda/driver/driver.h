/* SPDX-License-Identifier: MIT */
/*
 * The functions of CUDA's libraries that the backend calls, in tables filled by dlopen, so that the plug-in loads where
 * there is no CUDA and says what is missing. Types come from CUDA's headers. Tests put tables of their own in place.
 */
#ifndef TN_BACKENDS_CUDA_DRIVER_DRIVER_H
#define TN_BACKENDS_CUDA_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

/* Names may be macros for a version of a function (cuMemAlloc is cuMemAlloc_v2), as in the headers. */
#define TN__CUDA_DRIVER(X) \
    X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) \
    X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem) \
    X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) \
    X(cuDeviceCanAccessPeer) X(cuCtxEnablePeerAccess) X(cuMemcpyPeerAsync) \
    X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) \
    X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) X(cuEventQuery) \
    X(cuEventElapsedTime) X(cuMemGetInfo) X(cuDeviceGetPCIBusId) \
    X(cuMemAlloc) X(cuMemFree) X(cuMemAllocHost) X(cuMemFreeHost) \
    X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemsetD8Async) \
    X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncGetAttribute) X(cuFuncSetAttribute) \
    X(cuLaunchKernel)

/* Functions that an older driver may lack; without them programs are launched step by step. */
#define TN__CUDA_GRAPHS(X) \
    X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuStreamGetCaptureInfo) X(cuGraphCreate) X(cuGraphAddKernelNode) \
    X(cuGraphAddChildGraphNode) X(cuGraphAddDependencies) \
    X(cuGraphInstantiate) X(cuGraphDestroy) X(cuGraphExecDestroy) X(cuGraphLaunch) X(cuGraphExecKernelNodeSetParams)

#define TN__CUDA_COMPILER(X) \
    X(nvrtcVersion) X(nvrtcGetErrorString) X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs) \
    X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcCompileProgram) X(nvrtcGetProgramLogSize) \
    X(nvrtcGetProgramLog) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetPTXSize) X(nvrtcGetPTX)

#define TN__CUDA_BLAS(X) \
    X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) \
    X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) \
    X(cublasLtMatrixLayoutSetAttribute) X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) \
    X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtGetVersion)

/* Each member is named after its function: driver->cuMemAlloc_v2, written driver->cuMemAlloc. */
#define TN__CUDA_MEMBER(name) __typeof__(&name) name;
typedef struct tn__cuda_driver { TN__CUDA_DRIVER(TN__CUDA_MEMBER) } tn__cuda_driver;
typedef struct tn__cuda_graphs { TN__CUDA_GRAPHS(TN__CUDA_MEMBER) } tn__cuda_graphs;
typedef struct tn__cuda_compiler { TN__CUDA_COMPILER(TN__CUDA_MEMBER) } tn__cuda_compiler;
typedef struct tn__cuda_blas { TN__CUDA_BLAS(TN__CUDA_MEMBER) } tn__cuda_blas;
#undef TN__CUDA_MEMBER

typedef struct tn__cuda_libraries {
    tn__cuda_driver driver;
    tn__cuda_graphs graphs;
    tn__cuda_compiler compiler;
    tn__cuda_blas blas;
    bool has_graphs;            /* false: every step is a launch of its own */
    bool has_others;            /* more libraries may be opened (tn__cuda_open_versioned); not if a test has put its
                                   own driver in place */
    bool has_blas;              /* false: the backend's own kernel computes matrix products */
    const struct tn__cudnn *dnn; /* a cuDNN that a test has put in place; NULL: none */
    int driver_version;         /* newest CUDA version that the driver supports: 13000 is 13.0 */
    int compiler_version;
    int device_count;
} tn__cuda_libraries;

/* The libraries, opened on first use; NULL, with the reason in *why, if no device can be used. */
const tn__cuda_libraries *tn__cuda_open(const char **why);
/* The compiler alone, which needs no GPU, of a major version or an older one; false if there is none. */
bool tn__cuda_open_compiler(tn__cuda_libraries *to, int major);
/* Opens <stem>.<major>, newest first, by name and then where toolkits are installed; NULL if there is none. */
void *tn__cuda_open_versioned(const char *stem, int newest, int oldest);
/* nvrtcCompileProgram, with the program's signal handlers kept in place (interrupt.c). */
nvrtcResult tn__cuda_compile_program(const tn__cuda_compiler *compiler, nvrtcProgram program, int count,
                                     const char *const *options);

/* A library's function, and where in a table its address goes. */
typedef struct tn__cuda_entry {
    const char *name;
    size_t offset;
} tn__cuda_entry;
/* Fills in functions of the table `to`; the name of one that is not there, or NULL. */
const char *tn__cuda_find_functions(void *handle, const tn__cuda_entry *entries, int count, void *to);

/* Libraries that a GPU can be used without, at a cost. */
typedef enum tn__cuda_part {
    TN__CUDA_GRAPHS_PART,
    TN__CUDA_BLAS_PART,
    TN__CUDA_FFT_PART,
    TN__CUDA_SOLVER_PART,
    TN__CUDA_DNN_PART,
    TN__CUDA_PARTS
} tn__cuda_part;
/* Opens a library and fills in its functions. False, and the reason is noted, if it or one of the functions is
 * absent. */
bool tn__cuda_open_part(tn__cuda_part part, int newest, int oldest, const tn__cuda_entry *entries, int count, void *to);
/* The noted reason: what is missing, what that costs, what to do about it; "" if the library is there, or has not been
 * asked for yet. */
const char *tn__cuda_missing_part(tn__cuda_part part);
/* For tests: replaces the libraries by these (which must stay valid), before anything has used them. */
void tn__cuda_use(const tn__cuda_libraries *libraries);

#endif
