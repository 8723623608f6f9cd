/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of float32 by oneDNN, which computes in layouts of its own, blocks of channels: a piece of the data or
 * of the result at a time is brought into such a layout, computed and brought back, so that it stays in the caches.
 *
 * Pieces are computed each in one thread, as of images (N) or, where there are few, of channels. The cut, and with it
 * the order of sums, depends on the extents alone.
 */
#include "backends/cpu/convolution/convolution.h"

#include "backends/cpu/base/step.h"
#include "core/error.h"

#ifdef TN_HAVE_DNNL

#include <string.h>

#include "backends/cpu/convolution/pieces.h"
#include "backends/cpu/base/parallel.h"
#include "core/dtype.h"
#include "core/memory.h"

enum { X = TN__DNNL_X, W = TN__DNNL_W, Y = TN__DNNL_Y, TENSORS = TN__DNNL_TENSORS };

#define MOST_PIECES   32
#define MOST_CHANNELS 16          /* pieces of channels: of more a piece, each value read serves more sums */
#define MOST_PARTIALS 16          /* sums of the weights' gradient, which are added up */
#define PIECE_WORK    (1 << 20)   /* operations of a piece at least, about 20 us */
#define CHANNELS      16          /* channels of a piece are a multiple of this, the size of oneDNN's blocks */

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
    p->way = (tn__dnnl_way)(s->op - TN__OP_CONVOLVE);
    for (int k = 0; k < TENSORS; k++)
        lay(p, tn__dnnl_operands[p->way][k], &s->operand[k], groups);
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

