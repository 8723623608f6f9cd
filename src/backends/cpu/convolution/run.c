/* SPDX-License-Identifier: MIT */
/* Runs a prepared convolution: its pieces in threads; then partial sums are added in the order of the pieces. */
#include "tn_build_config.h"

#ifdef TN_HAVE_DNNL
#include "backends/cpu/convolution/pieces.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/pool.h"
#include "backends/cpu/base/scratch.h"
#include "core/dtype.h"
#include "core/error.h"

enum { X = TN__DNNL_X, W = TN__DNNL_W, Y = TN__DNNL_Y, TENSORS = TN__DNNL_TENSORS };

typedef struct run {
    const tn__convolution *c;
    char *place[TENSORS];  /* operands, or copies of them */
    char *shared[TENSORS]; /* tensors that all pieces share, in the wanted layout, or the first of the partial sums;
                              NULL: the tensor is divided */
    char *scratchpad;      /* temporary memory of work that is not part of a piece */
    char *pieces;          /* memory of the pieces under way */
    atomic_flag taken[TN__POOL_WORKERS + 1];
    _Atomic bool failed;
} run;

typedef struct argument {
    int index;
    void *place;
} argument;

static bool execute(dnnl_primitive_t primitive, dnnl_stream_t stream, int count, const argument *given, char *scratch)
{
    enum { MOST = TENSORS + 1 };
    dnnl_exec_arg_t arg[MOST];
    const_dnnl_primitive_desc_t d;
    bool done = dnnl_primitive_get_primitive_desc(primitive, &d) == dnnl_success;
    int made = 0;
    for (; made <= count && done; made++) {
        bool last = made == count;
        tn__dnnl_view view = last ? dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0)
                                  : dnnl_primitive_desc_query_md(d, dnnl_query_exec_arg_md, given[made].index);
        arg[made].arg = last ? DNNL_ARG_SCRATCHPAD : given[made].index;
        if (dnnl_memory_create(&arg[made].memory, view, tn__dnnl_engine(), last ? scratch : given[made].place) !=
            dnnl_success)
            break;
    }
    done = made == count + 1 && dnnl_primitive_execute(primitive, stream, made, arg) == dnnl_success;
    while (made > 0)
        dnnl_memory_destroy(arg[--made].memory);
    return done;
}

