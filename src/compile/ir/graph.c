/* SPDX-License-Identifier: MIT */
/* The compiler's graph: growing, checking, listing. */
#include "compile/ir/graph.h"

#include "array/user.h"
#include "core/memory.h"

#include <inttypes.h>
#include <string.h>

void tn__graph_free(tn__graph *graph)
{
    tn__free(graph->value);
    tn__free(graph->leaf);
    tn__free(graph->result);
    tn__free(graph->scalar_dtype);
    memset(graph, 0, sizeof *graph);
}

int tn__graph_add(tn__graph *graph, const tn__value *value)
{
    if (!tn__grow((void **)&graph->value, &graph->capacity, (size_t)graph->count + 1, sizeof *value))
        return -1;
    graph->value[graph->count] = *value;
    return graph->count++;
}

void tn__graph_count_uses(tn__graph *graph)
{
    for (int v = 0; v < graph->count; v++)
        graph->value[v].uses = 0;
    for (int r = 0; r < graph->result_count; r++)
        graph->value[graph->result[r]].uses++;
    /* Only what a result needs counts as a use, so dead values end with none. */
    for (int v = graph->count - 1; v >= 0; v--)
        if (graph->value[v].uses)
            for (int i = 0; i < graph->value[v].arity; i++)
                graph->value[graph->value[v].in[i]].uses++;
}

void tn__graph_take(tn__graph *graph, tn__graph *other, const int *number, bool done)
{
    if (!done) {
        tn__free(other->value);
        *other = (tn__graph){0};
        return;
    }
    for (int r = 0; r < graph->result_count && number; r++)
        graph->result[r] = number[graph->result[r]];
    tn__free(graph->value);
    graph->value = other->value;
    graph->count = other->count;
    graph->capacity = other->capacity;
    *other = (tn__graph){0};
    tn__graph_count_uses(graph);
}

static bool same_shape(const tn__graph *graph, const tn__value *v, int i)
{
    return graph->value[v->in[i]].shape == v->shape;
}

static const char *verify_value(const tn__graph *graph, const tn__value *v)
{
    switch (tn__value_kind(v)) {
    case TN__KIND_MAP:
        for (int i = 0; i < v->arity; i++)
            if (!same_shape(graph, v, i))
                return "an elementwise input has another shape";
        break;
    case TN__KIND_REDUCE: {
        const tn__shape *in = graph->value[v->in[0]].shape;
        for (int d = 0; d < in->ndim; d++)
            if (v->shape->dim[d] != (v->attr.axes >> d & 1 ? 1 : in->dim[d]))
                return "a reduction's extents do not follow from its axes";
        break;
    }
    case TN__KIND_USER:
        for (int i = 0; i < v->arity; i++)
            if (!same_shape(graph, v, i) && !(v->attr.user->raw >> i & 1))
                return "an input of a user's operation has another shape";
        break;
    case TN__KIND_VIEW:
        if (v->op == TN__OP_RESHAPE && graph->value[v->in[0]].shape->size != v->shape->size)
            return "a reshape changes the size";
        break;
    default:
        break;
    }
    return NULL;
}

const char *tn__graph_verify(const tn__graph *graph)
{
    for (int i = 0; i < graph->count; i++) {
        const tn__value *v = &graph->value[i];
        if (!v->shape || !tn__dtype_valid(v->dtype))
            return "a value without shape or dtype";
        if (v->arity != tn__ops[v->op].arity && !tn__value_is_wide(v))
            return "a value with too many or too few inputs";
        for (int k = 0; k < v->arity; k++)
            if (v->in[k] < 0 || v->in[k] >= i)
                return "a value that comes before its input";
        const char *wrong = verify_value(graph, v);
        if (wrong)
            return wrong;
    }
    for (int r = 0; r < graph->result_count; r++)
        if (graph->result[r] < 0 || graph->result[r] >= graph->count)
            return "a result that is no value";
    return NULL;
}

void tn__graph_print(const tn__graph *graph, tn__text *text)
{
    for (int i = 0; i < graph->count; i++) {
        const tn__value *v = &graph->value[i];
        char shape[TN__SHAPE_TEXT];
        tn__text_addf(text, "  %%%d = %s", i, v->attr.user ? v->attr.user->function : tn__ops[v->op].name);
        for (int k = 0; k < v->arity; k++)
            tn__text_addf(text, "%s%%%d", k ? ", " : " ", v->in[k]);
        if (v->attr.about_mean)
            tn__text_add(text, " about its mean");
        if (v->leaf >= 0)
            tn__text_addf(text, " leaf %d%s", v->leaf, graph->leaf[v->leaf].donatable ? " (donated)" : "");
        tn__text_addf(text, " : %s%s\n", tn_dtype_name(v->dtype), tn__shape_text(v->shape->ndim, v->shape->dim, shape));
    }
    tn__text_add(text, "  results");
    for (int r = 0; r < graph->result_count; r++)
        tn__text_addf(text, " %%%d", graph->result[r]);
    tn__text_add(text, "\n");
}

/* Multiplications and additions: a result's elements by the weights that each takes. */
int64_t tn__convolution_operations(const tn__graph *graph, const tn__value *value)
{
    int first = tn__value_kind(value) == TN__KIND_TIED; /* behind the value that it is */
    const tn__shape *a = graph->value[value->in[first]].shape, *b = graph->value[value->in[first + 1]].shape;
    bool weights = value->op == TN__OP_CONVOLVE_WEIGHTS || value->op == TN__OP_CONV_WEIGHTS;
    bool forward = value->op == TN__OP_CONVOLVE || value->op == TN__OP_CONV;
    const tn__shape *w = weights ? value->shape : b, *y = weights ? b : forward ? value->shape : a;
    return w->size == 0 ? 0 : 2 * y->size * (w->size / w->dim[0]);
}
