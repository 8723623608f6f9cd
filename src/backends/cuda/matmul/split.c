/* SPDX-License-Identifier: MIT */
/*
 * Large float32 products on tensor cores by the kernels of split_product.cuh, where TN_MATMUL_TF32X3 asks for them and
 * they gain something. Operands are packed into memory that all such products of a device share, as they come one after
 * another; one that needs more than a part of the device's is done in pieces of k.
 */
#include "backends/cuda/matmul/matmul.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "tn_embed.h"

/* The same constants as in split_product.cuh. */
enum { ROWS = 128, COLUMNS = 256, DEPTH = 16, STAGES = 5, THREADS = 384, PACKERS = 256 };
#define A_BYTES ((size_t)ROWS * DEPTH * 4)
#define B_BYTES ((size_t)COLUMNS * 128)
#define SHARED  (1024 + STAGES * (int)(A_BYTES + B_BYTES) + 2 * 8 * STAGES)

#define ARCHITECTURE 90 /* the compute capability whose instructions the kernels use */
#define MEMORY_PART  64 /* packed operands may take this fraction of the device's memory */
#define STRIP        16 /* tiles below one another that share b's pieces in the second-level cache */

/* Microseconds, measured on an H200, of: a stage of a tile, the launches, packing a byte, an operation of the
 * library. */
#define STAGE_TAKES     1.05
#define LAUNCHES_TAKE   10.0
#define BYTE_TAKES      3e-7
#define OPERATION_TAKES 2e-8

/* A kernel parameter, passed by value. */
typedef struct packing {
    CUdeviceptr from;
    long long line, step;
    int lines, depth;
} packing;

typedef struct multiplying {
    CUdeviceptr a, b, c;
    packing left, right;
    long long pitch;
    int m, n, stages, down, across, strip;
    float alpha;
    int beta;
    unsigned long long guard;
} multiplying;

/* Memory for packed operands; freed with the last step that uses it. */
struct tn__cuda_packed {
    int users;
    size_t bytes;
    void *memory;
};

typedef struct split_data {
    tn__cuda_product product;
    tn__cuda_packed *packed;
    CUfunction pack_a, pack_b;
    long long tall, wide; /* number of tiles, down and across */
    int stages, most;     /* stages of k: all of them, and as many as are packed at a time */
} split_data;

char *tn__cuda_text_split_product(void) { return tn__format("%s", (const char *)tn__embed_cuda_split_product); }

/* ---- memory ---- */

static void let_go(tn__cuda_device *device, tn__cuda_packed *packed)
{
    pthread_mutex_lock(&device->lock);
    bool last = --packed->users == 0;
    if (last && device->packed == packed)
        device->packed = NULL;
    pthread_mutex_unlock(&device->lock);
    if (!last)
        return;
    tn__device_release(device->owner, packed->memory, packed->bytes);
    tn__free(packed);
}

/* The device's memory for packed operands. If it is too small, a larger one takes its place; steps that use the old one
 * keep it. NULL without memory. */
static tn__cuda_packed *packed_of(tn__cuda_device *device, size_t bytes)
{
    if (device->packed == NULL || device->packed->bytes < bytes) {
        tn__cuda_packed *packed = tn__calloc(1, sizeof *packed);
        void *memory = packed ? tn__device_allocate(device->owner, bytes) : NULL;
        if (memory == NULL) {
            tn__free(packed);
            return NULL;
        }
        *packed = (tn__cuda_packed){.bytes = bytes, .memory = memory};
        device->packed = packed;
    }
    device->packed->users++;
    return device->packed;
}

static void free_split(const tn__cuda_step *step, tn__cuda_device *device)
{
    split_data *data = step->data;
    let_go(device, data->packed);
}

/* ---- running ---- */

static tn_status pack(const tn__cuda_run *run, CUfunction function, packing p, CUdeviceptr to, long long blocks,
                      int stages)
{
    void *params[] = {&p, &to, &stages};
    return tn__cuda_launch(run, function, blocks, PACKERS, 0, params, "matmul");
}

