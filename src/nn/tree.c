/* SPDX-License-Identifier: MIT */
/* Long short-term memory along trees (Tai, Socher, Manning 2015): the states of a node's children lie side by side. */
#include "nn/layer.h"
#include "nn/terms.h"

#include <inttypes.h>
#include <stdio.h>
#include <tanso/array.h>
#include <tanso/recurrent.h>

/* Gates: candidate, input, output, and a forget gate for each child. */
enum { OWN_GATES = 3 };

static tn__node *gate(tn__node *gates, int64_t units, int i) { return tn__piece(gates, 1, i * units, units); }

/* Of gates (N, 3 units), forget gates f and cells c (N, children, units), which may be NULL. */
static tn__node *step(tn__node *gates, tn__node *f, tn__node *c, int64_t units, tn__node **c_next)
{
    *c_next = mul(map(TANH, gate(gates, units, 0)), map(SIGMOID, gate(gates, units, 1)));
    if (c)
        *c_next = add(*c_next, tn__without_axis(tn__sum_over(mul(map(SIGMOID, f), c), 1u << 1), 1));
    return mul(map(SIGMOID, gate(gates, units, 2)), map(TANH, *c_next));
}

/* (N, children units) as (N, children, units). */
static tn__node *apart(tn__node *f, int64_t rows, int64_t children, int64_t units)
{
    return tn__reshape(f, 3, (int64_t[]){rows, children, units});
}

tn_array *tn_tree_lstm_step(const tn_array *gates, const tn_array *c, tn_array **c_next)
{
    static const char operation[] = "tree_lstm_step";
    tn__call call = tn__enter();
    tn__node *in[] = {tn__only_floating(gates, operation), tn__only_floating(c, operation)}, *next = NULL, *h;
    tn__node *error = tn__first_error(2, in);
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    const tn__shape *a = error ? NULL : in[0]->shape, *b = error ? NULL : in[1]->shape;
    if (!error && (a->ndim != 2 || b->ndim != 3 || a->dim[0] != b->dim[0] ||
                   a->dim[1] != (OWN_GATES + b->dim[1]) * b->dim[2]))
        error = tn__node_error(tn__error_new(TN_ERR_SHAPE, operation,
                                             "expected gates (N, (3 + children) units) and cells (N, children, units), "
                                             "got %s and %s", tn__shape_text(a->ndim, a->dim, text),
                                             tn__shape_text(b->ndim, b->dim, other)));
    h = error;
    if (!error) {
        int64_t units = b->dim[2], own = OWN_GATES * units;
        tn__node *f = apart(tn__piece(in[0], 1, own, a->dim[1] - own), b->dim[0], b->dim[1], units);
        h = step(in[0], f, in[1], units, &next);
    }
    if (c_next)
        *c_next = tn__leave_array(tn__enter(), error ? error : next);
    return tn__leave_array(call, h);
}

/* ---- layers ---- */

typedef struct tree {
    int64_t units, children; /* children 0: any number, whose states are summed */
} tree;

/* h and c (N, children, units) that fit x; an error, or NULL. */
static tn__node *check_children(const tree *t, const tn__node *x, tn__node *const state[2])
{
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (!state[0] || !state[1]) {
        if (state[0] || state[1])
            TN__REFUSE(TN_ERR_VALUE, "tree_lstm", "expected h and c of the children, or neither");
        return NULL;
    }
    const tn__shape *h = state[0]->shape, *c = state[1]->shape;
    if (h->ndim != 3 || h != c || h->dim[0] != x->shape->dim[0] || h->dim[2] != t->units ||
        (t->children > 0 && h->dim[1] != t->children))
        TN__REFUSE(TN_ERR_SHAPE, "tree_lstm",
                   "expected h and c of shape (%" PRId64 ", children, %" PRId64 "), got %s and %s", x->shape->dim[0],
                   t->units, tn__shape_text(h->ndim, h->dim, text), tn__shape_text(c->ndim, c->dim, other));
    return NULL;
}

static tn__node *forward(tn_layer *layer, const tree *t, tn__node *x, tn__node *const state[2], tn__node **c_next)
{
    int64_t u = t->units, rows = x->shape->dim[0], own = OWN_GATES * u;
    tn__node *w = tn__slot_node(layer, 0), *v = tn__slot_node(layer, 1);
    tn__node *gx = add(tn__matmul_node(x, w), tn__slot_node(layer, 2)), *h = state[0], *f;
    TN__PASS_ERROR(gx);
    if (!h)
        return step(gx, NULL, NULL, u, c_next);
    int64_t children = h->shape->dim[1];
    if (t->children > 0) {
        tn__node *side = tn__reshape(h, 2, (int64_t[]){rows, children * u});
        gx = add(gx, tn__matmul_node(side, v));
        f = apart(tn__piece(gx, 1, own, children * u), rows, children, u);
    } else {
        tn__node *each = tn__reshape(h, 2, (int64_t[]){rows * children, u});
        tn__node *sum = tn__without_axis(tn__sum_over(h, 1u << 1), 1);
        f = apart(tn__matmul_node(each, tn__piece(v, 1, own, u)), rows, children, u);
        f = add(f, tn__spread(tn__piece(gx, 1, own, u), 1));
        gx = add(tn__piece(gx, 1, 0, own), tn__matmul_node(sum, tn__piece(v, 1, 0, own)));
    }
    return step(gx, f, state[1], u, c_next);
}

