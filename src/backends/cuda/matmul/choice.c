/* SPDX-License-Identifier: MIT */
/*
 * Choosing an algorithm of cuBLASLt by timing. The library proposes algorithms in the order it thinks best, which is
 * now and then wrong by a factor. Each is timed on scratch memory when a program is loaded, and the fastest is
 * remembered in the folder of compiled kernels, so that the next process takes the same one and its sums have the same
 * order.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/matmul/choice.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/kernel_cache.h"

#define WORTH_OPERATIONS 1e8  /* of a smaller product any algorithm takes microseconds */
#define PATIENCE 300.0        /* milliseconds for all algorithms of a product */
#define LEAST 0.2             /* milliseconds of runs that are timed together */
#define MOST_RUNS 20
#define TURNS 3               /* of the first proposal and the fastest one, before that is believed */
#define PATTERN ((size_t)64 << 10) /* bytes of random numbers, which are repeated */

/* ---- what is remembered ---- */

typedef struct place {
    tn__kernel_folder folder;
    char file[48];
} place;

static bool find_place(const char *key, place *p)
{
    char name[33];
    bool clean = !tn__latched();
    if (tn__kernel_folder_open(&p->folder) != TN_OK) {
        if (clean)
            tn_clear_error();
        return false;
    }
    tn__hash_name(key, strlen(key), name);
    snprintf(p->file, sizeof p->file, "%s.algorithm", name);
    return true;
}

static bool recall(const place *p, tn__cuda_algorithm *algorithm)
{
    size_t length = 0;
    char *data = tn__kernel_read(&p->folder, p->file, &length);
    bool found = data && length == sizeof *algorithm;
    if (found)
        memcpy(algorithm, data, sizeof *algorithm);
    tn__free(data);
    return found;
}

/* ---- timing ---- */

typedef struct stopwatch {
    tn__cuda_device *device;
    CUevent start, stop;
    CUdeviceptr memory[TN__CUDA_FACTORS], workspace;
} stopwatch;

/* Milliseconds of `runs` products, negative if the algorithm cannot do it. */
static double time_runs(const stopwatch *w, const tn__cuda_trial *t, const cublasLtMatmulHeuristicResult_t *proposal,
                        int runs)
{
    const tn__cuda_driver *driver = w->device->driver;
    const float one = 1, some = (float)t->beta;
    const double wide_one = 1, wide_some = t->beta;
    float elapsed = 0;
    bool done = driver->cuEventRecord(w->start, w->device->stream) == CUDA_SUCCESS;
    for (int i = 0; i < runs && done; i++)
        done = w->device->libraries->blas.cublasLtMatmul(
                   w->device->blas, t->operation, t->wide ? (const void *)&wide_one : &one,
                   (const void *)w->memory[TN__CUDA_B], t->layout[TN__CUDA_B], (const void *)w->memory[TN__CUDA_A],
                   t->layout[TN__CUDA_A], t->wide ? (const void *)&wide_some : &some,
                   (const void *)w->memory[TN__CUDA_OUT], t->layout[TN__CUDA_OUT], (void *)w->memory[TN__CUDA_OUT],
                   t->layout[TN__CUDA_OUT], &proposal->algo, (void *)w->workspace, proposal->workspaceSize,
                   w->device->stream) == CUBLAS_STATUS_SUCCESS;
    done = driver->cuEventRecord(w->stop, w->device->stream) == CUDA_SUCCESS && done;
    done = driver->cuEventSynchronize(w->stop) == CUDA_SUCCESS && done;
    return done && driver->cuEventElapsedTime(&elapsed, w->start, w->stop) == CUDA_SUCCESS ? elapsed : -1;
}

static int runs_together(double each)
{
    return each > 0 && LEAST / each < MOST_RUNS ? 1 + (int)(LEAST / each) : MOST_RUNS;
}

/* What is hardly faster is not worth another order of sums. */
static bool is_faster(double each, double than) { return each < than * 0.99; }

/* Is a proposal, a product of which takes `each` milliseconds, faster than the first one, timed by turns? The timing
 * began with that one, when the chip had not yet its speed. */
static bool is_faster_again(const stopwatch *w, const tn__cuda_trial *t, int best, double each)
{
    double least[] = {-1, -1};
    int runs = runs_together(each);
    for (int k = 0; k < 2 * TURNS; k++) {
        double all = time_runs(w, t, &t->result[k % 2 ? best : 0], runs);
        if (all > 0 && (least[k % 2] < 0 || all < least[k % 2]))
            least[k % 2] = all;
    }
    return least[1] > 0 && (least[0] < 0 || is_faster(least[1], least[0]));
}

/* The number of the fastest. */
static int fastest(const stopwatch *w, const tn__cuda_trial *t, double *least)
{
    double spent = 0;
    int best = 0;
    *least = -1;
    for (int i = 0; i < t->count && spent < PATIENCE; i++) {
        double first = time_runs(w, t, &t->result[i], 1), each = first;
        spent += first > 0 ? first : 0;
        if (first < 0)
            continue;
        int runs = runs_together(first);
        for (int k = 0; k < 2 && spent < PATIENCE; k++) { /* the first run may have loaded code */
            double all = time_runs(w, t, &t->result[i], runs);
            spent += all > 0 ? all : 0;
            if (all > 0 && (k == 0 || all / runs < each))
                each = all / runs;
        }
        if (*least < 0 || is_faster(each, *least)) {
            *least = each;
            best = i;
        }
    }
    return best && is_faster_again(w, t, best, *least) ? best : 0;
}

