/* SPDX-License-Identifier: MIT */
/*
 * What the files of the CUDA backend share. A device has a stream of its own, number 0, on which everything happens in
 * the order of the calls, and more streams that the program has made (stream_order.c). A loaded program is a list of
 * steps, each with the function that starts it; what the steps start is made a CUDA graph, so that running the program
 * again is a single launch (graph.c).
 */
#ifndef TN_BACKENDS_CUDA_RUNTIME_CUDA_H
#define TN_BACKENDS_CUDA_RUNTIME_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/cuda/driver/driver.h"
#include "core/error.h"
#include "device/program.h"

/* ---- devices ---- */

enum { TN__CUDA_SMALL_MATRIX = 32 }; /* largest matrix with a row for each thread of a warp; small_matrices.cuh has
                                        the same number */

typedef struct tn__cuda_module tn__cuda_module;
typedef struct tn__cuda_run tn__cuda_run;
typedef struct tn__cuda_step tn__cuda_step;
typedef struct tn__cuda_staging tn__cuda_staging;
typedef struct tn__cuda_packed tn__cuda_packed;

/* What happens when the host waits for the GPU (environment variable TANSO_CUDA_SYNC): a help in finding hidden
 * waits. */
typedef enum tn__cuda_waits {
    TN__CUDA_WAITS_ALLOWED,
    TN__CUDA_WAITS_REPORTED,
    TN__CUDA_WAITS_FORBIDDEN
} tn__cuda_waits;

typedef struct tn__cuda_graph tn__cuda_graph;
typedef struct tn__cuda_graph_cache tn__cuda_graph_cache;

/* Runs of one program that are held back to be launched together: see series.c. */
#define TN__CUDA_TOGETHER 64 /* the most runs that are held back */
#define TN__CUDA_FEW 4       /* the most where the GPU would be idle meanwhile */
typedef struct tn__cuda_held {
    pthread_mutex_t lock;      /* no other lock is taken under it, not even the allocator's */
    _Atomic int count;
    CUevent mark[2];           /* events after the last two launches of several runs, used alternately; NULL: none
                                  yet */
    unsigned marks;            /* number of such launches since anything else was asked of the device */
    tn__cuda_graph *graph[TN__CUDA_TOGETHER];
    tn__cuda_graph_cache *cache;
    const char *label;
    uint64_t last;             /* time of the last request to run a graph, in nanoseconds */
} tn__cuda_held;

/* A unit of work that the error of a faulted device can name: the steps of a program, or a user's kernel. See
 * fault.c. */
typedef struct tn__cuda_work {
    struct tn__cuda_work *next; /* next in the device's list */
    const char *kernel;         /* name of a user's kernel; NULL: it is a program */
    const tn__cuda_step *step;
    int step_count, at;         /* at: the step that was started last, if each step is a launch of its own */
    uint32_t plan;              /* number of the executable */
    const tn__cuda_module *module; /* its kernels' module; NULL: no kernels, or several modules */
    _Atomic uint64_t started[TN__STREAMS]; /* by stream, the value of the device's `started` when it was last started;
                                              0: never */
} tn__cuda_work;

/* A point in a stream at which an event was recorded: after all that had been started in the stream by then. */
typedef struct tn__cuda_point {
    int stream;
    uint64_t started;
} tn__cuda_point;

#define TN__CUDA_ASKED_BEFORE 8 /* times (ticks) of earlier requests that a stream remembers: see reached() in
                                   stream_order.c */

/* A stream, and up to where others have waited for it, in ticks of the device (a counter of requests). All but
 * the stream is protected by the device's lock. */
typedef struct tn__cuda_stream_state {
    CUstream handle;       /* NULL: never made. It is kept when the program frees the stream, for the next one */
    CUevent mark;          /* event after all requests up to tick `marked` */
    uint64_t asked, marked; /* asked: tick of the last request */
    uint64_t before[TN__CUDA_ASKED_BEFORE]; /* ticks of the requests before that, a ring whose next place is: */
    unsigned turn;
    uint64_t done; /* tick up to which the host has waited for the stream */
    uint64_t good; /* count of starts up to which all has ended without a fault; under fault_lock */
    uint64_t behind[TN__STREAMS]; /* for each other stream, the tick up to which this one has been made to wait for
                                     it */
} tn__cuda_stream_state;

