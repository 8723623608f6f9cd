/* SPDX-License-Identifier: MIT */
/*
 * A convolution's step by cuDNN. Operands that lie with gaps, in another order or between multiples of 16 bytes are
 * copied first, into the program's workspace, in front of what the plan wants of it. What must survive a failure of the
 * run is written by a copy that looks for one.
 */
#include "backends/cuda/convolution/convolution.h"

#include "backends/cuda/convolution/plans.h"
#include "backends/cuda/ops/moving.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

enum { TENSORS = TN__CUDNN_TENSORS };

#define ALIGNMENT 16
#define GRAIN     256 /* bytes: alignment of the parts of a workspace */

typedef struct side {
    bool direct;         /* the plan takes the operand itself, if its address is a multiple of ALIGNMENT; else its
                            copy */
    bool copied;         /* the workspace has room for a copy */
    size_t at;           /* offset of the copy in the workspace */
    tn__cuda_copying copy;
} side;

typedef struct convolution {
    tn__cudnn_problem problem;
    tn__cudnn_plan *plan;
    side side[TENSORS]; /* in the order of the step's operands */
    size_t at;          /* offset of the plan's workspace, after the copies */
} convolution;

static void free_convolution(const tn__cuda_step *step, tn__cuda_device *device)
{
    convolution *c = step->data;
    for (int k = 0; k < TENSORS; k++)
        tn__cuda_copying_free(&c->side[k].copy, device);
    if (c->plan)
        tn__cudnn_plan_give(device, c->plan);
}

static tn_status start_convolution(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const convolution *c = step->data;
    const tn__operand *operand = step->step->operand;
    CUdeviceptr place[TENSORS], buffer[TENSORS];
    bool copies[TENSORS];
    tn_status status = TN_OK;
    for (int k = 0; k < TENSORS; k++) {
        place[k] = tn__cuda_address(run, &operand[k]);
        buffer[k] = (CUdeviceptr)run->buffers[operand[k].buffer];
        copies[k] = c->side[k].copied && (!c->side[k].direct || place[k] % ALIGNMENT);
        if (copies[k])
            place[k] = run->workspace + c->side[k].at;
        if (copies[k] && k > 0 && status == TN_OK)
            status = tn__cuda_copying_start(&c->side[k].copy, run, place[k], buffer[k]);
    }
    if (status == TN_OK && !tn__cuda_patching(run) &&
        !tn__cudnn_execute(run->device, &c->problem, c->plan->plan, run->stream, place, run->workspace + c->at))
        status = tn__fail(TN_ERR_DEVICE, "convolution", "cuDNN refused to compute what it has a plan for");
    if (status == TN_OK && copies[0])
        status = tn__cuda_copying_start(&c->side[0].copy, run, buffer[0], place[0]);
    return status;
}

/* The operand as the plan takes it. */
static tn__operand own_of(const convolution *c, int k, const tn__operand *o)
{
    tn__operand own = *o;
    int more = c->problem.axes + 2 - o->ndim; /* axes that the operand lacks, of extent 1 */
    own.offset = 0;
    for (int d = 0; d < o->ndim; d++)
        own.stride[d] = c->problem.tensor[tn__cudnn_operands[c->problem.way][k]].stride[d < 2 ? d : d + more];
    return own;
}

static bool lies_well(const tn__operand *o, const tn__operand *own)
{
    for (int d = 0; d < o->ndim; d++)
        if (o->dim[d] != 1 && o->stride[d] != own->stride[d])
            return false;
    return true;
}

/* May the operand's address be unaligned? Tanso's own memory is aligned; that of others is known only when it is
 * given. */
static bool lies_anywhere(const tn__cuda_step *step, const tn__operand *o)
{
    tn__buffer_kind kind = step->program->buffer[o->buffer].kind;
    return kind == TN__BUFFER_INPUT || kind == TN__BUFFER_DONATED;
}

static tn_status place_side(tn__cuda_step *step, tn__cuda_device *device, convolution *c, int k, size_t *bytes)
{
    const tn__operand *o = &step->step->operand[k];
    side *s = &c->side[k];
    int64_t size = (int64_t)tn__dtypes[o->dtype].size;
    tn__operand own = own_of(c, k, o);
    s->direct = lies_well(o, &own) && o->offset * size % ALIGNMENT == 0 && (k > 0 || !step->overwrites);
    s->copied = !s->direct || lies_anywhere(step, o);
    if (!s->copied)
        return TN_OK;
    s->at = *bytes;
    *bytes += ((size_t)(tn__cudnn_size(&c->problem, tn__cudnn_operands[c->problem.way][k]) * size) + GRAIN - 1) /
              GRAIN * GRAIN;
    return tn__cuda_copying_make(&s->copy, step, device, k ? &own : o, k ? o : &own);
}

bool tn__cuda_convolves(tn__device *owner, const tn__step *step)
{
    tn__cuda_device *device = tn__cuda_of(owner);
    tn__cudnn_problem problem;
    bool clean = !tn__latched();
    if (!tn__cuda_dnn_library(device) || !tn__cudnn_problem_of(step, &problem))
        return false;
    tn__cudnn_plan *plan = tn__cudnn_plan_take(device, &problem);
    if (plan)
        tn__cudnn_plan_give(device, plan);
    else if (clean) /* another way computes it, or reports what is wrong */
        tn_clear_error();
    return plan != NULL;
}

bool tn__cuda_dnn_takes(const tn__cuda_device *device, tn_dtype dtype)
{
    return (dtype == TN_FLOAT32 || dtype == TN_FLOAT16 || dtype == TN_BFLOAT16) && tn__cuda_dnn_library(device);
}

bool tn__cuda_dnn_there(const tn__cuda_device *device) { return tn__cuda_dnn_library(device) != NULL; }

tn_status tn__cuda_prepare_convolution(tn__cuda_step *step, tn__cuda_device *device)
{
    convolution *c = tn__calloc(1, sizeof *c);
    if (c == NULL)
        return tn__fail_memory("convolution", sizeof *c);
    step->data = c;
    step->free = free_convolution;
    step->start = start_convolution;
    step->opaque = step->shares = true;
    bool clean = !tn__latched();
    c->plan = tn__cudnn_problem_of(step->step, &c->problem) ? tn__cudnn_plan_take(device, &c->problem) : NULL;
    if (c->plan == NULL)
        return clean && tn__latched() ? tn__error_status(tn__error_last())
                                      : tn__fail(TN_ERR_INTERNAL, "convolution", "cuDNN refuses what it has accepted");
    tn_status status = TN_OK;
    for (int k = 0; k < TENSORS && status == TN_OK; k++)
        status = place_side(step, device, c, k, &c->at);
    step->workspace = c->at + c->plan->workspace;
    return status;
}