static void tree_flow(tn_layer *layer, const tn__flow *flow)
{
    const tree *t = layer->user.data;
    tn__node *x = flow->in[0], *c = NULL;
    tn__node *state[2] = {flow->in_count > 1 ? flow->in[1] : NULL, flow->in_count > 2 ? flow->in[2] : NULL};
    char text[TN__SHAPE_TEXT];
    tn__node *h = NULL;
    if (x->shape->ndim != 2 || !tn_dtype_is_float((tn_dtype)x->dtype))
        h = tn__node_error(tn__error_new(TN_ERR_SHAPE, "tree_lstm", "expected floating inputs (N, features), got %s",
                                         tn__shape_text(x->shape->ndim, x->shape->dim, text)));
    else if (!layer->slots[0].value && tn__slots_infer(layer, x->shape->dim[1], x->device) != TN_OK)
        h = tn__failed();
    else
        h = check_children(t, x, state);
    bool fine = !h;
    if (fine)
        h = forward(layer, t, x, state, &c);
    flow->out[0] = h;
    if (flow->out_count > 1)
        flow->out[1] = fine ? c : h;
}

static void tree_describe(const tn_layer *layer, tn__text *text)
{
    const tree *t = layer->user.data;
    tn__text_addf(text, ":%" PRId64 ":%" PRId64, t->units, t->children);
}

/* NaryTreeLSTM's "W_h1" ... stand one below the other, ChildSumTreeLSTM's "W_h_aio" and "W_h_f" side by side. */
static tn_array *stored_states(const tree *t, const tn_archive *archive, const char *before)
{
    tn_array *all = NULL;
    int count = t->children > 0 ? (int)t->children : 2;
    for (int i = 0; i < count; i++) {
        char which[32];
        snprintf(which, sizeof which, t->children > 0 ? "%d" : i ? "_f" : "_aio", i + 1);
        char *name = tn__format("%sW_h%s/W", before, which);
        tn_array *part = name ? tn_archive_find(archive, name) : NULL;
        tn__free(name);
        if (!part)
            return NULL;
        part = tn_transpose(part, (tn_axes){0});
        all = all ? tn_concatenate(2, (const tn_array *const[]){all, part}, t->children > 0 ? 0 : 1) : part;
    }
    return all;
}

static tn_array *from_chainer(const tn_layer *layer, const tn__slot *slot, const tn_archive *archive,
                              const char *before)
{
    bool bias = slot == &layer->slots[2];
    if (slot == &layer->slots[1])
        return stored_states(layer->user.data, archive, before);
    if (slot != &layer->slots[0] && !bias)
        return NULL;
    char *name = tn__format("%sW_x/%c", before, bias ? 'b' : 'W');
    tn_array *found = name ? tn_archive_find(archive, name) : NULL;
    tn__free(name);
    return found && !bias ? tn_transpose(found, (tn_axes){0}) : found;
}

static const tn__layer_kind tree_kind = {
    .name = "tree_lstm", .flow = tree_flow, .describe = tree_describe, .from_chainer = from_chainer};

tn_layer *tn_tree_lstm(int64_t units, int64_t children, int64_t in)
{
    enum { MOST = 1 << 16 };
    if (units < 1 || units > INT32_MAX || children < 0 || children > MOST || in < 0)
        return tn__layer_error(tn__error_new(TN_ERR_VALUE, "tree_lstm",
                                             "expected at least one unit, 0 to %d children (0: any number) and input "
                                             "features >= 0 (0: inferred); got %" PRId64 ", %" PRId64 " and %" PRId64,
                                             MOST, units, children, in));
    tn_layer *layer = tn__layer_make(&tree_kind);
    if (layer->is_static)
        return layer;
    tree *t = tn__layer_data(layer, sizeof *t);
    if (!t)
        return tn__layer_finish(layer, TN_ERR_MEMORY);
    *t = (tree){units, children};
    layer->ports = (tn__ports){.inputs = 3, .optional = 2, .outputs = 2};
    int64_t each = children > 0 ? children : 1, sums = (OWN_GATES + each) * units;
    const tn_init normal = {.kind = TN_INIT_LECUN_NORMAL}, zeros = {.kind = TN_INIT_ZEROS};
    tn_status status = tn__slot_add(layer, "W", (tn_shape){2, {in > 0 ? in : -1, sums}}, TN_FLOAT32, normal);
    if (status == TN_OK)
        status = tn__slot_add(layer, "U", (tn_shape){2, {each * units, sums}}, TN_FLOAT32, normal);
    if (status == TN_OK)
        status = tn__slot_add(layer, "b", (tn_shape){1, {sums}}, TN_FLOAT32, zeros);
    return tn__layer_finish(layer, status);
}
