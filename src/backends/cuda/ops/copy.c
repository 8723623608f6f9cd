/* SPDX-License-Identifier: MIT */
/*
 * COPY and CONST: elements moved between strided windows, and windows filled, all those of a step in one launch
 * (copy.cuh). A step's outputs are windows; its first inputs go into the first of them, and its scalars fill the
 * others.
 */
#include <string.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/ops.h"

#define PIECE     16  /* bytes of a line that a thread moves at once */
#define BATCH     4   /* most pieces, or elements, of a thread; the same in copy.cuh */
#define THREADS   256
#define FEW_WORDS 96
#define MOST_WORDS 508 /* words of parameters that a kernel can take by value, less those before and after the
                          windows */
#define MOST_ELEMENTS ((int64_t)1 << 30) /* most elements of a window: a unit's number has 32 bits */

/* A part and its axes, as copy.cuh has them. */
typedef struct part {
    uint64_t to, from;
    int64_t line;
    uint32_t count, first;
    uint16_t axes, at;
    uint32_t fills;
} part;
typedef struct axis {
    uint32_t extent, magic, shift, unused;
    int64_t to, from;
} axis;
enum { PART_WORDS = sizeof(part) / 8, AXIS_WORDS = sizeof(axis) / 8 };

typedef struct parts {
    uint32_t count, batch, even, unused;
    union {
        uint64_t word[MOST_WORDS];
        part part[MOST_WORDS / PART_WORDS];
    };
} parts;

/* A window whose elements have 32-bit numbers. Its axes are in ascending order of the output's strides. */
typedef struct window {
    int output, input, scalar; /* input < 0: a fill */
    int ndim;
    int64_t dim[TN_MAX_NDIM], to[TN_MAX_NDIM], from[TN_MAX_NDIM]; /* strides in elements */
    int64_t to_offset, from_offset; /* offsets in addition to the operands' own */
} window;

typedef struct move_data {
    size_t bytes; /* bytes, if the window is contiguous in both operands; else 0 */
    size_t size;  /* bytes of an element */
    int count;
    window window[];
} move_data;

/* ---- windows ---- */

static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

/* The window of two operands; extents of 1 dropped, axes merged where both allow. False if it is empty. */
static bool window_of(const tn__step *s, int k, window *w)
{
    int inputs = s->operand_count - s->output_count;
    const tn__operand *to = &s->operand[k], *from = k < inputs ? &s->operand[s->output_count + k] : NULL;
    int order[TN_MAX_NDIM], ndim = 0;
    *w = (window){.output = k, .input = from ? s->output_count + k : -1, .scalar = from ? -1 : s->scalar[k - inputs]};
    for (int d = to->ndim - 1; d >= 0; d--) {
        if (to->dim[d] == 0)
            return false;
        if (to->dim[d] == 1)
            continue;
        int i = ndim++;
        for (; i > 0 && distance(to->stride[order[i - 1]]) > distance(to->stride[d]); i--)
            order[i] = order[i - 1];
        order[i] = d;
    }
    for (int i = 0; i < ndim; i++) {
        int64_t dim = to->dim[order[i]], go = to->stride[order[i]], come = from ? from->stride[order[i]] : 0;
        int last = w->ndim - 1;
        if (last >= 0 && go == w->to[last] * w->dim[last] && (!from || come == w->from[last] * w->dim[last])) {
            w->dim[last] *= dim;
            continue;
        }
        w->dim[w->ndim] = dim;
        w->to[w->ndim] = go;
        w->from[w->ndim++] = come;
    }
    return true;
}

/* Are neighbours along the first axis contiguous in both operands? A single element is a line, too. */
static bool has_lines(const window *w) { return w->ndim == 0 || (w->to[0] == 1 && (w->input < 0 || w->from[0] == 1)); }

static int axes_of(const window *w) { return w->ndim <= 1 && has_lines(w) ? 0 : w->ndim; }

static int words_of(const window *w) { return PART_WORDS + axes_of(w) * AXIS_WORDS; }

static int64_t size_of(const window *w)
{
    int64_t size = 1;
    for (int d = 0; d < w->ndim; d++)
        size *= w->dim[d];
    return size;
}