typedef struct tn__cuda_device {
    tn__device *owner;
    const tn__cuda_libraries *libraries;
    const tn__cuda_driver *driver;
    CUdevice device;
    CUcontext context;
    CUstream stream; /* the handle of stream 0, the device's own */
    tn__cuda_stream_state streams[TN__STREAMS];
    CUstream recorder;         /* stream on which graphs are captured; NULL: not made yet */
    int architecture;          /* 90: compute capability 9.0 */
    char name[24], product[64];
    /* Recursive. Held while work is put on a stream, so that the launches of a program are not interleaved with others.
     * The allocator's lock may be taken under it, never the other way round. */
    pthread_mutex_t lock;
    tn__cuda_module *modules;  /* loaded ones */
    cublasLtHandle_t blas;     /* cuBLASLt's handle, made when first needed */
    tn__cuda_packed *packed;   /* packed operands of matmul/split.c, while some step uses that */
    void *solver, *solver_params; /* cuSOLVER's handle, made when first needed, and its settings */
    void *dnn;                 /* cuDNN's handle, made when first needed */
    struct tn__cudnn_plan *convolutions; /* cuDNN's plans, the newest first */
    tn__cuda_staging *staging; /* pinned memory for transfers, made when first needed */
    CUevent handed;            /* event at the end of a stream, which another GPU waits for: see peer.c */
    uint32_t reaches;          /* bit set of the GPUs to whose memory peer access has been requested */
    tn__cuda_held held;
    _Atomic uint64_t started;  /* number of starts of work so far, see tn__cuda_work */
    bool blocking;             /* TANSO_CUDA_BLOCKING: the host waits for each work, so that a fault names the one at
                                  fault */
    bool graphs;               /* programs run as graphs; with TANSO_CUDA_GRAPHS=off each step is a launch */
    tn__cuda_waits waits;
    _Atomic unsigned long long wait_count; /* number of waits for the GPU so far */
    /* After a device fault the context is unusable, and every call fails with `fault`. */
    _Atomic bool faulted, told; /* told: a call has reported it */
    pthread_mutex_t fault_lock; /* no other lock is taken under it */
    char fault[1536];
    tn__cuda_work *works;      /* work that may be under way; under fault_lock */
    /* Failures of asynchronous runs: see failure.c. */
    CUdeviceptr latch;         /* word in device memory; not 0 after a failure */
    volatile int64_t *report;  /* the first failure, in host memory mapped for kernels: words TN__CUDA_REPORT_... */
    bool doubtful;             /* some loaded program may fail, so kernels that overwrite donated memory read the
                                  latch first */
    _Atomic uint64_t may_fail, sure; /* may_fail: number of the last run that may fail; sure: all runs up to that
                                        number have been waited for (peer.c) */
    tn__error *failure;        /* a failure that no call has reported yet */
    tn__use latched;           /* uses of the latch by streams: programs that may fail write it, those that overwrite
                                  donated memory read it */
    tn__use shared;            /* uses, by programs, of what a device has only once: `packed`, `solver`, `dnn` */
    uint32_t executable_count; /* number of executables loaded so far */
    tn__executable *executables;
    /* Of the backend's own file of executables, set where one is loaded: the error of a failure that kernels have
     * reported, by the report's words; NULL: its executable is gone. */
    tn__error *(*failure_of)(const struct tn__cuda_device *device, uint64_t who, int64_t operand, int64_t index);
} tn__cuda_device;

static inline tn__cuda_device *tn__cuda_of(const tn__device *device)
{
    return device->backend_data;
}

/* Makes the device's context current in this thread, for work other than a graph's: launches the runs that are held
 * back first. Fails if the device has faulted. */
tn_status tn__cuda_enter(tn__cuda_device *device, const char *what);
/* The same, without launching held-back runs: for a program's run, and under the allocator's lock. */
tn_status tn__cuda_enter_held(tn__cuda_device *device, const char *what);
/* Launches the runs that are held back; the device's context is current. */
tn_status tn__cuda_flush(tn__cuda_device *device);
/* Called after each launch of a run: notes it, and waits for it if TANSO_CUDA_BLOCKING is set. */
tn_status tn__cuda_started(const tn__cuda_run *run, CUresult result, const char *label);
/* Registers an open device, for two occasions (process.c): in a forked child it is unusable; and if it has faulted by
 * the time the process ends, that is reported. */