/* Which of 64 random bits make numbers between 1/2 and 1 of either sign, and what else those have. */
static const struct {
    uint64_t kept, set;
} numbers[TN_DTYPE_COUNT] = {
    [TN_FLOAT16] = {0x83ff83ff83ff83ffu, 0x3800380038003800u},
    [TN_BFLOAT16] = {0x807f807f807f807fu, 0x3f003f003f003f00u},
    [TN_FLOAT32] = {0x807fffff807fffffu, 0x3f0000003f000000u},
    [TN_FLOAT64] = {0x800fffffffffffffu, 0x3fe0000000000000u},
};

/* Random numbers: where all are alike a GPU needs less power, so that it is faster, and another algorithm the
 * fastest. */
static bool fill(const stopwatch *w, CUdeviceptr memory, size_t bytes, tn_dtype dtype)
{
    const tn__cuda_driver *driver = w->device->driver;
    size_t length = bytes < PATTERN ? bytes : PATTERN, count = (length + 7) / 8;
    uint64_t *pattern = tn__alloc(count * sizeof *pattern), state = 0x9e3779b97f4a7c15u;
    if (pattern == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13; /* Marsaglia's xorshift64 */
        state ^= state >> 7;
        state ^= state << 17;
        pattern[i] = (state & numbers[dtype].kept) | numbers[dtype].set;
    }
    bool done = driver->cuMemcpyHtoDAsync(memory, pattern, length, w->device->stream) == CUDA_SUCCESS &&
                driver->cuStreamSynchronize(w->device->stream) == CUDA_SUCCESS;
    for (size_t at = length, next; at < bytes && done; at += next) {
        next = at < bytes - at ? at : bytes - at;
        done = driver->cuMemcpyDtoDAsync(memory + at, memory, next, w->device->stream) == CUDA_SUCCESS;
    }
    tn__free(pattern);
    return done;
}

static size_t largest_workspace(const tn__cuda_trial *t)
{
    size_t bytes = 0;
    for (int i = 0; i < t->count; i++)
        bytes = t->result[i].workspaceSize > bytes ? t->result[i].workspaceSize : bytes;
    return bytes;
}

/* Events, scratch matrices and a workspace. */
static bool set_up(stopwatch *w, const tn__cuda_trial *t)
{
    const tn__cuda_driver *driver = w->device->driver;
    bool clean = !tn__latched();
    size_t workspace = largest_workspace(t);
    bool done = driver->cuEventCreate(&w->start, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
                driver->cuEventCreate(&w->stop, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    for (int i = 0; i < TN__CUDA_FACTORS && done; i++)
        done = tn__cuda_own_memory(w->device, &w->memory[i], t->bytes[i], "matmul") == TN_OK &&
               fill(w, w->memory[i], t->bytes[i], t->dtype);
    if (done && t->bias) /* whose values do not matter: the beginning of b has as many */
        done = w->device->libraries->blas.cublasLtMatmulDescSetAttribute(
                   t->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &w->memory[TN__CUDA_B],
                   sizeof w->memory[TN__CUDA_B]) == CUBLAS_STATUS_SUCCESS;
    if (done && workspace)
        done = tn__cuda_own_memory(w->device, &w->workspace, workspace, "matmul") == TN_OK;
    if (!done && clean) /* without room for a trial, the library's first proposal it is */
        tn_clear_error();
    return done;
}

static void tear_down(const stopwatch *w)
{
    const tn__cuda_driver *driver = w->device->driver;
    for (int i = 0; i < TN__CUDA_FACTORS; i++)
        if (w->memory[i])
            driver->cuMemFree(w->memory[i]);
    if (w->workspace)
        driver->cuMemFree(w->workspace);
    if (w->start)
        driver->cuEventDestroy(w->start);
    if (w->stop)
        driver->cuEventDestroy(w->stop);
}

static tn__cuda_algorithm proposal(const tn__cuda_trial *t, int i)
{
    return (tn__cuda_algorithm){t->result[i].algo, t->result[i].workspaceSize};
}

/* One at a time, so that GPUs of a kind, which have a key in common, go by the same timing. */
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

void tn__cuda_choose_algorithm(tn__cuda_device *device, const char *key, const tn__cuda_trial *trial,
                               tn__cuda_algorithm *algorithm)
{
    place p;
    *algorithm = proposal(trial, 0);
    if (trial->count < 2 || trial->operations < WORTH_OPERATIONS || !find_place(key, &p))
        return;
    pthread_mutex_lock(&choosing);
    /* What cannot be remembered is not chosen by timing: the next run might choose another, and sums would have other
     * bits. */
    if (!p.folder.temporary && !recall(&p, algorithm) &&
        tn__cuda_may_wait(device, "algorithms of a product are timed") == TN_OK) {
        stopwatch w = {.device = device};
        double least = -1;
        pthread_mutex_lock(&device->lock);
        int best = set_up(&w, trial) ? fastest(&w, trial, &least) : 0;
        tear_down(&w);
        pthread_mutex_unlock(&device->lock);
        *algorithm = proposal(trial, best);
        if (least > 0) {
            tn__kernel_keep(&p.folder, p.file, (const char *)algorithm, sizeof *algorithm);
            tn__log(TN__LOG_INFO, "cuda", "cuBLASLt's proposal %d of %d is fastest, %.1f us: %s", best + 1,
                    trial->count, 1e3 * least, key);
        }
    }
    pthread_mutex_unlock(&choosing);
    tn__kernel_folder_close(&p.folder);
}
