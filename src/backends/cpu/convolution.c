/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of float32 by oneDNN, which computes in layouts of its own, blocks of channels: a piece of the data or
 * of the result at a time is brought into such a layout, computed and brought back, so that it stays in the caches.
 *
 * Pieces are computed each in one thread, as of images (N) or, where there are few, of channels. The cut, and with it
 * the order of sums, depends on the extents alone.
 */
#include "backends/cpu/convolution.h"

#include "backends/cpu/cpu.h"
#include "core/error.h"

#ifdef TN_HAVE_DNNL

#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/dnnl.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/scratch.h"
#include "core/dtype.h"
#include "core/memory.h"

enum { X = TN__DNNL_X, W = TN__DNNL_W, Y = TN__DNNL_Y, TENSORS = TN__DNNL_TENSORS };

#define MOST_PIECES   32
#define MOST_PARTIALS 16          /* sums of the weights' gradient, which are added up */
#define PIECE_WORK    (1 << 20)   /* operations of a piece at least, about 20 us */
#define CHANNELS      16          /* of a piece: multiples of this, which oneDNN's blocks are */

/* The tensor that operand k of a step is. */
static const uint8_t tensor_of[][TENSORS] = {
    [TN__DNNL_RESULT] = {Y, X, W}, [TN__DNNL_DATA] = {X, Y, W}, [TN__DNNL_WEIGHTS] = {W, X, Y}};

/* ---- what a step asks for ---- */

static void lay(tn__dnnl_problem *p, int t, const tn__operand *o, int64_t groups)
{
    int more = t == W && groups > 1;
    p->tensor[t].ndim = o->ndim + more;
    memcpy(&p->tensor[t].dim[more], o->dim, sizeof *o->dim * (size_t)o->ndim);
    memcpy(&p->tensor[t].stride[more], o->stride, sizeof *o->stride * (size_t)o->ndim);
    if (!more)
        return;
    p->tensor[t].dim[0] = groups;
    p->tensor[t].dim[1] = o->dim[0] / groups;
    p->tensor[t].stride[0] = o->stride[0] * p->tensor[t].dim[1];
}

static void describe(const tn__step *s, tn__dnnl_problem *p)
{
    int64_t groups = s->param[0];
    memset(p, 0, sizeof *p);
    p->way = (tn__dnnl_way)(s->op - TN__CPU_OP_CONVOLVE);
    for (int k = 0; k < TENSORS; k++)
        lay(p, tensor_of[p->way][k], &s->operand[k], groups);
    for (int i = 0; i < (s->param_count - 1) / 3; i++) {
        const int64_t *window = &s->param[1 + 3 * i];
        p->step[i] = window[0];
        p->spread[i] = window[1] - 1;
        p->before[i] = window[2];
        p->behind[i] = (p->tensor[Y].dim[2 + i] - 1) * window[0] +
                       (p->tensor[W].dim[2 + (groups > 1) + i] - 1) * window[1] + 1 - p->tensor[X].dim[2 + i] -
                       window[2];
    }
}

/* Whether a tensor's elements lie apart, outer axes further than inner ones: else oneDNN gets a copy. */
static bool lies_well(const tn__dnnl_problem *p, int t)
{
    int64_t least = 1;
    for (int d = p->tensor[t].ndim; d-- > 0;) {
        if (p->tensor[t].dim[d] == 1)
            continue;
        if (p->tensor[t].stride[d] < least)
            return false;
        least = p->tensor[t].stride[d] * p->tensor[t].dim[d];
    }
    return true;
}

static int64_t size_of(const tn__dnnl_problem *p, int t)
{
    int64_t size = 1;
    for (int d = 0; d < p->tensor[t].ndim; d++)
        size *= p->tensor[t].dim[d];
    return size;
}

static int64_t operations_of(const tn__dnnl_problem *p)
{
    int64_t each = size_of(p, W) / p->tensor[W].dim[0];
    return 2 * size_of(p, Y) * (p->tensor[W].ndim > p->tensor[Y].ndim ? each / p->tensor[W].dim[1] : each);
}

bool tn__cpu_convolves(tn__device *device, const tn__step *step)
{
    (void)device;
    if (step->compute != TN_FLOAT32)
        return false;
    tn__dnnl_problem p;
    describe(step, &p);
    int before = tn__cpu_library_threads(1);
    dnnl_primitive_desc_t made = tn__dnnl_convolution(&p);
    const char *name = NULL;
    bool fast = made && dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name &&
                strncmp(name, "ref", 3) != 0;
    if (made)
        dnnl_primitive_desc_destroy(made);
    tn__cpu_library_threads(before);
    return fast;
}

/* ---- the cut ---- */

