/* SPDX-License-Identifier: MIT */
/*
 * QR, singular values and eigenvalues of Hermitian matrices by cuSOLVER, matrix after matrix, with LAPACK's
 * conventions: what is packed is what the CPU packs. The library waits for the GPU by itself here and there, so that
 * these steps are never part of a graph; they take their memory when they start and give it back at once, which the
 * order of streams allows. A matrix that has no result is told of as an index out of range is: later, by the first call
 * that reads. The values of small matrices are jacobi.c's.
 */
#include "backends/cuda/linalg/library.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"
#include "tn_embed.h"

enum { MATRICES, FIRST, SECOND, VALUES, INFO, WORK, PACKED, AREAS }; /* areas of a run's memory */

typedef struct decompose_data decompose_data;

/* What the functions below work on: the areas of a run's memory for one matrix, and the step's constants. */
typedef struct place {
    const decompose_data *data;
    const tn__cuda_run *run;
    void *handle, *params;
    CUdeviceptr a, area[AREAS], out;
} place;

typedef struct decomposition {
    int op;
    tn_status (*measure)(decompose_data *data, void *handle, void *params);
    tn_status (*compute)(const place *p);
    const char *failed; /* message of a failure; NULL: it cannot fail */
} decomposition;

struct decompose_data {
    const tn__cusolver *library;
    const decomposition *kind;
    const int64_t *mode;
    long long m, n, k;            /* rows and columns of a matrix as the library gets it, and the smaller of the two */
    bool transposed;              /* the library gets the operand's transpose */
    long long count, each;        /* number of matrices; elements of a packed result */
    int type;                     /* of an element, by the library's number */
    struct {
        bool complex;
        size_t size;
    } element;
    struct {
        size_t work, area[AREAS], bytes; /* the library's own, each area's, and of all areas together */
        size_t host_bytes;
        void *host;
    } memory;
    tn__cuda_copying load, store;
    struct {
        CUfunction lay, lay_real, look;
    } kernel;
};

char *tn__cuda_text_decompose(tn_dtype dtype)
{
    return tn__format("#define PARTS %d\n%s%s%s", dtype == TN_COMPLEX128 ? 2 : 1, tn__cuda_walk_text,
                      tn__cuda_failure_text, (const char *)tn__embed_cuda_decompose);
}

#define check tn__cuda_solver_check

/* cuSOLVER may detect numbers that are not finite before the kernel that checks for them: it then returns 3 (invalid
 * value) or 6 (execution failed). */
static tn_status check_values(const decompose_data *d, int result, const char *what)
{
    if (result == 3 || result == 6)
        return tn__fail(TN_ERR_VALUE, "linalg", "%s", d->kind->failed);
    return check(result, what);
}

static long long larger(long long a, long long b) { return a > b ? a : b; }

/* Packs a result in C order, and moves `out` to its end. */
static tn_status lay(place *p, CUdeviceptr from, long long rows, long long columns, long long ld, int upper)
{
    void *params[] = {&p->out, &from, &rows, &columns, &ld, &upper};
    CUdeviceptr next = p->out + (CUdeviceptr)(rows * columns) * p->data->element.size;
    long long size = rows * columns;
    tn_status status = size > 0 ? tn__cuda_start(p->run, p->data->kernel.lay, size, params, "linalg") : TN_OK;
    p->out = next;
    return status;
}

/* The same where the library's matrix in Fortran order is the result in C order. */
static tn_status lay_flat(place *p, CUdeviceptr from, long long size) { return lay(p, from, size, 1, size, 0); }

static tn_status lay_values(place *p)
{
    long long count = p->data->k;
    void *params[] = {&p->out, &p->area[VALUES], &count};
    tn_status status = tn__cuda_start(p->run, p->data->kernel.lay_real, count, params, "linalg");
    p->out += (CUdeviceptr)count * p->data->element.size;
    return status;
}

/* ---- QR: mode[0] columns of q, mode[1] the reflectors themselves; as in backends/cpu/linalg/lapack_of_type.h ---- */

