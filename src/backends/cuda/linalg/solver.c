/* SPDX-License-Identifier: MIT */
/*
 * Cholesky factors, systems of equations and determinants: of small matrices by a kernel for all of them
 * (small_matrices.cuh), of larger ones by cuSOLVER, matrix after matrix. Operands are copied into Fortran's order
 * first, as both work in place, and results from there. A matrix that has none is told of as an index out of range is:
 * later, by the first call that reads, so that nothing waits.
 */
#include <limits.h>

#include "backends/cuda/linalg/library.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"
#include "tn_embed.h"

/* A kernel parameter, as solver.cuh declares it. */
typedef struct matrices {
    CUdeviceptr a, b, pivot, info;
    long long n, each, count;
} matrices;

typedef struct solver_data {
    const tn__cusolver *library;
    matrices m;
    long long sides;              /* SOLVE: columns of b */
    int type, mode;
    size_t itemsize;
    struct {
        size_t device_bytes, host_bytes;
        CUdeviceptr device;
        void *host;
    } work;                       /* the library's own memory */
    void *memory;                 /* of which that on the device is a part */
    size_t bytes;
    tn__cuda_copying load[2], store;
    CUfunction small, look;       /* NULL: the library; and step->function, what comes after */
} solver_data;

char *tn__cuda_text_solver(tn_dtype dtype)
{
    return tn__format("#define PARTS %d\n%s%s%s%s", dtype == TN_COMPLEX128 ? 2 : 1, tn__cuda_walk_text,
                      tn__cuda_failure_text,
                      (const char *)tn__embed_cuda_solver, (const char *)tn__embed_cuda_small_matrices);
}

#define check tn__cuda_solver_check

static void free_solver(const tn__cuda_step *step, tn__cuda_device *device)
{
    solver_data *data = step->data;
    tn__cuda_copying_free(&data->load[0], device);
    tn__cuda_copying_free(&data->load[1], device);
    tn__cuda_copying_free(&data->store, device);
    if (data->memory)
        tn__device_release(device->owner, data->memory, data->bytes);
    tn__free(data->work.host);
}

static tn_status factorize_small(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const solver_data *data = step->data;
    matrices m = data->m;
    bool solves = step->step->op == TN__OP_SOLVE;
    int upper = data->mode, warps = step->step->operand[1].dtype == TN_COMPLEX128 ? 2 : 4; /* as the text's WARPS */
    long long sides = data->sides, groups = solves ? (sides + TN__CUDA_SMALL_MATRIX - 1) / TN__CUDA_SMALL_MATRIX : 1;
    long long blocks = (m.count * groups + warps - 1) / warps;
    void *params[] = {&m, solves ? (void *)&sides : &upper};
    return tn__cuda_launch(run, data->small, blocks < INT_MAX ? blocks : INT_MAX, warps * TN__CUDA_SMALL_MATRIX, 0,
                           params, "linalg");
}

static tn_status factorize_one(const tn__cuda_step *step, const tn__cuda_run *run, long long i)
{
    const solver_data *data = step->data;
    const tn__cusolver *library = data->library;
    void *handle = run->device->solver, *params = run->device->solver_params;
    long long n = data->m.n;
    void *a = (void *)(data->m.a + (CUdeviceptr)(i * n * n) * data->itemsize), *memory = (void *)data->work.device;
    int *info = (int *)data->m.info + i;
    int64_t *pivot = (int64_t *)data->m.pivot + i * n;
    if (step->step->op == TN__OP_CHOLESKY)
        return check(library->cusolverDnXpotrf(handle, params, data->mode, n, data->type, a, n, data->type, memory,
                                               data->work.device_bytes, data->work.host, data->work.host_bytes, info),
                     "potrf");
    tn_status status =
        check(library->cusolverDnXgetrf(handle, params, n, n, data->type, a, n, pivot, data->type, memory,
                                        data->work.device_bytes, data->work.host, data->work.host_bytes, info),
              "getrf");
    if (status != TN_OK || step->step->op != TN__OP_SOLVE)
        return status;
    void *b = (void *)(data->m.b + (CUdeviceptr)(i * data->m.each) * data->itemsize);
    int *unused = (int *)data->m.info + data->m.count; /* where the library reports wrong arguments, which there are
                                                          not */
    return check(library->cusolverDnXgetrs(handle, params, 0, n, data->sides, data->type, a, n, pivot, data->type, b, n,
                                           unused),
                 "getrs");
}