static int64_t operations_of(const tn__dnnl_problem *p)
{
    int64_t each = tn__dnnl_size(p, W) / p->tensor[W].dim[0];
    return 2 * tn__dnnl_size(p, Y) * (p->tensor[W].ndim > p->tensor[Y].ndim ? each / p->tensor[W].dim[1] : each);
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

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static tn__division divide(const tn__dnnl_problem *p, tn__division_way way, int64_t most)
{
    static const struct {
        int tensor, axis;
    } of[] = {[TN__BY_IMAGES] = {X, 0}, [TN__BY_RESULTS] = {Y, 1}, [TN__BY_CHANNELS] = {X, 1}};
    int64_t unit = way == TN__BY_IMAGES ? 1 : CHANNELS;
    tn__division d = {.way = way, .extent = p->tensor[of[way].tensor].dim[of[way].axis]};
    most = most < 1 ? 1 : most;
    d.size = ((d.extent + most - 1) / most + unit - 1) / unit * unit;
    d.pieces = (d.extent + d.size - 1) / d.size;
    return d;
}

static tn__division choose_cut(const tn__dnnl_problem *p)
{
    int64_t most = least(operations_of(p) / PIECE_WORK + 1, MOST_PIECES), images = most;
    if (p->way == TN__DNNL_WEIGHTS) /* each piece of images has weights of its own */
        images = least(least(most, MOST_PARTIALS), (tn__dnnl_size(p, X) + tn__dnnl_size(p, Y)) / tn__dnnl_size(p, W));
    tn__division by_images = divide(p, TN__BY_IMAGES, images);
    if (p->tensor[W].ndim > p->tensor[Y].ndim)
        return by_images;
    tn__division other = divide(p, p->way == TN__DNNL_DATA ? TN__BY_CHANNELS : TN__BY_RESULTS,
                                least(most, MOST_CHANNELS));
    /* Weights that are larger than all else are better read once, by pieces of them, than by each image. */
    if (p->way != TN__DNNL_WEIGHTS && tn__dnnl_size(p, W) > tn__dnnl_size(p, X) + tn__dnnl_size(p, Y))
        return other;
    return other.pieces > by_images.pieces && by_images.pieces < least(most, 4) ? other : by_images;
}

/* ---- the kernels ---- */

static void drop(void *data)
{
    tn__convolution *c = data;
    for (int k = 0; k < 2; k++) {
        if (c->kernel[k].convolution)
            dnnl_primitive_destroy(c->kernel[k].convolution);
        for (int t = 0; t < TENSORS; t++)
            if (c->kernel[k].reorder[t])
                dnnl_primitive_destroy(c->kernel[k].reorder[t]);
    }
}

/* Makes the primitive of a description and frees that; notes its temporary memory. NULL if refused. */
static dnnl_primitive_t primitive_of(dnnl_primitive_desc_t d, tn__convolution_kernel *k)
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

static bool make_kernel(tn__convolution *c, tn__convolution_kernel *k, int64_t size)
{
    tn__dnnl_problem piece = c->whole;
    for (int t = 0; t < TENSORS; t++)
        if (tn__convolution_is_cut(c, t))
            piece.tensor[t].dim[tn__division_axis[c->cut.way][t]] = size;
    if (!(k->convolution = primitive_of(tn__dnnl_convolution(&piece), k)))
        return false;
    for (int t = 0; t < TENSORS; t++) {
        tn__dnnl_view view = wanted(k->convolution, piece.way, t);
        if (!view)
            return false;
        k->bytes[t] = tn__dnnl_rounded(dnnl_memory_desc_get_size(view));
        if (!tn__dnnl_lies(&piece, t, view) &&
            !(k->reorder[t] = primitive_of(tn__dnnl_reorder(&piece, t, view, t != tn__convolution_output(c)), k)))
            return false;
    }
    return true;
}

/* Does the last piece want the shared tensors in the same layout as the others? */
static bool agree(const tn__convolution *c)
{
    for (int t = 0; t < TENSORS; t++)
        if (!tn__convolution_is_cut(c, t) && !dnnl_memory_desc_equal(wanted(c->kernel[0].convolution, c->whole.way, t),
                                                     wanted(c->kernel[1].convolution, c->whole.way, t)))
            return false;
    return true;
}

static bool make_kernels(tn__convolution *c)
{
    int64_t last = c->cut.extent - (c->cut.pieces - 1) * c->cut.size;
    c->kernels = 1 + (last < c->cut.size && c->cut.pieces > 1);
    if (c->cut.pieces == 1)
        c->cut.size = c->cut.extent;
    return make_kernel(c, &c->kernel[0], c->cut.size) && (c->kernels == 1 || make_kernel(c, &c->kernel[1], last));
}

/* A tensor that all pieces share is brought into the wanted layout once, partial sums apart. */
static size_t common_bytes(const tn__convolution *c, int t)
{
    const tn__convolution_kernel *k = &c->kernel[0];
    size_t copies = c->copied[t] ? tn__dnnl_rounded((size_t)tn__dnnl_size(&c->whole, t) * sizeof(float)) : 0;
    if (tn__convolution_is_cut(c, t))
        return copies;
    if (t == tn__convolution_output(c) && tn__convolution_adds_up(c))
        return k->bytes[t] * (size_t)c->cut.pieces;
    return copies + (k->reorder[t] ? k->bytes[t] : 0);
}

static void measure(tn__convolution *c)
{
    for (int t = 0; t < TENSORS; t++)
        c->common += common_bytes(c, t);
    for (int i = 0; i < c->kernels; i++) {
        const tn__convolution_kernel *k = &c->kernel[i];
        size_t bytes = tn__dnnl_rounded(k->scratchpad);
        for (int t = 0; t < TENSORS; t++)
            bytes += tn__convolution_is_cut(c, t) && k->reorder[t] ? k->bytes[t] : 0;
        c->piece = bytes > c->piece ? bytes : c->piece;
    }
    c->common += tn__dnnl_rounded(c->kernel[0].scratchpad);
}

/* ---- preparation ---- */

/* Finds the inputs whose layout oneDNN does not take. */
static void find_copies(const tn__step *s, tn__convolution *c)
{
    for (int k = 1; k < TENSORS; k++) {
        int t = tn__dnnl_operands[c->whole.way][k];
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
    tn__convolution *c = tn__calloc(1, sizeof *c);
    if (!c)
        return tn__fail_memory(name, sizeof *c);
    step->data = c;
    step->drop = drop;
    step->run = tn__convolution_run;
    describe(s, &c->whole);
    find_copies(s, c);
    c->cut = choose_cut(&c->whole);
    int before = tn__cpu_library_threads(1);
    bool made = make_kernels(c);
    if (made && c->kernels > 1 && !agree(c)) {
        drop(c);
        memset(c->kernel, 0, sizeof c->kernel);
        c->cut = divide(&c->whole, TN__BY_IMAGES, 1);
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
