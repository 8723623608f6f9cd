/* SPDX-License-Identifier: MIT */
/* tn__cuda_failure as kernels see it, and reporting a failure: the first thread to set the latch describes it. */
struct tn_failure { unsigned long long guard, latch, report, run, who; };
static __device__ __noinline__ void tn_fail(const tn_failure *f, long long operand, long long index)
{
    if (atomicCAS((unsigned long long *)f->latch, 0ull, 1ull) == 0) {
        volatile long long *report = (volatile long long *)f->report;
        report[1] = (long long)f->run;
        report[2] = (long long)f->who;
        report[3] = operand;
        report[4] = index;
        __threadfence_system();
        report[0] = 1;
    }
}