void tn__cuda_watch(tn__cuda_device *device, int index);
/* Fails in a forked child of a process that had opened a device, with a message that says why. */
#define TN__CUDA_NO_CHILD \
    "CUDA serves no child by fork of a process that has used it; fork before the first use of a GPU, or use the CPU " \
    "in the child"
bool tn__cuda_is_child(void);
/* Launches the runs that are held back on all other devices; an error there is left for that device's next caller. */
void tn__cuda_flush_others(const tn__cuda_device *device);
/* Device memory that the backend allocates for itself, outside of the allocator; freed by cuMemFree. If there is none
 * left, first the allocator's cache is returned to the driver, then loaded programs that nobody is running are
 * unloaded. */
tn_status tn__cuda_own_memory(tn__cuda_device *device, CUdeviceptr *memory, size_t bytes, const char *what);
/* Wait for all streams, or for an event; `why` appears in TANSO_CUDA_SYNC's report. Every wait for the GPU goes through
 * these or calls tn__cuda_may_wait first. */
tn_status tn__cuda_wait(tn__cuda_device *device, const char *why);
tn_status tn__cuda_wait_event(tn__cuda_device *device, CUevent event, tn__cuda_point point, const char *why);
/* Called before any other wait: counts it, and reports or forbids it as TANSO_CUDA_SYNC says. Where the wait cannot
 * be left out even so, the error is only latched. Held-back runs of other GPUs are launched, so that these work
 * meanwhile. */
tn_status tn__cuda_may_wait(tn__cuda_device *device, const char *why);
/* Waits for runs that may still fail, before another device is given their results (peer.c). */
tn_status tn__cuda_be_sure(tn__cuda_device *device, const char *why);
/* Waits until a stream, or an event in it (NULL: none), is done. Polls in between where the work may depend on other
 * processes. */
CUresult tn__cuda_await(tn__cuda_device *device, int stream, CUevent event);
/* As tn__cuda_may_wait, but does nothing if the GPU is idle, as then there is no wait. */
void tn__cuda_may_wait_if_busy(tn__cuda_device *device, const char *why);

/* ---- a device fault (fault.c) ---- */

/* TN_OK for success; else latches the error, and notes a fault if the error makes the context unusable. */
tn_status tn__cuda_check(tn__cuda_device *device, CUresult result, const char *what);
/* Notes a fault, without reporting it, if the result is an error that makes the context unusable, and returns true. */
bool tn__cuda_latch(tn__cuda_device *device, CUresult result);
/* Fails with the error of the device's fault. */
tn_status tn__cuda_fail_fault(tn__cuda_device *device, const char *what);
/* What a step does, for messages. */
const char *tn__cuda_step_name(const tn__step *step);
/* A work is in the device's list from before its first start until all streams have been waited for after its last
 * start. Removing one that is not in the list does nothing. */
void tn__cuda_work_add(tn__cuda_device *device, tn__cuda_work *work);
void tn__cuda_work_remove(tn__cuda_device *device, const tn__cuda_work *work);
/* Notes that work has been started. Called after the launch, so that a thread that waits meanwhile does not count it as
 * done. NULL: work that has no name. */