/* The axis of each tensor that a cut is along; -1: all pieces use, or add to, the whole. */
typedef enum cut { BY_IMAGES, BY_RESULTS, BY_CHANNELS } cut;
static const int8_t cut_axis[][TENSORS] = {
    [BY_IMAGES] = {0, -1, 0}, [BY_RESULTS] = {-1, 0, 1}, [BY_CHANNELS] = {1, 1, -1}};

typedef struct division {
    cut cut;
    int64_t extent, size, pieces; /* of the axis; of a piece but the last, which may have less; their number */
} division;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static division divide(const tn__dnnl_problem *p, cut cut, int64_t most)
{
    static const struct {
        int tensor, axis;
    } of[] = {[BY_IMAGES] = {X, 0}, [BY_RESULTS] = {Y, 1}, [BY_CHANNELS] = {X, 1}};
    int64_t unit = cut == BY_IMAGES ? 1 : CHANNELS;
    division d = {.cut = cut, .extent = p->tensor[of[cut].tensor].dim[of[cut].axis]};
    most = most < 1 ? 1 : most;
    d.size = ((d.extent + most - 1) / most + unit - 1) / unit * unit;
    d.pieces = (d.extent + d.size - 1) / d.size;
    return d;
}

static division choose_cut(const tn__dnnl_problem *p)
{
    int64_t most = least(operations_of(p) / PIECE_WORK + 1, MOST_PIECES), images = most;
    if (p->way == TN__DNNL_WEIGHTS) /* each piece of images has weights of its own */
        images = least(least(most, MOST_PARTIALS), (size_of(p, X) + size_of(p, Y)) / size_of(p, W));
    division by_images = divide(p, BY_IMAGES, images);
    if (p->tensor[W].ndim > p->tensor[Y].ndim)
        return by_images;
    division other = divide(p, p->way == TN__DNNL_DATA ? BY_CHANNELS : BY_RESULTS, most);
    return other.pieces > by_images.pieces && by_images.pieces < least(most, 4) ? other : by_images;
}

/* ---- a loaded step ---- */

/* How a piece is computed. */
typedef struct kernel {
    dnnl_primitive_t convolution;
    dnnl_primitive_t reorder[TENSORS]; /* NULL: the tensor lies as the convolution wants it */
    size_t bytes[TENSORS];             /* of the tensor as it wants it */
    size_t scratchpad;                 /* of the primitive that needs most */
} kernel;

typedef struct convolution {
    tn__dnnl_problem whole;  /* with copied tensors as they are copied */
    tn__cpu_space copy[TENSORS];
    bool copied[TENSORS];
    division cut;
    int kernels;             /* of all pieces but the last, and of that one if it is smaller */
    kernel kernel[2];
    int64_t work;            /* of a piece */
    size_t common, piece;    /* bytes: of what all pieces share, and of each that is under way */
} convolution;

static bool is_output(const convolution *c, int t) { return t == tensor_of[c->whole.way][0]; }
static bool is_cut(const convolution *c, int t) { return cut_axis[c->cut.cut][t] >= 0; }
static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Partial sums: every piece has an output of the whole extents. */
static bool adds_up(const convolution *c) { return c->cut.pieces > 1 && !is_cut(c, tensor_of[c->whole.way][0]); }

static void drop(void *data)
{
    convolution *c = data;
    for (int k = 0; k < 2; k++) {
        if (c->kernel[k].convolution)
            dnnl_primitive_destroy(c->kernel[k].convolution);
        for (int t = 0; t < TENSORS; t++)
            if (c->kernel[k].reorder[t])
                dnnl_primitive_destroy(c->kernel[k].reorder[t]);
    }
}

/* The primitive of a description, which is let go; counts its temporary memory. NULL if refused. */
static dnnl_primitive_t primitive_of(dnnl_primitive_desc_t d, kernel *k)
{
    dnnl_primitive_t made = NULL;
    if (!d)
        return NULL;
    size_t bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0));
    k->scratchpad = bytes > k->scratchpad ? bytes : k->scratchpad;
    if (dnnl_primitive_create(&made, d) != dnnl_success)
        made = NULL;
    dnnl_primitive_desc_destroy(d);
    return made;
}

static tn__dnnl_view wanted(dnnl_primitive_t convolution, tn__dnnl_way way, int t)
{
    const_dnnl_primitive_desc_t d;
    if (dnnl_primitive_get_primitive_desc(convolution, &d) != dnnl_success)
        return NULL;
    return dnnl_primitive_desc_query_md(d, dnnl_query_exec_arg_md, tn__dnnl_argument(way, t));
}

