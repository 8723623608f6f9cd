/* SPDX-License-Identifier: MIT */
/*
 * Inside the CUDA backend. A device has a stream of its own, on which everything happens in the order it was asked for,
 * and others that a program has made (stream_order.c). A loaded program is a list of steps, each with the function that
 * starts it; what it starts is captured as a graph, so that running the program again is one launch.
 */
#ifndef TN_BACKENDS_CUDA_RUNTIME_CUDA_H
#define TN_BACKENDS_CUDA_RUNTIME_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/cuda/driver/driver.h"
#include "core/error.h"
#include "device/program.h"

/* ---- devices ---- */

enum { TN__CUDA_SMALL_MATRIX = 32 }; /* rows that the lanes of a warp have; as small_matrices.cuh */

typedef struct tn__cuda_module tn__cuda_module;
typedef struct tn__cuda_run tn__cuda_run;
typedef struct tn__cuda_step tn__cuda_step;
typedef struct tn__cuda_staging tn__cuda_staging;
typedef struct tn__cuda_packed tn__cuda_packed;

/* What waiting for the GPU means to whoever looks for hidden waits: TANSO_CUDA_SYNC. */
typedef enum tn__cuda_waits {
    TN__CUDA_WAITS_ALLOWED,
    TN__CUDA_WAITS_REPORTED,
    TN__CUDA_WAITS_FORBIDDEN
} tn__cuda_waits;

typedef struct tn__cuda_graph tn__cuda_graph;
typedef struct tn__cuda_graph_cache tn__cuda_graph_cache;

/* Runs of one program that have been asked for and not launched yet: see series.c. */
#define TN__CUDA_TOGETHER 64 /* at most */
#define TN__CUDA_FEW 4       /* where the GPU would wait for more */
typedef struct tn__cuda_held {
    pthread_mutex_t lock;      /* taken last of all, the allocator's included */
    _Atomic int count;
    CUevent mark[2];           /* behind the last two launches of several, by turns; NULL: none yet */
    unsigned marks;            /* such launches, since something else was asked for */
    tn__cuda_graph *graph[TN__CUDA_TOGETHER];
    tn__cuda_graph_cache *cache;
    const char *label;
    uint64_t last;             /* when a graph's run was last asked for, in nanoseconds */
} tn__cuda_held;

/* Something that is started as one, for the error of a lost device: the steps of a program, or a user's kernel. See
 * fault.c. */
typedef struct tn__cuda_work {
    struct tn__cuda_work *next; /* of the device's */
    const char *kernel;         /* a user's; NULL: a program */
    const tn__cuda_step *step;
    int step_count, at;         /* at: the step that was started last, where each is a launch */
    uint32_t plan;              /* number of the executable */
    const tn__cuda_module *module; /* NULL: no kernels, or of several modules */
    _Atomic uint64_t started[TN__STREAMS]; /* when last, as the device counts starts; 0: never */
} tn__cuda_work;

/* Where an event was recorded: behind what was started in a stream by then. */
typedef struct tn__cuda_point {
    int stream;
    uint64_t started;
} tn__cuda_point;

#define TN__CUDA_ASKED_BEFORE 8 /* ticks that a stream remembers: see reached() in stream_order.c */

/* A stream, and what others have waited for of it, in ticks of the device; all but the stream under the lock. */
typedef struct tn__cuda_stream_state {
    CUstream handle;       /* NULL: never made; stays when the program frees it, for the next one */
    CUevent mark;          /* behind what was asked up to `marked` */
    uint64_t asked, marked; /* asked: when last */
    uint64_t before[TN__CUDA_ASKED_BEFORE]; /* when it was asked before that; the next one's place: */
    unsigned turn;
    uint64_t done; /* the host has waited for what was asked up to then */
    uint64_t good; /* what was started up to then is done, and well; under fault_lock */
    uint64_t behind[TN__STREAMS]; /* of each other one: it has been told to wait for what that was asked up to then */
} tn__cuda_stream_state;

