/* SPDX-License-Identifier: MIT */
/*
 * Choosing one of a library's ways by timing: an algorithm of cuBLASLt, an engine of cuDNN. The library proposes ways
 * in the order it thinks best, which is now and then wrong by a factor. Each is timed on scratch memory when a program
 * is loaded, and the fastest is remembered in the folder of compiled kernels, so that the next process takes the same
 * one and its sums have the same order.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/runtime/trial.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/kernel_cache.h"

#define PATIENCE 300.0        /* milliseconds for all ways together */
#define LEAST 0.2             /* milliseconds of runs that are timed together */
#define MOST_RUNS 20
#define TURNS 3               /* alternating timings of the first proposal and of the fastest one, before the latter
                                 is accepted */
#define PATTERN ((size_t)64 << 10) /* bytes of random numbers; operands repeat them */

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

static bool is_known(const tn__cuda_trial *t, const char *record)
{
    for (int i = 0; i < t->count && t->known; i++)
        if (memcmp((const char *)t->record + (size_t)i * t->record_bytes, record, t->record_bytes) == 0)
            return true;
    return !t->known;
}

static bool recall(const place *p, const tn__cuda_trial *t, void *record)
{
    size_t length = 0;
    char *data = tn__kernel_read(&p->folder, p->file, &length);
    bool found = data && length == t->record_bytes && is_known(t, data);
    if (found)
        memcpy(record, data, length);
    tn__free(data);
    return found;
}

/* ---- timing ---- */

typedef struct stopwatch {
    tn__cuda_bench bench;
    CUevent start, stop;
} stopwatch;

/* Several runs of one way, as a graph if possible: programs run as graphs, too, and the GPU then does not wait for the
 * host's calls, which take longer than small work does. */
typedef struct laps {
    int way, runs;
    CUgraphExec exec;
} laps;

static bool ask(const tn__cuda_trial *t, const laps *l, const tn__cuda_bench *bench)
{
    bool done = true;
    for (int i = 0; i < l->runs && done; i++)
        done = t->run(t->context, l->way, bench);
    return done;
}