static bool reorder(dnnl_primitive_t primitive, dnnl_stream_t stream, void *from, void *to, char *scratch)
{
    return execute(primitive, stream, 2, (argument[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, scratch);
}

static bool run_piece(run *r, dnnl_stream_t stream, int64_t number, char *memory)
{
    const tn__convolution *c = r->c;
    const tn__convolution_kernel *k = &c->kernel[c->kernels > 1 && number == c->cut.pieces - 1];
    argument given[TENSORS];
    char *at[TENSORS], *scratchpad = memory;
    bool done = true;
    memory += tn__dnnl_rounded(k->scratchpad);
    for (int t = 0; t < TENSORS; t++) {
        int axis = tn__division_axis[c->cut.way][t];
        at[t] = r->place[t];
        given[t].index = tn__dnnl_argument(c->whole.way, t);
        given[t].place = r->shared[t];
        if (axis < 0) {
            if (tn__convolution_adds_up(c) && t == tn__convolution_output(c))
                given[t].place = r->shared[t] + (size_t)number * k->bytes[t];
            continue;
        }
        at[t] += number * c->cut.size * c->whole.tensor[t].stride[axis] * (int64_t)sizeof(float);
        given[t].place = k->reorder[t] ? memory : at[t];
        memory += k->reorder[t] ? k->bytes[t] : 0;
        if (k->reorder[t] && t != tn__convolution_output(c))
            done = done && reorder(k->reorder[t], stream, at[t], given[t].place, scratchpad);
    }
    int out = tn__convolution_output(c);
    done = done && execute(k->convolution, stream, TENSORS, given, scratchpad);
    if (k->reorder[out] && tn__convolution_is_cut(c, out))
        done = done && reorder(k->reorder[out], stream, given[out].place, at[out], scratchpad);
    return done;
}

static void pieces_part(void *context, int64_t begin, int64_t end)
{
    run *r = context;
    dnnl_stream_t stream;
    int slot = 0;
    if (dnnl_stream_create(&stream, tn__dnnl_engine(), dnnl_stream_default_flags) != dnnl_success) {
        r->failed = true;
        return;
    }
    while (atomic_flag_test_and_set_explicit(&r->taken[slot], memory_order_acquire))
        slot++;
    for (; begin < end; begin++)
        if (!run_piece(r, stream, begin, r->pieces + (size_t)slot * r->c->piece))
            r->failed = true;
    atomic_flag_clear_explicit(&r->taken[slot], memory_order_release);
    dnnl_stream_destroy(stream);
}

static void sums_part(void *context, int64_t begin, int64_t end)
{
    run *r = context;
    int t = tn__convolution_output(r->c);
    size_t bytes = r->c->kernel[0].bytes[t];
    float *sum = (float *)r->shared[t];
    for (int64_t i = 1; i < r->c->cut.pieces; i++) {
        const float *part = (const float *)(r->shared[t] + (size_t)i * bytes);
        for (int64_t e = begin; e < end; e++)
            sum[e] += part[e];
    }
}

/* Gives each tensor its places in memory of all pieces, and prepares there what they read. */
static bool begin_run(run *r, dnnl_stream_t stream, char *memory)
{
    const tn__convolution *c = r->c;
    const tn__convolution_kernel *k = &c->kernel[0];
    bool done = true;
    r->scratchpad = memory;
    memory += tn__dnnl_rounded(k->scratchpad);
    for (int t = 0; t < TENSORS; t++) {
        if (c->copied[t]) {
            tn__cpu_move(&c->copy[t], tn__cpu_cast_of(TN_FLOAT32, TN_FLOAT32), sizeof(float),
                         (char *const[]){memory, r->place[t]});
            r->place[t] = memory;
            memory += tn__dnnl_rounded((size_t)tn__dnnl_size(&c->whole, t) * sizeof(float));
        }
        if (tn__convolution_is_cut(c, t))
            continue;
        bool sums = t == tn__convolution_output(c) && tn__convolution_adds_up(c), apart = sums || k->reorder[t];
        r->shared[t] = apart ? memory : r->place[t];
        if (apart)
            memory += k->bytes[t] * (size_t)(sums ? c->cut.pieces : 1);
        if (k->reorder[t] && t != tn__convolution_output(c))
            done = done && reorder(k->reorder[t], stream, r->place[t], r->shared[t], r->scratchpad);
    }
    r->pieces = memory;
    return done;
}

/* Converts the part of the output that pieces share to its own layout. */
static bool end_run(run *r, dnnl_stream_t stream)
{
    const tn__convolution *c = r->c;
    int t = tn__convolution_output(c);
    const tn__convolution_kernel *k = &c->kernel[0];
    if (tn__convolution_is_cut(c, t))
        return true;
    if (tn__convolution_adds_up(c))
        tn__cpu_for((int64_t)(k->bytes[t] / sizeof(float)), c->cut.pieces, sums_part, r);
    if (k->reorder[t])
        return reorder(k->reorder[t], stream, r->shared[t], r->place[t], r->scratchpad);
    if (r->shared[t] != r->place[t])
        memcpy(r->place[t], r->shared[t], (size_t)tn__dnnl_size(&c->whole, t) * sizeof(float));
    return true;
}

tn_status tn__convolution_run(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const tn__convolution *c = step->data;
    const char *name = tn__cpu_ops[step->step->op].name;
    run r = {.c = c};
    char *base[TN__CPU_OPERANDS];
    tn__cpu_addresses(step, TENSORS, buffers, base);
    for (int k = 0; k < TENSORS; k++)
        r.place[tn__dnnl_operands[c->whole.way][k]] = base[k];
    int team = tn__cpu_team(c->cut.pieces, c->work);
    team = team < TN__POOL_WORKERS + 1 ? team : TN__POOL_WORKERS + 1;
    for (int i = 0; i < team; i++)
        atomic_flag_clear_explicit(&r.taken[i], memory_order_relaxed);
    size_t bytes = c->common + (size_t)team * c->piece;
    dnnl_stream_t stream;
    tn__scratch scratch = tn__scratch_take(bytes ? bytes : 1);
    if (!scratch.memory)
        return tn__fail_memory(name, bytes);
    int before = tn__cpu_library_threads(1);
    bool done = dnnl_stream_create(&stream, tn__dnnl_engine(), dnnl_stream_default_flags) == dnnl_success;
    if (done) {
        done = begin_run(&r, stream, scratch.memory);
        if (done)
            tn__cpu_share(team, c->cut.pieces, pieces_part, &r);
        done = done && !r.failed && end_run(&r, stream);
        dnnl_stream_destroy(stream);
    }
    tn__cpu_library_threads(before);
    tn__scratch_give(scratch);
    return done ? TN_OK : tn__fail(TN_ERR_INTERNAL, name, "oneDNN refused to compute");
}
#else
typedef int tn__no_convolution_run;
#endif
