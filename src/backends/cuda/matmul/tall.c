/* SPDX-License-Identifier: MIT */
/*
 * Products of few elements, each a very long sum, by the kernels of tall_product.cuh: a weight's gradient of very many
 * rows, say, for which the library gives few blocks most of the work. The partial sums
 * of the blocks are stored in memory of the step's own, and added up by a second kernel.
 */
#include "backends/cuda/matmul/matmul.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "device/products.h"
#include "tn_embed.h"

/* The same constants as in tall_product.cuh. */
enum { THREADS = 256, STAGES = 3, ADDED = 32 };
#define ARCHITECTURE 80        /* the compute capability with asynchronous copies */
#define STAGE_BYTES  (20 << 10) /* bytes of a stage, approximately: then two blocks of a multiprocessor have enough
                                   copies under way */
#define BLOCKS       2         /* blocks of a multiprocessor */
#define SLICED       16        /* from so many slices on their number is a multiple of four: each may have few
                                  positions then */

/* A factor, as the kernels get it, by value. */
typedef struct factor_at {
    CUdeviceptr from;
    long long line, k;
    int quads;
} factor_at;

typedef struct tall {
    factor_at a, b;
    CUdeviceptr out, sums;
    long long out_row, out_column, depth;
    int m, n, across, tiles, parts, beta;
    tn__cuda_factor alpha;
    unsigned long long guard;
} tall;

typedef struct tall_data {
    tall tall;
    CUfunction sum;
    int shared;
    long long stages;
    size_t bytes;
    void *sums;
} tall_data;

static void free_tall(const tn__cuda_step *step, tn__cuda_device *device)
{
    tall_data *data = step->data;
    if (data->sums)
        tn__device_release(device->owner, data->sums, data->bytes);
}

static tn_status start_tall(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tall_data *data = step->data;
    const tn__operand *operand = step->step->operand;
    tall t = data->tall;
    t.a.from = tn__cuda_address(run, &operand[TN__CUDA_A]);
    t.b.from = tn__cuda_address(run, &operand[TN__CUDA_B]);
    t.out = tn__cuda_address(run, &operand[TN__CUDA_OUT]);
    t.alpha = tn__cuda_alpha(step, run->scalars);
    t.beta = step->step->product.beta;
    t.guard = tn__cuda_guard(step, run);
    void *params[] = {&t};
    tn_status status = tn__cuda_launch(run, step->function, (int64_t)t.tiles * t.parts, THREADS, data->shared, params,
                                       "matmul");
    return status == TN_OK ? tn__cuda_launch(run, data->sum, ((int64_t)t.m * t.n + ADDED - 1) / ADDED, THREADS, 0,
                                             params, "matmul")
                           : status;
}

/* ---- preparing ---- */

static long long size_of(long long step) { return step < 0 ? -step : step; }
static int parts_of(long long extent, int size) { return (int)((extent + size - 1) / size); }

/* Is the factor's smaller stride along k? */
static bool is_along(const factor_at *f) { return size_of(f->k) < size_of(f->line); }

/* Can the factor be copied 16 bytes at a time, if its address is a multiple of that? */
static bool in_quads(const factor_at *f, long long lines, long long depth, int quad)
{
    return is_along(f) ? f->k == 1 && f->line % quad == 0 && depth % quad == 0
                       : f->line == 1 && f->k % quad == 0 && lines % quad == 0;
}

/* Elements of a factor's part of a stage. */
static int part_of_stage(const factor_at *f, int lines, int depth, int quad)
{
    int each = 2 * quad;
    return is_along(f) ? quad * (depth / quad | 1) * parts_of(lines, each) * each
                       : quad * (parts_of(lines, quad) | 1) * depth + each;
}

/* Bytes of shared memory: for the stages, later for sums of slices. */
static int shared_for(const tall *t, int rows, int columns, int depth, int size)
{
    const int quad = 16 / size, sums = 4 * quad * quad * THREADS / 2;
    const int stages = STAGES * (part_of_stage(&t->a, rows, depth, quad) + part_of_stage(&t->b, columns, depth, quad));
    return (stages > sums ? stages : sums) * size;
}

/* How the kernel divides its work, as constants of its text, which is for tn__free. Lines and positions are padded in
 * shared memory: of few lines, a stage takes several times what it holds, more than some GPUs have. */
