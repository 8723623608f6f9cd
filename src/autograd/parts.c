/* SPDX-License-Identifier: MIT */
/*
 * Gradients that come in parts. A slice's gradient is that of a window of what it was cut from; what is written into a
 * window leaves the rest of the gradient to what was there before. As whole arrays, zeros but for a window each, n
 * slices of one array would be n such arrays and their sum, and n joined pieces n - 1 copies of the gradient. So a step
 * keeps the windows that come to it, and the holes in what comes whole, until its own rule is due: then windows are
 * written beside one another into one array, and windows of what was joined are read straight out of the gradient.
 *
 * Windows that meet are written into several arrays, as few as can be found by taking them in turn. Products wait, too,
 * as the sum of many may be one.
 */
#include "autograd/rules.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/memory.h"

#include <string.h>

typedef tn__tape_part part;
typedef tn__tape_box box;

/* ---- boxes ---- */

/* The elements of a window: those of axes that go back, from the other end. */
static box box_of(const tn__ints *window, const tn__shape *shape)
{
    box b = {.next = 0};
    for (int d = 0; d < shape->ndim; d++) {
        int64_t start = window->v[2 * d], step = window->v[2 * d + 1], count = shape->dim[d];
        b.extent[d] = count;
        b.start[d] = step < 0 && count > 0 ? start + (count - 1) * step : start;
        b.step[d] = count <= 1 ? 1 : step < 0 ? -step : step;
    }
    return b;
}

static int64_t last_of(const box *b, int d) { return b->start[d] + (b->extent[d] - 1) * b->step[d]; }

static bool apart(const box *a, const box *b, int ndim)
{
    for (int d = 0; d < ndim; d++) {
        bool between = a->step[d] == b->step[d] && (a->start[d] - b->start[d]) % a->step[d] != 0;
        if (between || a->extent[d] == 0 || b->extent[d] == 0 || last_of(a, d) < b->start[d] ||
            last_of(b, d) < a->start[d])
            return true;
    }
    return false;
}

static bool same_along(const box *a, const box *b, int d)
{
    return a->start[d] == b->start[d] && a->extent[d] == b->extent[d] && a->step[d] == b->step[d];
}

/* Does all of a lie in b? May say no where steps differ. */
static bool inside(const box *a, const box *b, int ndim)
{
    for (int d = 0; d < ndim; d++)
        if (!same_along(a, b, d) && (b->step[d] != 1 || a->start[d] < b->start[d] || last_of(a, d) > last_of(b, d)))
            return false;
    return true;
}

/* Makes a the box of both, which lie apart, if they lie side by side. */
static bool extend(box *a, const box *b, int ndim)
{
    int along = -1;
    for (int d = 0; d < ndim; d++) {
        if (same_along(a, b, d))
            continue;
        if (along >= 0 || a->step[d] != 1 || b->step[d] != 1)
            return false;
        along = d;
    }
    bool behind = along >= 0 && last_of(a, along) + 1 == b->start[along];
    if (along < 0 || (!behind && last_of(b, along) + 1 != a->start[along]))
        return false;
    a->extent[along] += b->extent[along];
    a->start[along] = behind ? a->start[along] : b->start[along];
    return true;
}

static tn_status no_memory(const tn__tape *t) { return tn__fail_memory(t->operation, sizeof(box)); }

/* Puts a box, which lies apart from them, in front of a list of boxes, or into the first of these. */
static tn_status add_box(tn__tape *t, uint32_t *list, const box *b, int ndim)
{
    if (*list && extend(&t->box[*list - 1], b, ndim))
        return TN_OK;
    if (!tn__grow((void **)&t->box, &t->box_capacity, t->box_count + 1, sizeof *t->box))
        return no_memory(t);
    t->box[t->box_count] = *b;
    t->box[t->box_count].next = *list;
    *list = (uint32_t)++t->box_count;
    return TN_OK;
}

