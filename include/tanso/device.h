/* SPDX-License-Identifier: MIT */
/*
 * Devices: which there are, which one new arrays are made on, moving arrays, memory.
 *
 * A tn_device is a small value. In options the zero value means the thread's current device, which is the CPU
 * until tn_set_device or TN_ON_DEVICE says otherwise.
 */
#ifndef TANSO_DEVICE_H
#define TANSO_DEVICE_H

#include <tanso/base.h>

/* What tn_device_of takes beside arrays; the headers of these say what they are. */
struct tn_archive;
struct tn_batch;
struct tn_dataset;
struct tn_event;
struct tn_generator;
struct tn_layer;
struct tn_loader;
struct tn_meter;
struct tn_optimizer;
struct tn_stream;

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU; GPU `index`; virtual device `index`, which computes on the CPU and has memory that the host cannot read, to
 * try a program for GPUs without one; the best device of this machine: cuda:0 where it works, else the CPU. */
TN_API tn_device tn_cpu(void);
TN_API tn_device tn_cuda(int index);
TN_API tn_device tn_virtual(int index);
TN_API tn_device tn_device_best(void);
/* The device of a name: "cpu", "cuda", "cuda:1", "virtual:0", "null", "auto" (= best). On a bad name, TN_ERR_NAME, or
 * an absent device, TN_ERR_DEVICE: latches the reason and returns the zero device, with the status through `status`
 * (may be NULL). */
TN_API tn_device tn_device_parse(const char *name, tn_status *status);
/* Its name, "cuda:0", in a static table. */
TN_API const char *tn_device_name(tn_device device);
/* True if the device can be used here; else *why (may be NULL) is a static or thread-local reason. */
TN_API bool tn_device_available(tn_device device, const char **why);
/* Number of usable devices of a kind. */
TN_API int tn_device_count(tn_device_kind kind);
/* Whether there is a GPU that works, and how many; tn_device_available(tn_cuda(0), &why) says why not. */
TN_API bool tn_cuda_available(void);
TN_API int tn_cuda_count(void);
/* The same kind and index; the zero device is equal to itself alone. */
TN_API bool tn_device_equal(tn_device a, tn_device b);

/* What is known of a device; zero or "" where it means nothing or is unknown. */
typedef struct tn_device_info {
    char product[96];           /* "NVIDIA H200"; of the CPU, its model */
    char bus[24];               /* place on the PCI bus: "0000:5f:00.0" */
    int capability;             /* CUDA's compute capability: 90 is 9.0 */
    int multiprocessors;        /* of a GPU; of the CPU, threads that evaluation uses */
    int warp, block_threads;    /* threads that step together; most threads of a block */
    size_t block_shared;        /* bytes of shared memory that a block may have */
    size_t cache;               /* bytes of the last level of cache */
    size_t memory, memory_free; /* bytes of memory, and those that no process has taken at this moment */
    int driver, compiler;       /* CUDA that the driver serves, and the version of NVRTC: 13010 is 13.1 */
} tn_device_info;
/* Opens the device; all zero, with a latched error, if it cannot be used. */
TN_API tn_device_info tn_device_properties(tn_device device);

/* The thread's current device, where creation functions make arrays. Setting one that cannot be used is TN_ERR_DEVICE,
 * and the current one stays. */
TN_API tn_device tn_current_device(void);
TN_API tn_status tn_set_device(tn_device device) TN_MUST_CHECK;

/* TN_ON_DEVICE(tn_cuda(1)) { ... } makes a device the current one for a block, however the block is left. If the
 * device cannot be used, the reason is latched and the block runs on the device of before. */
typedef struct tn__device_guard {
    tn_device before;
} tn__device_guard;
TN_API tn__device_guard tn__device_enter(tn_device device);
TN_API void tn__device_leave(tn__device_guard *guard);
#if defined(__GNUC__)
#define TN_ON_DEVICE(where) TN__BLOCK(device, TN_HERE(tn__device_enter(where)))
#endif

/*
 * Where something is: tn_device_of(x) takes an array, or anything else that one of the functions below is for, by a
 * pointer, const or not; in C it chooses by the pointer's type, in C++ it is overloaded. What is bound to no device
 * gives the zero device, which in options is the thread's current one: so does what could not be made (an error array,
 * an error layer; its error was latched then). NULL is TN_ERR_VALUE, and the zero device.
 */