/* Appends the window, halved while it is too large; `list` may be NULL: then it only counts. */
static int append(window w, window *list, int count)
{
    if (size_of(&w) <= MOST_ELEMENTS) {
        if (list)
            list[count] = w;
        return count + 1;
    }
    int last = w.ndim - 1;
    while (w.dim[last] == 1)
        last--;
    window rest = w;
    w.dim[last] /= 2;
    rest.dim[last] -= w.dim[last];
    rest.to_offset += w.dim[last] * w.to[last];
    rest.from_offset += w.dim[last] * w.from[last];
    return append(rest, list, append(w, list, count));
}

static int list_windows(const tn__step *s, window *list)
{
    int count = 0;
    window w;
    for (int k = 0; k < s->output_count; k++)
        if (window_of(s, k, &w))
            count = append(w, list, count);
    return count;
}

/* ---- parts ---- */

/* For x < 2^31: Granlund and Montgomery, Division by invariant integers using multiplication, 1994. */
static axis axis_of(int64_t extent, int64_t to, int64_t from)
{
    uint32_t shift = 31;
    while ((int64_t)1 << (shift - 31) < extent)
        shift++;
    uint64_t power = (uint64_t)1 << shift;
    return (axis){.extent = (uint32_t)extent, .magic = (uint32_t)((power + (uint64_t)extent - 1) / (uint64_t)extent),
                  .shift = shift, .to = to, .from = from};
}

/* The most pieces that a line takes, wherever it begins. */
static int64_t pieces(const window *w, uint64_t to, int64_t size, int64_t line)
{
    int64_t begin = (int64_t)(to % PIECE);
    for (int d = 1; d < w->ndim; d++)
        if (w->to[d] * size % PIECE)
            begin = PIECE - size;
    return (begin + line + PIECE - 1) / PIECE;
}

/* A word that repeats the element. */
static uint64_t repeated(uint64_t element, size_t size)
{
    for (size_t bytes = size; bytes < sizeof element; bytes *= 2)
        element = (element & (((uint64_t)1 << 8 * bytes) - 1)) * (1 | (uint64_t)1 << 8 * bytes);
    return element;
}

/* Makes a window's part: by lines if their pieces are mostly full, else by elements. */
static part part_of(const move_data *data, const window *w, const tn__cuda_step *step, const tn__cuda_run *run,
                    axis *axes)
{
    const tn__step *s = step->step;
    int64_t size = (int64_t)data->size, count = 1;
    part p = {.axes = (uint16_t)axes_of(w), .fills = w->input < 0};
    p.to = tn__cuda_address(run, &s->operand[w->output]) + (uint64_t)(w->to_offset * size);
    p.from = w->input < 0 ? repeated(run->scalars[w->scalar], data->size)
                          : tn__cuda_address(run, &s->operand[w->input]) + (uint64_t)(w->from_offset * size);
    int64_t line = (w->ndim ? w->dim[0] : 1) * size, along = pieces(w, p.to, size, line);
    bool lines = has_lines(w) && (p.axes == 0 || along * PIECE <= 2 * line);
    uint64_t low = p.from, high = p.from + (uint64_t)line;
    for (int d = 0; d < w->ndim; d++) {
        int64_t extent = d == 0 && lines ? along : w->dim[d], reach = (w->dim[d] - 1) * w->from[d] * size;
        if (p.axes)
            axes[d] = axis_of(extent, w->to[d] * size, w->from[d] * size);
        count *= extent;
        *(reach < 0 ? &low : &high) += d ? (uint64_t)reach : 0;
    }
    if (lines && p.axes) {
        axes[0].to = (int64_t)low;
        axes[0].from = (int64_t)high;
    }
    p.line = lines ? line : 0;
    p.count = (uint32_t)(w->ndim ? count : along);
    return p;
}

/* Assigns blocks to the parts, with `batch` units a thread; returns the number of blocks. */
static int64_t share_out(part *list, uint32_t count, uint32_t batch, bool *even)
{
    int64_t blocks = 0, first = 0;
    *even = true;
    for (uint32_t i = 0; i < count; i++) {
        list[i].first = (uint32_t)blocks;
        blocks += ((int64_t)list[i].count + batch * THREADS - 1) / (batch * THREADS);
        first = i ? first : blocks;
        *even = *even && blocks == first * (i + 1);
    }
    return blocks;
}

/* ---- starting ---- */

static const char *label_of(const tn__step *s) { return s->op == TN__OP_CONST ? "const" : "copy"; }

