/* SPDX-License-Identifier: MIT */
/* What a convolution's step asks of cuDNN, and what is refused without asking. */
#include <string.h>

#include "backends/cuda/convolution/plans.h"
#include "ops/ops.h"

enum { X = TN__CUDNN_X, W = TN__CUDNN_W, Y = TN__CUDNN_Y, TENSORS = TN__CUDNN_TENSORS };

const uint8_t tn__cudnn_operands[TN__CUDNN_WAYS][TENSORS] = {
    [TN__CUDNN_RESULT] = {Y, X, W}, [TN__CUDNN_DATA] = {X, Y, W}, [TN__CUDNN_WEIGHTS] = {W, X, Y}};

/* Sets a tensor's strides: contiguous, in C order or with the channels last. */
static void lay(tn__cudnn_problem *p, int t, const tn__operand *o, bool channels_last)
{
    int more = p->axes + 2 - o->ndim;
    int64_t *dim = p->tensor[t].dim, next = channels_last ? o->dim[1] : 1;
    memcpy(dim, o->dim, sizeof *dim * 2);
    for (int i = 0; i < p->axes; i++)
        dim[2 + i] = i < more ? 1 : o->dim[2 + i - more];
    for (int d = p->axes + 2; d-- > 0;) {
        bool is_last = channels_last && d == 1;
        p->tensor[t].stride[d] = is_last ? 1 : next;
        next *= is_last ? 1 : dim[d];
    }
}

/* Padding after the data along an axis. Up to one stride of elements may lie beyond the last window, and most engines
 * want as much padding after the data as before. False if there can be none: the last rows of the data are left out
 * then. */
static bool pad(tn__cudnn_problem *p, int i)
{
    int64_t reach = (p->tensor[Y].dim[2 + i] - 1) * p->step[i] + (p->tensor[W].dim[2 + i] - 1) * p->spread[i] + 1;
    int64_t least = reach - p->tensor[X].dim[2 + i] - p->before[i], most = least + p->step[i] - 1;
    p->behind[i] = p->before[i] >= least && p->before[i] <= most ? p->before[i] : least > 0 ? least : 0;
    return p->before[i] >= 0 && p->behind[i] <= most;
}

/*
 * What cuDNN 9.14 did wrong on an H200, of 20,000 random small convolutions. Along three axes in 16 bits: gradients by
 * the weights of groups, in a third of all shapes; and a division by zero, which ends the process, when it is asked for
 * engines, with paddings that differ and taps that are spread. In float16 along one axis, where paddings differ:
 * three gradients by the data of 4,400 convolutions. Kernels of the library's own compute these.
 */
static bool is_trusted(const tn__cudnn_problem *p)
{
    bool even = true, dense = true;
    for (int i = 0; i < p->axes; i++) {
        even = even && p->before[i] == p->behind[i];
        dense = dense && p->spread[i] == 1;
    }
    if (p->axes == TN__CUDNN_AXES && (!even || !dense || (p->way == TN__CUDNN_WEIGHTS && p->groups > 1)))
        return false;
    return even || p->dtype == TN_FLOAT32 || p->way != TN__CUDNN_DATA;
}

bool tn__cudnn_problem_of(const tn__step *step, tn__cudnn_problem *p)
{
    int given = (step->param_count - 1) / 3, more = given < 2;
    tn_dtype dtype = step->operand[0].dtype;
    if ((dtype != TN_FLOAT32 && dtype != TN_FLOAT16 && dtype != TN_BFLOAT16) || given > TN__CUDNN_AXES)
        return false;
    memset(p, 0, sizeof *p);
    p->way = (tn__cudnn_way)(step->op - TN__OP_CONVOLVE);
    p->dtype = dtype;
    p->tf32 = dtype == TN_FLOAT32 && step->convolution.precision == TN_MATMUL_TF32;
    /* Among engines for weights are some that round factors to TF32 and do not say so: of cuDNN 9.14 on an H200, by
     * errors of 6e-4 and 96 TFLOP/s. */
    if (p->way == TN__CUDNN_WEIGHTS && dtype == TN_FLOAT32 && !p->tf32)
        return false;
    p->axes = given + more;
    p->groups = step->param[0];
    p->step[0] = p->spread[0] = 1;
    for (int k = 0; k < TENSORS; k++)
        lay(p, tn__cudnn_operands[p->way][k], &step->operand[k], step->convolution.channels_last);
    for (int i = 0; i < given; i++) {
        const int64_t *window = &step->param[1 + 3 * i];
        p->step[more + i] = window[0];
        p->spread[more + i] = p->tensor[W].dim[2 + more + i] > 1 ? window[1] : 1; /* of a single tap it says nothing */
        p->before[more + i] = window[2];
    }
    for (int i = 0; i < p->axes; i++)
        if (!pad(p, i))
            return false;
    return is_trusted(p);
}

int64_t tn__cudnn_size(const tn__cudnn_problem *p, int t)
{
    int64_t size = 1;
    for (int d = 0; d < p->axes + 2; d++)
        size *= p->tensor[t].dim[d];
    return size;
}

double tn__cudnn_operations(const tn__cudnn_problem *p)
{
    return 2.0 * (double)tn__cudnn_size(p, Y) * (double)(tn__cudnn_size(p, W) / p->tensor[W].dim[0]);
}