static bool make_kernel(convolution *c, kernel *k, int64_t size)
{
    tn__dnnl_problem piece = c->whole;
    for (int t = 0; t < TENSORS; t++)
        if (is_cut(c, t))
            piece.tensor[t].dim[cut_axis[c->cut.cut][t]] = size;
    if (!(k->convolution = primitive_of(tn__dnnl_convolution(&piece), k)))
        return false;
    for (int t = 0; t < TENSORS; t++) {
        tn__dnnl_view view = wanted(k->convolution, piece.way, t);
        if (!view)
            return false;
        k->bytes[t] = rounded(dnnl_memory_desc_get_size(view));
        if (!tn__dnnl_lies(&piece, t, view) &&
            !(k->reorder[t] = primitive_of(tn__dnnl_reorder(&piece, t, view, !is_output(c, t)), k)))
            return false;
    }
    return true;
}

/* Whether the last piece wants what all share as the others do. */
static bool agree(const convolution *c)
{
    for (int t = 0; t < TENSORS; t++)
        if (!is_cut(c, t) && !dnnl_memory_desc_equal(wanted(c->kernel[0].convolution, c->whole.way, t),
                                                     wanted(c->kernel[1].convolution, c->whole.way, t)))
            return false;
    return true;
}

static bool make_kernels(convolution *c)
{
    int64_t last = c->cut.extent - (c->cut.pieces - 1) * c->cut.size;
    c->kernels = 1 + (last < c->cut.size && c->cut.pieces > 1);
    if (c->cut.pieces == 1)
        c->cut.size = c->cut.extent;
    return make_kernel(c, &c->kernel[0], c->cut.size) && (c->kernels == 1 || make_kernel(c, &c->kernel[1], last));
}

/* A tensor that all pieces share is brought into the wanted layout once, partial sums apart. */
static size_t common_bytes(const convolution *c, int t)
{
    const kernel *k = &c->kernel[0];
    size_t copies = c->copied[t] ? rounded((size_t)size_of(&c->whole, t) * sizeof(float)) : 0;
    if (is_cut(c, t))
        return copies;
    if (is_output(c, t) && adds_up(c))
        return k->bytes[t] * (size_t)c->cut.pieces;
    return copies + (k->reorder[t] ? k->bytes[t] : 0);
}

static void measure(convolution *c)
{
    for (int t = 0; t < TENSORS; t++)
        c->common += common_bytes(c, t);
    for (int i = 0; i < c->kernels; i++) {
        const kernel *k = &c->kernel[i];
        size_t bytes = rounded(k->scratchpad);
        for (int t = 0; t < TENSORS; t++)
            bytes += is_cut(c, t) && k->reorder[t] ? k->bytes[t] : 0;
        c->piece = bytes > c->piece ? bytes : c->piece;
    }
    c->common += rounded(c->kernel[0].scratchpad);
}

/* ---- running ---- */

typedef struct convolution_run {
    const convolution *c;
    char *place[TENSORS];  /* operands, or copies of them */
    char *shared[TENSORS]; /* as wanted, or the first of partial sums; NULL: cut */
    char *scratchpad;      /* of what is not of a piece */
    char *pieces;          /* memory of those under way */
    atomic_flag taken[TN__POOL_WORKERS + 1];
    _Atomic bool failed;
} convolution_run;

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

static bool run_piece(convolution_run *r, dnnl_stream_t stream, int64_t number, char *memory)
{
    const convolution *c = r->c;
    const kernel *k = &c->kernel[c->kernels > 1 && number == c->cut.pieces - 1];
    argument given[TENSORS];
    char *at[TENSORS], *scratchpad = memory;
    bool done = true;
    memory += rounded(k->scratchpad);
    for (int t = 0; t < TENSORS; t++) {
        int axis = cut_axis[c->cut.cut][t];
        at[t] = r->place[t];
        given[t].index = tn__dnnl_argument(c->whole.way, t);
        given[t].place = r->shared[t];
        if (axis < 0) {
            if (adds_up(c) && is_output(c, t))
                given[t].place = r->shared[t] + (size_t)number * k->bytes[t];
            continue;
        }
        at[t] += number * c->cut.size * c->whole.tensor[t].stride[axis] * (int64_t)sizeof(float);
        given[t].place = k->reorder[t] ? memory : at[t];
        memory += k->reorder[t] ? k->bytes[t] : 0;
        if (k->reorder[t] && !is_output(c, t))
            done = done && reorder(k->reorder[t], stream, at[t], given[t].place, scratchpad);
    }
    int out = tensor_of[c->whole.way][0];
    done = done && execute(k->convolution, stream, TENSORS, given, scratchpad);
    if (k->reorder[out] && is_cut(c, out))
        done = done && reorder(k->reorder[out], stream, given[out].place, at[out], scratchpad);
    return done;
}

