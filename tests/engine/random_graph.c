/* SPDX-License-Identifier: MIT */
#include "engine/random_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/random.h"

#define MAX_SIZE 30000
#define STEPS    26

typedef struct builder {
    random_graph *g;
    test_random random;
    FILE *trace;
    int64_t extent[3]; /* of this graph's leaves, so that many fit each other */
    int now;           /* the device of this step's operands, and of what comes of them */
} builder;

static const tn_device *devices;

void random_graph_devices(const tn_device *three) { devices = three; }

static int below(builder *b, int n) { return (int)test_random_int(&b->random, 0, n - 1); }

static bool chance(builder *b, int percent) { return below(b, 100) < percent; }

static int any(builder *b)
{
    int i;
    do
        i = below(b, b->g->count);
    while (!b->g->x[i] || b->g->at[i] != b->now);
    return i;
}

/* Chooses a device on which there is something. */
static void be_somewhere(builder *b)
{
    int i = 0;
    do
        i = devices ? below(b, b->g->count) : i;
    while (devices && !b->g->x[i]);
    b->now = devices ? b->g->at[i] : 0;
    if (devices && tn_set_device(devices[b->now]) != TN_OK)
        fprintf(b->trace, "  %s\n", tn_error());
}

/* Keeps an array; one that was refused, or is too large, is dropped. */
static void add(builder *b, tn_array *x, const char *what, int i, int k)
{
    random_graph *g = b->g;
    bool good = x && !tn_is_error(x) && tn_size(x) <= MAX_SIZE && g->count < GRAPH_MAX;
    tn_clear_error();
    if (!good) {
        tn_free(x);
        return;
    }
    fprintf(b->trace, "  %d = %s(%d, %d): %s (", g->count, what, i, k, tn_dtype_name(tn_dtype_of(x)));
    for (int d = 0; d < tn_ndim(x); d++)
        fprintf(b->trace, "%s%lld", d ? ", " : "", (long long)tn_dim(x, d));
    fprintf(b->trace, ")\n");
    g->product[g->count] = false;
    g->at[g->count] = b->now;
    g->x[g->count++] = x;
}

/* ---- leaves ---- */

static const int64_t extents[] = {1, 1, 2, 3, 4, 5, 7, 16, 17, 33, 64, 70};

static tn_shape pick_shape(builder *b)
{
    tn_shape shape = {.ndim = below(b, 4)};
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = chance(b, 20) ? 1 : b->extent[below(b, 3)];
    if (chance(b, 4) && shape.ndim)
        shape.dim[below(b, shape.ndim)] = 0;
    static const int64_t large[][2] = {{300, 70}, {5000, 3}, {3, 5000}, {1, 20000}, {2050, 9}, {9, 2050}};
    if (chance(b, 9)) {
        const int64_t *extent = large[below(b, sizeof large / sizeof *large)];
        shape = TN_SHAPE(extent[0], extent[1]);
    }
    return shape;
}

static tn_dtype pick_dtype(builder *b)
{
    static const tn_dtype usual[] = {TN_FLOAT32, TN_FLOAT32, TN_FLOAT32, TN_FLOAT32,
                                     TN_FLOAT64, TN_FLOAT64, TN_INT64,   TN_INT32};
    return chance(b, 85) ? usual[below(b, sizeof usual / sizeof *usual)] : (tn_dtype)(1 + below(b, TN_DTYPE_COUNT - 1));
}

static void leaf(builder *b)
{
    tn_shape shape = b->g->count && chance(b, 70) ? tn_shape_of(b->g->x[any(b)]) : pick_shape(b);
    tn_dtype dtype = pick_dtype(b);
    int64_t size = 1;
    for (int d = 0; d < shape.ndim; d++)
        size *= shape.dim[d];
    double *data = malloc(sizeof *data * (size_t)(size + 1));
    for (int64_t i = 0; data && i < size; i++) {
        double u = test_random_double(&b->random) * 8 - 4;
        data[i] = chance(b, 97) ? u : below(b, 3) - 1;
    }
    if (!data || size > MAX_SIZE) {
        free(data);
        return;
    }
    tn_array *x = tn_cast(tn_from_host(data, shape, TN_FLOAT64), dtype);
    free(data);
    if (devices && tn_dtype_is_float(dtype)) /* so that it does not matter what has got its value already */
        tn_requires_grad(x);
    if (tn_eval(x) == TN_OK)
        add(b, x, "leaf", 0, 0);
}