static bool apart_from_all(const tn__tape *t, uint32_t list, const box *b, int ndim)
{
    while (list && apart(&t->box[list - 1], b, ndim))
        list = t->box[list - 1].next;
    return !list;
}

/* ---- what comes to a step ---- */

static tn_status failed(const tn__node *node) { return tn__error_raise(node->error); }

/* The gradient without its holes. */
static tn_status fill_holes(tn__tape *t, tn__tape_step *s)
{
    int ndim = s->node->shape->ndim;
    for (; s->holes; s->holes = t->box[s->holes - 1].next) {
        const box *b = &t->box[s->holes - 1];
        int64_t window[2 * TN_MAX_NDIM];
        for (int d = 0; d < ndim; d++) {
            window[2 * d] = b->start[d];
            window[2 * d + 1] = b->step[d];
        }
        const tn__shape *shape = tn__shape_intern(ndim, b->extent);
        const tn__ints *ints = shape ? tn__ints_intern(2 * ndim, window) : NULL;
        if (!ints)
            return no_memory(t);
        tn__node *zeros = tn__const(0, (tn_dtype)s->node->dtype, shape, s->node->device);
        s->gradient = tn__update(s->gradient, zeros, ints);
        if (tn__node_is_error(s->gradient))
            return failed(s->gradient);
    }
    return TN_OK;
}

static tn_status add_whole(tn__tape *t, tn__tape_step *to, tn__node *gradient, uint32_t holes)
{
    if (!to->gradient) {
        to->gradient = gradient;
        to->holes = holes;
        return TN_OK;
    }
    tn__tape_step other = {.node = to->node, .gradient = gradient, .holes = holes};
    tn_status status = fill_holes(t, to);
    if (status == TN_OK)
        status = fill_holes(t, &other);
    if (status != TN_OK)
        return status;
    to->gradient = tn__binary(TN__OP_ADD, to->gradient, other.gradient);
    return tn__node_is_error(to->gradient) ? failed(to->gradient) : TN_OK;
}

/* Puts a part behind those of a step. */
static void append(tn__tape *t, tn__tape_step *to, uint32_t p)
{
    t->part[p - 1].next = 0;
    if (to->first_part)
        t->part[to->last_part - 1].next = p;
    else
        to->first_part = p;
    to->last_part = p;
}

static tn_status add_part(tn__tape *t, tn__tape_step *to, part p)
{
    if (!tn__grow((void **)&t->part, &t->part_capacity, t->part_count + 1, sizeof *t->part))
        return no_memory(t);
    t->part[t->part_count++] = p;
    append(t, to, (uint32_t)t->part_count);
    return TN_OK;
}

tn_status tn__tape_add(tn__tape *t, tn__tape_step *to, tn__node *gradient, const tn__chain *from, int input)
{
    if (tn__node_is_error(gradient))
        return failed(gradient);
    const tn__node *node = from->node;
    if (from->place == TN__IN_WINDOW && input == 0)
        return add_part(t, to, (part){.gradient = gradient, .window = node->attr.ints});
    if (from->place == TN__AT_INDICES && input == 0)
        return add_part(t, to, (part){.gradient = gradient, .indices = node->in[1], .axis = node->attr.axis});
    if (gradient->shape != to->node->shape || gradient->dtype != to->node->dtype)
        return tn__fail(TN_ERR_INTERNAL, t->operation,
                        "the gradient rule of '%s' gave another shape or dtype than its input's",
                        tn__ops[node->op].name);
    tn__node *product = from->place == TN__ALL ? tn__tape_product(gradient) : NULL;
    if (product)
        return tn__node_is_error(product) ? failed(product) : add_part(t, to, (part){.gradient = product});
    uint32_t holes = 0;
    if (from->place == TN__BUT_WINDOW && input == 0) {
        box b = box_of(node->attr.ints, node->in[1]->shape);
        tn_status status = add_box(t, &holes, &b, node->shape->ndim);
        if (status != TN_OK)
            return status;
    }
    return add_whole(t, to, gradient, holes);
}

