/* SPDX-License-Identifier: MIT */
/*
 * Operations of libraries on a GPU: cuFFT's and cuSOLVER's functions, found by dlopen when an operation is first asked
 * for, so that neither the build nor the plug-in needs them; where one is absent the operation is computed on the CPU.
 * Their types and numbers are declared here as NVIDIA's manuals of version 13.0 have them.
 */
#ifndef TN_BACKENDS_CUDA_LINALG_LIBRARY_H
#define TN_BACKENDS_CUDA_LINALG_LIBRARY_H

#include "backends/cuda/ops/moving.h"

/* ---- cuFFT ---- */

enum { TN__CUFFT_R2C = 0x2a, TN__CUFFT_C2R = 0x2c, TN__CUFFT_C2C = 0x29, TN__CUFFT_D2Z = 0x6a, TN__CUFFT_Z2D = 0x6c,
       TN__CUFFT_Z2Z = 0x69, TN__CUFFT_FORWARD = -1, TN__CUFFT_INVERSE = 1 };

typedef struct tn__cufft {
    int (*cufftCreate)(int *plan);
    int (*cufftDestroy)(int plan);
    int (*cufftSetAutoAllocation)(int plan, int allocates);
    int (*cufftMakePlanMany64)(int plan, int rank, long long *n, long long *in_extent, long long in_stride,
                               long long in_distance, long long *out_extent, long long out_stride,
                               long long out_distance, int type, long long batch, size_t *bytes);
    int (*cufftSetWorkArea)(int plan, void *memory);
    int (*cufftSetStream)(int plan, CUstream stream);
    int (*cufftExecC2C)(int plan, void *from, void *to, int direction);
    int (*cufftExecZ2Z)(int plan, void *from, void *to, int direction);
    int (*cufftExecR2C)(int plan, void *from, void *to);
    int (*cufftExecD2Z)(int plan, void *from, void *to);
    int (*cufftExecC2R)(int plan, void *from, void *to);
    int (*cufftExecZ2D)(int plan, void *from, void *to);
} tn__cufft;

/* NULL if it is absent. */
const tn__cufft *tn__cuda_fft_library(const tn__cuda_device *device);
bool tn__cuda_fft_takes(const tn__cuda_device *device, tn_dtype dtype);
tn_status tn__cuda_prepare_fft(tn__cuda_step *step, tn__cuda_device *device);
char *tn__cuda_text_fft(bool wide);

/* ---- cuSOLVER ---- */

enum { TN__CUSOLVER_REAL = 1, TN__CUSOLVER_COMPLEX = 5 }; /* cuSOLVER's types of double precision */

