/* SPDX-License-Identifier: MIT */
/* Steps computed by libraries: one call for each matrix (or row), one after another or divided among threads. */
#include "backends/cpu/linalg/library.h"

#include <limits.h>
#include <stdatomic.h>

#include "backends/cpu/base/parallel.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"

typedef struct library_run {
    tn__library *library;
    char *base[3];
    _Atomic int info;
    _Atomic bool no_memory;
} library_run;

static void run_places(void *context, int64_t begin, int64_t end)
{
    library_run *run = context;
    tn__carver memory = {.base = tn__alloc(run->library->scratch)};
    if (!memory.base) {
        run->no_memory = true;
        return;
    }
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &run->library->places, run->base, begin);
    for (; begin < end && run->info == 0; begin++) {
        memory.used = 0;
        int info = run->library->function(run->library, at.p, &memory);
        if (info)
            run->info = info;
        tn__cpu_cursor_move(&at, 1);
    }
    tn__free(memory.base);
}

static tn_status run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const char *name = tn__cpu_ops[step->step->op].name;
    library_run run = {.library = step->data};
    tn__cpu_addresses(step, step->step->operand_count, buffers, run.base);
    if (run.library->serial)
        run_places(&run, 0, run.library->places.size);
    else
        tn__cpu_for(run.library->places.size, run.library->cost, run_places, &run);
    if (run.no_memory)
        return tn__fail_memory(name, run.library->scratch);
    if (run.info)
        return tn__fail(TN_ERR_VALUE, name, "%s", run.library->failed);
    return TN_OK;
}

static tn__matrix_layout layout_of(const tn__operand *o)
{
    int64_t size = tn__dtypes[o->dtype].size;
    bool matrix = o->ndim > 1;
    return (tn__matrix_layout){matrix ? o->dim[o->ndim - 2] : 1, o->dim[o->ndim - 1],
                               matrix ? o->stride[o->ndim - 2] * size : 0, o->stride[o->ndim - 1] * size};
}

/* The table of an operation's functions; NULL: this build has none. *rows: the operation is of the last axis alone (a
 * Fourier transform). */
static const tn__library_functions *functions_of(int op, bool *rows)
{
    const tn__library_functions *functions = tn__fft_functions(op);
    *rows = functions != NULL;
    return functions ? functions : tn__lapack_functions(op);
}

/* Allocates a step's data, followed by the plan of a Fourier transform; NULL without memory, which is latched. */
static tn__library *library_new(const tn__step *s, bool rows)
{
    const char *name = tn__cpu_ops[s->op].name;
    size_t head = (sizeof(tn__library) + 15) / 16 * 16;
    const tn__operand *whole = &s->operand[s->op == TN__OP_RFFT]; /* the operand that has the transform's length */
    int64_t n = whole->dim[whole->ndim - 1];
    bool real = !tn_dtype_is_complex((tn_dtype)whole->dtype);
    tn_dtype numbers = tn__dtype_to_complex((tn_dtype)whole->dtype);
    size_t bytes = head + (rows ? tn__fft_plan_bytes(n, real, numbers) : 0);
    tn__library *library = tn__calloc(1, bytes);
    if (library && rows) {
        library->plan = (tn__fft_plan *)((char *)library + head);
        if (!tn__fft_plan_make(library->plan, n, real, numbers)) {
            tn__free(library);
            library = NULL;
        }
    }
    if (!library)
        tn__fail_memory(name, bytes);
    return library;
}

/* Describes the layout of the operands' matrices or rows, and the loop over all other axes. */
static tn_status lay_out(tn__library *library, const tn__step *s, bool rows)
{
    int64_t itemsize[3];
    const int64_t *strides[3];
    for (int k = 0; k < s->operand_count; k++) {
        tn__matrix_layout *layout = &library->layout[k];
        *layout = layout_of(&s->operand[k]);
        itemsize[k] = tn__dtypes[s->operand[k].dtype].size;
        strides[k] = s->operand[k].stride;
        if (layout->rows > INT_MAX || layout->columns > INT_MAX)
            return tn__fail(TN_ERR_UNSUPPORTED, tn__cpu_ops[s->op].name, "takes extents up to %d", INT_MAX);
        library->cost += 16 * layout->rows * layout->columns;
        layout->rows = rows ? 1 : layout->rows;
    }
    int axes = s->operand[0].ndim, inner = rows || axes < 2 ? 1 : 2;
    uint32_t leading = (1u << (axes - inner)) - 1;
    tn__cpu_space_make(&library->places, leading, axes, s->operand[0].dim, s->operand_count, strides, itemsize);
    return TN_OK;
}

tn_status tn__cpu_prepare_library(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    bool rows;
    const tn__library_functions *functions = functions_of(s->op, &rows);
    if (!functions)
        return tn__fail(
            TN_ERR_UNSUPPORTED, tn__cpu_ops[s->op].name,
            "needs LAPACK, which this build has not: install the package libopenblas-dev (or liblapack-dev) and "
            "build again");
    if (!functions->of[s->compute])
        return tn__cpu_no_such_operation(step);
    tn__library *library = library_new(s, rows);
    tn_status status = library ? lay_out(library, s, rows) : TN_ERR_MEMORY;
    if (status != TN_OK) {
        tn__free(library);
        return status;
    }
    library->function = functions->of[s->compute];
    library->failed = functions->failed;
    library->mode = s->param;
    library->mode_count = s->param_count;
    library->serial = !rows;
    tn__carver count = {.base = NULL}; /* a call without memory only computes how much it needs */
    char *nothing[3] = {NULL};
    library->function(library, nothing, &count);
    library->scratch = count.used ? count.used : 1;
    step->data = library;
    step->run = run_step;
    return TN_OK;
}