TN_API tn_device tn_device_of(const tn_array *x);
/* The one device of all parameters of a layer and its children. While there are none yet, or none at all: where
 * tn_layer_to sent the layer, else the zero device, as it goes where its first input is. Parameters on several devices
 * are TN_ERR_DEVICE, whose message names two of them, and the zero device: ask tn_param's arrays then. */
TN_API tn_device tn_layer_device(const struct tn_layer *layer);
/* That of the layer: an optimizer's state lies with the parameters. */
TN_API tn_device tn_optimizer_device(const struct tn_optimizer *optimizer);
/* Where a loader's minibatches are, wherever its dataset lies; a dataset is in the host's memory: the CPU. */
TN_API tn_device tn_loader_device(const struct tn_loader *loader);
TN_API tn_device tn_batch_device(const struct tn_batch *batch);
TN_API tn_device tn_dataset_device(const struct tn_dataset *dataset);
/* The device it was made for. */
TN_API tn_device tn_meter_device(const struct tn_meter *meter);
/* The zero device: a generator is two numbers, and each call makes its random numbers where it is asked to. */
TN_API tn_device tn_generator_device(const struct tn_generator *generator);
/* The one device of all its arrays, as a layer's; the zero device of an empty one. */
TN_API tn_device tn_archive_device(const struct tn_archive *archive);
TN_API tn_device tn_stream_device(const struct tn_stream *stream);
TN_API tn_device tn_event_device(const struct tn_event *event);

/*
 * x on another device (x itself, as a new handle, when it is there already). It is recorded, as operations are, and
 * differentiable of any order: the gradient goes back to x's device. Nobody waits for it. An evaluation that needs
 * values of several devices runs each one's part on its own stream, and has them wait for each other only where a value
 * goes from one to the other. Only what is in the host's memory as a value is sent to a device at once.
 *
 * Copies to a GPU, these and all others, are asynchronous: the host's memory is the caller's again when the call
 * returns, and the GPU fetches a copy of it, in pinned memory, when it has done what its stream was asked before. 32
 * MiB may be under way so; who copies more waits until the first of them have been fetched. Copies to the host
 * (tn_to_host, tn_data, tn_item, and the evaluation of tn_to_cpu) return when the values are there: they wait for the
 * work of their stream. Where other work must not be waited for, make them in a block of TN_ON_STREAM with a stream of
 * their own (stream.h), which waits for what computes the values alone, or in another thread; an array of tn_to_cpu is
 * copied where it is evaluated.
 *
 * From GPU to GPU the copy is asynchronous, too, straight from memory to memory where these GPUs reach each other
 * (NVLink, or the bus), else by way of the host. What one is asked afterwards comes behind the copy on both. Where x's
 * computation may still fail (an index out of range), it is waited for.
 */
TN_API tn_array *tn_to(const tn_array *x, tn_device device);
/* The same to the CPU; to a GPU: the current device if it is one, else cuda:0. */
TN_API tn_array *tn_to_cpu(const tn_array *x);
TN_API tn_array *tn_to_cuda(const tn_array *x);

typedef struct tn_memory_info {
    size_t used;   /* bytes held by live buffers */
    size_t cached; /* bytes free in the allocator's cache */
    size_t peak;   /* the most `used` has been since the last tn_memory_reset_peak */
    size_t limit;  /* 0 = none */
    size_t total;  /* physical memory of the device, 0 if unknown */
    size_t pinned; /* host memory held for transfers to and from the device */
} tn_memory_info;
/* The bytes that arrays of this process take on a device; all zero, with a latched error, if it cannot be used. */
TN_API tn_memory_info tn_memory_stats(tn_device device);
/* `peak` begins anew from what is used now. */
TN_API void tn_memory_reset_peak(tn_device device);
/* Returns cached blocks to the system; gives the bytes returned. */
TN_API size_t tn_memory_trim(tn_device device);
/*
 * Limits what buffers of the device may use, in bytes; 0 lifts the limit. A device begins with the limit of the
 * environment variable TANSO_MEMORY_LIMIT. Beyond the limit, or what the device has, cached blocks go back to the
 * system, then compiled programs that nobody runs; if that is not enough, the call fails with TN_ERR_MEMORY, all values
 * stay as they are, and the program may go on.
 */
TN_API tn_status tn_memory_limit(tn_device device, size_t bytes) TN_MUST_CHECK;
/* The same from text: bytes as "512M" or "4G", a share of the device's memory as "80%", or "none". TN_ERR_VALUE for
 * others. */