/* Launches parts; their axes are stored after them. */
static tn_status launch(const tn__cuda_step *step, const tn__cuda_run *run, parts *all, const axis *axes, int count)
{
    CUdeviceptr guard = tn__cuda_guard(step, run);
    int64_t most = 2 * (int64_t)run->device->owner->capabilities.multiprocessors;
    bool even;
    memcpy(&all->word[PART_WORDS * all->count], axes, sizeof *axes * (size_t)count);
    all->batch = BATCH;
    int64_t blocks = share_out(all->part, all->count, all->batch, &even);
    if (blocks < most) {
        all->batch = 1;
        blocks = share_out(all->part, all->count, all->batch, &even);
    }
    all->even = even && all->count > 1;
    void *params[] = {all, &guard};
    return tn__cuda_launch(run, step->function, blocks, THREADS, 0, params, label_of(step->step));
}

/* Launches as many windows at a time as fit into a kernel's parameters; their number does not depend on addresses. */
static tn_status start_windows(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const move_data *data = step->data;
    tn_status status = TN_OK;
    for (int i = 0; i < data->count && status == TN_OK;) {
        parts all = {.count = 0};
        axis axes[MOST_WORDS / AXIS_WORDS];
        int words = 0, axis_count = 0;
        for (; i < data->count && words + words_of(&data->window[i]) <= MOST_WORDS; i++) {
            const window *w = &data->window[i];
            part *p = &all.part[all.count++];
            *p = part_of(data, w, step, run, &axes[axis_count]);
            p->at = (uint16_t)axis_count;
            axis_count += p->axes;
            words += words_of(w);
        }
        status = launch(step, run, &all, axes, axis_count);
    }
    return status;
}

static tn_status start_piece(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tn__operand *operand = step->step->operand;
    const move_data *data = step->data;
    CUdeviceptr to = tn__cuda_address(run, &operand[0]), from = tn__cuda_address(run, &operand[1]);
    if (to == from || tn__cuda_patching(run))
        return TN_OK;
    return tn__cuda_started(run, run->device->driver->cuMemcpyDtoDAsync(to, from, data->bytes, run->stream), "copy");
}

/* ---- preparing ---- */

static tn_status check(const tn__cuda_step *step)
{
    const tn__step *s = step->step;
    int inputs = s->operand_count - s->output_count;
    if (s->output_count < 1 || s->output_count - inputs > s->scalar_count)
        return tn__fail(TN_ERR_INTERNAL, label_of(s), "a step names no scalar");
    for (int k = 0; k < s->output_count; k++) {
        tn_dtype from = k < inputs ? s->operand[s->output_count + k].dtype
                                   : step->program->scalar_dtype[s->scalar[k - inputs]];
        if (from != s->operand[k].dtype)
            return tn__fail(TN_ERR_INTERNAL, label_of(s), "a step moves %s to %s", tn_dtype_name(from),
                            tn_dtype_name(s->operand[k].dtype));
    }
    return TN_OK;
}

/* Bytes of a copy that is one piece on both sides, else 0. The driver's would overwrite after a failure, too. */
static size_t piece_of(const tn__cuda_step *step, size_t size)
{
    window w;
    bool copies = step->step->output_count == 1 && step->step->operand_count > 1 && !step->overwrites;
    return copies && window_of(step->step, 0, &w) && axes_of(&w) == 0 ? (size_t)size_of(&w) * size : 0;
}

tn_status tn__cuda_prepare_copy(tn__cuda_step *step, tn__cuda_device *device)
{
    const tn__step *s = step->step;
    tn_status status = check(step);
    if (status != TN_OK)
        return status;
    int count = list_windows(s, NULL), words = 0;
    size_t bytes = sizeof(move_data) + (size_t)count * sizeof(window);
    move_data *data = tn__calloc(1, bytes);
    if (data == NULL)
        return tn__fail_memory(label_of(s), bytes);
    step->data = data;
    data->size = tn__dtypes[s->operand[0].dtype].size;
    data->bytes = piece_of(step, data->size);
    data->count = list_windows(s, data->window);
    step->start = data->bytes ? start_piece : start_windows;
    step->opaque = data->bytes > 0;
    for (int i = 0; i < count; i++)
        words += words_of(&data->window[i]);
    if (data->bytes || count == 0)
        return TN_OK;
    words = words <= FEW_WORDS ? FEW_WORDS : MOST_WORDS;
    return tn__cuda_own_kernel(step, device, tn__cuda_text_copy(data->size, words), "move");
}
