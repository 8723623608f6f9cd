/* SPDX-License-Identifier: MIT */
/* Drawing a computation as a DOT graph for Graphviz, and the names that arrays have in it. */
#include "autograd/marks.h"

#include <inttypes.h>
#include <tanso/autograd.h>

tn_array *tn_set_name(tn_array *x, const char *name)
{
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "tn_set_name");
    if (!tn__node_is_error(node)) {
        tn__var *var = tn__array_var(x);
        char *copy = var && name ? tn__strdup(name) : NULL;
        if (!var || (name && !copy)) {
            tn__fail_memory("tn_set_name", sizeof *var);
        } else {
            tn__free(var->name);
            var->name = copy;
            if (!node->var)
                node->var = var;
        }
    }
    tn__leave(call);
    return x;
}

/* The nodes of a drawing, each once, y first. */
typedef struct drawing {
    tn__marks marks;
    tn__node **nodes;
    size_t count, capacity;
} drawing;

/* The number of a node, a new one if it has none. False without memory. */
static bool number(drawing *d, tn__node *node, uint32_t *i)
{
    if (tn__marks_find(&d->marks, node, i))
        return true;
    if (!tn__grow((void **)&d->nodes, &d->capacity, d->count + 1, sizeof *d->nodes))
        return false;
    *i = (uint32_t)d->count;
    d->nodes[d->count++] = node;
    return tn__marks_set(&d->marks, node, *i);
}

static void add_escaped(tn__text *text, const char *name)
{
    for (; *name; name++) {
        if (*name == '"' || *name == '\\')
            tn__text_add(text, "\\");
        tn__text_addn(text, *name == '\n' ? " " : name, 1);
    }
}

/* Values are ellipses, leaves that want gradients orange ones; operations still to be computed are
 * boxes. */
static void add_node(tn__text *text, const tn__node *node, size_t i)
{
    char shape[TN__SHAPE_TEXT];
    bool leaf = node->flags & TN__NODE_LEAF_VAR;
    tn__text_addf(text, "    n%zu [label=\"", i);
    if (node->var && node->var->name) {
        add_escaped(text, node->var->name);
        tn__text_add(text, "\\n");
    }
    if (node->op == TN__OP_CONST)
        tn__text_addf(text, "%g", tn__scalar_to_double(node->attr.scalar, (tn_dtype)node->dtype));
    else
        tn__text_add(text, tn__ops[node->op].name);
    tn__text_addf(text, "\\n%s %s\"", tn__shape_text(node->shape->ndim, node->shape->dim, shape),
                  tn_dtype_name((tn_dtype)node->dtype));
    if (node->storage || leaf || node->op == TN__OP_CONST)
        tn__text_add(text, ", shape=ellipse");
    if (leaf)
        tn__text_add(text, ", style=filled, fillcolor=orange");
    tn__text_add(text, "];\n");
}

static bool is_first_of_device(const drawing *d, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (d->nodes[k]->device == d->nodes[i]->device)
            return false;
    return true;
}

/* A frame around the nodes of each device, if there are several. */
static void add_devices(tn__text *text, const drawing *d)
{
    bool several = false;
    for (size_t i = 0; i < d->count; i++)
        several |= d->nodes[i]->device != d->nodes[0]->device;
    for (size_t i = 0; i < d->count && several; i++) {
        const tn__device *device = d->nodes[i]->device;
        if (!is_first_of_device(d, i))
            continue;
        tn__text_addf(text, "    subgraph \"cluster_%s\" {\n", device->name);
        tn__text_addf(text, "        label=\"%s\";\n       ", device->name);
        for (size_t k = i; k < d->count; k++)
            if (d->nodes[k]->device == device)
                tn__text_addf(text, " n%zu;", k);
        tn__text_add(text, "\n    }\n");
    }
}

static char *draw(tn__node *y)
{
    tn__value_mark few[TN__FEW_MARKS];
    drawing d = {.marks.few = few};
    uint32_t from;
    tn__marks_begin(&d.marks);
    bool done = number(&d, y, &from);
    tn__text text = {0};
    tn__text_add(&text, "digraph tanso {\n    node [shape=box];\n");
    for (size_t i = 0; i < d.count && done; i++) {
        tn__node *node = d.nodes[i];
        add_node(&text, node, i);
        int arity = node->flags & TN__NODE_LEAF_VAR ? 0 : node->arity;
        for (int k = 0; k < arity && done; k++) {
            done = number(&d, node->in[k], &from);
            if (done)
                tn__text_addf(&text, "    n%" PRIu32 " -> n%zu;\n", from, i);
        }
    }
    if (done)
        add_devices(&text, &d);
    tn__text_add(&text, "}\n");
    text.failed = text.failed || !done;
    tn__free(d.nodes);
    tn__marks_end(&d.marks);
    return tn__text_take(&text);
}

static tn_status write_dot(tn__node *y, FILE *stream)
{
    if (tn__node_is_error(y))
        return tn__error_raise(y->error);
    if (!stream)
        return tn__fail(TN_ERR_VALUE, "tn_graph_dot", "expected a stream to write to, got NULL");
    char *text = draw(y);
    if (!text)
        return tn__fail_memory("tn_graph_dot", 0);
    bool written = fputs(text, stream) >= 0 && fflush(stream) == 0;
    tn__free(text);
    return written ? TN_OK
                   : tn__fail(TN_ERR_IO, "tn_graph_dot",
                              "writing to the stream failed; is the disk full?");
}

tn_status tn_graph_dot(const tn_array *y, FILE *stream)
{
    TN__NO_PLACE();
    tn__call call = tn__enter();
    tn_status status = write_dot(tn__node_of(y, "tn_graph_dot"), stream);
    tn__leave(call);
    return status;
}