static tn_status factorize(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const solver_data *data = step->data;
    if (data->small)
        return factorize_small(step, run);
    if (tn__cuda_patching(run))
        return TN_OK;
    tn_status status = check(data->library->cusolverDnSetStream(run->device->solver, run->stream),
                             "choice of a stream");
    for (long long i = 0; i < data->m.count && status == TN_OK; i++)
        status = factorize_one(step, run, i);
    return status;
}

/* Starts what follows the library's functions: the check for failures, and the packing of the result. */
static tn_status finish(const tn__cuda_step *step, const tn__cuda_run *run, tn__cuda_failure *failure)
{
    const solver_data *data = step->data;
    matrices m = data->m;
    int upper = data->mode;
    void *look[] = {&m, failure}, *params[] = {&m, &upper};
    tn_status status = step->may_fail ? tn__cuda_start(run, data->look, m.count, look, "linalg") : TN_OK;
    bool all = step->step->op == TN__OP_CHOLESKY, none = step->step->op == TN__OP_SOLVE && step->may_fail;
    if (status != TN_OK || none)
        return status;
    long long size = all ? m.count * m.n * m.n : step->step->op == TN__OP_SOLVE ? m.count * m.each : m.count;
    return tn__cuda_start(run, step->function, size, params, "linalg");
}

static tn_status start_solver(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const solver_data *data = step->data;
    const tn__operand *operand = step->step->operand;
    bool solves = step->step->op == TN__OP_SOLVE;
    if (data->memory == NULL) /* there are no elements */
        return TN_OK;
    CUdeviceptr buffer[3];
    for (int k = 0; k < step->step->operand_count; k++)
        buffer[k] = (CUdeviceptr)run->buffers[operand[k].buffer];
    tn_status status = tn__cuda_copying_start(&data->load[0], run, data->m.a, buffer[1]);
    if (status == TN_OK && solves)
        status = tn__cuda_copying_start(&data->load[1], run, data->m.b, buffer[2]);
    if (status == TN_OK)
        status = factorize(step, run);
    tn__cuda_failure failure = tn__cuda_failure_of(step, run);
    if (status == TN_OK)
        status = finish(step, run, &failure);
    tn__cuda_run guarded = *run;
    if (step->overwrites && step->may_fail)
        guarded.failure.guard = failure.latch;
    CUdeviceptr result = step->step->op == TN__OP_CHOLESKY ? data->m.a : data->m.b;
    return status == TN_OK ? tn__cuda_copying_start(&data->store, &guarded, buffer[0], result) : status;
}

static tn_status make_memory(solver_data *data, tn__cuda_device *device)
{
    matrices *m = &data->m;
    size_t part[5] = {(size_t)(m->count * m->n * m->n) * data->itemsize, (size_t)(m->count * m->each) * data->itemsize,
                      (size_t)(m->count * m->n) * sizeof(int64_t), (size_t)(m->count + 1) * sizeof(int),
                      data->work.device_bytes};
    for (int i = 0; i < 5; i++)
        data->bytes += part[i] = (part[i] + 255) / 256 * 256;
    data->memory = tn__device_allocate(device->owner, data->bytes);
    data->work.host = data->work.host_bytes ? tn__alloc(data->work.host_bytes) : NULL;
    if (data->memory == NULL)
        return tn__error_status(tn__error_last());
    if (data->work.host_bytes && data->work.host == NULL)
        return tn__fail_memory("linalg", data->work.host_bytes);
    m->a = (CUdeviceptr)data->memory;
    m->b = m->a + part[0];
    m->pivot = m->b + part[1];
    m->info = m->pivot + part[2];
    data->work.device = m->info + part[3];
    return TN_OK;
}