static void pieces_part(void *context, int64_t begin, int64_t end)
{
    convolution_run *r = context;
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
    convolution_run *r = context;
    int t = tensor_of[r->c->whole.way][0];
    size_t bytes = r->c->kernel[0].bytes[t];
    float *sum = (float *)r->shared[t];
    for (int64_t i = 1; i < r->c->cut.pieces; i++) {
        const float *part = (const float *)(r->shared[t] + (size_t)i * bytes);
        for (int64_t e = begin; e < end; e++)
            sum[e] += part[e];
    }
}

/* Gives each tensor its places in memory of all pieces, and prepares there what they read. */
static bool begin_run(convolution_run *r, dnnl_stream_t stream, char *memory)
{
    const convolution *c = r->c;
    const kernel *k = &c->kernel[0];
    bool done = true;
    r->scratchpad = memory;
    memory += rounded(k->scratchpad);
    for (int t = 0; t < TENSORS; t++) {
        if (c->copied[t]) {
            tn__cpu_move(&c->copy[t], tn__cpu_cast_of(TN_FLOAT32, TN_FLOAT32), sizeof(float),
                         (char *const[]){memory, r->place[t]});
            r->place[t] = memory;
            memory += rounded((size_t)size_of(&c->whole, t) * sizeof(float));
        }
        if (is_cut(c, t))
            continue;
        bool apart = k->reorder[t] || (is_output(c, t) && adds_up(c));
        r->shared[t] = apart ? memory : r->place[t];
        if (apart)
            memory += k->bytes[t] * (size_t)(is_output(c, t) && adds_up(c) ? c->cut.pieces : 1);
        if (k->reorder[t] && !is_output(c, t))
            done = done && reorder(k->reorder[t], stream, r->place[t], r->shared[t], r->scratchpad);
    }
    r->pieces = memory;
    return done;
}

/* Brings what pieces share of the output to its place. */
static bool end_run(convolution_run *r, dnnl_stream_t stream)
{
    const convolution *c = r->c;
    int t = tensor_of[c->whole.way][0];
    const kernel *k = &c->kernel[0];
    if (is_cut(c, t))
        return true;
    if (adds_up(c))
        tn__cpu_for((int64_t)(k->bytes[t] / sizeof(float)), c->cut.pieces, sums_part, r);
    if (k->reorder[t])
        return reorder(k->reorder[t], stream, r->shared[t], r->place[t], r->scratchpad);
    if (r->shared[t] != r->place[t])
        memcpy(r->place[t], r->shared[t], (size_t)size_of(&c->whole, t) * sizeof(float));
    return true;
}

static tn_status run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const convolution *c = step->data;
    const char *name = tn__cpu_ops[step->step->op].name;
    convolution_run r = {.c = c};
    char *base[TN__CPU_OPERANDS];
    tn__cpu_addresses(step, TENSORS, buffers, base);
    for (int k = 0; k < TENSORS; k++)
        r.place[tensor_of[c->whole.way][k]] = base[k];
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

/* ---- preparation ---- */

/* Inputs that oneDNN does not take as they lie. */
static void find_copies(const tn__step *s, convolution *c)
{
    for (int k = 1; k < TENSORS; k++) {
        int t = tensor_of[c->whole.way][k];
        const tn__operand *o = &s->operand[k];
        if (lies_well(&c->whole, t))
            continue;
        tn__operand plain = *o;
        int64_t next = 1;
        for (int d = o->ndim; d-- > 0; next *= o->dim[d])
            plain.stride[d] = next;
        c->copied[t] = true;
        tn__cpu_space_of(&c->copy[t], 2, (const tn__operand[]){plain, *o});
        lay(&c->whole, t, &plain, s->param[0]);
    }
}

tn_status tn__cpu_prepare_convolution(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    const char *name = tn__cpu_ops[s->op].name;
    convolution *c = tn__calloc(1, sizeof *c);
    if (!c)
        return tn__fail_memory(name, sizeof *c);
    step->data = c;
    step->drop = drop;
    step->run = run_step;
    describe(s, &c->whole);
    find_copies(s, c);
    c->cut = choose_cut(&c->whole);
    int before = tn__cpu_library_threads(1);
    bool made = make_kernels(c);
    if (made && c->kernels > 1 && !agree(c)) {
        drop(c);
        memset(c->kernel, 0, sizeof c->kernel);
        c->cut = divide(&c->whole, BY_IMAGES, 1);
        made = make_kernels(c);
    }
    tn__cpu_library_threads(before);
    if (!made)
        return tn__fail(TN_ERR_INTERNAL, name, "oneDNN refused what it had accepted");
    c->work = operations_of(&c->whole) / c->cut.pieces;
    measure(c);
    return TN_OK;
}

#else

bool tn__cpu_convolves(tn__device *device, const tn__step *step)
{
    (void)device, (void)step;
    return false;
}

tn_status tn__cpu_prepare_convolution(tn__cpu_step *step) { return tn__cpu_no_such_operation(step); }

#endif
