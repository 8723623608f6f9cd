/* SPDX-License-Identifier: MIT */
/* Products, bilinear forms, bags of embeddings, and samples; layers made of linear ones. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tanso/connections.h>

#include "core/options.h"
#include "nn/activation.h"
#include "nn/layer.h"

/* ---- products ---- */

tn_array *tn_linear_function(const tn_array *x, const tn_array *w, const tn_array *b)
{
    static const char operation[] = "linear";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__floating(x, operation), tn__only_floating(w, operation),
                      b ? tn__only_floating(b, operation) : NULL};
    tn__node *error = tn__first_error(3, in);
    if (error)
        return tn__leave_array(call, error);
    const tn__shape *a = in[0]->shape, *weights = in[1]->shape;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (weights->ndim != 2 || a->ndim < 1 || a->dim[a->ndim - 1] != weights->dim[0]) {
        tn__fail(TN_ERR_SHAPE, operation, "expected x (..., in) and w (in, out), got %s and %s",
                 tn__shape_text(a->ndim, a->dim, text), tn__shape_text(weights->ndim, weights->dim, other));
        return tn__leave_error(call);
    }
    if (in[2] && (in[2]->shape->ndim != 1 || in[2]->shape->dim[0] != weights->dim[1])) {
        tn__fail(TN_ERR_SHAPE, operation, "expected b of shape (%" PRId64 ",), got %s", weights->dim[1],
                 tn__shape_text(in[2]->shape->ndim, in[2]->shape->dim, text));
        return tn__leave_error(call);
    }
    tn_shape shape = tn__shape_value(a);
    int64_t rows = 1;
    for (int i = 0; i < a->ndim - 1; i++)
        rows *= shape.dim[i];
    shape.dim[a->ndim - 1] = weights->dim[1];
    tn__node *y = tn__matmul_node(tn__reshape(in[0], 2, (int64_t[]){rows, weights->dim[0]}), in[1]);
    return tn__leave_array(call, tn__reshape(in[2] ? add(y, in[2]) : y, shape.ndim, shape.dim));
}

tn_array *tn_dropconnect(const tn_array *x, const tn_array *w, const tn_array *b, double ratio,
                         tn_generator *generator)
{
    static const char operation[] = "dropconnect";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__only_floating(x, operation), tn__only_floating(w, operation),
                      b ? tn__only_floating(b, operation) : NULL};
    tn__node *y = tn__first_error(3, in);
    if (!(ratio >= 0 && ratio < 1))
        y = tn__number_error(operation, "a ratio in [0, 1)", ratio);
    if (y)
        return tn__leave_array(call, y);
    const tn__shape *a = in[0]->shape, *weights = in[1]->shape;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (a->ndim != 2 || weights->ndim != 2 || a->dim[1] != weights->dim[0] ||
        (in[2] && (in[2]->shape->ndim != 1 || in[2]->shape->dim[0] != weights->dim[1]))) {
        tn__fail(TN_ERR_SHAPE, operation, "expected x (N, in), w (in, out) and b (out), got %s and %s",
                 tn__shape_text(a->ndim, a->dim, text), tn__shape_text(weights->ndim, weights->dim, other));
        return tn__leave_error(call);
    }
    tn__node *each = mul(tn__spread(in[0], 2), tn__spread(in[1], 0)); /* (N, in, out) */
    y = tn__node_is_error(each) ? each : tn__dropout(each, ratio, generator);
    y = tn__without_axis(tn__sum_over(y, 1u << 1), 1);
    return tn__leave_array(call, in[2] ? add(y, in[2]) : y);
}

tn_array *tn_linear_interpolate(const tn_array *p, const tn_array *x, const tn_array *y)
{
    static const char operation[] = "linear_interpolate";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__floating(p, operation), tn__floating(x, operation), tn__floating(y, operation)};
    tn__node *error = tn__first_error(3, in);
    return tn__leave_array(call, error ? error : add(mul(in[0], in[1]), mul(less_from(1, in[0]), in[2])));
}

