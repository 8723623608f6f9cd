/* SPDX-License-Identifier: MIT */
/*
 * Devices behind one small table of functions, their buffers, and the caching allocator.
 *
 * A backend registers itself by name; the registry opens its devices on first use and keeps them for the process. The
 * required slots are checked at registration; optional ones are marked and may be NULL.
 */
#ifndef TN_DEVICE_DEVICE_H
#define TN_DEVICE_DEVICE_H

#include <stdatomic.h>
#include <tanso/base.h>
#include <tanso/device.h>
#include "core/error.h"
#include "core/plugin.h"
#include "core/shape.h"
#include "device/stream_order.h"

typedef struct tn__device tn__device;
typedef struct tn__program tn__program;
typedef struct tn__executable tn__executable;
struct tn__launch;
struct tn__step;

/* What kernels a device takes. */
typedef enum tn__target { TN__TARGET_NONE, TN__TARGET_C, TN__TARGET_CUDA, TN__TARGET_OPENCL } tn__target;

typedef struct tn__capabilities {
    tn__target target;    /* TN__TARGET_NONE: operations one by one only */
    bool host_memory;     /* buffers are host memory: may be read through their pointer after synchronize */
    bool shapes_only;     /* computes nothing: the null device */
    bool late_failures;   /* a run may fail after it has returned */
    bool clusters;        /* of a GPU: blocks of a cluster may write to one another's shared memory */
    bool product_kernels; /* small matrix products are kernels of their own, not a library's */
    bool epilogues;       /* a step of a float32 product adds a bias */
    bool convolutions;    /* convolutions that `convolves` accepts are steps, if it accepts any; none else */
    bool channels_last;   /* convolutions by tensor cores want it: of 16 bits, and of float32 by TF32 */
    bool operations;      /* runs every operation of ops.def as an OP step (the reference evaluator) */
    int threads;          /* parallel workers, for estimates */
    int multiprocessors;  /* of a GPU: how many blocks of threads run side by side at least */
    size_t shared_memory; /* of a GPU: bytes that one block of a kernel may share */
    size_t total_memory;  /* 0: unknown */
} tn__capabilities;

typedef struct tn__device_ops {
    /* Raw memory of the device, 64-byte aligned; NULL when exhausted. */
    void *(*allocate)(tn__device *device, size_t bytes);
    void (*release)(tn__device *device, void *memory, size_t bytes);
    /* Copies to and from host memory, and inside the device; ordered after work that was started before. */
    tn_status (*read)(tn__device *device, void *host, const void *memory, size_t bytes);
    tn_status (*write)(tn__device *device, void *memory, const void *host, size_t bytes);
    tn_status (*copy)(tn__device *device, void *to, const void *from, size_t bytes);
    /* (optional) Copies from another device of the backend: behind what this thread's streams of both were asked, and
     * ahead of what either is asked from now on. What may turn out to be poisoned is waited for. */
    tn_status (*copy_from)(tn__device *device, void *to, tn__device *other, const void *from, size_t bytes);
    /* Prepares a program (which must outlive it) for running; compiles its kernels. */
    tn_status (*load)(tn__device *device, const tn__program *program, tn__executable **executable);
    /* Runs it: one address for each buffer of the program, and the scalars' values. May return before it is done, and
     * then fail later (an index out of range): a later call tells of that, after tn__device_poison. */
    tn_status (*run)(tn__executable *executable, void *const *buffers, const uint64_t *scalars);
    void (*unload)(tn__executable *executable);
    /* (optional) Waits for everything started; reports faults. */
    tn_status (*synchronize)(tn__device *device);
    /* (optional) Fills in what is known of the device beyond its capabilities; the rest is zero. */
    void (*describe)(tn__device *device, tn_device_info *info);
    /* (optional) The i-th thing that the device would use and that is not there, and what that costs; NULL: no more. */
    const char *(*missing)(tn__device *device, int i);
    /* (optional) Streams and events; without, all work is done when its call returns. */
    const struct tn__stream_ops *streams;
    /* (optional) True if operation `op` can run as an OP step for a dtype though `operations` is false, and, where its
     * first operand's shape is said (else NULL), does so sooner than the CPU with the way there and back. */
    bool (*supports)(tn__device *device, int op, tn_dtype dtype, const tn__shape *shape);
    /* (optional) True if a convolution, a step of operands without gaps, runs as one OP step; without, none does. */
    bool (*convolves)(tn__device *device, const struct tn__step *step);
    /* (optional) Starts a function of a user's own source: device/launch.h. */
    tn_status (*launch)(tn__device *device, const struct tn__launch *launch);
    /* (optional) Begins to read some bytes as `read` does, and nobody waits. What it gives is for read_end; NULL, with
     * nothing latched: not now, or not so many. */
    void *(*read_begin)(tn__device *device, const void *memory, size_t bytes);
    /* Whether they have come, or, if `wait`, when they have: then they are copied to `host` (NULL: nobody wants them),
     * and what read_begin gave is let go, as it is by a failure. */
    tn_status (*read_end)(tn__device *device, void *begun, void *host, size_t bytes, bool wait, bool *done);
    /* (optional) About how many nanoseconds loading a program would wait for a compiler. */
    int64_t (*pause)(tn__device *device, const tn__program *program);
} tn__device_ops;

