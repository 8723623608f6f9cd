/* SPDX-License-Identifier: MIT */
/*
 * What the files of the CPU backend share. A loaded program is a list of steps, each with the function that runs it and
 * the data that its preparation computed. Nothing in it changes while it runs, so several threads may run one
 * executable at once.
 */
#ifndef TN_BACKENDS_CPU_BASE_STEP_H
#define TN_BACKENDS_CPU_BASE_STEP_H

#include "backends/cpu/functions/operations.h"
#include "backends/cpu/base/strided.h"
#include "backends/cpu/functions/functions.h"
#include "device/program.h"

extern const tn__backend tn__backend_cpu;

typedef struct tn__cpu_step tn__cpu_step;
typedef tn_status (*tn__cpu_runner)(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars);

struct tn__cpu_step {
    tn__cpu_runner run;
    const tn__step *step;
    const tn__program *program;
    void *data; /* data of the step's preparation: one allocation, freed with tn__free */
    void (*drop)(void *data); /* called before that to free what `data` refers to; may be NULL */
};

/* Preparation by kind of operation: sets run and data. Latches what is wrong with the step. */
tn_status tn__cpu_prepare_map(tn__cpu_step *step);
tn_status tn__cpu_prepare_move(tn__cpu_step *step);
tn_status tn__cpu_prepare_generate(tn__cpu_step *step);
tn_status tn__cpu_prepare_reduce(tn__cpu_step *step);
tn_status tn__cpu_prepare_position(tn__cpu_step *step);
tn_status tn__cpu_prepare_gather(tn__cpu_step *step);
tn_status tn__cpu_prepare_scatter(tn__cpu_step *step);
tn_status tn__cpu_prepare_sort_scan(tn__cpu_step *step);
tn_status tn__cpu_prepare_histogram(tn__cpu_step *step); /* a row operation whose result has as many elements as
                                                            there are bins */
tn_status tn__cpu_prepare_library(tn__cpu_step *step);
tn_status tn__cpu_prepare_matmul(tn__cpu_step *step);
tn_status tn__cpu_prepare_convolution(tn__cpu_step *step);
tn_status tn__cpu_prepare_recurrence(tn__cpu_step *step, bool back); /* back: the gradient */
/* Prepares an operation step: checks its operands and calls one of the functions above. */
tn_status tn__cpu_prepare_operation(tn__cpu_step *step);

/* Prepares a kernel step of a loaded module. */
struct tn__cpu_module;
tn_status tn__cpu_prepare_kernel(tn__cpu_step *step, const struct tn__cpu_module *module);

/* Address of an operand's element 0. */
static inline char *tn__cpu_address(const tn__operand *operand, size_t itemsize, void *const *buffers)
{
    return (char *)buffers[operand->buffer] + operand->offset * (int64_t)itemsize;
}
/* Addresses of a step's first `count` operands. */
void tn__cpu_addresses(const tn__cpu_step *step, int count, void *const *buffers, char **address);
/* Copies operand 1 of a space to operand 0, converting; size: bytes of an element where both are of one dtype, else
 * 0. */
void tn__cpu_move(const tn__cpu_space *space, tn__cpu_cast cast, int64_t size, char *const *base);
/* TN_ERR_UNSUPPORTED: there is no such operation in the step's compute dtype. */
tn_status tn__cpu_no_such_operation(const tn__cpu_step *step);

#endif
