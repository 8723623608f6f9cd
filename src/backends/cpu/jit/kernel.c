/* SPDX-License-Identifier: MIT */
/* Kernel steps: each thread runs the compiled code over its share of the items. */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/step.h"
#include "backends/cpu/jit/module.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/position.h"

#define FEW 64 /* most operands for which addresses are on the stack */

typedef struct kernel_data {
    tn__cpu_kernel kernel;
} kernel_data;

typedef struct kernel_run {
    tn__cpu_kernel kernel;
    const tn__step *step;
    void *const *p;
    const uint64_t *s;
    _Atomic bool faulted;
    int64_t fault[2];       /* fault of the first thread that had one */
} kernel_run;

/*
 * gcc's -O1 leaves values in the upper halves of vector registers. Until those are cleared, instructions for the lower
 * ones wait for what was there before: this library's loops over float64, which know no more than SSE2, took 2.8 times
 * as long on an AVX-512 EPYC, and so would the program's own code.
 */
static void clear_upper_halves(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroupper" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                         "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

static void kernel_part(void *context, int64_t begin, int64_t end)
{
    kernel_run *run = context;
    int64_t fault[2] = {0, 0};
    run->kernel(run->p, run->step->param, run->s, begin, end, fault);
    clear_upper_halves();
    if (fault[0] && !atomic_exchange(&run->faulted, true))
        memcpy(run->fault, fault, sizeof fault);
}

static tn_status kernel_fault(const tn__step *step, const int64_t *fault)
{
    const tn__operand *operand = &step->operand[fault[0] - 1];
    int64_t extent = operand->ndim ? operand->dim[operand->ndim - 1] : 0;
    char text[TN__POSITION_TEXT];
    return tn__fail(TN_ERR_INDEX, step->label ? step->label : step->kernel.name, "%s",
                    tn__position_met(text, fault[1], "", extent));
}

static tn_status kernel_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    const tn__step *s = step->step;
    void *few_pointers[FEW], **p = few_pointers;
    void *many = NULL;
    if (s->operand_count > FEW) {
        size_t bytes = s->operand_count * sizeof(*p);
        many = tn__alloc(bytes);
        if (many == NULL)
            return tn__fail_memory(s->kernel.name, bytes);
        p = many;
    }
    for (int k = 0; k < s->operand_count; k++)
        p[k] = buffers[s->operand[k].buffer];

    const kernel_data *data = step->data;
    kernel_run run = {.kernel = data->kernel, .step = s, .p = p, .s = scalars};
    tn__cpu_for(s->kernel.items, s->kernel.item_cost, kernel_part, &run);
    tn__free(many);
    return run.faulted ? kernel_fault(s, run.fault) : TN_OK;
}

tn_status tn__cpu_prepare_kernel(tn__cpu_step *step, const tn__cpu_module *module)
{
    kernel_data *data = tn__calloc(1, sizeof(*data));
    if (data == NULL)
        return tn__fail_memory(step->step->kernel.name, sizeof(*data));
    data->kernel = tn__cpu_module_kernel(module, step->step->kernel.name);
    step->data = data;
    step->run = kernel_run_step;
    return TN_OK;
}
