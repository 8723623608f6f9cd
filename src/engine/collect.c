/* SPDX-License-Identifier: MIT */
/* Collecting the pending graph under some roots, and making its key. */
#include "engine/collect.h"

#include "array/user.h"
#include "core/hash.h"
#include "core/memory.h"

#include <pthread.h>
#include <string.h>

/* Arrays up to this size that still have a handle are computed along with an optimizer's step. */
#define SMALL_SIZE 16384

/* ---- the thread's collection ---- */

static pthread_key_t collection_key;
static pthread_once_t collection_once = PTHREAD_ONCE_INIT;
static _Thread_local tn__collection *collection;

static void collection_free(void *memory)
{
    tn__collection *c = memory;
    tn__free(c->entry);
    tn__free(c->leaf);
    tn__free(c->root);
    tn__free(c->scalar);
    tn__free(c->key);
    tn__free(c->stack);
    tn__free(c->table);
    tn__free(c);
}

static void make_key(void) { pthread_key_create(&collection_key, collection_free); }

__attribute__((destructor)) static void free_last(void)
{
    if (collection)
        collection_free(collection);
    collection = NULL;
}

tn__collection *tn__collection_get(void)
{
    if (collection)
        return collection;
    pthread_once(&collection_once, make_key);
    collection = tn__calloc(1, sizeof *collection);
    if (collection)
        pthread_setspecific(collection_key, collection);
    return collection;
}

/* ---- finding entries ---- */

static tn_status no_memory(void) { return tn__fail_memory("eval", 0); }

static struct tn__leaf_slot *find_leaf(const tn__collection *c, const tn__node *node)
{
    size_t mask = c->table_size - 1, at = ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
    while (c->table[at].stamp == c->stamp && c->table[at].node != node)
        at = (at + 1) & mask;
    return &c->table[at];
}

static bool grow_table(tn__collection *c)
{
    if (c->leaf_count * 2 + 2 < c->table_size)
        return true;
    size_t size = c->table_size ? c->table_size * 2 : 64;
    void *table = tn__calloc(size, sizeof *c->table);
    if (!table)
        return false;
    tn__free(c->table);
    c->table = table;
    c->table_size = size;
    for (size_t i = 0; i < c->leaf_count; i++) {
        const tn__node *node = c->entry[c->leaf[i]].node;
        *find_leaf(c, node) = (struct tn__leaf_slot){node, c->stamp, c->leaf[i]};
    }
    return true;
}

/* The entry of a node, or -1 if it has none yet. */
static int entry_of(const tn__collection *c, const tn__node *node)
{
    if (!node->storage)
        return node->mark >> 32 == c->stamp ? (int)(uint32_t)node->mark : -1;
    struct tn__leaf_slot *slot = find_leaf(c, node);
    return slot->stamp == c->stamp ? slot->entry : -1;
}

/* The entry of an entry's input. */
static int32_t input(const tn__collection *c, const tn__entry *e, int i)
{
    return i < TN__MAX_ARITY ? e->in[i] : entry_of(c, e->node->in[i]);
}

static bool add_scalars(tn__collection *c, const tn__node *node, int count)
{
    if (!tn__grow((void **)&c->scalar, &c->scalar_capacity, c->scalar_count + 2, sizeof *c->scalar))
        return false;
    for (int i = 0; i < count; i++)
        c->scalar[c->scalar_count++] = node->attr.raw[i];
    return true;
}

static bool add_entry(tn__collection *c, tn__node *node)
{
    if (c->count == c->capacity && !tn__grow((void **)&c->entry, &c->capacity, c->count + 1, sizeof *c->entry))
        return false;
    tn__entry *e = &c->entry[c->count];
    e->node = node;
    e->leaf = e->scalar = -1;
    e->edges = 0;
    e->root = e->depends = e->survives = e->released = false;
    if (node->storage) {
        if (!tn__grow((void **)&c->leaf, &c->leaf_capacity, c->leaf_count + 1, sizeof *c->leaf) || !grow_table(c))
            return false;
        e->leaf = (int32_t)c->leaf_count;
        c->leaf[c->leaf_count++] = (int32_t)c->count;
        *find_leaf(c, node) = (struct tn__leaf_slot){node, c->stamp, (int32_t)c->count};
    } else {
        node->mark = (uint64_t)c->stamp << 32 | (uint32_t)c->count;
        int kind = tn__ops[node->op].kind;
        if (kind == TN__KIND_CONST || (kind == TN__KIND_GENERATE && node->op != TN__OP_IOTA)) {
            e->scalar = (int32_t)c->scalar_count;
            if (!add_scalars(c, node, kind == TN__KIND_CONST ? 1 : 2))
                return false;
        }
        for (int i = 0; i < node->arity; i++) {
            int32_t in = entry_of(c, node->in[i]);
            if (i < TN__MAX_ARITY)
                e->in[i] = in;
            c->entry[in].edges++;
        }
        if (node->arity > TN__MAX_ARITY)
            c->wide += node->arity;
        c->users |= node->op == TN__OP_USER || node->op == TN__OP_USER_REDUCE;
        c->work += (node->arity ? node->in[0]->shape->size : node->shape->size) *
                   (kind == TN__KIND_VIEW ? 0 : 1);
    }
    c->count++;
    return true;
}