/* Starts the product of the stages of k from `first` on, for all matrices of the batch. */
static tn_status start_piece(const tn__cuda_step *step, const tn__cuda_run *run, int first)
{
    const split_data *data = step->data;
    const tn__cuda_product *p = &data->product;
    const tn__operand *operand = step->step->operand;
    const int stages = data->stages - first < data->most ? data->stages - first : data->most;
    const long long k = (long long)first * DEPTH, left = p->k - k,
                    depth = left < (long long)stages * DEPTH ? left : stages * DEPTH;
    CUdeviceptr packed[TN__CUDA_FACTORS] = {0}; /* the address whose matrix is packed there */
    multiplying m = {.a = (CUdeviceptr)data->packed->memory,
                     .pitch = p->step[TN__CUDA_OUT].row,
                     .m = (int)p->m,
                     .n = (int)p->n,
                     .left = {.line = p->step[TN__CUDA_A].row,
                              .step = p->step[TN__CUDA_A].column,
                              .lines = (int)p->m,
                              .depth = (int)depth},
                     .right = {.line = p->step[TN__CUDA_B].column,
                               .step = p->step[TN__CUDA_B].row,
                               .lines = (int)p->n,
                               .depth = (int)depth},
                     .stages = stages,
                     .down = (int)data->tall,
                     .across = (int)data->wide,
                     .strip = STRIP,
                     .alpha = tn__cuda_alpha(step, run->scalars).f32,
                     .beta = step->step->product.beta || first > 0,
                     .guard = tn__cuda_guard(step, run)};
    m.b = m.a + (CUdeviceptr)data->tall * (CUdeviceptr)stages * A_BYTES;
    const int64_t tiles = data->tall * data->wide, most = run->device->owner->capabilities.multiprocessors;
    void *params[] = {&m};
    tn_status status = TN_OK;
    for (int64_t i = 0; i < p->batch.size && status == TN_OK; i++) {
        CUdeviceptr at[TN__CUDA_FACTORS];
        for (int o = 0; o < TN__CUDA_FACTORS; o++) {
            long long place = 0;
            for (int64_t d = p->batch.ndim - 1, rest = i; d >= 0; rest /= p->batch.dim[d--])
                place += rest % p->batch.dim[d] * p->batch.stride[o][d];
            place += k * (o == TN__CUDA_A ? p->step[o].column : o == TN__CUDA_B ? p->step[o].row : 0);
            at[o] = tn__cuda_address(run, &operand[o]) + (CUdeviceptr)(place * (long long)sizeof(float));
        }
        m.c = at[TN__CUDA_OUT];
        m.left.from = at[TN__CUDA_A];
        m.right.from = at[TN__CUDA_B];
        if (at[TN__CUDA_A] != packed[TN__CUDA_A])
            status = pack(run, data->pack_a, m.left, m.a, data->tall * (stages / 2), stages);
        if (status == TN_OK && at[TN__CUDA_B] != packed[TN__CUDA_B])
            status = pack(run, data->pack_b, m.right, m.b, data->wide * stages, stages);
        if (status == TN_OK)
            status =
                tn__cuda_launch(run, step->function, tiles < most ? tiles : most, THREADS, SHARED, params, "matmul");
        packed[TN__CUDA_A] = at[TN__CUDA_A];
        packed[TN__CUDA_B] = at[TN__CUDA_B];
    }
    return status;
}

static tn_status start_split(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const split_data *data = step->data;
    tn_status status = TN_OK;
    for (int first = 0; first < data->stages && status == TN_OK; first += data->most)
        status = start_piece(step, run, first);
    return status;
}

/* ---- preparing ---- */

static bool suits(const tn__cuda_step *step, const tn__cuda_device *device, const tn__cuda_product *p)
{
    const long long most = INT32_MAX / 4;
    return step->step->product.precision == TN_MATMUL_TF32X3 && step->step->operand[0].dtype == TN_FLOAT32 &&
           !step->step->product.bias &&
           device->architecture == ARCHITECTURE && p->m > 0 && p->n > 0 && p->k > 0 && p->batch.size > 0 &&
           p->m < most && p->n < most && p->k < most && p->step[TN__CUDA_OUT].column == 1;
}

/* Is it estimated to be faster than the library's float32? */
static bool gains(const tn__cuda_device *device, const split_data *data)
{
    const tn__cuda_product *p = &data->product;
    const long long most = device->owner->capabilities.multiprocessors,
                    rounds = (data->tall * data->wide + most - 1) / most;
    const double own =
        (double)rounds * data->stages * STAGE_TAKES + LAUNCHES_TAKE +
        (double)data->stages * (2 * A_BYTES * (double)data->tall + 1.5 * B_BYTES * (double)data->wide) * BYTE_TAKES;
    return own < 2.0 * (double)p->m * (double)p->n * (double)p->k * OPERATION_TAKES;
}

static tn_status find_kernels(tn__cuda_step *step, tn__cuda_device *device)
{
    split_data *data = step->data;
    tn_status status = tn__cuda_own_kernel(step, device, tn__cuda_text_split_product(), "split_product");
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "pack_a", &data->pack_a);
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "pack_b", &data->pack_b);
    if (status != TN_OK)
        return status;
    return tn__cuda_check(
        device,
        device->driver->cuFuncSetAttribute(step->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, SHARED),
        "matmul");
}

tn_status tn__cuda_prepare_matmul_split(tn__cuda_step *step, tn__cuda_device *device)
{
    split_data made = {0};
    tn__cuda_product_of(step->step, &made.product);
    if (!suits(step, device, &made.product))
        return TN_OK;
    made.tall = (made.product.m + ROWS - 1) / ROWS;
    made.wide = (made.product.n + COLUMNS - 1) / COLUMNS;
    made.stages = (int)((made.product.k + 2 * DEPTH - 1) / (2 * DEPTH) * 2);
    if (!gains(device, &made))
        return TN_OK;
    const size_t each = 2 * ((size_t)made.tall * A_BYTES + (size_t)made.wide * B_BYTES); /* bytes of packed operands
                                                                                            for two stages */
    const size_t room = device->owner->capabilities.total_memory / MEMORY_PART / each, pairs = (size_t)made.stages / 2;
    const size_t pieces = room == 0 ? pairs : (pairs + room - 1) / room;
    const bool clean = !tn__latched();
    made.most = 2 * (int)((pairs + pieces - 1) / pieces);
    pthread_mutex_lock(&device->lock);
    made.packed = packed_of(device, each * (size_t)made.most / 2);
    pthread_mutex_unlock(&device->lock);
    if (made.packed == NULL) { /* without memory the library computes the product */
        if (clean)
            tn_clear_error();
        return TN_OK;
    }
    step->data = tn__alloc(sizeof made);
    if (step->data == NULL) {
        let_go(device, made.packed);
        return tn__fail_memory("matmul", sizeof made);
    }
    *(split_data *)step->data = made;
    step->free = free_split;
    step->start = start_split;
    step->shares = true;
    return find_kernels(step, device);
}