TN_API tn_status tn_memory_limit_parse(tn_device device, const char *text) TN_MUST_CHECK;

/* Threads that evaluation on the CPU uses, in the whole process; 0 or less asks for one a core that this process may
 * run on. Before it is set, the count comes from TANSO_THREADS, else OMP_NUM_THREADS, else that. Results do not depend
 * on it. */
TN_API void tn_set_threads(int count);
TN_API int tn_threads(void);

/* The C compiler that makes the CPU's kernels, and the folder where they are kept; each freed with tn_string_free.
 * NULL with a latched error: no compiler (the reference evaluator runs everything), no folder (kernels are made anew
 * in each process). */
TN_API char *tn_kernel_compiler(void);
TN_API char *tn_kernel_cache(void);

/* How a GPU multiplies float32 matrices, see tn_set_matmul_precision in engine.h. */
typedef enum tn_matmul_precision {
    TN_MATMUL_FLOAT32 = 0, /* float32 throughout: relative errors near 1e-6 */
    TN_MATMUL_TF32,        /* factors rounded to TF32 (10 bits of fraction), sums in float32: errors near 3e-4, several
                              times as fast on tensor cores */
    TN_MATMUL_TF32X3       /* each factor as the sum of two TF32 numbers, three products of them: errors near 4e-7,
                              twice as fast as float32 for large matrices on compute capability 9.0; float32 where a GPU
                              or a shape has no such kernel. Operands of large ones are copied to memory that the device
                              has for it besides, at most a 64th of its own or what 32 positions of k need */
} tn_matmul_precision;

#ifndef TN_NO_MACROS
#define tn_device_parse(...) TN_HERE(tn_device_parse(__VA_ARGS__))
#define tn_device_properties(...) TN_HERE(tn_device_properties(__VA_ARGS__))
#define tn_memory_stats(...) TN_HERE(tn_memory_stats(__VA_ARGS__))
#define tn_memory_reset_peak(...) TN_HERE(tn_memory_reset_peak(__VA_ARGS__))
#define tn_memory_trim(...) TN_HERE(tn_memory_trim(__VA_ARGS__))
#define tn_kernel_compiler() TN_HERE(tn_kernel_compiler())
#define tn_kernel_cache() TN_HERE(tn_kernel_cache())
#define tn_to(x, device) TN_AT(tn_to)(x, device)
#define tn_to_cpu(x) TN_AT(tn_to_cpu)(x)
#define tn_to_cuda(x) TN_AT(tn_to_cuda)(x)
#endif

#ifdef __cplusplus
}

inline tn_device tn_device_of(const struct tn_layer *x) { return tn_layer_device(x); }
inline tn_device tn_device_of(const struct tn_optimizer *x) { return tn_optimizer_device(x); }
inline tn_device tn_device_of(const struct tn_loader *x) { return tn_loader_device(x); }
inline tn_device tn_device_of(const struct tn_batch *x) { return tn_batch_device(x); }
inline tn_device tn_device_of(const struct tn_dataset *x) { return tn_dataset_device(x); }
inline tn_device tn_device_of(const struct tn_meter *x) { return tn_meter_device(x); }
inline tn_device tn_device_of(const struct tn_generator *x) { return tn_generator_device(x); }
inline tn_device tn_device_of(const struct tn_archive *x) { return tn_archive_device(x); }
inline tn_device tn_device_of(const struct tn_stream *x) { return tn_stream_device(x); }
inline tn_device tn_device_of(const struct tn_event *x) { return tn_event_device(x); }
#endif

#ifndef TN_NO_MACROS
#ifdef __cplusplus
#define tn_device_of(...) TN_HERE(tn_device_of(__VA_ARGS__))
#else
#define TN__DEVICE_OF(kind) struct tn_##kind *: tn_##kind##_device, const struct tn_##kind *: tn_##kind##_device
#define tn_device_of(x) \
    (tn__at(__FILE__, __LINE__), \
     _Generic((x), TN__DEVICE_OF(layer), TN__DEVICE_OF(optimizer), TN__DEVICE_OF(loader), TN__DEVICE_OF(batch), \
              TN__DEVICE_OF(dataset), TN__DEVICE_OF(meter), TN__DEVICE_OF(generator), TN__DEVICE_OF(archive), \
              TN__DEVICE_OF(stream), TN__DEVICE_OF(event), default: tn_device_of))(x)
#endif
#endif
#endif