/* a (N, left) times w as (left, right × out), then b's sums. */
static tn__node *bilinear(tn__node *a, tn__node *b, tn__node *w, tn__node *bias)
{
    tn__node *error = tn__first_error(4, (tn__node *[]){a, b, w, bias});
    if (error)
        return error;
    const int64_t *dim = w->shape->dim;
    char at[TN__SHAPE_TEXT], bt[TN__SHAPE_TEXT], wt[TN__SHAPE_TEXT];
    if (w->shape->ndim != 3 || a->shape->ndim != 2 || b->shape->ndim != 2 || a->shape->dim[0] != b->shape->dim[0] ||
        a->shape->dim[1] != dim[0] || b->shape->dim[1] != dim[1])
        TN__REFUSE(TN_ERR_SHAPE, "bilinear", "expected (N, left), (N, right) and (left, right, out), got %s, %s and %s",
                   tn__shape_text(a->shape->ndim, a->shape->dim, at), tn__shape_text(b->shape->ndim, b->shape->dim, bt),
                   tn__shape_text(w->shape->ndim, dim, wt));
    if (bias && (bias->shape->ndim != 1 || bias->shape->dim[0] != dim[2]))
        TN__REFUSE(TN_ERR_SHAPE, "bilinear", "expected a bias of shape (%" PRId64 ",)", dim[2]);
    int64_t rows = a->shape->dim[0];
    tn__node *left = tn__matmul_node(a, tn__reshape(w, 2, (int64_t[]){dim[0], dim[1] * dim[2]}));
    left = tn__reshape(left, 3, (int64_t[]){rows, dim[1], dim[2]});
    tn__node *y = tn__without_axis(tn__sum_over(mul(left, tn__spread(b, 2)), 1u << 1), 1);
    return bias ? add(y, bias) : y;
}

tn_array *tn_bilinear_function(const tn_array *a, const tn_array *b, const tn_array *w, const tn_array *bias)
{
    static const char operation[] = "bilinear";
    tn__call call = tn__enter();
    tn__node *left = tn__only_floating(a, operation), *right = tn__only_floating(b, operation);
    tn__node *weights = tn__only_floating(w, operation);
    return tn__leave_array(call, bilinear(left, right, weights, bias ? tn__only_floating(bias, operation) : NULL));
}

static void bilinear_flow(tn_layer *layer, const tn__flow *flow)
{
    tn__node *left = tn__checked_floating(flow->in[0], "bilinear");
    tn__node *right = tn__checked_floating(flow->in[1], "bilinear");
    flow->out[0] = bilinear(left, right, tn__slot_node(layer, 0), tn__slot_node(layer, 1));
}

static const tn__layer_kind bilinear_kind = {.name = "bilinear", .flow = bilinear_flow};

tn_layer *tn_bilinear(int64_t left, int64_t right, int64_t out)
{
    if (left < 1 || right < 1 || out < 1)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "bilinear", "expected extents of one or more, got %" PRId64
                                             ", %" PRId64 " and %" PRId64, left, right, out));
    tn_layer *layer = tn__layer_make(&bilinear_kind);
    if (layer->is_static)
        return layer;
    layer->ports = (tn__ports){.inputs = 2, .outputs = 1};
    tn_status status = tn__slot_add(layer, "W", (tn_shape){3, {left, right, out}}, TN_FLOAT32,
                                    (tn_init){.kind = TN_INIT_LECUN_NORMAL});
    if (status == TN_OK)
        status = tn__slot_add(layer, "b", (tn_shape){1, {out}}, TN_FLOAT32, (tn_init){.kind = TN_INIT_ZEROS});
    return tn__layer_finish(layer, status);
}

/* ---- bags ---- */

