/* SPDX-License-Identifier: MIT */
/* Opening cuFFT and cuSOLVER: once a process, when they are first asked for. */
#include <pthread.h>

#include "backends/cuda/linalg/library.h"
#include "core/error.h"

#define OLDEST 11 /* cuSOLVER's version of CUDA 12 */

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

/* Opens a library; its version numbers are one below CUDA's. */
static bool open_table(tn__cuda_part part, const tn__cuda_entry *entries, int count, void *table)
{
    return tn__cuda_open_part(part, tn__cuda_open(NULL)->driver_version / 1000 - 1, OLDEST, entries, count, table);
}

#define FFT(name) {#name, offsetof(tn__cufft, name)}
static const tn__cuda_entry fft_entries[] = {
    FFT(cufftCreate),      FFT(cufftDestroy),   FFT(cufftSetAutoAllocation), FFT(cufftMakePlanMany64),
    FFT(cufftSetWorkArea), FFT(cufftSetStream), FFT(cufftExecC2C),           FFT(cufftExecZ2Z),
    FFT(cufftExecR2C),     FFT(cufftExecD2Z),   FFT(cufftExecC2R),           FFT(cufftExecZ2D)};
static tn__cufft fft;
static bool fft_there;

static void open_fft(void)
{
    fft_there = open_table(TN__CUDA_FFT_PART, fft_entries, COUNT(fft_entries), &fft);
}

const tn__cufft *tn__cuda_fft_library(const tn__cuda_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!device->libraries->has_others)
        return NULL;
    pthread_once(&once, open_fft);
    return fft_there ? &fft : NULL;
}

#define SOLVER(name) {#name, offsetof(tn__cusolver, name)}
static const tn__cuda_entry solver_entries[] = {
    SOLVER(cusolverDnCreate), SOLVER(cusolverDnSetStream), SOLVER(cusolverDnCreateParams),
    SOLVER(cusolverDnXpotrf_bufferSize), SOLVER(cusolverDnXpotrf), SOLVER(cusolverDnXgetrf_bufferSize),
    SOLVER(cusolverDnXgetrf), SOLVER(cusolverDnXgetrs), SOLVER(cusolverDnXgeqrf_bufferSize),
    SOLVER(cusolverDnXgeqrf), SOLVER(cusolverDnDorgqr_bufferSize), SOLVER(cusolverDnDorgqr),
    SOLVER(cusolverDnZungqr_bufferSize), SOLVER(cusolverDnZungqr), SOLVER(cusolverDnXgesvd_bufferSize),
    SOLVER(cusolverDnXgesvd), SOLVER(cusolverDnXsyevd_bufferSize), SOLVER(cusolverDnXsyevd)};
static tn__cusolver solver;
static bool solver_there;

static void open_solver(void)
{
    solver_there = open_table(TN__CUDA_SOLVER_PART, solver_entries, COUNT(solver_entries), &solver);
}

const tn__cusolver *tn__cuda_solver_library(const tn__cuda_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!device->libraries->has_others)
        return NULL;
    pthread_once(&once, open_solver);
    return solver_there ? &solver : NULL;
}

tn_status tn__cuda_solver_check(int result, const char *what)
{
    return result == 0 ? TN_OK : tn__fail(TN_ERR_DEVICE, "linalg", "cuSOLVER's %s failed with status %d", what, result);
}

tn_status tn__cuda_solver_open(tn__cuda_device *device, const tn__cusolver *library)
{
    if (device->solver)
        return TN_OK;
    tn_status status = tn__cuda_solver_check(library->cusolverDnCreate(&device->solver), "start");
    return status == TN_OK ? tn__cuda_solver_check(library->cusolverDnCreateParams(&device->solver_params), "start")
                           : status;
}
