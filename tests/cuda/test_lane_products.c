/* SPDX-License-Identifier: MIT */
/*
 * Products by a library on several streams: each has a workspace of its own, in graphs, too, which are captured with
 * one. On a fake driver with a fake library, whose products write nothing but their workspace's address to where the
 * test looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "cuda/stand_in.h"
#include "support/device.h"

enum { N = 256 };

static tn__cuda_device *cuda;
static tn__device *device;

/* ---- the library ---- */

static cublasStatus_t create(cublasLtHandle_t *handle)
{
    *handle = (cublasLtHandle_t)&cuda;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t describe(cublasLtMatmulDesc_t *d, cublasComputeType_t c, cudaDataType_t t)
{
    (void)c, (void)t;
    *d = (cublasLtMatmulDesc_t)&cuda;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t forget(cublasLtMatmulDesc_t d) { return (void)d, CUBLAS_STATUS_SUCCESS; }
static cublasStatus_t set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void *v, size_t n)
{
    (void)d, (void)a, (void)v, (void)n;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t lay(cublasLtMatrixLayout_t *l, cudaDataType t, uint64_t r, uint64_t c, int64_t ld)
{
    (void)t, (void)r, (void)c, (void)ld;
    *l = (cublasLtMatrixLayout_t)&cuda;
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
    *p = (cublasLtMatmulPreference_t)&cuda;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t forget_preference(cublasLtMatmulPreference_t p) { return (void)p, CUBLAS_STATUS_SUCCESS; }
static cublasStatus_t set_preference(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a,
                                     const void *v, size_t n)
{
    (void)p, (void)a, (void)v, (void)n;
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t propose(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                              cublasLtMatmulPreference_t p, int most, cublasLtMatmulHeuristicResult_t *result,
                              int *count)
{
    (void)h, (void)d, (void)a, (void)b, (void)c, (void)out, (void)p, (void)most;
    memset(result, 0, sizeof *result);
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}
static size_t version(void) { return 1; }

static int used_count;
static CUdeviceptr used[64];

static void note(const void *workspace) { used[used_count++ % 64] = (CUdeviceptr)workspace; }

static cublasStatus_t multiply(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                               cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                               const void *c, cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t lo,
                               const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream)
{
    (void)h, (void)d, (void)alpha, (void)a, (void)la, (void)b, (void)lb, (void)beta, (void)c, (void)lc, (void)out,
        (void)lo, (void)algo, (void)bytes;
    fake_ask((CUstream)stream, (fake_work){.kind = FAKE_CALL, .call = workspace});
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

/* ---- the test ---- */

/* The workspace of a product on a stream. */
static CUdeviceptr of(tn_stream *stream, const tn_array *x)
{
    int before = used_count;
    TN_SCOPE
        TN_ON_STREAM (stream)
            assert_int_equal(tn_eval(tn_matmul(x, x)), TN_OK);
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK); /* what is held back, too */
    assert_int_equal(used_count, before + 1);
    return used[(used_count - 1) % 64];
}

/* More streams than a program keeps graphs. */
static void test_workspaces(void **state)
{
    (void)state;
    enum { STREAMS = TN__CUDA_GRAPHS_KEPT + 4 };
    assert_int_equal(tn_memory_limit(tn_cuda(0), (size_t)2 << 20),
                     TN_OK);             /* so that all results lie in the same memory */
    tn_stream *stream[STREAMS] = {NULL}; /* the first one stays the device's own */
    CUdeviceptr workspace[STREAMS];
    for (int s = 1; s < STREAMS; s++)
        assert_non_null(stream[s] = tn_stream_new(tn_cuda(0)));
    TN_SCOPE {
        tn_array *x = tn_zeros(TN_SHAPE(N, N), .dtype = TN_FLOAT16);
        assert_int_equal(tn_eval(x), TN_OK);
        for (int s = 0; s < STREAMS; s++) {
            workspace[s] = of(stream[s], x);
            for (int other = 0; other < s; other++)
                assert_true(workspace[s] && workspace[s] != workspace[other]);
        }
        for (int round = 0; round < 3; round++) /* as graphs by now */
            for (int s = 0; s < STREAMS; s++)
                for (int twice = 0; twice < 2; twice++)
                    assert_int_equal(of(stream[s], x), workspace[s]);
        assert_true(fake.count.graph_launches > 0);
    }
    for (int s = 1; s < STREAMS; s++)
        tn_stream_free(stream[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_workspaces)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    device = stand_in_use();
    if (device == NULL)
        return 1;
    cuda = tn__cuda_of(device);
    tn__cuda_libraries *libraries = (tn__cuda_libraries *)cuda->libraries;
    libraries->blas = blas;
    libraries->has_blas = true;
    fake.calls = note;
    fake.closes = NULL;
    fake.finds = NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