static tn_status measure_qr(decompose_data *d, void *handle, void *params)
{
    const tn__cusolver *library = d->library;
    int columns = (int)d->mode[0], own = 0;
    tn_status status = check(library->cusolverDnXgeqrf_bufferSize(handle, params, d->m, d->n, d->type, NULL, d->m,
                                                                  d->type, NULL, d->type, &d->memory.work,
                                                                  &d->memory.host_bytes), "preparation");
    if (status == TN_OK && columns)
        status = check((d->element.complex ? library->cusolverDnZungqr_bufferSize
                                           : library->cusolverDnDorgqr_bufferSize)(
                           handle, (int)d->m, columns, (int)d->k, NULL, (int)d->m, NULL, &own), "preparation");
    d->memory.work = (size_t)larger((long long)d->memory.work, own * (long long)d->element.size);
    d->memory.area[FIRST] = (size_t)(d->m * larger(columns, d->n)) * d->element.size;
    d->memory.area[VALUES] = (size_t)d->k * d->element.size; /* the scalar factors of the reflectors */
    return status;
}

static tn_status compute_qr(const place *given)
{
    place p = *given;
    const decompose_data *d = p.data;
    const tn__cusolver *library = d->library;
    int columns = (int)d->mode[0], *info = (int *)p.area[INFO];
    CUdeviceptr a = p.area[FIRST], work = p.area[WORK];
    void *tau = (void *)p.area[VALUES];
    /* a copy, in memory with room for all of q's columns */
    place copy = p;
    copy.out = a;
    tn_status status = lay_flat(&copy, p.a, d->m * d->n);
    if (status == TN_OK)
        status = check(library->cusolverDnXgeqrf(p.handle, p.params, d->m, d->n, d->type, (void *)a, d->m, d->type, tau,
                                                 d->type, (void *)work, d->memory.work, d->memory.host,
                                                 d->memory.host_bytes, info), "geqrf");
    if (status == TN_OK && d->mode[1]) {
        status = lay(&p, a, d->m, d->n, d->m, 0);
        return status == TN_OK ? lay_flat(&p, p.area[VALUES], d->k) : status;
    }
    place r = p;
    r.out += (CUdeviceptr)(d->m * columns) * d->element.size;
    if (status == TN_OK)
        status = lay(&r, a, columns ? columns : d->k, d->n, d->m, 1);
    if (status != TN_OK || columns == 0)
        return status;
    status = check((d->element.complex ? library->cusolverDnZungqr : library->cusolverDnDorgqr)(
                       p.handle, (int)d->m, columns, (int)d->k, (void *)a, (int)d->m, tau, (void *)work,
                       (int)(d->memory.work / d->element.size), info), "orgqr");
    return status == TN_OK ? lay(&p, a, d->m, columns, d->m, 0) : status;
}

/* ---- singular values: mode[0] 0 without vectors, 1 reduced, 2 full. The library takes no matrix that is wider than
 * high */

static signed char job_of(const decompose_data *d) { return "NSA"[d->mode[0]]; }

static tn_status measure_svd(decompose_data *d, void *handle, void *params)
{
    signed char job = job_of(d);
    d->memory.area[FIRST] = job == 'N' ? 0 : (size_t)(d->m * (job == 'S' ? d->n : d->m)) * d->element.size;
    d->memory.area[SECOND] = job == 'N' ? 0 : (size_t)(d->n * d->n) * d->element.size;
    d->memory.area[VALUES] = (size_t)d->n * sizeof(double);
    return check(d->library->cusolverDnXgesvd_bufferSize(handle, params, job, job, d->m, d->n, d->type, NULL, d->m,
                                                         TN__CUSOLVER_REAL, NULL, d->type, NULL, d->m, d->type, NULL,
                                                         d->n, d->type, &d->memory.work, &d->memory.host_bytes),
                 "preparation");
}

static tn_status compute_svd(const place *given)
{
    place p = *given;
    const decompose_data *d = p.data;
    signed char job = job_of(d);
    CUdeviceptr u = p.area[FIRST], vt = p.area[SECOND];
    int result = d->library->cusolverDnXgesvd(p.handle, p.params, job, job, d->m, d->n, d->type, (void *)p.a, d->m,
                                              TN__CUSOLVER_REAL, (void *)p.area[VALUES], d->type, (void *)u, d->m,
                                              d->type, (void *)vt, d->n, d->type, (void *)p.area[WORK], d->memory.work,
                                              d->memory.host, d->memory.host_bytes, (int *)p.area[INFO]);
    tn_status status = check_values(d, result, "gesvd");
    if (status != TN_OK || job == 'N')
        return status == TN_OK ? lay_values(&p) : status;
    long long columns = job == 'S' ? d->n : d->m;
    /* a^T = u s vt: a = vt^T s u^T */
    status = d->transposed ? lay_flat(&p, vt, d->n * d->n) : lay(&p, u, d->m, columns, d->m, 0);
    if (status == TN_OK)
        status = lay_values(&p);
    if (status == TN_OK)
        status = d->transposed ? lay_flat(&p, u, d->m * columns) : lay(&p, vt, d->n, d->n, d->n, 0);
    return status;
}

