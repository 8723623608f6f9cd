/* SPDX-License-Identifier: MIT */
/* COPY, CONST and MATMUL as launches of operations.cl, whose tables of words are filled in here. */
#include "backends/opencl/opencl.h"

#include <string.h>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"

#define THREADS 64
#define AXES    TN_MAX_NDIM /* 8, as in operations.cl */

/* Indices of the words of a table, as in operations.cl. */
enum { TO, FROM, VALUE, COPY_AXES, COPY_COUNT, COPY_EXTENT, TO_STRIDE = COPY_EXTENT + AXES,
       FROM_STRIDE = TO_STRIDE + AXES, COPY_WORDS = FROM_STRIDE + AXES };
enum { OUT, A, B, ALPHA, BETA, PRODUCT_AXES, PRODUCT_COUNT, ROWS, COLUMNS, DEPTH, ALONG, PRODUCT_EXTENT = ALONG + 6,
       OUT_STRIDE = PRODUCT_EXTENT + AXES, A_STRIDE = OUT_STRIDE + AXES, B_STRIDE = A_STRIDE + AXES,
       PRODUCT_WORDS = B_STRIDE + AXES };
_Static_assert((int)COPY_WORDS <= TN__CL_OPERATION_WORDS && (int)PRODUCT_WORDS <= TN__CL_OPERATION_WORDS, "tables");

bool tn__cl_supports(tn__device *device, int op, tn_dtype dtype, const tn__shape *shape)
{
    (void)device, (void)shape;
    return op == TN__OP_COPY || op == TN__OP_CONST || (op == TN__OP_MATMUL && !tn_dtype_is_complex(dtype));
}

tn_status tn__cl_prepare_operation(tn__cl_device *device, const tn__step *step, cl_kernel *kernel)
{
    tn_dtype dtype = step->operand[0].dtype;
    if (!tn__cl_supports(NULL, step->op, dtype, NULL))
        return tn__fail(TN_ERR_UNSUPPORTED, step->label ? step->label : "opencl",
                        "%s does not compute it for %s: move the operands to the CPU with tn_to", device->name,
                        tn_dtype_name(dtype));
    return tn__cl_operation_kernel(device, step->op == TN__OP_MATMUL ? "tn_matmul" : "tn_copy", dtype, kernel);
}

int tn__cl_operation_launches(const tn__step *step) { return step->op == TN__OP_MATMUL ? 1 : step->output_count; }

static uint64_t address(const tn__operand *o, void *const *buffers)
{
    return (uint64_t)(uintptr_t)buffers[o->buffer] + (uint64_t)(o->offset * (int64_t)tn__dtypes[o->dtype].size);
}

/* Window k of a step: of an input, or filled with a scalar. */
static int64_t copy(const tn__step *step, int k, void *const *buffers, const uint64_t *scalars, uint64_t *w)
{
    int inputs = step->operand_count - step->output_count;
    const tn__operand *to = &step->operand[k], *from = k < inputs ? &step->operand[step->output_count + k] : NULL;
    int64_t count = 1;
    w[TO] = address(to, buffers);
    w[FROM] = from ? address(from, buffers) : 0;
    w[VALUE] = from ? 0 : scalars[step->scalar[k - inputs]];
    w[COPY_AXES] = (uint64_t)to->ndim;
    for (int d = 0; d < to->ndim; d++) {
        count *= to->dim[d];
        w[COPY_EXTENT + d] = (uint64_t)to->dim[d];
        w[TO_STRIDE + d] = (uint64_t)to->stride[d];
        w[FROM_STRIDE + d] = from ? (uint64_t)from->stride[d] : 0;
    }
    w[COPY_COUNT] = (uint64_t)count;
    return count;
}

static uint64_t alpha_of(const tn__program *program, const tn__step *step, const uint64_t *scalars)
{
    bool whole = !tn_dtype_is_float(step->operand[0].dtype);
    tn_dtype dtype = step->product.alpha < 0 ? TN_INT64 : program->scalar_dtype[step->product.alpha];
    tn__scalar scalar = step->product.alpha < 0 ? tn__scalar_from_int(1, TN_INT64) : (tn__scalar){0};
    if (step->product.alpha >= 0)
        memcpy(&scalar, &scalars[step->product.alpha], sizeof(uint64_t));
    int64_t integer = whole ? tn__scalar_to_int(scalar, dtype) : 0;
    double real = whole ? 0 : tn__scalar_to_double(scalar, dtype);
    real = step->product.negate_alpha ? -real : real;
    uint64_t bits = (uint64_t)(step->product.negate_alpha ? -integer : integer);
    if (!whole)
        memcpy(&bits, &real, sizeof bits);
    return bits;
}

static int64_t product(const tn__program *program, const tn__step *step, void *const *buffers,
                       const uint64_t *scalars, uint64_t *w)
{
    const tn__operand *o = step->operand;
    int batches = o[OUT].ndim - 2;
    int64_t count = o[OUT].dim[batches] * o[OUT].dim[batches + 1];
    w[ROWS] = (uint64_t)o[OUT].dim[batches];
    w[COLUMNS] = (uint64_t)o[OUT].dim[batches + 1];
    w[DEPTH] = (uint64_t)o[A].dim[batches + 1];
    w[ALPHA] = alpha_of(program, step, scalars);
    w[BETA] = (uint64_t)step->product.beta;
    w[PRODUCT_AXES] = (uint64_t)batches;
    for (int i = OUT; i <= B; i++) {
        w[i] = address(&o[i], buffers);
        w[ALONG + 2 * i] = (uint64_t)o[i].stride[batches];
        w[ALONG + 2 * i + 1] = (uint64_t)o[i].stride[batches + 1];
        for (int d = 0; d < batches; d++)
            w[OUT_STRIDE + AXES * i + d] = (uint64_t)o[i].stride[d];
    }
    for (int d = 0; d < batches; d++) {
        w[PRODUCT_EXTENT + d] = (uint64_t)o[OUT].dim[d];
        count *= o[OUT].dim[d];
    }
    w[PRODUCT_COUNT] = (uint64_t)count;
    return count;
}

void tn__cl_operation_launch(const tn__program *program, const tn__step *step, int i, void *const *buffers,
                             const uint64_t *scalars, tn__cl_launch *launch)
{
    int64_t count = step->op == TN__OP_MATMUL ? product(program, step, buffers, scalars, launch->words)
                                              : copy(step, i, buffers, scalars, launch->words);
    launch->threads = THREADS;
    launch->blocks = (size_t)(count + THREADS - 1) / THREADS;
    launch->shared = 0;
}
