/* SPDX-License-Identifier: MIT */
/*
 * Many values to another device as few: a copy between devices takes longer to begin than a small one takes, and a
 * network has many small parameters. What goes to several devices is put together once.
 */
#include "engine/engine.h"

#include "array/build.h"
#include "core/memory.h"

#define MOST    ((int64_t)1 << 24) /* elements of a vector, but for one value that is larger */
#define ALIGNED 16                 /* elements: of what begins there a kernel reads several at once */

typedef struct spot {
    int vector; /* the one that a node is in, from 1; 0: none yet */
    int64_t place;
} spot;

typedef struct moving {
    int count;
    tn__node **node;
    tn__node **from; /* what the nodes were */
    spot *spot;
    tn__node **joined; /* vectors, before they are sent */
    tn__device *const *to;
    bool at_once;
} moving;

/* A vector's elements: those that node `first` goes with. Parts whose sizes keep the next one aligned come first. */
static int64_t choose(moving *m, int first, int vector)
{
    const tn__node *like = m->node[first];
    int64_t elements = 0;
    for (int odd = 0; odd < 2; odd++)
        for (int i = first; i < m->count; i++) {
            const tn__node *a = m->node[i];
            if (m->spot[i].vector || a->dtype != like->dtype || a->device != like->device ||
                m->to[i] != m->to[first] || (a->shape->size % ALIGNED != 0) != odd ||
                (elements && elements + a->shape->size > MOST))
                continue;
            m->spot[i] = (spot){vector, elements};
            elements += a->shape->size;
        }
    return elements;
}

/* Whether a vector has the parts of another one, and so goes to a second device. */
static bool same(const moving *m, int a, int b)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < m->count && m->spot[i].vector != a)
            i++;
        while (k < m->count && m->spot[k].vector != b)
            k++;
        if (i == m->count || k == m->count)
            return i == k;
        if (m->from[i] != m->from[k] || m->spot[i].place != m->spot[k].place)
            return false;
        i++;
        k++;
    }
}

/* The parts of a vector one behind another; a node by itself as it is. */
static tn__node *join(const moving *m, int first, int64_t elements)
{
    tn__node *a = m->node[first];
    const tn__shape *shape = a->shape->size == elements ? a->shape : tn__shape_intern(1, &elements);
    if (!shape) {
        tn__fail_memory("to", sizeof *shape);
        return tn__failed();
    }
    if (shape == a->shape)
        return a;
    tn__node *vector = tn__const(0, (tn_dtype)a->dtype, shape, a->device);
    for (int i = first; i < m->count && !tn__node_is_error(vector); i++) {
        if (m->spot[i].vector != m->spot[first].vector || !m->node[i]->shape->size)
            continue;
        tn__node *part = tn__reshape(m->node[i], 1, &m->node[i]->shape->size);
        vector = tn__node_is_error(part) ? part : tn__update_along(vector, part, 0, m->spot[i].place);
    }
    return vector;
}

static tn__node *send(const moving *m, tn__node *vector, tn__device *device)
{
    if (!tn__node_is_error(vector) && m->at_once && tn__evaluate(1, &vector) != TN_OK)
        return tn__failed();
    tn__node *there = tn__to(vector, device);
    if (!tn__node_is_error(there) && m->at_once && tn__node_pending(there) && tn__transfer_run(there) != TN_OK)
        return tn__failed();
    return there;
}

static tn__node *part_of(tn__node *vector, int64_t place, const tn__shape *shape)
{
    const int64_t step = 1;
    if (vector->shape == shape)
        return vector;
    if (vector->storage)
        return tn__node_value(vector->storage, (tn_dtype)vector->dtype, shape, vector->offset + place, NULL);
    tn__node *piece = tn__slice_node(vector, &place, &step, &shape->size);
    return tn__node_is_error(piece) ? piece : tn__reshape_like(piece, shape);
}

static tn_status move(moving *m, int first, int number)
{
    int64_t elements = choose(m, first, number);
    tn__node *vector = NULL;
    for (int other = 1; other < number && !vector; other++)
        vector = same(m, other, number) ? m->joined[other] : NULL;
    m->joined[number] = vector ? vector : join(m, first, elements);
    tn__node *there = send(m, m->joined[number], m->to[first]);
    for (int i = first; i < m->count && !tn__node_is_error(there); i++) {
        if (m->spot[i].vector != number)
            continue;
        m->node[i] = part_of(there, m->spot[i].place, m->node[i]->shape);
        if (tn__node_is_error(m->node[i]))
            there = m->node[i];
    }
    return tn__node_is_error(there) ? tn__error_raise(there->error) : TN_OK;
}

tn_status tn__move_together(int count, tn__node **node, tn__device *const *to, bool at_once)
{
    moving m = {.count = count, .node = node, .to = to, .at_once = at_once};
    m.spot = tn__calloc((size_t)count + 1, sizeof *m.spot);
    m.from = tn__calloc(2 * (size_t)count + 1, sizeof(tn__node *));
    m.joined = m.from ? m.from + count : NULL; /* from 1 on, and at most as many as nodes */
    tn_status status = m.spot && m.from ? TN_OK : tn__fail_memory("to", (size_t)count * sizeof *m.spot);
    for (int i = 0; i < count && status == TN_OK; i++)
        m.from[i] = node[i];
    for (int i = 0, number = 0; i < count && status == TN_OK; i++)
        if (tn__node_is_error(node[i]))
            status = tn__error_raise(node[i]->error);
        else if (!m.spot[i].vector && node[i]->device != to[i])
            status = move(&m, i, ++number);
    tn__free(m.spot);
    tn__free(m.from);
    return status;
}