/* ---- operations ---- */

typedef tn_array *(*unary)(const tn_array *);
typedef tn_array *(*binary)(const tn_array *, const tn_array *);
typedef tn_array *(*reduction)(const tn_array *, const tn_reduce_opts *);
#define NAMED(op) \
    { \
#op, tn_##op \
    }
#define NAMED_WITH(op) \
    { \
#op, tn_##op##_with \
    }

static void apply_unary(builder *b)
{
    static const struct {
        const char *name;
        unary make;
    } rows[] = {NAMED(negative), NAMED(abs),        NAMED(square), NAMED(exp),  NAMED(tanh),       NAMED(sigmoid),
                NAMED(relu),     NAMED(floor),      NAMED(sqrt),   NAMED(sin),  NAMED(isnan),      NAMED(logical_not),
                NAMED(sign),     NAMED(reciprocal), NAMED(log1p),  NAMED(gelu), NAMED(zeros_like), NAMED(ones_like)};
    int i = any(b), r = below(b, sizeof rows / sizeof *rows);
    add(b, rows[r].make(b->g->x[i]), rows[r].name, i, -1);
}

/* Another array that broadcasts with x, or else a number. */
static int partner(builder *b, const tn_array *x)
{
    tn_shape shape = tn_shape_of(x);
    for (int tries = 0; tries < 12; tries++) {
        int k = any(b);
        tn_shape other = tn_shape_of(b->g->x[k]);
        bool fits = true;
        for (int d = 1; d <= shape.ndim && d <= other.ndim; d++) {
            int64_t m = shape.dim[shape.ndim - d], n = other.dim[other.ndim - d];
            fits = fits && (m == n || m == 1 || n == 1);
        }
        if (fits)
            return k;
    }
    return -1;
}

static tn_array *number(builder *b)
{
    return chance(b, 50) ? tn_weak_float((below(b, 17) - 8) / 4.0) : tn_weak_int(below(b, 5));
}

/* NaN's sign is anybody's. */
static tn_array *copysign_of(const tn_array *x, const tn_array *y)
{
    return tn_copysign(x, tn_where(tn_isnan(y), 1, y));
}

static void apply_binary(builder *b)
{
    static const struct {
        const char *name;
        binary make;
    } rows[] = {NAMED(add),       NAMED(add),      NAMED(subtract),     NAMED(subtract),
                NAMED(multiply),  NAMED(multiply), NAMED(divide),       NAMED(maximum),
                NAMED(minimum),   NAMED(less),     NAMED(equal),        NAMED(logical_and),
                NAMED(remainder), NAMED(hypot),    NAMED(floor_divide), {"copysign", copysign_of}};
    int i = any(b), r = below(b, sizeof rows / sizeof *rows), k = chance(b, 80) ? partner(b, b->g->x[i]) : -1;
    if (k < 0 && b->g->product[i])
        return;
    /* A compiler knows what x // x is, and functions of it better than the library that is there at run time. */
    if (k == i && !tn_dtype_is_float(tn_dtype_of(b->g->x[i])))
        return;
    tn_array *other = k < 0 ? number(b) : b->g->x[k];
    bool swapped = chance(b, 50);
    add(b, swapped ? rows[r].make(other, b->g->x[i]) : rows[r].make(b->g->x[i], other), rows[r].name, swapped ? k : i,
        swapped ? i : k);
}

static void apply_select(builder *b)
{
    int i = any(b), k = partner(b, b->g->x[i]), c = partner(b, b->g->x[i]);
    if (chance(b, 50))
        add(b, tn_cast(b->g->x[i], pick_dtype(b)), "cast", i, -1);
    else if (k >= 0 && c >= 0)
        add(b, tn_where(tn_greater(b->g->x[c], 0), b->g->x[i], b->g->x[k]), "where", i, k);
}

static tn_axes pick_axes(builder *b, int ndim)
{
    tn_axes axes = {0};
    for (int d = 0; d < ndim; d++)
        if (chance(b, 50))
            axes.axis[axes.count++] = d;
    return axes;
}

/* On a GPU the tiles of a product, and so the order of its sums, depend on what is fused with it; so does the order of
 * sums over rows and columns of its result. */
static bool order_varies(void) { return tn_current_device().kind == TN_DEVICE_CUDA; }