static inline void tn__cuda_note(tn__cuda_device *device, tn__cuda_work *work, int stream)
{
    if (work)
        atomic_store_explicit(&work->started[stream],
                              atomic_fetch_add_explicit(&device->started, 1, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}
/* The current end of a stream, for an event that is recorded next. */
static inline tn__cuda_point tn__cuda_here(const tn__cuda_device *device, int stream)
{
    return (tn__cuda_point){stream, atomic_load_explicit(&device->started, memory_order_relaxed)};
}
/* Everything before the point has ended without a fault. */
void tn__cuda_good(tn__cuda_device *device, tn__cuda_point point);

/* ---- the order of streams (stream_order.c) ---- */

/* The stream on which this thread puts its work. */
static inline CUstream tn__cuda_stream(const tn__cuda_device *device)
{
    return device->streams[tn__stream_number(device->owner)].handle;
}
/* Notes a request to a stream; the caller still holds the lock under which it made the request. */
static inline void tn__cuda_stream_asked(const tn__cuda_device *device, tn__cuda_stream_state *stream)
{
    stream->before[stream->turn++ % TN__CUDA_ASKED_BEFORE] = stream->asked;
    stream->asked = atomic_fetch_add(&device->owner->tick, 1) + 1;
}
/* The same for this thread's stream. */
static inline void tn__cuda_asked(tn__cuda_device *device)
{
    if (tn__has_streams(device->owner))
        tn__cuda_stream_asked(device, &device->streams[tn__stream_number(device->owner)]);
}
/* The functions of tn__stream_ops. */
int tn__cuda_stream_new(tn__device *owner);
void tn__cuda_stream_free(tn__device *owner, int stream);
tn_status tn__cuda_stream_order(tn__device *owner, uint32_t streams, uint64_t tick);
/* Wait for all streams, or for one. They neither count nor report the wait: the caller has called tn__cuda_may_wait. */
CUresult tn__cuda_finish(tn__cuda_device *device);
CUresult tn__cuda_finish_stream(tn__cuda_device *device, int stream);

/* ---- failures of runs (failure.c) ---- */

/* Passed by value to every kernel that may fail, or that must not overwrite donated memory after a failure. Kernels
 * know it as tn_failure. */
typedef struct tn__cuda_failure {
    unsigned long long guard;  /* address of the latch if the kernel must do nothing after a failure, else 0 */
    unsigned long long latch, report;
    unsigned long long run;    /* number of the run */
    unsigned long long who;    /* executable << 32 | step */
} tn__cuda_failure;
/* The words of the report; a kernel writes the first one last. */
enum { TN__CUDA_REPORT_SET, TN__CUDA_REPORT_RUN, TN__CUDA_REPORT_WHO, TN__CUDA_REPORT_OPERAND, TN__CUDA_REPORT_INDEX,
       TN__CUDA_REPORT_WORDS };
tn_status tn__cuda_failures_open(tn__cuda_device *device);
/* Reports a failure that has not been reported. If there is none, this costs a read of host memory. */
tn_status tn__cuda_look(tn__cuda_device *device);
/* The same, but leaves the report to the next tn__cuda_look. The streams are idle. */
void tn__cuda_settle(tn__cuda_device *device);

/* ---- code ---- */

/* The kernels of a text, compiled if no cache has them, and loaded once a device. */
tn_status tn__cuda_module_load(tn__cuda_device *device, const char *source, tn__cuda_module **module);
/* A module for each kernel of a program whose text marks where each kernel begins. Kernels that no cache has are
 * compiled in parallel, by other threads, from _begin to _end, which frees what was begun; the same thread calls both,
 * and may load other texts in between. `module` has room for all kernels, and keeps those that were found even if
 * others fail. */
typedef struct tn__cuda_modules tn__cuda_modules;
tn_status tn__cuda_modules_begin(tn__cuda_device *device, const tn__program *program, tn__cuda_module **module,
                                 tn__cuda_modules **begun);
tn_status tn__cuda_modules_end(tn__cuda_modules *begun);
void tn__cuda_module_release(tn__cuda_device *device, tn__cuda_module *module);
/* 32 hexadecimal digits: its file's name without the ending. */
const char *tn__cuda_module_name(const tn__cuda_module *module);
tn_status tn__cuda_module_function(tn__cuda_device *device, tn__cuda_module *module, const char *name,
                                   CUfunction *function);
/* Compiles a text to machine code for an architecture, or, if the compiler does not know that one, to PTX for the
 * newest one before it. *image is freed with tn__free. */
tn_status tn__cuda_compile(const tn__cuda_libraries *libraries, int architecture, const char *source, char **image,
                           size_t *length);

/* ---- programs ---- */

#define TN__CUDA_ORDERED 64 /* most steps of a program for which it is found out which may run side by side; the
                               steps of a longer one run in order */

/* How a run's launches are recorded instead of being put on the stream: as new nodes of a graph, by stream capture, or
 * by replacing the parameters of existing nodes. */
typedef struct tn__cuda_recording {
    CUgraphNode *node;         /* the node of each launch by tn__cuda_launch, in order */
    size_t count, capacity;
    CUgraph made;              /* the graph that nodes are added to; NULL during stream capture */
    CUgraphNode *wait;         /* with `made`: the nodes that the next one waits for, at most TN__CUDA_ORDERED */
    size_t waits;
    bool early;                /* the next node may start before these have ended: its kernel waits for them itself
                                  (programmatic dependent launch) */
    CUgraphExec patched;       /* the graph whose nodes' parameters are replaced, else NULL */
    size_t next;               /* with `patched`: the next node */
} tn__cuda_recording;

/* What a run of an executable passes to its steps. */
struct tn__cuda_run {
    tn__cuda_device *device;
    CUstream stream;           /* the stream for the work: not always the device's own */
    int number;                /* of the stream, among the device's */
    CUdeviceptr workspace;     /* the program's workspace, for steps that need one */
    tn__cuda_recording *recording; /* NULL: launches go to the stream */
    tn__cuda_work *work;       /* the work to note as started; NULL: none */
    void *const *buffers;
    const uint64_t *scalars;
    CUdeviceptr factors;       /* device memory for factors of library products, 16 bytes a step: see
                                  tn__cuda_factors */
    tn__cuda_failure failure;
};

/* True while a graph's nodes are being patched: then a step does nothing but launch its kernels. */
static inline bool tn__cuda_patching(const tn__cuda_run *run) { return run->recording && run->recording->patched; }

struct tn__cuda_step {
    /* Starts the step's work on run->stream. It neither waits nor allocates memory. */
    tn_status (*start)(const tn__cuda_step *step, const tn__cuda_run *run);
    void (*free)(const tn__cuda_step *step, tn__cuda_device *device); /* frees `data`; NULL: nothing to free */
    const tn__step *step;
    const tn__program *program;
    int number;
    bool may_fail;
    bool overwrites;           /* writes into a donated buffer, and so destroys its old contents */
    bool opaque;               /* does more than call tn__cuda_launch, so its nodes cannot be patched: other
                                  addresses need another graph */
    bool waits;                /* a library's own way of waiting is in it: it is never part of a graph, and may
                                  allocate */
    size_t workspace;          /* bytes of run->workspace that it needs; the program's steps share that memory */
    bool shares; /* uses what the device has only once: memory for packed operands, a library's handle */
    const char *failed;        /* the message of a failure; NULL: an index out of range */
    int64_t fault_extent;      /* extent of an operation's indexed axis, for the message; -1: the last extent of the
                                  operand at fault */
    tn__cuda_module *module;   /* the module of an operation's own kernel */
    CUfunction function;
    int shared;                /* KERNEL: bytes of dynamic shared memory of a block */
    void *data;                /* the step's own data, a single allocation, or NULL */
};

/* The tn__cuda_failure that a step passes to its kernels. */
tn__cuda_failure tn__cuda_failure_of(const tn__cuda_step *step, const tn__cuda_run *run);
/* The address of the latch, if a step's kernels must read it before they overwrite anything; else 0. */
static inline CUdeviceptr tn__cuda_guard(const tn__cuda_step *step, const tn__cuda_run *run)
{
    return step->overwrites ? run->failure.guard : 0;
}

tn_status tn__cuda_prepare_kernel(tn__cuda_step *step, tn__cuda_device *device, tn__cuda_module *module);
tn_status tn__cuda_prepare_copy(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_scatter(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_matmul(tn__cuda_step *step, tn__cuda_device *device);
/* Is the product by a kernel of ours, whatever libraries there are? */
bool tn__cuda_matmul_is_own(const tn__cuda_step *step, const tn__cuda_device *device);
bool tn__cuda_matmul_is_tall(const tn__cuda_step *step, const tn__cuda_device *device);
bool tn__cuda_matmul_is_tiny(const tn__cuda_step *step, const tn__cuda_device *device);
/* Prepares a product by cuBLASLt: sets step->start, or leaves it NULL if the library cannot compute it. The second
 * function does the same for the kernels of split_product.cuh, if these are enabled and faster. */
tn_status tn__cuda_prepare_matmul_library(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_matmul_split(tn__cuda_step *step, tn__cuda_device *device);
/* The same for a few very long sums, and for very many tiny matrices, see device/products.h. */
tn_status tn__cuda_prepare_matmul_tall(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_matmul_tiny(tn__cuda_step *step, tn__cuda_device *device);

/* The address of an operand's element 0, and that of its buffer. */
CUdeviceptr tn__cuda_address(const tn__cuda_run *run, const tn__operand *operand);

/* ---- kernels of the backend's own ---- */

/* A loop over strided operands of one shape, as the backend's own kernels take it: extents of 1 are dropped, and
 * neighbouring axes are merged where every operand allows it. Strides are in elements. */
#define TN__CUDA_WALK_OPERANDS 3
typedef struct tn__cuda_walk {
    long long size;
    int ndim, unused;
    long long dim[TN_MAX_NDIM];
    long long stride[TN__CUDA_WALK_OPERANDS][TN_MAX_NDIM];
} tn__cuda_walk;

/* Makes the loop over the axes in the bit set `mask` of a shape. A NULL for an operand's strides means that they
 * are 0. */
void tn__cuda_walk_make(tn__cuda_walk *walk, uint32_t mask, int ndim, const int64_t *dim, int count,
                        const int64_t *const *stride);

/* Text: struct walk and places() for kernels; it includes LOAD and STORE between float16 or bfloat16 and float32. */
extern const char *const tn__cuda_walk_text;
/* Text: struct tn_failure and tn_fail(). */
extern const char *const tn__cuda_failure_text;
/* Text: the definitions of S, W, LOAD, STORE and PLUS for a dtype, and TIMES for a real one (see texts.c). */
const char *tn__cuda_types(tn_dtype dtype);
const char *tn__cuda_conversions(tn_dtype dtype);
/* The texts of kernels for a storage dtype, to be freed with tn__free; NULL without memory. */
char *tn__cuda_text_copy(size_t itemsize, int words); /* words of 8 bytes that are moved at once */
char *tn__cuda_text_factors(void);
char *tn__cuda_text_scatter(tn_dtype dtype);
char *tn__cuda_text_matmul(tn_dtype dtype); /* for real dtypes */
char *tn__cuda_text_split_product(void);
/* A text of product kernels, after background.cuh and walk.cuh, with T defined as the dtype. */
char *tn__cuda_text_products(tn_dtype dtype, const char *constants, const unsigned char *text);
/* Loads a text (which it frees) as the step's own module, and finds the function `name` in it. */
tn_status tn__cuda_own_kernel(tn__cuda_step *step, tn__cuda_device *device, char *text, const char *name);
/* Launches a kernel, or records the launch as run->recording says. */
tn_status tn__cuda_launch(const tn__cuda_run *run, CUfunction function, int64_t blocks, int threads, int shared,
                          void **params, const char *label);
/* Launches one thread for each of `size` elements. */
tn_status tn__cuda_start(const tn__cuda_run *run, CUfunction function, int64_t size, void **params, const char *label);
/* Writes a library product's factors to device memory: alpha and beta, or, after a failure, 0 and 1, which leave the
 * result as it is. Each has `bytes` bytes, 4 or 8. */
tn_status tn__cuda_factors(const tn__cuda_step *step, const tn__cuda_run *run, const void *alpha, const void *beta,
                           size_t bytes, CUdeviceptr *factors);

/* For each of at most TN__CUDA_ORDERED steps, the bit set of the earlier steps that it has to wait for directly, not by
 * way of others. */
void tn__cuda_order(const tn__cuda_step *step, int count, uint64_t *waits);

/* ---- graphs of programs (graph.c) ---- */

/* Makes the stream for capturing graphs, unless there is one; under the device's lock. */
bool tn__cuda_open_recorder(tn__cuda_device *device);

/* A series: graphs of one program that were run one after another, and may be again. */
typedef struct tn__cuda_series {
    int count;
    tn__cuda_graph *part[TN__CUDA_TOGETHER];
    CUgraphExec exec;          /* one graph of them all; NULL: the series has occurred only once so far */
    uint64_t used;
} tn__cuda_series;

/* The graphs of one executable, by the addresses that they were made with. A trainer's step with a log and a plot has
 * 24: results lie in two places by turns, which begin in one of six each epoch, and an epoch's first sums elsewhere.
 * With fewer than a loop needs, graphs push one another out, and with each go the series that it is a part of. */
#define TN__CUDA_GRAPHS_KEPT 32
#define TN__CUDA_SERIES_KEPT 128
struct tn__cuda_graph_cache {
    tn__cuda_graph *graph[TN__CUDA_GRAPHS_KEPT];
    tn__cuda_series *series;   /* array of TN__CUDA_SERIES_KEPT; NULL: none yet */
    uint64_t uses;
    unsigned char last, next[TN__CUDA_GRAPHS_KEPT]; /* the graph that was used last; the one that came after each */
    bool refused;              /* the program cannot be made a graph */
    bool apart;                /* its graphs cannot be made part of a series */
};
/* Runs the steps as a graph. *done: whether it did; if not, nothing has been started. */
tn_status tn__cuda_graph_run(tn__cuda_graph_cache *cache, const tn__cuda_step *step, int count, tn__cuda_run *run,
                             bool *done);
void tn__cuda_graphs_free(tn__cuda_graph_cache *cache, tn__cuda_device *device);

#endif