/* A node that can't be computed: an error, or one that a step released. */
static tn_status refuse(const tn__node *node)
{
    return node->error ? tn__error_raise(node->error)
                       : tn__fail(TN_ERR_INTERNAL, "eval", "an error array without a record; please report this");
}

/* Depth first from one root; inputs get their entries before what uses them. */
static tn_status visit(tn__collection *c, tn__node *root)
{
    size_t depth = 0;
    if (entry_of(c, root) >= 0)
        return TN_OK;
    tn__node *node = root;
    int next = 0;
    for (;;) {
        if (node->error || tn__node_is_error(node))
            return refuse(node);
        if (!node->storage && next < node->arity) {
            tn__node *input = node->in[next++];
            if (entry_of(c, input) >= 0)
                continue;
            if (!tn__grow((void **)&c->stack, &c->stack_capacity, depth + 1, sizeof *c->stack))
                return no_memory();
            c->stack[depth++] = (struct tn__frame){node, next};
            node = input;
            next = 0;
            continue;
        }
        if (!add_entry(c, node))
            return no_memory();
        if (!depth)
            return TN_OK;
        node = c->stack[--depth].node;
        next = c->stack[depth].next;
    }
}

static tn_status add_root(tn__collection *c, tn__node *node)
{
    if (node->storage)
        return TN_OK;
    if (node->error || tn__node_is_error(node))
        return refuse(node);
    if (c->device && node->device != c->device)
        return tn__fail(TN_ERR_DEVICE, "eval", "the arrays are on %s and %s; evaluate them one device at a time",
                        c->device->name, node->device->name);
    c->device = node->device;
    tn_status status = visit(c, node);
    if (status != TN_OK)
        return status;
    int e = entry_of(c, node);
    if (c->entry[e].root)
        return TN_OK;
    c->entry[e].root = true;
    if (!tn__grow((void **)&c->root, &c->root_capacity, c->root_count + 1, sizeof *c->root))
        return no_memory();
    c->root[c->root_count++] = e;
    return TN_OK;
}