static tn__node *bag(tn__node *w, tn__node *x, tn__node *weights, const tn_bag_opts *opts)
{
    static const char operation[] = "embedding_bag";
    tn_bag_mode mode = opts ? opts->mode : TN_BAG_MEAN;
    char text[TN__SHAPE_TEXT];
    if (x->shape->ndim != 2)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected indices (N, bag), got %s",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text));
    if ((unsigned)mode >= TN_BAG_MODE_COUNT || (weights && mode != TN_BAG_SUM))
        TN__REFUSE(TN_ERR_VALUE, operation, "expected a tn_bag_mode, and weights of sums only; got the mode %d",
                   (int)mode);
    tn__node *counts = NULL, *chosen = tn__integers(x);
    if (opts && TN__GIVEN(opts, padding_index)) {
        tn__node *counted = tn__is_not(x, opts->padding_index);
        counts = tn__spread(counted, 2);
        chosen = tn__only_where(counted, chosen);
    }
    tn__node *rows = tn__embed(operation, w, chosen);
    TN__PASS_ERROR(rows);
    uint32_t along = 1u << 1;
    if (mode == TN_BAG_MAX) {
        if (x->shape->dim[1] == 0)
            return tn__without_axis(tn__sum_over(rows, along), 1);
        if (!counts)
            return tn__without_axis(tn__reduce(TN__OP_MAX, rows, along), 1);
        tn__node *most = tn__reduce(TN__OP_MAX, tn__where(counts, rows, like(rows, -INFINITY)), along);
        tn__node *any = tn__reduce(TN__OP_ANY, counts, along);
        TN__PASS_ERROR(most);
        return tn__without_axis(tn__only_where(any, most), 1);
    }
    if (weights)
        rows = mul(rows, tn__spread(weights, 2));
    tn__node *sum = tn__sum_over(counts ? tn__only_where(counts, rows) : rows, along);
    if (mode == TN_BAG_MEAN && counts)
        sum = over(sum, with(MAXIMUM, tn__sum_over(tn__cast(counts, (tn_dtype)rows->dtype), along), 1));
    else if (mode == TN_BAG_MEAN)
        sum = times(sum, 1 / (double)(x->shape->dim[1] > 0 ? x->shape->dim[1] : 1));
    return tn__without_axis(sum, 1);
}

tn_array *tn_embedding_bag_with(const tn_array *w, const tn_array *x, const tn_bag_opts *opts)
{
    static const char operation[] = "embedding_bag";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__only_floating(w, operation), tn__only_integers(x, operation),
                      opts && opts->weights ? tn__only_floating(opts->weights, operation) : NULL};
    tn__node *error = tn__first_error(3, in);
    if (!error && opts && !TN__ARRAY_WRITTEN(operation, opts, weights))
        error = tn__failed();
    if (!error && in[2] && !tn__same_shape(operation, "indices", in[1], "weights", in[2]))
        error = tn__failed();
    return tn__leave_array(call, error ? error : bag(in[0], in[1], in[2], opts));
}

/* ---- choosing ---- */

tn_array *tn_select_item(const tn_array *x, const tn_array *t)
{
    static const char operation[] = "select_item";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__node_of(x, operation), tn__only_integers(t, operation)};
    tn__node *error = tn__first_error(2, in);
    char text[2][TN__SHAPE_TEXT];
    if (error)
        return tn__leave_array(call, error);
    if (in[0]->shape->ndim != 2 || in[1]->shape->ndim != 1 || in[0]->shape->dim[0] != in[1]->shape->dim[0]) {
        tn__fail(TN_ERR_SHAPE, operation, "expected x (N, classes) and t (N), got %s and %s",
                 tn__shape_text(in[0]->shape->ndim, in[0]->shape->dim, text[0]),
                 tn__shape_text(in[1]->shape->ndim, in[1]->shape->dim, text[1]));
        return tn__leave_error(call);
    }
    tn__node *y = tn__gather(in[0], tn__spread(tn__labels(tn__integers(in[1])), 1), 1);
    return tn__leave_array(call, tn__without_axis(y, 1));
}

/* ---- layers of linear ones ---- */

static tn__node *highway_forward(tn_layer *layer, tn__node *x)
{
    tn__node *plain = tn__layer_forward(layer->children[2].layer, tn__layer_forward(layer->children[0].layer, x));
    tn__node *gate = map(SIGMOID, tn__layer_forward(layer->children[1].layer, x));
    tn__node *error = tn__first_error(2, (tn__node *[]){plain, gate});
    return error ? error : add(x, mul(gate, sub(plain, x)));
}

static const tn__layer_kind highway_kind = {.name = "highway", .forward = highway_forward};