/* ---- all parts in one ---- */

static tn__node *sum(tn__node *a, tn__node *b) { return a ? tn__binary(TN__OP_ADD, a, b) : b; }

typedef struct layers {
    tn__node **node;  /* arrays in which windows lie that do not meet */
    uint32_t *covered; /* the boxes in each */
    size_t count, capacity, covered_capacity;
} layers;

/* Writes a part into the first of the arrays where no other lies in its way. */
static tn_status write_part(tn__tape *t, layers *l, const tn__node *node, const part *p)
{
    box b = box_of(p->window, p->gradient->shape);
    int ndim = node->shape->ndim;
    size_t at = 0;
    while (at < l->count && !apart_from_all(t, l->covered[at], &b, ndim))
        at++;
    if (at == l->count) {
        if (!tn__grow((void **)&l->node, &l->capacity, at + 1, sizeof *l->node) ||
            !tn__grow((void **)&l->covered, &l->covered_capacity, at + 1, sizeof *l->covered))
            return no_memory(t);
        l->node[at] = tn__const(0, (tn_dtype)node->dtype, node->shape, node->device);
        l->covered[at] = 0;
        l->count++;
    }
    l->node[at] = tn__update(l->node[at], p->gradient, p->window);
    if (tn__node_is_error(l->node[at]))
        return failed(l->node[at]);
    return add_box(t, &l->covered[at], &b, ndim);
}

/* Adds up parts of one and the same window, at the place of the first; the others' gradients become NULL. They are
 * found by a table, by their windows. */
static tn_status unite(tn__tape *t, const tn__tape_step *s)
{
    size_t count = 0, size = 4;
    for (uint32_t p = s->first_part; p; p = t->part[p - 1].next)
        count++;
    while (size < 2 * count)
        size *= 2;
    TN__FREED uint32_t *table = tn__calloc(size, sizeof *table);
    if (!table)
        return tn__fail_memory(t->operation, size * sizeof *table);
    for (uint32_t p = s->first_part; p; p = t->part[p - 1].next) {
        part *now = &t->part[p - 1], *first = NULL;
        if (!now->window)
            continue;
        size_t at = (now->window->id * 31u + now->gradient->shape->id) * 0x9E3779B1u & (size - 1);
        for (; table[at]; at = (at + 1) & (size - 1)) {
            first = &t->part[table[at] - 1];
            if (first->window == now->window && first->gradient->shape == now->gradient->shape)
                break;
        }
        if (!table[at]) {
            table[at] = p;
            continue;
        }
        first->gradient = sum(first->gradient, now->gradient);
        now->gradient = NULL;
        if (tn__node_is_error(first->gradient))
            return failed(first->gradient);
    }
    return TN_OK;
}

/* Adds the parts that are products. */
static tn_status add_products(tn__tape *t, tn__tape_step *s)
{
    size_t count = 0, capacity = 0;
    TN__FREED tn__node **product = NULL;
    for (uint32_t p = s->first_part; p; p = t->part[p - 1].next) {
        if (t->part[p - 1].window || t->part[p - 1].indices)
            continue;
        if (!tn__grow((void **)&product, &capacity, count + 1, sizeof *product))
            return no_memory(t);
        product[count++] = t->part[p - 1].gradient;
    }
    if (count)
        s->gradient = sum(s->gradient, tn__tape_sum_products((int)count, product));
    return count && tn__node_is_error(s->gradient) ? failed(s->gradient) : TN_OK;
}

