/* SPDX-License-Identifier: MIT */
/*
 * Matrix products by cuBLASLt. It counts matrices by columns, so a product of rows is handed over as out' = b' a': what
 * lies in memory as a matrix of rows is the transpose of a matrix of columns. float32 is computed in float32 unless
 * TF32 is asked for.
 */
#include <limits.h>
#include <string.h>

#include "backends/cuda/matmul/choice.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"

#define MOST_WORKSPACE ((size_t)32 << 20)

static const struct {
    bool there;
    cudaDataType_t data, scale;
    cublasComputeType_t compute;
} types[TN_DTYPE_COUNT] = {
    [TN_FLOAT32] = {true, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [TN_FLOAT64] = {true, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    [TN_FLOAT16] = {true, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [TN_BFLOAT16] = {true, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
};

/* There is an algorithm for each alignment of the matrices: multiples of 16 bytes, which the fast ones need, or of an
 * element. An algorithm with an epilogue is used only if all matrices and the bias are aligned to 16 bytes: some of its
 * kernels read the bias 16 bytes at a time whatever its address. Otherwise, and if the library has no such algorithm, a
 * kernel of the backend's own adds the bias after the product. */
enum { ALIGNED, UNALIGNED, WITH_EPILOGUE, ALGORITHMS };
#define ALIGNMENT 16

typedef struct library_data {
    tn__cuda_product product;
    cublasLtMatmulDesc_t operation, with_epilogue;
    cublasLtMatrixLayout_t layout[TN__CUDA_FACTORS];
    bool found[ALGORITHMS];
    tn__cuda_algorithm algorithm[ALGORITHMS];
    bool factors_there; /* alpha and beta are read from device memory: they change, or must be 0 and 1 after a
                           failure */
    int64_t outer; /* number of calls for a batch, whose last axis is part of the layouts */
} library_data;

/* ---- how a matrix lies ---- */

typedef struct shape_of {
    long long lead; /* leading dimension: elements from one line to the next */
    bool by_columns;
} shape_of;

/* Describes a matrix's layout. False if neither its rows nor its columns are contiguous, or lines overlap. */
static bool describe(long long rows, long long columns, long long row, long long column, shape_of *shape)
{
    shape->by_columns = false;
    if ((column == 1 || columns <= 1) && (row >= columns || rows <= 1)) {
        shape->lead = rows <= 1 || row < columns ? columns : row;
        return true;
    }
    shape->by_columns = true;
    if ((row == 1 || rows <= 1) && (column >= rows || columns <= 1)) {
        shape->lead = columns <= 1 || column < rows ? rows : column;
        return true;
    }
    return false;
}

/* ---- preparing ---- */

static tn_status library_check(cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return TN_OK;
    return tn__fail(status == CUBLAS_STATUS_ALLOC_FAILED ? TN_ERR_MEMORY : TN_ERR_DEVICE, "matmul",
                    "cuBLASLt's %s failed with status %d", what, (int)status);
}

static void free_library(const tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__cuda_blas *blas = &device->libraries->blas;
    library_data *data = step->data;
    for (int i = 0; i < TN__CUDA_FACTORS; i++)
        if (data->layout[i])
            blas->cublasLtMatrixLayoutDestroy(data->layout[i]);
    if (data->operation)
        blas->cublasLtMatmulDescDestroy(data->operation);
    if (data->with_epilogue)
        blas->cublasLtMatmulDescDestroy(data->with_epilogue);
}

/* The handle of a device, made once. */
static tn_status open_library(tn__cuda_device *device)
{
    tn_status status = TN_OK;
    pthread_mutex_lock(&device->lock);
    if (device->blas == NULL)
        status = library_check(device->libraries->blas.cublasLtCreate(&device->blas), "start");
    pthread_mutex_unlock(&device->lock);
    return status;
}

static cublasStatus_t make_layout(const tn__cuda_blas *blas, library_data *data, int which, cudaDataType_t type,
                                  long long rows, long long columns, const shape_of *shape)
{
    long long lines = shape->by_columns ? columns : rows, length = shape->by_columns ? rows : columns;
    cublasStatus_t status = blas->cublasLtMatrixLayoutCreate(&data->layout[which], type, length, lines, shape->lead);
    const tn__cuda_walk *batch = &data->product.batch;
    if (status != CUBLAS_STATUS_SUCCESS || batch->ndim == 0)
        return status;
    int last = batch->ndim - 1;
    int32_t count = (int32_t)batch->dim[last];
    int64_t stride = batch->stride[which][last];
    status = blas->cublasLtMatrixLayoutSetAttribute(data->layout[which], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                    sizeof count);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return blas->cublasLtMatrixLayoutSetAttribute(data->layout[which], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                  &stride, sizeof stride);
}

/* Bytes from the first element to the end of the last one, over a matrix and the last axis of its batch. */
static size_t span(const library_data *data, int which, const shape_of *shape, long long rows, long long columns,
                   size_t itemsize)
{
    const tn__cuda_walk *batch = &data->product.batch;
    long long lines = shape->by_columns ? columns : rows, last = batch->ndim - 1;
    long long stride = batch->ndim ? batch->stride[which][last] : 0, more = batch->ndim ? batch->dim[last] - 1 : 0;
    return ((size_t)(lines * shape->lead) + (size_t)((stride < 0 ? -stride : stride) * more)) * itemsize;
}

/* All that the fastest algorithm depends on. */
static char *key_of(tn__cuda_device *device, const library_data *data, const tn__step *step, const shape_of *shape,
                    uint32_t alignment, bool bias)
{
    const tn__cuda_product *p = &data->product;
    tn__text key = {0};
    tn__text_addf(&key, "cuBLASLt %zu, %s: %s, precision %d, %lld x %lld x %lld, beta %d, alignment %u",
                  device->libraries->blas.cublasLtGetVersion(), device->product, tn_dtype_name(step->operand[0].dtype),
                  step->product.precision, p->m, p->k, p->n, step->product.beta, alignment);
    if (bias)
        tn__text_add(&key, ", bias");
    for (int i = 0; i < TN__CUDA_FACTORS; i++) {
        tn__text_addf(&key, ", %s %lld", shape[i].by_columns ? "columns" : "rows", shape[i].lead);
        if (p->batch.ndim)
            tn__text_addf(&key, " batch %lld step %lld", p->batch.dim[p->batch.ndim - 1],
                          p->batch.stride[i][p->batch.ndim - 1]);
    }
    return tn__text_take(&key);
}

/* Asks for the library's proposals for matrices aligned to `alignment` bytes and takes one: by timing, if `timed` (for
 * products that take most of a program's time), else the first. */
static cublasStatus_t choose(tn__cuda_device *device, library_data *data, const tn__step *step, const shape_of *shape,
                             uint32_t alignment, int which, bool timed)
{
    static const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const tn__cuda_blas *blas = &device->libraries->blas;
    const tn__cuda_product *p = &data->product;
    bool bias = which == WITH_EPILOGUE;
    cublasLtMatmulDesc_t operation = bias ? data->with_epilogue : data->operation;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result[TN__CUDA_ALGORITHMS];
    size_t workspace = MOST_WORKSPACE, itemsize = tn__dtypes[step->operand[0].dtype].size;
    int count = 0;
    cublasStatus_t status = blas->cublasLtMatmulPreferenceCreate(&preference);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                            &workspace, sizeof workspace);
    for (size_t i = 0; i < sizeof sides / sizeof *sides && status == CUBLAS_STATUS_SUCCESS; i++)
        status = blas->cublasLtMatmulPreferenceSetAttribute(preference, sides[i], &alignment, sizeof alignment);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulAlgoGetHeuristic(
            device->blas, operation, data->layout[TN__CUDA_B], data->layout[TN__CUDA_A],
            data->layout[TN__CUDA_OUT], data->layout[TN__CUDA_OUT], preference, TN__CUDA_ALGORITHMS, result, &count);
    if (preference)
        blas->cublasLtMatmulPreferenceDestroy(preference);
    data->found[which] = status == CUBLAS_STATUS_SUCCESS && count > 0;
    if (!data->found[which])
        return status;
    const long long rows[] = {p->m, p->m, p->k}, columns[] = {p->n, p->k, p->n};
    long long batches = p->batch.ndim ? p->batch.dim[p->batch.ndim - 1] : 1;
    tn__cuda_products trial = {.operation = operation,
                               .layout = data->layout,
                               .dtype = step->operand[0].dtype,
                               .beta = step->product.beta,
                               .bias = bias,
                               .operations = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)batches,
                               .wide = types[step->operand[0].dtype].scale == CUDA_R_64F,
                               .count = count,
                               .result = result};
    for (int i = 0; i < TN__CUDA_FACTORS; i++)
        trial.bytes[i] = span(data, i, &shape[i], rows[i], columns[i], itemsize);
    char *key = timed ? key_of(device, data, step, shape, alignment, bias) : NULL;
    if (key)
        tn__cuda_choose_algorithm(device, key, &trial, &data->algorithm[which]);
    else
        data->algorithm[which] = (tn__cuda_algorithm){result[0].algo, result[0].workspaceSize};
    tn__free(key);
    return status;
}

static cublasComputeType_t compute_type(tn_dtype dtype, int precision)
{
    return dtype == TN_FLOAT32 && precision == TN_MATMUL_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : types[dtype].compute;
}

static cublasStatus_t describe_operation(const tn__cuda_blas *blas, cublasLtMatmulDesc_t *operation,
                                         const tn__step *step, const shape_of *shape)
{
    tn_dtype dtype = step->operand[0].dtype;
    cublasOperation_t first = shape[TN__CUDA_B].by_columns ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = shape[TN__CUDA_A].by_columns ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t status =
        blas->cublasLtMatmulDescCreate(operation, compute_type(dtype, step->product.precision), types[dtype].scale);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(*operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(*operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    return status;
}

/* Prepares an operation whose epilogue adds the bias, with its algorithm; without an epilogue if the library has
 * none. */
static void make_with_epilogue(tn__cuda_device *device, library_data *data, const tn__step *step,
                               const shape_of *shape)
{
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const tn__cuda_blas *blas = &device->libraries->blas;
    const void *somewhere = (const void *)(uintptr_t)ALIGNMENT; /* only the bias's alignment matters to proposals */
    int32_t type = types[step->operand[0].dtype].data;
    cublasStatus_t status = describe_operation(blas, &data->with_epilogue, step, shape);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(data->with_epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                      &epilogue, sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(data->with_epilogue, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type,
                                                      sizeof type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(data->with_epilogue, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                      &somewhere, sizeof somewhere);
    if (status == CUBLAS_STATUS_SUCCESS)
        choose(device, data, step, shape, ALIGNMENT, WITH_EPILOGUE, true);
}

static cublasStatus_t make_operation(tn__cuda_device *device, library_data *data, const tn__step *step,
                                     const shape_of *shape)
{
    const tn__cuda_blas *blas = &device->libraries->blas;
    const tn__cuda_product *p = &data->product;
    tn_dtype dtype = step->operand[0].dtype;
    const long long rows[] = {p->m, p->m, p->k}, columns[] = {p->n, p->k, p->n};
    cublasStatus_t status = describe_operation(blas, &data->operation, step, shape);
    for (int i = 0; i < TN__CUDA_FACTORS && status == CUBLAS_STATUS_SUCCESS; i++)
        status = make_layout(blas, data, i, types[dtype].data, rows[i], columns[i], &shape[i]);
    if (status == CUBLAS_STATUS_SUCCESS && step->product.bias)
        make_with_epilogue(device, data, step, shape);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = choose(device, data, step, shape, ALIGNMENT, ALIGNED, !data->found[WITH_EPILOGUE]);
    if (status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED)
        status = choose(device, data, step, shape, tn__dtypes[dtype].size, UNALIGNED, false);
    return status;
}

/* ---- running ---- */

static int alignment_of(const library_data *data, const CUdeviceptr *place, size_t itemsize)
{
    const tn__cuda_walk *batch = &data->product.batch;
    CUdeviceptr bits = 0;
    for (int i = 0; i < TN__CUDA_FACTORS; i++) {
        bits |= place[i];
        if (batch->ndim)
            bits |= (CUdeviceptr)batch->stride[i][batch->ndim - 1] * itemsize;
    }
    return bits % ALIGNMENT == 0 && data->found[ALIGNED] ? ALIGNED : UNALIGNED;
}

/* *done: does the library do the epilogue of this run? If so, it is given the bias's address; the operation is shared
 * by runs, which come one after another. */
static tn_status begin_epilogue(const tn__cuda_step *step, const tn__cuda_run *run, bool *done)
{
    const library_data *data = step->data;
    CUdeviceptr bias = tn__cuda_bias(step, run), bits = bias;
    for (int o = 0; o < TN__CUDA_FACTORS; o++)
        bits |= tn__cuda_address(run, &step->step->operand[o]);
    *done = data->found[WITH_EPILOGUE] && bits % ALIGNMENT == 0;
    if (!*done)
        return TN_OK;
    return library_check(run->device->libraries->blas.cublasLtMatmulDescSetAttribute(
                             data->with_epilogue, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
                         "bias");
}

static tn_status start_library(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__operand *operand = step->step->operand;
    library_data *data = step->data;
    const tn__cuda_walk *batch = &data->product.batch;
    tn__cuda_device *device = run->device;
    size_t itemsize = tn__dtypes[operand[0].dtype].size;
    bool wide = types[operand[0].dtype].scale == CUDA_R_64F;
    tn__cuda_factor alpha = tn__cuda_alpha(step, run->scalars), beta = {.bits = 0};
    const void *alpha_at = &alpha, *beta_at = &beta;
    if (step->step->product.beta && wide)
        beta.f64 = 1;
    else if (step->step->product.beta)
        beta.f32 = 1;
    if (data->factors_there) {
        size_t bytes = wide ? sizeof(double) : sizeof(float);
        CUdeviceptr factors;
        tn_status status = tn__cuda_factors(step, run, &alpha, &beta, bytes, &factors);
        if (status != TN_OK || tn__cuda_patching(run))
            return status;
        alpha_at = (const void *)factors;
        beta_at = (const void *)(factors + bytes);
    }
    bool with = false, behind = step->step->product.bias;
    if (behind) {
        tn_status status = begin_epilogue(step, run, &with);
        if (status != TN_OK)
            return status;
        behind = !with;
    }
    if (tn__cuda_patching(run))
        return behind ? tn__cuda_start_epilogue(step, run, &data->product, step->function) : TN_OK;
    for (int64_t i = 0; i < data->outer; i++) {
        CUdeviceptr place[TN__CUDA_FACTORS];
        for (int o = 0; o < TN__CUDA_FACTORS; o++) {
            long long at = 0;
            for (int64_t d = batch->ndim - 2, rest = i; d >= 0; rest /= batch->dim[d--])
                at += rest % batch->dim[d] * batch->stride[o][d];
            place[o] = tn__cuda_address(run, &operand[o]) + (CUdeviceptr)(at * (long long)itemsize);
        }
        int which = with ? WITH_EPILOGUE : alignment_of(data, place, itemsize);
        cublasLtMatmulDesc_t operation = with ? data->with_epilogue : data->operation;
        cublasStatus_t result = device->libraries->blas.cublasLtMatmul(
            device->blas, operation, alpha_at, (const void *)place[TN__CUDA_B], data->layout[TN__CUDA_B],
            (const void *)place[TN__CUDA_A], data->layout[TN__CUDA_A], beta_at, (const void *)place[TN__CUDA_OUT],
            data->layout[TN__CUDA_OUT], (void *)place[TN__CUDA_OUT], data->layout[TN__CUDA_OUT],
            &data->algorithm[which].algorithm, (void *)run->workspace, data->algorithm[which].workspace,
            run->stream);
        tn_status status = library_check(result, "product");
        if (status == TN_OK)
            status = tn__cuda_started(run, CUDA_SUCCESS, "matmul");
        if (status != TN_OK)
            return status;
    }
    return behind ? tn__cuda_start_epilogue(step, run, &data->product, step->function) : TN_OK;
}

/* True if the library can do the product; fills in how the matrices lie. */
static bool suits(const tn__step *step, const tn__cuda_product *p, shape_of *shape)
{
    const tn__cuda_walk *batch = &p->batch;
    const long long rows[] = {p->m, p->m, p->k}, columns[] = {p->n, p->k, p->n};
    if (!types[step->operand[0].dtype].there || p->m == 0 || p->n == 0 || p->k == 0 || batch->size == 0)
        return false;
    for (int i = 0; i < TN__CUDA_FACTORS; i++)
        if (!describe(rows[i], columns[i], p->step[i].row, p->step[i].column, &shape[i]))
            return false;
    return !shape[TN__CUDA_OUT].by_columns && (batch->ndim == 0 || batch->dim[batch->ndim - 1] <= INT32_MAX);
}

/* A product that scales by a run-time scalar, or overwrites what must survive a failure, finds its factors in
 * memory. */
static tn_status factors_on_device(tn__cuda_step *step, tn__cuda_device *device, library_data *data)
{
    const tn__cuda_blas *blas = &device->libraries->blas;
    cublasLtPointerMode_t mode = CUBLASLT_POINTER_MODE_DEVICE;
    data->factors_there = step->step->product.alpha >= 0 || step->overwrites;
    if (!data->factors_there)
        return TN_OK;
    tn_status status = library_check(blas->cublasLtMatmulDescSetAttribute(
                                         data->operation, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode),
                                     "preparation");
    return status == TN_OK ? tn__cuda_own_kernel(step, device, tn__cuda_text_factors(), "factors") : status;
}

tn_status tn__cuda_prepare_matmul_library(tn__cuda_step *step, tn__cuda_device *device)
{
    tn__cuda_product product;
    shape_of shape[TN__CUDA_FACTORS];
    tn__cuda_product_of(step->step, &product);
    if (!device->libraries->has_blas || !suits(step->step, &product, shape))
        return TN_OK;
    tn_status status = open_library(device);
    library_data *data = status == TN_OK ? tn__calloc(1, sizeof *data) : NULL;
    if (data == NULL)
        return status == TN_OK ? tn__fail_memory("matmul", sizeof *data) : status;
    data->product = product;
    data->outer = 1;
    for (int d = 0; d < product.batch.ndim - 1; d++)
        data->outer *= product.batch.dim[d];
    step->data = data;
    step->free = free_library;
    cublasStatus_t result = make_operation(device, data, step->step, shape);
    if (data->found[UNALIGNED] && result == CUBLAS_STATUS_SUCCESS) {
        step->start = start_library;
        step->opaque = true;
        for (int i = 0; i < ALGORITHMS; i++)
            if (data->found[i] && step->workspace < data->algorithm[i].workspace)
                step->workspace = data->algorithm[i].workspace;
        return step->step->product.bias
                   ? tn__cuda_own_kernel(step, device, tn__cuda_text_matmul(TN_FLOAT32), "epilogue")
                   : factors_on_device(step, device, data);
    }
    free_library(step, device);
    tn__free(data);
    step->data = NULL;
    step->free = NULL;
    if (result != CUBLAS_STATUS_SUCCESS && result != CUBLAS_STATUS_NOT_SUPPORTED)
        return library_check(result, "preparation");
    tn__log(TN__LOG_DEBUG, "cuda", "cuBLASLt has no algorithm for a product of %lld x %lld x %lld", product.m,
            product.k, product.n);
    return TN_OK;
}