static tn_status ask_for_sizes(solver_data *data, tn__cuda_device *device, int op)
{
    const tn__cusolver *library = data->library;
    long long n = data->m.n;
    pthread_mutex_lock(&device->lock);
    tn_status status = tn__cuda_solver_open(device, library);
    void *handle = device->solver, *params = device->solver_params;
    if (status == TN_OK && op == TN__OP_CHOLESKY)
        status = check(library->cusolverDnXpotrf_bufferSize(handle, params, data->mode, n, data->type, NULL, n,
                                                            data->type,
                                                            &data->work.device_bytes, &data->work.host_bytes),
                       "preparation");
    else if (status == TN_OK)
        status = check(library->cusolverDnXgetrf_bufferSize(handle, params, n, n, data->type, NULL, n, data->type,
                                                            &data->work.device_bytes, &data->work.host_bytes),
                       "preparation");
    pthread_mutex_unlock(&device->lock);
    return status;
}

static tn_status make_copies(solver_data *data, tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__operand *operand = step->step->operand;
    tn__operand a = tn__cuda_by_columns(&operand[1]);
    tn__operand result = step->step->op == TN__OP_SLOGDET ? tn__cuda_dense(&operand[0])
                                                               : tn__cuda_by_columns(&operand[0]);
    tn__cuda_step reading = *step;
    reading.overwrites = false;
    tn_status status = tn__cuda_copying_make(&data->load[0], &reading, device, &a, &operand[1]);
    if (status == TN_OK && step->step->op == TN__OP_SOLVE) {
        tn__operand b = tn__cuda_by_columns(&operand[2]);
        status = tn__cuda_copying_make(&data->load[1], &reading, device, &b, &operand[2]);
    }
    return status == TN_OK ? tn__cuda_copying_make(&data->store, step, device, &operand[0], &result) : status;
}

bool tn__cuda_solver_takes(const tn__cuda_device *device, tn_dtype dtype)
{
    return (dtype == TN_FLOAT64 || dtype == TN_COMPLEX128) && tn__cuda_solver_library(device);
}

tn_status tn__cuda_prepare_solver(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    const tn__operand *a = &s->operand[1];
    bool solves = s->op == TN__OP_SOLVE, factors = s->op == TN__OP_CHOLESKY;
    solver_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("linalg", sizeof *data);
    step->data = data;
    step->free = free_solver;
    step->start = start_solver;
    step->opaque = true; /* operands may be moved by a copy of the driver's, which is not a kernel */
    data->library = tn__cuda_solver_library(device);
    data->mode = s->param_count > 0 && s->param[0] != 0;
    data->type = a->dtype == TN_COMPLEX128 ? TN__CUSOLVER_COMPLEX : TN__CUSOLVER_REAL;
    data->itemsize = tn__dtypes[a->dtype].size;
    if (a->ndim < 2 || a->dtype != s->operand[0].dtype)
        return tn__fail(TN_ERR_INTERNAL, "linalg", "a step of linear algebra has operands that do not fit");
    data->sides = solves ? s->operand[2].dim[a->ndim - 1] : 0;
    data->m = (matrices){.n = a->dim[a->ndim - 1], .count = 1};
    data->m.each = factors ? 0 : solves ? data->m.n * data->sides : 2;
    for (int d = 0; d < a->ndim - 2; d++)
        data->m.count *= a->dim[d];
    step->may_fail = factors || (solves && !data->mode);
    step->failed = factors ? "the matrix is not positive definite"
                           : "singular matrix: it has no inverse; use tn_linalg_lstsq or tn_linalg_pinv";
    tn_status status = tn__cuda_own_kernel(step, device, tn__cuda_text_solver(a->dtype),
                                           factors ? "triangle" : solves ? "unsolved" : "determinant");
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "look", &data->look);
    /* an empty matrix still has a determinant */
    bool nothing = data->m.count == 0 || (s->op != TN__OP_SLOGDET && (data->m.n == 0 || (solves && !data->sides)));
    if (status != TN_OK || nothing)
        return status;
    step->shares = data->m.n > TN__CUDA_SMALL_MATRIX;
    if (step->shares)
        status = data->library ? ask_for_sizes(data, device, s->op)
                               : tn__fail(TN_ERR_INTERNAL, "linalg", "matrices this large want cuSOLVER");
    else
        status = tn__cuda_module_function(device, step->module,
                                          factors ? "small_cholesky" : solves ? "small_solve" : "small_lu",
                                          &data->small);
    if (status == TN_OK)
        status = make_copies(data, step, device);
    return status == TN_OK ? make_memory(data, device) : status;
}