/* Those of a device. Streams are numbered; 0, the device's own, is there without being made. What this thread asks
 * for goes on tn__stream_number(device). Events are the backend's own pointers. */
typedef struct tn__stream_ops {
    int (*stream_new)(tn__device *device); /* a stream behind all that the own one was asked; -1 with a latched error */
    void (*stream_free)(tn__device *device, int stream);
    tn_status (*stream_wait)(tn__device *device, int stream); /* until its work is done */
    void *(*stream_native)(tn__device *device);             /* of this thread's stream */
    /* What this thread's stream is asked from now on waits, on the device, for what these had been asked by a tick. */
    tn_status (*stream_order)(tn__device *device, uint32_t streams, uint64_t tick);
    void *(*event_new)(tn__device *device); /* NULL with a latched error */
    void (*event_free)(tn__device *device, void *event);
    tn_status (*event_record)(tn__device *device, void *event); /* in this thread's stream */
    tn_status (*event_follow)(tn__device *device, void *event); /* this thread's stream waits */
    tn_status (*event_wait)(tn__device *device, void *event);   /* until it is reached */
    tn_status (*event_elapsed)(tn__device *device, void *from, void *to, double *seconds);
    /* For another library's work: this thread's stream, with all that it was asked in front, and the device's context
     * current; NULL with a latched error. Afterwards it is given back. What may turn out to be poisoned is waited for.
     */
    void *(*stream_take)(tn__device *device);
    void (*stream_give)(tn__device *device);
    tn_status (*stream_enter)(tn__device *device); /* makes the device's context current in this thread */
    /* A kernel of a text in the device's language, in the driver's form, to be put on a stream that was taken. It lasts
     * as long as the device; NULL with a latched error. */
    void *(*stream_kernel)(tn__device *device, const char *text, const char *name);
} tn__stream_ops;

struct tn__device {
    const tn__device_ops *ops;
    tn_device id;
    uint16_t number;      /* position in the registry, stands for the device in keys */
    char name[24];
    tn__capabilities capabilities;
    void *backend_data;
    struct tn__allocator *allocator;
    /* Others have got hold of memory or of a stream, and may wait for what is in them by their own means. */
    _Atomic bool lent;
    _Atomic size_t pinned; /* bytes of host memory that the backend holds for transfers */
    _Atomic uint64_t failures; /* of runs, that have been told of after they had returned */
    _Atomic uint64_t runs; /* programs started, on a device whose runs may fail after they have returned */
    /* Streams beside the own one: the backend sets it under its lock, which whoever asks for something takes. */
    _Atomic uint32_t streams;
    _Atomic uint64_t tick; /* pieces of work that were asked for while there were some */
    /* Other processes' devices may have to do something before this one's work is done (comm/link.c): whoever waits for
     * it calls this again and again, with when he began, and -1 when it is done. NULL: nothing of the kind. */
    void (*_Atomic watch)(tn__device *device, double since);
};

/* Are kernels written for a GPU, in whatever language: a chip of many workers, whose launches cost more than most
 * nests? */
static inline bool tn__on_gpu(const tn__device *device) { return device->capabilities.target >= TN__TARGET_CUDA; }

/* Whether work may go side by side, so that who used what matters. */
static inline bool tn__has_streams(const tn__device *device)
{
    return __builtin_expect(atomic_load_explicit(&device->streams, memory_order_relaxed) != 0, 0);
}
/* The stream that this thread's work goes on. */
static inline int tn__stream_number(const tn__device *device)
{
    return tn__has_streams(device) ? tn__stream_of_thread(device) : 0;
}