/* Pending arrays of this thread that a step computes too. */
static tn_status add_pending_handles(tn__collection *c)
{
    tn_array *const *handle;
    int count = tn__pending_handles(&handle);
    for (int i = 0; i < count; i++) {
        tn__node *node = handle[i]->node;
        bool wanted = node->flags & TN__NODE_BACKWARD || node->shape->size <= SMALL_SIZE;
        if (!wanted || node->storage || node->error || node->device != c->device || node->flags & TN__NODE_WEAK)
            continue;
        tn_status status = add_root(c, node);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- donation ---- */

static uint32_t references(const tn__node *node) { return __atomic_load_n(&node->references, __ATOMIC_ACQUIRE); }

/* Nobody outside this evaluation holds the leaf, and its storage is its own and whole. */
static bool exclusive(const tn__entry *e)
{
    const tn__node *n = e->node;
    return references(n) == e->edges && !n->strides && n->offset == 0 && !n->storage->release &&
           atomic_load(&n->storage->references) == 1 &&
           n->storage->bytes == (size_t)n->shape->size * tn_dtype_size(n->dtype) && n->storage->bytes > 0;
}

/* A root that keeps its inputs for a later backward. */
static bool keeps_inputs(const tn__node *n)
{
    return n->flags & TN__NODE_NEEDS_GRAD && !(n->flags & (TN__NODE_LEAF_VAR | TN__NODE_SPENT));
}

static void mark_survivors(tn__collection *c, bool step)
{
    for (size_t i = 0; i < c->count; i++) {
        tn__entry *e = &c->entry[i];
        if (e->leaf >= 0)
            e->depends = exclusive(e);
        else
            for (int k = 0; k < e->node->arity; k++)
                e->depends |= c->entry[input(c, e, k)].depends;
    }
    for (size_t i = c->count; i-- > 0;) {
        tn__entry *e = &c->entry[i];
        if (e->leaf >= 0)
            continue;
        bool held = references(e->node) > e->edges;
        bool keeps;
        if (e->root) {
            keeps = keeps_inputs(e->node);
        } else {
            e->released = step && held && e->depends;
            keeps = (held && !e->released) || e->survives;
        }
        for (int k = 0; k < e->node->arity && keeps; k++)
            c->entry[input(c, e, k)].survives = true;
    }
}

/* ---- the key ---- */

static uint64_t attribute(const tn__node *n)
{
    switch (tn__ops[n->op].kind) {
    case TN__KIND_REDUCE:
        return n->attr.axes | (uint64_t)(n->op == TN__OP_USER_REDUCE ? n->attr.user->id : 0) << 32;
    case TN__KIND_USER:
        return (uint64_t)n->attr.user->id << 4 | n->attr.output; /* TN__USER_PARAMS outputs at most */
    case TN__KIND_GATHER:
        return (uint64_t)n->attr.axis | (uint64_t)n->attr.known << 32;
    case TN__KIND_SCATTER:
        return (uint64_t)n->attr.axis;
    case TN__KIND_VIEW:
    case TN__KIND_UPDATE:
    case TN__KIND_LIBRARY:
        return n->op == TN__OP_PERMUTE ? n->attr.raw[0] : n->attr.ints ? n->attr.ints->id : 0;
    default:
        return 0;
    }
}

static bool has_attribute(const tn__node *n)
{
    int kind = tn__ops[n->op].kind;
    return kind != TN__KIND_MAP && kind != TN__KIND_CONST && kind != TN__KIND_GENERATE && kind != TN__KIND_MATMUL &&
           kind != TN__KIND_CUSTOM;
}

/* The number of a leaf's storage: that of the first leaf that shares it. */
static int32_t storage_number(const tn__collection *c, int leaf)
{
    const tn__node *n = c->entry[c->leaf[leaf]].node;
    if (atomic_load(&n->storage->references) == 1)
        return leaf;
    for (int i = 0; i < leaf; i++)
        if (c->entry[c->leaf[i]].node->storage == n->storage)
            return i;
    return leaf;
}

static bool donatable(const tn__collection *c, int leaf)
{
    const tn__entry *e = &c->entry[c->leaf[leaf]];
    return e->depends && !e->survives;
}

static bool make_key_words(tn__collection *c)
{
    if (!tn__grow((void **)&c->key, &c->key_capacity, c->count * 4 + c->wide + c->root_count + 4, sizeof *c->key))
        return false;
    uint64_t *k = c->key;
    *k++ = (uint64_t)c->device->number << 32 | c->count;
    for (size_t i = 0; i < c->count; i++) {
        const tn__entry *e = &c->entry[i];
        const tn__node *n = e->node;
        if (e->leaf >= 0) {
            *k++ = TN__OP_VALUE | (uint64_t)n->dtype << 8 | (uint64_t)donatable(c, e->leaf) << 16 |
                   (uint64_t)n->shape->id << 32;
            *k++ = (uint64_t)(n->strides ? n->strides->id + 1 : 0) << 32 | (uint32_t)storage_number(c, e->leaf);
            continue;
        }
        *k++ = n->op | (uint64_t)n->dtype << 8 | (uint64_t)n->shape->id << 32;
        uint32_t in[TN__MAX_ARITY + 1] = {0};
        for (int a = 0; a < n->arity && a < TN__MAX_ARITY; a++)
            in[a] = (uint32_t)e->in[a];
        if (n->arity)
            *k++ = (uint64_t)in[0] << 32 | in[1];
        if (n->arity >= 3 || has_attribute(n))
            *k++ = attribute(n) ^ (uint64_t)in[2] << 32;
        if (n->arity > TN__MAX_ARITY)
            *k++ = (uint64_t)n->arity;
        for (int a = TN__MAX_ARITY; a < n->arity; a++)
            *k++ = (uint64_t)input(c, e, a);
    }
    for (size_t r = 0; r < c->root_count; r++)
        *k++ = (uint64_t)c->root[r];
    c->key_count = (size_t)(k - c->key);
    c->hash = tn__hash(c->key, c->key_count * sizeof *c->key, 0);
    return true;
}

tn_status tn__collect(tn__collection *c, int count, tn__node *const *roots, bool step)
{
    c->device = NULL;
    c->count = c->leaf_count = c->root_count = c->scalar_count = 0;
    c->work = 0;
    c->wide = 0;
    c->users = false;
    c->stamp = tn__stamp();
    if (!c->table && !grow_table(c))
        return no_memory();
    /* The loss before the updates: an index out of range is found before anything overwrites a parameter. */
    if (step && count > 0 && roots[0]->device) {
        c->device = roots[0]->device;
        tn_status status = add_pending_handles(c);
        if (status != TN_OK)
            return status;
    }
    for (int i = 0; i < count; i++) {
        tn_status status = add_root(c, roots[i]);
        if (status != TN_OK)
            return status;
    }
    if (!c->root_count)
        return TN_OK;
    mark_survivors(c, step);
    return make_key_words(c) ? TN_OK : no_memory();
}

/* ---- for the compiler ---- */

static void fill_value(const tn__collection *c, const tn__entry *e, tn__value *v)
{
    const tn__node *n = e->node;
    *v = (tn__value){.op = e->leaf >= 0 ? TN__OP_VALUE : n->op, .dtype = n->dtype, .shape = n->shape, .leaf = e->leaf,
                     .scalar = e->scalar, .strides = e->leaf >= 0 ? n->strides : NULL};
    if (e->leaf >= 0)
        return;
    v->arity = n->arity;
    for (int i = 0; i < n->arity; i++)
        v->in[i] = input(c, e, i);
    switch (tn__ops[n->op].kind) {
    case TN__KIND_REDUCE:
        v->attr.axes = n->attr.axes;
        v->attr.user = n->op == TN__OP_USER_REDUCE ? n->attr.user : NULL;
        break;
    case TN__KIND_USER:
        v->attr.user = n->attr.user;
        v->attr.output = (int)n->attr.output;
        break;
    case TN__KIND_GATHER:
        v->attr.known = n->attr.known;
        v->attr.axis = n->attr.axis;
        break;
    case TN__KIND_SCATTER:
        v->attr.axis = n->attr.axis;
        break;
    case TN__KIND_VIEW:
    case TN__KIND_UPDATE:
    case TN__KIND_LIBRARY:
        if (n->op == TN__OP_PERMUTE)
            memcpy(v->attr.perm, n->attr.perm, sizeof v->attr.perm);
        else if (n->op != TN__OP_RESHAPE && n->op != TN__OP_EXPAND)
            v->attr.ints = n->attr.ints;
        break;
    default:
        break;
    }
}

bool tn__collection_graph(const tn__collection *c, tn__graph *graph)
{
    memset(graph, 0, sizeof *graph);
    graph->leaf = tn__calloc(c->leaf_count + 1, sizeof *graph->leaf);
    graph->result = tn__alloc(sizeof *graph->result * (c->root_count + 1));
    graph->scalar_dtype = tn__calloc(c->scalar_count + 1, sizeof *graph->scalar_dtype);
    bool done = graph->leaf && graph->result && graph->scalar_dtype;
    for (size_t i = 0; i < c->count && done; i++) {
        const tn__entry *e = &c->entry[i];
        tn__value v;
        fill_value(c, e, &v);
        done = tn__graph_add(graph, &v) >= 0;
        if (done && e->scalar >= 0) {
            bool constant = e->node->op == TN__OP_CONST;
            graph->scalar_dtype[e->scalar] = constant ? (tn_dtype)e->node->dtype : TN_UINT64;
            if (!constant)
                graph->scalar_dtype[e->scalar + 1] = TN_UINT64;
        }
    }
    if (!done) {
        tn__graph_free(graph);
        return false;
    }
    graph->leaf_count = (int)c->leaf_count;
    for (int i = 0; i < graph->leaf_count; i++)
        graph->leaf[i] = (tn__leaf){storage_number(c, i), donatable(c, i), c->entry[c->leaf[i]].node->storage->bytes};
    graph->result_count = (int)c->root_count;
    for (int i = 0; i < graph->result_count; i++)
        graph->result[i] = c->root[i];
    graph->scalar_count = (int)c->scalar_count;
    return true;
}