static char *divide(tall_data *data, tn_dtype dtype, size_t most)
{
    tall *t = &data->tall;
    const int size = (int)tn__dtypes[dtype].size, each = 2 * 16 / size;
    const int rows = t->m < TN__TALL_TILE ? t->m : TN__TALL_TILE, columns = t->n < TN__TALL_TILE ? t->n : TN__TALL_TILE;
    int slices = THREADS / (parts_of(rows, each) * parts_of(columns, each)), positions = 16;
    slices = slices > SLICED ? slices / 4 * 4 : slices;
    while (positions > 1 && slices * positions / 2 % 4 == 0 &&
           (slices * positions * (rows + columns) * size > STAGE_BYTES ||
            (size_t)shared_for(t, rows, columns, slices * positions, size) > most))
        positions /= 2;
    const int depth = slices * positions;
    data->shared = shared_for(t, rows, columns, depth, size);
    t->across = parts_of(t->n, columns);
    t->tiles = t->across * parts_of(t->m, rows);
    data->stages = (t->depth + depth - 1) / depth;
    char *constants = tn__format("constexpr int ROWS = %d, COLUMNS = %d, SLICES = %d, POSITIONS = %d, SHARED = %d;\n"
                                 "constexpr bool A_ALONG = %d, B_ALONG = %d;\n",
                                 rows, columns, slices, positions, data->shared, is_along(&t->a), is_along(&t->b));
    char *text = constants ? tn__cuda_text_products(dtype, constants, tn__embed_cuda_tall_product) : NULL;
    tn__free(constants);
    return text;
}

static bool suits(const tn__cuda_step *step, const tn__cuda_device *device, const tn__cuda_product *p)
{
    tn_dtype dtype = step->step->operand[0].dtype;
    return (dtype == TN_FLOAT32 || dtype == TN_FLOAT64) && !step->step->product.bias &&
           device->architecture >= ARCHITECTURE &&
           tn__product_is_tall(p->batch.size, p->m, p->k, p->n,
                               dtype == TN_FLOAT32 && step->step->product.precision == TN_MATMUL_TF32);
}

static tn_status find_kernels(tn__cuda_step *step, tn__cuda_device *device, char *text)
{
    tall_data *data = step->data;
    tn_status status = tn__cuda_own_kernel(step, device, text, "tall_product");
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "tall_sum", &data->sum);
    if (status != TN_OK)
        return status;
    return tn__cuda_check(device,
                          device->driver->cuFuncSetAttribute(
                              step->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, data->shared),
                          "matmul");
}

bool tn__cuda_matmul_is_tall(const tn__cuda_step *step, const tn__cuda_device *device)
{
    tn__cuda_product p;
    tn__cuda_product_of(step->step, &p);
    return suits(step, device, &p);
}

tn_status tn__cuda_prepare_matmul_tall(tn__cuda_step *step, tn__cuda_device *device)
{
    tn__cuda_product p;
    tn__cuda_product_of(step->step, &p);
    if (!suits(step, device, &p))
        return TN_OK;
    tn_dtype dtype = step->step->operand[0].dtype;
    const int size = (int)tn__dtypes[dtype].size;
    tall_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("matmul", sizeof *data);
    data->tall = (tall){.a = {.line = p.step[TN__CUDA_A].row, .k = p.step[TN__CUDA_A].column},
                        .b = {.line = p.step[TN__CUDA_B].column, .k = p.step[TN__CUDA_B].row},
                        .out_row = p.step[TN__CUDA_OUT].row,
                        .out_column = p.step[TN__CUDA_OUT].column,
                        .depth = p.k,
                        .m = (int)p.m,
                        .n = (int)p.n};
    tall *t = &data->tall;
    t->a.quads = in_quads(&t->a, p.m, p.k, 16 / size);
    t->b.quads = in_quads(&t->b, p.n, p.k, 16 / size);
    step->data = data;
    step->free = free_tall;
    step->start = start_tall;
    char *text = divide(data, dtype, device->owner->capabilities.shared_memory);
    const long long most = (long long)BLOCKS * device->owner->capabilities.multiprocessors / t->tiles;
    t->parts = (int)(most < 1 ? 1 : most < data->stages ? most : data->stages);
    data->bytes = (size_t)t->parts * (size_t)p.m * (size_t)p.n * (size_t)size;
    data->sums = tn__device_allocate(device->owner, data->bytes);
    if (data->sums == NULL) {
        tn__free(text);
        return tn__error_status(tn__error_last());
    }
    t->sums = (CUdeviceptr)data->sums;
    return find_kernels(step, device, text);
}