typedef struct tn__backend {
    const char *name;     /* "cpu"; of a plug-in's kind also its devices' and its file's: libtanso-<name>.so */
    tn_device_kind kind;  /* TN_DEVICE_DEFAULT: one of its own, which gets a number when it registers */
    /* Number of devices here; 0 with the reason in *why (static or thread-local). */
    int (*count)(const char **why);
    /* Fills in ops, capabilities and backend_data of device `index`. */
    tn_status (*open)(int index, tn__device *device);
} tn__backend;

TN__PLUGIN_BEGIN
/* Registration; the built-in backends are registered by the registry on first use (weakly coupled through a table in
 * backends/), those of plug-ins when a device of that name is first asked for. TN_ERR_STATE for a missing slot, a
 * repeated kind or name, or more kinds of plug-ins than there is room for. */
tn_status tn__backend_register(const tn__backend *backend);
/* That table; entries may be NULL. */
extern const tn__backend *const tn__builtin_backends[];
extern const int tn__builtin_backend_count;
/* Loads the plug-in of a kind and registers it: TN_ERR_NAME, with nothing latched, if there is no such file;
 * TN_ERR_DEVICE if it cannot be used (backends/plugin.c). */
tn_status tn__plugin_load(const char *name);
/* The opened device of an id ({0,0}: the thread's current one); NULL with a latched error. */
tn__device *tn__device_get(tn_device id);
tn__device *tn__device_current(void);
TN__PLUGIN_END

/* ---- storages: reference-counted buffers ---- */
typedef struct tn__storage {
    _Atomic uint32_t references;
    tn__device *device;
    void *memory;
    size_t bytes;
    void (*release)(void *user, void *memory); /* of wrapped memory; NULL: the allocator's */
    void *user;
    /* The run of the device that computes it fresh, 0: none, TN__STARTING: one that is about to start. */
    _Atomic uint64_t run;
    tn__error *_Atomic poisoned; /* that run failed: whoever wants the contents gets this error */
    tn__use use;
} tn__storage;
#define TN__STARTING UINT64_MAX

/* Uninitialised memory from the device's cache; NULL with a latched TN_ERR_MEMORY that tells requested, used, cached,
 * limit and total. Zero bytes give a storage with a valid pointer. */
tn__storage *tn__storage_new(tn__device *device, size_t bytes);
/* Memory that someone else owns; `release` (may be NULL) is called once at the end. */
tn__storage *tn__storage_wrap(tn__device *device, void *memory, size_t bytes, void (*release)(void *, void *),
                              void *user);
static inline tn__storage *tn__storage_retain(tn__storage *storage)
{
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    return storage;
}
void tn__storage_release(tn__storage *storage);
/* Copies to and from host memory, and between storages, behind those that used them: `memory` is in the storage that is
 * read; what is written is written from its beginning, or from byte `at` on. Storages of two devices only if
 * tn__device_reaches says so. */
tn_status tn__storage_read(tn__storage *storage, void *host, const void *memory, size_t bytes);
tn_status tn__storage_write(tn__storage *storage, const void *host, size_t bytes);
tn_status tn__storage_copy(tn__storage *to, size_t at, tn__storage *from, const void *memory, size_t bytes);
/* Whether a device can copy from another's memory, so that nothing goes through the host's. */
static inline bool tn__device_reaches(const tn__device *device, const tn__device *other)
{
    return device == other || (device->ops == other->ops && device->ops->copy_from);
}

TN__PLUGIN_BEGIN
/* Marks all storages in use that run `first` of the device or a later one computes. They get references to the
 * error. */
void tn__device_poison(tn__device *device, uint64_t first, tn__error *error);
TN__PLUGIN_END
/* TN_OK, or the error of a storage that is poisoned, latched. */
static inline tn_status tn__storage_check(const tn__storage *storage)
{
    tn__error *error = atomic_load_explicit(&storage->poisoned, memory_order_relaxed);
    return error ? tn__error_raise(error) : TN_OK;
}

TN__PLUGIN_BEGIN
/* The allocator itself, for arenas: memory that is not a storage. */
void *tn__device_allocate(tn__device *device, size_t bytes);
void tn__device_release(tn__device *device, void *memory, size_t bytes);
/* For a backend whose driver has no memory left for something of its own: gives back what the allocator has cached, or,
 * if that is nothing, lets programs go that nobody runs. True if asking again may help. */
bool tn__device_relieve(tn__device *device);
/* Latches the TN_ERR_MEMORY that tells requested, used, cached, limit and total. */
tn_status tn__device_exhausted(tn__device *device, size_t bytes);
TN__PLUGIN_END

#endif