/* Windows that lie beside one another become one array; what belongs to indices is added to all that is there. */
static tn_status join_parts(tn__tape *t, tn__tape_step *s, layers *l)
{
    tn_status status = add_products(t, s);
    if (status == TN_OK)
        status = unite(t, s);
    for (uint32_t p = s->first_part; p && status == TN_OK; p = t->part[p - 1].next)
        if (t->part[p - 1].gradient && t->part[p - 1].window)
            status = write_part(t, l, s->node, &t->part[p - 1]);
    for (size_t i = 0; i < l->count && status == TN_OK; i++)
        s->gradient = sum(s->gradient, l->node[i]);
    for (uint32_t p = s->first_part; p && status == TN_OK; p = t->part[p - 1].next) {
        const part *now = &t->part[p - 1];
        if (!now->indices)
            continue;
        if (!s->gradient)
            s->gradient = tn__const_like(s->node, 0);
        s->gradient = tn__scatter_add_node(s->gradient, now->indices, now->gradient, now->axis);
    }
    s->first_part = s->last_part = 0;
    return status == TN_OK && s->gradient && tn__node_is_error(s->gradient) ? failed(s->gradient) : status;
}

tn_status tn__tape_settle(tn__tape *t, tn__tape_step *s)
{
    tn_status status = fill_holes(t, s);
    if (status != TN_OK || !s->first_part)
        return status;
    const part *first = &t->part[s->first_part - 1];
    if (s->first_part == s->last_part && !first->window && !first->indices) {
        s->gradient = sum(s->gradient, first->gradient);
        s->first_part = s->last_part = 0;
        return tn__node_is_error(s->gradient) ? failed(s->gradient) : TN_OK;
    }
    layers l = {.count = 0};
    status = join_parts(t, s, &l);
    tn__free(l.node);
    tn__free(l.covered);
    return status;
}

/* ---- through what was written into a window ---- */

/* Is each part, and each hole, either apart from the window or just it? */
static bool is_clean(const tn__tape *t, const tn__tape_step *s, const box *w, const tn__shape *shape)
{
    int ndim = shape->ndim;
    for (uint32_t h = s->holes; h; h = t->box[h - 1].next)
        if (!apart(&t->box[h - 1], w, ndim) && !inside(w, &t->box[h - 1], ndim))
            return false;
    for (uint32_t p = s->first_part; p; p = t->part[p - 1].next) {
        const part *now = &t->part[p - 1];
        if (!now->window)
            return false;
        box b = box_of(now->window, now->gradient->shape);
        bool just_it = now->window == s->node->attr.ints && now->gradient->shape == shape;
        if (!just_it && !apart(&b, w, ndim))
            return false;
    }
    return true;
}

/* Hands a step's parts on to that of what was there before, but those of the window, whose sum it returns. */
static tn__node *hand_on(tn__tape *t, tn__tape_step *s, tn__tape_step *to, const tn__shape *shape)
{
    tn__node *own = NULL;
    for (uint32_t p = s->first_part, next; p; p = next) {
        const part *now = &t->part[p - 1];
        next = now->next;
        if (now->window == s->node->attr.ints && now->gradient->shape == shape)
            own = sum(own, now->gradient);
        else if (to)
            append(t, to, p);
    }
    s->first_part = s->last_part = 0;
    return own;
}

tn_status tn__tape_through_update(tn__tape *t, tn__tape_step *s, tn__tape_step *base, tn__tape_step *value, bool *done)
{
    const tn__shape *shape = s->node->in[1]->shape;
    box w = box_of(s->node->attr.ints, shape);
    *done = !s->target && (s->holes || s->first_part) && is_clean(t, s, &w, shape);
    if (!*done)
        return TN_OK;
    tn__chain c = {.node = s->node, .g = s->gradient, .wanted = 2, .place = TN__BUT_WINDOW};
    tn__node *own = hand_on(t, s, base, shape);
    bool whole = s->gradient && apart_from_all(t, s->holes, &w, shape->ndim);
    if (whole && value) {
        tn__rules[TN__OP_UPDATE](&c);
        own = own ? sum(c.in[1], own) : c.in[1];
    }
    tn_status status = own && value ? tn__tape_add(t, value, own, &c, 1) : TN_OK;
    if (status != TN_OK || !base || !s->gradient)
        return status;
    if (whole)
        status = add_box(t, &s->holes, &w, shape->ndim);
    return status == TN_OK ? add_whole(t, base, s->gradient, s->holes) : status;
}
