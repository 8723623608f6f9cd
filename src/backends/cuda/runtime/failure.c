/* SPDX-License-Identifier: MIT */
/*
 * Failures of asynchronous runs: an index out of range.
 *
 * A kernel that meets one sets the latch, a word on the device, and, if it is the first, describes it in the report,
 * which lies in host memory. From then on, kernels that overwrite donated memory do nothing: memory that runs overwrite
 * in place stays as the failing run found it, however many runs the host has started in the meantime. The host looks at
 * the report, which costs it nothing, when it starts a run, and after it has waited; then it marks the results of the
 * failing run and of later ones as poisoned, clears the latch and fails with the message. Other runs may be side by
 * side on several streams; a run that may fail comes after all earlier and before all later runs that overwrite donated
 * memory.
 */
#include <string.h>

#include "backends/cuda/runtime/cuda.h"

static void close_failures(tn__cuda_device *device)
{
    if (device->latch)
        device->driver->cuMemFree(device->latch);
    if (device->report)
        device->driver->cuMemFreeHost((void *)device->report);
    device->latch = 0;
    device->report = NULL;
}

tn_status tn__cuda_failures_open(tn__cuda_device *device)
{
    const tn__cuda_driver *driver = device->driver;
    void *report = NULL;
    tn_status status = tn__cuda_check(device, driver->cuMemAlloc(&device->latch, sizeof(uint64_t)), "open");
    if (status == TN_OK)
        status = tn__cuda_check(device, driver->cuMemAllocHost(&report, TN__CUDA_REPORT_WORDS * sizeof(int64_t)),
                                "open");
    if (status == TN_OK) {
        memset(report, 0, TN__CUDA_REPORT_WORDS * sizeof(int64_t));
        device->report = report;
        status = tn__cuda_check(device,
                                driver->cuMemsetD8Async(device->latch, 0, sizeof(uint64_t), device->stream), "open");
    }
    if (status != TN_OK)
        close_failures(device);
    return status;
}

tn__cuda_failure tn__cuda_failure_of(const tn__cuda_step *step, const tn__cuda_run *run)
{
    tn__cuda_failure failure = run->failure;
    failure.guard = tn__cuda_guard(step, run);
    failure.who |= (unsigned long long)step->number;
    return failure;
}

static bool reported(const tn__cuda_device *device)
{
    return __atomic_load_n(&device->report[TN__CUDA_REPORT_SET], __ATOMIC_ACQUIRE) != 0;
}

void tn__cuda_settle(tn__cuda_device *device)
{
    if (!reported(device))
        return;
    uint64_t who = (uint64_t)device->report[TN__CUDA_REPORT_WHO];
    int64_t operand = device->report[TN__CUDA_REPORT_OPERAND], index = device->report[TN__CUDA_REPORT_INDEX];
    tn__error *error = device->failure_of ? device->failure_of(device, who, operand, index) : NULL;
    if (!error)
        error = tn__error_record(TN_ERR_INDEX, "cuda", "index %lld is out of range", (long long)index);
    tn__device_poison(device->owner, (uint64_t)device->report[TN__CUDA_REPORT_RUN], error);
    if (device->failure)
        tn__error_release(error);
    else
        device->failure = error;
    device->report[TN__CUDA_REPORT_SET] = 0;
    device->driver->cuMemsetD8Async(device->latch, 0, sizeof(uint64_t), tn__cuda_stream(device));
    tn__cuda_asked(device);
    tn__use_end(device->owner, &device->latched, true);
}

/* Waits for the failing run and those after it before it reports the failure: what they do must not mix with later
 * work. */
tn_status tn__cuda_look(tn__cuda_device *device)
{
    if (!reported(device) && !__atomic_load_n(&device->failure, __ATOMIC_RELAXED))
        return TN_OK;
    pthread_mutex_lock(&device->lock);
    tn_status status = TN_OK;
    bool waits = reported(device);
    if (waits) {
        status = tn__cuda_flush(device); /* runs that are held back still find the latch set */
        if (status == TN_OK)
            status = tn__cuda_check(device, tn__cuda_finish(device), "run");
        if (status == TN_OK)
            tn__cuda_settle(device);
    }
    tn__error *failure = __atomic_exchange_n(&device->failure, NULL, __ATOMIC_ACQ_REL);
    pthread_mutex_unlock(&device->lock);
    if (failure) {
        status = tn__error_raise(failure);
        tn__error_release(failure);
    }
    if (waits) /* a forbidden wait is reported after the failure, which is the call's error even so */
        (void)tn__cuda_may_wait(device, "an index was out of range");
    return status;
}
