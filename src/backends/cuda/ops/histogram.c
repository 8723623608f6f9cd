/* SPDX-License-Identifier: MIT */
/* HISTOGRAM on a GPU, by the kernels of histogram.cuh. */
#include "backends/cuda/ops/sort_scan.h"
#include "core/error.h"
#include "core/memory.h"

enum { FEW_BINS = 2048, THREADS = 256, OF_A_THREAD = 16, MOST_BLOCKS = 1056 };

typedef struct histogram_work {
    CUdeviceptr edges, from, to;
    long long n, bins, edges_step, from_step, to_step;
    CUdeviceptr guard;
} histogram_work;

typedef struct histogram_data {
    histogram_work work;
    CUfunction clear;
} histogram_data;

static tn_status start_histogram(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__operand *operand = step->step->operand;
    const histogram_data *data = step->data;
    histogram_work work = data->work;
    work.to = tn__cuda_address(run, &operand[0]);
    work.edges = tn__cuda_address(run, &operand[1]);
    work.from = tn__cuda_address(run, &operand[2]);
    work.guard = tn__cuda_guard(step, run);
    void *params[] = {&work};
    tn_status status = work.bins ? tn__cuda_start(run, data->clear, work.bins, params, "histogram") : TN_OK;
    int64_t blocks = (work.n + THREADS * OF_A_THREAD - 1) / (THREADS * OF_A_THREAD);
    if (status != TN_OK || blocks == 0 || work.bins == 0)
        return status;
    return tn__cuda_launch(run, step->function, blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, THREADS, 0, params,
                           "histogram");
}

tn_status tn__cuda_prepare_histogram(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__operand *operand = step->step->operand;
    if (step->step->operand_count != 3 || operand[0].ndim != 1 || operand[2].ndim != 1)
        return tn__fail(TN_ERR_INTERNAL, "histogram", "a step of %d operands and %d axes", step->step->operand_count,
                        operand[0].ndim);
    histogram_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("histogram", sizeof *data);
    step->data = data;
    step->start = start_histogram;
    data->work = (histogram_work){.n = operand[2].dim[0], .bins = operand[0].dim[0], .edges_step = operand[1].stride[0],
                                  .from_step = operand[2].stride[0], .to_step = operand[0].stride[0]};
    tn_status status = tn__cuda_own_kernel(step, device, tn__cuda_text_histogram(operand[1].dtype),
                                           data->work.bins <= FEW_BINS ? "histogram" : "histogram_many");
    return status == TN_OK ? tn__cuda_module_function(device, step->module, "histogram_clear", &data->clear) : status;
}