/* A library's product of the same numbers rounds by how they lie: of a matrix and its own transpose, or of a number
 * that is stored once, otherwise than of copies of them. Over several devices they lie otherwise: what was sent is a
 * copy in C order, and a constant is made again by each region. */
static bool layout_varies(void) { return devices || order_varies(); }

/* Small whole numbers, whose sums, and those of their products, are exact in any order. */
static tn_array *whole(const tn_array *x) { return tn_clip(tn_rint(tn_where(tn_isfinite(x), x, 0)), -8, 8); }

static bool has_product(const random_graph *g)
{
    bool has = false;
    for (int i = 0; i < g->count; i++)
        has = has || g->product[i];
    return has;
}

static void apply_reduction(builder *b)
{
    enum { EXACT = 9 }; /* in any order, of small whole numbers */
    static const struct {
        const char *name;
        reduction make;
    } rows[] = {NAMED_WITH(sum),    NAMED_WITH(sum),  NAMED_WITH(sum),  NAMED_WITH(max),
                NAMED_WITH(min),    NAMED_WITH(mean), NAMED_WITH(any),  NAMED_WITH(all),
                NAMED_WITH(argmax), NAMED_WITH(var),  NAMED_WITH(prod), NAMED_WITH(logsumexp)};
    bool exact = order_varies() && has_product(b->g); /* which a reduction may be fused with */
    int i = any(b), r = below(b, exact ? EXACT : sizeof rows / sizeof *rows), ndim = tn_ndim(b->g->x[i]);
    const tn_array *x = exact ? whole(b->g->x[i]) : b->g->x[i];
    tn_reduce_opts opts = {.axis = pick_axes(b, ndim), .keepdims = chance(b, 60)};
    if (rows[r].make == tn_argmax_with && opts.axis.count > 1)
        opts.axis.count = 1;
    add(b, rows[r].make(x, &opts), rows[r].name, i, opts.keepdims);
    if (ndim && !exact && chance(b, 30)) {
        int axis = below(b, ndim);
        add(b, chance(b, 50) ? tn_softmax(x, axis) : tn_log_softmax(x, axis), "softmax", i, axis);
    }
}

static void apply_view(builder *b)
{
    int i = any(b);
    const tn_array *x = b->g->x[i];
    int ndim = tn_ndim(x), axis = ndim ? below(b, ndim) : 0;
    switch (below(b, 8)) {
    case 0:
        add(b, tn_transpose(x, (tn_axes){0}), "transpose", i, -1);
        break;
    case 1:
        add(b, tn_flatten(x), "flatten", i, -1);
        break;
    case 2:
        add(b, tn_flip(x, pick_axes(b, ndim)), "flip", i, -1);
        break;
    case 3:
        add(b, tn_expand_dims(x, below(b, ndim + 1)), "expand_dims", i, -1);
        break;
    case 4:
        add(b, tn_squeeze(x, (tn_axes){0}), "squeeze", i, -1);
        break;
    case 5:
        if (ndim)
            add(b,
                tn_slice_axis(x, axis, chance(b, 50) ? TN_NONE : below(b, 5),
                              chance(b, 50) ? TN_NONE : -below(b, 3) - 1,
                              chance(b, 70) ? 1 + below(b, 3) : -1 - below(b, 2)),
                "slice_axis", i, axis);
        break;
    case 6: {
        int64_t length = ndim && tn_dim(x, axis) ? 1 + below(b, tn_dim(x, axis) < 4 ? (int)tn_dim(x, axis) : 4) : 0;
        if (length)
            add(b, tn_sliding_window_view(x, TN_SHAPE(length), TN_AXES(axis)), "windows", i, axis);
        break;
    }
    default:
        if (ndim > 1)
            add(b, tn_swapaxes(x, axis, below(b, ndim)), "swapaxes", i, axis);
        break;
    }
}

static void apply_product(builder *b)
{
    int i = any(b), k = any(b);
    const tn_array *x = b->g->x[i], *y = b->g->x[k];
    if (layout_varies()) {
        x = whole(x);
        y = whole(y);
    }
    if (tn_ndim(x) < 1 || tn_ndim(y) < 1 || tn_ndim(x) > 3 || tn_ndim(y) > 3)
        return;
    bool fits = tn_dim(x, -1) == tn_dim(y, tn_ndim(y) > 1 ? -2 : -1);
    if (!fits)
        y = tn_ndim(x) > 1 ? tn_swapaxes(x, -1, -2) : x;
    int before = b->g->count;
    add(b, tn_matmul(x, y), "matmul", i, fits ? k : i);
    if (b->g->count > before)
        b->g->product[before] = true;
}