static void capture(const stopwatch *w, const tn__cuda_trial *t, laps *l)
{
    tn__cuda_device *device = w->bench.device;
    const tn__cuda_graphs *api = &device->libraries->graphs;
    tn__cuda_bench bench = w->bench;
    CUgraph made = NULL;
    if (!device->graphs || !tn__cuda_open_recorder(device))
        return;
    bench.stream = device->recorder;
    if (api->cuStreamBeginCapture(bench.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS)
        return;
    bool done = ask(t, l, &bench);
    done = api->cuStreamEndCapture(bench.stream, &made) == CUDA_SUCCESS && done;
    if (done && api->cuGraphInstantiate(&l->exec, made, 0) != CUDA_SUCCESS)
        l->exec = NULL;
    if (made)
        api->cuGraphDestroy(made);
}

static void forget(const stopwatch *w, const laps *l)
{
    if (l->exec)
        w->bench.device->libraries->graphs.cuGraphExecDestroy(l->exec);
}

/* Milliseconds of all these runs; negative if the way cannot do it. */
static double time_laps(const stopwatch *w, const tn__cuda_trial *t, const laps *l)
{
    const tn__cuda_device *device = w->bench.device;
    const tn__cuda_driver *driver = device->driver;
    float elapsed = 0;
    bool done = driver->cuEventRecord(w->start, device->stream) == CUDA_SUCCESS;
    if (l->exec)
        done = done && device->libraries->graphs.cuGraphLaunch(l->exec, device->stream) == CUDA_SUCCESS;
    else
        done = done && ask(t, l, &w->bench);
    done = driver->cuEventRecord(w->stop, device->stream) == CUDA_SUCCESS && done;
    done = driver->cuEventSynchronize(w->stop) == CUDA_SUCCESS && done;
    return done && driver->cuEventElapsedTime(&elapsed, w->start, w->stop) == CUDA_SUCCESS ? elapsed : -1;
}

static int runs_together(double each)
{
    return each > 0 && LEAST / each < MOST_RUNS ? 1 + (int)(LEAST / each) : MOST_RUNS;
}

/* Is `each` at least 1% less than `than`? A smaller gain is not worth another order of sums. */
static bool is_faster(double each, double than) { return each < than * 0.99; }

/* Is a way that takes `each` milliseconds still faster when it and the first way are timed alternately? The first way
 * was timed first, when the chip had not reached its clock rate. */
static bool is_faster_again(const stopwatch *w, const tn__cuda_trial *t, int best, double each)
{
    double least[] = {-1, -1};
    laps turn[] = {{.way = 0, .runs = runs_together(each)}, {.way = best, .runs = runs_together(each)}};
    for (int k = 0; k < 2; k++)
        capture(w, t, &turn[k]);
    for (int k = 0; k < 2 * TURNS; k++) {
        double all = time_laps(w, t, &turn[k % 2]);
        if (all > 0 && (least[k % 2] < 0 || all < least[k % 2]))
            least[k % 2] = all;
    }
    for (int k = 0; k < 2; k++)
        forget(w, &turn[k]);
    return least[1] > 0 && (least[0] < 0 || is_faster(least[1], least[0]));
}

/* Milliseconds of a run; negative if the way cannot do it. *spent: the milliseconds that all timing took. */
static double time_way(const stopwatch *w, const tn__cuda_trial *t, int way, double *spent)
{
    const laps one = {.way = way, .runs = 1};
    double each = -1;
    for (int k = 0; k < 2; k++) { /* the first run may load code, so its time is not used */
        double all = time_laps(w, t, &one);
        if (all < 0)
            return -1;
        *spent += all;
        each = k == 0 || all < each ? all : each;
    }
    laps several = {.way = way, .runs = runs_together(each)};
    if (*spent < PATIENCE)
        capture(w, t, &several);
    for (int k = 0; k < 2 && *spent < PATIENCE; k++) {
        double all = time_laps(w, t, &several);
        *spent += all > 0 ? all : 0;
        if (all > 0 && (k == 0 || all / several.runs < each))
            each = all / several.runs;
    }
    forget(w, &several);
    return each;
}

/* The number of the fastest. */
static int fastest(const stopwatch *w, const tn__cuda_trial *t, double *least)
{
    double spent = 0;
    int best = 0;
    *least = -1;
    for (int i = 0; i < t->count && spent < PATIENCE; i++) {
        double each = time_way(w, t, i, &spent);
        if (each >= 0 && (*least < 0 || is_faster(each, *least))) {
            *least = each;
            best = i;
        }
    }
    return best && is_faster_again(w, t, best, *least) ? best : 0;
}

/* For each dtype, which of 64 random bits are kept, and which are set, to make numbers between 1/2 and 1 of either
 * sign. */
static const struct {
    uint64_t kept, set;
} numbers[TN_DTYPE_COUNT] = {
    [TN_FLOAT16] = {0x83ff83ff83ff83ffu, 0x3800380038003800u},
    [TN_BFLOAT16] = {0x807f807f807f807fu, 0x3f003f003f003f00u},
    [TN_FLOAT32] = {0x807fffff807fffffu, 0x3f0000003f000000u},
    [TN_FLOAT64] = {0x800fffffffffffffu, 0x3fe0000000000000u},
};

/* Fills memory with random numbers: a GPU that multiplies equal numbers needs less power and runs faster, so that
 * another algorithm might win. */
static bool fill(const stopwatch *w, CUdeviceptr memory, size_t bytes, tn_dtype dtype)
{
    const tn__cuda_device *device = w->bench.device;
    const tn__cuda_driver *driver = device->driver;
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
    bool done = driver->cuMemcpyHtoDAsync(memory, pattern, length, device->stream) == CUDA_SUCCESS &&
                driver->cuStreamSynchronize(device->stream) == CUDA_SUCCESS;
    for (size_t at = length, next; at < bytes && done; at += next) {
        next = at < bytes - at ? at : bytes - at;
        done = driver->cuMemcpyDtoDAsync(memory + at, memory, next, device->stream) == CUDA_SUCCESS;
    }
    tn__free(pattern);
    return done;
}

/* Events, scratch operands and a workspace. */
static bool set_up(stopwatch *w, const tn__cuda_trial *t)
{
    tn__cuda_device *device = w->bench.device;
    bool clean = !tn__latched();
    size_t workspace = 0;
    bool done = device->driver->cuEventCreate(&w->start, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
                device->driver->cuEventCreate(&w->stop, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    for (int i = 0; i < TN__CUDA_TRIAL_OPERANDS && done; i++)
        done = tn__cuda_own_memory(device, &w->bench.memory[i], t->bytes[i], t->thing) == TN_OK &&
               fill(w, w->bench.memory[i], t->bytes[i], t->dtype);
    done = done && t->begin(t->context, &w->bench, &workspace);
    if (done && workspace)
        done = tn__cuda_own_memory(device, &w->bench.workspace, workspace, t->thing) == TN_OK;
    if (!done && clean) /* without memory for a trial, the library's first proposal is taken */
        tn_clear_error();
    return done;
}

static void tear_down(const stopwatch *w)
{
    const tn__cuda_driver *driver = w->bench.device->driver;
    for (int i = 0; i < TN__CUDA_TRIAL_OPERANDS; i++)
        if (w->bench.memory[i])
            driver->cuMemFree(w->bench.memory[i]);
    if (w->bench.workspace)
        driver->cuMemFree(w->bench.workspace);
    if (w->start)
        driver->cuEventDestroy(w->start);
    if (w->stop)
        driver->cuEventDestroy(w->stop);
}

/* Times the ways; the number of the fastest, *least its milliseconds: negative if none was timed. */
static int time_all(tn__cuda_device *device, const tn__cuda_trial *trial, double *least)
{
    stopwatch w = {.bench = {.device = device, .stream = device->stream}};
    *least = -1;
    pthread_mutex_lock(&device->lock);
    int best = set_up(&w, trial) ? fastest(&w, trial, least) : 0;
    tear_down(&w);
    pthread_mutex_unlock(&device->lock);
    return best;
}

/* One trial at a time, so that GPUs of the same kind, whose keys are equal, use the same result. */
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

void tn__cuda_try(tn__cuda_device *device, const char *key, const tn__cuda_trial *trial, void *record)
{
    place p;
    memcpy(record, trial->record, trial->record_bytes);
    if (trial->count < 2 || trial->operations < trial->worth || !find_place(key, &p))
        return;
    char why[80];
    snprintf(why, sizeof why, "%s's ways of a %s are timed", trial->library, trial->thing);
    pthread_mutex_lock(&choosing);
    /* What cannot be remembered is not chosen by timing: the next run might choose another, and sums would have other
     * bits. */
    if (!p.folder.temporary && !recall(&p, trial, record) && tn__cuda_may_wait(device, why) == TN_OK) {
        double least;
        int best = time_all(device, trial, &least);
        memcpy(record, (const char *)trial->record + (size_t)best * trial->record_bytes, trial->record_bytes);
        if (least > 0) {
            tn__kernel_keep(&p.folder, p.file, record, trial->record_bytes);
            tn__log(TN__LOG_INFO, "cuda", "%s's proposal %d of %d is fastest, %.1f us: %s", trial->library, best + 1,
                    trial->count, 1e3 * least, key);
        }
    }
    pthread_mutex_unlock(&choosing);
    tn__kernel_folder_close(&p.folder);
}