/* ---- eigenvalues: mode[0] with vectors, mode[1] of the upper triangle ---- */

static tn_status measure_eigh(decompose_data *d, void *handle, void *params)
{
    d->memory.area[VALUES] = (size_t)d->n * sizeof(double);
    return check(d->library->cusolverDnXsyevd_bufferSize(handle, params, d->mode[0] != 0, d->mode[1] != 0, d->n,
                                                         d->type, NULL, d->n,
                                                         TN__CUSOLVER_REAL, NULL, d->type, &d->memory.work,
                                                         &d->memory.host_bytes),
                 "preparation");
}

static tn_status compute_eigh(const place *given)
{
    place p = *given;
    const decompose_data *d = p.data;
    int result =
        d->library->cusolverDnXsyevd(p.handle, p.params, d->mode[0] != 0, d->mode[1] != 0, d->n, d->type, (void *)p.a,
                                     d->n, TN__CUSOLVER_REAL, (void *)p.area[VALUES], d->type, (void *)p.area[WORK],
                                     d->memory.work, d->memory.host, d->memory.host_bytes, (int *)p.area[INFO]);
    tn_status status = check_values(d, result, "syevd");
    if (status == TN_OK)
        status = lay_values(&p);
    return status == TN_OK && d->mode[0] ? lay(&p, p.a, d->n, d->n, d->n, 0) : status;
}

static const decomposition decompositions[] = {
    {TN__OP_QR, measure_qr, compute_qr, NULL},
    {TN__OP_SVD, measure_svd, compute_svd, "the singular values did not converge; are all elements finite?"},
    {TN__OP_EIGH, measure_eigh, compute_eigh, "the eigenvalues did not converge; are all elements finite?"},
};

/* ---- running ---- */

static tn_status run_places(const tn__cuda_step *step, const tn__cuda_run *run, void *memory)
{
    const decompose_data *d = step->data;
    const tn__operand *operand = step->step->operand;
    place p = {.data = d, .run = run, .handle = run->device->solver, .params = run->device->solver_params};
    CUdeviceptr at = (CUdeviceptr)memory;
    for (int i = 0; i < AREAS; i++) {
        p.area[i] = at;
        at += d->memory.area[i];
    }
    tn_status status = tn__cuda_copying_start(&d->load, run, p.area[MATRICES],
                                             (CUdeviceptr)run->buffers[operand[1].buffer]);
    if (status == TN_OK)
        status = check(d->library->cusolverDnSetStream(p.handle, run->stream), "choice of a stream");
    tn__cuda_failure failure = tn__cuda_failure_of(step, run);
    for (long long i = 0; i < d->count && status == TN_OK; i++) {
        p.a = p.area[MATRICES] + (CUdeviceptr)(i * d->m * d->n) * d->element.size;
        p.out = p.area[PACKED] + (CUdeviceptr)(i * d->each) * d->element.size;
        status = d->kind->compute(&p);
        void *params[] = {&p.area[INFO], &p.area[VALUES], &failure};
        if (status == TN_OK && step->may_fail)
            status = tn__cuda_start(run, d->kernel.look, 1, params, "linalg");
    }
    tn__cuda_run guarded = *run;
    if (step->overwrites && step->may_fail)
        guarded.failure.guard = failure.latch;
    if (status == TN_OK)
        status = tn__cuda_copying_start(&d->store, &guarded, (CUdeviceptr)run->buffers[operand[0].buffer],
                                       p.area[PACKED]);
    return status;
}

static tn_status start_decompose(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const decompose_data *d = step->data;
    if (d->memory.bytes == 0) /* nothing to do */
        return TN_OK;
    tn_status status = tn__cuda_may_wait(run->device, "cuSOLVER decomposes a matrix");
    if (status != TN_OK)
        return status;
    void *memory = tn__device_allocate(run->device->owner, d->memory.bytes);
    if (memory == NULL)
        return tn__error_status(tn__error_last());
    status = run_places(step, run, memory);
    tn__device_release(run->device->owner, memory, d->memory.bytes);
    return status;
}

/* ---- preparing ---- */

static void free_decompose(const tn__cuda_step *step, tn__cuda_device *device)
{
    decompose_data *d = step->data;
    tn__cuda_copying_free(&d->load, device);
    tn__cuda_copying_free(&d->store, device);
    tn__free(d->memory.host);
}