typedef struct tn__cusolver {
    int (*cusolverDnCreate)(void **handle);
    int (*cusolverDnSetStream)(void *handle, CUstream stream);
    int (*cusolverDnCreateParams)(void **params);
    int (*cusolverDnXpotrf_bufferSize)(void *handle, void *params, int upper, int64_t n, int type, const void *a,
                                       int64_t lda, int compute, size_t *device_bytes, size_t *host_bytes);
    int (*cusolverDnXpotrf)(void *handle, void *params, int upper, int64_t n, int type, void *a, int64_t lda,
                            int compute,
                            void *device_memory, size_t device_bytes, void *host_memory, size_t host_bytes, int *info);
    int (*cusolverDnXgetrf_bufferSize)(void *handle, void *params, int64_t m, int64_t n, int type, const void *a,
                                       int64_t lda, int compute, size_t *device_bytes, size_t *host_bytes);
    int (*cusolverDnXgetrf)(void *handle, void *params, int64_t m, int64_t n, int type, void *a, int64_t lda,
                            int64_t *pivot,
                            int compute, void *device_memory, size_t device_bytes, void *host_memory, size_t host_bytes,
                                int *info);
    int (*cusolverDnXgetrs)(void *handle, void *params, int transposed, int64_t n, int64_t sides, int type,
                            const void *a,
                            int64_t lda, const int64_t *pivot, int type_b, void *b, int64_t ldb, int *info);
    int (*cusolverDnXgeqrf_bufferSize)(void *handle, void *params, int64_t m, int64_t n, int type, const void *a,
                                       int64_t lda,
                                       int type_tau, const void *tau, int compute, size_t *device_bytes,
                                           size_t *host_bytes);
    int (*cusolverDnXgeqrf)(void *handle, void *params, int64_t m, int64_t n, int type, void *a, int64_t lda,
                            int type_tau,
                            void *tau, int compute, void *device_memory, size_t device_bytes, void *host_memory,
                            size_t host_bytes, int *info);
    int (*cusolverDnDorgqr_bufferSize)(void *handle, int m, int n, int k, const void *a, int lda, const void *tau,
                                       int *elements);
    int (*cusolverDnDorgqr)(void *handle, int m, int n, int k, void *a, int lda, const void *tau, void *memory,
                            int elements, int *info);
    int (*cusolverDnZungqr_bufferSize)(void *handle, int m, int n, int k, const void *a, int lda, const void *tau,
                                       int *elements);
    int (*cusolverDnZungqr)(void *handle, int m, int n, int k, void *a, int lda, const void *tau, void *memory,
                            int elements, int *info);
    int (*cusolverDnXgesvd_bufferSize)(void *handle, void *params, signed char job_u, signed char job_vt, int64_t m,
                                       int64_t n,
                                       int type, const void *a, int64_t lda, int type_s, const void *s, int type_u,
                                       const void *u, int64_t ldu, int type_vt, const void *vt, int64_t ldvt,
                                                  int compute,
                                       size_t *device_bytes, size_t *host_bytes);
    int (*cusolverDnXgesvd)(void *handle, void *params, signed char job_u, signed char job_vt, int64_t m, int64_t n,
                            int type,
                            void *a, int64_t lda, int type_s, void *s, int type_u, void *u, int64_t ldu, int type_vt,
                                 void *vt,
                            int64_t ldvt, int compute, void *device_memory, size_t device_bytes, void *host_memory,
                            size_t host_bytes, int *info);
    int (*cusolverDnXsyevd_bufferSize)(void *handle, void *params, int vectors, int upper, int64_t n, int type,
                                       const void *a,
                                       int64_t lda, int type_w, const void *w, int compute, size_t *device_bytes,
                                       size_t *host_bytes);
    int (*cusolverDnXsyevd)(void *handle, void *params, int vectors, int upper, int64_t n, int type, void *a,
                            int64_t lda,
                            int type_w, void *w, int compute, void *device_memory, size_t device_bytes,
                                void *host_memory,
                            size_t host_bytes, int *info);
} tn__cusolver;

const tn__cusolver *tn__cuda_solver_library(const tn__cuda_device *device);
/* Does cuSOLVER compute in this dtype? Single precision is computed in double, too. */
bool tn__cuda_solver_takes(const tn__cuda_device *device, tn_dtype dtype);
/* Of an operation on matrices of that shape: are there kernels for any number of so small ones, which need no library?
 * Else, is a library sooner done with them than the CPU? (True of other operations.) */
bool tn__cuda_is_small(int op, const tn__shape *shape);
bool tn__cuda_library_pays(int op, const tn__shape *shape);
/* The device's handle, made if there is none yet; under the device's lock. */
tn_status tn__cuda_solver_open(tn__cuda_device *device, const tn__cusolver *library);
/* TN_OK if a function returned 0, else an error. */
tn_status tn__cuda_solver_check(int result, const char *what);
/* Prepare the steps CHOLESKY, SOLVE and SLOGDET; and QR, SVD and EIGH. */
tn_status tn__cuda_prepare_solver(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_decompose(tn__cuda_step *step, tn__cuda_device *device);
/* Is a step the SVD or EIGH of small matrices? And its preparation, which does not need cuSOLVER. */
bool tn__cuda_jacobi_takes(const tn__step *step);
tn_status tn__cuda_prepare_jacobi(tn__cuda_step *step, tn__cuda_device *device);
/* The kernel's text for matrices of at most so many rows and columns: powers of two, 4 to TN__CUDA_SMALL_MATRIX. */
char *tn__cuda_text_jacobi(tn_dtype dtype, int op, int rows, int columns);
char *tn__cuda_text_solver(tn_dtype dtype);
char *tn__cuda_text_decompose(tn_dtype dtype);

#endif
