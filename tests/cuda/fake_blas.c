/* SPDX-License-Identifier: MIT */
#include "cuda/fake_blas.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/stand_in.h"

struct fake_blas fake_blas = {.proposals = 1};

/* ---- the library ---- */

static cublasStatus_t create(cublasLtHandle_t *handle)
{
    *handle = (cublasLtHandle_t)&fake_blas;
    return CUBLAS_STATUS_SUCCESS;
}
typedef struct operation {
    cublasLtEpilogue_t epilogue;
    int32_t bias_type;
    CUdeviceptr bias;
} operation;

static cublasStatus_t describe(cublasLtMatmulDesc_t *d, cublasComputeType_t c, cudaDataType_t t)
{
    (void)c, (void)t;
    operation *made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    made->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    *d = (cublasLtMatmulDesc_t)made;
    fake_blas.operations++;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t forget(cublasLtMatmulDesc_t d)
{
    fake_blas.operations--;
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void *v, size_t n)
{
    operation *o = (operation *)d;
    void *to = a == CUBLASLT_MATMUL_DESC_EPILOGUE         ? (void *)&o->epilogue
               : a == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE ? (void *)&o->bias_type
               : a == CUBLASLT_MATMUL_DESC_BIAS_POINTER   ? (void *)&o->bias
                                                          : NULL;
    if (to)
        memcpy(to, v, n);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t lay(cublasLtMatrixLayout_t *l, cudaDataType t, uint64_t r, uint64_t c, int64_t ld)
{
    (void)t, (void)r, (void)c, (void)ld;
    *l = (cublasLtMatrixLayout_t)&fake_blas;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t forget_layout(cublasLtMatrixLayout_t l) { return (void)l, CUBLAS_STATUS_SUCCESS; }
static cublasStatus_t set_layout(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t a, const void *v, size_t n)
{
    (void)l, (void)a, (void)v, (void)n;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t prefer(cublasLtMatmulPreference_t *p)
{
    *p = (cublasLtMatmulPreference_t)&fake_blas;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t forget_preference(cublasLtMatmulPreference_t p) { return (void)p, CUBLAS_STATUS_SUCCESS; }
static cublasStatus_t set_preference(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a,
                                     const void *v, size_t n)
{
    (void)p, (void)a, (void)v, (void)n;
    return CUBLAS_STATUS_SUCCESS;
}
/* Of an epilogue by how the bias lies: the library looks at its address. */
static bool takes(const operation *o)
{
    fake_blas.epilogues++;
    return !fake_blas.refuses && o->epilogue == CUBLASLT_EPILOGUE_BIAS && o->bias_type == CUDA_R_32F && o->bias &&
           o->bias % 16 == 0 && o->bias % 32;
}

static cublasStatus_t propose(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                              cublasLtMatmulPreference_t p, int most, cublasLtMatmulHeuristicResult_t *result,
                              int *count)
{
    (void)h, (void)a, (void)b, (void)c, (void)out, (void)p;
    const operation *o = (const operation *)d;
    *count = 0;
    if (o->epilogue != CUBLASLT_EPILOGUE_DEFAULT && !takes(o))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *count = fake_blas.proposals < most ? fake_blas.proposals : most;
    for (int i = 0; i < *count; i++) {
        memset(&result[i], 0, sizeof result[i]);
        result[i].algo.data[0] = (uint64_t)i;
        result[i].workspaceSize = fake_blas.workspace[i];
    }
    return CUBLAS_STATUS_SUCCESS;
}
static size_t version(void) { return 1; }

const fake_product *fake_product_kept(fake_product product)
{
    static fake_product kept[4096];
    static int count;
    if (count == sizeof kept / sizeof *kept)
        abort();
    kept[count] = product;
    return &kept[count++];
}

static void pass(const void *product)
{
    fake_blas.now += fake_blas.milliseconds[((const fake_product *)product)->proposal] * (fake_blas.slow > 0 ? 2 : 1);
    fake_blas.slow -= fake_blas.slow > 0;
}

static cublasStatus_t multiply(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                               cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                               const void *c, cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t lo,
                               const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream)
{
    (void)h, (void)alpha, (void)a, (void)la, (void)b, (void)lb, (void)beta, (void)c, (void)lc, (void)out, (void)lo;
    const operation *o = (const operation *)d;
    int proposal = (int)algo->data[0];
    if (fake_blas.milliseconds[proposal] < 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    fake_blas.now += fake_blas.call[proposal];
    fake_blas.asked++;
    const fake_product *product = fake_product_kept((fake_product){.proposal = proposal,
                                                                   .workspace = workspace,
                                                                   .bytes = bytes,
                                                                   .epilogue = o->epilogue,
                                                                   .bias = o->bias});
    fake_ask((CUstream)stream, (fake_work){.kind = FAKE_CALL, .call = product, .passes = pass});
    return CUBLAS_STATUS_SUCCESS;
}

static const tn__cuda_blas blas = {
    .cublasLtCreate = create,
    .cublasLtMatmul = multiply,
    .cublasLtMatmulDescCreate = describe,
    .cublasLtMatmulDescDestroy = forget,
    .cublasLtMatmulDescSetAttribute = set,
    .cublasLtMatrixLayoutCreate = lay,
    .cublasLtMatrixLayoutDestroy = forget_layout,
    .cublasLtMatrixLayoutSetAttribute = set_layout,
    .cublasLtMatmulPreferenceCreate = prefer,
    .cublasLtMatmulPreferenceDestroy = forget_preference,
    .cublasLtMatmulPreferenceSetAttribute = set_preference,
    .cublasLtMatmulAlgoGetHeuristic = propose,
    .cublasLtGetVersion = version,
};

static void done(const void *product)
{
    fake_blas.product[fake_blas.done++ % FAKE_PRODUCTS] = *(const fake_product *)product;
}

const fake_product *fake_blas_last(void) { return &fake_blas.product[(fake_blas.done - 1) % FAKE_PRODUCTS]; }

/* ---- the clock ---- */

static struct {
    CUevent event;
    double at;
} recorded[2];

static CUresult (*record_elsewhere)(CUevent event, CUstream stream);

static CUresult record(CUevent event, CUstream stream)
{
    recorded[0] = recorded[1];
    recorded[1].event = event;
    recorded[1].at = fake_blas.now;
    return record_elsewhere(event, stream);
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent stop)
{
    *milliseconds = (float)(recorded[1].at - recorded[0].at);
    return recorded[0].event == start && recorded[1].event == stop ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

void fake_blas_clock(tn__cuda_driver *driver)
{
    if (driver->cuEventRecord != record)
        record_elsewhere = driver->cuEventRecord;
    driver->cuEventRecord = record;
    driver->cuEventElapsedTime = elapsed;
}

tn__device *fake_blas_use(void)
{
    tn__device *device = stand_in_use();
    if (device == NULL)
        return NULL;
    tn__cuda_libraries *libraries = (tn__cuda_libraries *)tn__cuda_of(device)->libraries;
    tn__cuda_driver *driver = (tn__cuda_driver *)tn__cuda_of(device)->driver;
    libraries->blas = blas;
    libraries->has_blas = true;
    fake_blas_clock(driver);
    fake.calls = done;
    fake.closes = NULL;
    fake.finds = NULL;
    return device;
}