typedef struct tn__cuda_device {
    tn__device *owner;
    const tn__cuda_libraries *libraries;
    const tn__cuda_driver *driver;
    CUdevice device;
    CUcontext context;
    CUstream stream; /* of stream 0, the device's own */
    tn__cuda_stream_state streams[TN__STREAMS];
    CUstream recorder;         /* where graphs are captured; 0: never yet */
    int architecture;          /* 90: compute capability 9.0 */
    char name[24], product[64];
    /* Recursive; held while work is put on a stream, so that a program's launches stay together. Whoever holds it may
     * take the allocator's lock, never the other way round. */
    pthread_mutex_t lock;
    tn__cuda_module *modules;  /* loaded ones */
    cublasLtHandle_t blas;     /* made when first needed */
    tn__cuda_packed *packed;   /* memory of matmul/split.c, while some step uses it */
    void *solver, *solver_params; /* cuSOLVER's handle, made when first needed, and its settings */
    void *dnn;                 /* cuDNN's, made when first needed */
    struct tn__cudnn_plan *convolutions; /* its plans, the newest first */
    tn__cuda_staging *staging; /* pinned memory for transfers, made when first needed */
    CUevent handed;            /* the end of a stream that another GPU goes behind: see peer.c */
    uint32_t reaches;          /* GPUs, by their numbers, whose memory this one has been asked to reach */
    tn__cuda_held held;
    _Atomic uint64_t started;  /* pieces of work ever, see tn__cuda_work */
    bool blocking;             /* TANSO_CUDA_BLOCKING: each piece of work is waited for, so that a fault names its
                                  own */
    bool graphs;               /* programs are captured; TANSO_CUDA_GRAPHS=off: each step is a launch */
    tn__cuda_waits waits;
    _Atomic unsigned long long wait_count; /* of waits for the GPU so far */
    /* A context that is lost: every call fails with `fault`. */
    _Atomic bool faulted, told; /* told: some call has failed with it */
    pthread_mutex_t fault_lock; /* no other one is taken under it */
    char fault[1536];
    tn__cuda_work *works;      /* that may have been started; under fault_lock */
    /* Failures of runs that were started and not waited for: see failure.c. */
    CUdeviceptr latch;         /* a word on the device: not 0 after a failure */
    volatile int64_t *report;  /* the first failure, in host memory that kernels write: tn__cuda_report */
    bool doubtful;             /* some program may fail: what overwrites looks at the latch first */
    _Atomic uint64_t may_fail, sure; /* the last run that may; all up to which have been waited for: peer.c */
    tn__error *failure;        /* one that nobody has been told of */
    tn__use latched;           /* by streams: programs that may fail write the latch, those that overwrite read it */
    tn__use shared;            /* by programs that use memory or handles of the device, `packed`, `solver` or `dnn` */
    uint32_t executable_count; /* ever loaded */
    tn__executable *executables;
} tn__cuda_device;

static inline tn__cuda_device *tn__cuda_of(const tn__device *device)
{
    return device->backend_data;
}

/* Makes the device's context this thread's, for work other than a graph's, and launches what is held back before it;
 * fails if the device has faulted. */
tn_status tn__cuda_enter(tn__cuda_device *device, const char *what);
/* The same without launching anything: for a program's run, and under the allocator's lock. */
tn_status tn__cuda_enter_held(tn__cuda_device *device, const char *what);
/* Launches what is held back, in the context of the device. */
tn_status tn__cuda_flush(tn__cuda_device *device);
/* After a launch of a run: notes it, and waits for it where TANSO_CUDA_BLOCKING asks for that. */
tn_status tn__cuda_started(const tn__cuda_run *run, CUresult result, const char *label);
/* Device `index` is open: in children by fork it will be lost, and if it is lost when the process ends, that is told of
 * (process.c). */