static tn_array *positions(builder *b, int64_t extent, tn_shape shape)
{
    int64_t size = 1;
    for (int d = 0; d < shape.ndim; d++)
        size *= shape.dim[d];
    int64_t *data = malloc(sizeof *data * (size_t)(size + 1));
    for (int64_t i = 0; data && i < size; i++)
        data[i] = test_random_int(&b->random, -extent, extent - 1);
    tn_array *x = tn_from_host(data, shape, TN_INT64);
    free(data);
    return x;
}

/* Windows over pictures (N, channels, extents), which what has fewer axes becomes; a convolution's weights are their
 * first elements. */
static void apply_window(builder *b)
{
    int i = any(b), before = b->g->count, what = below(b, 3);
    const tn_array *x = b->g->x[i];
    if (tn_ndim(x) < 1 || tn_ndim(x) > 4 || !tn_dtype_is_float(tn_dtype_of(x)))
        return;
    bool convolution = what == 2;
    if ((layout_varies() && convolution) || (order_varies() && has_product(b->g)))
        x = whole(x);
    while (tn_ndim(x) < 3)
        x = tn_expand_dims(x, 0);
    tn_shape kernel = {tn_ndim(x) - 2, {0}}, stride = kernel, pad = kernel;
    tn_slice_range first[TN_MAX_NDIM] = {{0, TN_NONE, 1}, {0, TN_NONE, 1}};
    for (int d = 0; d < kernel.ndim; d++) {
        kernel.dim[d] = 1 + below(b, 3);
        stride.dim[d] = 1 + below(b, 2);
        pad.dim[d] = below(b, (int)kernel.dim[d]);
        first[d + 2] = (tn_slice_range){0, kernel.dim[d], 1};
    }
    if (convolution)
        add(b, tn_conv(x, tn_slice(x, tn_ndim(x), first), .stride = stride, .pad = pad), "conv", i, (int)kernel.dim[0]);
    else if (what == 0)
        add(b, tn_max_pool(x, kernel, .stride = stride, .pad = pad, .ceil = chance(b, 30)), "max_pool", i,
            (int)kernel.dim[0]);
    else
        add(b, tn_average_pool(x, kernel, .stride = stride, .pad = pad), "average_pool", i, (int)kernel.dim[0]);
    if (b->g->count > before && convolution)
        b->g->product[before] = true;
}

static void apply_indexing(builder *b)
{
    int i = any(b), k = any(b);
    const tn_array *x = b->g->x[i], *y = b->g->x[k];
    int ndim = tn_ndim(x), axis = ndim ? below(b, ndim) : 0;
    if (!ndim || !tn_size(x) || tn_size(x) > 5000)
        return;
    tn_shape like = tn_shape_of(x);
    switch (below(b, 6)) {
    case 0:
        add(b, tn_take(x, positions(b, tn_dim(x, axis), TN_SHAPE(1 + below(b, 9))), axis), "take", i, axis);
        break;
    case 1:
        like.dim[axis] = 1 + below(b, 4);
        add(b, tn_take_along_axis(x, positions(b, tn_dim(x, axis), like), axis), "take_along_axis", i, axis);
        break;
    case 2: {
        tn_array *at = positions(b, tn_dim(x, axis), TN_SHAPE(1 + below(b, 9)));
        add(b, tn_scatter_add(x, at, tn_multiply(tn_take(x, at, axis), 2), axis), "scatter_add", i, axis);
        break;
    }
    case 3: {
        tn_slice_range window[TN_MAX_NDIM];
        for (int d = 0; d < ndim; d++)
            window[d] = (tn_slice_range){below(b, 2), TN_NONE, 1 + below(b, 2)};
        tn_array *part = tn_slice(x, ndim, window);
        add(b, tn_slice_update(x, ndim, window, chance(b, 50) ? tn_negative(part) : tn_weak_int(3)), "slice_update", i,
            -1);
        break;
    }
    case 4: {
        const tn_array *both[] = {x, tn_flip(x, TN_AXES(axis)), x};
        add(b, tn_concatenate(2 + below(b, 2), both, axis), "concatenate", i, axis);
        break;
    }
    default: {
        const tn_array *both[] = {x, y};
        add(b, tn_stack(2, both, below(b, ndim + 1)), "stack", i, k);
        break;
    }
    }
}