static tn_status measure(decompose_data *d, tn__cuda_device *device)
{
    pthread_mutex_lock(&device->lock);
    tn_status status = tn__cuda_solver_open(device, d->library);
    if (status == TN_OK)
        status = d->kind->measure(d, device->solver, device->solver_params);
    pthread_mutex_unlock(&device->lock);
    d->memory.area[MATRICES] = (size_t)(d->count * d->m * d->n) * d->element.size;
    d->memory.area[INFO] = sizeof(int);
    d->memory.area[WORK] = d->memory.work;
    d->memory.area[PACKED] = (size_t)(d->count * d->each) * d->element.size;
    for (int i = 0; i < AREAS; i++)
        d->memory.bytes += d->memory.area[i] = (d->memory.area[i] + 255) / 256 * 256;
    d->memory.host = status == TN_OK && d->memory.host_bytes ? tn__alloc(d->memory.host_bytes) : NULL;
    bool lacking = status == TN_OK && d->memory.host_bytes && d->memory.host == NULL;
    return lacking ? tn__fail_memory("linalg", d->memory.host_bytes) : status;
}

static tn_status make_copies(decompose_data *d, tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__operand *operand = step->step->operand;
    tn__operand a = d->transposed ? tn__cuda_dense(&operand[1]) : tn__cuda_by_columns(&operand[1]),
                packed = tn__cuda_dense(&operand[0]);
    tn__cuda_step reading = *step;
    reading.overwrites = false;
    tn_status status = tn__cuda_copying_make(&d->load, &reading, device, &a, &operand[1]);
    return status == TN_OK ? tn__cuda_copying_make(&d->store, step, device, &operand[0], &packed) : status;
}

static tn_status find_kernels(tn__cuda_step *step, tn__cuda_device *device, decompose_data *d)
{
    tn_status status = tn__cuda_own_kernel(step, device, tn__cuda_text_decompose(step->step->operand[1].dtype), "lay");
    d->kernel.lay = step->function;
    if (status == TN_OK)
        status = tn__cuda_module_function(device, step->module, "lay_real", &d->kernel.lay_real);
    return status == TN_OK ? tn__cuda_module_function(device, step->module, "look", &d->kernel.look) : status;
}

static tn_status prepare_large(tn__cuda_step *step, tn__cuda_device *device, const decomposition *kind)
{
    const tn__step *s = step->step;
    const tn__operand *a = &s->operand[1];
    decompose_data *d = tn__calloc(1, sizeof *d);
    if (d == NULL)
        return tn__fail_memory("linalg", sizeof *d);
    step->data = d;
    step->free = free_decompose;
    step->start = start_decompose;
    step->opaque = step->waits = step->shares = true;
    d->library = tn__cuda_solver_library(device);
    d->kind = kind;
    if (d->library == NULL || a->ndim < 2 || a->dtype != s->operand[0].dtype)
        return tn__fail(TN_ERR_INTERNAL, "linalg", "a step that cuSOLVER cannot do");
    long long rows = a->dim[a->ndim - 2], columns = a->dim[a->ndim - 1];
    d->mode = s->param;
    d->transposed = s->op == TN__OP_SVD && rows < columns;
    d->m = d->transposed ? columns : rows;
    d->n = d->transposed ? rows : columns;
    d->k = d->m < d->n ? d->m : d->n;
    d->element.complex = a->dtype == TN_COMPLEX128;
    d->type = d->element.complex ? TN__CUSOLVER_COMPLEX : TN__CUSOLVER_REAL;
    d->element.size = tn__dtypes[a->dtype].size;
    d->each = s->operand[0].dim[a->ndim - 1];
    d->count = 1;
    for (int i = 0; i < a->ndim - 2; i++)
        d->count *= a->dim[i];
    if (d->count == 0)
        return TN_OK;
    if (d->k == 0 || d->m > INT32_MAX)
        return tn__fail(TN_ERR_UNSUPPORTED, "linalg", "takes matrices of 1 to %d rows and columns", INT32_MAX);
    tn_status status = find_kernels(step, device, d);
    if (status == TN_OK)
        status = measure(d, device);
    return status == TN_OK ? make_copies(d, step, device) : status;
}

tn_status tn__cuda_prepare_decompose(tn__cuda_step *step, tn__cuda_device *device)
{
    const decomposition *kind = decompositions;
    while (kind->op != step->step->op)
        kind++;
    step->failed = kind->failed;
    step->may_fail = step->failed != NULL;
    return tn__cuda_jacobi_takes(step->step) ? tn__cuda_prepare_jacobi(step, device)
                                             : prepare_large(step, device, kind);
}
