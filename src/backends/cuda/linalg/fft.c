/* SPDX-License-Identifier: MIT */
/*
 * Fourier transforms of the last axis by cuFFT. It takes an operand where it lies if one distance leads from each row
 * to the next; others are gathered first, and so are those of transforms to real numbers, which overwrite them; in the
 * copy, imaginary parts that the transform of a real signal cannot have (of numbers that are their own conjugates) are
 * set to 0. Donated memory, which must survive a failure of the run, is written by a copy that checks for one.
 */
#include "backends/cuda/linalg/library.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"
#include "tn_embed.h"

typedef struct side {
    long long step, distance;     /* strides along a row, and from row to row */
    bool direct;                  /* used in place; else copied to or from memory of the step's own */
    tn__cuda_copying copy;
    CUdeviceptr memory;
} side;

/* cuFFT's names of an operation in single and in double precision. */
typedef struct transform {
    int op, type[2];
} transform;

static const transform transforms[] = {
    {TN__OP_FFT, {TN__CUFFT_C2C, TN__CUFFT_Z2Z}},
    {TN__OP_RFFT, {TN__CUFFT_R2C, TN__CUFFT_D2Z}},
    {TN__OP_IRFFT, {TN__CUFFT_C2R, TN__CUFFT_Z2D}},
};

typedef struct fft_data {
    const tn__cufft *library;
    int plan, type, direction;
    bool planned;                 /* a plan has been made */
    long long rows, last;         /* transforms to real numbers: the index of the last number, if it is its own
                                     conjugate, else 0 */
    side side[2];                 /* output, input */
    void *memory;                 /* memory of both sides' copies, then cuFFT's workspace */
    size_t bytes;
} fft_data;

static tn_status check(int result, const char *what)
{
    return result == 0 ? TN_OK : tn__fail(TN_ERR_DEVICE, "fft", "cuFFT's %s failed with status %d", what, result);
}

char *tn__cuda_text_fft(bool wide)
{
    return tn__format("typedef %s R;\n%s%s", wide ? "double" : "float", tn__cuda_walk_text,
                      (const char *)tn__embed_cuda_ends);
}

static void free_fft(const tn__cuda_step *step, tn__cuda_device *device)
{
    fft_data *data = step->data;
    if (data->planned)
        data->library->cufftDestroy(data->plan);
    for (int i = 0; i < 2; i++)
        tn__cuda_copying_free(&data->side[i].copy, device);
    if (data->memory)
        tn__device_release(device->owner, data->memory, data->bytes);
}

static tn_status execute(fft_data *data, const tn__cuda_run *run, CUdeviceptr to, CUdeviceptr from)
{
    tn_status status = check(data->library->cufftSetStream(data->plan, run->stream), "choice of a stream");
    if (status != TN_OK)
        return status;
    const tn__cufft *library = data->library;
    void *in = (void *)from, *out = (void *)to;
    int result = data->type == TN__CUFFT_C2C   ? library->cufftExecC2C(data->plan, in, out, data->direction)
                 : data->type == TN__CUFFT_Z2Z ? library->cufftExecZ2Z(data->plan, in, out, data->direction)
                 : data->type == TN__CUFFT_R2C ? library->cufftExecR2C(data->plan, in, out)
                 : data->type == TN__CUFFT_D2Z ? library->cufftExecD2Z(data->plan, in, out)
                 : data->type == TN__CUFFT_C2R ? library->cufftExecC2R(data->plan, in, out)
                                               : library->cufftExecZ2D(data->plan, in, out);
    return check(result, "transform");
}

static tn_status start_fft(const tn__cuda_step *step, const tn__cuda_run *run)
{
    fft_data *data = step->data;
    const tn__operand *operand = step->step->operand;
    CUdeviceptr buffer[2], address[2];
    for (int i = 0; i < 2; i++) {
        buffer[i] = (CUdeviceptr)run->buffers[operand[i].buffer];
        address[i] = data->side[i].direct ? tn__cuda_address(run, &operand[i]) : data->side[i].memory;
    }
    tn_status status = TN_OK;
    if (!data->planned) /* there are no elements */
        return status;
    if (!data->side[1].direct)
        status = tn__cuda_copying_start(&data->side[1].copy, run, data->side[1].memory, buffer[1]);
    void *params[] = {&data->side[1].memory, &data->rows, &data->side[1].distance, &data->last};
    if (status == TN_OK && step->step->op == TN__OP_IRFFT)
        status = tn__cuda_start(run, step->function, data->rows, params, "fft");
    if (status == TN_OK && !tn__cuda_patching(run))
        status = execute(data, run, address[0], address[1]);
    if (status == TN_OK && !data->side[0].direct)
        status = tn__cuda_copying_start(&data->side[0].copy, run, buffer[0], data->side[0].memory);
    return status;
}