/* The gradient of one array's sum by another, where it depends on it. */
static void apply_gradient(builder *b)
{
    int i = any(b), before = b->g->count;
    be_somewhere(b); /* it goes back through all devices between them */
    int k = any(b);
    const tn_array *x = b->g->x[k];
    tn_array *gradient = NULL;
    bool again = devices && chance(b, 50); /* gradients of it may be taken in turn */
    if (!tn_dtype_is_float(tn_dtype_of(b->g->x[i])) || !tn_dtype_is_float(tn_dtype_of(x)))
        return;
    if (devices && !tn_needs_grad(x)) /* it may be collapsed with another, or not */
        return;
    if (order_varies() && has_product(b->g)) /* whose gradients are products of other numbers */
        return;
    if (tn_gradients(tn_sum(b->g->x[i]), 1, &x, again, &gradient) == TN_OK)
        add(b, gradient, "gradient", i, k);
    tn_clear_error();
    if (b->g->count > before)
        b->g->product[before] = true;
}

/* With one axis more, or one: so that it is another array where it stays on its device, too. */
static void apply_move(builder *b)
{
    int i = any(b), before = b->g->count;
    const tn_array *x = b->g->x[i];
    b->now = below(b, 3);
    if (tn_ndim(x) == 4) /* the next axis would be one too many for windows */
        return;
    x = tn_expand_dims(x, 0);
    add(b, tn_to(x, devices[b->now]), "to", i, b->now);
    if (b->g->count > before)
        b->g->product[before] = b->g->product[i];
}

/* Points a handle at a new value; its old one stays with whatever reads it. */
static void apply_assign(builder *b)
{
    int i = any(b), k = partner(b, b->g->x[i]);
    bool scalar = k < 0 || chance(b, 30);
    if (scalar && b->g->product[i])
        return;
    tn_array *y = scalar ? number(b) : b->g->x[k];
    tn_status status = chance(b, 50)   ? tn_add_assign(b->g->x[i], y)
                       : chance(b, 50) ? tn_multiply_assign(b->g->x[i], y)
                                       : tn_subtract_assign(b->g->x[i], y);
    if (status == TN_OK)
        fprintf(b->trace, "  %d assigned from %d\n", i, scalar ? -1 : k);
    tn_clear_error();
}

/* Evaluates or lets go of an array in the middle: its memory may be taken over afterwards. */
static void disturb(builder *b)
{
    int i = any(b);
    if (chance(b, 30)) {
        fprintf(b->trace, "  %d evaluated\n", i);
        if (tn_eval(b->g->x[i]) != TN_OK)
            fprintf(b->trace, "  failed: %s\n", tn_error());
    } else if (b->g->count > 5) {
        int held = 0;
        for (int k = 0; k < b->g->count; k++)
            held += b->g->x[k] != NULL;
        if (held < 4)
            return;
        fprintf(b->trace, "  %d freed\n", i);
        tn_free(b->g->x[i]);
        b->g->x[i] = NULL;
    }
}

void random_graph_build(random_graph *g, uint64_t seed)
{
    static void (*const steps[])(builder *) = {
        apply_unary,  apply_unary,     apply_unary,     apply_binary,   apply_binary, apply_binary,  apply_binary,
        apply_select, apply_reduction, apply_reduction, apply_view,     apply_view,   apply_product, apply_indexing,
        apply_window, apply_assign,    apply_gradient,  apply_gradient, apply_gradient, disturb,     leaf};
    *g = (random_graph){0};
    builder b = {.g = g, .random = {seed}, .trace = open_memstream(&g->trace, &g->trace_size)};
    for (int i = 0; i < 3; i++)
        b.extent[i] = extents[below(&b, sizeof extents / sizeof *extents)];
    while (g->count < 3)
        leaf(&b); /* on the device of now, from where they are moved */
    tn_device before = tn_current_device();
    for (int s = 15 + below(&b, STEPS); s-- > 0;) {
        be_somewhere(&b);
        if (devices && chance(&b, 20))
            apply_move(&b);
        else
            steps[below(&b, sizeof steps / sizeof *steps)](&b);
    }
    if (tn_set_device(before) != TN_OK)
        fprintf(b.trace, "  %s\n", tn_error());
    fclose(b.trace);
}

void random_graph_free(random_graph *g)
{
    free(g->trace);
    g->trace = NULL;
}