void tn__cuda_watch(tn__cuda_device *device, int index);
/* Whether this is a child by fork of a process that had opened one, and what that means. */
#define TN__CUDA_NO_CHILD \
    "CUDA serves no child by fork of a process that has used it; fork before the first use of a GPU, or use the CPU " \
    "in the child"
bool tn__cuda_is_child(void);
/* Launches what is held back of all other devices; what is wrong with one is left for who asks it. */
void tn__cuda_flush_others(const tn__cuda_device *device);
/* Memory of the backend's own, beside the allocator's, for cuMemFree. Where there is none, what the allocator has
 * cached goes back to the driver first, then programs that nobody runs. */
tn_status tn__cuda_own_memory(tn__cuda_device *device, CUdeviceptr *memory, size_t bytes, const char *what);
/* Waits for the streams, or for an event: `why` goes into what TANSO_CUDA_SYNC reports. Every wait goes through here,
 * or asks first. */
tn_status tn__cuda_wait(tn__cuda_device *device, const char *why);
tn_status tn__cuda_wait_event(tn__cuda_device *device, CUevent event, tn__cuda_point point, const char *why);
/* Before a wait by other means: counted, and reported or forbidden. Where a wait cannot be left out, what is latched is
 * all. Other GPUs are given what is held back of theirs, so that they work meanwhile. */
tn_status tn__cuda_may_wait(tn__cuda_device *device, const char *why);
/* Waits for runs that may yet fail, before others get what they have computed (peer.c). */
tn_status tn__cuda_be_sure(tn__cuda_device *device, const char *why);
/* Until a stream, or an event in one (NULL: none), is done, looking around where work may wait for other processes. */
CUresult tn__cuda_await(tn__cuda_device *device, int stream, CUevent event);
/* The same where the GPU may be idle, and then nothing is waited for. */
void tn__cuda_may_wait_if_busy(tn__cuda_device *device, const char *why);

/* ---- a context that is lost (fault.c) ---- */

/* TN_OK for success; else latches the error, and what ruins the context for good. */
tn_status tn__cuda_check(tn__cuda_device *device, CUresult result, const char *what);
/* True if that ruins the context, which is then latched, though nobody is told yet. */
bool tn__cuda_latch(tn__cuda_device *device, CUresult result);
/* Fails with what the context was lost by. */
tn_status tn__cuda_fail_fault(tn__cuda_device *device, const char *what);
/* What a step does, for people. */
const char *tn__cuda_step_name(const tn__step *step);
/* Work is on the device's list from before it is started for the first time until the streams have been waited for
 * after the last. Removing what is not on it does nothing. */
void tn__cuda_work_add(tn__cuda_device *device, tn__cuda_work *work);
void tn__cuda_work_remove(tn__cuda_device *device, const tn__cuda_work *work);
/* Notes that work has been started: behind the launch, so that whoever waits meanwhile does not take it for done. NULL:
 * nothing that has a name. */