/* Decides whether cuFFT can use the operand in place; else prepares a copy to or from memory. */
static tn_status place_side(tn__cuda_step *step, tn__cuda_device *device, fft_data *data, int i)
{
    const tn__operand *operand = &step->step->operand[i];
    side *at = &data->side[i];
    int last = operand->ndim - 1;
    tn__cuda_walk rows;
    tn__cuda_walk_make(&rows, ~(1u << last), operand->ndim, operand->dim, 1, (const int64_t *const[]){operand->stride});
    at->step = operand->dim[last] > 1 ? operand->stride[last] : 1;
    at->distance = rows.ndim ? rows.stride[0][0] : 1;
    bool kept = i == 0 ? !step->overwrites : step->step->op != TN__OP_IRFFT, single = rows.size <= 1;
    /* rows of real numbers have to begin at addresses that are aligned for complex ones */
    bool real = !tn_dtype_is_complex((tn_dtype)operand->dtype);
    bool pairs = !real || (at->step == 1 && operand->offset % 2 == 0 && (single || at->distance % 2 == 0));
    at->direct = rows.ndim < 2 && at->step > 0 && at->distance > 0 && kept && pairs;
    if (at->direct)
        return TN_OK;
    at->step = 1;
    at->distance = operand->dim[last] + (real ? operand->dim[last] % 2 : 0);
    tn__operand own = tn__cuda_dense(operand);
    for (int64_t d = last - 1, reach = at->distance; d >= 0; d--) {
        own.stride[d] = reach;
        reach *= operand->dim[d];
    }
    return tn__cuda_copying_make(&at->copy, step, device, i ? &own : operand, i ? operand : &own);
}

static tn_status make_plan(fft_data *data, tn__cuda_device *device, const tn__operand *operand, long long n,
                           long long rows)
{
    const tn__cufft *library = data->library;
    const side *out = &data->side[0], *in = &data->side[1];
    size_t own = 0, bytes[2];
    tn_status status = check(library->cufftCreate(&data->plan), "start");
    data->planned = status == TN_OK;
    if (status == TN_OK)
        status = check(library->cufftSetAutoAllocation(data->plan, 0), "preparation");
    long long extent[1] = {n};
    if (status == TN_OK)
        status = check(library->cufftMakePlanMany64(data->plan, 1, extent, extent, in->step, in->distance, extent,
                                                    out->step, out->distance, data->type, rows, &own), "plan");
    if (status != TN_OK)
        return status;
    for (int i = 0; i < 2; i++) {
        size_t size = (size_t)(data->side[i].distance * rows) * tn__dtypes[operand[i].dtype].size;
        data->bytes += bytes[i] = data->side[i].direct ? 0 : (size + 255) / 256 * 256;
    }
    data->bytes += own;
    data->memory = data->bytes ? tn__device_allocate(device->owner, data->bytes) : NULL;
    if (data->bytes && data->memory == NULL)
        return tn__error_status(tn__error_last());
    CUdeviceptr at = (CUdeviceptr)data->memory;
    for (int i = 0; i < 2; i++) {
        data->side[i].memory = at;
        at += bytes[i];
    }
    return own ? check(library->cufftSetWorkArea(data->plan, (void *)at), "memory") : TN_OK;
}

bool tn__cuda_fft_takes(const tn__cuda_device *device, tn_dtype dtype)
{
    tn_dtype real = tn__dtypes[dtype].component;
    return (real == TN_FLOAT32 || real == TN_FLOAT64) && tn__cuda_fft_library(device);
}

tn_status tn__cuda_prepare_fft(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    fft_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("fft", sizeof *data);
    step->data = data;
    step->free = free_fft;
    step->start = start_fft;
    step->opaque = true;
    data->library = tn__cuda_fft_library(device);
    const tn__operand *whole = &s->operand[s->op == TN__OP_RFFT]; /* the operand that has the transform's length */
    bool wide = tn__dtypes[whole->dtype].component == TN_FLOAT64;
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++)
        if (transforms[i].op == s->op)
            data->type = transforms[i].type[wide];
    data->direction = s->param_count > 0 && s->param[0] ? TN__CUFFT_INVERSE : TN__CUFFT_FORWARD;
    long long n = whole->ndim ? whole->dim[whole->ndim - 1] : 0, rows = 1;
    for (int d = 0; d < whole->ndim - 1; d++)
        rows *= whole->dim[d];
    if (n == 0 || rows == 0)
        return TN_OK;
    const tn__operand *other = &s->operand[whole == s->operand];
    long long half = data->type == TN__CUFFT_C2C || data->type == TN__CUFFT_Z2Z ? n : n / 2 + 1;
    if (data->library == NULL || data->type == 0 || s->operand_count != 2 || other->dim[other->ndim - 1] != half)
        return tn__fail(TN_ERR_INTERNAL, "fft", "a step of %d operands that cuFFT cannot do", s->operand_count);
    data->rows = rows;
    data->last = n % 2 ? 0 : n / 2;
    tn_status status = s->op == TN__OP_IRFFT ? tn__cuda_own_kernel(step, device, tn__cuda_text_fft(wide), "ends")
                                                  : TN_OK;
    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = place_side(step, device, data, i);
    return status == TN_OK ? make_plan(data, device, s->operand, n, rows) : status;
}