tn_layer *tn_highway(int64_t features, const char *activation)
{
    if (features < 1)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "highway", "expected at least one feature, got %" PRId64,
                                             features));
    tn_layer *layer = tn__layer_make(&highway_kind);
    if (layer->is_static)
        return layer;
    const tn_linear_opts plain = {.in = features};
    const tn_linear_opts transform = {.in = features, .bias = {.kind = TN_INIT_CONSTANT, .gain = -1}};
    tn_status status = tn_layer_add(layer, "plain", tn_linear_with(features, &plain));
    if (status == TN_OK)
        status = tn_layer_add(layer, "transform", tn_linear_with(features, &transform));
    if (status == TN_OK)
        status = tn_layer_add(layer, "activation", tn__layer_from_word("highway", activation ? activation : "relu"));
    return tn__layer_finish(layer, status);
}

static tn__node *maxout_forward(tn_layer *layer, tn__node *x)
{
    return tn__maxout(tn__layer_forward(layer->children[0].layer, x), *(const int64_t *)layer->user.data, -1);
}

static const tn__layer_kind maxout_kind = {.name = "maxout", .forward = maxout_forward};

tn_layer *tn_maxout_layer(int64_t out, int64_t pool)
{
    int64_t all;
    if (out < 1 || pool < 1 || __builtin_mul_overflow(out, pool, &all))
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "maxout",
                                             "expected at least one output and a pool of one, got %" PRId64
                                             " and %" PRId64, out, pool));
    tn_layer *layer = tn__layer_make(&maxout_kind);
    if (layer->is_static)
        return layer;
    int64_t *data = tn__layer_data(layer, sizeof *data);
    if (!data)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    *data = pool;
    return tn__layer_finish(layer, tn_layer_add(layer, "linear", tn_linear_with(all, NULL)));
}

/* ---- samples ---- */

static tn__node *gumbel_like(tn__node *x, tn_generator *generator)
{
    tn__node *u = with(MAXIMUM, tn__uniform_like(x, generator), 0x1p-25); /* never 0 */
    return minus(map(LOG, minus(map(LOG, u))));
}

tn_array *tn_gaussian(const tn_array *mean, const tn_array *ln_var, tn_generator *generator)
{
    static const char operation[] = "gaussian";
    tn__call call = tn__enter();
    tn__node *m = tn__only_floating(mean, operation), *v = tn__only_floating(ln_var, operation);
    tn__node *error = tn__first_error(2, (tn__node *[]){m, v});
    if (!error && !tn__same_shape(operation, "means", m, "variances", v))
        error = tn__failed();
    if (error)
        return tn__leave_array(call, error);
    tn__node *noise = tn__cast(tn__normal_like(m, generator), (tn_dtype)m->dtype);
    return tn__leave_array(call, add(m, mul(map(EXP, times(v, 0.5)), noise)));
}

tn_array *tn_gumbel_softmax(const tn_array *log_pi, double tau, int axis, bool hard, tn_generator *generator)
{
    static const char operation[] = "gumbel_softmax";
    tn__call call = tn__enter();
    tn__node *x = tn__only_floating(log_pi, operation);
    if (!(tau > 0) || !isfinite(tau))
        x = tn__number_error(operation, "tau > 0", tau);
    if (tn__node_is_error(x))
        return tn__leave_array(call, x);
    axis = tn__axis_check(operation, axis, x->shape->ndim);
    if (axis < 0)
        return tn__leave_error(call);
    tn__node *wide = tn__widened(x), *noise = tn__cast(gumbel_like(wide, generator), (tn_dtype)wide->dtype);
    tn__node *y = tn__softmax_over(times(add(wide, noise), 1 / tau), axis);
    if (hard && !tn__node_is_error(y) && y->shape->size > 0) {
        tn__no_grad_depth++;
        tn__node *best = tn__reduce(TN__OP_ARGMAX, y, 1u << axis);
        tn__node *one = tn__cast(map2(EQUAL, best, tn__iota(y->shape, axis, y->device)), (tn_dtype)y->dtype);
        tn__node *rest = sub(one, y);
        tn__no_grad_depth--;
        y = add(y, rest);
    }
    return tn__leave_array(call, tn__cast(y, (tn_dtype)x->dtype));
}