static inline void tn__cuda_note(tn__cuda_device *device, tn__cuda_work *work, int stream)
{
    if (work)
        atomic_store_explicit(&work->started[stream],
                              atomic_fetch_add_explicit(&device->started, 1, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}
/* The end of a stream now, for an event that is recorded next. */
static inline tn__cuda_point tn__cuda_here(const tn__cuda_device *device, int stream)
{
    return (tn__cuda_point){stream, atomic_load_explicit(&device->started, memory_order_relaxed)};
}
/* All before a point has been waited for, and was well. */
void tn__cuda_good(tn__cuda_device *device, tn__cuda_point point);

/* ---- the order of streams (stream_order.c) ---- */

/* The stream that this thread's work goes on. */
static inline CUstream tn__cuda_stream(const tn__cuda_device *device)
{
    return device->streams[tn__stream_number(device->owner)].handle;
}
/* Notes that a stream has been asked for something; under the lock that this was done under. */
static inline void tn__cuda_stream_asked(const tn__cuda_device *device, tn__cuda_stream_state *stream)
{
    stream->before[stream->turn++ % TN__CUDA_ASKED_BEFORE] = stream->asked;
    stream->asked = atomic_fetch_add(&device->owner->tick, 1) + 1;
}
/* The same of this thread's. */
static inline void tn__cuda_asked(tn__cuda_device *device)
{
    if (tn__has_streams(device->owner))
        tn__cuda_stream_asked(device, &device->streams[tn__stream_number(device->owner)]);
}
/* As tn__stream_ops has them. */
int tn__cuda_stream_new(tn__device *owner);
void tn__cuda_stream_free(tn__device *owner, int stream);
tn_status tn__cuda_stream_order(tn__device *owner, uint32_t streams, uint64_t tick);
/* Waits for all streams, or for one, without telling anybody: who calls it asks tn__cuda_may_wait. */
CUresult tn__cuda_finish(tn__cuda_device *device);
CUresult tn__cuda_finish_stream(tn__cuda_device *device, int stream);

/* ---- failures of runs (failure.c) ---- */

/* By value to every kernel that may fail or must not overwrite after a failure. Kernels know it as tn_failure. */
typedef struct tn__cuda_failure {
    unsigned long long guard;  /* address of the latch if the kernel must do nothing after a failure, else 0 */
    unsigned long long latch, report;
    unsigned long long run;    /* its number */
    unsigned long long who;    /* executable << 32 | step */
} tn__cuda_failure;
/* Words of the report; the first is set last. */
enum { TN__CUDA_REPORT_SET, TN__CUDA_REPORT_RUN, TN__CUDA_REPORT_WHO, TN__CUDA_REPORT_OPERAND, TN__CUDA_REPORT_INDEX,
       TN__CUDA_REPORT_WORDS };
tn_status tn__cuda_failures_open(tn__cuda_device *device);
/* Tells of a failure that nobody has been told of: costs a look at host memory if there is none. */
tn_status tn__cuda_look(tn__cuda_device *device);
/* The same, but leaves the telling to the next look; the streams must be idle. */
void tn__cuda_settle(tn__cuda_device *device);
/* What the step of an executable says of index `index` of operand number `operand` (from 1). */
tn__error *tn__cuda_step_failure(const tn__executable *executable, int step, int64_t operand, int64_t index);
tn__executable *tn__cuda_executable_of(const tn__cuda_device *device, uint32_t number);

/* ---- code ---- */

/* A text's kernels, compiled if no cache has them, loaded once a device. */
tn_status tn__cuda_module_load(tn__cuda_device *device, const char *source, tn__cuda_module **module);
/* A module for each kernel of a program whose text tells them apart; those that no cache has are compiled side by side.
 * `module` has room for them all, and keeps those that were found even if others fail. */
tn_status tn__cuda_modules_load(tn__cuda_device *device, const tn__program *program, tn__cuda_module **module);
void tn__cuda_module_release(tn__cuda_device *device, tn__cuda_module *module);
/* 32 hexadecimal digits, as its file is called. */
const char *tn__cuda_module_name(const tn__cuda_module *module);
tn_status tn__cuda_module_function(tn__cuda_device *device, tn__cuda_module *module, const char *name,
                                   CUfunction *function);
/* Compiles a text to machine code for an architecture that the compiler knows, else to the newest PTX before it: memory
 * for tn__free. */
tn_status tn__cuda_compile(const tn__cuda_libraries *libraries, int architecture, const char *source, char **image,
                           size_t *length);

/* ---- programs ---- */

#define TN__CUDA_ORDERED 64 /* steps of a program that may run beside each other; longer ones run one after another */

/* The launches of a run when they are not just put on the stream: made nodes of a graph, captured, or put in the place
 * of nodes. */
typedef struct tn__cuda_recording {
    CUgraphNode *node;         /* of each launch by tn__cuda_launch, in order */
    size_t count, capacity;
    CUgraph made;              /* the graph that nodes are added to, NULL while they are captured */
    CUgraphNode *wait;         /* what the next node waits for then: TN__CUDA_ORDERED at most */
    size_t waits;
    bool early;                /* the next node may start before these are done, as its kernel waits itself */
    CUgraphExec patched;       /* the graph whose nodes are replaced, else NULL */
    size_t next;               /* the node that comes next then */
} tn__cuda_recording;

/* What a run gives its steps. */
struct tn__cuda_run {
    tn__cuda_device *device;
    CUstream stream;           /* where to put work: not always the device's */
    int number;                /* of the stream, among the device's */
    CUdeviceptr workspace;     /* the program's, for steps that want one */
    tn__cuda_recording *recording; /* NULL: none */
    tn__cuda_work *work;       /* what is noted as started; NULL: nothing */
    void *const *buffers;
    const uint64_t *scalars;
    CUdeviceptr factors;       /* 16 bytes a step, see tn__cuda_factors */
    tn__cuda_failure failure;
};

/* While a graph is patched, only kernels are: a step leaves out what else it does. */
static inline bool tn__cuda_patching(const tn__cuda_run *run) { return run->recording && run->recording->patched; }

struct tn__cuda_step {
    /* Starts the step's work on run->stream: waits for nothing, allocates nothing. */
    tn_status (*start)(const tn__cuda_step *step, const tn__cuda_run *run);
    void (*free)(const tn__cuda_step *step, tn__cuda_device *device); /* of data; NULL: nothing to do */
    const tn__step *step;
    const tn__program *program;
    int number;
    bool may_fail;
    bool overwrites;           /* writes into a donated buffer, whose old contents are lost then */
    bool opaque;               /* does more than tn__cuda_launch: other addresses need another graph */
    bool waits;                /* a library's own way of waiting is in it: it is never part of a graph, and may
                                  allocate */
    size_t workspace;          /* bytes that it wants of run->workspace, which the program's steps share */
    bool shares; /* what all such steps of the device use: memory for packed operands, a library's handle */
    const char *failed;        /* what a failure means, NULL: an index out of range */
    int64_t fault_extent;      /* of an operation's indexed axis; -1: the last extent of the faulting operand */
    tn__cuda_module *module;   /* of an operation's own kernel */
    CUfunction function;
    int shared;                /* KERNEL: bytes that a block asks for */
    void *data;                /* one block, or NULL */
};

/* The failure record of a step, for its kernels. */
tn__cuda_failure tn__cuda_failure_of(const tn__cuda_step *step, const tn__cuda_run *run);
/* The latch that kernels of a step must look at before they overwrite anything; 0: they need not. */
static inline CUdeviceptr tn__cuda_guard(const tn__cuda_step *step, const tn__cuda_run *run)
{
    return step->overwrites ? run->failure.guard : 0;
}

tn_status tn__cuda_prepare_kernel(tn__cuda_step *step, tn__cuda_device *device, tn__cuda_module *module);
tn_status tn__cuda_prepare_copy(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_scatter(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_matmul(tn__cuda_step *step, tn__cuda_device *device);
/* The product by cuBLASLt, where it can: sets start, or leaves it NULL. So does the other one, by the kernels of
 * split_product.cuh, where they are asked for and gain something. */
tn_status tn__cuda_prepare_matmul_library(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_matmul_split(tn__cuda_step *step, tn__cuda_device *device);
/* The same for a few very long sums, and for very many tiny matrices (device/products.h). */
tn_status tn__cuda_prepare_matmul_tall(tn__cuda_step *step, tn__cuda_device *device);
tn_status tn__cuda_prepare_matmul_tiny(tn__cuda_step *step, tn__cuda_device *device);

/* Address of an operand's element 0, or of its buffer. */
CUdeviceptr tn__cuda_address(const tn__cuda_run *run, const tn__operand *operand);

/* ---- kernels of the backend's own ---- */

/* A walk over strided operands of one shape, as its kernels take it: extents of 1 dropped, neighbouring axes merged
 * where every operand allows. Strides in elements. */
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

/* struct walk and places() for texts; LOAD and STORE between float16 or bfloat16 and float32. */
extern const char *const tn__cuda_walk_text;
/* struct tn_failure and tn_fail(). */
extern const char *const tn__cuda_failure_text;
/* S, W, LOAD, STORE and PLUS of a dtype, and TIMES of a real one. */
const char *tn__cuda_types(tn_dtype dtype);
const char *tn__cuda_conversions(tn_dtype dtype);
/* Texts of kernels for a storage dtype; for tn__free, NULL without memory. */
char *tn__cuda_text_copy(size_t itemsize, int words); /* of 8 bytes, for what is moved at once */
char *tn__cuda_text_factors(void);
char *tn__cuda_text_scatter(tn_dtype dtype);
char *tn__cuda_text_matmul(tn_dtype dtype); /* a real one */
char *tn__cuda_text_split_product(void);
/* What they stand behind, background.cuh and walk.cuh, with T for the dtype. */
char *tn__cuda_text_products(tn_dtype dtype, const char *constants, const unsigned char *text);
/* Loads such a text (which it frees) as the step's own module, and finds the function. */
tn_status tn__cuda_own_kernel(tn__cuda_step *step, tn__cuda_device *device, char *text, const char *name);
/* Launches a kernel, or has it captured or patched as the run says. */
tn_status tn__cuda_launch(const tn__cuda_run *run, CUfunction function, int64_t blocks, int threads, int shared,
                          void **params, const char *label);
/* Launches one thread for each of `size` elements, in blocks of a usual size. */
tn_status tn__cuda_start(const tn__cuda_run *run, CUfunction function, int64_t size, void **params, const char *label);
/* Factors of a library's product on the device: alpha and beta, or 0 and 1 after a failure, each of `bytes` 4 or 8. */
tn_status tn__cuda_factors(const tn__cuda_step *step, const tn__cuda_run *run, const void *alpha, const void *beta,
                           size_t bytes, CUdeviceptr *factors);

/* For each of TN__CUDA_ORDERED steps at most: the set of those before it that it waits for itself, not through
 * others. */
void tn__cuda_order(const tn__cuda_step *step, int count, uint64_t *waits);

/* ---- graphs of programs (graph.c) ---- */

/* Makes the stream that is captured, unless it is there; under the device's lock. */
bool tn__cuda_open_recorder(tn__cuda_device *device);

/* Graphs that came one behind the other, and may come so again. */
typedef struct tn__cuda_series {
    int count;
    tn__cuda_graph *part[TN__CUDA_TOGETHER];
    CUgraphExec exec;          /* of them all; NULL: they came once so far */
    uint64_t used;
} tn__cuda_series;

/* The graphs of one executable, by the addresses they were captured with. */
#define TN__CUDA_GRAPHS_KEPT 16
#define TN__CUDA_SERIES_KEPT 64
struct tn__cuda_graph_cache {
    tn__cuda_graph *graph[TN__CUDA_GRAPHS_KEPT];
    tn__cuda_series *series;   /* TN__CUDA_SERIES_KEPT of them; NULL: none yet */
    uint64_t uses;
    bool refused;              /* something in the program cannot be captured */
    bool apart;                /* its graphs cannot be launched together */
};
/* Runs steps as a graph; *done tells whether it did (else nothing has been started). */
tn_status tn__cuda_graph_run(tn__cuda_graph_cache *cache, const tn__cuda_step *step, int count, tn__cuda_run *run,
                             bool *done);
void tn__cuda_graphs_free(tn__cuda_graph_cache *cache, tn__cuda_device *device);

#endif
